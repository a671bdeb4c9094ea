"""Known entries from files: triplets or wide tables, text or binary, compressed or not.

Labels stay text: ``007`` and ``7`` are two labels. Nothing is guessed quietly that changes numbers: a value that
is not a number is refused with its line.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Duplicates, Observations
from entrywise.types import Array, Indices

Layout = Literal["auto", "long", "wide"]
GAPS = frozenset(("", "na", "nan", "n/a", "null", "none", "?", "."))
_NAMES = (
    ("row", "user", "drug", "item_a", "worker", "model"),
    ("col", "column", "item", "target", "movie", "task"),
)
_VALUES = ("value", "rating", "score", "label")
_LABELLED = frozenset(("", "row", "id", "name", "label", "index", "user", "item", "model"))


def read(
    path: str | os.PathLike[str],
    *,
    row: str | None = None,
    col: str | None = None,
    value: str | None = None,
    noise: str | float | None = None,
    layout: Layout = "auto",
    duplicates: Duplicates = "refuse",
) -> Observations:
    """Return the known entries in a file.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv`` or ``.txt`` text, ``.parquet``, ``.npy`` (a dense array, NaN unknown), or ``.npz``: a scipy
        sparse matrix (explicit zeros are known), arrays ``rows``, ``cols``, ``values`` (and ``shape``, ``noise``), or
        one dense array. Text may end in ``.gz``; ``-`` is CSV on stdin.
    row, col, value : str, optional
        Columns of a long table; else those called so (or user, item, rating and the like), else the first three.
    noise : str or float, optional
        Column with the standard deviation of each value, or one number for all.
    layout : {"auto", "long", "wide"}
        ``long``: one entry a line. ``wide``: one row a line, gaps (empty, NA, NaN, ?) unknown, labels in the first column
        when it has no name or holds text. ``auto`` takes three columns, or named ones, as long, anything else as wide.
    duplicates : {"refuse", "first", "last", "mean", "keep"}
        What to do when an entry is listed twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("user,film,rating\\n007,Alien,4\\n7,Alien,5\\n")
    >>> seen = read(folder / "a.csv")
    >>> seen.row_labels, seen.shape
    (('007', '7'), (2, 1))
    """
    if layout not in ("auto", "long", "wide"):
        raise ParameterError(f"layout must be auto, long or wide, got {layout!r}")
    name = os.fspath(path)
    try:
        return _read(name, row, col, value, noise, layout, duplicates)
    except DataError as error:
        text = str(error)
        raise DataError(text if text.startswith(name) else f"{name}: {text}") from None


def _read(
    name: str, row: str | None, col: str | None, value: str | None, noise: str | float | None, layout: Layout,
    duplicates: Duplicates,
) -> Observations:  # fmt: skip
    lower = name.lower().removesuffix(".gz")
    if lower.endswith((".npy", ".npz")):
        return _arrays(name, noise, duplicates)
    if lower.endswith((".parquet", ".pq")):
        import polars as pl

        try:
            table = pl.read_parquet(name)
        except FileNotFoundError:
            raise
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"must be a parquet file: {str(error).splitlines()[0]}") from None
        names, cells = table.columns, [s.cast(pl.String).to_list() for s in table]
        if not table.height:
            raise DataError("has no lines; give at least one entry")
    else:
        names, cells = _text(name)
    if layout == "auto":
        layout = "long" if _is_long(names, cells, row, col, value) else "wide"
    if layout == "long":
        return _long(names, cells, row, col, value, noise, duplicates)
    return _wide(names, cells, noise)


def text_of(name: str) -> str:
    """Return the text of a file, ``-`` for stdin, decompressed when it ends in ``.gz``."""
    if name == "-":
        data = sys.stdin.buffer.read()
    else:
        data = Path(name).read_bytes()
    if name.lower().endswith(".gz") or data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"must be a gzip file: {error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"must be UTF-8 text, byte {error.start} is not; convert it") from None


def _text(name: str) -> tuple[list[str], list[list[str | None]]]:
    """Return the header and the columns of a text table, every cell as text."""
    import polars as pl

    text = text_of(name)
    if not text.strip():
        raise DataError("is empty; give a header and at least one line")
    first = text.lstrip("\n").split("\n", 1)[0]
    mark = "\t" if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    for other in ("\t", ";"):
        if first.count(other) > first.count(mark):
            mark = other
    options: dict[str, Any] = {"separator": mark, "infer_schema": False}
    try:
        table = pl.read_csv(
            io.StringIO(text), has_header=False, truncate_ragged_lines=False, **options
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(f"cannot be read as a table: {str(error).splitlines()[0]}") from None
    columns = [s.to_list() for s in table]
    header = [str(c[0] or "").strip() for c in columns]
    number = [_number(x) is not None for x in header]
    if all(number) or (len(header) == 3 and number[2]):
        return [f"column {k + 1}" for k in range(len(header))], columns
    if table.height < 2:
        raise DataError("has a header but no lines; give at least one entry")
    return header, [c[1:] for c in columns]


def _is_long(
    names: Sequence[str],
    cells: Sequence[Sequence[str | None]],
    row: str | None,
    col: str | None,
    value: str | None,
) -> bool:
    if any(given is not None for given in (row, col, value)):
        return True
    lower = [n.lower() for n in names]
    if any(n in _VALUES for n in lower) and len(names) >= 3:
        return True
    gaps = any((x or "").strip().lower() in GAPS for c in cells for x in c)
    return len(names) == 3 and not gaps


def _long(
    names: Sequence[str], cells: Sequence[Sequence[str | None]], row: str | None, col: str | None, value: str | None,
    noise: str | float | None, duplicates: Duplicates,
) -> Observations:  # fmt: skip
    if len(names) < 3:
        raise DataError(
            f"a long table must have columns for row, column and value, got {', '.join(map(repr, names))}"
        )
    lower = [n.lower() for n in names]
    wanted = []
    usual = (*_NAMES, _VALUES)
    for k, given in enumerate((row, col, value)):
        if given is not None and given not in names:
            raise DataError(f"has no column {given!r}; it has {', '.join(map(repr, names))}")
        known = [lower.index(n) for n in usual[k] if n in lower]
        wanted.append(names.index(given) if given is not None else known[0] if known else k)
    if len(set(wanted)) < 3:
        wanted = [0, 1, 2] if (row, col, value) == (None, None, None) else wanted
    if len(set(wanted)) < 3:
        raise DataError(
            f"row, col and value must be three columns, got {[names[k] for k in wanted]}; name them"
        )
    i, row_labels = _codes(cells[wanted[0]], names[wanted[0]])
    j, col_labels = _codes(cells[wanted[1]], names[wanted[1]])
    values = _column(cells[wanted[2]], names[wanted[2]])
    if isinstance(noise, str) and noise not in names:
        raise DataError(f"has no column {noise!r}; it has {', '.join(map(repr, names))}")
    sd = _column(cells[names.index(noise)], noise) if isinstance(noise, str) else noise
    found = Observations(
        i, j, values, (len(row_labels), len(col_labels)), sd, row_labels, col_labels
    )
    return found._resolve(duplicates)


def _wide(
    names: Sequence[str], cells: Sequence[Sequence[str | None]], noise: str | float | None
) -> Observations:
    if isinstance(noise, str):
        raise DataError("a wide table has no column of noise; give one number, or a long table")
    first = [(x or "").strip() for x in cells[0]]
    text = any(x.lower() not in GAPS and _number(x) is None for x in first)
    headed = not names[0].startswith("column ")
    labelled = len(names) > 1 and (text or (headed and names[0].lower() in _LABELLED))
    body, titles = (cells[1:], list(names[1:])) if labelled else (cells, list(names))
    X = np.full((len(first), len(body)), np.nan)
    for c, column in enumerate(body):
        for r, x in enumerate(column):
            cell = (x or "").strip()
            if cell.lower() in GAPS:
                continue
            number = _number(cell)
            if number is None or not np.isfinite(number):
                raise DataError(
                    f"line {r + 2}, column {titles[c]!r}: {cell!r} is not a finite number; leave gaps empty"
                )
            X[r, c] = number
    if np.all(np.isnan(X)):
        raise DataError("has no known entry; give at least one")
    return Observations.from_dense(
        X,
        noise=noise,
        row_labels=first if labelled else None,
        col_labels=titles if headed else None,
    )


def _arrays(name: str, noise: str | float | None, duplicates: Duplicates) -> Observations:
    if isinstance(noise, str):
        raise DataError("a binary file has no named column of noise; give one number")
    try:
        with gzip.open(name) if name.lower().endswith(".gz") else open(name, "rb") as file:
            data = io.BytesIO(file.read())
        loaded = np.load(data, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"must be a numpy file without pickles: {error}") from None
    if isinstance(loaded, np.ndarray):
        return _dense(loaded, noise)
    keys = set(loaded.files)
    if {"format", "shape", "data"} <= keys:
        from scipy.sparse import load_npz

        data.seek(0)
        return Observations.from_sparse(load_npz(data), noise=noise, duplicates=duplicates)
    if {"rows", "cols", "values"} <= keys:
        shape = (int(loaded["shape"][0]), int(loaded["shape"][1])) if "shape" in keys else None
        given = loaded["noise"] if "noise" in keys and noise is None else noise
        labels = {k: [str(x) for x in loaded[k]] for k in ("row_labels", "col_labels") if k in keys}
        return Observations.from_triplets(
            loaded["rows"],
            loaded["cols"],
            loaded["values"],
            shape,
            noise=given,
            duplicates=duplicates,
            **labels,
        )
    dense = [k for k in loaded.files if loaded[k].ndim == 2 and loaded[k].dtype.kind in "fiu"]
    if len(dense) == 1:
        return _dense(loaded[dense[0]], noise)
    raise DataError(
        f"must hold rows, cols and values, a sparse matrix or one dense array, it holds {', '.join(sorted(keys)) or 'nothing'}"
    )


def _dense(X: Any, noise: float | None) -> Observations:
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(f"must hold a matrix of numbers, got {X.dtype} of shape {X.shape}")
    if not np.any(~np.isnan(X.astype(np.float64))):
        raise DataError("has no known entry; give at least one")
    return Observations.from_dense(X, noise=noise)


def _codes(cells: Sequence[str | None], name: str) -> tuple[Indices, tuple[str, ...]]:
    """Return the code of each label, in order of appearance, and the labels."""
    code: dict[str, int] = {}
    found = np.empty(len(cells), np.int64)
    for line, cell in enumerate(cells):
        if not cell:
            raise DataError(
                f"line {line + 2} has no label in column {name!r}; give one or leave the line out"
            )
        found[line] = code.setdefault(cell, len(code))
    return found, tuple(code)


def _column(cells: Sequence[str | None], name: str) -> Array:
    """Return a column of numbers, refusing the first that is none by its line."""
    try:
        found = np.array(cells, dtype=np.float64)
        if np.all(np.isfinite(found)):
            return found
    except (TypeError, ValueError):
        pass
    found = np.empty(len(cells))
    for line, cell in enumerate(cells):
        number = _number(cell or "")
        if number is None or not np.isfinite(number):
            raise DataError(
                f"line {line + 2}, column {name!r}: {cell or ''!r} is not a finite number; leave unknown entries out"
            )
        found[line] = number
    return found


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None and "_" not in text else None
    except ValueError:
        return None
