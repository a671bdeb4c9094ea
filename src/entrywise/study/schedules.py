"""Random schedules: people who come, go, lapse and die, commands that change a study, and the laws that hold through it.

:func:`schedule` plays one from a seed, on one process and a clock of its own. A kill may strike between any two
writes: the transaction after it never happens. The laws are looked at after every event:

- what was acknowledged is in the log, word for word;
- nothing is bought twice: each question is charged once, an entry once unless its answer was voided;
- the money that is spent or held never exceeds the total, and the study's counters are those of its log;
- a status, which counts nothing, says what somebody who counts finds;
- a question that was once handed out can be answered;
- the present epoch replays bit for bit;

and when nobody strikes any more, the study ends.
"""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa

from entrywise.exceptions import EntrywiseError, StoreError
from entrywise.observations import Observations
from entrywise.study.check import check, ledger
from entrywise.study.entries import title
from entrywise.study.schema import facts, pending, questions
from entrywise.study.store import Store
from entrywise.study.study import Study
from entrywise.study.subjects import PLANS, STREAMING

KINDS = ("streaming", "nystrom", "informative")
_LEASE = 50.0

_f, _q = facts.c, questions.c
_SAID = (  # all that was said of a study's questions
    sa.select(_q.batch, _q.position, _q.row, _q.col, _f.value, _f.charged)
    .select_from(
        facts.join(
            questions,
            (_f.study == _q.study) & (_f.batch == _q.batch) & (_f.position == _q.position),
        )
    )
    .where(_f.study == sa.bindparam("study"))
)
_p = pending.c
_QUEUE = sa.select(_p.leased_until, _p.price, _p.failed).where(_p.study == sa.bindparam("study"))


class Killed(BaseException):
    """The process ends here."""


class Schedule:
    """One study and what happens to it."""

    def __init__(self, url: str | Store, name: str, seed: int, kind: str) -> None:
        self.url, self.name, self.kind = url, name, kind
        self.streams = kind != "nystrom"
        self.chance = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.now = 1000.0
        self.fuse: int | None = None  # writes until the next kill
        self.size = self.chance.randint(3, 6)
        self.out: list[tuple[str, Any]] = []  # (worker, question) that somebody has on the bench
        self.acknowledged: list[tuple[str, float]] = []
        self.voided: set[str] = set()
        self.counts: dict[str, int] = {}
        base = self.rng.normal(size=(40, 2))
        self.truth = base @ base.T
        self.study = self._create(seed)

    def _create(self, seed: int) -> Study:
        options: dict[str, Any] = {"seed": seed % 1000, "plans": PLANS}
        if self.chance.random() < 0.7:
            options["budget"] = float(self.chance.randint(3, self.size**2))
        shape = [self.size, self.size + 1]
        if self.kind == "streaming":
            options |= {"plan": STREAMING, "params": {"shape": shape, "size": 3}}
        elif self.kind == "informative":
            params = {"shape": shape, "rank": 1, "reserve": self.chance.choice([0.0, 0.2])}
            options |= {"plan": "most-informative", "params": params}
            options["budget"] = float(self.chance.randint(3, self.size**2))
        else:
            options |= {"plan": "adaptive-nystrom", "params": {"n": self.size}}
        store = self._store()
        return _hasty(Study.create(store, self.name, **options))

    def _store(self) -> Store:
        store = Store(self.url) if isinstance(self.url, str) else self.url
        store.clock = lambda: self.now
        return store

    def _open(self) -> Study:
        return _hasty(Study.open(self._store(), self.name, plans=PLANS))

    @contextlib.contextmanager
    def _mortal(self) -> Iterator[None]:
        """Let the process die before one of its writes, now and then; somebody else opens the study then."""
        database = self.study.store.database
        original = database.write
        left = self.fuse

        def write(call: Callable[[Any], Any]) -> Any:
            nonlocal left
            if left is not None:
                if left == 0:
                    raise Killed
                left -= 1
            return original(call)

        database.write = write  # type: ignore[method-assign]
        try:
            yield
        except Killed:
            self._count("kill")
            database.write = original  # type: ignore[method-assign]
            if database.memory:
                self.study = _hasty(Study(self.study.store, self.name, PLANS))
            else:
                self.study = self._open()
        finally:
            database.write = original  # type: ignore[method-assign]
            self.fuse = None

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def value(self, question: Any) -> float:
        """Return what an honest measurement says."""
        return float(self.truth[question.index])

    # events

    def ask(self) -> None:
        """Somebody asks, for all or for one row."""
        worker = f"w{self.chance.randint(0, 3)}"
        filter_: dict[str, Any] = {}
        if self.streams and self.chance.random() < 0.3:
            filter_ = {"rows": [self.chance.randrange(self.size)]}
        limit = self.chance.choice([1, 2, 5, None])
        with contextlib.suppress(EntrywiseError), self._mortal():
            asked = self.study.ask(limit, worker, _LEASE, **filter_)
            assert not filter_ or all(q.index[0] == filter_["rows"][0] for q in asked)
            self.out += [(worker, q) for q in asked]

    def tell(self) -> None:
        """Somebody tells some of what is on the bench."""
        if not self.out:
            return
        count = min(len(self.out), self.chance.choice([1, 1, 2, 4]))
        some = [self.out.pop(self.chance.randrange(len(self.out))) for _ in range(count)]
        worker = some[0][0]
        mine = [(w, q) for w, q in some if w == worker]
        self.out += [pair for pair in some if pair not in mine]
        failed = self.streams and self.chance.random() < 0.05
        slip = 1000.0 if self.kind == "informative" and self.chance.random() < 0.1 else 0.0
        answers = [(q.id, None if failed else self.value(q) + slip) for _, q in mine]
        self._tell(answers, worker)

    def _tell(self, answers: list[tuple[str, float | None]], worker: str | None) -> None:
        before = self._facts()
        try:
            with self._mortal():
                self.study.tell(answers, worker)
        except EntrywiseError as error:
            if "kept, but" not in str(error):
                raise AssertionError(f"what was handed out must be answerable: {error}") from error
        after = self._facts()
        kept = [(key, x) for key, x in answers if x is not None and (key, x) in after]
        if len(kept) == len([x for _, x in answers if x is not None]):
            self.acknowledged += kept
        else:  # killed before the commit: nothing of it may be there that was not before
            assert all(line in before for line in kept), "a tell was kept in part"

    def pass_time(self) -> None:
        """Time goes by; leases lapse."""
        self.now += self.chance.choice([1.0, 10.0, 60.0, 200.0])

    def release(self) -> None:
        """A worker gives back what it holds."""
        with self._mortal():
            self.study.release(f"w{self.chance.randint(0, 3)}")

    def reopen_process(self) -> None:
        """Another process opens the study."""
        if not self.study.store.database.memory:
            self.study = self._open()

    def change(self) -> None:
        """Somebody changes the study."""
        changes = [self._amend, self._amend, self._void, self._extend, self._add, self._money]
        changes += [self._renew, self._drop, self._params, self._prices, self._fork, self._close]
        with contextlib.suppress(EntrywiseError), self._mortal():
            self.chance.choice(changes)()
        if self.study.state == "closed":
            self.study.reopen()

    def _told(self) -> list[dict[str, Any]]:
        return [line for line in self.study.log() if line["what"] in ("told", "known")]

    def _amend(self) -> None:
        told = self._told()
        if told:
            line = self.chance.choice(told)
            right = float(self.truth[line["row"], line["col"]])
            self.study.amend(line["id"], right)

    def _void(self) -> None:
        told = [line for line in self._told() if line["what"] == "told"]
        if told:
            line = self.chance.choice(told)
            self.voided.add(line["id"])
            self.study.void(line["id"])

    def _extend(self) -> None:
        money = float(self.chance.randint(0, 5)) if self.study._look().total is not None else None
        if self.size < 9 and self.chance.random() < 0.6:
            self.study.extend(rows=1, cols=1 if self.streams else None, budget=money)
        elif money is not None:
            self.study.extend(budget=money)

    def _add(self) -> None:
        record = self.study._look()
        i, j = self.chance.randrange(record.n_rows or 1), self.chance.randrange(record.n_cols or 1)
        shape = (record.n_rows or 1, record.n_cols or 1)
        seen = Observations.from_triplets([i], [j], [float(self.truth[i, j])], shape)
        self.study.add(seen)

    def _money(self) -> None:
        self.study.reopen(budget=float(self.chance.randint(1, 40)))

    def _renew(self) -> None:
        self.study.renew()

    def _drop(self) -> None:
        if self.streams and self.chance.random() < 0.3:
            self.study.drop(rows=[self.chance.randrange(self.size)])

    def _params(self) -> None:
        name = "size" if self.kind == "streaming" else "rank"
        self.study.change({name: self.chance.randint(1, 4)})

    def _prices(self) -> None:
        self.study.change(prices={"entry": self.chance.choice([0.1, 1.0, 2.0])})

    def _close(self) -> None:
        self.study.close()
        self.study.reopen()

    def _fork(self) -> None:
        """Fork the study, hold the fork to the laws, and take it away again."""
        self._count("fork")
        told = {(line["row"], line["col"], line["value"]) for line in self._told()}
        made = self.study.fork(f"{self.name}-{self.counts['fork']}")
        mine = {(line["row"], line["col"], line["value"]) for line in made.log()}
        assert told <= mine, f"the fork lacks {sorted(told - mine)}"
        try:
            check(made.store, made._look(), made._steps)
        except StoreError as error:
            raise AssertionError(f"the fork is not in order: {error}") from error
        made.delete()

    # laws

    def _said(self) -> list[Any]:
        study = {"study": self.study._record.id}
        return list(self.study.store.database.read(lambda c: c.execute(_SAID, study).all()))

    def _facts(self) -> set[tuple[str, float]]:
        return _values(self._said())

    def laws(self) -> None:
        """Raise AssertionError where a law is broken."""
        record = self.study._look()
        self.size = (record.n_rows if self.streams else record.n_cols) or self.size
        said = self._said()
        kept = _values(said)
        for line in self.acknowledged:
            assert line in kept, f"answer {line} was acknowledged and is not there"
        ledger(self.study.store, record)
        self._status_is_the_count()
        self._bought_once(said, record.symmetric)
        if self.chance.random() < 0.15:  # as often as time allows
            check(self.study.store, record, self.study._steps)

    def _status_is_the_count(self) -> None:
        """Hold the status against questions counted one by one."""
        now = self.study.status()
        study = {"study": self.study._record.id}
        rows = self.study.store.database.read(lambda c: c.execute(_QUEUE, study).all())
        open_ = [row for row in rows if row.leased_until >= 0]
        out = [row for row in open_ if row.leased_until > self.now]
        answered = self.study._record.asked - len(rows)
        for what, says, is_ in (
            ("open", now["open"], len(open_)),
            ("leased", now["leased"], len(out)),
            ("answered", now["answered"], answered),
            ("withdrawn", now["withdrawn"], len(rows) - len(open_)),
            ("failed", len(now["failed"]), min(sum(row.failed for row in open_), 20)),
            ("held", now["held"], math.fsum(row.price for row in open_)),
            ("out", now["out"], math.fsum(row.price for row in out)),
        ):
            assert math.isclose(says, is_, rel_tol=1e-12), f"status says {says} {what}, not {is_}"

    def _bought_once(self, said: list[Any], symmetric: bool) -> None:
        bought: dict[tuple[int, int], int] = {}
        for batch, position, row, col, _, charged in said:
            if not charged > 0 or title((batch, position)) in self.voided:
                continue
            entry = (min(row, col), max(row, col)) if symmetric else (row, col)
            bought[entry] = bought.get(entry, 0) + 1
        twice = [entry for entry, times in bought.items() if times > 1]
        assert not twice, f"entry {twice[0]} was bought {bought[twice[0]]} times"

    def end(self) -> None:
        """Let everybody come back: the study must end."""
        self._tell_all()
        for _ in range(400):
            if self.study.state in ("finished", "exhausted"):
                return
            self.now += 2 * _LEASE
            asked = self.study.ask(None, "last", _LEASE)
            self.out += [("last", q) for q in asked]
            self._tell_all()
        raise AssertionError("the study does not end")

    def _tell_all(self) -> None:
        while self.out:
            worker, question = self.out.pop()
            self._tell([(question.id, self.value(question))], worker)


def _values(said: list[Any]) -> set[tuple[str, float]]:
    return {(title((b, k)), x) for b, k, _, _, x, _ in said if x is not None}


def _hasty(study: Study) -> Study:
    """Let a study wait for a dead stepper but a moment: the schedule's clock stands still."""
    study._least = study._patience = 0.03
    return study


def schedule(url: str | Store, name: str, seed: int, kind: str, events: int = 40) -> dict[str, int]:
    """Play one random schedule and return how often each thing happened; raise where a law is broken.

    A database in memory may be given as its store, so that several schedules share it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a reserve may well be too small here
        return _played(Schedule(url, name, seed, kind), events)


def _played(run: Schedule, events: int) -> dict[str, int]:
    often: list[tuple[Callable[[], None], int]] = [
        (run.ask, 30),
        (run.tell, 35),
        (run.pass_time, 8),
        (run.release, 4),
        (run.reopen_process, 5),
        (run.change, 12),
    ]
    events_, weights = zip(*often, strict=True)
    for _ in range(events):
        if run.chance.random() < 0.1:
            run.fuse = run.chance.randint(0, 4)
        (event,) = run.chance.choices(events_, weights)
        run._count(event.__name__)
        event()
        run.laws()
    run.end()
    run.laws()
    record = run.study._look()
    check(run.study.store, record, run.study._steps)
    run.counts["epochs"] = record.epoch
    assert record.total is None or record.committed <= record.total * (1 + 1e-9)
    assert math.isfinite(run.study.result().cost)
    return run.counts
