"""Noisy PSD completion: the budgeted plan, the literal algorithm, and the fit under both."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrywise.active import literal_stochastic_nystrom, stochastic_nystrom
from entrywise.active.pairs.tally import (
    CHUNK,
    Tally,
    count_pairs,
    draw_pairs,
    evenly,
    pair_at,
    pull,
    pulls_for,
    share_out,
    smallest_pairs,
)
from entrywise.exceptions import AnswerError, ParameterError
from entrywise.gallery import pair_losses
from entrywise.linalg.psdfit import DENSE, design, fit_psd, spectral_start
from entrywise.oracles import BernoulliOracle, FunctionOracle, MatrixOracle
from entrywise.play import play
from entrywise.queries import Prices
from entrywise.run import Run


def triplets(L, diagonal=True):
    i, j = np.triu_indices(len(L), 0 if diagonal else 1)
    return i, j, L[i, j]


@pytest.mark.parametrize("diagonal", [True, False])
def test_fit_recovers_an_exact_matrix_with_or_without_its_diagonal(diagonal):
    L = pair_losses("synthetic", 25, 2, seed=4)
    i, j, y = triplets(L, diagonal)
    start = spectral_start(25, i, j, y, np.ones(len(y)), 2)
    F = fit_psd(i, j, y * 1e8, np.full(len(y), 1e8), start, noise=0.01, steps=400)
    np.testing.assert_allclose(F @ F.T, L, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_fit_is_equivariant_in_the_scale(scale):
    rng = np.random.default_rng(0)
    L = pair_losses("bandit", 20, 3, seed=1)
    i, j, y = triplets(L)
    y = y + 0.05 * rng.standard_normal(len(y))
    counts = rng.integers(1, 5, len(y)).astype(float)
    one = fit_psd(
        i, j, y * counts, counts, spectral_start(20, i, j, y * counts, counts, 3), noise=0.05
    )
    y = y * scale
    two = fit_psd(
        i,
        j,
        y * counts,
        counts,
        spectral_start(20, i, j, y * counts, counts, 3),
        noise=0.05 * scale,
    )
    np.testing.assert_allclose(two @ two.T, scale * (one @ one.T), rtol=1e-6, atol=1e-9 * scale)


def test_sparse_start_equals_the_dense_one(monkeypatch):
    L = pair_losses("synthetic", 60, 2, seed=2)
    i, j, y = triplets(L)
    dense = spectral_start(60, i, j, y, np.ones(len(y)), 2)
    monkeypatch.setattr("entrywise.linalg.psdfit.DENSE", 10)
    sparse = spectral_start(60, i, j, y, np.ones(len(y)), 2)
    np.testing.assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-8)
    assert DENSE > 100


def test_zero_matrix_fits_to_zero():
    i, j, y = triplets(np.zeros((5, 5)))
    F = fit_psd(i, j, y, np.ones(len(y)), spectral_start(5, i, j, y, np.ones(len(y)), 2))
    assert np.all(F == 0)


def test_design_is_d_optimal():
    F = np.random.default_rng(0).random((50, 3))
    w = design(F, steps=3000)
    M = (F * w[:, None]).T @ F
    worst = np.einsum("ir,ri->i", F, np.linalg.solve(M, F.T)).max()
    assert w.sum() == pytest.approx(1.0)
    assert 3.0 - 1e-6 <= worst < 3.01  # Kiefer and Wolfowitz
    assert np.allclose(design(np.zeros((4, 2))), 0.25)


@given(st.integers(1, 40), st.booleans())
def test_pairs_are_numbered_without_gaps(n, diagonal):
    i, j = pair_at(np.arange(count_pairs(n, diagonal)), n, diagonal)
    a, b = np.triu_indices(n, 0 if diagonal else 1)
    assert sorted(zip(i, j, strict=True)) == sorted(zip(a, b, strict=True))


def test_numbers_of_pairs_stay_exact_for_many_items():
    n = 2_000_000
    last = count_pairs(n, False) - 1
    i, j = pair_at(np.array([last, last - (n - 2), last - (n - 1)]), n, False)
    assert (i[0], j[0]) == (n - 2, n - 1)
    assert (i[1], j[1]) == (0, n - 1)
    assert (i[2], j[2]) == (n - 3, n - 2)


@given(st.integers(0, 1000), st.lists(st.floats(0.01, 10), min_size=1, max_size=20))
def test_money_is_shared_to_the_last_pull(total, weights):
    shares = share_out(total, np.array(weights))
    assert shares.sum() == total
    assert shares.min() >= 0
    even = evenly(total, len(weights), np.random.default_rng(0))
    assert even.sum() == total
    assert even.max() - even.min() <= 1


@given(st.integers(0, 10_000), st.integers(2, 12), st.booleans(), st.integers(1, 30))
def test_smallest_pairs_agree_with_a_dense_search(seed, n, diagonal, count):
    F = np.random.default_rng(seed).integers(-2, 3, (n, 2)).astype(float)
    i, j, value = smallest_pairs(F, count, diagonal)
    a, b = np.triu_indices(n, 0 if diagonal else 1)
    expected = np.sort((F @ F.T)[a, b])[:count]
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal((F @ F.T)[i, j], expected)
    assert len(set(zip(i, j, strict=True))) == len(i)


def test_smallest_pairs_go_block_by_block(monkeypatch):
    F = np.random.default_rng(0).standard_normal((300, 3))
    whole = smallest_pairs(F, 50, False)
    import entrywise.active.pairs.tally as arms

    monkeypatch.setattr(arms, "max", lambda a, b: 7, raising=False)
    for x, y in zip(whole, arms.smallest_pairs(F, 50, False), strict=True):
        np.testing.assert_allclose(x, y)


@given(st.integers(0, 10_000))
def test_tally_agrees_with_dense_counts(seed):
    rng = np.random.default_rng(seed)
    n, tally, N, S = 6, Tally(6), np.zeros((6, 6)), np.zeros((6, 6))
    for _ in range(4):
        i, j, y = rng.integers(n, size=9), rng.integers(n, size=9), rng.random(9)
        y[rng.random(9) < 0.2] = np.nan
        tally.add(i, j, y)
        good = ~np.isnan(y)
        np.add.at(N, (np.minimum(i, j)[good], np.maximum(i, j)[good]), 1)
        np.add.at(S, (np.minimum(i, j)[good], np.maximum(i, j)[good]), y[good])
    a, b = np.triu_indices(n)
    counts, sums = tally.look(b, a)
    np.testing.assert_array_equal(counts, N[a, b])
    np.testing.assert_allclose(sums, S[a, b])
    assert tally.asked == 36


def test_large_requests_come_in_chunks():
    tally = Tally(3)
    asking = pull(tally, np.array([0, 1]), np.array([1, 2]), np.array([CHUNK, 5]))
    sizes, batch = [], next(asking)
    while True:
        sizes.append(len(batch))
        try:
            batch = asking.send(np.ones(len(batch)))
        except StopIteration:
            break
    assert sizes == [CHUNK, 5]
    np.testing.assert_array_equal(tally.counts, [CHUNK, 5])


def test_pairs_drawn_are_different():
    i, j = draw_pairs(40, 10, False, np.random.default_rng(0))
    assert len(set(zip(i, j, strict=True))) == 40
    assert np.all(i < j)


@pytest.mark.parametrize("budget", [0, 1, 7, 500, 20_000])
@pytest.mark.parametrize("diagonal", [True, False])
def test_budget_is_spent_to_the_pull(budget, diagonal):
    L = pair_losses("synthetic", 20, 2)
    oracle = BernoulliOracle(L, rng=0)
    found = play(
        stochastic_nystrom(20, rank=2, budget=budget, ask_diagonal=diagonal, rng=0), oracle
    )
    assert found.cost == oracle.spent == budget
    assert found.status == "finished"
    assert found.factor.shape == (20, 2)


def test_without_the_diagonal_none_of_it_is_asked():
    seen = []

    def coin(rows, cols):
        seen.append(np.any(rows == cols))
        return np.zeros(len(rows))

    play(
        stochastic_nystrom(15, rank=3, budget=3000, ask_diagonal=False, rng=0),
        FunctionOracle(coin, vectorized=True),
    )
    assert not any(seen)


@pytest.mark.parametrize("family", ["synthetic", "bandit", "coherent"])
@pytest.mark.parametrize("diagonal", [True, False])
def test_error_is_far_below_uniform_averaging(family, diagonal):
    L = pair_losses(family, 60, 2, seed=5)
    found = play(
        stochastic_nystrom(60, rank=2, budget=90_000, ask_diagonal=diagonal, rng=0),
        BernoulliOracle(L, rng=1),
    )
    uniform = np.random.default_rng(0).binomial(49, L) / 49
    error, naive = np.abs(found.to_dense() - L).max(), np.abs(uniform - L).max()
    assert error < naive / 2
    assert len(set(found.pivots.tolist())) == 2


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_gaussian_noise_of_any_scale(scale):
    L = pair_losses("synthetic", 40, 2, seed=1) * scale
    plan = stochastic_nystrom(40, rank=2, budget=40_000, noise=0.3 * scale, rng=0)
    found = play(plan, MatrixOracle(L, noise=0.3 * scale, rng=2))
    assert np.abs(found.to_dense() - L).max() < 0.15 * scale


def test_rank_above_the_side_and_one_item():
    found = play(stochastic_nystrom(1, rank=4, budget=50, rng=0), BernoulliOracle([[0.7]], rng=0))
    assert found.shape == (1, 1)
    assert abs(found.entry(0, 0) - 0.7) < 0.25
    assert (
        play(
            stochastic_nystrom(3, rank=9, budget=100, rng=0), BernoulliOracle(np.eye(3), rng=0)
        ).rank
        == 3
    )


def test_zero_matrix():
    found = play(
        stochastic_nystrom(10, rank=2, budget=2000, rng=0),
        BernoulliOracle(np.zeros((10, 10)), rng=0),
    )
    assert np.all(found.to_dense() == 0)


def test_prices_decide_how_many_pulls():
    made = stochastic_nystrom(10, rank=2, budget=30.0, prices=Prices(entry=0.1), rng=0)
    oracle = BernoulliOracle(np.full((10, 10), 0.5), rng=0)
    found = play(made, oracle)
    assert oracle.spent == 300
    assert found.cost == pytest.approx(30.0)
    with pytest.raises(ParameterError, match="one price"):
        stochastic_nystrom(
            2, rank=1, budget=3.0, prices=Prices(entry=[[1.0, 2.0], [2.0, 1.0]]), rng=0
        )
    assert pulls_for(2, Prices(entry=0.1), 0.3, False, "x") == 3


def test_failed_answers_are_left_out():
    L = pair_losses("synthetic", 20, 2)
    rng = np.random.default_rng(0)

    def often_fails(batch):
        answers = (rng.random(len(batch)) < L[batch.rows, batch.cols]).astype(object)
        answers[rng.random(len(batch)) < 0.3] = None
        return answers

    found = play(stochastic_nystrom(20, rank=2, budget=40_000, rng=0), often_fails)
    assert found.cost == 40_000
    assert np.abs(found.to_dense() - L).max() < 0.15


def test_resuming_goes_on_as_if_nothing_had_happened():
    L = pair_losses("coherent", 30, 3)
    oracle = BernoulliOracle(L, rng=3)
    plan = stochastic_nystrom(30, rank=3, budget=20_000, rng=7)
    run, kept = Run(plan), []
    while not run.finished:
        if not kept or kept[-1][0] is not run.checkpoint:
            kept.append((run.checkpoint, run.checkpoint_at))
        run.tell(oracle(run.ask()))
    assert len(kept) == 4
    for checkpoint, at in kept:
        again = Run.replay(plan, run.log[at:], resume=checkpoint)
        np.testing.assert_array_equal(again.result.factor, run.result.factor)


def test_coins_outside_0_and_1_are_refused():
    with pytest.raises(AnswerError, match="state noise="):
        play(stochastic_nystrom(5, rank=1, budget=50, rng=0), MatrixOracle(np.full((5, 5), 2.0)))


@pytest.mark.parametrize(
    "params",
    [
        {"n": 0, "budget": 5},
        {"n": 5, "rank": 0, "budget": 5},
        {"n": 5},
        {"n": 5, "budget": -1},
        {"n": 5, "budget": float("nan")},
        {"n": 5, "budget": 5, "noise": -1.0},
        {"n": 5, "budget": 1e300},
        {"n": 5, "budget": 5, "prices": Prices(entry=np.ones((5, 5)))},
    ],
)
def test_bad_parameters_are_refused_at_once(params):
    with pytest.raises(ParameterError):
        stochastic_nystrom(**params, rng=0)


@pytest.mark.parametrize(
    "params",
    [
        {"n": 0, "epsilon": 0.1},
        {"n": 5, "rank": 2, "epsilon": 0.1, "delta": 0.0},
        {"n": 5, "rank": 6, "epsilon": 0.1},
        {"n": 5, "rank": 2, "epsilon": -0.1},
        {"n": 5, "rank": 2, "epsilon": 1e-300},
        {"n": 5, "rank": 2},
    ],
)
def test_bad_parameters_of_the_literal_algorithm_are_refused_at_once(params):
    with pytest.raises(ParameterError):
        literal_stochastic_nystrom(**params, rng=0)


def test_literal_algorithm_warns_of_its_cost_and_drops_nothing():
    L = pair_losses("synthetic", 30, 2)
    with pytest.warns(UserWarning, match="needs at least"):
        plan = literal_stochastic_nystrom(30, rank=2, epsilon=0.1, budget=30_000, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = play(plan, BernoulliOracle(L, rng=0))
    assert found.status == "exhausted"
    assert found.cost <= 30_000
    assert found.pivots.tolist() == [0]  # the paper's elimination has not ended
    assert not found.certificates


@pytest.mark.filterwarnings("ignore:the theorem")
def test_literal_algorithm_keeps_its_promise_where_it_can_end():
    L = np.array([[0.9, 0.0, 0.45], [0.0, 0.8, 0.4], [0.45, 0.4, 0.425]])  # rank 2, columns 0 and 1
    oracle = BernoulliOracle(L, rng=1)
    plan = literal_stochastic_nystrom(3, rank=2, epsilon=0.9, delta=0.2, theta=0.02, rng=0)
    found = play(plan, oracle)
    assert found.status == "finished"
    assert found.pivots.tolist() == [0, 1]
    assert found.certificate.value == 0.9
    assert np.abs(found.to_dense() - L).max() <= 0.9
