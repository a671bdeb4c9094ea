"""Laws that every store of studies obeys.

A law takes a :class:`Desk`, which makes and opens studies in the store at hand, and raises AssertionError
with a sentence when the store breaks it::

    from entrywise.checks import stores

    @pytest.mark.parametrize("law", stores.LAWS)
    def test_my_store(law, tmp_path):
        law(MyDesk(tmp_path))        # create(name, **options) and open(name) return studies
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from entrywise.checks.plans import same_result
from entrywise.exceptions import EntrywiseError, StoreError, TellError
from entrywise.gallery import random_psd
from entrywise.methods import make_plan
from entrywise.observations import Observations
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.types import Array

N, SEED = 7, 1
PLAN = {"plan": "adaptive-nystrom", "params": {"n": N}, "seed": SEED}


class Desk(Protocol):
    """Makes and opens studies in one store."""

    def create(self, name: str, **options: Any) -> Any:
        """Make a study."""

    def open(self, name: str) -> Any:
        """Open a study as another process would: nothing is shared but the store."""


Law = Callable[[Desk], None]


def _matrix(seed: int = 0) -> Array:
    return random_psd(N, 2, seed)


def _played(matrix: Array, **extra: Any) -> Any:
    return play(make_plan("adaptive-nystrom", {"n": N, "rng": SEED}), MatrixOracle(matrix), **extra)


def _tell(
    study: Any, matrix: Array, limit: int | None = None, worker: str | None = None
) -> list[Any]:
    asked: list[Any] = study.ask(limit, worker)
    study.tell([(q.id, matrix[q.index]) for q in asked], worker)
    return asked


def _refused(call: Callable[[], Any], kind: type[EntrywiseError], words: str) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"{words} must be refused")


def ends_like_play(desk: Desk) -> None:
    """A study ends in the result of playing its plan, bit for bit, and costs the same."""
    study, A = desk.create("ends", **PLAN), _matrix()
    expected, found = _played(A), study.run(MatrixOracle(A), workers=2)
    assert study.finished, "the study did not finish"
    assert same_result(found, expected), "the study's result differs from that of play"
    assert found.cost == expected.cost, f"the study cost {found.cost}, play {expected.cost}"


def survives_reopening(desk: Desk) -> None:
    """Opened anew before every single answer, a study asks and ends the same."""
    A, expected = _matrix(), _played(_matrix())
    desk.create("reopened", **PLAN)
    asked = 0
    while not desk.open("reopened").finished:
        asked += len(_tell(desk.open("reopened"), A, limit=1))
        assert asked <= N * N, "the study asks without end"
    assert same_result(desk.open("reopened").result(), expected), "reopening changed the result"
    assert asked == expected.cost, f"{asked} questions were asked, {expected.cost:g} are enough"


def tells_once(desk: Desk) -> None:
    """The same answers twice are harmless, in any order and in parts; another value is refused with both named."""
    study, A = desk.create("once", **PLAN), _matrix()
    asked = study.ask()
    answers = [(q.id, A[q.index]) for q in asked]
    assert study.tell(answers[1:4]) == 3, "new answers must be counted"
    assert study.tell(answers[3:0:-1]) == 0, "old answers must not be counted again"
    told = study.status()["answered"]
    bad = [answers[0], (answers[1][0], 12.5)]
    words = _refused(lambda: study.tell(bad), TellError, "another value for an answered question")
    for value in (12.5, float(answers[1][1])):
        assert repr(value) in words, f"both values must be named: {words}"
    assert study.status()["answered"] == told, "a refused tell must write nothing"
    study.tell(answers)
    assert study.tell(answers) == 0, "answers of a closed batch must be harmless when told again"


def leases_exclude(desk: Desk) -> None:
    """Two workers never hold the same question; an expired lease passes on, and a late answer counts once."""
    A = _matrix()
    one, two = desk.create("leases", **PLAN), desk.open("leases")
    clock = [1000.0]
    one.store.clock = two.store.clock = lambda: clock[0]
    first, second = one.ask(4, "one", 60.0), two.ask(None, "two", 60.0)
    assert len(first) == 4, f"4 questions were wanted, {len(first)} came"
    assert not {q.id for q in first} & {q.id for q in second}, "a question was handed out twice"
    assert two.ask(None, "two") == [], "held questions were handed out"
    _refused(lambda: two.tell([(first[0].id, 1.0)], "two"), TellError, "an answer without a lease")
    clock[0] += 61.0
    taken = two.ask(4, "two", 60.0)
    assert len(taken) == 4, "an expired lease must pass on"
    new = one.tell([(q.id, A[q.index]) for q in first], "one")
    assert new == 4, "a late answer must be kept"
    late = [q for q in taken if q.id in {f.id for f in first}]
    assert two.tell([(q.id, A[q.index]) for q in late], "two") == 0, (
        "an answer must be counted once"
    )


def releases(desk: Desk) -> None:
    """What a worker gives back is handed out again."""
    study = desk.create("release", **PLAN)
    held = study.ask(3, "one")
    assert study.release("one") == 3, "three questions were held"
    assert {q.id for q in study.ask(3, "two")} == {q.id for q in held}, (
        "released questions must be handed out"
    )


def advances_once(desk: Desk) -> None:
    """Whoever finds a batch complete works out the next one; it is installed once."""
    A = _matrix()
    one = desk.create("race", **PLAN)
    two = desk.open("race")
    asked = one.ask()
    answers = [(q.id, A[q.index]) for q in asked]
    one.tell(answers[:-1])
    leases = two.store.leases
    original = leases.open_question

    def overtaken(record: Any) -> Any:
        leases.open_question = original
        one.tell(answers[-1:])
        return original(record)

    leases.open_question = overtaken
    two.advance()
    assert one.status()["batches"] == 2, f"there must be two batches, not {one.status()['batches']}"
    stale = two.store.record(one.name)
    older = replace(stale, cursor=stale.cursor - 1)
    richer = replace(stale, committed=stale.committed + 1.0)
    for other in (older, richer):
        assert not two.store.install(
            other, SimpleNamespace(steps=(), ended="finished", reason=None)
        ), "a step was installed on an old state"


def known_is_free(desk: Desk) -> None:
    """Entries known beforehand are not asked and cost nothing."""
    A = _matrix()
    known = Observations.from_triplets(np.arange(N), np.arange(N), np.diag(A), shape=(N, N))
    study = desk.create("known", known=known, **PLAN)
    found = study.run(MatrixOracle(A), workers=1)
    assert found.cost == _played(A).cost - N, "the diagonal was known and must be free"
    assert same_result(desk.open("known").result(), _played(A)), (
        "what is known must not change the result"
    )


def never_overspends(desk: Desk) -> None:
    """The budget is kept; when it runs out the best result so far is there, and more money goes on."""
    A = _matrix()
    study = desk.create("poor", budget=N + 2.0, **PLAN)
    found = study.run(MatrixOracle(A), workers=1)
    assert found.status == "exhausted", "the result must say that the money ran out"
    assert found.cost <= N + 2.0, f"the budget of {N + 2} was not kept: {found.cost} was spent"
    assert desk.open("poor").state == "exhausted", "the study must say that its money ran out"
    study.reopen(budget=1000.0)
    assert same_result(study.run(MatrixOracle(A), workers=1), _played(A)), (
        "more money must lead to the same end"
    )


def failures_hold(desk: Desk) -> None:
    """A failed answer that the plan needs holds the batch, is named, and is measured again."""
    study, A = desk.create("failed", **PLAN), _matrix()
    asked = study.ask()
    study.tell([(q.id, None if k == 2 else A[q.index]) for k, q in enumerate(asked)])
    now = study.status()
    assert now["open"] == 1, f"one question is open, not {now['open']}"
    assert asked[2].id in str(now["trouble"]), "the failed entry must be named"
    again = desk.open("failed").ask()
    assert [q.id for q in again] == [asked[2].id], "a failed question must be asked again"
    study.tell([(again[0].id, A[again[0].index])])
    now = study.status()
    assert (now["batch"], now["trouble"]) == (1, None), "the study must go on"


def corrections_count(desk: Desk) -> None:
    """After a correction the study ends as if the right answer had been told at once; both values are kept."""
    A = _matrix()
    study = desk.create("wrong", **PLAN)
    asked = study.ask()
    wrong = 1.5 * A[asked[3].index]
    study.tell([(q.id, wrong if k == 3 else A[q.index]) for k, q in enumerate(asked)])
    _tell(study, A, limit=2)
    study.amend(asked[3].id, A[asked[3].index])
    found = desk.open("wrong").run(MatrixOracle(A), workers=1)
    assert same_result(found, _played(A)), (
        "the corrected study must end like one that was right from the start"
    )
    assert study.status()["spent"] == found.cost >= _played(A).cost, (
        "what was spent before the correction counts"
    )
    values = {line["value"] for line in study.log() if line["id"] == asked[3].id}
    assert values == {wrong, A[asked[3].index]}, "the log must keep both values"


def forks_ask_nothing_again(desk: Desk) -> None:
    """A fork of a finished study is finished at once, at the same cost."""
    A = _matrix()
    study = desk.create("old", **PLAN)
    found = study.run(MatrixOracle(A), workers=1)
    twin = study.fork(study.name + "-fork")
    assert twin.finished, "a fork with the same parameters must ask nothing"
    assert same_result(twin.result(), found), "a fork must end the same"
    assert twin.result().cost == found.cost, "a fork must say what all of it cost"


def closes_and_reopens(desk: Desk) -> None:
    """A closed study refuses questions and answers, keeps its result so far, and goes on when reopened."""
    study, A = desk.create("closed", **PLAN), _matrix()
    asked = _tell(study, A)
    more = study.ask(2)
    study.close()
    _refused(lambda: study.ask(1), StoreError, "asking a closed study")
    _refused(lambda: study.tell([(more[0].id, 1.0)]), TellError, "telling a closed study")
    assert study.tell([(asked[0].id, A[asked[0].index])]) == 0, "an old answer stays harmless"
    assert desk.open("closed").result().status == "stopped", "a closed study has a result so far"
    study.reopen()
    study.release()
    assert same_result(study.run(MatrixOracle(A), workers=1), _played(A)), (
        "reopening must lead to the same end"
    )


def travels(desk: Desk) -> None:
    """An exported study is rebuilt identically, and its export is the same file."""
    import tempfile
    from pathlib import Path

    study, A = desk.create("travels", rows=[f"a{k}" for k in range(N)], **PLAN), _matrix()
    _tell(study, A, limit=5, worker="one")
    study.ask(1, "two")
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "1.zip"), Path(folder, "2.zip")
        study.export(first)
        twin = type(study).load(study.store, first, study.name + "-twin")
        twin.export(second)
        names = [f'"name": "{s.name}"'.encode() for s in (study, twin)]
        import zipfile

        for part in set(zipfile.ZipFile(first).namelist()) - {"digest"}:
            a, b = (zipfile.ZipFile(path).read(part) for path in (first, second))
            assert a == b.replace(names[1], names[0]), f"{part} differs after export and import"
    for each in (study, twin):
        each.release()
    assert same_result(
        study.run(MatrixOracle(A), workers=1), twin.run(MatrixOracle(A), workers=1)
    ), "the twin differs"


LAWS: tuple[Law, ...] = (
    ends_like_play,
    survives_reopening,
    tells_once,
    leases_exclude,
    releases,
    advances_once,
    known_is_free,
    never_overspends,
    failures_hold,
    corrections_count,
    forks_ask_nothing_again,
    closes_and_reopens,
    travels,
)
