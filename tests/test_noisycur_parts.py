"""The parts of the two-cost plans: ridge paths, the joint posterior, the split, and the paper's bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import entrywise as ew
from entrywise.active.two_cost.ranks import (
    BEFORE,
    Ranks,
    believed_ranks,
    estimate_rank,
    rank_evidence,
)
from entrywise.active.two_cost.risk import Problem, problem_from_columns, spread_rows, water_fill
from entrywise.bounds.noisycur import (
    budgets,
    corollary1,
    lemma1,
    required_columns,
    required_rows,
    shrinkage,
    theorem1,
    traits,
)
from entrywise.exceptions import ParameterError
from entrywise.gallery import random_low_rank
from entrywise.linalg.jointcov import joint_variance
from entrywise.linalg.ridge import ridge_lines, ridge_path
from entrywise.linalg.units import in_unit, out_of_unit, unit_of
from entrywise.passive.iterative_svd import iterative_svd, soft_filled

# ridge paths


@given(
    s=st.integers(1, 9),
    d=st.integers(1, 9),
    n=st.integers(1, 4),
    power=st.integers(-6, 6),
    seed=st.integers(0, 99),
)
def test_leave_one_out_is_leaving_one_out(s, d, n, power, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((s, d)) * 10.0**power, rng.standard_normal((s, n))
    penalties = np.geomspace(1e-3, 10, 5) * 100.0**power
    path = ridge_path(X, Y, penalties)
    for penalty, found in zip(penalties, path.error, strict=True):
        total = 0.0
        for i in range(s):
            keep = np.arange(s) != i
            G = X[keep].T @ X[keep] + penalty * np.eye(d)
            total += float(np.sum((Y[i] - X[i] @ np.linalg.solve(G, X[keep].T @ Y[keep])) ** 2))
        assert found == pytest.approx(total / Y.size, rel=1e-6)
        Z = np.linalg.solve(X.T @ X + penalty * np.eye(d), X.T @ Y)
        np.testing.assert_allclose(
            path.solution(penalty), Z, rtol=1e-6, atol=1e-9 * np.abs(Z).max()
        )


@given(
    s=st.integers(1, 20), d=st.integers(1, 20), spread=st.floats(0, 6), noise=st.floats(-8, 2),
    signal=st.booleans(), flat=st.booleans(), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_best_penalty_is_that_of_the_whole_grid(s, d, spread, noise, signal, flat, seed):
    """Columns and rows of very different sizes, errors that span many orders, rank one, grids of any spacing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((s, d)) * np.exp(spread * rng.standard_normal(d))
    if seed % 3 == 0:
        X *= np.exp(spread * rng.standard_normal((s, 1)))
    if flat:
        X = (
            np.exp(rng.standard_normal((s, 1))) @ rng.standard_normal((1, d))
            + 1e-7 * X / np.abs(X).max()
        )
    Y = 10.0**noise * rng.standard_normal((s, 3)) + (
        X @ rng.standard_normal((d, 3)) if signal else 0.0
    )
    grid = np.geomspace(1e-7, 10, 500) if seed % 2 else np.exp(rng.uniform(-20, 3, 200))
    path = ridge_path(X, Y, grid, relative=True)
    assert path.least == pytest.approx(path.error.min(), rel=1e-12)
    assert path.error[path.penalties == path.best][0] == pytest.approx(path.least, rel=1e-12)


@pytest.mark.parametrize(
    "penalties",
    [[1e308], [1e-300, 1e300], [1.0], [2.0, 1.0, 1.0], np.geomspace(1e-300, 1e300, 900)],
)
def test_penalties_may_be_few_or_far_apart(penalties):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
    path = ridge_path(X, Y, np.array(penalties))
    assert path.least == pytest.approx(path.error.min(), rel=1e-9)
    with np.errstate(over="ignore"):
        assert ridge_path(1e150 * X, Y, np.geomspace(1e-7, 10, 500), relative=True).least > 0


def test_relative_penalties_follow_the_scale():
    rng = np.random.default_rng(0)
    X, Y, grid = rng.standard_normal((7, 12)), rng.standard_normal((7, 5)), np.geomspace(1e-3, 1, 7)
    path, scaled = (
        ridge_path(X, Y, grid, relative=True),
        ridge_path(1e3 * X, Y, grid, relative=True),
    )
    np.testing.assert_allclose(path.penalties, grid * np.linalg.norm(X, 2) ** 2)
    np.testing.assert_allclose(path.error, scaled.error)
    zero = ridge_path(np.zeros((3, 2)), np.ones((3, 1)), grid, relative=True)
    np.testing.assert_allclose(zero.error, 1.0)
    assert not zero.solution().any()


def test_ridge_path_refuses_bad_input():
    with pytest.raises(ParameterError, match="same rows"):
        ridge_path(np.ones((3, 2)), np.ones((4, 1)), np.ones(1))
    with pytest.raises(ParameterError, match="above 0"):
        ridge_path(np.ones((3, 2)), np.ones((3, 1)), np.array([1.0, 0.0]))
    with pytest.raises(ParameterError, match="must be finite"):
        ridge_path(np.ones((3, 2)), np.full((3, 1), np.nan), np.ones(1))


# the joint posterior


@given(m=st.integers(1, 6), n=st.integers(1, 6), k=st.integers(1, 2), seed=st.integers(0, 99))
def test_joint_variance_is_that_of_the_whole_curvature(m, n, k, seed):
    rng = np.random.default_rng(seed)
    q = k + 1
    U, V = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    W = np.where(rng.random((m, n)) < 0.6, 5 * rng.random((m, n)), 0.0)
    SU, SV = (np.diag(rng.uniform(0.5, 2, q)) + 0.1 for _ in range(2))
    G, A = np.column_stack([U, np.ones(m)]), np.column_stack([V, np.ones(n)])
    H = np.kron(np.diag(np.r_[np.ones(m), np.zeros(n)]), np.linalg.inv(SU))
    H += np.kron(np.diag(np.r_[np.zeros(m), np.ones(n)]), np.linalg.inv(SV))
    slope = np.zeros((m, n, m + n, q))
    for i in range(m):
        for j in range(n):
            slope[i, j, i], slope[i, j, m + j] = A[j], G[i]
    slope = slope.reshape(m, n, -1)
    H += np.einsum("ij,ija,ijb->ab", W, slope, slope)
    S = np.linalg.inv(H)
    blocks = S.reshape(m + n, q, m + n, q)
    expected = np.einsum("ija,ab,ijb->ij", slope, S, slope)
    for i in range(m):
        for j in range(n):
            expected[i, j] += np.sum(blocks[i, :k, i, :k] * blocks[m + j, :k, m + j, :k])
    np.testing.assert_allclose(joint_variance(U, V, W, SU, SV), expected, rtol=1e-6)


# the split


def problem(**change):
    given_ = {
        "m": 80, "n": 60, "column_price": 16.0, "entry_price": 1.0, "column_variance": 0.05, "entry_variance": 0.01,
        "rank": 3, "signal": 0.16,
    }  # fmt: skip
    return Problem(**given_ | change)


def test_the_closed_form_agrees_with_what_the_fit_achieves():
    c, noise = [], {"column": 0.3, "entry": 0.1}
    for seed in range(4):
        A = random_low_rank(80, 60, 3, seed)
        oracle = ew.oracles.TwoCostOracle(A, entry_noise=0.1, column_noise=0.3, rng=seed)
        plan = ew.active.noisy_cur(
            (80, 60), ew.Prices(column=16), noise=noise, budget=720, columns=25, rng=seed
        )
        c.append(np.mean((ew.play(plan, oracle).to_dense() - A) ** 2))
    expected = problem(column_variance=0.09, signal=1.0).split(25, 720).error
    assert math.sqrt(np.mean(c)) == pytest.approx(expected, rel=0.15)


def test_more_money_more_precision_and_fewer_directions_lower_the_error():
    best = problem().best(720).error
    assert problem().best(900).error < best < problem().best(500).error
    assert problem(column_variance=0.02).best(720).error < best
    assert problem(entry_variance=0.002).best(720).error < best
    assert problem(rank=2).best(720).error < best < problem(rank=5).best(720).error
    assert problem().marginal(720) > 0


def test_splits_at_both_ends():
    assert problem().best(10).columns == 0
    assert problem(column_price=0.5).best(720).columns == 60
    assert (
        problem(entry_variance=1e-6, column_variance=4.0, column_price=70.0).best(2500).columns == 0
    )
    cheap = problem().best(720)
    assert cheap.columns * 16 + cheap.cells <= 720


def test_a_rank_that_is_not_known_gives_a_split_between_those_of_its_ranks():
    dear = problem(column_price=60.0, signal=1.0)
    low, high = (dear.best(1200, Ranks.equally(k)).columns for k in (2, 8))
    assert low == 0
    assert high > 2
    assert low <= dear.best(1200, BEFORE).columns <= high
    assert dear.best(1200, Ranks.equally(8), paid=1150).columns == 0  # nothing left for a column
    near = Ranks(np.array([2, 8]), np.array([1.0, 0.0]))
    assert dear.best(1200, near).columns == low


def test_small_matrices_are_not_trusted_to_entries_that_only_just_suffice():
    # the closed form is best without columns at both sizes; fits of the smaller matrix scatter more about it
    found = {}
    for times in (1, 10):
        m, n, price, budget = 100 * times, 50 * times, 31.8 * times, 544.0 * times
        dear = problem(
            m=m,
            n=n,
            column_price=price,
            column_variance=0.336,
            entry_variance=0.0164,
            rank=3,
            signal=1.0,
        )
        d = np.arange(8)
        assert dear.risks(d, budget - price * d, np.array([3.5]))[0].argmin() == 0
        found[times] = dear.best(budget).columns
    assert found[1] > 0
    assert found[10] == 0


# the rank


def simulated(m, d, k, variance, rng, mean=0.0):
    signal = rng.standard_normal((m, k)) @ rng.standard_normal((k, d)) / math.sqrt(k)
    return mean + signal + math.sqrt(variance) * rng.standard_normal((m, d))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "d", "variance"), [(200, 4, 0.15), (60, 8, 0.4), (8, 8, 0.02), (10, 6, 0.0)]
)
def test_beliefs_in_the_rank_are_calibrated(m, d, variance):
    rng = np.random.default_rng(0)
    held, told = [], []
    for _ in range(150):
        k = int(rng.integers(2, 9))
        found = believed_ranks((simulated(m, d, k, variance, rng), variance))
        assert found.weights.sum() == pytest.approx(1.0)
        within = found.values <= 8  # the ranks that were drawn
        weights = found.weights[within] / found.weights[within].sum()
        told.append(float(weights[found.values[within] == k].sum()))
        held.append(
            float(np.sum(weights**2))
        )  # the belief in the true rank that the beliefs themselves expect
    assert np.mean(told) == pytest.approx(np.mean(held), abs=0.08)
    assert np.mean(told) > 2 / 8


def test_columns_that_noise_hides_leave_the_rank_open_and_clear_ones_do_not():
    rng = np.random.default_rng(1)
    few, many, noisy = (
        believed_ranks((simulated(60, d, 6, v, rng), v))
        for d, v in ((4, 0.1), (14, 0.01), (8, 2.0))
    )
    assert len(few.values) > 3
    assert many.values.tolist() == [6]
    assert len(noisy.values) > 3
    assert believed_ranks() is BEFORE
    for d in (6, 20):
        assert believed_ranks((simulated(60, d, 1, 0.01, rng), 0.01)).values.tolist() == [2]
    assert believed_ranks((simulated(60, 30, 5, 0.1, rng), 0.1)).values.tolist() == [5]
    assert believed_ranks((simulated(60, 18, 8, 0.1, rng), 0.1)).values.tolist() == [8, 9]


def test_two_pieces_tell_more_than_one():
    rng = np.random.default_rng(2)
    pieces = [(simulated(60, 4, 3, 0.3, rng), 0.3) for _ in range(6)]
    alone = np.mean([(believed_ranks(p).weights ** 2).sum() for p in pieces])
    assert (believed_ranks(*pieces).weights ** 2).sum() > alone
    assert 3 in believed_ranks(*pieces).values


@given(
    m=st.integers(1, 9), d=st.integers(1, 9), k=st.integers(1, 4), power=st.integers(-12, 12),
    mean=st.sampled_from([0.0, 3.0]), variance=st.sampled_from([0.0, 1e-6, 0.1, 50.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_the_evidence_knows_no_units_and_no_mean(m, d, k, power, mean, variance, seed):
    X = simulated(m, d, k, variance, np.random.default_rng(seed))
    found = rank_evidence(X, variance, 6)
    assert found.shape == (6,)
    assert np.all(np.isfinite(found))
    unit = 10.0**power
    # in nats; the smallest singular values of a square exact X are known to fewer digits
    np.testing.assert_allclose(
        rank_evidence(unit * (X + mean), unit**2 * variance, 6), found, rtol=1e-3, atol=0.02
    )
    if m != d:
        np.testing.assert_allclose(rank_evidence(X.T, variance, 6), found, rtol=1e-3, atol=0.02)


def test_constant_pieces_say_nothing_of_the_rank():
    for X in (np.zeros((5, 4)), np.full((5, 4), 7.1)):
        assert np.ptp(rank_evidence(X, 0.1, 8)) == 0.0


def test_risks_of_many_splits_are_those_of_each():
    p = problem(lack=0.3)
    d, ranks = np.array([0, 3, 30, 60]), np.array([1.0, 4.5])
    money = 960 - 16.0 * d
    together = p.risks(d, money, ranks)
    assert together.shape == (2, 4)
    for a, k in enumerate(ranks):
        for b in range(4):
            alone = p.risks(d[b : b + 1], money[b : b + 1], np.array([k]))[0, 0]
            assert together[a, b] == pytest.approx(alone, rel=1e-4)


def test_columns_pay_for_themselves_where_no_low_rank_matrix_fits():
    plain, lacking = problem(entry_variance=1e-3), problem(entry_variance=1e-3, lack=2.0)
    assert lacking.best(720).columns > plain.best(720).columns
    assert lacking.best(720).error > plain.best(720).error


def test_estimated_rank():
    rng = np.random.default_rng(0)
    for rank in (1, 3, 6):
        C = 2 * random_low_rank(80, 20, rank, rng) + 0.2 * rng.standard_normal((80, 20))
        assert estimate_rank(C, 0.2)[0] == rank
    assert estimate_rank(np.zeros((5, 3)), 0.1) == (1, 0.0)
    noisy = 5 * random_low_rank(300, 40, 2, rng) + rng.standard_normal((300, 40))
    k, lack = estimate_rank(noisy, 0.1)
    assert k == 2
    assert lack == pytest.approx(1.0, rel=0.15)


def test_signal_is_about_the_mean_of_each_row():
    rng = np.random.default_rng(0)
    C = (
        100 * np.ones((80, 30))
        + 0.5 * random_low_rank(80, 30, 3, rng)
        + 0.1 * rng.standard_normal((80, 30))
    )
    found = problem_from_columns(problem(column_variance=0.01), C)
    assert found.signal == pytest.approx(0.25, rel=0.25)


@given(
    m=st.integers(1, 12),
    n=st.integers(1, 9),
    cells=st.integers(0, 130),
    held=st.integers(0, 9),
    seed=st.integers(0, 20),
)
def test_cells_are_distinct_new_and_as_many_as_asked(m, n, cells, held, seed):
    rng = np.random.default_rng(seed)
    taken = rng.random((m, n)) < 0.2
    columns = np.arange(min(held, n))
    count = water_fill(problem(m=m, n=n), columns, taken.sum(axis=0), cells, rng)
    rows, cols = spread_rows(taken, count, rng)
    assert len(rows) == min(cells, m * n - taken.sum())
    assert len({*zip(rows.tolist(), cols.tolist(), strict=True)}) == len(rows)
    assert not taken[rows, cols].any()


def test_cells_go_to_columns_that_were_not_bought_and_spread_over_rows():
    rng = np.random.default_rng(0)
    taken = np.zeros((80, 60), bool)
    count = water_fill(problem(), np.arange(20), taken.sum(axis=0), 240, rng)
    assert count[:20].sum() == 0
    assert set(count[20:]) == {6}
    rows, _ = spread_rows(taken, count, rng)
    assert np.ptp(np.bincount(rows, minlength=80)) <= 1


def test_a_column_gets_at_least_twice_its_unknowns_before_the_bought_ones_get_any():
    narrow = problem(column_variance=1.0, entry_variance=0.01)  # parity would be 0.8 cells
    assert narrow.cap() == 2 * (narrow.rank + 1)


# the paper's theory


def test_requirements_by_hand():
    of = traits(np.ones((50, 40)))
    e, d = 0.5, 0.1
    span = (6 + 2 * e) / (3 * e**2) * 1.0 * math.log(1 / d)
    noise = 8 * (1 + d) ** 2 / ((1 - e) * e) * 0.3**2
    assert required_columns(of, 0.3, e, d) == pytest.approx(max(span, noise))
    assert required_rows(10, e, d) == pytest.approx((6 + 2 * e) / (3 * e**2) * 20 * math.log(100))
    assert shrinkage(e, 0.0, 1.0) == 0.0
    assert shrinkage(e, 2.0, 3.0) == pytest.approx(2 * 3 * (2 / (1.5 * 9 + 2)) ** 2)
    assert corollary1(1.0, 2.0, 3.0, 4.0, 0.5, 0.0, 1.0) == pytest.approx(1 + 8 * 7)


def test_lemma_holds_on_draws():
    rng = np.random.default_rng(0)
    A = 3 * random_low_rank(200, 100, 2, rng)
    C = A[:, :60]
    epsilon, chance = lemma1(np.linalg.svd(C, compute_uv=False)[1], 0.2, 200, 0.3)
    assert epsilon < 1
    assert chance > 0.99
    Q = np.linalg.qr(C + 0.2 * rng.standard_normal(C.shape))[0]
    assert np.linalg.norm(A - Q @ (Q.T @ A)) ** 2 <= epsilon * np.linalg.norm(A) ** 2


def test_the_theorem_is_vacuous_at_the_papers_budgets_and_not_for_a_huge_matrix():
    of = traits(np.random.default_rng(0).normal(5, 1, (80, 60)), rank=4)
    vacuous = theorem1(of, 20, 6, noise={"column": 0.22, "entry": 0.1})
    assert vacuous.vacuous
    assert "fewer than any epsilon" in vacuous.checked[-1]
    one = traits(np.ones((60, 50)))
    big = type(one)(10**7, 10**7, 1, 1.0, 1.0, 1.0, 1e14, 1e7)
    found = theorem1(big, 30_000, 10**11, noise={"column": 0.1, "entry": 1e-4})
    assert not found.vacuous
    assert 0 < found.value < 1


def test_the_theorem_says_nothing_where_it_divides_by_a_column_noise_of_zero():
    one = traits(np.ones((60, 50)))
    big = type(one)(10**7, 10**7, 1, 1.0, 1.0, 1.0, 1e14, 1e7)
    silent = theorem1(big, 30_000, 10**11, noise={"column": 0.0, "entry": 1e-4})
    assert silent.vacuous
    assert silent.value == math.inf
    assert "divides by the noise of columns" in silent.checked[-1]
    exact = theorem1(big, 30_000, 10**11, noise={"column": 0.0, "entry": 0.0})
    assert not exact.vacuous


@given(
    size=st.sampled_from([5e-324, 1e-300, 1e-160, 1.0, 1e160, 1e300]),
    column=st.sampled_from([0.0, 5e-324, 1e-160, 1.0, 1e160, 1e300]),
    entry=st.sampled_from([0.0, 5e-324, 1e-160, 1.0, 1e160, 1e300]),
    penalty=st.sampled_from([0.0, 1e-300, 1e300]),
)
def test_bounds_have_a_value_at_both_ends_of_floating_point(size, column, entry, penalty):
    of = type(traits(np.ones((2, 2))))(10**6, 10**6, 2, 1.0, 3.0, size, size, size)
    noise = {"column": column, "entry": entry}
    found = theorem1(of, 10**5, 10**9, noise=noise, penalty=penalty)
    assert found.value >= 0
    assert all(x >= 0 for x in budgets(of, ew.Prices(column=4), noise=noise).values())
    assert lemma1(size, column, 100, 0.5)[0] >= 0


# many lines at once, and units


@given(n=st.integers(1, 7), k=st.integers(1, 3), lines=st.integers(1, 4), seed=st.integers(0, 99))
def test_ridge_of_many_lines_is_that_of_each(n, k, lines, seed):
    rng = np.random.default_rng(seed)
    F, Y = rng.standard_normal((n, k)), rng.standard_normal((lines, n))
    W = np.where(rng.random((lines, n)) < 0.6, rng.random((lines, n)), 0.0)
    mean, cov = rng.standard_normal(k), np.diag(rng.uniform(0.5, 2.0, k)) + 0.1
    found = ridge_lines(F, W, (W * Y) @ F, mean, cov)
    sparse = ridge_lines(F, csr_array(W), (W * Y) @ F, mean, cov)
    np.testing.assert_allclose(found, sparse, rtol=1e-8, atol=1e-10)
    for t in range(lines):
        P = np.linalg.inv(cov)
        G = (F * W[t][:, None]).T @ F + P
        alone = np.linalg.solve(G, F.T @ (W[t] * Y[t]) + P @ mean)
        np.testing.assert_allclose(found[t], alone, rtol=1e-8, atol=1e-10)


def test_filling_in_with_lowered_singular_values_against_a_dense_svd():
    rng = np.random.default_rng(0)
    X = random_low_rank(9, 7, 2, 1) + 0.01 * rng.standard_normal((9, 7))
    Y = np.where(rng.random(X.shape) < 0.75, X, np.nan)
    Z = soft_filled(Y, 2, max_sweeps=3000, tol=1e-12)
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    again = (U[:, :2] * (s[:2] - s[2])) @ Vt[:2]
    gone = np.isnan(Y)
    np.testing.assert_array_equal(Z[~gone], X[~gone])
    np.testing.assert_allclose(Z[gone], again[gone], atol=1e-6)


@given(power=st.integers(-1074, 1023), seed=st.integers(0, 9))
def test_units_are_powers_of_two_and_one_for_ordinary_numbers(power, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, 5) * 2.0**power
    unit = unit_of(x)
    assert math.frexp(unit)[0] == 0.5
    size = np.abs(x).max()
    if size == 0 or 1e-100 <= size <= 1e100:
        assert unit == 1.0
        assert in_unit(x, unit) is x
    else:
        assert 1.0 <= size / unit < 2.0
    np.testing.assert_array_equal(out_of_unit(in_unit(x, unit), unit), x)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**1000])
def test_iterative_svd_knows_no_units(unit):
    A = random_low_rank(8, 6, 1, 0)
    A[0, 0] = np.nan
    near, far = (iterative_svd(ew.Observations.from_dense(A * u), 1) for u in (1.0, unit))
    np.testing.assert_allclose(far.to_dense() / unit, near.to_dense(), rtol=1e-9)


def test_budgets_compare_as_the_paper_says():
    of = traits(np.random.default_rng(0).normal(5, 1, (80, 60)), rank=4)
    found = budgets(of, ew.Prices(column=16), noise={"column": 0.22, "entry": 0.1})
    assert found["nuclear_norm"] == pytest.approx(140 * 4 * math.log(140))
    assert found["noisy_cur"] < found["nuclear_norm"] < found["theorem"]


@pytest.mark.parametrize(
    "noise", [{"column": 0.2}, 0.2, {"column": 0.2, "entry": "low"}, {"column": -1.0, "entry": 0.1}]
)
def test_bounds_refuse_half_a_noise(noise):
    of = traits(np.random.default_rng(0).normal(5, 1, (20, 10)), rank=2)
    for bound in (
        lambda: theorem1(of, 4, 3, noise=noise),
        lambda: budgets(of, ew.Prices(column=4), noise=noise),
    ):
        with pytest.raises(ParameterError, match="both finite and not below 0"):
            bound()


def test_traits_of_the_zero_matrix_and_bad_parameters():
    of = traits(np.zeros((4, 3)))
    assert of.rank == 0
    assert required_columns(of, 0.1, 0.5, 0.1) == 0
    assert theorem1(of, 2, 2, noise={"column": 0.1, "entry": 0.1}).vacuous
    with pytest.raises(ParameterError, match="epsilon must be above 0 and below 1"):
        required_columns(of, 0.1, 1.5, 0.1)
