"""Scores of rows: the design, the intervals, the order, new rows, rehearsals, savings, and when a winner may be named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrywise as ew
from entrywise.active import row_scores, top_two
from entrywise.active.cells import designs
from entrywise.active.cells.left_out import folds_within_rows
from entrywise.active.cells.race import chances_of_best, named_winner
from entrywise.active.cells.reserve import column_order
from entrywise.apply.leaderboard import (
    Bought,
    order,
    paired,
    rehearse,
    savings,
    scores,
    verdict,
)
from entrywise.apply.leaderboard.new_rows import Replay, folded_means, quantile
from entrywise.apply.leaderboard.order import Differences, Order, levelled, unpaired
from entrywise.apply.leaderboard.scores import (
    completed_means,
    equal_chances,
    unequal_chances,
)
from entrywise.bounds.anytime_t import half_width, log_evidence
from entrywise.exceptions import DataError, ParameterError
from entrywise.gallery import random_low_rank
from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.observations import Observations
from entrywise.oracles import MatrixOracle
from entrywise.passive import low_rank


def noisy(m, n, rank=2, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return random_low_rank(m, n, rank, seed) + noise * rng.standard_normal((m, n))


def bought_of(A, budget, **extra):
    run = ew.Run(row_scores(A.shape, budget=budget, **extra))
    return ew.play(run, MatrixOracle(np.nan_to_num(A))), Bought.from_run(run), run


# the design


def test_half_are_common_columns_and_every_column_is_touched():
    A = noisy(20, 60)
    _, bought, run = bought_of(A, 400.0, rng=1)
    assert len(bought) == 400
    core = bought.arms == "core"
    assert core.sum() == 200
    columns = column_order(run.plan.seed, 60)[:10]
    assert set(bought.cols[core]) == set(columns)
    used = np.bincount(bought.cols[~core], minlength=60)
    others = np.setdiff1d(np.arange(60), columns)
    assert used[columns].sum() == 0
    assert used[others].max() - used[others].min() <= 1


def test_rows_that_scatter_more_get_more():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 200)) * np.repeat([0.5, 2.0], 15)[:, None]
    _, bought, _ = bought_of(A, 1200.0, rng=1)
    counts = np.bincount(bought.rows, minlength=30)
    assert counts[15:].mean() > 1.5 * counts[:15].mean()
    assert (
        counts.min() >= 20 + 0.3 * 20 - 1
    )  # half of 40 common, and .3 of an equal share of the spread


@settings(deadline=None, max_examples=40)
@given(
    m=st.integers(1, 12),
    money=st.floats(0.0, 200.0),
    seed=st.integers(0, 1000),
)
def test_an_allocation_keeps_to_its_limits_and_to_the_money(m, money, seed):
    rng = np.random.default_rng(seed)
    price, most = rng.uniform(0.5, 3.0, m), rng.integers(0, 30, m)
    least = np.minimum(rng.integers(0, 3, m), most)
    given_ = designs.allocation(rng.uniform(0.1, 2.0, m), price, least, most, money)
    assert np.all(given_ <= most)
    if price @ least <= money:
        assert price @ given_ <= money * (1 + 1e-9) + 1e-9
        assert np.all(given_ >= least)
        left = money - price @ given_
        assert np.all((given_ == most) | (price > left - 1e-9))  # nothing more could be paid


def test_chances_spend_the_money_and_fall_with_the_root_of_the_price():
    price = np.random.default_rng(0).lognormal(0, 2, (12, 15))
    open_ = np.ones(price.shape, bool)
    chance = designs.chances(price, open_, 0.2 * price.sum())
    assert np.sum(chance * price) == pytest.approx(0.2 * price.sum(), rel=1e-6)
    inner = (chance < 1) & (chance > designs.LEAST_CHANCE)
    scaled = (chance * np.sqrt(price))[inner]
    assert np.ptp(scaled) < 1e-9 * scaled.mean()


def test_the_greedy_columns_are_those_of_a_dense_search():
    A = noisy(25, 9)
    fit = low_rank(Observations.from_dense(A), 2)
    found = designs.greedy_columns(fit, np.ones(9, bool), np.ones(9), 3.0)
    posterior = fit.posterior
    C, V, own = designs._before(fit)
    np.testing.assert_array_equal(V, np.column_stack([fit.right, np.ones(9)]))

    def variance(known):
        rest = np.setdiff1d(np.arange(9), known)
        P = np.linalg.inv(C) + (V[known].T / own[known]) @ V[known]
        s = V[rest].sum(axis=0)
        return s @ np.linalg.inv(P) @ s + own[rest].sum()

    chosen = []
    for _ in range(3):
        rest = [j for j in range(9) if j not in chosen]
        chosen.append(min(rest, key=lambda j: variance([*chosen, j])))
    assert posterior is not None
    assert found.tolist() == chosen


def test_new_rows_need_a_history_worth_replaying():
    there = np.ones((30, 10), bool)
    known = np.zeros((30, 10), bool)
    known[:19] = True
    assert designs.new_rows(known, there) is None  # 19 are too few
    known[19, :5] = True
    assert designs.new_rows(known, there).sum() == 10
    known[:] = True
    assert designs.new_rows(known, there) is None  # nothing is new


def test_order_buys_common_columns_only_and_unavailable_cells_never():
    A = noisy(10, 30)
    there = np.random.default_rng(0).random(A.shape) < 0.8
    _, bought, _ = bought_of(A, 100.0, goal="order", available=there, rng=2)
    assert set(bought.arms) == {"order"}
    assert np.all(there[bought.rows, bought.cols])
    columns = np.unique(bought.cols)
    whole = [j for j in columns if there[:, j].sum() == (bought.cols == j).sum()]
    assert len(whole) >= len(columns) - 1  # at most one is cut by the money
    with pytest.raises(ParameterError, match="goal of row_scores must be scores or order"):
        row_scores((3, 3), budget=3, goal="best")
    with pytest.raises(ParameterError, match=r"core must be in 0\.\.1"):
        row_scores((3, 3), budget=3, core=2.0)


# estimates and intervals


def test_completed_means_are_those_of_the_filled_matrix():
    A = noisy(8, 12)
    rng = np.random.default_rng(0)
    there, seen = rng.random(A.shape) < 0.9, rng.random(A.shape) < 0.5
    i, j = np.nonzero(seen & there)
    observed = Observations.from_triplets(i, j, A[i, j], A.shape)
    fit = low_rank(observed, 1)
    filled = np.clip(fit.to_dense(), -1.0, 1.0)
    filled[i, j] = A[i, j]
    wanted = np.array([filled[k][there[k]].mean() for k in range(8)])
    np.testing.assert_allclose(completed_means(fit, observed, there, (-1.0, 1.0)), wanted)


def test_variances_are_drawn_to_the_common_one():
    rng = np.random.default_rng(0)
    equal = rng.chisquare(5, 4000) / 5
    variance, added = shrunk_variances(equal, np.full(4000, 5.0))
    assert added > 50  # all that differs is chance
    np.testing.assert_allclose(variance, 1.0, atol=0.15)
    own = 1.0 / (rng.chisquare(10, 4000) / 10)
    variance, added = shrunk_variances(own * equal, np.full(4000, 5.0))
    assert 5 < added < 20
    assert np.mean((variance - own) ** 2) < np.mean((own * equal - own) ** 2) / 2
    assert np.isnan(shrunk_variances(np.zeros(2), np.zeros(2))[0]).all()


def test_folds_are_dealt_out_evenly_within_rows():
    rows = np.random.default_rng(0).integers(7, size=200)
    fold = folds_within_rows(rows, 5, np.random.default_rng(1))
    for i in range(7):
        counts = np.bincount(fold[rows == i], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_a_sure_cell_that_the_money_did_not_reach_still_counts():
    rng = np.random.default_rng(3)
    there = np.ones((30, 40), bool)
    chance = np.where(np.arange(40) < 30, 1.0, 0.25) * np.ones((30, 1))
    price = 1.0 / chance**2
    taken = rng.random((30, 40)) < chance
    taken[0], taken[1] = True, True
    taken[1, 0] = False  # sure to be drawn, and the money was spent before
    i, j = np.nonzero(taken)
    residual = rng.standard_normal(len(i)) * np.where(j < 30, 1.0, 3.0)
    seen = Observations.from_triplets(i, j, residual, (30, 40))
    chance[:2, 30:] = 1.0  # rows 0 and 1 were bought whole but for that cell
    deviation, _ = unequal_chances(seen, residual, price, chance, there)
    assert deviation[0] == 0.0
    assert 0.3 < deviation[1] * 40 < 3.0  # about the error of one cell, over 40
    wanted = np.sqrt(10 * 3.0 * 9.0) / 40  # odds 3 and variance 9 for ten cells
    assert np.median(deviation[2:]) == pytest.approx(wanted, rel=0.2)


def test_unequal_chances_that_are_equal_give_the_same_interval():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((15, 40))
    rows, cols = np.nonzero(np.tile(np.arange(40) < 10, (15, 1)))
    seen = Observations.from_triplets(rows, cols, A[rows, cols], A.shape)
    residual = rng.standard_normal(len(rows))
    there = np.ones(A.shape, bool)
    plain = equal_chances(rows, residual, np.full(15, 40))
    other = unequal_chances(seen, residual, np.ones(A.shape), np.full(A.shape, 0.25), there)
    np.testing.assert_allclose(other[0], plain[0])
    np.testing.assert_allclose(other[1], plain[1])


@pytest.mark.slow
@pytest.mark.parametrize("priced", [False, True])
def test_intervals_hold_on_low_rank_boards(priced):
    covered = []
    for seed in range(6):
        A = noisy(40, 80, seed=seed)
        price = np.random.default_rng(seed + 50).lognormal(0, 1.5, A.shape) if priced else None
        prices = None if price is None else ew.Prices(price)
        budget = 0.2 * (A.size if price is None else price.sum())
        run = ew.Run(row_scores(A.shape, prices, budget=budget, rng=seed))
        told = scores(ew.play(run, MatrixOracle(A)), Bought.from_run(run), 0.9, prices)
        truth = A.mean(axis=1)
        covered.append(np.mean((told.low <= truth) & (truth <= told.high)))
        assert np.sqrt(np.mean((told.mean - truth) ** 2)) < 0.5 * A.std() / 4
    assert np.mean(covered) > 0.86


def test_bounds_hold_scores_and_intervals():
    A = (np.random.default_rng(0).random((8, 30)) < 0.97).astype(float)
    fit, bought, _ = bought_of(A, 60.0, rng=1)
    told = scores(fit, bought, bounds=(0.0, 1.0))
    assert np.all((told.low >= 0) & (told.high <= 1) & (told.mean <= 1))
    assert np.all((told.low <= told.mean) & (told.mean <= told.high))
    with pytest.raises(ParameterError, match="level must be above 0 and below 1"):
        scores(fit, bought, 1.0)


def test_what_is_known_whole_has_no_error():
    A = noisy(6, 10)
    fit, bought, _ = bought_of(A, 60.0, rng=1)
    told = scores(fit, bought)
    np.testing.assert_allclose(told.mean, A.mean(axis=1))
    np.testing.assert_allclose(told.low, told.high)
    assert sorted(told.tier) == [1, 2, 3, 4, 5, 6]
    assert told.tier[told.order[0]] == 1


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [False, True])
def test_columns_may_be_a_sample_of_others(gaps):
    rng = np.random.default_rng(11)
    covered, false, claims = [], 0, 0
    for _ in range(30):
        truth = 0.3 * rng.standard_normal(10)
        table = truth[:, None] + rng.standard_normal(50) + 0.7 * rng.standard_normal((10, 50))
        if gaps:
            table[rng.random(table.shape) < 0.3] = np.nan
        bought = Bought.from_table(ew.Observations.from_dense(table))
        assert bought.is_complete is not gaps
        told = scores(None, bought, columns="sample")
        covered.append(np.mean((told.low <= truth) & (truth <= told.high)))
        false += int(np.sum(told.told.surely & ~(truth[:, None] > truth)))
        claims += int(told.told.surely.sum())
        if not gaps:  # the paired t-test is the referee, before it is shrunk a little over pairs
            apart = table[0] - table[1]
            plain = apart.std(ddof=1) / np.sqrt(50)
            assert told.apart.deviation[0, 1] == pytest.approx(plain, rel=0.35)
    assert np.mean(covered) > 0.9 - 0.08
    assert false <= 0.05 * claims
    assert claims > 100
    with pytest.raises(ParameterError, match="columns must be these or sample"):
        scores(None, bought, columns="all")


def test_the_verdict_of_a_whole_table_sells_no_more_of_it():
    table = np.array([[1.0, 1, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1], [0, 0, 0, 1, 0, 1]])
    bought = Bought.from_table(ew.Observations.from_dense(table))
    told = scores(None, bought, columns="sample", bounds=(0.0, 1.0))
    assert np.all(told.low >= 0)
    assert np.all(told.high <= 1)
    assert np.all(told.high > told.low)
    assert "would settle" not in verdict(told, bought, ["a", "b", "c"])


# order


def test_paired_variances_are_those_of_the_differences():
    values = np.random.default_rng(0).standard_normal((4, 12))
    found = paired(values, columns=48)
    pairs = [(i, l) for i in range(4) for l in range(i + 1, 4)]
    own = np.array([np.var(values[i] - values[l], ddof=1) for i, l in pairs])
    variance, added = shrunk_variances(own, np.full(6, 11.0), 2.0)
    wanted = np.sqrt(variance * (1 / 12 - 1 / 48))
    np.testing.assert_allclose([found.deviation[p] for p in pairs], wanted)
    np.testing.assert_allclose(found.freedom[0, 1], 11 + added)
    np.testing.assert_allclose(found.mean, values.mean(axis=1))


def test_tiers_and_places_follow_from_the_claims():
    surely = np.zeros((4, 4), bool)
    surely[0, 2] = surely[0, 3] = surely[1, 3] = surely[2, 3] = True
    told = Order(surely, np.array([4.0, 3.0, 2.0, 1.0]), "all")
    assert told.tier.tolist() == [1, 1, 2, 3]
    assert told.best_place.tolist() == [1, 1, 2, 4]
    assert told.worst_place.tolist() == [2, 3, 3, 4]


def test_a_column_bought_for_some_rows_does_not_change_their_order():
    rng = np.random.default_rng(0)
    level = np.array(
        [0.0, 0.1, -0.1, 5.0]
    )  # the last column is easy, and the money paid it for half of the rows
    whole = 0.3 * rng.standard_normal((40, 1)) + level + 0.01 * rng.standard_normal((40, 4))
    values = whole.copy()
    values[20:, 3] = np.nan
    flat = levelled(values, np.ones((40, 4), bool))
    np.testing.assert_allclose(np.nanmean(flat, axis=1), whole.mean(axis=1), atol=0.05)
    np.testing.assert_allclose(flat[0] - flat[1], values[0] - values[1])
    np.testing.assert_array_equal(levelled(whole, np.ones((40, 4), bool)), whole)
    np.testing.assert_array_equal(
        levelled(values, ~np.isnan(values)), values
    )  # cells that do not exist


@pytest.mark.parametrize("seed", range(5))
def test_a_better_score_never_has_a_lower_tier_and_tiers_hold_no_claim(seed):
    rng = np.random.default_rng(seed)
    mean, width = (
        rng.standard_normal(30),
        rng.choice([0.02, 0.5], 30),
    )  # some rows are known much better
    told = order(unpaired(mean, width, np.full(30, 20.0)))
    by_score = told.tier[np.argsort(-mean)]
    assert np.all(np.diff(by_score) >= 0)
    assert by_score[0] == 1
    assert by_score[-1] > 2
    same = told.tier[:, None] == told.tier[None, :]
    assert not np.any(told.surely & same)
    for number in range(2, by_score[-1] + 1):
        first = max(np.flatnonzero(told.tier == number), key=lambda i: mean[i])
        assert told.surely[told.tier == number - 1, first].any()


@pytest.mark.parametrize("promise", ["pairs", "all", "holm"])
def test_equal_rows_are_seldom_told_apart(promise):
    false = 0
    for seed in range(60):
        values = np.random.default_rng(seed).standard_normal((6, 30))
        false += order(paired(values, 3000, seed), 0.9, promise).surely.any()
    assert false <= 13  # 10 % expected at most; 13 of 60 is the 99.5 % quantile
    clear = np.random.default_rng(0).standard_normal((3, 30)) + 4.0 * np.arange(3)[:, None]
    assert order(paired(clear, 3000), 0.9, promise).tier.tolist() == [3, 2, 1]


def test_not_one_false_separates_no_fewer_than_holm():
    rng = np.random.default_rng(5)
    shared = rng.standard_normal((2, 60))
    values = rng.standard_normal((12, 2)) @ shared + rng.standard_normal((12, 60)) + np.arange(12)[:, None] / 4  # fmt: skip
    found = paired(values, 6000)
    assert order(found, 0.9, "all").surely.sum() >= order(found, 0.9, "holm").surely.sum()
    with pytest.raises(ParameterError, match="promise must be pairs, all or holm"):
        order(found, 0.9, "some")
    with pytest.raises(ParameterError, match="at least 2 common columns"):
        paired(values[:, :1], 60)


def test_a_row_without_cells_is_told_from_nobody():
    values = np.random.default_rng(0).standard_normal((3, 20)) + 5.0 * np.arange(3)[:, None]
    values[1] = np.nan
    told = order(paired(values, 200), 0.9, "all")
    assert not told.surely[1].any()
    assert not told.surely[:, 1].any()
    assert told.surely[2, 0]


def test_the_verdict_names_rivals_and_what_settling_costs():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 200)) + np.array([[0.0], [0.1], [2.0], [2.2], [2.3]])
    fit, bought, _ = bought_of(A, 200.0, rng=3)
    told = scores(fit, bought)
    words = verdict(told, bought, list("abcde"))
    leader = "abcde"[told.order[0]]
    assert words.startswith(f"{leader} is surely better than")
    assert "cannot be told from" in words
    assert "would settle" in words


# new rows


def test_new_rows_are_scored_against_history_with_replayed_intervals():
    A = noisy(60, 50, rank=2, noise=0.2, seed=3)
    table = A.copy()
    table[50:] = np.nan
    known = Observations.from_dense(table)
    run = ew.Run(row_scores(A.shape, budget=50.0, rng=1), known=known)
    fit = ew.play(run, MatrixOracle(A))
    bought = Bought.from_run(run)
    assert len(bought) == 50
    assert set(bought.rows[~bought.known]) == set(range(50, 60))
    told = scores(fit, bought)
    np.testing.assert_allclose(told.mean[:50], A[:50].mean(axis=1))
    truth = A.mean(axis=1)
    uniform = np.sqrt(np.mean(A[50:].var(axis=1, ddof=1)) * (1 / 5 - 1 / 50))
    assert np.sqrt(np.mean((told.mean - truth)[50:] ** 2)) < 0.6 * uniform
    assert np.mean(((told.low <= truth) & (truth <= told.high))[50:]) >= 0.8
    assert "known rows treated as new" in told.how
    assert "known beforehand" in savings(told, bought).reason


@pytest.mark.slow
def test_new_columns_are_spread_and_their_intervals_hold_though_they_differ():
    covered = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 7])
        A = noisy(25, 80, seed=seed)
        A[:, 50:] += 2.0 * rng.standard_normal((25, 1))  # what is new asks for another skill
        known = np.full(A.shape, np.nan)
        known[:, :50] = A[:, :50]
        run = ew.Run(
            row_scores(A.shape, budget=200.0, rng=seed), known=Observations.from_dense(known)
        )
        fit = ew.play(run, MatrixOracle(A))
        bought = Bought.from_run(run)
        paid = ~bought.known
        assert set(bought.arms[paid]) == {"new column"}
        assert np.all(bought.cols[paid] >= 50)
        used = np.bincount(bought.cols[paid] - 50, minlength=30)
        assert used.max() - used.min() <= 2  # columns alike
        told = scores(fit, bought)
        truth = A.mean(axis=1)
        covered.append(np.mean((told.low <= truth) & (truth <= told.high)))
        assert "new columns apart" in told.how
    assert np.mean(covered) > 0.88


def test_a_folded_mean_is_that_of_the_folded_matrix():
    A = noisy(25, 12)
    fit = low_rank(Observations.from_dense(A[:24]), 2)
    there = np.ones((1, 12), bool)
    there[0, 3] = False
    own = Observations.from_triplets([0, 0, 0], [0, 5, 7], A[24, [0, 5, 7]], (1, 12))
    mean, spread = folded_means(fit, own, there)
    filled = fit.fold_in(own).to_dense()[0]
    filled[[0, 5, 7]] = A[24, [0, 5, 7]]
    assert mean[0] == pytest.approx(filled[there[0]].mean())
    assert spread[0] > 0


def test_the_replay_treats_every_row_as_new_once():
    history = Observations.from_dense(noisy(30, 20))
    replay = Replay.of(history)
    off, spread = replay.errors(np.ones(20), 4.0)
    assert np.all(spread > 0)
    assert 0 < np.sqrt(np.mean(off**2)) < 0.5
    ratios = replay.ratios(np.ones(20), 4.0)
    assert quantile(ratios, 0.9) == np.sort(ratios)[27]  # the 28th of 30
    assert quantile(ratios[:5], 0.9) == ratios[:5].max()


# rehearsal and savings


@pytest.mark.slow
def test_a_rehearsal_foretells_other_rows():
    A = noisy(60, 60, noise=0.5)
    told = rehearse(Observations.from_dense(A[:30]), (0.15, 0.3), repeats=4)
    assert [x.goal for x in told.lines] == ["scores", "scores", "order", "order"]
    first = told.of("scores")[0]
    errors = []
    for seed in range(5):
        fit, bought, _ = bought_of(A[30:], 0.15 * 1800, rng=100 + seed)
        errors.append(np.sqrt(np.mean((scores(fit, bought).mean - A[30:].mean(axis=1)) ** 2)))
    assert first.low < np.mean(errors) < first.high
    assert first.error < first.naive
    assert told.lines[1].error < first.error
    assert "goal scores" in told.advice


def test_a_rehearsal_says_when_choosing_does_not_help():
    A = np.random.default_rng(0).standard_normal((20, 40))  # nothing but noise
    told = rehearse(Observations.from_dense(A), (0.2, 0.4), goals=("order",), repeats=3)
    assert "would not surely help" in told.advice
    with pytest.raises(ParameterError, match="budgets must be shares"):
        rehearse(Observations.from_dense(A), (2.0,))
    with pytest.raises(DataError, match="at least 2 rows with 2 known cells"):
        rehearse(Observations.from_triplets([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2)))


def test_savings_are_against_the_exact_naive_error():
    A = noisy(50, 100, noise=0.1)
    fit, bought, _ = bought_of(A, 1000.0, rng=1)
    told = scores(fit, bought)
    found = savings(told, bought)
    naive = np.sqrt(np.mean(A.var(axis=1, ddof=1)) * (1 / 20 - 1 / 100))
    ours = np.sqrt(np.mean(told.deviation**2))
    assert found.ratio == pytest.approx(ours / naive, rel=0.15)
    assert found.surely
    assert "surely saved" in found.words
    assert 0 < found.share_low < found.share < found.share_high < 1
    noise = np.random.default_rng(0).standard_normal((50, 100))
    fit, bought, _ = bought_of(noise, 1000.0, rng=1)
    assert not savings(scores(fit, bought), bought).surely
    fit, bought, _ = bought_of(A, 1000.0, goal="order", rng=1)
    assert "naive scores" in savings(scores(fit, bought), bought).words


# when a winner may be named


def test_the_evidence_is_a_mixture_of_likelihood_ratios():
    x = np.array([0.3, 1.1, -0.2, 0.8])
    k, g = len(x), 10.0 / 7.9
    grid = np.linspace(-12, 12, 4001)  # standardised effects under their normal law of variance 1/g
    prior = np.exp(-0.5 * g * grid**2) * np.sqrt(g / (2 * np.pi))
    sigma = np.exp(np.linspace(-6, 6, 4001))
    squares = np.sum(x**2)

    def marginal(effect):
        power = np.sum((x[:, None] - effect * sigma) ** 2, axis=0)
        return np.trapezoid(sigma**-k * np.exp(-0.5 * power / sigma**2) / sigma, sigma)

    top = np.trapezoid([p * marginal(d) for d, p in zip(grid[::10], prior[::10], strict=True)], grid[::10])  # fmt: skip
    assert squares > 0
    found = log_evidence(x.mean(), x.var(ddof=1), k, horizon=10.0)
    assert float(found) == pytest.approx(np.log(top / marginal(0.0)), abs=0.01)


def test_the_confidence_sequence_is_where_the_evidence_is_spent():
    for population in (np.inf, 150.0):
        half = half_width(2.0, 40, 0.95, 60.0, population)
        found = log_evidence(half, 4.0, 40, 60.0, population)
        assert float(found) == pytest.approx(np.log(20.0))
    assert half_width(2.0, 150, 0.95, 60.0, 150.0) == 0.0


@pytest.mark.slow
def test_equal_rows_seldom_have_a_winner_and_clear_ones_soon():
    named = 0
    for seed in range(150):
        table = np.random.default_rng(seed).standard_normal((3, 60))
        named += any(named_winner(table[:, :k], 0.95, 60.0) is not None for k in range(5, 61))
    assert named <= 12  # at most 5 %: 12 of 150 is its 95 % quantile
    table = np.random.default_rng(0).standard_normal((3, 60)) + np.array([[0.0], [0.0], [3.0]])
    assert named_winner(table[:, :20], 0.95, 60.0) == 2
    assert named_winner(table[:, :4], 0.95, 60.0) is None
    assert named_winner(np.full((2, 3), np.nan), 0.95, 60.0) is None


@pytest.mark.slow
def test_top_two_stops_when_a_winner_is_clear():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((8, 100)) + 1.5 * (np.arange(8) == 5)[:, None]
    found = ew.play(top_two(A.shape, budget=600, confidence=0.95, rng=1), MatrixOracle(A))
    assert found.report["best"] == 5
    assert found.cost < 400
    assert "sure" in found.report["reason"]
    chance = chances_of_best(np.array([0.0, 0.0]), np.ones(2), np.full(2, 9.0), rng)
    np.testing.assert_allclose(chance, 0.5, atol=0.05)


def test_differences_of_independent_rows():
    found = unpaired(np.array([1.0, 0.0]), np.array([0.3, 0.4]), np.array([9.0, 4.0]))
    assert isinstance(found, Differences)
    assert found.deviation[0, 1] == pytest.approx(0.5)
    assert found.freedom[0, 1] == 4.0
    assert (
        found.normal[0, 1] == -found.normal[1, 0] < 2.0
    )  # Student's 2.0 on 4 is less in normal units


def test_a_table_and_a_log_become_a_purchase():
    table = Observations.from_dense([[1.0, np.nan], [2.0, 3.0]])
    assert len(Bought.from_table(table)) == 3
    with pytest.raises(DataError, match="nothing was bought yet"):
        Bought.from_log((2, 2), [], None)
    with pytest.raises(DataError, match="play it first"):
        Bought.from_run(ew.Run(row_scores((2, 2), budget=2, rng=0)))
