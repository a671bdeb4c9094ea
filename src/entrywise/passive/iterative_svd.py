"""Iterative SVD: fill the gaps, truncate, fill again."""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.results import LowRank
from entrywise.types import Array, Seed


def iterative_svd(
    observations: Observations,
    rank: int,
    *,
    rng: Seed = 0,
    sweeps: int = 500,
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
    sweeps, tol : int, float
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
    from scipy.sparse import csr_array

    m, n = observations.shape
    if not 1 <= rank <= min(m, n):
        raise ParameterError(f"rank of iterative_svd must be in 1..{min(m, n)}, got {rank}")
    if sweeps < 1 or not tol >= 0:
        raise ParameterError(f"sweeps must be 1 or more and tol 0 or more, got {sweeps} and {tol}")
    if not len(observations):
        raise DataError("iterative_svd needs at least one known entry, got none")
    generator = np.random.default_rng(rng)
    seen = observations._resolve("mean")
    rows, cols = seen.rows, seen.cols
    count = seen.col_counts
    middle = np.bincount(cols, seen.values, minlength=n) / np.maximum(count, 1)
    middle[count == 0] = seen.values.mean()

    left, right = np.ones((m, 1)), middle[:, None]  # the filled matrix is R + left right'
    basis = np.linalg.qr(np.hstack([right, generator.standard_normal((n, min(rank + 3, n) - 1))]))[
        0
    ]
    R = csr_array((np.zeros(len(seen)), (rows, cols)), shape=(m, n))
    order = np.lexsort((cols, rows))
    i, j, y = rows[order], cols[order], seen.values[order]
    change, done = np.inf, 0
    while done < sweeps:
        done += 1
        R.data = y - np.einsum("tk,tk->t", left[i], right[j])
        for _ in range(2):
            Q = np.linalg.qr(R @ basis + left @ (right.T @ basis))[0]
            basis = np.linalg.qr(R.T @ Q + right @ (left.T @ Q))[0]
        P, s, W = np.linalg.svd(R @ basis + left @ (right.T @ basis), full_matrices=False)
        new_left, new_right = P[:, :rank] * s[:rank], (basis @ W.T)[:, :rank]
        change = _change(left, right, new_left, new_right)
        left, right = new_left, new_right
        if change <= tol:
            break
    root = np.sqrt(np.maximum((left**2).sum(axis=0), 1e-300)) ** 0.5
    return LowRank(
        left / root, right * root, row_counts=seen.row_counts, col_counts=seen.col_counts,
        row_labels=seen.row_labels, col_labels=seen.col_labels,
        report={"method": "iterative-svd", "rank": rank, "sweeps": done, "converged": bool(change <= tol)},
    )  # fmt: skip


def _change(A: Array, B: Array, C: Array, D: Array) -> float:
    """Return the relative Frobenius distance of A B' and C D', from small products alone."""
    first = float(np.sum((A.T @ A) * (B.T @ B)))
    second = float(np.sum((C.T @ C) * (D.T @ D)))
    inner = float(np.sum((A.T @ C) * (B.T @ D)))
    return float(np.sqrt(max(first + second - 2.0 * inner, 0.0) / max(first, 1e-300)))
