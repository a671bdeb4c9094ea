"""What a rule that buys cell by cell looks at: what is bought, what is out, what is hidden in reserve.

Cells are coded as ``i * n + j``. Nothing of size m x n is kept; cells are looked at in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg import small
from entrywise.observations import Observations
from entrywise.queries import Batch, History, Prices, Situation
from entrywise.types import Array, Indices, distinct

BLOCK = 1 << 21  # cells looked at at once
CACHED = 1 << 16  # cells whose times are drawn at once: they stay in the processor's cache
AMPLE = 1.2  # times the arrivals that the money is expected to pay
FEW = 1 / 8  # share of the cells up to which they are drawn by their arrivals alone
ROUNDING = 1e-9  # share of the budget by which sums of prices may be off
CHEAPEST = 10  # of a line's cells, one in so many is cheap
SPARSE = 256  # of so many cells at least one is in a list that is put in order by bits
PER_LINE = 2  # cells of every line before a rule looks at it
STARTING = 0.5  # share of the money that such first cells may cost


def _none() -> Indices:
    return np.zeros(0, np.int64)


@dataclass
class Purchase:
    """A purchase over an m x n matrix, as one step sees it.

    Parameters
    ----------
    rows, cols, values : ndarray of shape (t,)
        What may be fitted: known or bought, and neither hidden nor a control.
    taken : ndarray of int64
        Cells that are not asked again, in order: known, bought, failed, out; hidden ones look open.
    spent : float
        Money spent or held by what is out.
    hidden, hidden_values, hidden_chance
        Told cells of the blind reserve, in order, their values and their chances.
    known : ndarray of int64
        Cells known beforehand, in order: neither bought nor part of a reserve.
    out : ndarray of int64
        Cells without an answer yet, but those of the reserve; their variance is known all the same.
    reserved : ndarray of int64
        Cells of the reserve that were told or are out, in order.
    started : float
        Money that first cells of lines have cost.
    row_open, col_open : ndarray of bool, optional
        Lines that this step may ask for.
    limit : int, optional
        The most cells that this step may ask for.
    model : AnswerModel
        What answers are taken for, and the features of the lines.
    """

    shape: tuple[int, int]
    prices: Prices
    budget: float
    available: NDArray[np.bool_] | None
    rng: np.random.Generator
    rows: Indices = field(default_factory=_none)
    cols: Indices = field(default_factory=_none)
    values: Array = field(default_factory=lambda: np.zeros(0))
    taken: Indices = field(default_factory=_none)
    spent: float = 0.0
    hidden: Indices = field(default_factory=_none)
    hidden_values: Array = field(default_factory=lambda: np.zeros(0))
    hidden_chance: Array = field(default_factory=lambda: np.zeros(0))
    known: Indices = field(default_factory=_none)
    out: Indices = field(default_factory=_none)
    reserved: Indices = field(default_factory=_none)
    started: float = 0.0
    row_open: NDArray[np.bool_] | None = None
    col_open: NDArray[np.bool_] | None = None
    limit: int | None = None
    model: AnswerModel = field(default_factory=AnswerModel)

    def see(self, situation: Situation) -> None:
        """Take in what a step may look at."""
        facts, pending = situation.facts, situation.pending
        is_of, is_of_pending = _by_arm(facts), _by_arm(pending)
        in_reserve, waiting = is_of("reserve") & ~facts.known, is_of_pending("reserve")
        control, failed = is_of("control"), facts.failed
        visible = ~(in_reserve | control | failed)
        self.rows, self.cols = facts.rows[visible], facts.cols[visible]
        self.values = facts.values[visible]
        hidden = np.flatnonzero(in_reserve & ~failed)
        cells = self._cells(facts, hidden)
        order = np.argsort(cells, kind="stable")
        self.hidden, hidden = cells[order], hidden[order]
        self.hidden_values, self.hidden_chance = facts.values[hidden], facts.probability[hidden]
        self.out = self._cells(pending, ~waiting & ~is_of_pending("control"))
        in_vain = self._cells(facts, failed & ~control)
        self.taken = self._in_order(self.rows * self.shape[1] + self.cols, in_vain, self.out)
        self.known = self._in_order(self._cells(facts, facts.known))
        self.reserved = self._in_order(
            self._cells(facts, in_reserve), self._cells(pending, waiting)
        )
        of_start = (facts.price[is_of("start")], pending.price[is_of_pending("start")])
        self.started = float(sum(np.nansum(x) for x in of_start))
        if situation.left is not None:
            self.spent = self.budget - situation.left
        self.limit = situation.limit
        self._filter(situation)

    def _cells(self, table: History, some: NDArray[Any]) -> Indices:
        """Return the cells of some lines of a table, a mask or their numbers."""
        return np.asarray(table.rows[some] * self.shape[1] + table.cols[some])

    def _in_order(self, *cells: Indices) -> Indices:
        """Return cells in order, each once."""
        some = [x for x in cells if len(x)] or [_none()]
        (m, n), every = self.shape, some[0] if len(some) == 1 else np.concatenate(some)
        if len(every) <= small.SMALL or SPARSE * len(every) < m * n:
            return distinct(every)
        if every.min() < 0 or every.max() >= m * n:  # bits have no place for them
            return distinct(every)
        from entrywise.linalg._jit_words import in_order

        return np.asarray(in_order(every, m * n))

    def _filter(self, situation: Situation) -> None:
        """Close the lines that this step may not ask for."""
        for name, size, wanted, dropped in (
            ("row_open", self.shape[0], situation.rows, situation.dropped_rows),
            ("col_open", self.shape[1], situation.cols, situation.dropped_cols),
        ):
            if wanted is None and dropped is None:
                continue
            allowed = np.full(size, wanted is None)
            if wanted is not None:
                allowed[wanted] = True
            if dropped is not None:
                allowed[dropped] = False
            setattr(self, name, allowed)

    @property
    def left(self) -> float:
        """Money neither spent nor held."""
        return self.budget - self.spent

    @property
    def observations(self) -> Observations:
        """What may be fitted: bought, and not hidden."""
        return Observations.from_triplets(
            self.rows, self.cols, self.values, self.shape, duplicates="keep"
        )

    def with_reserve(self, some: NDArray[np.bool_]) -> Purchase:
        """Return the purchase with `some` of the hidden cells, a mask over them, among what may be fitted."""
        i, j = np.divmod(self.hidden[some], self.shape[1])
        return replace(
            self,
            rows=np.r_[self.rows, i],
            cols=np.r_[self.cols, j],
            values=np.r_[self.values, self.hidden_values[some]],
        )

    def with_taken(self, cells: Indices) -> Purchase:
        """Return the purchase in which these cells are taken, too."""
        return replace(self, taken=self._in_order(self.taken, cells))

    def price(self, rows: Indices) -> Array:
        """Return the prices of whole rows, shape (len(rows), n)."""
        return np.broadcast_to(self.line_price(rows), (len(rows), self.shape[1]))

    def line_price(self, rows: Indices) -> Array:
        """Return what broadcasts to the prices of whole rows: one number, one a row, one a column, or one each."""
        m, n = self.shape
        flat = self.prices.modes.get("entry")
        if isinstance(flat, float):
            return np.full((1, 1), flat)
        if isinstance(flat, np.ndarray) and _covers(flat, m, n):
            grid = np.atleast_2d(flat)
            return np.asarray(grid[rows] if len(grid) > 1 else grid)
        i, j = np.repeat(rows, n), np.tile(np.arange(n), len(rows))
        return self.prices.of("entry", i, j).reshape(len(rows), n)

    def price_of(self, cells: Indices) -> Array:
        """Return the prices of cells."""
        return self.prices.of("entry", cells // self.shape[1], cells % self.shape[1])

    def cheapest(self) -> float:
        """Return the lowest price of a cell."""
        flat = self.prices.modes.get("entry")
        if isinstance(flat, float):
            return flat
        if isinstance(flat, np.ndarray) and _covers(flat, *self.shape):
            return float(flat.min())
        return min(float(self.price(rows).min()) for rows in self.row_blocks())

    def affordable(self, money: float) -> int:
        """Return how many cells the money could pay, and this step may ask for, at most."""
        count = int(min(money / self.cheapest(), self.shape[0] * self.shape[1]))
        return count if self.limit is None else min(count, self.limit)

    def batch(
        self, cells: Indices, arm: str | NDArray[np.str_], chance: Array | None = None, **extra: Any
    ) -> Batch:
        """Return cells as a batch, cut to what this step may ask for; a sure pick has chance one."""
        chance = np.ones(len(cells)) if chance is None else chance
        arms = np.broadcast_to(np.asarray(arm), (len(cells),))
        i, j = np.divmod(cells, self.shape[1])
        return self.cut(Batch(i, j, arm=arms, probability=chance, **extra))

    def cut(self, batch: Batch) -> Batch:
        """Return as much of a batch as this step may ask for."""
        return batch if self.limit is None else batch[: self.limit]

    @property
    def all_open(self) -> bool:
        """Whether every cell may be asked for that was not taken."""
        return self.available is None and self.row_open is None and self.col_open is None

    def is_open(self, rows: Indices) -> NDArray[np.bool_]:
        """Tell which cells of whole rows may be bought; hidden ones look open."""
        found = self._without(rows, self.taken)
        if self.row_open is not None:
            found &= self.row_open[rows][:, None]
        if self.col_open is not None:
            found &= self.col_open
        return found

    def open_bits(self, but: Indices | None = None) -> NDArray[np.uint8]:
        """Return :meth:`is_open` of all rows, eight cells a byte as ``np.packbits`` lays them, closed where `but` lists them."""
        (m, n), but = self.shape, _none() if but is None else but
        if small.is_small(m, n) or not self.all_open:
            state = self.with_taken(but)
            parts = [np.packbits(state.is_open(rows), axis=1) for rows in self.row_blocks(CACHED)]
            return np.concatenate(parts)
        from entrywise.linalg._jit_words import open_bits

        low, high = np.searchsorted(self.taken, (0, m * n))  # others are nowhere in the matrix
        return np.asarray(open_bits(self.taken[low:high], but, m, n))

    def may_ask(self, cells: Indices) -> NDArray[np.bool_]:
        """Tell which cells lie in lines that this step may ask for."""
        i, j = np.divmod(cells, self.shape[1])
        found = np.ones(len(cells), bool)
        if self.row_open is not None:
            found &= self.row_open[i]
        if self.col_open is not None:
            found &= self.col_open[j]
        return found

    @property
    def all_may_be_reserve(self) -> bool:
        """Whether every cell is available and none was known beforehand."""
        return self.available is None and not len(self.known)

    def may_be_reserve(self, rows: Indices) -> NDArray[np.bool_]:
        """Tell which cells of whole rows were not known beforehand."""
        return self._without(rows, self.known)

    def _without(self, rows: Indices, cells: Indices) -> NDArray[np.bool_]:
        """Tell which cells of whole rows are available and not among `cells`, which are in order."""
        n, first = self.shape[1], rows[0]
        if self.available is None:
            found = np.ones((len(rows), n), dtype=bool)
        else:
            found = self.available[rows].copy()
        low, high = np.searchsorted(cells, (first * n, (rows[-1] + 1) * n))
        taken = cells[low:high]
        if rows[-1] - first == len(rows) - 1:  # one after the other
            found.ravel()[taken - first * n] = False
            return found
        place = np.full(rows[-1] - first + 1, -1)
        place[rows - first] = np.arange(len(rows))
        at = place[taken // n - first]
        found[at[at >= 0], (taken % n)[at >= 0]] = False
        return found

    def row_blocks(self, cells: int = BLOCK) -> list[Indices]:
        """Return the rows in blocks of about so many cells."""
        m, n = self.shape
        step = max(1, cells // n)
        return [np.arange(a, min(a + step, m)) for a in range(0, m, step)]

    def draw(
        self, weight: Callable[[Indices], Array] | None, money: float, most: int | None = None
    ) -> tuple[Indices, Array]:
        """Return cells drawn without replacement in proportion to `weight`, as many as `money` pays, and their chances.

        None is one over the price.
        Each open cell waits an exponential time of rate `weight`; the first ones are taken. The chance of a
        cell to come before the last time taken, 1 - exp(-weight * time), is its probability.
        """
        if money <= 0:
            return np.zeros(0, np.int64), np.zeros(0)
        filtered = self.row_open is not None or self.col_open is not None
        if weight is None and not filtered and isinstance(self.prices.modes.get("entry"), float):
            return self._draw_evenly(money, most)
        early = None
        if weight is None:
            early = self._arrivals(money, most)
            weight = lambda rows: 1.0 / self.line_price(rows)  # noqa: E731
        cells, times, weights = self._waiting(weight, money, most, early)
        fits = np.cumsum(self.price_of(cells)) <= money + ROUNDING * self.budget
        count = int(np.argmin(fits)) if not fits.all() else len(cells)
        count = count if most is None else min(count, most)
        if count == 0:
            return cells[:0], weights[:0]
        until = times[count] if count < len(times) else np.inf
        return cells[:count], -np.expm1(-weights[:count] * until)

    def _waiting(
        self,
        weight: Callable[[Indices], Array],
        money: float,
        most: int | None,
        early: tuple[_Queue, float] | None,
    ) -> tuple[Indices, Array, Array]:
        """Return the open cells that come first, in order, with their times and weights: one more than can be taken.

        `early` has those that come until some time. Where they do not suffice, the others wait from then on: what is
        exponential does not remember how long it has waited.
        """
        n = self.shape[1]
        found, begin = early or (_Queue(money + ROUNDING * self.budget, most), 0.0)
        come = found.first() if begin else None
        if come is not None and np.isfinite(found.limit):
            return come
        gone = _none() if come is None else np.sort(come[0])
        for rows in self.row_blocks(CACHED):
            w = weight(rows)
            times = self.rng.standard_exponential((len(rows), n))
            with np.errstate(divide="ignore"):
                times /= w
            times += begin
            low, high = np.searchsorted(gone, (rows[0] * n, (rows[-1] + 1) * n))
            times.ravel()[gone[low:high] - rows[0] * n] = np.inf
            i, j = np.nonzero((times < found.limit) & self.is_open(rows))
            each = (np.broadcast_to(x, times.shape)[i, j] for x in (w, self.line_price(rows)))
            found.add(rows[i] * n + j, times[i, j], *each)
        return found.first()

    def _arrivals(self, money: float, most: int | None) -> tuple[_Queue, float] | None:
        """Return the open cells that come until some time, drawn by 1 / price, and that time; None where they are many.

        A cell waits for the first arrival of its own Poisson process. Where prices are alike along rows or columns a
        line has one process for all of its cells: their number by chance, each at a random time in a random cell.
        All of them are drawn in the order of their times.
        """
        (m, n), price = self.shape, self.prices.modes.get("entry")
        if not (isinstance(price, np.ndarray) and _covers(price, m, n)):
            return None
        grid = np.atleast_2d(price)
        if min(grid.shape) > 1 or not self.all_open:
            return None
        lines = grid.ravel()
        length = m * n // len(lines)
        arrivals = length * float(np.sum(1.0 / lines))  # of all cells in a unit of time
        useful = max(1.0 - len(self.taken) / (m * n), FEW)
        until = (
            AMPLE * money / (m * n * useful)
        )  # an arrival pays its price: one a cell and unit of time
        if most is not None:
            until = min(until, AMPLE * (most + 1) / (useful * arrivals))
        if until * arrivals > FEW * m * n:
            return None
        each = self.rng.poisson(until * length / lines)
        line = self.rng.permutation(np.repeat(np.arange(len(lines)), each))
        place = self.rng.integers(length, size=len(line))
        # so many random times in order: waiting times one after the other, as parts of their sum
        waited = np.cumsum(self.rng.standard_exponential(len(line) + 1))
        times = until * waited[:-1] / waited[-1]
        cells = line * n + place if grid.shape[1] == 1 else place * n + line
        first = self._first_open(cells)
        price = lines[line[first]]
        found = _Queue(money + ROUNDING * self.budget, most)
        found.add(cells[first], times[first], 1.0 / price, price)
        return found, until

    def _first_open(self, cells: Indices) -> Indices:
        """Return the places of cells that were not taken, of each the first."""
        (m, n), count = self.shape, len(self.taken) + len(cells)
        if count <= small.SMALL or SPARSE * count < m * n:
            first = np.sort(np.unique(cells, return_index=True)[1])
            return np.asarray(first[~among(self.taken, cells[first])[0]])
        from entrywise.linalg._jit_words import first_without

        low, high = np.searchsorted(self.taken, (0, m * n))
        return np.asarray(first_without(self.taken[low:high], cells, m * n))

    def _draw_evenly(self, money: float, most: int | None) -> tuple[Indices, Array]:
        """Return open cells drawn evenly at one price for all, without looking at every cell."""
        m, n = self.shape
        free = self._free()
        count = int(min(free, (money + ROUNDING * self.budget) / self.cheapest()))
        if most is not None:
            count = min(count, most)
        if count <= 0:
            return np.zeros(0, np.int64), np.zeros(0)
        found = np.zeros(0, np.int64)
        if 2 * count > free or 50 * free < m * n:  # few are left: list them
            open_ = [rows[0] * n + np.flatnonzero(self.is_open(rows)) for rows in self.row_blocks()]
            found = self.rng.permutation(np.concatenate(open_))
        while len(found) < count:
            tries = int(1.2 * (count - len(found)) * m * n / free) + 10
            some = np.r_[found, self.rng.integers(m * n, size=tries)]
            if self.available is not None:
                some = some[self.available[some // n, some % n]]
            found = some[self._first_open(some)]
        return found[:count], np.full(count, count / free)

    def _free(self) -> int:
        """Return how many cells may still be bought."""
        m, n = self.shape
        if self.available is None:
            return m * n - len(self.taken)
        inside = self.available[self.taken // n, self.taken % n]
        return int(np.count_nonzero(self.available)) - int(np.count_nonzero(inside))

    def add(self, cells: Indices, answers: Array) -> None:
        """Keep answers; failed ones (NaN) are taken too, and never asked again."""
        good = ~np.isnan(answers)
        n = self.shape[1]
        self.rows = np.r_[self.rows, cells[good] // n]
        self.cols = np.r_[self.cols, cells[good] % n]
        self.values = np.r_[self.values, answers[good]]
        self.taken = np.sort(np.r_[self.taken, cells])

    def starting_money(self) -> float:
        """Return what first cells of lines may still cost."""
        return STARTING * (self.left + self.started) - self.started

    def first_cells(self) -> Indices:
        """Return a few cells of every line that has fewer, from its cheapest tenth, for at most half the money.

        What was spent on first cells before counts.
        """
        money = self.starting_money()
        if money < self.cheapest():
            return _none()
        m, n = self.shape
        by_row = np.diff(np.searchsorted(self.taken, n * np.arange(m + 1)))
        places = np.repeat(n * np.arange(m), by_row)
        by_col = np.bincount(np.subtract(self.taken, places, out=places), minlength=n)
        chosen: list[int] = []
        for i in self.rng.permutation(np.flatnonzero(by_row < PER_LINE)):
            row = np.array([i])
            places = np.flatnonzero(self.is_open(row)[0])
            for j in self.cheap(places, self.price(row)[0], PER_LINE - int(by_row[i])):
                chosen.append(int(i) * n + int(j))
                by_col[j] += 1
        for j in np.flatnonzero(by_col < PER_LINE):
            places = self._open_in_column(int(j), chosen)
            price = self.prices.of("entry", np.arange(m), np.full(m, j))
            few = self.cheap(places, price, PER_LINE - int(by_col[j]))
            chosen += [int(i) * n + int(j) for i in few]
        cells = self.rng.permutation(np.array(chosen, np.int64))
        return np.asarray(cells[np.cumsum(self.price_of(cells)) <= money])

    def _open_in_column(self, j: int, chosen: list[int]) -> Indices:
        """Return the rows whose cell in column j may be bought and was not chosen."""
        m, n = self.shape
        if self.col_open is not None and not self.col_open[j]:
            return _none()
        cells = np.arange(m) * n + j
        free = ~np.isin(cells, self.taken) & ~np.isin(cells, chosen)
        if self.available is not None:
            free &= self.available[:, j]
        if self.row_open is not None:
            free &= self.row_open
        return np.flatnonzero(free)

    def cheap(self, places: Indices, price: Array, count: int) -> Indices:
        """Return so many of a line's places at random, from the cheapest tenth where prices differ."""
        if len(places) <= count:
            return places
        few = places[np.argsort(price[places], kind="stable")]
        if price[places].max() > price[places].min():
            few = few[: max(count, -(-len(few) // CHEAPEST))]
        return np.asarray(self.rng.choice(few, size=count, replace=False))


def among(ordered: Indices, cells: Indices) -> tuple[NDArray[np.bool_], Indices]:
    """Tell which cells are in an ordered list, and return their places in it."""
    if not len(ordered):
        return np.zeros(len(cells), bool), np.zeros(len(cells), np.int64)
    at = np.minimum(np.searchsorted(ordered, cells), len(ordered) - 1)
    return ordered[at] == cells, at


def _by_arm(table: History) -> Callable[[str], NDArray[np.bool_]]:
    """Return a function that tells which lines are of an arm: whole words are compared where their initials are right."""
    arms = np.ascontiguousarray(table.arm)
    width = arms.dtype.itemsize // 4  # characters
    initials = np.ascontiguousarray(arms.view(np.uint32)[::width])

    def is_of(arm: str) -> NDArray[np.bool_]:
        found = np.asarray(initials == ord(arm[0]))
        found[found] = arms[found] == arm
        return found

    return is_of


def see_purchase(
    shape: tuple[int, int],
    prices: Prices | None,
    budget: float,
    available: Any,
    rng: np.random.Generator,
    situation: Situation,
) -> Purchase:
    """Return a purchase as a step sees it, or refuse its parameters."""
    if len(tuple(shape)) != 2 or min(shape) < 1:
        raise ParameterError(f"shape must be two numbers above 0, got {shape}")
    if budget is None or not (np.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget must be finite and not below 0, got {budget}")
    mask = None
    if available is not None:
        mask = np.asarray(available, dtype=bool)
        if mask.shape != tuple(shape):
            raise ParameterError(
                f"available must say for each of {shape} cells whether it may be bought, got shape {mask.shape}"
            )
        if not mask.any():
            raise DataError("available allows no cell to be bought; allow some")
    size = (int(shape[0]), int(shape[1]))
    found = Purchase(size, prices or Prices(), float(budget), mask, rng)
    found.see(situation)
    return found


def _covers(prices: Array, m: int, n: int) -> bool:
    """Tell whether prices broadcast to exactly the m x n cells: one a row, one a column, or one each."""
    grid = np.atleast_2d(prices)
    return grid.shape[0] in (1, m) and grid.shape[1] in (1, n)


class _Queue:
    """Cells that wait their time, and those of them that come before the money or their number is used up."""

    def __init__(self, money: float, most: int | None) -> None:
        self.money, self.most = money, most
        self.limit = np.inf  # cells of later times come too late
        self.parts: list[tuple[Indices, Array, Array, Array]] = []
        self.count = self.enough = 0

    def add(self, cells: Indices, times: Array, weights: Array, prices: Array) -> None:
        """Take cells in; those that come too late are let go from time to time."""
        self.parts.append((cells, times, weights, prices))
        self.count += len(cells)
        if self.count > 2 * self.enough + CACHED:
            self._cut()

    def first(self) -> tuple[Indices, Array, Array]:
        """Return cells, times and weights of those that come in time, in order, and of one more."""
        self._cut()
        cells, times, weights, _ = self.parts[0]
        return cells, times, weights

    def _cut(self) -> None:
        columns = [np.concatenate(part) for part in zip(*self.parts, strict=True)]
        times, prices = columns[1], columns[3]
        total = len(times)
        take = int(min(total, self.money * total / max(float(prices.sum()), 1e-300)))
        take = take if self.most is None else min(take, self.most)
        while True:
            take = min(total, 2 * take + 100)
            near = np.arange(total)
            if take < total:
                near = np.argpartition(times, take - 1)[:take]
            in_order = bool(np.all(times[near][1:] >= times[near][:-1]))
            order = near if in_order else near[np.argsort(times[near])]
            paid = int(np.searchsorted(np.cumsum(prices[order]), self.money, side="right"))
            paid = paid if self.most is None else min(paid, self.most)
            if paid < take or take == total:
                break
        order = order[: paid + 1]
        if paid < total:
            self.limit = float(times[order[-1]])
        self.parts = [(columns[0][order], times[order], columns[2][order], prices[order])]
        self.count = self.enough = len(order)
