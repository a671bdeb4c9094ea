"""Studies: what the laws of stores do not say yet."""

from __future__ import annotations

import contextlib
import threading
import time

import numpy as np
import pytest
import sqlalchemy as sa

import entrywise as ew
import study_plans
from databases import fill
from entrywise.active import adaptive_nystrom
from entrywise.checks.plans import same_result
from entrywise.exceptions import NotPSD, ParameterError, ReplayDiverged, StoreError, TellError
from entrywise.gallery import random_psd
from entrywise.oracles import FunctionOracle, MatrixOracle
from entrywise.play import play
from entrywise.queries import Prices
from entrywise.study import Store, Study, Told, tells
from entrywise.study.database import normal_url
from entrywise.study.leases import IN_ORDER, free_questions
from entrywise.study.schema import HEAD, metadata, pending
from entrywise.study.steps import Steps

A = random_psd(9, 3, 5)
NYSTROM = {"plan": "adaptive-nystrom", "params": {"n": 9}, "seed": 1}


# the promised face


def test_the_promised_calls(database_url, desk):
    study = desk.create("promised", **NYSTROM)
    todo = ew.Study.open(database_url, study.name).ask(5, worker="w1", lease=60)
    assert [(q.id, q.row, q.col, q.mode, q.price, q.index) for q in todo[:2]] == [
        ("0.0", 0, 0, "entry", 1.0, (0, 0)),
        ("0.1", 1, 1, "entry", 1.0, (1, 1)),
    ]
    assert study.tell([(q.row, q.col, A[q.index]) for q in todo]) == 5
    assert not study.finished
    expected = play(adaptive_nystrom(9, rng=1), MatrixOracle(A))
    assert same_result(study.run(MatrixOracle(A), workers=4), expected)
    assert study.certificate.value == expected.certificate.value
    assert study.ask(3) == []
    with pytest.raises(StoreError, match="already"):
        desk.create("promised", **NYSTROM)


def test_a_question_may_be_told_in_every_form(lab):
    study = Study.create(lab, "forms", **NYSTROM)
    a, b, c, d = study.ask(4)
    assert study.tell({a.id: A[a.index]}) == 1
    assert (
        study.tell(
            [(b, A[b.index]), (c.row, c.col, A[c.index]), (d.id, d.row, d.col, str(A[d.index]))]
        )
        == 3
    )
    assert study.tell([]) == 0


def test_a_result_is_there_at_any_time(desk):
    study = desk.create("early", **NYSTROM)
    early = study.result()
    assert (early.rank, early.cost, early.status) == (0, 0.0, "running")
    fill(study, A, limit=4)
    assert study.result().cost == 4.0
    fill(study, A)
    fill(study, A)
    now = study.result()
    assert (now.rank, now.status, now.cost) == (1, "running", 17.0)
    assert now.certificate.value < early.certificate.value


def test_one_batch_is_worked_out_by_many_threads_at_once(desk):
    study = desk.create("crowd", **NYSTROM)
    threads = [
        threading.Thread(target=desk.open("crowd").play, args=(MatrixOracle(A),)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same_result(study.result(), play(adaptive_nystrom(9, rng=1), MatrixOracle(A)))
    assert study.status()["answered"] == study.result().cost


@pytest.mark.slow
def test_an_oracle_that_raises_gives_back_what_it_held(lab):
    study = Study.create(lab, "breaks", **NYSTROM)
    calls = []

    def breaks(batch):
        calls.append(len(batch))
        if len(calls) > 2:
            raise RuntimeError("the instrument is on fire")
        return A[batch.rows, batch.cols]

    with pytest.raises(RuntimeError, match="on fire"):
        study.run(breaks, workers=2, chunk=2)
    study.release()
    assert study.status()["leased"] == 0
    assert same_result(
        study.play(MatrixOracle(A)), play(adaptive_nystrom(9, rng=1), MatrixOracle(A))
    )


def test_an_oracle_of_the_wrong_shape_or_value_is_refused(lab):
    study = Study.create(lab, "shape", **NYSTROM)
    with pytest.raises(ParameterError, match="one answer for each of 9"):
        study.play(lambda batch: np.zeros(3))
    with pytest.raises(ParameterError, match="finite"):
        study.play(lambda batch: np.full(len(batch), np.inf))
    assert study.status()["answered"] == 0


# labels, sizes, known entries


@pytest.mark.slow
def test_labels_name_rows_and_both_axes_of_a_symmetric_plan(desk):
    names = ["10", "a,b", "é", "1", "2", "3", "4", "5", "6"]
    study = desk.create("labels", plan="adaptive-nystrom", rows=names, seed=1)
    asked = study.ask()
    assert [(q.row, q.col) for q in asked] == [(n, n) for n in names]
    study.tell([(q.row, q.col, A[q.index]) for q in asked])
    column = study.ask(3)
    assert column[0].index == (0, int(np.argmax(np.diag(A))))
    assert (
        study.tell([(column[0].col, column[0].row, A[column[0].index])]) == 1
    )  # symmetric: either way round
    with pytest.raises(TellError, match="no row is labelled '0'"):
        study.tell([(0, 1, 2.0)])


def test_labels_and_sizes_must_agree(lab):
    with pytest.raises(ParameterError, match=r"2 labels .* size of 3"):
        Study.create(lab, "x", plan="adaptive-nystrom", params={"n": 3}, rows=["a", "b"])
    with pytest.raises(ParameterError, match="'a' would be there twice"):
        Study.create(lab, "x", plan="adaptive-nystrom", rows=["a", "a"])
    assert Store(lab).records() == []


def test_known_entries_are_matched_by_label(lab):
    from entrywise.observations import Observations

    names = [f"c{k}" for k in range(9)]
    back = names[::-1]
    known = Observations.from_triplets(
        np.arange(9), np.arange(9), np.diag(A)[::-1], (9, 9), row_labels=back, col_labels=back
    )
    study = Study.create(lab, "known", plan="adaptive-nystrom", rows=names, known=known, seed=1)
    assert study.status()["batch"] == 1  # the diagonal was answered from memory
    expected = play(adaptive_nystrom(9, rng=1), MatrixOracle(A))
    found = study.play(MatrixOracle(A))
    assert same_result(found, expected)
    assert found.cost == expected.cost - 9


def test_a_symmetric_study_refuses_known_entries_that_contradict_each_other(lab):
    from entrywise.observations import Observations

    known = Observations.from_triplets([0, 1], [1, 0], [1.0, 2.0], (9, 9))
    with pytest.raises(Exception, match="must be equal in a symmetric matrix"):
        Study.create(lab, "known", known=known, **NYSTROM)


# plans of every kind


def test_fresh_plans_record_repeats(desk):
    study = desk.create("fresh", plan="study_plans:repeated", params={"n": 4}, seed=0)
    asked = study.ask()
    assert len(asked) == 12
    with pytest.raises(TellError, match="asked 3 times; tell its answers by id"):
        study.tell([(0, 0, 1.0)])
    values = np.arange(12.0) ** 2
    study.tell([(q.id, v) for q, v in zip(asked, values, strict=True)])
    assert study.tell([("0.0", 7.5)]) == 1  # a repeat is kept beside the first
    assert study.tell([("0.0", 7.5)]) == 0
    assert {line["value"] for line in study.log() if line["id"] == "0.0"} == {0.0, 7.5}
    more = study.ask()
    assert [(q.arm, q.probability) for q in more] == [("again", 0.5)] * 2
    study.tell([(q.id, 3.0) for q in more])
    expected = values.reshape(4, 3).mean(axis=1)
    expected[3] = 3.0
    np.testing.assert_array_equal(desk.open("fresh").result().left[:, 0], expected)


def test_answers_in_stock_serve_a_fresh_plan_once_each(desk):
    values = np.random.default_rng(0).standard_normal((2, 12))
    study = desk.create("stock", plan="study_plans:repeated", params={"n": 4}, seed=0)
    study.tell([(q.id, v) for q, v in zip(study.ask(), values[0], strict=True)])
    more = study.ask()
    study.tell([(q.id, 3.0) for q in more])
    found = study.result()
    twin = study.fork(study.name + "-fork")
    assert twin.finished
    assert same_result(twin.result(), found)
    wider = study.fork(study.name + "-wider", params={"times": 4})
    assert wider.status()["open"] == 4 - 1  # the entry that was measured five times needs no more
    study.amend(
        "0.0", float(values[0][0]) + 1e-9
    )  # asks the same again: answered by what was withdrawn
    again = desk.open("stock")
    assert again.finished
    assert again.result().cost == found.cost == 14.0
    np.testing.assert_allclose(again.result().left, found.left, atol=1e-8)


def test_stock_is_handed_out_oldest_first():
    from entrywise.run import Stock

    stock = Stock(symmetric=True)
    entry = np.array([0, 1, 0]), np.array([1, 0, 0])
    stock.add("entry", *entry, np.array([1.0, 2.0, 9.0]))
    stock.add("entry", *entry, np.array([3.0, np.nan, 8.0]))
    out = np.full(4, np.nan)
    known = stock.look_up("entry", np.array([0, 0, 1, 5]), np.array([1, 0, 0, 5]), out)
    assert known.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(out, [1.0, 9.0, 2.0, np.nan])
    stock.add("entry", np.array([0]), np.array([1]), np.array([4.0]))
    out = np.full(4, np.nan)
    known = stock.look_up("entry", np.array([0, 0, 0, 0]), np.array([1, 1, 1, 0]), out)
    assert known.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(out, [3.0, 4.0, np.nan, 8.0])
    assert not stock.look_up("column", np.array([0]), np.array([1]), out[:1]).any()


def test_known_entries_cannot_serve_a_fresh_plan(lab):
    from entrywise.observations import Observations

    known = Observations.from_triplets([0], [0], [1.0], (4, 4))
    with pytest.raises(ParameterError, match="wants fresh answers"):
        Study.create(lab, "fresh", plan="study_plans:repeated", params={"n": 4}, known=known)


def test_failed_answers_reach_plans_that_tolerate_them(desk):
    study = desk.create("tolerant", plan="study_plans:tolerant", params={"n": 3})
    study.tell([("0.0", 1.0), ("0.1", None), ("0.2", "failed")])
    assert study.finished
    np.testing.assert_array_equal(study.result().left[:, 0], [1.0, -1.0, -1.0])
    assert study.result().cost == 3.0
    assert study.tell([("0.1", None)]) == 0
    with pytest.raises(TellError, match=r"already answered \(failed\) and is now told 2.0"):
        study.tell([("0.1", 2.0)])
    study.amend("0.1", 2.0)
    np.testing.assert_array_equal(desk.open("tolerant").result().left[:, 0], [1.0, 2.0, -1.0])


def test_units_are_handed_out_whole_and_charged_once(desk):
    study = desk.create(
        "units",
        plan="study_plans:columns",
        params={"shape": [3, 4]},
        prices=Prices(entry=1, column=2),
        budget=7.0,
    )
    one, two = study.ask(1, "one"), study.ask(1, "two")
    assert [q.index for q in one] == [(0, 0), (1, 0), (2, 0)]
    assert [q.index for q in two] == [(0, 3), (1, 3), (2, 3)]
    assert [q.price for q in one] == [2.0, 0.0, 0.0]
    assert study.ask(1, "three") == []
    B = np.arange(12.0).reshape(3, 4)
    study.tell([(q.id, B[q.index]) for q in one + two])
    assert study.status()["spent"] == 4.0
    found = desk.open("units").play(MatrixOracle(B))
    assert found.cost == 7.0
    np.testing.assert_array_equal(found.left[:, 0], B[:, 0] + B[:, 3] + B[:, 1])


def test_budget_and_prices_go_to_the_plan_that_takes_them(lab):
    study = Study.create(
        lab,
        "rich",
        plan="study_plans:columns",
        params={"shape": [3, 4]},
        prices={"entry": 1, "column": 2},
        budget=5.0,
    )
    found = study.play(MatrixOracle(np.ones((3, 4))))
    assert (found.status, found.cost) == ("exhausted", 4.0)
    twin = study.fork("richer", budget=9.0)
    study.reopen(budget=9.0)
    for each in (study, twin):
        assert each.play(MatrixOracle(np.ones((3, 4)))).cost == 7.0  # what the first spent counts


@pytest.mark.slow
def test_checkpoints_save_the_replay_and_change_nothing(desk):
    B = np.arange(25.0).reshape(5, 5)
    study = desk.create("staged", plan="study_plans:staged", params={"n": 5}, seed=3)
    expected = play(study_plans.staged(5, rng=3), MatrixOracle(B))
    for _ in range(20):
        if study.finished:
            break
        again = desk.open("staged")  # resumes at the last checkpoint
        kept = again.store.checkpoint(again._record.id, 0)
        assert kept is not None
        assert kept[0] == again.status()["batch"]
        fill(again, B)
    assert same_result(desk.open("staged").result(), expected)
    assert desk.open("staged").result().cost == expected.cost


@pytest.mark.slow
def test_checkpoints_of_a_fresh_plan_keep_its_stock(desk):
    B = np.arange(25.0).reshape(5, 5)
    study = desk.create(
        "fresh-staged", plan="study_plans:fresh_staged", params={"n": 2, "stages": 4}, seed=3
    )
    for _ in range(4):
        fill(study, B)
    twin = study.fork(
        study.name + "-fork", params={"stages": 7}
    )  # three stages more, some of their entries in stock
    while not twin.finished:
        twin = Study.open(twin.store, twin.name, plans=study_plans.ALLOWED)
        fill(twin, B)
    again = study.fork(study.name + "-again", params={"stages": 7})
    last = Study.open(twin.store, twin.name, plans=study_plans.ALLOWED).result()
    assert same_result(again.play(MatrixOracle(B)), last)
    assert last.cost == again.result().cost


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["best-pair", "stochastic-nystrom"])
def test_a_checkpoint_of_a_later_epoch_goes_on_with_the_money_and_history_of_its_epoch(desk, plan):
    size = {"n_items": 5} if plan == "best-pair" else {"n": 5}
    B = np.ones((5, 5))
    for name in ("stays", "returns"):
        study = desk.create(name, plan=plan, params={**size, "rank": 2}, seed=3, budget=80.0)
        fill(study, B)
        study.extend(budget=20.0)
    stays, returns = desk.open("stays"), desk.open("returns")
    resumed = 0
    for _ in range(40):
        fill(stays, B)
        returns = desk.open("returns")
        kept = returns.store.checkpoint(returns._record.id, 1)
        resumed += kept is not None and kept[0] > returns._record.first_step
        fill(returns, B)
        if stays.finished:
            break
    assert resumed > 0
    assert returns.check() == stays.check()
    assert same_result(desk.open("returns").result(), stays.result())
    assert returns.result().cost == stays.result().cost == 100.0


def test_a_checkpoint_is_really_used(lab, monkeypatch):
    B = np.arange(25.0).reshape(5, 5)
    study = Study.create(lab, "staged", plan="study_plans:staged", params={"n": 5}, seed=3)
    for _ in range(4):
        fill(study, B)
    read = []
    original = Store.steps
    monkeypatch.setattr(
        Store, "steps", lambda self, *args: read.append(args) or original(self, *args)
    )
    followed = []
    monkeypatch.setattr(
        Steps, "_follow", lambda self, record, live, rows: followed.append(rows[0].step)
    )
    Study.open(lab, "staged", plans=study_plans.ALLOWED).result()
    assert followed == [study.status()["batch"]]


def test_bad_plans_and_parameters_are_refused_before_anything_is_written(lab):
    for plan, params, words in (
        ("no-such-plan", {}, "no active method"),
        ("study_plans:nothing", {}, "no attribute"),
        ("study_plans:no_plan", {"n": 3}, "must return a Plan"),
        ("adaptive-nystrom", {"n": 3, "rnak": 2}, "rnak"),
        ("adaptive-nystrom", {"n": 0}, "at least 1"),
        ("adaptive-nystrom", {"n": 3, "rng": 1}, "give seed"),
        ("adaptive-nystrom", {"n": 3, "max_error": float("nan")}, "plain JSON"),
        ("adaptive-nystrom", {"n": {1, 2}}, "plain JSON"),
    ):
        with pytest.raises(ParameterError, match=words):
            Study.create(lab, "bad", plan=plan, params=params)
    for extra, words in (
        ({"budget": -1.0}, "budget"),
        ({"prices": {"entry": 0}}, "above 0"),
        ({"name": ""}, "one line"),
    ):
        with pytest.raises(ParameterError, match=words):
            Study.create(lab, **{"name": "bad", **NYSTROM, **extra})
    assert Store(lab).records() == []


# troubles and their ways out


def test_a_plan_that_refuses_answers_keeps_them_and_says_so(desk):
    study = desk.create("negative", plan="adaptive-nystrom", rows=list("abcdefghi"), seed=1)
    answers = [(q.id, -5.0 if k == 2 else A[q.index]) for k, q in enumerate(study.ask())]
    with pytest.raises(NotPSD, match=r"the answers are kept, but .*\(c, c\) is -5"):
        study.tell(answers)
    again = desk.open("negative")
    assert "NotPSD" in again.status()["trouble"]
    assert again.status()["answered"] == 9
    assert again.result().rank == 0
    with pytest.raises(NotPSD):
        again.ask(1)
    again.amend(("c", "c"), A[2, 2])
    assert again.status()["trouble"] is None
    assert same_result(
        again.play(MatrixOracle(A)), play(adaptive_nystrom(9, rng=1), MatrixOracle(A))
    )


def test_a_newer_version_that_asks_otherwise_is_noticed_and_forked(desk, monkeypatch):
    study = desk.create("drift", plan="study_plans:drifting", params={"n": 9})
    fill(study, A)
    monkeypatch.setattr(study_plans, "SHIFT", 1)
    again = desk.open("drift")
    asked = again.ask()  # what is open can still be told
    with pytest.raises(ReplayDiverged, match=r"batch 0 .* `study renew`"):
        again.tell([(q.id, A[q.index]) for q in asked])
    assert "ReplayDiverged" in again.status()["trouble"]
    assert again.result().cost == again.status()["spent"]  # what there is can be looked at
    paid = again.status()["spent"]
    twin = again.fork(again.name + "-fork")
    new = twin.status()
    assert new["parent"] == again.name
    assert new["open"] < 9  # the old answers are its memory
    again.renew()
    assert again.status()["trouble"] is None
    for each in (twin, again):
        found = each.play(MatrixOracle(A))
        assert found.cost == paid + 13  # columns 1 and 4, less what columns 0 and 3 share with them
        assert same_result(found, play(study_plans.drifting(9), MatrixOracle(A)))


@pytest.mark.slow
def test_corrections_of_corrections(desk):
    study = desk.create("twice", **NYSTROM)
    first = fill(study, A * 1.2)
    fill(study, A * 1.2)
    for q in first:
        with contextlib.suppress(NotPSD):  # half corrected, the answers may contradict each other
            study.amend(q.id, A[q.index])
    wrong = [line for line in study.log() if line["what"] == "told"]
    for line in wrong:
        if line["value"] != A[line["row"], line["col"]]:
            with contextlib.suppress(NotPSD):
                study.amend(line["id"], A[line["row"], line["col"]])
    again = desk.open("twice")
    found = again.play(MatrixOracle(A))
    assert same_result(found, play(adaptive_nystrom(9, rng=1), MatrixOracle(A)))
    told = [line for line in again.log() if line["what"] == "told"]
    assert found.cost == sum(line["price"] for line in told)
    assert again.status()["epoch"] >= 9


def test_corrections_that_cannot_be(lab):
    study = Study.create(lab, "amend", **NYSTROM)
    fill(study, A)
    for answer, value, words in (
        ("7.3", 1.0, "no question 7.3"),
        (study.ask(1)[0].id, 1.0, "no answer to amend"),
        ((0, 1), 1.0, "not answered"),
        ("0.0", "failed", "cannot do without"),
        ("0.0", "1,5", "with a point"),
        (5, 1.0, "named by its id"),
    ):
        with pytest.raises(TellError, match=words):
            study.amend(answer, value)
    study.close()
    with pytest.raises(StoreError, match="reopen it to amend"):
        study.amend("0.0", 1.0)


def test_answers_that_cannot_be(desk):
    study = desk.create("bad", **NYSTROM)
    study.ask(3, "one")
    for answers, words in (
        ([("0.0", 1.0), ("0.0", 2.0)], "answer 1: question 0.0 is told 1.0 and 2.0"),
        ([("0.0", float("nan"))], "must be finite"),
        ([("0.0", "1,5")], "with a point and not a comma"),
        ([("0.0", [1])], "must be a number"),
        ([("0", 1.0)], "such as '3.10'"),
        ([(0.1, 1.0)], "such as '3.10'"),
        ([("4.0", 1.0)], "has no question 4.0"),
        ([("0.99", 1.0)], "has no question 0.99"),
        ([(0, 1, 1.0)], "was not asked"),
        ([(0, 99, 1.0)], "must be in 0..8"),
        ([("a", 0, 1.0)], "whole number"),
        ([("0.0", 1, 1, 2.0)], r"is entry \(0, 0\), not \(1, 1\)"),
        ([5], r"\(id, value\)"),
    ):
        with pytest.raises(TellError, match=words):
            study.tell([("0.3", 1.0), *answers] if "answer 1" not in words else answers)
    assert study.status()["answered"] == 0
    with pytest.raises(
        TellError,
        match=r"worker 'two' has no lease of question 0.0, entry \(0, 0\); 'one' holds it",
    ):
        study.tell([("0.0", 1.0)], worker="two")
    with pytest.raises(TellError, match="nobody holds it"):
        study.tell([("0.5", 1.0)], worker="two")
    for bad in ({"limit": 0}, {"lease": -1.0}, {"worker": "a\nb"}):
        with pytest.raises(ParameterError):
            study.ask(**bad)


def test_an_id_that_a_spreadsheet_mangled_is_understood(lab):
    study = Study.create(lab, "sheet", plan="adaptive-nystrom", params={"n": 30}, seed=1)
    study.ask()
    assert study.tell([("0.1", 10, 10, 2.0), ("0.2", 20, 20, 3.0)]) == 2  # 0.10 and 0.20 were meant
    told = {line["id"]: line["value"] for line in study.log() if line["value"] is not None}
    assert told == {"0.10": 2.0, "0.20": 3.0}


def test_what_was_answered_after_the_money_ran_out_is_shown(desk):
    study = desk.create("money", budget=12.0, prices={"entry": 1.25}, **NYSTROM)
    found = study.play(MatrixOracle(A))
    now = study.status()
    assert (now["state"], now["spent"], now["left"]) == ("exhausted", 11.25, 0.75)
    assert found.cost == 11.25
    with pytest.raises(ParameterError, match="larger budget"):
        study.reopen()
    with pytest.raises(ParameterError, match="at least that"):
        study.reopen(budget=3.0)
    with pytest.raises(StoreError, match="exhausted"):
        study.close()
    study.reopen(budget=100.0)
    assert study.state == "open"


def test_asking_and_telling_in_bulk(desk):
    n = 3000
    study = desk.create("bulk", plan="adaptive-nystrom", params={"n": n, "rank": 1}, seed=1)
    leased = study.lease(None, "bulk")
    assert len(leased) == n
    told = Told(
        np.full(n, leased.batch), leased.positions, np.arange(n, dtype=float), np.zeros(n, bool)
    )
    odd = told.position % 2 == 1
    half = Told(*(column[odd] for column in told[:4]))
    assert study.put(half, "bulk") == n // 2
    assert study.put(told, "bulk") == n // 2
    assert study.status()["batch"] == 1
    column = study.ask()
    assert study.tell([(q.row, q.col, 0.0) for q in column]) == n - 1  # by entry, many at a time


# the store


def test_urls():
    assert normal_url("a b.db").database == "a b.db"
    assert normal_url("postgresql://u:p@h:1/d").drivername == "postgresql+psycopg"
    for bad in ("mysql://h/d", "nonsense://"):
        with pytest.raises((StoreError, sa.exc.NoSuchModuleError)):
            normal_url(bad)


def test_missing_databases_and_studies(tmp_path, lab):
    with pytest.raises(StoreError, match="there is no database"):
        Study.open(lab, "x")
    with pytest.raises(StoreError, match="no folder"):
        Study.create(str(tmp_path / "no" / "lab.db"), "x", **NYSTROM)
    Study.create(lab, "kinase", **NYSTROM)
    with pytest.raises(StoreError, match="no study called 'kinas'; name one of kinase"):
        Study.open(lab, "kinas")


def test_a_password_is_never_shown():
    with pytest.raises(StoreError) as caught:
        Store("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)


def test_migrations_make_the_tables_of_the_schema(database_url):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = Store(database_url)
    options = {"version_table": "entrywise_version", "compare_type": True}
    with store.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == HEAD


def test_the_queue_holds_questions_of_the_current_step_alone(desk):
    study = desk.create("queue", **NYSTROM)

    def check(study):
        here = (pending.c.study == study._record.id, pending.c.leased_until >= 0)
        steps = sa.select(pending.c.step).where(*here).distinct()
        found = study.store.database.read(lambda c: c.execute(steps).scalars().all())
        assert set(found) <= {study.store.record(study.name).current}

    check(study)
    asked = fill(study, A)
    check(study)
    fill(study, A, limit=3)
    study.amend(asked[2].id, 1.01 * A[asked[2].index])
    check(study)
    fill(study, A, limit=2)
    study.amend(asked[2].id, A[asked[2].index])
    study.close()
    check(study)
    study.reopen()
    for each in (study, study.fork(study.name + "-fork")):
        while not each.finished:
            check(each)
            fill(each, A, limit=5)
            each.release()
        check(each)


@pytest.mark.slow
@pytest.mark.parametrize("analyzed", [False, True])
def test_postgresql_finds_questions_by_the_right_index_whatever_its_statistics(
    postgres_url, tmp_path, analyzed
):
    study = Study.create(
        postgres_url,
        f"plans-{tmp_path.name}",
        plan="adaptive-nystrom",
        params={"n": 20_000, "rank": 1},
        seed=1,
    )
    store, number, record = study.store, study._record.id, study._record

    def explain(connection):
        if analyzed:
            connection.exec_driver_sql("ANALYZE pending")
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
        connection.exec_driver_sql(IN_ORDER)
        found = []
        for name, statement, values in (
            ("one", tells._ONE_POSTGRESQL, f"{number}, 0, 5, NULL, 1.0, 1.0"),
            ("left", tells._LEFT_POSTGRESQL, f"{number}, 0, 7"),
            (
                "free",
                free_questions(record, 1e9)
                .limit(20)
                .compile(connection, compile_kwargs={"literal_binds": True}),
                "",
            ),
        ):
            connection.exec_driver_sql(f"PREPARE test_{name} AS {statement}")
            call = f"EXPLAIN EXECUTE test_{name}" + (f"({values})" if values else "")
            found.append("\n".join(connection.exec_driver_sql(call).scalars()))
            connection.exec_driver_sql(f"DEALLOCATE test_{name}")
        return found

    one, left, free = store.database.write(explain)
    for plan in (one, left):
        assert "pending_pkey on pending" in plan
    assert "pending_free" not in one
    assert "(step = $" in left
    assert "Index Scan using pending_free" in free
    assert "(step = $0)" in free
    assert "Sort" not in free


def touched(study, *tables):
    """Return the rows that indexes of the tables (the queue and the questions) gave up so far."""
    names = ", ".join(f"'{name}'" for name in tables or ("pending", "questions"))
    count = f"SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ({names})"
    study.store.database.engine.dispose()  # connections report what they did when they end
    study.store.database._bare.close()
    time.sleep(0.5)
    return int(study.store.database.read(lambda c: c.exec_driver_sql(count).scalar()))


@pytest.mark.slow
def test_postgresql_asks_by_key_with_statistics_of_another_study(own_server):
    """A new study, of which nothing is known yet, seems to have no question; finding one must not read all."""
    Study.create(
        own_server.url, "first", plan="adaptive-nystrom", params={"n": 2000, "rank": 1}, seed=1
    )
    analyze = "ANALYZE pending; ANALYZE questions; ANALYZE facts; ANALYZE steps; ANALYZE studies"
    Store(own_server.url).database.write(lambda c: c.exec_driver_sql(analyze))
    study = Study.create(
        own_server.url, "second", plan="adaptive-nystrom", params={"n": 20_000, "rank": 1}, seed=1
    )
    before = touched(study)
    for k in range(3):
        asked = study.ask(20, f"w{k}")
        assert len(asked) == 20
        study.tell([(q.id, 1.0) for q in asked[:5]], f"w{k}")
        study.tell([(asked[5].id, 1.0)], f"w{k}")
        study.tell([(asked[6].row, asked[6].col, 1.0)])
    assert touched(study) - before < 1000


@pytest.mark.slow
def test_postgresql_reads_each_answer_once_with_statistics_of_another_study(own_server):
    """Not all with all, which for a hundred thousand answers would take hours: the log, a file told again, a fork."""
    A, params = np.eye(1500) + 0.5, {"n": 1500, "rank": 3}
    first = Study.create(own_server.url, "first", plan="adaptive-nystrom", params=params, seed=1)
    fill(first, A)
    first.store.database.write(
        lambda c: c.exec_driver_sql("ALTER TABLE facts SET (autovacuum_enabled = off)")
    )
    first.store.database.write(
        lambda c: c.exec_driver_sql("ALTER TABLE questions SET (autovacuum_enabled = off)")
    )
    first.store.database.write(lambda c: c.exec_driver_sql("ANALYZE questions; ANALYZE facts"))
    study = Study.create(own_server.url, "second", plan="adaptive-nystrom", params=params, seed=2)
    asked = study.ask(2000)
    answers = [(q.id, A[q.row, q.col]) for q in asked]
    study.tell(answers)
    assert len(asked) > 1000
    before = touched(study, "questions", "facts")
    assert sum(line["what"] == "told" for line in study.log()) == len(asked)
    study.tell(answers)
    study.fork("third")
    assert touched(study, "questions", "facts") - before < 20 * len(asked)


def test_many_make_the_same_new_database_at_once(lab):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda k: Study.create(Store(lab), f"s{k}", **NYSTROM), range(6)))
    assert [record.name for record in Store(lab).records()] == [study.name for study in made]


def test_a_name_is_given_once_whoever_comes_first(desk):
    from concurrent.futures import ThreadPoolExecutor

    def create(k):
        try:
            return desk.create("same", **NYSTROM)
        except StoreError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(create, range(4)))
    assert sum(isinstance(x, Study) for x in found) == 1
    assert sum("already" in x for x in found if isinstance(x, str)) == 3


def test_a_database_of_a_later_version_is_refused(lab):
    store = Store(lab)
    store.database.write(
        lambda c: c.exec_driver_sql("UPDATE entrywise_version SET version_num = '9999'")
    )
    with pytest.raises(StoreError, match=r"later version .* upgrade"):
        Store(lab)


def test_sqlite_is_durable_and_waits(lab):
    store = Store(lab)

    def read(words):
        return store.database.read(lambda c: c.exec_driver_sql(f"PRAGMA {words}").scalar())

    assert read("journal_mode") == "wal"
    assert read("synchronous") == 2  # FULL
    assert read("busy_timeout") >= 60_000


def test_tables_hold_one_row_a_question_and_an_answer(lab):
    import sqlite3

    study = Study.create(lab, "plain", prices={"entry": 2.5}, **NYSTROM)
    fill(study, A, limit=2, worker="bench")
    rows = sqlite3.connect(lab).execute(
        'SELECT q.batch, q.position, q."row", q.col, q.mode, q.price, f.value, f.failed, f.kind FROM questions q '
        "JOIN facts f USING (study, batch, position)"
    )
    assert rows.fetchall() == [(0, k, k, k, "entry", 2.5, A[k, k], 0, "answer") for k in range(2)]


def test_a_file_that_is_no_export_is_refused(tmp_path, lab):
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK nonsense")
    with pytest.raises(ew.exceptions.DataError, match="must be a study exported"):
        Study.load(lab, path)
    study = Study.create(lab, "x", **NYSTROM)
    study.export(path)
    with pytest.raises(StoreError, match="already; choose another name"):
        Study.load(lab, path)


@pytest.mark.slow
def test_exports_travel_between_databases(postgres_url, lab, tmp_path):
    study = Study.create(
        lab, "lite", rows=[f"r{k}" for k in range(9)], plan="adaptive-nystrom", seed=1
    )
    fill(study, A)
    study.export(tmp_path / "x.zip")
    name = f"lite-{tmp_path.name}-{id(study)}"
    twin = Study.load(postgres_url, tmp_path / "x.zip", name)
    assert same_result(twin.play(MatrixOracle(A)), study.play(MatrixOracle(A)))


def test_function_oracles_and_failures_in_a_run(lab):
    seen = []

    def flaky(i, j):
        seen.append((i, j))
        return None if seen.count((4, 4)) == 1 and (i, j) == (4, 4) else A[i, j]

    study = Study.create(lab, "flaky", **NYSTROM)
    found = study.run(FunctionOracle(flaky), workers=1)
    assert same_result(found, play(adaptive_nystrom(9, rng=1), MatrixOracle(A)))
    assert seen.count((4, 4)) == 2
    assert [line["what"] for line in study.log() if line["id"] == "0.4"] == ["failed", "told"]
