"""Studies kept in SQLite or PostgreSQL: a study's row, its steps, its log.

A store is made of parts, each a handful of transactions: :class:`~entrywise.study.leases.Leases` hands questions
out, :class:`~entrywise.study.tells.Tells` keeps answers, and here a step is installed and the log is read.
None of them runs a plan. What changes a study as a whole is in :mod:`entrywise.study.changes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise import npz
from entrywise.exceptions import StoreError
from entrywise.queries import Batch, Checkpoint
from entrywise.study import schema, tallies
from entrywise.study.database import Database
from entrywise.study.leases import QUEUED, Leases, by_batch
from entrywise.study.past import Past
from entrywise.study.records import Advance, Epoch, Key, Record, Step, StepRow, Want, digest
from entrywise.study.schema import (
    about,
    checkpoints,
    epochs,
    facts,
    pending,
    questions,
    steps,
    studies,
    wants,
)
from entrywise.study.tells import Tells

_FLAGS = ("symmetric", "fresh", "tolerates_failed", "history", "streaming")
_OF_EPOCH = ("params", "prices", "dropped", "versions")  # JSON
_EVERY = (  # studies with their present epoch
    sa.select(studies, *(epochs.c[name] for name in _OF_EPOCH))
    .select_from(
        studies.join(epochs, (epochs.c.study == studies.c.id) & (epochs.c.epoch == studies.c.epoch))
    )
    .order_by(studies.c.name)
)
_ONE = _EVERY.where(studies.c.name == sa.bindparam("name"))


class Store:
    """Studies kept in the database at `url`; its tables are made or brought up to date on opening.

    * Threads, processes and machines may share one: no call keeps anything in memory that another must see.
    * What a call has written is committed, on the disk, when it returns; all of it or nothing.
    * A study moves by compare-and-swap on its cursor (:meth:`swap`): who comes second is told so, and looks again.
    * A transaction may be made twice where a connection was lost: what is there already is taken for its own.
    * Time is the database's, so that leases agree between machines whose clocks do not.

    :mod:`entrywise.checks.stores` holds a store to this.
    """

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        self.database = Database(url, must_exist=must_exist)
        self.leases = Leases(self.database)
        self.tells = Tells(self.database, self.leases)

    @classmethod
    def of(cls, url: str | Store, *, must_exist: bool = False) -> Store:
        """Return the store at `url`, or the one that is given."""
        return url if isinstance(url, Store) else cls(url, must_exist=must_exist)

    def __repr__(self) -> str:
        return repr(self.database).replace("Database", "Store", 1)

    @property
    def clock(self) -> Callable[[], float] | None:
        """The clock that tests put in place of the database's own; leases and dates go by it."""
        return self.database.clock

    @clock.setter
    def clock(self, clock: Callable[[], float] | None) -> None:
        self.database.clock = clock

    def now(self) -> float:
        """Return the time of the store."""
        return self.database.read(self.database.now)

    # a study's own row

    def create(
        self,
        record: Record,
        epoch: Epoch,
        labels: Mapping[str, Sequence[str]],
        known: Past,
        first: Advance,
    ) -> None:
        """Keep a new study with what is known and its first steps; refuse a name that is taken."""

        def make(connection: Connection) -> None:
            s = studies.c
            made = sa.select(s.created_at, s.seed).where(s.name == record.name)
            if connection.execute(made).first() == (record.created_at, record.seed):
                return  # the connection was lost after the commit
            study = self.add(connection, record, epoch)
            self.add_labels(connection, study, labels)
            self.add_past(connection, study, record, known)
            self._install(connection, replace(record, id=study), first)

        self.database.write(make)

    def add(self, connection: Connection, record: Record, epoch: Epoch) -> int:
        """Add the rows of a new study and of its epoch, and return its id; refuse a name that is taken."""
        names = [c.name for c in studies.columns if c.name != "id"]
        row = {name: getattr(record, name) for name in names}
        try:
            made = connection.execute(sa.insert(studies).values(**row).returning(studies.c.id))
        except sa.exc.IntegrityError:
            raise StoreError(
                f"there is a study called {record.name!r} already; choose another name, or go on with it: study ask"
            ) from None
        study = int(made.scalar_one())
        self.add_epoch(connection, study, record, epoch)
        return study

    def add_epoch(self, connection: Connection, study: int, record: Record, epoch: Epoch) -> None:
        """Add the row of an epoch that begins at `record`."""
        row = {
            "study": study,
            "epoch": record.epoch,
            "first_step": record.first_step,
            "params": json.dumps(dict(epoch.params)),
            "prices": None if epoch.prices is None else json.dumps(epoch.prices),
            "dropped": None if epoch.dropped is None else json.dumps(epoch.dropped),
            "total": epoch.total,
            "left": record.left,
            "change": epoch.change,
            "versions": json.dumps(dict(record.versions)),
            "made_at": self.database.now(connection),
        }
        connection.execute(sa.insert(epochs).values(**row))

    def add_labels(
        self,
        connection: Connection,
        study: int,
        labels: Mapping[str, Sequence[str]],
        first: Mapping[str, int] | None = None,
    ) -> None:
        """Add labels of the axes, behind those that are there."""
        for axis, names in labels.items():
            at = (first or {}).get(axis, 0) + np.arange(len(names))
            row = {"study": study, "axis": axis, "position": at, "label": list(names)}
            self.database.insert(connection, schema.labels, row)

    def add_past(self, connection: Connection, study: int, record: Record, known: Past) -> None:
        """Add questions that have their answer already: known beforehand, or told to the study this is a fork of."""
        if not len(known.batch):
            return
        t = known.table
        name = {"study": study, "batch": known.batch, "position": known.position}
        entry = {"row": t.rows, "col": t.cols, "mode": t.mode.tolist()}
        about = {
            "repeat": -1 - self._given(connection, study) - np.arange(len(t))
            if record.fresh
            else 0,
            "unit": [None if k < 0 else k for k in t.unit.tolist()],
            "price": t.price,
            "arm": [arm or None for arm in t.arm.tolist()],
            "probability": _null(t.probability),
            "plate": [None if k < 0 else k for k in t.plate.tolist()],
        }
        self.database.insert(connection, questions, name | entry | about)
        fact = {
            "turn": 0,
            "kind": ["known" if known_ else "answer" for known_ in t.known.tolist()],
            "value": _null(t.values),
            "failed": t.failed.tolist(),
            "noise": _null(t.noise),
            "told_at": self.database.now(connection),
            "charged": t.price,
            "epoch": record.epoch,
            "seen": record.first_step,
        }
        self.database.insert(connection, facts, name | fact)
        if not t.known.all():
            tallies.add(connection, study, told_at=fact["told_at"])

    def _given(self, connection: Connection, study: int) -> int:
        """Return how many entries were given so far; those of plans that repeat are numbered downwards from -1."""
        q = questions.c
        query = sa.select(sa.func.count()).where(q.study == study, q.repeat < 0)
        return int(connection.execute(query).scalar_one())

    def record(self, name: str) -> Record:
        """Return the row of a study; refuse a name that is unknown."""
        found = self.database.read(lambda c: self.look_up(c, name))
        if found is None:
            names = ", ".join(record.name for record in self.records())
            raise StoreError(
                f"there is no study called {name!r}; name one of {names or 'those that you make first'}"
            )
        return found

    def look_up(self, connection: Connection, name: str) -> Record | None:
        """Return the row of a study; None where there is none."""
        row = connection.execute(_ONE, {"name": name}).first()
        return None if row is None else _record(row)

    def records(self) -> list[Record]:
        """Return every study, by name."""
        return [_record(row) for row in self.database.read(lambda c: c.execute(_EVERY).all())]

    def labels(self, study: int) -> dict[str, list[str]]:
        """Return the labels of the axes that have any."""
        t = schema.labels.c
        query = sa.select(t.axis, t.label).where(t.study == study).order_by(t.axis, t.position)
        found: dict[str, list[str]] = {}
        for axis, label in self.database.read(lambda c: self.database.columns(c, query)):
            found.setdefault(axis, []).append(label)
        return found

    def swap(
        self, connection: Connection, record: Record, change: Mapping[str, Any], *where: Any
    ) -> bool:
        """Compare-and-swap on the cursor and on the money."""
        s = studies.c
        same = (s.id == record.id, s.cursor == record.cursor, s.committed == record.committed)
        made = sa.update(studies).where(*same, *where).values(**change)
        return connection.execute(made).rowcount == 1

    def trouble(self, record: Record, words: str) -> None:
        """Note why the plan cannot go on from here."""
        note = {"trouble": words, "stepper": None, "stepper_until": 0.0}
        self.database.write(lambda c: self.swap(c, record, note))

    def claim(self, record: Record, stepper: str, seconds: float) -> bool:
        """Become the one who works out the next step, unless somebody else is at it."""
        s = studies.c

        def mark(connection: Connection) -> bool:
            now = self.database.now(connection)
            free = (s.stepper.is_(None)) | (s.stepper == stepper) | (s.stepper_until <= now)
            change = {"stepper": stepper, "stepper_until": now + seconds}
            where = (s.id == record.id, s.cursor == record.cursor, free)
            return (
                connection.execute(sa.update(studies).where(*where).values(**change)).rowcount == 1
            )

        return self.database.write(mark)

    def unclaim(self, record: Record, stepper: str) -> None:
        """Let others work out the next step."""
        s = studies.c
        free = {"stepper": None, "stepper_until": 0.0}
        change = sa.update(studies).where(s.id == record.id, s.stepper == stepper).values(**free)
        self.database.write(lambda c: c.execute(change))

    # steps

    def install(self, record: Record, made: Advance) -> bool:
        """Add steps if the study still stands where `record` says; return whether it did."""

        return self.database.write(lambda c: self._install(c, record, made))

    def _install(self, connection: Connection, record: Record, made: Advance) -> bool:
        last = record.next_step + len(made.steps) + (made.ended is not None)
        back = sum(want.requeue for step in made.steps for want in step.wants)
        moved = {
            "cursor": record.cursor + 1,
            "state": made.ended or "open",
            "reason": made.reason,
            "trouble": None,
            "next_step": last,
            "current": 0 if record.streaming else last - 1,
            "committed": record.committed + sum(step.cost for step in made.steps),
            "asked": record.asked + sum(len(step.fresh) for step in made.steps),
            "withdrawn": record.withdrawn - back,
            "stepper": None,
            "stepper_until": 0.0,
        }
        if not self.swap(connection, record, moved, studies.c.state == "open"):
            return False
        self._add(connection, record.id, record, made)
        return True

    def _add(self, connection: Connection, study: int, record: Record, made: Advance) -> None:
        now = self.database.now(connection)
        first = record.next_step
        for k, step in enumerate(made.steps):
            assert step.batch is not None
            self._add_step(connection, study, record, first + k, step, made, now)
            self._add_questions(connection, study, first + k, step)
            self._add_wants(connection, study, first + k, step)
        if made.ended is not None:
            end = Step(left=made.steps[-1].left if made.steps else record.left)
            self._add_step(connection, study, record, first + len(made.steps), end, made, now)
        opened = [price for step in made.steps for price in step.bill.tolist()]
        opened += [want.price or 0.0 for s in made.steps for want in s.wants if want.requeue]
        tallies.add(connection, study, opened)
        self._stamp(connection, study, first, made.seen)
        if made.checkpoint is not None:
            self._keep(connection, study, record.epoch, first + made.checkpoint_at, made.checkpoint)

    def _add_step(
        self,
        connection: Connection,
        study: int,
        record: Record,
        number: int,
        step: Step,
        made: Advance,
        now: float,
    ) -> None:
        batch = step.batch
        allowed = {k: v for k, v in step.filter._asdict().items() if v is not None}
        report = made.report if batch is None else getattr(batch, "report", None)
        row = {
            "study": study,
            "step": number,
            "epoch": record.epoch,
            "mode": "" if batch is None else batch.mode,
            "size": 0 if batch is None else len(batch),
            "asked": len(step.fresh),
            "digest": "" if batch is None else digest(batch),
            "cost": step.cost,
            "filter": json.dumps(allowed) if allowed else None,
            "limit": step.limit,
            "left": step.left,
            "ended": made.ended if batch is None else None,
            "report": json.dumps(dict(report), default=_plainly) if report else None,
            "version": made.version,
            "asked_at": now,
        }
        connection.execute(sa.insert(steps).values(**row))

    def _add_questions(self, connection: Connection, study: int, number: int, step: Step) -> None:
        batch, at = step.batch, step.fresh
        assert batch is not None

        def picked(name: str) -> Any:
            column = getattr(batch, name, None)
            return None if column is None else column[at]

        name = {"study": study, "batch": number, "position": at}
        entry = {"row": batch.rows[at], "col": batch.cols[at], "mode": batch.mode}
        both = {"unit": picked("unit"), "price": step.bill, "plate": picked("plate")}
        about = {k: picked(k) for k in ("arm", "probability", "expected", "deviation", "well")}
        for k in ("expected", "deviation", "probability"):
            about[k] = _null(about[k])
        own = name | entry | both
        self.database.insert(connection, questions, own | about | {"repeat": step.repeat})
        lease = {"step": number, "leased_until": QUEUED, "failed": False, "turn": 0}
        self.database.insert(connection, pending, own | lease)

    def _add_wants(self, connection: Connection, study: int, number: int, step: Step) -> None:
        """Note what a step wants that is there already; what waits for an answer waits for this step now."""
        batch = step.batch
        if not step.wants:
            return
        assert batch is not None
        at = np.array([want.position for want in step.wants], np.int64)
        keys = [want.key or (None, None) for want in step.wants]
        chance = None if batch.probability is None else batch.probability[at]
        row = {
            "study": study,
            "step": number,
            "position": at,
            "row": batch.rows[at],
            "col": batch.cols[at],
            "batch": [batch for batch, _ in keys],
            "at": [at for _, at in keys],
            "value": [want.value for want in step.wants],
            "given": [want.given for want in step.wants],
            "arm": None if batch.arm is None else batch.arm[at],
            "probability": _null(chance),
        }
        self.database.insert(connection, wants, row)
        self._wait_for(connection, study, number, step.wants)

    def _wait_for(
        self, connection: Connection, study: int, number: int, wanted: Sequence[Want]
    ) -> None:
        """Let questions of earlier steps belong to this one; those that were withdrawn are queued again."""
        p = pending.c
        waited = [(want.key, want) for want in wanted if want.key and not want.given]
        for name, positions in by_batch([key for key, _ in waited]):
            here = (p.study == study, p.batch == name, self.database.within(p.position, positions))
            connection.execute(sa.update(pending).where(*here).values(step=number))
        for key, want in waited:
            if want.requeue:
                back = {"leased_until": QUEUED, "price": want.price or 0.0}
                one = sa.update(pending).where(*about(pending, study, key))
                connection.execute(one.values(**back))

    def _stamp(
        self, connection: Connection, study: int, step: int, seen: Sequence[tuple[int, int, int]]
    ) -> None:
        """Note which facts the plan was given; exactly these, since others may have come meanwhile."""
        f = facts.c
        by_turn: dict[int, list[Key]] = {}
        for batch, position, turn in seen:
            by_turn.setdefault(turn, []).append((batch, position))
        for turn, keys in by_turn.items():
            for batch, positions in by_batch(keys):
                here = (f.study == study, f.batch == batch, f.turn == turn)
                given = self.database.within(f.position, positions)
                connection.execute(sa.update(facts).where(*here, given).values(seen=step))

    def _keep(
        self, connection: Connection, study: int, epoch: int, at: int, checkpoint: Checkpoint
    ) -> None:
        connection.execute(sa.delete(checkpoints).where(checkpoints.c.study == study))
        state = checkpoint.rng_state()
        row = {
            "study": study,
            "step": at,
            "epoch": epoch,
            "arrays": npz.pack(checkpoint.arrays, compress=False),
            "rng": None if state is None else json.dumps(state, default=_plainly),
        }
        connection.execute(sa.insert(checkpoints).values(**row))

    # the log

    def steps(self, study: int, first: int) -> list[StepRow]:
        """Return the steps numbered from `first` on, in order."""
        t = steps.c
        columns = [t[name] for name in StepRow._fields]
        query = sa.select(*columns).where(t.study == study, t.step >= first).order_by(t.step)
        rows = self.database.read(lambda c: self.database.columns(c, query))
        return [StepRow(*row) for row in rows]

    def step_batch(self, study: int, number: int) -> Batch:
        """Return what one step wanted."""
        q, w = questions.c, wants.c
        own = sa.select(q.position, q.row, q.col, q.mode, q.unit).where(
            q.study == study, q.batch == number
        )
        more = sa.select(w.position, w.row, w.col).where(w.study == study, w.step == number)

        def look(connection: Connection) -> tuple[list[Any], list[Any]]:
            return self.database.columns(connection, own), self.database.columns(connection, more)

        asked, again = self.database.read(look)
        rows = sorted([(*row[:3], row[4]) for row in asked] + [(*row, None) for row in again])
        units = [row[3] for row in rows]
        row = steps.c
        mode = sa.select(row.mode).where(row.study == study, row.step == number)
        return Batch(
            np.array([r[1] for r in rows], np.int64),
            np.array([r[2] for r in rows], np.int64),
            str(self.database.read(lambda c: c.execute(mode).scalar()) or "entry"),
            None if not rows or None in units else np.array(units, np.int64),
        )

    def checkpoint(self, study: int, epoch: int) -> tuple[int, Checkpoint] | None:
        """Return (first step after it, checkpoint), if one was kept in this epoch."""
        c = checkpoints.c
        query = sa.select(c.step, c.arrays, c.rng).where(c.study == study, c.epoch == epoch)
        row = self.database.read(lambda connection: connection.execute(query).first())
        if row is None:
            return None
        _, arrays = npz.unpack(bytes(row[1]), "a checkpoint")
        state = None if row[2] is None else json.loads(row[2])
        return int(row[0]), Checkpoint.restore(arrays, state)


def _record(row: Any) -> Record:
    found = row._asdict()
    found |= {k: None if found[k] is None else json.loads(found[k]) for k in _OF_EPOCH}
    found |= {k: bool(found[k]) for k in _FLAGS}
    return Record(**found)


def _plainly(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _null(column: Any) -> Any:
    """Return numbers with None where they are NaN."""
    if column is None:
        return None
    return [None if x != x else x for x in np.asarray(column, np.float64).tolist()]
