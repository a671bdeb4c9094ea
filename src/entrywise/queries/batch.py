"""A batch: entries wanted next, as a flat list of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import ParameterError
from entrywise.types import Array, Indices

# what a batch may say of each of its positions
_OPTIONAL: Mapping[str, type] = {
    "unit": np.int64,
    "arm": np.str_,
    "probability": np.float64,
    "expected": np.float64,
    "deviation": np.float64,
    "plate": np.int64,
    "well": np.str_,
}
REPEATS = (
    "control",
    "replicate",
)  # arms that measure an entry once more, whatever was asked before


@dataclass(frozen=True, eq=False)
class Batch:
    """Entries wanted next, as a flat list of measurements.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (b,)
        0-based positions. An entry listed k times is measured k times.
    mode : str
        The instrument that measures them; it has its own price.
    unit : ndarray of int64 of shape (b,), optional
        Positions with the same unit are bought together and charged once (a whole column, say).
    arm : ndarray of str of shape (b,), optional
        Which rule wanted the entry (greedy, explore, reserve, ...).
    probability : ndarray of shape (b,), optional
        Probability with which the rule drew the entry.
    expected, deviation : ndarray of shape (b,), optional
        What the plan expects as the answer, and the standard deviation of that guess.
    plate : ndarray of int64 of shape (b,), optional
        Positions on the same plate are measured together; each is paid by itself.
    well : ndarray of str of shape (b,), optional
        Where on its plate a position is measured: A01, ..., H12.
    report : mapping
        A few plain numbers and words about the moment of asking; stored with the step.
    """

    rows: Indices
    cols: Indices
    mode: str = "entry"
    unit: Indices | None = None
    arm: NDArray[np.str_] | None = None
    probability: Array | None = None
    expected: Array | None = None
    deviation: Array | None = None
    plate: Indices | None = None
    well: NDArray[np.str_] | None = None
    report: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows, cols = (np.asarray(x, dtype=np.int64) for x in (self.rows, self.cols))
        if rows.ndim != 1 or rows.shape != cols.shape:
            raise ParameterError(
                f"rows and cols of a Batch must be flat and equally long, got {rows.shape} and {cols.shape}"
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "cols", cols)
        for name, dtype in _OPTIONAL.items():
            given = getattr(self, name)
            if given is None:
                continue
            given = np.asarray(given, dtype=dtype)
            if given.shape != rows.shape:
                raise ParameterError(
                    f"{name} of a Batch must have one value a position, "
                    f"got {given.shape} for {len(rows)}"
                )
            object.__setattr__(self, name, given)

    @classmethod
    def empty(cls, **extra: Any) -> Batch:
        """Return a batch that asks for nothing."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), **extra)

    @classmethod
    def entries(cls, rows: ArrayLike, cols: ArrayLike, **extra: Any) -> Batch:
        """Return a batch of single entries."""
        return cls(
            np.atleast_1d(np.asarray(rows, np.int64)),
            np.atleast_1d(np.asarray(cols, np.int64)),
            **extra,
        )

    @classmethod
    def diagonal(cls, n: int) -> Batch:
        """Return the n diagonal entries."""
        return cls(np.arange(n), np.arange(n))

    @classmethod
    def column(cls, j: int, n: int) -> Batch:
        """Return the n entries of column j, each charged as an entry."""
        return Columns([j], n)

    @classmethod
    def columns(cls, cols: Iterable[int], n: int) -> Batch:
        """Return the entries of several columns, one column after the other, each charged as an entry."""
        return Columns(cols, n)

    @classmethod
    def whole_columns(cls, cols: Iterable[int], m: int, mode: str = "column") -> Batch:
        """Return whole columns as units: m positions each, charged once under `mode`."""
        cols = np.asarray(list(cols), np.int64)
        return cls(
            np.tile(np.arange(m), len(cols)),
            np.repeat(cols, m),
            mode,
            unit=np.repeat(np.arange(len(cols)), m),
        )

    @classmethod
    def block(cls, rows: ArrayLike, cols: ArrayLike) -> Batch:
        """Return all pairs of rows x cols, row by row."""
        rows, cols = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        return cls(np.repeat(rows, len(cols)), np.tile(cols, len(rows)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, positions: Any) -> Batch:
        """Return the batch at some positions only."""
        given = {name: getattr(self, name) for name in _OPTIONAL}
        picked = {name: x[positions] for name, x in given.items() if x is not None}
        return Batch(
            self.rows[positions], self.cols[positions], self.mode, report=self.report, **picked
        )

    def same_as(self, other: Batch) -> bool:
        """Tell whether two batches ask for the same measurements in the same order."""
        units = self.unit is None and other.unit is None
        if self.unit is not None and other.unit is not None:
            units = np.array_equal(self.unit, other.unit)
        return (
            self.mode == other.mode
            and units
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.cols, other.cols)
        )


class Columns(Batch):
    """Entries of whole columns, one column after the other: a batch that says so, for those who keep it or answer it.

    Parameters
    ----------
    which : ndarray of int64 of shape (b,)
    height : int
        Entries of a column. ``rows`` and ``cols`` of the batch are made when somebody looks, and not kept.
    """

    which: Indices
    height: int

    def __init__(self, which: Iterable[int], height: int) -> None:
        given = which if isinstance(which, np.ndarray) else list(which)
        object.__setattr__(self, "which", np.asarray(given, np.int64))
        object.__setattr__(self, "height", int(height))
        object.__setattr__(self, "report", {})

    @property
    def rows(self) -> Indices:
        """Row of each position."""
        return np.tile(np.arange(self.height), len(self.which))

    @property
    def cols(self) -> Indices:
        """Column of each position."""
        return np.repeat(self.which, self.height)

    def __len__(self) -> int:
        return self.height * len(self.which)

    def __getitem__(self, positions: Any) -> Batch:
        """Return the entries at some positions only; they remember the columns that they are of."""
        at = np.asarray(positions)
        if at.dtype.kind not in "iu" or at.ndim != 1 or at.min(initial=0) < 0:
            at = np.arange(len(self))[positions]
        return PartOfColumns(self, at)


class PartOfColumns(Batch):
    """Some entries of whole columns: an oracle that makes columns at once drops those that nobody asked for.

    Parameters
    ----------
    whole : Columns
    at : ndarray of int64 of shape (b,)
        Positions in ``whole``. ``rows`` and ``cols`` are made when somebody looks, and not kept.
    """

    whole: Columns
    at: Indices

    def __init__(self, whole: Columns, at: Indices) -> None:
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "report", whole.report)

    @property
    def rows(self) -> Indices:
        """Row of each position."""
        return np.asarray(self.at % self.whole.height)

    @property
    def cols(self) -> Indices:
        """Column of each position."""
        return np.asarray(self.whole.which[self.at // self.whole.height])

    def __len__(self) -> int:
        return len(self.at)
