"""What requests of the same moment want of the database is done together, in one go for all of them.

Who comes first is served at once. Who comes meanwhile waits, and is then served together with all who came. So nobody
waits for company, and the more come, the less each of them costs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


class Together(Generic[Item, Found]):
    """Work of one kind, done in a thread of `pool` by ``work(items)``.

    It returns for each item what was found, or why it was refused; where it raises itself, all are told so.
    """

    def __init__(
        self, pool: ThreadPoolExecutor, work: Callable[[list[Item]], Sequence[Found | Exception]]
    ) -> None:
        self._pool, self._work = pool, work
        self._alone = threading.Lock()
        self._waiting: dict[Hashable, list[tuple[Item, Future[Found]]]] = {}

    def submit(self, key: Hashable, item: Item) -> Future[Found]:
        """Have something done, together with what waits under the same key."""
        made: Future[Found] = Future()
        with self._alone:
            first = key not in self._waiting  # nobody is at it
            self._waiting.setdefault(key, []).append((item, made))
        if first:
            self._pool.submit(self._serve, key)
        return made

    def _serve(self, key: Hashable) -> None:
        """Do all that waits; what comes meanwhile has its turn behind what others wait for."""
        with self._alone:
            calls, self._waiting[key] = self._waiting[key], []
        self._do([call for call in calls if call[1].set_running_or_notify_cancel()])
        with self._alone:
            more = bool(self._waiting[key])
            if not more:
                del self._waiting[key]
        if more:
            self._pool.submit(self._serve, key)

    def _do(self, calls: list[tuple[Item, Future[Found]]]) -> None:
        found: Sequence[Found | Exception]
        try:
            found = self._work([item for item, _ in calls])
        except Exception as error:
            found = [error] * len(calls)
        for (_, made), what in zip(calls, found, strict=True):
            if isinstance(what, Exception):
                made.set_exception(what)
            else:
                made.set_result(what)
