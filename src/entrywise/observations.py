"""Known entries of an unknown matrix, with their noise and their labels.

Indices are 0-based int64 and noise is a standard deviation, everywhere. Entries that are not listed
are unknown, never zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise import fragments, frames
from entrywise.exceptions import DataError, ParameterError
from entrywise.layouts import Labels, Layout
from entrywise.types import Array, Indices, has_equals

Duplicates = Literal["refuse", "first", "last", "mean", "keep"]

ORDINARY = (1e-100, 1e100)  # sizes of values with which every method computes as they are
SQUARED = (1e-150, 1e150)  # sizes whose squares, the variances, are still numbers
COUNTABLE = 2**63  # cells that an int64 can number
FEW = 1 << 15  # lines and entries of a graph that is not worth the import of scipy


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """Known entries: ``values[t]`` is what was seen at ``(rows[t], cols[t])``.

    Make one with :meth:`from_dense`, :meth:`from_sparse`, :meth:`from_triplets`, :meth:`from_frame` or
    :func:`entrywise.read`; those check finite values, indices in range and duplicates, once.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (t,)
    values : ndarray of float64 of shape (t,)
    shape : (m, n)
    noise : float or ndarray of shape (t,), optional
        Standard deviation of the values, one for all or one each; None when unknown.
    row_labels, col_labels : tuple of str, optional
        Unique names of the rows and of the columns, never parsed as numbers.

    Examples
    --------
    >>> seen = Observations.from_dense([[1.0, float("nan")], [2.0, 4.0]])
    >>> len(seen), seen.shape, seen.share
    (3, (2, 2), 0.75)
    """

    rows: Indices
    cols: Indices
    values: Array
    shape: tuple[int, int]
    noise: float | Array | None = None
    row_labels: tuple[str, ...] | None = None
    col_labels: tuple[str, ...] | None = None
    _checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self._checked:
            return
        rows, cols = _indices(self.rows, "rows"), _indices(self.cols, "cols")
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 1 or not rows.shape == cols.shape == values.shape:
            raise DataError(
                f"rows, cols and values must be flat and equally long, got {rows.shape}, {cols.shape} and {values.shape}"
            )
        if len(tuple(self.shape)) != 2 or min(self.shape) < 1:
            raise DataError(f"shape must be two numbers above 0, got {self.shape}")
        m, n = (int(s) for s in self.shape)
        _check_finite(rows, cols, values)
        _check_range(rows, m, "row")
        _check_range(cols, n, "column")
        for array in (rows, cols, values):
            array.flags.writeable = False
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "cols", cols)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "shape", (m, n))
        object.__setattr__(self, "noise", _noise(self.noise, len(values)))
        object.__setattr__(self, "row_labels", _labels(self.row_labels, m, "row"))
        object.__setattr__(self, "col_labels", _labels(self.col_labels, n, "column"))

    @classmethod
    def from_triplets(
        cls,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int] | None = None,
        *,
        noise: float | ArrayLike | None = None,
        duplicates: Duplicates = "refuse",
        row_labels: Sequence[str] | None = None,
        col_labels: Sequence[str] | None = None,
    ) -> Observations:
        """Return the observations listed one by one.

        `shape` defaults to the smallest that holds them. `duplicates` says what to do when an entry is
        listed twice: refuse, keep the first, the last or the mean (its noise shrinks), or keep them all.
        """
        rows, cols = _indices(rows, "rows"), _indices(cols, "cols")
        if shape is None:
            if not len(rows):
                raise DataError("no observations and no shape were given; give shape=(m, n)")
            shape = (
                len(row_labels) if row_labels is not None else int(rows.max()) + 1,
                len(col_labels) if col_labels is not None else int(cols.max()) + 1,
            )
        if noise is not None and not isinstance(noise, float):
            noise = np.asarray(noise, dtype=np.float64)
        found = cls(
            rows=rows,
            cols=cols,
            values=np.asarray(values, dtype=np.float64),
            shape=shape,
            noise=noise,
            row_labels=None if row_labels is None else tuple(row_labels),
            col_labels=None if col_labels is None else tuple(col_labels),
        )
        return found._resolve(duplicates)

    @classmethod
    def from_dense(cls, matrix: ArrayLike, **extra: Any) -> Observations:
        """Return the entries of a dense array that are not NaN."""
        X = np.asarray(matrix, dtype=np.float64)
        if X.ndim != 2 or min(X.shape) < 1:
            raise DataError(
                f"a dense matrix must have two dimensions, neither empty, got shape {X.shape}"
            )
        rows, cols = np.nonzero(~np.isnan(X))
        if isinstance(extra.get("noise"), np.ndarray) and extra["noise"].shape == X.shape:
            extra["noise"] = extra["noise"][rows, cols]
        return cls.from_triplets(rows, cols, X[rows, cols], X.shape, **extra)

    @classmethod
    def from_sparse(cls, matrix: Any, **extra: Any) -> Observations:
        """Return the stored entries of a scipy sparse matrix; explicit zeros are observations."""
        if not hasattr(matrix, "tocoo"):
            raise DataError(
                f"from_sparse takes a scipy sparse matrix, got {type(matrix).__name__}; use from_dense for arrays"
            )
        coo = matrix.tocoo()
        return cls.from_triplets(coo.row, coo.col, coo.data, coo.shape, **extra)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        row: str | None = None,
        col: str | None = None,
        value: str | None = None,
        *,
        noise: str | float | None = None,
        row_labels: Sequence[str] | None = None,
        col_labels: Sequence[str] | None = None,
        layout: Layout = "auto",
        labels: Labels = "auto",
        duplicates: Duplicates = "refuse",
    ) -> Observations:
        """Return the observations of a dataframe (pandas, polars, pyarrow, ...), long or wide.

        A frame is long, one entry a line, where `row`, `col` or `value` name its columns or its own names or contents
        say so; else it is wide, one row a line. The index of a pandas frame holds the labels of its rows. Where two
        readings are possible it is refused; `layout` ("long", "wide") and `labels` ("first", "none") decide. Labels
        are kept as text, in order of appearance unless `row_labels` and `col_labels` are given.
        """
        found = frames.read_frame(frame, (row, col, value), noise, layout, labels)
        if isinstance(found, frames.WideFrame):
            return cls.from_dense(
                found.values,
                noise=found.noise,
                row_labels=found.row_labels if row_labels is None else row_labels,
                col_labels=found.col_labels if col_labels is None else col_labels,
            )
        i, row_labels = frames.encode(found.rows, row_labels, found.names[0])
        j, col_labels = frames.encode(found.cols, col_labels, found.names[1])
        return cls.from_triplets(
            i,
            j,
            found.values,
            (len(row_labels), len(col_labels)),
            noise=found.noise,
            duplicates=duplicates,
            row_labels=row_labels,
            col_labels=col_labels,
        )

    def to_frame(self, backend: str = "polars") -> Any:
        """Return a long frame (polars, pandas or pyarrow): row, col, value, and noise where it is known; :meth:`from_frame` reads it."""
        columns: dict[str, Any] = {
            "row": frames.named_lines(self.row_labels, self.rows),
            "col": frames.named_lines(self.col_labels, self.cols),
            "value": self.values,
        }
        if self.noise is not None:
            columns["noise"] = np.broadcast_to(self.noise, self.values.shape)
        return frames.make_frame(columns, backend)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        """Size, known entries, and whether they have labels: a line, not the arrays."""
        words = [f"{self.shape[0]} x {self.shape[1]}", f"{len(self)} known"]
        if self.row_labels is not None or self.col_labels is not None:
            words.append("labelled")
        return f"Observations({', '.join(words)})"

    def _repr_html_(self) -> str:
        """What notebooks show: size, how much is known, and the first entries."""
        facts: dict[str, object] = {
            "shape": f"{self.shape[0]} x {self.shape[1]}",
            "known": f"{len(self):,} ({self.share:.1%})",
        }
        lines = [
            (
                fragments.label(self.row_labels[i] if self.row_labels else int(i)),
                fragments.label(self.col_labels[j] if self.col_labels else int(j)),
                float(x),
            )
            for i, j, x in zip(self.rows[:5], self.cols[:5], self.values[:5], strict=True)
        ]
        return fragments.card(
            "Observations", facts, fragments.table(("row", "column", "value"), lines)
        )

    @property
    def share(self) -> float:
        """Share of the matrix that is known."""
        return len(self) / (self.shape[0] * self.shape[1])

    @cached_property
    def row_counts(self) -> Indices:
        """Known entries in each row, shape (m,)."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @cached_property
    def col_counts(self) -> Indices:
        """Known entries in each column, shape (n,)."""
        return np.bincount(self.cols, minlength=self.shape[1])

    @cached_property
    def components(self) -> tuple[int, Indices, Indices]:
        """Connected components of the bipartite graph of known entries.

        Returns
        -------
        count : int
            Components, lines with nothing known included.
        row_component : ndarray of shape (m,)
        col_component : ndarray of shape (n,)
        """
        m, n = self.shape
        if len(self) + m + n <= FEW:
            first, part = np.unique(
                _least_linked(self.rows, self.cols + m, m + n), return_inverse=True
            )
            return len(first), part[:m], part[m:]
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        graph = coo_array(
            (np.ones(len(self), np.int8), (self.rows, self.cols + m)), shape=(m + n, m + n)
        )
        count, of = connected_components(graph, directed=False)
        return int(count), of[:m].astype(np.int64), of[m:].astype(np.int64)

    @cached_property
    def is_binary(self) -> bool:
        """Whether at most two values occur."""
        return len(self) > 0 and bool(
            np.all((self.values == self.values.min()) | (self.values == self.values.max()))
        )

    @cached_property
    def has_repeats(self) -> bool:
        """Whether an entry is listed more than once."""
        return has_equals(self.rows * self.shape[1] + self.cols)

    @cached_property
    def is_positive(self) -> bool:
        """Whether every value is above zero."""
        return bool(np.all(self.values > 0))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the matrix is square and agrees with its transpose wherever both halves are known.

        At least one pair of halves, or the diagonal and same labels, must be there to say so.
        """
        if self.shape[0] != self.shape[1] or self.row_labels != self.col_labels or not len(self):
            return False
        i, j, size = self._numbered()
        key, mirror = i * size + j, j * size + i
        order = np.argsort(key)
        at = np.searchsorted(key[order], mirror)
        at = np.minimum(at, len(key) - 1)
        both = key[order][at] == mirror
        off = both & (self.rows != self.cols)
        scale = np.abs(self.values).max()
        return bool(np.any(off)) and bool(
            np.all(np.abs(self.values - self.values[order][at])[off] <= 1e-9 * scale)
        )

    def noise_array(self, default: float = 0.0) -> Array:
        """Return one standard deviation an observation, `default` where none is known."""
        noise = default if self.noise is None else self.noise
        return np.array(np.broadcast_to(np.asarray(noise, dtype=np.float64), (len(self),)))

    def take(self, which: NDArray[Any]) -> Observations:
        """Return some of the observations, by mask or by number; shape and labels stay."""
        noise = self.noise[which] if isinstance(self.noise, np.ndarray) else self.noise
        return replace(
            self,
            rows=self.rows[which],
            cols=self.cols[which],
            values=self.values[which],
            noise=noise,
            _checked=True,
        )

    def transposed(self) -> Observations:
        """Return the observations of the transposed matrix."""
        return replace(
            self,
            rows=self.cols,
            cols=self.rows,
            shape=self.shape[::-1],
            row_labels=self.col_labels,
            col_labels=self.row_labels,
            _checked=True,
        )

    @property
    def unit(self) -> float:
        """What to divide values by before computing with them: 1, but far from one the power of four next to the largest.

        A power of four changes no digit, nor does its root. Values or noise whose squares are no numbers are refused.
        """
        largest = max(float(self.values.max(initial=0.0)), -float(self.values.min(initial=0.0)))
        noise = float(np.max(self.noise, initial=0.0)) if self.noise is not None else 0.0
        if largest > SQUARED[1] or noise > SQUARED[1] or 0 < largest < SQUARED[0]:
            raise DataError(
                f"the largest value must lie in {SQUARED[0]:g}..{SQUARED[1]:g} and noise below that, "
                f"got {largest:g} and {noise:g}; change their unit"
            )
        if largest == 0 or ORDINARY[0] <= largest <= ORDINARY[1]:
            return 1.0
        return 4.0 ** round(math.log(largest, 4))

    def scaled(self, factor: float) -> Observations:
        """Return the observations with values, and noise, times a factor."""
        noise = None if self.noise is None else self.noise * factor
        return replace(self, values=self.values * factor, noise=noise, _checked=True)

    def split(self, share: float, rng: np.random.Generator) -> tuple[Observations, Observations]:
        """Return (kept, held out): a random `share` of the observations is held out."""
        held = np.zeros(len(self), dtype=bool)
        held[rng.permutation(len(self))[: round(share * len(self))]] = True
        return self.take(~held), self.take(held)

    def to_csr(self) -> Any:
        """Return the observations as a scipy CSR array; explicit zeros stay stored."""
        from scipy.sparse import coo_array

        return coo_array((self.values, (self.rows, self.cols)), shape=self.shape).tocsr()

    def to_dense(self) -> Array:
        """Return an (m, n) array with NaN where nothing is known."""
        X = np.full(self.shape, np.nan)
        X[self.rows, self.cols] = self.values
        return X

    def _resolve(self, duplicates: Duplicates) -> Observations:
        if duplicates == "keep" or len(self) < 2:
            return self
        if duplicates not in ("refuse", "first", "last", "mean"):
            raise ParameterError(
                f"duplicates must be refuse, first, last, mean or keep, got {duplicates!r}"
            )
        i, j, size = self._numbered()
        key = i * size + j
        if len(key) > 1 and np.all(key[1:] > key[:-1]):
            return self
        _, first, group, count = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        if len(first) == len(self):
            return self
        if duplicates == "refuse":
            t, repeated = np.argmax(count > 1), int((count > 1).sum())
            name = self.name(int(self.rows[first[t]]), int(self.cols[first[t]]))
            others = "" if repeated == 1 else f", and {repeated - 1} others more than once"
            raise DataError(
                f"entry {name} is listed {count[t]} times{others}; "
                "say --duplicates mean, first or last (duplicates= in Python), or keep one"
            )
        if duplicates == "mean":
            noise = self.noise
            if noise is not None:
                noise = _mean_noise(self.noise_array(), group, count)
            values = _mean(self.values, group, count)
            return replace(self.take(first), values=values, noise=noise, _checked=True)
        if duplicates == "last":
            first = np.zeros(len(first), np.int64)
            first[group] = np.arange(len(self))  # the last of each group is written last
        return self.take(np.sort(first))

    def _numbered(self) -> tuple[Indices, Indices, int]:
        """Return rows, columns and a size such that ``row * size + col`` numbers entries in order.

        Where the matrix has more cells than there are numbers, only the lines that occur are counted.
        """
        m, n = self.shape
        if m * n < COUNTABLE:
            return self.rows, self.cols, n
        lines, of = np.unique(np.r_[self.rows, self.cols], return_inverse=True)
        return of[: len(self)], of[len(self) :], len(lines)

    def name(self, i: int, j: int) -> str:
        """Return how entry (i, j) is called in messages: by its labels where there are any."""
        row = repr(self.row_labels[i]) if self.row_labels is not None else str(i)
        col = repr(self.col_labels[j]) if self.col_labels is not None else str(j)
        return f"({row}, {col})"


def _check_finite(rows: Indices, cols: Indices, values: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        t = bad[0]
        raise DataError(
            f"value {t}, entry ({rows[t]}, {cols[t]}), is {values[t]}; values must be finite, leave unknown ones out"
        )


def _check_range(index: Indices, size: int, axis: str) -> None:
    outside = np.flatnonzero((index < 0) | (index >= size))
    if len(outside):
        t = outside[0]
        raise DataError(f"{axis} {index[t]} of observation {t} must be in 0..{size - 1}")


def _least_linked(i: Indices, j: Indices, count: int) -> Indices:
    """Return of each of `count` nodes, linked in pairs (i, j), the least node of its component."""
    least = np.arange(count)
    while np.any(least[i] != least[j]):
        low = np.minimum(least[i], least[j])
        for end in (i, j):
            np.minimum.at(least, least[end], low)  # what a component points to points lower
        while np.any(least[least] != least):
            least = least[least]
    return least


def _mean(values: Array, group: Indices, count: Indices) -> Array:
    """Return the mean of each group; sums beyond the largest number are taken in parts."""
    total = np.bincount(group, values)
    if np.all(np.isfinite(total)):
        return total / count
    return np.asarray(np.bincount(group, values / count[group]), np.float64)


def _mean_noise(noise: Array, group: Indices, count: Indices) -> Array:
    """Return the standard deviation of each group's mean."""
    largest = float(noise.max(initial=0.0))
    unit = 1.0 if largest <= SQUARED[1] else largest
    return np.asarray(np.sqrt(np.bincount(group, (noise / unit) ** 2)) / count * unit)


def _indices(index: ArrayLike, name: str) -> Indices:
    array = np.asarray(index)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu" and (
        array.dtype.kind != "f" or not np.all(array == np.floor(array))
    ):
        raise DataError(
            f"{name} must be whole numbers, got {array.dtype} such as {array.ravel()[0]!r}"
        )
    return np.array(array, dtype=np.int64)


def _noise(noise: Any, count: int) -> float | Array | None:
    if noise is None:
        return None
    sd = np.array(noise, dtype=np.float64)
    if not np.all(np.isfinite(sd) & (sd >= 0)):
        raise DataError(
            f"noise is a standard deviation and must be finite and not below 0, got {sd.ravel()[:3]}"
        )
    if sd.ndim == 0:
        return float(sd)
    if sd.shape != (count,):
        raise DataError(
            f"noise must be one number or one for each of the {count} observations, got shape {sd.shape}"
        )
    sd.flags.writeable = False
    return sd


def _labels(labels: Any, size: int, axis: str) -> tuple[str, ...] | None:
    if labels is None:
        return None
    names = tuple(str(x) for x in labels)
    if len(names) != size:
        raise DataError(f"there must be one label for each of the {size} {axis}s, got {len(names)}")
    if len(set(names)) != size:
        seen: set[str] = set()
        twice = next(x for x in names if x in seen or seen.add(x))  # type: ignore[func-returns-value]
        raise DataError(f"{axis} labels must be unique, {twice!r} occurs twice")
    return names
