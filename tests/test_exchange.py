"""Questions and answers of the same moment share a transaction, and each comes out as if it had come alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs entrywise[web]")

from entrywise.exceptions import StoreError, TellError
from entrywise.gallery import random_psd
from entrywise.queries import Prices
from entrywise.study import Store, Study
from entrywise.study.leases import Leases
from entrywise.web.background import Background
from entrywise.web.exchange import Delivery, Exchange, Wish
from entrywise.web.together import Together

N = 12
A = random_psd(N, 2, 3)
PLATE = {"size": 4, "per": "col", "replicates": 2}
KINDS = {
    "entries": {"plan": "adaptive-nystrom", "params": {"n": N}},
    "units": {
        "plan": "study_plans:columns",
        "params": {"shape": [3, 6]},
        "prices": Prices(entry=1, column=2),
        "budget": 7.0,
    },
    "plates": {
        "plan": "most-informative",
        "params": {"shape": [9, 8], "rank": 1, "reserve": 0.0, "plate": PLATE},
        "budget": 40,
    },
}
LIMITS = (3, 1, 4, 2, 20)


def takings(study):
    return [study.taking(limit, f"w{k}", 60.0 + k) for k, limit in enumerate(LIMITS)]


def held(leased):
    if leased is None:
        return None
    return list(zip(leased.batches.tolist(), leased.positions.tolist(), leased.price, strict=True))


def about(study):
    """What the queue says of each question: who holds it and held it."""
    query = "SELECT batch, position, worker, holders FROM pending WHERE study = {} ORDER BY 1, 2"

    def look(connection):
        return connection.exec_driver_sql(query.format(study.record.id)).all()

    return [tuple(row) for row in study.store.database.read(look)]


@pytest.mark.parametrize("kind", KINDS)
def test_questions_for_several_at_once_are_those_of_one_after_the_other(desk, kind):
    one, other = (desk.create(name, seed=1, **KINDS[kind]) for name in ("one", "other"))
    for study in (one, other):
        for _ in range(3):
            study.ask(4, "away")  # a streaming plan asks for more
        study.release("away")
    together = one.store.leases.take_all(takings(one))
    apart = [other.store.leases.take(taking) for taking in takings(other)]
    assert [held(leased) for leased in together] == [held(leased) for leased in apart]
    assert sum(leased is not None for leased in together) > 1
    assert about(one) == about(other)
    first = one.store.leases.take_all(takings(one))  # what is held is not handed out again
    for leased in together:
        got = {(b, p) for b, p, _ in held(leased) or ()}
        for more in first:
            assert got.isdisjoint((b, p) for b, p, _ in held(more) or ())


def test_a_line_cut_after_the_commit_gives_each_its_own_again(desk, monkeypatch):
    study = desk.create("cut", seed=1, **KINDS["entries"])
    write, cut = study.store.database.write, []

    def twice(call):
        if not cut:
            cut.append(write(call))  # committed, and nobody heard of it
        return write(call)

    monkeypatch.setattr(study.store.database, "write", twice)
    same = [study.taking(3, None, 60.0) for _ in range(3)]  # who has no name, for as long
    found = [held(leased) for leased in study.store.leases.take_all(same)]
    keys = [(b, p) for leased in found for b, p, _ in leased]
    assert len(keys) == len(set(keys)) == 9
    assert study.status()["leased"] == 9


def told(study, ids, values, worker):
    return study.parsed(list(zip(ids, values, strict=True)), str), worker, str


def test_answers_of_several_at_once_are_those_of_one_after_the_other(desk):
    found = []
    for name in ("together", "apart"):
        study = desk.create(name, seed=1, **KINDS["entries"])
        ann, ben, eve = (study.ask(3, worker) for worker in ("ann", "ben", "eve"))
        calls = [
            ([q.id for q in ann], [1.0, 2.0, "failed: the tip broke"], "ann"),
            ([q.id for q in ben[:2]], [3.0, 4.0], "ben"),
            ([ann[0].id], [1.0], "ann"),  # the same once more
            ([ben[2].id], [6.0], None),
        ]
        if name == "together":
            tolds = [told(study, *call) for call in calls]
            new, left = study.store.tells.put_all(study.record, tolds, study.labels.name)
        else:
            new = [study.put(*told(study, *call)[:2]) for call in calls]
            left = study.store.leases.open_question(study.record)
        lines = [
            (line["id"], line["what"], line["value"], line["worker"], line["reason"])
            for line in study.log()
        ]
        found.append((new, sorted(lines, key=str), left, len(eve)))
    assert found[0] == found[1]
    assert found[0][0] == [3, 2, 0, 1]


def test_who_tells_nonsense_is_refused_and_the_others_are_not(desk):
    study = desk.create("blame", seed=1, **KINDS["entries"])
    ann, ben = study.ask(2, "ann"), study.ask(2, "ben")
    calls = [
        ([q.id for q in ann], [1.0, 2.0], "ann"),
        ([ben[0].id, ann[0].id], [3.0, 7.0], "ben"),  # another value, of what ann holds
        ([ben[1].id], [4.0], "ben"),
    ]
    tolds = [told(study, *call) for call in calls]
    new, _ = study.store.tells.put_all(study.record, tolds, study.labels.name)
    assert (new[0], new[2]) == (2, 1)
    assert isinstance(new[1], TellError)
    assert study.status()["answered"] == 3


def test_many_ask_and_tell_at_once_and_nothing_is_lost_or_doubled(desk, monkeypatch):
    sizes = []
    take = Leases.take_all

    def counted(self, takings):
        sizes.append(len(takings))
        return take(self, takings)

    monkeypatch.setattr(Leases, "take_all", counted)
    study = desk.create("many", plan="adaptive-nystrom", params={"n": 200, "rank": 1}, seed=1)
    exchange = Exchange(Background(Store(desk.url)))

    def work(k):
        mine = []
        while asked := exchange.ask(Wish(study.name, 5, f"w{k}", 60.0, (None,) * 4)).result().asked:
            items = [(q.id, 1.0) for q in asked]
            kept = exchange.tell(Delivery(study.name, items, f"w{k}", True, str)).result()
            assert kept == (5, 5, ())
            mine += [q.id for q in asked]
            if len(mine) >= 20:
                break
        return mine

    with ThreadPoolExecutor(10) as pool:
        got = [q for mine in pool.map(work, range(10)) for q in mine]
    assert len(got) == len(set(got)) == 200
    exchange.close()
    exchange.background.close()
    assert Study.open(desk.url, study.name).status()["answered"] >= 200
    assert max(sizes) > 1


def test_a_study_that_was_made_anew_is_opened_anew(lab):
    store = Store(lab)
    Study.create(store, "s", plan="adaptive-nystrom", params={"n": 3}, seed=1)
    exchange = Exchange(Background(Store(lab)))
    assert len(exchange.ask(Wish("s", 9, "w", 60.0, (None,) * 4)).result().asked) == 3
    Study.open(store, "s").delete()
    with pytest.raises(StoreError, match="there is no study"):
        exchange.ask(Wish("s", 9, "w", 60.0, (None,) * 4)).result()
    Study.create(store, "s", plan="adaptive-nystrom", params={"n": 5}, rows=list("abcde"), seed=1)
    asked = exchange.ask(Wish("s", 9, "w", 60.0, (None,) * 4)).result().asked
    assert [q.row for q in asked] == list("abcde")


def test_what_comes_meanwhile_is_done_together():
    begun, go, seen = threading.Event(), threading.Event(), []

    def double(items):
        seen.append(items)
        begun.set()
        go.wait(10)
        return [ValueError(item) if item == 3 else 2 * item for item in items]

    with ThreadPoolExecutor(1) as pool:
        together = Together(pool, double)
        first = together.submit("a", 1)
        assert begun.wait(10)
        rest = [together.submit("a", k) for k in (2, 3, 4)]
        given_up = together.submit("a", 5)
        assert given_up.cancel()
        go.set()
        assert first.result(10) == 2
        assert [rest[0].result(10), rest[2].result(10)] == [4, 8]
        with pytest.raises(ValueError, match="3"):
            rest[1].result(10)
        assert together.submit("a", 6).result(10) == 12
    assert seen == [[1], [2, 3, 4], [6]]


def test_a_study_in_which_much_happens_does_not_keep_others_waiting():
    order, both = [], threading.Event()

    def note(items):
        both.wait(10)
        order.append(items[0])
        if items[0][0] == "busy" and items[0][1] < 5:
            together.submit("busy", ("busy", items[0][1] + 1))  # always more to do
        return [None] * len(items)

    with ThreadPoolExecutor(1) as pool:
        together = Together(pool, note)
        together.submit("busy", ("busy", 0))
        waiting = together.submit("quiet", ("quiet", 0))
        both.set()
        waiting.result(10)
        assert np.flatnonzero([who == "quiet" for who, _ in order])[0] <= 3
