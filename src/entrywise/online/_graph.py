"""Memory of the exponentiated-gradient learners: a graph of updates, rows and columns named as they appear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.lanczos import LOG, GrowingExponential
from entrywise.online._learner import Signs
from entrywise.types import Array, Indices


class Graph:
    """A :class:`GrowingExponential` addressed by rows and columns of any size.

    Vertices are numbered in the order in which rows and columns are first learnt, so that nothing depends
    on a declared shape.
    """

    def __init__(self, exponential: GrowingExponential) -> None:
        self.exponential = exponential
        self._ids: tuple[dict[int, int], dict[int, int]] = ({}, {})  # rows, columns -> vertex

    @property
    def length(self) -> int:
        """Events so far: updates, and first sights."""
        return self.exponential.events

    @property
    def n_rows(self) -> int:
        """Rows learnt so far."""
        return len(self._ids[0])

    @property
    def n_cols(self) -> int:
        """Columns learnt so far."""
        return len(self._ids[1])

    def vertices(self, rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
        """Return the vertices of known rows and columns; 0 and 1 stand for unknown ones."""
        if len(rows) == 1:
            u = self._ids[0].get(int(rows[0]), 0)
            v = self._ids[1].get(int(cols[0]), 1)
            return np.array([u]), np.array([v])
        found = []
        for side, given in enumerate((rows, cols)):
            names, inverse = np.unique(given, return_inverse=True)
            ids = np.array([self._ids[side].get(name, side) for name in names.tolist()], np.int64)
            found.append(ids[inverse] if len(ids) else np.zeros(0, np.int64))
        return found[0], found[1]

    def signs(self, rows: Indices, cols: Indices) -> Signs:
        """Return the predictions, shape (b,)."""
        return self.exponential.signs(*self.vertices(rows, cols))

    def values(self, rows: Indices, cols: Indices) -> Array:
        """Return what the prediction is the sign of, shape (b,)."""
        return self.exponential.values(*self.vertices(rows, cols))

    def follow(self, rows: Indices, cols: Indices, labels: Signs) -> Signs:
        """Predict and learn trial by trial; return the predictions."""
        fresh = np.zeros(2 * len(rows), np.int8)
        for name, side, at in _in_order(rows, cols):
            if name not in self._ids[side]:
                self._ids[side][name] = 2 + self.n_rows + self.n_cols
                fresh[at] = 1
        us, vs = self.vertices(rows, cols)
        return self.exponential.follow(us, vs, labels, fresh[::2] + fresh[1::2])

    def copy(self, length: int) -> Graph:
        """Return a new graph as this one was after its first `length` events."""
        new = Graph(self.exponential.copy(length))
        last = new.exponential.n_vertices + 1
        for mine, theirs in zip(new._ids, self._ids, strict=True):
            mine.update((name, w) for name, w in theirs.items() if w <= last)
        return new

    def arrays(self, length: int) -> dict[str, NDArray[Any]]:
        """Return the first `length` events, and the names of the vertices in their order."""
        log = self.exponential.log(length)
        last = int(max(log["u"].max(initial=1), log["v"].max(initial=1)))
        names = np.zeros((last - 1, 2), np.int64)  # (side, name) of vertex k + 2
        for side in (0, 1):
            for name, w in self._ids[side].items():
                if w <= last:
                    names[w - 2] = side, name
        return {**log, "names": names}

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Fill an empty graph with what :meth:`arrays` returned."""
        for w, (side, name) in enumerate(arrays["names"].tolist()):
            self._ids[side][name] = w + 2
        self.exponential.replay({k: arrays[k] for k in LOG if k in arrays})


def _in_order(rows: Indices, cols: Indices) -> list[tuple[int, int, int]]:
    """Return (name, side, place) of every row and column of a stream in the order in which they appear."""
    if len(rows) == 1:
        return [(int(rows[0]), 0, 0), (int(cols[0]), 1, 1)]
    both = []
    for side, given in enumerate((rows, cols)):
        names, first = np.unique(given, return_index=True)
        both += [(int(n), side, 2 * int(t) + side) for n, t in zip(names, first, strict=True)]
    return sorted(both, key=lambda x: x[2])
