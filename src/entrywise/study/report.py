"""Where a study stands and what happened in it, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.study.entries import Labels
from entrywise.study.schema import answers, batches, pending, questions, retired
from entrywise.study.sql import SQLStore
from entrywise.study.store import Record


def money(store: SQLStore, record: Record, now: float) -> dict[str, Any]:
    """Return what was spent (by the studies it was forked from, too), reserved for open questions, and left."""
    b = batches.c
    total = sa.select(sa.func.coalesce(sa.func.sum(b.cost), 0.0)).where(b.study == record.id)
    bills = float(store.database.read(lambda c: c.execute(total).scalar_one()))
    reserved = store.open_counts(record.id, now)["reserved"]
    budget = record.budget if record.budget is not None else record.params.get("budget")
    spent = record.sunk + bills - reserved
    left = None if budget is None else budget - spent - reserved
    return {"spent": spent, "reserved": reserved, "budget": budget, "left": left}


def status(store: SQLStore, record: Record, labels: Labels, now: float) -> dict[str, Any]:
    """Return where a study stands."""
    b = batches.c
    live = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(b.wanted), 0)).where(
        b.study == record.id
    )
    steps, wanted = store.database.read(lambda c: c.execute(live).one())
    withdrawn = sa.select(sa.func.count()).where(b.study == record.id, b.dead.is_(True))
    counts = store.open_counts(record.id, now)
    failed = [
        f"{batch}.{position} {labels.name(row, col)}"
        for batch, position, row, col in counts["failed"]
    ]
    trouble = record.trouble
    if trouble is None and failed and record.state == "open":
        trouble = f"measurements failed, and {record.plan} cannot do without them: {', '.join(failed)}; measure them again"
    return {
        "name": record.name,
        "plan": record.plan,
        "params": dict(record.params),
        "seed": record.seed,
        "state": record.state,
        "batch": record.current,
        "batches": int(steps),
        "withdrawn": int(store.database.read(lambda c: c.execute(withdrawn).scalar_one())),
        "answered": _answered(store, record, int(wanted), counts["open"]),
        "open": counts["open"],
        "leased": counts["leased"],
        "free": counts["open"] - counts["leased"],
        "workers": [{"worker": w, "holds": n, "until": u} for w, n, u in counts["workers"]],
        "failed": failed,
        **money(store, record, now),
        "trouble": trouble,
        "parent": record.parent,
        "versions": dict(record.versions),
        "created_at": record.created_at,
    }


def _answered(store: SQLStore, record: Record, wanted: int, still: int) -> int:
    """Return how many answers were told, without counting them one by one: withdrawn batches may be incomplete."""
    a, b = answers.c, batches.c
    dead = sa.select(b.number).where(b.study == record.id, b.dead.is_(True))
    asked = sa.select(sa.func.coalesce(sa.func.sum(b.wanted), 0)).where(
        b.study == record.id, b.dead.is_(True)
    )
    told = sa.select(sa.func.count()).where(
        a.study == record.id, a.batch.in_(dead), a.source == "told"
    )
    lost, kept = store.database.read(
        lambda c: (c.execute(asked).scalar_one(), c.execute(told).scalar_one())
    )
    return wanted - still - int(lost) + int(kept)


def _both(
    store: SQLStore, connection: Connection, asked: sa.Select[Any], old: sa.Select[Any]
) -> tuple[Sequence[sa.Row[Any]], Sequence[sa.Row[Any]]]:
    with store.database.large_joins(connection):
        return connection.execute(asked).all(), connection.execute(old).all()


def log(store: SQLStore, record: Record, labels: Labels) -> Iterator[dict[str, Any]]:
    """Go through questions and answers in order, batch by batch, with what no longer stands."""
    q, a, r, p = questions.c, answers.c, retired.c, pending.c
    same = (a.study == q.study) & (a.batch == q.batch) & (a.position == q.position)
    queued = (p.study == q.study) & (p.batch == q.batch) & (p.position == q.position)
    for batch in store.batches(record.id):
        asked = (
            sa.select(
                q.position, q.row, q.col, q.mode, q.price, q.arm, q.probability, a.value, a.failed, a.worker, a.told_at,
                a.source, p.worker.label("holder"),
            )
            .select_from(questions.outerjoin(answers, same).outerjoin(pending, queued))
            .where(q.study == record.id, q.batch == batch.number)
            .order_by(q.position)
        )  # fmt: skip
        old = (
            sa.select(r.position, r.value, r.failed, r.worker, r.told_at, r.reason)
            .where(r.study == record.id, r.batch == batch.number)
            .order_by(r.id)
        )
        rows, gone = store.database.read(lambda c, x=asked, y=old: _both(store, c, x, y))  # type: ignore[misc]
        before: dict[int, list[Any]] = {}
        for line in gone:
            before.setdefault(line.position, []).append(line)
        for line in rows:
            entry = {
                "id": f"{batch.number}.{line.position}", "row": labels.row(line.row), "col": labels.col(line.col),
                "mode": line.mode, "price": line.price, "arm": line.arm, "probability": line.probability,
            }  # fmt: skip
            for past in before.get(line.position, []):
                yield entry | _answer(past, past.reason)
            stands = (
                "withdrawn" if batch.dead else line.source or ("leased" if line.holder else "open")
            )
            if line.source is None:
                yield entry | {
                    "value": None,
                    "failed": False,
                    "worker": line.holder,
                    "told_at": None,
                    "what": stands,
                }
            else:
                yield entry | _answer(line, stands)


def _answer(line: Any, what: str) -> dict[str, Any]:
    return {
        "value": line.value, "failed": bool(line.failed), "worker": line.worker, "told_at": line.told_at, "what": what,
    }  # fmt: skip
