"""Alternating least squares with ridge penalties and biases: the workhorse of recommenders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.variational import Side, residuals_of, solve_side
from entrywise.observations import Observations
from entrywise.passive._choose import best_penalty
from entrywise.results import LowRank
from entrywise.types import Array, Seed


def alternating_least_squares(
    observations: Observations,
    rank: int,
    penalty: float | None = None,
    *,
    biases: bool = True,
    start: LowRank | None = None,
    rng: Seed = 0,
    sweeps: int = 100,
    tol: float = 1e-5,
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
        :math:`\lambda` above 0, in squared units of the values; None: the best of eight on a held-out tenth.
    biases : bool
        False leaves out :math:`\mu, b, c`.
    start : LowRank, optional
        Factors to start from.
    sweeps, tol : int, float
        Stop after so many sweeps, or when the objective falls by less than this share in one.

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
    m, n = observations.shape
    if not 1 <= rank <= min(m, n):
        raise ParameterError(
            f"rank of alternating_least_squares must be in 1..{min(m, n)}, got {rank}"
        )
    if penalty is not None and not penalty > 0:
        raise ParameterError(f"penalty of alternating_least_squares must be above 0, got {penalty}")
    if sweeps < 1 or not tol >= 0:
        raise ParameterError(f"sweeps must be 1 or more and tol 0 or more, got {sweeps} and {tol}")
    if not len(observations):
        raise DataError("alternating_least_squares needs at least one known entry, got none")
    if start is not None and (start.shape != (m, n) or start.rank != rank):
        raise ParameterError(
            f"start must have shape {(m, n)} and rank {rank}, got {start.shape} and {start.rank}"
        )
    generator = np.random.default_rng(rng)
    report = {}
    if penalty is None:
        spread = float(np.var(observations.values)) or 1.0
        penalties = spread * np.geomspace(10.0, 1e-3, 8)
        penalty, errors = best_penalty(
            observations,
            penalties.tolist(),
            lambda o, p, s: _fit(o, rank, p, biases, s, generator, 15, 1e-3),
            generator,
        )
        report = {"penalties": penalties.tolist(), "held_out_rmse": float(np.nanmin(errors))}
    found = _fit(observations, rank, penalty, biases, start, generator, sweeps, tol)
    return replace(found, report={**found.report, **report})


def _fit(
    seen: Observations, rank: int, penalty: float, biases: bool, start: LowRank | None, rng: np.random.Generator,
    sweeps: int, tol: float,
) -> LowRank:  # fmt: skip
    offset = float(seen.values.mean()) if biases else 0.0
    values = seen.values - offset
    q = rank + 1
    P0 = penalty * np.eye(q)
    if not biases:
        P0[-1, -1] = 1e12 * max(penalty, len(seen))
    sides = Side.pair(seen.rows, seen.cols, values, np.zeros(0), seen.shape)
    size = np.sqrt(max(float(np.std(values)), 1e-300) / rank)
    for side, factor, bias in zip(
        sides,
        (None, None) if start is None else (start.left, start.right),
        (None, None) if start is None else (start.row_offset, start.col_offset),
        strict=True,
    ):
        side.mean = np.zeros((side.size, q))
        side.mean[:, :-1] = (
            size * rng.standard_normal((side.size, rank)) if factor is None else factor
        )
        side.mean[:, -1] = 0.0 if bias is None else bias
    rows, cols = sides
    before, objective, done = np.inf, np.inf, 0
    while done < sweeps:
        done += 1
        for side, fixed in ((rows, cols), (cols, rows)):
            side.mean, *_ = solve_side(side, fixed, np.zeros((1, q, q)), 1.0, P0, np.zeros(q))
        objective = _objective(rows, cols, values, penalty)
        if before - objective <= tol * objective:
            break
        before = objective
    residual = max(
        (objective - penalty * _squares(rows, cols)) / len(seen), 1e-300 + 1e-12 * size**4
    )
    prior = np.diag(np.full(q, residual / penalty))
    if not biases:
        prior[-1, -1] = residual / P0[-1, -1]
    return LowRank(
        np.ascontiguousarray(rows.mean[:, :-1]),
        np.ascontiguousarray(cols.mean[:, :-1]),
        rows.mean[:, -1].copy() if biases else None,
        cols.mean[:, -1].copy() if biases else None,
        offset,
        noise_variance=residual,
        row_prior_mean=np.zeros(q),
        row_prior_cov=prior,
        col_prior_mean=np.zeros(q),
        col_prior_cov=prior.copy(),
        row_counts=rows.counts,
        col_counts=cols.counts,
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


def _squares(rows: Side, cols: Side) -> float:
    return float((rows.mean**2).sum() + (cols.mean**2).sum())


def _objective(rows: Side, cols: Side, values: Array, penalty: float) -> float:
    return float((residuals_of(rows, cols) ** 2).sum()) + penalty * _squares(rows, cols)
