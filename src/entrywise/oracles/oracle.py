"""What an oracle is: called with a batch, it returns one number a position."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrywise.queries import Batch
from entrywise.types import Array

Oracle = Callable[[Batch], Array]


class CountingOracle(abc.ABC):
    """An oracle that counts what it was asked: ``spent`` positions in ``calls`` batches."""

    def __init__(self) -> None:
        self.spent = 0
        self.calls = 0

    def __call__(self, batch: Batch) -> Array:
        """Return one number a position, and count them."""
        answers = self.answer(batch)
        self.spent += len(batch)
        self.calls += 1
        return answers

    @abc.abstractmethod
    def answer(self, batch: Batch) -> Array:
        """Return one number a position."""


class Names:
    """How rows and columns are called when somebody outside is asked: by labels, else by numbers."""

    def __init__(self, rows: Sequence[str] | None, cols: Sequence[str] | None) -> None:
        self.rows = None if rows is None else tuple(rows)
        self.cols = None if cols is None else tuple(cols)

    def __bool__(self) -> bool:
        return self.rows is not None or self.cols is not None

    def __call__(self, batch: Batch) -> list[tuple[Any, Any]]:
        """Return (row, col) of each position."""
        rows, cols = batch.rows.tolist(), batch.cols.tolist()
        if self.rows is not None:
            rows = [self.rows[i] for i in rows]
        if self.cols is not None:
            cols = [self.cols[j] for j in cols]
        return list(zip(rows, cols, strict=True))


class FunctionOracle(CountingOracle):
    """Answers by calling ``f(i, j)``, or ``f(rows, cols)`` on arrays with ``vectorized=True``.

    Where there are labels of rows or columns, the function is called with these instead of numbers.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        vectorized: bool = False,
        *,
        row_labels: Sequence[str] | None = None,
        col_labels: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self.f = f
        self.vectorized = vectorized
        self.names = Names(row_labels, col_labels)

    def answer(self, batch: Batch) -> Array:
        """Return what the function says, None standing for a failed measurement."""
        pairs = self.names(batch)
        if self.vectorized:
            rows, cols = batch.rows, batch.cols
            if self.names:
                rows, cols = (np.array(line) for line in zip(*pairs, strict=True))
            return np.asarray(self.f(rows, cols), dtype=np.float64)
        found = [self.f(row, col) for row, col in pairs]
        if any(x is None for x in found):
            return np.array(found, dtype=object)
        return np.array(found, dtype=np.float64)
