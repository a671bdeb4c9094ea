"""A server that restarts, a connection lost at the worst moment, two who answer at once: nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import itertools
import threading

import pytest

from entrywise.exceptions import StoreError
from entrywise.gallery import random_psd
from entrywise.study import Study, database
from entrywise.study.crash import torture

A = random_psd(9, 2, seed=3)
NYSTROM = {"plan": "adaptive-nystrom", "params": {"n": 9}, "seed": 1}


@pytest.mark.slow
def test_workers_outlive_restarts_of_the_server(own_server):
    crashes = itertools.cycle((True, False))

    def restart():
        own_server.stop(crash=next(crashes))
        own_server.start()

    found = torture(
        own_server.url,
        "restarts",
        kills=3,
        seed=5,
        workers=3,
        n=40,
        rank=3,
        pause=0.3,
        strike=restart,
    )
    assert found.kills >= 2
    assert found.acknowledged >= found.expected_cost  # a lease may have passed on meanwhile
    assert found.unharmed


@pytest.mark.slow
def test_a_server_that_stays_away_is_one_sentence(own_server, monkeypatch):
    study = Study.create(own_server.url, "away", **NYSTROM)
    first, second, *_ = study.ask(4, "w")
    study.tell([(first.id, A[first.index])], "w")
    monkeypatch.setattr(database, "PATIENCE", 0.5)
    own_server.stop()
    for call in (
        lambda: study.tell([(second.id, A[second.index])], "w"),
        lambda: study.ask(1),
        lambda: study.run(lambda batch: A[batch.rows, batch.cols], workers=1),
    ):
        with pytest.raises(StoreError) as caught:
            call()
        words = str(caught.value)
        assert words.startswith(f"the database {own_server.url} was busy or away for 0.5 s (")
        assert words.endswith("all it acknowledged is kept, try again once it is back")
        assert "\n" not in words
    own_server.start()
    monkeypatch.setattr(database, "PATIENCE", 30.0)
    assert study.tell([(second.id, A[second.index])], "w") == 1
    assert study.status()["answered"] == 2


def lose_connection_once(store, monkeypatch):
    """Let the next commit succeed without anybody being told of it."""
    base = store.database
    words = "database is locked" if base.sqlite else "server closed the connection"
    lost = base.engine.dialect.loaded_dbapi.OperationalError(words)
    turn, run, due = base._turn, base._bare.run, [True]

    def after():
        if due:
            due.clear()
            raise lost

    @contextlib.contextmanager
    def losing(write):
        with turn(write):
            yield
        if write:
            after()

    def trip(*calls):
        found = run(*calls)
        after()
        return found

    monkeypatch.setattr(base, "_turn", losing)
    monkeypatch.setattr(base._bare, "run", trip)
    return due


def test_a_lease_whose_commit_was_not_heard_of_is_the_same_lease(desk, monkeypatch):
    study = desk.create("lease", **NYSTROM)
    due = lose_connection_once(study.store, monkeypatch)
    asked = study.ask(4, "w")
    assert not due
    assert [q.id for q in asked] == ["0.0", "0.1", "0.2", "0.3"]
    assert study.status()["leased"] == 4
    assert [q.id for q in study.ask(2, "w")] == ["0.4", "0.5"]


@pytest.mark.parametrize("count", [1, 3])
def test_answers_whose_commit_was_not_heard_of_are_kept_once(desk, monkeypatch, count):
    study = desk.create("tell", **NYSTROM)
    told = [(q.id, A[q.index]) for q in study.ask(count, "w")]
    due = lose_connection_once(study.store, monkeypatch)
    study.tell(told, "w")
    assert not due
    assert study.status()["answered"] == count
    lines = [line for line in study.log() if line["value"] is not None]
    assert [(line["id"], line["value"]) for line in lines] == told


def test_a_step_whose_commit_was_not_heard_of_is_made_once(desk, monkeypatch):
    study = desk.create("step", **NYSTROM)
    told = [(q.id, A[q.index]) for q in study.ask()]
    study.tell(told[:-1])
    install, store = study.store.install, study.store

    def losing(*args):
        due.append(lose_connection_once(store, monkeypatch))
        return install(*args)

    due = []
    monkeypatch.setattr(store, "install", losing)
    study.tell(told[-1:])
    assert due
    assert not due[0]
    assert study.status()["batches"] == 2


def test_a_study_whose_making_was_not_heard_of_is_there(desk, monkeypatch):
    store = desk.create("other", **NYSTROM).store
    due = lose_connection_once(store, monkeypatch)
    study = Study.create(store, desk.prefix + "made", **NYSTROM)
    assert not due
    assert study.status()["open"] == 9
    with pytest.raises(StoreError, match="already"):
        Study.create(store, desk.prefix + "made", **NYSTROM)


@pytest.mark.slow
def test_of_two_who_answer_the_last_two_questions_at_once_one_goes_on(own_server):
    """Each waits in the database until both have begun, so that neither sees the other's answer."""
    study = Study.create(own_server.url, "race", **NYSTROM)
    told = [(q.id, A[q.index]) for q in study.ask()]
    study.tell(told[:-2])
    slow = """
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.7); RETURN NEW; END';
        CREATE TRIGGER slow BEFORE INSERT ON facts FOR EACH ROW EXECUTE FUNCTION slow()
    """
    study.store.database.write(lambda c: c.exec_driver_sql(slow))
    both = [Study.open(own_server.url, "race") for _ in range(2)]
    for each, other in zip(both, ((0, 8), (0, 7)), strict=True):
        each._witness = other  # the question that the other one is about to answer
    ready = threading.Barrier(2)

    def tell(k):
        ready.wait()
        both[k].tell([told[k - 2]])

    threads = [threading.Thread(target=tell, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.store.record("race").current == 1
    assert study.store.leases.open_question(study.store.record("race")) is not None
