"""Run a plan against an oracle to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from entrywise.compiling import NOTICE
from entrywise.exceptions import OracleError
from entrywise.oracles import Oracle
from entrywise.queries import Batch, Plan, Prices
from entrywise.run import Known, Run
from entrywise.types import Indices


def play(
    plan: Plan | Run,
    oracle: Oracle,
    *,
    budget: float | None = None,
    prices: Prices | None = None,
    known: Known | None = None,
    progress: bool | Callable[[Run], None] = False,
) -> Any:
    """Play `plan` against `oracle` to its end and return its result.

    Parameters
    ----------
    plan : Plan or Run
        A run goes on where it stands; budget, prices and known are its own then.
    oracle : callable
        Takes a :class:`~entrywise.queries.Batch`, returns one number a position (None where a
        measurement failed). If it raises, the exception carries ``.run``: play that run to go on;
        what was answered before is not asked again. One that offers ``submit`` is told about as its
        answers come, see :mod:`entrywise.oracles`.
    budget : float, optional
        Never exceeded. When the next batch cannot be paid whole, the best result so far is returned.
    prices : Prices, optional
    known : Observations, optional
        Entries known beforehand: used, and free. A mapping where several instruments said them.
    progress : bool or callable
        True draws a bar on stderr; a callable is called with the run after each batch.

    Examples
    --------
    >>> import numpy as np
    >>> from entrywise.active import adaptive_nystrom
    >>> from entrywise.oracles import MatrixOracle
    >>> x = np.arange(6.0)
    >>> found = play(adaptive_nystrom(6), MatrixOracle(np.outer(x, x)))
    >>> found.rank, found.cost
    (1, 11.0)
    """
    run = plan if isinstance(plan, Run) else Run(plan, budget=budget, prices=prices, known=known)
    drive = _flow if hasattr(oracle, "submit") else _rounds
    with _bar(run, progress) as tick:
        try:
            drive(run, oracle, tick)
        except Exception as error:
            error.run = run  # type: ignore[attr-defined]
            raise
    return run.result


def _rounds(run: Run, oracle: Oracle, tick: Callable[[Run], None]) -> None:
    """Ask all that is open, tell all of it, and so on."""
    while (wanted := run.ask()) is not None:
        run.tell(oracle(wanted))
        tick(run)


def _flow(run: Run, oracle: Any, tick: Callable[[Run], None]) -> None:
    """Keep an oracle busy that answers as it can; tell each answer as it comes.

    When it raises, what the others are working on is awaited and told first: it is paid for.
    """
    out: set[int] = set()
    came: SimpleQueue[_Came] = SimpleQueue()
    trouble: BaseException | None = None
    while not run.finished:
        if trouble is None:
            _hand_out(run, oracle, out, came)
        if not out:
            break
        at, values, error = came.get()
        out.difference_update(at.tolist())
        try:
            if error is None:
                run.tell(values, at)
                tick(run)
        except Exception as refused:
            error = refused
        trouble = trouble or error
    if trouble is not None:
        raise trouble


class _Came(NamedTuple):
    """What came back: answers to some positions, or the error that ended the work on them."""

    positions: Indices
    values: Any
    error: BaseException | None


def _hand_out(run: Run, oracle: Any, out: set[int], came: SimpleQueue[_Came]) -> None:
    """Give the oracle as much as it can work on at once; a batch plan waits for all, so it gets all."""
    width = oracle.width if run.plan.streaming else None
    run.ask(width)
    free = np.array([k for k in run.open.tolist() if k not in out], np.int64)
    if width is not None:
        free = free[: max(width - len(out), 0)]
    if not len(free) or run.batch is None:
        return
    free = run.alike(free)
    out.update(free.tolist())
    work = (oracle, run.asked(free), free, came)
    threading.Thread(target=_work, args=work, daemon=True).start()


def _work(oracle: Any, batch: Batch, positions: Indices, came: SimpleQueue[_Came]) -> None:
    """Pass answers on as they come."""
    left = set(range(len(batch)))
    error: BaseException | None = None
    try:
        for at, values in oracle.submit(batch):
            at = np.atleast_1d(np.asarray(at, np.int64))
            left.difference_update(at.tolist())
            came.put(_Came(positions[at], values, None))
        if left:
            error = OracleError(
                f"the oracle gave no answer to {len(left)} questions; give one each"
            )
    except BaseException as raised:
        error = raised
    if error is not None:
        came.put(_Came(positions[sorted(left)], None, error))


class _bar:
    """A progress bar over the money, or over the answers when there is no budget."""

    def __init__(self, run: Run, progress: bool | Callable[[Run], None]) -> None:
        self.run, self.progress = run, progress
        self.shown = ExitStack()

    def __enter__(self) -> Callable[[Run], None]:
        if callable(self.progress):
            return self.progress
        if not self.progress:
            return lambda run: None
        import sys

        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self.shown.enter_context(NOTICE.unsaid())
        bar = self.shown.enter_context(Progress(*columns, console=Console(file=sys.stderr)))
        total = None if self.run.ledger.budget is None else round(self.run.ledger.budget)
        task = bar.add_task(f"{self.run.plan.name}", total=total)
        return lambda run: bar.update(
            task, completed=round(run.ledger.spent) if total else run.measured
        )

    def __exit__(self, *exc: object) -> None:
        self.shown.close()
