"""Rank-one completion: the methods, what they refuse, and the theorems as numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigvalsh

import entrywise as ew
from entrywise.bounds import rank_one as bounds
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.gallery import multiplicative_table, random_rank_one, star_mask
from entrywise.linalg.laplacian import Laplacian
from entrywise.passive import (
    RankOne,
    alternating_minimization,
    connecting_entries,
    log_least_squares,
    projected_eigenvector,
    propagation,
    rank_one,
)

O = ew.Observations
NAN = float("nan")


def mask_of(kind, n, rng):
    """Return a connected mask of a family of graphs."""
    if kind == "star":
        return star_mask(n, n, 3)
    mask = np.zeros((n, n), bool)
    k = np.arange(n)
    mask[k, k] = mask[k[1:], k[:-1]] = True  # a staircase: the path
    if kind == "grid":  # a band
        for step in (2, 3):
            mask[k[step:], k[:-step]] = True
    elif kind == "random":
        mask |= rng.random((n, n)) < 0.1
    elif kind == "power law":
        p = 1.0 / np.arange(1, n + 1)
        mask |= rng.random((n, n)) < np.minimum(1.0, 2.0 * np.sqrt(np.multiply.outer(p, p)))
    return mask


def noisy(kind, n, delta, seed, ratio=10.0):
    rng = np.random.default_rng(seed)
    A = np.outer(*random_rank_one(n, n, rng, ratio))
    mask = mask_of(kind, n, rng)
    return A, O.from_dense(np.where(mask, A + delta * rng.uniform(-0.5, 0.5, A.shape), np.nan))


def relative(found, A):
    return float(np.linalg.norm(found.to_dense() - A) / np.linalg.norm(A))


@pytest.mark.parametrize("kind", ["random", "grid", "path", "star", "power law"])
@pytest.mark.parametrize("ratio", [10.0, 1e8])
def test_noise_free_data_come_back_exactly(kind, ratio):
    rng = np.random.default_rng(1)
    x, y = random_rank_one(60, 60, rng, np.sqrt(ratio))
    signs = rng.choice([-1.0, 1.0], (2, 60))
    A = np.outer(x * signs[0], y * signs[1])
    seen = O.from_dense(np.where(mask_of(kind, 60, rng), A, np.nan))
    for found in (
        rank_one(seen),
        log_least_squares(seen),
        log_least_squares(seen, weighted=False),
        propagation(seen),
    ):
        assert np.max(np.abs(found.to_dense() / A - 1.0)) <= 1e-12
        assert found.report["contradicted"] == 0


@pytest.mark.parametrize("mu", [1.0, 7.0, 1e-3])
def test_the_chain_is_exact_without_noise_whatever_the_scale(mu):
    # mu = 1 hides the paper's mu^2
    A, seen = noisy("random", 30, 0.0, 3)
    seen = O.from_triplets(seen.rows, seen.cols, mu * seen.values, seen.shape)
    found = projected_eigenvector(seen, 0.05 * mu, 50.0 * mu)
    np.testing.assert_allclose(found.to_dense(), mu * A, rtol=1e-11)
    assert found.report["imbalance"] <= 1e-10


@given(st.integers(0, 10**6), st.booleans())
def test_log_least_squares_equals_a_dense_solve(seed, weighted):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 9, 2)
    mask = rng.random((m, n)) < 0.6
    mask[0] = mask[:, 0] = True
    a = np.exp(2.0 * rng.standard_normal((m, n)))
    seen = O.from_dense(np.where(mask, a, np.nan))
    found = log_least_squares(seen, weighted=weighted, certify=False)
    B = np.zeros((len(seen), m + n))
    B[np.arange(len(seen)), seen.rows], B[np.arange(len(seen)), m + seen.cols] = 1.0, 1.0
    s = seen.values if weighted else np.ones(len(seen))
    z = np.linalg.lstsq(s[:, None] * B, s * np.log(seen.values), rcond=1e-14)[0]
    np.testing.assert_allclose(np.log(found.to_dense()), z[:m, None] + z[None, m:], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "star"])
@pytest.mark.parametrize("delta", [1e-3, 1e-1, 1.0, 3.0])
def test_the_refined_fit_is_no_worse_than_either_rival(kind, delta):
    errors = []
    for seed in range(5):
        A, seen = noisy(kind, 200, delta, seed)
        plain = log_least_squares(seen, certify=False)
        fits = (rank_one(seen, certify=False), plain, alternating_minimization(seen))
        errors.append([relative(found, A) for found in fits])
    ours, plain, alternating = np.median(errors, axis=0)
    assert ours <= 1.01 * min(plain, alternating)


def test_alternating_minimisation_is_slow_on_stars():
    A, seen = noisy("star", 300, 1e-4, 0)
    few = relative(alternating_minimization(seen, max_sweeps=30), A)
    assert relative(rank_one(seen, certify=False), A) <= 0.05 * few
    clipped = alternating_minimization(seen, start="random", clip=3.0, max_sweeps=20)
    assert np.all(np.isfinite(clipped.to_dense()))
    heavy = alternating_minimization(seen, ridge=100.0)
    assert np.linalg.norm(heavy.to_dense()) < np.linalg.norm(A)
    assert heavy.report["method"].startswith("ridge")


def test_signs_follow_the_largest_entries_and_contradictions_are_listed():
    rng = np.random.default_rng(4)
    x, y = random_rank_one(40, 40, rng)
    A = np.outer(x * rng.choice([-1.0, 1.0], 40), y)
    seen = np.where(mask_of("random", 40, rng), A, np.nan)
    i, j = np.argwhere(np.isfinite(seen) & (np.abs(A) < 0.5))[3]
    seen[i, j] *= -1.0
    found = rank_one(O.from_dense(seen))
    assert np.array_equal(np.sign(found.to_dense()), np.sign(A))
    assert found.report["contradicted"] == 1
    assert found.report["contradicted_entries"] == [[i, j]]


def test_what_nothing_determines_is_nan_and_named():
    seen = O.from_dense(
        [[1, 2, NAN, NAN], [3, NAN, NAN, NAN], [NAN, NAN, 5, 7], [NAN, NAN, NAN, NAN]]
    )
    found = rank_one(seen)
    expected = np.array([[1, 2, NAN, NAN], [3, 6, NAN, NAN], [NAN, NAN, 5, 7], [NAN] * 4])
    np.testing.assert_allclose(found.to_dense(), expected)
    np.testing.assert_allclose(found @ np.eye(4), expected)
    assert np.isnan(found @ np.ones(4)).all()
    np.testing.assert_allclose((found @ np.array([1.0, 1.0, 0, 0]))[:2], [3.0, 9.0])
    assert found.components == 3
    assert found.report["to_connect"] == 2
    assert not found.identifiable(0, 2)
    rows, cols = np.array(found.report["connect"]).T
    filled = np.where(np.isnan(seen.to_dense()), NAN, seen.to_dense())
    filled[rows, cols] = 1.0
    assert rank_one(O.from_dense(filled)).components == 1
    assert np.isnan(found.interval(0, 1)).all()  # no degree of freedom to tell the noise by
    assert "tree" in found.report["interval"]


def test_lines_known_to_be_zero_are_zero_and_nothing_else_is_invented():
    seen = O.from_dense([[1.0, 2.0, 4.0], [3.0, 6.0, NAN], [0.0, 0.0, NAN]])
    found = rank_one(seen)
    np.testing.assert_allclose(found.to_dense(), [[1, 2, 4], [3, 6, 12], [0, 0, 0]], atol=1e-12)
    assert found.report["zeros"] == 2
    assert np.isnan(log_least_squares(seen).to_dense()[2]).all()
    known = O.from_triplets(seen.rows, seen.cols, seen.values, (3, 3), noise=0.1)
    low, high = rank_one(known).interval([2, 0], [2, 1], 0.95, of="truth")
    assert np.all(np.isfinite(low))
    assert low[0] < 0 < high[0]


def test_connecting_entries_are_the_cheapest():
    seen = O.from_triplets([0], [0], [1.0], (2, 2))
    prices = ew.Prices(entry=np.array([[1.0, 9.0], [2.0, 3.0]]))
    rows, cols = connecting_entries(seen, prices)
    assert sorted(zip(rows.tolist(), cols.tolist(), strict=True)) == [(1, 0), (1, 1)]
    rows, cols = connecting_entries(O.from_triplets([], [], [], (3, 2)))
    assert len(rows) == 4
    assert Laplacian(5, rows, 3 + cols).components[0] == 1
    rows, cols = connecting_entries(seen, avoid=np.array([[False, True], [True, True]]))
    assert len(rows) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "star"])
def test_intervals_for_the_truth_cover(kind):
    covered, answers = [], []
    every = np.arange(60)[:, None], np.arange(60)[None, :]
    for seed in range(12):
        A, seen = noisy(kind, 60, 0.1, 50 + seed)
        found = rank_one(seen, certify=False)
        low, high = found.interval(*every, 0.95, of="truth")
        covered.append(np.mean((low <= A) & (high >= A)))
        fresh = A + 0.1 * np.random.default_rng(seed).uniform(-0.5, 0.5, A.shape)
        low, high = found.interval(*every, 0.9)
        answers.append(np.mean((low <= fresh) & (fresh <= high)))
    assert 0.92 <= np.mean(covered) <= 0.98
    assert 0.85 <= np.mean(answers) <= 0.97


def test_known_noise_divides_the_weights():
    A, seen = noisy("random", 40, 0.0, 8)
    rng = np.random.default_rng(8)
    noise = rng.choice([1e-4, 0.3], len(seen))
    told = O.from_triplets(
        seen.rows,
        seen.cols,
        seen.values + noise * rng.standard_normal(len(seen)),
        seen.shape,
        noise=noise,
    )
    untold = O.from_triplets(told.rows, told.cols, told.values, told.shape)
    found = rank_one(told)
    assert relative(found, A) < 0.3 * relative(rank_one(untold), A)
    assert found.sigma == 1.0
    low, high = found.interval(np.arange(40)[:, None], np.arange(40)[None, :], 0.95, of="truth")
    assert 0.9 <= np.mean((low <= A) & (high >= A)) <= 0.99


def test_saved_results_come_back_whole(tmp_path):
    found = rank_one(multiplicative_table(0))
    found.save(tmp_path / "found.npz")
    again = ew.LowRank.load(tmp_path / "found.npz")
    assert isinstance(again, RankOne)
    np.testing.assert_array_equal(again.interval(3, 4, 0.9), found.interval(3, 4, 0.9))
    assert again.certificate == found.certificate
    assert again.sigma == found.sigma


def test_the_chain_warns_when_noise_hides_everything():
    rng = np.random.default_rng(0)
    A = np.outer(*random_rank_one(60, 60, rng, 2.0))
    seen = O.from_dense(
        np.where(rng.random(A.shape) < 0.2, A + 20.0 * rng.standard_normal(A.shape), np.nan)
    )
    with pytest.warns(UserWarning, match="no better than the constant"):
        found = projected_eigenvector(seen, 0.5, 2.0)
    assert "constant" in found.report["warning"]
    assert found.report["projected"] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        projected_eigenvector(multiplicative_table(1), 0.05, 20.0)


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 2.0), (0.0, 1.0), (3.0, 2.0), (1.0, np.inf), (NAN, 1.0)]
)
def test_bad_bounds_are_refused(low, high):
    with pytest.raises(ParameterError, match="0 < low < high"):
        projected_eigenvector(multiplicative_table(0), low, high)


def test_bad_input_is_refused_in_one_line():
    empty, zeros = O.from_triplets([], [], [], (2, 2)), O.from_dense(np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="at least one observation"):
        rank_one(empty)
    with pytest.raises(ParameterError, match="at least one observation"):
        projected_eigenvector(empty, 1.0, 2.0)
    for method in (rank_one, log_least_squares, propagation, alternating_minimization):
        with pytest.raises(NotIdentifiable, match="zero"):
            method(zeros)
    table = multiplicative_table(0)
    for bad in ({"ridge": -1.0}, {"start": "warm"}, {"clip": 0.5}, {"max_sweeps": 0}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            alternating_minimization(table, **bad)
    found = rank_one(table)
    with pytest.raises(ParameterError, match="level"):
        found.interval(0, 0, 1.5)
    with pytest.raises(ParameterError, match="answer"):
        found.interval(0, 0, 0.9, of="both")


def test_one_entry_and_one_row():
    assert rank_one(O.from_dense([[-3.0]])).entry(0, 0) == pytest.approx(-3.0, rel=1e-14)
    np.testing.assert_allclose(
        rank_one(O.from_dense([[1.0, 2.0, 4.0]])).to_dense(), [[1.0, 2.0, 4.0]]
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e150])
def test_scale_does_not_matter(scale):
    seen = multiplicative_table(2)
    scaled = O.from_triplets(seen.rows, seen.cols, seen.values * scale, seen.shape)
    a, b = rank_one(seen, certify=False), rank_one(scaled, certify=False)
    np.testing.assert_allclose(b.to_dense(), a.to_dense() * scale, rtol=1e-7)


def dense_pair(rows, cols, x, y):
    m, n = len(x), len(y)
    L, K = np.zeros((m + n, m + n)), np.zeros((m + n, m + n))
    i, j = np.indices((m, n)).reshape(2, -1)
    for M, r, c in ((L, rows, cols), (K, i, j)):
        B = np.zeros((len(r), m + n))
        B[np.arange(len(r)), r], B[np.arange(len(r)), m + c] = 1.0, -1.0
        M += B.T @ (((x[r] * y[c]) ** 2)[:, None] * B)
    return L, K


@pytest.mark.parametrize("kind", ["random", "path", "star"])
def test_minimax_constant_trace_and_resistances_equal_their_dense_forms(kind):
    rng = np.random.default_rng(9)
    x, y = random_rank_one(15, 15, rng)
    rows, cols = np.nonzero(mask_of(kind, 15, rng))
    L, K = dense_pair(rows, cols, x, y)
    P = np.linalg.pinv(L)
    found = bounds.Sensitivity(rows, cols, x, y)
    exact = np.linalg.eigvals(K @ P).real.max()
    np.testing.assert_allclose(found.worst(1e-6)[0], exact, rtol=1e-5)
    np.testing.assert_allclose(found.trace(), np.trace(K @ P), rtol=1e-8)
    np.testing.assert_allclose(found.spread(np.arange(30.0)), K @ np.arange(30.0), rtol=1e-9)
    R = P.diagonal()[:15, None] + P.diagonal()[None, 15:] - 2.0 * P[:15, 15:]
    np.testing.assert_allclose(
        found.resistances(np.arange(15)[:, None], np.arange(15)[None, :]), R, rtol=1e-6
    )
    whole = P.diagonal()[:, None] + P.diagonal()[None, :] - 2.0 * P
    np.testing.assert_allclose(found.largest_resistance(), whole.max(), rtol=1e-6)
    graph = Laplacian(30, rows, 15 + cols)
    np.testing.assert_allclose(
        bounds.smallest_gap(graph),
        np.linalg.eigvalsh(dense_pair(rows, cols, np.ones(15), np.ones(15))[0])[1],
    )


def test_large_forms_agree_with_the_small_ones():
    rng = np.random.default_rng(3)
    x, y = random_rank_one(400, 300, rng)
    mask = (rng.random((400, 300)) < 0.03) | star_mask(400, 300, 1)
    rows, cols = np.nonzero(mask)
    found = bounds.Sensitivity(rows, cols, x, y)
    R = found._dense
    exact = float(np.sum(np.multiply.outer(x, y) ** 2 * R))
    assert abs(found.trace(32) / exact - 1.0) < 0.2
    assert 0.5 * R.max() <= found.largest_resistance() <= 1.3 * np.nanmax(R)
    gap = bounds.smallest_gap(Laplacian(700, rows, 400 + cols))
    np.testing.assert_allclose(
        gap, np.linalg.eigvalsh(Laplacian(700, rows, 400 + cols) @ np.eye(700))[1], rtol=1e-4
    )


@pytest.mark.parametrize("rtol", [1e-3, 1e-8])
@pytest.mark.parametrize("kind", ["random", "path", "star", "square"])
def test_the_minimax_constant_is_found_by_rough_solves(kind, rtol):
    rng = np.random.default_rng(4)
    if kind == "square":  # two directions that are nearly as bad as each other
        at = np.arange(400).reshape(20, 20)
        ends = np.r_[at[1:].ravel(), at[:, 1:].ravel()], np.r_[at[:-1].ravel(), at[:, :-1].ravel()]
        odd = (ends[0] // 20 + ends[0]) % 2 == 1
        rows, cols = np.where(odd, *ends) // 2, np.where(odd, *ends[::-1]) // 2
        x, y = np.ones(200), np.ones(200)
    else:
        x, y = random_rank_one(200, 200, rng)
        rows, cols = np.nonzero(mask_of(kind, 200, rng))
    L, K = dense_pair(rows, cols, x, y)
    exact = eigvalsh(K, L + np.ones_like(L))[-1]  # of one component: K and L know no constant
    found, v = bounds.Sensitivity(rows, cols, x, y).worst(rtol)
    assert (1.0 - rtol) * exact <= found <= (1.0 + 1e-9) * exact
    np.testing.assert_allclose(v @ K @ v / (v @ L @ v), found, rtol=1e-9)


@pytest.mark.parametrize("fit", [rank_one, log_least_squares, propagation])
@pytest.mark.parametrize(("n", "spread"), [(60, 60.0), (2_000, 20.0)])
def test_chains_that_lead_beyond_numbers_say_so(fit, n, spread):
    rng = np.random.default_rng(1)
    rows, cols = np.r_[:n, 1:n], np.r_[:n, : n - 1]
    values = np.clip(np.exp(spread * rng.standard_normal(2 * n - 1)), 1e-45, 1e45)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(O.from_triplets(rows, cols, values, (n, n)))
        every = found.to_dense()
    assert 0 < found.report["too_far"] < 2 * n
    assert 0 < found.report["unused"] < 2 * n - 1
    assert np.sum(np.isnan(found.left)) + np.sum(np.isnan(found.right)) == found.report["too_far"]
    assert not np.isinf(np.r_[found.left, found.right]).any()
    np.testing.assert_allclose(
        every[found.seen_rows, found.seen_cols],
        O.from_triplets(rows, cols, values, (n, n)).to_dense()[found.seen_rows, found.seen_cols],
    )
    if found.certificates:
        assert found.certificate.vacuous
        assert np.isinf(found.certificate.value)


def test_the_order_of_many_entries_does_not_matter():
    rng = np.random.default_rng(5)
    m, n = 70_000, 2_000
    rows, cols = np.repeat(np.arange(m), 3), rng.integers(n, size=3 * m)
    x, y = random_rank_one(m, n, rng)
    values = x[rows] * y[cols] * (1.0 + 0.01 * rng.standard_normal(3 * m))
    values[::1000] = 0.0
    first = O.from_triplets(rows, cols, values, (m, n), duplicates="first")
    one, two = (
        rank_one(seen, certify=False) for seen in (first, first.take(rng.permutation(len(first))))
    )
    at = rng.integers(m, size=500), rng.integers(n, size=500)
    np.testing.assert_allclose(one.entries(*at), two.entries(*at), rtol=1e-4)
    assert one.report["zeros"] == two.report["zeros"] == np.sum(first.values == 0)
    assert one.sigma == pytest.approx(two.sigma, rel=1e-6)
    seen = O.from_triplets(one.seen_rows, one.seen_cols, one.precision, (m, n))
    assert len(seen) == len(first) - one.report["unused"]


@pytest.mark.parametrize("kind", ["random", "star"])
def test_theorems_one_and_two_meet(kind):
    rng = np.random.default_rng(12)
    x, y = random_rank_one(30, 30, rng)
    rows, cols = np.nonzero(mask_of(kind, 30, rng))
    seen = O.from_triplets(rows, cols, (x[rows] * y[cols]), (30, 30))
    size = 1e-6
    wx, wy = bounds.worst_matrix(rows, cols, x, y, size)  # the truth that hurts who sees x y'
    truth = np.outer(wx, wy)
    disturbance = np.linalg.norm(seen.values - truth[rows, cols])
    error = np.linalg.norm(rank_one(seen).to_dense() - truth)
    constant = bounds.Sensitivity(rows, cols, x, y).worst(1e-8)[0]
    assert abs(error**2 / disturbance**2 / constant - 1.0) <= 1e-3
    resistance = bounds.Sensitivity(rows, cols, x, y).largest_resistance()
    assert error**2 <= 1.001 * bounds.theorem_1(constant, resistance, disturbance, 1.0 + 1e-6)
    gap = bounds.smallest_gap(Laplacian(60, rows, 30 + cols))
    loose = bounds.corollary_1((30, 30), gap, resistance, disturbance, high=10.0, low_seen=0.1)
    assert loose >= bounds.theorem_1(constant, resistance, disturbance)


@pytest.mark.parametrize("n", [10, 40, 160])
def test_consistent_methods_grow_exponentially_and_the_chain_does_not(n):
    c = 2.0
    seen, A = bounds.path_family(n, c)
    disturbance = np.linalg.norm(seen.values - 1.0)
    assert disturbance <= c * (1 + 1e-12)
    R = 2 * n - 1
    growth = (np.exp(c * np.sqrt(R * 0.5)) - 1) ** 2
    for method in (rank_one, log_least_squares, propagation):
        assert np.linalg.norm(method(seen).to_dense() - A) ** 2 >= growth
    chain = projected_eigenvector(seen, 0.5, 2.0)
    gap = bounds.smallest_gap(Laplacian(2 * n, seen.rows, n + seen.cols))
    assert np.abs(chain.to_dense() - A).sum() <= bounds.corollary_2((n, n), 2.0, gap, disturbance)
    assert np.abs(chain.to_dense()).max() <= 2.0**4 + 1e-9


@pytest.mark.parametrize("low", [0.3, 1e-3, 1e-6])
def test_one_small_entry_costs_consistent_methods_dearly(low):
    seen, A = bounds.block_family(8, low)
    found = log_least_squares(seen)
    assert np.linalg.norm(found.to_dense() - A) ** 2 >= 64 / 9 / low**2
    chain = projected_eigenvector(seen, 0.5, 2.0)
    assert np.abs(chain.to_dense() - A).max() <= 2.0**4


def test_theorem_four_holds_for_the_chain():
    A, seen = noisy("random", 20, 0.05, 5)
    truth = A[seen.rows, seen.cols]
    x, y = random_rank_one(20, 20, np.random.default_rng(5))
    gap = bounds.chain_gap(seen.rows, seen.cols, x, y, 1.0)
    found = projected_eigenvector(seen, 0.1, 10.0)
    total = np.abs(seen.values - truth).sum()
    assert np.abs(found.to_dense() - A).sum() <= bounds.theorem_4((20, 20), 10.0, gap, total)


def test_bounds_refuse_what_has_no_meaning():
    with pytest.raises(ParameterError, match="c must be at least 1"):
        bounds.theorem_1(1.0, 1.0, 0.1, c=0.5)
    with pytest.raises(ParameterError, match="rho"):
        bounds.corollary_2((2, 2), 0.5, 1.0, 1.0)
    with pytest.raises(ParameterError, match="path family"):
        bounds.path_family(1, 1.0)
    with pytest.raises(ParameterError, match="block family"):
        bounds.block_family(3, 0.1)
    assert bounds.theorem_1(1.0, 1e6, 1e3) == np.inf


def test_certificates_tell_what_can_be_told():
    tree = rank_one(O.from_dense([[1.0, 2.0], [3.0, NAN]]))
    assert len(tree.certificates) == 1  # no degree of freedom: the noise is unknown
    table = rank_one(multiplicative_table(0))
    worst, expected = table.certificates
    assert worst.value == pytest.approx(np.sqrt(table.sensitivity.worst(1e-8)[0]), rel=2e-3)
    assert expected.value == pytest.approx(table.sigma * np.sqrt(table.sensitivity.trace()))
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = np.outer(*random_rank_one(30, 20, rng))
        errors.append(
            np.linalg.norm(rank_one(multiplicative_table(seed)).to_dense() - A)
            / rank_one(multiplicative_table(seed)).certificates[1].value
        )
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) < 1.3


COMPLETERS = (rank_one, log_least_squares, propagation, alternating_minimization)


@pytest.mark.parametrize("method", COMPLETERS, ids=lambda method: method.__name__)
@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000, 2.0**-1040])
@pytest.mark.parametrize("noise", [None, 0.02])
def test_extreme_scales_are_powers_of_two_away_from_ordinary_ones(method, scale, noise):
    seen = multiplicative_table(3)
    coarse = np.round(seen.values * 2.0**20) / 2.0**20  # few digits: exact even below 2^-1022
    where = np.arange(30)[:, None], np.arange(20)[None, :]
    told = None if noise is None else noise * scale
    usual = method(O.from_triplets(seen.rows, seen.cols, coarse, seen.shape, noise=noise))
    found = method(O.from_triplets(seen.rows, seen.cols, coarse * scale, seen.shape, noise=told))
    np.testing.assert_allclose(found.to_dense() / scale, usual.to_dense(), rtol=1e-7)
    for a, b in zip(found.interval(*where), usual.interval(*where), strict=True):
        np.testing.assert_allclose(a / scale, b, rtol=1e-4)
    assert all(np.isfinite(c.value) for c in found.certificates)


@pytest.mark.parametrize("odd", [1e160, 1e300, 1e-300, 5e-324])
@pytest.mark.parametrize("method", COMPLETERS, ids=lambda method: method.__name__)
def test_one_odd_answer_is_named(method, odd):
    seen = multiplicative_table(4)
    values = seen.values.copy()
    values[7] = odd
    table = O.from_triplets(seen.rows, seen.cols, values, seen.shape)
    place = rf"\({seen.rows[7]}, {seen.cols[7]}\)"
    with pytest.raises(DataError, match=rf"factor of 1e\+100 .*{place}"):
        method(table)
    with pytest.raises(DataError, match=rf"{place}"):
        projected_eigenvector(table, 0.01, 100.0)


@pytest.mark.parametrize("noise", [1e300, 1e-300])
def test_noise_in_other_units_is_refused(noise):
    seen = multiplicative_table(4)
    table = O.from_triplets(seen.rows, seen.cols, seen.values, seen.shape, noise=noise)
    with pytest.raises(DataError, match="noise of a rank-one table"):
        rank_one(table)


def test_bounds_that_say_nothing_are_refused():
    with pytest.raises(ParameterError, match="closer bounds"):
        projected_eigenvector(multiplicative_table(4), 1e-300, 1e300)


def test_the_second_line_of_corollary_1_is_weaker_than_the_first():
    """On any connected mask: lambda_2 is at least 4 / N^2 and the largest resistance at most N."""
    from entrywise.bounds.rank_one import (
        Sensitivity,
        corollary_1,
        corollary_1_by_size,
        path_family,
        smallest_gap,
    )
    from entrywise.linalg.laplacian import Laplacian

    given = {"high": 2.0, "low_seen": 0.5, "c": 1.5}
    for n in (2, 5, 12):
        seen, _ = path_family(n, 0.1)
        graph = Laplacian(2 * n, seen.rows, n + seen.cols)
        resistance = Sensitivity(seen.rows, seen.cols, np.ones(n), np.ones(n)).largest_resistance()
        first = corollary_1((n, n), smallest_gap(graph), resistance, 0.01, **given)
        second = corollary_1_by_size((n, n), 0.01, **given)
        assert 0 < first <= second
    by_hand = 1.5**2 / 4 * 16 * 8 * 0.01**2 * np.exp(2 * 1.5 * np.sqrt(2) * 0.01 / 0.5)
    assert corollary_1_by_size((1, 1), 0.01, **given) == pytest.approx(by_hand)


def test_the_semidefinite_referee_agrees_without_noise():
    pytest.importorskip("cvxpy")
    from entrywise.bounds.semidefinite import semidefinite
    from entrywise.exceptions import ParameterError
    from entrywise.observations import Observations
    from entrywise.passive import rank_one

    x, y = np.array([1.0, 2.0, 0.5]), np.array([1.5, 0.7, 1.0])
    A = np.outer(x, y)
    stairs = np.full((3, 3), np.nan)  # a path: every entry off it is reached by recursion
    for i, j in ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2)):
        stairs[i, j] = A[i, j]
    seen = Observations.from_dense(stairs)
    np.testing.assert_allclose(semidefinite(seen).to_dense(), A, rtol=0.02)
    np.testing.assert_allclose(rank_one(seen).to_dense(), A, rtol=1e-6)
    with pytest.raises(ParameterError, match="at most 10 rows and columns"):
        semidefinite(Observations.from_dense(np.ones((6, 6))))


def products(kind, seed):
    """Return a table of products and noisy answers to it, proportional, multiplicative or counted."""
    rng = np.random.default_rng([17, seed])
    A = 20 * np.outer(np.exp(rng.normal(0, 0.7, 30)), np.exp(rng.normal(0, 0.7, 25)))
    e = rng.standard_normal(A.shape)
    noisy_by = {
        "proportional": A * (1 + 0.15 * e),
        "multiplicative": A * np.exp(0.4 * e),
        "of counts": rng.poisson(A).astype(float),
        "of one size": A + 2.0 * e,
    }
    known = rng.random(A.shape) < 0.4
    return A, O.from_dense(np.where(known, noisy_by[kind], np.nan))


@pytest.mark.parametrize("kind", ["proportional", "multiplicative", "of counts", "of one size"])
def test_intervals_follow_the_noise_that_is_there(kind):
    every = tuple(np.indices((30, 25)))
    covered, right, expected, actual = [], 0, 0.0, 0.0
    for seed in range(10):
        A, seen = products(kind, seed)
        found = rank_one(seen)
        low, high = found.interval(*every, 0.9, of="truth")
        covered.append(np.mean((low <= A) & (high >= A)))
        right += found.report["noise_law"] == kind
        expected += found.certificates[1].value ** 2
        actual += np.sum((found.to_dense() - A) ** 2)
    assert 0.85 <= np.mean(covered) <= 0.95
    assert right >= 7
    assert 0.7 <= np.sqrt(actual / expected) <= 1.35


def test_the_law_of_noise_does_not_depend_on_units(tmp_path):
    _, seen = products("multiplicative", 1)
    found = rank_one(seen)
    for unit in (1e-3, 1e150):
        other = rank_one(O.from_triplets(seen.rows, seen.cols, unit * seen.values, seen.shape))
        assert other.report["noise_law"] == found.report["noise_law"]
        for of in ("truth", "answer"):
            ends = found.interval(2, 3, of=of)
            np.testing.assert_allclose(
                np.divide(other.interval(2, 3, of=of), unit), ends, rtol=1e-6
            )
            np.testing.assert_allclose(
                found.scaled(3.0).interval(2, 3, of=of), 3.0 * np.array(ends)
            )
    found.save(tmp_path / "found.npz")
    again = type(found).load(tmp_path / "found.npz")
    np.testing.assert_array_equal(again.interval(2, 3), found.interval(2, 3))
    assert found.interval(2, 3).low > 0
