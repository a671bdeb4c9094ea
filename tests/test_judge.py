"""A cheap biased judge beside a dear instrument: the fit, its pieces, and the report of biases."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import entrywise as ew
from entrywise.active import row_scores
from entrywise.active.cells.instruments import Residuals, choose, needed, split
from entrywise.apply.leaderboard import Bought, judged, prediction_powered, scores
from entrywise.apply.leaderboard.bias import holm
from entrywise.apply.leaderboard.judge_fit import Judge, fit_with_judges, row_slopes
from entrywise.checks import plans
from entrywise.cli.app import app
from entrywise.exceptions import DataError, ParameterError, TellError
from entrywise.linalg.crossed_effects import Components, generalised_least_squares
from entrywise.observations import Observations
from entrywise.oracles import MatrixOracle
from entrywise.web.story import story


def board(seed: int, m: int = 24, n: int = 90, rank: int = 2):
    """A board of low rank with noise, and a generator to go on with."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, 1)) + rng.normal(size=(1, n))
    A = A + rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) + rng.normal(size=(m, n))
    return A, rng


def some(A, k: int, rng) -> np.ndarray:
    """k random cells of every row, NaN elsewhere."""
    order = np.argsort(rng.random(A.shape), axis=1)
    return np.where(np.argsort(order, axis=1) < k, A, np.nan)


def soft(A, rng, noise: float = 0.4) -> np.ndarray:
    m, n = A.shape
    bias = 0.1 * rng.normal(size=(m, 1)) + 0.3 * rng.normal(size=(1, n))
    return 2.0 + 0.6 * A + bias + noise * rng.normal(size=(m, n))


def error(found, A) -> float:
    return float(np.sqrt(np.mean((found - A.mean(axis=1)) ** 2)))


@pytest.mark.parametrize("shape", [(7, 5), (5, 9)])
def test_generalised_least_squares_against_the_dense_covariance(shape):
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random(shape) < 0.7)
    F = np.column_stack([np.ones(len(rows)), rng.normal(size=(len(rows), 2))])
    y = rng.normal(size=len(rows))
    variance = Components(0.7, 0.4, 1.3)
    V = variance.rows * np.equal.outer(rows, rows) + variance.cols * np.equal.outer(cols, cols)
    V = V + variance.cell * np.eye(len(rows))
    cov = np.linalg.inv(F.T @ np.linalg.solve(V, F))
    found, spread = generalised_least_squares(F, y, rows, cols, shape, variance)
    np.testing.assert_allclose(found, cov @ F.T @ np.linalg.solve(V, y), atol=1e-10)
    np.testing.assert_allclose(spread, cov, atol=1e-10)


def test_parts_of_a_judge_add_up():
    A, rng = board(1)
    X = some(soft(A, rng), 60, rng)
    seen = Observations.from_dense(X)
    judge = Judge.of(seen)
    parts = judge.parts(seen.rows, seen.cols)
    whole = parts.sum(axis=1)
    said = (seen.values - seen.values.mean()) / seen.values.std()
    np.testing.assert_allclose(whole - whole.mean(), said - said.mean(), atol=1e-9)
    interaction = judge.left @ judge.right.T
    np.testing.assert_allclose(interaction.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(interaction.mean(axis=1), 0, atol=1e-9)
    cells, rest = judge.block(np.arange(5), np.ones(4))
    i, j = np.divmod(np.arange(5 * A.shape[1]), A.shape[1])
    np.testing.assert_allclose((cells + rest).ravel(), judge.parts(i, j).sum(axis=1), atol=1e-9)


def test_entries_of_the_fit_by_cells_and_by_whole_rows_agree():
    A, rng = board(2)
    dear = Observations.from_dense(some(A, 15, rng))
    fit = fit_with_judges(dear, (Judge.of(Observations.from_dense(soft(A, rng))),))
    whole = fit.entries(np.arange(24)[:, None], np.arange(90))
    i, j = np.nonzero(np.random.default_rng(0).random(A.shape) < 0.3)
    np.testing.assert_allclose(fit.entries(i, j), whole[i, j], atol=1e-10)


@pytest.mark.slow
def test_judge_helps_covers_and_is_independent_of_its_unit():
    ratios, covered = [], []
    for seed in range(6):
        A, rng = board(seed)
        dear, X = some(A, 12, rng), soft(A, rng)
        found = judged(dear, X)
        ratios.append(error(found.mean, A) / error(found.alone.mean, A))
        truth = A.mean(axis=1)
        covered.append(np.mean((found.low <= truth) & (truth <= found.high)))
    assert np.exp(np.mean(np.log(ratios))) < 0.7
    assert np.mean(covered) > 0.85
    for other in (X + 100.0, 7.0 * X, -3.0 * X + 1.0):
        again = judged(dear, other)
        np.testing.assert_allclose(again.mean, found.mean, atol=1e-6)
        np.testing.assert_allclose(again.low, found.low, atol=1e-6)


@pytest.mark.slow
def test_the_same_bias_in_every_row_makes_intervals_narrow():
    """Stein's estimate of risk: where rows need no level of their own, the scores' errors are a fraction of the
    doubly robust ones', and so is the width; where they do, the width is that of the left-out errors."""
    shares, covered = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        level = rng.normal(size=(40, 1))
        A = level + rng.normal(size=(40, 90))
        X = np.repeat(2.0 + level, 90, axis=1) + 1e-3 * rng.normal(size=A.shape)  # levels, no cells
        dear, truth = some(A, 9, rng), A.mean(axis=1)
        both = [judged(dear, X, estimate=way) for way in ("fit", "doubly robust")]
        width = [float(np.mean(x.high - x.low)) for x in both]
        shares.append(width[0] / width[1])
        covered.append(np.mean((both[0].low <= truth) & (truth <= both[0].high)))
        own = judged(dear, rng.normal(size=A.shape))  # knows no level
        assert np.mean(own.high - own.low) > 0.8 * np.mean(own.alone.high - own.alone.low)
    assert np.mean(shares) < 0.75
    assert np.mean(covered) > 0.88


@pytest.mark.slow
def test_useless_judge_costs_almost_nothing():
    with_judge, without = [], []
    for seed in range(10):
        A, rng = board(seed)
        found = judged(some(A, 12, rng), rng.normal(size=A.shape))
        with_judge.append(error(found.mean, A) ** 2)
        without.append(error(found.alone.mean, A) ** 2)
    assert np.sqrt(np.mean(with_judge) / np.mean(without)) < 1.03


@pytest.mark.slow
def test_perfect_judge_gives_the_truth_and_missing_judge_cells_are_doubted():
    A, rng = board(3)
    dear = some(A, 12, rng)
    found = judged(dear, 4.0 - 2.0 * A)
    assert error(found.mean, A) < 1e-6
    X = np.where(np.isnan(dear), some(A, 40, rng), dear)
    part = judged(dear, X)
    assert error(part.mean, A) < error(part.alone.mean, A)
    truth = A.mean(axis=1)
    assert np.mean((part.low <= truth) & (truth <= part.high)) > 0.75
    assert part.deviation.mean() > 1e3 * found.deviation.mean()


@pytest.mark.slow
def test_two_judges_are_better_than_one_and_a_copy_changes_nothing():
    one, two = [], []
    for seed in range(6):
        A, rng = board(seed)
        dear = some(A, 12, rng)
        X, Y = soft(A, rng, 1.0), soft(A, rng, 1.0)
        alone = judged(dear, {"x": X})
        one.append(error(alone.mean, A) ** 2)
        two.append(error(judged(dear, {"x": X, "y": Y}).mean, A) ** 2)
        copied = judged(dear, {"x": X, "copy": X})
        np.testing.assert_allclose(copied.mean, alone.mean, atol=0.02)
    assert np.mean(two) < np.mean(one)


@pytest.mark.slow
def test_doubly_robust_against_the_formula():
    A, rng = board(4)
    dear, X = some(A, 10, rng), soft(A, rng)
    found = judged(dear, X, estimate="doubly robust")
    fit, seen = found.fit, found.fit.dear
    expected = np.zeros(len(A))
    for out, part in fit.without_each(0):
        guess = part.entries(np.arange(24)[:, None], np.arange(90))
        for i in range(24):
            mine = out[seen.rows[out] == i]
            off = seen.values[mine] - guess[i, seen.cols[mine]]
            expected[i] += np.sum(guess[i].mean() + off) / np.sum(seen.rows == i)
    np.testing.assert_allclose(found.mean, expected, atol=1e-9)


def test_bounds_and_binary_answers_stay_inside():
    A, rng = board(5)
    yes = (A > 1.0).astype(float)
    dear = some(yes, 15, rng)
    found = judged(dear, soft(yes, rng), bounds=(0.0, 1.0))
    assert np.all(found.low >= 0)
    assert np.all(found.high <= 1)
    assert np.all((found.mean >= 0) & (found.mean <= 1))
    assert error(found.mean, yes) < error(found.alone.mean, yes)


def test_rows_known_whole_are_exact_and_rows_without_dear_cells_are_wide():
    A, rng = board(6)
    dear = some(A, 12, rng)
    dear[0], dear[1] = A[0], np.nan
    found = judged(dear, soft(A, rng))
    assert found.deviation[0] == 0
    np.testing.assert_allclose(found.mean[0], A[0].mean())
    assert found.deviation[1] > found.deviation[2:].max()


@pytest.mark.slow
def test_tables_are_matched_by_label_and_unite():
    A, rng = board(7, m=10, n=30)
    dear, X = some(A, 8, rng), soft(A, rng)
    rows, cols = [f"r{i}" for i in range(10)], [f"c{j}" for j in range(30)]
    turn = rng.permutation(10)
    plain = judged(dear, X)
    named = judged(
        Observations.from_dense(dear, row_labels=rows, col_labels=cols),
        Observations.from_dense(X[turn], row_labels=[rows[i] for i in turn], col_labels=cols),
    )
    np.testing.assert_allclose(named.mean, plain.mean, atol=1e-6)
    fewer = judged(
        Observations.from_dense(dear[:9], row_labels=rows[:9], col_labels=cols),
        Observations.from_dense(X, row_labels=rows, col_labels=cols),
    )
    assert fewer.row_labels == tuple(rows)
    assert np.isfinite(fewer.mean[9])
    assert fewer.cells[9] == 0


def test_what_judged_refuses():
    A, rng = board(8, m=6, n=20)
    dear = some(A, 5, rng)
    with pytest.raises(DataError, match="shape"):
        judged(dear, A[:, :-1])
    with pytest.raises(ParameterError, match="judge="):
        judged(dear)
    with pytest.raises(ParameterError, match="level"):
        judged(dear, A, 1.5)
    with pytest.raises(ParameterError, match="groups"):
        judged(dear, A, groups=["a"])


def test_row_slopes_find_rows_that_differ_and_nothing_in_noise():
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(40), 30)
    rest, true = rng.normal(size=1200), rng.normal(size=40)
    found = row_slopes(rows, rest, true[rows] * rest + 0.3 * rng.normal(size=1200), 40)
    assert np.corrcoef(found, true)[0, 1] > 0.97
    chance = [row_slopes(rows, rest, rng.normal(size=1200), 40) for _ in range(20)]
    assert np.mean(np.square(chance)) < 0.2 / 30  # plain slopes have variance 1/30


@pytest.mark.slow
def test_a_favoured_row_is_named_and_a_fair_judge_is_not_accused():
    named, accused = 0, 0
    for seed in range(10):
        A, rng = board(seed)
        dear = some(A, 20, rng)
        fair = 1.0 + 0.6 * A + 0.3 * rng.normal(size=(1, 90)) + 0.4 * rng.normal(size=A.shape)
        accused += not judged(dear, fair).bias["judge"].fair
        fair[3] += 0.6
        bias = judged(dear, fair).bias["judge"]
        named += bool(bias.rows.surely[3] and bias.rows.offset[3] > 0)
        assert "favours" in bias.words([str(i) for i in range(24)])
    assert named >= 9
    assert accused <= 1


@pytest.mark.slow
def test_bias_by_group_and_slopes():
    A, rng = board(9, n=200)
    groups = np.where(np.arange(200) < 100, "code", "talk")
    X = 0.7 * A + 0.2 * rng.normal(size=A.shape) + np.where(groups == "code", 0.5, 0.0)
    bias = judged(some(A, 60, rng), X, groups=groups).bias["judge"]
    assert bias.groups is not None
    assert bias.groups.names == ("code", "talk")
    assert bias.groups.surely.all()
    apart = bias.groups.offset[0] - bias.groups.offset[1]
    assert abs(apart - 0.5) < 0.1
    inside = (bias.rows.slope_low <= 0.7) & (bias.rows.slope_high >= 0.7)
    assert inside.mean() > 0.7


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_against_the_definition(p):
    p = np.array(p)
    order, expected = np.argsort(p, kind="stable"), np.zeros(len(p), bool)
    for step, k in enumerate(order):
        if p[k] > 0.05 / (len(p) - step):
            break
        expected[k] = True
    np.testing.assert_array_equal(holm(p, 0.05), expected)


@settings(deadline=None, max_examples=60)
@given(
    rho=st.floats(0, 0.99),
    price=st.floats(0.01, 0.5),
    money=st.floats(8, 60),
    pilot=st.floats(1, 4),
)
def test_split_is_the_best_on_a_grid(rho, price, money, pilot):
    n = 100.0
    found = split(rho, price, money, n, pilot=pilot)
    assert found.dear + price * found.judged <= money * (1 + 1e-9)
    assert pilot - 1e-9 <= found.dear <= found.judged + 1e-9 <= n + 1e-6

    def variance(k, N):
        return (1 - rho**2) * (1 / k - 1 / n) + rho**2 * (1 / N - 1 / n)

    k = np.linspace(pilot, money / (1 + price), 400)
    N = np.minimum((money - k) / price, n)
    best = variance(k, N)[k <= N].min()
    assert variance(found.dear, found.judged) <= best * (1 + 1e-6) + 1e-12


def test_needed_is_where_the_split_begins_to_gain():
    for price in (0.02, 0.1):
        rho = needed(price)
        assert split(rho - 0.02, price, 50, 1e9).gain <= 1e-9
        assert split(rho + 0.02, price, 50, 1e9).gain > 0


def test_worth_and_choice_among_judges():
    A, rng = board(10, m=40)
    both = some(A, 30, rng)
    good = np.where(np.isnan(both), np.nan, A + 0.3 * rng.normal(size=A.shape))
    bad = np.where(np.isnan(both), np.nan, rng.normal(size=A.shape))
    dear = Observations.from_dense(both)
    tables = {"good": Observations.from_dense(good), "bad": Observations.from_dense(bad)}
    off = Residuals.of(dear, tables)
    assert off.worth([0]).rho > 0.8
    assert off.worth([1]).rho < 0.15
    chosen, best = choose(off, np.array([0.05, 0.05]), 20.0, 90.0, 4.0)
    assert chosen == [0]
    assert best.gain > 0.2
    nobody, plain = choose(off, np.array([0.9, 0.9]), 20.0, 90.0, 1.0)
    assert nobody == []
    assert plain.judged == 0


def test_prediction_powered_against_its_formula():
    A, rng = board(11, m=5, n=40)
    dear, X = some(A, 12, rng), soft(A, rng)
    seen, said = Observations.from_dense(dear), Observations.from_dense(X)
    for tuning in ("none", "row"):
        found = prediction_powered(seen, said, 0.9, tuning=tuning)
        for i in range(5):
            at = ~np.isnan(dear[i])
            y, x = A[i, at], X[i, at]
            power = 1.0 if tuning == "none" else np.cov(x, y)[0, 1] / np.var(x, ddof=1)
            mean = y.mean() + power * (X[i].mean() - x.mean())
            spread = np.var(y - power * x, ddof=1) * (1 / 12 - 1 / 40)
            assert found.mean[i] == pytest.approx(mean)
            assert found.high[i] - found.mean[i] == pytest.approx(
                1.795885 * np.sqrt(spread), rel=1e-5
            )
    pooled = prediction_powered(seen, said, tuning="pooled")
    assert len(np.unique(pooled.power)) == 1


# buying


class Instruments:
    """Answers of several instruments, each from its own table."""

    def __init__(self, **tables) -> None:
        self.tables = tables
        self.asked = dict.fromkeys(tables, 0)

    def __call__(self, batch):
        self.asked[batch.mode] += len(batch)
        return self.tables[batch.mode][batch.rows, batch.cols]


def buying(A, X, budget=None, price=0.05, seed=0, **extra):
    plan = row_scores(
        A.shape,
        ew.Prices(judge=price, human=1.0),
        budget=0.12 * A.size if budget is None else budget,
        target="human",
        rng=seed,
        **extra,
    )
    run = ew.Run(plan)
    oracle = Instruments(human=A, judge=X)
    return run, ew.play(run, oracle), oracle


@pytest.mark.slow
def test_a_good_judge_is_bought_and_a_useless_one_refused():
    A, rng = board(0, m=30, n=120)
    run, found, oracle = buying(A, soft(A, rng))
    told = found.report["judges"]["judge"]
    assert told["kept"]
    assert told["rho"] > told["needed"]
    assert oracle.asked["judge"] > 3 * oracle.asked["human"]
    assert found.cost <= 0.12 * A.size
    assert found.cost > 0.98 * 0.12 * A.size
    bought = Bought.from_run(run)
    judged_cells = set(zip(bought.judges["judge"].rows, bought.judges["judge"].cols, strict=True))
    assert set(zip(bought.rows, bought.cols, strict=True)) <= judged_cells
    _, refused, oracle = buying(A, rng.normal(size=A.shape))
    told = refused.report["judges"]["judge"]
    assert not told["kept"]
    assert oracle.asked["judge"] == 5 * 30  # the pilot, and nothing else
    assert oracle.asked["human"] == int(0.12 * A.size - 0.05 * 150)


@pytest.mark.slow
def test_buying_with_a_judge_has_a_smaller_error():
    ratios = []
    for seed in range(4):
        A, rng = board(seed, m=30, n=120)
        run, _, _ = buying(A, soft(A, rng), price=0.02, seed=seed)
        alone = ew.Run(row_scores(A.shape, budget=0.12 * A.size, rng=seed))
        fit = ew.play(alone, MatrixOracle(A))
        ours, plain = judged(Bought.from_run(run)), scores(fit, Bought.from_run(alone))
        ratios.append(error(ours.mean, A) / error(plain.mean, A))
    assert np.exp(np.mean(np.log(ratios))) < 0.85


@pytest.mark.slow
def test_two_judges_of_which_one_is_good():
    A, rng = board(1, m=30, n=120)
    plan = row_scores(
        A.shape,
        ew.Prices(good=0.05, bad=0.05, human=1.0),
        budget=0.15 * A.size,
        target="human",
        rng=0,
    )
    oracle = Instruments(human=A, good=soft(A, rng), bad=rng.normal(size=A.shape))
    found = ew.play(plan, oracle)
    told = found.report["judges"]
    assert told["good"]["kept"]
    assert not told["bad"]["kept"]
    assert oracle.asked["good"] > 2 * oracle.asked["bad"]


@pytest.mark.slow
def test_what_judges_said_before_is_free_and_history_needs_no_pilot():
    A, rng = board(2, m=30, n=60)
    X = soft(A, rng)
    old = np.arange(25)
    known = {
        "human": Observations.from_dense(np.where(np.arange(30)[:, None] < 25, A, np.nan)),
        "judge": Observations.from_dense(np.where(np.arange(30)[:, None] < 25, X, np.nan)),
    }
    plan = row_scores(A.shape, ew.Prices(judge=0.02, human=1.0), budget=60.0, target="human", rng=0)
    run = ew.Run(plan, known=known)
    oracle = Instruments(human=A, judge=X)
    found = ew.play(run, oracle)
    assert not np.isin(run.facts.rows, old).any()
    assert "pilot" not in run.facts.arm.tolist()
    assert found.report["judges"]["judge"]["kept"]
    assert oracle.asked["judge"] == 5 * 60
    board_ = judged(Bought.from_run(run))
    np.testing.assert_allclose(board_.mean[old], A[old].mean(axis=1))
    assert np.all(board_.deviation[25:] > 0)


@pytest.mark.slow
def test_judge_known_everywhere_costs_nothing():
    A, rng = board(3, m=20, n=60)
    plan = row_scores(A.shape, ew.Prices(judge=0.1, human=1.0), budget=120.0, target="human", rng=0)
    oracle = Instruments(human=A)
    found = ew.play(plan, oracle, known={"judge": Observations.from_dense(soft(A, rng))})
    assert oracle.asked["human"] == 120
    assert found.cost == 120


@pytest.mark.slow
@pytest.mark.parametrize("law", plans.LAWS, ids=lambda law: law.__name__)
def test_the_plan_with_judges_keeps_the_laws(law):
    A, rng = board(4, m=14, n=12)
    X = soft(A, rng)
    plan = row_scores(A.shape, ew.Prices(judge=0.1, human=1.0), budget=70.0, target="human", rng=0)
    law(plan, lambda seed: Instruments(human=A, judge=X))


@pytest.mark.slow
def test_failed_answers_and_lines_left_out():
    A, rng = board(5, m=12, n=30)
    X = soft(A, rng)
    plan = row_scores(A.shape, ew.Prices(judge=0.1, human=1.0), budget=100.0, target="human", rng=0)
    run = ew.Run(plan)
    while (batch := run.ask()) is not None and len(batch):
        answers = (A if batch.mode == "human" else X)[batch.rows, batch.cols]
        run.tell([None if rng.random() < 0.1 else x for x in answers])
    assert run.finished
    assert run.ledger.spent <= 100
    assert np.isfinite(judged(Bought.from_run(run)).mean).all()


def test_what_the_plan_with_judges_refuses():
    with pytest.raises(ParameterError, match="needs prices"):
        row_scores((3, 4), budget=5, target="human")
    with pytest.raises(ParameterError, match="goal scores"):
        row_scores((3, 4), ew.Prices(human=1), budget=5, target="human", goal="order")
    with pytest.raises(ParameterError, match="one price"):
        row_scores((3, 4), ew.Prices(human=np.arange(1.0, 5.0)), budget=5, target="human")


@pytest.mark.slow
def test_a_study_with_two_instruments(tmp_path):
    A, rng = board(6, m=10, n=30)
    tables = {"human": A, "judge": soft(A, rng)}
    study = ew.Study.create(
        str(tmp_path / "s.db"),
        "board",
        plan="row-scores",
        params={"shape": [10, 30], "target": "human"},
        prices=ew.Prices(judge=0.05, human=1.0),
        budget=80.0,
        seed=1,
    )
    while todo := study.ask(40):
        study.tell([(q.id, tables[q.mode][q.index]) for q in todo])
    assert study.finished
    study.check()
    bought = Bought.from_log((10, 30), study.log(), study.labels.index, target="human")
    assert set(bought.judges) == {"judge"}
    assert np.isfinite(judged(bought).mean).all()
    assert study.status()["spent"] <= 80


def test_answers_of_several_instruments_are_told_by_id(tmp_path):
    study = ew.Study.create(
        str(tmp_path / "s.db"),
        "board",
        plan="row-scores",
        params={"shape": [4, 6], "target": "human"},
        prices=ew.Prices(judge=0.1, human=1.0),
        budget=15.0,
        seed=1,
        known={"judge": Observations.from_dense(np.eye(4, 6))},
    )
    first = study.ask(1)[0]
    assert first.mode == "human"
    with pytest.raises(TellError, match="by id"):
        study.tell([(*first.index, 1.0)])
    study.tell([(first.id, 1.0)])
    assert study.add({"human": Observations.from_triplets([3], [5], [0.5], (4, 6))}) == 1


# the command


def write(path, A, rows, cols) -> str:
    lines = ["model,task,score"]
    for i, j in zip(*np.nonzero(~np.isnan(A)), strict=True):
        lines.append(f"{rows[i]},{cols[j]},{A[i, j]:.6f}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def command(*words):
    """Run the command in this process; return what it printed on both ways."""
    found = CliRunner().invoke(app, [str(word) for word in words])
    if found.exception is not None:
        raise found.exception
    return found.stdout, found.stderr


@pytest.mark.slow
def test_report_of_tables_with_a_judge(tmp_path):
    A, rng = board(0, m=12, n=40)
    rows, cols = [f"m{i}" for i in range(12)], [f"t{j}" for j in range(40)]
    X = 0.6 * A + 0.3 * rng.normal(size=A.shape)
    X[4] += 1.0
    dear = write(tmp_path / "dear.csv", some(A, 12, rng), rows, cols)
    cheap = write(tmp_path / "judge.csv", X, rows, cols)
    report = ("leaderboard", "report", dear, "--judge")
    out, err = command(*report, f"gpt={cheap}", "--format", "json")
    lines = {line["model"]: line for line in json.loads(out)}
    assert set(lines) == set(rows)
    one = lines["m0"]
    assert one["high"] - one["low"] < one["alone_high"] - one["alone_low"]
    assert "gpt: rho" in err
    assert re.search(r"favours m4 by \S+ \(\S+ to \S+\)", err)
    groups = tmp_path / "groups.csv"
    groups.write_text("task,group\n" + "".join(f"t{j},g{j % 2}\n" for j in range(40)))
    out, err = command(*report, cheap, "--bias", "--groups", groups, "--format", "csv")
    assert out.splitlines()[0].startswith("judge,model,offset,low,high,slope")
    assert "judge on g0: offset" in err


@pytest.mark.slow
def test_a_leaderboard_with_instruments_from_the_command(tmp_path):
    A, rng = board(1, m=8, n=30)
    tables = {"human": A, "judge": soft(A, rng)}
    names = {"rows": [f"m{i}" for i in range(8)], "cols": [f"t{j}" for j in range(30)]}
    for side, labels in names.items():
        (tmp_path / f"{side}.csv").write_text("name\n" + "\n".join(labels) + "\n")
    database = tmp_path / "s.db"
    files = ("--rows", tmp_path / "rows.csv", "--cols", tmp_path / "cols.csv", "--budget", 70)
    instruments = ("--instrument", "judge:0.05", "--instrument", "human:1", "--target", "human")
    command("leaderboard", "create", database, *files, "--seed", 1, *instruments)
    study = ew.Study.open(str(database), "leaderboard")
    first = study.ask(200)
    by_human = [q for q in first if q.mode == "human"]
    by_judge = [q for q in first if q.mode == "judge"]
    study.tell([(q.id, A[q.index]) for q in by_human])
    out, err = command("leaderboard", "report", database, "--format", "csv")  # no judge yet
    assert len(out.splitlines()) == 9
    assert "of human" in err
    with pytest.raises(ParameterError, match="what a judge said"):
        command("leaderboard", "report", database, "--bias")
    study.tell([(q.id, tables["judge"][q.index]) for q in by_judge])
    while todo := study.ask(200):
        study.tell([(q.id, tables[q.mode][q.index]) for q in todo])
    out, err = command("leaderboard", "report", database, "--format", "csv")
    assert len(out.splitlines()) == 9
    assert "judge: rho" in err
    assert "it would have to exceed 0.43: " in err
    further = np.count_nonzero([x["mode"] == "judge" and x["arm"] == "judge" for x in study.log()])
    assert f"{further or 'none'} bought beyond the pilot" in err
    assert "surely better than" in err
    groups = tmp_path / "groups.csv"
    groups.write_text("task,group\n" + "".join(f"t{j},g{j % 2}\n" for j in range(30)))
    out, err = command("leaderboard", "report", database, "--bias", "--groups", groups)
    assert "judge on g1: offset" in err
    assert "; slope " in err
    for bad in (("--target", "human"), ("--instrument", "judge", "--target", "human")):
        with pytest.raises(ParameterError, match="instrument"):
            command("leaderboard", "create", tmp_path / "t.db", *files, *bad)


@pytest.mark.slow
def test_the_benchmark_in_short(monkeypatch):
    """The quick form of benchmarks/judge.py, on synthetic boards."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    bench = importlib.import_module("judge")
    bars, seeds = bench.Bars(), range(8000, 8003)
    bench.known(bars, ["synthetic"], ("soft", "useless", "perfect"), (0.1,), seeds)
    bench.bias(bars, ["synthetic"], seeds)
    bench.invariant(bars, ["synthetic"], seeds[:1])
    # three seeds are too few for a mean of coverages
    missed = [row for row in bars.rows if row[3] == "MISSED" and "mean over cases" not in row[0]]
    assert not missed


@pytest.mark.slow
def test_the_page_scores_by_the_target(tmp_path):
    A, rng = board(2, m=8, n=30)
    tables = {"human": A, "judge": 50.0 + soft(A, rng)}  # a judge of another scale
    study = ew.Study.create(
        str(tmp_path / "s.db"),
        "board",
        plan="row-scores",
        params={"shape": [8, 30], "target": "human"},
        prices=ew.Prices(judge=0.05, human=1.0),
        budget=70.0,
        seed=1,
    )
    while todo := study.ask(200):
        study.tell([(q.id, tables[q.mode][q.index]) for q in todo])
    told = story(study)
    assert not told.missing
    assert error(told.board.mean, A) < 1.0
    assert told.verdict
