"""low_rank: its posterior against dense algebra, its rank, its noise, its edges; folding in; intervals."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from entrywise import LowRank, Observations, complete, intervals
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.intervals import calibrate, conformal
from entrywise.linalg import variational
from entrywise.linalg.variational import EmpiricalBayes
from entrywise.passive import low_rank, soft_impute
from entrywise.results import Corrected


def problem(m, n, rank, share, noise, seed, biases=0.5):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) / np.sqrt(max(rank, 1))
    A = A + biases * rng.standard_normal((m, 1)) + biases * rng.standard_normal(n) + 3.0
    mask = rng.random((m, n)) < share
    i, j = np.nonzero(mask)
    y = A[i, j] + noise * rng.standard_normal(len(i))
    return A, mask, Observations.from_triplets(i, j, y, (m, n))


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.parametrize("each_noise", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_a_half_sweep_is_the_dense_posterior(each_noise, exact):
    rng = np.random.default_rng(0)
    m, n, k = 7, 5, 2
    i, j = rng.integers(m, size=60), rng.integers(n, size=60)  # repeated entries
    y, s2 = rng.standard_normal(60), rng.random(60) if each_noise else np.zeros(0)
    fit = EmpiricalBayes.of(i, j, y, s2, (m, n), 1e-10)
    fit.exact = exact
    fit.grow(rng.standard_normal((m, k)), rng.standard_normal((n, k)))
    fit.cols.mean[:, -1] = rng.standard_normal(n)
    B = rng.standard_normal((n, k + 1, k + 1))
    fit.cols.cov = B @ B.transpose(0, 2, 1) / 10
    fit.cols.average = fit.cols.cov.mean(axis=0)
    prior_mean, prior_cov, t2 = rng.standard_normal(k + 1), np.diag([1.0, 2.0, 0.5]), fit.t2
    fit.rows.prior_mean, fit.rows.prior_cov = prior_mean, prior_cov
    Z, C = (
        fit.cols.mean,
        fit.cols.cov if exact else np.broadcast_to(fit.cols.average, fit.cols.cov.shape),
    )
    fit._half(fit.rows, fit.cols, keep=True)
    squares = weights = 0.0
    for row in range(m):
        P, h = np.linalg.inv(prior_cov), np.linalg.inv(prior_cov) @ prior_mean
        for t in np.flatnonzero(i == row):
            w = 1 / (t2 + (s2[t] if each_noise else 0.0))
            a = np.r_[Z[j[t], :k], 1.0]
            E = np.zeros((k + 1, k + 1))
            E[:k, :k] = C[j[t]][:k, :k]
            P += w * (np.outer(a, a) + E)
            h += w * (a * (y[t] - Z[j[t], k]) - np.r_[C[j[t]][:k, k], 0.0])
            weights += w
        np.testing.assert_allclose(fit.rows.mean[row], np.linalg.solve(P, h), rtol=1e-9)
        np.testing.assert_allclose(fit.rows.cov[row], np.linalg.inv(P), rtol=1e-9)
        x, Cx = fit.rows.mean[row], fit.rows.cov[row]
        for t in np.flatnonzero(i == row):
            w = 1 / (t2 + (s2[t] if each_noise else 0.0))
            z, Cz = Z[j[t]], C[j[t]]
            v, u = np.r_[z[:k], 1.0], np.r_[x[:k], 1.0]
            spread = v @ Cx @ v + u @ Cz @ u + np.sum(Cx[:k, :k] * Cz[:k, :k])
            squares += w * ((y[t] - x[:k] @ z[:k] - x[k] - z[k]) ** 2 + spread)
    assert fit.t2 == pytest.approx(max(t2 + (squares - 60) / weights, 0.2 * t2), rel=1e-9)


def test_the_evidence_never_falls():
    _, _, seen = problem(40, 30, 2, 0.4, 0.3, 1)
    fit = EmpiricalBayes.of(
        seen.rows, seen.cols, (seen.values - 3.0) / 2.0, np.zeros(0), seen.shape, 1e-10
    )
    fit.sweep()
    fit.grow(*fit.spectrum(2, np.random.default_rng(0))[:2])
    found = []
    for _ in range(30):
        fit.sweep()
        found.append(fit.evidence)
    assert np.all(np.diff(found[2:]) > -1e-3 * np.abs(found[2:-1]))


def test_variance_is_that_of_draws_from_the_posterior():
    _, _, seen = problem(30, 20, 2, 0.5, 0.3, 2)
    found = low_rank(seen, 2)
    rng = np.random.default_rng(0)
    i, j = 3, 7
    x = rng.multivariate_normal(
        np.r_[found.left[i], found.row_offset[i]], found.posterior.rows.cov[i], 200_000
    )
    z = rng.multivariate_normal(
        np.r_[found.right[j], found.col_offset[j]], found.posterior.cols.cov[j], 200_000
    )
    draws = (x[:, :2] * z[:, :2]).sum(axis=1) + x[:, 2] + z[:, 2] + found.offset
    assert found.entry(i, j) == pytest.approx(draws.mean(), abs=5e-3)
    assert float(found.variance(i, j)) == pytest.approx(draws.var(), rel=0.02)
    assert found.variance([[0], [1]], [0, 1, 2]).shape == (2, 3)


@pytest.mark.parametrize(("rank", "seed"), [(0, 3), (1, 4), (3, 5), (5, 6)])
def test_rank_and_noise_are_found(rank, seed):
    A, mask, seen = problem(200, 150, rank, 0.3, 0.2, seed)
    found = low_rank(seen)
    assert found.rank == rank
    assert np.sqrt(found.noise_variance) == pytest.approx(0.2, rel=0.05)
    assert rmse(found.to_dense()[~mask], A[~mask]) < 0.12
    given_rank = low_rank(seen, rank)
    assert rmse(found.to_dense(), given_rank.to_dense()) < 0.02


def test_too_high_a_rank_does_no_harm():
    A, mask, seen = problem(150, 100, 2, 0.3, 0.2, 7)
    right, high = (
        low_rank(seen, 2, tol=1e-5, max_sweeps=200),
        low_rank(seen, 8, tol=1e-5, max_sweeps=200),
    )
    assert rmse(high.to_dense()[~mask], A[~mask]) < 1.05 * rmse(right.to_dense()[~mask], A[~mask])


def test_known_noise_is_told_from_lack_of_fit_and_weighs_the_entries():
    rng = np.random.default_rng(8)
    A, _, seen = problem(120, 80, 2, 0.4, 0.0, 8)
    sd = np.where(rng.random(len(seen)) < 0.5, 0.05, 1.0)
    y = seen.values + sd * rng.standard_normal(len(seen))
    known = Observations.from_triplets(seen.rows, seen.cols, y, seen.shape, noise=sd)
    unknown = Observations.from_triplets(seen.rows, seen.cols, y, seen.shape)
    weighted, plain = low_rank(known, 2), low_rank(unknown, 2)
    assert rmse(weighted.to_dense(), A) < 0.5 * rmse(plain.to_dense(), A)
    assert np.sqrt(weighted.lack_variance) < 0.05
    assert weighted.noise_variance == pytest.approx(np.mean(sd**2))
    rough = A + 0.3 * rng.standard_normal(A.shape)
    y = rough[seen.rows, seen.cols] + 0.1 * rng.standard_normal(len(seen))
    found = low_rank(Observations.from_triplets(seen.rows, seen.cols, y, seen.shape, noise=0.1), 2)
    assert np.sqrt(found.lack_variance) == pytest.approx(0.3, rel=0.1)


def test_a_repeated_entry_counts_as_often_as_it_is_listed():
    rng = np.random.default_rng(9)
    A, _, seen = problem(50, 40, 1, 0.4, 0.0, 9)
    y = seen.values[:, None] + 0.5 * rng.standard_normal((len(seen), 4))
    listed = Observations.from_triplets(
        np.repeat(seen.rows, 4),
        np.repeat(seen.cols, 4),
        y.ravel(),
        seen.shape,
        noise=0.5,
        duplicates="keep",
    )
    averaged = Observations.from_triplets(
        seen.rows, seen.cols, y.mean(axis=1), seen.shape, noise=0.25
    )
    a, b = (low_rank(o, 1, tol=1e-7, max_sweeps=300) for o in (listed, averaged))
    # not equal: repeats cannot tell lack of fit from noise apart in the same way, but nearly
    assert rmse(a.to_dense(), b.to_dense()) < 0.02
    assert rmse(a.to_dense(), A) < 0.2


@pytest.mark.slow
def test_same_seed_same_result_at_any_number_of_threads(monkeypatch):
    _, _, seen = problem(400, 300, 3, 0.5, 0.2, 10)
    results = []
    for threads in ("1", "2", "1"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
        results.append(low_rank(seen, max_sweeps=8))
    for found in results[1:]:
        np.testing.assert_array_equal(found.left, results[0].left)
        np.testing.assert_array_equal(found.posterior.cols.cov, results[0].posterior.cols.cov)


def test_a_start_saves_sweeps_and_ends_in_the_same_place():
    _, _, seen = problem(150, 100, 3, 0.3, 0.2, 11)
    whole = low_rank(seen, tol=1e-6, max_sweeps=300)
    part = low_rank(seen.take(np.arange(len(seen)) % 20 > 0), tol=1e-4)
    warm = low_rank(seen, start=part, tol=1e-4)
    assert warm.rank == part.rank == 3
    assert warm.report["sweeps"] < 10
    assert rmse(warm.to_dense(), whole.to_dense()) < 0.02
    grown = low_rank(seen, 4, start=part)
    assert grown.rank == 4


def test_average_covariances_lose_nothing():
    A, mask, seen = problem(200, 150, 3, 0.3, 0.2, 12)
    exact = low_rank(seen, exact=True)
    average = low_rank(seen)
    assert average.rank == exact.rank
    assert average.posterior.rows.cov.shape == exact.posterior.rows.cov.shape
    assert rmse(average.to_dense()[~mask], A[~mask]) < 1.03 * rmse(
        exact.to_dense()[~mask], A[~mask]
    )
    ratio = average.variance([3, 4], [5, 6]) / exact.variance([3, 4], [5, 6])
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def test_lines_with_nothing_known_get_the_prior_and_are_counted():
    _, _, seen = problem(40, 30, 2, 0.5, 0.2, 13)
    kept = seen.take((seen.rows != 7) & (seen.cols != 4))
    found = low_rank(kept, 2)
    assert found.row_counts[7] == 0
    assert found.col_counts[4] == 0
    assert np.all(np.isfinite(found.to_dense()))
    others = np.delete(np.arange(30), 4)
    assert np.all(found.variance(7, others) > found.variance(8, others).max())
    np.testing.assert_allclose(
        found.posterior.rows.cov[7], found.posterior.rows.prior_cov, rtol=0.2, atol=1e-3
    )


@pytest.mark.parametrize("scale", [1e-140, 1e-6, 1.0, 1e6, 1e140])
def test_units_do_not_matter(scale):
    _, _, seen = problem(60, 40, 2, 0.5, 0.2, 14)
    one = low_rank(seen)
    other = low_rank(
        Observations.from_triplets(seen.rows, seen.cols, scale * seen.values, seen.shape)
    )
    assert other.rank == one.rank
    np.testing.assert_allclose(other.to_dense() / scale, one.to_dense(), rtol=1e-6)
    np.testing.assert_allclose(
        np.sqrt(other.variance(0, 0)) / scale, np.sqrt(one.variance(0, 0)), rtol=1e-5
    )


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 4)),
        np.full((5, 4), 7.0),
        np.arange(6.0)[None, :],
        np.arange(6.0)[:, None],
        np.array([[2.0]]),
        np.outer(np.arange(8.0), np.arange(5.0)),
        np.where(np.eye(6) > 0, 1.0, np.nan),
        np.full((3, 3), 1e140),
    ],
)
def test_edges(X):
    found = low_rank(Observations.from_dense(X))
    assert found.shape == X.shape
    assert np.all(np.isfinite(found.to_dense()))
    known = ~np.isnan(X)
    span = max(np.ptp(X[known]), 1e-9 * abs(X[known]).max(), 1e-300)
    assert np.all(np.abs(found.to_dense()[known] - X[known]) <= span)
    low, high = found.interval(0, 0, 0.9)
    assert low <= found.entry(0, 0) <= high


@given(
    m=st.integers(1, 9),
    n=st.integers(1, 9),
    rank=st.integers(0, 4),
    seed=st.integers(0, 10**6),
    share=st.floats(0.1, 1.0),
)
@settings(max_examples=40)
def test_anything_small_is_completed_with_finite_numbers(m, n, rank, seed, share):
    rng = np.random.default_rng(seed)
    count = max(1, int(share * m * n))
    at = rng.permutation(m * n)[:count]
    seen = Observations.from_triplets(
        at // n, at % n, rng.integers(-2, 3, count).astype(float), (m, n)
    )
    found = low_rank(seen, min(rank, m, n))
    assert np.all(np.isfinite(found.to_dense()))
    assert np.all(np.isfinite(found.variance(np.arange(m)[:, None], np.arange(n))))
    assert np.abs(found.to_dense()).max() < 50


def test_bad_parameters():
    _, _, seen = problem(6, 5, 1, 0.9, 0.1, 15)
    for call, words in (
        (lambda: low_rank(seen, 6), "rank of low_rank must be in 0..5 for a 6 x 5 matrix, got 6"),
        (lambda: low_rank(seen, -1), "rank"),
        (lambda: low_rank(seen, max_sweeps=0), "sweeps"),
        (lambda: low_rank(seen, start=LowRank(np.zeros((2, 1)), np.zeros((2, 1)))), "shape"),
        (lambda: low_rank(seen, start=LowRank(np.zeros((6, 1)), np.zeros((5, 1)))), "posterior"),
        (lambda: low_rank(seen, 1, start=low_rank(seen, 2)), "smaller"),
    ):
        with pytest.raises(ParameterError, match=words):
            call()
    with pytest.raises(DataError, match=r"1e-150..1e\+150"):
        low_rank(Observations.from_dense(np.full((3, 3), 1e200)))
    with pytest.raises(DataError, match="at least one known entry"):
        low_rank(Observations(np.zeros(0, int), np.zeros(0, int), np.zeros(0), (3, 3)))


def test_folding_in_a_row_is_nearly_fitting_with_it():
    A, _, seen = problem(120, 60, 2, 0.5, 0.2, 16)
    without = seen.take(seen.rows < 115)
    small = Observations.from_triplets(without.rows, without.cols, without.values, (115, 60))
    late = seen.take(seen.rows >= 115)
    new = Observations.from_triplets(late.rows - 115, late.cols, late.values, (5, 60))
    before = low_rank(small, 2)
    folded = before.fold_in(new)
    full = low_rank(seen, 2)
    assert folded.shape == (5, 60)
    assert rmse(folded.to_dense(), full.to_dense()[115:]) < 0.1
    assert rmse(folded.to_dense(), A[115:]) < 1.2 * rmse(full.to_dense()[115:], A[115:])
    low, high = folded.interval(0, np.arange(60), 0.9)
    assert np.mean((low <= A[115]) & (A[115] <= high)) >= 0.75
    column = Observations.from_triplets(small.rows[small.cols == 3], np.zeros(np.sum(small.cols == 3), int),
                                        small.values[small.cols == 3], (115, 1))  # fmt: skip
    again = before.fold_in(column, "columns")
    assert rmse(again.to_dense()[:, 0], before.to_dense()[:, 3]) < 0.1


def test_folding_in_matches_labels_and_refuses_strangers():
    _, _, seen = problem(20, 4, 1, 0.9, 0.1, 17)
    named = Observations.from_triplets(
        seen.rows, seen.cols, seen.values, seen.shape, col_labels=list("abcd")
    )
    found = low_rank(named, 1)
    straight = found.fold_in(
        Observations.from_triplets([0, 0], [1, 3], [1.0, 2.0], (1, 4), col_labels=list("abcd"))
    )
    mixed = found.fold_in(
        Observations.from_triplets([0, 0], [1, 0], [1.0, 2.0], (1, 2), col_labels=list("db"))
    )
    np.testing.assert_allclose(mixed.left, straight.left)
    assert straight.row_counts[0] == 2
    with pytest.raises(DataError, match="no column is called 'z'"):
        found.fold_in(Observations.from_triplets([0], [0], [1.0], (1, 1), col_labels=["z"]))
    with pytest.raises(DataError, match="must have shape"):
        low_rank(seen, 1).fold_in(Observations.from_triplets([0], [0], [1.0], (1, 9)))
    with pytest.raises(ParameterError, match="no prior"):
        LowRank(np.ones((2, 1)), np.ones((2, 1))).fold_in(
            Observations.from_triplets([0], [0], [1.0], (1, 2))
        )


@pytest.mark.slow
@pytest.mark.parametrize("completer", [low_rank, soft_impute])
def test_conformal_intervals_cover(completer):
    covered = []
    for seed in range(3):
        A, mask, seen = problem(100, 70, 2, 0.4, 0.3, 20 + seed)
        found = conformal(
            seen,
            completer,
            rng=seed,
            **({"max_rank": 6, "penalty": 3.0} if completer is soft_impute else {}),
        )
        i, j = np.nonzero(~mask)
        y = A[i, j] + 0.3 * np.random.default_rng(seed).standard_normal(len(i))
        low, high = found.interval(i, j, 0.9)
        covered.append(np.mean((low <= y) & (y <= high)))
        assert found.report["held_out"] == len(found.calibration.scores)
        assert found.report["held_out_rmse"] < 1.0
    assert 0.86 < np.mean(covered) < 0.95


def test_split_conformal_rank_is_the_textbook_one():
    found = LowRank(np.zeros((1, 1)), np.zeros((99, 1)))
    held = Observations.from_triplets(
        np.zeros(99, int), np.arange(99), np.arange(1.0, 100.0), (1, 99)
    )
    found = calibrate(found, held)
    assert found.interval(0, 0, 0.9).high == 90.0  # ceil(100 * 0.9)
    assert (
        found.interval(0, 0, 0.999).high >= 99.0
    )  # too few: the Gaussian fallback, never below the largest
    with pytest.raises(ParameterError, match="level"):
        found.interval(0, 0, 1.0)
    with pytest.raises(ParameterError, match="no uncertainty"):
        LowRank(np.zeros((1, 1)), np.zeros((1, 1))).interval(0, 0)


def test_too_few_observations_fall_back_to_the_model_and_say_so():
    _, _, seen = problem(8, 6, 1, 0.9, 0.2, 25)
    found = conformal(seen)
    assert found.calibration is None
    assert "too few" in found.report["interval"]
    low, high = found.interval(0, 0, 0.9)
    assert low < found.entry(0, 0) < high
    told = conformal(replace(seen, noise=0.2))
    low, high = told.interval(0, 0, 0.9)
    narrow = told.interval(0, 0, 0.9, of="truth")
    assert narrow.high - narrow.low < high - low


@pytest.mark.slow
def test_the_truth_needs_the_noise():
    """Without it, noise and lack of fit are one; an interval of the truth would be a guess."""
    _, _, seen = problem(40, 30, 2, 0.5, 0.2, 26)
    for found in (low_rank(seen), complete(seen), complete(seen, method="soft-impute")):
        assert found.interval_of == "answer"
        with pytest.raises(NotIdentifiable, match="noise and lack of fit"):
            found.interval(0, 0, of="truth")
    assert low_rank(replace(seen, noise=0.2)).interval_of == "truth"
    assert low_rank(replace(seen, noise=0.2)).scaled(2.0).interval_of == "truth"


def test_repeated_entries_tell_the_noise_from_lack_of_fit():
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(8):
        A = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))
        A += 0.5 * rng.standard_normal(A.shape)  # truth that no two factors hold
        i, j = np.nonzero(rng.random(A.shape) < 0.5)
        i, j = np.r_[i, i[:200]], np.r_[j, j[:200]]
        seen = Observations.from_triplets(
            i, j, A[i, j] + 0.3 * rng.standard_normal(len(i)), A.shape, duplicates="keep"
        )
        found = low_rank(seen)
        assert np.sqrt(found.noise_variance) == pytest.approx(0.3, rel=0.2)
        assert np.sqrt(found.lack_variance) == pytest.approx(0.5, rel=0.2)
        hidden = np.ones(A.shape, bool)
        hidden[i, j] = False
        low, high = found.interval(*np.nonzero(hidden), 0.9, of="truth")
        covered.append(np.mean((low <= A[hidden]) & (A[hidden] <= high)))
    assert 0.86 <= np.mean(covered) <= 0.94


def test_saving_keeps_the_posterior(tmp_path):
    _, _, seen = problem(30, 20, 2, 0.6, 0.2, 26)
    named = Observations.from_triplets(
        seen.rows, seen.cols, seen.values, seen.shape, row_labels=[f"r{i:03}" for i in range(30)]
    )
    found = conformal(named)
    found.save(tmp_path / "found.npz")
    again = LowRank.load(tmp_path / "found.npz")
    for level in (0.5, 0.9):
        np.testing.assert_array_equal(
            again.interval(0, [1, 2], level), found.interval(0, [1, 2], level)
        )
    assert again.row_labels == found.row_labels
    assert again.col_labels is None
    assert again.report["rank"] == found.rank
    new = Observations.from_triplets([0, 0], [1, 2], [1.0, 2.0], (1, 20))
    np.testing.assert_array_equal(again.fold_in(new).left, found.fold_in(new).left)


def test_variances_of_picked_entries_blocks_and_row_sums_are_those_of_the_definition():
    _, _, seen = problem(15, 11, 2, 0.6, 0.2, 27)
    found = low_rank(seen, 2)
    posterior = found.posterior
    Cu, Cv = posterior.rows.cov, posterior.cols.cov
    U, V = np.c_[found.left, np.ones(15)], np.c_[found.right, np.ones(11)]
    expect = np.array(
        [
            [
                V[j] @ Cu[i] @ V[j] + U[i] @ Cv[j] @ U[i] + np.sum(Cu[i][:2, :2] * Cv[j][:2, :2])
                for j in range(11)
            ]
            for i in range(15)
        ]
    )
    i, j = np.indices((15, 11))
    np.testing.assert_allclose(found.variance(i, j), expect, rtol=1e-12)
    np.testing.assert_allclose(posterior.all_variances(found.left, found.right), expect, rtol=1e-12)
    listed = posterior.row_sums(found.left, found.right, seen.rows, seen.cols)
    rest = posterior.other_sums(found.left, found.right, listed)
    a, b = np.nonzero(np.isnan(seen.to_dense()))
    again = posterior.row_sums(found.left, found.right, a, b)
    for one, other in zip(rest, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_components_are_kept_and_dead_ones_named():
    _, _, seen = problem(30, 20, 2, 0.8, 0.1, 28)
    found = low_rank(seen, 3)
    assert found.posterior.alive().tolist() == [0, 1]
    kept = found.keep(np.array([0, 1]))
    assert kept.rank == 2
    assert kept.posterior.rows.cov.shape == (30, 3, 3)
    np.testing.assert_array_equal(
        kept.posterior.cols.prior_cov, found.posterior.cols.prior_cov[np.ix_([0, 1, 3], [0, 1, 3])]
    )
    assert low_rank(seen, 2, start=kept).rank == 2


@pytest.mark.parametrize("corrected", [False, True])
def test_transposing_and_scaling_carry_the_posterior_along(corrected):
    _, _, seen = problem(14, 9, 2, 0.7, 0.2, 29)
    seen = Observations.from_triplets(seen.rows, seen.cols, seen.values, seen.shape, noise=0.1)
    found = low_rank(seen, 1)
    if corrected:
        found = Corrected.of(found, seen)
        assert type(found.transposed()) is Corrected
    i, j = np.indices((14, 9))
    for of in ("answer", "truth"):
        low, high = found.interval(i, j, 0.8, of)
        turned = found.transposed().interval(j, i, 0.8, of)
        np.testing.assert_allclose(turned, (low, high), rtol=1e-12)
        if not corrected:
            larger = found.scaled(16.0).interval(i, j, 0.8, of)
            np.testing.assert_allclose(larger, (16 * low, 16 * high), rtol=1e-12)
    new = Observations.from_triplets([2, 5], [0, 0], [1.0, 2.0], (14, 1))
    column = found.fold_in(new, "columns")
    row = found.transposed().fold_in(new.transposed())
    np.testing.assert_allclose(column.to_dense(), row.to_dense().T, rtol=1e-12)
    np.testing.assert_array_equal(column.col_counts, [2])


@pytest.mark.slow
@pytest.mark.parametrize("known", [2, 5, 16, 60, 171, 250])
@pytest.mark.parametrize("method", ["iterative-svd", "optspace", "soft-impute"])
def test_an_interval_that_is_reported_is_there(known, method):
    rng = np.random.default_rng(known)
    at = rng.choice(20 * 15, size=known, replace=False)
    A = np.add.outer(np.arange(20.0), np.sin(np.arange(15)))
    seen = Observations.from_triplets(at // 15, at % 15, A.ravel()[at], A.shape)
    found = complete(seen, method, **({"rank": 1} if method == "iterative-svd" else {}))
    low, high = found.interval(0, np.arange(15))
    assert np.all(np.isfinite(low) & (low <= high))
    assert "conformal" in found.report["interval"]
    assert found.report["held_out"] == len(found.calibration.scores)


def test_one_known_entry_has_no_interval_and_says_so():
    seen = Observations.from_triplets([1], [2], [3.0], (4, 5))
    found = complete(seen, "iterative-svd", rank=1)
    assert found.report["interval"].startswith("none")
    with pytest.raises(ParameterError, match="no uncertainty"):
        found.interval(0, 0)


@pytest.mark.parametrize("method", ["auto", "low-rank", "optspace", "log-least-squares"])
@pytest.mark.parametrize("power", [-240, -180, 180, 240])
def test_extreme_values_are_completed_as_ordinary_ones(method, power):
    rng = np.random.default_rng(3)
    A = np.exp(rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20)) / 2)
    X = np.where(rng.random(A.shape) < 0.7, A, np.nan)
    plain, extreme = complete(X, method), complete(X * 4.0**power, method)
    np.testing.assert_allclose(extreme.to_dense() * 4.0**-power, plain.to_dense(), rtol=1e-6)
    ends = [np.array(f.interval(3, np.arange(20), 0.8)) for f in (plain, extreme)]
    np.testing.assert_allclose(ends[1] * 4.0**-power, ends[0], rtol=1e-5)
    assert "unit" not in plain.report
    assert extreme.report["unit"] == pytest.approx(4.0**power * A.max(), rel=3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["soft-impute", "alternating-least-squares"])
@pytest.mark.parametrize("power", [-50, -10, 10, 50])
def test_a_method_does_not_depend_on_the_unit_of_the_values(method, power):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    X = np.where(rng.random(A.shape) < 0.6, A + 0.1 * rng.standard_normal(A.shape), np.nan)
    extra = {} if method == "soft-impute" else {"rank": 2}
    plain, other = (complete(Y, method, **extra) for Y in (X, X * 4.0**power))
    np.testing.assert_allclose(
        other.to_dense() * 4.0**-power, plain.to_dense(), rtol=1e-6, atol=1e-6
    )
    ends = [np.array(f.interval(3, np.arange(20), 0.8)) for f in (plain, other)]
    np.testing.assert_allclose(ends[1] * 4.0**-power, ends[0], rtol=1e-5, atol=1e-6)


def test_what_cannot_be_scaled_or_held_in_memory_is_refused():
    seen = Observations.from_triplets([0, 1], [0, 1], [1e120, 2e120], (2, 2))
    with pytest.raises(DataError, match="penalty does not follow; change the unit"):
        complete(seen, "soft-impute", penalty=1.0)
    with pytest.raises(DataError, match="change their unit"):
        complete(Observations.from_triplets([0, 1], [0, 1], [1e200, 2.0], (2, 2)))
    far = Observations.from_triplets([10**12], [0], [1.0])
    with pytest.raises(DataError, match=r"needs at least 64,000 GB and this machine has [\d,]+ GB"):
        complete(far)


@pytest.mark.slow
def test_threads_change_no_bit_of_grouping_residuals_and_spectrum(monkeypatch):
    """Large enough to be shared out among threads: against one thread, and sums against plain products."""
    rng = np.random.default_rng(0)
    m, n, t = 3000, 700, 60_000
    i, j = rng.integers(m, size=t), rng.integers(n, size=t)
    y = rng.standard_normal(t)

    def looked_at(threads):
        monkeypatch.setenv("NUMBA_NUM_THREADS", str(threads))
        monkeypatch.setattr(variational, "thread_count", lambda: threads)
        fit = EmpiricalBayes.of(i, j, y, np.zeros(0), (m, n), 1e-10)
        fit.grow(*fit.spectrum(2, np.random.default_rng(1))[:2])
        found = fit.spectrum(3, np.random.default_rng(2))
        return [*found, fit.rows.values, fit.cols.other, fit.residuals(np.ones(m), np.ones(n))]

    for one, several in zip(looked_at(1), looked_at(3), strict=True):
        np.testing.assert_array_equal(one, several)
    matrix = csr_array((y, (i, j)), shape=(m, n))
    forth, back = variational._products(matrix)
    X, Y = rng.standard_normal((n, 5)), rng.standard_normal((m, 5))
    np.testing.assert_array_equal(forth(X), matrix @ X)
    np.testing.assert_array_equal(back(Y), matrix.T @ Y)


@pytest.mark.parametrize("spread", [1.0, 1e3, 1e9])
def test_tall_columns_are_made_orthonormal_as_by_a_qr_factorisation(spread):
    rng = np.random.default_rng(0)
    for k in (2, 3, 8):
        X = rng.standard_normal((variational.TALL * k + 7, k))
        X = X * np.geomspace(1e5, 1e5 / spread, k) @ rng.standard_normal((k, k))
        Q, R = variational._orthonormal(X), np.linalg.qr(X)[0]
        np.testing.assert_allclose(Q.T @ Q, np.eye(k), atol=1e-13)
        np.testing.assert_allclose(Q @ (Q.T @ R), R, atol=1e-12)  # the same span
    X[:, 1] = X[:, 0]
    for odd in (X, np.zeros((20_000, 2))):
        Q = variational._orthonormal(odd)
        np.testing.assert_allclose(Q.T @ Q, np.eye(len(Q.T)), atol=1e-13)


@pytest.mark.parametrize("rank", [0, 1, 9])
def test_leading_triplets_of_a_tall_matrix_are_those_of_a_dense_one(rank):
    rng = np.random.default_rng(1)
    m, n, k = 9 * variational.TALL, 9, 2
    A = (
        rng.standard_normal((m, rank))
        * np.geomspace(100.0, 1.0, rank)
        @ rng.standard_normal((rank, n))
    )
    U, s, V = variational.triplets_of(A.__matmul__, A.T.__matmul__, (m, n), k, rng, steps=12)
    left, sizes, right = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(s, sizes[:k], rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(U.T @ U, np.eye(k), atol=1e-10)
    np.testing.assert_allclose((U * s) @ V.T, left[:, :k] * sizes[:k] @ right[:k], atol=1e-6)


@pytest.mark.parametrize("count", [100, 10_000])
def test_entries_held_out_are_drawn_evenly_and_once(count):
    drawn = [intervals._drawn(count, 40, np.random.default_rng(seed)) for seed in range(200)]
    assert all(len(set(some.tolist())) == 40 for some in drawn)
    counts = np.histogram(np.concatenate(drawn), bins=20, range=(0, count))[0]
    assert np.sum((counts - 400) ** 2 / 400) < 43.8  # chi-squared, 19 degrees, p = .001
    first = np.array([some[0] for some in drawn])  # in any order: folds are cut from it
    assert abs(first.mean() / count - 0.5) < 0.1


def test_many_entries_are_judged_by_some_of_their_rows(monkeypatch):
    seen = problem(300, 40, 2, 0.4, 0.3, 0)[2]
    whole = complete(seen).report["bias_rmse"]
    monkeypatch.setattr(import_module("entrywise.complete"), "YARDSTICK", len(seen) // 3)
    part = complete(seen).report["bias_rmse"]
    assert part != whole
    assert abs(part / whole - 1.0) < 0.15


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_components_of_many_entries_are_those_of_few(seed, is_path):
    rng = np.random.default_rng(seed)
    m, n, t = rng.integers(1, 30, 3)
    i, j = rng.integers(m, size=t), rng.integers(n, size=t)
    if is_path:  # from line to line, in any order
        m = n = int(max(m, n))
        i, j = (np.repeat(rng.permutation(m), 2)[k : 2 * m - 1 + k] for k in (0, 1))
        t = len(i)
    seen = Observations(i, j, np.ones(t), (m, n))
    module, observations = (import_module(f"entrywise.{x}") for x in ("complete", "observations"))
    with mock.patch.object(module, "YARDSTICK", 0):
        found = module._parts(seen)
    with mock.patch.object(observations, "FEW", 0):
        count, *theirs = Observations(i, j, np.ones(t), (m, n)).components
    assert seen.components[0] == count
    for mine, few, many in zip(seen.components[1:], found, theirs, strict=True):
        np.testing.assert_array_equal(mine, few)
        np.testing.assert_array_equal(mine, many)
