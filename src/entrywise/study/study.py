"""A study: a run kept in a database, that survives crashes, colleagues and months."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from entrywise.exceptions import EntrywiseError, ParameterError, StoreError
from entrywise.observations import Observations
from entrywise.oracles import Oracle
from entrywise.queries import Prices
from entrywise.results import Certificate, Result
from entrywise.study import change, replay, report
from entrywise.study.entries import Labels, Question, parse
from entrywise.study.sql import SQLStore
from entrywise.study.store import Blaming, Leased, Record, Told, Workers


class Study:
    """A plan under way in a database.

    Make one with :meth:`create`, come back to it with :meth:`open`, from as many processes and machines as
    you like. Answers are kept before anything else happens; the next questions are worked out without
    holding a lock and installed once, whoever comes first. Threads may share a Study.

    Examples
    --------
    >>> study = Study.create("sqlite://", "kinase", plan="adaptive-nystrom", params={"n": 3}, seed=1)
    >>> [(q.id, q.row, q.col, q.price) for q in study.ask(2)]
    [('0.0', 0, 0, 1.0), ('0.1', 1, 1, 1.0)]
    >>> study.tell([(0, 0, 4.0), ("0.1", 1.0), (2, 2, 1.0)])
    3
    >>> study.tell([(0, 1, 2.0), (0, 2, 2.0)]), study.finished
    (2, True)
    >>> study.result().entry(1, 2), study.result().cost, study.certificate.value
    (1.0, 5.0, 0.0)
    """

    def __init__(self, store: SQLStore, name: str) -> None:
        self.store = store
        self._record = store.record(name)
        self._live: replay.Live | None = None
        self._alone = threading.RLock()  # one thread at a time runs the plan
        self._names: Labels | None = None
        self._witness: tuple[int, int] | None = (
            None  # a question that was open: while it is, the batch is not complete
        )
        self.clock: Callable[[], float] = time.time

    @classmethod
    def create(
        cls,
        url: str | SQLStore,
        name: str,
        *,
        plan: str,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        budget: float | None = None,
        prices: Prices | Mapping[str, Any] | None = None,
        known: Observations | None = None,
        rows: Sequence[str] | None = None,
        cols: Sequence[str] | None = None,
    ) -> Study:
        """Make a new study.

        Parameters
        ----------
        url : str
            A file (SQLite), ``sqlite:///file`` or ``postgresql://user@host/database``.
        name : str
        plan : str
            A name that ``entrywise methods active`` lists, or ``module:function`` of your own plan.
        params : mapping
            The plan's parameters, as plain JSON.
        seed : int, optional
            Becomes the plan's ``rng``; drawn and recorded when left out.
        budget, prices : optional
            Given to the plan where it takes them; the ledger keeps to them in any case.
        known : Observations, optional
            Entries known beforehand: used, and free.
        rows, cols : sequence of str, optional
            Labels; they set the size. Those of rows name both axes of a symmetric plan.
        """
        return cls(
            change.create(url, name, plan, params or {}, seed, budget, prices, known, rows, cols),
            name,
        )

    @classmethod
    def open(cls, url: str | SQLStore, name: str) -> Study:
        """Come back to a study; if its batch is complete, the next one is worked out."""
        study = cls(SQLStore.of(url, must_exist=True), name)
        with contextlib.suppress(
            EntrywiseError
        ):  # status() tells it; asking and telling raise it again
            study.advance()
        return study

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.store!r})"

    @property
    def name(self) -> str:
        """What the study is called."""
        return self._record.name

    @property
    def prices(self) -> Prices:
        """What it quotes for each entry; one when nothing was said."""
        given = self._record.prices
        return Prices() if given is None else Prices.from_json(given)

    @property
    def labels(self) -> Labels:
        """The names of its rows and columns."""
        if self._names is None:
            found = self.store.labels(self._record.id)
            self._names = Labels(
                found.get("row"), found.get("col"), self._record.n_rows, self._record.n_cols
            )
        return self._names

    @property
    def state(self) -> str:
        """``open``, ``finished``, ``exhausted`` (the money ran out) or ``closed``."""
        with contextlib.suppress(
            EntrywiseError
        ):  # whoever told the last answer may have been killed before the next step
            return self.advance().state
        return self.store.record(self.name).state

    @property
    def finished(self) -> bool:
        """Whether the plan has returned."""
        return self.state in ("finished", "exhausted")

    def ask(
        self, limit: int | None = None, worker: str | None = None, lease: float = 3600.0
    ) -> list[Question]:
        """Return at most `limit` open questions that nobody holds, held by `worker` for `lease` seconds.

        Units (whole columns) are handed out whole, so a few more may come. An empty list means that all
        open questions are held by others, or that the study is finished.
        """
        leased = self.lease(limit, worker, lease)
        return [] if leased is None else self.labels.questions(leased, self.clock() + lease)

    def lease(
        self, limit: int | None = None, worker: str | None = None, lease: float = 3600.0
    ) -> Leased | None:
        """Do what :meth:`ask` does, and return columns: the way for many questions at once."""
        if limit is not None and limit < 1:
            raise ParameterError(f"limit of ask must be at least 1, got {limit}")
        if not (np.isfinite(lease) and lease > 0):
            raise ParameterError(f"lease must be a number of seconds above 0, got {lease}")
        if worker is not None and (not worker or "\n" in worker):
            raise ParameterError(f"a worker's name must be one line of text, got {worker!r}")
        found, state = self._lease(limit, worker, lease)
        if state == "closed":
            raise StoreError(f"study {self.name!r} is closed; reopen it to ask")
        return found

    def _lease(
        self, limit: int | None, worker: str | None, lease: float
    ) -> tuple[Leased | None, str]:
        """Return (questions, state of the study)."""
        now = self.clock()
        found, state = self.store.lease(self._record.id, limit, worker, now + lease, now), "open"
        if found is None:
            state = self.advance().state
            if state == "open":
                found = self.store.lease(self._record.id, limit, worker, now + lease, now)
        return found, state

    def tell(
        self,
        answers: Mapping[str, Any] | Iterable[Any],
        worker: Workers = None,
        *,
        blame: Blaming | None = None,
    ) -> int:
        """Keep answers, all of them or none; return how many were new.

        Each is ``(id, value)``, ``(question, value)`` or ``(row, col, value)``; None or ``"failed"`` says that the
        measurement failed. The same answer twice is harmless. Another value is refused, with both named,
        or kept beside the first where the plan takes repeated noisy answers. A named worker must hold the
        questions, or have held them: a late answer counts.
        """
        blame = blame or (lambda k: f"answer {k}: ")
        return self.put(
            parse(self.store, self._record, self.labels, answers, blame), worker, blame=blame
        )

    def put(self, told: Told, worker: Workers = None, *, blame: Blaming | None = None) -> int:
        """Do what :meth:`tell` does for answers by columns: the way for many answers at once."""
        if not len(told.value):
            return 0
        blame = blame or (lambda k: f"answer {k}: ")
        new, left = self.store.put(
            self._record, told, worker, self.clock(), self.labels.name, blame, self._witness
        )
        self._witness = left
        if left is None:
            self._advance_after("the answers are")
        return new

    def _advance_after(self, kept: str) -> None:
        try:
            self.advance()
        except EntrywiseError as error:
            raise type(error)(
                f"{kept} kept, but {self._record.plan} cannot go on: {error}"
            ) from error

    def advance(self) -> Record:
        """Work out the next questions if every open one is answered, and return where the study stands.

        The plan runs outside of any transaction; what it asks is installed by compare-and-swap.
        """
        while True:
            record = self.store.record(self.name)
            if record.state != "open" or not self.store.complete(record.id):
                return record
            with self._alone:
                self._step(record)

    def _step(self, record: Record) -> None:
        try:
            live = replay.resume(self.store, record, self._live)
        except replay.Refused as refused:
            self._live = None
            if self.store.record(self.name).cursor != record.cursor:
                return  # somebody else moved it meanwhile
            kind = type(refused.error)
            words = self.labels.translate(str(refused))
            self.store.trouble(record, f"{kind.__name__}: {words}")
            raise kind(words) from refused.error
        self._live = live
        step = replay.step(live.run, len(live.numbers))
        if self.store.install(record, step, self.clock()):
            live.numbers.extend(range(record.next_batch, record.next_batch + len(step.asked)))

    def result(self) -> Any:
        """Return the plan's result, or the best one so far, with its cost and certificate."""
        while True:
            record = self.store.record(self.name)
            try:
                with self._alone:
                    if record.state in ("finished", "exhausted"):
                        self._live = replay.resume(self.store, record, self._live)
                        return self._live.run.result
                found = replay.best_so_far(self.store, record)
            except replay.Refused as refused:
                if self.store.record(self.name).cursor != record.cursor:
                    continue  # somebody else moved it meanwhile
                raise type(refused.error)(self.labels.translate(str(refused))) from refused.error
            words = "stopped" if record.state == "closed" else "running"
            return replace(
                found, cost=report.money(self.store, record, self.clock())["spent"], status=words
            )

    @property
    def certificate(self) -> Certificate | None:
        """What is promised about :meth:`result`, in numbers."""
        found: Result = self.result()
        return found.certificate

    def status(self) -> dict[str, Any]:
        """Return where the study stands: state, batch, open and leased questions, money, troubles."""
        with contextlib.suppress(EntrywiseError):
            self.advance()
        return report.status(self.store, self.store.record(self.name), self.labels, self.clock())

    def log(self) -> Iterator[dict[str, Any]]:
        """Go through all that was asked and answered, what no longer stands included."""
        return report.log(self.store, self._record, self.labels)

    def release(self, worker: str | None = None) -> int:
        """Take back what `worker` (or everybody) holds; return how many questions that were."""
        return self.store.release(self._record.id, worker)

    def close(self) -> None:
        """Stop asking and telling; what was answered stays, and so does the result so far."""
        change.close(self.store, self.name)

    def reopen(self, budget: float | None = None) -> None:
        """Go on with a closed study, or give more money to one whose money ran out."""
        change.reopen(self.store, self.name, budget, self.clock())
        self.advance()

    def amend(self, answer: Any, value: Any, worker: str | None = None) -> None:
        """Correct an answer, given by its id or as (row, col); the log keeps both.

        The plan goes back to that batch and works on from there: what was asked afterwards is withdrawn,
        its answers serve as memory.
        """
        change.amend(self.store, self.name, self.labels, answer, value, worker, self.clock())
        self._live = None
        self._advance_after("the correction is")

    def fork(self, name: str, **options: Any) -> Study:
        """Start the plan again under a new name, with all answers of this study as memory.

        This is the way out when a newer version of a plan asks otherwise than the log says, and the way to
        other parameters. Options: url, params (those that change), seed, budget, prices.
        """
        store = change.fork(self.store, self.name, name, **options)
        return Study(store, name)

    def export(self, path: str | PathLike[str]) -> None:
        """Write all of the study to one portable file: a zip of CSV and JSON."""
        from entrywise.study import portable

        portable.export(self.store, self.store.record(self.name), path)

    @classmethod
    def load(cls, url: str | SQLStore, path: str | PathLike[str], name: str | None = None) -> Study:
        """Rebuild the study that :meth:`export` wrote, under its own name or another."""
        from entrywise.study import portable

        store = SQLStore.of(url)
        return cls.open(store, portable.load(store, path, name))

    def run(self, oracle: Oracle, workers: int = 4, **options: Any) -> Any:
        """Let `oracle` answer until the study is finished, in several threads, and return the result.

        Options: chunk (questions a thread takes at a time), lease, worker (prefix of their names).
        """
        from entrywise.study.work import work

        work(self, oracle, workers=workers, **options)
        return self.result()

    def play(self, oracle: Oracle) -> Any:
        """Let `oracle` answer whole batches in this thread, to the end, and return the result."""
        return self.run(oracle, workers=1, chunk=2**31)
