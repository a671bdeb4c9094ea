"""Workers killed at random points, answers corrected and studies extended meanwhile: what is left of a study.

:func:`torture` runs a study under several processes and strikes: it kills one, corrects an answer and corrects it
back, gives the matrix more lines or the study more money, and lets oracles raise. What it finds afterwards is held
against an undisturbed run, or against a replay of its log where what is asked depends on who was quicker.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from entrywise.checks.plans import same_result
from entrywise.exceptions import EntrywiseError
from entrywise.queries import Batch
from entrywise.study.records import Leased, Record, Told
from entrywise.study.schema import ANSWERED, facts, questions, steps, wants
from entrywise.study.study import Study
from entrywise.study.subjects import PLANS, Subject, Truth, nystrom
from entrywise.study.work import work
from entrywise.types import Array, Indices

_LOADED = ("entrywise.study.crash", "numba", "scipy.linalg", "scipy.sparse.linalg")
_PATIENCE = 120.0  # seconds without a strike and without an answer: nobody comes any further


@dataclass(frozen=True)
class Outcome:
    """What a disturbed study came to.

    ``strikes`` counts all of them, ``kills`` those of workers, ``raised`` the exceptions of oracles.
    ``lost`` answers were acknowledged and are not there, ``doubled`` entries were bought more than once, ``gave_up``
    workers ended with an error. ``identical`` says whether the result is that of an undisturbed run, or of a replay
    elsewhere where the order of answers matters, bit for bit; ``over`` is money beyond the budget.
    """

    strikes: int
    kills: int
    raised: int
    acknowledged: int
    lost: int
    doubled: int
    gave_up: int
    identical: bool
    cost: float
    expected_cost: float
    seconds: float
    epochs: int = 0
    over: float = 0.0

    @property
    def unharmed(self) -> bool:
        """Whether nothing happened to the study; a correction may have led to questions that it would not ask."""
        harm = self.lost + self.doubled + self.gave_up
        fair = self.cost == self.expected_cost or self.epochs > 0
        return not harm and self.identical and fair and self.over <= 0.0


class OracleDown(RuntimeError):
    """What an oracle of these studies raises now and then."""


class _Desk:
    """A study and its oracle in one: what is acknowledged is noted, and so is what the oracle raised.

    It goes through :func:`~entrywise.study.work.work`, as everybody's oracle does. Answers come in two pieces, and the
    oracle raises before either with the chance `raises`: then some of the questions were told, and others go back.
    """

    def __init__(
        self, study: Study, truth: Truth, notes: Any, chance: random.Random, pause: float, raises: float
    ) -> None:  # fmt: skip
        self.study, self.truth, self.notes, self.chance = study, truth, notes, chance
        self.pause, self.raises = pause, raises
        self.labels, self.release = study.labels, study.release

    def take(self, limit: Any, worker: str, lease: float, wanted: Any) -> tuple[Any, str]:
        """Hand out one to six questions."""
        leased, state = self.study.take(self.chance.randint(1, 6), worker, lease, wanted)
        if leased is not None:
            self.leased, self.left = leased, np.ones(len(leased), bool)
            time.sleep(self.pause * self.chance.random())
        return leased, state

    def submit(self, batch: Batch) -> Iterator[tuple[Indices, Array]]:
        """Measure the questions that were not told yet, in two pieces."""
        at = np.flatnonzero((self.leased.modes == batch.mode) & self.left)
        values = self.truth.values(self.leased)[at]
        for piece in np.array_split(np.arange(len(at)), 2):
            if self.chance.random() < self.raises:
                self.notes.write("raised\n")
                raise OracleDown("the instrument is down")
            if len(piece):
                yield piece, values[piece]

    def __call__(self, batch: Batch) -> Array:
        raise NotImplementedError  # submit is asked instead

    def put(self, told: Told, worker: str) -> int:
        """Tell answers, and note them where the study says that it has them."""
        try:
            new = self.study.put(told, worker)
        except EntrywiseError as error:
            if " kept, but " in str(
                error
            ):  # the plan does not believe a wrong answer, soon corrected
                self._note(told)
            raise
        self._note(told)
        return new

    def _note(self, told: Told) -> None:
        columns = (told.batch, told.position, told.value)
        keys = set()
        for batch, position, value in zip(*(c.tolist() for c in columns), strict=True):
            self.notes.write(f"{batch} {position} {value!r}\n")
            keys.add((batch, position))
        places = zip(self.leased.batches.tolist(), self.leased.positions.tolist(), strict=True)
        self.left &= np.array([key not in keys for key in places])


def work_and_note(
    url: str,
    name: str,
    worker: str,
    path: str,
    seed: int,
    truth: Truth,
    pause: float,
    raises: float,
) -> None:
    """Ask, measure and tell until the study is finished; note what was acknowledged."""
    chance = random.Random(seed)
    study = Study.open(url, name, plans=PLANS)
    study.release(f"{worker}-0")  # what we held before we were killed
    with open(path, "a", buffering=1) as notes:
        desk: Any = _Desk(study, truth, notes, chance, pause, raises)
        while not study.finished:
            try:
                work(
                    desk, desk, workers=1, worker=worker, chunk=1, lease=2.0,
                    retries=chance.randint(0, 1), backoff=0.01, give_up=1_000,
                )  # fmt: skip
            except EntrywiseError:  # a wrong answer is about to be corrected
                time.sleep(0.05)


def _measured(truth: Truth, leased: Leased) -> Told:
    values = truth.values(leased)
    return Told(leased.batches, leased.positions, values, np.isnan(values))


def torture(
    url: str,
    name: str,
    subject: Subject | None = None,
    *,
    kills: int,
    seed: int,
    workers: int = 4,
    n: int = 60,
    rank: int = 6,
    pause: float = 0.02,
    raises: float = 0.0,
    strikes: Sequence[str] = ("kill",),
    strike: Callable[[], None] | None = None,
) -> Outcome:
    """Run a study under `workers` processes, strike `kills` times, and look at what is left.

    `strikes` are drawn from kill (a worker, with SIGKILL), correct and extend; with `strike`, that is called instead.
    Without a `subject`, an adaptive Nyström study of an n x n matrix is struck.
    """
    chance = random.Random(seed)
    subject = subject or nystrom(n, rank, seed)
    study = subject.create(url, name)
    start, done, killed, extended = time.monotonic(), 0, 0, False
    with tempfile.TemporaryDirectory() as folder:
        how = (subject.truth, pause, raises)
        crew = _Crew(Path(folder), workers, (url, name), how, chance)
        try:
            while not study.finished and time.monotonic() - start <= _PATIENCE:
                time.sleep(chance.uniform(0.02, 0.3))
                k = chance.randrange(workers)
                what = "kill" if strike is not None else chance.choice(list(strikes))
                if done < kills and crew.at_work(k):
                    if what == "kill":
                        crew.kill(k) if strike is None else strike()
                        killed += 1
                    elif what == "extend" and not extended:
                        with contextlib.suppress(EntrywiseError):
                            subject.extend(study)
                        extended = True
                    done += what != "correct" or _correct(study, subject, chance)
                crew.replace_dead(study)
        finally:
            crew.end()
        acknowledged, raised = crew.noted()
    return _outcome(
        study,
        subject,
        acknowledged,
        strikes=done,
        kills=killed,
        raised=raised,
        gave_up=crew.gave_up,
        seconds=time.monotonic() - start,
    )


class _Crew:
    """Processes that work on a study, each with a file of what was acknowledged."""

    def __init__(
        self,
        folder: Path,
        size: int,
        where: tuple[str, str],
        how: tuple[Truth, float, float],
        chance: random.Random,
    ) -> None:
        self._folder, self._where, self._how, self._chance = folder, where, how, chance
        self._context = mp.get_context("forkserver")
        self._context.set_forkserver_preload(list(_LOADED))
        self.gave_up = 0  # who ended with an error
        self._workers = [self._spawn(k) for k in range(size)]

    def _spawn(self, k: int) -> Any:
        own = (*self._where, f"w{k}", str(self._folder / f"w{k}"), self._chance.randrange(2**31))
        made = self._context.Process(target=work_and_note, args=(*own, *self._how), daemon=True)
        made.start()
        return made

    def at_work(self, k: int) -> bool:
        """Tell whether all have begun, and one is alive."""
        begun = len(list(self._folder.iterdir())) == len(self._workers)
        return begun and self._workers[k].is_alive()

    def kill(self, k: int) -> None:
        os.kill(self._workers[k].pid, signal.SIGKILL)

    def replace_dead(self, study: Study) -> None:
        """Let another come for each who is dead, while there is something to do."""
        for k, process in enumerate(self._workers):
            if not process.is_alive() and not study.finished:
                process.join()
                self.gave_up += process.exitcode not in (0, -signal.SIGKILL)
                self._workers[k] = self._spawn(k)

    def end(self) -> None:
        """Wait for all, and kill those who do not end."""
        for process in self._workers:
            process.join(20.0)
            if process.is_alive():
                process.kill()
                process.join()

    def noted(self) -> tuple[list[tuple[int, int, float]], int]:
        """Return what was acknowledged, and how often an oracle raised; the last line of a killed worker may be torn."""
        lines = [x for path in self._folder.iterdir() for x in path.read_text().splitlines()]
        whole = [line.split() for line in lines if len(line.split()) == 3]
        answers = [(int(batch), int(position), float(value)) for batch, position, value in whole]
        return answers, lines.count("raised")


def _correct(study: Study, subject: Subject, chance: random.Random) -> bool:
    """Make an answer wrong, and right again, an epoch each; tell whether there was one."""
    told = [line for line in study.log() if line["what"] == "told"]
    if told:
        line = chance.choice(told)
        for value in (subject.truth.wrong(line["value"]), line["value"]):
            with contextlib.suppress(EntrywiseError):  # kept, but the plan may not believe it
                study.amend(line["id"], value)
    return bool(told)


def _outcome(
    study: Study,
    subject: Subject,
    noted: list[tuple[int, int, float]],
    **counts: Any,
) -> Outcome:
    f, q = facts.c, questions.c
    record = study.store.record(study.name)
    query = (
        sa.select(f.batch, f.position, f.value, f.charged, q.row, q.col, q.mode, q.repeat)
        .select_from(ANSWERED)
        .where(f.study == record.id)
    )
    kept = study.store.database.read(lambda c: c.execute(query).all())
    there = {(line.batch, line.position, line.value) for line in kept}
    lost = sum(line not in there for line in noted)
    paid = [(_entry(record, line), line.batch, line.position) for line in kept if line.charged > 0]
    most = _listed(study, record)
    bought = Counter(entry for entry, _, _ in paid)
    twice = sum(max(0, count - most[entry]) for entry, count in bought.items())
    twice += len(paid) - len(set(paid))
    found = Study.open(study.store, study.name, plans=PLANS).result()
    expected = _expected(study, subject, record)
    over = 0.0 if record.total is None else found.cost - record.total
    return Outcome(
        acknowledged=len(noted),
        lost=lost,
        doubled=twice,
        identical=study.finished and _true(study, subject) and same_result(found, expected),
        cost=found.cost,
        expected_cost=expected.cost,
        epochs=record.epoch,
        over=max(over, 0.0),
        **counts,
    )


def _listed(study: Study, record: Record) -> dict[tuple[Any, ...], int]:
    """Return how often a step lists each entry at most: so often it may be bought, as new or on somebody's bench."""
    q, w, s = questions.c, wants.c, steps.c
    asked = sa.select(q.batch.label("step"), q.row, q.col, q.mode, q.repeat)
    same = (s.study == w.study) & (s.step == w.step)
    again = sa.select(w.step, w.row, w.col, s.mode, sa.literal(0).label("repeat"))
    read = study.store.database.read
    lines = list(read(lambda c: c.execute(asked.where(q.study == record.id)).all()))
    lines += read(
        lambda c: c.execute(
            again.select_from(wants.join(steps, same)).where(w.study == record.id)
        ).all()
    )
    found: dict[tuple[Any, ...], int] = {}
    for (entry, _), count in Counter((_entry(record, line), line.step) for line in lines).items():
        found[entry] = max(count, found.get(entry, 0))
    return found


def _entry(record: Record, line: Any) -> tuple[Any, ...]:
    """Return what a question is about; a plan of repeated answers may buy an entry again."""
    row, col = line.row, line.col
    if record.symmetric:
        row, col = min(row, col), max(row, col)
    return row, col, line.mode, line.repeat if record.fresh else 0


def _true(study: Study, subject: Subject) -> bool:
    """Tell whether every answer that stands is what was measured."""
    for line in study.log():
        if line["what"] == "told":
            batch, position = map(int, line["id"].split("."))
            entry = (line["row"], line["col"], line["mode"])
            if line["value"] != subject.truth.value(batch, position, *entry):
                return False
    return True


def _expected(study: Study, subject: Subject, record: Record) -> Any:
    """Return what the study should have come to.

    That is the result of an undisturbed run where the plan asks the same whoever is quicker, and begins anew after
    a change; else that of the study's log, replayed in another database.
    """
    alike = not (record.history or record.fresh or record.streaming)
    if alike or (not record.epoch and not subject.ordered):
        return _undisturbed(subject, record)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.zip")
        study.export(path)
        again = Study.load(f"sqlite:///{folder}/again.db", path, plans=PLANS)
        again.check()
        return again.result()


def _undisturbed(subject: Subject, record: Record) -> Any:
    """Return the result of one worker who answers everything in order."""
    now: dict[str, Any] = {"params": dict(record.params), "budget": record.total}
    study = subject.create("sqlite://", "undisturbed", **now)
    while (leased := study.lease()) is not None:
        study.put(_measured(subject.truth, leased))
    return study.result()
