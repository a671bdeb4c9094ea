"""Beginning an epoch: the plan starts anew with everything told so far as history.

The transaction that begins one withdraws what is queued, keeps what is out, and runs no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import ParameterError
from entrywise.queries import History
from entrywise.study import past, plans, tallies
from entrywise.study.leases import WITHDRAWN, withdraw
from entrywise.study.plans import Maker
from entrywise.study.records import Epoch, Key, Record
from entrywise.study.schema import FREE, about, facts, pending, questions, studies
from entrywise.study.store import Store
from entrywise.study.tells import CORRECTIONS, is_far


@dataclass(frozen=True)
class Said:
    """A fact that a change adds about a question that is there."""

    key: Key
    kind: str
    value: float | None = None
    failed: bool = False
    noise: float | None = None
    worker: str | None = None
    price: float = 0.0  # at which a voided question is asked again
    reason: str | None = None


@dataclass(frozen=True)
class Change:
    """What is otherwise in the next epoch."""

    epoch: Epoch
    n_rows: int | None
    n_cols: int | None
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known: History = field(default_factory=History.empty)
    said: Sequence[Said] = ()
    flags: Mapping[str, Any] = field(default_factory=dict)


def begin_epoch(store: Store, name: str, edit: Callable[[Record], Change]) -> Record:
    """Change a study, if it still stands where it was looked at; look again otherwise."""
    while True:
        record = store.record(name)
        change = edit(record)
        if store.database.write(lambda c: _write(store, c, record, change)):  # noqa: B023
            return record


def same(record: Record, change: str, **other: Any) -> Change:
    """Return an epoch like the present one, but for what is given."""
    epoch = Epoch(
        params=other.pop("params", record.params),
        prices=other.pop("prices", record.prices),
        total=other.pop("total", record.total),
        change=change,
        dropped=other.pop("dropped", record.dropped),
    )
    shape = {"n_rows": record.n_rows, "n_cols": record.n_cols}
    return Change(epoch, **(shape | other))


def tried(record: Record, change: Change, maker: Maker) -> Change:
    """Make the plan of the next epoch, so that what it refuses is refused before anything is written."""
    epoch = change.epoch
    next_ = replace(record, params=epoch.params, prices=epoch.prices, total=epoch.total)
    plan = plans.make(next_, maker)
    shape = plan.shape or (None, None)
    return replace(change, n_rows=shape[0], n_cols=shape[1], flags=flags_of(plan))


def flags_of(plan: Any) -> dict[str, Any]:
    """Return what kind of plan it is, as a study keeps it."""
    names = ("symmetric", "fresh", "tolerates_failed", "history", "streaming")
    return {name: bool(getattr(plan, name)) for name in names}


def _write(store: Store, connection: Connection, record: Record, change: Change) -> bool:
    """Withdraw what is queued and begin the epoch; what is out stays out."""
    s, p = studies.c, pending.c
    if not store.swap(connection, record, {"cursor": record.cursor + 1}):
        return False
    now = store.database.now(connection)
    queued = (p.study == record.id, FREE, p.leased_until <= now)
    withdraw(connection, store.database, record.id, now, *queued)
    if change.epoch.change == "renew":
        tallies.mend(connection, record.id)
    query = sa.select(s.committed, s.withdrawn, s.cursor).where(s.id == record.id)
    committed, withdrawn, cursor = connection.execute(query).one()
    total = change.epoch.total
    if total is not None and record.total != total and total < committed * (1 - 1e-12):
        raise ParameterError(
            f"{committed:g} is spent or held for open questions; the budget must be at least that, got {total:g}"
        )
    moved = {
        **change.flags,
        "epoch": record.epoch + 1,
        "first_step": record.next_step,
        "total": total,
        "n_rows": change.n_rows,
        "n_cols": change.n_cols,
        "given": record.given + len(change.known),
    }
    begun = replace(record, **moved, committed=committed, versions=plans.versions())
    begun = replace(begun, current=0 if begun.streaming else begun.next_step)
    store.add_epoch(connection, record.id, begun, change.epoch)
    old = {"row": record.n_rows or 0, "col": record.n_cols or 0}
    store.add_labels(connection, record.id, change.labels, old)
    _add_known(store, connection, begun, change.known)
    lost = _add_said(connection, begun, change.said, now)
    moved |= {
        "cursor": cursor + 1,
        "current": begun.current,
        "withdrawn": withdrawn + lost,
        "state": "open",
        "reason": None,
        "trouble": None,
        "stepper": None,
        "stepper_until": 0.0,
    }
    connection.execute(sa.update(studies).where(s.id == record.id).values(**moved))
    return True


def _add_known(store: Store, connection: Connection, begun: Record, known: History) -> None:
    if not len(known):
        return
    table = past.given(known)
    moved = replace(table, position=table.position + begun.given - len(known))
    store.add_past(connection, begun.id, begun, moved)


def _add_said(connection: Connection, begun: Record, said: Sequence[Said], now: float) -> int:
    """Add facts about questions that are there; return how many questions lost their answer."""
    lost = 0
    for fact in said:
        turn = _add_fact(connection, begun, fact, now)
        moved = sa.update(pending).where(*about(pending, begun.id, fact.key)).values(turn=turn + 1)
        there = connection.execute(moved).rowcount
        if fact.kind == "void" and not there:
            _wait_again(connection, begun, fact, turn + 1)
            lost += 1
    return lost


def _add_fact(connection: Connection, begun: Record, fact: Said, now: float) -> int:
    """Add a fact after all that was said of its question; return its turn."""
    query = sa.select(sa.func.max(facts.c.turn)).where(*about(facts, begun.id, fact.key))
    last = connection.execute(query).scalar()
    turn = 0 if last is None else last + 1
    row = {
        "study": begun.id,
        "batch": fact.key[0],
        "position": fact.key[1],
        "turn": turn,
        "kind": fact.kind,
        "value": fact.value,
        "failed": fact.failed,
        "noise": fact.noise,
        "worker": fact.worker,
        "told_at": now,
        "charged": 0.0,
        "epoch": begun.epoch,
        "seen": begun.next_step,
        "reason": fact.reason,
        "implausible": _is_far(connection, begun, fact),
    }
    if fact.kind in CORRECTIONS:  # whatever was odd about the answer before
        here = about(facts, begun.id, fact.key)
        unmark = sa.update(facts).where(*here, facts.c.implausible.is_(True))
        connection.execute(unmark.values(implausible=None))
    connection.execute(sa.insert(facts).values(**row))
    return turn


def _is_far(connection: Connection, begun: Record, fact: Said) -> bool | None:
    """Tell whether a correction lies far from what was expected of its question."""
    if not begun.streaming or fact.kind != "amend" or fact.value is None:
        return None
    q = questions.c
    query = sa.select(q.expected, q.deviation).where(*about(questions, begun.id, fact.key))
    return is_far(fact.value, *connection.execute(query).one())


def _wait_again(connection: Connection, begun: Record, fact: Said, turn: int) -> None:
    """Put a question that lost its answer back among those that wait, withdrawn until the plan wants it."""
    q = questions.c
    columns = (q.batch, q.position, q.row, q.col, q.mode, q.unit, q.plate)
    query = sa.select(*columns).where(*about(questions, begun.id, fact.key))
    entry = connection.execute(query).one()._asdict()
    lease: dict[str, Any] = {"step": -1, "leased_until": WITHDRAWN, "failed": False, "turn": turn}
    lease |= {"study": begun.id, "price": fact.price}
    lease |= {"holders": _holders(connection, about(facts, begun.id, fact.key))}
    connection.execute(sa.insert(pending).values(**entry, **lease))


def _holders(connection: Connection, here: tuple[Any, ...]) -> str | None:
    """Return everyone who ever held a question that was answered, a line each."""
    f = facts.c
    found: list[str] = []
    for worker, holders in connection.execute(sa.select(f.worker, f.holders).where(*here)):
        found += [worker] if worker is not None else []
        found += [] if holders is None else holders.split("\n")
    return "\n".join(dict.fromkeys(found)) or None
