"""The next step of a study, worked out outside of any transaction from what the log says.

A batch plan is a generator: it is replayed in bulk, compared with the log step by step, and kept alive for the next
one. A streaming plan is a function: its step is made from what the study knows, and nothing is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise import __version__
from entrywise.exceptions import EntrywiseError, ReplayDiverged, StoreError
from entrywise.queries import REPEATS, Batch, History, Plan, Prices, Situation
from entrywise.results import Result
from entrywise.run import Memory, Run, Stock, diverged, fill_memory, new_questions
from entrywise.study import past
from entrywise.study.live import Live, Purse, StepAnswers
from entrywise.study.matching import Cell, cell_of, matched, questions_of, repeats
from entrywise.study.plans import Maker, make, prices_of
from entrywise.study.records import (
    ANY,
    Advance,
    Filter,
    Key,
    Record,
    Step,
    StepRow,
    Want,
    digest,
    number_or_none,
)
from entrywise.study.schema import GIVEN, facts, pending, questions, wants
from entrywise.study.store import Store
from entrywise.types import Indices


class Refused(Exception):
    """A plan that does not take what the log says of a step."""

    def __init__(self, step: int, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.step, self.error = step, error


class Steps:
    """Works out the steps of one study; keeps its plan alive between them."""

    def __init__(self, store: Store | Any, maker: Maker) -> None:
        self.store, self.maker = store, maker
        self.live: Live | None = None
        self._vain: set[Any] = set()  # (filter, state) of steps that had nothing to ask

    def plan(self, record: Record) -> Plan:
        """Return the plan of the study's epoch; it must be about as many lines as the study has."""
        plan = make(record, self.maker)
        there = (record.n_rows, record.n_cols)
        sizes = zip(plan.shape or there, there, strict=True)
        if any(None not in pair and pair[0] != pair[1] for pair in sizes):
            raise StoreError(
                f"the plan of study {record.name!r} is about {plan.shape} rows and columns, the study about "
                f"{there}; restore a backup, or import it from a whole export"
            )
        return plan

    def next(
        self, record: Record, wanted: Filter = ANY, limit: int | None = None
    ) -> Advance | None:
        """Return what the plan does next; None while it waits, or has nothing to ask now."""
        if record.streaming:
            return self._stream(record, wanted, limit)
        self.live = self._resume(record, self.live)
        return self._advance(record, self.live) if self.live.complete else None

    def first(self, record: Record, known: past.Past) -> Advance:
        """Return the first steps of a study that is not kept yet."""
        plan = self.plan(record)
        if plan.streaming:
            made = self._streamed(record, plan, known, Filter(), None)
            return made or Advance((), version=__version__)
        purse = Purse(record.left, record.budget)
        prices = None if plan.prices is not None else prices_of(record)
        run = Run(plan, history=known.told, prices=prices, ledger=purse)
        return self._advance(record, Live(run, purse, 0, 0, next=record.next_step))

    def installed(self, record: Record, made: Advance) -> None:
        """Take note that a step is in the log."""
        if self.live is not None:
            back = sum(want.requeue for step in made.steps for want in step.wants)
            self.live.withdrawn = record.withdrawn - back

    def result(self, record: Record) -> Result:
        """Return the plan's result, or the best one so far."""
        if record.streaming:
            return self._stream_result(record)
        if record.state in ("finished", "exhausted"):
            self.live = self._resume(record, self.live)
            return self.live.run.result
        try:
            live = self._resume(record, None)
        except Refused as refused:
            live = self._resume(record, None, until=refused.step)
        return live.run.exhaust()

    def verify(self, record: Record) -> int:
        """Replay the present epoch and return how many steps it has; raise where the plan asks otherwise."""
        if record.streaming:
            return self._verify_stream(record)
        return self._resume(record, None).index

    # batch plans

    def _begin(self, record: Record, rows: list[StepRow]) -> Live:
        """Return a run at the first step of the epoch, or at its checkpoint."""
        plan = self.plan(record)
        kept = self.store.checkpoint(record.id, record.epoch)
        first = record.first_step if kept is None else kept[0]
        began = past.read(self.store.database, record, record.first_step) if rows else None
        now = began or past.read(self.store.database, record)
        left = next((row.left for row in rows if row.step >= first), record.left)
        purse = Purse(left, record.budget)
        memory = None
        if kept is not None:
            memory = self._memory(record, plan, now.told, kept[0])
        prices = None if plan.prices is not None else prices_of(record)
        try:
            run = Run(
                plan,
                history=now.told,
                epoch=record.epoch,
                prices=prices,
                resume=None if kept is None else kept[1],
                memory=memory,
                ledger=purse,
                out=_of_earlier(now, record),
                began_with=rows[0].left if rows else record.left,
            )
        except Exception as error:
            raise Refused(first, error) from error
        live = Live(run, purse, record.epoch, record.withdrawn, next=first)
        if not rows:
            live.seen = now.unseen
            live.complete = True
        return live

    def _memory(self, record: Record, plan: Plan, began: History, at: int) -> Memory:
        """Return what a run that resumes at step `at` remembers."""
        if not plan.fresh:
            memory = Memory(plan.symmetric)
            told = past.read(self.store.database, record, at).told
            fill_memory(memory, told, plan.tolerates_failed)
            return memory
        if plan.history:  # its checkpoint has counted them
            return Memory(plan.symmetric)
        stock = Stock(plan.symmetric)
        fill_memory(stock, began, plan.tolerates_failed)
        w = wants.c
        query = (
            sa.select(w.row, w.col, w.value)
            .where(
                w.study == record.id, w.step >= record.first_step, w.step < at, w.given.is_(True)
            )
            .order_by(w.step, w.position)
        )
        served = self.store.database.read(lambda c: self.store.database.columns(c, query))
        if served:  # taken before
            rows, cols, values = (np.array(c) for c in zip(*served, strict=True))
            stock.look_up("entry", rows, cols, values.astype(float))
        return stock

    def _resume(self, record: Record, live: Live | None, until: int | None = None) -> Live:
        """Return a run that was told every complete step of the epoch; the open one is compared, not told.

        With `until`, the steps from that number on are left out. `live` is brought up to date when it can be.
        """
        stale = live is None or live.epoch != record.epoch or live.run.failure is not None
        if not stale and live is not None:
            stale = live.withdrawn != record.withdrawn or live.next > record.next_step
        start = record.first_step if stale or live is None else live.next
        rows = self.store.steps(record.id, start)
        if stale or live is None:
            live = self._begin(record, rows)
            rows = [row for row in rows if row.step >= live.next]
        if until is not None:
            rows = [row for row in rows if row.step < until]
        if rows:
            self._follow(record, live, rows)
        return live

    def _follow(self, record: Record, live: Live, rows: list[StepRow]) -> None:
        """Compare the steps with what the plan asks, and tell their answers."""
        run = live.run
        told = self._answers(record, rows, live)
        live.seen, live.complete = [], False
        lefts = [*(row.left for row in rows[1:]), record.left]  # what each step leaves
        for row, left in zip(rows, lefts, strict=True):
            asked = run.issued(live.index)
            if row.ended is not None:
                if asked is not None or not run.finished:
                    raise self._otherwise(record, run.plan, row, asked)
                live.next = row.step + 1
                return
            if asked is None or digest(asked) != row.digest:
                raise self._otherwise(record, run.plan, row, asked)
            try:
                whole = run.repeat(live.index, partial(live.given, told, row.step, left))
            except Exception as error:
                raise Refused(row.step, error) from error
            if not whole:
                return  # it is open, and nothing comes after it
            live.index += 1
            live.next = row.step + 1
        live.complete = True

    def _otherwise(self, record: Record, plan: Plan, row: StepRow, asked: Batch | None) -> Refused:
        """Return how what a plan asks differs from a step of the log."""
        logged = None if row.ended else self.store.step_batch(record.id, row.step)
        words = diverged(plan, row.step, asked, logged).replace(*_ADVICE)
        return Refused(row.step, ReplayDiverged(words))

    def _answers(self, record: Record, rows: list[StepRow], live: Live) -> StepAnswers:
        first, last = rows[0].step, rows[-1].step
        f, w, q = facts.c, wants.c, questions.c
        own = (
            sa.select(f.batch, f.position, f.value, f.turn, f.seen)
            .where(f.study == record.id, f.batch >= first, f.batch <= last)
            .where(f.kind == "answer", f.epoch <= record.epoch)
            .order_by(f.batch, f.position, f.turn)
        )
        again = sa.select(w.step, w.position, w.batch, w.at).where(
            w.study == record.id,
            w.step >= first,
            w.step <= last,
            w.given.is_(False),
            w.batch.is_not(None),
        )
        same = (q.study == record.id) & (q.batch == f.batch) & (q.position == f.position)
        late = (
            sa.select(q.mode, q.row, q.col, f.value, f.batch, f.position, f.turn, f.seen)
            .select_from(facts.join(questions, same))
            .where(f.study == record.id, f.batch < record.first_step, f.kind == "answer")
            .where(f.epoch <= record.epoch)
            .where(f.seen.is_(None) | (f.seen > record.first_step))
            .order_by(f.batch, f.position, f.turn)
        )

        def look(connection: Connection) -> tuple[list[Any], list[Any], list[Any]]:
            read = self.store.database.columns
            old = record.first_step > 0
            return (
                read(connection, own),
                read(connection, again) if old else [],
                read(connection, late) if old else [],
            )

        mine, waiting, others = self.store.database.read(look)
        live.waited |= {(batch, at) for _, _, batch, at in waiting}
        return StepAnswers(mine, waiting, others, live.waited, last)

    def _advance(self, record: Record, live: Live) -> Advance:
        """Return what a run has asked since the log ended, the open batch included."""
        run, made = live.run, []
        earlier = self._earlier(record)
        for batch, answers in run.log[live.index :]:  # memory answered these whole
            given = [Want(k, given=True, value=number_or_none(x)) for k, x in enumerate(answers)]
            made.append(Step(batch, wants=given, left=record.left))
        if run.batch is not None:
            made.append(self._open_step(record, run, earlier, sum(len(s.fresh) for s in made)))
        ended = reason = None
        report: dict[str, Any] = {}
        if run.finished:
            ended, reason, report = _ending(run.result)
        checkpoint = run.checkpoint if run.checkpoint_at >= live.index else None
        at = run.checkpoint_at - live.index
        if checkpoint is None or at >= len(made):
            checkpoint, at = None, 0
        return Advance(made, live.seen, ended, reason, report, checkpoint, at, __version__)

    def _earlier(self, record: Record) -> dict[Cell, list[tuple[Key, float]]]:
        """Return the questions of earlier epochs that have no answer: (name, lease), by entry."""
        if record.first_step == 0 or record.id == 0:
            return {}
        p = pending.c
        query = (
            sa.select(p.mode, p.row, p.col, p.batch, p.position, p.leased_until)
            .where(p.study == record.id, p.step < record.first_step)
            .order_by(p.batch, p.position)
        )
        found: dict[Cell, list[tuple[Key, float]]] = {}
        rows = self.store.database.read(lambda c: self.store.database.columns(c, query))
        for mode, row, col, batch, position, until in rows:
            cell = cell_of(record, mode, row, col)
            found.setdefault(cell, []).append(((batch, position), until))
        return found

    def _open_step(
        self, record: Record, run: Run, earlier: dict[Cell, list[tuple[Key, float]]], before: int
    ) -> Step:
        """Return the open batch as questions that are new and wants of those that are there."""
        batch = run.batch
        assert batch is not None
        again: list[Want] = []
        open_ = np.zeros(len(batch), dtype=bool)
        open_[run.open] = True
        for k in np.flatnonzero(~open_).tolist():
            again.append(Want(k, given=True, value=number_or_none(run.answers[k])))
        fresh = run.open
        if earlier:
            prices = run.prices.of(batch.mode, batch.rows, batch.cols)
            fresh, waited = matched(record, batch, run.open, run.bill, prices, earlier)
            again += waited
        return Step(
            batch,
            fresh=fresh,
            repeat=repeats(record, batch, fresh, record.asked + before, set(earlier)),
            bill=run.bill[fresh],
            wants=sorted(again),
            left=record.left,
        )

    # streaming plans

    def _situation(
        self,
        record: Record,
        known: past.Past,
        row: StepRow | None = None,
        wanted: Filter = ANY,
        limit: int | None = None,
    ) -> Situation:
        """Return what the next step looks at, or a step of the log."""
        dropped = record.dropped or {}
        return Situation(
            step=record.next_step if row is None else row.step,
            epoch=record.epoch,
            facts=known.told,
            pending=known.out,
            left=record.left if row is None else row.left,
            rows=_lines(wanted.rows),
            cols=_lines(wanted.cols),
            limit=limit,
            dropped_rows=_lines(dropped.get("rows")),
            dropped_cols=_lines(dropped.get("cols")),
        )

    def _stream(self, record: Record, wanted: Filter, limit: int | None) -> Advance | None:
        known = past.read(self.store.database, record)
        state = (wanted, record.cursor, record.committed, len(known.unseen))
        if state in self._vain:
            return None
        made = self._streamed(record, self.plan(record), known, wanted, limit)
        if made is None:
            if len(self._vain) > 1000:
                self._vain.clear()
            self._vain.add(state)
        return made

    def _streamed(
        self, record: Record, plan: Plan, known: past.Past, wanted: Filter, limit: int | None
    ) -> Advance | None:
        """Make one step of a streaming plan; None when there is nothing to ask now."""
        filtered = wanted.rows is not None or wanted.cols is not None
        most = limit if filtered else None
        situation = self._situation(record, known, wanted=wanted, limit=most)
        try:
            found = plan.step(situation)
        except Exception as error:
            raise Refused(record.next_step, error) from error
        if isinstance(found, Result):
            ended, reason, report = _ending(found)
            return Advance((), known.unseen, ended, reason, report, version=__version__)
        if not len(found):
            return None
        step = self._stream_step(record, plan, situation, known, found)
        step = replace(step, filter=Filter(wanted.rows, wanted.cols), limit=most)
        slack = 1e-9 * (record.budget or 0.0)
        if record.left is not None and step.cost > record.left + slack:
            words = f"a step of {plan.name} must keep to the money that is left, {record.left:g}"
            raise Refused(record.next_step, EntrywiseError(f"{words}; it asks for {step.cost:g}"))
        return Advance([step], known.unseen, version=__version__)

    def _stream_step(
        self, record: Record, plan: Plan, situation: Situation, known: past.Past, batch: Batch
    ) -> Step:
        new = new_questions(plan, situation, batch)
        prices = plan.prices or prices_of(record) or Prices()
        bill = prices.charges(batch, ~new)
        there = questions_of(record, known, known.state != past.WITHDRAWN)
        again = []
        for k in np.flatnonzero(~new).tolist():  # handed over: only its arm changes
            key = there[cell_of(record, batch.mode, int(batch.rows[k]), int(batch.cols[k]))]
            again.append(Want(k, key=key))
        repeated = np.zeros(len(batch), bool) if batch.arm is None else np.isin(batch.arm, REPEATS)
        gone = questions_of(record, known, known.state == past.WITHDRAWN)
        fresh = []
        for k in np.flatnonzero(new).tolist():
            cell = cell_of(record, batch.mode, int(batch.rows[k]), int(batch.cols[k]))
            if not plan.fresh and not repeated[k] and cell in gone:
                again.append(Want(k, key=gone.pop(cell), price=float(bill[k]), requeue=True))
            else:
                fresh.append(k)
        at = np.array(fresh, np.int64)
        repeat = repeats(record, batch, at, record.asked, set(there))
        return Step(batch, at, repeat, bill[at], sorted(again), left=record.left)

    def _stream_result(self, record: Record) -> Result:
        plan = self.plan(record)
        ended = record.state in ("finished", "exhausted")
        if not ended:
            known = past.read(self.store.database, record)
            return _said(plan, plan.conclude, self._situation(record, known), record.next_step)
        row = self.store.steps(record.id, record.next_step - 1)[0]
        known = past.read(self.store.database, record, row.step)
        return _said(plan, plan.step, self._situation(record, known, row), row.step)

    def _verify_stream(self, record: Record) -> int:
        plan = self.plan(record)
        rows = self.store.steps(record.id, record.first_step)
        for row in rows:
            known = past.read(self.store.database, record, row.step)
            found = plan.step(self._situation(record, known, row, _filter_of(row), row.limit))
            asked = found if isinstance(found, Batch) else None
            same = asked is None if row.ended else asked is not None and digest(asked) == row.digest
            if not same:
                raise self._otherwise(record, plan, row, asked)
        return len(rows)


_ADVICE = (
    "fork the study to use its answers as memory",
    "start an epoch for it with `study renew`",
)


def _said(plan: Plan, call: Callable[[Situation], Any], situation: Situation, step: int) -> Result:
    try:
        found = call(situation)
    except Exception as error:
        raise Refused(step, error) from error
    if not isinstance(found, Result):
        words = diverged(plan, step, found, None).replace(*_ADVICE)
        raise Refused(step, ReplayDiverged(words))
    return found


def _ending(result: Result) -> tuple[str, str | None, dict[str, Any]]:
    """Return (state, why, the result's report) of a plan that has returned."""
    ended = "exhausted" if result.status == "exhausted" else "finished"
    report = {k: v for k, v in result.report.items() if isinstance(v, int | float | str)}
    reason = report.pop("reason", None)
    return ended, None if reason is None else str(reason), report


def _of_earlier(known: past.Past, record: Record) -> History:
    out = (known.state == past.WAITING) & (known.batch < record.first_step)
    return known.table[out & (known.batch != GIVEN)]


def _filter_of(row: StepRow) -> Filter:
    given = {} if row.filter is None else json.loads(row.filter)
    return Filter(given.get("rows"), given.get("cols"))


def _lines(given: Sequence[int] | None) -> Indices | None:
    return None if given is None else np.array(sorted(given), np.int64)
