"""Where a study stands is kept, not counted: it is the count whatever happens, on either database, and after an upgrade."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from databases import small_board
from entrywise.exceptions import StoreError
from entrywise.queries import Batch, plan
from entrywise.results import LowRank
from entrywise.study import Store, Study, Told, tallies
from entrywise.study.check import ledger
from entrywise.study.course import last_answers
from entrywise.study.schedules import KINDS, schedule
from entrywise.study.schema import HEAD, facts, pending
from entrywise.study.status import standing


@plan(streaming=True)
def expecting(n, *, situation):
    """Ask for `n` entries, each of which should be 1."""
    if situation.step:
        return LowRank(np.zeros((1, 1)), np.zeros((n, 1)))
    wanted = Batch.entries(np.zeros(n, np.int64), np.arange(n))
    return replace(wanted, expected=np.ones(n), deviation=np.full(n, 0.1))


PLANS = {"test:expecting": expecting}


def expects(desk, name, n=8, **other):
    return desk.create(name, plan="test:expecting", params={"n": n}, plans=PLANS, **other)


def tell_at(study, *pairs):
    """Tell values by position, without asking."""
    at, values = zip(*pairs, strict=True)
    size = len(at)
    study.put(Told(np.zeros(size, int), np.array(at), np.array(values), np.zeros(size, bool)))


def odd(study):
    return [line["id"] for line in study.status()["implausible"]]


def held_of(study):
    """Return the money of the open questions, added up exactly."""
    p = pending.c
    query = sa.select(p.price).where(p.study == study._record.id, p.leased_until >= 0)
    return math.fsum(study.store.database.read(lambda c: c.execute(query).scalars().all()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20, 26))
def test_a_status_is_the_count_in_random_schedules(kind, seed):
    happened = schedule("sqlite://", f"{kind}-{seed}", seed, kind, events=60)
    assert happened["change"] > 0


@pytest.fixture(scope="module")
def in_memory():
    return Store("sqlite://")


@settings(max_examples=15)
@given(
    prices=st.lists(st.floats(1e-6, 1e12), min_size=2, max_size=25),
    seed=st.integers(0, 2**32 - 1),
)
def test_money_held_does_not_drift(in_memory, prices, seed):
    size = len(prices)
    study = Study.create(
        in_memory,
        f"money-{len(in_memory.records())}",
        plan="test:expecting",
        params={"n": size},
        prices={"entry": [prices]},
        plans=PLANS,
    )
    assert study.status()["held"] == held_of(study)
    for k in np.random.default_rng(seed).permutation(size).tolist():
        tell_at(study, (k, 1.0))
        now = standing(study.store, study.name)
        assert now.held == held_of(study)
    assert (now.open, now.held) == (0, 0.0)


def test_thousands_of_changes_leave_the_money_where_it_is(in_memory):
    def change(connection):
        rng = np.random.default_rng(0)
        tallies.add(connection, -7, [0.3])
        for _ in range(300):
            prices = (10.0 ** rng.uniform(-6, 9, 50)).tolist()
            tallies.add(connection, -7, prices)
            for part in np.array_split(rng.permutation(prices), 7):
                tallies.add(connection, -7, part.tolist(), sign=-1)
        return tallies.read(connection, -7)

    assert in_memory.database.write(change) == (1, 0.3)


def test_an_implausible_answer_is_marked_however_it_is_told(desk):
    study = expects(desk, "odd")
    tell_at(study, (0, 50.0))
    assert odd(study) == ["0.0"]
    tell_at(study, (1, 1.1), (2, -50.0), (3, 1.61))
    assert odd(study) == ["0.0", "0.2", "0.3"]
    told = study.status()["implausible"][1]
    assert (told["value"], told["expected"], told["deviation"]) == (-50.0, 1.0, 0.1)
    study.amend("0.0", 1.05)
    study.amend("0.1", 60.0)
    study.void("0.2")
    assert odd(study) == ["0.1", "0.3"]
    ledger(study.store, study._look())


def test_no_mark_where_nothing_was_expected_or_the_measurement_failed(desk):
    study = expects(desk, "failed")
    study.tell([(q.id, None) for q in study.ask(2, "w")], "w")
    assert not odd(study)
    plain = desk.create("plain", plan="adaptive-nystrom", params={"n": 3}, seed=1)
    plain.tell([(q.id, 1e9) for q in plain.ask(2)])
    assert not odd(plain)


def test_an_archive_is_counted_anew(desk, tmp_path):
    study = expects(desk, "archived", prices={"entry": 0.1})
    study.ask(2, "ann")
    tell_at(study, (5, 50.0), (6, 70.0), (7, 1.0))
    study.amend("0.6", 1.0)
    study.export(tmp_path / "one.zip")
    again = Study.load(desk.url, tmp_path / "one.zip", f"{desk.prefix}again", plans=PLANS)
    same = ("open", "leased", "held", "out", "answered", "implausible", "spent", "withdrawn")
    assert {k: again.status()[k] for k in same} == {k: study.status()[k] for k in same}
    last = last_answers(study.store)
    assert last[again._record.id] == last[study._record.id]
    ledger(again.store, again._look())
    again.export(tmp_path / "two.zip")
    ours = {"study.json", "digest"}
    assert _parts(tmp_path / "one.zip", ours) == _parts(tmp_path / "two.zip", ours)


def _parts(path, without):
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name not in without}


def test_a_fork_and_a_study_deleted_leave_no_count_behind(desk):
    study = expects(desk, "parent")
    tell_at(study, (0, 1.0))
    made = study.fork(f"{desk.prefix}child")
    ledger(made.store, made._look())
    assert made._record.id in last_answers(study.store)
    gone = made._record.id
    made.delete()
    assert study.store.database.read(lambda c: tallies.read(c, gone)) == (0, 0.0)
    assert gone not in last_answers(study.store)


def test_people_who_tell_at_once_are_all_counted(desk):
    study = expects(desk, "crowd", n=64, prices={"entry": 0.1})

    def tell(first):
        mine = Study.open(desk.url, study.name, plans=PLANS)
        for k in range(first, first + 14):
            tell_at(mine, (k, 1.0))
        tell_at(mine, (first + 14, 1.0), (first + 15, 2.0))

    crew = [threading.Thread(target=tell, args=(16 * k,)) for k in range(4)]
    for one in crew[:3]:
        one.start()
    for one in crew[:3]:
        one.join()
    now = study.status()
    assert (now["open"], now["answered"], now["held"]) == (16, 48, math.fsum([0.1] * 16))
    ledger(study.store, study._look())
    tell(48)
    assert study.status()["held"] == 0.0


def test_a_look_reads_neither_the_open_questions_nor_the_answers(tmp_path):
    study = small_board(str(tmp_path / "lab.db"))
    study.status()
    plans = []

    def explain(connection, cursor, statement, values, *_):
        if statement.startswith(("SELECT", "\n")) and "clock" not in statement:
            cursor = connection.connection.driver_connection.cursor()
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values)
            plans.extend(row[-1] for row in cursor.fetchall())

    engine = study.store.database.reader
    sa.event.listen(engine, "before_cursor_execute", explain)
    study.status()
    read = [line for line in plans if any(f" {t} " in line for t in ("pending", "facts", "steps"))]
    few = ("pending_out", "pending_failed", "facts_implausible", "steps_report")
    assert len(read) == len(few)
    assert all(any(index in line for index in few) for line in read)


def test_a_check_finds_a_count_that_is_wrong(lab):
    study = small_board(lab)
    study.check()
    change = study.store.database.write
    change(lambda c: tallies.add(c, study._record.id, [0.0]))
    with pytest.raises(StoreError, match="open questions"):
        study.check()
    change(lambda c: tallies.add(c, study._record.id, [1.0], sign=-1))
    with pytest.raises(StoreError, match="money held for open questions"):
        study.check()
    change(lambda c: tallies.add(c, study._record.id, [1.0]))
    change(lambda c: tallies.add(c, study._record.id, [0.0], sign=-1))
    study.tell([(q.id, 0.5) for q in study.ask(2)])
    change(lambda c: c.execute(sa.update(facts).values(implausible=True)))
    with pytest.raises(StoreError, match="implausible"):
        study.check()


def test_a_wrong_count_is_mended_when_a_study_is_renewed(desk):
    study = expects(desk, "mended", n=10, prices={"entry": 0.1})
    study.ask(3, "ann")
    study.store.database.write(lambda c: tallies.add(c, study._record.id, [0.7, 0.1], sign=-1))
    with pytest.raises(StoreError, match="study renew"):
        ledger(study.store, study._look())
    study.renew()
    ledger(study.store, study._look())
    assert study.status()["leased"] == 3


def _as_before(connection):
    """Take away what the upgrade to 0006 made."""
    for index in ("pending_out", "pending_failed", "facts_implausible", "steps_report"):
        connection.exec_driver_sql(f"DROP INDEX {index}")
    connection.exec_driver_sql("DROP TABLE tallies")
    connection.exec_driver_sql("ALTER TABLE facts DROP COLUMN implausible")
    connection.exec_driver_sql("UPDATE entrywise_version SET version_num = '0005'")


def _upgraded(url):
    study = Study.create(
        url,
        "old",
        plan="test:expecting",
        params={"n": 12},
        prices={"entry": 0.1},
        plans=PLANS,
    )
    untold = small_board(study.store, "untold")
    study.ask(2, "ann")
    tell_at(study, (5, 50.0), (6, 70.0), (7, 1.0), (8, -9.0))
    study.amend("0.6", 1.0)
    study.void("0.8")
    before, fresh = study.status(), untold.status()
    last = last_answers(study.store)
    study.store.database.write(_as_before)
    study.store.database.close()
    again = Study.open(url, "old", plans=PLANS)
    assert again.status() == before
    assert [line["id"] for line in before["implausible"]] == ["0.5"]
    assert Study.open(again.store, "untold").status() == fresh
    assert last_answers(again.store) == last
    ledger(again.store, again._look())
    version = "SELECT version_num FROM entrywise_version"
    assert again.store.database.read(lambda c: c.exec_driver_sql(version).scalar()) == HEAD


def test_a_database_without_counts_is_counted_when_it_is_opened(lab):
    _upgraded(lab)


@pytest.mark.slow
def test_a_database_without_counts_is_counted_on_a_server(own_server):
    _upgraded(own_server.url)
