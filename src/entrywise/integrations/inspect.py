"""Inspect: an early-stopping manager that runs the samples a study asks for and tells it their scores.

A round is one evaluation: the study is asked what is worth its price for this model now, those samples run, all others are
stopped, and Inspect's own log says which and why. :func:`evaluate` makes rounds until there is nothing left to ask.
Needs the extra ``inspect``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from entrywise.exceptions import DataError, StoreError
from entrywise.formats import Cell, ScoredCells, keyed, load, parted, same_content
from entrywise.formats.inspect import content, scored
from entrywise.formats.source import chosen
from entrywise.integrations.telling import Kept, tell_cells
from entrywise.study import Question, Study

LEASE = 86400.0  # seconds that an evaluation may take
NAME = "entrywise"


class StudyStopping:
    """Inspect's ``EarlyStopping`` over a study: for one model at a time, ``Task(..., early_stopping=StudyStopping(study))``.

    Parameters
    ----------
    study : Study
        Rows are models, columns ``task:sample`` or ``task:sample#hash``, as ``entrywise convert LOG --to columns`` writes them.
    row : str, optional
        What the study calls the model; Inspect's name of it when left out.
    scorer : str, optional
        Whose score is told, where a task has several.
    limit : int, optional
        At most so many samples in a round.
    worker : str, optional
        Who holds the questions. What the same worker held before, and lost when it was killed, is given back first.
    """

    def __init__(
        self,
        study: Study,
        *,
        row: str | None = None,
        scorer: str | None = None,
        limit: int | None = None,
        worker: str | None = None,
        lease: float = LEASE,
    ) -> None:
        self.study = study
        self.row = row
        self.scorer = scorer
        self.limit = limit
        self.worker = worker
        self.lease = lease
        self.told = self.failed = self.stopped = 0
        self._cols: dict[str, str] = {}  # the column of each sample
        self._asked: dict[str, list[Question]] = {}  # by column: asked k times, run in k epochs
        self._running: dict[tuple[str, int], Question] = {}
        self._busy = False

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:
        """Ask what to run of this task for this model; refuse a benchmark whose content changed."""
        if self._busy:
            raise StoreError(
                "this manager serves one model at a time; give each evaluation its own"
            )
        self._busy = True
        row = self.row or str(task.model)
        self.row, self.worker = row, self.worker or f"{NAME} {row}"
        self._cols = self._columns(str(task.task), samples)
        await _in_thread(self._ask)
        return NAME

    def _columns(self, task: str, samples: Sequence[Any]) -> dict[str, str]:
        """Return the column of each sample that the study knows, by the sample's id."""
        known = self.study.labels.cols or ()
        ids = [str(sample.id) for sample in samples]
        cells = tuple(
            Cell("", keyed(task, name, content(sample)), None)
            for name, sample in zip(ids, samples, strict=True)
        )
        labels = same_content(ScoredCells(cells, f"task {task!r}"), known).cells
        there = set(known)
        found = {
            name: cell.col for name, cell in zip(ids, labels, strict=True) if cell.col in there
        }
        if not found:
            raise DataError(
                f"study {self.study.name!r} has no column such as {cells[0].col!r}; it must name the samples of task {task!r}"
            )
        return found

    def _ask(self) -> None:
        self.study.release(self.worker)
        asked = self.study.ask(
            self.limit,
            self.worker,
            self.lease,
            rows=[self.row],
            cols=list(self._cols.values()),
        )
        for question in asked:
            self._asked.setdefault(str(question.col), []).append(question)

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Let a sample run where the study asked for it, once for every time it did; stop it otherwise."""
        key = (str(id), epoch)
        waiting = self._asked.get(self._cols.get(str(id), ""))
        if key in self._running:  # tried again after an error
            return None
        if waiting:
            self._running[key] = waiting.pop(0)
            return None
        from inspect_ai.util import EarlyStop

        self.stopped += 1
        if str(id) not in self._cols:
            reason = f"no column of study {self.study.name!r}"
        else:
            reason = f"study {self.study.name!r} does not ask for it now: others are worth more for their price"
        return EarlyStop(id=id, epoch=epoch, reason=reason)

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:
        """Tell the study a score as soon as it is there; a sample without one is told at the end."""
        question = self._running.get((str(id), epoch))
        if question is None or not scores:
            return
        where = f"sample {id}"
        one = scores[chosen(self.scorer, list(scores), where, "scorer")]
        value = scored(one.score.value, where)
        if value is None:
            return
        await _in_thread(self.study.tell, [(question.id, value)], self.worker)
        del self._running[str(id), epoch]
        self.told += 1

    async def complete_task(self) -> dict[str, Any]:
        """Tell the study which samples failed, give back what did not run, and return what Inspect's log keeps."""
        lost = list(self._running.values())
        self._running.clear()
        self._asked.clear()
        await _in_thread(self._finish, lost)
        self.failed += len(lost)
        self._busy = False
        now = await _in_thread(self.study.status)
        kept = {"study": self.study.name, "row": self.row, "told": self.told, "failed": self.failed}
        money = {name: _plain(now[name]) for name in ("spent", "budget", "state")}
        return {**kept, "stopped": self.stopped, **money}

    def _finish(self, lost: Sequence[Question]) -> None:
        if lost:
            self.study.tell([(question.id, None) for question in lost], self.worker)
        self.study.release(self.worker)


def evaluate(
    study: Study,
    task: Any,
    models: Sequence[Any],
    *,
    rows: Mapping[str, str] | None = None,
    scorer: str | None = None,
    limit: int | None = None,
    **options: Any,
) -> list[Any]:
    """Evaluate models over one study, a round each in turn, until it asks for nothing more; return Inspect's logs.

    Parameters
    ----------
    task : Task
        Copied for each round.
    models : sequence of str or Model
    rows : mapping of Inspect's names to the study's, optional
    scorer, limit
        As of :class:`StudyStopping`.
    options
        Of ``inspect_ai.eval``; a sample with an error is failed and the round goes on, unless ``fail_on_error`` says otherwise.
        With ``log_dir`` every sample is logged as it ends, and what an evaluation that was killed left there is told first.
    """
    from inspect_ai import eval as run_eval
    from inspect_ai import task_with

    options = {"fail_on_error": False, "log_buffer": 1, **options}
    if "log_dir" in options:
        recover(study, options["log_dir"], rows=rows, scorer=scorer)
    logs = []
    while study.state == "open":
        ran = 0
        for model in models:
            row = (rows or {}).get(str(model))
            manager = StudyStopping(study, row=row, scorer=scorer, limit=limit)
            (log,) = run_eval(task_with(task, early_stopping=manager), model=model, **options)
            if log.status != "success":
                raise StoreError(
                    f"Inspect's evaluation of {model} ended as {log.status}: {log.error}"
                )
            logs.append(log)
            ran += manager.told + manager.failed
        if not ran:
            break
    return logs


def recover(
    study: Study,
    log_dir: str | os.PathLike[str],
    *,
    rows: Mapping[str, str] | None = None,
    scorer: str | None = None,
) -> Kept:
    """Tell a study what Inspect logged and nobody told, since the evaluation was killed; told twice is harmless."""
    if not any(Path(log_dir).rglob("*.eval")):
        return Kept(0, 0, 0)
    found = load(log_dir, "inspect", metric=scorer)
    assert isinstance(found, ScoredCells)
    called = [cell._replace(row=(rows or {}).get(cell.row, cell.row)) for cell in found.cells]
    known = set(study.labels.rows or ())
    ours = tuple(cell for cell in called if cell.row in known)
    return tell_cells(study, replace(found, cells=ours)) if ours else Kept(0, 0, len(found))


def ask(
    study: Study,
    model: str,
    task: str,
    *,
    limit: int | None = None,
    worker: str | None = None,
    lease: float = LEASE,
) -> str:
    """Return the list for ``inspect eval --sample-id``: the samples of a task that are worth their price for this model.

    Empty when nothing is to be run now. ``telling.tell_cells`` or ``recover`` take the scores back from the log.
    """
    start = f"{task}:"
    cols = [col for col in study.labels.cols or () if col.startswith(start)]
    if not cols:
        raise DataError(
            f"study {study.name!r} has no column of task {task!r}, such as {start + '1'!r}"
        )
    asked = study.ask(limit, worker, lease, rows=[model], cols=cols)
    ids = [parted(str(question.col))[0].removeprefix(start) for question in asked]
    bad = next((name for name in ids if "," in name), None)
    if bad is not None:
        study.release(worker)
        raise DataError(
            f"sample {bad!r} has a comma, which --sample-id cannot carry; use StudyStopping"
        )
    return ",".join(dict.fromkeys(ids))


async def _in_thread(function: Any, *args: Any) -> Any:
    """Run what waits for the database, or fits, beside the event loop."""
    from anyio.to_thread import run_sync

    return await run_sync(function, *args)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
