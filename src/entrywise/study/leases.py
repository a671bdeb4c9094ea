"""Handing out open questions: leases that expire, whole units together, nobody measures twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.study.database import Database
from entrywise.study.schema import FREE, pending, questions, studies
from entrywise.study.store import Leased

# Where its statistics are old, PostgreSQL thinks that a batch has one question, and would read and sort all of it.
IN_ORDER = "SET LOCAL enable_sort = off"


def in_queue(study: int, *where: sa.ColumnElement[bool]) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of a study's open questions: those of its current batch, if `where` holds of the study.

    Naming the batch keeps PostgreSQL from passing over what earlier batches left in its indexes.
    """
    current = sa.select(studies.c.current).where(studies.c.id == study, *where).scalar_subquery()
    return pending.c.study == study, pending.c.batch == current


def free_questions(study: int, now: float) -> sa.Select[Any]:
    """Return the query of (batch, position, unit) that nobody holds: first those never tried, then failed and expired."""
    p = pending.c
    return (
        sa.select(p.batch, p.position, p.unit)
        .where(*in_queue(study, studies.c.state == "open"), FREE, p.leased_until <= now)
        .order_by(p.leased_until, p.position)
        .with_for_update(skip_locked=True, of=pending)
    )


class Leases:
    """The part of a store that hands out questions."""

    database: Database

    def lease(
        self, study: int, limit: int | None, worker: str | None, until: float, now: float
    ) -> Leased | None:
        """Hand out open questions that nobody holds, whole units together; None when there are none."""

        tries = 0

        def take(connection: Connection) -> list[tuple[Any, ...]]:
            nonlocal tries
            tries += 1
            if (
                tries > 1
            ):  # the connection may have been lost after the commit: then they are ours already
                batch, positions = self._held(connection, study, worker, until)
                if positions:
                    return self._asked(connection, study, batch, positions)
            batch, positions = self._pick(connection, study, limit, now)
            if not positions:
                return []
            who = sa.literal(worker, sa.Text)
            held = sa.case(
                (pending.c.holders.is_(None), who),
                else_=pending.c.holders + sa.literal("\n", sa.Text) + who,
            )
            change: dict[str, Any] = {"worker": worker, "leased_until": until}
            if worker is not None:
                change["holders"] = held
            mine = (pending.c.study == study) & (pending.c.batch == batch)
            connection.execute(
                sa.update(pending)
                .where(mine, self.database.within(pending.c.position, positions))
                .values(**change)
            )
            return self._asked(connection, study, batch, positions)

        found = self.database.write(take)
        return _leased(found) if found else None

    def _asked(
        self, connection: Connection, study: int, batch: int, positions: list[int]
    ) -> list[tuple[Any, ...]]:
        q = questions.c
        wanted = (
            sa.select(
                q.batch, q.position, q.row, q.col, q.mode, q.price, q.unit, q.arm, q.probability
            )
            .where(q.study == study, q.batch == batch, self.database.within(q.position, positions))
            .order_by(q.position)
        )
        return self.database.columns(connection, wanted)

    def _held(
        self, connection: Connection, study: int, worker: str | None, until: float
    ) -> tuple[int, list[int]]:
        p = pending.c
        who = p.worker.is_(None) if worker is None else p.worker == worker
        mine = (
            sa.select(p.batch, p.position)
            .where(*in_queue(study), p.leased_until == until, who)
            .order_by(p.position)
        )
        rows = self.database.columns(connection, mine)
        return (rows[0][0] if rows else 0), [position for _, position in rows]

    def _pick(
        self, connection: Connection, study: int, limit: int | None, now: float
    ) -> tuple[int, list[int]]:
        p = pending.c
        if not self.database.sqlite:
            connection.exec_driver_sql(IN_ORDER)
        rows = self.database.columns(connection, free_questions(study, now).limit(limit))
        if not rows:
            return 0, []
        batch = rows[0][0]
        positions = [position for _, position, _ in rows]
        units = sorted({unit for _, _, unit in rows if unit is not None})
        if units:  # the rest of each unit goes to the same hands; one that another worker holds in part waits
            same = (p.study == study, p.batch == batch, self.database.within(p.unit, units))
            whole = sa.select(p.position, p.leased_until, p.unit).where(*same).with_for_update()
            members = self.database.columns(connection, whole)
            busy = {unit for _, leased_until, unit in members if leased_until > now}
            positions = sorted(position for position, _, unit in members if unit not in busy)
        return batch, positions

    def release(self, study: int, worker: str | None) -> int:
        """Take back what a worker (or everybody) holds; return how many questions that were."""
        p = pending.c
        held = [*in_queue(study), p.leased_until > 1.0]
        if worker is not None:
            held.append(p.worker == worker)
        change = sa.update(pending).where(*held).values(worker=None, leased_until=0.0)
        return int(self.database.write(lambda c: c.execute(change).rowcount))

    def open_question(self, study: int) -> tuple[int, int] | None:
        """Return some open question as (batch, position); None when all are answered."""
        p = pending.c
        last = (
            sa.select(p.batch, p.position)
            .where(*in_queue(study))
            .order_by(p.position.desc())
            .limit(1)
        )
        found = self.database.read(lambda c: self.database.columns(c, last))
        return (found[0][0], found[0][1]) if found else None

    def complete(self, study: int) -> bool:
        """Tell whether no question is open."""
        return self.open_question(study) is None

    def open_counts(self, study: int, now: float) -> dict[str, Any]:
        """Return how many questions are open, leased and failed, what they cost, and who holds them."""
        p = pending.c

        def count(connection: Connection) -> dict[str, Any]:
            totals = connection.execute(
                sa.select(
                    sa.func.count(),
                    sa.func.coalesce(sa.func.sum(sa.case((p.leased_until > now, 1), else_=0)), 0),
                    sa.func.coalesce(sa.func.sum(p.price), 0.0),
                ).where(*in_queue(study))
            ).one()
            workers = connection.execute(
                sa.select(p.worker, sa.func.count(), sa.func.max(p.leased_until))
                .where(*in_queue(study), p.leased_until > now)
                .group_by(p.worker)
                .order_by(p.worker)
            ).all()
            failed = connection.execute(
                sa.select(p.batch, p.position, p.row, p.col)
                .where(*in_queue(study), p.failed.is_(True))
                .order_by(p.position)
                .limit(20)
            ).all()
            return {
                "open": int(totals[0]),
                "leased": int(totals[1]),
                "reserved": float(totals[2]),
                "workers": [(w, int(n), float(u)) for w, n, u in workers],
                "failed": [tuple(map(int, row)) for row in failed],
            }

        return self.database.read(count)


def _leased(rows: list[tuple[Any, ...]]) -> Leased:
    batch, position, row, col, mode, price, unit, arm, probability = zip(*rows, strict=True)
    return Leased(
        batch[0],
        np.array(position, np.int64),
        np.array(row, np.int64),
        np.array(col, np.int64),
        mode[0],
        np.array(price, np.float64),
        None if unit[0] is None else np.array(unit, np.int64),
        None if all(a is None for a in arm) else list(arm),
        None if probability[0] is None else np.array(probability, np.float64),
    )
