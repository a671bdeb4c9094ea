r"""Fit a PSD matrix of low rank to averages of repeated, noisy answers.

Entry (i, j) was measured :math:`n_{ij}` times with mean :math:`\bar y_{ij}`. Rows of the factor are drawn
towards their own average, by as much as their spread and the noise say (empirical Bayes):

.. math:: \min_F \sum_{i \le j} \frac{n_{ij}}{v_{ij}} (\bar y_{ij} - f_i^\top f_j)^2
          + \sum_i (f_i - \mu)^\top \Sigma^{-1} (f_i - \mu)

Entries that were never measured (the diagonal, say) have no weight: nothing has to be imputed. Work is
O(entries measured x rank^2) a step, memory O(entries + n rank^2); nothing of size n x n is made.
"""

from __future__ import annotations

import numpy as np

from entrywise.linalg.ridge import ridge_lines
from entrywise.types import Array, Indices

DENSE = 1200  # sides up to this are decomposed whole


def spectral_start(
    n: int, rows: Indices, cols: Indices, sums: Array, counts: Array, rank: int
) -> Array:
    """Return a first factor of shape (n, rank): leading eigenvectors of the means, shrunk to a rank-one guess.

    Each entry counts as if the rank-one guess from the row means had been answered once more.
    """
    off = rows != cols
    total = np.bincount(rows, sums, n) + np.bincount(cols[off], sums[off], n)
    times = np.bincount(rows, counts, n) + np.bincount(cols[off], counts[off], n)
    mean = float(total.sum() / max(times.sum(), 1.0))
    scale = max(abs(mean), 1e-12 * float(np.abs(sums).max(initial=0.0)), 1e-300)
    base = (total + 4.0 * mean) / (times + 4.0)  # row means, a little towards the whole
    sign = 1.0 if mean >= 0 else -1.0
    guess = sign * base[rows] * base[cols] / scale
    change = (sums - counts * guess) / (counts + 1.0)
    size = min(rank, n)
    if n <= DENSE:
        A = np.outer(base, base) * (sign / scale)
        A[rows, cols] += change
        A[cols[off], rows[off]] += change[off]
        values, vectors = np.linalg.eigh(A)
        values, vectors = values[::-1][:size], vectors[:, ::-1][:, :size]
    else:
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import LinearOperator, eigsh

        S = coo_array((change, (rows, cols)), shape=(n, n)).tocsr()
        S = S + coo_array((change[off], (cols[off], rows[off])), shape=(n, n)).tocsr()
        operator = LinearOperator(
            (n, n), matvec=lambda x: S @ x + base * (base @ x) * (sign / scale), dtype=np.float64
        )
        values, vectors = eigsh(operator, k=min(size, n - 2), which="LA", v0=np.ones(n))
        values, vectors = values[::-1], vectors[:, ::-1]
    floor = 1e-6 * float(np.abs(values).max(initial=0.0))
    F = np.zeros((n, rank))
    F[:, : len(values)] = vectors * np.sqrt(np.maximum(values, floor))
    return F


def fit_psd(
    rows: Indices,
    cols: Indices,
    sums: Array,
    counts: Array,
    start: Array,
    *,
    noise: float | None = None,
    steps: int = 40,
    spread: float = 0.01,
) -> Array:
    """Return the factor F of shape (n, rank) that fits the means ``sums / counts``, beginning at `start`.

    Parameters
    ----------
    rows, cols, sums, counts : ndarrays of shape (e,)
        Each entry of the symmetric matrix once, with the sum and the number of its answers (above 0).
    start : ndarray of shape (n, rank)
    noise : float, optional
        Standard deviation of an answer. None: coins, whose variance p (1 - p) is taken from the fit.
    steps : int
        Damped alternating steps ``F <- (F + best rows given F) / 2``, the Newton iteration of the
        matrix square root when every entry is known.
    spread : float
        Least variance of a row in any direction, as a share of the mean squared row: rows that stand
        apart from all others are not shrunk away.
    """
    from scipy.sparse import csr_array

    F = np.array(start, dtype=np.float64)
    n, r = F.shape
    if not len(rows) or r == 0:
        return F
    off = rows != cols
    i, j = np.r_[rows, cols[off]], np.r_[cols, rows[off]]
    n_, s_ = np.r_[counts, counts[off]].astype(np.float64), np.r_[sums, sums[off]]
    order = np.lexsort((j, i))
    i, j, n_, s_ = i[order], j[order], n_[order], s_[order]
    starts = np.r_[0, np.cumsum(np.bincount(i, minlength=n))]
    size = float(np.abs(s_ / n_).max())
    if size == 0.0:
        return np.zeros_like(F)
    variance = 1.0 if noise is None else max(noise, 1e-6 * size) ** 2
    for _ in range(steps):
        if noise is None:
            p = np.clip(np.einsum("er,er->e", F[i], F[j]), 0.02, 0.98)
            weight = 1.0 / (p * (1.0 - p))
        else:
            weight = np.full(len(i), 1.0 / variance)
        weights = csr_array((n_ * weight, j, starts), shape=(n, n))
        targets = csr_array((s_ * weight, j, starts), shape=(n, n)) @ F
        mu = F.mean(axis=0)
        least = spread * np.sum(F * F) / n + 1e-12 * size
        cov = (F - mu).T @ (F - mu) / n + least * np.eye(r)
        F = 0.5 * (F + ridge_lines(F, weights, targets, mu, cov))
    return F


def design(F: Array, steps: int = 300) -> Array:
    r"""Return weights of shape (n,) with which to measure columns so that the worst row is known best.

    The multiplicative algorithm for a D-optimal design on the rows of F; at its end
    :math:`\max_i f_i^\top (\sum_j w_j f_j f_j^\top)^{-1} f_i` is close to the rank, its least value
    (Kiefer and Wolfowitz). Few weights are above zero: the columns worth asking for.
    """
    n, r = F.shape
    w = np.full(n, 1.0 / n)
    energy = float(np.sum(F * F))
    if r == 0 or energy == 0.0:
        return w
    ridge = 1e-9 * energy / n * np.eye(r)
    for _ in range(steps):
        M = (F * w[:, None]).T @ F + ridge
        w = w * np.einsum("ir,ri->i", F, np.linalg.solve(M, F.T))
        w /= w.sum()
    return w
