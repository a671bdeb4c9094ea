"""A plan under way: ask, tell, replay, resume. No input or output happens here.

::

    run = Run(adaptive_nystrom(500, rank=8), budget=5000)
    while not run.finished:
        batch = run.ask()                    # what is still open of the current batch
        run.tell(measure(batch))             # all of it, or some: run.tell(values, positions)
    run.result
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.budget import Ledger
from entrywise.exceptions import (
    AnswerError,
    EntrywiseError,
    Exhausted,
    ParameterError,
    ReplayDiverged,
    TellError,
)
from entrywise.observations import Observations
from entrywise.queries import Batch, Checkpoint, Plan, Prices
from entrywise.results import Result
from entrywise.run.memory import Memory, Stock
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
        Entries known beforehand; they are answered from memory and cost nothing.
    budget, prices : optional
        Default to the plan's own; given in both places they must agree.
    resume : Checkpoint, optional
        Where to start instead of at the beginning.
    memory, ledger : optional
        What was answered and spent before, where that is kept elsewhere (a study); used as they are.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        known: Observations | None = None,
        budget: float | None = None,
        prices: Prices | None = None,
        resume: Checkpoint | None = None,
        memory: Memory | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(plan, Plan):
            raise ParameterError(
                f"a run takes a plan, got {type(plan).__name__}; call the plan function with its parameters"
            )
        if budget is not None and plan.budget is not None and budget != plan.budget:
            raise ParameterError(
                f"the budget is {budget:g} here and {plan.budget:g} in {plan.name}; give it once"
            )
        if prices is not None and plan.prices is not None and prices is not plan.prices:
            raise ParameterError(f"prices were given here and in {plan.name}; give them once")
        self.plan = plan
        self.prices = plan.prices or prices or Prices()
        self.ledger = (
            Ledger(budget if budget is not None else plan.budget) if ledger is None else ledger
        )
        self.log: list[Entry] = []
        self.checkpoint: Checkpoint | None = resume
        self._resumed = resume
        self.checkpoint_at = 0
        self.measured = 0
        self._memory = Memory(plan.symmetric) if memory is None else memory
        if known is not None:
            self._remember_known(known)
        self.batch: Batch | None = None
        self._result: Result | None = None
        self.failure: EntrywiseError | None = None
        self._generator = plan.start(resume)
        self._advance(None)

    @property
    def number(self) -> int:
        """Number of the current batch, from 0."""
        return len(self.log)

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
        """Positions of the current batch that still want an answer."""
        return np.flatnonzero(self._wanted) if self.batch is not None else np.zeros(0, np.int64)

    def ask(self, limit: int | None = None) -> Batch | None:
        """Return what is still open of the current batch (at most `limit`), None when finished."""
        self._refuse_after_failure()
        return None if self.batch is None else self.batch[self.open[:limit]]

    def _refuse_after_failure(self) -> None:
        if self.failure is not None:
            raise TellError(
                f"the plan stopped at batch {self.number - 1}: {self.failure}"
            ) from self.failure

    def tell(
        self, answers: ArrayLike | Sequence[float | None], positions: ArrayLike | None = None
    ) -> None:
        """Take answers to open positions (all of them when `positions` is left out, in order).

        Everything is checked first: on an error nothing is taken. The same answer told twice is
        harmless, another one is refused. None means that the measurement failed.
        """
        self._refuse_after_failure()
        if self.batch is None:
            raise TellError("the run is finished; there is nothing left to tell")
        at = self.open if positions is None else _flat_positions(positions, len(self.batch))
        values, failed = self._check(answers, at)
        told = ~self._wanted[at]
        if np.any(told):
            same = (values == self._answers[at]) | (failed & np.isnan(self._answers[at]))
            if not np.all(same[told]):
                k = int(np.flatnonzero(told & ~same)[0])
                raise TellError(
                    f"position {at[k]}, entry {self._name(at[k])}, was answered {self._answers[at[k]]:g} and is now "
                    f"told {values[k]:g}; an answer stands"
                )
        uniq, first = np.unique(at, return_index=True)
        if len(uniq) < len(at):
            again = values[first][np.searchsorted(uniq, at)]
            clash = ~((again == values) | (np.isnan(again) & np.isnan(values)))
            if np.any(clash):
                k = int(np.flatnonzero(clash)[0])
                raise TellError(
                    f"position {at[k]}, entry {self._name(at[k])}, is told {again[k]:g} and {values[k]:g}; tell one"
                )
            at, values = uniq, values[first]
        new = self._wanted[at]
        at, values = at[new], values[new]
        self._answers[at] = values
        self._wanted[at] = False
        self.measured += len(at)
        self.ledger.charge(float(self._bill[at].sum()))
        if not self._wanted.any():
            self._close()

    def _check(self, answers: Any, at: Indices) -> tuple[Array, NDArray[np.bool_]]:
        if isinstance(answers, np.ndarray) and answers.dtype.kind in "fiub":
            values = np.array(answers, dtype=np.float64)
            failed = np.zeros(values.shape, dtype=bool)
        else:
            try:
                items = list(answers)
            except TypeError:
                items = [answers]
            failed = np.array([x is None for x in items], dtype=bool)
            try:
                values = np.array(
                    [np.nan if x is None else float(x) for x in items], dtype=np.float64
                )
            except (TypeError, ValueError):
                raise AnswerError(
                    f"answers must be numbers, got {items[:3]!r}; tell finite numbers, None where one failed"
                ) from None
        if values.shape != at.shape:
            raise TellError(
                f"there must be one answer for each of {len(at)} positions, got {values.shape}"
            )
        bad = np.flatnonzero(~np.isfinite(values) & ~failed)
        if len(bad):
            k = int(bad[0])
            raise AnswerError(
                f"answer {at[k]}, entry {self._name(at[k])}, is {values[k]}; tell a finite number"
            )
        if np.any(failed) and not self.plan.tolerates_failed:
            k = int(np.flatnonzero(failed)[0])
            raise AnswerError(
                f"answer {at[k]}, entry {self._name(at[k])}, failed, and {self.plan.name} cannot do without it; measure it again"
            )
        return values, failed

    def _name(self, position: int) -> str:
        assert self.batch is not None
        return f"({self.batch.rows[position]}, {self.batch.cols[position]})"

    def _close(self) -> None:
        assert self.batch is not None
        batch, answers = self.batch, self._answers
        if not self.plan.fresh:
            self._memory.add(batch.mode, batch.rows, batch.cols, answers)
        answers.flags.writeable = False
        self.log.append(Entry(batch, answers))
        self._advance(answers.copy())

    def _advance(self, answers: Array | None) -> None:
        """Run the plan to its next batch, or to its end."""
        try:
            while True:
                if answers is not None:
                    answers.flags.writeable = False
                wanted = self._generator.send(answers)  # type: ignore[arg-type]
                answers = None
                if isinstance(wanted, Checkpoint):
                    self.checkpoint, self.checkpoint_at = wanted, len(self.log)
                    continue
                answers = self._issue(wanted)
                if answers is None:
                    return
        except StopIteration as stop:
            self._finish(stop.value)
        except Exhausted as stop:
            self._finish(self._throw(stop))
        except EntrywiseError as error:  # the plan is dead; its answers stand in the log
            self.batch, self.failure = None, error
            raise

    def _issue(self, batch: Batch) -> Array | None:
        """Open a batch; return its answers at once when memory knows them all."""
        answers = np.full(len(batch), np.nan)
        known = np.zeros(len(batch), dtype=bool)
        if not self.plan.fresh or isinstance(self._memory, Stock):
            known = self._memory.look_up(batch.mode, batch.rows, batch.cols, answers)
        bill = self.prices.charges(batch, known)
        self.ledger.reserve(float(bill.sum()))
        wanted = ~known
        if not wanted.any():
            self.log.append(Entry(batch, answers))
            return answers.copy()
        self.batch, self._answers, self._wanted, self._bill = batch, answers, wanted, bill
        return None

    def _finish(self, result: Any) -> None:
        if not isinstance(result, Result):
            raise ParameterError(
                f"{self.plan.name} must return a Result, got {type(result).__name__}"
            )
        self.batch = None
        self.ledger.release()
        self._result = replace(result, cost=self.ledger.spent)

    def _throw(self, reason: Exhausted) -> Result:
        """Tell the plan that the money ran out; it returns its best result so far."""
        try:
            self._generator.throw(reason)
        except StopIteration as stop:
            result: Result = replace(stop.value, status="exhausted")
            return result
        raise ParameterError(
            f"{self.plan.name} must return its best result when the money runs out, but it asked again"
        )

    def exhaust(self) -> Result:
        """End the run here: what is open stays unbought, and the plan returns its best result so far."""
        if not self.finished:
            self._finish(self._throw(Exhausted("the run was ended before the plan was done")))
        return self.result

    def result_so_far(self) -> Result:
        """Return the best result so far without ending the run: a replayed copy is ended instead."""
        if self.finished:
            return self.result
        prices = (
            None if self.plan.prices else self.prices
        )  # the copy pays nothing: all of its log is paid for
        copy = Run.replay(self.plan, self.log, prices=prices, resume=self._resumed, ledger=Ledger())
        return replace(copy.exhaust(), cost=self.ledger.spent, status="running")

    @classmethod
    def replay(
        cls,
        plan: Plan,
        log: Iterable[tuple[Batch, ArrayLike]],
        *,
        known: Observations | None = None,
        budget: float | None = None,
        prices: Prices | None = None,
        resume: Checkpoint | None = None,
        ledger: Ledger | None = None,
    ) -> Run:
        """Return a run that has been told everything in `log`, comparing each batch with it.

        Batches that memory answers whole (``known=``) stand in the log as well.
        """
        run = cls(plan, known=known, budget=budget, prices=prices, resume=resume, ledger=ledger)
        for number, (batch, answers) in enumerate(log):
            if number < run.number:  # memory answered it
                if not run.log[number].batch.same_as(batch):
                    raise ReplayDiverged(diverged(plan, number, run.log[number].batch, batch))
                continue
            if run.batch is None or not run.batch.same_as(batch):
                raise ReplayDiverged(diverged(plan, number, run.batch, batch))
            given = np.asarray(answers, dtype=np.float64)
            at = run.open
            run.tell(
                [None if np.isnan(x) else x for x in given[at]]
                if np.isnan(given).any()
                else given[at],
                at,
            )
        return run

    def remember(self, mode: str, rows: Indices, cols: Indices, values: Array) -> None:
        """Add answers that came from elsewhere to the memory of this run."""
        self._memory.add(mode, rows, cols, values)

    def _remember_known(self, known: Observations) -> None:
        shape = self.plan.shape
        if shape is not None and any(
            s is not None and s != k for s, k in zip(shape, known.shape, strict=True)
        ):
            raise ParameterError(
                f"known entries have shape {known.shape}, {self.plan.name} is about {shape}; they must agree"
            )
        if self.plan.symmetric:
            refuse_asymmetry(known)
        self.remember("entry", known.rows, known.cols, known.values)


def diverged(plan: Plan, number: int, asked: Batch | None, logged: Batch) -> str:
    """Return in words how what a plan asks differs from what the log holds."""
    if asked is None:
        return f"{plan.name} ended before batch {number}, which the log holds; fork the study to use its answers as memory"
    k = 0
    if len(asked) == len(logged):
        k = int(np.argmax((asked.rows != logged.rows) | (asked.cols != logged.cols)))
    k = min(k, len(asked) - 1, len(logged) - 1)
    return (
        f"batch {number} of {plan.name} asks for ({asked.rows[k]}, {asked.cols[k]}) by {asked.mode} at position {k} where the "
        f"log has ({logged.rows[k]}, {logged.cols[k]}) by {logged.mode}; fork the study to use its answers as memory"
    )


def _flat_positions(positions: ArrayLike, size: int) -> Indices:
    at = np.atleast_1d(np.asarray(positions))
    if at.size == 0:
        return np.zeros(0, np.int64)
    if at.ndim != 1 or at.dtype.kind not in "iu":
        raise TellError(f"positions must be whole numbers in a flat list, got {positions!r}")
    if at.min() < 0 or at.max() >= size:
        raise TellError(
            f"positions must be in 0..{size - 1}, got {at.min() if at.min() < 0 else at.max()}"
        )
    return at.astype(np.int64)


def refuse_asymmetry(known: Observations) -> None:
    """Refuse known entries (i, j) and (j, i) that differ."""
    n = known.shape[1]
    key = np.minimum(known.rows, known.cols) * n + np.maximum(known.rows, known.cols)
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0)
    a, b = order[same], order[same + 1]
    scale = np.abs(known.values).max(initial=0.0)
    off = np.flatnonzero(np.abs(known.values[a] - known.values[b]) > 1e-8 * scale)
    if len(off):
        a, b = a[off[0]], b[off[0]]
        raise AnswerError(
            f"entries ({known.rows[a]}, {known.cols[a]}) = {known.values[a]:g} and ({known.rows[b]}, {known.cols[b]}) = "
            f"{known.values[b]:g} must be equal in a symmetric matrix; mend one"
        )
