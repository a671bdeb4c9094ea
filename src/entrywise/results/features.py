"""Features of rows or columns as numbers: how they were encoded, so that new lines are encoded alike.

A frame (any library) is matched to the lines by label, in its index or its first column, else by place. Numbers are
standardised; a number that is missing is its mean, with an indicator of its own; texts of few values become one
indicator each. A symmetric array with a row and a column for every line is their similarity (a kernel): its centred
eigenvectors times root eigenvalues are the features. Sparse features, up to 100,000, stay sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrywise.exceptions import DataError
from entrywise.types import Array

MOST_TEXTS = 50  # different texts of a column above which it is no category
KERNEL_SHARE, KERNEL_MOST = (
    0.95,
    60,
)  # of a kernel's eigenvalues that are kept, and how many at most
OCTILES = 8  # parts of equal size that numbers in a frame are cut into, where they have more values
WIDE = 500  # features above which no d x d product is made of them
FLAT = 1e-9  # a feature that varies by less, relative to its size, says nothing


@dataclass(frozen=True)
class FeatureColumn:
    """One column of a frame or array: numbers with NaN, or texts with None."""

    name: str
    numbers: Array | None
    texts: list[str | None] | None


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features by label (or by place), read from a file or a study; a frame says the same."""

    labels: list[str] | None
    columns: list[FeatureColumn]


@dataclass(frozen=True, eq=False)
class Features:
    """How the features of the lines of one side become d numbers each: ``(x - center) / scale``, times `basis`.

    Parameters
    ----------
    names, kinds, texts : tuple of str
        Of each number x: the column it comes from; ``number``, ``missing`` (an indicator), ``above`` (an indicator of being
        above the number in `texts`) or ``text`` (an indicator of one value, in `texts`). Empty where lines come as
        similarities or sparse.
    center, scale : ndarray of shape (r,)
    basis : ndarray of shape (r, d), or (0, 0): the identity
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    texts: tuple[str, ...]
    center: Array
    scale: Array
    basis: Array

    @classmethod
    def of(
        cls, given: Any, labels: Sequence[str] | None, lines: int, side: str
    ) -> tuple[Features, Any]:
        """Return the encoding of the features of all lines, and the numbers, shape (lines, d), sparse if they were."""
        if is_kernel(given, lines):
            return _kernel(np.asarray(given, np.float64))
        if hasattr(given, "tocsr"):
            return _sparse(given.tocsr().astype(np.float64))
        columns = columns_of(given, labels, lines, side)
        names: list[str] = []
        kinds: list[str] = []
        texts: list[str] = []
        for column in columns:
            for kind, text in _kinds(column, side, framed=hasattr(given, "columns")):
                names.append(column.name)
                kinds.append(kind)
                texts.append(text)
        coded = (tuple(names), tuple(kinds), tuple(texts))
        X = _numbers(columns, *coded)
        with np.errstate(invalid="ignore"):
            center = np.nan_to_num(np.nanmean(X, axis=0)) if len(X) else np.zeros(X.shape[1])
            spread = np.nan_to_num(np.nanstd(X, axis=0))
        flat = spread <= FLAT * np.maximum(np.abs(center), FLAT)
        scale = np.where(flat, np.inf, spread)  # what does not vary adds nothing
        found = cls(*coded, center, scale, np.zeros((0, 0)))
        return found, found._finished(X)

    def encode(self, given: Any, labels: Sequence[str] | None, lines: int) -> Any:
        """Return the numbers of new lines, shape (lines, d), from features like those of the fit."""
        if hasattr(given, "tocsr"):
            X = given.tocsr().astype(np.float64)
        elif self.names:
            columns = columns_of(given, labels, lines, "new lines")
            X = _numbers(columns, self.names, self.kinds, self.texts)
        else:
            X = np.asarray(given, np.float64)
        if X.shape != (lines, len(self.center)):
            raise DataError(
                f"features of {lines} lines must have shape {(lines, len(self.center))}, got {X.shape}"
            )
        return self._finished(X)

    def _finished(self, X: Any) -> Any:
        if hasattr(X, "tocsr"):  # the fit centres them: nothing wide becomes dense
            return X / self.scale[0]
        Z = np.nan_to_num((X - self.center) / self.scale)  # a gap is the mean
        return np.asarray(Z @ self.basis if len(self.basis) else Z)


def labels_of(given: Any) -> list[str] | None:
    """Return the labels that a frame of features names in its index or first column; None for arrays."""
    if not hasattr(given, "columns"):
        return None
    return _frame(given)[0]


def is_kernel(given: Any, lines: int) -> bool:
    """Tell whether features are a similarity: symmetric, with a row and a column for every line."""
    if hasattr(given, "columns") or hasattr(given, "tocsr"):
        return False
    X = np.asarray(given)
    numeric = X.dtype.kind in "fiub"
    return lines > 1 and X.shape == (lines, lines) and numeric and bool(np.allclose(X, X.T))


def _kernel(K: Array) -> tuple[Features, Array]:
    """Return centred eigenvectors times root eigenvalues, as many as hold most of the kernel."""
    center = K.mean(axis=0)
    centred = K - center - center[:, None] + center.mean()
    sizes, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    sizes, vectors = np.maximum(sizes[::-1], 0.0), vectors[:, ::-1]
    share = np.cumsum(sizes) / max(sizes.sum(), np.finfo(float).tiny)
    kept = min(int(np.searchsorted(share, KERNEL_SHARE)) + 1, KERNEL_MOST, int(np.sum(sizes > 0)))
    # a new line's similarities k become (k - center) V / sqrt(sizes): V is orthogonal to constants
    basis = vectors[:, :kept] / np.sqrt(sizes[:kept])
    found = Features((), (), (), center, np.ones(len(K)), basis)
    return found, found._finished(K)


def is_wide(values: Any) -> bool:
    """Tell whether features, once coded, are too many for their d x d products."""
    return hasattr(values, "tocsr") or values.shape[1] > WIDE


def _sparse(X: Any) -> tuple[Features, Any]:
    """Return sparse features in one unit, in which a line is one long on average; the fit centres them."""
    n, d = X.shape
    center = np.asarray(X.mean(axis=0)).ravel()
    square = float(X.multiply(X).sum()) / max(n, 1) - float(center @ center)
    unit = np.sqrt(max(square, FLAT * max(float(center @ center), FLAT)))
    found = Features((), (), (), np.zeros(d), np.full(d, unit), np.zeros((0, 0)))
    return found, found._finished(X)


def _frame(given: Any) -> tuple[list[str] | None, list[FeatureColumn]]:
    """Return the labels of a frame, from its index or a first column of different texts or numbers, and the others."""
    if isinstance(given, FeatureTable):
        return given.labels, given.columns
    import narwhals as nw

    index = getattr(given, "index", None)
    labels = None
    if index is not None and type(index).__name__ != "RangeIndex":
        labels = [str(x) for x in index]
    table = nw.from_native(given, eager_only=True)
    columns = [_column(str(name), table[:, k]) for k, name in enumerate(table.columns)]
    if labels is None and columns:
        first = table[:, 0]
        whole = first.dtype.is_integer() or columns[0].numbers is None
        if whole and first.n_unique() == len(first) and not first.null_count():
            return [str(x) for x in first.to_list()], columns[1:]
    return labels, columns


def _column(name: str, series: Any) -> FeatureColumn:
    values = series.to_list()
    if series.dtype.is_numeric() or str(series.dtype) == "Boolean":
        numbers = np.array([np.nan if x is None else float(x) for x in values])
        return FeatureColumn(name, numbers, None)
    return FeatureColumn(name, None, [None if x is None or x != x else str(x) for x in values])


def columns_of(
    given: Any, labels: Sequence[str] | None, lines: int, side: str
) -> list[FeatureColumn]:
    """Return the columns, a value for every line: by label, else by place."""
    if not hasattr(given, "columns"):
        return _array_columns(given, lines, side)
    names, columns = _frame(given)
    if names is not None and labels is not None:
        place = {name: k for k, name in enumerate(names)}
        at = [place.get(label, -1) for label in labels]
        if max(at, default=-1) >= 0:
            return [_taken(column, at) for column in columns]
        raise DataError(
            f"features of {side}s must name the lines in their first column or index; none of "
            f"{names[:3]} is a {side}, such as {labels[0]!r}"
        )
    size = len(names) if names is not None else _length(columns)
    if size != lines:
        raise DataError(f"features of {side}s must have {lines} lines, got {size}; label them")
    return columns


def _length(columns: list[FeatureColumn]) -> int:
    if not columns:
        return 0
    return len(columns[0].texts if columns[0].numbers is None else columns[0].numbers)  # type: ignore[arg-type]


def _taken(column: FeatureColumn, at: list[int]) -> FeatureColumn:
    """Return the column in the order of the lines; a line that has none has a gap."""
    if column.numbers is not None:
        longer = np.append(column.numbers, np.nan)
        return FeatureColumn(column.name, longer[at], None)
    texts = [*(column.texts or []), None]
    return FeatureColumn(column.name, None, [texts[k] for k in at])


def _array_columns(given: Any, lines: int, side: str) -> list[FeatureColumn]:
    try:
        X = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"features of {side}s must be a frame, an array of numbers or a similarity, got {type(given).__name__}"
        ) from None
    if X.ndim != 2 or len(X) != lines or np.isinf(X).any():
        raise DataError(
            f"features of {side}s must be {lines} lines of finite numbers or NaN, got shape {X.shape}"
        )
    return [FeatureColumn(str(k), X[:, k], None) for k in range(X.shape[1])]


def _kinds(column: FeatureColumn, side: str, framed: bool) -> list[tuple[str, str]]:
    """Return what a column becomes: (kind, text) of each number.

    Numbers of many values in a frame also become indicators of being above their octiles, so that a year or an age need not
    act in a straight line; the many columns of an array are taken for coordinates.
    """
    if column.numbers is not None:
        gaps = np.isnan(column.numbers)
        found = [("number", ""), *([("missing", "")] if gaps.any() else [])]
        there = column.numbers[~gaps]
        if framed and len(np.unique(there)) > OCTILES:
            edges = np.unique(np.quantile(there, np.arange(1, OCTILES) / OCTILES))
            found += [("above", repr(float(edge))) for edge in edges]
        return found
    texts = column.texts or []
    values = sorted({t for t in texts if t is not None})
    if len(values) > MOST_TEXTS:
        raise DataError(
            f"column {column.name!r} of the features of {side}s has {len(values)} different texts; leave it out, or "
            f"make at most {MOST_TEXTS} categories of it"
        )
    return [("text", value) for value in values]


def _numbers(
    columns: list[FeatureColumn], names: Sequence[str], kinds: Sequence[str], texts: Sequence[str]
) -> Array:
    """Return the coded numbers, one column for each of the names."""
    place = {column.name: column for column in columns}
    parts = []
    for name, kind, text in zip(names, kinds, texts, strict=True):
        if name not in place:
            raise DataError(f"the features have no column {name!r}; they have {', '.join(place)}")
        column = place[name]
        if kind == "text":
            values = column.texts or [str(x) for x in column.numbers]  # type: ignore[union-attr]
            parts.append(np.array([np.nan if v is None else float(v == text) for v in values]))
            continue
        if column.numbers is None:
            raise DataError(f"column {name!r} of the features must hold numbers, as in the fit")
        numbers = column.numbers
        if kind == "missing":
            numbers = np.isnan(numbers).astype(np.float64)
        elif kind == "above":
            numbers = np.where(np.isnan(numbers), np.nan, numbers > float(text))
        parts.append(numbers)
    return np.column_stack(parts) if parts else np.zeros((_length(columns), 0))
