"""Any dataframe, through narwhals: which columns are rows, columns and values, or which row each line is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.layouts import (
    COL,
    ROW,
    VALUE,
    ColumnFacts,
    Kind,
    Labels,
    Layout,
    has_labels,
    long_columns,
    plain_name,
)
from entrywise.types import Array, Indices

Names = tuple[str | None, str | None, str | None]
BACKENDS = ("polars", "pandas", "pyarrow")


@dataclass(frozen=True)
class LongFrame:
    """One entry a line."""

    rows: list[str | None]
    cols: list[str | None]
    values: Array
    names: tuple[str, str]
    noise: float | Array | None


@dataclass(frozen=True)
class WideFrame:
    """One row a line, NaN where nothing is known."""

    values: Array
    row_labels: list[str] | None
    col_labels: list[str]
    noise: float | None


def is_frame(data: Any) -> bool:
    """Tell whether something is a dataframe: of pandas, polars, pyarrow or whatever narwhals knows."""
    return hasattr(data, "columns") or hasattr(data, "schema")


def make_frame(columns: Mapping[str, Any], backend: str = "polars") -> Any:
    """Return a dataframe of `backend`: polars, pandas or pyarrow.

    >>> make_frame({"row": ["a", "b"], "value": [1.0, 2.0]}).shape
    (2, 2)
    """
    import narwhals as nw

    if backend not in BACKENDS:
        raise ParameterError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    plain = {
        name: column.tolist() if isinstance(column, np.ndarray) else list(column)
        for name, column in columns.items()
    }
    library: Any = backend
    return nw.from_dict(plain, backend=library).to_native()


def named_lines(labels: Sequence[str] | None, lines: Any) -> list[Any]:
    """Return lines by their labels, by their numbers where there are none."""
    numbers_ = np.asarray(lines).ravel().tolist()
    return numbers_ if labels is None else [labels[k] for k in numbers_]


def answer_lines(frame: Any) -> list[tuple[Any, ...]]:
    """Return answers from a frame with ``value``, and ``id`` or ``row`` and ``col``; lines without a value are left out."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    names = ("id", "value") if "id" in table.columns else ("row", "col", "value")
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(
            f"a frame of answers must have value, and id or row and col; it has {', '.join(table.columns)}"
        )
    lines = zip(*(table[name].to_list() for name in names), strict=True)
    return [line for line in lines if line[-1] is not None and line[-1] == line[-1]]


def read_frame(
    frame: Any, names: Names, noise: str | float | None, layout: Layout, labels: Labels
) -> LongFrame | WideFrame:
    """Return what a dataframe says; refuse what may be read in two ways, naming the options."""
    import narwhals as nw

    if layout not in ("auto", "long", "wide") or labels not in ("auto", "first", "none"):
        raise ParameterError(
            f"layout must be auto, long or wide and labels auto, first or none, got {layout!r} and {labels!r}"
        )
    frame, index = _index(frame)
    table = nw.from_native(frame, eager_only=True)
    if not len(table):
        raise DataError("the frame has no lines; give at least one observation")
    columns = [table[:, k] for k in range(len(table.columns))]
    titles = [str(name) for name in table.columns]
    if layout == "auto" and (any(names) or isinstance(noise, str)):
        layout = "long"
    facts = [_facts(title, column) for title, column in zip(titles, columns, strict=True)]
    roles = None
    if layout == "auto":
        roles = long_columns(facts, len(table), lambda a, b: _repeats(columns[a], columns[b]))
        layout = "wide" if roles is None else "long"
    if layout == "long":
        picked = _picked(titles, names) if roles is None else roles
        return _long(columns, titles, picked, noise)
    return _wide(columns, facts, index, labels, noise)


def _index(frame: Any) -> tuple[Any, list[str] | None]:
    """Return the frame and the labels in its index.

    Several levels, and a name over labels that repeat, become columns; plain counting says nothing.
    """
    index = getattr(frame, "index", None)
    if index is None or not hasattr(frame, "reset_index"):
        return frame, None
    if index.nlevels > 1 or (index.name is not None and not index.is_unique):
        return frame.reset_index(), None
    if type(index).__name__ == "RangeIndex" and index.name is None:
        return frame, None
    if not frame.columns.is_unique:
        raise DataError("the columns of the frame must have different names; rename one")
    return frame, [str(label) for label in index]


def _facts(name: str, column: Any) -> ColumnFacts:
    kind = _kind(column)
    steps: Any = np.zeros(0)
    if kind == "whole" and not column.null_count():
        steps = np.diff(column.to_numpy().astype(np.float64))
    return ColumnFacts(
        name,
        kind,
        distinct=int(column.drop_nulls().n_unique()),
        gaps=_gaps(column),
        consecutive=kind == "whole" and bool(np.all(steps == 1)),
    )


def _kind(column: Any) -> Kind:
    if column.null_count() == len(column):
        return "empty"
    if column.dtype.is_integer():
        return "whole"
    if column.dtype.is_numeric() or str(column.dtype) == "Boolean":
        return "number"
    return "text"


def _gaps(column: Any) -> int:
    nulls = int(column.null_count())
    if column.dtype.is_float():
        nulls = int(np.isnan(column.to_numpy().astype(np.float64)).sum())
    return nulls


def _repeats(a: Any, b: Any) -> bool:
    pairs = set(zip(a.to_list(), b.to_list(), strict=True))
    return len(pairs) < len(a)


def _picked(titles: list[str], names: Names) -> tuple[int, int, int]:
    """Return the columns given, else those of usual names, else those in their places."""
    if len(titles) < 3:
        raise DataError(f"a long frame must have columns for row, col and value, got {titles}")
    plain = [plain_name(title) for title in titles]
    found = []
    for place, (given, usual) in enumerate(zip(names, (ROW, COL, VALUE), strict=True)):
        if given is not None and given not in titles:
            raise DataError(
                f"the frame has no column {given!r}; it has {', '.join(map(repr, titles))}"
            )
        named = [plain.index(name) for name in usual if name in plain]
        found.append(titles.index(given) if given is not None else (named or [place])[0])
    if len(set(found)) < 3:
        taken = [titles[k] for k in found]
        raise DataError(f"row, col and value must be three columns, got {taken}; name them")
    return found[0], found[1], found[2]


def _long(
    columns: list[Any], titles: list[str], picked: Sequence[int], noise: str | float | None
) -> LongFrame:
    row, col, value = picked
    sd: Any = noise
    if isinstance(noise, str):
        if noise not in titles:
            raise DataError(
                f"the frame has no column {noise!r}; it has {', '.join(map(repr, titles))}"
            )
        sd = numbers(columns[titles.index(noise)], noise)
    return LongFrame(
        rows=_texts(columns[row]),
        cols=_texts(columns[col]),
        values=numbers(columns[value], titles[value]),
        names=(titles[row], titles[col]),
        noise=sd,
    )


def _wide(
    columns: list[Any],
    facts: list[ColumnFacts],
    index: list[str] | None,
    labels: Labels,
    noise: str | float | None,
) -> WideFrame:
    if isinstance(noise, str):
        raise DataError("a wide frame has no column of noise; give one number, or a long frame")
    row_labels, start = index, 0
    if index is None and labels != "none":
        headed = not facts[0].name.isdigit()
        if labels == "first" or has_labels(facts, len(columns[0]), headed):
            texts = _texts(columns[0])
            if None in texts:
                raise DataError(f"line {texts.index(None) + 1} has no label; give one")
            row_labels, start = [str(text) for text in texts], 1
    body = [numbers(c, f.name) for c, f in zip(columns[start:], facts[start:], strict=True)]
    if not body:
        raise DataError("the frame must have a column of values")
    return WideFrame(np.column_stack(body), row_labels, [f.name for f in facts[start:]], noise)


def _texts(column: Any) -> list[str | None]:
    return [None if x is None or x != x else str(x) for x in column.to_list()]


def encode(
    texts: Sequence[str | None], labels: Sequence[str] | None, name: str
) -> tuple[Indices, tuple[str, ...]]:
    """Return the code of each label and the labels: those given, or as they appear."""
    if None in texts:
        raise DataError(
            f"line {texts.index(None) + 1} of column {name!r} has no label; give one or leave the line out"
        )
    if labels is None:
        labels = tuple(dict.fromkeys(texts))  # type: ignore[arg-type]
    code = {label: k for k, label in enumerate(labels)}
    missing = next((t for t in texts if t not in code), None)
    if missing is not None:
        raise DataError(
            f"column {name!r} names {missing!r}, which is not among the {len(code)} labels given"
        )
    return np.fromiter((code[t] for t in texts), np.int64, len(texts)), tuple(labels)  # type: ignore[index]


def numbers(series: Any, name: str) -> Array:
    """Return the numbers of a column, NaN where there is none; text is refused by its line."""
    found = series.to_list()
    try:
        return np.array([np.nan if x is None else float(x) for x in found], dtype=np.float64)
    except (TypeError, ValueError):
        pass
    for line, x in enumerate(found, 1):
        try:
            float(x)
        except (TypeError, ValueError):
            raise DataError(
                f"line {line} of column {name!r} is {x!r}; values must be numbers"
            ) from None
    raise DataError(f"column {name!r} must hold numbers")
