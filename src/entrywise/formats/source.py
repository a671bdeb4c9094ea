"""A file of the field as its readers see it: JSON records, or a table; opened once, whatever looks at it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from entrywise.exceptions import DataError
from entrywise.formats.cells import Annotations, ScoredCells
from entrywise.tables import Comparisons, Table, boundary, contents, ending, read_table, text_of

Held = ScoredCells | Annotations | Comparisons
Holds = Literal["cells", "annotations", "games"]
PACKED = b"PK"  # how a zip file opens
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
ARRAYS = (".npy", ".npz")
USUAL = ("task", "worker", "label", "model_a", "model_b", "winner")


@dataclass(frozen=True)
class Wanted:
    """What the caller says that a file does not: which metric, which model."""

    metric: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class FileFormat:
    """A format of the field: how it is told, read and, where we can, written.

    Parameters
    ----------
    name : str
    holds : {"cells", "annotations", "games"}
    words : str
        What tells it, as people read it where nothing fits.
    fits : function of a Source
    read : function of a Source and what is Wanted
    pattern : str, optional
        Which files of a folder may be of this format.
    write : function, optional
        Text of a file that holds the same.
    """

    name: str
    holds: Holds
    words: str
    fits: Callable[[Source], bool]
    read: Callable[[Source, Wanted], Held]
    pattern: str | None = None
    write: Callable[[Any], str] | None = None


class Source:
    """One file, read once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.folder = Path(self.path).resolve().parent

    @cached_property
    def packed(self) -> bool:
        """Whether it is a zip file, as Inspect's logs are; tables and arrays are not looked into."""
        return not self.is_table and contents(self.path)[:2] == PACKED

    @property
    def is_table(self) -> bool:
        """Whether its name says that it is a table or an array."""
        return self.path == "-" or ending(self.path) in (*TABLES, *ARRAYS)

    @cached_property
    def document(self) -> Any:
        """The JSON in it: one value, or a list of those of its lines; None where it is no JSON."""
        if self.is_table or self.packed:
            return None
        text = text_of(self.path)
        if text.lstrip()[:1] not in ("{", "["):
            return None
        with boundary(self.path, "JSON"):
            try:
                return json.loads(text)
            except json.JSONDecodeError as error:
                if text.lstrip()[0] != "{" or not error.msg.startswith("Extra data"):
                    raise
            return _lines(self.path, text)

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Its JSON objects, none where it is something else."""
        found = self.document
        each = found if isinstance(found, list) else [found]
        return each if each and all(isinstance(one, dict) for one in each) else []

    def has(self, *keys: str) -> bool:
        """Tell whether its first record has all these keys."""
        return bool(self.records) and set(keys) <= self.records[0].keys()

    @cached_property
    def table(self) -> Table | None:
        """The table in it with its header, None where it has none."""
        if not self.is_table or self.path == "-" or ending(self.path) in ARRAYS:
            return None
        try:
            return read_table(self.path, usual=USUAL)
        except DataError:  # read again as what it is, and refused in its own words
            return None

    def named(self, *names: str) -> bool:
        """Tell whether it is a table with columns of exactly these names."""
        table = self.table
        return table is not None and table.headed and set(names) <= set(table.names)

    def where(self, k: int) -> str:
        """Return where record k stands."""
        return f"{self.path} record {k + 1}"

    def need(self, k: int, *keys: str) -> list[Any]:
        """Return what record k holds under these keys; refuse where one is missing."""
        record = self.records[k]
        missing = next((key for key in keys if key not in record), None)
        if missing is not None:
            raise DataError(f"{self.where(k)} must have {missing!r}, it has {', '.join(record)}")
        return [record[key] for key in keys]


def _lines(path: str, text: str) -> list[Any]:
    """Return the values of JSON lines."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError as error:
            words = f"must be JSON, {error.msg.lower()} at column {error.colno}"
            raise DataError(f"{path} line {number}: {words}") from None
    return found


def chosen(given: str | None, known: Sequence[str], where: str, what: str = "metric") -> str:
    """Return the one that is meant: the given one, or the only one there is."""
    names = ", ".join(map(repr, known))
    if given is None:
        if len(known) == 1:
            return known[0]
        if not known:
            raise DataError(f"{where} has no {what}")
        raise DataError(f"{where} has several of {what}: {names}; say which (--{what} NAME)")
    if given not in known:
        raise DataError(f"{where} has no {what} {given!r}; it has {names}")
    return given
