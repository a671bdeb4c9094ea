"""A streaming plan's log: what each step had seen, and what it wanted.

A step's batch is a list of *wants*. A want of an entry that nobody was asked for becomes a
*question*; one of an entry that is pending or answered (a plan takes a cell of its blind reserve,
say) costs nothing and only changes the arm under which the entry stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError, ReplayDiverged
from entrywise.queries import REPEATS, Batch, History, Plan, Situation
from entrywise.run.memory import entry_keys
from entrywise.run.sheet import Sheet
from entrywise.types import Array, Indices


@dataclass(frozen=True, eq=False)
class LoggedStep:
    """One line of a streaming plan's log.

    Parameters
    ----------
    number, epoch : int
    seen, values : ndarray of shape (s,)
        Questions whose answers were new to this step, and those answers (NaN: failed).
    left : float, optional
        Money that was neither spent nor held.
    rows, cols, limit : optional
        What the step was allowed to ask for.
    batch : Batch, optional
        What it wanted; None when the plan ended here.
    """

    number: int
    epoch: int
    seen: Indices
    values: Array
    left: float | None
    rows: Indices | None
    cols: Indices | None
    limit: int | None
    batch: Batch | None


class Stream:
    """A streaming plan under way: its questions, behind what was known or told before it began."""

    def __init__(self, plan: Plan, history: History, epoch: int = 0) -> None:
        self.plan, self.history, self.epoch = plan, history, epoch
        self.sheet = Sheet(plan)
        self.steps: list[LoggedStep] = []
        self.wants: list[Indices] = []  # of each step, the line of the table behind each want
        self._arm = history.arm.astype(object)  # of each line of the table, by its latest want
        self._chance = history.probability
        self._unseen: list[Indices] = []

    @property
    def table(self) -> History:
        """History first, then the questions in the order of asking; NaN where no answer came."""
        batch, size, before = self.sheet.batch, len(self.sheet), len(self.history)
        questions = History(
            batch.rows,
            batch.cols,
            self.sheet.answers,
            mode=self.sheet.modes,
            unit=np.full(size, -1) if batch.unit is None else batch.unit,
            plate=np.full(size, -1) if batch.plate is None else batch.plate,
            epoch=np.full(size, self.epoch),
            price=self.sheet.bill,
            arm=self._arm[before:],
            probability=self._chance[before:],
        )
        arm, chance = self._arm[:before], self._chance[:before]
        return replace(self.history, arm=arm, probability=chance) + questions

    @property
    def facts(self) -> History:
        """History first, then what was told, in the order of asking."""
        return self.table[~self._out]

    @property
    def _out(self) -> NDArray[np.bool_]:
        """Where the table has a question without an answer."""
        return np.concatenate([np.zeros(len(self.history), bool), self.sheet.wanted])

    def take(self, at: Indices, values: Array) -> float:
        """Write answers down and return what they cost."""
        self._unseen.append(at)
        return self.sheet.fill(at, values)

    def situation(
        self,
        left: float | None,
        rows: Indices | None = None,
        cols: Indices | None = None,
        limit: int | None = None,
    ) -> Situation:
        """Return all that the next step may look at."""
        table, out = self.table, self._out
        return Situation(
            step=len(self.steps),
            epoch=self.epoch,
            facts=table[~out],
            pending=table[out],
            left=left,
            rows=rows,
            cols=cols,
            limit=limit,
        )

    def add(
        self,
        situation: Situation,
        batch: Batch | None = None,
        new: NDArray[np.bool_] | None = None,
        bill: Array | None = None,
    ) -> None:
        """Write a step down; its `new` wants become questions, `bill` is what each adds to the costs."""
        if batch is not None and new is not None and bill is not None:
            self._want(batch, new, bill)
        seen = np.sort(np.concatenate([np.zeros(0, np.int64), *self._unseen]))
        self._unseen = []
        self.steps.append(
            LoggedStep(
                number=situation.step,
                epoch=situation.epoch,
                seen=seen,
                values=self.sheet.answers[seen],
                left=situation.left,
                rows=situation.rows,
                cols=situation.cols,
                limit=situation.limit,
                batch=batch,
            )
        )

    def _want(self, batch: Batch, new: NDArray[np.bool_], bill: Array) -> None:
        """Ask what is new; what is there goes to the arm that wants it now."""
        arm = np.full(len(batch), "") if batch.arm is None else batch.arm
        chance = np.full(len(batch), np.nan) if batch.probability is None else batch.probability
        asked, size = batch[new], int(new.sum())
        at = np.empty(len(batch), np.int64)
        at[~new] = self._lines(batch[~new], arm[~new])
        at[new] = len(self._arm) + np.arange(size)
        self.sheet.add(asked, np.full(size, np.nan), np.zeros(size, bool), bill[new])
        self._arm = np.concatenate([self._arm, arm[new].astype(object)])
        self._chance = np.concatenate([self._chance, chance[new]])
        self._arm[at], self._chance[at] = arm, chance
        self.wants.append(at)

    def _lines(self, batch: Batch, arm: NDArray[np.str_]) -> Indices:
        """Return the lines of the table that hold entries wanted again."""
        if not len(batch):
            return np.zeros(0, np.int64)
        rows = np.concatenate([self.history.rows, self.sheet.batch.rows])
        cols = np.concatenate([self.history.cols, self.sheet.batch.cols])
        keys = entry_keys(self.plan.symmetric, rows, cols)
        modes = np.concatenate([self.history.mode, self.sheet.modes])
        keys = np.where(modes == batch.mode, keys, -1)
        order = np.argsort(keys, kind="stable")
        wanted = entry_keys(self.plan.symmetric, batch.rows, batch.cols)
        at = order[np.searchsorted(keys[order], wanted, side="right") - 1]  # the latest
        known = np.concatenate([self.history.known, np.zeros(len(self.sheet), bool)])
        same = np.flatnonzero(known[at] | (self._arm[at] == arm))
        if len(same):
            k = int(same[0])
            raise ParameterError(
                f"{self.plan.name} asks for ({batch.rows[k]}, {batch.cols[k]}) again; "
                "a step must look at its facts and at what is pending"
            )
        return at


def new_questions(plan: Plan, situation: Situation, batch: Batch) -> NDArray[np.bool_]:
    """Tell which wants of a step are new questions; the others are known, answered or pending.

    A plan that wants fresh measurements asks a new question each time, and so do the arms that
    repeat: controls and replicates of a plate.
    """
    if plan.fresh:
        return np.ones(len(batch), dtype=bool)
    there = [
        entry_keys(plan.symmetric, table.rows, table.cols)[table.mode == batch.mode]
        for table in (situation.facts, situation.pending)
    ]
    new = ~np.isin(entry_keys(plan.symmetric, batch.rows, batch.cols), np.concatenate(there))
    return new if batch.arm is None else new | np.isin(batch.arm, REPEATS)


def verify_step(plan: Plan, situation: Situation, batch: Batch | None) -> None:
    """Make one step again and raise ReplayDiverged unless it wants `batch` (None: it ends)."""
    found = plan.step(situation)
    asked = found if isinstance(found, Batch) else None
    if asked is None and batch is None:
        return
    if asked is None or batch is None or not asked.same_as(batch):
        raise ReplayDiverged(diverged(plan, situation.step, asked, batch))


def diverged(plan: Plan, number: int, asked: Batch | None, logged: Batch | None) -> str:
    """Return in words how what a plan asks differs from what the log holds."""
    advice = "fork the study to use its answers as memory"
    if asked is None:
        return f"{plan.name} ended before batch {number}, which the log holds; {advice}"
    if logged is None:
        return f"{plan.name} asks for a batch {number} where the log has it ended; {advice}"
    k = 0
    if len(asked) == len(logged):
        k = int(np.argmax((asked.rows != logged.rows) | (asked.cols != logged.cols)))
    k = max(min(k, len(asked) - 1, len(logged) - 1), 0)
    if not len(asked) or not len(logged):
        return (
            f"batch {number} of {plan.name} asks for {len(asked)} entries where the log has "
            f"{len(logged)}; {advice}"
        )
    return (
        f"batch {number} of {plan.name} asks for ({asked.rows[k]}, {asked.cols[k]}) by {asked.mode} "
        f"at position {k} where the log has ({logged.rows[k]}, {logged.cols[k]}) by {logged.mode}; "
        f"{advice}"
    )
