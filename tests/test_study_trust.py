"""Data run nothing, one odd answer locks nobody out, secrets stay secret, other people's files stay theirs."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import types
import zipfile

import numpy as np
import pytest
import sqlalchemy as sa

import study_plans
from databases import fill, small_board
from entrywise.exceptions import DataError, EntrywiseError, ParameterError, StoreError
from entrywise.gallery import random_psd
from entrywise.observations import Observations
from entrywise.queries import Batch, plan
from entrywise.results import LowRank
from entrywise.study import Store, Study, database, steps
from entrywise.study.archive import _digest
from entrywise.study.database import OURS, masked
from entrywise.study.records import Told
from entrywise.study.schema import HEAD, epochs, studies

A = random_psd(9, 3, 5)
NYSTROM = {"plan": "adaptive-nystrom", "params": {"n": 9}, "seed": 1}


# data never name code


def hostile(canary):
    return "subprocess:call", json.dumps({"args": f"touch {canary}", "shell": True})


def test_a_hostile_database_runs_nothing(desk, tmp_path):
    canary = tmp_path / "PWNED"
    study = desk.create("hostile", **NYSTROM)
    fill(study, A, limit=3)
    plan, params = hostile(canary)

    def poison(connection):
        mine = studies.c.id == study._record.id
        connection.execute(sa.update(studies).where(mine).values(plan=plan))
        here = epochs.c.study == study._record.id
        connection.execute(sa.update(epochs).where(here).values(params=params))

    study.store.database.write(poison)
    again = Study.open(desk.url, study.name)
    again.status()
    list(again.log())
    again.export(tmp_path / "x.zip")
    asked = again.ask()
    for call in (
        lambda: again.tell([(q.id, A[q.index]) for q in asked]),
        again.result,
        again.renew,
        again.advance,
        again.check,
        lambda: again.fork(again.name + "-fork"),
    ):
        with pytest.raises(StoreError, match="--allow-plan subprocess:call"):
            call()
    assert again.status()["answered"] == 9  # the answers were kept all the same
    assert not canary.exists()


def test_a_hostile_archive_runs_nothing(desk, tmp_path):
    canary = tmp_path / "PWNED"
    study = desk.create("hostile", **NYSTROM)
    study.export(tmp_path / "good.zip")
    plan, params = hostile(canary)
    with zipfile.ZipFile(tmp_path / "good.zip") as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    del parts["digest"]
    parts["study.json"] = parts["study.json"].replace("adaptive-nystrom", plan)
    quoted = params.replace('"', '""')
    parts["epochs.csv"] = parts["epochs.csv"].replace('\'{""n"": 9}', f"'{quoted}")
    assert canary.name in parts["epochs.csv"]
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
        archive.writestr("digest", _digest(parts))
    found = Study.load(desk.url, tmp_path / "bad.zip", study.name + "-bad")
    found.status()
    with pytest.raises(StoreError, match="--allow-plan subprocess:call"):
        found.result()
    assert not canary.exists()


def test_a_plan_of_ones_own_runs_where_it_is_allowed(lab):
    study = Study.create(
        lab, "own", plan="mine", params={"n": 3}, plans={"mine": study_plans.tolerant}
    )
    with pytest.raises(ParameterError, match="no active method is called 'mine'"):
        Study.open(lab, "own").result()
    again = Study.open(lab, "own", plans={"mine": study_plans.tolerant})
    again.tell([(q.id, 1.0) for q in again.ask()])
    assert again.finished
    assert study.finished


# one odd answer


@pytest.mark.parametrize(
    ("plan", "params", "odd", "budget"),
    [
        ("rank-one", {"shape": [8, 6]}, 1e160, None),
        ("noisy-cur", {"shape": [12, 10], "noise": {"column": 0.2, "entry": 0.05}}, 1e30, 70.0),
    ],
)
def test_one_odd_answer_locks_nobody_out(desk, plan, params, odd, budget, tmp_path):
    options = {} if budget is None else {"budget": budget, "prices": {"column": 4, "entry": 1}}
    study = desk.create("odd", plan=plan, params=params, seed=1, **options)
    truth = np.outer(np.arange(1.0, 13), np.arange(1.0, 11))
    asked = study.ask()
    answers = [(q.id, odd if k == 0 else truth[q.index]) for k, q in enumerate(asked)]
    with contextlib.suppress(EntrywiseError):  # the plan may not get over it; the answers are kept
        study.tell(answers)
    again = desk.open("odd")
    now = again.status()
    assert now["answered"] == len(asked)
    list(again.log())
    again.export(tmp_path / "odd.zip")
    if now["trouble"]:
        assert f"{asked[0].id} " in now["trouble"]
        assert "study amend" in now["trouble"]
    again.amend(asked[0].id, truth[asked[0].index])
    assert again.status()["trouble"] is None
    assert again.result().cost > 0


class Broken(Exception):
    """Something that a plan raises and nobody expected."""


def test_whatever_a_plan_raises_is_a_trouble_of_the_study(desk):
    from entrywise.queries import Batch, plan
    from entrywise.results import LowRank

    @plan()
    def brittle(n):
        answers = yield Batch.diagonal(n)
        if answers.max() > 100:
            raise Broken("the numbers went away")
        return LowRank(np.asarray(answers).reshape(n, 1), np.ones((n, 1)))

    study = desk.create("brittle", plan="brittle", params={"n": 3}, plans={"brittle": brittle})
    with pytest.raises(
        StoreError, match=r"kept, but brittle cannot go on: Broken: the numbers went"
    ):
        study.tell([("0.0", 1.0), ("0.1", 1e9), ("0.2", 3.0)])
    trouble = study.status()["trouble"]
    assert trouble.startswith(
        "Broken: the numbers went away; the largest of the last answers are 0.1"
    )
    assert f"study amend DATABASE {study.name} 0.1 VALUE" in trouble
    study.amend("0.1", 2.0)
    assert study.finished
    np.testing.assert_array_equal(study.result().left[:, 0], [1.0, 2.0, 3.0])


# the bench is kept


def test_a_correction_leaves_the_bench_alone(desk):
    study = desk.create("bench", **NYSTROM)
    first = fill(study, A)
    bench = study.ask(worker="ann")
    assert study.amend(first[3].id, 1.02 * A[first[3].index]) == len(bench)
    assert study.tell([(q.id, A[q.index]) for q in bench], "ann") == len(bench)
    study.amend(first[3].id, A[first[3].index])
    found = study.play(lambda batch: A[batch.rows, batch.cols])
    told = {(line["row"], line["col"]) for line in study.log() if line["what"] == "told"}
    assert {q.index for q in bench} <= told
    assert found.cost == study.status()["answered"]


def test_a_tell_that_closes_a_batch_makes_few_reads(desk):
    study = desk.create("reads", **NYSTROM)
    fill(study, A)
    answers = [(q.id, A[q.index]) for q in study.ask()]
    read = []
    base = study.store.database

    def note(connection, cursor, statement, *rest):
        if statement.lstrip().upper().startswith("SELECT"):
            read.append(statement)

    engines = {id(engine): engine for engine in (base.engine, base.reader)}.values()
    for engine in engines:
        sa.event.listen(engine, "before_cursor_execute", note)
    study.tell(answers)
    looks = [s for s in read if "clock" not in s]  # the time, in each transaction
    assert study.status()["batch"] == 2
    assert len(looks) <= 8, "\n".join(looks)


# time


def test_leases_go_by_the_clock_of_the_store(desk):
    one, two = desk.create("clock", **NYSTROM), desk.open("clock")
    wall = database.time.time
    try:
        database.time.time = lambda: wall() - 365 * 86400.0  # a machine a year behind
        held = one.ask(4, "behind", lease=60.0)
    finally:
        database.time.time = wall
    assert not {q.id for q in held} & {q.id for q in two.ask(4, "right", lease=60.0)}
    try:
        database.time.time = lambda: wall() + 365 * 86400.0  # and one far ahead takes nothing away
        ahead = one.ask(1, "ahead", lease=60.0)
    finally:
        database.time.time = wall
    if desk.url.startswith("postgresql"):
        assert not {q.id for q in ahead} & {q.id for q in held}
    assert two.status()["leased"] <= 9


# secrets and files


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/x",
        "postgresql://me@127.0.0.1:1/x?password=hunter2",
        "postgresql://127.0.0.1:1/x?user=me&sslpassword=hunter2",
    ],
)
def test_a_password_is_never_shown_in_any_form(url):
    assert "hunter2" not in masked(url)
    with pytest.raises(StoreError) as caught:
        Store(url)
    assert "hunter2" not in str(caught.value)


def test_what_a_leaderboard_says_to_type_next_has_no_password(monkeypatch, tmp_path, capsys):
    from entrywise.cli.app import main

    url = "postgresql://me:hunter2@127.0.0.1:1/x"
    made = types.SimpleNamespace(name="leaderboard")
    monkeypatch.setattr(Study, "create", lambda *_, **__: made)
    for axis in ("rows", "cols"):
        (tmp_path / f"{axis}.csv").write_text("name\na\nb\n")
    files = ["--rows", str(tmp_path / "rows.csv"), "--cols", str(tmp_path / "cols.csv")]
    monkeypatch.setattr(
        sys, "argv", ["entrywise", "leaderboard", "create", url, *files, "--budget", "4"]
    )
    main()
    said = capsys.readouterr().err
    assert "study ask postgresql://me:***@127.0.0.1:1/x leaderboard" in said


def test_no_study_export_or_log_holds_the_address_of_its_database(desk, tmp_path):
    study = Study.create(desk.url, desk.prefix + "secret", plan="adaptive-nystrom", params={"n": 3})
    study.tell([(q.id, 1.0) for q in study.ask()])
    study.export(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as file:
        kept = b"".join(file.read(name) for name in file.namelist()).decode()
    kept += repr(list(study.log())) + repr(study.status())
    assert desk.url not in kept
    assert str(tmp_path) not in kept


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hunter2@host:8642",
        "https://host:8642/?token=hunter2",
        "https://host:port",
        "https://",
        "https://[::1",
    ],
)
def test_the_address_of_a_service_holds_no_secret_and_is_one(url):
    with pytest.raises(ParameterError, match=r"such as https://host:8642") as caught:
        Study.open(url, "x", token="ew_x")
    assert "hunter2" not in str(caught.value)


def test_a_bad_port_is_one_sentence():
    with pytest.raises(StoreError, match=r"such as postgresql://user@host:5432/name"):
        Store("postgresql://me@host:port/x")


def test_another_programs_file_is_not_touched(tmp_path):
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as handle:
        handle.execute("CREATE TABLE theirs (x)")
    (tmp_path / "notes.txt").write_text("Dear diary, nothing happened today.")
    for path in (other, tmp_path / "notes.txt"):
        before = path.read_bytes()
        for call in (
            lambda path=path: Store(str(path), must_exist=True),
            lambda path=path: Study.create(str(path), "x", **NYSTROM),
            lambda path=path: Study.open(str(path), "x"),
        ):
            with pytest.raises(StoreError, match="nothing was touched"):
                call()
        assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_our_files_are_marked(lab):
    Study.create(lab, "x", **NYSTROM)
    handle = sqlite3.connect(lab)
    assert handle.execute("PRAGMA application_id").fetchone() == (OURS,)
    assert handle.execute("PRAGMA user_version").fetchone() == (int(HEAD),)


def test_a_file_that_cannot_be_written_can_be_looked_at(lab, monkeypatch):
    study = Study.create(lab, "x", **NYSTROM)
    fill(study, A, limit=4)
    study.store.database.close()
    monkeypatch.setattr(database.os, "access", lambda path, how: how != os.W_OK)
    again = Study.open(lab, "x")
    assert again.status()["answered"] == 4
    assert len(list(again.log())) == 9
    with pytest.raises(StoreError, match="can be read here, not written"):
        again.ask(1)


def test_reading_never_advances(desk):
    study = desk.create("still", **NYSTROM)
    answers = [(q.id, A[q.index]) for q in study.ask()]
    study._advance_after = lambda words: None  # killed between the answers and the next step
    study.tell(answers)
    again = desk.open("still")
    before = again.store.record(again.name)
    again.status(), again.state, again.finished, list(again.log()), again.result()
    assert again.store.record(again.name) == before
    assert [q.index[1] for q in again.ask(2)] == [int(np.argmax(np.diag(A)))] * 2


def test_a_backup_holds_what_was_told_a_moment_ago(lab, tmp_path):
    study = Study.create(lab, "x", **NYSTROM)
    fill(study, A, limit=7)
    study.store.database.backup(tmp_path / "copy.db")
    assert Study.open(str(tmp_path / "copy.db"), "x").status()["answered"] == 7
    with pytest.raises(StoreError, match="does not overwrite"):
        study.store.database.backup(tmp_path / "copy.db")


def test_a_study_is_deleted_and_the_others_stay(desk):
    one, two = desk.create("one", **NYSTROM), desk.create("two", **NYSTROM)
    one.delete()
    with pytest.raises(StoreError, match="there is no study called"):
        desk.open("one")
    assert two.check()["questions"] == 9


# archives


def test_every_study_that_exports_imports(desk, tmp_path):
    label = "=" + "x" * 140_000 + "\n'\"é"
    study = desk.create("long", plan="adaptive-nystrom", rows=[label, "", "'b"], seed=1)
    fill(study, A, limit=2)
    study.export(tmp_path / "x.zip")
    twin = Study.load(desk.url, tmp_path / "x.zip", study.name + "-twin")
    assert twin.labels.rows == study.labels.rows


def test_archives_that_lie_are_refused(lab, tmp_path):
    study = Study.create(lab, "x", budget=100.0, **NYSTROM)
    fill(study, A)
    study.export(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        good = {name: archive.read(name).decode() for name in archive.namelist()}
    del good["digest"]
    rng = np.random.default_rng(0)
    for k in range(60):
        parts = dict(good)
        if k == 0:
            parts["facts.csv"] = parts["facts.csv"].replace(repr(float(A[0, 0])), "inf")
        elif k == 1:
            parts["study.json"] = parts["study.json"].replace('"total": 100.0', '"total": 3.0')
        elif k == 2:
            parts["facts.csv"] = parts["facts.csv"].replace("\n0,0,", "\n77,0,")
        elif k == 3:  # as many epochs as no memory holds
            parts["study.json"] = parts["study.json"].replace('"epoch": 0', f'"epoch": {2**60}')
        else:
            name = sorted(parts)[int(rng.integers(len(parts)))]
            at = int(rng.integers(len(parts[name])))
            parts[name] = parts[name][:at] + chr(int(rng.integers(33, 126))) + parts[name][at + 1 :]
        with zipfile.ZipFile(tmp_path / "y.zip", "w") as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
            archive.writestr("digest", _digest(parts if k % 2 or k < 4 else good))
        words = None
        try:
            Study.load(lab, tmp_path / "y.zip", f"y{k}").status()
        except DataError as error:
            words = str(error)
        if words is None:
            assert k % 2 == 1  # what may stand there, with a digest that says so
            assert k >= 4
        else:
            assert "must be a study exported by entrywise" in words
            assert "\n" not in words


@plan()
def more_of_it(shape, *, rng=None):
    """Ask for an entry once, or three times where the first answer was large."""
    first = yield Batch.entries([0], [0])
    times = 1 if first[0] < 5 else 3
    found = yield Batch.entries([1] * times, [0] * times)
    return LowRank(np.full((2, 1), found.mean()), np.ones((1, 1)))


def test_after_a_correction_a_question_on_the_bench_may_be_asked_several_times(desk):
    made = {"plan": "own:more", "plans": {"own:more": more_of_it}, "params": {"shape": [2, 1]}}
    study = Study.create(desk.url, desk.prefix + "more", seed=1, **made)
    study.tell([(q.id, 1.0) for q in study.ask()])
    (out,) = study.ask()
    study.amend("0.0", 7.0)
    more = study.ask()
    assert len(more) == 2
    study.tell([(out.id, 1.0), *((q.id, 4.0) for q in more)])
    assert study.finished
    assert study.result().entry(1, 0) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("method", "params"),
    [("best-pair", {"n_items": 6}), ("stochastic-nystrom", {"n": 6, "rank": 2})],
)
def test_an_entry_measured_anyway_may_be_added_many_times(lab, tmp_path, method, params):
    study = Study.create(lab, "pairs", plan=method, params=params, budget=200, seed=1)
    seen = Observations.from_triplets([0, 1], [1, 2], [1.0, 0.0], (6, 6))
    for _ in range(3):
        assert study.add(seen) == 2
        asked = study.ask(7, worker="ada")
        study.tell([(question.id, 1.0) for question in asked])
    assert sum(line["what"] == "known" for line in study.log()) == 6
    study.export(str(tmp_path / "pairs.zip"))
    again = Study.load(str(tmp_path / "second.db"), str(tmp_path / "pairs.zip"))
    assert len(list(again.log())) == len(list(study.log()))


def test_an_answer_may_come_while_a_correction_asks_its_question_again(desk, monkeypatch):
    made = {"plan": "own:more", "plans": {"own:more": more_of_it}, "params": {"shape": [2, 1]}}
    study = Study.create(desk.url, desk.prefix + "late", seed=1, **made)
    study.tell([(q.id, 1.0) for q in study.ask()])
    (out,) = study.ask()
    other = Study.open(desk.url, desk.prefix + "late", plans=made["plans"])
    look, told = steps.Steps._earlier, []

    def late(self, record):
        if not told:  # between what the plan saw and what is open
            told.append(other.store.tells.put(*late_answer))
        return look(self, record)

    late_answer = (
        other._look(),
        Told(np.array([1]), np.array([0]), np.array([4.0]), np.array([False])),
        None,
        other.labels.name,
        str,
        None,
    )
    monkeypatch.setattr(steps.Steps, "_earlier", late)
    study.amend("0.0", 2.0)
    assert out.id == "1.0"
    assert told
    assert study.finished or not study.ask()
    assert study.result().entry(1, 0) == 4.0
    assert study.result().cost == 2.0


@pytest.mark.parametrize(
    ("table", "column", "said", "words"),
    [
        ("epochs", "params", None, r"is about \(3, 9\) rows and columns, the study about \(3, 5\)"),
        ("studies", "state", "finished", "where the log has it ended"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused_in_one_sentence(
    lab, table, column, said, words
):
    """Labels or a result that are not there would else be a traceback."""
    study = small_board(lab)
    fill(study, np.ones((3, 5)), limit=4)
    if said is None:
        params = study.store.record("s").params
        said = json.dumps({**params, "shape": [3, 9]})
    with sqlite3.connect(lab) as file:
        file.execute(f"update {table} set {column} = ?", (said,))
    file.close()
    with pytest.raises(EntrywiseError, match=words):
        Study.open(lab, "s").result()
