"""What a rule that buys cell by cell keeps: what is bought, what it cost, what is hidden in reserve.

Cells are coded as ``i * n + j``. Nothing of size m x n is kept; cells are looked at in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.queries import Asking, Batch, Prices
from entrywise.types import Array, Indices

BLOCK = 1 << 21  # cells looked at at once
ROUNDING = 1e-9  # share of the budget by which sums of prices may be off
RESERVED = 0.2  # largest chance of a cell to be in the reserve: the rest must stay for the rule
OVERDRAWN = 1.2  # times its money that the reserve, which is drawn by chance, may cost
CHEAPEST = 10  # of a line's cells, one in so many is cheap
NAMES = ("rows", "cols", "values", "taken", "hidden", "hidden_values", "hidden_chance")


@dataclass
class Purchase:
    """The state of a purchase over an m x n matrix."""

    shape: tuple[int, int]
    prices: Prices
    budget: float
    available: NDArray[np.bool_] | None
    rng: np.random.Generator
    rows: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    cols: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Array = field(default_factory=lambda: np.zeros(0))
    taken: Indices = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # sorted; failed ones too, hidden ones not
    spent: float = 0.0
    hidden: Indices = field(default_factory=lambda: np.zeros(0, np.int64))  # sorted
    hidden_values: Array = field(default_factory=lambda: np.zeros(0))
    hidden_chance: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def left(self) -> float:
        """Money not spent yet."""
        return self.budget - self.spent

    @property
    def observations(self) -> Observations:
        """What may be fitted: bought, and not hidden."""
        return Observations.from_triplets(
            self.rows, self.cols, self.values, self.shape, duplicates="keep"
        )

    def price(self, rows: Indices) -> Array:
        """Return the prices of whole rows, shape (len(rows), n)."""
        n = self.shape[1]
        flat = self.prices.modes.get("entry")
        if isinstance(flat, float):
            return np.broadcast_to(flat, (len(rows), n))
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
        return min(float(self.price(rows).min()) for rows in self.row_blocks())

    def affordable(self, money: float) -> int:
        """Return how many cells the money could pay at most."""
        return int(min(money / self.cheapest(), self.shape[0] * self.shape[1]))

    def is_open(self, rows: Indices) -> NDArray[np.bool_]:
        """Tell which cells of whole rows may be bought; hidden ones look open."""
        n, first = self.shape[1], rows[0]
        if self.available is None:
            found = np.ones((len(rows), n), dtype=bool)
        else:
            found = self.available[rows].copy()
        low, high = np.searchsorted(self.taken, (first * n, (rows[-1] + 1) * n))
        taken = self.taken[low:high]
        if rows[-1] - first == len(rows) - 1:  # one after the other
            found.ravel()[taken - first * n] = False
            return found
        place = np.full(rows[-1] - first + 1, -1)
        place[rows - first] = np.arange(len(rows))
        at = place[taken // n - first]
        found[at[at >= 0], (taken % n)[at >= 0]] = False
        return found

    def row_blocks(self) -> list[Indices]:
        """Return the rows in blocks."""
        m, n = self.shape
        step = max(1, BLOCK // n)
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
        if weight is None and isinstance(self.prices.modes.get("entry"), float):
            return self._draw_evenly(money, most)
        weight = weight or (lambda rows: 1.0 / self.price(rows))
        cells, times, weights = self._waiting(weight, money, most)
        fits = np.cumsum(self.price_of(cells)) <= money + ROUNDING * self.budget
        count = int(np.argmin(fits)) if not fits.all() else len(cells)
        count = count if most is None else min(count, most)
        if count == 0:
            return cells[:0], weights[:0]
        until = times[count] if count < len(times) else np.inf
        return cells[:count], -np.expm1(-weights[:count] * until)

    def _waiting(
        self, weight: Callable[[Indices], Array], money: float, most: int | None
    ) -> tuple[Indices, Array, Array]:
        """Return the open cells that come first, in order, with their times and weights: one more than can be taken."""
        cells, times, weights = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        cheapest = np.inf
        for rows in self.row_blocks():
            w = np.where(self.is_open(rows), weight(rows), 0.0).ravel()
            at = np.flatnonzero(w > 0)
            if not len(at):
                continue
            new = rows[0] * self.shape[1] + at
            cells = np.r_[cells, new]
            times = np.r_[times, self.rng.standard_exponential(len(at)) / w[at]]
            weights = np.r_[weights, w[at]]
            cheapest = min(cheapest, float(self.price_of(new).min()))
            limit = max(1, money / cheapest) if most is None else most
            keep = int(min(len(cells), limit)) + 1
            if len(cells) > 2 * keep:
                part = np.argpartition(times, keep - 1)[:keep]
                cells, times, weights = cells[part], times[part], weights[part]
        order = np.argsort(times, kind="stable")
        return cells[order], times[order], weights[order]

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
            some = some[~_among(self.taken, some)[0]]
            found = some[np.sort(np.unique(some, return_index=True)[1])]
        return found[:count], np.full(count, count / free)

    def _free(self) -> int:
        """Return how many cells may still be bought."""
        m, n = self.shape
        if self.available is None:
            return m * n - len(self.taken)
        inside = self.available[self.taken // n, self.taken % n]
        return int(np.count_nonzero(self.available)) - int(np.count_nonzero(inside))

    def buy(
        self, cells: Indices, arm: str | NDArray[np.str_], chance: Array | None = None
    ) -> Asking[None]:
        """Ask for cells in one batch; those in the hidden reserve are handed over and cost nothing."""
        chance = np.ones(len(cells)) if chance is None else chance
        arms = np.broadcast_to(np.asarray(arm), (len(cells),))
        known, at = _among(self.hidden, cells)
        answers = np.empty(len(cells))
        answers[known] = self.hidden_values[at[known]]
        ask = cells[~known]
        if len(ask):
            i, j = np.divmod(ask, self.shape[1])
            answers[~known] = yield Batch(i, j, arm=arms[~known], probability=chance[~known])
            self.spent += float(self.price_of(ask).sum())
        if known.any():
            self._reveal(at[known])
        self.add(cells, answers)

    def _reveal(self, places: Indices) -> None:
        """Take cells out of the hidden reserve."""
        stay = np.ones(len(self.hidden), bool)
        stay[places] = False
        self.hidden, self.hidden_values = self.hidden[stay], self.hidden_values[stay]
        self.hidden_chance = self.hidden_chance[stay]

    def add(self, cells: Indices, answers: Array) -> None:
        """Keep answers; failed ones (NaN) are taken too, and never asked again."""
        good = ~np.isnan(answers)
        n = self.shape[1]
        self.rows = np.r_[self.rows, cells[good] // n]
        self.cols = np.r_[self.cols, cells[good] % n]
        self.values = np.r_[self.values, answers[good]]
        self.taken = np.sort(np.r_[self.taken, cells])

    def set_aside(self, share: float) -> Asking[None]:
        """Buy the blind reserve: cells drawn before anything is known, with chance min(.2, c / sqrt(price)).

        Of all powers of the price this one makes the reserve worth most equally weighted cells for its money: with
        chances c p^-a that is N^2 money / (sum p^a sum p^(1-a)), largest at a = 1/2 (Cauchy-Schwarz).
        """
        money = share * self.budget
        c = self._reserve_constant(money)
        cells, chances = [], []
        for rows in self.row_blocks():
            p = np.where(self.is_open(rows), _reserve_chance(c, self.price(rows)), 0.0)
            at = np.flatnonzero(self.rng.random(p.shape) < p)
            cells.append(rows[0] * self.shape[1] + at)
            chances.append(p.ravel()[at])
        chosen, chance = np.concatenate(cells), np.concatenate(chances)
        order = self.rng.permutation(len(chosen))
        bill = np.cumsum(self.price_of(chosen[order]))
        most = min(OVERDRAWN * money, self.left)
        order = np.sort(order[: int(np.searchsorted(bill, most, side="right"))])
        chosen, chance = chosen[order], chance[order]
        if not len(chosen):
            return
        i, j = np.divmod(chosen, self.shape[1])
        answers = yield Batch(i, j, arm=np.full(len(chosen), "reserve"), probability=chance)
        self.spent += float(self.price_of(chosen).sum())
        good = ~np.isnan(answers)
        self.taken = np.sort(np.r_[self.taken, chosen[~good]])
        self.hidden, self.hidden_chance = chosen[good], chance[good]
        self.hidden_values = np.array(answers)[good]

    def _reserve_constant(self, money: float) -> float:
        """Return the c at which a reserve is expected to cost `money`, by bisection."""
        low, high = 0.0, 1.0
        while self._expected(high) < money and high < 1e300:
            high *= 4.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._expected(middle) < money else (low, middle)
        return high

    def _expected(self, c: float) -> float:
        """Return what a reserve with this constant is expected to cost."""
        total = 0.0
        for rows in self.row_blocks():
            price = self.price(rows)
            total += float((_reserve_chance(c, price) * price * self.is_open(rows)).sum())
        return total

    def first_cells(self, per_line: int = 2) -> Indices:
        """Return a few cells of every row and column, from the cheapest tenth of each, for at most half the money."""
        m, n = self.shape
        chosen: list[int] = []
        col_counts = np.zeros(n, np.int64)
        for i in self.rng.permutation(m):
            row = np.array([i])
            places = np.flatnonzero(self.is_open(row)[0])
            for j in self.cheap(places, self.price(row)[0], per_line):
                chosen.append(int(i) * n + int(j))
                col_counts[j] += 1
        have = set(chosen)
        every = np.arange(m)
        for j in np.flatnonzero(col_counts < per_line):
            cells = every * n + j
            free = ~np.isin(cells, self.taken) & np.array([c not in have for c in cells.tolist()])
            if self.available is not None:
                free &= self.available[:, j]
            price = self.prices.of("entry", every, np.full(m, j))
            few = self.cheap(np.flatnonzero(free), price, per_line - int(col_counts[j]))
            chosen += [int(i) * n + int(j) for i in few]
        cells = self.rng.permutation(np.array(chosen, np.int64))
        if not len(cells):
            return cells
        return np.asarray(cells[np.cumsum(self.price_of(cells)) <= 0.5 * self.left])

    def cheap(self, places: Indices, price: Array, count: int) -> Indices:
        """Return so many of a line's places at random, from the cheapest tenth where prices differ."""
        if len(places) <= count:
            return places
        few = places[np.argsort(price[places], kind="stable")]
        if price[places].max() > price[places].min():
            few = few[: max(count, -(-len(few) // CHEAPEST))]
        return np.asarray(self.rng.choice(few, size=count, replace=False))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays, for a checkpoint."""
        return {name: getattr(self, name) for name in NAMES} | {"spent": np.array(self.spent)}

    def restore(self, arrays: Any) -> None:
        """Take back the state that :meth:`arrays` gave."""
        for name in NAMES:
            setattr(self, name, arrays[name].copy())
        self.spent = float(arrays["spent"])


def _among(ordered: Indices, cells: Indices) -> tuple[NDArray[np.bool_], Indices]:
    """Tell which cells are in an ordered list, and return their places in it."""
    if not len(ordered):
        return np.zeros(len(cells), bool), np.zeros(len(cells), np.int64)
    at = np.minimum(np.searchsorted(ordered, cells), len(ordered) - 1)
    return ordered[at] == cells, at


def _reserve_chance(c: float, price: Array) -> Array:
    return np.minimum(RESERVED, c / np.sqrt(price))


def check_purchase(
    shape: tuple[int, int],
    prices: Prices | None,
    budget: float,
    available: Any,
    rng: np.random.Generator,
) -> Purchase:
    """Return a new purchase, or refuse its parameters."""
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
    return Purchase((int(shape[0]), int(shape[1])), prices or Prices(), float(budget), mask, rng)
