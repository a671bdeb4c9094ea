"""noisyCUR as printed: noisy columns, precise rows by leverage, one ridge regression.

Kept to compare with; :func:`entrywise.active.noisy_cur` is what we recommend.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from entrywise.active.two_cost.constants import MOST_DRAWN, PENALTIES, TRAITS_LIMIT
from entrywise.active.two_cost.ranks import estimate_rank
from entrywise.active.two_cost.risk import problem_before
from entrywise.active.two_cost.setting import (
    Noise,
    TwoCost,
    affordable,
    check_size,
    filled,
    pays_for,
    read_two_cost,
)
from entrywise.bounds.noisycur import theorem1, traits
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.ridge import RidgePath, ridge_path
from entrywise.linalg.units import in_unit, unit_of
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Seed, generator

Variant = Literal["paper", "code"]
GRID = np.geomspace(*PENALTIES)


@plan(tolerates_failed=True)
def literal_noisy_cur(
    shape: tuple[int, int],
    prices: Prices,
    *,
    columns: int | None = None,
    noise: Noise = None,
    budget: float,
    penalty: float | None = None,
    variant: Variant = "paper",
    rng: Seed = None,
) -> Asking[LowRank]:
    r"""Complete a matrix from `columns` noisy columns and as many precise rows as the rest of the money buys.

    .. math:: X = \arg\min_Z \|Y - S^\top \tilde C Z\|_F^2 + \lambda \|Z\|_F^2, \qquad \bar A = \tilde C X

    Parameters
    ----------
    shape : (m, n)
    prices : Prices
        Of a ``column`` and of an ``entry``; a precise row costs n entries.
    columns : int, optional
        d, the number of noisy columns, about which the paper says nothing; by default the best split that
        :func:`noisy_cur` expects for a matrix of rank 4.
    noise : mapping or float, optional
        The algorithm does not use it; where both noises are given, the result carries the certificate of Theorem 1.
    budget : float
    penalty : float, optional
        Lambda; by default the one of smallest leave-one-row-out error on 500 points, from
        :math:`10^{-7}` to :math:`10` times the largest squared singular value of the sampled rows.
    variant : {"paper", "code"}
        ``paper``: columns uniform with replacement, rows by shrunk leverage scores with replacement,
        rescaled. ``code``: what the authors' program does instead: columns and rows uniform without
        replacement, no rescaling, and the precise rows written over the noisy ones in C.
    rng : int or Generator

    Yields
    ------
    Batch
        The columns (mode ``column``), then the rows (mode ``entry``).

    Returns
    -------
    LowRank
        ``left`` is the noisy C of shape (m, d), ``right`` the transposed X of shape (n, d).

    Notes
    -----
    Line 5 of the paper adds the noise after rescaling, its proof before; a measurement is made before
    it is rescaled, so the proof is followed. Failed answers are replaced by the mean of their row in C,
    of their column in Y.

    References
    ----------
    .. [HGM21] Hu, Gittens, Magdon-Ismail, *NoisyCUR: an algorithm for two-cost budgeted matrix
       completion*, Algorithm 1.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import TwoCostOracle
    >>> oracle = TwoCostOracle(random_low_rank(40, 30, 3), entry_noise=0.01, column_noise=0.02, rng=0)
    >>> plan = literal_noisy_cur((40, 30), ew.Prices(column=8), columns=10, budget=300, rng=0)
    >>> found = ew.play(plan, oracle)
    >>> found.report["rows"], found.cost
    (7, 290.0)
    """
    setting = read_two_cost(shape, prices, noise, budget, "literal_noisy_cur")
    _check(setting, columns, penalty, variant)
    m, n = setting.m, setting.n
    d = _default_columns(setting) if columns is None else columns
    draws = generator(rng)
    again = variant == "paper"  # with replacement
    J = draws.choice(n, d, replace=again)  # 1
    left = budget - float(setting.column_prices[J].sum())
    _check_rest(setting, d, left, again)
    C, X = np.zeros((m, 0)), np.zeros((0, n))
    report: dict[str, float] = {"columns": 0, "rows": 0}
    try:
        C = filled(np.reshape((yield Batch.whole_columns(J, m)), (d, m)).T)
        X = np.full((d, n), 1.0 / d)  # until rows are known: the mean of the columns
        X[:, J] = np.eye(d)
        report["columns"] = d
        p = leverage(C) if again else np.full(m, 1.0 / m)  # 2-3
        I = _rows(setting, p, left, again, draws)  # 4
        Y = filled(np.reshape((yield Batch.block(I, np.arange(n))), (len(I), n)).T).T  # 5
        report["rows"] = len(I)
        if not again:
            C[I] = Y[:, J]
        scale = 1.0 / np.sqrt(len(I) * p[I]) if again else np.ones(len(I))
        unit = unit_of(C, Y)
        SC, SY = (scale[:, None] * in_unit(X, unit) for X in (C[I], Y))
        path = _ridge(SC, SY, penalty, unit)
        X = path.solution()  # 6
        report["penalty"] = path.best * unit * unit
        report["leave_one_out_error"] = math.sqrt(path.least) * unit
        status = "finished"
    except Exhausted:
        status = "exhausted"
    check_size(C, X.T)
    found = LowRank(C, X.T, status=status, report=report)  # 7
    return _certified(found, setting) if status == "finished" else found  # 8


def _check(setting: TwoCost, columns: int | None, penalty: float | None, variant: Variant) -> None:
    if variant not in ("paper", "code"):
        raise ParameterError(f"variant must be paper or code, got {variant!r}")
    if penalty is not None and not (np.isfinite(penalty) and penalty > 0):
        raise ParameterError(f"penalty must be finite and above 0, got {penalty}")
    if columns is None:
        return
    if columns < 1 or (variant == "code" and columns > setting.n):
        raise ParameterError(f"columns must be in 1..{setting.n}, got {columns}")


def _check_rest(setting: TwoCost, columns: int, left: float, again: bool) -> None:
    """Refuse a budget that leaves no row, or more of them than can be drawn at once."""
    n, budget = setting.n, setting.budget
    if left < _row_price(setting, 0):
        raise ParameterError(
            f"the budget must pay for {columns} columns and one row of {n} entries, {budget:g} does not; take fewer columns"
        )
    flat = setting.flat_entry_price
    if again and flat is not None and left / flat > MOST_DRAWN:
        raise ParameterError(
            f"budget of literal_noisy_cur must pay for at most {MOST_DRAWN:g} entries beside the columns, rows are drawn with "
            f"replacement, got {budget:g}; give less, or take noisy_cur"
        )


def _default_columns(setting: TwoCost) -> int:
    """Return the columns that are bought when nobody says how many: the best split for rank 4."""
    problem = problem_before(setting)
    row = setting.n * problem.entry_price
    most = pays_for(setting.budget - row, problem.column_price)
    if most < 1:
        raise ParameterError(
            f"the budget must pay for one column and one row of {setting.n} entries ({problem.column_price + row:g}), "
            f"got {setting.budget:g}"
        )
    return max(1, min(problem.best(setting.budget).columns, most))


def _ridge(X: Array, Y: Array, penalty: float | None, unit: float) -> RidgePath:
    """Return the regression of Y on X with the penalty given, or with that of smallest leave-one-out error."""
    if penalty is None:
        return ridge_path(X, Y, GRID, relative=True)
    return ridge_path(X, Y, np.array([penalty / unit / unit]))


def _certified(found: LowRank, setting: TwoCost) -> LowRank:
    """Return the result with Theorem 1 for the numbers of the completed matrix, where the noises are known."""
    if setting.column_noise is None or setting.entry_noise is None:
        return found
    if setting.m * setting.n > TRAITS_LIMIT:
        return found
    A = found.to_dense()
    unit = unit_of(A, found.left, setting.column_noise, setting.entry_noise)
    noise = {"column": setting.column_noise / unit, "entry": setting.entry_noise / unit}
    rank = estimate_rank(in_unit(found.left, unit), noise["column"])[0]
    report = found.report
    promise = theorem1(
        traits(in_unit(A, unit), rank),
        report["columns"],
        report["rows"],
        noise=noise,
        penalty=report["penalty"] / unit / unit,
    )
    assumes = (*promise.assumes, "the matrix has the traits of the completed one")
    return replace(found, certificates=(replace(promise, assumes=assumes),))


def leverage(C: Array) -> Array:
    """Return shrunk leverage scores of the rows of C; they sum to 1, shape (m,)."""
    U, s, _ = np.linalg.svd(in_unit(C, unit_of(C)), full_matrices=False)  # 2
    U = U[:, s > s.max(initial=0.0) * max(C.shape) * np.finfo(float).eps]
    if U.shape[1] == 0:
        return np.full(len(C), 1.0 / len(C))
    shares = np.einsum("ik,ik->i", U, U) / U.shape[1]
    return np.asarray(0.5 * shares + 0.5 / len(C))  # 3


def _row_price(setting: TwoCost, i: int) -> float:
    cols = np.arange(setting.n)
    return float(setting.entry_prices(np.full(setting.n, i, np.int64), cols).sum())


def _rows(setting: TwoCost, p: Array, money: float, again: bool, rng: np.random.Generator) -> Array:
    """Draw rows until the next one cannot be paid."""
    m, n = setting.m, setting.n
    flat = setting.flat_entry_price
    if flat is None:
        most = 4 * m  # as many as are likely to be paid; without replacement m at most
    else:
        most = pays_for(money, flat * n, MOST_DRAWN)
    drawn = rng.choice(m, most, p=p) if again else rng.permutation(m)[:most]
    if flat is None:
        cost = np.array([_row_price(setting, i) for i in drawn])
    else:
        cost = np.full(len(drawn), n * flat)
    return np.asarray(drawn[: max(1, affordable(cost, money))])
