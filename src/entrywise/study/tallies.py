"""How many questions are open and what money is held for them: kept as they come and go, never counted.

A transaction that adds questions, takes or withdraws them says so in one row of ``tallies``, and a reader adds up the
few rows of a study. Who holds the study's own row (a step, a change) writes slot 0. Who only tells does not hold it, and
would wait at a single row for everybody else who tells: on PostgreSQL each connection has a slot of its own, which it
writes last, so that whoever waits for a slot holds up nobody. SQLite has one writer at a time, and one slot.

Money that comes and goes a million times would drift by round-off. So it is kept in two parts, the sum and what rounding
has cut off it (Knuth's two-sum), which lose about one part in 1e30.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.study.schema import tallies

SLOTS = 64  # of PostgreSQL's connections, by the number of their process; those that share one wait for a commit
ROW = 0  # the slot of those who hold the study's row

# how a tally is added to a slot that was written before; two-sum reads a + b = s, and what s lacks
_AGAIN = """
ON CONFLICT (study, slot) DO UPDATE SET
    open = tallies.open + excluded.open,
    held = tallies.held + excluded.held,
    rest = tallies.rest + excluded.rest
        + ((tallies.held - ((tallies.held + excluded.held) - ((tallies.held + excluded.held) - tallies.held)))
            + (excluded.held - ((tallies.held + excluded.held) - tallies.held))),
    told_at = CASE WHEN excluded.told_at > tallies.told_at THEN excluded.told_at ELSE tallies.told_at END
"""
INSERT = "INSERT INTO tallies (study, slot, open, held, rest, told_at)"
MINE = f"1 + mod(pg_backend_pid(), {SLOTS})"  # the slot of a connection of PostgreSQL
ONE_SQLITE = f"{INSERT} VALUES (:study, {ROW}, -1, -:price, 0.0, :now) {_AGAIN}"
# one answer, within a statement that took its question (`taken`) and kept it (`kept`)
ONE_POSTGRESQL = f"""{INSERT}
SELECT $1::int, {MINE}, -1, -taken.price, 0.0, kept.told_at FROM taken, kept {_AGAIN}"""  # noqa: S608
_VALUES = "VALUES (:study, {}, :open, :held, :rest, :told_at)"
_OF_ROW = sa.text(f"{INSERT} {_VALUES.format(ROW)} {_AGAIN}")
_OF_CONNECTION = sa.text(f"{INSERT} {_VALUES.format(MINE)} {_AGAIN}")

_t = tallies.c
_READ = sa.select(_t.open, _t.held, _t.rest).where(_t.study == sa.bindparam("study"))
# What tallies lack against a count, read by one statement, so that all of it is of one moment.
_LACKING = sa.text("""
SELECT 1, price FROM pending WHERE study = :study AND leased_until >= 0
UNION ALL SELECT -open, -held FROM tallies WHERE study = :study
UNION ALL SELECT 0, -rest FROM tallies WHERE study = :study
""")
_LAST = sa.select(_t.study, sa.func.max(_t.told_at)).where(_t.told_at > 0).group_by(_t.study)


class Opened(NamedTuple):
    """The open questions of a study."""

    open: int
    held: float


def add(
    connection: Connection,
    study: int,
    prices: Iterable[float] = (),
    *,
    sign: int = 1,
    told_at: float = 0.0,
    telling: bool = False,
) -> None:
    """Note that questions at these prices are open now, or no more (`sign` = -1); and when an answer came.

    Who is only `telling` does not hold the study's row, and does nothing after this.
    """
    each = [sign * float(price) for price in prices]
    if not each and not told_at:
        return
    held = math.fsum(each)
    rest = math.fsum([*each, -held])
    mine = telling and connection.dialect.name == "postgresql"
    row = {"study": study, "open": sign * len(each), "held": held, "rest": rest, "told_at": told_at}
    connection.execute(_OF_CONNECTION if mine else _OF_ROW, row)


def mend(connection: Connection, study: int) -> None:
    """Count the open questions of a study, and put right what tallies say otherwise; for who holds the study's row."""
    rows = connection.execute(_LACKING, {"study": study}).all()
    open_, held = sum(int(row[0]) for row in rows), math.fsum(row[1] for row in rows)
    lacking = {"study": study, "open": open_, "held": held, "rest": 0.0, "told_at": 0.0}
    connection.execute(_OF_ROW, lacking)


def read(connection: Connection, study: int) -> Opened:
    """Return how many questions of a study are open, and what is held for them."""
    rows = connection.execute(_READ, {"study": study}).all()
    open_ = sum(int(row[0]) for row in rows)
    held = math.fsum(part for row in rows for part in row[1:]) if open_ else 0.0
    return Opened(open_, max(held, 0.0))


def last_answers(connection: Connection) -> dict[int, float]:
    """Return when the last answer of each study came, by the study's id."""
    return {int(study): float(at) for study, at in connection.execute(_LAST)}
