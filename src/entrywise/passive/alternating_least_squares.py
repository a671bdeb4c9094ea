"""Alternating least squares with ridge penalties and biases: the workhorse of recommenders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.units import near
from entrywise.linalg.variational import Side, residuals_of, solve_side
from entrywise.observations import Observations
from entrywise.passive._choose import best_penalty, check_limits
from entrywise.results import Lines, LowRank, Posterior
from entrywise.types import Array, Seed, generator

PENALTIES = (10.0, 1e-3, 8)  # first, last and number of those tried, in variances of the values
ROUGH = (1e-3, 15)  # tol and max_sweeps of the fits that choose a penalty
NAILED = 1e12  # penalty of a bias that must stay at zero, relative to the others
SMALLEST = 1e-300


def alternating_least_squares(
    observations: Observations,
    rank: int,
    penalty: float | None = None,
    *,
    biases: bool = True,
    start: LowRank | None = None,
    rng: Seed = 0,
    tol: float = 1e-5,
    max_sweeps: int = 100,
) -> LowRank:
    r"""Return the factors that minimise the squared error plus a ridge penalty, row by row and column by column.

    .. math:: \sum_{(i,j)} (y_{ij} - \mu - b_i - c_j - u_i^\top v_j)^2
       + \lambda \Big(\sum_i \|u_i\|^2 + b_i^2 + \sum_j \|v_j\|^2 + c_j^2\Big)

    Parameters
    ----------
    observations : Observations
        Entries may be listed more than once. Noise is not used; see :func:`low_rank` for that.
    rank : int
        Components besides the biases, 1..min(m, n).
    penalty : float, optional
        :math:`\lambda` above 0. It weighs biases and factors alike, which have different units, so it depends on that of
        the values. None: the best of eight on a held-out tenth, with values divided by the power of four next to their
        spread, which the report calls ``unit`` and its numbers are in.
    biases : bool
        False leaves out :math:`\mu, b, c`.
    start : LowRank, optional
        Factors to start from.
    tol, max_sweeps : float, int
        Stop when the objective falls by less than this share in one sweep, or after so many.

    Returns
    -------
    LowRank
        ``report["objective"]`` is the minimum reached; new lines fold in by the same ridge regression.

    References
    ----------
    .. [ZWSP08] Zhou, Wilkinson, Schreiber, Pan, *Large-scale parallel collaborative filtering for the Netflix Prize*,
       2008; here every row has the same penalty, whatever its count.

    Examples
    --------
    >>> A = np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0))
    >>> A[2, 3] = np.nan
    >>> found = alternating_least_squares(Observations.from_dense(A), 1, 1e-6)
    >>> round(found.entry(2, 3), 3)
    12.0
    """
    _check(observations, rank, penalty, start, tol, max_sweeps)
    draws = generator(rng)
    if penalty is None:
        unit = near(float(np.std(observations.values)))
        if unit != 1.0:
            begin = None if start is None else start.scaled(1.0 / unit)
            found = alternating_least_squares(
                observations.scaled(1.0 / unit),
                rank,
                biases=biases,
                start=begin,
                rng=rng,
                tol=tol,
                max_sweeps=max_sweeps,
            )
            return replace(found, report={**found.report, "unit": unit}).scaled(unit)
    report = {}
    if penalty is None:
        spread = float(np.var(observations.values)) or 1.0
        penalties = (spread * np.geomspace(*PENALTIES)).tolist()

        def rough(seen: Observations, lam: float, before: LowRank | None) -> LowRank:
            return _fit(seen, rank, lam, biases, before, draws, *ROUGH)

        penalty, errors = best_penalty(observations, penalties, rough, draws)
        report = {"penalties": penalties, "held_out_rmse": float(np.nanmin(errors))}
    found = _fit(observations, rank, penalty, biases, start, draws, tol, max_sweeps)
    return replace(found, report={**found.report, **report})


def _check(
    seen: Observations,
    rank: int,
    penalty: float | None,
    start: LowRank | None,
    tol: float,
    max_sweeps: int,
) -> None:
    m, n = seen.shape
    if not 1 <= rank <= min(m, n):
        raise ParameterError(
            f"rank of alternating_least_squares must be in 1..{min(m, n)}, got {rank}"
        )
    if penalty is not None and not penalty > 0:
        raise ParameterError(f"penalty of alternating_least_squares must be above 0, got {penalty}")
    check_limits(tol, max_sweeps)
    if not len(seen):
        raise DataError("alternating_least_squares needs at least one known entry, got none")
    if start is not None and (start.shape != (m, n) or start.rank != rank):
        raise ParameterError(
            f"start must have shape {(m, n)} and rank {rank}, got {start.shape} and {start.rank}"
        )


def _fit(
    seen: Observations,
    rank: int,
    penalty: float,
    biases: bool,
    start: LowRank | None,
    rng: np.random.Generator,
    tol: float,
    max_sweeps: int,
) -> LowRank:
    offset = float(seen.values.mean()) if biases else 0.0
    values = seen.values - offset
    q = rank + 1
    P0 = penalty * np.eye(q)
    if not biases:
        P0[-1, -1] = NAILED * max(penalty, len(seen))
    rows, cols = Side.pair(seen.rows, seen.cols, values, np.zeros(0), seen.shape)
    size = np.sqrt(max(float(np.std(values)), SMALLEST) / rank)
    if start is None:
        rows.mean = _random(rows.size, rank, size, rng)
        cols.mean = _random(cols.size, rank, size, rng)
    else:
        rows.mean = _means(start.left, start.row_offset)
        cols.mean = _means(start.right, start.col_offset)
    before, objective, done = np.inf, np.inf, 0
    while done < max_sweeps:
        done += 1
        for side, fixed in ((rows, cols), (cols, rows)):
            side.mean, *_ = solve_side(side, fixed, np.zeros((1, q, q)), 1.0, P0, np.zeros(q))
        objective = _objective(rows, cols, penalty)
        if before - objective <= tol * objective:
            break
        before = objective
    squared = (objective - penalty * _squares(rows, cols)) / len(seen)
    residual = max(squared, SMALLEST + 1e-12 * size**4)
    prior = np.diag(np.full(q, residual / penalty))  # the penalty as a prior
    if not biases:
        prior[-1, -1] = residual / P0[-1, -1]
    lines = Lines.point(np.zeros(q), prior)
    return LowRank(
        left=np.ascontiguousarray(rows.mean[:, :-1]),
        right=np.ascontiguousarray(cols.mean[:, :-1]),
        row_offset=rows.mean[:, -1].copy() if biases else None,
        col_offset=cols.mean[:, -1].copy() if biases else None,
        offset=offset,
        row_counts=rows.counts,
        col_counts=cols.counts,
        posterior=Posterior(lines, lines, noise_variance=residual),
        row_labels=seen.row_labels,
        col_labels=seen.col_labels,
        report={
            "method": "alternating-least-squares",
            "rank": rank,
            "penalty": penalty,
            "sweeps": done,
            "objective": objective,
        },
    )


def _random(lines: int, rank: int, size: float, rng: np.random.Generator) -> Array:
    """Return random components of the given size, biases at zero."""
    return np.column_stack([size * rng.standard_normal((lines, rank)), np.zeros(lines)])


def _means(factor: Array, bias: Array | None) -> Array:
    return np.column_stack([factor, np.zeros(len(factor)) if bias is None else bias])


def _squares(rows: Side, cols: Side) -> float:
    return float((rows.mean**2).sum() + (cols.mean**2).sum())


def _objective(rows: Side, cols: Side, penalty: float) -> float:
    return float((residuals_of(rows, cols) ** 2).sum()) + penalty * _squares(rows, cols)
