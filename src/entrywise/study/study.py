"""A study: a run kept in a database, that survives crashes, colleagues and months."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import sqlalchemy as sa

from entrywise import __version__
from entrywise.complete import as_observations
from entrywise.exceptions import (
    EntrywiseError,
    ParameterError,
    ReplayDiverged,
    StoreError,
    TellError,
)
from entrywise.oracles import Oracle
from entrywise.queries import Plan, Prices
from entrywise.results import Certificate, Result
from entrywise.run import Known
from entrywise.study import changes, plans, status
from entrywise.study.entries import Asked, Labels, parse, told_lines
from entrywise.study.leases import Taking
from entrywise.study.records import (
    ANY,
    Advance,
    Blaming,
    Filter,
    Key,
    Leased,
    Record,
    Told,
    Workers,
)
from entrywise.study.remote import RemoteStudy
from entrywise.study.steps import Refused, Steps
from entrywise.study.store import Store

STEPPER = 2.0  # seconds for which others leave a step to the one who began it, at least
Advancing = Callable[[Filter, int | None], Record]  # has a step made: what is wanted, how many
_MOST_COLLISIONS = 20  # times in a row that answers come while their questions are asked again
_PAUSE = 0.02  # seconds between looks at a step that somebody else works out


class Study:
    """A plan under way in a database.

    Make one with :meth:`create`, come back to it with :meth:`open`, from as many processes and machines as
    you like. Answers are kept before anything else happens; the next questions are worked out without
    holding a lock and installed once, whoever comes first. Threads may share a Study.

    Whatever changes it (:meth:`extend`, :meth:`amend`, :meth:`change`, ...) begins an epoch: the plan starts anew
    with everything told so far. A question that was once handed out can always be answered.

    Examples
    --------
    >>> study = Study.create("sqlite://", "kinase", plan="adaptive-nystrom", params={"n": 3}, seed=1)
    >>> [(q.id, q.row, q.col, q.price) for q in study.ask(2)]
    [('0.0', 0, 0, 1.0), ('0.1', 1, 1, 1.0)]
    >>> study.tell([(0, 0, 4.0), ("0.1", 1.0), (2, 2, 1.0)])
    3
    >>> study.tell([(0, 1, 2.0), (0, 2, 2.0)]), study.finished
    (2, True)
    >>> study.result().entry(1, 2), study.result().cost, study.certificate.value < 1e-12
    (1.0, 5.0, True)
    """

    def __init__(
        self,
        store: Store,
        name: str,
        plans_allowed: Mapping[str, Callable[..., Plan]] | None = None,
    ) -> None:
        self.store = store
        self._record = store.record(name)
        self._allowed = dict(plans_allowed or {})
        self._maker = plans.makers(self._allowed)
        self._steps = Steps(store, self._maker)
        self._alone = threading.RLock()  # one thread at a time runs the plan
        self._names: tuple[int, Labels] | None = None
        self._witness: Key | None = (
            None  # a question that was open: while it is, the step is not complete
        )
        self._id = uuid.uuid4().hex
        self._least = self._patience = STEPPER
        self._collisions = 0
        self._waiting: float | None = None  # since when somebody else works out the step

    @classmethod
    def create(
        cls,
        url: str | Store,
        name: str,
        *,
        plan: str,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        budget: float | None = None,
        prices: Prices | Mapping[str, Any] | None = None,
        known: Any = None,
        rows: Sequence[str] | None = None,
        cols: Sequence[str] | None = None,
        currency: str | None = None,
        plans: Mapping[str, Callable[..., Plan]] | None = None,
    ) -> Study:
        """Make a new study.

        Parameters
        ----------
        url : str
            A file (SQLite), ``sqlite:///file`` or ``postgresql://user@host/database``.
        name : str
        plan : str
            A name that ``entrywise methods active`` lists, one of `plans`, or ``module:function`` of your own plan.
        params : mapping
            The plan's parameters, as plain JSON; ``row_features`` and ``col_features`` may be frames by label or arrays,
            and are kept in the study.
        seed : int, optional
            Becomes the plan's ``rng``; drawn and recorded when left out.
        budget, prices : optional
            Given to the plan where it takes them; the ledger keeps to them in any case.
        known : Observations, frame, array with NaN or sparse matrix, optional
            Entries known beforehand: used, and free. A mapping where several instruments said them.
        rows, cols : sequence of str, optional
            Labels; they set the size. Those of rows name both axes of a symmetric plan.
        currency : str, optional
            What prices are in, shown wherever money is.
        plans : mapping, optional
            Plans of your own, by the names under which studies keep them.
        """
        allowed = _with(plans, plan)
        maker = _makers(allowed)
        known = None if known is None else _seen(known)
        store = changes.create(
            url, name, plan, maker, params or {}, seed, budget, prices, known, rows, cols, currency
        )
        return cls(store, name, allowed)

    @classmethod
    def open(
        cls,
        url: str | Store,
        name: str,
        *,
        plans: Mapping[str, Callable[..., Plan]] | None = None,
        token: str | None = None,
    ) -> Study:
        """Come back to a study; nothing is worked out until somebody asks or tells.

        At ``https://...`` a service keeps it, which `token` lets you in to: a
        :class:`~entrywise.study.remote.RemoteStudy`.

        Only methods of entrywise run, those that are installed as entry points ``entrywise.plans``, and `plans` that
        you allow by name: data never name code.
        """
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            return RemoteStudy(url, name, token)  # type: ignore[return-value]
        return cls(Store.of(url, must_exist=True), name, plans)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.store!r})"

    def _repr_html_(self) -> str:
        """What notebooks show: where the study stands; it works nothing out."""
        return status.card(self.status())

    @property
    def name(self) -> str:
        """What the study is called."""
        return self._record.name

    @property
    def record(self) -> Record:
        """Its row, as it was last seen."""
        return self._record

    @property
    def prices(self) -> Prices:
        """What it quotes for each entry; one when nothing was said."""
        return plans.prices_of(self.store.record(self.name)) or Prices()

    @property
    def labels(self) -> Labels:
        """The names of its rows and columns."""
        return self._labels(self._record)

    def _labels(self, record: Record) -> Labels:
        if self._names is None or self._names[0] != record.epoch:
            found = self.store.labels(record.id)
            names = Labels(
                found.get("row"),
                found.get("col"),
                record.n_rows,
                record.n_cols,
                plans.classes_of(record),
            )
            self._names = (record.epoch, names)
        return self._names[1]

    def _look(self) -> Record:
        """Read where the study stands."""
        self._record = self.store.record(self.name)
        return self._record

    @property
    def state(self) -> str:
        """``open``, ``finished``, ``exhausted`` (the money ran out) or ``closed``."""
        return self._look().state

    @property
    def finished(self) -> bool:
        """Whether the plan has returned."""
        return self.state in ("finished", "exhausted")

    # asking

    def ask(
        self,
        limit: int | None = None,
        worker: str | None = None,
        lease: float = 3600.0,
        *,
        rows: Any = None,
        cols: Any = None,
        mode: str | None = None,
    ) -> Asked:
        """Return at most `limit` open questions that nobody holds, held by `worker` for `lease` seconds.

        `rows` and `cols` say which lines you can measure: labels or patterns such as ``"gpt-*"``, or numbers where
        there are no labels; `mode` which instrument. Where columns are workers (the plan ``crowd``), a named `worker` gets the
        questions of the column of that name. Units (whole columns) and plates are handed out whole, so a few
        more may come. The answer's ``why`` says why fewer came than `limit`.
        """
        wanted = self.wanted(worker, rows, cols, mode)
        return self.asked(self.lease(limit, worker, lease, wanted), limit, wanted)

    def wanted(self, worker: str | None, rows: Any, cols: Any, mode: str | None) -> Filter:
        """Return which questions somebody can answer; by the plan ``crowd``, a worker those of the own column."""
        if worker is not None and cols is None and plans.by_worker(self._record.plan):
            cols = [worker]
        if rows is None and cols is None and mode is None:
            return ANY
        labels = self._labels(self._look())
        return Filter(labels.lines("row", rows), labels.lines("col", cols), mode)

    def asked(self, leased: Leased | None, limit: int | None, wanted: Filter = ANY) -> Asked:
        """Return leased questions one by one, and why they are fewer than `limit`."""
        found = Asked(self.labels.questions(leased, leased.until) if leased else ())
        if len(found) < (limit or 1):
            plates = {q.plate for q in found if q.plate is not None}
            found.why = plates_are_whole(plates) if plates else self._why(bool(wanted))
        return found

    def lease(
        self,
        limit: int | None = None,
        worker: str | None = None,
        lease: float = 3600.0,
        wanted: Filter = ANY,
        advance: Advancing | None = None,
    ) -> Leased | None:
        """Do what :meth:`ask` does, and return columns: the way for many questions at once.

        Where too few questions fit, `advance` has a step made; :meth:`advance` does unless another is given.
        """
        self.taking(limit, worker, lease, wanted)
        return self._unless_closed(*self.take(limit, worker, lease, wanted, advance))

    def lease_more(
        self, found: Leased | None, taking: Taking, advance: Advancing | None = None
    ) -> Leased | None:
        """Do what :meth:`lease` does where `found` was handed out, which is not enough."""
        return self._unless_closed(*self._topped_up(found, taking, advance))

    def taking(
        self, limit: int | None, worker: str | None, lease: float, wanted: Filter = ANY
    ) -> Taking:
        """Return what somebody wants to hold, or refuse it."""
        if limit is not None and limit < 1:
            raise ParameterError(f"limit of ask (--limit) must be at least 1, got {limit}")
        if not (np.isfinite(lease) and lease > 0):
            raise ParameterError(
                f"lease (--lease) must be a number of seconds above 0, got {lease}"
            )
        if worker is not None and (not worker or "\n" in worker):
            raise ParameterError(f"a worker's name must be one line of text, got {worker!r}")
        return Taking(self._record, limit, worker, lease, wanted)

    def _unless_closed(self, found: Leased | None, state: str) -> Leased | None:
        if state == "closed":
            raise StoreError(f"study {self.name!r} is closed; reopen it to ask")
        return found

    def take(
        self,
        limit: int | None,
        worker: str | None,
        lease: float,
        wanted: Filter = ANY,
        advance: Advancing | None = None,
    ) -> tuple[Leased | None, str]:
        """Return (questions, state of the study), making a step where too few questions fit."""
        taking = Taking(self._record, limit, worker, lease, wanted)
        found = self.store.leases.take(taking)
        if self.enough(found, limit):
            return found, "open"
        return self._topped_up(found, taking, advance)

    def enough(self, found: Leased | None, limit: int | None) -> bool:
        """Tell whether no step is to be made for who got `found`: a streaming plan may give more at once."""
        if found is None or not self._record.streaming:
            return found is not None
        missing = 0 if limit is None else limit - len(found)
        return missing < max(1, found.smallest_plate)  # no further plate would fit

    def _topped_up(
        self, found: Leased | None, taking: Taking, advance: Advancing | None
    ) -> tuple[Leased | None, str]:
        count = 0 if found is None else len(found)
        missing = None if taking.limit is None else taking.limit - count
        record = (advance or self.advance)(taking.wanted, missing)
        if record.state == "open":
            rest = taking._replace(record=record, limit=missing, begun=found is not None)
            more = self.store.leases.take(rest)
            found = more if found is None else found if more is None else joined(found, more)
        return found, "open" if found is not None else record.state

    def _why(self, filtered: bool) -> str:
        """Say why fewer questions came than were wanted."""
        now = self.status()
        if now["state"] != "open":
            return f"the study is {now['state']}"
        out = status.out(now)
        if filtered:
            return f"no more questions fit what you can measure now; {out}, {now['free']} others are free"
        if now["free"]:
            return f"{now['free']} are free, and belong to plates or units that others hold in part"
        if now["leased"]:
            return f"{out}, none is free; the plan waits for them"
        return "the plan has nothing more to ask now"

    # telling

    def tell(
        self,
        answers: Any,
        worker: Workers = None,
        *,
        blame: Blaming | None = None,
    ) -> int:
        """Keep answers, all of them or none; return how many were new.

        Each is ``(id, value)``, ``(question, value)`` or ``(row, col, value)``; None or ``"failed"`` says that the
        measurement failed. Or they are a frame with ``value``, and ``id`` or ``row`` and ``col``; its empty values are
        left out. The same answer twice is harmless. Another value is refused, with both named,
        or kept beside the first where the plan takes repeated noisy answers, or where two people held the question. A
        named worker must hold the questions, or have held them: a late answer counts.
        """
        blame = blame or (lambda k: f"answer {k}: ")
        told = self.parsed(told_lines(answers), blame)
        return self.put(told, worker, blame=blame)

    def parsed(self, answers: Any, blame: Blaming) -> Told:
        """Return answers by columns; labels that are new since we looked are looked up."""
        record = self._record
        try:
            return parse(self.store.tells, record, self._labels(record), answers, blame)
        except TellError:
            if self._look().epoch == record.epoch:
                raise
        return parse(self.store.tells, self._record, self._labels(self._record), answers, blame)

    def put(self, told: Told, worker: Workers = None, *, blame: Blaming | None = None) -> int:
        """Do what :meth:`tell` does for answers by columns: the way for many answers at once."""
        if not len(told.value):
            return 0
        blame = blame or (lambda k: f"answer {k}: ")
        name = self.labels.name
        new, left = self.store.tells.put(self._record, told, worker, name, blame, self._witness)
        self._witness = left
        if left is None:
            self._advance_after("the answers are")
        return new

    def put_all(
        self, tolds: Sequence[tuple[Told, Workers, Blaming]], advance: Callable[[], Any]
    ) -> list[int | TellError]:
        """Keep what several tell, in their order and in one transaction; return how much was new, or why it was refused.

        Where all that was asked is answered, `advance` has a step made.
        """
        if not tolds:
            return []
        name = self.labels.name
        new, left = self.store.tells.put_all(self._record, tolds, name)
        if left is None:
            advance()
        return new

    def _advance_after(self, kept: str) -> None:
        try:
            self.advance()
        except EntrywiseError as error:
            raise type(error)(
                f"{kept} kept, but {self._record.plan} cannot go on: {error}"
            ) from error

    # advancing

    def advance(self, wanted: Filter = ANY, limit: int | None = None) -> Record:
        """Work out the next questions if there is something to work out, and return where the study stands.

        The plan runs outside of any transaction; what it asks is installed by compare-and-swap on the cursor and
        the money. Of several who come at once, one works and the others wait a moment.
        """
        while True:
            record = self._look()
            if record.state != "open" or not self._due(record):
                return record
            with self._alone:
                if self._step(record, wanted, limit):
                    return self._look()

    def _due(self, record: Record) -> bool:
        """Tell whether a step can be made: a batch plan waits for all that it asked."""
        return record.streaming or self.store.leases.open_question(record) is None

    def _step(self, record: Record, wanted: Filter, limit: int | None) -> bool:
        """Make a step; tell whether that is all for now."""
        self._refuse_other_version(record)
        if not self.store.claim(record, self._id, self._patience) and not self._tired():
            time.sleep(_PAUSE)
            return False
        self._waiting = None
        start = time.monotonic()
        try:
            made = self._steps.next(record, wanted, limit)
        except Refused as refused:
            if self.store.record(self.name).cursor != record.cursor:
                return False  # somebody else moved it meanwhile
            raise self._trouble(record, refused) from refused.error
        self._patience = max(self._least, 4.0 * (time.monotonic() - start))
        if made is None:
            self.store.unclaim(record, self._id)
            return True
        if not self._install(record, made):
            if self.store.record(self.name).next_step == record.next_step:
                self._steps.live = None  # the money changed: what it could afford may have, too
            return False
        self._steps.installed(record, made)
        handed_over = made.ended is None and not any(len(s.fresh) for s in made.steps)
        requeued = any(want.requeue for s in made.steps for want in s.wants)
        return not (record.streaming and handed_over and not requeued)

    def _install(self, record: Record, made: Advance) -> bool:
        """Add steps; tell whether the study stood where they begin.

        An answer to a question of an earlier epoch may come while the plan asks that question again, as new: then it is
        there already, and the plan is run again with the answer.
        """
        try:
            found = self.store.install(record, made)
        except sa.exc.IntegrityError:
            self._collisions += 1
            if self._collisions > _MOST_COLLISIONS:
                raise
            return False
        self._collisions = 0
        return found

    def _tired(self) -> bool:
        """Tell whether we have waited long enough for somebody else's step: by our own clock, too."""
        now = time.monotonic()
        self._waiting = self._waiting or now
        return now - self._waiting > self._patience

    def _refuse_other_version(self, record: Record) -> None:
        made = record.versions.get("entrywise", __version__)
        if record.streaming and made != __version__:
            words = (
                f"this epoch of {record.plan} belongs to version {made}, this is {__version__}; "
                "begin one for it with `study renew`"
            )
            raise ReplayDiverged(words)

    def _trouble(self, record: Record, refused: Refused) -> EntrywiseError:
        """Note why the plan cannot go on, with the last answers told and how to correct them."""
        error, labels = refused.error, self._labels(record)
        words = labels.translate(str(refused))
        if not isinstance(error, ReplayDiverged):
            words += status.last_answers(self.store, record, labels)
        self.store.trouble(record, f"{type(error).__name__}: {words}")
        if isinstance(error, EntrywiseError):
            return type(error)(words)
        return StoreError(f"{type(error).__name__}: {words}")

    # looking

    def result(self) -> Any:
        """Return the plan's result, or the best one so far, with its cost and certificate."""
        while True:
            record = self._look()
            try:
                with self._alone:
                    found = self._steps.result(record)
            except Refused as refused:
                if self.store.record(self.name).cursor != record.cursor:
                    continue  # somebody else moved it meanwhile
                words = self._labels(record).translate(str(refused))
                kind = type(refused.error)
                if not issubclass(kind, EntrywiseError):
                    kind, words = StoreError, f"{kind.__name__}: {words}"
                raise kind(words) from refused.error
            spent = self.status()["spent"]
            if record.state in ("finished", "exhausted"):
                return replace(found, cost=spent)
            words = "stopped" if record.state == "closed" else "running"
            return replace(found, cost=spent, status=words)

    @property
    def certificate(self) -> Certificate | None:
        """What is promised about :meth:`result`, in numbers."""
        found: Result = self.result()
        return found.certificate

    def status(self) -> dict[str, Any]:
        """Return where the study stands: state, open and leased questions, money, troubles; it works nothing out."""
        found = status.look(self.store, self.name)
        self._record = found.now.record
        return status.status(found, self._labels(self._record))

    def log(self) -> Iterator[dict[str, Any]]:
        """Go through all that was asked and answered, what no longer stands included."""
        record = self._look()
        return status.log(self.store, record, self._labels(record))

    def check(self) -> dict[str, Any]:
        """Hold the ledger against the log and replay the plan; return what was checked, raise where it fails."""
        from entrywise.study.check import check

        return check(self.store, self._look(), self._steps)

    # changing

    def release(self, worker: str | None = None) -> int:
        """Take back what `worker` (or everybody) holds; return how many questions that were."""
        return self.store.leases.release(self._record.id, worker)

    def close(self) -> None:
        """Stop asking and telling; what was answered stays, and so does the result so far."""
        changes.close(self.store, self.name)

    def reopen(self, budget: float | None = None) -> None:
        """Go on with a closed study, or set the money that it has in all."""
        changes.reopen(self.store, self.name, self._maker, budget)
        self._advance_after("the change is")

    def extend(
        self,
        rows: Sequence[str] | int | None = None,
        cols: Sequence[str] | int | None = None,
        budget: float | None = None,
        *,
        prices: Prices | Mapping[str, Any] | None = None,
        row_features: Any = None,
        col_features: Any = None,
    ) -> None:
        """Add rows and columns (labels, or how many where there are none) and money.

        Where prices are given by line, give those of all lines again. Where lines have features, give those of the new
        ones, a frame by label or an array in order; what is missing is taken for the mean.
        """
        features = {"row": row_features, "col": col_features}
        changes.extend(self.store, self.name, self._maker, rows, cols, budget, prices, features)
        self._advance_after("the change is")

    def add(self, known: Any) -> int:
        """Add entries that somebody measured anyway (Observations, a frame, ...), as known: used, and free; return how many."""
        seen = _seen(known)
        count = changes.add(self.store, self.name, self._labels(self._look()), seen)
        self._advance_after("the entries are")
        return count

    def drop(self, rows: Any = None, cols: Any = None) -> None:
        """Ask no more in some rows and columns, given by label, pattern or number; their answers stay."""
        labels = self._labels(self._look())
        gone = [labels.lines("row", rows) or (), labels.lines("col", cols) or ()]
        if not any(gone):
            raise ParameterError("drop rows (--row) or columns (--col); none of them was given")
        changes.drop(self.store, self.name, self._maker, *gone)
        self._advance_after("the change is")

    def change(
        self,
        params: Mapping[str, Any] | None = None,
        prices: Prices | Mapping[str, Any] | None = None,
    ) -> None:
        """Go on with other parameters or prices; what was told counts."""
        changes.set_params(self.store, self.name, self._maker, params or {}, prices)
        self._advance_after("the change is")

    def amend(
        self, answer: Any, value: Any, worker: str | None = None, *, reason: str | None = None
    ) -> int:
        """Correct an answer, given by its id or as (row, col); the log keeps both values and the reason.

        Return how many questions are out: their answers are kept and used, as ever.
        """
        labels = self._labels(self._look())
        changes.amend(self.store, self.name, labels, answer, value, worker, reason)
        self._advance_after("the correction is")
        return changes.out_with(self.store, self._look())

    def void(self, answer: Any, worker: str | None = None, *, reason: str | None = None) -> None:
        """Forget an answer, given by its id or as (row, col), so that it is asked again; the log keeps the reason."""
        changes.void(self.store, self.name, self._labels(self._look()), answer, worker, reason)
        self._advance_after("the change is")

    def renew(self) -> None:
        """Begin an epoch with this version of the plan, after an upgrade that asks otherwise."""
        changes.renew(self.store, self.name, self._maker)
        self._advance_after("the change is")

    def fork(self, name: str, **options: Any) -> Study:
        """Start the plan again under a new name, with all that was told; questions that are out stay here.

        Options: url, params (those that change), seed, budget, prices.
        """
        store = changes.fork(self.store, self.name, name, self._maker, **options)
        return Study(store, name, self._allowed)

    def delete(self) -> None:
        """Take the study out of its database, all of it."""
        changes.delete(self.store, self.name)

    def export(self, path: str | PathLike[str]) -> None:
        """Write all of the study to one portable file: a zip of CSV and JSON."""
        from entrywise.study import archive

        archive.export(self.store, self._look(), path)

    @classmethod
    def load(
        cls,
        url: str | Store,
        path: str | PathLike[str],
        name: str | None = None,
        *,
        plans: Mapping[str, Callable[..., Plan]] | None = None,
    ) -> Study:
        """Rebuild the study that :meth:`export` wrote, under its own name or another."""
        from entrywise.study import archive

        found = archive.read(path)
        store = Store.of(url)
        return cls.open(store, archive.write(store, found, name), plans=plans)

    def run(self, oracle: Oracle, workers: int = 4, **options: Any) -> Any:
        """Let `oracle` answer until the study is finished, in several threads, and return the result.

        Options are those of :func:`entrywise.study.work.work`.
        """
        from entrywise.study.work import work

        work(self, oracle, workers=workers, **options)
        return self.result()

    def play(self, oracle: Oracle) -> Any:
        """Let `oracle` answer whole batches in this thread, to the end, and return the result."""
        return self.run(oracle, workers=1, whole=True)


def plates_are_whole(plates: set[int]) -> str:
    """Say why fewer questions came than a plate has wells."""
    what = "this plate uses" if len(plates) == 1 else f"these {len(plates)} plates use"
    return f"plates are handed out whole, and {what} no more wells; ask again for the next"


def joined(first: Leased, then: Leased) -> Leased:
    """Return what two takes handed out, one after the other."""

    def both(name: str) -> Any:
        a, b = getattr(first, name), getattr(then, name)
        return np.concatenate([a, b]) if isinstance(a, np.ndarray) else a + b

    arrays = ("batches", "positions", "rows", "cols", "modes", "price")
    lists = ("unit", "arm", "probability", "plate", "well")
    return replace(then, **{name: both(name) for name in (*arrays, *lists)})


def _with(
    allowed: Mapping[str, Callable[..., Plan]] | None, plan: str
) -> dict[str, Callable[..., Plan]]:
    """Return the plans that are allowed, with the one that the person names as module:function."""
    found = dict(allowed or {})
    if ":" in plan and plan not in found:
        found[plan] = plans.imported(plan)
    return found


_makers = plans.makers


def _seen(known: Any) -> Known:
    """Return known entries as observations, by instrument where a mapping names them."""
    if isinstance(known, Mapping):
        return {str(mode): as_observations(table) for mode, table in known.items()}
    return as_observations(known)
