"""The completion baselines, each held to an independent solver on small cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from entrywise import Observations
from entrywise.exceptions import DataError, ParameterError
from entrywise.passive import (
    alternating_least_squares,
    iterative_svd,
    nuclear_norm,
    optspace,
    soft_impute,
)


def seen_of(m, n, rank, share, noise, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    X = np.where(rng.random((m, n)) < share, A + noise * rng.standard_normal((m, n)), np.nan)
    return A, Observations.from_dense(X)


def cvx(seen, penalty=None, max_error=None, weights=None):
    import cvxpy as cp

    M = cp.Variable(seen.shape)
    w = np.ones(len(seen)) if weights is None else weights
    r = cp.hstack(
        [
            np.sqrt(w[t]) * (M[int(seen.rows[t]), int(seen.cols[t])] - seen.values[t])
            for t in range(len(seen))
        ]
    )
    if penalty is not None:
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(r) + penalty * cp.normNuc(M)))
    else:
        problem = cp.Problem(cp.Minimize(cp.normNuc(M)), [cp.norm(r) <= max_error])
    problem.solve(solver="CLARABEL")
    return M.value, problem.value


@pytest.mark.parametrize("penalty", [0.3, 2.0])
def test_nuclear_norm_and_soft_impute_reach_the_minimum_that_cvxpy_finds(penalty):
    _, seen = seen_of(12, 9, 2, 0.6, 0.2, 0)
    M, objective = cvx(seen, penalty)
    found = nuclear_norm(seen, penalty=penalty, tol=1e-9)
    assert found.report["objective"] == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(found.to_dense(), M, atol=2e-3)
    soft = soft_impute(seen, penalty, center="none", tol=1e-9, max_sweeps=5000)
    assert soft.report["objective"] == pytest.approx(objective, rel=1e-5)
    np.testing.assert_allclose(soft.to_dense(), M, atol=2e-2)


@pytest.mark.parametrize("max_error", [0.5, 2.0])
def test_constrained_nuclear_norm_agrees_with_cvxpy(max_error):
    _, seen = seen_of(10, 8, 2, 0.7, 0.2, 1)
    M, norm = cvx(seen, max_error=max_error)
    found = nuclear_norm(seen, max_error=max_error)
    assert np.linalg.norm(found.to_dense(), "nuc") == pytest.approx(norm, rel=1e-4)
    misfit = np.linalg.norm(found.entries(seen.rows, seen.cols) - seen.values)
    assert misfit == pytest.approx(max_error, rel=1e-3)
    np.testing.assert_allclose(found.to_dense(), M, atol=5e-3)


def test_weights_and_repeats_are_the_same_thing():
    _, seen = seen_of(9, 7, 2, 0.7, 0.3, 2)
    twice = Observations.from_triplets(
        np.r_[seen.rows, seen.rows[:5]], np.r_[seen.cols, seen.cols[:5]], np.r_[seen.values, seen.values[:5]],
        seen.shape, duplicates="keep",
    )  # fmt: skip
    w = np.r_[np.full(5, 2.0), np.ones(len(seen) - 5)]
    weighted = nuclear_norm(seen, penalty=0.5, weights=w, tol=1e-9)
    repeated = nuclear_norm(twice, penalty=0.5, tol=1e-9)
    M, _ = cvx(seen, 0.5, weights=w)
    np.testing.assert_allclose(weighted.to_dense(), repeated.to_dense(), atol=1e-6)
    np.testing.assert_allclose(weighted.to_dense(), M, atol=2e-3)
    soft = soft_impute(twice, 0.5, center="none", tol=1e-9, max_sweeps=5000)
    np.testing.assert_allclose(soft.to_dense(), M, atol=1e-2)


def test_the_gap_certifies_how_far_the_objective_is_from_the_minimum():
    _, seen = seen_of(15, 12, 2, 0.5, 0.2, 3)
    best = nuclear_norm(seen, penalty=0.4, tol=1e-10).report["objective"]
    rough = nuclear_norm(seen, penalty=0.4, tol=1e-2)
    assert rough.certificate is not None
    assert (
        rough.report["objective"] - best
        <= rough.certificate.value * rough.report["objective"] + 1e-9
    )


def test_alternating_least_squares_is_a_stationary_point_of_its_objective():
    _, seen = seen_of(8, 6, 2, 0.8, 0.2, 4)
    found = alternating_least_squares(seen, 2, 0.3, tol=1e-13, max_sweeps=3000)
    m, n = seen.shape

    def objective(x):
        U, V, b, c = np.split(x, np.cumsum([2 * m, 2 * n, m]))
        U, V = U.reshape(m, 2), V.reshape(n, 2)
        fit = found.offset + b[seen.rows] + c[seen.cols] + (U[seen.rows] * V[seen.cols]).sum(axis=1)
        return np.sum((seen.values - fit) ** 2) + 0.3 * np.sum(x**2)

    x = np.r_[found.left.ravel(), found.right.ravel(), found.row_offset, found.col_offset]
    assert objective(x) == pytest.approx(found.report["objective"], rel=1e-10)
    better = minimize(objective, x, method="BFGS", options={"gtol": 1e-9})
    assert better.fun == pytest.approx(objective(x), rel=1e-6)


def test_alternating_least_squares_without_biases_matches_the_nuclear_norm():
    # |M|_* = min (|U|^2 + |V|^2) / 2: ridge factors of full rank minimise the nuclear norm problem
    _, seen = seen_of(9, 8, 2, 0.8, 0.2, 5)
    found = alternating_least_squares(seen, 8, 0.6, biases=False, tol=1e-12, max_sweeps=3000)
    exact = nuclear_norm(seen, penalty=0.6, tol=1e-9)
    np.testing.assert_allclose(found.to_dense(), exact.to_dense(), atol=2e-3)
    assert found.row_offset is None
    assert found.offset == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["als", "isvd", "optspace"])
def test_exact_recovery_of_an_exact_low_rank_matrix(method):
    A, seen = seen_of(60, 50, 3, 0.5, 0.0, 6)
    if method == "als":
        found = alternating_least_squares(seen, 3, 1e-7, max_sweeps=2000, tol=1e-9)
    elif method == "isvd":
        found = iterative_svd(seen, 3, max_sweeps=3000, tol=1e-8)
    else:
        found = optspace(seen, 3, tol=1e-10)
    assert np.linalg.norm(found.to_dense() - A) < 1e-3 * np.linalg.norm(A)


def test_iterative_svd_is_a_fixed_point_of_dense_filling():
    _, seen = seen_of(20, 15, 3, 0.7, 0.3, 7)
    M = iterative_svd(seen, 2, max_sweeps=5000, tol=1e-10).to_dense()
    X = seen.to_dense()
    U, s, V = np.linalg.svd(np.where(np.isnan(X), M, X), full_matrices=False)
    np.testing.assert_allclose((U[:, :2] * s[:2]) @ V[:2], M, atol=1e-5)


def test_optspace_finds_the_rank_and_a_stationary_fit():
    A, seen = seen_of(150, 120, 3, 0.4, 0.05, 8)
    found = optspace(seen)
    assert found.rank == 3
    assert np.sqrt(np.mean((found.to_dense() - A) ** 2)) < 0.05
    ridge = alternating_least_squares(seen, 3, 1e-6, biases=False, max_sweeps=2000, tol=1e-10)
    residual = np.sqrt(np.mean((ridge.entries(seen.rows, seen.cols) - seen.values) ** 2))
    assert found.report["fit_rmse"] == pytest.approx(residual, rel=1e-3)


@pytest.mark.slow
def test_penalties_chosen_on_held_out_entries_are_near_the_best():
    A, seen = seen_of(80, 60, 3, 0.4, 0.3, 9)
    for find in (
        lambda p=None: soft_impute(seen, p, center="none"),
        lambda p=None: alternating_least_squares(seen, 3, p),
        lambda p=None: nuclear_norm(seen, penalty=p, tol=1e-4),
    ):
        chosen = find()
        error = np.sqrt(np.mean((chosen.to_dense() - A) ** 2))
        others = [
            np.sqrt(np.mean((find(chosen.report["penalty"] * f).to_dense() - A) ** 2))
            for f in (0.2, 5.0)
        ]
        assert error < 1.15 * min(others)


def test_soft_impute_folds_its_own_rows_back_in():
    _, seen = seen_of(30, 20, 2, 0.7, 0.1, 10)
    found = soft_impute(seen, 0.5, center="columns", tol=1e-9, max_sweeps=5000)
    again = found.fold_in(seen)
    np.testing.assert_allclose(again.to_dense(), found.to_dense(), atol=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda o: soft_impute(o, -1.0), "penalty"),
        (lambda o: soft_impute(o, max_rank=99), "max_rank"),
        (lambda o: soft_impute(o, 1.0, center="rows"), "center"),
        (lambda o: nuclear_norm(o, penalty=1.0, max_error=1.0), "not both"),
        (lambda o: nuclear_norm(o, max_error=-1.0), "max_error"),
        (lambda o: nuclear_norm(o, penalty=1.0, weights=np.zeros(len(o))), "weights"),
        (lambda o: iterative_svd(o, 0), "rank"),
        (lambda o: optspace(o, 100), "rank"),
        (lambda o: alternating_least_squares(o, 100), "rank"),
        (lambda o: alternating_least_squares(o, 1, 0.0), "penalty"),
    ],
)
def test_bad_parameters_are_refused_with_their_name(call, words):
    _, seen = seen_of(6, 5, 1, 0.9, 0.1, 11)
    with pytest.raises(ParameterError, match=words):
        call(seen)


@pytest.mark.parametrize(
    "call",
    [
        soft_impute,
        nuclear_norm,
        optspace,
        lambda o: iterative_svd(o, 1),
        lambda o: alternating_least_squares(o, 1),
    ],
)
def test_edges(call):
    for X in (
        np.zeros((4, 3)),
        np.full((5, 4), 2.5),
        np.arange(6.0).reshape(1, 6),
        1e150 * np.ones((3, 3)),
    ):
        found = call(Observations.from_dense(X))
        assert found.shape == X.shape
        assert np.all(np.isfinite(found.to_dense()))
    with pytest.raises(DataError, match="at least one known entry"):
        call(Observations(np.zeros(0, int), np.zeros(0, int), np.zeros(0), (3, 3)))
