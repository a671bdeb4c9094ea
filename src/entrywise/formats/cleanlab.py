"""cleanlab: labels of several annotators as a wide table, an item a line and an annotator a column, gaps where nobody labelled.

Any wide table looks like this one, so it is read only where it is asked for by name. The index that pandas writes has a
column without a name, or one called ``item`` or ``task``; a table without it numbers its items from 0.
"""

from __future__ import annotations

from entrywise.exceptions import DataError
from entrywise.formats.cells import Annotations
from entrywise.formats.source import FileFormat, Source, Wanted
from entrywise.layouts import plain_name
from entrywise.tables import csv_text, is_gap, read_table

_INDEX = ("", "item", "task")


def fits(source: Source) -> bool:
    """Tell nothing: a wide table of labels cannot be told from another wide table."""
    return False


def read(source: Source, wanted: Wanted) -> Annotations:
    """Return who gave which label to what."""
    table = read_table(source.path, header="yes")
    index = [column for column in table.columns if plain_name(column.name) in _INDEX]
    if len(index) > 1:
        raise table.error("has two columns that may name the items; keep one")
    names = list(index[0].cells) if index else [str(k) for k in range(len(table))]
    if len(set(names)) < len(names):
        raise table.error("names an item twice; an item is one line")
    found = Annotations([], [], [], source.path)
    for k, item in enumerate(names):
        for column in table.columns:
            if column in index or is_gap(column.cells[k]):
                continue
            found.items.append(item)
            found.workers.append(column.name)
            found.labels.append(column.cells[k])
    return found


def write(given: Annotations) -> str:
    """Return the labels as a wide CSV; an annotator labels an item once."""
    items, workers = list(dict.fromkeys(given.items)), list(dict.fromkeys(given.workers))
    labels: dict[tuple[str, str], str] = {}
    for item, worker, label in zip(given.items, given.workers, given.labels, strict=True):
        if (item, worker) in labels:
            raise DataError(f"{worker!r} labelled {item!r} twice; cleanlab has one place for it")
        labels[item, worker] = label
    lines = ((item, *(labels.get((item, worker), "") for worker in workers)) for item in items)
    return csv_text(("item", *workers), lines)


FORMAT = FileFormat(
    name="cleanlab",
    holds="annotations",
    words="a wide table, an item a line and an annotator a column (say --from cleanlab: any wide table looks like it)",
    fits=fits,
    read=read,
    write=write,
)
