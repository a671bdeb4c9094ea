"""What a study knows at a step: its questions and facts as a table that plans are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from entrywise.queries import History
from entrywise.study.database import Database
from entrywise.study.records import Key, Record
from entrywise.study.schema import GIVEN, facts, questions, wants
from entrywise.types import Indices

ANSWERED, WAITING, WITHDRAWN = 0, 1, 2  # where a question stands
NEVER = -1  # the step at which a cell was wanted that no step wanted again


@dataclass(frozen=True)
class Past:
    """Questions in order (what was known beforehand first), what is said of them, and where each stands."""

    batch: Indices
    position: Indices
    table: History
    state: Indices
    unseen: list[tuple[int, int, int]]  # facts that no step was given yet: batch, position, turn

    @property
    def told(self) -> History:
        """What is known and what was told."""
        return self.table[self.state == ANSWERED]

    @property
    def out(self) -> History:
        """What waits for an answer."""
        return self.table[self.state == WAITING]

    def keys(self, which: NDArray[np.bool_]) -> list[Key]:
        """Return the names of some of the questions."""
        return list(zip(self.batch[which].tolist(), self.position[which].tolist(), strict=True))


def given(table: History) -> Past:
    """Return entries that are known beforehand, as a study without questions begins with them."""
    count = len(table)
    batch = np.full(count, GIVEN)
    return Past(batch, np.arange(count), table, np.full(count, ANSWERED), [])


def read(database: Database, record: Record, at: int | None = None) -> Past:
    """Return all that the next step may know, or what step `at` knew.

    Questions and facts are read by one statement, so that an answer is seen as told or as pending, not as both.
    """
    q, f = questions.c, facts.c
    same = (f.study == record.id) & (f.batch == q.batch) & (f.position == q.position)
    query = (
        sa.select(
            q.batch, q.position, q.row, q.col, q.mode, q.unit, q.arm, q.probability, q.plate,
            f.turn, f.kind, f.value, f.failed, f.noise, f.charged, f.epoch, f.seen,
        )
        .select_from(questions.outerjoin(facts, same))
        .where(q.study == record.id)
        .order_by(q.batch, q.position, f.turn)
    )  # fmt: skip
    if at is not None:
        query = query.where(q.batch < at)

    def look(connection: Connection) -> tuple[list[Any], dict[Key, tuple[Any, ...]]]:
        with database.large_joins(connection):
            return database.columns(connection, query), _wanted(database, connection, record, at)

    rows, wanted = database.read(look)
    return _table(rows, wanted, at)


def _wanted(
    database: Database, connection: Connection, record: Record, at: int | None
) -> dict[Key, tuple[Any, ...]]:
    """Return (step, arm, probability) of the latest want of each question that was wanted again."""
    w = wants.c
    query = sa.select(w.batch, w.at, w.step, w.arm, w.probability)
    query = query.where(w.study == record.id, w.batch.is_not(None)).order_by(w.step)
    if at is not None:
        query = query.where(w.step < at)
    found = {}
    for batch, position, *rest in database.columns(connection, query):
        found[batch, position] = tuple(rest)
    return found


def _table(rows: list[Any], wanted: dict[Key, tuple[Any, ...]], at: int | None) -> Past:
    """Fold the facts of each question, in turn, into one line."""
    lines: list[list[Any]] = []
    unseen: list[tuple[int, int, int]] = []
    last: Key | None = None
    for row in rows:
        key = (row[0], row[1])
        if key != last:
            lines.append(_blank(row, wanted.get(key)))
            last = key
        turn, kind, *_, seen = row[9:]
        told_later = at is not None and (seen is None or seen > at)
        if kind in (None, "repeat", "failed") or told_later:
            continue
        if seen is None:
            unseen.append((*key, turn))
        wanted_at = wanted[key][0] if key in wanted else NEVER
        _fold(lines[-1], row, wanted_at)
    # an entry that was never said to be known is not there yet
    lines = [x for x in lines if x[0] != GIVEN or x[_STATE] == ANSWERED]
    return _past(lines, unseen)


def _fold(line: list[Any], row: Any, wanted_at: int) -> None:
    """Bring the line of a question up to one more fact; `wanted_at` is the last step that asked for its cell."""
    _, kind, value, failed, noise, charged, epoch, seen = row[9:]
    line[_PRICE] += charged
    if kind in ("withdrawn", "void"):
        if kind == "void":
            line[_VALUE] = np.nan
        elif line[_STATE] == ANSWERED:  # somebody added what was out
            return
        line[_STATE] = WAITING if wanted_at >= seen else WITHDRAWN
        return
    line[_STATE], line[_VALUE] = ANSWERED, np.nan if failed else value
    line[_EPOCH], line[_NOISE] = epoch, np.nan if noise is None else noise
    if kind != "amend":
        line[_KNOWN] = kind == "known"


_PRICE, _VALUE, _STATE, _EPOCH, _NOISE, _KNOWN = 9, 10, 11, 12, 13, 14


def _blank(row: Any, want: tuple[Any, ...] | None) -> list[Any]:
    arm, chance = row[6], row[7]
    if want is not None:
        _, arm, chance = want
    plate = -1 if row[8] is None else row[8]
    unit = -1 if row[5] is None else row[5]
    chance = np.nan if chance is None else chance
    entry = [row[0], row[1], row[2], row[3], row[4], unit, arm or "", chance, plate]
    return [*entry, 0.0, np.nan, WAITING, 0, np.nan, False]


def _past(lines: list[list[Any]], unseen: list[tuple[int, int, int]]) -> Past:
    columns = list(zip(*lines, strict=True)) or [()] * 15
    whole = [np.array(c, np.int64) for c in columns[:4]]
    batch, position, rows, cols = whole
    table = History(
        rows,
        cols,
        np.array(columns[_VALUE], np.float64),
        mode=np.array(columns[4], np.str_),
        unit=np.array(columns[5], np.int64),
        arm=np.array(columns[6], np.str_),
        probability=np.array(columns[7], np.float64),
        plate=np.array(columns[8], np.int64),
        price=np.array(columns[_PRICE], np.float64),
        epoch=np.array(columns[_EPOCH], np.int64),
        noise=np.array(columns[_NOISE], np.float64),
        known=np.array(columns[_KNOWN], np.bool_),
    )
    state = np.array(columns[_STATE], np.int64)
    return Past(batch, position, table, state, unseen)
