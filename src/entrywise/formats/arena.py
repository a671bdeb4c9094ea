"""Arena battles: ``model_a, model_b, winner``, where ``winner`` says ``model_a``, ``model_b`` or a tie; a table or JSON."""

from __future__ import annotations

from entrywise.exceptions import DataError
from entrywise.formats.source import FileFormat, Source, Wanted
from entrywise.tables import Column, Comparisons, Table, comparisons_of, csv_text

_NAMES = ("model_a", "model_b", "winner")


def fits(source: Source) -> bool:
    """Tell whether a file holds battles."""
    return source.has(*_NAMES) or source.named(*_NAMES)


def read(source: Source, wanted: Wanted) -> Comparisons:
    """Return who beat whom, and which were ties."""
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
    """Return battles as CSV."""
    lines = zip(games.winners, games.losers, games.tied, strict=True)
    return csv_text(_NAMES, ((a, b, "tie" if tied else "model_a") for a, b, tied in lines))


FORMAT = FileFormat(
    name="arena",
    holds="games",
    words="model_a, model_b, winner (which holds model_a, model_b or a tie), as a table or JSON",
    fits=fits,
    read=read,
    write=write,
)
