"""From what was bought to an answer with intervals: calibration on the blind reserve, and row means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.purchase import Purchase
from entrywise.linalg.gain import Gains
from entrywise.passive.low_rank import low_rank
from entrywise.results import Certificate, LowRank
from entrywise.types import Array

FEWEST = 100  # effective reserve below which no interval is promised


def calibrated(
    state: Purchase, fit: LowRank, status: str, rounds: int, rule: str, goal: str
) -> LowRank:
    """Return the fit with conformal scores from the hidden reserve, and a certificate that says what holds."""
    report: dict[str, Any] = {
        **fit.report, "rule": rule, "goal": goal, "rounds": rounds, "bought": len(state.values) + len(state.hidden),
        "hidden": len(state.hidden),
    }  # fmt: skip
    assumes: tuple[str, ...]
    if len(state.hidden) and fit.row_cov is not None:
        scores, effective = reserve_scores(state, fit)
        report["effective reserve"] = effective
        if effective >= FEWEST:
            assumes = ("cells asked about are drawn at random from those not bought",)
            checked = ("the reserve was drawn first and hidden from the fit and the rule",)
            promise = Certificate("share of 90 % intervals that cover", 0.9, assumes, checked)
            return replace(
                fit, scores=scores, certificates=(promise,), status=status, report=report
            )
        report["intervals"] = (
            f"Gaussian: the reserve counts as {effective:.0f} cells, fewer than {FEWEST}; enlarge it"
        )
    else:
        report["intervals"] = "Gaussian: without a blind reserve none are calibrated"
    assumes = ("the low-rank model holds", "the rule's choices do not matter")
    return replace(
        fit,
        certificates=(Certificate("share of 90 % intervals that cover", 0.9, assumes, ()),),
        status=status,
        report=report,
    )


def reserve_scores(state: Purchase, fit: LowRank) -> tuple[Array, float]:
    """Return sorted conformal scores of the reserve and how many equally weighted cells it is worth.

    With weights w = 1 / probability the scores are resampled to ``(sum w)^2 / sum w^2`` equally weighted quantiles.
    """
    n = state.shape[1]
    i, j = state.hidden // n, state.hidden % n
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


def row_means(
    fit: LowRank, rows: NDArray[np.int64], cols: NDArray[np.int64], values: Array
) -> tuple[Array, Array]:
    """Return the mean of every row of the matrix and its posterior variance, both of shape (m,).

    Cells bought count as they are; the others by the fit, with their shared and their own uncertainty, see
    :func:`sum_variances`.
    """
    m, n = fit.shape
    b = fit.row_offset if fit.row_offset is not None else np.zeros(m)
    c = fit.col_offset if fit.col_offset is not None else np.zeros(n)
    U, V, s, shares, counts = _listed(fit, rows, cols)
    assert fit.col_cov is not None
    s, counts = V.sum(axis=0) - s, n - counts
    shares = np.maximum(np.einsum("ia,ab,ib->i", U, fit.col_cov.sum(axis=0), U) - shares, 0.0)
    total = np.einsum("ia,ia->i", U[:, :-1], s[:, :-1]) + counts * (b + fit.offset)
    total += c.sum() - np.bincount(rows, c[cols], m) + np.bincount(rows, values, m)
    return total / n, _sum_variance(fit, s, shares, counts) / n**2


def sum_variances(fit: LowRank, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
    """Return the variance of the sum of each row's listed cells under the fit, shape (m,).

    ``s' Cu_i s + sum_j u' Cv_j u + count_i sigma^2`` with s the sum of the designs of the row's cells.
    """
    _, _, s, shares, counts = _listed(fit, rows, cols)
    return _sum_variance(fit, s, shares, counts)


def _listed(fit: LowRank, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> tuple[Any, ...]:
    """Return designs U, V, and of each row's listed cells the sum of v, the sum of u' Cv u, and the count."""
    (m, n), q = fit.shape, fit.rank + 1
    assert fit.col_cov is not None
    U, V = np.ones((m, q)), np.ones((n, q))
    U[:, :-1], V[:, :-1] = fit.left, fit.right
    s = np.stack([np.bincount(rows, V[cols, a], m) for a in range(q)], axis=1)
    shares = np.bincount(rows, np.einsum("ta,tab,tb->t", U[rows], fit.col_cov[cols], U[rows]), m)
    return U, V, s, shares, np.bincount(rows, minlength=m).astype(np.float64)


def _sum_variance(fit: LowRank, s: Array, shares: Array, counts: Array) -> Array:
    assert fit.row_cov is not None
    own = counts * (fit.noise_variance + fit.lack_variance)
    return np.asarray(np.maximum(np.einsum("ia,iab,ib->i", s, fit.row_cov, s) + shares + own, 0.0))


def expected_errors(state: Purchase, fit: LowRank, money: float) -> tuple[float, float, int]:
    """Return the expected RMSE of cells not bought now, after spending `money` by gain, and the cells that buys."""
    n = state.shape[1]
    gains = Gains.of(fit, state.rows, state.cols)
    noise = fit.lack_variance if fit.lack_variance > 0 else fit.noise_variance
    taken = state.taken
    errors, cells = [], 0
    for bought in (False, True):
        if bought:
            most = int(min(money / state.cheapest(), state.shape[0] * n))
            i, j = (
                gains.pick(state.is_open, state.price, money, most)
                if most
                else (np.zeros(0, np.int64),) * 2
            )
            state.taken, cells = np.unique(np.r_[taken, i * n + j]), len(i)
        total, count = 0.0, 0
        for rows, _, variance in gains.blocks():
            still = state.is_open(rows)
            total, count = total + float(variance[still].sum()), count + int(still.sum())
        errors.append(float(np.sqrt(total / max(count, 1) + noise)))
    state.taken = taken
    return errors[0], errors[1], cells


def refit(state: Purchase, before: LowRank | None, rank: int | None, seed: int) -> LowRank:
    """Fit what is bought and visible, starting from the components of the fit before that are alive.

    A component whose prior has shrunk to nothing on few entries would never come back; such ones are dropped and
    grown anew from the residuals.
    """
    m, n = state.shape
    if not len(state.values):
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)))
    k = None if rank is None else min(rank, m, n)
    start = None
    if k is not None and before is not None and before.row_cov is not None:
        start = _alive(before)
    return low_rank(
        state.observations, k, start=start, rng=seed, sweeps=40 if start is None else 15
    )


def _alive(fit: LowRank, share: float = 0.05) -> LowRank | None:
    """Return the fit with only those components that vary by more than a `share` of the noise, None when none do."""
    assert fit.row_prior_cov is not None
    assert fit.col_prior_cov is not None
    assert fit.row_cov is not None
    assert fit.col_cov is not None
    assert fit.row_prior_mean is not None
    assert fit.col_prior_mean is not None
    k = fit.rank
    variance = np.diag(fit.row_prior_cov)[:k] * np.diag(fit.col_prior_cov)[:k]
    at = np.flatnonzero(variance > share * (fit.noise_variance + fit.lack_variance))
    if not len(at):
        return None
    keep = np.r_[at, k]
    square = np.ix_(keep, keep)
    return replace(
        fit, left=fit.left[:, at], right=fit.right[:, at], row_cov=fit.row_cov[:, keep[:, None], keep],
        col_cov=fit.col_cov[:, keep[:, None], keep], row_prior_mean=fit.row_prior_mean[keep],
        col_prior_mean=fit.col_prior_mean[keep], row_prior_cov=fit.row_prior_cov[square],
        col_prior_cov=fit.col_prior_cov[square],
    )  # fmt: skip


_ARRAYS = tuple(
    f.name for f in fields(LowRank) if "Array" in str(f.type) or "Indices" in str(f.type)
)


def pack_fit(fit: LowRank | None) -> dict[str, NDArray[Any]]:
    """Return a fit as arrays, for a checkpoint."""
    if fit is None:
        return {}
    kept = {f"fit.{name}": getattr(fit, name) for name in _ARRAYS if getattr(fit, name) is not None}
    kept["fit.numbers"] = np.array([fit.offset, fit.noise_variance, fit.lack_variance])
    return kept


def unpack_fit(arrays: Mapping[str, NDArray[Any]]) -> LowRank | None:
    """Return the fit that :func:`pack_fit` packed, if there is one."""
    if "fit.numbers" not in arrays:
        return None
    offset, noise, lack = arrays["fit.numbers"].tolist()
    parts: dict[str, Any] = {
        name[4:]: array
        for name, array in arrays.items()
        if name.startswith("fit.") and name != "fit.numbers"
    }
    return LowRank(**parts, offset=offset, noise_variance=noise, lack_variance=lack)
