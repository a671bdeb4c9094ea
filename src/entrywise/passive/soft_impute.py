"""softImpute-ALS: the nuclear-norm penalised completion, in factors and along a path of penalties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.units import near
from entrywise.observations import Observations
from entrywise.passive._choose import best_penalty, check_limits
from entrywise.passive.low_rank import low_rank
from entrywise.results import Lines, LowRank, Posterior
from entrywise.types import Array, Seed, generator

MOST = 50  # components kept unless told otherwise
PENALTIES = (0.9, 0.01)  # first and last tried, as shares of the smallest that makes M zero
ROUGH = (1e-3, 30)  # tol and max_sweeps of the fits along a path
SMALLEST = 1e-300

Center = Literal["both", "columns", "none"]


def soft_impute(
    observations: Observations,
    penalty: float | None = None,
    *,
    max_rank: int | None = None,
    center: Center = "both",
    rng: Seed = 0,
    steps: int = 12,
    tol: float = 1e-5,
    max_sweeps: int = 300,
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
    tol, max_sweeps : float, int
        Stop when M changes by less than this share in one sweep, or after so many.

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
    most = min(m, n, MOST) if max_rank is None else max_rank
    _check(observations, penalty, most, center, steps)
    check_limits(tol, max_sweeps)
    draws = generator(rng)
    extra: dict[str, Any] = {}
    centres: dict[int, LowRank] = {}

    def centre(seen: Observations) -> LowRank:
        if id(seen) not in centres:
            centres[id(seen)] = _center(seen, center)
        return centres[id(seen)]

    top = _norm(centre(observations), observations, draws)
    largest = max(float(np.abs(observations.values).max()), SMALLEST)
    if penalty is None and top <= 1e-12 * largest:
        penalty = 1.0  # nothing is left after centring

    def rough(seen: Observations, lam: float, start: LowRank | None) -> LowRank:
        return _fit(seen, lam, most, centre(seen), start, draws, *ROUGH)

    if penalty is None:
        path = (top * np.geomspace(*PENALTIES, steps)).tolist()
        penalty, errors = best_penalty(observations, path, rough, draws)
        extra = {"penalties": path, "held_out_rmse": float(np.nanmin(errors))}
    start: LowRank | None = None
    if penalty < 0.5 * top:
        # from zero down: the rank grows, which is much faster than letting it shrink
        halvings = max(2, round(2 * np.log2(top / penalty)))
        for lam in np.geomspace(top / 2, penalty, halvings)[:-1]:
            start = rough(observations, float(lam), start)
    found = _fit(observations, penalty, most, centre(observations), start, draws, tol, max_sweeps)
    return replace(found, report={**found.report, **extra})


def _check(
    seen: Observations, penalty: float | None, most: int, center: Center, steps: int
) -> None:
    smaller = min(seen.shape)
    if not 1 <= most <= smaller:
        raise ParameterError(f"max_rank of soft_impute must be in 1..{smaller}, got {most}")
    if penalty is not None and not penalty > 0:
        raise ParameterError(f"penalty of soft_impute must be above 0, got {penalty}")
    if center not in ("both", "columns", "none"):
        raise ParameterError(f"center must be 'both', 'columns' or 'none', got {center!r}")
    if steps < 1:
        raise ParameterError(f"steps of soft_impute must be 1 or more, got {steps}")
    if not len(seen):
        raise DataError("soft_impute needs at least one known entry, got none")


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


class _Residuals:
    """What factors leave of the known entries, each listed once, as a sparse matrix."""

    def __init__(self, seen: Observations, target: Array) -> None:
        from scipy.sparse import csr_array

        self.R = csr_array((target, (seen.rows, seen.cols)), shape=seen.shape, copy=True)
        self.R.sum_duplicates()
        listed = csr_array((np.ones(len(seen)), (seen.rows, seen.cols)), shape=seen.shape)
        listed.sum_duplicates()
        self.often = listed.data
        self.mean = self.R.data / self.often
        self.heaviest = float(self.often.max())
        self.share = self.often / self.heaviest
        self.pointer = self.R.indptr.astype(np.int64)
        self.other = self.R.indices.astype(np.int32)

    def of(self, U: Array, d: Array, V: Array) -> Array:
        """Return what U d V' leaves of the known entries."""
        from entrywise.linalg._jit_als import residuals

        m, n = self.R.shape
        found = np.empty(len(self.mean))
        residuals(
            self.pointer, self.other, self.mean, np.ascontiguousarray(U * d), np.ascontiguousarray(V),
            np.zeros(m), np.zeros(n), np.ones(m), np.ones(n), found,
        )  # fmt: skip
        return found

    def matrix(self, U: Array, d: Array, V: Array) -> Any:
        """Return the residuals as a sparse matrix; repeated entries are weights, majorised by the largest."""
        self.R.data = self.share * self.of(U, d, V)
        return self.R


def _fit(
    seen: Observations,
    penalty: float,
    most: int,
    biases: LowRank,
    start: LowRank | None,
    rng: np.random.Generator,
    tol: float,
    max_sweeps: int,
) -> LowRank:
    target = seen.values - biases.entries(seen.rows, seen.cols)
    known = _Residuals(seen, target)
    lam = penalty / known.heaviest
    U, d, V = _start(seen.shape, most, start, near(float(target.std())), rng)  # 1
    done = 0
    while done < max_sweeps:  # 4
        done += 1
        old = (U, d, V)
        # each factor in turn: ridge on the completed matrix, residuals (sparse) plus U d V'
        B = (known.matrix(U, d, V).T @ U) * d + V * d**2
        V, d, W = np.linalg.svd(B / (d + lam), full_matrices=False)  # 2
        U = U @ W.T
        A = (known.matrix(U, d, V) @ V) * d + U * d**2
        U, d, W = np.linalg.svd(A / (d + lam), full_matrices=False)  # 3
        V = V @ W.T
        if _change(old, (U, d, V)) <= tol**2:
            break
    P, s, W = np.linalg.svd(known.matrix(U, d, V) @ V + U * d, full_matrices=False)  # 5
    s = np.maximum(s - lam, 0.0)
    largest = float(s[0]) if len(s) else 0.0
    kept = int(np.sum(s > 1e-10 * max(largest, SMALLEST)))
    U, V, d = P[:, :kept], (V @ W.T)[:, :kept], s[:kept]
    sse = float(np.sum(known.often * known.of(U, d, V) ** 2))
    within = float(np.sum(target**2) - np.sum(known.often * known.mean**2))
    noise = max((sse + within) / len(seen), 1e-12 * float(np.mean(target**2)) + SMALLEST)
    # the penalty as a prior of the components, for lines that are folded in
    prior = np.diag(np.r_[np.full(kept, noise / penalty), _bias_variance(biases, noise)])
    lines = Lines.point(np.zeros(kept + 1), prior)
    root = np.sqrt(d)
    return LowRank.of_entries(
        seen,
        left=U * root,
        right=V * root,
        row_offset=biases.row_offset,
        col_offset=biases.col_offset,
        offset=biases.offset,
        posterior=Posterior(lines, lines, noise_variance=noise),
        report={
            "method": "soft-impute",
            "rank": kept,
            "penalty": penalty,
            "sweeps": done,
            "objective": 0.5 * (sse + within) + penalty * float(d.sum()),
        },
    )


def _start(
    shape: tuple[int, int], most: int, start: LowRank | None, size: float, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return U (m, most), d and V (n, most): random directions as long as `size`, the first ones those of `start`."""
    m, n = shape
    U = np.linalg.qr(rng.standard_normal((m, most)))[0]
    V = np.zeros((n, most))
    d = np.full(most, size)
    if start is None or not start.rank:
        return U, d, V
    k = start.rank
    left, right = (np.sqrt((F**2).sum(axis=0)) for F in (start.left, start.right))
    U[:, :k] = start.left / np.maximum(left, SMALLEST)
    U, T = np.linalg.qr(U)
    U = U * np.where(np.diag(T) < 0, -1.0, 1.0)  # the signs must go with V's
    V[:, :k] = start.right / np.maximum(right, SMALLEST)
    d[:k] = np.maximum(left**2, 1e-12 * size)
    return U, d, V


def _bias_variance(biases: LowRank, noise: float) -> float:
    """Return how far a new row's bias may be from zero: not at all unless rows were centred."""
    if biases.posterior is None:
        return 1e-12 * noise
    return max(float(biases.posterior.rows.prior_cov[0, 0]), 1e-12 * noise)


def _change(old: tuple[Array, Array, Array], new: tuple[Array, Array, Array]) -> float:
    """Return the squared relative change of U d V', from small products alone."""
    (U, d, V), (P, e, Q) = old, new
    a, b = float((d**2).sum()), float((e**2).sum())
    inner = float(np.sum(((U * d).T @ P) * (V.T @ Q) * e))
    return max(a + b - 2.0 * inner, 0.0) / max(a, SMALLEST)
