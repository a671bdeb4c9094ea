"""Known entries from files: triplets or wide tables, text or binary, compressed or not.

Labels stay text: ``007`` and ``7`` are two labels. Nothing is guessed quietly that changes numbers: a value that
is not a number is refused with its line, and a table that can be read in two ways with the options that decide.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.layouts import (
    COL,
    NAMED,
    ROW,
    VALUE,
    ColumnFacts,
    Labels,
    Layout,
    has_labels,
    long_columns,
    plain_name,
)
from entrywise.observations import Duplicates, Observations
from entrywise.tables import files
from entrywise.tables.numbers import is_gap, number
from entrywise.tables.table import Column, Header, Table, listed, read_table
from entrywise.types import Array, Indices

NUMPY = (".npy", ".npz")


@dataclass(frozen=True, eq=False)
class Reading:
    """Known entries and how the file was understood."""

    observations: Observations
    rows: str = "rows"
    cols: str = "columns"

    @property
    def words(self) -> str:
        """What was read, in one line: ``read 200 x 120, 2,400 known: compound x target``."""
        m, n = self.observations.shape
        return f"read {m} x {n}, {len(self.observations):,} known: {self.rows} x {self.cols}"


def read_entries(
    path: str | os.PathLike[str],
    *,
    names: tuple[str | None, str | None, str | None] = (None, None, None),
    noise: str | float | None = None,
    layout: Layout = "auto",
    labels: Labels = "auto",
    header: Header = "auto",
    duplicates: Duplicates = "refuse",
) -> Reading:
    """Return the known entries in a table or an array as :func:`entrywise.read` does, and how it was understood."""
    _choice("layout", layout, ("auto", "long", "wide"))
    _choice("labels", labels, ("auto", "first", "none"))
    _choice("header", header, ("auto", "yes", "no"))
    name = os.fspath(path)
    with _naming(name):
        if files.ending(name) in NUMPY:
            return Reading(_arrays(name, noise, duplicates))
        usual = (*ROW, *COL, *VALUE, *(n for n in NAMED if n), *(n for n in names if n))
        table = read_table(name, header=header, usual=usual)
        if layout == "auto" and (any(names) or isinstance(noise, str)):
            layout = "long"
        roles = None
        if layout == "auto":
            roles = _roles(table.filled())
            layout = "wide" if roles is None else "long"
        if layout == "long":
            return _long(table.filled(), names, roles, noise, duplicates)
        return _wide(table, labels, noise)


def read_points(path: str | os.PathLike[str]) -> Array:
    """Return the points of a file, one a line, as a finite array of shape (n, d); a column of ids is left out."""
    name = os.fspath(path)
    if files.ending(name) in NUMPY:
        X = np.asarray(_one_array(name, files.arrays_of(name)), dtype=np.float64)
    else:
        table = read_table(name)
        columns = list(table.columns)
        if _only_labels(table):
            columns = columns[1:]
        text = next((column for column in columns if column.kind == "text"), None)
        if text is not None:
            raise table.error(
                f"every column must hold numbers, {text.name!r} does not; leave it out"
            )
        X = np.column_stack([c.numbers for c in columns])
    if not X.size:
        raise DataError(f"{name} must hold an (n, d) array of points, got shape {X.shape}")
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        i, j = bad[0]
        raise DataError(f"{name}: point {i}, coordinate {j}, is {X[i, j]}; points must be finite")
    return X


def facts_of(table: Table) -> list[ColumnFacts]:
    """Return what the guesses need of each column."""
    return [_facts(column) for column in table.columns]


def sparse_of(path: str, arrays: dict[str, Any]) -> Any:
    """Return the scipy sparse matrix stored in `arrays`, its indices checked before anything uses them."""
    import scipy.sparse as sp

    found: Any
    with files.boundary(path, "a scipy sparse matrix"):
        kind = arrays["format"].item()
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        shape = tuple(int(side) for side in arrays["shape"])
        data = arrays["data"]
        if data.dtype.kind not in "fiub" or len(shape) != 2:
            raise DataError(f"{path} must hold a matrix of numbers, got {data.dtype} of {shape}")
        if kind == "coo":
            return sp.coo_array((data, (arrays["row"], arrays["col"])), shape=shape)
        if kind not in ("csr", "csc"):
            raise DataError(f"{path} holds a sparse matrix in format {kind!r}; save it as csr")
        make: Any = sp.csr_array if kind == "csr" else sp.csc_array
        found = make((data, arrays["indices"], arrays["indptr"]), shape=shape)
        found.check_format(full_check=True)
        return found


def _choice(name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ParameterError(
            f"--{name} must be {', '.join(known[:-1])} or {known[-1]} ({name}= in Python), got {given!r}"
        )


class _naming:
    """Puts the name of the file before errors that lack it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, DataError) and not str(error).startswith(self.name):
            raise DataError(f"{self.name}: {error}") from None


# Long tables


def _facts(column: Column) -> ColumnFacts:
    is_text = column.kind == "text"  # among text NA is a name
    seen = [text for text in column.cells if text and (is_text or not is_gap(text))]
    steps = np.diff(column.numbers) if column.kind == "whole" else np.zeros(0)
    return ColumnFacts(
        column.name,
        column.kind,
        distinct=len(set(seen)),
        gaps=len(column.cells) - len(seen),
        consecutive=column.kind == "whole" and bool(np.all(steps == 1)),
        mixed=column.bad is not None and any(number(text) is not None for text in set(seen)),
    )


def _roles(table: Table) -> tuple[int, int, int] | None:
    """Return the columns of row, column and value where the table is clearly long."""

    def repeats(a: int, b: int) -> bool:
        first, second = table.columns[a].cells, table.columns[b].cells
        return len(set(zip(first, second, strict=True))) < len(table)

    return long_columns(facts_of(table), len(table), repeats)


def _long(
    table: Table,
    names: tuple[str | None, str | None, str | None],
    roles: tuple[int, int, int] | None,
    noise: str | float | None,
    duplicates: Duplicates,
) -> Reading:
    if len(table.columns) < 3:
        raise table.error(
            f"a long table must have columns for row, column and value, got {listed(table.names)}"
        )
    if roles is not None:
        row, col, value = (table.columns[k] for k in roles)
    else:
        row, col, value = _picked(table, names)
    i, row_labels = _codes(table, row)
    j, col_labels = _codes(table, col)
    values = table.values(value, "leave unknown entries out")
    sd = noise
    if isinstance(noise, str):
        sd = table.values(table.named(noise), "give a standard deviation")  # type: ignore[assignment]
    shape = (len(row_labels), len(col_labels))
    found = Observations.from_triplets(
        i,
        j,
        values,
        shape,
        noise=sd,
        duplicates=duplicates,
        row_labels=row_labels,
        col_labels=col_labels,
    )
    return Reading(found, row.name, col.name)


def _picked(
    table: Table, names: tuple[str | None, str | None, str | None]
) -> tuple[Column, Column, Column]:
    """Return the columns given, else those of usual names, else those in their places."""
    found: list[Column] = []
    for place, (given, usual) in enumerate(zip(names, (ROW, COL, VALUE), strict=True)):
        column = table.named(given) if given is not None else table.column(*usual)
        found.append(table.columns[place] if column is None else column)
    if len({id(column) for column in found}) < 3 and not any(names):
        found = list(table.columns[:3])
    if len({id(column) for column in found}) < 3:
        taken = [column.name for column in found]
        raise table.error(f"row, col and value must be three columns, got {taken}; name them")
    return found[0], found[1], found[2]


def _codes(table: Table, column: Column) -> tuple[Indices, tuple[str, ...]]:
    """Return the code of each label, in order of appearance, and the labels."""
    code: dict[str, int] = {}
    found = np.fromiter(
        (code.setdefault(cell, len(code)) for cell in column.cells), np.int64, len(column)
    )
    if "" in code:
        line = table.lines[column.cells.index("")]
        raise table.error(
            f"line {line} has no label in column {column.name!r}; give one or leave the line out"
        )
    return found, tuple(code)


# Wide tables


def _wide(table: Table, labels: Labels, noise: str | float | None) -> Reading:
    if isinstance(noise, str):
        raise table.error("a wide table has no column of noise; give one number, or a long table")
    labelled = _is_labelled(table, labels)
    body = table.columns[1:] if labelled else table.columns
    col_labels = _column_names(table, body, first=1 + labelled)
    X = np.column_stack([table.values(c, "leave gaps empty", gaps=True) for c in body])
    row_labels = list(table.columns[0].cells) if labelled else None
    if row_labels is not None and "" in row_labels:
        X, row_labels = _without_blank_lines(table, X, row_labels)
    if np.all(np.isnan(X)):
        raise table.error("has no known entry; give at least one")
    found = Observations.from_dense(X, noise=noise, row_labels=row_labels, col_labels=col_labels)
    if not labelled:
        return Reading(found, "rows without labels", "columns")
    name = table.columns[0].name if table.headed else ""
    return Reading(found, name or "rows", "columns")


def _is_labelled(table: Table, labels: Labels) -> bool:
    """Tell whether the first column of a wide table holds labels: as asked, or as it looks."""
    if labels == "first" and len(table.columns) < 2:
        raise table.error("must have a column of values beside its labels")
    if labels != "auto":
        return labels == "first"
    return has_labels(facts_of(table), len(table), table.headed)


def _column_names(table: Table, body: Sequence[Any], first: int) -> list[str] | None:
    """Return the names in the header, none of them empty; None without a header."""
    if not table.headed:
        return None
    for k, column in enumerate(body):
        if not column.name:
            raise table.error(f"column {k + first} has no name in the header; give one")
    return [column.name for column in body]


def _without_blank_lines(table: Table, X: Array, labels: Sequence[str]) -> tuple[Array, list[str]]:
    """Leave out lines without label and values; a line with values must have a label."""
    blank = np.array([label == "" for label in labels])
    unnamed = np.flatnonzero(blank & ~np.isnan(X).all(axis=1))
    if len(unnamed):
        line = table.lines[int(unnamed[0])]
        raise table.error(f"line {line} has no label; give one or leave the line out")
    return X[~blank], [label for label in labels if label]


def _only_labels(table: Table) -> bool:
    """Return whether the first column of points is known to hold ids, by its usual name or as text."""
    facts = facts_of(table)
    if len(facts) < 2 or not table.headed:
        return False
    unique = facts[0].distinct == len(table) and not facts[0].gaps
    named = plain_name(facts[0].name) in (*ROW, "id", "index", "name", "")
    return unique and named and facts[0].kind in ("text", "whole")


# Arrays


def _arrays(path: str, noise: str | float | None, duplicates: Duplicates) -> Observations:
    if isinstance(noise, str):
        raise DataError("a binary file has no named column of noise; give one number")
    found = files.arrays_of(path)
    if isinstance(found, dict):
        if {"format", "shape", "data"} <= set(found):
            matrix = sparse_of(path, found)
            return Observations.from_sparse(matrix, noise=noise, duplicates=duplicates)
        if {"rows", "cols", "values"} <= set(found):
            return _triplets(path, found, noise, duplicates)
    X = np.asarray(_one_array(path, found), dtype=np.float64)
    if np.all(np.isnan(X)):
        raise DataError("has no known entry; give at least one")
    return Observations.from_dense(X, noise=noise)


def _triplets(
    path: str, found: dict[str, Any], noise: float | None, duplicates: Duplicates
) -> Observations:
    with files.boundary(path, "arrays rows, cols and values"):
        shape = None
        if "shape" in found:
            m, n = (int(side) for side in found["shape"])
            shape = (m, n)
        labels = {
            key: [str(label) for label in found[key]]
            for key in ("row_labels", "col_labels")
            if key in found
        }
        return Observations.from_triplets(
            found["rows"],
            found["cols"],
            found["values"],
            shape,
            noise=found.get("noise") if noise is None else noise,
            duplicates=duplicates,
            **labels,
        )


def _one_array(path: str, found: Any) -> Any:
    """Return the one matrix of numbers of a numpy file."""
    if isinstance(found, dict):
        dense = [key for key in found if found[key].ndim == 2 and found[key].dtype.kind in "fiu"]
        if len(dense) != 1:
            held = ", ".join(sorted(found)) or "nothing"
            raise DataError(
                f"{path} must hold rows, cols and values, a sparse matrix or one dense array, it holds {held}"
            )
        found = found[dense[0]]
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise DataError(
            f"{path} must hold a matrix of numbers, got {found.dtype} of shape {found.shape}; "
            "give it two dimensions"
        )
    return found
