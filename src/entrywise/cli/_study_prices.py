"""Prices as ``entrywise study`` takes them: numbers, columns of the files of rows and columns, small files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entrywise.cli._options import prices_of
from entrywise.exceptions import DataError, ParameterError
from entrywise.tables import Table, read_labels, read_table

RULES = ("product", "sum")
_PRICE = ("price", "cost", "quote")  # what a column of prices is usually called


def quotes(
    words: Sequence[str],
    rule: str | None,
    rows: str | None,
    cols: str | None,
    row_labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
) -> dict[str, Any] | None:
    """Return prices by mode, from what stands behind each ``--price``.

    ``entry=1.5`` is a number; ``rows:COLUMN`` and ``cols:COLUMN`` are columns of the files `rows` and `cols`; a file
    has (label, price) of the rows or of the columns, or (row, col, price) of every entry. Prices of rows and of
    columns together need a `rule`: their product or their sum. Where prices are given none may be missing.
    """
    plain = [word for word in words if "=" in word and not Path(word).exists()]
    found: dict[str, Any] = dict(prices_of(plain) or {})
    by: dict[str, Any] = {}  # prices of rows, of cols, of cells
    if rows is not None and row_labels is None:
        row_labels = read_labels(rows)[0]
    if cols is not None and col_labels is None:
        col_labels = read_labels(cols)[0]
    for word in words:
        if word in plain:
            continue
        if word.startswith("rows:"):
            by["rows"] = _column(rows, word, "--rows")
        elif word.startswith("cols:"):
            by["cols"] = _column(cols, word, "--cols")
        else:
            kind, numbers = _file(word, row_labels, col_labels)
            by[kind] = numbers
    entry = by.get("cells") or _together(by.get("rows"), by.get("cols"), rule)
    if entry is not None:
        found["entry"] = entry
    return found or None


def longer(
    old: dict[str, Any], words: Sequence[str], rule: str | None, rows: str | None, cols: str | None
) -> dict[str, Any] | None:
    """Return the prices of all lines: the `old` ones, then those of the new lines in `rows` and `cols`."""
    if not words:
        return None
    new = quotes(words, rule, rows, cols) or {}
    for mode, price in new.items():
        before = old.get(mode)
        if not isinstance(price, list) or not isinstance(before, list):
            continue
        by_row = len(before[0]) == 1 and len(price[0]) == 1
        by_col = len(before) == 1 and len(price) == 1
        if not by_row and not by_col:
            raise ParameterError("give the prices of all entries anew with `study change --price`")
        new[mode] = before + price if by_row else [before[0] + price[0]]
    return {**old, **new}


def hint(words: Sequence[str] | None, rows: str | None, cols: str | None) -> str | None:
    """Return what to type where a file of lines has prices that nobody asked for."""
    if words:
        return None
    for axis, path in (("rows", rows), ("cols", cols)):
        column = None if path is None else read_labels(path)[1].column(*_PRICE)
        if column is not None:
            return (
                f"every cell costs 1; {path} has a column {column.name!r}, "
                f"take it with --price {axis}:{column.name}"
            )
    return None


def _column(path: str | None, word: str, option: str) -> list[float]:
    """Return a column of the file that names the lines."""
    if path is None:
        raise ParameterError(f"--price {word} takes a column of {option}, which was not given")
    _, table = read_labels(path)
    return _prices(table, word.partition(":")[2])


def _prices(table: Table, name: str | None = None) -> list[float]:
    """Return the prices of a table: every line has one, above 0."""
    column = table.named(name) if name else table.column(*_PRICE)
    if column is None:
        if len(table.columns) != 2:
            raise table.error(f"has no column called price; it has {', '.join(table.names)}")
        column = table.columns[1]
    numbers = table.values(column, "give every line its price")
    for k, price in enumerate(numbers.tolist()):
        if price <= 0:
            raise table.error(
                f"line {table.lines[k]}: a price must be above 0, got {price:g}; give what it costs"
            )
    found: list[float] = numbers.tolist()
    return found


def _file(path: str, rows: Sequence[str] | None, cols: Sequence[str] | None) -> tuple[str, Any]:
    """Return (rows, cols or cells, prices in their order) of a small file."""
    if not Path(path).exists():
        raise ParameterError(
            f"--price must be mode=number, rows:COLUMN, cols:COLUMN or a file, got {path!r}"
        )
    table = read_table(path, header="yes").filled()
    first, second = table.column("row"), table.column("col", "column")
    if first is not None and second is not None:
        return "cells", _cells(table, list(first.cells), list(second.cells), rows, cols)
    labels = list(table.columns[0].cells)
    prices = dict(zip(labels, _prices(table), strict=True))
    for kind, own in (("rows", rows), ("cols", cols)):
        if own is not None and set(labels) <= set(own):
            missing = [label for label in own if label not in prices]
            if missing:
                raise DataError(
                    f"{path} has no price of {missing[0]!r}; {len(missing)} of {len(own)} {kind} are missing: add them"
                )
            return kind, [prices[label] for label in own]
    raise DataError(
        f"{path}: its labels, from {labels[0]!r}, are neither those of the rows nor of the columns"
    )


def _cells(
    table: Table,
    at: list[str],
    to: list[str],
    rows: Sequence[str] | None,
    cols: Sequence[str] | None,
) -> list[list[float]]:
    if rows is None or cols is None:
        raise DataError(f"{table.path}: prices of entries need the labels of rows and columns")
    prices = dict(zip(zip(at, to, strict=True), _prices(table), strict=True))
    missing = [(r, c) for r in rows for c in cols if (r, c) not in prices]
    if missing:
        raise DataError(
            f"{table.path} has no price of {missing[0]}; {len(missing)} entries are missing: add them"
        )
    return [[prices[r, c] for c in cols] for r in rows]


def _together(by_row: Any, by_col: Any, rule: str | None) -> list[list[float]] | None:
    if by_row is None and by_col is None:
        return None
    if by_col is None:
        return [[price] for price in by_row]
    if by_row is None:
        return [list(by_col)]
    if rule not in RULES:
        raise ParameterError(
            "rows and columns both have prices; say what an entry costs: --price-rule product, or --price-rule sum"
        )
    if rule == "product":
        return [[a * b for b in by_col] for a in by_row]
    return [[a + b for b in by_col] for a in by_row]
