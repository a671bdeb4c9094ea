"""What takes long is worked out beside the requests: steps of plans, and what there is to tell of a study.

A request never runs a plan. It asks for work to be done here, waits a moment, and comes back later if that is not enough.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from entrywise.exceptions import EntrywiseError
from entrywise.study import Store, Study
from entrywise.study.records import Filter
from entrywise.study.status import standing
from entrywise.web.story import Story, story

THREADS = 4  # steps and stories under way at once
STUDIES = 256  # studies kept open; others are opened again
REST = 5.0  # a story is told anew after so many times what it took
SHORTEST = 2.0  # seconds between two tellings of a study, at least


Since = tuple[int, int, int]  # of a study: epoch, steps, answers
NEVER: Since = (0, 0, 0)


@dataclass(frozen=True)
class Telling:
    """A story, the state of the study that it tells of, and what it took."""

    story: Story
    mark: tuple[int, int]
    at: float
    took: float

    def reaches(self, since: Since) -> bool:
        """Tell whether the study had come as far as `since` when it was told."""
        now = self.story.now
        here = (now["batches"], now["answered"])
        later = now["epoch"] > since[0]
        same = now["epoch"] == since[0] and here[0] >= since[1] and here[1] >= since[2]
        return bool(later or same)


class Background:
    """Steps and stories of the studies in one store, worked out by a few threads."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="entrywise")
        self._alone = threading.Lock()
        self._studies: dict[str, Study] = {}
        self._jobs: dict[Any, Future[Any]] = {}
        self._told: dict[str, Telling] = {}

    def close(self) -> None:
        """Finish what is under way and stop."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def study(self, name: str) -> Study:
        """Return a study; one that is not there is refused."""
        made_at = self.store.record(name).created_at
        with self._alone:
            found = self._studies.get(name)
        if found is None or found.record.created_at != made_at:
            found = Study.open(self.store, name)
            with self._alone:
                if len(self._studies) >= STUDIES:
                    self._studies.pop(next(iter(self._studies)))
                self._studies[name] = found
        return found

    def forget(self, name: str) -> None:
        """Open a study anew when it is next wanted: it was changed or deleted."""
        with self._alone:
            self._studies.pop(name, None)
            self._told.pop(name, None)

    def mark(self, name: str) -> str:
        """Return a word that is another one as soon as something happened in a study."""
        now = standing(self.store, name)
        return f"{now.record.cursor}-{now.open}-{now.leased}-{now.record.state}"

    def step(
        self, name: str, wanted: Filter | None = None, limit: int | None = None
    ) -> Future[Any]:
        """Have the next questions worked out, if there is something to work out."""
        filter_ = wanted or Filter()

        def advance() -> None:
            with contextlib.suppress(EntrywiseError):  # it is noted as a trouble of the study
                self.study(name).advance(filter_, limit)

        return self.job(("step", name, filter_, limit), advance)

    def job(self, key: Any, work: Callable[[], Any]) -> Future[Any]:
        """Have something done once, however many ask for it at the same time."""
        with self._alone:
            under_way = self._jobs.get(key)
            if under_way is not None and not under_way.done():
                return under_way
            self._jobs = {k: job for k, job in self._jobs.items() if not job.done()}
            made = self._jobs[key] = self._pool.submit(work)
            return made

    def fresh(self, name: str, told: Telling) -> bool:
        """Tell whether what was told of a study is the latest."""
        return told.mark == self._stand(name)

    def telling(self, name: str, since: Since = NEVER) -> Telling | None:
        """Return what is told of a study, the latest that is ready; a newer one is begun where there is news.

        What does not reach `since` is not returned, and a newer telling then begins at once.
        """
        mark = self._stand(name)
        told = self._told.get(name)
        enough = told is not None and told.reaches(since)
        if told is None or not enough or (told.mark != mark and self._rested(told)):
            self.job(("story", name), lambda: self._tell(name, mark))
        return told if enough else None

    def wait(self, name: str, seconds: float, since: Since = NEVER) -> Telling | None:
        """Return what is told of a study, waiting a little where nothing was told yet."""
        told = self.telling(name, since)
        if told is None:
            with self._alone:
                job = self._jobs.get(("story", name))
            if job is not None:
                with contextlib.suppress(TimeoutError):
                    job.result(seconds)
            told = self._told.get(name)
        return told if told is not None and told.reaches(since) else None

    def _stand(self, name: str) -> tuple[int, int]:
        """Return the cursor and the open questions of a study, by which a telling is known to be of now."""
        now = standing(self.store, name)
        return now.record.cursor, now.open

    def _rested(self, told: Telling) -> bool:
        return time.monotonic() - told.at > max(SHORTEST, REST * told.took)

    def _tell(self, name: str, mark: tuple[int, int]) -> None:
        start = time.monotonic()
        found = story(self.study(name))
        end = time.monotonic()
        self._told[name] = Telling(found, mark, end, end - start)
