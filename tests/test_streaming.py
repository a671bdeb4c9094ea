"""Plans that stream: steps, filters, hand-overs, replay; oracles that answer as they can."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrywise as ew
from entrywise import gallery
from entrywise.checks import plans
from entrywise.exceptions import AnswerError, OracleError, ParameterError, ReplayDiverged, TellError
from entrywise.oracles import CommandOracle, ExecutorOracle, FunctionOracle
from entrywise.queries import Batch, History, Prices, Situation, plan
from entrywise.results import LowRank
from entrywise.run import Run, new_questions, verify_step

A = np.arange(48.0).reshape(8, 6)


@plan(streaming=True)
def draws(shape, prices=None, *, budget, size=5, reserve=4, rng=None, situation):
    """Buy random cells; the first few are a reserve that the rule may take over."""
    if size < 1:
        raise ParameterError(f"size must be at least 1, got {size}")
    facts, pending = situation.facts, situation.pending
    free = np.ones(shape, bool)
    for table in (facts, pending):
        bought = table.arm != "reserve"
        free[table.rows[bought], table.cols[bought]] = False
    rows, cols = np.nonzero(free)
    may = situation.allows(rows, cols)
    rows, cols = rows[may], cols[may]
    order = rng.permutation(len(rows))
    first = situation.step == 0 and not situation.filtered
    most = reserve if first else min(size, situation.limit or size)
    order = order[:most]
    price = (prices or Prices()).of("entry", rows[order], cols[order])
    order = order[np.cumsum(price) <= situation.left]
    if not len(order):
        seen = ~facts.failed & (facts.arm != "reserve")
        total = float(facts.values[seen].sum())
        return LowRank(np.full((shape[0], 1), total), np.ones((shape[1], 1)))
    arm = np.full(len(order), "reserve" if first else "draw")
    return Batch(rows[order], cols[order], arm=arm, probability=np.full(len(order), 0.5))


def cells_of(run):
    return [
        (int(i), int(j)) for e in run.log for i, j in zip(e.batch.rows, e.batch.cols, strict=True)
    ]


@pytest.mark.parametrize("law", plans.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("budget", [3, 30, 400])
def test_a_streaming_plan_obeys_every_law(law, budget):
    law(draws((14, 10), budget=budget, rng=1), gallery.cells_oracle)


def test_bad_parameters_are_refused_when_the_plan_is_made():
    with pytest.raises(ParameterError, match="size must be at least 1"):
        draws((3, 3), budget=5, size=0, rng=0)
    made = draws((3, 3), budget=5, rng=0)
    with pytest.raises(ParameterError, match="streaming"):
        made.start()
    assert "situation" not in made.params


def test_a_step_is_a_function_of_its_situation():
    made = draws((8, 6), budget=20, rng=4)
    situation = Situation(step=3, left=9.0)
    first, second = made.step(situation), made.step(situation)
    assert first.same_as(second)
    assert not first.same_as(made.step(Situation(step=4, left=9.0)))
    from_generator = draws((8, 6), budget=20, rng=np.random.default_rng(4))
    assert from_generator.step(situation).same_as(from_generator.step(situation))


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 999), failing=st.floats(0, 0.5), budget=st.integers(0, 60))
def test_any_schedule_keeps_every_promise(seed, failing, budget):
    rng = np.random.default_rng(seed)
    made = draws((8, 6), budget=budget, size=int(rng.integers(1, 9)), rng=seed)
    run = Run(made)
    told = {}
    while not run.finished:
        rows = None if rng.random() < 0.5 else rng.choice(8, 3, replace=False)
        limit = int(rng.integers(1, 8))
        steps = len(run.steps)
        batch = run.ask(limit, rows=rows)
        if batch is None:
            break
        assert len(batch) <= limit
        if rows is not None:
            assert set(batch.rows) <= set(rows.tolist())
            assert all(len(step.batch) <= limit for step in run.steps[steps:] if step.batch)
        assert run.ledger.spent + run.ledger.held <= budget
        some = rng.permutation(run.open)[: rng.integers(0, 5)]
        for k in some.tolist():
            i, j = int(run.batch.rows[k]), int(run.batch.cols[k])
            assert (i, j) not in told
            told[i, j] = None if rng.random() < failing else A[i, j]
            run.tell([told[i, j]], [k])
    assert set(cells_of(run)) == set(told)
    assert run.result.cost == len(told) <= budget
    again = Run.replay(made, run.steps)
    assert plans.same_result(again.result, run.result)
    for step in run.steps[::3]:
        verify_step(made, run.situation(step.number), step.batch)


def test_a_filter_that_found_nothing_is_not_tried_again_before_a_new_fact():
    calls = []

    @plan(streaming=True)
    def counts(shape, *, budget, rng=None, situation):
        calls.append(situation.step)
        if situation.filtered or situation.step > 3 or situation.left < 1:
            return Batch.empty() if len(situation.pending) or situation.filtered else LowRank(A, A)
        return Batch.entries([situation.step], [0])

    run = Run(counts((8, 6), budget=9))
    calls.clear()
    for _ in range(3):
        assert len(run.ask(1, rows=[2])) == 0
    assert calls == [0]
    assert len(run.ask(1)) == 1
    run.ask(1, rows=[2])
    assert calls == [0, 0]
    run.tell([1.0])
    assert calls == [0, 0, 1]  # nothing was pending: one step, which asked
    run.ask(1, rows=[2])
    assert calls == [0, 0, 1, 2]


def test_a_plan_that_neither_asks_nor_ends_is_told_so():
    @plan(streaming=True)
    def idle(shape, *, budget, situation):
        return Batch.empty() if situation.left else LowRank(A, A)

    run = Run(idle((8, 6), budget=1))
    with pytest.raises(ParameterError, match="must ask or end"):
        run.ask()
    with pytest.raises(TellError, match="the plan stopped"):
        run.ask()


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (Batch.entries([0, 0], [1, 1]), "an entry twice"),
        (Batch.entries(range(6), [1] * 6), "keep to the money"),
    ],
)
def test_steps_that_break_a_rule_are_refused(batch, words):
    @plan(streaming=True)
    def unruly(shape, *, budget, situation):
        return batch if situation.left else LowRank(A, A)

    with pytest.raises(ParameterError, match=words):
        Run(unruly((8, 6), budget=5)).ask()


def test_what_is_known_is_never_asked_again():
    @plan(streaming=True)
    def blind(shape, *, budget, situation):
        return Batch.entries(0, 0, arm=["x"]) if situation.left else LowRank(A, A)

    known = ew.Observations.from_triplets([0], [0], [1.0], (8, 6))
    with pytest.raises(ParameterError, match=r"asks for \(0, 0\) again"):
        Run(blind((8, 6), budget=5), known=known).ask()


def test_a_reserve_cell_is_handed_over_for_nothing():
    made = draws((2, 2), budget=10, reserve=2, size=4, rng=0)
    run = Run(made)
    run.ask()
    run.tell([1.0, 2.0])
    second = run.steps[1]
    facts = run.situation(1).facts
    new = new_questions(made, run.situation(1), second.batch)
    assert facts.arm.tolist() == ["reserve", "reserve"]
    assert new.sum() == 2
    assert len(second.batch) == 4
    assert run.ledger.held == 2
    run.tell([3.0, 4.0])
    assert run.finished
    assert run.result.left[0, 0] == 10.0  # the reserve counts in the fit now
    assert run.result.cost == 4


def test_replay_says_where_it_differs():
    run = Run(draws((8, 6), budget=20, rng=1))
    ew.play(run, FunctionOracle(lambda i, j: A[i, j]))
    with pytest.raises(ReplayDiverged, match="batch 0"):
        Run.replay(draws((8, 6), budget=20, rng=2), run.steps)
    with pytest.raises(ReplayDiverged, match="batch 0"):
        verify_step(draws((8, 6), budget=20, rng=2), run.situation(0), run.steps[0].batch)


def test_prices_of_the_run_are_told_to_a_streaming_plan():
    prices = Prices(entry=np.linspace(1, 3, 48).reshape(8, 6))
    run = Run(draws((8, 6), budget=20, rng=1), prices=prices)
    found = ew.play(run, FunctionOracle(lambda i, j: A[i, j]))
    assert 17 < found.cost <= 20


def test_history_and_dropped_lines():
    told = History([0, 1], [0, 0], [5.0, np.nan], price=[1.0, 1.0])
    run = Run(draws((8, 6), budget=48, reserve=1, rng=1), history=told, epoch=2)
    found = ew.play(run, FunctionOracle(lambda i, j: 0.0))
    assert found.left[0, 0] == 5.0
    assert {(0, 0), (1, 0)}.isdisjoint(cells_of(run))
    assert len(cells_of(run)) == 46 + 1  # one was handed over
    dropped = Situation(left=9.0, dropped_rows=np.arange(7))
    assert set(draws((8, 6), budget=9, rng=0).step(dropped).rows) == {7}
    assert not dropped.filtered


def test_batch_plans_take_history_in_later_epochs():
    seen = []

    @plan(history=True)
    def asks(shape, *, budget, rng=None, history=None):
        seen.append((len(history), budget, rng.random()))
        yield Batch.entries(0, 1)
        return LowRank(A, A)

    made = asks((8, 6), budget=9.0, rng=3)
    table = History.of(ew.Observations.from_triplets([0], [0], [1.0], (8, 6)))
    seen.clear()
    for epoch, left in ((0, 9.0), (1, 4.0), (1, 4.0), (2, 4.0)):
        next(made.start(history=table, epoch=epoch, left=left))
    assert [line[:2] for line in seen] == [(1, 9.0), (1, 4.0), (1, 4.0), (1, 4.0)]
    assert seen[1][2] == seen[2][2]
    assert seen[0][2] == np.random.default_rng(3).random()
    assert len({line[2] for line in seen}) == 3


def test_a_plan_without_history_restarts_and_finds_its_answers_in_memory():
    @plan(tolerates_failed=True)
    def asks(shape, *, budget, rng=None):
        answers = yield Batch.entries([0, 0, 0], [0, 1, 2])
        return LowRank(answers[:, None], np.ones((1, 1)))

    told = History([0, 0], [0, 1], [7.0, np.nan], price=[1.0, 1.0])
    run = Run(asks((8, 6), budget=9.0, rng=3), history=told, epoch=1)
    assert run.open.tolist() == [2]  # what failed is not asked again
    assert run.ledger.held == 1
    out = History([0], [2], [np.nan])
    paid = Run(asks((8, 6), budget=9.0, rng=3), history=told, epoch=1, out=out)
    assert paid.open.tolist() == [2]
    assert paid.ledger.held == 0


def test_known_answers_of_a_fresh_plan_are_handed_out_once():
    @plan(fresh=True)
    def twice(shape, *, budget):
        answers = yield Batch.entries([0, 0], [0, 0])
        return LowRank(answers[:, None], np.ones((1, 1)))

    known = ew.Observations.from_triplets([0], [0], [7.0], (8, 6))
    run = Run(twice((8, 6), budget=9.0), known=known)
    assert run.open.tolist() == [1]
    run.tell([8.0])
    assert run.result.cost == 1


# oracles that answer as they can


def slow(i, j):
    time.sleep(0.002 * ((i + j) % 3))
    return float(A[i, j])


def dies_once(i, j):
    mark = Path(os.environ["ENTRYWISE_TEST_FOLDER"]) / "died"
    if (i, j) == (3, 3) and not mark.exists():
        mark.touch()
        os._exit(1)
    return float(A[i, j])


@pytest.mark.parametrize("width", [1, 4])
def test_an_executor_answers_as_it_can(width):
    run = Run(draws((8, 6), budget=40, rng=1))
    oracle = ExecutorOracle(slow, ThreadPoolExecutor(width), timeout=5)
    found = ew.play(run, oracle)
    assert found.cost == 40 == oracle.spent
    again = Run.replay(run.plan, run.steps)
    assert plans.same_result(again.result, run.result)
    batch = Batch.entries([1, 2], [3, 4])
    assert oracle(batch).tolist() == [9.0, 16.0]


def test_a_process_pool_that_broke_is_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("ENTRYWISE_TEST_FOLDER", str(tmp_path))
    oracle = ExecutorOracle(dies_once, ProcessPoolExecutor(2), timeout=60)
    found = ew.play(draws((8, 6), budget=48, rng=1), oracle)
    assert (tmp_path / "died").exists()
    assert found.cost == 48
    oracle.executor.shutdown()


def test_what_raises_is_retried_then_given_back_and_the_others_are_told():
    tries = []

    def broken(i, j):
        if (i, j) == (2, 2):
            tries.append(1)
            raise ConnectionError("no line")
        return A[i, j]

    run = Run(draws((8, 6), budget=48, rng=1))
    with pytest.raises(ConnectionError, match="no line") as caught:
        ew.play(run, ExecutorOracle(broken, ThreadPoolExecutor(4), timeout=5, retries=2))
    assert len(tries) == 3
    assert caught.value.run is run
    assert run.ledger.spent == run.measured
    assert (2, 2) in {(int(run.batch.rows[k]), int(run.batch.cols[k])) for k in run.open}
    found = ew.play(run, FunctionOracle(lambda i, j: A[i, j]))
    assert found.cost == 48


def test_a_timeout_is_no_answer():
    def stuck(i, j):
        time.sleep(0.3)
        return 1.0

    oracle = ExecutorOracle(stuck, ThreadPoolExecutor(2), timeout=0.02, retries=0)
    with pytest.raises(OracleError, match=r"no answer in 0\.02 seconds"):
        ew.play(draws((8, 6), budget=4, rng=1), oracle)


def test_only_none_is_a_failed_answer():
    oracle = ExecutorOracle(lambda i, j: None if i == 0 else 1.0, ThreadPoolExecutor(2), timeout=5)
    run = Run(draws((8, 6), budget=48, rng=1))
    found = ew.play(run, oracle)
    assert found.cost == 48
    assert found.left[0, 0] == 42
    with pytest.raises(AnswerError, match="finite"):
        ew.play(
            draws((8, 6), budget=4, rng=1),
            ExecutorOracle(lambda i, j: float("nan"), ThreadPoolExecutor(2), timeout=5),
        )
    with pytest.raises(ParameterError, match="timeout"):
        ExecutorOracle(slow, ThreadPoolExecutor(1), timeout=0)


JUDGE = "import sys; r, c = sys.argv[1:]; print('thinking'); print({})"


def judge(body, **how):
    how = {"timeout": 20, "retries": 0, **how}
    return CommandOracle(f'{sys.executable} -c "{JUDGE.format(body)}" {{row}} {{col}}', **how)


def test_a_command_answers_with_its_last_line_and_gets_labels():
    rows, cols = ["a b", "$(boom)"], ["x", "y;z"]
    oracle = judge("len(r) + len(c)", row_labels=rows, col_labels=cols, width=2)
    assert oracle(Batch.entries([0, 1], [0, 1])).tolist() == [4.0, 10.0]
    failed = judge("'failed'")(Batch.entries([0, 1], [0, 1]))
    assert failed.tolist() == [None, None]


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        ("sleep {row}{col}", OracleError, r"no answer in 0\.2 seconds"),
        ("expr {row} {col}", OracleError, "ended with"),
        ("echo {row} {col}", AnswerError, "must be a number"),
        ("no-such-judge {row}", OSError, "no-such-judge"),
    ],
)
def test_commands_that_fail_say_why(command, error, words):
    oracle = CommandOracle(command, timeout=0.2, retries=1, backoff=0.01)
    with pytest.raises(error, match=words):
        oracle(Batch.entries([5], [0]))
    with pytest.raises(ParameterError, match="must name the entry"):
        CommandOracle("judge", timeout=1)


def test_functions_get_labels_where_there_are_labels():
    asked = []
    oracle = FunctionOracle(lambda *at: asked.append(at) or 1.0, row_labels=["a", "b"])
    oracle(Batch.entries([1], [3]))
    assert asked == [("b", 3)]
