"""From what was bought to an answer with intervals: the fit, its calibration on the blind reserve, and row means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise import npz
from entrywise.active.cells.purchase import Purchase
from entrywise.exceptions import ParameterError
from entrywise.linalg.gain import Gains
from entrywise.passive.low_rank import low_rank
from entrywise.results import Calibration, Certificate, LowRank, Posterior
from entrywise.types import Array, Indices

FEWEST = 100  # effective reserve below which no interval is promised
FIRST_SWEEPS, NEXT_SWEEPS = (
    40,
    15,
)  # most sweeps of a fit from nothing, and of one from the fit before
FIT = "fit."  # begins the names of a fit's arrays in a checkpoint


def calibrated(
    state: Purchase, fit: LowRank, status: str, rounds: int, rule: str, goal: str
) -> LowRank:
    """Return the fit with conformal scores from the hidden reserve, and a certificate that says what holds."""
    report: dict[str, Any] = {
        **fit.report,
        "rule": rule,
        "goal": goal,
        "rounds": rounds,
        "bought": len(state.values) + len(state.hidden),
        "hidden": len(state.hidden),
    }
    calibration: Calibration | None = None
    assumes: tuple[str, ...] = ("the low-rank model holds", "the rule's choices do not matter")
    checked: tuple[str, ...] = ()
    if not len(state.hidden) or not fit.has_variance:
        report["intervals"] = "Gaussian: without a blind reserve none are calibrated"
    else:
        scores, effective = reserve_scores(state, fit)
        report["effective_reserve"] = effective
        if effective < FEWEST:
            report["intervals"] = (
                f"Gaussian: the reserve counts as {effective:.0f} cells, fewer than {FEWEST}; enlarge it"
            )
        else:
            calibration = Calibration(scores)
            assumes = ("cells asked about are drawn at random from those not bought",)
            checked = ("the reserve was drawn first and hidden from the fit and the rule",)
    promise = Certificate("share of 90 % intervals that cover", 0.9, assumes, checked)
    return replace(
        fit, calibration=calibration, certificates=(promise,), status=status, report=report
    )


def reserve_scores(state: Purchase, fit: LowRank) -> tuple[Array, float]:
    """Return sorted conformal scores of the reserve and how many equally weighted cells it is worth.

    With weights w = 1 / probability the scores are resampled to ``(sum w)^2 / sum w^2`` equally weighted quantiles.
    """
    i, j = np.divmod(state.hidden, state.shape[1])
    scores = np.abs(state.hidden_values - fit.entries(i, j)) / fit.deviation(i, j)
    w = 1.0 / state.hidden_chance
    effective = float(w.sum() ** 2 / (w**2).sum())
    order = np.argsort(scores)
    scores, w = scores[order], w[order]
    if np.all(w == w[0]):
        return scores, effective
    count = max(1, int(effective))
    levels = (np.arange(count) + 0.5) / count
    at = np.searchsorted(np.cumsum(w) / w.sum(), levels)
    return scores[np.minimum(at, len(scores) - 1)], effective


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
    gains = Gains.of(fit, state.rows, state.cols)
    noise = fit.lack_variance if fit.lack_variance > 0 else fit.noise_variance
    now = _expected_error(state, gains, noise)
    i, j = gains.pick(state.is_open, state.price, money, state.affordable(money))
    bought = np.unique(np.r_[state.taken, i * state.shape[1] + j])
    then = _expected_error(replace(state, taken=bought), gains, noise)
    return now, then, len(i)


def _expected_error(state: Purchase, gains: Gains, noise: float) -> float:
    """Return the root mean square of what is expected of an open cell's error, `noise` included."""
    total, count = 0.0, 0
    for rows, _, variance in gains.blocks():
        still = state.is_open(rows)
        total += float(variance[still].sum())
        count += int(still.sum())
    return float(np.sqrt(total / max(count, 1) + noise))


def refit(state: Purchase, before: LowRank | None, rank: int | None, seed: int) -> LowRank:
    """Fit what is bought and visible, starting from the components of the fit before that are alive.

    A component whose prior has shrunk to nothing on few entries would never come back; such ones are dropped and
    grown anew from the residuals.
    """
    m, n = state.shape
    if not len(state.values):
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)))
    k = None if rank is None else min(rank, m, n)
    start = None if k is None else _alive(before)
    sweeps = FIRST_SWEEPS if start is None else NEXT_SWEEPS
    return low_rank(state.observations, k, start=start, rng=seed, max_sweeps=sweeps)


def _alive(fit: LowRank | None) -> LowRank | None:
    """Return the fit with only those components that are alive, None when none are."""
    if fit is None or fit.posterior is None or fit.posterior.is_point:
        return None
    at = fit.posterior.alive()
    return fit.keep(at) if len(at) else None


def pack_fit(fit: LowRank | None) -> dict[str, NDArray[Any]]:
    """Return a fit as arrays, for a checkpoint; what it says of itself in words is left out."""
    if fit is None:
        return {}
    silent = replace(fit, report={}, certificates=(), row_labels=None, col_labels=None)
    named = npz.flatten(silent)
    kept = {name: value for name, value in named.items() if isinstance(value, np.ndarray | float)}
    return {FIT + name: np.asarray(value) for name, value in kept.items()}


def unpack_fit(arrays: Mapping[str, NDArray[Any]]) -> LowRank | None:
    """Return the fit that :func:`pack_fit` packed, if there is one."""
    named = {
        name.removeprefix(FIT): array if array.ndim else float(array)
        for name, array in arrays.items()
        if name.startswith(FIT)
    }
    found: LowRank | None = npz.rebuild(LowRank, named) if named else None
    return found
