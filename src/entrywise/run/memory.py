"""What a run remembers: answers given before, found again by mode, row and column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

_SHIFT = 31  # bits of a column in the key of an entry


def entry_keys(symmetric: bool, rows: Indices, cols: Indices) -> Indices:
    """Return one number an entry, the same for (i, j) and (j, i) where these are one."""
    if symmetric:
        rows, cols = np.minimum(rows, cols), np.maximum(rows, cols)
    return np.asarray((rows << _SHIFT) | cols)


class Memory:
    """What was answered before, by (mode, row, col).

    Whole columns stay the arrays they came in: nothing is copied or sorted. Other entries are kept in sorted
    chunks, merged as they grow: adding is amortised O(log) and looking up is a binary search in few chunks, in
    arrays of 16 bytes an entry, so that millions of answers stay cheap.
    """

    def __init__(self, symmetric: bool) -> None:
        self.symmetric = symmetric
        self._chunks: dict[str, list[tuple[Indices, Array]]] = {}
        self._columns: dict[str, dict[int, Array]] = {}

    def _keys(self, rows: Indices, cols: Indices) -> Indices:
        return entry_keys(self.symmetric, rows, cols)

    def add(
        self, mode: str, rows: Indices, cols: Indices, values: Array, *, failed: bool = False
    ) -> None:
        """Remember answers, with `failed` the NaN too; of an entry listed twice the last one stays."""
        good = np.ones(len(values), bool) if failed else ~np.isnan(values)
        if not good.any():
            return
        keys, values = self._keys(rows[good], cols[good]), values[good]
        chunks = self._chunks.setdefault(mode, [])
        order = np.argsort(keys, kind="stable")
        chunk = (keys[order], values[order])
        while chunks and len(chunks[-1][0]) <= 2 * len(chunk[0]):
            older = chunks.pop()
            keys = np.concatenate([older[0], chunk[0]])
            order = np.argsort(keys, kind="stable")
            chunk = (keys[order], np.concatenate([older[1], chunk[1]])[order])
        chunks.append(chunk)

    def look_up(self, mode: str, rows: Indices, cols: Indices, out: Array) -> NDArray[np.bool_]:
        """Fill `out` where an answer is known and return where that is."""
        known = self._in_columns(mode, rows, cols, out)
        keys = self._keys(rows, cols)
        for sorted_keys, values in self._chunks.get(mode, ()):
            at = np.searchsorted(sorted_keys, keys, side="right") - 1
            hit = (at >= 0) & (sorted_keys[at] == keys)
            out[hit] = values[at[hit]]
            known |= hit
        return known

    def add_columns(self, mode: str, which: Indices, values: Array) -> None:
        """Remember whole columns, given as a (b, n) array, one a row, which is kept as it is."""
        columns = self._columns.setdefault(mode, {})
        for j, column in zip(which.tolist(), values, strict=True):
            columns[j] = column

    def look_up_columns(self, mode: str, which: Indices, out: Array) -> NDArray[np.bool_]:
        """Fill the (b, n) array `out`, one column a row, where an answer is known and return where that is.

        As :meth:`look_up`, at a cost that follows what is remembered instead of what is asked.
        """
        n = out.shape[1]
        known = np.zeros(out.shape, dtype=bool)
        columns = self._columns.get(mode, {})
        for k, j in enumerate(which.tolist()):
            if j in columns:
                column = columns[j][:n]
                out[k, : len(column)] = column
                known[k, : len(column)] = ~np.isnan(column)
        if self.symmetric and columns:
            self._crossing(columns, which, out, known)
        slot = _slots(which, n)
        for keys, values in self._chunks.get(mode, ()):
            rows, cols = keys >> _SHIFT, keys & ((1 << _SHIFT) - 1)
            pairs = [(rows, cols), (cols, rows)] if self.symmetric else [(rows, cols)]
            for i, j in pairs:
                at = np.flatnonzero((i < n) & (j < len(slot)))
                at = at[slot[j[at]] >= 0]
                out[slot[j[at]], i[at]] = values[at]
                known[slot[j[at]], i[at]] = True
        return known

    @staticmethod
    def _crossing(
        columns: dict[int, Array], which: Indices, out: Array, known: NDArray[np.bool_]
    ) -> None:
        """Fill the entries of the columns asked that lie in a row whose column is known."""
        n = out.shape[1]
        for i, column in columns.items():
            if i >= n:
                continue
            inside = np.flatnonzero(which < len(column))
            value = column[which[inside]]
            told = ~np.isnan(value)
            out[inside[told], i] = value[told]
            known[inside[told], i] = True

    def _in_columns(self, mode: str, rows: Indices, cols: Indices, out: Array) -> NDArray[np.bool_]:
        """Fill `out` from whole columns and return where that is."""
        known = np.zeros(len(rows), dtype=bool)
        columns = self._columns.get(mode)
        if not columns or not len(rows):
            return known
        names = np.fromiter(columns, np.int64, len(columns))
        slot = _slots(names, int(max(rows.max(), cols.max())) + 1)
        kept = list(columns.values())
        for i, j in [(rows, cols), (cols, rows)] if self.symmetric else [(rows, cols)]:
            at = np.flatnonzero(slot[j] >= 0)
            at = at[np.argsort(slot[j[at]], kind="stable")]
            ends = np.flatnonzero(np.diff(slot[j[at]])) + 1
            for part in np.split(at, ends) if len(at) else ():
                column = kept[slot[j[part[0]]]]
                part = part[i[part] < len(column)]
                value = column[i[part]]
                told = ~np.isnan(value)
                out[part[told]] = value[told]
                known[part[told]] = True
        return known

    def __len__(self) -> int:
        entries = sum(len(keys) for chunks in self._chunks.values() for keys, _ in chunks)
        return entries + sum(len(x) for kept in self._columns.values() for x in kept.values())


def _slots(names: Indices, size: int) -> Indices:
    """Return a table of where each number below `size` stands in `names`, -1 where it does not."""
    slot = np.full(size, -1)
    inside = names < size
    slot[names[inside]] = np.flatnonzero(inside)
    return slot


class Stock(Memory):
    """Answers in stock for a plan that wants fresh ones: each is handed out once, the oldest first."""

    def __init__(self, symmetric: bool) -> None:
        super().__init__(symmetric)
        # how many answers of each key are gone, at the key's first place
        self._used: dict[str, Indices] = {}

    def add(
        self, mode: str, rows: Indices, cols: Indices, values: Array, *, failed: bool = False
    ) -> None:
        """Put answers in stock, behind those that are there."""
        good = np.ones(len(values), bool) if failed else ~np.isnan(values)
        keys, values = self._keys(rows[good], cols[good]), values[good]
        for old_keys, old_values in self._chunks.get(mode, ()):
            first = np.searchsorted(old_keys, old_keys)
            left = np.arange(len(old_keys)) - first >= self._used[mode][first]
            keys, values = (
                np.concatenate([old_keys[left], keys]),
                np.concatenate([old_values[left], values]),
            )
        order = np.argsort(keys, kind="stable")
        self._chunks[mode] = [(keys[order], values[order])]
        self._used[mode] = np.zeros(len(keys), np.int64)

    def look_up(self, mode: str, rows: Indices, cols: Indices, out: Array) -> NDArray[np.bool_]:
        """Fill `out` where an answer is in stock, take it out, and return where that is."""
        known = np.zeros(len(rows), dtype=bool)
        keys = self._keys(rows, cols)
        for stock, values in self._chunks.get(mode, ()):
            order = np.argsort(keys, kind="stable")
            # how often the batch has asked for the same entry before
            nth = np.empty(len(keys), np.int64)
            nth[order] = np.arange(len(keys)) - np.searchsorted(keys[order], keys[order])
            first, last = np.searchsorted(stock, keys), np.searchsorted(stock, keys, side="right")
            some = last > first
            at = first.copy()
            at[some] += nth[some] + self._used[mode][first[some]]
            known = some & (at < last)
            out[known] = values[at[known]]
            np.add.at(self._used[mode], first[known], 1)
        return known
