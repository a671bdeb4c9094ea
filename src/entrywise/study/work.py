"""Workers: threads that ask, measure and tell until a study is finished."""

from __future__ import annotations

import math
import os
import random
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.oracles import Oracle
from entrywise.study.entries import number
from entrywise.study.store import Leased, Told

if TYPE_CHECKING:
    from entrywise.study.study import Study


def work(
    study: Study,
    oracle: Oracle,
    *,
    workers: int = 4,
    chunk: int | None = None,
    lease: float = 3600.0,
    worker: str | None = None,
) -> None:
    """Let `oracle` answer a study's questions in `workers` threads until it is finished or closed.

    Parameters
    ----------
    chunk : int, optional
        Questions that a thread takes at a time; by default a fair share of what is open.
    lease : float
        Seconds after which another worker may take over what a dead one held.
    worker : str, optional
        How these workers are called; a number is added.
    """
    if workers < 1 or (chunk is not None and chunk < 1):
        raise ParameterError(f"workers and chunk must be at least 1, got {workers} and {chunk}")
    name = worker or f"{socket.gethostname()}-{os.getpid()}"
    stop, errors = threading.Event(), list[BaseException]()

    def one(k: int) -> None:
        try:
            _loop(study, oracle, f"{name}-{k}", chunk, workers, lease, stop)
        except BaseException as error:
            errors.append(error)
            stop.set()

    if workers == 1:
        _loop(study, oracle, f"{name}-0", chunk, 1, lease, stop)
        return
    threads = [threading.Thread(target=one, args=(k,), daemon=True) for k in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    finally:
        stop.set()
    if errors:
        raise errors[0]


def _loop(
    study: Study,
    oracle: Oracle,
    worker: str,
    chunk: int | None,
    workers: int,
    lease: float,
    stop: threading.Event,
) -> None:
    pause = 0.005
    share = chunk
    while not stop.is_set():
        if chunk is None:
            share = max(
                1,
                math.ceil(
                    study.store.open_counts(study._record.id, study.clock())["open"] / (2 * workers)
                ),
            )
        leased, state = study._lease(share, worker, lease)
        if state != "open":
            return
        if leased is None:
            stop.wait(pause * (0.5 + random.random()))  # others hold what is open
            pause = min(1.0, 1.5 * pause)
            continue
        pause = 0.005
        try:
            told = answer(oracle, leased)
        except BaseException:
            study.release(worker)  # what we hold is free for others at once
            raise
        study.put(told, worker)


def answer(oracle: Oracle, leased: Leased) -> Told:
    """Return what an oracle says to leased questions."""
    found: Any = oracle(leased.to_batch())
    values = np.array(
        [number(x) for x in found] if getattr(found, "dtype", None) != np.float64 else found,
        np.float64,
    )
    if values.shape != leased.positions.shape:
        raise ParameterError(
            f"the oracle must give one answer for each of {len(leased)} questions, gave {values.shape}"
        )
    failed = np.isnan(values)
    if getattr(found, "dtype", None) == np.float64 and not np.isfinite(values).all():
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        entry = (int(leased.rows[k]), int(leased.cols[k]))
        raise ParameterError(
            f"the oracle answered {values[k]} for entry {entry}; give a finite number, None where one failed"
        )
    return Told(np.full(len(leased), leased.batch), leased.positions, values, failed)


def wait_until_finished(study: Study, seconds: float) -> bool:
    """Wait for other workers to finish a study; return whether they did."""
    end = time.monotonic() + seconds
    while not study.finished:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
