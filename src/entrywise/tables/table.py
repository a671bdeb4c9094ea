"""A table as it stands in its file: names or none, columns of text, the line of every record."""

from __future__ import annotations

import csv
import datetime
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from entrywise.exceptions import DataError
from entrywise.layouts import Kind, is_label_name, plain_name
from entrywise.tables import files
from entrywise.tables.numbers import (
    POINT,
    Marks,
    is_gap,
    is_number_with_comma,
    is_parted,
    marks_of,
    number,
    numbers,
    whole,
)
from entrywise.tables.parquet import refuse_wrong_pages
from entrywise.types import Array

SEPARATORS = ",\t;|"
LOOK = 200  # records by which the separator is chosen
PARQUET, EXCEL = (".parquet", ".pq"), (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
Header = Literal["auto", "yes", "no", "named"]
_ZEROS = re.compile(r"0[0-9]+")  # 007 is a name
_DECIMALS = re.compile(r"[+-]?(?:[0-9]*|[1-9][0-9]{0,2}(?:[.,][0-9]{3})+)[.,]([0-9]+)")
_PLAIN = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")  # a whole number as people write one


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its cells as text, stripped, empty where there is nothing."""

    name: str
    cells: Sequence[str]
    marks: Marks = POINT  # how its numbers are written
    typed: Array | None = None  # the numbers, where the file says that they are numbers

    @cached_property
    def _parsed(self) -> tuple[Array, int | None]:
        if self.typed is not None:
            return self.typed, None
        return numbers(self.cells, self.marks)

    @property
    def numbers(self) -> Array:
        """The cells as numbers, NaN where there is none."""
        return self._parsed[0]

    @property
    def bad(self) -> int | None:
        """Place of the first cell that is neither a finite number nor a gap; None when all are."""
        if self.typed is not None:
            infinite = np.flatnonzero(np.isinf(self.typed))
            return int(infinite[0]) if len(infinite) else None
        return self._parsed[1]

    @cached_property
    def kind(self) -> Kind:
        """What the cells are: text, whole numbers, numbers, or nothing at all."""
        if self.bad is not None or any(
            map(_ZEROS.fullmatch, self.cells if self.typed is None else ())
        ):
            return "text"
        seen = self.numbers[~np.isnan(self.numbers)]
        if not len(seen):
            return "empty"
        is_whole = np.all(seen == np.floor(seen)) and np.all(np.abs(seen) < 2**53)
        written_whole = self.typed is not None or not any(
            self.marks.decimal in text for text in self.cells
        )
        return "whole" if is_whole and written_whole else "number"

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True, eq=False)
class Table:
    """A table read from a file.

    Parameters
    ----------
    path : str
    columns : tuple of Column
        Called ``column 1``, ``column 2``, ... where there is no header.
    lines : sequence of int
        Line of the file in which each record starts, counted from 1.
    headed : bool
        Whether the columns have names.
    separator : str, optional
        What parts the cells of text.
    """

    path: str
    columns: tuple[Column, ...]
    lines: Sequence[int]
    headed: bool
    separator: str | None = None  # None where the file is no text

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def column(self, *usual: str) -> Column | None:
        """Return the column with one of the usual names, first come first served, or None."""
        plain = [plain_name(name) for name in self.names] if self.headed else []
        for name in usual:
            if plain.count(plain_name(name)) > 1:
                raise self.error(f"has two columns called {name!r}; rename one")
            if plain_name(name) in plain:
                return self.columns[plain.index(plain_name(name))]
        return None

    def named(self, name: str) -> Column:
        """Return the column with exactly this name; refuse where there is none, or two."""
        if self.names.count(name) > 1:
            raise self.error(f"has two columns called {name!r}; rename one")
        if name not in self.names:
            raise self.error(f"has no column {name!r}; it has {listed(self.names)}")
        return self.columns[self.names.index(name)]

    def values(self, column: Column, hint: str, gaps: bool = False) -> Array:
        """Return the numbers of a column; a cell that is none, or a gap unless allowed, is refused by its line."""
        at = column.bad
        if at is None and not gaps:
            missing = np.flatnonzero(np.isnan(column.numbers))
            at = int(missing[0]) if len(missing) else None
        if at is not None:
            words = f"{column.cells[at]!r} is not a finite number; {hint}"
            raise self.error(f"line {self.lines[at]}, column {column.name!r}: {words}")
        return column.numbers

    def filled(self) -> Table:
        """Return the table without lines in which every cell is empty."""
        kept = [k for k in range(len(self)) if any(column.cells[k] for column in self.columns)]
        if len(kept) == len(self):
            return self
        columns = (
            Column(
                column.name,
                [column.cells[k] for k in kept],
                column.marks,
                None if column.typed is None else column.typed[kept],
            )
            for column in self.columns
        )
        return replace(self, columns=tuple(columns), lines=[self.lines[k] for k in kept])

    def error(self, words: str) -> DataError:
        """Return an error that names the file."""
        return DataError(f"{self.path}: {words}")


def read_table(
    path: str | os.PathLike[str], *, header: Header = "auto", usual: Sequence[str] = ()
) -> Table:
    """Return the table in a file: text with any usual separator, gzip, parquet or a sheet.

    Parameters
    ----------
    path : path
        ``-`` is text on stdin.
    header : {"auto", "yes", "no", "named"}
        Whether the first line names the columns. ``auto`` looks, and refuses where both may be meant; ``named`` takes
        a line with a number in it, or with a cell that occurs again below, for data unless it has a usual name.
    usual : sequence of str
        Names by which a header is known.
    """
    name, kind = os.fspath(path), files.ending(path)
    if kind in PARQUET:
        return _parquet(name)
    if kind in EXCEL:
        records, lines = _sheet(name)
        separator = None
    else:
        separator, records, lines = _text(name)
    width = len(records[0])
    if header == "auto":
        headed = _has_header(name, records, usual, separator)
    else:
        headed = header == "yes" or (header == "named" and _is_named(records, usual, separator))
    body = records[1:] if headed else records
    if not body:
        raise DataError(f"{name}: has a header but no lines; give at least one entry")
    cells = list(map(list, zip(*body, strict=True)))
    titles = records[0] if headed else [f"column {k + 1}" for k in range(width)]
    marks = _marks(name, cells, separator)
    columns = [Column(title, column, marks) for title, column in zip(titles, cells, strict=True)]
    while headed and len(columns) > 1 and not columns[-1].name and not any(columns[-1].cells):
        columns.pop()  # an empty column, left by a spreadsheet
    return Table(name, tuple(columns), lines[1:] if headed else lines, headed, separator)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message, not too many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _marks(path: str, columns: Sequence[Sequence[str]], separator: str | None) -> Marks:
    found = marks_of(columns, comma=separator != ",")
    if found is None:
        cells = [text for column in columns for text in column]
        such = next(text for text in cells if is_number_with_comma(text))
        pointed = next((text for text in cells if "." in text and number(text) is not None), None)
        also = (
            "which may be decimals or part thousands"
            if pointed is None
            else f"and points, {pointed!r}"
        )
        raise DataError(
            f"{path}: its numbers have commas, such as {such!r}, {also}; write decimals with a point and nothing else"
        )
    return found


# Text


def _text(path: str) -> tuple[str, list[list[str]], list[int]]:
    """Return the separator, the records of equal length and their lines."""
    text = files.text_of(path)
    if not text.strip():
        raise DataError(f"{path}: is empty; give a header and at least one line")
    separator = _separator(path, text)
    records, lines = _records(path, text, separator)
    width = len(records[0])
    if width > 1 and len(records) > 1 and all(len(record) == 1 for record in records[1:]):
        raise DataError(
            f"{path}: line {lines[0]} has {width} cells and every other line one; quote cells that hold a separator"
        )
    for record, line in zip(records, lines, strict=True):
        if len(record) > width:
            raise DataError(
                f"{path}: line {line} has {len(record)} cells, more cells than the first ({width}); "
                "quote cells that hold the separator, and write numbers with a point"
            )
        if len(record) < width:
            record += [""] * (width - len(record))
    return separator, records, lines


def _records(
    path: str, text: str, separator: str, most: int | None = None
) -> tuple[list[list[str]], list[int]]:
    """Return the records that are not blank, every cell stripped, and the lines they start in."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    records, lines, line = [], [], 1
    try:
        for record in reader:
            if record:
                records.append([cell.strip() for cell in record])
                lines.append(line)
            line = reader.line_num + 1
            if len(records) == most:
                break
    except csv.Error as error:
        raise DataError(f"{path}: line {line} cannot be read as a table: {error}") from None
    return records, lines


def _separator(path: str, text: str) -> str:
    """Return the separator under which the records are equally wide and the cells look whole."""
    head = text[: LOOK * 2000]
    usual = "\t" if files.ending(path) in (".tsv", ".tab") else ","
    scores = []
    for mark in SEPARATORS:
        score = _score(path, head, mark, whole=len(head) == len(text)) if mark in head else None
        if score is not None:
            scores.append((*score, mark == usual, mark))
    if scores:
        return str(max(scores)[-1])
    first = head.lstrip("\r\n").splitlines()[0]
    present = [mark for mark in SEPARATORS if mark in first]
    return max(present, key=first.count) if present else usual


def _score(path: str, head: str, mark: str, whole: bool) -> tuple[float, int, float] | None:
    """Return how well a separator parts the first records; None where it cannot be the one.

    First the share of records as wide as the first, then how few cells hold another separator and are no number,
    then the share of numbers.
    """
    try:
        records, _ = _records(path, head, mark, LOOK)
    except DataError:
        return None
    widths = [len(record) for record in (records if whole else records[:-1])]
    if not widths or widths[0] == 1 or max(widths) > widths[0]:
        return None
    cells = [cell for record in records for cell in record]
    numeric = [is_gap(cell) or _looks_number(cell, mark) for cell in cells]
    odd = sum(
        not good and any(other in cell for other in SEPARATORS if other != mark)
        for cell, good in zip(cells, numeric, strict=True)
    )
    even = sum(width == widths[0] for width in widths) / len(widths)
    return even, -odd, sum(numeric) / len(cells)


def _looks_number(cell: str, separator: str | None) -> bool:
    if is_parted(cell):
        return True
    text = cell if separator == "," else cell.replace(",", ".", 1)
    return re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?", text) is not None


# Header


def _has_header(
    path: str, records: Sequence[Sequence[str]], usual: Sequence[str], separator: str | None
) -> bool:
    """Return whether the first record names the columns; refuse where it may be either."""
    first, body = records[0], records[1:]
    if _has_usual(first, usual):
        return True
    places = range(len(first))
    numbers_at = [k for k in places if _is_value(first[k], separator)]
    gaps_at = [k for k in places if is_gap(first[k])]
    if len(numbers_at) + len(gaps_at) == len(first):
        return _numbers_are_names(path, first, body)
    over_numbers = {k for k in places if _is_numeric([record[k] for record in body])}
    text_over_numbers = bool(over_numbers.difference(numbers_at, gaps_at))
    if numbers_at:
        return _mixed_is_header(path, first, body, numbers_at, text_over_numbers)
    if text_over_numbers:
        return True
    if over_numbers.intersection(gaps_at) - {0}:  # a corner may be blank
        raise _unclear(path)
    return not _again(records)


def _is_value(cell: str, separator: str | None) -> bool:
    return _looks_number(cell, separator) and not _ZEROS.fullmatch(cell)


def _is_named(
    records: Sequence[Sequence[str]], usual: Sequence[str], separator: str | None
) -> bool:
    """Return whether the first record has a usual name, or may be nothing but names."""
    if _has_usual(records[0], usual):
        return True
    return not (any(_looks_number(cell, separator) for cell in records[0]) or _again(records))


def _has_usual(first: Sequence[str], usual: Sequence[str]) -> bool:
    known = {plain_name(name) for name in usual}
    return any(cell and plain_name(cell) in known for cell in first)


def _again(records: Sequence[Sequence[str]]) -> bool:
    """Return whether a cell of the first record occurs again below it."""
    first, body = records[0], records[1:]
    return any(cell and cell in {record[k] for record in body} for k, cell in enumerate(first))


def _numbers_are_names(path: str, first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether a first line of numbers, perhaps after a blank corner, names columns: 0, 1, 2, ..."""
    corner = int(first[0] == "" and len(first) > 1)
    cells, below = first[corner:], [record[corner:] for record in body]
    if _may_be_called_gap(first, cells, below):
        raise _unclear(path)
    if not body or not (corner or _may_be_names(cells)):
        return False
    if corner and not all(record[0] for record in body):
        return False
    if (corner and _counts_on(cells)) or _by_another_hand(cells, below):
        return True
    if corner or _few_or_even(cells) or not _like_body(first, body):
        raise _unclear(path)
    return False


def _may_be_called_gap(
    first: Sequence[str], cells: Sequence[str], below: Sequence[Sequence[str]]
) -> bool:
    """Return whether a column may be called NA: a line of gaps, or gaps beside names."""
    if below and any(first) and all(map(is_gap, first)):
        return True
    filled = [cell for cell in cells if not is_gap(cell)]
    return 0 < len(filled) < len(cells) and _by_another_hand(filled, below)


def _counts_on(cells: Sequence[str]) -> bool:
    """Return whether cells are 0, 1, 2, ... or 1, 2, 3, ..."""
    places = [whole(cell) for cell in cells]
    return len(places) > 1 and places in (
        list(range(len(places))),
        list(range(1, len(places) + 1)),
    )


def _few_or_even(cells: Sequence[str]) -> bool:
    """Return whether whole numbers are one or two, or stand at even distances: places, years, ids, ..."""
    places = [whole(cell) for cell in cells]
    if len(places) < 3 or None in places:
        return len(places) < 3
    return len(set(np.diff(np.array(places, np.float64)).tolist())) == 1


def _may_be_names(cells: Sequence[str]) -> bool:
    """Return whether numbers may be names: whole and different."""
    is_whole = all(re.fullmatch(r"[+-]?[0-9]+", cell) for cell in cells)
    return is_whole and len(set(cells)) == len(cells)


def _by_another_hand(cells: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether different whole numbers stand over numbers of so many decimals each, zeros at the end written out.

    Who writes 3.00 would have written values of the first line so too: it holds names.
    """
    if not _may_be_names(cells):
        return False
    below = [cell for record in body for cell in record if not is_gap(cell)]
    decimals = [_DECIMALS.fullmatch(cell) for cell in below]
    if not all(decimals) or len({len(found[1]) for found in decimals if found}) != 1:
        return False
    return any(cell.endswith("0") for cell in below)


def _like_body(first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether whole numbers of a first line may be values as those below: whole, and in their range."""
    below = [cell for record in body for cell in record if not is_gap(cell)]
    is_whole = [_PLAIN.fullmatch(cell) is not None for cell in below]
    if 2 * sum(is_whole) < len(below) or not all(map(_PLAIN.fullmatch, first)):
        return False
    values = [float(cell) for cell, good in zip(below, is_whole, strict=True) if good]
    given = [float(cell) for cell in first if cell]
    return bool(values) and min(values) <= min(given) and max(given) <= max(values)


def _mixed_is_header(
    path: str,
    first: Sequence[str],
    body: Sequence[Sequence[str]],
    numbers_at: Sequence[int],
    text_over_numbers: bool,
) -> bool:
    """Return whether a first line of text and numbers names columns: only numbers after a usual name do."""
    cells = [first[k] for k in numbers_at]
    names = _may_be_names(cells)
    after_corner = list(numbers_at) == list(range(1, len(first)))
    if after_corner and is_label_name(first[0]) and names:
        return True
    if names and _by_another_hand(cells, [[record[k] for k in numbers_at] for record in body]):
        return True
    with_gaps = all(k in numbers_at or is_gap(cell) for k, cell in enumerate(first) if k)
    if text_over_numbers or (names and (after_corner or with_gaps)):  # a column may be called NA
        raise _unclear(path)
    return False


def _unclear(path: str) -> DataError:
    return DataError(
        f"{path}: its first line may name the columns or hold values; say --header yes or --header no "
        "(header= in Python)"
    )


def _is_numeric(cells: Sequence[str]) -> bool:
    body = [cell for cell in cells if not is_gap(cell)]
    return bool(body) and all(_looks_number(cell, ";") for cell in body)


# Binary tables


def _parquet(path: str) -> Table:
    with files.boundary(path, "a parquet file"):
        import polars as pl

        data = files.contents(path)
        refuse_wrong_pages(data)
        source = io.BytesIO(data)
        count = int(pl.scan_parquet(source).select(pl.len()).collect().item())
        width = len(pl.read_parquet_schema(source))
        if count * width * 8 > files.LIMIT:
            raise DataError(f"{path}: holds more than {files.LIMIT // 8:,} cells, which is refused")
        source.seek(0)
        table = pl.read_parquet(source)
        columns = tuple(_typed(series) for series in table)
    if not table.height or not table.width:
        raise DataError(f"{path}: has no lines; give at least one entry")
    return Table(path, columns, range(1, table.height + 1), headed=True)


def _typed(series: Any) -> Column:
    """Return a column of a polars frame; numbers stay what they are."""
    import polars as pl

    if isinstance(series.dtype, (pl.List, pl.Array, pl.Struct, pl.Object, pl.Binary)):
        raise DataError(
            f"column {series.name!r} must hold numbers or text, it holds {series.dtype}"
        )
    cells = series.cast(pl.String, strict=False).fill_null("").str.strip_chars().to_list()
    typed = None
    if series.dtype.is_numeric():
        typed = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Column(series.name, cells, typed=typed)


def _sheet(path: str) -> tuple[list[list[str]], list[int]]:
    """Return the records of the one sheet of a workbook and their lines."""
    with files.boundary(path, "a workbook"):
        data = files.contents(path)
        try:
            from python_calamine import CalamineWorkbook
        except ImportError:
            raise DataError(
                f"{path}: reading workbooks needs an extra; pip install 'entrywise[excel]', or save it as CSV"
            ) from None
        if data[:2] == b"PK":
            files.check_zip(path, data).close()
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = [book.get_sheet_by_index(k).to_python() for k in range(len(book.sheet_names))]
    filled = [(name, rows) for name, rows in zip(book.sheet_names, sheets, strict=True) if rows]
    if len(filled) != 1:
        held = listed([name for name, _ in filled]) or "none"
        raise DataError(f"{path}: must have one sheet that is not empty, it has {held}")
    records = [[_cell(value) for value in row] for row in filled[0][1]]
    start = next((k for k, record in enumerate(records) if any(record)), len(records))
    if start == len(records):
        raise DataError(f"{path}: is empty; give a header and at least one line")
    return records[start:], list(range(start + 1, len(records) + 1))


def _cell(value: Any) -> str:
    """Return a cell of a sheet as text; whole numbers without a point, as the sheet shows them."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        is_whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if is_whole else repr(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    return str(value).strip()
