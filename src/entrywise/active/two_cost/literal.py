"""noisyCUR as printed: noisy columns, precise rows by leverage, one ridge regression.

Kept to compare with; :func:`entrywise.active.noisy_cur` is what we recommend.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, cast

import numpy as np

from entrywise.active.two_cost.ranks import estimate_rank
from entrywise.active.two_cost.setting import Noise, TwoCost, affordable, filled, read_two_cost
from entrywise.bounds.noisycur import theorem1, traits
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.ridge import ridge_path
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Seed

Variant = Literal["paper", "code"]
GRID = np.geomspace(
    1e-7, 10.0, 500
)  # penalties tried, over the largest squared singular value of the sampled rows
LARGEST = 2_000_000  # entries up to which the traits of the completed matrix are measured


@plan(tolerates_failed=True)
def literal_noisy_cur(
    shape: tuple[int, int],
    prices: Prices,
    *,
    columns: int,
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
    columns : int
        d, the number of noisy columns.
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
    if variant not in ("paper", "code"):
        raise ParameterError(f"variant must be paper or code, got {variant!r}")
    if penalty is not None and not (np.isfinite(penalty) and penalty > 0):
        raise ParameterError(f"penalty must be finite and above 0, got {penalty}")
    m, n = setting.m, setting.n
    if columns < 1 or (variant == "code" and columns > n):
        raise ParameterError(f"columns must be in 1..{n}, got {columns}")
    generator = cast(np.random.Generator, rng)
    again = variant == "paper"  # with replacement
    J = generator.choice(n, columns, replace=again)  # 1
    left = budget - float(setting.column_prices[J].sum())
    if left < _row_price(setting, 0):
        raise ParameterError(
            f"the budget must pay for {columns} columns and one row of {n} entries, {budget:g} does not; take fewer columns"
        )
    C, X = np.zeros((m, 0)), np.zeros((0, n))
    report: dict[str, float] = {"columns": 0, "rows": 0}
    try:
        C = filled(np.reshape((yield Batch.whole_columns(J, m)), (columns, m)).T)
        X = np.full((columns, n), 1.0 / columns)  # until rows are known: the mean of the columns
        X[:, J] = np.eye(columns)
        report["columns"] = columns
        p = _leverage(C) if again else np.full(m, 1.0 / m)  # 2, 3
        I = _rows(setting, p, left, again, generator)  # 4
        Y = filled(np.reshape((yield Batch.block(I, np.arange(n))), (len(I), n)).T).T  # 5
        report["rows"] = len(I)
        if not again:
            C[I] = Y[:, J]
        scale = 1.0 / np.sqrt(len(I) * p[I]) if again else np.ones(len(I))
        SC, SY = scale[:, None] * C[I], scale[:, None] * Y
        path = (
            ridge_path(SC, SY, GRID, relative=True)
            if penalty is None
            else ridge_path(SC, SY, np.array([penalty]))
        )
        X = path.solution()  # 6
        status = "finished"
        report |= {"penalty": path.best, "leave-one-out error": math.sqrt(path.least)}
    except Exhausted:
        status = "exhausted"
    found = LowRank(C, X.T, status=status, report=report)  # 7
    return _certified(found, setting) if status == "finished" else found


def _certified(found: LowRank, setting: TwoCost) -> LowRank:
    """Return the result with Theorem 1 for the numbers of the completed matrix, where the noises are known."""
    if (
        setting.column_noise is None
        or setting.entry_noise is None
        or setting.m * setting.n > LARGEST
    ):
        return found
    rank = estimate_rank(found.left, setting.column_noise)[0]
    noise = {"column": setting.column_noise, "entry": setting.entry_noise}
    of = traits(found.to_dense(), rank)
    report = found.report
    promise = theorem1(
        of, report["columns"], report["rows"], noise=noise, penalty=report["penalty"]
    )
    promise = replace(
        promise, assumes=(*promise.assumes, "the matrix has the traits of the completed one")
    )
    return replace(found, certificates=(promise,))


def _leverage(C: Array) -> Array:
    """Return shrunk leverage scores of the rows of C; they sum to 1, shape (m,)."""
    U, s, _ = np.linalg.svd(C, full_matrices=False)
    U = U[:, s > s.max(initial=0.0) * max(C.shape) * np.finfo(float).eps]
    if U.shape[1] == 0:
        return np.full(len(C), 1.0 / len(C))
    return np.asarray(0.5 * np.einsum("ik,ik->i", U, U) / U.shape[1] + 0.5 / len(C))


def _row_price(setting: TwoCost, i: int) -> float:
    cols = np.arange(setting.n)
    return float(setting.entry_prices(np.full(setting.n, i, np.int64), cols).sum())


def _rows(setting: TwoCost, p: Array, money: float, again: bool, rng: np.random.Generator) -> Array:
    """Draw rows until the next one cannot be paid."""
    m, n = setting.m, setting.n
    flat = setting.flat_entry_price
    most = int(money / ((flat or 1e-300) * n) + 1e-9) if flat is not None else 4 * m
    drawn = rng.choice(m, most, p=p) if again else rng.permutation(m)[:most]
    cost = (
        np.full(len(drawn), n * flat)
        if flat is not None
        else np.array([_row_price(setting, i) for i in drawn])
    )
    return np.asarray(drawn[: max(1, affordable(cost, money))])
