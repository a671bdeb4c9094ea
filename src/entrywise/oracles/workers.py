"""Oracles whose answers take their time: functions in an executor, commands of the system.

An exception, a timeout or a non-zero exit is not an answer: the question is asked again, and given
back by raising when it fails too often. Only None is a failed measurement, which is told and paid.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from typing import Any, NamedTuple

import numpy as np

from entrywise.exceptions import AnswerError, OracleError, ParameterError
from entrywise.oracles.oracle import CountingOracle, Names
from entrywise.queries import Batch
from entrywise.types import Array, Indices

FAILED = ("failed", "none")  # what a command may print for a measurement that failed


class _Try(NamedTuple):
    """One attempt at a question."""

    position: int
    number: int  # attempts before this one
    until: float


class ExecutorOracle(CountingOracle):
    """Answers by calling ``function(row, col)`` in any ``concurrent.futures.Executor``.

    Parameters
    ----------
    function : callable
        Returns a number, or None where the measurement failed. It is called with labels where there
        are labels.
    executor : Executor
        Threads, processes, or Dask's ``client.get_executor(pure=False)`` (a pure future would not
        measure twice). A process pool that broke is built again.
    timeout : float
        Seconds after which an answer is not waited for any more. An executor cannot stop what runs:
        the worker stays busy until the function gives up.
    retries : int
        How often a question is asked again after an exception or a timeout; then it is given back:
        the answers of the others are told, and the exception is raised.
    width : int, optional
        Questions worked on at once; the executor's number of workers when it says so.

    Examples
    --------
    >>> import entrywise as ew
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from entrywise.active import adaptive_nystrom
    >>> oracle = ExecutorOracle(lambda i, j: float(i * j), ThreadPoolExecutor(2), timeout=5)
    >>> ew.play(adaptive_nystrom(6), oracle).rank
    1
    """

    def __init__(
        self,
        function: Callable[..., Any],
        executor: Executor,
        *,
        timeout: float,
        retries: int = 2,
        width: int | None = None,
        row_labels: Sequence[str] | None = None,
        col_labels: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if not timeout > 0 or retries < 0 or (width is not None and width < 1):
            raise ParameterError(
                "timeout must be above 0, retries 0 or more, width 1 or more, "
                f"got {timeout}, {retries}, {width}"
            )
        self.function, self.executor = function, executor
        self.timeout, self.retries = timeout, retries
        self.width = width or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self.names = Names(row_labels, col_labels)
        self._lock = threading.Lock()

    def __call__(self, batch: Batch) -> Array:
        """Return all answers of a batch; :meth:`submit` counts them."""
        return self.answer(batch)

    def answer(self, batch: Batch) -> Array:
        """Return all answers of a batch, None standing for a failed measurement."""
        found = np.empty(len(batch), dtype=object)
        for at, values in self.submit(batch):
            found[at] = values
        if any(x is None for x in found):
            return found
        return found.astype(np.float64)

    def submit(self, batch: Batch) -> Iterator[tuple[Indices, list[Any]]]:
        """Yield (positions, values) as they come."""
        self.calls += 1
        entries = self.names(batch)
        waiting = deque((k, 0) for k in range(len(batch)))
        running: dict[Future[Any], _Try] = {}
        trouble: BaseException | None = None
        try:
            while running or (waiting and trouble is None):
                while waiting and trouble is None and len(running) < self.width:
                    k, tries = waiting.popleft()
                    future = self._start(*entries[k])
                    running[future] = _Try(k, tries, time.monotonic() + self.timeout)
                for future, attempt in self._ended(running):
                    error = self._error(future, entries[attempt.position])
                    if error is None:
                        self.spent += 1
                        yield np.array([attempt.position]), [future.result()]
                    elif attempt.number < self.retries:
                        waiting.append((attempt.position, attempt.number + 1))
                    else:
                        trouble = trouble or error
        finally:
            for future in running:
                future.cancel()
        if trouble is not None:
            raise trouble

    def _ended(self, running: dict[Future[Any], _Try]) -> list[tuple[Future[Any], _Try]]:
        """Take out of `running`, and return, what is done or late; wait until something is."""
        soonest = min(attempt.until for attempt in running.values())
        patience = max(0.0, soonest - time.monotonic())
        done, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
        now = time.monotonic()
        ended = [f for f, attempt in running.items() if f in done or attempt.until <= now]
        return [(future, running.pop(future)) for future in ended]

    def _error(self, future: Future[Any], entry: tuple[Any, Any]) -> BaseException | None:
        """Return why there is no answer, if there is none."""
        if future.cancelled() or not future.done():
            future.cancel()
            return OracleError(
                f"entry {entry} got no answer in {self.timeout:g} seconds; raise the timeout"
            )
        error = future.exception()
        if error is not None:
            error.add_note(f"while entry {entry} was measured, {self.retries + 1} times")
        return error

    def _start(self, row: Any, col: Any) -> Future[Any]:
        """Begin to measure; a pool that broke is built again first."""
        pool = self.executor
        try:
            return pool.submit(self.function, row, col)
        except BrokenExecutor:
            with self._lock:
                if self.executor is pool:
                    self.executor = _rebuilt(pool)
            return self.executor.submit(self.function, row, col)


def _rebuilt(pool: Executor) -> Executor:
    """Return a new pool made as the broken one was."""
    names = ("max_workers", "mp_context", "initializer", "initargs")
    how = {name: getattr(pool, f"_{name}") for name in names if hasattr(pool, f"_{name}")}
    pool.shutdown(wait=False, cancel_futures=True)
    return type(pool)(**how)


class CommandOracle(ExecutorOracle):
    """Answers with the last line that a command prints, a number or ``failed``.

    Parameters
    ----------
    command : str
        The command with ``{row}`` and ``{col}`` where labels (or numbers) go. It is split into
        arguments once; no shell sees it. A label that begins with a dash looks like an option:
        write ``judge -- {row} {col}`` where that may happen.
    timeout : float
        Seconds after which the command and what it started are killed.
    retries : int
        How often a command that failed is run again.
    backoff : float
        Seconds before the first retry; they double each time.
    width : int
        Commands run at a time.

    Examples
    --------
    >>> CommandOracle("expr {row} + {col}", timeout=10)(Batch.entries([1, 2], [3, 4]))
    array([4., 6.])
    """

    def __init__(
        self,
        command: str,
        *,
        timeout: float,
        retries: int = 2,
        backoff: float = 1.0,
        width: int = 1,
        row_labels: Sequence[str] | None = None,
        col_labels: Sequence[str] | None = None,
    ) -> None:
        self.arguments = shlex.split(command)
        if not self.arguments or not any("{row}" in a or "{col}" in a for a in self.arguments):
            raise ParameterError(
                f"a command must name the entry by {{row}} and {{col}}, got {command!r}"
            )
        if not backoff >= 0:
            raise ParameterError(f"backoff must not be below 0, got {backoff}")
        self.backoff, self.attempts = backoff, retries + 1
        self.seconds = timeout
        super().__init__(
            self._measure,
            ThreadPoolExecutor(width, thread_name_prefix="command"),
            # the command itself is killed in time; the thread waits for all its attempts
            timeout=(timeout + backoff * 2.0**retries) * self.attempts + 60.0,
            retries=0,
            width=width,
            row_labels=row_labels,
            col_labels=col_labels,
        )

    def _measure(self, row: Any, col: Any) -> float | None:
        """Run the command until it answers, a few times."""
        for attempt in range(self.attempts):
            try:
                return self._once(str(row), str(col))
            except (OracleError, AnswerError, OSError):
                if attempt + 1 == self.attempts:
                    raise
                time.sleep(self.backoff * 2.0**attempt)
        raise AssertionError("there is at least one attempt")

    def _once(self, row: str, col: str) -> float | None:
        filled = [a.replace("{row}", row).replace("{col}", col) for a in self.arguments]
        with subprocess.Popen(
            filled,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                printed, complaint = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                _kill(process)
                raise OracleError(
                    f"{shlex.join(filled)} gave no answer in {self.seconds:g} seconds"
                ) from None
            except BaseException:
                _kill(process)
                raise
        if process.returncode != 0:
            last = (complaint.strip().splitlines() or ["no word"])[-1]
            raise OracleError(f"{shlex.join(filled)} ended with {process.returncode}: {last}")
        return _last_number(printed, shlex.join(filled))


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a command and what it started."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _last_number(printed: str, command: str) -> float | None:
    """Return the number on the last line, None for a failed measurement."""
    last = (printed.strip().splitlines() or [""])[-1].strip()
    if last.lower() in FAILED:
        return None
    try:
        return float(last)
    except ValueError:
        raise AnswerError(
            f"the last line that {command} prints must be a number or failed, got {last!r}"
        ) from None
