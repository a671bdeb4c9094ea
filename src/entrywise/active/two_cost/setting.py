"""What every plan with two instruments shares: shapes, prices, noises and budget, read and refused in one place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from entrywise.active.two_cost.constants import CELL, CENT, PRICE_POINTS
from entrywise.exceptions import AnswerError, ParameterError
from entrywise.linalg.units import ordinary
from entrywise.observations import SQUARED
from entrywise.queries import Prices
from entrywise.types import Array, Indices

Noise = Mapping[str, float | None] | float | None


@dataclass(frozen=True, eq=False)
class TwoCost:
    """A cheap noisy way to see whole columns, a dear precise way to see single entries, and one budget.

    ``column_noise`` and ``entry_noise`` are standard deviations, None where unknown.
    """

    m: int
    n: int
    prices: Prices
    budget: float
    column_noise: float | None
    entry_noise: float | None

    @property
    def column_prices(self) -> Array:
        """Price of each column, shape (n,)."""
        return self.prices.of("column", np.zeros(self.n, np.int64), np.arange(self.n))

    @property
    def flat_entry_price(self) -> float | None:
        """Price of an entry where it is one number for all."""
        price = self.prices.modes["entry"]
        return price if isinstance(price, float) else None

    def entry_prices(self, rows: Indices, cols: Indices) -> Array:
        """Price of each entry, shape (len(rows),)."""
        return self.prices.of("entry", rows, cols)

    def in_unit(self, unit: float) -> TwoCost:
        """Return the setting with noises divided by a unit."""
        if unit == 1.0:
            return self
        noises = (self.column_noise, self.entry_noise)
        column, entry = (None if sd is None else sd / unit for sd in noises)
        return replace(self, column_noise=column, entry_noise=entry)

    def mean_prices(self) -> tuple[float, float]:
        """Return the mean price of a column and of an entry."""
        column = float(self.column_prices.mean())
        flat = self.flat_entry_price
        if flat is not None:
            return column, flat
        size = self.m * self.n
        at = np.linspace(0, size - 1, min(size, PRICE_POINTS)).astype(np.int64)
        return column, float(self.entry_prices(*np.divmod(at, self.n)).mean())


def affordable(prices: Array, money: float) -> int:
    """Return how many of the prices, in order, `money` pays for; round-off far below a cent is forgiven."""
    forgiven = min(CENT, 1e-6 * float(prices.min(initial=1.0)))  # less where prices are that small
    return int(np.searchsorted(np.cumsum(prices), money * (1 + CENT) + forgiven, side="right"))


def pays_for(money: float, price: float, most: float = math.inf) -> int:
    """Return how many things of one price `money` pays for, at most `most`."""
    return int(min(money / price + CELL, most))


def filled(table: Array) -> Array:
    """Return a copy with failed answers (NaN) replaced by the mean of their row, 0 where all failed."""
    table = np.array(table)
    gone = np.isnan(table)
    if gone.any():
        count = np.maximum((~gone).sum(axis=1), 1)
        mean = np.where(gone, 0.0, table).sum(axis=1) / count
        table[gone] = np.broadcast_to(mean[:, None], table.shape)[gone]
    return table


def read_two_cost(
    shape: tuple[int, int],
    prices: Prices,
    noise: Noise,
    budget: float,
    name: str = "noisy_cur",
) -> TwoCost:
    """Return the setting, or refuse it in one line."""
    m, n = _sizes(shape, name)
    _check_prices(prices, name)
    _check_budget(budget, name)
    column_noise, entry_noise = _noises(noise, name)
    found = TwoCost(m, n, prices, float(budget), column_noise, entry_noise)
    _check_bargain(found, name)
    if column_noise is not None and entry_noise is not None and column_noise < entry_noise:
        warnings.warn(
            f"noise of columns ({column_noise:g}) is below that of entries ({entry_noise:g}): columns dominate, "
            "entries serve only the columns that are not bought",
            stacklevel=1,  # a plan is started twice, and the same place warns once
        )
    return found


def _sizes(shape: tuple[int, int], name: str) -> tuple[int, int]:
    try:
        m, n = (int(x) for x in shape)
    except (TypeError, ValueError):
        raise ParameterError(f"shape of {name} must be two numbers, got {shape!r}") from None
    if m < 1 or n < 1:
        raise ParameterError(f"shape of {name} must be two numbers above 0, got {shape}")
    return m, n


def _check_prices(prices: Prices, name: str) -> None:
    if not isinstance(prices, Prices):
        raise ParameterError(
            f"prices of {name} must be Prices(column=, entry=), got {type(prices).__name__}"
        )
    for mode, other in (("column", "entry"), ("entry", "column")):
        if mode not in prices.modes:
            raise ParameterError(
                f"{name} needs a price for {mode} beside that for {other}; give both"
            )


def _check_budget(budget: float, name: str) -> None:
    if not isinstance(budget, Real) or not (math.isfinite(budget) and budget > 0):
        raise ParameterError(f"budget of {name} must be finite and above 0, got {budget!r}")
    check_ordinary(budget, f"budget of {name}", "count money in another unit")


def _check_bargain(setting: TwoCost, name: str) -> None:
    """Refuse prices at which one of the instruments is of no use, or nothing can be paid."""
    column, entry = setting.mean_prices()
    m, budget = setting.m, setting.budget
    for mode, price in (("column", column), ("entry", entry)):
        check_ordinary(price, f"price of {mode}", "count money in another unit")
    if column > m * entry * (1 + CENT):
        raise ParameterError(
            f"a column must not cost more than its {m} entries ({m * entry:g}), got {column:g}; buy entries alone, "
            "with two_phase"
        )
    cheapest = min(float(setting.column_prices.min()), entry)
    if budget < cheapest * (1 - CENT) and setting.flat_entry_price is not None:
        raise ParameterError(
            f"budget of {name} must pay for one entry or column ({cheapest:g}), got {budget:g}"
        )


def _noises(noise: Noise, name: str) -> tuple[float | None, float | None]:
    """Return the standard deviations of columns and entries, None where unknown."""
    if noise is None:
        return None, None
    if not isinstance(noise, Mapping):
        sd = _deviation(noise, "column")
        return sd, sd
    strange = set(noise) - {"column", "entry"}
    if strange:
        raise ParameterError(
            f"noise of {name} has keys column and entry, got {', '.join(sorted(map(str, strange)))}"
        )
    return _deviation(noise.get("column"), "column"), _deviation(noise.get("entry"), "entry")


def _deviation(sd: float | None, mode: str) -> float | None:
    if sd is None:
        return None
    if not (isinstance(sd, Real) and math.isfinite(sd) and sd >= 0):
        raise ParameterError(
            f"noise of {mode} is a standard deviation, finite and not below 0, got {sd!r}"
        )
    low, high = SQUARED
    if sd > 0 and not low <= sd <= high:
        raise ParameterError(
            f"noise of {mode} must be between {low:g} and {high:g}, since variances are squares, got {sd:g}; count the "
            "answers in another unit, or say 0"
        )
    return float(sd)


def check_ordinary(number: float, what: str, mend: str) -> None:
    """Refuse a number above 0 whose square or quotient may leave floating point."""
    if not ordinary(number):
        raise ParameterError(f"{what} must be between 1e-100 and 1e100, got {number:g}; {mend}")


def check_size(left: Array, right: Array) -> None:
    """Refuse factors whose product may leave floating point."""
    with np.errstate(over="ignore"):
        most = np.abs(left).max(initial=0.0) * np.abs(right).sum(axis=1).max(initial=0.0)
    if not np.isfinite(most):
        raise AnswerError(
            "the completed matrix must stay below 1e308, these answers lead beyond; count them in another unit"
        )
