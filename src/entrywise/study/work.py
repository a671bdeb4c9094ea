"""Workers: threads that ask, measure and tell until a study is finished.

An exception of the oracle is not an answer: the questions are tried again, then given back, and after several
failures in a row the worker stops and raises the last one. Only None is told as failed, since a failure is charged.
"""

from __future__ import annotations

import math
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from entrywise.exceptions import EntrywiseError, ParameterError
from entrywise.oracles import Oracle
from entrywise.study.entries import number
from entrywise.study.records import ANY, Filter, Leased, Told
from entrywise.study.status import standing
from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.study.study import Study

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 1.0  # seconds between looks while others hold what is open


@dataclass
class Work:
    """How workers go about it, and what became of it so far."""

    study: Study
    oracle: Oracle
    workers: int = 4
    chunk: int | None = None
    whole: bool = False
    lease: float = 3600.0
    wanted: Filter = ANY
    retries: int = 2
    backoff: float = 0.1
    give_up: int = 3
    on_error: str = "return"
    progress: Callable[[Work], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    told: int = 0
    returned: int = 0  # questions given back after exceptions
    last_error: BaseException | None = None


def work(
    study: Study,
    oracle: Oracle,
    *,
    workers: int = 4,
    worker: str | None = None,
    rows: Any = None,
    cols: Any = None,
    mode: str | None = None,
    **options: Any,
) -> Work:
    """Let `oracle` answer a study's questions in `workers` threads until it is finished or closed.

    Parameters
    ----------
    worker : str, optional
        How these workers are called; a number is added.
    rows, cols, mode : optional
        The only questions that this oracle can answer, as in :meth:`~entrywise.study.Study.ask`.
    chunk : int, optional
        Questions that a thread takes at a time; by default a fair share of what is open.
    whole : bool
        Take all that is open, and let the plan go on once all of it is told.
    lease : float
        Seconds after which another worker may take over what a dead one held.
    retries, backoff : optional
        How often questions are tried again after an exception, and the seconds before the first retry (they double).
    give_up : int
        After so many failures in a row a worker stops and raises.
    on_error : {"return", "fail"}
        Give questions back that raised, or tell them as failed (which is charged).
    progress : callable, optional
        Called with the :class:`Work` after each tell.
    """
    labels = study.labels
    wanted = Filter(labels.lines("row", rows), labels.lines("col", cols), mode)
    job = Work(study, oracle, workers=workers, wanted=wanted, **options)
    if workers < 1 or (job.chunk is not None and job.chunk < 1):
        raise ParameterError(f"workers and chunk must be at least 1, got {workers} and {job.chunk}")
    if job.on_error not in ("return", "fail"):
        raise ParameterError(f"on_error must be return or fail, got {job.on_error!r}")
    name = worker or f"{socket.gethostname()}-{os.getpid()}"
    if workers == 1:
        _loop(job, f"{name}-0")
        return job
    errors: list[BaseException] = []

    def one(k: int) -> None:
        try:
            _loop(job, f"{name}-{k}")
        except BaseException as error:
            errors.append(error)
            job.stop.set()

    threads = [threading.Thread(target=one, args=(k,), daemon=True) for k in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    finally:
        job.stop.set()
    if errors:
        raise errors[0]
    return job


def _loop(job: Work, worker: str) -> None:
    """Ask, measure and tell until there is nothing left to do."""
    study, pause, failures = job.study, _FIRST_PAUSE, 0
    while not job.stop.is_set():
        leased, state = study.take(_share(job), worker, job.lease, job.wanted)
        if state != "open":
            return
        if leased is None:
            job.stop.wait(pause * (0.5 + random.random()))  # others hold what is open
            pause = min(_LONGEST_PAUSE, 1.5 * pause)
            continue
        pause = _FIRST_PAUSE
        try:
            error = _measure(job, leased, worker)
        except BaseException:
            study.release(worker)  # what we hold is free for others at once
            raise
        failures = 0 if error is None else failures + 1
        if error is not None:
            job.returned += study.release(worker)
            job.last_error = error
            if failures >= job.give_up:
                error.add_note(f"worker {worker} stopped after {failures} failures in a row")
                raise error


def _share(job: Work) -> int | None:
    if job.whole or job.chunk is not None:
        return job.chunk
    open_ = standing(job.study.store, job.study.name).open
    width = getattr(job.oracle, "width", 1)
    return max(1, int(width), math.ceil(open_ / (2 * job.workers)))


def _measure(job: Work, leased: Leased, worker: str) -> Exception | None:
    """Answer questions and tell them as they come; return why some got no answer."""
    trouble: Exception | None = None
    for part in leased.parts():
        left = part
        for attempt in range(job.retries + 1):
            try:
                for at, values in answers(job.oracle, leased, left):
                    _tell(job, leased, at, values, worker)
                    left = np.setdiff1d(left, at)
                break
            except EntrywiseError as error:
                if not _of_the_oracle(error):
                    raise
                trouble = error
            except Exception as error:
                trouble = error
            if attempt < job.retries and job.stop.wait(job.backoff * 2.0**attempt):
                break
        if len(left) and job.on_error == "fail":
            _tell(job, leased, left, np.full(len(left), np.nan), worker)
            trouble = None
        elif not len(left):
            trouble = None
        if trouble is not None:
            return trouble
    return trouble


def _of_the_oracle(error: EntrywiseError) -> bool:
    from entrywise.exceptions import AnswerError, OracleError

    return isinstance(error, AnswerError | OracleError)


def _tell(job: Work, leased: Leased, at: Indices, values: Array, worker: str) -> None:
    told = Told(leased.batches[at], leased.positions[at], values, np.isnan(values))
    job.study.put(told, worker)
    job.told += len(at)
    if job.progress is not None:
        job.progress(job)


def answers(oracle: Oracle, leased: Leased, at: Indices) -> Iterator[tuple[Indices, Array]]:
    """Go through what an oracle says to leased questions: (places, values), NaN where one failed."""
    batch = leased.to_batch(at)
    submit = getattr(oracle, "submit", None)
    if submit is None:
        yield at, _numbers(oracle(batch), leased, at)
        return
    for positions, values in submit(batch):
        yield at[positions], _numbers(values, leased, at[positions])


def answer(oracle: Oracle, leased: Leased) -> Told:
    """Return what an oracle says to leased questions of one mode."""
    at = np.arange(len(leased))
    values = _numbers(oracle(leased.to_batch()), leased, at)
    return Told(leased.batches, leased.positions, values, np.isnan(values))


def _numbers(found: Any, leased: Leased, at: Indices) -> Array:
    """Return answers as numbers, NaN where one failed; refuse what is none."""
    numbers = getattr(found, "dtype", None) == np.float64
    values = np.array(found if numbers else [number(x) for x in found], np.float64)
    if values.shape != at.shape:
        raise ParameterError(
            f"the oracle must give one answer for each of {len(at)} questions, gave {values.shape}"
        )
    if numbers and not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        entry = (int(leased.rows[at[k]]), int(leased.cols[at[k]]))
        raise ParameterError(
            f"the oracle answered {values[k]} for entry {entry}; give a finite number, None where one failed"
        )
    return values
