"""Correcting an answer, or forgetting it: a new fact, and an epoch that knows it."""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import StoreError, TellError
from entrywise.queries import Prices
from entrywise.study import plans
from entrywise.study.changes.epoch import Change, Said, begin_epoch, same
from entrywise.study.entries import Labels, failed_because, parse_id, title
from entrywise.study.records import Key, Record, number_or_none
from entrywise.study.schema import ANSWERED, OUT, about, facts, pending, questions
from entrywise.study.store import Store


def amend(
    store: Store,
    name: str,
    labels: Labels,
    answer: Any,
    value: Any,
    worker: str | None,
    reason: str | None = None,
) -> None:
    """Correct an answer: a new fact, and an epoch that knows it; the log keeps both, and why."""
    new, why = labels.number(value), _words(reason) or failed_because(value)

    def edit(record: Record) -> Change:
        _refuse_closed(record, "amend")
        if math.isnan(new) and not record.tolerates_failed:
            raise TellError(f"{record.plan} cannot do without an answer; amend it to a number")
        key = which_answer(store, record, labels, answer)
        _refuse_unanswered(store, record, key, "amend")
        said = Said(
            key,
            "amend",
            value=number_or_none(new),
            failed=math.isnan(new),
            worker=worker,
            reason=why,
        )
        return same(record, "amend", said=[said])

    begin_epoch(store, name, edit)


def void(
    store: Store,
    name: str,
    labels: Labels,
    answer: Any,
    worker: str | None,
    reason: str | None = None,
) -> None:
    """Forget an answer, so that it is asked again; the log keeps it, and why."""
    why = _words(reason)

    def edit(record: Record) -> Change:
        _refuse_closed(record, "void an answer")
        key = which_answer(store, record, labels, answer)
        _refuse_unanswered(store, record, key, "void")
        i, j, mode = _entry(store, record, key)
        quotes = plans.prices_of(record) or Prices()
        price = float(quotes.of(mode, [i], [j])[0]) if mode in quotes.modes else 0.0
        said = Said(key, "void", worker=worker, price=price, reason=why)
        return same(record, "void", said=[said])

    begin_epoch(store, name, edit)


def out_with(store: Store, record: Record) -> int:
    """Return how many questions people hold."""
    p = pending.c

    def count(connection: Connection) -> int:
        now = store.database.now(connection)
        query = sa.select(sa.func.count()).where(p.study == record.id, OUT, p.leased_until > now)
        return int(connection.execute(query).scalar_one())

    return store.database.read(count)


def _words(reason: str | None) -> str | None:
    """Return a reason without spaces around it; None where nothing is said."""
    return (reason or "").strip() or None


def _refuse_closed(record: Record, what: str) -> None:
    if record.state == "closed":
        raise StoreError(f"study {record.name!r} is closed; reopen it to {what}")


def _entry(store: Store, record: Record, key: Key) -> tuple[int, int, str]:
    q = questions.c
    query = sa.select(q.row, q.col, q.mode).where(*about(questions, record.id, key))
    row = store.database.read(lambda c: c.execute(query).one())
    return int(row[0]), int(row[1]), str(row[2])


def _refuse_unanswered(store: Store, record: Record, key: Key, what: str) -> None:
    f = facts.c
    kinds = sa.select(f.kind).where(*about(facts, record.id, key)).order_by(f.turn)
    answered = False
    for kind in store.database.read(lambda c: c.execute(kinds).scalars().all()):
        if kind in ("answer", "known", "amend", "void"):
            answered = kind != "void"
    if not answered:
        raise TellError(f"question {title(key)} has no answer to {what}; tell one")


def which_answer(store: Store, record: Record, labels: Labels, answer: Any) -> Key:
    """Return the question that an id or an entry means."""
    answer = getattr(answer, "id", answer)
    if isinstance(answer, str):
        at = parse_id(answer)
        found = store.tells.resolve(record.id, at)
        if found is not None:
            return found
        entry = store.tells.entries_of(record.id, [at]).get(at)  # memory answered it
        if entry is None:
            raise TellError(
                f"study {record.name!r} has no question {answer}; study log shows those it has"
            )
    else:
        try:
            row, col = answer
        except (TypeError, ValueError):
            words = " ".join(map(str, answer)) if isinstance(answer, tuple) else answer
            raise TellError(
                f"an answer is named by its id such as '3.10', or by its row and column, got {words!r}"
            ) from None
        entry = labels.index(row, col)
    return _only(store, record, labels, entry)


def _only(store: Store, record: Record, labels: Labels, entry: Key) -> Key:
    """Return the one answered question of an entry; refuse where there are several."""
    q, f = questions.c, facts.c
    ways = {entry, entry[::-1]} if record.symmetric else {entry}
    here = sa.or_(*((q.row == i) & (q.col == j) for i, j in ways))
    query = (
        sa.select(q.batch, q.position)
        .select_from(ANSWERED)
        .where(q.study == record.id, here, f.kind.in_(("answer", "known")))
    )
    rows = store.database.read(lambda c: c.execute(query).all())
    found = {(int(b), int(k)) for b, k in rows}
    if not found:
        raise TellError(f"entry {labels.name(*entry)} was not answered; there is nothing to amend")
    if len(found) > 1:
        several = ", ".join(title(key) for key in sorted(found)[:5])
        raise TellError(
            f"entry {labels.name(*entry)} was measured repeatedly ({several}); name the answer by its id"
        )
    return found.pop()
