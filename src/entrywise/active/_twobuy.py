"""What a plan with two instruments buys: a few entries, columns in rounds, then entries where they tell most."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from entrywise.active._split import Problem, possible_ranks, problem_from_columns, spread_rows, water_fill
from entrywise.active._twocost import affordable
from entrywise.active._twofit import Held
from entrywise.queries import Asking, Batch

PILOT = 0.08  # share of the money that the first columns take, when that is more than four of them and at most ten
DEAR = 0.15  # share of the money beyond which the first columns are not bought only to learn the rank
EXPLORE = 0.16  # share of the money that columns may take as long as they do not tell the rank
ASSUMED_RATIO = 10.0  # noise variance of columns over that of entries, while the latter is unknown


def entry_pilot(held: Held, problem: Problem, columns: int | None, rng: np.random.Generator) -> Asking[Problem]:
    """Measure a few entries, to learn the signal's size, and the noise where it is unknown (then each twice).

    Not where that would cost one of the columns that were asked for, or of all columns where all can be paid.
    """
    m, n = problem.m, problem.n
    twice = 2 if held.setting.entry_noise is None else 1
    count = int(min(max(0.02 * held.money / problem.entry_price, 5 * (twice - 1)), 24, m * n))
    if count < 8 - 3 * (twice - 1) or 4 * twice * count * problem.entry_price > held.money:
        return problem
    every = float(held.setting.column_prices.sum()) if columns is None else columns * problem.column_price
    left = held.money - twice * count * problem.entry_price
    if left < every <= held.money * (1 + 1e-12) and (columns is not None or held.setting.entry_noise is not None):
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


def buy_columns(
    held: Held, problem: Problem, columns: int | None, rank: int | None, rng: np.random.Generator
) -> Asking[Problem]:
    """Buy columns in rounds until the closed form says that more would not pay."""
    setting = held.setting
    order = rng.permutation(setting.n)
    price = setting.column_prices
    unknown = setting.column_noise is None
    if columns is not None:
        wanted = columns
    else:
        wanted = min(int(PILOT * held.money / problem.column_price), 10)
        wanted = max(wanted, min(4, affordable(price[order], 0.5 * held.money)))
        cost = wanted * problem.column_price / held.money
        if not unknown and len(held.values["entry"]) and cost > PILOT:
            ranks = possible_ranks() if rank is None else (rank,)
            if cost > DEAR or _best(held, problem, ranks[-1:]) == 0:
                wanted = min(wanted, _best(held, problem, ranks))
    spent = 0.0
    while True:
        d = len(held.columns)
        new = order[d : min(wanted, setting.n)]
        if unknown and d == 0 and len(new) > 1:  # repeat as many as give thirty differences
            again = new[: min(len(new) - 1, math.ceil(30 / setting.m))]
            new = np.concatenate([again, new])
            new = new[: affordable(price[new], held.money)]
        else:
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
        problem = problem_from_columns(problem, held.table())
        if rank is not None:
            problem = replace(problem, rank=max(rank, 1))
        d = len(held.columns)
        if columns is not None or not len(new):
            return problem
        ranks = possible_ranks(problem.rank, d) if rank is None else (problem.rank,)
        step = math.ceil((_best(held, problem, ranks, spent) - d) / 2)
        if len(ranks) > 1:  # columns tell the rank, and whether there is one
            further = int((EXPLORE * setting.budget - spent) / problem.column_price)
            if spent > PILOT * setting.budget and _best(held, problem, ranks[-1:], spent) <= d:
                further = 0  # but no rank that is possible makes more of them worth while
            step = max(min(step, d), min(math.ceil(d / 2), further))
        if step <= 0:
            return problem
        wanted = d + step


def _best(held: Held, problem: Problem, ranks: tuple[int, ...], spent: float = 0.0) -> int:
    """Return the best number of columns, those held included, that cost `spent`."""
    budget = held.setting.budget
    paid = budget - held.money - spent
    return problem.best(budget, at_least=len(held.columns), spent=spent, paid=paid, ranks=ranks).columns


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
    answers = yield batch
    held.money -= float(held.setting.prices.charges(batch).sum())
    held.take(batch, answers)
