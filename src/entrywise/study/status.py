"""Where a study stands and what happened in it, for people. Reading it runs no plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise import fragments
from entrywise.results.kept_features import in_words
from entrywise.study import tallies
from entrywise.study.entries import Labels, title
from entrywise.study.leases import WITHDRAWN
from entrywise.study.plans import FEATURES
from entrywise.study.records import Record
from entrywise.study.schema import (
    GIVEN,
    OUT,
    epochs,
    facts,
    pending,
    questions,
    steps,
    wants,
)
from entrywise.study.store import Store

T = TypeVar("T")
_SHOWN = 20  # at most so many entries are named
_CHUNK = 10_000  # questions of the log that are read at a time
# The few rows that a status names, each kind with an index of its own. SQLite does not know how small these are, and
# would look at all of a study instead unless it is told.
_FEW_QUERIES = {
    # measurements that failed, of plans that cannot do without them
    "failed": """
        SELECT batch, position, "row", col FROM pending {pending_failed}
        WHERE study = :study AND leased_until >= 0 AND failed ORDER BY batch, position LIMIT :shown""",
    # answers that lie far from what the plan expected when it asked: they count, and are worth a look
    "implausible": """
        SELECT q.batch, q.position, q."row", q.col, far.value, q.expected, q.deviation
        FROM (
            SELECT batch, position, value FROM facts {facts_implausible}
            WHERE study = :study AND implausible ORDER BY batch, position LIMIT :shown
        ) AS far
        JOIN questions AS q ON q.study = :study AND q.batch = far.batch AND q.position = far.position
        ORDER BY q.batch, q.position""",
    # what the plan said of its last steps
    "reports": """
        SELECT asked_at, report FROM steps {steps_report}
        WHERE study = :study AND report IS NOT NULL ORDER BY step DESC LIMIT :shown""",
}
_FEW = {
    (what, sqlite): sa.text(re.sub(r"{(\w+)}", r"INDEXED BY \1" if sqlite else "", query))
    for what, query in _FEW_QUERIES.items()
    for sqlite in (True, False)
}


class Standing(NamedTuple):
    """Where a study stood at one moment: its row, its open questions, and who holds some of them."""

    record: Record
    open: int
    held: float  # the money of all that is open
    leased: int
    out: float  # the money of what is leased
    workers: list[dict[str, Any]]


def standing(store: Store, name: str) -> Standing:
    """Return where a study stands; what it takes grows with the questions that are out, not with those that are open."""
    return _at_one_moment(store, name, partial(_standing_of, store))


def _at_one_moment(store: Store, name: str, read: Callable[[Connection, Record], T]) -> T:
    """Return what is read of a study and its row by one consistent transaction; refuse a study that is not there."""

    def look(connection: Connection) -> T | None:
        record = store.look_up(connection, name)
        return None if record is None else read(connection, record)

    while (found := store.database.read_whole(look)) is None:
        store.record(name)  # refuses it, unless it was made just now
    return found


def _standing_of(store: Store, connection: Connection, record: Record) -> Standing:
    p = pending.c
    out = (
        sa.select(
            p.worker,
            sa.func.count(),
            sa.func.sum(p.price),
            sa.func.min(p.leased_at),
            sa.func.max(p.leased_until),
        )
        .where(p.study == record.id, OUT, p.leased_until > store.database.now(connection))
        .group_by(p.worker)
        .order_by(p.worker)
    )
    rows = connection.execute(out).all()
    workers = [
        {"worker": worker, "holds": int(n), "since": since, "until": float(until)}
        for worker, n, _, since, until in rows
    ]
    tally = tallies.read(connection, record.id)
    return Standing(
        record,
        tally.open,
        tally.held,
        leased=sum(line["holds"] for line in workers),
        out=float(sum(row[2] for row in rows)),
        workers=workers,
    )


def money(record: Record, held: float) -> dict[str, Any]:
    """Return what was spent, is held for open questions, and is left."""
    return {
        "spent": record.committed - held,
        "held": held,
        "budget": record.budget,
        "left": record.left,
        "currency": record.currency,
    }


class Seen(NamedTuple):
    """All that a status says, as it was at one moment."""

    now: Standing
    failed: list[Any]  # batch, position, row, col
    implausible: list[Any]  # the same, value, expected, deviation
    reports: list[tuple[float, dict[str, Any]]]


def look(store: Store, name: str) -> Seen:
    """Read where a study stands, all of it at one moment."""

    def read(connection: Connection, record: Record) -> Seen:
        here = {"study": record.id, "shown": _SHOWN}

        def few(what: str) -> list[Any]:
            return list(connection.execute(_FEW[what, store.database.sqlite], here))

        now = _standing_of(store, connection, record)
        odd = few("implausible") if record.streaming else []
        return Seen(now, few("failed"), odd, _reports(few("reports")))

    return _at_one_moment(store, name, read)


def status(found: Seen, labels: Labels) -> dict[str, Any]:
    """Return where a study stands."""
    now, record = found.now, found.now.record
    failed = [
        f"{title((batch, position))} {labels.name(row, col)}"
        for batch, position, row, col in found.failed
    ]
    trouble = record.trouble
    if trouble is None and failed and record.state == "open":
        trouble = (
            f"measurements failed, and {record.plan} cannot do without them: "
            f"{', '.join(failed)}; measure them again"
        )
    about = {
        "name": record.name,
        "plan": record.plan,
        "params": {k: _brief(k, v) for k, v in record.params.items()},
        "seed": record.seed,
        "state": record.state,
        "reason": record.reason,
        "epoch": record.epoch,
        "batch": max(record.next_step - 1 - (record.state in ("finished", "exhausted")), 0),
        "batches": record.next_step - (record.state in ("finished", "exhausted")),
        "answered": record.asked - record.withdrawn - now.open,
        "known": record.given,
        "withdrawn": record.withdrawn,
        "open": now.open,
        "leased": now.leased,
        "free": now.open - now.leased,
        "workers": now.workers,
        "failed": failed,
        "implausible": [_odd(line, labels) for line in found.implausible],
        **money(record, now.held),
        "out": now.out,
        **_errors(found.reports),
        "trouble": trouble,
        "parent": record.parent,
        "versions": dict(record.versions),
        "created_at": record.created_at,
    }
    return about | {"sentence": sentence(about)}


def _brief(name: str, value: Any) -> Any:
    """Return a parameter as it is shown: features of lines in words."""
    if name in FEATURES and value is not None:
        return in_words(value)
    return value


def _reports(rows: list[Any]) -> list[tuple[float, dict[str, Any]]]:
    """Return what the plan said of its last steps: (time, report), the oldest first."""
    return [(at, json.loads(report)) for at, report in reversed(rows)]


def _errors(reports: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Return the error that the plan expects now, and where it comes from."""
    found = [r["expected_error"] for _, r in reports if r.get("expected_error") is not None]
    if not found:
        return {"expected_error": None, "error_before": None}
    return {"expected_error": found[-1], "error_before": found[0] if len(found) > 1 else None}


def sentence(now: dict[str, Any]) -> str:
    """Return where a study stands in one sentence."""
    unit = fragments.unit_of(now["currency"])
    words = f"{now['name']} is {now['state']}: {now['answered']} answered"
    if now["budget"]:
        share = 100.0 * now["spent"] / now["budget"]
        words += f", {now['spent']:,.6g} of {now['budget']:,.6g}{unit} spent ({share:.0f} %)"
    else:
        words += f", {now['spent']:,.6g}{unit} spent"
    if now["open"]:
        words += f", {out(now)}, {now['free']} free to ask"
    if now["expected_error"] is not None:
        words += f"; expected error {now['expected_error']:.3g}"
        if now["error_before"]:
            change = 100.0 * (now["expected_error"] / now["error_before"] - 1.0)
            words += f" ({change:+.0f} % over the last steps)"
    if now["reason"]:
        words += f"; it ended because {now['reason']}"
    return words


def card(now: dict[str, Any]) -> str:
    """Return where a study stands as a piece of HTML."""
    wanted = ("state", "plan", "answered", "open", "leased", "spent", "budget", "expected_error")
    facts = {name.replace("_", " "): now[name] for name in (*wanted, "trouble") if now[name]}
    return fragments.card(now["name"], facts, fragments.paragraph(now["sentence"]))


def out(now: dict[str, Any]) -> str:
    """Return how many questions are out, and with whom."""
    return f"{now['leased']} out with {people(now['workers'])}" if now["leased"] else "none out"


def people(workers: list[dict[str, Any]]) -> str:
    """Return who holds questions, in words."""
    names = [str(w["worker"] or "somebody") for w in workers]
    if len(names) > 3:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return ", ".join(names) or "nobody"


def _odd(line: Any, labels: Labels) -> dict[str, Any]:
    batch, position, row, col, value, expected, deviation = line
    return {
        "id": title((batch, position)),
        "row": labels.row(row),
        "col": labels.col(col),
        "value": value,
        "expected": expected,
        "deviation": deviation,
    }


def epoch_lines(store: Store, record: Record) -> list[dict[str, Any]]:
    """Return the epochs of a study: what began each, when, with how much money."""
    e = epochs.c
    query = sa.select(e.epoch, e.first_step, e.change, e.total, e.left, e.made_at)
    query = query.where(e.study == record.id).order_by(e.epoch)
    return [row._asdict() for row in store.database.read(lambda c: c.execute(query).all())]


_WHAT = {"answer": "told", "known": "known", "void": "voided", "withdrawn": "withdrawn"}


def log(store: Store, record: Record, labels: Labels) -> Iterator[dict[str, Any]]:
    """Go through questions and facts in order, step by step, with what no longer stands."""
    yield from _lines(store, record, labels, GIVEN, GIVEN)
    t = steps.c
    query = sa.select(t.step, t.size).where(t.study == record.id).order_by(t.step)
    first, size = 0, 0
    for number, count in store.database.read(lambda c: store.database.columns(c, query)):
        size += count
        if size >= _CHUNK:
            yield from _lines(store, record, labels, first, number)
            first, size = number + 1, 0
    yield from _lines(store, record, labels, first, record.next_step)


def _lines(
    store: Store, record: Record, labels: Labels, first: int, last: int
) -> Iterator[dict[str, Any]]:
    """Go through the questions of the steps from `first` to `last`."""
    q, f, p, w = questions.c, facts.c, pending.c, wants.c
    said = (f.study == record.id) & (f.batch == q.batch) & (f.position == q.position)
    queued = (p.study == record.id) & (p.batch == q.batch) & (p.position == q.position)
    asked = (
        sa.select(
            q.batch, q.position, q.row, q.col, q.mode, q.price, q.arm, q.probability, f.turn, f.kind,
            f.value, f.failed, f.worker, f.told_at, f.charged, f.reason, p.worker.label("holder"), p.leased_until,
            p.price.label("quote"),
        )
        .select_from(questions.outerjoin(facts, said).outerjoin(pending, queued))
        .where(q.study == record.id, q.batch >= first, q.batch <= last)
        .order_by(q.batch, q.position, f.turn)
    )  # fmt: skip
    columns = (w.step.label("batch"), w.position, w.row, w.col, w.value, w.arm, w.probability)
    again = sa.select(*columns).where(
        w.study == record.id, w.step >= first, w.step <= last, w.given.is_(True)
    )

    def look(connection: Connection) -> tuple[Any, Any]:
        with store.database.large_joins(connection):
            return connection.execute(asked).all(), connection.execute(again).all()

    rows, memory = store.database.read(look)
    groups: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        groups.setdefault((row.batch, row.position), []).append(row)
    found = [
        (key, line)
        for key, group in groups.items()
        for line in _question_lines(labels, key[0], group)
    ]
    for row in memory:
        entry = _entry(labels, row.batch, row, "entry", 0.0)
        answer = {"value": row.value, "failed": row.value is None, "worker": None}
        answer |= {"told_at": None, "what": "memory", "reason": None}
        found.append(((row.batch, row.position), entry | answer))
    for _, line in sorted(found, key=lambda each: each[0]):
        yield line


def _entry(labels: Labels, number: int, row: Any, mode: str, price: float) -> dict[str, Any]:
    return {
        "id": title((number, row.position)),
        "row": labels.row(row.row),
        "col": labels.col(row.col),
        "mode": mode,
        "price": price,
        "arm": row.arm,
        "probability": row.probability,
    }


def _question_lines(labels: Labels, number: int, lines: list[Any]) -> list[dict[str, Any]]:
    """Return what was said of a question, the standing answer last; or where it waits."""
    first = lines[0]
    said = [line for line in lines if line.kind is not None]
    standing = _standing(said)
    paid = sum(line.charged for line in said)
    found = []
    for line in said:
        if line.kind == "withdrawn" and not _is_withdrawn(line, said, standing):
            continue
        price = paid if line is standing else 0.0
        entry = _entry(labels, number, first, first.mode, price)
        answer = {"value": line.value, "failed": bool(line.failed), "worker": line.worker}
        what = _what(line, standing, number)
        when = {"told_at": line.told_at, "what": what, "reason": line.reason}
        found.append(entry | answer | when)
    is_out = first.leased_until is not None and first.leased_until >= 0
    if standing is None and is_out:
        entry = _entry(labels, number, first, first.mode, first.quote)
        what = "leased" if first.holder else "open"
        answer = {"value": None, "failed": False, "worker": first.holder}
        found.append(entry | answer | {"told_at": None, "what": what, "reason": None})
    return sorted(found, key=lambda line: line["what"] in ("told", "known"))


_ANSWERS = ("answer", "known", "amend")


def _standing(said: list[Any]) -> Any:
    """Return the fact that holds now: the last answer that was not voided; None when there is none."""
    standing = None
    for line in said:
        if line.kind in _ANSWERS:
            standing = line
        elif line.kind == "void":
            standing = None
    return standing


def _is_withdrawn(line: Any, said: list[Any], standing: Any) -> bool:
    """Tell whether a question is withdrawn now, not only was once."""
    return standing is None and line is said[-1] and line.leased_until == WITHDRAWN


def _what(line: Any, standing: Any, number: int) -> str:
    """Return one word for a fact."""
    if line.kind not in _ANSWERS:
        return str(_WHAT.get(line.kind, line.kind))
    if line is not standing:
        return "amended"
    was_known = line.kind == "known" or (line.kind == "amend" and number == GIVEN)
    return "known" if was_known else "told"


def last_answers(store: Store, record: Record, labels: Labels) -> str:
    """Return the last answers told, and how to correct one of them, as the end of a sentence."""
    q, f = questions.c, facts.c
    same = (q.study == record.id) & (q.batch == f.batch) & (q.position == f.position)
    query = (
        sa.select(f.batch, f.position, q.row, q.col, f.value)
        .select_from(facts.join(questions, same))
        .where(f.study == record.id, f.seen.is_(None), f.value.is_not(None))
        .order_by(sa.func.abs(f.value).desc())
        .limit(3)
    )
    rows = store.database.read(lambda c: c.execute(query).all())
    if not rows:
        return ""
    named = [f"{title((b, k))} {labels.name(i, j)} = {x:g}" for b, k, i, j, x in rows]
    return (
        f"; the largest of the last answers are {', '.join(named)}: "
        f"correct one with study amend DATABASE {record.name} {title((rows[0][0], rows[0][1]))} VALUE"
    )
