"""A completed matrix, kept in factors: what :class:`LowRank` and :class:`PSDFactor` have in common."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import DataError, ParameterError
from entrywise.results.result import Result
from entrywise.types import Array, Indices

TOP_BLOCK = 1 << 22  # entries that `top` looks at at once: 32 MB
FETCHED = 1 << 16  # numbers of a factor fetched at once: they stay in the processor's cache


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Matrix(Result, abc.ABC):
    """A completed matrix, kept in factors; :class:`LowRank` and :class:`PSDFactor` fill it in."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """Number of components."""

    @abc.abstractmethod
    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""

    def _where(self, rows: ArrayLike, cols: ArrayLike) -> tuple[Indices, Indices]:
        i, j = np.broadcast_arrays(np.asarray(rows, np.int64), np.asarray(cols, np.int64))
        for name, index, size in (("row", i, self.shape[0]), ("column", j, self.shape[1])):
            if index.size and (index.min() < 0 or index.max() >= size):
                bad = int(index.min() if index.min() < 0 else index.max())
                raise ParameterError(f"{name} must be in 0..{size - 1}, got {bad}")
        return i, j

    def entry(self, i: int, j: int) -> float:
        """Return one completed entry."""
        return float(self.entries(i, j))

    def row(self, i: int) -> Array:
        """Return row i, shape (n,)."""
        return self.entries(i, np.arange(self.shape[1]))

    def column(self, j: int) -> Array:
        """Return column j, shape (m,)."""
        return self.entries(np.arange(self.shape[0]), j)

    def to_dense(self) -> Array:
        """Return the whole matrix as an array of shape (m, n)."""
        return np.asarray(self @ np.eye(self.shape[1]))

    @abc.abstractmethod
    def __matmul__(self, x: ArrayLike) -> Array: ...

    def top(self, k: int, largest: bool = True) -> tuple[Indices, Indices, Array]:
        """Return (rows, cols, values) of the k largest (or smallest) entries, found block by block."""
        m, n = self.shape
        if not 1 <= k <= m * n:
            raise ParameterError(f"k of top must be in 1..{m * n}, got {k}")
        sign = 1.0 if largest else -1.0
        step = max(1, TOP_BLOCK // n)
        rows, cols, values = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        for start in range(0, m, step):
            i = np.arange(start, min(start + step, m))
            block = sign * self.entries(i[:, None], np.arange(n)[None, :])
            flat = block.ravel()
            best = np.arange(len(flat))
            if k < len(flat):
                best = np.argpartition(-flat, k - 1)[:k]
            rows = np.r_[rows, i[best // n]]
            cols = np.r_[cols, best % n]
            values = np.r_[values, flat[best]]
            keep = np.lexsort((cols, rows, -values))[:k]
            rows, cols, values = rows[keep], cols[keep], values[keep]
        return rows, cols, sign * values


def lookup(asked: Sequence[str], labels: Sequence[str], axis: str) -> Indices:
    """Return the position of each label, refusing one that is not there."""
    code = {label: k for k, label in enumerate(labels)}
    missing = next((label for label in asked if label not in code), None)
    if missing is not None:
        example = next(iter(code), None)
        raise DataError(
            f"no {axis} is called {missing!r}; there are {len(code)}, such as {example!r}"
        )
    return np.fromiter((code[label] for label in asked), np.int64, len(asked))


def fetch(table: Array, most: int) -> Callable[[Indices], Array]:
    """Return a function from at most so many lines to their rows of a table, always in the same memory: new memory is dear."""
    room = np.empty((most, table.shape[1]), table.dtype)
    return lambda lines: np.take(table, lines, axis=0, out=room[: len(lines)], mode="clip")


def products_at(left: Array, right: Array, i: Indices, j: Indices) -> Array:
    """Return the products of rows i of `left` with rows j of `right`, of the shape of both; some are fetched at a time."""
    step = max(1, FETCHED // max(left.shape[1], 1))
    if i.size <= step:
        return np.asarray(np.einsum("...k,...k->...", left[i], right[j]), np.float64)
    flat_i, flat_j, found = i.ravel(), j.ravel(), np.empty(i.size)
    of_row, of_col = fetch(left, step), fetch(right, step)
    for start in range(0, i.size, step):
        part = slice(start, start + step)
        np.einsum("tk,tk->t", of_row(flat_i[part]), of_col(flat_j[part]), out=found[part])
    return found.reshape(i.shape)
