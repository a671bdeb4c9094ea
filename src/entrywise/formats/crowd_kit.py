"""crowd-kit: a table of ``task, worker, label``, one answer a line."""

from __future__ import annotations

from entrywise.formats.cells import Annotations
from entrywise.formats.source import FileFormat, Source, Wanted
from entrywise.tables import csv_text, read_long

_NAMES = ("task", "worker", "label")


def fits(source: Source) -> bool:
    """Tell whether a file is a table with these columns."""
    return source.named(*_NAMES)


def read(source: Source, wanted: Wanted) -> Annotations:
    """Return who gave which label to what."""
    roles = tuple((name, (name,)) for name in _NAMES)
    found = read_long(source.path, roles, _NAMES)
    items, workers, labels = found.cells
    return Annotations(items, workers, labels, source.path)


def write(given: Annotations) -> str:
    """Return the answers as CSV."""
    return csv_text(_NAMES, zip(given.items, given.workers, given.labels, strict=True))


FORMAT = FileFormat(
    name="crowd-kit",
    holds="annotations",
    words="a table with task, worker, label",
    fits=fits,
    read=read,
    write=write,
)
