"""Keeping answers: all of a tell or none of it, twice is harmless, another value is refused."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import TellError
from entrywise.study.bare import Call
from entrywise.study.leases import Leases, in_queue
from entrywise.study.schema import ENTRY, answers, batches, pending, questions, retired, studies
from entrywise.study.store import Blaming, Naming, Record, Told, Workers

FEW = 100  # questions that are better looked up one by one
FAILED = 1.0  # a lease that ended long ago: failed questions are handed out after those never tried


# One answer told alone, the commonest tell of all: its question leaves the queue and the answer is kept. Where no
# row comes back (answered before, withdrawn, closed, held by another) nothing was done, and `put` finds out why.
_ONE_POSTGRESQL = """
WITH taken AS (
    DELETE FROM pending USING studies
    WHERE studies.id = pending.study AND studies.state = 'open'
        AND pending.study = $1::int AND pending.batch = $2::bigint AND pending.position = $3::bigint
        AND ($4::text IS NULL OR $4::text = ANY(string_to_array(pending.holders, E'\n')))
    RETURNING pending.position
)
INSERT INTO answers (study, batch, position, value, failed, worker, told_at, source)
SELECT $1::int, $2::bigint, position, $5::float8, false, $4::text, $6::float8, 'told' FROM taken
RETURNING 1
"""
# Looks once the answer is committed, so that of two who answer the last two questions at once, one finds none open.
_LEFT_POSTGRESQL = """
(SELECT batch, position FROM pending WHERE study = $1::int AND batch = $2::bigint AND position = $3::bigint)
UNION ALL
(SELECT batch, position FROM pending
    WHERE study = $1::int AND batch = (SELECT current FROM studies WHERE id = $1::int) ORDER BY position DESC LIMIT 1)
LIMIT 1
"""
_ONE_SQLITE = """
DELETE FROM pending WHERE study = :study AND batch = :batch AND position = :position
    AND EXISTS (SELECT 1 FROM studies WHERE id = :study AND state = 'open')
    AND (:worker IS NULL OR instr(char(10) || holders || char(10), char(10) || :worker || char(10)) > 0)
RETURNING 1
"""
_KEEP_SQLITE = """
INSERT INTO answers (study, batch, position, value, failed, worker, told_at, source)
VALUES (:study, :batch, :position, :value, 0, :worker, :now, 'told')
"""
_HINT_SQLITE = "SELECT 1 FROM pending WHERE study = :study AND batch = :hint_batch AND position = :hint_position"


class Held(NamedTuple):
    """An open question as it was taken out of the queue."""

    row: int
    col: int
    worker: str | None
    leased_until: float
    holders: str | None
    failed: bool


class Tells(Leases):
    """The part of a store that keeps answers."""

    def put(
        self,
        record: Record,
        told: Told,
        worker: Workers,
        now: float,
        name: Naming,
        blame: Blaming,
        hint: tuple[int, int] | None = None,
    ) -> tuple[int, tuple[int, int] | None]:
        """Keep answers, all of them or none; return (how many were new, a question that is open then).

        Where question `hint` is still open it is the one, which saves a search.
        """
        workers = list(worker) if isinstance(worker, list) else [worker] * len(told.value)
        if len(told.value) == 1 and not told.failed[0]:
            kept, left = self._put_one(record.id, told, workers[0], now, hint or (-1, -1))
            if kept:
                return 1, left
        numbers = list(zip(told.batch.tolist(), told.position.tolist(), strict=True))
        which: dict[tuple[int, int], int] = {}
        for k, key in enumerate(numbers):
            first = which.setdefault(key, k)
            if first != k and not _same(told, first, told.value[k], told.failed[k]):
                raise TellError(
                    f"{blame(k)}question {key[0]}.{key[1]} is told {_text(told, first)} and {_text(told, k)}; tell one"
                )

        def keep(connection: Connection) -> int:
            held: dict[tuple[int, int], Held] = {}
            again = [] if record.tolerates_failed else [k for k in which.values() if told.failed[k]]
            stays = {numbers[k] for k in again}
            for batch, positions in _by_batch([key for key in which if key not in stays]):
                held |= self._take(connection, record.id, batch, positions)
            for batch, positions in _by_batch(list(stays)):
                held |= self._fail(connection, record.id, batch, positions)
            for key, question in held.items():
                _check_lease(
                    key, question, workers[which[key]], name, lambda key=key: blame(which[key])
                )
            missing = [k for key, k in which.items() if key not in held]
            repeats = (
                self._explain(connection, record, told, missing, name, blame) if missing else []
            )
            new = [which[key] for key in held if key not in stays]
            self.database.insert(
                connection, answers, _rows(record.id, told, new, workers, now) | {"source": "told"}
            )
            failed = [k for k in again if numbers[k] in held and not held[numbers[k]].failed]
            for ks, reason in ((repeats, "repeat"), (failed, "failed")):
                extra = {"reason": reason, "retired_at": now}
                self.database.insert(
                    connection, retired, _rows(record.id, told, ks, workers, now) | extra
                )
            return len(new) + len(repeats) + len(failed)

        return self.database.write(keep), self.open_question(record.id)

    def _put_one(
        self, study: int, told: Told, worker: str | None, now: float, hint: tuple[int, int]
    ) -> tuple[bool, tuple[int, int] | None]:
        """Keep one answer in as few words as the database allows; False where there is more to say."""
        at = (int(told.batch[0]), int(told.position[0]))
        value = float(told.value[0])
        if not self.database.sqlite:
            taken, left = self.database.in_one_trip(
                Call("tell", _ONE_POSTGRESQL, (study, *at, worker, value, now)),
                Call("left", _LEFT_POSTGRESQL, (study, *hint)),
            )
            return bool(taken), (int(left[0][0] or 0), int(left[0][1] or 0)) if left else None
        values = {
            "study": study, "batch": at[0], "position": at[1], "worker": worker, "value": value, "now": now,
            "hint_batch": hint[0], "hint_position": hint[1],
        }  # fmt: skip

        def keep(connection: Connection) -> tuple[bool, bool]:
            handle: Any = connection.connection.driver_connection
            if not handle.execute(_ONE_SQLITE, values).fetchall():
                return False, False
            handle.execute(_KEEP_SQLITE, values)
            return True, bool(handle.execute(_HINT_SQLITE, values).fetchall())

        kept, still = self.database.write(keep)
        return kept, hint if still else self.open_question(study)

    def _take(
        self, connection: Connection, study: int, batch: int, positions: list[int]
    ) -> dict[tuple[int, int], Held]:
        """Take open questions out of the queue; who takes one is the one who answers it."""
        p = pending.c
        change = (
            sa.delete(pending)
            .where(
                p.study == study,
                p.batch == batch,
                self.database.within(p.position, positions),
                _is_open(study),
            )
            .returning(p.position, p.row, p.col, p.worker, p.leased_until, p.holders, p.failed)
        )
        return {(batch, row[0]): Held(*row[1:]) for row in connection.execute(change)}

    def _fail(
        self, connection: Connection, study: int, batch: int, positions: list[int]
    ) -> dict[tuple[int, int], Held]:
        """Note a failed measurement whose plan cannot do without it: the question stays open, behind the others."""
        p = pending.c
        where = (
            p.study == study,
            p.batch == batch,
            self.database.within(p.position, positions),
            _is_open(study),
        )
        found = connection.execute(
            sa.select(p.position, p.row, p.col, p.worker, p.leased_until, p.holders, p.failed)
            .where(*where)
            .with_for_update()
        ).all()
        connection.execute(
            sa.update(pending).where(*where).values(failed=True, worker=None, leased_until=FAILED)
        )
        return {
            (batch, row[0]): Held(*row[1:-1], bool(row[-1]) and row[3] is None) for row in found
        }

    def _explain(
        self,
        connection: Connection,
        record: Record,
        told: Told,
        missing: list[int],
        name: Naming,
        blame: Blaming,
    ) -> list[int]:
        """Go through answers to questions that are not open: the same again is harmless, the rest has a reason."""
        q, a, b = questions.c, answers.c, batches.c
        repeats = []
        found: dict[tuple[int, int], Any] = {}
        keys = {(int(told.batch[k]), int(told.position[k])) for k in missing}
        for batch, positions in _by_batch(list(keys)):
            asked, said = (self.database.within(c.position, positions) for c in (q, a))
            same = (a.study == q.study) & (a.batch == q.batch) & (a.position == q.position) & said
            query = (
                sa.select(q.position, q.row, q.col, a.value, a.failed, b.dead)
                .select_from(
                    questions.outerjoin(answers, same).join(
                        batches, (b.study == q.study) & (b.number == q.batch)
                    )
                )
                .where(q.study == record.id, q.batch == batch, asked)
            )
            with (
                self.database.large_joins(connection)
                if len(positions) > FEW
                else contextlib.nullcontext()
            ):
                found |= {(batch, row[0]): row for row in connection.execute(query)}
        where = studies.c.id == record.id
        state, current = connection.execute(
            sa.select(studies.c.state, studies.c.current).where(where)
        ).one()
        for k in sorted(missing):
            key = (int(told.batch[k]), int(told.position[k]))
            title = f"{key[0]}.{key[1]}"
            if key not in found:
                raise TellError(
                    f"{blame(k)}study {record.name!r} has no question {title}; was it asked by another?"
                )
            _, row, col, value, failed, dead = found[key]
            entry = f"question {title}, entry {name(row, col)}"
            if value is None and not failed:
                if state != "open":
                    raise TellError(
                        f"{blame(k)}study {record.name!r} is {state}; reopen it to tell {title}"
                    )
                raise TellError(
                    f"{blame(k)}{entry}, was withdrawn by a correction; it takes no answer any more"
                )
            if _same(told, k, np.nan if value is None else value, bool(failed)):
                continue
            if record.fresh and not told.failed[k]:
                if not self._repeated(connection, record.id, key, float(told.value[k])):
                    repeats.append(k)
                continue
            before = "failed" if failed else repr(float(value))
            closed = f", batch {key[0]} is closed" if dead or key[0] != current else ""
            raise TellError(
                f"{blame(k)}{entry}, was already answered ({before}) and is now told {_text(told, k)}{closed}; "
                "an answer stands unless you amend it"
            )
        return repeats

    def _repeated(
        self, connection: Connection, study: int, key: tuple[int, int], value: float
    ) -> bool:
        r = retired.c
        where = (r.study == study, r.batch == key[0], r.position == key[1], r.value == value)
        return connection.execute(sa.select(r.id).where(*where).limit(1)).first() is not None

    def entries_of(
        self, study: int, keys: list[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the entry (row, col) that each question asks for, where there is such a question."""
        q = questions.c

        def look(connection: Connection) -> dict[tuple[int, int], tuple[int, int]]:
            found = {}
            for batch, positions in _by_batch(keys):
                where = (
                    q.study == study,
                    q.batch == batch,
                    self.database.within(q.position, positions),
                )
                for position, i, j in self.database.columns(
                    connection, sa.select(q.position, q.row, q.col).where(*where)
                ):
                    found[batch, position] = (i, j)
            return found

        return self.database.read(look)

    def find(
        self, study: int, rows: list[int], cols: list[int], symmetric: bool
    ) -> list[tuple[list[tuple[int, int]], tuple[int, int] | None]]:
        """Return for each entry (its open questions, its last answered one), as (batch, position)."""
        p, q, a = pending.c, questions.c, answers.c
        said = () if self.database.sqlite else (ENTRY,)

        def search(
            connection: Connection,
        ) -> list[tuple[list[tuple[int, int]], tuple[int, int] | None]]:
            open_at: dict[tuple[int, int], list[tuple[int, int]]] = {}
            many = len(rows) > 200
            if many:
                for i, j, batch, position in self.database.columns(
                    connection, sa.select(p.row, p.col, p.batch, p.position).where(*in_queue(study))
                ):
                    open_at.setdefault((i, j), []).append((batch, position))
            found = []
            for entry in zip(rows, cols, strict=True):
                ways = (entry, entry[::-1]) if symmetric and entry[0] != entry[1] else (entry,)
                match: list[tuple[int, int]] = []
                last: tuple[int, int] | None = None
                for i, j in ways:
                    if not many:
                        here = sa.select(p.batch, p.position).where(
                            p.study == study, p.row == i, p.col == j, *said
                        )
                        open_at[i, j] = self.database.columns(connection, here)
                    match = match or [(int(b), int(k)) for b, k in open_at.get((i, j), [])]
                for i, j in () if match else ways:
                    same = (a.study == q.study) & (a.batch == q.batch) & (a.position == q.position)
                    told = (
                        sa.select(q.batch, q.position)
                        .select_from(questions.join(answers, same))
                        .where(q.study == study, q.row == i, q.col == j, *said, a.source == "told")
                        .order_by(q.batch.desc(), q.position.desc())
                        .limit(1)
                    )
                    row = connection.execute(told).first()
                    last = last or (None if row is None else (int(row[0]), int(row[1])))
                found.append((match, last))
            return found

        return self.database.read(search)


def _is_open(study: int) -> sa.ColumnElement[bool]:
    return sa.exists().where(studies.c.id == study, studies.c.state == "open")


def _by_batch(keys: list[tuple[int, int]]) -> list[tuple[int, list[int]]]:
    grouped: dict[int, list[int]] = {}
    for batch, position in keys:
        grouped.setdefault(batch, []).append(position)
    return [(batch, sorted(grouped[batch])) for batch in sorted(grouped)]


def _rows(
    study: int, told: Told, ks: list[int], workers: list[str | None], now: float
) -> dict[str, Any]:
    failed = told.failed[ks].tolist()
    values = [None if bad else x for x, bad in zip(told.value[ks].tolist(), failed, strict=True)]
    return {
        "study": study,
        "batch": told.batch[ks],
        "position": told.position[ks],
        "value": values,
        "failed": failed,
        "worker": [workers[k] for k in ks],
        "told_at": now,
    }


def _same(told: Told, k: int, value: float, failed: bool) -> bool:
    return bool(told.failed[k]) == bool(failed) and (bool(failed) or told.value[k] == value)


def _text(told: Told, k: int) -> str:
    return "failed" if told.failed[k] else repr(float(told.value[k]))


def _check_lease(
    key: tuple[int, int], held: Held, worker: str | None, name: Naming, blame: Any
) -> None:
    """A named worker answers what it holds or once held: a late answer is welcome, a stranger's is not."""
    if worker is None or worker in (held.holders or "").split("\n"):
        return
    whose = f"{held.worker!r} holds it" if held.worker is not None else "nobody holds it"
    raise TellError(
        f"{blame()}worker {worker!r} has no lease of question {key[0]}.{key[1]}, entry {name(held.row, held.col)}; {whose}: ask first"
    )
