"""Tables of our own: cells one a line (``row, col, value``, with ``failed`` where a cell has no value) or wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells, Usage
from entrywise.formats.prices import quotes
from entrywise.formats.source import Source, Wanted
from entrywise.tables import Table, csv_text, number, read_entries, read_table, whole

FAILED = "failed"
LONG = ("row", "col", "value", "repeat", "input_tokens", "output_tokens", "seconds", "cost")


def fits(source: Source) -> bool:
    """Tell whether a file is our long table."""
    return source.named(*LONG[:4])


def read(source: Source, wanted: Wanted) -> ScoredCells:
    """Return the cells of a table: our long one, or any that :func:`entrywise.tables.read` understands."""
    if source.table is None or not fits(source):
        seen = read_entries(source.path, duplicates="keep").observations
        rows = seen.row_labels or [str(i) for i in range(seen.shape[0])]
        cols = seen.col_labels or [str(j) for j in range(seen.shape[1])]
        each = zip(seen.rows, seen.cols, seen.values, strict=True)
        return ScoredCells(tuple(Cell(rows[i], cols[j], float(y)) for i, j, y in each), source.path)
    table = read_table(source.path, header="yes").filled()
    columns = [table.named(name).cells for name in LONG[:4]]
    found = []
    for k, (row, col, value, repeat) in enumerate(zip(*columns, strict=True)):
        y, times = number(value), whole(repeat)
        if (y is None and value != FAILED) or times is None:
            raise table.error(
                f"line {table.lines[k]}: value must be a number or failed and repeat a count, got {value!r}, {repeat!r}"
            )
        found.append(Cell(row, col, y, times))
    tokens_in, tokens_out, seconds, cost = (_numbers(table, name) for name in LONG[4:])
    cells = tuple(
        cell._replace(usage=Usage(tokens_in[k], tokens_out[k], seconds[k]), cost=cost[k])
        for k, cell in enumerate(found)
    )
    return ScoredCells(cells, source.path)


def _numbers(table: Table, name: str) -> list[float | None]:
    """Return what a column says of every cell: a number, or None where it is empty or there is no such column."""
    column = table.column(name)
    if column is None:
        return [None] * len(table.lines)
    found = [number(text) for text in column.cells]
    bad = next((k for k, text in enumerate(column.cells) if text and found[k] is None), None)
    if bad is not None:
        raise table.error(
            f"line {table.lines[bad]}: {name} must be a number, got {column.cells[bad]!r}"
        )
    return found


def write_long(cells: ScoredCells) -> str:
    """Return the cells as CSV, one a line; ``entrywise study tell`` takes it as it is."""
    return csv_text(
        LONG, ((c.row, c.col, _value(c), c.repeat, *c.usage, c.cost) for c in cells.cells)
    )


def write_wide(cells: ScoredCells) -> str:
    """Return the cells as CSV, a row a line; failed ones are gaps, and a repeat has no place."""
    values: dict[tuple[str, str], float | None] = {}
    for cell in cells.cells:
        if (cell.row, cell.col) in values:
            raise DataError(
                f"cell ({cell.row}, {cell.col}) has repeats; a wide table has one place"
            )
        values[cell.row, cell.col] = cell.value
    cols = cells.cols
    lines = ((row, *(values.get((row, col)) for col in cols)) for row in cells.rows)
    return csv_text(("row", *cols), lines)


def write_columns(cells: ScoredCells) -> str:
    """Return the columns, for ``--cols``."""
    return csv_text(("col",), ((col,) for col in cells.cols))


def write_prices(cells: ScoredCells) -> str:
    """Return a price for every cell, for ``entrywise leaderboard create --price``."""
    return csv_text(("row", "col", "price"), quotes(cells))


def _value(cell: Cell) -> Any:
    return FAILED if cell.value is None else cell.value


WRITERS: dict[str, Callable[[ScoredCells], str]] = {
    "csv": write_long,
    "wide": write_wide,
    "columns": write_columns,
    "prices": write_prices,
}
