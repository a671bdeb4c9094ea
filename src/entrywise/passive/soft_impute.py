"""softImpute-ALS: the nuclear-norm penalised completion, in factors and along a path of penalties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.passive._choose import best_penalty
from entrywise.passive.low_rank import low_rank
from entrywise.results import LowRank
from entrywise.types import Array, Seed

Center = Literal["both", "columns", "none"]


def soft_impute(
    observations: Observations,
    penalty: float | None = None,
    *,
    max_rank: int | None = None,
    center: Center = "both",
    rng: Seed = 0,
    steps: int = 12,
    sweeps: int = 300,
    tol: float = 1e-5,
) -> LowRank:
    r"""Return the matrix that minimises the squared error plus a nuclear norm.

    .. math:: \tfrac12 \sum_{(i,j)} (y_{ij} - M_{ij})^2 + \lambda \|M\|_*

    by alternating ridge regressions on the completed matrix, kept as sparse residuals plus low rank.

    Parameters
    ----------
    observations : Observations
        An entry listed k times counts k times in the sum. Noise is not used.
    penalty : float, optional
        :math:`\lambda` above 0; None: the best of a path of `steps` on a held-out tenth, from the smallest
        that makes M zero down to a hundredth of it, each fit started from the one before.
    max_rank : int, optional
        Most components kept; min(m, n, 50) by default. The minimiser is exact when its rank is below this.
    center : {"both", "columns", "none"}
        What is subtracted first: row and column biases, column means, or nothing (the paper's problem).
    sweeps, tol : int, float
        Stop after so many sweeps, or when M changes by less than this share in one.

    Returns
    -------
    LowRank
        ``report["objective"]`` is the minimum reached on the centred values.

    References
    ----------
    .. [HMLZ15] Hastie, Mazumder, Lee, Zadeh, *Matrix completion and low-rank SVD via fast alternating least
       squares*, JMLR 2015, Algorithm 3.1.

    Examples
    --------
    >>> A = np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0))
    >>> A[2, 3] = np.nan
    >>> found = soft_impute(Observations.from_dense(A), 0.1, center="none")
    >>> found.rank, round(found.entry(2, 3), 1)
    (1, 12.0)
    """
    m, n = observations.shape
    most = min(m, n, 50) if max_rank is None else max_rank
    if not 1 <= most <= min(m, n):
        raise ParameterError(f"max_rank of soft_impute must be in 1..{min(m, n)}, got {most}")
    if penalty is not None and not penalty > 0:
        raise ParameterError(f"penalty of soft_impute must be above 0, got {penalty}")
    if center not in ("both", "columns", "none"):
        raise ParameterError(f"center must be 'both', 'columns' or 'none', got {center!r}")
    if steps < 1 or sweeps < 1 or not tol >= 0:
        raise ParameterError(
            f"steps and sweeps must be 1 or more, tol 0 or more, got {steps}, {sweeps} and {tol}"
        )
    if not len(observations):
        raise DataError("soft_impute needs at least one known entry, got none")
    generator = np.random.default_rng(rng)
    extra: dict[str, Any] = {}
    centres: dict[int, LowRank] = {}

    def centre(seen: Observations) -> LowRank:
        if id(seen) not in centres:
            centres[id(seen)] = _center(seen, center)
        return centres[id(seen)]

    top = _norm(centre(observations), observations, generator)
    if penalty is None and top <= 1e-12 * max(float(np.abs(observations.values).max()), 1e-300):
        penalty = 1.0  # nothing is left after centring

    def fit(seen: Observations, lam: float, start: LowRank | None) -> LowRank:
        return _fit(seen, lam, most, centre(seen), start, generator, 30, 1e-3)

    if penalty is None:
        path = (top * np.geomspace(0.9, 0.01, steps)).tolist()
        penalty, errors = best_penalty(observations, path, fit, generator)
        extra = {"penalties": path, "held_out_rmse": float(np.nanmin(errors))}
    start: LowRank | None = None
    if (
        penalty < 0.5 * top
    ):  # from zero down: the rank grows, which is much faster than letting it shrink
        for lam in np.geomspace(top / 2, penalty, max(2, round(2 * np.log2(top / penalty))))[:-1]:
            start = fit(observations, float(lam), start)
    found = _fit(observations, penalty, most, centre(observations), start, generator, sweeps, tol)
    return replace(found, report={**found.report, **extra})


def _center(seen: Observations, center: Center) -> LowRank:
    """Return the biases to subtract, as a matrix of rank 0."""
    m, n = seen.shape
    if center == "both":
        return low_rank(seen, 0)
    column = np.zeros(n)
    if center == "columns":
        count = np.maximum(seen.col_counts, 1)
        column = np.bincount(seen.cols, seen.values, minlength=n) / count
        column[seen.col_counts == 0] = seen.values.mean()
    return LowRank(np.zeros((m, 0)), np.zeros((n, 0)), np.zeros(m), column)


def _norm(biases: LowRank, seen: Observations, rng: np.random.Generator) -> float:
    """Return the largest singular value of the centred observations, zero where unknown."""
    from scipy.sparse import csr_array

    from entrywise.linalg.variational import top_triplets

    R = csr_array(
        (seen.values - biases.entries(seen.rows, seen.cols), (seen.rows, seen.cols)),
        shape=seen.shape,
    )
    return float(top_triplets(R, 1, rng)[1][0])


def _fit(
    seen: Observations, penalty: float, most: int, biases: LowRank, start: LowRank | None, rng: np.random.Generator,
    sweeps: int, tol: float,
) -> LowRank:  # fmt: skip
    from scipy.sparse import csr_array

    from entrywise.linalg._jit_als import residuals

    m, n = seen.shape
    target = seen.values - biases.entries(seen.rows, seen.cols)
    R = csr_array((target, (seen.rows, seen.cols)), shape=(m, n), copy=True)
    R.sum_duplicates()
    pointer, other = R.indptr.astype(np.int64), R.indices.astype(np.int32)
    weight = csr_array((np.ones(len(seen)), (seen.rows, seen.cols)), shape=(m, n))
    weight.sum_duplicates()
    often = weight.data
    mean = R.data / often
    heaviest = float(often.max())  # repeated entries are weights: majorise by the largest
    U = np.linalg.qr(rng.standard_normal((m, most)))[0]
    V = np.zeros((n, most))
    d = np.ones(most)
    if start is not None and start.rank:
        k = start.rank
        size = np.sqrt((start.left**2).sum(axis=0))
        U[:, :k] = start.left / np.maximum(size, 1e-300)
        U, T = np.linalg.qr(U)
        U = U * np.where(np.diag(T) < 0, -1.0, 1.0)  # the signs must go with V's
        V[:, :k] = start.right / np.maximum(np.sqrt((start.right**2).sum(axis=0)), 1e-300)
        d[:k] = np.maximum(size**2, 1e-12)
    lam = penalty / heaviest
    share = often / heaviest
    none, one = (np.zeros(m), np.zeros(n)), (np.ones(m), np.ones(n))

    def left_over() -> Array:
        """Return what U d V' leaves of the known entries."""
        found = np.empty(len(mean))
        residuals(
            pointer,
            other,
            mean,
            np.ascontiguousarray(U * d),
            np.ascontiguousarray(V),
            *none,
            *one,
            found,
        )
        return found

    done = 0
    while done < sweeps:
        done += 1
        old = (U, d, V)
        for flip in (False, True):
            # the other factor: ridge on the completed matrix, residuals (sparse) plus U d V'
            R.data = share * left_over()
            if not flip:
                V, d, W = np.linalg.svd(((R.T @ U) * d + V * d**2) / (d + lam), full_matrices=False)
                U = U @ W.T
            else:
                U, d, W = np.linalg.svd(((R @ V) * d + U * d**2) / (d + lam), full_matrices=False)
                V = V @ W.T
        if _change(old, (U, d, V)) <= tol**2:
            break
    R.data = share * left_over()
    P, s, W = np.linalg.svd(R @ V + U * d, full_matrices=False)  # final shrinkage of X* V
    s = np.maximum(s - lam, 0.0)
    kept = int(np.sum(s > 1e-10 * max(float(s[0]) if len(s) else 0.0, 1e-300)))
    U, V, d = P[:, :kept], (V @ W.T)[:, :kept], s[:kept]
    sse = float(np.sum(often * left_over() ** 2))
    within = float(np.sum(target**2) - np.sum(often * mean**2))
    noise = max((sse + within) / len(seen), 1e-12 * float(np.mean(target**2)) + 1e-300)
    prior = np.diag(np.r_[np.full(kept, noise / penalty), _bias_variance(biases, noise)])
    root = np.sqrt(d)
    return LowRank(
        U * root, V * root, biases.row_offset, biases.col_offset, biases.offset,
        noise_variance=noise,
        row_prior_mean=np.zeros(kept + 1), row_prior_cov=prior,
        col_prior_mean=np.zeros(kept + 1), col_prior_cov=prior.copy(),
        row_counts=seen.row_counts, col_counts=seen.col_counts,
        row_labels=seen.row_labels, col_labels=seen.col_labels,
        report={
            "method": "soft-impute", "rank": kept, "penalty": penalty, "sweeps": done,
            "objective": 0.5 * (sse + within) + penalty * float(d.sum()),
        },
    )  # fmt: skip


def _bias_variance(biases: LowRank, noise: float) -> float:
    """Return how far a new row's bias may be from zero: not at all unless rows were centred."""
    if biases.row_prior_cov is None:
        return 1e-12 * noise
    return max(float(biases.row_prior_cov[0, 0]), 1e-12 * noise)


def _change(old: tuple[Array, Array, Array], new: tuple[Array, Array, Array]) -> float:
    """Return the squared relative change of U d V', from small products alone."""
    (U, d, V), (P, e, Q) = old, new
    a, b = float((d**2).sum()), float((e**2).sum())
    inner = float(np.sum(((U * d).T @ P) * (V.T @ Q) * e))
    return max(a + b - 2.0 * inner, 0.0) / max(a, 1e-300)
