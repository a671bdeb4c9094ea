"""What a plan with two instruments buys: a few entries, columns in rounds, then entries where they tell most."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from entrywise.active.two_cost.fit import Held
from entrywise.active.two_cost.ranks import BEFORE, LEAST_TRIED, Piece, Ranks, believed_ranks
from entrywise.active.two_cost.risk import Problem, problem_from_columns, spread_rows, water_fill
from entrywise.active.two_cost.setting import affordable, filled
from entrywise.queries import Asking, Batch
from entrywise.types import Indices

PILOT = 0.08  # share of the money that the first columns take, at most ten of them
ENOUGH = 8  # columns that tell the rank; where those would cost more and may not be wanted, a block of entries does
DEAR = 0.15  # share of the money beyond which four columns are not bought only to learn the rank
BLOCK = 0.1  # share of the money that the block may take
BLOCKS = (4, 5, 7, 9, 12)  # its rows and columns, as it grows
ASSUMED_RATIO = 10.0  # noise variance of columns over that of entries, while the latter is unknown


def entry_pilot(
    held: Held, problem: Problem, columns: int | None, rng: np.random.Generator
) -> Asking[Problem]:
    """Measure a few entries, to learn the signal's size, and the noise where it is unknown (then each twice).

    Not where that would cost one of the columns that were asked for, or of all columns where all can be paid.
    """
    m, n = problem.m, problem.n
    twice = 2 if held.setting.entry_noise is None else 1
    count = int(min(max(0.02 * held.money / problem.entry_price, 5 * (twice - 1)), 24, m * n))
    if count < 8 - 3 * (twice - 1) or 4 * twice * count * problem.entry_price > held.money:
        return problem
    every = (
        float(held.setting.column_prices.sum())
        if columns is None
        else columns * problem.column_price
    )
    left = held.money - twice * count * problem.entry_price
    if left < every <= held.money * (1 + 1e-12) and (
        columns is not None or held.setting.entry_noise is not None
    ):
        return problem
    at = rng.choice(m * n, count, replace=False)
    rows, cols = np.divmod(np.repeat(at, twice), n)
    yield from ask(held, Batch.entries(rows, cols))
    variance, differences = held.repeats("entry")
    if differences:
        problem = replace(problem, entry_variance=variance)
    values = held.seen("entry")[2]
    signal = float(np.var(values, ddof=1)) - problem.entry_variance if len(values) > 1 else 0.0
    return replace(problem, signal=signal) if signal > 0 else problem


def buy_block(
    held: Held, problem: Problem, rng: np.random.Generator
) -> Asking[tuple[Problem, Ranks, Indices, list[Piece]]]:
    """Measure all entries of a few rows and columns, which tell the rank for less than dear columns do.

    It grows until it shows a rank, or several that make no difference to what is best. Its columns would have got nearly as
    many entries anyway, if not in the same rows: where many columns are bought in the end, that costs. Not where a matrix
    of rank two would already want all the columns that can be paid: then any other does too. Returns what was learned,
    the ranks that are possible, the columns of the block, and the block with the variance of its noise, if there is one.
    """
    setting = held.setting
    m, n = setting.m, setting.n
    I, J = rng.permutation(m), rng.permutation(n)
    row_of, col_of = np.argsort(I), np.argsort(J)
    X = np.full((BLOCKS[-1], BLOCKS[-1]), np.nan)
    start = held.money
    pieces: list[Piece] = []
    ranks = BEFORE
    before = 0
    least = _best(held, problem, Ranks.equally(2))
    if least == n or (least + 1) * problem.column_price > start:
        return problem, BEFORE, J[:0], pieces
    for size in (size for size in BLOCKS if size <= min(m, n)):
        new = np.ones((size, size), bool)
        new[:before, :before] = False
        rows, cols = (at[:size][where] for at, where in zip((I, J), np.nonzero(new), strict=True))
        left = held.money - float(setting.entry_prices(rows, cols).sum())
        if left < (1 - BLOCK) * start:
            break
        yield from ask(held, Batch.entries(rows, cols))
        before = size
        X[row_of[held.rows["entry"][-1]], col_of[held.cols["entry"][-1]]] = held.values["entry"][-1]
        values = held.seen("entry")[2]
        spread = float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
        if spread > 0:
            problem = replace(problem, signal=max(spread - problem.entry_variance, 1e-3 * spread))
        pieces = [(filled(X[:size, :size]), problem.entry_variance)]
        ranks = believed_ranks(*pieces)
        lowest, highest = ranks.values[[0, -1]]
        bounded = highest < max(LEAST_TRIED, 2 * size)
        if bounded and _best(held, problem, Ranks.equally(lowest)) == _best(
            held, problem, Ranks.equally(highest)
        ):
            break
    return problem, ranks, J[:before], pieces


def buy_columns(
    held: Held, problem: Problem, columns: int | None, rank: int | None, rng: np.random.Generator
) -> Asking[Problem]:
    """Buy columns in rounds until the closed form says that more would not pay."""
    setting = held.setting
    order = rng.permutation(setting.n)
    price = setting.column_prices
    unknown = setting.column_noise is None
    told = None if rank is None else Ranks.equally(max(rank, 1))
    pieces: list[Piece] = []  # what tells the rank besides the columns
    if columns is not None:
        wanted = columns
    else:
        wanted = min(int(PILOT * held.money / problem.column_price), 10)
        few = max(wanted, min(4, int(DEAR * held.money / problem.column_price)))
        if 4 <= few < ENOUGH and _best(held, problem, told or BEFORE) >= 2 * few:
            wanted = few
        elif wanted < ENOUGH and not unknown:
            ranks = told
            if ranks is None:
                problem, ranks, block, pieces = yield from buy_block(held, problem, rng)
                order = np.r_[order[~np.isin(order, block)], block]
            wanted = math.ceil(_best(held, problem, ranks) / 2)
        if unknown or not held.values["entry"]:
            wanted = max(wanted, min(4, affordable(price[order], 0.5 * held.money)))
    spent = 0.0
    while True:
        d = len(held.columns)
        new = order[d : min(wanted, setting.n)]
        if unknown and d == 0 and len(new) > 1:  # repeat as many as give thirty differences
            again = new[: min(len(new) - 1, math.ceil(30 / setting.m))]
            new = np.concatenate([again, new])
        new = new[: affordable(price[new], held.money)]
        if len(new):
            spent += float(price[new].sum())
            yield from ask(held, Batch.whole_columns(new, setting.m))
            if unknown and d == 0:
                variance, differences = held.repeats("column")
                if differences:
                    known = setting.entry_noise is not None or len(held.values["entry"])
                    entry = problem.entry_variance if known else variance / ASSUMED_RATIO
                    problem = replace(problem, column_variance=variance, entry_variance=entry)
        if not held.columns:
            return problem
        C = held.table()
        problem = problem_from_columns(problem, C)
        if told is not None:
            problem = replace(problem, rank=int(told.values[0]))
        d = len(held.columns)
        if columns is not None or not len(new):
            return problem
        ranks = told or believed_ranks(*pieces, (C, problem.column_variance))
        best = _best(held, problem, ranks, spent)
        if best <= d:
            return problem
        if best - d <= d / 4:
            wanted = best
        else:
            wanted = min(d + math.ceil((best - d) / 2), 2 * d if len(ranks.values) > 1 else best)


def _best(held: Held, problem: Problem, ranks: Ranks, spent: float = 0.0) -> int:
    """Return the best number of columns, those held included, that cost `spent`."""
    budget = held.setting.budget
    paid = budget - held.money - spent
    return problem.best(budget, ranks, at_least=len(held.columns), spent=spent, paid=paid).columns


def buy_cells(held: Held, problem: Problem, rng: np.random.Generator) -> Asking[None]:
    """Spend what is left on precise entries, where they tell most."""
    setting = held.setting
    flat = setting.flat_entry_price
    cells = int(held.money / (flat or problem.entry_price) + 1e-9)
    if cells < 1:
        return
    taken = np.zeros((setting.m, setting.n), dtype=bool)
    taken[held.seen("entry")[:2]] = True
    count = water_fill(problem, np.array(held.columns, np.int64), taken.sum(axis=0), cells, rng)
    rows, cols = spread_rows(taken, count, rng)
    if flat is None:
        mix = rng.permutation(len(rows))
        rows, cols = rows[mix], cols[mix]
        few = affordable(setting.entry_prices(rows, cols), held.money)
        rows, cols = rows[:few], cols[:few]
    if len(rows):
        yield from ask(held, Batch.entries(rows, cols))


def ask(held: Held, batch: Batch) -> Asking[None]:
    """Ask for a batch, pay for it and keep its answers."""
    answers = yield batch
    held.money -= float(held.setting.prices.charges(batch).sum())
    held.take(batch, answers)
