"""Columns of text tables by their usual names; every cell stays text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from entrywise.exceptions import DataError
from entrywise.tables import text_of

ITEM = ("item", "task", "question", "example", "unit", "object", "image", "document", "instance")
WORKER = (
    "worker",
    "annotator",
    "user",
    "rater",
    "labeler",
    "labeller",
    "judge",
    "performer",
    "expert",
)
LABEL = (
    "label",
    "answer",
    "response",
    "vote",
    "class",
    "judgement",
    "judgment",
    "category",
    "value",
)
TRUTH = ("truth", "gold", "true_label", "correct", *LABEL)
WINNER, LOSER = ("winner", "won", "better", "preferred"), ("loser", "lost", "worse", "other")


def read_columns(
    path: str, roles: Sequence[tuple[str, Sequence[str]]], given: Sequence[str | None] = ()
) -> tuple[list[list[str]], list[str]]:
    """Return one list of texts for each role, and the names of the columns taken.

    A column is the one `given`, else one with a usual name, else the one in the role's place. A first line without usual
    names is data when its cells are all numbers, or when one of them occurs again below.
    """
    try:
        return _read(path, roles, list(given) or [None] * len(roles))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _read(
    path: str, roles: Sequence[tuple[str, Sequence[str]]], given: list[Any]
) -> tuple[list[list[str]], list[str]]:
    import polars as pl

    text = text_of(path)
    if not text.strip():
        raise DataError("is empty; give a header and at least one line")
    first = text.lstrip("\r\n").split("\n", 1)[0]
    mark = max(",\t;", key=first.count)
    try:
        table = pl.read_csv(io.StringIO(text), has_header=False, infer_schema=False, separator=mark)
    except pl.exceptions.PolarsError as error:
        if "more fields" in str(error):
            raise DataError(
                "has lines with more cells than the first; quote cells that hold the separator"
            ) from None
        raise DataError(f"cannot be read as a table: {str(error).splitlines()[0]}") from None
    names = [str(x or "").strip() for x in table.row(0)]
    if len(names) < len(roles):
        wanted = ", ".join(role for role, _ in roles)
        raise DataError(f"must have columns for {wanted}, got {', '.join(map(repr, names))}")
    lower = [n.lower() for n in names]
    named = any(n in usual for _, usual in roles for n in lower) or any(
        g is not None for g in given
    )
    again = not named and any(
        n in set(table[c][1:].to_list()) for n, c in zip(names, table.columns, strict=True)
    )
    headless = all(_is_number(n) for n in names) or again
    body = table if headless else table.slice(1)
    if not body.height:
        raise DataError("has a header but no lines")
    picked: list[int] = []
    for k, (_, usual) in enumerate(roles):
        if given[k] is not None:
            if given[k] not in names:
                raise DataError(f"has no column {given[k]!r}; it has {', '.join(map(repr, names))}")
            picked.append(names.index(given[k]))
            continue
        known = [lower.index(n) for n in usual if n in lower and lower.index(n) not in picked]
        spare = [c for c in range(len(names)) if c not in picked]
        picked.append(known[0] if known else k if k in spare else spare[0])
    cells: list[list[str]] = []
    for c, (role, _) in zip(picked, roles, strict=True):
        column = body[body.columns[c]].to_list()
        found = [(x or "").strip() for x in column]
        if "" in found:
            line = found.index("") + (1 if headless else 2)
            raise DataError(f"line {line} has no {role}; fill it in or leave the line out")
        cells.append(found)
    return cells, [f"column {c + 1}" if headless else names[c] for c in picked]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
