"""From what was bought to an answer with intervals: the fit, its calibration on the blind reserve, and row means."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.active.cells.purchase import Purchase
from entrywise.active.cells.reserve import RESERVED
from entrywise.exceptions import ParameterError
from entrywise.linalg.gain import Gains
from entrywise.linalg.greedy import pick
from entrywise.results import Calibration, Certificate, LowRank, Posterior
from entrywise.results.calibration import normal_width
from entrywise.results.levels import logistic_mean, logistic_slope, set_scores
from entrywise.results.posterior import design, packed, squares
from entrywise.results.units import APART, apart
from entrywise.types import Array, Indices

PROMISED = 0.9  # level of the intervals that a certificate speaks of
FEWEST = 100  # effective reserve below which no interval is promised
BLOCK = 1 << 20  # cells looked at at once
FOLDS = 5  # of the reserve: each is predicted by a fit to all the rest
SPARE = 1.2  # times that: chance draws fewer at times, and the rule takes some over
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
    if (words := units_advice(state, fit)) is not None:
        report["units"] = words
    calibration: Calibration | None = None
    promise, share = "share of 90 % intervals that cover", PROMISED
    assumes: tuple[str, ...] = ("the low-rank model holds", "the rule's choices do not matter")
    checked: tuple[str, ...] = ()
    if not effective:
        report["intervals"] = "Gaussian: without a blind reserve none are calibrated"
        promise += ", which nothing has tested"
    else:
        expected = PROMISED if fit.is_binary else normal_width(PROMISED)
        share = float(np.mean(scores <= expected))
        report["effective_reserve"] = effective
        report["reserve_covered"] = share
        if effective < FEWEST:
            promise = "share of the reserve that 90 % intervals covered"
            checked = (f"on a reserve worth {effective:.0f} cells, hidden from the rule",)
            report["intervals"] = (
                f"Gaussian: the reserve counts as {effective:.0f} cells, fewer than {FEWEST}; enlarge it"
            )
        else:
            if fit.is_binary and fit.answers is not None:
                fit = replace(fit, answers=replace(fit.answers, scores=np.sort(scores)))
            else:
                calibration = Calibration(scores)
            checked = (
                "the reserve was drawn first and hidden from the rule; each fifth of it was predicted from the rest",
                f"before it set their width, intervals covered {share:.2f} of it",
            )
            share = PROMISED
            assumes = ("cells asked about are drawn at random from those not bought",)
    told = Certificate(promise, share, assumes, checked, vacuous=not checked)
    return replace(fit, calibration=calibration, certificates=(told,), report=report)


def units_advice(state: Purchase, fit: LowRank) -> str | None:
    """Return what lines are measured in, where that matters; None where all cells are in one unit."""
    if fit.units is not None:
        return fit.units.axis
    if fit.is_binary or fit.bounds is not None or not len(state.values):
        return None
    by_rows, times = max(
        ((by_rows, apart(state.observations, by_rows)) for by_rows in (False, True)),
        key=lambda found: found[1],
    )
    if times <= APART:
        return None
    lines = "rows" if by_rows else "columns"
    return f"one, though {lines} spread {times:.0f} times apart: if each has its own, units={lines!r} weighs them alike"


def effective_reserve(state: Purchase) -> float:
    """Return how many equally weighted cells the reserve is worth: (sum w)^2 / sum w^2, w = 1 / chance."""
    return _worth(state.hidden_chance)


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
        scores[out] = _scores(fit, i[out], j[out], state.hidden_values[out])
    w = 1.0 / state.hidden_chance
    order = np.argsort(scores)
    scores, w = scores[order], w[order]
    if np.all(w == w[0]):
        return scores
    count = max(1, int(effective_reserve(state)))
    levels = (np.arange(count) + 0.5) / count
    at = np.searchsorted(np.cumsum(w) / w.sum(), levels)
    return scores[np.minimum(at, len(scores) - 1)]


def _worth(chance: Array) -> float:
    w = 1.0 / chance
    return float(w.sum() ** 2 / (w**2).sum())


def reserve_advice(chance: Array, share: float, budget: float, cells: int) -> str | None:
    """Return why a reserve drawn with these chances will not calibrate intervals, and what would; None where it will.

    What a reserve is worth grows as its money does, until its cells are drawn with the largest chance. `cells` is how
    many could be in it.
    """
    worth = _worth(chance) if len(chance) else 0.0
    if worth >= FEWEST:
        return None
    words = f"the reserve counts for {worth:.0f} cells, and its intervals need {FEWEST}: "
    largest = RESERVED * cells
    if largest < SPARE * FEWEST:
        return f"{words}{cells} cells are too few for one, leave it out (reserve=0)"
    share = max(share, 1e-9)
    needed = SPARE * share * FEWEST / max(worth, 1.0)
    if needed < 0.5:  # beyond that little is left for the rule
        enough = math.ceil(100 * needed) / 100
        return f"{words}a share of {enough:g} would do (reserve={enough:g})"
    money = budget * needed / share
    return f"{words}at this share a budget of {money:.3g} would do, or leave it out (reserve=0)"


def _scores(fit: LowRank, i: Indices, j: Indices, values: Array) -> Array:
    """Return how far answers are off in standard deviations; of yes/no: how likely what they are not was, if likelier."""
    if fit.answers is None or not fit.is_binary:
        return np.asarray(np.abs(values - fit.entries(i, j)) / fit.deviation(i, j))
    yes = fit.probability(i, j)
    came = (values == fit.answers.values[1]).astype(np.int64)
    return set_scores(np.stack([1.0 - yes, yes], axis=-1), came)


def row_means(fit: LowRank, rows: Indices, cols: Indices, values: Array) -> tuple[Array, Array]:
    """Return the mean of every row of the matrix and its posterior variance, both of shape (m,).

    Cells bought count as they are; the others by the fit, with their shared and their own uncertainty, see
    :meth:`~entrywise.results.Posterior.sum_variance`.
    """
    (m, n), posterior = fit.shape, _posterior(fit)
    if fit.units is not None:
        raise ParameterError(
            f"rows have a mean where all cells are in one unit, here {fit.units.axis} have their own"
        )
    if fit.is_binary:
        return _probability_means(fit, posterior, rows, cols, values)
    b = fit.row_offset if fit.row_offset is not None else np.zeros(m)
    c = fit.col_offset if fit.col_offset is not None else np.zeros(n)
    bought = posterior.row_sums(fit.left, fit.right, rows, cols)
    rest = posterior.other_sums(fit.left, fit.right, bought)
    total = np.einsum("ia,ia->i", fit.left, rest.design[:, :-1]) + rest.counts * (b + fit.offset)
    total += c.sum() - np.bincount(rows, c[cols], m) + np.bincount(rows, values, m)
    return total / n, posterior.sum_variance(rest) / n**2


def _probability_means(
    fit: LowRank, posterior: Posterior, rows: Indices, cols: Indices, values: Array
) -> tuple[Array, Array]:
    r"""Return :func:`row_means` of yes/no answers.

    An answer moves with its logit by the mean slope w, and its variance about its probability is w as well: with
    :math:`s_i = \sum_j w_{ij} \tilde v_j` the variance of the sum of open cells is
    :math:`s_i^\top C^u_i s_i + \sum_j (w_{ij}^2\, \tilde u_i^\top C^v_j \tilde u_i + w_{ij})`.
    """
    m, n = fit.shape
    low, high = fit.answers.values if fit.answers is not None else (0.0, 1.0)
    U, V = design(fit.left), design(fit.right)
    total, variance = np.bincount(rows, values, m).astype(np.float64), np.zeros(m)
    is_open = np.ones((m, n), bool)
    is_open[rows, cols] = False
    every = np.arange(n)
    for start in range(0, m, step := max(1, BLOCK // n)):
        part = np.arange(start, min(start + step, m))
        mean = fit.latent(part[:, None], every)
        spread = posterior.entry_variance(
            fit.left, fit.right, *np.broadcast_arrays(part[:, None], every)
        )
        free = is_open[part]
        chance = np.where(free, logistic_mean(mean, spread), 0.0)
        w = np.where(free, logistic_slope(mean, spread), 0.0)
        s = w @ V
        by_column = squares(U[part]) @ packed(posterior.cols.cov).T
        own = np.einsum("ia,iab,ib->i", s, posterior.rows.cov[part], s)
        variance[part] = own + (w**2 * by_column + w).sum(axis=1)
        total[part] += low * free.sum(axis=1) + (high - low) * chance.sum(axis=1)
    return total / n, (high - low) ** 2 * variance / n**2


def _posterior(fit: LowRank) -> Posterior:
    if fit.posterior is None or fit.posterior.is_point:
        raise ParameterError("row means need a posterior with covariances; fit with low_rank")
    return fit.posterior


def expected_errors(state: Purchase, fit: LowRank, money: float) -> tuple[float, float, int]:
    """Return the expected RMSE of cells not bought now, after spending `money` by gain, and the cells that buys."""
    gains, noise = gains_of(state, fit), _own_variance(fit)
    now = _expected_error(state, gains, noise)
    i, j = pick(gains, state.open_bits(), state.line_price, money, state.affordable(money))
    then = _expected_error(state.with_taken(i * state.shape[1] + j), gains, noise)
    return now, then, len(i)


def expected_error(state: Purchase, fit: LowRank, gains: Gains) -> float:
    """Return the RMSE that is expected of cells not bought."""
    return _expected_error(state, gains, _own_variance(fit))


def expected_mean_error(state: Purchase, fit: LowRank) -> float:
    """Return the RMSE that is expected of the row means."""
    _, variance = row_means(fit, state.rows, state.cols, state.values)
    return float(np.sqrt(variance.mean()))


def _own_variance(fit: LowRank) -> float:
    """Return the variance of an entry about the factors; noise stands for it where they cannot be told apart."""
    return fit.lack_variance if fit.lack_variance > 0 else fit.noise_variance


def gains_of(state: Purchase, fit: LowRank, by_sum: bool = False) -> Gains:
    """Return the gains of a fit; what is out counts as bought."""
    i, j = np.divmod(state.out, state.shape[1])
    rows, cols = state.rows, state.cols
    if len(i):
        rows, cols = np.concatenate([rows, i]), np.concatenate([cols, j])
    gains = Gains.of(fit, rows, cols, by_sum=by_sum)
    gains.take(i, j)
    return gains


def _expected_error(state: Purchase, gains: Gains, noise: float) -> float:
    """Return the root mean square of what is expected of an open cell's error, `noise` included."""
    if gains.logits is None and state.all_open:
        total = gains.variance_without(state.taken)
        count = state.shape[0] * state.shape[1] - len(state.taken)
    else:
        total, count = gains.open_variance(state.is_open)
    return float(np.sqrt(total / max(count, 1) + noise))


def fitted(state: Purchase, rank: int | None, seed: int) -> LowRank:
    """Fit what may be fitted."""
    m, n = state.shape
    if not len(state.values):
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)))
    k = None if rank is None else min(rank, m, n)
    return state.model.fit(state.observations, k, rng=seed, max_sweeps=SWEEPS)
