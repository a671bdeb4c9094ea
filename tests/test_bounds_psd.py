"""The theorems of active PSD completion as numbers, held to simulated matrices."""

from __future__ import annotations

import numpy as np
import pytest

from entrywise.active import adaptive_nystrom
from entrywise.bounds import active_psd as bounds
from entrywise.exceptions import ParameterError
from entrywise.gallery import pair_losses, random_psd
from entrywise.oracles import MatrixOracle
from entrywise.play import play


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 5), (30, 3), (40, 0)])
def test_theorem_3_2_is_what_adaptive_nystrom_asks(n, rank):
    found = play(adaptive_nystrom(n), MatrixOracle(random_psd(n, rank, seed=1)))
    assert found.cost == bounds.exact_queries(n, rank)
    assert found.cost <= n * (rank + 1)


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_lemma_4_1_covers_and_tight_is_smaller(tight, symmetric):
    rng = np.random.default_rng(0)
    p, delta = 4, 0.1
    P = pair_losses("synthetic", p, 2, seed=3)
    counts = rng.integers(20, 200, (p, p))
    counts = np.triu(counts) + np.triu(counts, 1).T
    bound = bounds.spectral_deviation(counts, delta, tight=tight)
    misses, shift = 0, 0.0
    for _ in range(400):
        X = rng.binomial(counts, P) / counts
        if symmetric:  # (i, j) and (j, i) measured together
            X = np.triu(X) + np.triu(X, 1).T
        misses += np.linalg.norm(X - P, 2) > bound
        shift = max(shift, abs(np.linalg.svd(X)[1][-1] - np.linalg.svd(P)[1][-1]))
    assert misses <= 400 * delta
    assert bounds.spectral_deviation(counts, delta, tight=True) < bounds.spectral_deviation(
        counts, delta
    )
    if not tight:
        assert shift <= bound


def test_lemma_4_1_by_hand():
    log = np.log(2 * 3 / 0.05)
    expected = 2 * log / (3 * 50) + np.sqrt(log / 2 * 9 / 50)
    assert bounds.spectral_deviation(np.full((3, 3), 50), 0.05) == pytest.approx(expected)
    expected = 2 * log / (3 * 50) + np.sqrt(log / 2 * 3 / 50)
    assert bounds.spectral_deviation(np.full((3, 3), 50), 0.05, tight=True) == pytest.approx(
        expected
    )


def test_lemma_4_2_grows_as_it_says():
    few, many = (
        bounds.elimination_queries([0.4] * 9, 2, 0.05),
        bounds.elimination_queries([0.2] * 9, 2, 0.05),
    )
    assert 3.5 < many / few < 6  # 1 / gap^2, and logarithms
    rounds = bounds.elimination_rounds(0.3, 3, 50, 0.05)
    assert (
        bounds.elimination_rounds(0.3, 3, 50, 0.05)
        == rounds
        > bounds.elimination_rounds(0.3, 2, 50, 0.05)
    )
    assert bounds.elimination_queries([], 2, 0.05) == 0


def test_theorem_4_3_holds_on_a_simulated_matrix():
    rng = np.random.default_rng(1)
    U = np.vstack([np.diag([0.95, 0.9]), rng.random((6, 2)) * 0.7])
    L = U @ U.T
    C, W = L[:, :2], L[:2, :2]
    epsilon = 0.4
    times = bounds.repetitions(8, 2, epsilon, 0.1, of=bounds.constants(C, W, printed=False))
    for _ in range(5):
        C_hat = rng.binomial(times.columns, C) / times.columns
        W_hat = rng.binomial(times.block, W) / times.block
        assert np.abs(C_hat @ np.linalg.inv(W_hat) @ C_hat.T - L).max() <= epsilon
    assert bounds.nystrom_queries(8, 2, times) == 8 * 2 * times.columns + 4 * times.block


def test_constants_of_a_unit_block():
    C = np.vstack([np.eye(2), [[0.5, 0.5]]])
    assert bounds.constants(C, np.eye(2)) == (1.5**2, 1.0)  # the largest column sum, squared
    assert bounds.constants(C, np.eye(2), printed=False) == (1.0, 1.0)
    assert bounds.repetitions(3, 2, 0.1, 0.05, theta=2.0).columns == pytest.approx(
        2 * bounds.repetitions(3, 2, 0.1, 0.05).columns, rel=1e-4
    )


def test_forecast_counts_selection_too():
    without = bounds.forecast(20, 3, 0.2, 0.05)
    whole = bounds.forecast(20, 3, 0.2, 0.05, gaps=[[0.1] * 18, [0.05] * 17])
    assert whole - without == bounds.elimination_queries(
        [0.1] * 18, 2, 0.05 / 6
    ) + bounds.elimination_queries([0.05] * 17, 3, 0.05 / 6)


def test_coin_upper_covers():
    rng = np.random.default_rng(2)
    k = rng.binomial(30, 0.07, 4000)
    assert np.mean(bounds.coin_upper(k, np.full(4000, 30), 0.05) < 0.07) <= 0.05
    assert bounds.coin_upper(0, 0, 0.05) == 1.0
    assert bounds.coin_upper(5, 5, 0.05) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.exact_queries(3, 4),
        lambda: bounds.spectral_deviation(np.ones(3), 0.1),
        lambda: bounds.spectral_deviation(np.zeros((2, 2)), 0.1),
        lambda: bounds.spectral_deviation(np.ones((2, 2)), 1.0),
        lambda: bounds.elimination_rounds(0.0, 2, 3, 0.1),
        lambda: bounds.constants(np.ones((3, 2)), np.ones((2, 2))),
        lambda: bounds.constants(np.ones((3, 2)), np.ones((3, 3))),
        lambda: bounds.repetitions(3, 2, 0.0, 0.1),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ParameterError, match="must"):
        call()
