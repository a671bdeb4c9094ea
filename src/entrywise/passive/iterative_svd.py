"""Iterative SVD: fill the gaps, truncate, fill again.

Two forms of one iteration: :func:`iterative_svd` keeps the filled matrix as sparse residuals plus low rank, for large
tables; :func:`soft_filled` has it dense and lowers the singular values, as a start for other fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.units import in_unit, out_of_unit, unit_of
from entrywise.observations import Observations
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed, generator

Filled = TypeVar("Filled")
SPARE = 3  # directions beyond the rank that the subspace iteration carries
STEPS = 2  # of it for each SVD
PSEUDO = 2.0  # entries of size 0 that each line is thought to have beside those known, at the start


def iterative_svd(
    observations: Observations,
    rank: int,
    *,
    rng: Seed = 0,
    max_sweeps: int = 500,
    tol: float = 1e-5,
) -> LowRank:
    r"""Return the fixed point of filling the gaps with the best approximation of the given rank.

    .. math:: M \leftarrow \mathrm{SVD}_k\big(P_\Omega(Y) + P_{\Omega^\perp}(M)\big)

    starting from the column means. The filled matrix is kept as sparse residuals plus low rank, and each SVD is a
    step of subspace iteration from the last one.

    Parameters
    ----------
    observations : Observations
        An entry listed more than once counts as its mean. Noise is not used.
    rank : int
        Rank k of the result, 1..min(m, n).
    rng : int or Generator
        Draws the directions that the subspace iteration begins with.
    max_sweeps, tol : int, float
        Stop after so many SVDs, or when M changes by less than this share in one.

    References
    ----------
    .. [T01] Troyanskaya et al., *Missing value estimation methods for DNA microarrays*, Bioinformatics 2001 (SVDimpute).
    .. [MHT10] Mazumder, Hastie, Tibshirani, *Spectral regularization algorithms*, JMLR 2010 (Hard-Impute).

    Examples
    --------
    >>> A = np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0))
    >>> A[2, 3] = np.nan
    >>> round(iterative_svd(Observations.from_dense(A), 1).entry(2, 3), 2)
    12.0
    """
    m, n = observations.shape
    _check(observations, rank, max_sweeps, tol)
    seen = observations._resolve("mean")
    unit = unit_of(seen.values)
    order = np.lexsort((seen.cols, seen.rows))
    i, j, y = seen.rows[order], seen.cols[order], in_unit(seen.values[order], unit)
    means = _column_means(seen.cols, in_unit(seen.values, unit), n)

    start = np.ones((m, 1)), means[:, None]
    drawn = generator(rng).standard_normal((n, min(rank + SPARE, n) - 1))
    step = _sparse_step(i, j, y, (m, n), rank, np.hstack([means[:, None], drawn]))
    (left, right), done, still = until_still(step, start, max_sweeps, lambda by: by <= tol)

    root = np.sqrt(np.maximum((left**2).sum(axis=0), 1e-300)) ** 0.5
    report = {"method": "iterative-svd", "rank": rank, "sweeps": done, "converged": still}
    return LowRank.of_entries(seen, out_of_unit(left / root, unit), right * root, report=report)


def soft_filled(X: Array, rank: int, *, max_sweeps: int = 100, tol: float = 1e-4) -> Array:
    """Return X (m, n) with its unknown entries (NaN) filled in by iterated SVD.

    Singular values are lowered by the first one left out; merely cut, they follow the noise into poor optima. Dense: one
    eigendecomposition of the smaller side a sweep. It begins with the means of rows and columns, drawn towards 0.

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    >>> X[2, 1] = np.nan
    >>> filled = soft_filled(X, 1)
    >>> bool(1.0 < filled[2, 1] <= 3.0), bool(np.all(filled[:2] == X[:2]))
    (True, True)
    """
    known = ~np.isnan(X)
    Y = np.where(known, X, 0.0)
    col = Y.sum(axis=0) / (known.sum(axis=0) + PSEUDO)
    row = np.where(known, X - col, 0.0).sum(axis=1) / (known.sum(axis=1) + PSEUDO)

    def step(Z: Array) -> tuple[Array, float]:
        new = np.where(known, Y, _lowered(Z, rank))
        size = float(np.linalg.norm(new))
        by = float(np.linalg.norm(new - Z))
        return new, by / size if size > 0 else 0.0

    return until_still(
        step, np.where(known, Y, col + row[:, None]), max_sweeps, lambda by: by < tol
    )[0]


def until_still(
    step: Callable[[Filled], tuple[Filled, float]],
    filled: Filled,
    max_sweeps: int,
    still: Callable[[float], bool],
) -> tuple[Filled, int, bool]:
    """Fill, truncate, fill again; return what is reached, after how many steps, and whether it stands still.

    `step` returns the next filled matrix and by how much of its size it changed.
    """
    for done in range(1, max_sweeps + 1):
        filled, change = step(filled)
        if still(change):
            return filled, done, True
    return filled, max_sweeps, False


def _check(observations: Observations, rank: int, max_sweeps: int, tol: float) -> None:
    most = min(observations.shape)
    if not 1 <= rank <= most:
        raise ParameterError(f"rank of iterative_svd must be in 1..{most}, got {rank}")
    if max_sweeps < 1 or not tol >= 0:
        raise ParameterError(
            f"max_sweeps must be 1 or more and tol 0 or more, got {max_sweeps} and {tol}"
        )
    if not len(observations):
        raise DataError("iterative_svd needs at least one known entry, got none")


def _column_means(cols: Indices, values: Array, n: int) -> Array:
    """Return the mean of every column, that of all entries where nothing is known, shape (n,)."""
    count = np.bincount(cols, minlength=n)
    means = np.bincount(cols, values, minlength=n) / np.maximum(count, 1)
    means[count == 0] = values.mean()
    return means


def _sparse_step(
    i: Indices, j: Indices, y: Array, shape: tuple[int, int], rank: int, directions: Array
) -> Callable[[tuple[Array, Array]], tuple[tuple[Array, Array], float]]:
    """Return the step that truncates R + left right', R sparse, by subspace iteration from the last one's basis."""
    from scipy.sparse import csr_array

    R = csr_array((np.zeros(len(y)), (i, j)), shape=shape)
    basis = np.linalg.qr(directions)[0]

    def step(filled: tuple[Array, Array]) -> tuple[tuple[Array, Array], float]:
        nonlocal basis
        left, right = filled
        R.data = y - np.einsum("tk,tk->t", left[i], right[j])
        for _ in range(STEPS):
            Q = np.linalg.qr(R @ basis + left @ (right.T @ basis))[0]
            basis = np.linalg.qr(R.T @ Q + right @ (left.T @ Q))[0]
        P, s, W = np.linalg.svd(R @ basis + left @ (right.T @ basis), full_matrices=False)
        new = P[:, :rank] * s[:rank], (basis @ W.T)[:, :rank]
        return new, _change(left, right, *new)

    return step


def _lowered(Z: Array, rank: int) -> Array:
    """Return the best approximation of Z with its singular values lowered by the first one left out."""
    wide = Z.shape[0] < Z.shape[1]
    gram = Z @ Z.T if wide else Z.T @ Z  # the smaller one: here its digits suffice
    squares, W = np.linalg.eigh(gram)
    s, W = np.sqrt(np.maximum(squares[::-1], 0.0)), W[:, ::-1][:, :rank]
    next_one = s[rank] if rank < len(s) else 0.0
    W *= np.sqrt((s[:rank] - next_one) / np.maximum(s[:rank], 1e-300))
    return W @ (W.T @ Z) if wide else (Z @ W) @ W.T


def _change(A: Array, B: Array, C: Array, D: Array) -> float:
    """Return the relative Frobenius distance of A B' and C D', from small products alone."""
    first = float(np.sum((A.T @ A) * (B.T @ B)))
    second = float(np.sum((C.T @ C) * (D.T @ D)))
    inner = float(np.sum((A.T @ C) * (B.T @ D)))
    return float(np.sqrt(max(first + second - 2.0 * inner, 0.0) / max(first, 1e-300)))
