"""A run under random partial, repeated, out-of-range and non-finite tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrywise as ew
from entrywise.active import adaptive_nystrom, uniform_pairs
from entrywise.exceptions import (
    AnswerError,
    EntrywiseError,
    NotPSD,
    ParameterError,
    ReplayDiverged,
    TellError,
)
from entrywise.gallery import random_psd
from entrywise.oracles import FunctionOracle, MatrixOracle
from entrywise.queries import Batch, Checkpoint, Prices, plan
from entrywise.results import LowRank
from entrywise.run import Memory, Run
from entrywise.run.sheet import Sheet

A = random_psd(8, 3, seed=4)
KINDS = (
    "some",
    "some",
    "some",
    "again",
    "outside",
    "non-finite",
    "words",
    "length",
    "contradiction",
    "fraction",
)


@given(
    budget=st.one_of(st.none(), st.integers(0, 40)),
    kinds=st.lists(st.sampled_from(KINDS), max_size=40),
    seed=st.integers(0, 99),
)
def test_random_tells_never_lose_or_double_an_answer(budget, kinds, seed):
    rng = np.random.default_rng(seed)
    run = Run(adaptive_nystrom(8), budget=budget)
    for kind in kinds:
        if run.finished:
            break
        size = len(run.batch)
        at = rng.integers(size, size=rng.integers(1, 6))
        values = list(A[run.batch.rows[at], run.batch.cols[at]])
        told = np.setdiff1d(np.arange(size), run.open)
        before = (run.number, run.open.tolist(), run.measured, run.ledger.spent, len(run.log))
        match kind:
            case "some":
                run.tell(values, at)
                continue
            case "again":
                run.tell(A[run.batch.rows[told], run.batch.cols[told]], told)
            case "outside":
                _refused(run, values, at + rng.choice([-size, size]))
            case "non-finite":
                values[0] = rng.choice([np.nan, np.inf, -np.inf])
                _refused(run, values, at)
            case "words":
                _refused(run, [rng.choice(["", "1,5", "x"]), *values[1:]], at)
            case "length":
                _refused(run, [*values, 1.0], at)
            case "contradiction":
                _refused(run, [values[0], values[0] + 1.0], [at[0], at[0]])
            case "fraction":
                _refused(run, values, at + 0.5)
        assert (
            run.number,
            run.open.tolist(),
            run.measured,
            run.ledger.spent,
            len(run.log),
        ) == before
    truth = Run(adaptive_nystrom(8), budget=budget)
    ew.play(run, MatrixOracle(A))
    ew.play(truth, MatrixOracle(A))
    assert (run.measured, run.ledger.spent, run.number) == (
        truth.measured,
        truth.ledger.spent,
        truth.number,
    )
    np.testing.assert_array_equal(run.result.factor, truth.result.factor)


def _refused(run, values, at):
    with pytest.raises(EntrywiseError, match=r"must|tell|is"):
        run.tell(values, at)


def test_a_plan_that_refuses_the_answers_says_so_again():
    run = Run(adaptive_nystrom(8))
    with pytest.raises(NotPSD, match=r"entry \(2, 2\) is -1"):
        run.tell([1, 1, -1, 1, 1, 1, 1, 1])
    assert len(run.log) == 1
    for call in (run.ask, lambda: run.tell([1.0])):
        with pytest.raises(TellError, match="the plan stopped at batch 0: the diagonal"):
            call()


def test_the_same_answer_twice_is_harmless_and_another_is_refused():
    run = Run(adaptive_nystrom(8))
    run.tell([A[0, 0]], [0])
    run.tell([A[0, 0]], [0])
    with pytest.raises(TellError, match="position 0, entry \\(0, 0\\), was answered"):
        run.tell([A[0, 0] + 1], [0])
    with pytest.raises(TellError, match="tell one"):
        run.tell([1.0, 2.0], [1, 1])
    assert run.measured == 1
    assert run.open.tolist() == list(range(1, 8))


@pytest.mark.parametrize(
    ("values", "at", "kind", "words"),
    [
        ([1.0], [9], TellError, "positions must be in 0..7, got 9"),
        ([1.0], [0.5], TellError, "whole numbers"),
        ([1.0, 2.0], [0], TellError, "one answer for each of 1 positions"),
        (
            [float("nan")],
            [3],
            AnswerError,
            r"answer 3, entry \(3, 3\), is nan; tell a finite number",
        ),
        ([None], [3], AnswerError, "cannot do without it"),
        (["x"], [3], AnswerError, "answers must be numbers"),
    ],
)
def test_bad_tells_name_what_must_hold(values, at, kind, words):
    run = Run(adaptive_nystrom(8))
    with pytest.raises(kind, match=words):
        run.tell(values, at)
    assert run.measured == 0


def test_known_entries_are_used_and_free():
    known = ew.Observations.from_dense(A)
    found = ew.play(adaptive_nystrom(8), MatrixOracle(A), known=known)
    assert found.cost == 0
    assert found.rank == 3
    half = ew.Observations.from_triplets(np.arange(8), np.zeros(8, int), A[:, 0], A.shape)
    oracle = MatrixOracle(A)
    found = ew.play(adaptive_nystrom(8), oracle, known=half)
    assert oracle.spent == found.cost < 8 * 4 - 6
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-12)


def test_known_entries_that_are_not_symmetric_are_refused():
    B = A.copy()
    B[2, 5] += 1
    with pytest.raises(
        AnswerError, match=r"\(2, 5\).*\(5, 2\).*must be equal|\(5, 2\).*\(2, 5\).*must be equal"
    ):
        Run(adaptive_nystrom(8), known=ew.Observations.from_dense(B))
    with pytest.raises(ParameterError, match="shape"):
        Run(adaptive_nystrom(9), known=ew.Observations.from_dense(B))


@pytest.mark.parametrize("budget", range(0, 33))
def test_the_budget_is_never_exceeded_by_one_entry(budget):
    oracle = MatrixOracle(A)
    found = ew.play(adaptive_nystrom(8), oracle, budget=budget)
    assert oracle.spent == found.cost <= budget
    assert found.status == ("finished" if budget >= 8 * 4 - 6 else "exhausted")


def test_an_oracle_that_raises_loses_nothing():
    calls = []

    def flaky(i, j):
        calls.append((i, j))
        if len(calls) == 12:
            raise OSError("power cut")
        return A[i, j]

    oracle = FunctionOracle(flaky)
    with pytest.raises(OSError) as caught:
        ew.play(adaptive_nystrom(8), oracle)
    run = caught.value.run
    assert run.measured == 8
    found = ew.play(run, oracle)
    assert found.cost == 8 * 4 - 6
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-12)


def test_a_replay_that_differs_names_the_place():
    run = Run(adaptive_nystrom(8))
    ew.play(run, MatrixOracle(A))
    log = [(e.batch, e.answers) for e in run.log]
    other = [
        (Batch.diagonal(8), log[0][1]),
        (Batch.column(7 if log[1][0].cols[0] != 7 else 6, 8), log[1][1]),
    ]
    with pytest.raises(ReplayDiverged, match="batch 1 of adaptive-nystrom asks for"):
        Run.replay(adaptive_nystrom(8), other)
    with pytest.raises(ReplayDiverged, match="ended before batch"):
        Run.replay(adaptive_nystrom(8, rank=1), log)


def test_a_result_so_far_leaves_the_run_alone():
    run = Run(adaptive_nystrom(8))
    oracle = MatrixOracle(A)
    run.tell(oracle(run.ask()))
    run.tell(oracle(run.ask()))
    so_far = run.result_so_far()
    assert so_far.rank == 1
    assert so_far.status == "running"
    assert so_far.cost == run.ledger.spent
    found = ew.play(run, oracle)
    assert found.rank == 3


def test_checkpoints_and_failed_answers_reach_a_plan_that_wants_them():
    @plan(tolerates_failed=True)
    def sums(n, *, rng=None, resume=None):
        total, start = np.zeros(1), 0
        if resume is not None:
            rng = resume.generator()
            total, start = resume.arrays["total"].copy(), int(resume.arrays["start"])
        for k in range(start, 4):
            answers = yield Batch.diagonal(n)
            total = total + np.nansum(answers) + rng.random()
            yield Checkpoint({"total": total, "start": np.array(k + 1)}, rng)
        return LowRank(total[None], np.ones((1, 1)))

    run = Run(sums(3, rng=1))
    run.tell([1.0, None, 2.0])
    assert run.checkpoint is not None
    assert int(run.checkpoint.arrays["start"]) == 1
    # the plan is not fresh: what was answered is remembered, what failed is asked again
    assert run.open.tolist() == [1]


def test_budget_and_prices_must_agree_when_given_twice():
    @plan()
    def buys(shape, *, budget, prices):
        yield Batch.entries(0, 0)
        return LowRank(np.zeros((1, 1)), np.zeros((1, 1)))

    made = buys((1, 1), budget=5, prices=ew.Prices())
    with pytest.raises(ParameterError, match="the budget is 6 here and 5"):
        Run(made, budget=6)
    with pytest.raises(ParameterError, match="prices were given here"):
        Run(made, prices=ew.Prices())
    with pytest.raises(ParameterError, match="takes a plan"):
        Run(buys)


def test_a_column_is_charged_once_and_refused_whole():
    @plan()
    def columns(shape):
        try:
            answers = yield Batch.whole_columns([0, 1], shape[0])
        except ew.exceptions.Exhausted:
            answers = np.zeros(2 * shape[0])
        return LowRank(answers.reshape(2, -1).T.copy(), np.eye(2))

    B = np.arange(6.0).reshape(3, 2)
    found = ew.play(columns((3, 2)), MatrixOracle(B), prices=ew.Prices(column=16), budget=32)
    assert found.cost == 32
    np.testing.assert_array_equal(found.to_dense(), B)
    oracle = MatrixOracle(B)
    found = ew.play(columns((3, 2)), oracle, prices=ew.Prices(column=16), budget=31)
    assert (found.cost, found.status, oracle.spent) == (0, "exhausted", 0)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(-1, 1)), max_size=60),
    st.booleans(),
)
def test_memory_agrees_with_a_dictionary(entries, symmetric):
    memory, referee = Memory(symmetric), {}
    for i, j, y in entries:
        memory.add("entry", np.array([i]), np.array([j]), np.array([y]))
        referee[(min(i, j), max(i, j)) if symmetric else (i, j)] = y
    i, j = (x.ravel() for x in np.mgrid[:7, :7])
    out = np.full(49, np.nan)
    known = memory.look_up("entry", i, j, out)
    for k in range(49):
        key = (min(i[k], j[k]), max(i[k], j[k])) if symmetric else (i[k], j[k])
        assert known[k] == (key in referee)
        if known[k]:
            assert out[k] == referee[key]


@given(st.data(), st.booleans())
def test_memory_of_columns_agrees_with_a_dictionary(data, symmetric):
    n = 6
    memory, referee = Memory(symmetric), {}

    def key(i, j):
        return (min(i, j), max(i, j)) if symmetric else (i, j)

    for step in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            which = np.array(data.draw(st.permutations(range(n)))[:2])
            out = np.full((2, n), np.nan)
            known = memory.look_up_columns("entry", which, out)
            for k, j in enumerate(which.tolist()):
                for i in range(n):
                    assert known[k, i] == (key(i, j) in referee)
                    if known[k, i]:
                        assert out[k, i] == referee[key(i, j)]
            # what is new is answered; of an entry that the two columns share both have one answer
            table = np.where(known, out, 100.0 * step + which[:, None] + np.arange(n))
            memory.add_columns("entry", which, table)
            for k, j in enumerate(which.tolist()):
                referee |= {key(i, j): table[k, i] for i in range(n)}
        else:
            i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
            if key(i, j) not in referee:  # a run asks for nothing twice
                memory.add("entry", np.array([i]), np.array([j]), np.array([-1.0 - step]))
                referee[key(i, j)] = -1.0 - step
    i, j = (x.ravel() for x in np.mgrid[:n, :n])
    out = np.full(n * n, np.nan)
    known = memory.look_up("entry", i, j, out)
    for k in range(n * n):
        assert known[k] == (key(i[k], j[k]) in referee)
        if known[k]:
            assert out[k] == referee[key(i[k], j[k])]


def test_columns_are_a_batch_like_any_other():
    columns = Batch.columns([4, 2], 3)
    np.testing.assert_array_equal(columns.rows, [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(columns.cols, [4, 4, 4, 2, 2, 2])
    assert len(columns) == 6
    assert columns.same_as(Batch.entries(columns.rows, columns.cols))
    assert columns[[1, 3]].same_as(Batch.entries([1, 0], [4, 2]))
    assert columns[-2:].same_as(Batch.entries([1, 2], [2, 2]))
    assert columns[[1, 3, 5]][[2, 0]].same_as(Batch.entries([2, 1], [2, 4]))
    assert columns[np.arange(6) > 4].same_as(Batch.entries([2], [2]))


@settings(max_examples=60)
@given(st.data())
def test_answers_told_at_once_or_in_any_pieces_cost_the_same(data):
    """Entries, columns as units and prices of their own: what is told whole takes a shorter way."""
    size = data.draw(st.integers(1, 12))
    units = data.draw(st.none() | st.lists(st.integers(-1, 3), min_size=size, max_size=size))
    price = np.array(data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)), float)
    batch = Batch(np.arange(size), np.zeros(size), unit=units)
    known = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    known &= not known.all()
    bill = Prices(price[:, None]).charges(batch, known)

    def sheet():
        made = Sheet(uniform_pairs(5, budget=10))
        made.add(batch, np.where(known, 7.0, np.nan), known, bill)
        return made

    whole = sheet()
    cost = whole.fill(whole.open, np.arange(len(whole.open), dtype=float))
    assert cost == bill.sum()
    pieces, answers = sheet(), np.full(size, np.nan)
    answers[pieces.open] = np.arange(len(pieces.open))
    paid = 0.0
    order = data.draw(st.permutations(pieces.open.tolist()))
    while order:
        some = data.draw(st.integers(1, len(order)))
        at, order = np.array(order[:some]), order[some:]
        paid += pieces.fill(at, answers[at])
    assert paid == cost
    np.testing.assert_array_equal(pieces.answers, whole.answers)
    assert not pieces.wanted.any()
    assert not whole.wanted.any()


def test_what_a_run_remembers_of_columns_is_what_the_log_holds():
    from entrywise.active import adaptive_nystrom
    from entrywise.gallery import random_psd

    run = ew.Run(adaptive_nystrom(30, rank=4, order="random", block=2, rng=0))
    ew.play(run, MatrixOracle(random_psd(30, 6, seed=1)))
    columns = [entry.answers for entry in run.log if len(entry.batch) >= 30][1:]
    kept = run._memory._columns["entry"].values()
    assert all(any(np.shares_memory(x, y) for y in columns) for x in kept)
