"""Who works on the blocks: this process in threads, an executor, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol

from entrywise.exceptions import ParameterError
from entrywise.linalg.variational import thread_count

BLOCKS_A_WORKER = 2  # so that a slow worker does not hold the others up for long
TRIES = 5  # of a task whose worker died before it is given up


class Engine(Protocol):
    """Makes a task of each job and returns what they return, in order."""

    blocks: int  # jobs that it likes to get at a time

    def map(self, task: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
        """Return the result of each job, in order."""
        ...


class Threads:
    """This process; the compiled kernels let go of the interpreter."""

    def __init__(self) -> None:
        self.width = self.blocks = thread_count()

    def map(self, task: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
        """Return the result of each job, in order."""
        if self.width == 1 or len(jobs) == 1:
            return [task(job) for job in jobs]
        with ThreadPoolExecutor(self.width) as pool:
            return list(pool.map(task, jobs))


class Executed:
    """Any ``concurrent.futures.Executor`` whose workers see the folder."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        workers = int(getattr(executor, "_max_workers", 0)) or thread_count()
        self.blocks = BLOCKS_A_WORKER * workers

    def map(self, task: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
        """Return the result of each job, in order."""
        return list(self.executor.map(task, jobs))


class Dask:
    """A Dask cluster whose workers see the folder; tasks of a worker that dies are made again elsewhere."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.blocks = BLOCKS_A_WORKER * max(1, sum(client.nthreads().values()))

    def map(self, task: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
        """Return the result of each job, in order."""
        futures = self.client.map(task, list(jobs), pure=False, retries=TRIES)
        found: list[Any] = self.client.gather(futures)
        return found


def engine_of(given: Any) -> Engine:
    """Return the engine for None, an executor, or a Dask client."""
    if given is None:
        return Threads()
    if isinstance(given, Executor):
        return Executed(given)
    if hasattr(given, "gather") and hasattr(given, "nthreads"):
        return Dask(given)
    raise ParameterError(
        f"engine must be None, a concurrent.futures.Executor or a dask Client, got {type(given).__name__}"
    )
