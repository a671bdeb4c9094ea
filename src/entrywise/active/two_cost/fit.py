"""Fits what two instruments saw: fused into one value an entry, completed by empirical Bayes, calibrated.

The fit is :func:`entrywise.passive.low_rank`; what is added here is where it starts (the span of the columns), what is
done about poor optima (other starts), and how far its intervals are to be widened (the joint posterior).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from entrywise.active.two_cost.constants import (
    AGAIN,
    CERTAIN,
    CLEAR_GAIN,
    FEW_COLUMNS,
    FEW_ENTRIES,
    FIRST_BIAS,
    FIRST_LACK,
    FIT_SWEEPS,
    JOINT_LIMIT,
    MOST_COMPONENTS,
    MOST_WIDENING,
    NEGLIGIBLE,
    NO_CARE,
    SPARE_COMPONENTS,
    SUSPECT,
    THINNED,
    TINY,
    TOL_FEW,
    TOL_MANY,
    WHOLE,
)
from entrywise.active.two_cost.holdings import Holdings
from entrywise.active.two_cost.ranks import estimate_rank
from entrywise.active.two_cost.risk import Problem
from entrywise.linalg.jointcov import joint_cost, joint_variance
from entrywise.linalg.ridge import ridge_lines
from entrywise.linalg.units import near, out_of_unit
from entrywise.observations import Observations
from entrywise.passive.iterative_svd import soft_filled
from entrywise.passive.low_rank import low_rank
from entrywise.results import Corrected, Lines, LowRank, Posterior
from entrywise.types import Array


def fit(held: Holdings, problem: Problem, rank: int | None = None) -> LowRank:
    """Return the empirical-Bayes completion of what is held, started from the span of the columns.

    `rank` defaults to two more than the columns show; a component that is not there shrinks to nothing.
    """
    m, n = problem.m, problem.n
    seen = held.fused(problem.column_variance, problem.entry_variance)
    if not len(seen):
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)))
    if float(np.ptp(seen.values)) <= 0.0:
        return low_rank(seen, 0)
    C = held.table() if held.columns else np.zeros((m, 0))
    most = min(MOST_COMPONENTS if rank is None else rank, min(m, n) - 1)
    if most <= 0:
        return calibrated(low_rank(seen, 0), seen)
    wanted = _components(held, problem, C, len(seen)) if rank is None else rank
    k = max(1, min(wanted, most))
    found = _fitted(C, seen, k, _start(C, seen, k, problem))
    if m + n <= len(seen) <= FEW_ENTRIES:
        found = _started_again(found, C, seen, problem, most)
    found = calibrated(found, seen)
    if found.lack_variance <= NEGLIGIBLE * _least_variance(seen):
        return found
    return Corrected.of(found, seen)


def _components(held: Holdings, problem: Problem, C: Array, seen: int) -> int:
    """Return how many components a fit begins with.

    Noisy columns hide weak directions: there are as many as the cells could carry; those too many shrink away.
    """
    m, d = C.shape
    shown = 0
    if d:
        directions = estimate_rank(C, math.sqrt(problem.column_variance))[0]
        shown = directions + SPARE_COMPONENTS
    carry = seen if d < FEW_COLUMNS else len(held.seen("entry")[2]) / 2
    return max(shown, 1 + int(carry / (m + problem.n)))


def _least_variance(seen: Observations) -> float:
    return float(seen.noise_array().min()) ** 2


def _started_again(
    found: LowRank, C: Array, seen: Observations, problem: Problem, most: int
) -> LowRank:
    """Return the best of several fits, tried as long as this one leaves more than noise unexplained.

    Another is better only if it explains more, and with less noise: where entries hardly suffice, evidence alone prefers
    fits that explain nothing.
    """
    rank, least = found.rank, _least_variance(seen)
    for more, thin in AGAIN:
        if found.lack_variance <= SUSPECT * least:
            break
        k = found.rank + 1 if more is None else rank + more
        if not 1 <= k <= most or (thin and C.shape[1] > k):
            continue
        start = found if more is None else _start(C, seen, k, problem, thin)
        other = _fitted(C, seen, k, start)
        gain = other.report["evidence"] - found.report["evidence"]
        if gain > CLEAR_GAIN and other.lack_variance < found.lack_variance:
            found = other
    return found


def _fitted(C: Array, seen: Observations, rank: int, start: LowRank) -> LowRank:
    # few columns start the noise far off, and where it turns back it hardly changes: that is no convergence
    tol = TOL_FEW if C.shape[1] < FEW_COLUMNS else TOL_MANY
    return low_rank(seen, rank, start=start, exact=True, max_sweeps=FIT_SWEEPS, tol=tol)


# where the fit starts


def _start(C: Array, seen: Observations, k: int, problem: Problem, thin: int = 0) -> LowRank:
    """Return where to start the fit: left factors from the columns C (m, d), right ones by regression on them.

    Fewer columns than directions are filled in instead; with `thin` as seed, without a fifth of the entries.
    """
    offset = float(seen.values.mean())
    Z = seen.to_dense() - offset
    top = float(np.mean((seen.values - offset) ** 2))
    U, uncertain = _left_factors(C, Z, offset, k, problem, thin)
    V = _right_factors(U, Z, seen, uncertain, top)
    U, V = _balanced(U, V)
    # noise that starts high and falls passes by poor optima that the fit would stay in
    posterior = Posterior(_lines(U, top), _lines(V, top), lack_variance=FIRST_LACK * top)
    return LowRank(U, V, offset=offset, posterior=posterior)


def _left_factors(
    C: Array, Z: Array, offset: float, k: int, problem: Problem, thin: int
) -> tuple[Array, float]:
    """Return left factors (m, k), and the variance that their error adds to an entry."""
    m, d = C.shape
    if d > k:
        U = np.linalg.svd(C - offset, full_matrices=False)[0][:, :k] * math.sqrt(m)
        return U, k * problem.column_variance / max(d - k, 1)
    if thin:
        gone = np.random.default_rng(thin).random(Z.shape) < THINNED
        Z = np.where(gone, np.nan, Z)
    whole = soft_filled(Z, k)
    return np.linalg.svd(whole, full_matrices=False)[0][:, :k] * math.sqrt(m), 0.0


def _right_factors(U: Array, Z: Array, seen: Observations, uncertain: float, top: float) -> Array:
    """Return the coefficients of every column on U (n, k), those of thin columns drawn towards the whole ones."""
    k = U.shape[1]
    known = ~np.isnan(Z)
    variance = np.full(Z.shape, np.inf)
    variance[seen.rows, seen.cols] = seen.noise_array() ** 2 + uncertain
    variance = np.maximum(variance, 1e-8 * top)  # exact entries, to round-off
    W = np.where(known, 1.0 / variance, 0.0)
    Y = np.where(known, Z, 0.0)
    targets = (W * Y).T @ U
    V = ridge_lines(U, W.T, targets, np.zeros(k), np.eye(k) * top)
    whole = known.mean(axis=0) > WHOLE
    if whole.sum() > k + 1:
        prior = np.atleast_2d(np.cov(V[whole].T)) + 1e-6 * top * np.eye(k)
        V = ridge_lines(U, W.T, targets, V[whole].mean(axis=0), prior)
    return V


def _balanced(U: Array, V: Array) -> tuple[Array, Array]:
    """Return factors of the same product whose entries are about equally large."""
    left = float(np.linalg.norm(U)) / math.sqrt(len(U))
    right = max(float(np.linalg.norm(V) / math.sqrt(len(V))), TINY)
    size = math.sqrt(right / left)
    return U * size, V / size


def _lines(F: Array, top: float) -> Lines:
    """Return lines (u, 0) that spread as F does and are almost sure, with biases that may grow."""
    k = F.shape[1]
    cov = np.zeros((k + 1, k + 1))
    cov[:k, :k] = np.atleast_2d(np.cov(F.T)) + 1e-6 * float(np.mean(F**2)) * np.eye(k)
    cov[k, k] = FIRST_BIAS * top
    return Lines(np.r_[F.mean(axis=0), 0.0], cov, np.tile(CERTAIN * cov, (len(F), 1, 1)))


# how far to trust it


def calibrated(found: LowRank, seen: Observations) -> LowRank:
    """Return the fit with its column covariances widened to the joint posterior's variance, column by column.

    Unchanged where that takes too long, or where answers of very different sizes leave its curvature singular.
    """
    m, n = found.shape
    posterior = found.posterior
    if found.rank == 0 or posterior is None or not found.has_variance:
        return found
    if joint_cost(m, n, found.rank + 1) > JOINT_LIMIT:
        return found
    try:
        joint = _joint(found, posterior, seen)
    except np.linalg.LinAlgError:
        return found
    sure = replace(posterior.cols, cov=np.zeros_like(posterior.cols.cov))
    rows_only = replace(posterior, cols=sure).all_variances(found.left, found.right)
    both = posterior.all_variances(found.left, found.right)
    counted = np.ones((m, n), dtype=bool)  # entries not seen; all of a column that was seen whole
    counted[seen.rows, seen.cols] = False
    counted[:, ~counted.any(axis=0)] = True
    want, have = (np.where(counted, X - rows_only, 0.0).sum(axis=0) for X in (joint, both))
    factor = np.maximum(want / np.maximum(have, TINY), 1.0)
    wider = posterior.cols.cov * np.minimum(factor, MOST_WIDENING)[:, None, None]
    return replace(found, posterior=replace(posterior, cols=replace(posterior.cols, cov=wider)))


def _joint(found: LowRank, posterior: Posterior, seen: Observations) -> Array:
    """Return the variance of every entry under the joint posterior of rows and columns.

    Biases have the unit of the answers and components its root, and both stand in one system: far from one, that is
    solved in another unit.
    """
    unit = near(float(np.abs(seen.values).max(initial=0.0)), NO_CARE)
    W = np.zeros(found.shape)
    W[seen.rows, seen.cols] = unit**2 / (seen.noise_array() ** 2 + found.lack_variance)
    U, V = found.left, found.right
    if unit != 1.0:
        posterior = posterior.scaled(1.0 / unit)
        U, V = U / math.sqrt(unit), V / math.sqrt(unit)
    variance = joint_variance(U, V, W, posterior.rows.prior_cov, posterior.cols.prior_cov)
    return out_of_unit(variance, unit**2)
