"""What is known, was told, or is still out, as a table of measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.types import Array, Indices

# kind of each column of a history, and what stands in it where nothing was given
_COLUMNS: Mapping[str, tuple[type, Any]] = {
    "rows": (np.int64, None),
    "cols": (np.int64, None),
    "values": (np.float64, None),
    "mode": (np.str_, "entry"),
    "arm": (np.str_, ""),
    "unit": (np.int64, -1),
    "epoch": (np.int64, 0),
    "noise": (np.float64, np.nan),
    "probability": (np.float64, np.nan),
    "price": (np.float64, np.nan),
    "known": (np.bool_, False),
    "plate": (np.int64, -1),
}
_FILLED: Any = None


@dataclass(frozen=True, eq=False)
class History:
    """What is known, was told, or is still out: a table with one row a measurement, by columns.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (t,)
    values : ndarray of shape (t,)
        NaN where the measurement failed, or where it has not come yet.
    mode, arm : ndarray of str of shape (t,)
        The instrument; the rule that wanted the entry, "" where none is named.
    unit, plate, epoch : ndarray of int64 of shape (t,)
        What was bought together and what was measured together (-1: alone); the epoch of a study in
        which it was told.
    noise, probability, price : ndarray of shape (t,)
        Standard deviation, chance with which it was drawn, what was charged; NaN where nobody said.
    known : ndarray of bool of shape (t,)
        Known beforehand: neither bought nor part of a reserve. The others were told.

    Only ``rows``, ``cols`` and ``values`` must be given; the rest is filled in.
    """

    rows: Indices
    cols: Indices
    values: Array
    mode: NDArray[np.str_] = _FILLED
    arm: NDArray[np.str_] = _FILLED
    unit: Indices = _FILLED
    epoch: Indices = _FILLED
    noise: Array = _FILLED
    probability: Array = _FILLED
    price: Array = _FILLED
    known: NDArray[np.bool_] = _FILLED
    plate: Indices = _FILLED

    def __post_init__(self) -> None:
        size = np.atleast_1d(np.asarray(self.rows)).shape
        for name, (kind, otherwise) in _COLUMNS.items():
            given = getattr(self, name)
            column = np.full(size, otherwise) if given is None else np.atleast_1d(given)
            column = np.array(column, dtype=kind)
            if column.shape != size:
                raise ParameterError(
                    f"{name} of a history must have shape {size}, got {column.shape}"
                )
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> History:
        """Return some of its rows, by a mask, indices or a slice."""
        return History(**{f.name: getattr(self, f.name)[at] for f in fields(self)})

    def __add__(self, other: History) -> History:
        """Return the rows of both, one after the other."""
        both = {
            f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)])
            for f in fields(self)
        }
        return History(**both)

    @classmethod
    def empty(cls) -> History:
        """Return a table without rows."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    @classmethod
    def of(cls, known: Observations, mode: str = "entry") -> History:
        """Return observations as entries known beforehand, which cost nothing."""
        return cls(
            known.rows,
            known.cols,
            known.values,
            mode=np.full(len(known), mode),
            noise=known.noise_array(default=np.nan),
            price=np.zeros(len(known)),
            known=np.ones(len(known), bool),
        )

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return np.isnan(self.values)
