"""Which columns of a table are rows, columns and values, and which hold labels: guessed only where it is clear.

A table is *long* (one entry a line) or *wide* (one row a line). Names decide; else the columns themselves, by
what they hold. Where two readings are possible the table is refused, and the options that decide are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from entrywise.exceptions import DataError

Kind = Literal["text", "whole", "number", "empty"]
Layout = Literal["auto", "long", "wide"]
Labels = Literal["auto", "first", "none"]

ROW = (
    *("row", "user", "drug", "compound", "worker", "model", "item_a", "molecule", "ligand"),
    *("subject", "student", "person", "patient", "customer", "annotator", "sample", "reader"),
)
COL = (
    *("col", "column", "item", "target", "movie", "film", "task", "question", "protein", "assay"),
    *("kinase", "gene", "benchmark", "product", "book", "song", "joke", "dataset", "item_b"),
)
VALUE = (
    *("value", "rating", "score", "label", "answer", "response", "affinity", "measurement"),
    *("activity", "accuracy", "y"),
)
NAMED = frozenset((*ROW, *COL, "", "index", "name", "key", "code", "unnamed: 0", "unnamed"))
CLEAR = 7.0  # expected pairs that a wide table would repeat: none then has chance exp(-7), below one in a thousand
RARE = 1e-3  # chance below which a column without gaps is unlike its neighbours


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column: its name, what it holds, and how many cells are different or empty."""

    name: str
    kind: Kind
    distinct: int
    gaps: int
    consecutive: bool = False  # k, k + 1, k + 2, ...
    mixed: bool = False  # text, but with numbers among it


def plain_name(name: str) -> str:
    """Return a name without case, spaces and a last ``id``: ``User ID`` and ``userId`` are ``user``.

    >>> plain_name("movieId"), plain_name("Item A"), plain_name("id")
    ('movie', 'item_a', 'id')
    """
    text = re.sub(r"[\s\-_]+", "_", name.strip().casefold()).strip("_")
    return re.sub(r"_?ids?$", "", text) or text or name.strip()


def is_label_name(name: str) -> bool:
    """Return whether a first column of this name is known to hold labels: id, user, compound, ..., or no name."""
    plain = plain_name(name)
    ends_in_id = re.search(r"(^|[a-z_ ])ids?$", name.strip().casefold()) is not None
    return plain in NAMED or ends_in_id


def long_columns(
    columns: Sequence[ColumnFacts], lines: int, repeats: Callable[[int, int], bool]
) -> tuple[int, int, int] | None:
    """Return which columns are row, column and value of a long table; None where the table is wide.

    Parameters
    ----------
    columns : sequence of ColumnFacts
    lines : int
        Number of records.
    repeats : callable
        ``repeats(a, b)`` says whether a pair of cells in columns a and b stands in two lines.
    """
    if len(columns) < 3:
        return None
    roles = [_named(columns, names) for names in (ROW, COL, VALUE)]
    if None not in roles and len(set(roles)) == 3:
        return roles[0], roles[1], roles[2]  # type: ignore[return-value]
    value = roles[2]
    if value is not None:
        found = _beside(columns, roles, value)
        if found is not None:
            return _unless_wide(columns, found, lines)
    if len(columns) == 3 and columns[2].kind in ("whole", "number"):
        return _three(columns, lines, repeats)
    if len(columns) == 3 and all(column.kind == "text" for column in columns):
        raise DataError(
            "looks like one entry a line whose values are words; write them as numbers (no 0, yes 1), "
            "or take entrywise crowd for labels that people gave, entrywise rank for who beat whom"
        )
    if columns[0].kind == columns[1].kind == "text" and _is_key(columns[0]):
        raise DataError(
            "looks like one entry a line, but which column holds the value is not clear; "
            "name row, col and value, or say --layout wide"
        )
    if _may_be_keys(columns, lines) and not repeats(0, 1):
        raise _both(columns[0].name, columns[1].name)
    if len(columns) == 4 and _may_be_timed(columns, lines):
        raise _both(columns[0].name, columns[1].name)
    return None


def _may_be_timed(columns: Sequence[ColumnFacts], lines: int) -> bool:
    """Return whether two keys, a value and a time may stand there; a line called NA looks like a gap."""
    a, b, _, last = columns
    keys = a.kind in ("whole", "empty") and _is_key(b) and b.distinct < lines
    return keys and plain_name(last.name) in ("time", "timestamp")


def has_labels(columns: Sequence[ColumnFacts], lines: int, headed: bool) -> bool:
    """Return whether the first column of a wide table holds labels; refuse where that is not clear."""
    first, rest = columns[0], columns[1:]
    if not rest:
        return False
    usual = headed and is_label_name(first.name)
    if first.kind == "text":
        if first.mixed and not usual:
            raise _labels(first, "text and numbers")
        return True
    if first.kind == "empty" and lines == 1:  # a row may be called NA
        raise _labels(first, "one gap alone")
    unique = first.kind == "whole" and first.distinct == lines and not first.gaps
    if not unique:
        if usual:
            raise _labels(first, "cells that are no unique whole numbers")
        return False
    if usual or (headed and _stands_apart(first, rest, lines)):
        return True
    raise _labels(first, "unique whole numbers")


def _stands_apart(first: ColumnFacts, rest: Sequence[ColumnFacts], lines: int) -> bool:
    """Return whether unique whole numbers are unlike the columns beside them, and under a name of their own."""
    if not first.name.strip() or re.fullmatch(r"[\d.]+", first.name):
        return False
    if any(column.kind == "text" for column in rest):
        return False
    if {_pattern(column.name) for column in rest} == {_pattern(first.name)}:
        return False
    series = _is_series([column.name for column in rest], first.name)
    share = sum(column.gaps for column in rest) / (lines * len(rest))
    full_by_chance = (1.0 - share) ** lines
    counted = first.consecutive and lines > 5
    return series or counted or full_by_chance < RARE


def _pattern(name: str) -> str:
    """Return how a name with digits is built, a0 for T12; a name without any is like no other."""
    if not re.search(r"\d", name):
        return name
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d]+", "a", name))


def _named(columns: Sequence[ColumnFacts], names: Sequence[str]) -> int | None:
    plain = [plain_name(column.name) for column in columns]
    twice = next((name for name in names if plain.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"has two columns called {twice!r}; rename one")
    return next((plain.index(name) for name in names if name in plain), None)


def _is_key(column: ColumnFacts) -> bool:
    return column.kind in ("text", "whole") and not column.gaps


def _beside(
    columns: Sequence[ColumnFacts], roles: Sequence[int | None], value: int
) -> tuple[int, int, int] | None:
    """Return the roles where the value is named and one way is left to find the other two."""
    taken = [k for k in roles[:2] if k is not None and k != value]
    rest = [k for k in range(len(columns)) if k != value and k not in taken]
    keys = [k for k in rest if _is_key(columns[k])]
    if len(taken) + len(keys) > 2:  # text is a key, a number beside it rather a time or a count
        keys = [k for k in keys if columns[k].kind == "text"]
    if len(taken) + len(keys) != 2:
        return None
    row, col = roles[0], roles[1]
    if row in taken:
        return row, keys[0], value
    if col in taken:
        return keys[0], col, value
    return keys[0], keys[1], value


def _unless_wide(
    columns: Sequence[ColumnFacts], found: tuple[int, int, int], lines: int
) -> tuple[int, int, int]:
    """Refuse where the columns found may as well be labels and numbers of a wide table."""
    row, col = columns[found[0]], columns[found[1]]
    labels = found[0] == 0 and row.distinct == lines
    if len(columns) == 3 and labels and col.kind == "whole" and not is_label_name(col.name):
        raise _both(row.name, col.name)
    return found


def _three(
    columns: Sequence[ColumnFacts], lines: int, repeats: Callable[[int, int], bool]
) -> tuple[int, int, int] | None:
    """Return (0, 1, 2) where three columns without usual names are two keys and a number."""
    a, b, value = columns
    if a.kind == "empty" and _may_be_keys(columns, lines):
        raise _both(a.name, b.name)
    if not _is_key(a):
        return None
    if b.kind == "text" and _is_key(b):  # no wide table has text beside its labels
        return 0, 1, 2
    often = a.distinct < lines and b.distinct < lines
    if often and _is_key(b) and not value.gaps:
        if a.kind == "text" or _unlike_wide(a, b, lines, repeats):
            return 0, 1, 2
        if value.kind == "number" and not repeats(0, 1):
            return 0, 1, 2
    if _may_be_keys(columns, lines) and not repeats(0, 1):
        raise _both(a.name, b.name)
    return None


def _may_be_keys(columns: Sequence[ColumnFacts], lines: int) -> bool:
    """Return whether the first two columns may name entries: no gap anywhere, as a wide table would have, and repeats."""
    a, b = columns[:2]
    empty = [column for column in (a, b) if column.kind == "empty"]  # a line called NA looks so
    named = all(_is_key(column) for column in (a, b) if column not in empty)
    full = not any(column.gaps for column in columns if column not in empty)
    if len(empty) == 2 or not (named and full):
        return False
    if _is_series([column.name for column in columns[1:]], a.name) or is_label_name(a.name):
        return False
    if a.kind in ("text", "empty"):
        return len(columns) < 5
    return a.distinct < lines or (len(columns) == 3 and b.distinct < lines)


def _is_series(names: Sequence[str], first: str) -> bool:
    """Return whether names are of one kind, T1, T2, ..., and `first` is of another."""
    parts = [re.fullmatch(r"([^\W\d]+)[\s._-]?\d+", name.casefold()) for name in (first, *names)]
    stems = [None if part is None else part[1] for part in parts]
    own, rest = stems[0], set(stems[1:])
    return len(names) > 1 and len(rest) == 1 and None not in rest and own not in rest


def _unlike_wide(
    a: ColumnFacts, b: ColumnFacts, lines: int, repeats: Callable[[int, int], bool]
) -> bool:  # the birthday problem
    expected = lines**2 / (2.0 * max(a.distinct, 1) * max(b.distinct, 1))
    return expected >= CLEAR and not repeats(0, 1)


def _both(row: str, col: str) -> DataError:
    return DataError(
        f"may be one entry a line (columns {row!r} and {col!r} name it) or one row a line; "
        "say --layout long or --layout wide (layout= in Python)"
    )


def _labels(first: ColumnFacts, held: str) -> DataError:
    return DataError(
        f"its first column, {first.name!r}, holds {held}, which may be labels or values; "
        "say --labels first or --labels none (labels= in Python)"
    )
