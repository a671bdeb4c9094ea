"""Studies kept in SQLite or PostgreSQL, through SQLAlchemy Core."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise import npz
from entrywise.exceptions import StoreError
from entrywise.queries import Batch, Checkpoint
from entrywise.study import schema
from entrywise.study.database import Database
from entrywise.study.schema import (
    answers,
    batches,
    checkpoints,
    pending,
    questions,
    retired,
    studies,
)
from entrywise.study.store import Asked, BatchRow, Record, Step, digest
from entrywise.study.tells import Tells
from entrywise.types import Array, Indices

_JSON = ("params", "prices", "versions")


class SQLStore(Tells):
    """Studies kept in the database at `url`; its tables are made or brought up to date on opening."""

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        self.database = Database(url, must_exist=must_exist)

    @classmethod
    def of(cls, url: str | SQLStore, *, must_exist: bool = False) -> SQLStore:
        """Return the store at `url`, or the one that is given."""
        return url if isinstance(url, SQLStore) else cls(url, must_exist=must_exist)

    def __repr__(self) -> str:
        return repr(self.database).replace("Database", "SQLStore", 1)

    def create(
        self,
        record: Record,
        labels: Mapping[str, Sequence[str]],
        known: Mapping[str, Any],
        step: Step,
    ) -> None:
        """Keep a new study with its first step; refuse a name that is taken."""

        def make(connection: Connection) -> None:
            made_at = connection.execute(
                sa.select(studies.c.created_at).where(studies.c.name == record.name)
            ).scalar()
            if made_at == record.created_at:  # the connection was lost after the commit
                return
            study = self.add(connection, record)
            for axis, names in labels.items():
                texts = {"position": np.arange(len(names)), "label": list(names)}
                self.database.insert(
                    connection, schema.labels, {"study": study, "axis": axis} | texts
                )
            self.database.insert(connection, schema.known, {"study": study} | dict(known))
            self._add(
                connection, study, record.next_batch - len(step.asked), step, record.created_at
            )

        self.database.write(make)

    def add(self, connection: Connection, record: Record) -> int:
        """Add the row of a new study and return its id; refuse a name that is taken."""
        row = asdict(record)
        del row["id"]
        row |= {name: None if row[name] is None else json.dumps(row[name]) for name in _JSON}
        try:
            made = connection.execute(sa.insert(studies).values(**row).returning(studies.c.id))
        except sa.exc.IntegrityError:
            raise StoreError(
                f"there is a study called {record.name!r} already; choose another name"
            ) from None
        return int(made.scalar_one())

    def record(self, name: str) -> Record:
        """Return the row of a study; refuse a name that is unknown."""
        row = self.database.read(
            lambda c: c.execute(sa.select(studies).where(studies.c.name == name)).first()
        )
        if row is None:
            names = ", ".join(found.name for found in self.records())
            raise StoreError(
                f"there is no study called {name!r}; there is {names or 'none yet, make one first'}"
            )
        return _record(row)

    def records(self) -> list[Record]:
        """Return every study, by name."""
        every = sa.select(studies).order_by(studies.c.name)
        return [_record(row) for row in self.database.read(lambda c: c.execute(every).all())]

    def labels(self, study: int) -> dict[str, list[str]]:
        """Return the labels of the axes that have any."""
        t = schema.labels.c
        query = sa.select(t.axis, t.label).where(t.study == study).order_by(t.axis, t.position)
        found: dict[str, list[str]] = {}
        for axis, label in self.database.read(lambda c: self.database.columns(c, query)):
            found.setdefault(axis, []).append(label)
        return found

    def known(self, study: int) -> dict[str, tuple[Indices, Indices, Array]]:
        """Return the entries that were known beforehand, by mode."""
        t = schema.known.c
        query = (
            sa.select(t.mode, t.row, t.col, t.value).where(t.study == study).order_by(t.position)
        )
        return _by_mode(self.database.read(lambda c: self.database.columns(c, query)))

    def install(self, record: Record, step: Step, now: float) -> bool:
        """Add a step if the study still stands where `record` says; return whether it did."""

        def swap(connection: Connection) -> bool:
            last = record.next_batch + len(step.asked)
            moved = {
                "cursor": record.cursor + 1,
                "state": step.state,
                "next_batch": last,
                "current": last - 1 if step.asked else record.current,
                "trouble": None,
            }
            if not self._swap(connection, record, "open", moved):
                return False
            self._add(connection, record.id, record.next_batch, step, now)
            return True

        return self.database.write(swap)

    def _swap(
        self, connection: Connection, record: Record, state: str | None, change: Mapping[str, Any]
    ) -> bool:
        """Compare-and-swap on the cursor."""
        where = [studies.c.id == record.id, studies.c.cursor == record.cursor]
        if state is not None:
            where.append(studies.c.state == state)
        return connection.execute(sa.update(studies).where(*where).values(**change)).rowcount == 1

    def _add(self, connection: Connection, study: int, first: int, step: Step, now: float) -> None:
        for k, asked in enumerate(step.asked):
            self._add_batch(connection, study, first + k, asked, step.version, now)
        if step.checkpoint is not None and step.checkpoint_at < len(step.asked):
            connection.execute(sa.delete(checkpoints).where(checkpoints.c.study == study))
            state = step.checkpoint.rng_state()
            row = {
                "arrays": npz.pack(step.checkpoint.arrays, compress=False),
                "rng": None if state is None else json.dumps(state, default=_listed),
            }
            at = first + step.checkpoint_at
            connection.execute(sa.insert(checkpoints).values(study=study, batch=at, **row))

    def _add_batch(
        self,
        connection: Connection,
        study: int,
        number: int,
        asked: Asked,
        version: str,
        now: float,
    ) -> None:
        batch, known = asked.batch, asked.known
        where = np.arange(len(batch))
        row = {
            "study": study, "number": number, "size": len(batch), "wanted": int((~known).sum()), "mode": batch.mode,
            "digest": digest(batch), "cost": asked.cost, "dead": False, "version": version, "asked_at": now,
        }  # fmt: skip
        connection.execute(sa.insert(batches).values(**row))
        at: dict[str, Any] = {"study": study, "batch": number}
        entry = {"unit": batch.unit, "row": batch.rows, "col": batch.cols}
        rest = {
            "mode": batch.mode,
            "price": asked.bill,
            "arm": batch.arm,
            "probability": batch.probability,
        }
        self.database.insert(connection, questions, at | {"position": where} | entry | rest)
        still = np.flatnonzero(~known)
        left = {name: None if column is None else column[still] for name, column in entry.items()}
        lease = {
            "price": asked.bill[still],
            "worker": None,
            "leased_until": 0.0,
            "holders": None,
            "failed": False,
        }
        self.database.insert(connection, pending, at | {"position": still} | left | lease)
        given = {
            "value": asked.answers[known],
            "failed": False,
            "worker": None,
            "told_at": now,
            "source": "memory",
        }
        self.database.insert(connection, answers, at | {"position": where[known]} | given)

    def trouble(self, record: Record, words: str) -> None:
        """Note why the plan cannot go on from here."""
        self.database.write(lambda c: self._swap(c, record, None, {"trouble": words}))

    def set_state(self, record: Record, **change: Any) -> bool:
        """Close, reopen or give money, if the study still stands where `record` says."""
        change = {
            "cursor": record.cursor + 1,
            "rewinds": record.rewinds + 1,
            "trouble": None,
        } | change
        return self.database.write(lambda c: self._swap(c, record, None, change))

    def batches(self, study: int, after: int = -1) -> list[BatchRow]:
        """Return the batches numbered above `after`, in order."""
        b = batches.c
        query = (
            sa.select(b.number, b.size, b.wanted, b.mode, b.digest, b.cost, b.dead)
            .where(b.study == study, b.number > after)
            .order_by(b.number)
        )
        rows = self.database.read(lambda c: self.database.columns(c, query))
        return [
            BatchRow(n, size, wanted, mode, made, cost, bool(dead))
            for n, size, wanted, mode, made, cost, dead in rows
        ]

    def answers(self, study: int, first: int, last: int) -> tuple[Indices, Array]:
        """Return (batch, value) of the answers in batches first..last, in order, NaN where one failed."""
        a = answers.c
        query = (
            sa.select(a.batch, a.value)
            .where(a.study == study, a.batch >= first, a.batch <= last)
            .order_by(a.batch, a.position)
        )
        rows = self.database.read(lambda c: self.database.columns(c, query))
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0)
        number, value = zip(*rows, strict=True)
        return np.array(number, np.int64), np.array(value, np.float64)

    def told(
        self, study: int, first: int, last: int, dead: bool | None = None, source: str = "told"
    ) -> dict[str, tuple[Indices, Indices, Array]]:
        """Return the answers that were told in batches first..last (the withdrawn or the others), by mode."""
        q, a, b = questions.c, answers.c, batches.c
        same = (a.study == q.study) & (a.batch == q.batch) & (a.position == q.position)
        where = [c.study == study for c in (q, a)] + [c.batch.between(first, last) for c in (q, a)]
        where += [a.value.is_not(None), a.source == source]
        if dead is not None:
            where.append(q.batch.in_(sa.select(b.number).where(b.study == study, b.dead.is_(dead))))
        query = (
            sa.select(q.mode, q.row, q.col, a.value)
            .select_from(questions.join(answers, same))
            .where(*where)
            .order_by(q.batch, q.position)
        )

        def read(connection: Connection) -> list[tuple[Any, ...]]:
            with self.database.large_joins(connection):
                return self.database.columns(connection, query)

        return _by_mode(self.database.read(read))

    def batch(self, study: int, number: int) -> Batch:
        """Return one batch with its questions."""
        q = questions.c
        query = (
            sa.select(q.row, q.col, q.mode, q.unit)
            .where(q.study == study, q.batch == number)
            .order_by(q.position)
        )
        rows = self.database.read(lambda c: self.database.columns(c, query))
        unit = [row[3] for row in rows]
        units = None if not rows or unit[0] is None else np.array(unit, np.int64)
        mode = rows[0][2] if rows else "entry"
        return Batch(
            np.array([r[0] for r in rows], np.int64),
            np.array([r[1] for r in rows], np.int64),
            mode,
            units,
        )

    def source(self, study: int, at: tuple[int, int]) -> str | None:
        """Return where the answer to a question came from, None when there is none."""
        a = answers.c
        query = sa.select(a.source).where(a.study == study, a.batch == at[0], a.position == at[1])
        return self.database.read(lambda c: c.execute(query).scalar())

    def checkpoint(self, study: int) -> tuple[int, Checkpoint] | None:
        """Return (first batch after it, checkpoint), if one was kept."""
        c = checkpoints.c
        query = sa.select(c.batch, c.arrays, c.rng).where(c.study == study).order_by(c.batch.desc())
        row = self.database.read(lambda connection: connection.execute(query).first())
        if row is None:
            return None
        _, arrays = npz.unpack(bytes(row[1]), "a checkpoint")
        return int(row[0]), Checkpoint.restore(
            arrays, None if row[2] is None else json.loads(row[2])
        )

    def amend(
        self,
        record: Record,
        at: tuple[int, int],
        keep: int,
        value: float | None,
        worker: str | None,
        now: float,
    ) -> bool:
        """Replace an answer and withdraw every batch after `keep`, if the study still stands where `record` says."""
        a, b, p = answers.c, batches.c, pending.c
        here = (a.study == record.id, a.batch == at[0], a.position == at[1])

        def change(connection: Connection) -> bool:
            moved: dict[str, Any] = {
                "cursor": record.cursor + 1,
                "rewinds": record.rewinds + 1,
                "trouble": None,
            }
            moved |= {"state": "open", "current": max(keep, 0)}
            if not self._swap(connection, record, None, moved):
                return False
            old = connection.execute(
                sa.select(a.value, a.failed, a.worker, a.told_at).where(*here)
            ).one()
            kept = {
                "study": record.id,
                "batch": at[0],
                "position": at[1],
                "reason": "amended",
                "retired_at": now,
            }
            connection.execute(sa.insert(retired).values(**kept, **old._asdict()))
            new = {"value": value, "failed": value is None, "worker": worker, "told_at": now}
            connection.execute(sa.update(answers).where(*here).values(**new))
            unspent = connection.execute(
                sa.select(p.batch, sa.func.sum(p.price))
                .where(p.study == record.id, p.batch > keep)
                .group_by(p.batch)
            ).all()
            for number, amount in unspent:
                mine = (b.study == record.id) & (b.number == number)
                connection.execute(sa.update(batches).where(mine).values(cost=b.cost - amount))
            connection.execute(sa.delete(pending).where(p.study == record.id, p.batch > keep))
            connection.execute(
                sa.update(batches).where(b.study == record.id, b.number > keep).values(dead=True)
            )
            gone = (checkpoints.c.study == record.id) & (checkpoints.c.batch > keep)
            connection.execute(sa.delete(checkpoints).where(gone))
            return True

        return self.database.write(change)


def _record(row: Any) -> Record:
    found = row._asdict()
    found |= {name: None if found[name] is None else json.loads(found[name]) for name in _JSON}
    found |= {name: bool(found[name]) for name in ("symmetric", "fresh", "tolerates_failed")}
    return Record(**found)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _by_mode(rows: list[tuple[Any, ...]]) -> dict[str, tuple[Indices, Indices, Array]]:
    found: dict[str, tuple[Indices, Indices, Array]] = {}
    if not rows:
        return found
    mode, row, col, seen = zip(*rows, strict=True)
    i, j, value = np.array(row, np.int64), np.array(col, np.int64), np.array(seen, np.float64)
    for name in dict.fromkeys(mode):
        at = np.array(mode) == name
        found[name] = (i[at], j[at], value[at])
    return found
