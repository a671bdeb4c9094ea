"""The files that ``entrywise study`` reads: answers, known entries, labels with prices beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrywise.cli._shared import shown
from entrywise.exceptions import DataError
from entrywise.tables import Table, is_gap, read_entries, read_features, read_labels, read_table

LABELLED = (
    ("row", "col", "value"),
    ("item", "worker", "label"),
)  # columns of labels that are known
STANDS = (
    "told",
    "known",
    "memory",
    "",
)  # what a log says of answers that stand; nothing in other tables


def labels_of(path: str | None) -> list[str] | None:
    """Return the first column of a file with a header."""
    return None if path is None else read_labels(path)[0]


def described(row_features: str | None, col_features: str | None) -> dict[str, Any]:
    """Return the features in files of rows and of columns as parameters of a plan."""
    paths = {"row_features": row_features, "col_features": col_features}
    return {name: read_features(path) for name, path in paths.items() if path is not None}


def new_features(study: Any, lines: dict[str, Any], paths: dict[str, str | None]) -> dict[str, Any]:
    """Return the features of new lines: from their own files, else from columns beside the new labels.

    `lines` are the files of new rows and columns by axis, `paths` those of their features.
    """
    found = {}
    for axis in ("row", "col"):
        own, beside = paths.get(axis), lines.get(axis)
        if own is not None:
            found[f"{axis}_features"] = read_features(own)
        elif isinstance(beside, str) and _names(study, axis) & {*read_labels(beside)[1].names[1:]}:
            found[f"{axis}_features"] = read_features(beside)
    return found


def _names(study: Any, axis: str) -> set[str]:
    """Return the columns of features that a study keeps of its lines."""
    kept = study.store.record(study.name).params.get(f"{axis}_features") or {}
    return set(kept.get("columns", ()))


def lines_of(path: str) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return (column names, lines) of a file with a header, each line as (line number, cells by name)."""
    table = read_table(path, header="yes").filled()
    names = table.names
    columns = [_points(table, name) for name in names]
    rows = zip(*columns, strict=True)
    lines = [
        (line, dict(zip(names, row, strict=True)))
        for line, row in zip(table.lines, rows, strict=True)
    ]
    return names, lines


def _points(table: Table, name: str) -> list[str]:
    """Return the cells of a column, decimals written with a point."""
    column = table.named(name)
    if column.kind in ("whole", "number"):
        return [cell if is_gap(cell) else column.marks.plain(cell) for cell in column.cells]
    return list(column.cells)


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
    names, table = lines_of(path)
    if "value" not in names:
        raise DataError(
            f"{path} line 1: there must be a column 'value', got {shown(', '.join(names))}; "
            "fill in the file that study ask wrote"
        )
    by_id, by_entry = "id" in names, "row" in names and "col" in names
    if not by_id and not by_entry:
        raise DataError(
            f"{path} line 1: there must be a column 'id', or 'row' and 'col', got {shown(', '.join(names))}; "
            "fill in the file that study ask wrote"
        )
    items: list[tuple[Any, ...]] = []
    lines, workers = [], []
    for line, cells in table:
        if not cells["value"]:
            continue
        if cells.get("study", "") not in ("", study):
            raise DataError(
                f"{path} line {line}: this answer belongs to study {cells['study']!r}, not to {study!r}; "
                f"tell it there: study tell DATABASE {cells['study']} {path}"
            )
        entry: tuple[str, ...] = ()
        if by_entry and (cells["row"] or cells["col"]):
            entry = (cells["row"], cells["col"])
        number = (cells["id"],) if by_id and cells["id"] else ()
        if not number and not entry:
            raise DataError(f"{path} line {line}: there is a value, but neither an id nor an entry")
        items.append((*number, *entry, cells["value"]))
        lines.append(line)
        workers.append(worker or cells.get("worker") or None)
    if not items:
        raise DataError(f"{path} holds no answer; fill in the column 'value'")
    return Answers(path, items, lines, workers)


def known_of(
    path: str,
    rows: Sequence[str] | None,
    cols: Sequence[str] | None,
    classes: Sequence[str] | None = None,
) -> Any:
    """Return known entries from any table that `complete` reads, or from the output of `study log`.

    Where values are classes: from a table of row, col and value, or of item, worker and label.
    """
    from dataclasses import replace

    seen = _logged(path) if classes is None else _classed(path, classes)
    if seen is None:
        seen = read_entries(path).observations
    change: dict[str, Any] = {}
    for axis, own, given in (
        ("row", rows, seen.row_labels),
        ("col", cols, seen.col_labels),
    ):
        if own is None or given is not None:
            continue
        # whole numbers in a file about labelled lines are labels
        numbers, codes = _renumbered(seen.rows if axis == "row" else seen.cols)
        change |= {f"{axis}s": codes, f"{axis}_labels": tuple(map(str, numbers))}
    if not change:
        return seen
    found = replace(seen, **change)
    shape = (
        len(found.row_labels) if "row_labels" in change and found.row_labels else found.shape[0],
        len(found.col_labels) if "col_labels" in change and found.col_labels else found.shape[1],
    )
    return replace(found, shape=shape)


def _renumbered(lines: Any) -> tuple[list[int], Any]:

    numbers, codes = np.unique(lines, return_inverse=True)
    return numbers.tolist(), codes.astype(np.int64)


def _classed(path: str, classes: Sequence[str]) -> Any:
    """Return labels that are known, each as the place of its class."""
    names, lines = lines_of(path)
    roles = next((r for r in LABELLED if {*r} <= {*names}), None)
    if roles is None:
        raise DataError(
            f"{path} line 1: there must be columns row, col and value, or item, worker and label, "
            f"got {shown(', '.join(names))}"
        )
    told = [(at, [c[role] for role in roles]) for at, c in lines if c.get("what", "") in STANDS]
    place = {name: float(k) for k, name in enumerate(classes)}
    for at, (_, _, label) in told:
        if label not in place:
            raise DataError(
                f"{path} line {at}: a label must be one of the classes {', '.join(classes)}, got {label!r}"
            )
    return _named([(row, col, place[label]) for _, (row, col, label) in told], path)


def _logged(path: str) -> Any:
    """Return what stands in the output of ``study log``; None where the file is something else."""
    if path == "-" or not path.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt")):
        return None
    try:
        names, lines = lines_of(path)
    except DataError:
        return None  # another kind of table: its own reader says what is wrong with it
    if not {"row", "col", "value", "what"} <= set(names):
        return None
    told = [c for _, c in lines if c["what"] in STANDS and c["value"]]
    return _named([(c["row"], c["col"], float(c["value"])) for c in told], path)


def _named(told: Sequence[tuple[str, str, float]], path: str) -> Any:
    """Return entries by the labels of their lines."""
    from entrywise.observations import Observations

    if not told:
        raise DataError(f"{path} holds no answer that stands")
    rows, cols, values = (list(each) for each in zip(*told, strict=True))
    codes = [{label: k for k, label in enumerate(dict.fromkeys(each))} for each in (rows, cols)]
    return Observations.from_triplets(
        [codes[0][r] for r in rows],
        [codes[1][c] for c in cols],
        values,
        (len(codes[0]), len(codes[1])),
        row_labels=tuple(codes[0]),
        col_labels=tuple(codes[1]),
        duplicates="last",
    )
