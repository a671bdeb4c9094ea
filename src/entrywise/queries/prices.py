"""Prices: what a measurement costs, fixed before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import ParameterError
from entrywise.queries.batch import Batch
from entrywise.types import Array, Indices

Price: TypeAlias = float | Array | Callable[[Indices, Indices], ArrayLike]


@dataclass(frozen=True, init=False)
class Prices:
    """Quotes, fixed before asking: what one unit costs in each mode.

    A price is a number, anything that broadcasts to (m, n) ((m, 1) per row, (1, n) per column), or
    a function ``f(rows, cols)``. A unit of several positions is charged once, at its first position.

    >>> Prices(column=16).of("column", [0], [3])
    array([16.])
    """

    modes: Mapping[str, Price]

    def __init__(self, /, entry: Any = 1.0, column: Any = None, **others: Any) -> None:
        given = {"entry": entry, "column": column, **others}
        modes: dict[str, Price] = {}
        for mode, price in given.items():
            if price is None:
                continue
            if callable(price):
                modes[mode] = price
                continue
            array = _numbers(mode, price)
            if array.ndim > 2 or not np.all(np.isfinite(array)) or not np.all(array > 0):
                what = array.ravel()[~(np.isfinite(array) & (array > 0)).ravel()][:1]
                raise ParameterError(
                    f"the price of {mode} must be finite and above 0, got {float(what[0]) if len(what) else array.shape}"
                )
            modes[mode] = float(array) if array.ndim == 0 else array
        object.__setattr__(self, "modes", modes)

    def of(self, mode: str, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the price of a unit at each position, shape (b,)."""
        if mode not in self.modes:
            raise ParameterError(
                f"no price was given for {mode}; prices are known for {', '.join(self.modes)}: add {mode}="
            )
        rows, cols = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        price = self.modes[mode]
        if callable(price):
            found = np.broadcast_to(np.asarray(price(rows, cols), dtype=np.float64), rows.shape)
            if not np.all(np.isfinite(found) & (found > 0)):
                raise ParameterError(
                    f"the price of {mode} must be finite and above 0, its function gave {found.min()}"
                )
            return found
        if isinstance(price, float):
            return np.full(rows.shape, price)
        grid = price.reshape(1, -1) if price.ndim == 1 else price
        i = rows if grid.shape[0] > 1 else np.zeros_like(rows)
        j = cols if grid.shape[1] > 1 else np.zeros_like(cols)
        if len(rows) and (i.max() >= grid.shape[0] or j.max() >= grid.shape[1]):
            raise ParameterError(
                f"prices of {mode} have shape {price.shape}, entry ({rows.max()}, {cols.max()}) lies outside"
            )
        return np.asarray(grid[i, j])

    def of_instrument(self, mode: str) -> Prices:
        """Return the prices of one instrument alone, as those of entries.

        >>> Prices(judge=0.02, human=3.0).of_instrument("human").modes
        {'entry': 3.0}
        """
        if mode not in self.modes:
            raise ParameterError(
                f"no price was given for {mode}; prices are known for {', '.join(self.modes)}: add {mode}="
            )
        return Prices(self.modes[mode])

    def charges(self, batch: Batch, free: NDArray[np.bool_] | None = None) -> Array:
        """Return what each position of `batch` adds to the bill, shape (b,).

        A unit is charged at its first position that is not `free`, and not at all when there is none.
        """
        flat = self.modes.get(batch.mode)
        if batch.unit is None and isinstance(flat, float):  # no need to look where positions are
            return np.full(len(batch), flat) if free is None else np.where(free, 0.0, flat)
        price = self.of(batch.mode, batch.rows, batch.cols)
        if batch.unit is None:
            return price if free is None else np.where(free, 0.0, price)
        order = np.arange(len(batch)) if free is None else np.argsort(free, kind="stable")
        _, first = np.unique(batch.unit[order], return_index=True)
        first = order[first]  # each unit's first position that is not free, if it has one
        if free is not None:
            first = first[~free[first]]
        bill = np.zeros(len(batch))
        bill[first] = price[first]
        return bill

    def to_json(self) -> dict[str, Any]:
        """Return the prices as plain JSON; prices given by a function cannot be written down."""
        for mode, price in self.modes.items():
            if callable(price):
                raise ParameterError(
                    f"the price of {mode} is a function, which cannot be stored; give a number or an array"
                )
        return {
            mode: price.tolist() if isinstance(price, np.ndarray) else price
            for mode, price in self.modes.items()
        }

    @classmethod
    def from_json(cls, modes: Mapping[str, Any]) -> Prices:
        """Return the prices that :meth:`to_json` wrote."""
        return cls(**{"entry": None, **modes})


def _numbers(mode: str, price: Any) -> Array:
    """Return a price as an array of numbers, at least one."""
    try:
        array = np.asarray(price, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if not array.size:
        raise ParameterError(
            f"the price of {mode} must be a number or an array of them, got {price!r}"
        )
    return array
