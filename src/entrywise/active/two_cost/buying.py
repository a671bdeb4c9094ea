"""What a plan with two instruments buys: a few entries, columns in rounds, then entries where they tell most.

Each function buys one kind of thing and returns what is known of the problem afterwards. How much is bought before the
rank is known is a matter of the shares in ``constants.py``; after that the closed form of ``risk.py`` decides.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from entrywise.active.two_cost.constants import (
    ASSUMED_RATIO,
    BLIND_SHARE,
    BLOCK_SHARE,
    BLOCK_SIDES,
    CENT,
    COLUMN_PILOT_MOST,
    COLUMN_PILOT_SHARE,
    DEAR_SHARE,
    DIFFERENCES,
    ENOUGH_COLUMNS,
    ENTRY_PILOT_LEAST,
    ENTRY_PILOT_MOST,
    ENTRY_PILOT_PART,
    ENTRY_PILOT_SHARE,
    FEW_COLUMNS_FIRST,
    LEAST_TRIED,
    NEARLY_THERE,
    REPEATED_LEAST,
    WEAKEST_SIGNAL,
)
from entrywise.active.two_cost.holdings import Holdings
from entrywise.active.two_cost.ranks import BEFORE, Piece, Ranks, believed_ranks
from entrywise.active.two_cost.risk import Problem, problem_from_columns, spread_rows, water_fill
from entrywise.active.two_cost.setting import affordable, filled, pays_for
from entrywise.queries import Asking, Batch
from entrywise.types import Array, Indices


def ask(held: Holdings, batch: Batch) -> Asking[None]:
    """Ask for a batch, pay for it and keep its answers."""
    answers = yield batch
    held.take(batch, answers)
    held.money -= float(held.setting.prices.charges(batch).sum())


# a few entries


def entry_pilot(
    held: Holdings, problem: Problem, columns: int | None, rng: np.random.Generator
) -> Asking[Problem]:
    """Measure a few entries, to learn the signal's size, and the noise where it is unknown (then each twice).

    Not where that would cost one of the columns that were asked for, or of all columns where all can be paid.
    """
    n = problem.n
    times = 2 if held.setting.entry_noise is None else 1
    count = _pilot_size(held, problem, times)
    there = len(held.seen("entry")[2])  # known before the plan began
    if not there and (not count or _costs_a_column(held, problem, columns, times * count)):
        return problem
    if times * count > there:
        at = _unseen(held, problem, count, rng)
        rows, cols = np.divmod(np.repeat(at, times), n)
        yield from ask(held, Batch.entries(rows, cols))
    variance, differences = held.repeats("entry")
    if differences:
        problem = replace(problem, entry_variance=variance)
    values = held.seen("entry")[2]
    signal = 0.0
    if len(values) > 1:
        signal = float(np.var(values, ddof=1)) - problem.entry_variance
    return replace(problem, signal=signal) if signal > 0 else problem


def _unseen(held: Holdings, problem: Problem, count: int, rng: np.random.Generator) -> Indices:
    """Return so many cells at random of which nothing is known."""
    rows, cols, _ = held.seen("entry")
    if not len(rows):
        return rng.choice(problem.m * problem.n, count, replace=False)
    unseen = np.ones((problem.m, problem.n), bool)
    unseen[rows, cols] = False
    free = np.flatnonzero(unseen)
    return rng.choice(free, min(count, len(free)), replace=False)


def _pilot_size(held: Holdings, problem: Problem, times: int) -> int:
    """Return how many entries to measure first; 0 where they would say too little or cost too much."""
    repeated = times > 1
    wanted = ENTRY_PILOT_SHARE * held.money / problem.entry_price
    if repeated:
        wanted = max(wanted, REPEATED_LEAST)
    count = int(min(wanted, ENTRY_PILOT_MOST, problem.m * problem.n))
    least = REPEATED_LEAST if repeated else ENTRY_PILOT_LEAST
    cost = times * count * problem.entry_price
    if count < least or ENTRY_PILOT_PART * cost > held.money:
        return 0
    return count


def _costs_a_column(held: Holdings, problem: Problem, columns: int | None, entries: int) -> bool:
    """Tell whether so many entries would take the money for a column that is wanted in any case."""
    left = held.money - entries * problem.entry_price
    if columns is not None:
        wanted = columns * problem.column_price
    elif held.setting.entry_noise is not None:
        wanted = float(held.setting.column_prices.sum())
    else:
        return False
    return left < wanted <= held.money * (1 + CENT)


# a block of entries


class Look(NamedTuple):
    """What was learned of a problem before its columns are bought.

    ``columns`` are those in which a block of entries lies, and ``pieces`` that block with the variance of its noise.
    """

    problem: Problem
    ranks: Ranks
    columns: Indices
    pieces: list[Piece]


def buy_block(held: Holdings, problem: Problem, rng: np.random.Generator) -> Asking[Look]:
    """Measure all entries of a few rows and columns, which tell the rank for less than dear columns do.

    It grows until it shows a rank, or several that make no difference to what is best. Its columns would have got nearly as
    many entries anyway, if not in the same rows: where many columns are bought in the end, that costs. Not where a matrix
    of rank two would already want all the columns that can be paid: then any other does too.
    """
    setting = held.setting
    m, n = setting.m, setting.n
    I, J = rng.permutation(m), rng.permutation(n)
    nothing = Look(problem, BEFORE, J[:0], [])
    least = best_columns(held, problem, Ranks.equally(2))
    if least == n or (least + 1) * problem.column_price > held.money:
        return nothing
    look, before = nothing, 0
    X = np.full((BLOCK_SIDES[-1], BLOCK_SIDES[-1]), np.nan)
    kept_back = (1 - BLOCK_SHARE) * held.money
    for size in (side for side in BLOCK_SIDES if side <= min(m, n)):
        rows, cols = _grown(I, J, before, size)
        if held.money - float(setting.entry_prices(rows, cols).sum()) < kept_back:
            break
        yield from ask(held, Batch.entries(rows, cols))
        before = size
        _write_latest(X, held, I, J)
        problem = _with_signal(problem, held)
        pieces = [(filled(X[:size, :size]), problem.entry_variance)]
        look = Look(problem, believed_ranks(*pieces), J[:size], pieces)
        if _settled(held, look, size):
            break
    return look


def _grown(I: Indices, J: Indices, before: int, size: int) -> tuple[Indices, Indices]:
    """Return rows and columns of the entries by which a block grows to `size` lines of I and J."""
    new = np.ones((size, size), bool)
    new[:before, :before] = False
    rows, cols = np.nonzero(new)
    return I[:size][rows], J[:size][cols]


def _write_latest(X: Array, held: Holdings, I: Indices, J: Indices) -> None:
    """Write the answers that came last into the block, at their places in the orders I and J."""
    row_of, col_of = np.argsort(I), np.argsort(J)
    rows, cols, values = held.latest("entry")
    X[row_of[rows], col_of[cols]] = values


def _with_signal(problem: Problem, held: Holdings) -> Problem:
    """Return the problem with the signal that the entries seen so far show."""
    values = held.seen("entry")[2]
    spread = float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
    if spread <= 0:
        return problem
    signal = max(spread - problem.entry_variance, WEAKEST_SIGNAL * spread)
    return replace(problem, signal=signal)


def _settled(held: Holdings, look: Look, size: int) -> bool:
    """Tell whether the lowest and the highest rank that are possible lead to the same split."""
    lowest, highest = look.ranks.values[[0, -1]]
    if highest >= max(LEAST_TRIED, 2 * size):
        return False
    low, high = (
        best_columns(held, look.problem, Ranks.equally(rank)) for rank in (lowest, highest)
    )
    return low == high


# columns


def buy_columns(
    held: Holdings,
    problem: Problem,
    columns: int | None,
    rank: int | None,
    rng: np.random.Generator,
) -> Asking[Problem]:
    """Buy columns in rounds until the closed form says that more would not pay."""
    setting = held.setting
    order = rng.permutation(setting.n)
    told = None if rank is None else Ranks.equally(max(rank, 1))
    pieces: list[Piece] = []  # what tells the rank besides the columns
    if columns is not None:
        wanted = columns
    else:
        look, wanted = yield from _first_columns(held, problem, told, order, rng)
        problem, pieces = look.problem, look.pieces
        order = _last(order, look.columns)
    spent = 0.0
    while True:
        new = _next_columns(held, order, wanted)
        if len(new):
            first = not held.columns
            spent += float(setting.column_prices[new].sum())
            yield from ask(held, Batch.whole_columns(new, setting.m))
            if first and setting.column_noise is None:
                problem = _with_column_noise(held, problem)
        if not held.columns:
            return problem
        C = held.table()
        problem = problem_from_columns(problem, C)
        if told is not None:
            problem = replace(problem, rank=int(told.values[0]))
        if columns is not None or not len(new):
            return problem
        ranks = told or believed_ranks(*pieces, (C, problem.column_variance))
        best = best_columns(held, problem, ranks, spent)
        if best <= len(held.columns):
            return problem
        wanted = _next_step(len(held.columns), best, sure=len(ranks.values) == 1)


def _first_columns(
    held: Holdings,
    problem: Problem,
    told: Ranks | None,
    order: Indices,
    rng: np.random.Generator,
) -> Asking[tuple[Look, int]]:
    """Return how many columns to begin with, and what was learned where entries had to tell the rank."""
    setting = held.setting
    unknown = setting.column_noise is None
    look = Look(problem, told or BEFORE, order[:0], [])
    wanted = min(int(COLUMN_PILOT_SHARE * held.money / problem.column_price), COLUMN_PILOT_MOST)
    few = max(wanted, min(FEW_COLUMNS_FIRST, int(DEAR_SHARE * held.money / problem.column_price)))
    likely = FEW_COLUMNS_FIRST <= few < ENOUGH_COLUMNS
    if likely and best_columns(held, problem, look.ranks) >= 2 * few:
        wanted = few
    elif wanted < ENOUGH_COLUMNS and not unknown:
        if told is None:
            look = yield from buy_block(held, problem, rng)
        wanted = math.ceil(best_columns(held, look.problem, look.ranks) / 2)
    if unknown or not held.values["entry"]:  # nothing else shows the noise, or the signal
        prices = setting.column_prices[_last(order, look.columns)]
        blind = affordable(prices, BLIND_SHARE * held.money)
        wanted = max(wanted, min(FEW_COLUMNS_FIRST, blind))
    return look, wanted


def _last(order: Indices, block: Indices) -> Indices:
    """Return the order with the columns of a block at its end: their entries are known in part."""
    if not len(block):
        return order
    return np.concatenate([order[~np.isin(order, block)], block])


def _next_columns(held: Holdings, order: Indices, wanted: int) -> Indices:
    """Return the columns to buy now; the first time with repeats where their noise is unknown."""
    setting = held.setting
    d = len(held.columns)
    new = order[~np.isin(order, held.columns)][: max(min(wanted, setting.n) - d, 0)]
    if setting.column_noise is None and d == 0 and len(new) > 1:
        repeats = min(len(new) - 1, math.ceil(DIFFERENCES / setting.m))
        new = np.concatenate([new[:repeats], new])
    return new[: affordable(setting.column_prices[new], held.money)]


def _with_column_noise(held: Holdings, problem: Problem) -> Problem:
    """Return the problem with the noise that repeated columns show."""
    variance, differences = held.repeats("column")
    if not differences:
        return problem
    known = held.setting.entry_noise is not None or len(held.values["entry"])
    entry = problem.entry_variance if known else variance / ASSUMED_RATIO
    return replace(problem, column_variance=variance, entry_variance=entry)


def _next_step(d: int, best: int, sure: bool) -> int:
    """Return how many columns to have after the next round: half of the way, the whole of a short one.

    While several ranks are possible, no more than as many again as are held.
    """
    if best - d <= d / NEARLY_THERE:
        return best
    half = d + math.ceil((best - d) / 2)
    return min(half, best if sure else 2 * d)


def best_columns(held: Holdings, problem: Problem, ranks: Ranks, spent: float = 0.0) -> int:
    """Return the best number of columns, those held included, that cost `spent`."""
    budget = held.setting.budget
    paid = budget - held.money - spent
    d = len(held.columns)
    return problem.best(budget, ranks, at_least=d, spent=spent, paid=paid).columns


# entries


def buy_cells(held: Holdings, problem: Problem, rng: np.random.Generator) -> Asking[None]:
    """Spend what is left on precise entries, where they tell most."""
    setting = held.setting
    flat = setting.flat_entry_price
    every = setting.m * setting.n
    cells = pays_for(held.money, flat or problem.entry_price, every)
    if cells < 1:
        return
    taken = np.zeros((setting.m, setting.n), dtype=bool)
    taken[held.seen("entry")[:2]] = True
    bought = np.array(held.columns, np.int64)
    count = water_fill(problem, bought, taken.sum(axis=0), cells, rng)
    rows, cols = spread_rows(taken, count, rng)
    if flat is None:
        mix = rng.permutation(len(rows))
        rows, cols = rows[mix], cols[mix]
        few = affordable(setting.entry_prices(rows, cols), held.money)
        rows, cols = rows[:few], cols[:few]
    if len(rows):
        yield from ask(held, Batch.entries(rows, cols))
