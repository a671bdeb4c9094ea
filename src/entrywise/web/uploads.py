"""Files that people send: labels, answers, known entries, prices. They are read as the command line reads them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from fastapi import UploadFile

from entrywise.exceptions import DataError
from entrywise.observations import Observations
from entrywise.tables import number, read_labels, read_long, read_table
from entrywise.types import Array

ENDINGS = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".xlsx", ".xls", ".ods")


@contextlib.contextmanager
def _kept(file: UploadFile) -> Iterator[str]:
    """Keep what was sent for as long as it is read, under a name of ours that ends as theirs does."""
    given = (file.filename or "").lower()
    ending = next((e for e in ENDINGS if given.endswith(e)), ".csv")
    if ending == ".gz":
        ending = ".csv.gz"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "upload" + ending)
        with open(path, "wb") as out:
            while part := file.file.read(2**20):
                out.write(part)
        try:
            yield path
        except DataError as error:
            raise DataError(str(error).replace(path, "the file")) from None


def empty(file: UploadFile | None) -> bool:
    """Tell whether no file was sent: a browser sends an empty one without a name."""
    return file is None or not file.filename


def labels(file: UploadFile | None) -> list[str] | None:
    """Return the labels in the first column of a file with a header."""
    if file is None or not file.filename:
        return None
    with _kept(file) as path:
        return read_labels(path)[0]


def answers(file: UploadFile) -> tuple[list[tuple[Any, ...]], Callable[[int], str]]:
    """Return the answers of a file, and where each came from; lines without a value are left out."""
    with _kept(file) as path:
        table = read_table(path, header="yes")
    columns = {c.name: c.cells for c in table.columns}
    if "value" not in columns or not ({"id"} <= columns.keys() or {"row", "col"} <= columns.keys()):
        raise DataError("the file must have a column value, and id or row and col")
    names = [k for k in ("id", "row", "col", "value") if k in columns]
    names = names if {"row", "col"} <= set(names) else ["id", "value"]
    lines = [
        (at, item)
        for at, *item in zip(table.lines, *(columns[k] for k in names), strict=True)
        if item[-1]
    ]
    return [tuple(item) for _, item in lines], lambda k: f"line {lines[k][0]}: "


def beside(
    rows: list[str] | None,
    cols: list[str] | None,
    known_file: UploadFile | None,
    price_file: UploadFile | None,
) -> tuple[Observations | None, Array | None]:
    """Return what is known beforehand and the price of every cell, where such files were sent."""
    if empty(known_file) and empty(price_file):
        return None, None
    if rows is None or cols is None:
        raise DataError("known entries and prices need the labels of rows and columns")
    seen = None if empty(known_file) else known(known_file, rows, cols)
    quotes = None if empty(price_file) else prices(price_file, rows, cols)
    return seen, quotes


def known(file: Any, rows: list[str], cols: list[str]) -> Observations:
    """Return the entries of a file of row, col, value."""
    return _cells(file, rows, cols, "value")


def prices(file: Any, rows: list[str], cols: list[str]) -> Array:
    """Return the price of every cell, shape (m, n), from a file of row, col, price."""
    table = _cells(file, rows, cols, "price").to_dense()
    missing = np.argwhere(np.isnan(table))
    if len(missing):
        i, j = missing[0]
        raise DataError(f"every cell needs a price, ({rows[i]!r}, {cols[j]!r}) has none; add it")
    return table


def _cells(file: UploadFile, rows: list[str], cols: list[str], name: str) -> Observations:
    with _kept(file) as path:
        facts = read_long(path, [(role, (role,)) for role in ("row", "col", name)])
    places = [{label: k for k, label in enumerate(axis)} for axis in (rows, cols)]
    found = []
    for at, row, col, text in zip(facts.lines, *facts.cells, strict=True):
        value = number(text)
        if row not in places[0] or col not in places[1]:
            raise DataError(f"line {at}: there is no cell ({row!r}, {col!r})")
        if value is None:
            raise DataError(f"line {at}: {name} must be a number, got {text!r}")
        found.append((places[0][row], places[1][col], value))
    if not found:
        raise DataError(f"the file must have lines of row, col, {name}, it has none")
    i, j, values = zip(*found, strict=True)
    return Observations.from_triplets(i, j, values, (len(rows), len(cols)))
