"""The plan rank_one: what it asks, in which order, and what it returns when little comes back."""

from __future__ import annotations

import numpy as np
import pytest

import entrywise as ew
from entrywise.active.rank_one import next_entries, rank_one
from entrywise.exceptions import DataError, ParameterError
from entrywise.gallery import random_rank_one
from entrywise.oracles import FunctionOracle, MatrixOracle

O = ew.Observations


def table(m, n, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    A = np.outer(*random_rank_one(m, n, rng))
    return A, A + noise * rng.uniform(-0.5, 0.5, A.shape)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (12, 9), (30, 4)])
def test_m_plus_n_less_one_entries_determine_everything(shape):
    A, _ = table(*shape, seed=1)
    found = ew.play(rank_one(shape, extra=0, rng=0), MatrixOracle(A))
    assert found.cost == sum(shape) - 1
    np.testing.assert_allclose(found.to_dense(), A, rtol=1e-12)


def test_leverage_beats_random_revealing():
    ratios = []
    for seed in range(6):
        A, seen = table(20, 20, 30 + seed, noise=0.05)
        rng = np.random.default_rng(seed)
        mask = np.zeros((20, 20), bool)
        mask[0] = mask[:, 0] = True
        ours = mask.copy()
        free = rng.permutation(np.flatnonzero(~mask.ravel()))[:40]
        mask.ravel()[free] = True
        while ours.sum() < mask.sum():
            ours[next_entries(O.from_dense(np.where(ours, seen, np.nan)), 4)] = True
        errors = [
            np.linalg.norm(
                ew.passive.rank_one(O.from_dense(np.where(k, seen, np.nan))).to_dense() - A
            )
            for k in (ours, mask)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) <= 0.75


def test_prices_choose_the_cheapest_tree_and_the_budget_is_kept():
    A, _ = table(6, 5, 2)
    rng = np.random.default_rng(2)
    price = rng.uniform(1.0, 10.0, (6, 5))
    prices = ew.Prices(entry=price)
    found = ew.play(rank_one((6, 5), prices=prices, extra=0, rng=0), MatrixOracle(A))
    rows, cols = found.seen_rows, found.seen_cols
    parent = list(range(11))  # Kruskal as referee

    def root(v):
        while parent[v] != v:
            v = parent[v]
        return v

    least = 0.0
    for t in np.argsort(price, axis=None):
        i, j = divmod(int(t), 5)
        if root(i) != root(6 + j):
            parent[root(i)] = root(6 + j)
            least += price[i, j]
    assert price[rows, cols].sum() == pytest.approx(least)
    assert found.cost == pytest.approx(least)
    found = ew.play(rank_one((6, 5), prices=prices, budget=60.0, rng=0), MatrixOracle(A))
    assert found.cost <= 60.0
    assert found.status == "exhausted"


def test_a_small_budget_is_spent_and_the_rest_stays_unknown():
    A, _ = table(8, 8, 3)
    found = ew.play(rank_one((8, 8), budget=5, rng=0), MatrixOracle(A))
    assert found.cost == 5
    assert found.status == "exhausted"
    dense = found.to_dense()
    known = np.isfinite(dense)
    assert 5 <= known.sum() < 64
    np.testing.assert_allclose(dense[known], A[known])


def test_failed_zero_and_missing_answers_are_worked_around():
    A = np.outer(np.r_[0.0, np.arange(1.0, 6.0)], np.r_[np.arange(1.0, 5.0), 0.0])
    found = ew.play(rank_one((6, 5), rng=3), MatrixOracle(A))
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-12)
    B, _ = table(6, 5, 4)
    patchy = FunctionOracle(lambda i, j: None if (i + 2 * j) % 4 == 0 else B[i, j])
    np.testing.assert_allclose(ew.play(rank_one((6, 5), rng=3), patchy).to_dense(), B, rtol=1e-9)
    nothing = ew.play(rank_one((6, 5), rng=3), FunctionOracle(lambda i, j: None))
    assert np.isnan(nothing.to_dense()).all()
    zero = ew.play(rank_one((3, 3), rng=3), MatrixOracle(np.zeros((3, 3))))
    assert zero.report["zeros"] == 9


def test_max_error_stops_early():
    A, _ = table(10, 10, 5)
    oracle = MatrixOracle(A, noise=0.01, rng=0)
    found = ew.play(rank_one((10, 10), max_error=0.15, noise=0.01, rng=0), oracle)
    assert found.cost < 100
    assert found.certificates[1].value <= 0.15
    assert np.linalg.norm(found.to_dense() - A) < 0.45


def test_large_shapes_are_sketched():
    A, seen = table(900, 700, 6, noise=0.01)
    found = ew.play(rank_one((900, 700), extra=32, rng=0), MatrixOracle(seen))
    assert found.cost == 1599 + 32
    assert np.linalg.norm(found.to_dense() - A) < 0.02 * np.linalg.norm(A)


def test_next_entries_says_when_there_is_nothing_to_ask():
    full = O.from_dense([[1.0, 2.0], [2.0, 4.0]])
    assert next_entries(full) is None
    noisy = O.from_dense([[1.0, 2.0, 3.0], [2.0, 4.1, np.nan], [3.0, np.nan, np.nan]])
    rows, cols = next_entries(noisy, 2)
    assert len(set(zip(rows.tolist(), cols.tolist(), strict=True))) == 2
    assert next_entries(noisy, 1, max_error=1e6) is None


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"shape": (0, 3)}, "shape"),
        ({"shape": (2, 3), "budget": -1}, "budget"),
        ({"shape": (2, 3), "noise": 0.0}, "noise"),
        ({"shape": (2, 3), "extra": -1}, "extra"),
        ({"shape": (2, 3), "batch": 0}, "batch"),
        ({"shape": (2, 3), "max_error": -0.1}, "max_error"),
    ],
)
def test_bad_parameters_are_refused(params, words):
    with pytest.raises(ParameterError, match=words):
        rank_one(**params)


def test_one_odd_answer_is_named_and_the_answers_before_it_still_count():
    A = np.outer(np.arange(1.0, 7.0), np.arange(2.0, 7.0))
    A[3, 2] = 1e160
    with pytest.raises(DataError, match=r"1e\+160 at \(3, 2\)") as caught:
        ew.play(rank_one((6, 5), extra=20, rng=0), MatrixOracle(A))
    assert caught.value.run is not None


def test_an_error_in_the_entries_units_ends_it_whatever_their_scale():
    A = 1000.0 * np.outer(np.linspace(1, 2, 10), np.linspace(1, 3, 10))
    oracle = MatrixOracle(A, noise=10.0, rng=0)
    found = ew.play(rank_one((10, 10), max_error=70.0, noise=10.0, rng=0), oracle)
    assert found.certificates[1].value <= 70.0
    assert 19 < found.cost < 100
