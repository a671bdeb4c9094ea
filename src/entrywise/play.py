"""Run a plan against an oracle to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrywise.exceptions import EntrywiseError
from entrywise.observations import Observations
from entrywise.oracles import Oracle
from entrywise.queries import Plan, Prices
from entrywise.run import Run


def play(
    plan: Plan | Run,
    oracle: Oracle,
    *,
    budget: float | None = None,
    prices: Prices | None = None,
    known: Observations | None = None,
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
        what was answered before is not asked again.
    budget : float, optional
        Never exceeded. When the next batch cannot be paid whole, the best result so far is returned.
    prices : Prices, optional
    known : Observations, optional
        Entries known beforehand: used, and free.
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
    with _bar(run, progress) as tick:
        while not run.finished:
            wanted = run.ask()
            try:
                answers = oracle(wanted)  # type: ignore[arg-type]
                run.tell(answers)
            except EntrywiseError as error:
                error.run = run
                raise
            except Exception as error:
                error.run = run  # type: ignore[attr-defined]
                raise
            tick(run)
    return run.result


class _bar:
    """A progress bar over the money, or over the answers when there is no budget."""

    def __init__(self, run: Run, progress: bool | Callable[[Run], None]) -> None:
        self.run, self.progress = run, progress
        self.bar: Any = None

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
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self.bar = Progress(*columns, console=Console(file=sys.stderr))
        self.bar.start()
        total = None if self.run.ledger.budget is None else round(self.run.ledger.budget)
        task = self.bar.add_task(f"{self.run.plan.name}", total=total)
        return lambda run: self.bar.update(
            task, completed=round(run.ledger.spent) if total else run.measured
        )

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.stop()
