"""What the database says of the cells of a matrix, by ranges of rows: for maps and for a look at one cell. Runs no plan."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from entrywise.study.entries import title
from entrywise.study.leases import by_batch
from entrywise.study.records import IMPLAUSIBLE, Record, Told
from entrywise.study.schema import ANSWERED, FREE, facts, pending, questions
from entrywise.study.store import Store
from entrywise.types import Array, Indices

OPEN, KNOWN, BOUGHT, OUT, QUEUED, FAILED = range(6)  # what a cell is
STATES = ("open", "known", "bought", "out", "queued", "failed")
Range = tuple[int, int]  # first, and one past the last


class Cells(NamedTuple):
    """Cells that are more than open, each once."""

    rows: Indices
    cols: Indices
    states: NDArray[np.uint8]
    values: Array


def cells(store: Store, record: Record, rows: Range, cols: Range) -> Cells:
    """Return what is known, bought, out or queued within a range of rows and columns."""
    found = _found(store, record, rows, cols)
    if record.symmetric:
        mirrored = _found(store, record, cols, rows)
        found = {(j, i): it for (i, j), it in mirrored.items()} | found
    if not found:
        none = np.zeros(0, np.int64)
        return Cells(none, none, np.zeros(0, np.uint8), np.zeros(0))
    places = np.array(list(found), np.int64)
    states, values = zip(*found.values(), strict=True)
    return Cells(places[:, 0], places[:, 1], np.array(states, np.uint8), np.array(values))


def _found(
    store: Store, record: Record, rows: Range, cols: Range
) -> dict[tuple[int, int], tuple[int, float]]:
    q, f, p = questions.c, facts.c, pending.c

    def inside(table: Any) -> tuple[Any, ...]:
        return (
            table.study == record.id,
            table.row.between(rows[0], rows[1] - 1),
            table.col.between(cols[0], cols[1] - 1),
        )

    told = (
        sa.select(q.row, q.col, f.kind, f.value, f.failed)
        .select_from(ANSWERED)
        .where(*inside(q))
        .order_by(q.row, q.col, f.batch, f.position, f.turn)
    )
    waiting = sa.select(p.row, p.col, p.leased_until).where(*inside(p), FREE)

    def look(connection: Connection) -> tuple[list[Any], list[Any], float]:
        with store.database.large_joins(connection):
            said = store.database.columns(connection, told)
        asked = store.database.columns(connection, waiting)
        return said, asked, store.database.now(connection)

    said, asked, now = store.database.read(look)
    found: dict[tuple[int, int], tuple[int, float]] = {}
    for row, col, kind, value, failed in said:
        if kind in ("void", "withdrawn"):
            if kind == "void":
                found.pop((row, col), None)
        elif failed:
            found[row, col] = (FAILED, np.nan)
        elif kind == "known" or found.get((row, col), (0, 0))[0] == KNOWN:
            found[row, col] = (KNOWN, value)
        else:
            found[row, col] = (BOUGHT, value)
    for row, col, until in asked:
        if found.get((row, col), (FAILED, 0))[0] == FAILED:
            found[row, col] = (OUT if until > now else QUEUED, np.nan)
    return found


def said_of(store: Store, record: Record, row: int, col: int) -> list[dict[str, Any]]:
    """Return all that was said of one cell: what, value, who and when, the latest last."""
    q, f = questions.c, facts.c
    here = (q.row == row) & (q.col == col)
    if record.symmetric:
        here |= (q.row == col) & (q.col == row)
    query = (
        sa.select(f.batch, f.position, f.kind, f.value, f.failed, f.worker, f.told_at, f.reason)
        .select_from(ANSWERED)
        .where(q.study == record.id, here)
        .order_by(f.told_at, f.turn)
    )
    rows = store.database.read(lambda c: c.execute(query).all())
    return [
        {
            "id": title((line.batch, line.position)),
            "what": line.kind,
            "value": line.value,
            "failed": bool(line.failed),
            "worker": line.worker,
            "told_at": line.told_at,
            "reason": line.reason,
        }
        for line in rows
    ]


def far_off(store: Store, record: Record, told: Told) -> list[int]:
    """Return which answers lie so far from what the plan expected that a slip of the pen is likelier."""
    q = questions.c
    keys = [(int(b), int(p)) for b, p in zip(told.batch, told.position, strict=True)]
    asked: dict[tuple[int, int], tuple[float, float]] = {}
    for batch, positions in by_batch(keys):
        query = sa.select(q.position, q.expected, q.deviation).where(
            q.study == record.id,
            q.batch == batch,
            q.expected.is_not(None),
            store.database.within(q.position, positions),
        )
        rows = store.database.read(partial(_columns, store, query))
        asked |= {(batch, position): (mean, deviation) for position, mean, deviation in rows}
    found = []
    for k, key in enumerate(keys):
        mean, deviation = asked.get(key, (0.0, np.inf))
        if abs(told.value[k] - mean) > IMPLAUSIBLE * (deviation or np.inf):
            found.append(k)
    return found


def _columns(store: Store, query: sa.Select[Any], connection: Connection) -> list[Any]:
    return list(store.database.columns(connection, query))
