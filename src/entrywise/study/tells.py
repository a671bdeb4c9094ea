"""Keeping answers: all of a tell or none of it, twice is harmless, another value is refused.

Whatever was once handed out can be answered: after a lapse, after a change, after the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import StoreError, TellError
from entrywise.study import tallies
from entrywise.study.bare import Call
from entrywise.study.database import Database
from entrywise.study.leases import FAILED, NOT_GONE, Leases, by_batch
from entrywise.study.records import IMPLAUSIBLE, Blaming, Key, Naming, Record, Told, Workers
from entrywise.study.schema import ANSWERED, ENTRY, about, facts, pending, questions, studies, wants

CORRECTIONS = ("amend", "void")  # facts after which the answer before no longer counts
UNSEEN = -1  # facts that no plan is given: repeats, failures that were measured again

# One answer told alone, the commonest tell of all: its question leaves the queue and the answer is kept. Where no
# row comes back (answered before, withdrawn, closed, held by another) nothing was done, and `put` finds out why.
_ONE_POSTGRESQL = f"""
WITH taken AS (
    DELETE FROM pending USING studies
    WHERE studies.id = pending.study AND studies.state <> 'closed'
        AND pending.study = $1::int AND pending.batch = $2::bigint AND pending.position = $3::bigint
        AND pending.leased_until > -0.5
        AND ($4::text IS NULL OR $4::text = ANY(string_to_array(pending.holders, E'\\n')))
    RETURNING pending.position, pending.turn, pending.price, pending.holders, studies.epoch, studies.streaming
), kept AS (
    INSERT INTO facts
        (study, batch, position, turn, kind, value, failed, worker, holders, told_at, charged, epoch, implausible)
    SELECT $1::int, $2::bigint, position, turn, 'answer', $5::float8, false, $4::text, nullif(holders, $4::text),
        coalesce($6::float8, extract(epoch FROM clock_timestamp())), price, epoch,
        CASE WHEN streaming THEN (
            SELECT $5::float8 NOT BETWEEN expected - {IMPLAUSIBLE} * deviation AND expected + {IMPLAUSIBLE} * deviation
            FROM questions WHERE study = $1::int AND batch = $2::bigint AND position = $3::bigint
        ) END
    FROM taken
    RETURNING told_at
)
{tallies.ONE_POSTGRESQL}
RETURNING 1
"""  # noqa: S608
# Looks once the answer is committed, so that of two who answer the last two questions at once, one finds none open.
_LEFT_POSTGRESQL = """
(SELECT batch, position FROM pending
    WHERE study = $1::int AND batch = $2::bigint AND position = $3::bigint AND leased_until > -0.5
        AND step = (SELECT current FROM studies WHERE id = $1::int))
UNION ALL
(SELECT batch, position FROM pending
    WHERE study = $1::int AND leased_until >= 0
        AND step = (SELECT current FROM studies WHERE id = $1::int) LIMIT 1)
LIMIT 1
"""
_LEFT_STREAMING = """
SELECT batch, position FROM pending WHERE study = $1::int AND leased_until >= 0 LIMIT 1
"""
_ONE_SQLITE = """
DELETE FROM pending
WHERE study = :study AND batch = :batch AND position = :position AND leased_until > -0.5
    AND EXISTS (SELECT 1 FROM studies WHERE id = :study AND state <> 'closed')
    AND (:worker IS NULL OR instr(char(10) || holders || char(10), char(10) || :worker || char(10)) > 0)
RETURNING turn, price, holders
"""
_KEEP_SQLITE = f"""
INSERT INTO facts
    (study, batch, position, turn, kind, value, failed, worker, holders, told_at, charged, epoch, implausible)
VALUES (:study, :batch, :position, :turn, 'answer', :value, 0, :worker, nullif(:holders, :worker), :now, :price,
    (SELECT epoch FROM studies WHERE id = :study),
    CASE WHEN :streaming THEN (
        SELECT :value NOT BETWEEN expected - {IMPLAUSIBLE} * deviation AND expected + {IMPLAUSIBLE} * deviation
        FROM questions WHERE study = :study AND batch = :batch AND position = :position
    ) END)
"""  # noqa: S608
_HINT_SQLITE = """
SELECT 1 FROM pending
WHERE study = :study AND batch = :hint_batch AND position = :hint_position AND leased_until > -0.5
    AND step >= (SELECT current FROM studies WHERE id = :study)
"""


class Held(NamedTuple):
    """A question without an answer, as it was taken out of the queue."""

    row: int
    col: int
    worker: str | None
    leased_until: float
    holders: str | None
    failed: bool
    price: float
    unit: int | None
    turn: int


_HELD = ("row", "col", "worker", "leased_until", "holders", "failed", "price", "unit", "turn")


class Tells:
    """The part of a store that keeps answers."""

    def __init__(self, database: Database, leases: Leases) -> None:
        self.database, self.leases = database, leases

    def put(
        self,
        record: Record,
        told: Told,
        worker: Workers,
        name: Naming,
        blame: Blaming,
        hint: Key | None = None,
    ) -> tuple[int, Key | None]:
        """Keep answers, all of them or none; return (how many were new, a question that is open then).

        Where question `hint` is still open it is the one, which saves a search.
        """
        telling = _Telling(self.database, record, told, worker, blame, name)
        if len(told.value) == 1 and not told.failed[0]:
            kept, left = self._put_one(record, told, telling.workers[0], hint or (-2, -2))
            if kept:
                return 1, left
        new = self.database.write(telling.keep)
        return len(new), self.leases.open_question(record)

    def put_all(
        self, record: Record, tolds: Sequence[tuple[Told, Workers, Blaming]], name: Naming
    ) -> tuple[list[int | TellError], Key | None]:
        """Keep what several tell, in their order and in one transaction where nobody is wrong.

        Return how many answers of each were new, or why all of them were refused; and a question that is open then.
        """
        tellings = [_Telling(self.database, record, *each, name=name) for each in tolds]
        found: list[int | TellError]
        try:
            found = list(self._put_together(tellings))
        except TellError:  # the others are not to blame
            found = [self._put_alone(telling) for telling in tellings]
        return found, self.leases.open_question(record)

    def _put_together(self, tellings: list[_Telling]) -> Iterable[int]:
        new = self.database.write(_joined(tellings).keep)
        ends = np.cumsum([len(telling.told.value) for telling in tellings])
        whose = np.searchsorted(ends, new, side="right")
        counts: list[int] = np.bincount(whose, minlength=len(tellings)).tolist()
        return counts

    def _put_alone(self, telling: _Telling) -> int | TellError:
        try:
            return len(self.database.write(telling.keep))
        except TellError as error:
            return error

    def _put_one(
        self, record: Record, told: Told, worker: str | None, hint: Key
    ) -> tuple[bool, Key | None]:
        """Keep one answer in as few words as the database allows; False where there is more to say."""
        at = (int(told.batch[0]), int(told.position[0]))
        value = float(told.value[0])
        if not self.database.sqlite:
            now = None if self.database.clock is None else self.database.clock()
            left_call = Call("left", _LEFT_POSTGRESQL, (record.id, *hint))
            if record.streaming:
                left_call = Call("left_streaming", _LEFT_STREAMING, (record.id,))
            taken, left = self.database.in_one_trip(
                Call("tell", _ONE_POSTGRESQL, (record.id, *at, worker, value, now)), left_call
            )
            return bool(taken), (int(left[0][0] or 0), int(left[0][1] or 0)) if left else None
        values: dict[str, Any] = {"study": record.id, "batch": at[0], "position": at[1]}
        values |= {"worker": worker, "value": value, "streaming": record.streaming}
        values |= {"hint_batch": hint[0], "hint_position": hint[1]}

        def keep(connection: Connection) -> tuple[bool, bool]:
            handle: Any = connection.connection.driver_connection
            taken = handle.execute(_ONE_SQLITE, values).fetchall()
            if not taken:
                return False, False
            said = dict(zip(("turn", "price", "holders"), taken[0], strict=True))
            said["now"] = self.database.now(connection)
            handle.execute(_KEEP_SQLITE, values | said)
            handle.execute(tallies.ONE_SQLITE, values | said)
            return True, bool(handle.execute(_HINT_SQLITE, values).fetchall())

        kept, still = self.database.write(keep)
        if not kept or still:
            return kept, hint
        return True, self.leases.open_question(record)

    def entries_of(self, study: int, keys: list[Key]) -> dict[Key, Key]:
        """Return the entry (row, col) that each question or want asks for, where there is such a one."""

        def look(connection: Connection) -> dict[Key, Key]:
            found = {}
            q, w = questions.c, wants.c
            for batch, positions in by_batch(keys):
                asked = sa.select(q.position, q.row, q.col).where(
                    q.study == study, q.batch == batch
                )
                again = sa.select(w.position, w.row, w.col).where(w.study == study, w.step == batch)
                asked = asked.where(self.database.within(q.position, positions))
                again = again.where(self.database.within(w.position, positions))
                for query in (again, asked):
                    for position, i, j in self.database.columns(connection, query):
                        found[batch, position] = (i, j)
            return found

        return self.database.read(look)

    def resolve(self, study: int, at: Key) -> Key | None:
        """Return the question that an id means: itself, or the one that a later step wants again."""
        w = wants.c
        here = (w.study == study, w.step == at[0], w.position == at[1])

        def look(connection: Connection) -> Key | None:
            itself = sa.select(questions.c.position).where(*about(questions, study, at))
            if connection.execute(itself).first() is not None:
                return at
            found = connection.execute(sa.select(w.batch, w.at).where(*here)).first()
            return None if found is None or found[0] is None else (int(found[0]), int(found[1]))

        return self.database.read(look)

    def find(self, record: Record, entries: list[Key]) -> list[tuple[list[Key], Key | None]]:
        """Return for each entry (its open questions, the last that can be answered or was), by name."""
        p, q = pending.c, questions.c
        said = () if self.database.sqlite else (ENTRY,)

        def search(connection: Connection) -> list[tuple[list[Key], Key | None]]:
            open_at: dict[Key, list[Key]] = {}
            many = len(entries) > 200
            if many:
                every = sa.select(p.row, p.col, p.batch, p.position)
                every = every.where(p.study == record.id, p.leased_until >= 0)
                for i, j, batch, position in self.database.columns(connection, every):
                    open_at.setdefault((i, j), []).append((batch, position))
            found = []
            for entry in entries:
                ways = _ways(entry, record.symmetric)
                match: list[Key] = []
                last: Key | None = None
                for i, j in ways:
                    if not many:
                        here = sa.select(p.batch, p.position).where(
                            p.study == record.id,
                            p.row == i,
                            p.col == j,
                            p.leased_until > NOT_GONE,
                            *said,
                        )
                        open_at[i, j] = [(b, k) for b, k in self.database.columns(connection, here)]
                    match = match or open_at.get((i, j), [])
                for i, j in () if match else ways:
                    asked = (
                        sa.select(q.batch, q.position)
                        .where(q.study == record.id, q.row == i, q.col == j, *said)
                        .order_by(q.batch.desc(), q.position.desc())
                        .limit(1)
                    )
                    row = connection.execute(asked).first()
                    last = last or (None if row is None else (int(row[0]), int(row[1])))
                found.append((match, last))
            return found

        return self.database.read(search)


class _Telling:
    """One tell, inside its transaction."""

    def __init__(
        self,
        database: Database,
        record: Record,
        told: Told,
        worker: Workers,
        blame: Blaming,
        name: Naming,
    ) -> None:
        self.database, self.record, self.told = database, record, told
        self.workers = list(worker) if isinstance(worker, list) else [worker] * len(told.value)
        self.name, self.blame = name, blame
        self.keys: list[Key] = list(zip(told.batch.tolist(), told.position.tolist(), strict=True))

    def keep(self, connection: Connection) -> list[int]:
        """Keep what is new and return which answers that are; refuse all of it where one is wrong."""
        s = studies.c
        now = self.database.now(connection)
        query = sa.select(s.state, s.epoch).where(s.id == self.record.id)
        found = connection.execute(query).first()
        if found is None:
            raise StoreError(f"there is no study {self.record.name!r} any more; nothing was kept")
        self.state, self.epoch = found
        self._rename(connection)
        which = self._once()
        again = (
            [] if self.record.tolerates_failed else [k for k in which.values() if self.failed(k)]
        )
        stays = {self.keys[k] for k in again}
        held: dict[Key, Held] = {}
        for batch, positions in by_batch([key for key in which if key not in stays]):
            held |= self._take(connection, batch, positions)
        for batch, positions in by_batch(list(stays)):
            held |= self._fail(connection, batch, positions)
        for key, question in held.items():
            self._check(key, question, which[key])
        missing = [k for key, k in which.items() if key not in held]
        late, repeats = self._explain(connection, missing) if missing else ({}, [])
        new = [which[key] for key in held if key not in stays]
        self._insert(connection, new, held, "answer", now)
        self._insert(connection, list(late), {self.keys[k]: late[k] for k in late}, "answer", now)
        failed = [k for k in again if self.keys[k] in held and not held[self.keys[k]].failed]
        self._insert(connection, failed, held, "failed", now)
        turns = {self.keys[k]: _repeat(turn) for k, turn in repeats}
        self._insert(connection, [k for k, _ in repeats], turns, "repeat", now)
        taken = [held[self.keys[k]].price for k in new]
        told_at = now if new or late else 0.0
        # last, since others may wait for it
        tallies.add(connection, self.record.id, taken, sign=-1, told_at=told_at, telling=True)
        return [*new, *late, *failed, *(k for k, _ in repeats)]

    def failed(self, k: int) -> bool:
        return bool(self.told.failed[k])

    def text(self, k: int) -> str:
        return "failed" if self.failed(k) else repr(float(self.told.value[k]))

    def same(self, k: int, value: float | None, failed: bool) -> bool:
        return self.failed(k) == failed and (failed or self.told.value[k] == value)

    def _rename(self, connection: Connection) -> None:
        """Call each question by its first name, where it is told by the position of a later step."""
        w = wants.c
        for batch, positions in by_batch(list(set(self.keys))):
            here = (w.study == self.record.id, w.step == batch, w.batch.is_not(None))
            query = sa.select(w.position, w.batch, w.at)
            query = query.where(*here, self.database.within(w.position, positions))
            names = {(batch, p): (b, k) for p, b, k in self.database.columns(connection, query)}
            if names:
                self.keys = [names.get(key, key) for key in self.keys]

    def _once(self) -> dict[Key, int]:
        """Return the answer that each question is told, refusing two different ones."""
        which: dict[Key, int] = {}
        for k, key in enumerate(self.keys):
            first = which.setdefault(key, k)
            if first != k and not self.same(k, float(self.told.value[first]), self.failed(first)):
                raise TellError(
                    f"{self.blame(k)}question {key[0]}.{key[1]} is told {self.text(first)} and "
                    f"{self.text(k)}; tell one"
                )
        return which

    def _open(self, batch: int, positions: list[int]) -> tuple[Any, ...]:
        p = pending.c
        here = (p.study == self.record.id, p.batch == batch)
        return *here, self.database.within(p.position, positions), p.leased_until > NOT_GONE

    def _take(self, connection: Connection, batch: int, positions: list[int]) -> dict[Key, Held]:
        """Take questions out of the queue; who takes one is the one who answers it."""
        if self.state == "closed":
            return {}
        p = pending.c
        change = sa.delete(pending).where(*self._open(batch, positions))
        rows = connection.execute(change.returning(p.position, *(p[name] for name in _HELD)))
        return {(batch, row[0]): Held(*row[1:]) for row in rows}

    def _fail(self, connection: Connection, batch: int, positions: list[int]) -> dict[Key, Held]:
        """Note a failed measurement whose plan cannot do without it: the question stays, behind the others."""
        if self.state == "closed":
            return {}
        p = pending.c
        where = self._open(batch, positions)
        query = sa.select(p.position, *(p[name] for name in _HELD)).where(*where).with_for_update()
        found = connection.execute(query).all()
        fresh = [row[0] for row in found if not (row.failed and row.worker is None)]
        if fresh:
            change: dict[str, Any] = {"failed": True, "worker": None, "leased_at": None}
            change |= {"leased_until": FAILED, "turn": p.turn + 1}
            connection.execute(sa.update(pending).where(*self._open(batch, fresh)).values(**change))
        free = {row[0]: Held(*row[1:]) for row in found}
        return {
            (batch, k): q._replace(price=0.0, failed=bool(q.failed) and q.worker is None)
            for k, q in free.items()
        }

    def _check(self, key: Key, held: Held, k: int) -> None:
        """A named worker answers what it holds or once held: a late answer is welcome, a stranger's is not."""
        worker = self.workers[k]
        if worker is None or worker in (held.holders or "").split("\n"):
            return
        whose = f"{held.worker!r} holds it" if held.worker is not None else "nobody holds it"
        raise TellError(
            f"{self.blame(k)}worker {worker!r} has no lease of question {key[0]}.{key[1]}, "
            f"entry {self.name(held.row, held.col)}; {whose}: ask first"
        )

    def _insert(
        self,
        connection: Connection,
        ks: list[int],
        held: dict[Key, Held],
        kind: str,
        now: float,
    ) -> None:
        if not ks:
            return
        failed = [self.failed(k) for k in ks]
        values = self.told.value[ks].tolist()
        of = [held[self.keys[k]] for k in ks]
        workers = [self.workers[k] for k in ks]
        row = {
            "study": self.record.id,
            "batch": [self.keys[k][0] for k in ks],
            "position": [self.keys[k][1] for k in ks],
            "turn": [q.turn for q in of],
            "kind": kind,
            "value": [None if bad else x for x, bad in zip(values, failed, strict=True)],
            "failed": failed,
            "worker": workers,
            "holders": [
                None if q.holders == w else q.holders for q, w in zip(of, workers, strict=True)
            ],
            "told_at": now,
            "charged": [q.price if kind == "answer" else 0.0 for q in of],
            "epoch": self.epoch,
            "seen": None if kind == "answer" else UNSEEN,
            "reason": [self.told.reasons.get(k) for k in ks],
        }
        if kind == "answer" and self.record.streaming:
            row["implausible"] = self._implausible(connection, ks)
        self.database.insert(connection, facts, row)

    def _implausible(self, connection: Connection, ks: list[int]) -> list[bool | None]:
        """Tell which answers lie far from what the plan expected when it asked."""
        q = questions.c
        expected: dict[Key, tuple[float, float | None]] = {}
        for batch, positions in by_batch([self.keys[k] for k in ks]):
            query = sa.select(q.position, q.expected, q.deviation).where(
                q.study == self.record.id,
                q.batch == batch,
                self.database.within(q.position, positions),
                q.expected.is_not(None),
            )
            for position, mean, deviation in self.database.columns(connection, query):
                expected[batch, position] = (mean, deviation)
        return [
            None if self.failed(k) else is_far(float(self.told.value[k]), *said)
            for k, said in ((k, expected.get(self.keys[k], (None, None))) for k in ks)
        ]

    def _explain(
        self, connection: Connection, missing: list[int]
    ) -> tuple[dict[int, Held], list[tuple[int, int]]]:
        """Go through answers to questions that are not open.

        Return those that were withdrawn, which count all the same, and those that are repeats, with their turns;
        the same answer again is harmless, and the rest is refused with a reason.
        """
        late: dict[int, Held] = {}
        repeats: list[tuple[int, int]] = []
        asked = self._asked(connection, missing)
        said = self._said(connection, missing)
        for k in sorted(missing):
            key = self.keys[k]
            title = f"{key[0]}.{key[1]}"
            if key not in asked:
                raise TellError(
                    f"{self.blame(k)}study {self.record.name!r} has no question {title}; "
                    "tell it to the study that asked it"
                )
            lines = said.get(key, [])
            standing = _standing(lines)
            if standing is None and self.failed(k) and not self.record.tolerates_failed:
                continue  # nobody waits for it, and nothing was measured
            if standing is None:
                late[k] = self._late(connection, key, k)
                continue
            if self.same(k, standing.value, bool(standing.failed)):
                continue
            if self._is_repeat(k, lines):
                if not self._repeated(k, lines):
                    repeats.append((k, lines[-1].turn + 1))
                continue
            before = "failed" if standing.failed else repr(float(standing.value))
            entry = f"question {title}, entry {self.name(*asked[key])}"
            raise TellError(
                f"{self.blame(k)}{entry}, was already answered ({before}) and is now told "
                f"{self.text(k)}; an answer stands unless you amend it: study amend ... {title} {self.text(k)}"
            )
        return late, repeats

    def _asked(self, connection: Connection, ks: list[int]) -> dict[Key, Key]:
        q = questions.c
        found = {}
        for batch, positions in by_batch(list({self.keys[k] for k in ks})):
            query = sa.select(q.position, q.row, q.col).where(
                q.study == self.record.id,
                q.batch == batch,
                self.database.within(q.position, positions),
            )
            for position, row, col in self.database.columns(connection, query):
                found[batch, position] = (row, col)
        return found

    def _said(self, connection: Connection, ks: list[int]) -> dict[Key, list[Any]]:
        f = facts.c
        found: dict[Key, list[Any]] = {}
        for batch, positions in by_batch(list({self.keys[k] for k in ks})):
            query = (
                sa.select(f.position, f.turn, f.kind, f.value, f.failed, f.worker, f.holders)
                .where(
                    f.study == self.record.id,
                    f.batch == batch,
                    self.database.within(f.position, positions),
                )
                .order_by(f.position, f.turn)
            )
            for row in connection.execute(query):
                found.setdefault((batch, row.position), []).append(row)
        return found

    def _late(self, connection: Connection, key: Key, k: int) -> Held:
        """Take a question that was withdrawn; it is charged if money is left, else it stays unpaid."""
        if self.state == "closed":
            raise TellError(
                f"{self.blame(k)}study {self.record.name!r} is closed; "
                f"reopen it to tell {key[0]}.{key[1]}"
            )
        p, s = pending.c, studies.c
        lock = sa.select(s.total, s.committed).where(s.id == self.record.id).with_for_update()
        total, committed = connection.execute(lock).one()
        here = about(pending, self.record.id, key)
        columns = [p[name] for name in _HELD]
        taken = connection.execute(sa.delete(pending).where(*here).returning(*columns)).first()
        if taken is None:  # somebody answered it a moment ago: try the whole tell again
            raise sa.exc.OperationalError("tell", {}, Exception("database is locked"))
        held = Held(*taken)
        self._check(key, held, k)
        price = held.price if held.unit is None else self._unit_price(connection, key, held)
        total = self.record.budget if total is None else total
        slack = 1e-9 * (total or 0.0)  # round-off in sums of prices
        if total is not None and committed + price > total + slack:
            price = 0.0
        moved = {
            "withdrawn": s.withdrawn - 1,
            "committed": s.committed + price,
            "cursor": s.cursor + 1,
        }
        connection.execute(sa.update(studies).where(s.id == self.record.id).values(**moved))
        return held._replace(price=price)

    def _unit_price(self, connection: Connection, key: Key, held: Held) -> float:
        """Return what a unit costs if nothing of it was charged or is held: it is charged whole, once."""
        p, q, f = pending.c, questions.c, facts.c
        unit = (q.study == self.record.id, q.batch == key[0], q.unit == held.unit)
        paid = sa.select(sa.func.max(f.charged)).select_from(ANSWERED).where(*unit)
        if (connection.execute(paid).scalar() or 0.0) > 0:
            return 0.0
        rest = (p.study == self.record.id, p.batch == key[0], p.unit == held.unit)
        queued = sa.select(sa.func.max(p.price)).where(*rest, p.leased_until >= 0)
        if (connection.execute(queued).scalar() or 0.0) > 0:
            return 0.0
        first = sa.select(sa.func.max(p.price)).where(*rest)
        price = max(held.price, connection.execute(first).scalar() or 0.0)
        connection.execute(sa.update(pending).where(*rest).values(price=0.0))
        return float(price)

    def _is_repeat(self, k: int, lines: list[Any]) -> bool:
        """Tell whether another value is a second measurement: of a plan that repeats, or of a second holder."""
        if self.record.fresh and not self.failed(k):
            return True
        worker = self.workers[k]
        answer = [line for line in lines if line.kind == "answer"]
        if not answer or worker is None:
            return False
        held = (answer[-1].holders or "").split("\n").count(worker)
        return bool(held > (worker == answer[-1].worker))  # held again after a lapse counts, too

    def _repeated(self, k: int, lines: list[Any]) -> bool:
        return any(
            line.kind == "repeat" and self.same(k, line.value, bool(line.failed)) for line in lines
        )


def is_far(value: float, expected: float | None, deviation: float | None) -> bool | None:
    """Tell whether a value lies far from what was expected; None where nothing was.

    The bounds are worked out, here and in SQL, and not the distance: that may be too large for PostgreSQL.
    """
    if expected is None or deviation is None:
        return None
    slack = IMPLAUSIBLE * deviation
    return not expected - slack <= value <= expected + slack


def _joined(tellings: list[_Telling]) -> _Telling:
    """Return what several tell to one study as if one did."""
    first = tellings[0]
    tolds = [telling.told for telling in tellings]
    reasons: dict[int, str] = {}
    workers: list[str | None] = []
    for telling in tellings:
        reasons |= {len(workers) + k: why for k, why in telling.told.reasons.items()}
        workers += telling.workers
    told = Told(
        batch=np.concatenate([t.batch for t in tolds]),
        position=np.concatenate([t.position for t in tolds]),
        value=np.concatenate([t.value for t in tolds]),
        failed=np.concatenate([t.failed for t in tolds]),
        reasons=reasons,
    )
    return _Telling(first.database, first.record, told, workers, first.blame, first.name)


def _standing(lines: list[Any]) -> Any:
    """Return the fact that stands for a question's answer, None when there is none."""
    found = None
    for line in lines:
        if line.kind in ("answer", "known", "amend"):
            found = line
        elif line.kind == "void":
            found = None
    return found


def _repeat(turn: int) -> Held:
    return Held(0, 0, None, 0.0, None, False, 0.0, None, turn)


def _ways(entry: Key, symmetric: bool) -> tuple[Key, ...]:
    return (entry, entry[::-1]) if symmetric and entry[0] != entry[1] else (entry,)
