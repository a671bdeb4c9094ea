"""Tables out: CSV as it is, workbooks with every label as text."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

from entrywise.exceptions import DataError
from entrywise.npz import write_whole


def write_table(
    path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write columns and rows to a ``.csv`` or ``.xlsx`` file, whole or not at all.

    A label that a spreadsheet would take for a formula (``=A1``) stays as it is in CSV, since files make round
    trips; in a workbook it is written as text and never runs.
    """
    if os.fspath(path).lower().endswith(".xlsx"):
        write_whole(path, _workbook(columns, rows))
        return
    write_whole(path, csv_text(columns, rows).encode())


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return columns and rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _workbook(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    try:
        from xlsxwriter import Workbook
    except ImportError:
        raise DataError(
            "writing workbooks needs an extra; pip install 'entrywise[excel]', or write a .csv"
        ) from None
    buffer = io.BytesIO()
    with Workbook(buffer, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for r, row in enumerate([columns, *rows]):
            for c, value in enumerate(row):
                _put(sheet, r, c, value)
    return buffer.getvalue()


def _put(sheet: Any, row: int, col: int, value: Any) -> None:
    """Write a number as a number and anything else as text; gaps stay empty."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is None or (is_number and not math.isfinite(value)):
        return
    if is_number:
        sheet.write_number(row, col, value)
    else:
        sheet.write_string(row, col, str(value))
