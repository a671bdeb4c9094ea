"""Handing out questions and taking them back: leases that lapse, whole units together, nobody measures twice.

*Out* is a question that is leased and has not lapsed. One that lapses or is released is queued again if this
epoch wants it, and withdrawn if only an earlier one did; a withdrawn question can still be answered.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.study import tallies
from entrywise.study.database import Database
from entrywise.study.records import ANY, Filter, Key, Leased, Record
from entrywise.study.schema import ANSWERED, FREE, about, facts, pending, questions, studies

# Where its statistics are old, PostgreSQL thinks that a step has one question, and would read and sort all of it.
IN_ORDER = "SET LOCAL enable_sort = off"

WITHDRAWN, QUEUED, FAILED = -1.0, 0.0, 1.0  # what leased_until says of a question that nobody holds
# Above it a question is not withdrawn. Said where FREE is not meant, so that its index is left alone.
NOT_GONE = -0.5
LEASED = 1.5  # above it somebody holds the question, or held it until then
# Who holds a question comes behind those who held it before, a line each.
_LEASE_SQLITE = """
UPDATE pending SET leased_at = ?1, worker = ?2, leased_until = ?3,
    holders = coalesce(holders || char(10), '') || coalesce(?2, '')
WHERE study = ?4 AND batch = ?5 AND position = ?6
"""
_LEASE_POSTGRESQL = """
UPDATE pending SET leased_at = %(now)s, worker = v.worker, leased_until = v.until,
    holders = coalesce(pending.holders || E'\\n', '') || coalesce(v.worker, '')
FROM unnest(%(batches)s::bigint[], %(positions)s::bigint[], %(workers)s::text[], %(untils)s::float8[])
    AS v(batch, position, worker, until)
WHERE pending.study = %(study)s AND pending.batch = v.batch AND pending.position = v.position
"""
APART = 1e-6  # seconds between the leases of one transaction, by which each is known again


def of_the_epoch(study: int, *where: sa.ColumnElement[bool]) -> tuple[Any, ...]:
    """Return the conditions of the questions that the next step waits for, if `where` holds of the study.

    A batch plan waits for one step at a time. Naming it keeps PostgreSQL from passing over what earlier steps
    left in its indexes.
    """
    current = sa.select(studies.c.current).where(studies.c.id == study, *where).scalar_subquery()
    return pending.c.study == study, pending.c.step == current


def waiting(record: Record) -> tuple[Any, ...]:
    """Return the conditions of the questions that wait for an answer, as far as the plan waits for them."""
    if record.streaming:
        return pending.c.study == record.id, FREE
    return *of_the_epoch(record.id), FREE


def free_questions(record: Record, now: float, wanted: Filter = ANY) -> sa.Select[Any]:
    """Return the query of (batch, position, unit, plate) that nobody holds: those never tried come first."""
    p = pending.c
    if record.streaming:
        open_ = sa.exists().where(studies.c.id == record.id, studies.c.state == "open")
        here: tuple[Any, ...] = (p.study == record.id, open_)
    else:
        here = of_the_epoch(record.id, studies.c.state == "open")
    return (
        sa.select(p.batch, p.position, p.unit, p.plate)
        .where(*here, FREE, p.leased_until <= now, *_fits(wanted))
        .order_by(p.step, p.leased_until, p.batch, p.position)
        .with_for_update(skip_locked=True, of=pending)
    )


def _fits(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    p = pending.c
    found: list[sa.ColumnElement[bool]] = []
    for column, allowed in ((p.row, wanted.rows), (p.col, wanted.cols)):
        if allowed is not None:
            found.append(column.in_([int(k) for k in allowed]))
    if wanted.mode is not None:
        found.append(p.mode == wanted.mode)
    return found


class Taking(NamedTuple):
    """Questions that somebody wants to hold."""

    record: Record
    limit: int | None
    worker: str | None
    seconds: float
    wanted: Filter = ANY
    begun: bool = False


class Leases:
    """The part of a store that hands out questions and takes them back."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def take(self, taking: Taking) -> Leased | None:
        """Hand out questions that nobody holds, whole units and plates together; None when there are none.

        A plate that goes beyond the limit waits for the next ask, unless it is the first: where something was
        handed out before (`begun`), none is.
        """
        return self.take_all([taking])[0]

    def take_all(self, takings: list[Taking]) -> list[Leased | None]:
        """Hand out questions of one study to several who want the same, in their order and in one transaction."""
        study = takings[0].record.id
        tries, untils = 0, [0.0] * len(takings)

        def hand_out(connection: Connection) -> tuple[list[list[Key]], dict[Key, Any]]:
            nonlocal tries, untils
            tries += 1
            now = self.database.now(connection)
            shares: list[list[Key]] = []
            if tries > 1:  # a connection lost after the commit: then they are theirs
                for t, until in zip(takings, untils, strict=True):
                    shares.append(self._held(connection, study, t.worker, until))
            if not any(shares):
                untils = [now + t.seconds + APART * k for k, t in enumerate(takings)]
                self._in_order(connection)
                self._lapse(connection, study, now)
                shares = self._share(connection, takings, now, untils)
            rows = self._asked(connection, study, sorted(itertools.chain(*shares)))
            return shares, {row[:2]: row for row in rows}

        shares, rows = self.database.write(hand_out)
        return [
            _leased([rows[key] for key in keys], until) if keys else None
            for keys, until in zip(shares, untils, strict=True)
        ]

    def _share(
        self, connection: Connection, takings: list[Taking], now: float, untils: list[float]
    ) -> list[list[Key]]:
        """Lease questions to each of several, and return which."""
        record, limits = takings[0].record, [t.limit for t in takings]
        total = None if None in limits else sum(limits)  # type: ignore[arg-type]
        free = free_questions(record, now, takings[0].wanted)
        rows = self.database.columns(connection, free.limit(total))
        grouped = any(unit is not None or plate is not None for _, _, unit, plate in rows)
        shares: list[list[Key]] = []
        for t, until in zip(takings, untils, strict=True):
            if grouped and shares:  # those before took whole units, or left a plate
                rows = self.database.columns(connection, free.limit(t.limit))
            keys = self._whole(connection, t, rows[: t.limit], now)
            rows = rows[len(rows[: t.limit]) :]
            shares.append(keys)
            if grouped or len(takings) == 1:
                for batch, positions in by_batch(keys):
                    self._lease(connection, record.id, batch, positions, t.worker, now, until)
        if not grouped and len(takings) > 1:
            self._lease_all(connection, takings, shares, now, untils)
        return shares

    def _lease_all(
        self,
        connection: Connection,
        takings: list[Taking],
        shares: list[list[Key]],
        now: float,
        untils: list[float],
    ) -> None:
        """Lease a few questions to each of several, in one statement."""
        study = takings[0].record.id
        each = [
            (now, t.worker, until, study, *key)
            for t, keys, until in zip(takings, shares, untils, strict=True)
            for key in keys
        ]
        if not each:
            return
        if self.database.sqlite:
            connection.exec_driver_sql(_LEASE_SQLITE, each)
            return
        _, workers, until, _, batches, positions = map(list, zip(*each, strict=True))
        values = {"study": study, "now": now, "batches": batches, "positions": positions}
        values |= {"workers": workers, "untils": until}
        connection.exec_driver_sql(_LEASE_POSTGRESQL, values)

    def _in_order(self, connection: Connection) -> None:
        if not self.database.sqlite:
            connection.exec_driver_sql(IN_ORDER)

    def _lease(
        self,
        connection: Connection,
        study: int,
        batch: int,
        positions: list[int],
        worker: str | None,
        now: float,
        until: float,
    ) -> None:
        p = pending.c
        who = sa.literal(worker or "", sa.Text)
        line = sa.literal("\n", sa.Text)
        change = {
            "worker": worker,
            "leased_at": now,
            "leased_until": until,
            "holders": sa.case((p.holders.is_(None), who), else_=p.holders + line + who),
        }
        mine = (p.study == study, p.batch == batch, self.database.within(p.position, positions))
        connection.execute(sa.update(pending).where(*mine).values(**change))

    def _held(
        self, connection: Connection, study: int, worker: str | None, until: float
    ) -> list[Key]:
        p = pending.c
        who = p.worker.is_(None) if worker is None else p.worker == worker
        mine = sa.select(p.batch, p.position).where(p.study == study, p.leased_until == until, who)
        rows = self.database.columns(connection, mine.order_by(p.batch, p.position))
        return [(batch, position) for batch, position in rows]

    def _whole(
        self, connection: Connection, taking: Taking, rows: list[tuple[Any, ...]], now: float
    ) -> list[Key]:
        """Return the questions of `rows` with the rest of their units and plates, without those that cannot be whole."""
        study, limit, wanted = taking.record.id, taking.limit, taking.wanted
        found = {(batch, position) for batch, position, _, _ in rows}
        groups = {("unit", b, unit) for b, _, unit, _ in rows if unit is not None}
        groups |= {("plate", b, plate) for b, _, _, plate in rows if plate is not None}
        plates: list[set[Key]] = []
        for kind, batch, number in sorted(groups):
            # the rest goes to the same hands; what another holds in part, or would not fit, waits
            group, whole = self._group(connection, study, kind, batch, number, now, wanted)
            found = found | group if whole else found - group
            if kind == "plate" and whole:
                plates.append(group)
        if limit is not None:
            found -= _beyond(found, plates, limit, taking.begun)
        return sorted(found)

    def _group(
        self,
        connection: Connection,
        study: int,
        kind: str,
        batch: int,
        number: int,
        now: float,
        wanted: Filter,
    ) -> tuple[set[Key], bool]:
        """Return all questions of a unit or plate, and whether it can be handed out whole."""
        p = pending.c
        same = (p.study == study, p.batch == batch, p[kind] == number, p.leased_until > NOT_GONE)
        fits = sa.and_(sa.true(), *_fits(wanted))
        query = sa.select(p.position, p.leased_until, fits).where(*same).with_for_update()
        members = self.database.columns(connection, query)
        keys = {(batch, position) for position, *_ in members}
        return keys, all(until <= now and fit for _, until, fit in members)

    def _asked(self, connection: Connection, study: int, keys: list[Key]) -> list[tuple[Any, ...]]:
        q, p = questions.c, pending.c
        columns: list[Any] = [q.batch, q.position, q.row, q.col, q.mode, q.price, q.unit]
        columns += [q.arm, q.probability, q.plate, q.well]
        found: list[tuple[Any, ...]] = []
        for batch, positions in by_batch(keys):
            quotes = sa.select(p.position, p.price).where(p.study == study, p.batch == batch)
            quotes = quotes.where(self.database.within(p.position, positions))
            price = dict(self.database.columns(connection, quotes))
            wanted = sa.select(*columns).where(q.study == study, q.batch == batch)
            wanted = wanted.where(self.database.within(q.position, positions)).order_by(q.position)
            for row in self.database.columns(connection, wanted):
                found.append((*row[:5], price[row[1]], *row[6:]))
        return found

    def _lapse(self, connection: Connection, study: int, now: float) -> None:
        """Withdraw questions of earlier epochs whose leases have ended."""
        p = pending.c
        first = sa.select(studies.c.first_step).where(studies.c.id == study).scalar_subquery()
        old = (p.study == study, p.step < first, FREE, p.leased_until <= now)
        some = sa.select(p.position).where(*old)
        some = some.order_by(p.step, p.leased_until, p.batch, p.position).limit(1)
        if connection.execute(some).first() is not None:
            withdraw(connection, self.database, study, now, *old)

    def release(self, study: int, worker: str | None) -> int:
        """Take back what a worker (or everybody) holds; return how many questions that were."""
        p = pending.c
        first = sa.select(studies.c.first_step).where(studies.c.id == study).scalar_subquery()
        held = [p.study == study, p.leased_until > LEASED]
        if worker is not None:
            held.append(p.worker == worker)

        def give_back(connection: Connection) -> int:
            now = self.database.now(connection)
            gone = withdraw(connection, self.database, study, now, *held, p.step < first)
            queued = {"worker": None, "leased_at": None, "leased_until": QUEUED}
            return gone + int(
                connection.execute(sa.update(pending).where(*held).values(**queued)).rowcount
            )

        return self.database.write(give_back)

    def open_question(self, record: Record) -> Key | None:
        """Return some question that the plan waits for; None when all are answered."""
        p = pending.c
        last = sa.select(p.batch, p.position).where(*waiting(record))
        order = (p.step, p.leased_until, p.batch, p.position)
        last = last.order_by(*(column.desc() for column in order)).limit(1)

        def look(connection: Connection) -> list[tuple[Any, ...]]:
            self._in_order(connection)
            return self.database.columns(connection, last)

        found = self.database.read(look)
        return (found[0][0], found[0][1]) if found else None


def _beyond(found: set[Key], plates: list[set[Key]], limit: int, begun: bool) -> set[Key]:
    """Return the questions of plates that go beyond the limit; the first plate does not, unless something is `begun`."""
    count = len(found) - sum(map(len, plates))
    gone: set[Key] = set()
    for plate in plates:
        first = not count and not begun
        if first or count + len(plate) <= limit:
            count += len(plate)
        else:
            gone |= plate
    return gone


def withdraw(
    connection: Connection, database: Database, study: int, now: float, *where: Any
) -> int:
    """Withdraw questions, give back the money held for them, and note it; return how many they were.

    A unit that was told in part stays paid for.
    """
    p, s = pending.c, studies.c
    lock = sa.select(s.epoch, s.next_step).where(s.id == study).with_for_update()
    epoch, step = connection.execute(lock).one()
    gone = {"leased_until": WITHDRAWN, "worker": None, "leased_at": None, "turn": p.turn + 1}
    change = sa.update(pending).where(*where).values(**gone)
    rows = connection.execute(change.returning(p.batch, p.position, p.unit, p.price, p.turn)).all()
    if not rows:
        return 0
    begun = _begun_units(connection, study, {(r[0], r[2]) for r in rows if r[2] is not None})
    charged = [r[3] if (r[0], r[2]) in begun else 0.0 for r in rows]
    freed = sum(r[3] for r in rows) - sum(charged)
    for r, amount in zip(rows, charged, strict=True):
        if amount:  # paid for: a late answer costs nothing more
            here = about(pending, study, r[:2])
            connection.execute(sa.update(pending).where(*here).values(price=0.0))
    row = {
        "study": study,
        "batch": [r[0] for r in rows],
        "position": [r[1] for r in rows],
        "turn": [r[4] - 1 for r in rows],
        "kind": "withdrawn",
        "value": None,
        "failed": False,
        "told_at": now,
        "charged": charged,
        "epoch": epoch,
        "seen": step,
    }
    database.insert(connection, facts, row)
    moved = {
        "committed": s.committed - freed,
        "withdrawn": s.withdrawn + len(rows),
        "cursor": s.cursor + 1,
    }
    connection.execute(sa.update(studies).where(s.id == study).values(**moved))
    tallies.add(connection, study, [r[3] for r in rows], sign=-1)
    return len(rows)


def _begun_units(
    connection: Connection, study: int, units: set[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Return the units of which some position was answered."""
    q, f = questions.c, facts.c
    found = set()
    for batch, unit in units:
        told = (
            sa.select(q.position)
            .select_from(ANSWERED)
            .where(q.study == study, q.batch == batch, q.unit == unit, f.kind == "answer")
            .limit(1)
        )
        if connection.execute(told).first() is not None:
            found.add((batch, unit))
    return found


def by_batch(keys: list[Key]) -> list[tuple[int, list[int]]]:
    """Return the positions of each batch, in order."""
    grouped: dict[int, list[int]] = {}
    for batch, position in keys:
        grouped.setdefault(batch, []).append(position)
    return [(batch, sorted(grouped[batch])) for batch in sorted(grouped)]


def _leased(rows: list[tuple[Any, ...]], until: float) -> Leased:
    columns = list(zip(*rows, strict=True))
    batch, position, row, col, mode, price, unit, arm, probability, plate, well = columns
    return Leased(
        batches=np.array(batch, np.int64),
        positions=np.array(position, np.int64),
        rows=np.array(row, np.int64),
        cols=np.array(col, np.int64),
        modes=np.array(mode, np.str_),
        price=np.array(price, np.float64),
        unit=list(unit),
        arm=list(arm),
        probability=list(probability),
        plate=list(plate),
        well=list(well),
        until=until,
    )
