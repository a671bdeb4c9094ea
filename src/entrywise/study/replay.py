"""From the log back to a plan under way: replayed in bulk, compared batch by batch, kept up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrywise import __version__
from entrywise.budget import Ledger
from entrywise.exceptions import EntrywiseError, ReplayDiverged
from entrywise.queries import Checkpoint
from entrywise.results import Result
from entrywise.run import Memory, Run, Stock, diverged
from entrywise.study import plans
from entrywise.study.sql import SQLStore
from entrywise.study.store import Asked, BatchRow, Record, Step, digest
from entrywise.types import Array, Indices

Known = Mapping[str, tuple[Indices, Indices, Array]]


class Refused(Exception):
    """A plan that does not take what the log says of a batch."""

    def __init__(self, batch: int, error: EntrywiseError) -> None:
        super().__init__(str(error))
        self.batch, self.error = batch, error


@dataclass
class Live:
    """A run that stands where the log stood, and the numbers its batches have there."""

    run: Run
    rewinds: int
    base: int = -1  # the last batch before the run's own log
    numbers: list[int] = field(
        default_factory=list
    )  # numbers[k] is the batch of run.log[k]; one more when it is open


def start(
    record: Record,
    known: Known,
    spent: Sequence[float] = (),
    resume: Checkpoint | None = None,
    served: Known | None = None,
) -> Run:
    """Return a run that has answers and money behind it, but no batch of its own.

    What is known answers a plan for good, and a plan that wants fresh answers once each; `served` were taken before.
    """
    plan, budget, prices = plans.make(record)
    memory = (Stock if plan.fresh else Memory)(plan.symmetric)
    for mode, (rows, cols, values) in known.items():
        memory.add(mode, rows, cols, values)
    for mode, (rows, cols, values) in (served or {}).items():
        memory.look_up(mode, rows, cols, values.copy())
    ledger = Ledger(budget)
    for amount in (record.sunk, *spent):
        ledger.charge(amount)
    return Run(plan, prices=prices, memory=memory, ledger=ledger, resume=resume)


def step(run: Run, since: int) -> Step:
    """Return what a run has asked since its log held `since` batches, the open one included."""
    asked = []
    for batch, answers in run.log[since:]:  # memory answered these whole
        asked.append(
            Asked(batch, answers, np.ones(len(batch), dtype=bool), np.zeros(len(batch)), 0.0)
        )
    state = "open"
    if run.batch is not None:
        known = np.ones(len(run.batch), dtype=bool)
        known[run.open] = False
        asked.append(
            Asked(run.batch, run.answers, known, run.bill, float(run.bill[run.open].sum()))
        )
    else:
        state = "exhausted" if run.result.status == "exhausted" else "finished"
    fresh = run.checkpoint if run.checkpoint_at >= since else None
    return Step(asked, state, fresh, run.checkpoint_at - since, __version__)


def resume(store: SQLStore, record: Record, live: Live | None, until: int | None = None) -> Live:
    """Return a run that was told every complete batch of the log; the open one is compared, not told.

    With `until`, the batches from that number on are left out. `live` is brought up to date when it can
    be; a correction since then makes it start afresh. With a checkpoint, the batches before it are only
    remembered.
    """
    if live is None or live.rewinds != record.rewinds or live.run.failure is not None:
        live = _begin(store, record)
    del live.numbers[live.run.number :]
    rows = store.batches(record.id, live.numbers[-1] if live.numbers else live.base)
    if not rows:
        return live
    number, value = store.answers(record.id, rows[0].number, rows[-1].number)
    for k, row in enumerate(rows):
        if row.dead:
            continue
        if row.number == until:
            break
        index = len(live.numbers)
        asked = live.run.log[index].batch if index < live.run.number else live.run.batch
        if asked is None or digest(asked) != row.digest:
            words = diverged(live.run.plan, row.number, asked, store.batch(record.id, row.number))
            raise Refused(row.number, ReplayDiverged(words))
        live.numbers.append(row.number)
        if index < live.run.number:  # memory answered it whole
            continue
        answers = value[
            np.searchsorted(number, row.number) : np.searchsorted(number, row.number, side="right")
        ]
        if len(answers) < row.size:
            break  # it is open, and nothing comes after it
        _remember_withdrawn(store, record, live.run, rows[k + 1 :])
        at = live.run.open
        given: Any = answers[at]
        if np.isnan(given).any():
            given = [None if np.isnan(x) else x for x in given]
        try:
            live.run.tell(given, at)
        except EntrywiseError as error:
            raise Refused(row.number, error) from error
    return live


def _begin(store: SQLStore, record: Record) -> Live:
    known = store.known(record.id)
    kept = store.checkpoint(record.id)
    if kept is None:
        return Live(start(record, known), record.rewinds)
    at, checkpoint = kept
    rows = store.batches(record.id)
    spent = [row.cost for row in rows if row.number < at]
    if not record.fresh:
        run = start(record, joined(known, store.told(record.id, 0, at - 1)), spent, checkpoint)
    elif not known and not any(
        row.dead for row in rows
    ):  # no old answer was there to be used again
        run = start(record, known, spent, checkpoint)
    else:
        stock = joined(known, store.told(record.id, 0, at - 1, dead=True))
        served = store.told(record.id, 0, at - 1, dead=False, source="memory")
        run = start(record, stock, spent, checkpoint, served)
    return Live(run, record.rewinds, base=at - 1)


def joined(first: Known, then: Known) -> dict[str, tuple[Indices, Indices, Array]]:
    """Return entries by mode, those of `then` after those of `first`: the later ones win."""
    found = dict(first)
    for mode, (rows, cols, values) in then.items():
        if mode in found:
            i, j, x = found[mode]
            rows, cols, values = (
                np.concatenate([i, rows]),
                np.concatenate([j, cols]),
                np.concatenate([x, values]),
            )
        found[mode] = (rows, cols, values)
    return found


def _remember_withdrawn(
    store: SQLStore, record: Record, run: Run, later: Sequence[BatchRow]
) -> None:
    """Before a batch closes: remember what was told in batches withdrawn after it, and what they cost."""
    for row in later:
        if not row.dead:
            return
        run.ledger.charge(row.cost)
        for mode, (rows, cols, values) in store.told(record.id, row.number, row.number).items():
            run.remember(mode, rows, cols, values)


def best_so_far(store: SQLStore, record: Record) -> Result:
    """Return the result of a copy of the run that is ended where the log ends, or where the plan refuses it."""
    try:
        live = resume(store, record, None)
    except Refused as refused:
        live = resume(store, record, None, until=refused.batch)
    return live.run.exhaust()
