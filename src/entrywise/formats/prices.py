"""What cells cost, from what their logs say that they took: tokens at prices of yours, or seconds."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells
from entrywise.tables import Table, read_table

SECONDS = "seconds"  # the price is the time
PER_TOKENS = 1e6  # prices are for a million tokens, as they are published
_MODEL = ("model", "row")


@dataclass(frozen=True)
class Tariff:
    """What a model costs: money for a million tokens in and out, and for a second."""

    input: float = 0.0
    output: float = 0.0
    second: float = 0.0


def read_tariffs(path: str | os.PathLike[str]) -> dict[str, Tariff]:
    """Return the tariff of every model in a table with ``model`` and ``input, output`` (for a million tokens) or ``second``."""
    table = read_table(path, header="yes").filled()
    names = table.column(*_MODEL)
    if names is None:
        raise table.error("must have a column 'model'")
    given = {
        part: _numbers(table, part) for part in ("input", "output", "second") if table.column(part)
    }
    if not given:
        raise table.error("must have columns 'input' and 'output', or 'second'")
    if ("input" in given) != ("output" in given):
        raise table.error("must have both columns 'input' and 'output': an unknown price is no 0")
    found: dict[str, Tariff] = {}
    for k, model in enumerate(names.cells):
        if model in found:
            raise table.error(f"line {table.lines[k]}: {model!r} has a price already")
        found[model] = Tariff(**{part: numbers[k] for part, numbers in given.items()})
    return found


def _numbers(table: Table, name: str) -> list[float]:
    values = [float(x) for x in table.values(table.named(name), "give a price")]
    bad = next((k for k, value in enumerate(values) if value < 0), None)
    if bad is not None:
        raise table.error(f"line {table.lines[bad]}: a price is at least 0, got {values[bad]:g}")
    return values


def priced(cells: ScoredCells, tariffs: Mapping[str, Tariff] | None) -> ScoredCells:
    """Return the cells with what each cost; None as `tariffs` makes the price the seconds. An unknown price is an error."""
    tariff = Tariff(second=1.0)
    found = []
    for cell in cells.cells:
        if tariffs is not None:
            if cell.row not in tariffs:
                known = ", ".join(map(repr, tariffs))
                raise DataError(
                    f"{cells.path}: the price of {cell.row!r} is unknown; add it to the table, which has {known}"
                )
            tariff = tariffs[cell.row]
        found.append(cell._replace(cost=_cost(cells.path, cell, tariff)))
    return replace(cells, cells=tuple(found))


def _cost(path: str, cell: Cell, tariff: Tariff) -> float:
    used = cell.usage
    parts = (
        ("input tokens", used.input_tokens, tariff.input / PER_TOKENS),
        ("output tokens", used.output_tokens, tariff.output / PER_TOKENS),
        ("seconds", used.seconds, tariff.second),
    )
    total = 0.0
    for words, amount, price in parts:
        if not price:
            continue
        if amount is None:
            raise DataError(
                f"{path}: the log does not say the {words} of ({cell.row}, {cell.col}), so its price is unknown"
            )
        total += amount * price
    return total


def quotes(cells: ScoredCells) -> list[tuple[str, str, float]]:
    """Return a price for every row and column of the log: the mean of what the cell cost, else of what its row did."""
    own: dict[tuple[str, str], list[float]] = defaultdict(list)
    by_row: dict[str, list[float]] = defaultdict(list)
    for cell in cells.cells:
        if cell.cost is None:
            raise DataError(
                f"{cells.path}: say what cells cost (--price-from-log seconds, or FILE)"
            )
        own[cell.row, cell.col].append(cell.cost)
        by_row[cell.row].append(cell.cost)

    def quote(row: str, col: str) -> float:
        costs = own.get((row, col)) or by_row[row]
        return sum(costs) / len(costs)

    return [(row, col, quote(row, col)) for row in cells.rows for col in cells.cols]
