"""Two instruments, one budget: cheap noisy columns, dear precise entries, and how to split the money.

The columns are bought in a few rounds. After each, the rank and the signal they show go into a closed form for
the error of every further split, and buying stops when more columns would not pay. The precise entries are then
scattered over the columns that were not bought, and both are fitted together by empirical Bayes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.active.two_cost.buying import buy_cells, buy_columns, entry_pilot
from entrywise.active.two_cost.constants import ERROR_POINTS, FEW_SEEN
from entrywise.active.two_cost.exact import exact
from entrywise.active.two_cost.fit import fit
from entrywise.active.two_cost.holdings import Holdings
from entrywise.active.two_cost.risk import Problem, problem_before, problem_from_columns
from entrywise.active.two_cost.setting import (
    Noise,
    TwoCost,
    affordable,
    check_ordinary,
    read_two_cost,
)
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.units import unit_of
from entrywise.queries import Asking, History, Prices, plan
from entrywise.results import Certificate, LowRank
from entrywise.types import Seed, generator


@plan(tolerates_failed=True, history=True)
def noisy_cur(
    shape: tuple[int, int],
    prices: Prices,
    *,
    noise: Noise = None,
    budget: float,
    columns: int | None = None,
    rank: int | None = None,
    rng: Seed = None,
    history: History | None = None,
) -> Asking[LowRank]:
    r"""Complete a matrix from noisy columns and precise entries, one budget split between them.

    .. math:: y_{ij} = a_{ij} + e_{ij}, \quad e_{ij} \sim N(0, \sigma_c^2) \text{ in a column bought}, \
       N(0, \sigma_e^2) \text{ in an entry bought}

    Parameters
    ----------
    shape : (m, n)
    prices : Prices
        Of a ``column`` (m entries at once) and of an ``entry``; one number each, or one for each column and entry.
    noise : mapping or float, optional
        Standard deviations ``{"column": sd, "entry": sd}``. What is unknown (None) is estimated from
        repeated measurements, which are paid for like others and used in the fit.
    budget : float
        Never exceeded, and used up but for less than the price of an entry, unless every entry was bought.
    columns : int, optional
        Number of columns; chosen from the data by default.
    rank : int, optional
        Rank of the matrix where it is known; chosen from the data by default.
    rng : int or Generator

    Yields
    ------
    Batch
        Mode ``column``, one unit a column, a few at a time; then mode ``entry``.

    Returns
    -------
    LowRank
        With a posterior: ``interval(rows, cols, 0.9, of="truth")``. ``report`` says how the money was split, what
        was expected of it and what the noise was. When both instruments are exact and the columns show a low rank,
        it is solved exactly and money may be left; ``rank_proven`` in the report says whether anything bought shows
        that the rank is no higher, and only then there is a certificate.

    Notes
    -----
    The paper leaves the split open. Ours minimises the Bayes error of a random rank-k matrix seen by both
    instruments, a fixed point in three numbers (:mod:`entrywise.active.two_cost.risk`), over the ranks that what was seen leaves
    possible (:mod:`entrywise.active.two_cost.ranks`). Where we differ in the estimator:
    precise entries are scattered instead of whole rows, the noise of both instruments enters, and variance
    that no low-rank matrix explains is estimated and allowed for. The paper's own algorithm is :func:`literal_noisy_cur`.

    Variances are squares: answers and noises must lie between 1e-150 and 1e150 in size, prices and the budget between 1e-100
    and 1e100, or be 0 where that makes sense; others are refused. Beyond 1e-100..1e100 answers are fitted in a unit, a power
    of two. Beside a noise that was given, answers below 1e-100 of its unit count as 0, and those above 1e100 are refused.

    References
    ----------
    .. [HGM21] Hu, Gittens, Magdon-Ismail, *NoisyCUR: an algorithm for two-cost budgeted matrix completion*.
    .. [KKMSZ16] Kabashima, Krzakala, Mezard, Sakata, Zdeborova, *Phase transitions and sample complexity in
       Bayes-optimal matrix factorization*, IEEE Trans. Information Theory 2016: the fixed point.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import TwoCostOracle
    >>> oracle = TwoCostOracle(random_low_rank(80, 60, 3), entry_noise=0.1, column_noise=0.22, rng=0)
    >>> plan = noisy_cur((80, 60), ew.Prices(column=16), noise={"column": 0.22, "entry": 0.1}, budget=720, rng=0)
    >>> found = ew.play(plan, oracle)
    >>> found.cost, found.report["columns"] * 16 + found.report["cells"]
    (720.0, 720)
    """
    setting = read_two_cost(shape, prices, noise, budget)
    _check_counts(setting, columns, rank)
    draws = generator(rng)
    held = _nothing_yet(setting)
    setting = held.setting
    problem = problem_before(setting, rank)
    exact_ones = setting.column_noise == 0.0 and setting.entry_noise == 0.0
    if history is not None and not exact_ones:  # exact answers are found again in memory
        held.recall(history)
    try:
        if exact_ones and columns is None:
            solved = yield from exact(held, rank, draws)
            if solved is not None:
                return _out_of_unit(solved, held)
            if held.columns:
                problem = problem_from_columns(problem, held.table())
        else:
            problem = yield from entry_pilot(held, problem, columns, draws)
            problem = yield from buy_columns(held, problem, columns, rank, draws)
        yield from buy_cells(held, problem, draws)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    return _result(held, problem, rank, status)


def _nothing_yet(setting: TwoCost) -> Holdings:
    """Return empty holdings in the unit of the noises that were told; without any, the first answers give it."""
    told = [sd for sd in (setting.column_noise, setting.entry_noise) if sd]
    if not told:
        return Holdings(setting, money=setting.budget)
    unit = unit_of(told)
    for sd in told:
        check_ordinary(sd / unit, "noise beside the larger noise", "say 0 for the smaller")
    return Holdings(setting.in_unit(unit), unit, money=setting.budget)


def _check_counts(setting: TwoCost, columns: int | None, rank: int | None) -> None:
    """Refuse more columns than the budget pays for, and ranks that no such matrix has."""
    paid = affordable(np.sort(setting.column_prices), setting.budget)
    most = min(setting.n, paid)
    if columns is not None and not 0 <= columns <= most:
        raise ParameterError(
            f"columns of noisy_cur must be in 0..{most} for this budget, got {columns}"
        )
    full = min(setting.m, setting.n)
    if rank is not None and not 0 <= rank <= full:
        raise ParameterError(f"rank of noisy_cur must be in 0..{full}, got {rank}")


def _result(held: Holdings, problem: Problem, rank: int | None, status: str) -> LowRank:
    """Return the fit with what was bought, what was expected and what the posterior says of it."""
    found, setting, unit = fit(held, problem, rank), held.setting, held.unit or 1.0
    d, cells = len(held.columns), len(held.seen("entry")[2])
    expected = problem.risk(d, cells * problem.entry_price)
    report: dict[str, Any] = {
        "columns": d,
        "columns_repeated": held.bought - d,
        "cells": cells,
        "rank": found.rank,
        "estimator": "bayes",
        "column_noise": _known(held, "column", setting.column_noise, problem.column_variance),
        "entry_noise": _known(held, "entry", setting.entry_noise, problem.entry_variance),
        "lack_of_fit": unit * math.sqrt(found.lack_variance),
        "expected_error": unit * math.sqrt(expected),
    }
    certificates: tuple[Certificate, ...] = ()
    if found.has_variance and cells + d * setting.m >= FEW_SEEN:
        report["posterior_error"] = unit * _posterior_error(found)
        certificates = (_certificate(report["posterior_error"]),)
    found = replace(found, status=status, report=report, certificates=certificates)
    return _out_of_unit(found, held)


def _out_of_unit(found: LowRank, held: Holdings) -> LowRank:
    """Return what was found in the unit of the answers."""
    return found if held.unit in (None, 1.0) else found.scaled(held.unit)


def _certificate(value: float) -> Certificate:
    assumes = (
        "Gaussian noise of the two instruments",
        "factors drawn from a Gaussian, learned from the data",
    )
    statement = "root mean squared error of an entry, as the posterior expects"
    return Certificate(statement, value, assumes)


def _known(held: Holdings, mode: str, told: float | None, variance: float) -> float | None:
    """Return an instrument's noise as it was told or measured; None where it was only assumed."""
    if told is None and not held.repeats(mode)[1]:
        return None
    return (held.unit or 1.0) * math.sqrt(variance)


def _posterior_error(found: LowRank) -> float:
    """Return the root mean square of the posterior's standard deviations, over a grid when the matrix is large."""
    m, n = found.shape
    at = np.unique(np.linspace(0, m * n - 1, min(m * n, ERROR_POINTS)).astype(np.int64))
    i, j = np.divmod(at, n)
    return float(np.sqrt(np.mean(found.deviation(i, j, of="truth") ** 2)))
