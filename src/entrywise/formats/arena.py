"""Arena battles: ``model_a, model_b, winner``, where ``winner`` says ``model_a``, ``model_b`` or a tie; a table or JSON."""

from __future__ import annotations

import csv
import io

from entrywise.exceptions import DataError
from entrywise.formats.source import FileFormat, Source, Wanted
from entrywise.tables import Column, Comparisons, Table, comparisons_of

_NAMES = ("model_a", "model_b", "winner")


def fits(source: Source) -> bool:
    """Tell whether a file holds battles."""
    return source.has(*_NAMES) or source.named(*_NAMES)


def read(source: Source, wanted: Wanted) -> Comparisons:
    """Return who beat whom, ties as half a win each way."""
    return comparisons_of(source.table if source.table is not None else _table(source))


def _table(source: Source) -> Table:
    """Return the battles of JSON records as a table."""
    cells: list[list[str]] = [[], [], []]
    for k in range(len(source.records)):
        for column, value in zip(cells, source.need(k, *_NAMES), strict=True):
            if not isinstance(value, str):
                raise DataError(f"{source.where(k)}: names and winner must be texts, got {value!r}")
            column.append(value)
    columns = tuple(Column(name, column) for name, column in zip(_NAMES, cells, strict=True))
    return Table(source.path, columns, range(1, len(cells[0]) + 1), headed=True)


def write(games: Comparisons) -> str:
    """Return battles as CSV; two halves of a tie become one line again."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_NAMES)
    each = list(zip(games.winners, games.losers, games.counts, strict=True))
    k = 0
    while k < len(each):
        won, lost, count = each[k]
        tie = count == 0.5 and k + 1 < len(each) and each[k + 1] == (lost, won, 0.5)
        if not tie and count != 1.0:
            raise DataError(f"game {k} counts {count:g}; Arena knows whole wins and ties only")
        writer.writerow((won, lost, "tie" if tie else "model_a"))
        k += 2 if tie else 1
    return text.getvalue()


FORMAT = FileFormat(
    name="arena",
    holds="games",
    words="model_a, model_b, winner (which holds model_a, model_b or a tie), as a table or JSON",
    fits=fits,
    read=read,
    write=write,
)
