"""Whether a study is in order: the database, the ledger against the log, the plan against its steps."""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import StoreError
from entrywise.study import tallies
from entrywise.study.records import IMPLAUSIBLE, Record
from entrywise.study.schema import ANSWERED, facts, pending, questions
from entrywise.study.steps import Refused, Steps
from entrywise.study.store import Store
from entrywise.study.tells import CORRECTIONS

_study: sa.BindParameter[int] = sa.bindparam("study")
_CHARGED = sa.select(facts.c.charged).where(facts.c.study == _study, facts.c.charged != 0)
_WAITING = sa.select(pending.c.price, pending.c.leased_until).where(pending.c.study == _study)
_COUNT = sa.select(sa.func.count()).where(questions.c.study == _study)
_ASKED, _GIVEN = _COUNT.where(questions.c.batch >= 0), _COUNT.where(questions.c.batch < 0)
_NAME = (facts.c.batch, facts.c.position, facts.c.turn)
_MARKED = sa.select(*_NAME).where(facts.c.study == _study, facts.c.implausible.is_(True))
_slack = IMPLAUSIBLE * questions.c.deviation
_plausible = facts.c.value.between(questions.c.expected - _slack, questions.c.expected + _slack)
_FAR = (  # the answers that lie far from what was expected, looked for one by one
    sa.select(*_NAME)
    .select_from(ANSWERED)
    .where(questions.c.study == _study, facts.c.kind.in_(("answer", "amend")), ~_plausible)
)
_CORRECTED = (
    sa.select(facts.c.batch, facts.c.position, sa.func.max(facts.c.turn))
    .where(facts.c.study == _study, facts.c.kind.in_(CORRECTIONS))
    .group_by(facts.c.batch, facts.c.position)
)


def check(store: Store, record: Record, steps: Steps) -> dict[str, Any]:
    """Return what was found to be in order; raise where something is not."""
    found: dict[str, Any] = {"database": _integrity(store)}
    found |= ledger(store, record)
    try:
        found["steps"] = steps.verify(record)
    except Refused as refused:
        raise StoreError(f"step {refused.step} of {record.name!r}: {refused}") from refused.error
    return found


def _integrity(store: Store) -> str:
    """Ask SQLite whether its file is sound; a server looks after its own."""
    if not store.database.sqlite:
        return "a server's"
    words = store.database.read(
        lambda c: c.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    )
    if words != ["ok"]:
        raise StoreError(
            f"{store.database.title} is damaged: {words[0]}; go back to a backup, or export what can be read"
        )
    return "sound"


def ledger(store: Store, record: Record) -> dict[str, Any]:
    """Hold the counters of the study against its questions and facts."""
    study = {"study": record.id}

    def count(connection: Connection) -> dict[str, Any]:
        return {
            "record": store.look_up(connection, record.name) or record,
            "tally": tallies.read(connection, record.id),
            "charged": list(connection.execute(_CHARGED, study).scalars()),
            "waiting": list(connection.execute(_WAITING, study).all()),
            "asked": int(connection.execute(_ASKED, study).scalar_one()),
            "given": int(connection.execute(_GIVEN, study).scalar_one()),
            "marks": _wrong_marks(store, connection, study) if record.streaming else set(),
        }

    found = store.database.read_whole(count)
    record, tally, waiting = found["record"], found["tally"], found["waiting"]
    spent = math.fsum(found["charged"])
    prices = [price for price, until in waiting if until >= 0]
    held = math.fsum(prices)
    for what, says, is_ in (
        ("money", record.committed, spent + held),
        ("questions", record.asked, found["asked"]),
        ("known entries", record.given, found["given"]),
        ("withdrawn questions", record.withdrawn, len(waiting) - len(prices)),
        ("open questions", tally.open, len(prices)),
        ("money held for open questions", tally.held, held),
    ):
        if not math.isclose(says, is_, rel_tol=1e-9, abs_tol=1e-9) and not (
            what == "money" and record.parent is not None and says > is_
        ):
            mend = "count them anew with `study renew`" if "open" in what else "go back to a backup"
            raise StoreError(
                f"study {record.name!r} counts {says:g} {what}, its log {is_:g}; {mend}"
            )
    if found["marks"]:
        batch, position, _ = min(found["marks"])
        raise StoreError(
            f"the answer to question {batch}.{position} of {record.name!r} is marked as implausible, or not, "
            "against what was expected of it; go back to a backup"
        )
    if record.total is not None and spent + held > record.total * (1 + 1e-9):
        raise StoreError(
            f"study {record.name!r} spent or holds {spent + held:g} of {record.total:g}"
        )
    return {
        "spent": spent,
        "held": held,
        "questions": found["asked"],
        "answers": found["asked"] - len(waiting),
        "open": len(prices),
    }


def _wrong_marks(store: Store, connection: Connection, study: dict[str, int]) -> set[Any]:
    """Return the answers that are marked as implausible and should not be, or the other way round."""
    turns = {(b, k): turn for b, k, turn in connection.execute(_CORRECTED, study)}
    with store.database.large_joins(connection):
        far = connection.execute(_FAR, study).all()
    standing = {row for row in far if row[2] >= turns.get((row[0], row[1]), -1)}
    return standing ^ set(connection.execute(_MARKED, study).all())
