"""The files that ``entrywise study`` reads: labels, answers, known entries; every mistake names its line."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from entrywise.exceptions import DataError


def rows_of(path: str) -> Iterator[tuple[int, list[str]]]:
    """Go through a CSV file (plain or .gz, ``-`` is stdin): (line number, fields), empty lines left out.

    Fields are separated by commas, or by semicolons where the header has no comma.
    """
    if path == "-":
        text = sys.stdin.read().removeprefix("\ufeff")
    elif path.endswith(".gz"):
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
            text = file.read()
    else:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    head = text.split("\n", 1)[0]
    reader = csv.reader(
        io.StringIO(text), delimiter=";" if ";" in head and "," not in head else ","
    )
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise DataError(f"{path} line {reader.line_num}: {error}") from None


def table_of(path: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return (column names, lines) of a CSV file with a header, each line as (line number, fields by name)."""
    found = rows_of(path)
    _, head = next(found, (0, None))
    if head is None:
        raise DataError(f"{path} is empty; its first line must name its columns")
    names = [name.strip() for name in head]
    lines = []
    for line, fields in found:
        if len(fields) > len(names):
            raise DataError(
                f"{path} line {line}: there are {len(fields)} fields under {len(names)} columns; write numbers with a point, not a comma"
            )
        lines.append(
            (line, dict(zip(names, [f.strip() for f in fields] + [""] * len(names), strict=False)))
        )
    return names, lines


def labels_of(path: str | None) -> list[str] | None:
    """Return the first column of a CSV file with a header."""
    if path is None:
        return None
    found = list(rows_of(path))[1:]
    if not found:
        raise DataError(f"{path} holds no labels; its first line is a header, labels come below")
    seen: dict[str, int] = {}
    for line, fields in found:
        label = fields[0].strip()
        if not label:
            raise DataError(f"{path} line {line}: there is no label in the first column; give one")
        if label in seen:
            raise DataError(
                f"{path} line {line}: label {label!r} stands in line {seen[label]} already; labels must be unique"
            )
        seen[label] = line
    return list(seen)


@dataclass(frozen=True)
class Answers:
    """Answers read from a file, with the lines they stand in."""

    path: str
    items: list[tuple[Any, ...]]
    lines: list[int]
    workers: list[str | None]

    def blame(self, k: int) -> str:
        """Return where answer k stands."""
        return f"{self.path} line {self.lines[k]}: "


def answers_of(path: str, study: str, worker: str | None) -> Answers:
    """Read answers: a column ``value``, and ``id`` or ``row`` and ``col``; lines without a value are skipped.

    Columns ``study`` and ``worker`` are checked where they are there; ``failed`` stands for a failed measurement.
    """
    names, table = table_of(path)
    if "value" not in names:
        raise DataError(f"{path} line 1: there must be a column 'value', got {', '.join(names)}")
    by_id, by_entry = "id" in names, "row" in names and "col" in names
    if not by_id and not by_entry:
        raise DataError(
            f"{path} line 1: there must be a column 'id', or 'row' and 'col', got {', '.join(names)}"
        )
    items: list[tuple[Any, ...]] = []
    lines, workers = [], []
    for line, fields in table:
        if not fields["value"]:
            continue
        if fields.get("study", "") not in ("", study):
            raise DataError(
                f"{path} line {line}: this answer belongs to study {fields['study']!r}, not to {study!r}"
            )
        entry = (
            (fields["row"], fields["col"]) if by_entry and (fields["row"] or fields["col"]) else ()
        )
        number = (fields["id"],) if by_id and fields["id"] else ()
        if not number and not entry:
            raise DataError(f"{path} line {line}: there is a value, but neither an id nor an entry")
        items.append((*number, *entry, fields["value"]))
        lines.append(line)
        workers.append(worker or fields.get("worker") or None)
    if not items:
        raise DataError(f"{path} holds no answer; fill in the column 'value'")
    return Answers(path, items, lines, workers)


def known_of(
    path: str, rows: Sequence[str] | None, cols: Sequence[str] | None, value_column: str = "value"
) -> Any:
    """Return known entries from a CSV file with columns row, col, value, by labels where there are any."""
    import numpy as np

    from entrywise.exceptions import TellError
    from entrywise.observations import Observations
    from entrywise.study.entries import Labels, number

    names, table = table_of(path)
    missing = [name for name in ("row", "col", value_column) if name not in names]
    if missing:
        raise DataError(
            f"{path} line 1: there must be a column {missing[0]!r}, got {', '.join(names)}"
        )
    labels = Labels(rows, cols)
    found = []
    for line, fields in table:
        try:
            value = number(fields[value_column])
            found.append((*labels.index(fields["row"], fields["col"]), value))
        except TellError as error:
            raise DataError(f"{path} line {line}: {error}") from None
        if value != value:
            raise DataError(
                f"{path} line {line}: a known entry must have a value; leave failed ones out"
            )
    i, j = (np.array([f[k] for f in found], np.int64) for k in (0, 1))
    try:
        shape = None if rows is None or cols is None else (len(rows), len(cols))
        return Observations.from_triplets(i, j, np.array([f[2] for f in found]), shape)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
