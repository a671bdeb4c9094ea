"""A plan under way: ask, tell, replay, resume. No input or output happens here.

::

    run = Run(adaptive_nystrom(500, rank=8), budget=5000)
    while not run.finished:
        batch = run.ask()                    # what is still open
        run.tell(measure(batch))             # all of it, or some: run.tell(values, positions)
    run.result

A batch plan goes on when its whole batch is answered. A streaming plan goes on whenever somebody
asks: answers come in any order, and what is pending holds nobody up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.budget import Ledger
from entrywise.exceptions import (
    Exhausted,
    ParameterError,
    ReplayDiverged,
    TellError,
)
from entrywise.queries import (
    Asking,
    Batch,
    Checkpoint,
    History,
    Plan,
    Prices,
    Situation,
)
from entrywise.queries.batch import Columns
from entrywise.results import Result
from entrywise.run.beginning import (
    Known,
    fill_memory,
    known_table,
    memory_of,
    priced,
    refuse_twice,
    told_table,
)
from entrywise.run.memory import Memory, Stock
from entrywise.run.sheet import Answers, Sheet
from entrywise.run.stream import LoggedStep, Stream, diverged, new_questions
from entrywise.types import Array, Indices


class Entry(NamedTuple):
    """One line of a run's log: a batch and its answers, NaN where a measurement failed."""

    batch: Batch
    answers: Array


class Run:
    """A plan under way.

    Parameters
    ----------
    plan : Plan
    known : Observations, optional
        Entries known beforehand. They cost nothing; a plan that takes history fits with them from its
        first step, another finds them in memory when it asks for them. Where there are several
        instruments, a mapping of their names to what they said; else these are the target's.
    budget, prices : optional
        Default to the plan's own; given in both places they must agree.
    resume : Checkpoint, optional
        Where to start instead of at the beginning.
    history : History, optional
        What was known and told before, as a table; `known` is put in front of it.
    epoch : int
        Of the study that this run belongs to.
    out : History, optional
        What is out with people since an earlier epoch: waited for, but paid for already.
    memory, ledger : optional
        What was answered and spent before, where that is kept elsewhere (a study); used as they are.
    began_with : float, optional
        Money that was left when the epoch began, with which the plan plans; what is left now by default.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        known: Known | None = None,
        budget: float | None = None,
        prices: Prices | None = None,
        resume: Checkpoint | None = None,
        history: History | None = None,
        epoch: int = 0,
        out: History | None = None,
        memory: Memory | None = None,
        ledger: Ledger | None = None,
        began_with: float | None = None,
    ) -> None:
        refuse_twice(plan, budget, prices)
        self.plan = priced(plan, prices)
        self.prices = plan.prices or prices or Prices()
        if ledger is None:
            ledger = Ledger(budget if budget is not None else plan.budget)
        self.ledger = ledger
        self.history = known_table(plan, known, history)
        self.epoch = epoch
        self.began_with = self._left if began_with is None else began_with
        self.measured = 0
        self.failure: Exception | None = None
        self.checkpoint: Checkpoint | None = resume
        self.checkpoint_at = 0
        self._resumed = resume
        self._result: Result | None = None
        self._log: list[Entry] = []
        self._sheet: Sheet | None = None
        self._stream: Stream | None = None
        self._generator: Asking[Any] | None = None
        self._memory = memory_of(plan, self.history) if memory is None else memory
        self._held = Stock(plan.symmetric)  # each is paid for once
        fill_memory(self._held, History.empty() if out is None else out, failed=True)
        self._vain: set[tuple[bytes | None, bytes | None]] = set()  # filters that found nothing
        if plan.streaming:
            self._stream = Stream(self.plan, self.history, epoch)
            self._sheet = self._stream.sheet
        else:
            self._generator = plan.start(resume, self.history, epoch, self.began_with)
            self._advance(None)

    @property
    def batch(self) -> Batch | None:
        """The batch that positions count in, None when nothing is asked.

        Of a batch plan the current one; of a streaming plan all questions so far.
        """
        return None if self._sheet is None else self._sheet.batch

    @property
    def answers(self) -> Array:
        """What is known of the answers to :attr:`batch`, NaN where nothing came or a measurement failed."""
        return np.zeros(0) if self._sheet is None else self._sheet.answers

    @property
    def bill(self) -> Array:
        """What each position of :attr:`batch` adds to the costs."""
        return np.zeros(0) if self._sheet is None else self._sheet.bill

    @property
    def log(self) -> list[Entry]:
        """What was asked and answered, batch by batch; of a streaming plan also what is partly answered."""
        if self._stream is None:
            return self._log
        values = self._stream.table.values
        asked = [step.batch for step in self._stream.steps if step.batch is not None]
        return [
            Entry(batch, values[at]) for batch, at in zip(asked, self._stream.wants, strict=True)
        ]

    @property
    def facts(self) -> History:
        """What was told, as a table in the order of asking; what was known beforehand is not in it."""
        if self._stream is not None:
            return self._stream.facts[len(self.history) :]
        parts = [told_table(self.prices, batch, answers) for batch, answers in self._log]
        return sum(parts, History.empty())

    @property
    def steps(self) -> list[LoggedStep]:
        """The log of a streaming plan: what each step had seen, and what it wanted."""
        return [] if self._stream is None else self._stream.steps

    @property
    def number(self) -> int:
        """Number of the current batch, from 0; of a streaming plan, of batches answered whole."""
        if self._stream is None:
            return len(self._log)
        out = len(self.history) + self.open
        return sum(not np.isin(at, out).any() for at in self._stream.wants)

    @property
    def finished(self) -> bool:
        """Whether the plan has returned."""
        return self._result is not None

    @property
    def result(self) -> Result:
        """What the plan returned, with its cost; raises until it is finished."""
        if self._result is None:
            raise ParameterError(
                "the run is not finished; tell the open answers, or call result_so_far()"
            )
        return self._result

    @property
    def open(self) -> Indices:
        """Positions of :attr:`batch` that still want an answer."""
        return np.zeros(0, np.int64) if self._sheet is None else self._sheet.open

    def fitting(self, rows: ArrayLike | None = None, cols: ArrayLike | None = None) -> Indices:
        """Return the open positions that lie in some rows and columns, all of them by default.

        Where a streaming plan uses several instruments, those of one: that of the first.
        """
        if self._sheet is None:
            return self.open
        if rows is None and cols is None:
            return self._sheet.next
        at = self.open
        wanted = self._sheet.batch[at]
        filter_ = Situation(rows=_lines(rows), cols=_lines(cols))
        return self._sheet.alike(at[filter_.allows(wanted.rows, wanted.cols)])

    def alike(self, positions: Indices) -> Indices:
        """Return those positions of :attr:`batch` that have the instrument of the first."""
        assert self._sheet is not None
        return self._sheet.alike(positions)

    def asked(self, positions: Indices) -> Batch:
        """Return what an oracle is asked at positions of :attr:`batch`, all of one instrument."""
        assert self._sheet is not None
        return self._sheet.asked(positions)

    def ask(
        self,
        limit: int | None = None,
        *,
        rows: ArrayLike | None = None,
        cols: ArrayLike | None = None,
    ) -> Batch | None:
        """Return what is still open (at most `limit`, of some lines only), None when finished.

        Their positions are the first of :meth:`fitting`. A streaming plan makes a step when fewer than
        `limit` open questions fit (none, when no limit is given), at most one a call; it may find
        nothing to ask now, then the batch is empty.
        """
        self._refuse_after_failure()
        if self._stream is not None and not self.finished:
            self._provide(limit, _lines(rows), _lines(cols))
        if self._sheet is None:
            return None
        return self._sheet.asked(self.fitting(rows, cols)[:limit])

    def tell(self, answers: Answers, positions: ArrayLike | None = None) -> None:
        """Take answers to open positions (all that :meth:`ask` gives when `positions` is left out, in order).

        Everything is checked first: on an error nothing is taken. The same answer told twice is
        harmless, another one is refused. None means that the measurement failed.
        """
        self._refuse_after_failure()
        if self._sheet is None:
            raise TellError("the run is finished; there is nothing left to tell")
        at, values = self._sheet.new(answers, positions)
        if not len(at):
            return
        self._take(at, values)
        if self._sheet.wanted.any():
            return
        if self._stream is None:
            self._close()
        else:
            self._step(None, None, None)

    def _take(self, at: Indices, values: Array) -> None:
        """Write answers down and pay for them."""
        assert self._sheet is not None
        if self._stream is not None:
            cost = self._stream.take(at, values)
            self._vain.clear()
        else:
            cost = self._sheet.fill(at, values)
        self.measured += len(at)
        self.ledger.charge(cost)

    def _refuse_after_failure(self) -> None:
        if self.failure is not None:
            raise TellError(
                f"the plan stopped at batch {self.number - 1}: {self.failure}"
            ) from self.failure

    # batch plans

    def _close(self) -> None:
        assert self._sheet is not None
        batch, answers = self._sheet.batch, self._sheet.answers
        if not self.plan.fresh:
            self._remember(batch, answers)
        answers.flags.writeable = False
        self._log.append(Entry(batch, answers))
        self._advance(answers)

    def _advance(self, answers: Array | None) -> None:
        """Run the plan to its next batch, or to its end."""
        assert self._generator is not None
        try:
            while True:
                told = None if answers is None else answers.view()  # what is logged stays as it is
                wanted = self._generator.send(told)  # type: ignore[arg-type]
                answers = None
                if isinstance(wanted, Checkpoint):
                    self.checkpoint, self.checkpoint_at = wanted, len(self._log)
                    continue
                answers = self._issue(wanted)
                if answers is None:
                    return
        except StopIteration as stop:
            self._finish(stop.value)
        except Exhausted as stop:
            self._finish(self._throw(stop))
        except Exception as error:  # the plan is dead; its answers stand in the log
            self._sheet, self.failure = None, error
            raise

    def _issue(self, batch: Batch) -> Array | None:
        """Open a batch; return its answers at once when memory knows them all."""
        answers = np.full(len(batch), np.nan)
        known = np.zeros(len(batch), dtype=bool)
        if not self.plan.fresh or isinstance(self._memory, Stock):
            known = self._known(batch, answers)
        out = np.zeros(len(batch), dtype=bool)
        if len(self._held):
            out[~known] = self._out(batch[~known])
        bill = self.prices.charges(batch, known | out)
        self.ledger.hold(float(bill.sum()))
        if known.all():
            answers.flags.writeable = False
            self._log.append(Entry(batch, answers))
            return answers
        self._sheet = Sheet(self.plan)
        self._sheet.add(batch, answers, known, bill)
        return None

    def _known(self, batch: Batch, answers: Array) -> NDArray[np.bool_]:
        """Fill in what memory knows of a batch and tell where that is."""
        if isinstance(batch, Columns) and not isinstance(self._memory, Stock):
            table = answers.reshape(-1, batch.height)
            return self._memory.look_up_columns(batch.mode, batch.which, table).ravel()
        return self._memory.look_up(batch.mode, batch.rows, batch.cols, answers)

    def _remember(self, batch: Batch, answers: Array) -> None:
        if isinstance(batch, Columns) and not isinstance(self._memory, Stock):
            table = answers.reshape(-1, batch.height)
            self._memory.add_columns(batch.mode, batch.which, table)
        else:
            self._memory.add(batch.mode, batch.rows, batch.cols, answers)

    def _out(self, batch: Batch) -> NDArray[np.bool_]:
        """Tell which positions are out with people since an earlier epoch."""
        nothing = np.empty(len(batch))
        return self._held.look_up(batch.mode, batch.rows, batch.cols, nothing)

    def _throw(self, reason: Exhausted) -> Result:
        """Tell the plan that the money ran out; it returns its best result so far."""
        assert self._generator is not None
        try:
            self._generator.throw(reason)
        except StopIteration as stop:
            result: Result = replace(stop.value, status="exhausted")
            return result
        raise ParameterError(
            f"{self.plan.name} must return its best result when the money runs out, but it asked again"
        )

    # streaming plans

    def _provide(self, limit: int | None, rows: Indices | None, cols: Indices | None) -> None:
        """Make a step when too few open questions fit, unless one was made in vain since the last answer."""
        missing = (1 if limit is None else limit) - len(self.fitting(rows, cols))
        if missing <= 0 or _key(rows, cols) in self._vain:
            return
        filtered = rows is not None or cols is not None
        self._step(rows, cols, missing if filtered and limit is not None else None)

    def _step(self, rows: Indices | None, cols: Indices | None, limit: int | None) -> None:
        """Make a step; one that only hands entries over is followed by another."""
        while not self._make(self._situation(rows, cols, limit)):
            pass

    def _situation(
        self, rows: Indices | None, cols: Indices | None, limit: int | None
    ) -> Situation:
        assert self._stream is not None
        return self._stream.situation(self._left, rows, cols, limit)

    @property
    def _left(self) -> float | None:
        """Money that is neither spent nor held, None without a budget."""
        left = self.ledger.left
        return None if math.isinf(left) else left

    def _make(self, situation: Situation) -> bool:
        """Make one step and tell whether something is asked now, or nothing can be."""
        assert self._stream is not None
        try:
            found = self.plan.step(situation)
        except Exception as error:
            self._sheet, self.failure = None, error
            raise
        if not isinstance(found, Batch):
            self._stream.add(situation)
            self._finish(found)
            return True
        if not len(found):
            self._vain.add(_key(situation.rows, situation.cols))
            return True
        new = new_questions(self.plan, situation, found)
        bill = self.prices.charges(found, ~new)
        self._hold(float(bill.sum()))
        self._stream.add(situation, found, new, bill)
        return bool(new.any())

    def _hold(self, amount: float) -> None:
        try:
            self.ledger.hold(amount)
        except Exhausted as reason:
            raise ParameterError(
                f"a step of {self.plan.name} must keep to the money that is left: {reason}"
            ) from None

    def situation(self, number: int | None = None) -> Situation:
        """Return what step `number` of a streaming plan looked at; the next one's by default."""
        if self._stream is None:
            raise ParameterError(f"{self.plan.name} is a batch plan; it has no steps")
        if number is None:
            return self._situation(None, None, None)
        past = Stream(self.plan, self.history, self.epoch)
        for step in self.steps[: number + 1]:
            past.take(step.seen, step.values)
            situation = past.situation(step.left, step.rows, step.cols, step.limit)
            if step.number == number:
                return situation
            assert step.batch is not None
            new = new_questions(self.plan, situation, step.batch)
            past.add(situation, step.batch, new, self.prices.charges(step.batch, ~new))
        raise ParameterError(f"steps of this run are 0..{len(self.steps) - 1}, got {number}")

    # the end

    def _finish(self, result: Any) -> None:
        if not isinstance(result, Result):
            raise ParameterError(
                f"{self.plan.name} must return a Result, got {type(result).__name__}"
            )
        self._sheet = None
        self.ledger.release()
        self._result = replace(result, cost=self.ledger.spent)

    def exhaust(self) -> Result:
        """End the run here: what is open stays unbought, and the plan returns its best result so far."""
        if self.finished:
            return self.result
        if self._stream is not None:
            self._finish(self.plan.conclude(self.situation()))
        else:
            self._finish(self._throw(Exhausted("the run was ended before the plan was done")))
        return self.result

    def result_so_far(self) -> Result:
        """Return the best result so far without ending the run; of a batch plan a replayed copy is ended."""
        if self.finished:
            return self.result
        if self._stream is not None:
            found: Result = self.plan.conclude(self.situation())
        else:
            copy = Run.replay(
                self.plan,
                self.log,
                prices=None if self.plan.prices else self.prices,
                resume=self._resumed,
                history=self.history,
                epoch=self.epoch,
                began_with=self.began_with,
                ledger=Ledger(),  # the copy pays nothing: all of its log is paid for
            )
            found = copy.exhaust()
        return replace(found, cost=self.ledger.spent, status="running")

    @classmethod
    def replay(
        cls,
        plan: Plan,
        log: Iterable[tuple[Batch, ArrayLike] | LoggedStep],
        *,
        late: Mapping[int, History] | None = None,
        **how: Any,
    ) -> Run:
        """Return a run that has been told everything in `log`, comparing each batch with it.

        The log is :attr:`log`, pairs of batches and answers, each told whole before the next; or
        :attr:`steps` of a streaming plan, which say in which order answers came. Batches that memory
        answers whole stand in the log as well. `late[k]` is remembered before batch k closes: answers
        that came to questions asked before this run began. `how` are the keywords of :class:`Run`.
        """
        run = cls(plan, **how)
        for number, line in enumerate(log):
            if late is not None and number in late:
                run.recall(late[number])
            if isinstance(line, LoggedStep):
                run._follow(line)
                continue
            batch, answers = line
            given = np.asarray(answers, dtype=np.float64)
            if run._stream is not None and not run.steps:
                run.ask()
            asked = run.issued(number)
            if asked is None or not asked.same_as(batch):
                raise ReplayDiverged(diverged(plan, number, asked, batch))
            run.repeat(number, given.__getitem__)
        return run

    def _follow(self, step: LoggedStep) -> None:
        """Make a logged step again, with the facts and the money that it had."""
        assert self._stream is not None
        self._take(step.seen, step.values)
        situation = self._stream.situation(step.left, step.rows, step.cols, step.limit)
        before = len(self.steps)
        self._make(situation)
        made = self.steps[before:]
        found = made[0].batch if made else Batch.empty()
        same = found is None and step.batch is None
        if found is not None and step.batch is not None:
            same = found.same_as(step.batch)
        if not same:
            raise ReplayDiverged(diverged(self.plan, step.number, found, step.batch))

    def issued(self, number: int) -> Batch | None:
        """Return batch `number`, None where the plan has not asked for one."""
        if self._stream is not None:
            known = number < len(self._stream.wants)
            return self._stream.steps[number].batch if known else None
        return self._log[number].batch if number < len(self._log) else self.batch

    def repeat(self, number: int, answers: Callable[[Indices], Array | None]) -> bool:
        """Tell what a log holds of batch `number`; return whether that is all that the batch wants.

        `answers` returns those at positions of the batch, None while one is missing, NaN where a measurement failed. It
        is not called where memory answered the batch.
        """
        if self._stream is not None:
            at = self._stream.wants[number] - len(self.history)
            inside = np.flatnonzero((at >= 0) & np.isin(at, self.open))
            at = at[inside]
        elif number < len(self._log):
            return True
        else:
            at = inside = self.open
        values = answers(inside)
        if values is None:
            return False
        if len(at):
            failed = np.isnan(values).any()
            self.tell([None if np.isnan(x) else x for x in values] if failed else values, at)
        return True

    def recall(self, history: History) -> None:
        """Add a table of answers to the memory of this run."""
        fill_memory(self._memory, history, failed=self.plan.tolerates_failed)


def _lines(index: ArrayLike | None) -> Indices | None:
    return None if index is None else np.unique(np.asarray(index, np.int64))


def _key(rows: Indices | None, cols: Indices | None) -> tuple[bytes | None, bytes | None]:
    first, second = (None if x is None else x.tobytes() for x in (rows, cols))
    return first, second
