"""What every plan with two instruments shares: shapes, prices, noises and budget, read and refused in one place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np

from entrywise.exceptions import ParameterError
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

    def mean_prices(self) -> tuple[float, float]:
        """Return the mean price of a column and of an entry."""
        flat = self.flat_entry_price
        if flat is None:
            grid = np.divmod(
                np.linspace(0, self.m * self.n - 1, min(self.m * self.n, 100_000)).astype(np.int64),
                self.n,
            )
            flat = float(self.entry_prices(*grid).mean())
        return float(self.column_prices.mean()), flat


def affordable(prices: Array, money: float) -> int:
    """Return how many of the prices, in order, `money` pays for; round-off far below a cent is forgiven."""
    return int(np.searchsorted(np.cumsum(prices), money * (1 + 1e-12) + 1e-12, side="right"))


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
    shape: tuple[int, int], prices: Prices, noise: Noise, budget: float, name: str = "noisy_cur"
) -> TwoCost:
    """Return the setting, or refuse it in one line."""
    try:
        m, n = (int(x) for x in shape)
    except (TypeError, ValueError):
        raise ParameterError(f"shape of {name} must be two numbers, got {shape!r}") from None
    if m < 1 or n < 1:
        raise ParameterError(f"shape of {name} must be two numbers above 0, got {shape}")
    if not isinstance(prices, Prices):
        raise ParameterError(
            f"prices of {name} must be Prices(column=, entry=), got {type(prices).__name__}"
        )
    for mode, other in (("column", "entry"), ("entry", "column")):
        if mode not in prices.modes:
            raise ParameterError(
                f"{name} needs a price for {mode} beside that for {other}; give both"
            )
    if not isinstance(budget, Real) or not (math.isfinite(budget) and budget > 0):
        raise ParameterError(f"budget of {name} must be finite and above 0, got {budget!r}")
    column_noise, entry_noise = _noises(noise, name)
    found = TwoCost(m, n, prices, float(budget), column_noise, entry_noise)
    column, entry = found.mean_prices()
    if column > m * entry * (1 + 1e-12):
        raise ParameterError(
            f"a column must not cost more than its {m} entries ({m * entry:g}), got {column:g}; buy entries alone, "
            "with two_phase"
        )
    cheapest = min(float(found.column_prices.min()), entry)
    if budget < cheapest * (1 - 1e-12) and found.flat_entry_price is not None:
        raise ParameterError(
            f"budget of {name} must pay for one entry or column ({cheapest:g}), got {budget:g}"
        )
    if column_noise is not None and entry_noise is not None and column_noise < entry_noise:
        warnings.warn(
            f"noise of columns ({column_noise:g}) is below that of entries ({entry_noise:g}): columns dominate, "
            "entries serve only the columns that are not bought",
            stacklevel=1,  # a plan is started twice, and the same place warns once
        )
    return found


def _noises(noise: Noise, name: str) -> tuple[float | None, float | None]:
    if noise is None:
        return None, None
    if isinstance(noise, Mapping):
        strange = set(noise) - {"column", "entry"}
        if strange:
            raise ParameterError(
                f"noise of {name} has keys column and entry, got {', '.join(sorted(map(str, strange)))}"
            )
        given = (noise.get("column"), noise.get("entry"))
    else:
        given = (noise, noise)
    for mode, sd in zip(("column", "entry"), given, strict=True):
        if sd is not None and not (isinstance(sd, Real) and math.isfinite(sd) and sd >= 0):
            raise ParameterError(
                f"noise of {mode} is a standard deviation, finite and not below 0, got {sd!r}"
            )
    column, entry = (None if sd is None else float(sd) for sd in given)
    return column, entry
