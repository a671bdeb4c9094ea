"""Tables of one fact a line (who said what, who beat whom, what costs how much), columns by their usual names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from entrywise.tables.table import Column, Header, Table, listed, read_table

ITEM = ("item", "task", "question", "example", "unit", "object", "image", "document", "instance")
WORKER = (
    *("worker", "annotator", "user", "rater", "labeler", "labeller", "judge", "performer"),
    "expert",
)
LABEL = (
    *("label", "answer", "response", "vote", "class", "judgement", "judgment", "category"),
    "value",
)
TRUTH = ("truth", "gold", "true_label", "correct", *LABEL)
WINNER, LOSER = ("winner", "won", "better", "preferred"), ("loser", "lost", "worse", "other")

Roles = Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True, eq=False)
class Facts:
    """One list of texts for each role, the names of the columns taken, and where each line stands."""

    table: Table
    cells: list[list[str]]
    taken: list[str]
    lines: list[int]


def read_long(
    path: str | os.PathLike[str],
    roles: Roles,
    given: Sequence[str | None] = (),
    header: Header = "named",
) -> Facts:
    """Return one column of texts for each role.

    Parameters
    ----------
    roles : sequence of (role, usual names)
    given : sequence of str, optional
        The column of each role where it is known; else one with a usual name is taken, else the one in its place.
    header : {"named", "yes", "no"}
        ``named``: a first line with a usual name or a given one is a header; one without is data when it has a
        number, or when one of its cells occurs again below it.
    """
    wanted = list(given) or [None] * len(roles)
    if any(name is not None for name in wanted):
        header = "yes"
    usual = [name for _, names in roles for name in names]
    return take_roles(read_table(path, header=header, usual=usual), roles, wanted)


def take_roles(table: Table, roles: Roles, given: Sequence[str | None]) -> Facts:
    """Return one column of texts for each role of a table; lines without any cell are left out."""
    table = table.filled()
    if len(table.columns) < len(roles):
        needed = ", ".join(role for role, _ in roles)
        raise table.error(f"must have columns for {needed}, got {listed(table.names)}")
    picked: list[Column] = []
    for place, ((_, names), name) in enumerate(zip(roles, given, strict=True)):
        picked.append(_pick(table, names, name, place, picked))
    for (role, _), column in zip(roles, picked, strict=True):
        if "" in column.cells:
            line = table.lines[column.cells.index("")]
            raise table.error(f"line {line} has no {role}; fill it in or leave the line out")
    cells = [list(column.cells) for column in picked]
    return Facts(table, cells, [column.name for column in picked], list(table.lines))


def read_labels(path: str | os.PathLike[str]) -> tuple[list[str], Table]:
    """Return the labels in the first column of a file with a header, and the table with what stands beside them.

    Labels are unique texts; a line without one is refused, as is one that stands there twice.
    """
    table = read_table(path, header="yes").filled()
    seen: dict[str, int] = {}
    for k, label in enumerate(table.columns[0].cells):
        line = table.lines[k]
        if not label:
            raise table.error(f"line {line}: there is no label in the first column; give one")
        if label in seen:
            raise table.error(
                f"line {line}: label {label!r} stands in line {seen[label]} already; labels must be unique"
            )
        seen[label] = line
    return list(seen), table


def _pick(
    table: Table, usual: Sequence[str], name: str | None, place: int, taken: Sequence[Column]
) -> Column:
    """Return the column of a role: by its given name, a usual name, or its place among those left."""
    if name is not None:
        return table.named(name)
    free = [column for column in table.columns if column not in taken]
    for candidate in usual:
        column = table.column(candidate)
        if column is not None and column in free:
            return column
    own = table.columns[place]
    return own if own in free else free[0]
