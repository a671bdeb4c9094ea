"""Where questions go out and answers come in: those of the same moment share a transaction, each as if it were alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from entrywise.exceptions import EntrywiseError
from entrywise.study import Study
from entrywise.study.cells import far_off
from entrywise.study.entries import Asked
from entrywise.study.leases import Taking
from entrywise.study.records import Filter, Leased, Told
from entrywise.web.background import Background
from entrywise.web.together import Together

FEW = 100  # questions or answers that are worth to share a transaction
THREADS = 4  # studies that are spoken to at once


class Wish(NamedTuple):
    """Questions that somebody wants of a study; `can` says which: worker, rows, cols, mode."""

    study: str
    limit: int | None
    worker: str | None
    lease: float
    can: tuple[Any, ...]


class Handed(NamedTuple):
    """What came of a wish: `asked` where it is enough, else more is to be worked out."""

    study: Study
    wanted: Filter
    leased: Leased | None
    asked: Asked | None


class Delivery(NamedTuple):
    """Answers to a study, one by one; where they are not `sure`, what is far from the expected is asked back."""

    study: str
    items: list[tuple[Any, ...]]
    worker: str | None
    sure: bool
    blame: Callable[[int], str]


class Receipt(NamedTuple):
    """What came of answers: how many were told and new, or which are so odd that nothing was kept."""

    told: int
    new: int = 0
    odd: tuple[int, ...] = ()


class Exchange:
    """Hands out questions and takes in answers of all studies."""

    def __init__(self, background: Background) -> None:
        self.background = background
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="entrywise-exchange")
        self._asks = Together(self._pool, self._ask)
        self._tells = Together(self._pool, self._tell)

    def close(self) -> None:
        """Finish what is under way and stop."""
        self._pool.shutdown(wait=True)

    def ask(self, wish: Wish) -> Future[Handed]:
        """Hand out questions."""
        few = wish.limit is not None and wish.limit <= FEW
        return self._asks.submit((wish.study, None if few else object()), wish)

    def tell(self, answers: Delivery) -> Future[Receipt]:
        """Keep answers, all of them or none; they are committed when it is done."""
        few = len(answers.items) <= FEW
        return self._tells.submit((answers.study, None if few else object()), answers)

    def _ask(self, wishes: list[Wish]) -> list[Handed | Exception]:
        study = self.background.study(wishes[0].study)
        found: dict[int, Handed | Exception] = {}
        alike: dict[Filter, dict[int, Taking]] = {}
        for k, wish in enumerate(wishes):
            try:
                wanted = study.wanted(*wish.can)
                taking = study.taking(wish.limit, wish.worker, wish.lease, wanted)
                alike.setdefault(wanted, {})[k] = taking
            except EntrywiseError as error:
                found[k] = error
        for wanted, takings in alike.items():
            leased = study.store.leases.take_all(list(takings.values()))
            for k, one in zip(takings, leased, strict=True):
                limit, asked = wishes[k].limit, None
                if study.enough(one, limit):
                    asked = study.asked(one, limit, wanted)
                found[k] = Handed(study, wanted, one, asked)
        return [found[k] for k in range(len(wishes))]

    def _tell(self, several: list[Delivery]) -> list[Receipt | Exception]:
        study = self.background.study(several[0].study)
        found: dict[int, Receipt | Exception] = {}
        tolds: dict[int, Told] = {}
        for k, answers in enumerate(several):
            try:
                told = study.parsed(answers.items, answers.blame)
                odd = () if answers.sure else far_off(study.store, study.record, told)
                found[k] = Receipt(len(told.value), odd=tuple(odd))
                if len(told.value) and not odd:
                    tolds[k] = told
            except EntrywiseError as error:
                found[k] = error
        each = [(told, several[k].worker, several[k].blame) for k, told in tolds.items()]
        for k, new in zip(tolds, study.put_all(each, self._step(study)), strict=True):
            told = tolds[k]
            found[k] = new if isinstance(new, Exception) else Receipt(len(told.value), new)
        return [found[k] for k in range(len(several))]

    def _step(self, study: Study) -> Callable[[], Any]:
        return lambda: self.background.step(study.name)
