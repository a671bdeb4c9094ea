"""OptSpace: a trimmed spectral start, then descent over the two subspaces."""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed


def optspace(
    observations: Observations,
    rank: int | None = None,
    *,
    rng: Seed = 0,
    sweeps: int = 500,
    tol: float = 1e-6,
) -> LowRank:
    r"""Return the matrix of given rank that fits the known entries best, by descent from a spectral start.

    .. math:: \min_{X, Y} \min_S \sum_{(i,j)} (y_{ij} - x_i^\top S y_j)^2, \quad X^\top X = Y^\top Y = I

    Lines with more than twice the average number of entries are trimmed for the start only; the descent follows
    conjugate directions on the product of Grassmann manifolds with a backtracking step.

    Parameters
    ----------
    observations : Observations
        Entries may be listed more than once. Noise is not used and nothing is centred.
    rank : int, optional
        1..min(m, n). None: where the ratio of successive singular values of the trimmed matrix, corrected for
        noise as the authors' code does, is smallest.
    sweeps, tol : int, float
        Stop after so many steps, or when the squared error falls by less than this share in one.

    Returns
    -------
    LowRank

    References
    ----------
    .. [KMO10] Keshavan, Montanari, Oh, *Matrix completion from a few entries*, IEEE Trans. Inf. Theory 2010; here
       without the incoherence penalty G, and S is refitted at every step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))
    >>> seen = Observations.from_dense(np.where(rng.random(A.shape) < 0.6, A, np.nan))
    >>> bool(np.abs(optspace(seen, 2, tol=1e-12).to_dense() - A).max() < 1e-3)
    True
    """
    m, n = observations.shape
    if rank is not None and not 1 <= rank <= min(m, n):
        raise ParameterError(f"rank of optspace must be in 1..{min(m, n)}, got {rank}")
    if sweeps < 1 or not tol >= 0:
        raise ParameterError(f"sweeps must be 1 or more and tol 0 or more, got {sweeps} and {tol}")
    if not len(observations):
        raise DataError("optspace needs at least one known entry, got none")
    i, j = observations.rows, observations.cols
    size = float(np.abs(observations.values).max()) or 1.0
    y = observations.values / size
    X, Y, rank = _spectral(observations, rank, np.random.default_rng(rng))
    S, r = _middle(X, Y, i, j, y)
    error = float(r @ r)
    scale = max(float(y @ y), 1e-300)
    step, done = 1.0, 0
    old: tuple[Array, Array, float] | None = None
    direction = (np.zeros_like(X), np.zeros_like(Y))
    while done < sweeps:
        done += 1
        if error <= 1e-24 * scale:
            break
        GX = -_scatter(i, r, Y[j] @ S.T, m)  # gradient of half the error
        GY = -_scatter(j, r, X[i] @ S, n)
        GX, GY = GX - X @ (X.T @ GX), GY - Y @ (Y.T @ GY)
        norm = float((GX**2).sum() + (GY**2).sum())
        if norm == 0.0:
            break
        beta = 0.0
        if old is not None:  # Polak-Ribière, restarted when it turns uphill
            beta = max(0.0, (norm - float((GX * old[0]).sum() + (GY * old[1]).sum())) / old[2])
        DX, DY = (
            -G + beta * (d - B @ (B.T @ d))
            for G, d, B in ((GX, direction[0], X), (GY, direction[1], Y))
        )
        slope = float((GX * DX).sum() + (GY * DY).sum())
        if slope >= 0:
            DX, DY, slope = -GX, -GY, -norm
        step = min(step * 2.0, 1e6)
        for _ in range(60):
            P, Q = np.linalg.qr(X + step * DX)[0], np.linalg.qr(Y + step * DY)[0]
            T, s = _middle(P, Q, i, j, y)
            trial = float(s @ s)
            if trial <= error + 1e-4 * step * slope:
                break
            step /= 2.0
        else:
            break
        fallen = error - trial
        X, Y, S, r, error = P, Q, T, s, trial
        old, direction = (GX, GY, norm), (DX, DY)
        if fallen <= tol * error:
            break
    U, d, W = np.linalg.svd(size * S)
    root = np.sqrt(d)
    return LowRank(
        X @ U * root, Y @ W.T * root, row_counts=observations.row_counts, col_counts=observations.col_counts,
        row_labels=observations.row_labels, col_labels=observations.col_labels,
        report={
            "method": "optspace", "rank": rank, "sweeps": done, "fit_rmse": size * float(np.sqrt(error / len(y))),
        },
    )  # fmt: skip


def _spectral(
    seen: Observations, rank: int | None, rng: np.random.Generator
) -> tuple[Array, Array, int]:
    """Return orthonormal subspaces of the trimmed, rescaled observations, and the rank."""
    from scipy.sparse import csr_array

    from entrywise.linalg.variational import top_triplets

    m, n = seen.shape
    crowded = (seen.row_counts > 2 * max(len(seen) / m, 1))[seen.rows]
    crowded |= (seen.col_counts > 2 * max(len(seen) / n, 1))[seen.cols]
    kept = ~crowded if np.any(~crowded) else np.ones(len(seen), bool)
    trimmed = csr_array((seen.values[kept], (seen.rows[kept], seen.cols[kept])), shape=(m, n))
    if rank is None:
        most = min(m, n, 100)
        s = top_triplets(trimmed, most, rng)[1]
        rank = 1
        if len(s) > 1 and s[0] > 0:
            density = len(seen) / np.sqrt(m * n)
            k = np.arange(1, len(s))
            cost = (s[1:] + s[0] * np.sqrt(k / density)) / np.maximum(s[:-1], 1e-12 * s[0])
            rank = int(np.argmin(cost)) + 1
    U, _, V = top_triplets(trimmed, rank, rng)
    return np.linalg.qr(U)[0], np.linalg.qr(V)[0], rank


def _middle(X: Array, Y: Array, i: Indices, j: Indices, y: Array) -> tuple[Array, Array]:
    """Return the best S for the two subspaces, by least squares over r^2 numbers, and the residuals."""
    k = X.shape[1]
    G, h = np.zeros((k * k, k * k)), np.zeros(k * k)
    block = max(1, 2**20 // (k * k))
    for start in range(0, len(y), block):
        at = slice(start, start + block)
        F = (X[i[at]][:, :, None] * Y[j[at]][:, None, :]).reshape(-1, k * k)
        G += F.T @ F
        h += F.T @ y[at]
    G += 1e-12 * max(float(np.trace(G)) / (k * k), 1e-300) * np.eye(k * k)
    S = np.linalg.solve(G, h).reshape(k, k)
    return S, y - np.einsum("tk,tk->t", X[i] @ S, Y[j])


def _scatter(index: Indices, weight: Array, vectors: Array, size: int) -> Array:
    """Return the sum of ``weight[t] vectors[t]`` over each index, shape (size, k)."""
    from scipy.sparse import csr_array

    pick = csr_array((weight, (index, np.arange(len(index)))), shape=(size, len(index)))
    return np.asarray(pick @ vectors)
