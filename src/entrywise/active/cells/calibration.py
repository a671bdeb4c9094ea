"""From what was bought to an answer with intervals: the fit, its calibration on the blind reserve, and row means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.active.cells.purchase import Purchase
from entrywise.exceptions import ParameterError
from entrywise.linalg.gain import Gains
from entrywise.passive.low_rank import low_rank
from entrywise.results import Calibration, Certificate, LowRank, Posterior
from entrywise.types import Array, Indices

FEWEST = 100  # effective reserve below which no interval is promised
FOLDS = 5  # of the reserve: each is predicted by a fit to all the rest
SWEEPS = 40  # of a fit at most: a step begins from nothing, which costs little more than going on


def calibrated(
    state: Purchase, fit: LowRank, rank: int | None, rounds: int, rule: str, goal: str, reason: str
) -> LowRank:
    """Return the fit with conformal scores from the blind reserve, and a certificate that says what holds.

    The reserve was hidden from the rule only so that its cells are a fair sample of what was not bought. Its
    answers serve the last fit: each fold of it is scored by a fit to everything else, and what is returned is
    fitted to everything (cross-conformal; Barber et al. 2021 call the bound's own form CV+).
    """
    bought = int(np.sum(~np.isin(state.rows * state.shape[1] + state.cols, state.known)))
    scores, effective = np.zeros(0), 0.0
    if len(state.hidden) and fit.has_variance:
        effective = effective_reserve(state)
        if effective >= FEWEST:
            scores = reserve_scores(state, rank, rounds)
        fit = fitted(state.with_reserve(np.ones(len(state.hidden), bool)), rank, rounds)
    report: dict[str, Any] = {
        **fit.report,
        "rule": rule,
        "goal": goal,
        "rounds": rounds,
        "bought": bought + len(state.hidden),
        "known": len(state.known),
        "hidden": len(state.hidden),
        "reason": reason,
    }
    calibration: Calibration | None = None
    assumes: tuple[str, ...] = ("the low-rank model holds", "the rule's choices do not matter")
    checked: tuple[str, ...] = ()
    if effective:
        report["effective_reserve"] = effective
    if len(scores):
        calibration = Calibration(scores)
        assumes = ("cells asked about are drawn at random from those not bought",)
        checked = (
            "the reserve was drawn first and hidden from the rule; each fifth of it was predicted from the rest",
        )
    elif effective:
        report["intervals"] = (
            f"Gaussian: the reserve counts as {effective:.0f} cells, fewer than {FEWEST}; enlarge it"
        )
    else:
        report["intervals"] = "Gaussian: without a blind reserve none are calibrated"
    promise = Certificate("share of 90 % intervals that cover", 0.9, assumes, checked)
    return replace(fit, calibration=calibration, certificates=(promise,), report=report)


def effective_reserve(state: Purchase) -> float:
    """Return how many equally weighted cells the reserve is worth: (sum w)^2 / sum w^2, w = 1 / chance."""
    w = 1.0 / state.hidden_chance
    return float(w.sum() ** 2 / (w**2).sum())


def reserve_scores(state: Purchase, rank: int | None, seed: int) -> Array:
    """Return sorted scores ``|value - fit| / deviation`` of the reserve, each fold under a fit to all the rest.

    With weights w = 1 / chance the scores are resampled to ``(sum w)^2 / sum w^2`` equally weighted quantiles.
    """
    i, j = np.divmod(state.hidden, state.shape[1])
    fold = (
        np.arange(len(state.hidden)) % FOLDS
    )  # in order of rows: a row's cells go to different folds
    scores = np.zeros(len(state.hidden))
    for k in range(FOLDS):
        out = fold == k
        fit = fitted(state.with_reserve(~out), rank, seed)
        apart = np.abs(state.hidden_values[out] - fit.entries(i[out], j[out]))
        scores[out] = apart / fit.deviation(i[out], j[out])
    w = 1.0 / state.hidden_chance
    order = np.argsort(scores)
    scores, w = scores[order], w[order]
    if np.all(w == w[0]):
        return scores
    count = max(1, int(effective_reserve(state)))
    levels = (np.arange(count) + 0.5) / count
    at = np.searchsorted(np.cumsum(w) / w.sum(), levels)
    return scores[np.minimum(at, len(scores) - 1)]


def row_means(fit: LowRank, rows: Indices, cols: Indices, values: Array) -> tuple[Array, Array]:
    """Return the mean of every row of the matrix and its posterior variance, both of shape (m,).

    Cells bought count as they are; the others by the fit, with their shared and their own uncertainty, see
    :meth:`~entrywise.results.Posterior.sum_variance`.
    """
    (m, n), posterior = fit.shape, _posterior(fit)
    b = fit.row_offset if fit.row_offset is not None else np.zeros(m)
    c = fit.col_offset if fit.col_offset is not None else np.zeros(n)
    bought = posterior.row_sums(fit.left, fit.right, rows, cols)
    rest = posterior.other_sums(fit.left, fit.right, bought)
    total = np.einsum("ia,ia->i", fit.left, rest.design[:, :-1]) + rest.counts * (b + fit.offset)
    total += c.sum() - np.bincount(rows, c[cols], m) + np.bincount(rows, values, m)
    return total / n, posterior.sum_variance(rest) / n**2


def sum_variances(fit: LowRank, rows: Indices, cols: Indices) -> Array:
    """Return the variance of the sum of each row's listed cells under the fit, shape (m,)."""
    posterior = _posterior(fit)
    return posterior.sum_variance(posterior.row_sums(fit.left, fit.right, rows, cols))


def _posterior(fit: LowRank) -> Posterior:
    if fit.posterior is None or fit.posterior.is_point:
        raise ParameterError("row means need a posterior with covariances; fit with low_rank")
    return fit.posterior


def expected_errors(state: Purchase, fit: LowRank, money: float) -> tuple[float, float, int]:
    """Return the expected RMSE of cells not bought now, after spending `money` by gain, and the cells that buys."""
    gains, noise = gains_of(state, fit), _own_variance(fit)
    now = _expected_error(state, gains, noise)
    i, j = gains.pick(state.is_open, state.price, money, state.affordable(money))
    bought = np.unique(np.r_[state.taken, i * state.shape[1] + j])
    then = _expected_error(replace(state, taken=bought), gains, noise)
    return now, then, len(i)


def expected_error(state: Purchase, fit: LowRank, goal: str) -> float:
    """Return the error that is expected of what is wanted: the RMSE of cells not bought, or of the row means."""
    if goal == "all":
        return _expected_error(state, gains_of(state, fit), _own_variance(fit))
    _, variance = row_means(fit, state.rows, state.cols, state.values)
    return float(np.sqrt(variance.mean()))


def _own_variance(fit: LowRank) -> float:
    """Return the variance of an entry about the factors; noise stands for it where they cannot be told apart."""
    return fit.lack_variance if fit.lack_variance > 0 else fit.noise_variance


def gains_of(state: Purchase, fit: LowRank, by_sum: bool = False) -> Gains:
    """Return the gains of a fit; what is out counts as bought."""
    i, j = np.divmod(state.out, state.shape[1])
    gains = Gains.of(fit, np.r_[state.rows, i], np.r_[state.cols, j], by_sum=by_sum)
    gains.take(i, j)
    return gains


def _expected_error(state: Purchase, gains: Gains, noise: float) -> float:
    """Return the root mean square of what is expected of an open cell's error, `noise` included."""
    total, count = 0.0, 0
    for rows, _, variance in gains.blocks():
        still = state.is_open(rows)
        total += float(variance[still].sum())
        count += int(still.sum())
    return float(np.sqrt(total / max(count, 1) + noise))


def fitted(state: Purchase, rank: int | None, seed: int) -> LowRank:
    """Fit what may be fitted."""
    m, n = state.shape
    if not len(state.values):
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)))
    k = None if rank is None else min(rank, m, n)
    return low_rank(state.observations, k, rng=seed, max_sweeps=SWEEPS)
