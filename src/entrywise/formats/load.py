"""Files of the field by what they hold: told by their content, read, written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from entrywise.exceptions import DataError, ParameterError
from entrywise.formats import (
    alpaca_eval,
    arena,
    cleanlab,
    crowd_kit,
    every_eval_ever,
    helm,
    inspect,
    label_studio,
    lm_eval,
    table,
)
from entrywise.formats.cells import Annotations, ScoredCells, same_content
from entrywise.formats.source import FileFormat, Held, Source, Wanted
from entrywise.layouts import Labels, Layout
from entrywise.observations import Duplicates, Observations
from entrywise.tables import boundary, read_entries
from entrywise.tables.table import Header

TABLE = FileFormat(
    name="table",
    holds="cells",
    words="a table of row, col, value, or a wide one",
    fits=table.fits,
    read=table.read,
)
KNOWN: tuple[FileFormat, ...] = (
    every_eval_ever.FORMAT,
    lm_eval.FORMAT,
    helm.FORMAT,
    alpaca_eval.FORMAT,
    inspect.FORMAT,
    arena.FORMAT,
    crowd_kit.FORMAT,
    label_studio.FORMAT,
    cleanlab.FORMAT,
    TABLE,
)
_STREAMED = ("table", "crowd-kit", "cleanlab")  # what may come on stdin
_HELD = {
    "annotations": "who gave which label to what: entrywise crowd, or formats.load in Python",
    "games": "who beat whom: entrywise rank, or formats.load in Python",
}


def load(
    path: str | os.PathLike[str],
    format: str = "auto",
    *,
    metric: str | None = None,
    model: str | None = None,
) -> Held:
    """Return what a file, or a folder of one harness's files, holds.

    Parameters
    ----------
    path : path
    format : str
        A name of :data:`KNOWN`; ``auto`` tells it by the content and refuses what it does not recognise.
    metric : str, optional
        Which score, where a file has several: a metric (``exact_match,strict-match`` in lm-eval), a scorer of Inspect,
        a reference of AlpacaEval, a control tag of Label Studio.
    model : str, optional
        What the one row is called, where the file does not say it or says it otherwise.

    Returns
    -------
    ScoredCells, Annotations or Comparisons
        Scores by row and column (None where a sample failed); item, worker, label; or who beat whom.
    """
    wanted = Wanted(metric, model)
    if os.path.isdir(path):
        return _called(_folder(Path(path), format, wanted), model)
    source = Source(path)
    found = _told(source) if format == "auto" else _named(format)
    if source.path == "-" and found.name not in _STREAMED:
        raise DataError(f"stdin is read as {', '.join(_STREAMED)}; give {found.name} as a file")
    held = _read(found, source, wanted)
    return _called(same_content(held), model) if isinstance(held, ScoredCells) else held


def _called(cells: ScoredCells, model: str | None) -> ScoredCells:
    """Return the cells of one row under the name that the caller gives it."""
    if model is None or cells.rows == [model]:
        return cells
    if len(cells.rows) > 1:
        names = ", ".join(map(repr, cells.rows[:8]))
        raise DataError(f"{cells.path} has several rows, {names}; one name cannot be all of theirs")
    return replace(cells, cells=tuple(cell._replace(row=model) for cell in cells.cells))


def _named(name: str) -> FileFormat:
    found = next((known for known in KNOWN if known.name == name), None)
    if found is None:
        names = ", ".join(known.name for known in KNOWN)
        raise ParameterError(f"format must be auto or one of {names}, got {name!r}")
    return found


def _told(source: Source) -> FileFormat:
    """Return the format of a file by its content; tables that are nothing else are tables."""
    found = next((known for known in KNOWN if known.fits(source)), None)
    if found is None and source.is_table:
        return TABLE
    if found is None:
        raise unknown(source.path)
    return found


def unknown(path: str) -> DataError:
    """Return the error for what is not recognised, with the formats that we know."""
    known = "; ".join(f"{one.name} ({one.words})" for one in KNOWN)
    return DataError(f"{path} is in none of the formats we know: {known}")


def _folder(path: Path, format: str, wanted: Wanted) -> ScoredCells:
    """Return the cells of all files of one format below a folder."""
    tried = [known for known in KNOWN if known.pattern] if format == "auto" else [_named(format)]
    by_format: dict[str, list[Source]] = {}
    for known in tried:
        if known.pattern is None:
            raise DataError(f"{path} is a folder; {known.name} is one file, give it")
        each = [Source(file) for file in sorted(path.rglob(known.pattern))]
        fitting = [source for source in each if known.fits(source)]
        if fitting:
            by_format[known.name] = fitting
    if not by_format:
        raise unknown(str(path))
    if len(by_format) > 1:
        raise DataError(f"{path} has files of {', '.join(by_format)}; say which (--from NAME)")
    ((name, sources),) = by_format.items()
    return _joined(path, [_read(_named(name), source, wanted) for source in sources])


def _read(format: FileFormat, source: Source, wanted: Wanted) -> Held:
    """Return what a file holds; whatever a wrong shape of its records raises is one sentence."""
    with boundary(source.path, f"whole, as {format.name} writes it ({format.words})"):
        return format.read(source, wanted)


def _joined(path: Path, parts: Sequence[Held]) -> ScoredCells:
    """Return the cells of several files; a cell that stands in an earlier one is a further repeat."""
    seen: dict[tuple[str, str], int] = {}
    found = []
    for part in parts:
        if not isinstance(part, ScoredCells):
            raise DataError(f"{path} must be a folder of scores")
        base = dict(seen)
        for cell in part.cells:
            key = (cell.row, cell.col)
            repeat = base.get(key, 0) + cell.repeat
            seen[key] = max(seen.get(key, 0), repeat + 1)
            found.append(cell._replace(repeat=repeat))
    return same_content(ScoredCells(tuple(found), str(path)))


def read(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    metric: str | None = None,
    model: str | None = None,
    row: str | None = None,
    col: str | None = None,
    value: str | None = None,
    noise: str | float | None = None,
    layout: Layout = "auto",
    labels: Labels = "auto",
    header: Header = "auto",
    duplicates: Duplicates = "refuse",
) -> Observations:
    """Return the known entries in a table, an array, or a log of the field.

    Parameters
    ----------
    path : path
        Text with commas, tabs, semicolons or bars (``.csv``, ``.tsv``, ``.txt``), ``.parquet``, ``.xlsx`` (with the
        extra ``excel``), ``.npy`` (a dense array, NaN unknown), or ``.npz``: a scipy sparse matrix (explicit zeros
        are known), arrays ``rows``, ``cols``, ``values`` (and ``shape``, ``noise``), or one dense array. Any may end
        in ``.gz``; ``-`` is text on stdin. Or samples of lm-eval, Inspect, HELM, AlpacaEval or Every Eval Ever, a file or a folder.
    format : str
        ``auto`` takes tables and arrays by the ending of their name, and tells the others by their content.
    metric, model : str, optional
        Which score, and what the row is called, where a log does not say; see :func:`entrywise.formats.load`.
    row, col, value : str, optional
        Columns of a long table; else those called so (or user, item, rating and the like), else the first three.
    noise : str or float, optional
        Column with the standard deviation of each value, or one number for all.
    layout : {"auto", "long", "wide"}
        ``long``: one entry a line. ``wide``: one row a line, gaps (empty, NA, NaN, ?) unknown. ``auto`` takes a table
        as long only where its columns say so: by their names, or as two columns of text or of whole numbers that
        repeat, and one of numbers.
    labels : {"auto", "first", "none"}
        Whether the first column of a wide table holds labels. ``auto``: unique text does; unique whole numbers do
        under a name of their own beside columns of numbers.
    header : {"auto", "yes", "no"}
        Whether the first line of text names the columns.
    duplicates : {"refuse", "first", "last", "mean", "keep"}
        What to do when an entry is listed twice, as epochs of a sample are.

    Raises
    ------
    DataError
        Naming file, line and column; or, where two readings are possible, both options.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("user,film,rating\\n007,Alien,4\\n7,Alien,5\\n")
    >>> seen = read(folder / "a.csv")
    >>> seen.row_labels, seen.shape
    (('007', '7'), (2, 1))
    """
    is_table = not os.path.isdir(path) and (Source(path).is_table or not _is_json(path))
    if format == "table" or (format == "auto" and is_table):
        return read_entries(
            path,
            names=(row, col, value),
            noise=noise,
            layout=layout,
            labels=labels,
            header=header,
            duplicates=duplicates,
        ).observations
    held = load(path, format, metric=metric, model=model)
    if isinstance(held, ScoredCells):
        return held.observations(duplicates)
    what = "annotations" if isinstance(held, Annotations) else "games"
    raise DataError(f"{os.fspath(path)} holds no known entries but {_HELD[what]}")


def _is_json(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file that is no table by its name is one of JSON, or a log that is packed."""
    source = Source(path)
    return source.packed or source.document is not None


def writers(held: Held) -> dict[str, Any]:
    """Return what can be written of what a file holds: a function for each name."""
    if isinstance(held, ScoredCells):
        return dict(table.WRITERS)
    holds = "annotations" if isinstance(held, Annotations) else "games"
    return {one.name: one.write for one in KNOWN if one.holds == holds and one.write is not None}


def written(held: Held, format: str) -> str:
    """Return the text of a file in another format that holds the same."""
    known = writers(held)
    if format not in known:
        raise ParameterError(f"this can be written as {', '.join(known)}, not as {format!r}")
    return str(known[format](held))
