"""Answers as they are: bounds, yes/no, levels, features of lines, lines nobody has seen, intervals that fit each line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, ndtr
from scipy.stats import norm

from entrywise import LowRank, Observations, complete, datasets
from entrywise.answers import levels_of, likelihood_of, range_of
from entrywise.exceptions import DataError, ParameterError
from entrywise.intervals import conformal
from entrywise.linalg.binary import BinaryBayes, left_out, slope
from entrywise.linalg.cuts import fit_cuts
from entrywise.linalg.line_features import LineFeatures
from entrywise.linalg.variational import EmpiricalBayes
from entrywise.linalg.wide_features import WideFeatures
from entrywise.passive import low_rank
from entrywise.results import Features, Levels
from entrywise.results.levels import (
    expected_log,
    likelier,
    logistic_mean,
    logistic_variance,
    pseudo_answers,
)


def logits(m, n, seed, rank=2):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    return A + rng.standard_normal((m, 1)) + 0.5 * rng.standard_normal(n)


def votes(m=60, n=50, share=0.5, seed=0, values=(0.0, 1.0)):
    """Return the probabilities, what is known and what is not."""
    P = expit(logits(m, n, seed))
    rng = np.random.default_rng(seed + 1)
    Y = np.where(rng.random((m, n)) < P, values[1], values[0])
    known = rng.random((m, n)) < share
    i, j = np.nonzero(known)
    k, h = np.nonzero(~known)
    return P, Observations(i, j, Y[i, j], (m, n)), Observations(k, h, Y[k, h], (m, n))


def described(m=80, n=40, share=0.15, seed=0, features=3, noise=0.3):
    """Return observations of a matrix whose rows follow from their features, the features and the matrix."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, features))
    U = F @ rng.standard_normal((features, 2)) + 0.3 * rng.standard_normal((m, 2))
    A = U @ rng.standard_normal((2, n)) + rng.standard_normal(n) + 2.0
    i, j = np.nonzero(rng.random((m, n)) < share)
    y = A[i, j] + noise * rng.standard_normal(len(i))
    return Observations(i, j, y, (m, n)), F, A


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def log_loss(found, held, high=1.0):
    p = found.probability(held.rows, held.cols)
    return float(-np.mean(np.log(np.where(held.values == high, p, 1 - p))))


# the logistic function of a normal ------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.floats(-6, 6), st.floats(0.01, 6))
@settings(max_examples=30, deadline=None)
def test_moments_of_the_logistic_function_are_those_of_quadrature(m, v):
    density = norm(m, np.sqrt(v)).pdf
    reach = (m - 10 * np.sqrt(v), m + 10 * np.sqrt(v))
    first = quad(lambda x: expit(x) * density(x), *reach)[0]
    second = quad(lambda x: expit(x) ** 2 * density(x), *reach)[0]
    logs = quad(lambda x: -np.logaddexp(0, -x) * density(x), *reach)[0]
    slope = quad(lambda x: expit(x) * (1 - expit(x)) * density(x), *reach)[0]
    at, spread = np.array([m]), np.array([v])
    assert logistic_mean(at, spread)[0] == pytest.approx(first, abs=2e-4)
    assert logistic_variance(at, spread)[0] == pytest.approx(second - first**2, abs=2e-3)
    assert expected_log(at, spread, np.ones(1)) == pytest.approx(logs, abs=2e-3)
    z, variance = pseudo_answers(at, spread, np.ones(1))
    assert 1 / variance[0] == pytest.approx(slope, abs=2e-3)
    assert z[0] == pytest.approx(m + (1 - first) * variance[0], abs=1e-3 * variance[0])


# two values -----------------------------------------------------------------------------------------------------------


def test_the_bound_rises_and_its_fixed_point_is_the_best_normal():
    """With one row of biases alone the posterior maximises the bound over all normals, found here by a general solver."""
    _, seen, _ = votes(30, 20, 0.7)
    fit = BinaryBayes.of_answers(seen.rows, seen.cols, seen.values, seen.shape)
    found = []
    for _ in range(60):
        fit.sweep(keep=True)
        found.append(fit.evidence)
    assert np.all(np.diff(found[3:]) > -1e-3)
    row, prior_mean, prior_var = 4, fit.rows.prior_mean[0], fit.rows.prior_cov[0, 0]
    at = seen.rows == row
    other, spread = fit.cols.mean[seen.cols[at], 0], fit.cols.cov[seen.cols[at], 0, 0]

    def loss(theta):
        mean, var = theta[0], np.exp(theta[1])
        gain = expected_log(fit.offset + mean + other, var + spread, seen.values[at])
        apart = 0.5 * (var / prior_var + (mean - prior_mean) ** 2 / prior_var - theta[1])
        return apart - gain

    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6}).x
    assert fit.rows.mean[row, 0] == pytest.approx(best[0], abs=0.02)
    assert fit.rows.cov[row, 0, 0] == pytest.approx(np.exp(best[1]), rel=0.02)


def test_a_logit_without_its_own_answer_is_what_the_others_say():
    """With a column that is known for sure: the product of what the others say and of the pseudo-answer is the posterior."""
    rng = np.random.default_rng(4)
    m, v = rng.standard_normal(50), rng.uniform(0.01, 2.0, 50)
    yes = (rng.random(50) < 0.5).astype(float)
    z, spread = pseudo_answers(m, v, yes)
    mean, variance = left_out(m, v, np.zeros(50), yes)
    np.testing.assert_allclose(1 / variance + 1 / spread, 1 / v)
    np.testing.assert_allclose(mean / variance + z / spread, m / v)
    np.testing.assert_allclose(left_out(m, np.zeros(50), v, yes), (mean, variance))


def test_the_slope_is_that_of_the_answers_and_one_without_many():
    rng = np.random.default_rng(5)
    eta = 2.0 * rng.standard_normal(20_000)
    yes = (rng.random(20_000) < expit(eta)).astype(float)
    sure, once = np.zeros(20_000), np.ones(20_000)
    assert slope(eta, sure, yes, once) == pytest.approx(1.0, abs=0.03)
    assert slope(eta / 1.5, sure, yes, once) == pytest.approx(1.5, rel=0.05)
    few = slice(8)
    assert slope(eta[few] / 1.5, sure[few], yes[few], once[few]) == pytest.approx(1.0, abs=0.05)
    twice = slope(np.tile(eta, 2), np.tile(sure, 2), np.tile(yes, 2), np.ones(40_000))
    assert slope(eta, sure, yes, 2 * once) == pytest.approx(twice, rel=1e-4)


def test_votes_of_two_parties_with_few_answers_are_said_more_surely():
    """Five votes a column: the fit alone is too timid, and its left-out answers tell."""
    rng = np.random.default_rng(6)
    party = np.where(np.arange(100) < 50, 1.0, -1.0)
    lean = 6.0 * np.sign(rng.standard_normal(500))
    Y = (rng.random((100, 500)) < expit(np.outer(party, lean) + 0.5)).astype(float)
    i, j = np.nonzero(Y >= 0)
    kept, held = Observations(i, j, Y[i, j], Y.shape).split(0.95, rng)
    found = low_rank(kept, likelihood="binary")
    by = found.report["slope"]
    assert by > 1.2
    timid = replace(replace(found, answers=None).scaled(1 / by), answers=found.answers)
    assert log_loss(found, held) < 0.95 * log_loss(timid, held)


def test_probabilities_beat_the_clipped_gaussian_fit():
    P, seen, held = votes(120, 90, 0.4, seed=2)
    found, plain = low_rank(seen, likelihood="binary"), low_rank(seen)
    clipped = np.clip(plain.entries(held.rows, held.cols), 0.01, 0.99)
    gaussian = -np.mean(np.log(np.where(held.values == 1, clipped, 1 - clipped)))
    assert log_loss(found, held) < gaussian
    assert rmse(found.to_dense(), P) < rmse(np.clip(plain.to_dense(), 0, 1), P)
    assert np.all((found.to_dense() > 0) & (found.to_dense() < 1))


def test_everything_speaks_in_answers():
    _, seen, held = votes(values=(-1.0, 1.0))
    found = complete(seen)
    i, j = held.rows[:7], held.cols[:7]
    assert found.report["reasons"][0] == "two-valued answers: fitted as probabilities"
    np.testing.assert_allclose(found.entries(i, j), 2 * found.probability(i, j) - 1)
    np.testing.assert_allclose(found.row(3), found.to_dense()[3])
    np.testing.assert_allclose(found @ np.eye(50)[:, :2], found.to_dense()[:, :2])
    rows, cols, top = found.top(1)
    assert top[0] == found.to_dense().max() == found.entry(int(rows[0]), int(cols[0]))
    assert np.all(np.sign(found.latent(i, j)) == np.sign(found.entries(i, j)))
    sure = np.sqrt(np.maximum(1 - found.entries(i, j) ** 2, 0))
    np.testing.assert_allclose(found.deviation(i, j), sure)
    turned = found.transposed()
    np.testing.assert_allclose(turned.entries(j, i), found.entries(i, j))


def test_binary_results_are_saved_and_rows_folded_in(tmp_path):
    _, seen, held = votes(90, 60, 0.5, seed=5)
    old, new = seen.rows < 80, seen.rows >= 80
    kept = Observations(seen.rows[old], seen.cols[old], seen.values[old], (80, 60))
    found = complete(kept)
    found.save(tmp_path / "x.npz")
    again = LowRank.load(tmp_path / "x.npz")
    i, j = held.rows[held.rows < 80], held.cols[held.rows < 80]
    np.testing.assert_array_equal(again.entries(i, j), found.entries(i, j))
    np.testing.assert_array_equal(again.levels(i, j, 0.8), found.levels(i, j, 0.8))
    assert again.bounds == (0.0, 1.0)
    more = Observations(seen.rows[new] - 80, seen.cols[new], seen.values[new], (10, 60))
    folded = again.fold_in(more)
    whole = low_rank(seen, likelihood="binary")
    assert rmse(folded.to_dense(), whole.to_dense()[80:]) < 0.1
    with pytest.raises(DataError, match="answers must be 0 or 1, got 3"):
        again.fold_in(Observations([0], [0], [3.0], (1, 60)))


def test_sets_and_intervals_of_votes_cover():
    _, seen, held = votes(200, 100, 0.4, seed=7)
    found = complete(seen)
    came = (held.values == 1).astype(int)
    for level in (0.8, 0.9, 0.97):
        inside = found.levels(held.rows, held.cols, level)[np.arange(len(held)), came]
        assert level - 0.02 < inside.mean() < level + 0.03
        low, high = found.interval(held.rows, held.cols, level)
        np.testing.assert_array_equal((low <= held.values) & (held.values <= high), inside)


def test_answers_of_one_value_do_not_run_away():
    seen = Observations.from_dense(np.where(np.eye(12) == 1, np.nan, 1.0))
    found = low_rank(seen, likelihood="binary")
    assert np.all(found.entries(np.arange(12), np.arange(12)) > 0.9)
    with pytest.raises(DataError, match="needs answers of two values, got 3"):
        low_rank(Observations.from_dense([[0.0, 1.0, 2.0]]), likelihood="binary")


def test_a_tiny_side_is_chosen_by_held_out_loss():
    rng = np.random.default_rng(3)
    Y = (rng.random((5, 200)) < expit(2 * rng.standard_normal(200))).astype(float)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    found = complete(Y)
    assert "held-out log-loss" in " ".join(found.report["reasons"])
    assert found.probability(0, 0).shape == ()
    assert 0 <= float(found.probability(0, 0)) <= 1


# bounds and levels ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 10**6), st.floats(0.05, 0.99), st.sampled_from(["declared", "levels", "yes"]))
@settings(max_examples=12, deadline=None)
def test_no_interval_leaves_its_bounds(seed, level, kind):
    rng = np.random.default_rng(seed)
    A = 3 + logits(15, 12, seed) + 0.5 * rng.standard_normal((15, 12))
    Y, bounds = np.clip(A, 1, 5), (1.0, 5.0)
    if kind == "levels":
        Y = np.clip(np.round(A), 1, 5)
    elif kind == "yes":
        Y, bounds = (A > 3).astype(float), (0.0, 1.0)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    found = complete(Y, bounds=bounds)
    for of in {"answer", found.interval_of}:  # the truth where it can be told
        low, high = found.interval(np.arange(15)[:, None], np.arange(12), level, of)
        assert np.all((bounds[0] <= low) & (low <= high) & (high <= bounds[1]))


def test_bounds_are_declared_or_seen_and_the_certificate_says_which():
    rng = np.random.default_rng(0)
    Y = np.clip(np.round(3 + logits(40, 30, 0)), 1, 5)
    Y[rng.random(Y.shape) < 0.4] = np.nan
    seen, declared = complete(Y), complete(Y, bounds=(0, 6))
    assert seen.bounds == (1.0, 5.0)
    assert "observed" in seen.certificate.statement
    assert declared.bounds == (0.0, 6.0)
    assert "declared" in declared.certificate.statement
    np.testing.assert_array_equal(seen.to_dense(), declared.to_dense())  # centres as they are
    assert complete(Y, bounds=(-np.inf, np.inf)).certificate is None
    with pytest.raises(DataError, match=r"bounds 2..5, got 1; widen"):
        complete(Y, bounds=(2, 5))
    with pytest.raises(ParameterError, match="a lower and a higher number"):
        range_of(Y[~np.isnan(Y)], (5, 1))


def test_levels_are_few_values_that_are_all_used():
    rng = np.random.default_rng(0)
    ratings = rng.choice([1.0, 2, 3, 4, 5], 500, p=[0.06, 0.11, 0.27, 0.35, 0.21])
    np.testing.assert_array_equal(levels_of(ratings), [1, 2, 3, 4, 5])
    assert levels_of(rng.poisson(1.0, 500).astype(float)) is None  # counts tail off
    assert levels_of(rng.standard_normal(500)) is None
    assert levels_of(np.array([1.0, 2.0, 1.0])) is None  # too few to tell
    assert likelihood_of(ratings, "auto") == "ordinal"
    assert likelihood_of(np.tile([0.0, 1.0], 20), "auto") == "binary"
    assert likelihood_of(ratings, "gaussian") == "gaussian"
    with pytest.raises(DataError, match="at most 50 different values, got 500"):
        likelihood_of(rng.standard_normal(500), "ordinal")
    with pytest.raises(ParameterError, match="likelihood must be one of"):
        likelihood_of(ratings, "poisson")
    with pytest.raises(ParameterError, match="soft-impute knows no likelihood"):
        complete(np.array([[0.0, 1.0], [1.0, np.nan]]), "soft-impute", likelihood="binary")


def test_cuts_are_those_that_made_the_levels():
    rng = np.random.default_rng(0)
    m, s = 2.0 * rng.standard_normal(20_000), rng.uniform(0.5, 1.5, 20_000)
    cuts = np.array([-2.0, 0.5, 1.0])
    level = np.searchsorted(cuts, m + 0.7 * s * rng.logistic(size=len(m)))
    found, scale = fit_cuts(m, s, level, 4)
    np.testing.assert_allclose(found, cuts, atol=0.06)
    assert scale == pytest.approx(0.7, rel=0.05)
    chances = Levels(np.arange(4.0), found, scale).probabilities(m, s)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(chances.mean(axis=0), np.bincount(level) / len(m), atol=0.01)


def test_sets_hold_the_likeliest_values():
    chances = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])
    np.testing.assert_allclose(likelier(chances), [[0, 0.8, 0.5], [0.8, 0, 0.9]])
    levels = Levels(np.arange(3.0), np.array([0.0, 1.0]))
    assert levels.sets(chances, 0.6).tolist() == [[True, False, True], [False, True, False]]


def test_ordinal_answers_have_probabilities_and_sets_that_cover():
    rng = np.random.default_rng(1)
    A = 3 + logits(150, 100, 4) + 0.5 * rng.standard_normal((150, 100))
    Y = np.searchsorted([1.5, 2.2, 3.9, 4.3], A) + 1.0
    known = rng.random(Y.shape) < 0.4
    found = complete(np.where(known, Y, np.nan))
    assert "few levels" in found.report["reasons"][0]
    i, j = np.nonzero(~known)
    came = Y[i, j].astype(int) - 1
    chances = found.probability(i, j)
    assert chances.shape == (len(i), 5)
    inside = found.levels(i, j, 0.9)[np.arange(len(i)), came]
    assert 0.88 < inside.mean() < 0.92
    middle, spread = found.entries(i, j), found.deviation(i, j)
    below = ndtr((np.arange(1.5, 5) - middle[:, None]) / spread[:, None])
    even = np.diff(below, axis=1, prepend=0.0, append=1.0)
    score, plain = (-np.log(p[np.arange(len(i)), came] + 1e-12).mean() for p in (chances, even))
    assert score < 0.99 * plain


# features -------------------------------------------------------------------------------------------------------------


def test_a_half_sweep_with_features_is_the_dense_posterior():
    rng = np.random.default_rng(0)
    seen, F, _ = described(9, 6, 0.6)
    fit = EmpiricalBayes.of(seen.rows, seen.cols, seen.values, np.zeros(0), seen.shape, 1e-10)
    fit.rows.describe(F)
    fit.grow(rng.standard_normal((9, 2)), rng.standard_normal((6, 2)))
    B = rng.standard_normal((3, 3))
    fit.cols.average = B @ B.T / 10
    W = fit.rows.features.weights = rng.standard_normal((3, 3))
    prior_mean, prior_cov = rng.standard_normal(3), np.diag([1.0, 2.0, 0.5])
    fit.rows.prior_mean, fit.rows.prior_cov = prior_mean, prior_cov
    Z, C, t2 = fit.cols.mean.copy(), fit.cols.average, fit.t2
    fit._half(fit.rows, fit.cols, keep=True)
    squares = 0.0
    for row in range(9):
        P = np.linalg.inv(prior_cov)
        h = P @ (prior_mean + F[row] @ W)
        at = np.flatnonzero(seen.rows == row)
        for t in at:
            v, z = np.r_[Z[seen.cols[t], :2], 1.0], Z[seen.cols[t]]
            E = np.zeros((3, 3))
            E[:2, :2] = C[:2, :2]
            P = P + (np.outer(v, v) + E) / t2
            h = h + (v * (seen.values[t] - z[2]) - np.r_[C[:2, 2], 0.0]) / t2
        x, Cx = np.linalg.solve(P, h), np.linalg.inv(P)
        np.testing.assert_allclose(fit.rows.mean[row], x, rtol=1e-9)
        for t in at:
            v, u, z = np.r_[Z[seen.cols[t], :2], 1.0], np.r_[x[:2], 1.0], Z[seen.cols[t]]
            spread = v @ Cx @ v + u @ C @ u + np.sum(Cx[:2, :2] * C[:2, :2])
            squares += ((seen.values[t] - x[:2] @ z[:2] - x[2] - z[2]) ** 2 + spread) / t2
    step = t2 + (squares - len(seen)) * t2 / len(seen)
    assert fit.t2 == pytest.approx(max(step, 0.2 * t2), rel=1e-9)


def test_weights_are_those_of_ridge_regression():
    rng = np.random.default_rng(1)
    F, times = rng.standard_normal((50, 4)), np.r_[np.ones(45), np.zeros(5)]
    x = F @ rng.standard_normal((4, 2)) + 0.1 * rng.standard_normal((50, 2)) + 1.0
    features = LineFeatures(F, times)
    S = np.array([[0.5, 0.1], [0.1, 0.3]])
    mean, _ = features.learn(x, S)
    G, X = F[:45] - F[:45].mean(axis=0), x[:45] - x[:45].mean(axis=0)
    ridge = np.linalg.solve(G.T @ G + features.alpha * np.eye(4), G.T @ X)
    np.testing.assert_allclose(features.weights, ridge, rtol=1e-8)
    np.testing.assert_allclose(mean, x[:45].mean(axis=0) - F[:45].mean(axis=0) @ ridge)


def test_features_help_thin_and_cold_rows_and_noise_does_no_harm():
    seen, F, A = described()
    cold = np.isin(seen.rows, np.arange(10))
    kept = seen.take(~cold)
    plain, found = low_rank(kept), low_rank(kept, row_features=F)
    assert rmse(found.to_dense()[10:], A[10:]) < 0.95 * rmse(plain.to_dense()[10:], A[10:])
    assert rmse(found.to_dense()[:10], A[:10]) < 0.7 * rmse(plain.to_dense()[:10], A[:10])
    noise = np.random.default_rng(5).standard_normal((80, 20))
    with_noise = low_rank(seen, row_features=noise)
    assert rmse(with_noise.to_dense(), A) < 1.03 * rmse(low_rank(seen).to_dense(), A)
    turned = low_rank(kept.transposed(), col_features=F)
    assert rmse(turned.to_dense(), A.T) < 1.05 * rmse(found.to_dense(), A)


def test_new_rows_are_folded_in_by_their_features_alone(tmp_path):
    seen, F, A = described(120, 40, 0.4)
    kept = seen.take(seen.rows < 100)
    kept = Observations(kept.rows, kept.cols, kept.values, (100, 40))
    found = low_rank(kept, row_features=F[:100])
    found.save(tmp_path / "x.npz")
    none = np.zeros(0, np.int64)
    new = Observations(none, none, np.zeros(0), (20, 40))
    folded = LowRank.load(tmp_path / "x.npz").fold_in(new, features=F[100:])
    assert rmse(folded.to_dense(), A[100:]) < 0.6 * rmse(found.fold_in(new).to_dense(), A[100:])
    with pytest.raises(DataError, match="must be 20 lines"):
        found.fold_in(new, features=F)
    with pytest.raises(ParameterError, match="had no features"):
        low_rank(kept).fold_in(new, features=F[100:])


def test_cold_lines_have_intervals_of_their_own():
    seen, F, _ = described(300, 60, 0.3, noise=0.5)
    cold = seen.rows < 60
    found = complete(seen.take(~cold), row_features=F)
    assert "hidden rows" in found.report["cold_interval"]
    test = seen.take(cold)
    low, high = found.interval(test.rows, test.cols, 0.9)
    assert 0.83 < np.mean((low <= test.values) & (test.values <= high)) < 0.96
    warm, cool = (np.ptp(found.interval(r, 0, 0.9)) for r in (100, 0))
    assert cool > warm
    plain = complete(seen.take(~cold))  # also without features, of the rows alone
    assert "hidden rows" in plain.report["cold_interval"]
    assert "columns" not in plain.report["cold_interval"]
    low, high = plain.interval(test.rows, test.cols, 0.9)
    assert 0.83 < np.mean((low <= test.values) & (test.values <= high)) < 0.96
    assert "cold_interval" not in complete(seen).report


def test_lines_never_seen_look_like_those_that_are_seen_often():
    rng = np.random.default_rng(2)
    quality = rng.standard_normal(60)
    A = quality + 0.5 * rng.standard_normal((100, 1))
    known = rng.random(A.shape) < expit(2 * quality - 1)  # what is good is looked at more
    known[:, :5] = False
    found = low_rank(Observations.from_dense(np.where(known, A, np.nan)))
    weighted = (known.sum(axis=0) @ quality) / known.sum()
    assert found.to_dense()[:, :5].mean() == pytest.approx(weighted, abs=0.15)
    assert found.to_dense()[:, :5].mean() > quality[5:].mean() + 0.2


def test_frames_are_matched_by_label_and_coded():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"user": ["c", "a", "z"], "age": [30.0, None, 50.0], "job": ["x", "y", None]}
    )
    coded, F = Features.of(frame, ("a", "b", "c"), 3, "row")
    assert coded.names == ("age", "age", "job", "job")
    assert coded.kinds == ("number", "missing", "text", "text")
    assert coded.texts == ("", "", "x", "y")
    assert F.shape == (3, 4)
    assert F[0, 0] == F[1, 0] == 0.0  # a gap is the mean
    np.testing.assert_allclose(coded.encode(frame, ("a", "b", "c"), 3), F)
    long = pl.DataFrame({"id": list(range(60)), "title": [f"t{k}" for k in range(60)]})
    with pytest.raises(DataError, match="column 'title' of the features of rows has 60 different"):
        Features.of(long, None, 60, "row")
    with pytest.raises(DataError, match="none of"):
        Features.of(frame, ("q", "r"), 2, "row")


def test_labels_that_only_features_name_become_lines():
    pl = pytest.importorskip("polars")
    seen, F, A = described(60, 30, 0.5)
    names = [f"r{k}" for k in range(60)]
    kept = seen.take(seen.rows < 50)
    kept = Observations(
        kept.rows, kept.cols, kept.values, (50, 30), row_labels=names[:50],
        col_labels=[f"c{k}" for k in range(30)],
    )  # fmt: skip
    frame = pl.DataFrame({"row": names, **{f"f{k}": F[:, k] for k in range(3)}})
    found = complete(kept, row_features=frame)
    assert found.shape == (60, 30)
    i, _ = found.locate(["r55"], ["c3"])
    assert found.row_counts[i] == 0
    assert rmse(found.to_dense()[50:], A[50:]) < 0.7 * rmse(A[:50].mean(axis=0), A[50:])


def test_kernels_and_wide_sparse_features_say_what_their_features_say():
    seen, F, A = described(60, 30, 0.3)
    kept = seen.take(seen.rows >= 8)
    K = F @ F.T
    by_kernel = low_rank(kept, row_features=K)
    by_array = low_rank(kept, row_features=F)
    wide = csr_array(np.hstack([F, np.zeros((60, 2000))]))
    by_sparse = low_rank(kept, row_features=wide)
    errors = [rmse(f.to_dense()[:8], A[:8]) for f in (by_array, by_kernel, by_sparse)]
    plain = rmse(low_rank(kept).to_dense()[:8], A[:8])
    assert max(errors) < 0.8 * plain
    coded, values = Features.of(K, None, 60, "row")
    np.testing.assert_allclose(coded.encode(K[:5], None, 5), values[:5], atol=1e-9)


@pytest.mark.parametrize("shape", [(30, 60), (60, 30)])
def test_conjugate_gradients_learn_what_the_eigenvectors_do(shape):
    rng = np.random.default_rng(3)
    m, d = shape
    F, times = rng.standard_normal((m, d)), np.where(np.arange(m) < 4, 0.0, 1.0)
    times[5] = 2.0
    x = F[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((m, 2))
    S = np.array([[2.0, 0.3], [0.3, 0.5]])
    dense, wide = LineFeatures(F, times), WideFeatures(csr_array(F), times)
    for _ in range(3):  # from one sweep to the next
        (mean, gain), (again, same) = dense.learn(x, S), wide.learn(x, S)
        np.testing.assert_allclose(wide.weights, dense.weights, atol=2e-4)
        np.testing.assert_allclose(same, gain, rtol=2e-3, atol=2e-3)
        assert wide.alpha == pytest.approx(dense.alpha, rel=1e-3)
        assert wide.loss == pytest.approx(dense.loss, rel=1e-3)
        np.testing.assert_allclose(again, mean, atol=1e-3)
    np.testing.assert_allclose(wide.means(again), dense.means(mean), atol=2e-3)


@pytest.mark.slow
def test_sums_over_eigenvalues_by_lanczos():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((1100, 1500)) * np.linspace(0.1, 2.0, 1500)
    wide = WideFeatures(F, np.ones(1100))
    assert len(wide._nodes) < 1100  # it did not compute them all
    centred = F - F.mean(axis=0)
    sizes = np.linalg.eigvalsh(centred @ centred.T)
    for alpha in (10.0, 1000.0):
        wide.alpha = alpha
        assert wide._gamma() == pytest.approx(np.sum(sizes / (sizes + alpha)), rel=0.02)


@pytest.mark.slow
def test_a_hundred_thousand_sparse_features_are_fitted_and_folded_in(tmp_path):
    rng = np.random.default_rng(1)
    m, d = 150, 100_000
    told = rng.integers(40, size=m)  # each row has one word that matters and many that do not
    i = np.repeat(np.arange(m), 31)
    j = np.column_stack([told, rng.integers(40, d, size=(m, 30))]).ravel()
    X = csr_array((np.tile(np.r_[6.0, np.ones(30)], m), (i, j)), shape=(m, d))
    A = 3.0 * rng.standard_normal((40, 2))[told] @ rng.standard_normal((2, 20))
    known = (rng.random(A.shape) < 0.5) & (np.arange(m) >= 30)[:, None]
    i, j = np.nonzero(known)
    noise = 0.3 * rng.standard_normal(len(i))
    seen = Observations.from_triplets(i, j, A[i, j] + noise, A.shape)
    found = low_rank(seen, row_features=X)
    found.save(tmp_path / "wide.npz")
    again = LowRank.load(tmp_path / "wide.npz")
    none = Observations(np.zeros(0, int), np.zeros(0, int), np.zeros(0), (30, 20))
    folded = again.fold_in(none, features=X[:30])
    np.testing.assert_allclose(folded.to_dense(), found.to_dense()[:30], atol=1e-8)
    coded, Z = Features.of(X, None, m, "row")
    sizes, vectors = np.linalg.eigh((Z @ Z.T).toarray())
    few = vectors * np.sqrt(np.maximum(sizes, 0.0))  # the same products, 150 features
    dense = low_rank(seen, row_features=(coded, few))
    np.testing.assert_allclose(found.to_dense(), dense.to_dense(), atol=0.02 * A.std())
    assert rmse(found.to_dense()[:30], A[:30]) < 0.8 * rmse(low_rank(seen).to_dense()[:30], A[:30])


def test_binary_with_features_uses_averages_and_says_so():
    rng = np.random.default_rng(4)
    F = rng.standard_normal((100, 2))
    P = expit(2 * F @ rng.standard_normal((2, 40)))
    Y = (rng.random(P.shape) < P).astype(float)
    Y[rng.random(P.shape) < 0.7] = np.nan
    Y[:10] = np.nan
    found = low_rank(Observations.from_dense(Y), likelihood="binary", row_features=F)
    plain = low_rank(Observations.from_dense(Y), likelihood="binary")
    assert found.report["covariances"] == "their average"
    assert plain.report["covariances"] == "each line's own"
    assert rmse(found.to_dense()[:10], P[:10]) < 0.8 * rmse(plain.to_dense()[:10], P[:10])


# intervals that fit each line -----------------------------------------------------------------------------------------


def test_the_rank_of_noiseless_data_is_theirs():
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((120, 3)) @ rng.standard_normal((3, 90))
        X = np.where(rng.random(A.shape) < 0.4, A, np.nan)
        assert low_rank(Observations.from_dense(X)).rank == 3


def test_noisy_rows_get_wider_intervals_and_even_noise_is_left_alone():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((120, 2)) @ rng.standard_normal((2, 200))
    sd = np.where(np.arange(120) < 30, 1.5, 0.5)
    Y = A + sd[:, None] * rng.standard_normal(A.shape)
    known = rng.random(A.shape) < 0.5
    found = conformal(Observations.from_dense(np.where(known, Y, np.nan)))
    assert "a scale for every row and column" in found.report["interval"]
    low, high = found.interval(np.arange(120)[:, None], np.arange(200), 0.9)
    inside = np.where(known, np.nan, (low <= Y) & (high >= Y))
    by_row = np.nanmean(inside, axis=1)
    assert 0.87 < np.nanmean(inside) < 0.93
    assert np.mean(by_row < 0.8) < 0.1
    assert np.mean(high - low, axis=1)[:30].min() > 1.5 * np.mean(high - low, axis=1)[30:].mean()
    turned = found.transposed()
    np.testing.assert_allclose(turned.interval(7, 40).low, found.interval(40, 7).low, rtol=0.5)
    new = Observations([0, 1, 2], [0, 0, 0], [0.5, 0.2, 0.1], (120, 1))
    assert found.fold_in(new, "columns").interval(3, 0).low.shape == ()
    even = A + 0.5 * rng.standard_normal(A.shape)
    plain = conformal(Observations.from_dense(np.where(known, even, np.nan)))
    assert "scale" not in plain.report["interval"]


# the benchmark in short (make bench NAME=answers has ten splits and all sets) ------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(datasets.local("senate_106/senate_106.npz") is None, reason="no data here")
def test_senate_votes_are_foretold_better_as_probabilities():
    votes_seen = datasets.votes("senate")
    known = np.random.default_rng(91_100).random(len(votes_seen)) < 0.15
    kept, held = votes_seen.take(known), votes_seen.take(~known)
    found, plain = low_rank(kept, likelihood="binary"), low_rank(kept)
    yes = (held.values + 1) / 2
    losses = []
    for clip in (0.003, 0.01, 0.03):  # the best of them for the Gaussian fit
        p = np.clip((plain.entries(held.rows, held.cols) + 1) / 2, clip, 1 - clip)
        losses.append(-np.mean(np.log(np.where(yes == 1, p, 1 - p))))
    assert log_loss(found, held) < 0.985 * min(losses)


@pytest.mark.slow
@pytest.mark.skipif(datasets.local("zoo/zoo.npz") is None, reason="no data here")
@pytest.mark.parametrize(("unseen", "bar"), [("animals", 0.70), ("traits", 0.86)])
def test_traits_of_animals_follow_from_their_kind(unseen, bar):
    seen = datasets.zoo()
    with np.load(str(datasets.local("zoo/zoo.npz"))) as file:
        kinds = np.unique(file["type"], return_inverse=True)[1]
        F = np.column_stack([np.eye(7)[kinds], file["legs"]])
    ratios = []
    for seed in range(91_100, 91_106):
        rng = np.random.default_rng(seed)
        known = rng.random(len(seen)) < 0.4  # of the traits of every animal
        if unseen == "animals":
            known = (rng.random(101) >= 0.2)[seen.rows]
        kept, held = seen.take(known), seen.take(~known)
        told, plain = low_rank(kept, row_features=F), low_rank(kept)
        errors = [rmse(f.entries(held.rows, held.cols), held.values) for f in (told, plain)]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < bar


def counts(seed=0, m=80, n=50):
    """Return rates of rank 1 and counts drawn from them."""
    rng = np.random.default_rng(seed)
    rate = np.exp(1.5 + np.add.outer(rng.standard_normal(m), rng.standard_normal(n)))
    return rate, rng.poisson(rate).astype(float)


def test_counts_are_fitted_as_logarithms_and_answered_as_counts(tmp_path):
    _, Y = counts()
    known = np.random.default_rng(1).random(Y.shape) < 0.4
    X = np.where(known, Y, np.nan)
    found = complete(X, likelihood="counts")
    assert "counts: fitted as log1p of themselves" in found.report["reasons"]
    i, j = np.nonzero(~known)
    log = complete(np.log1p(X), likelihood="gaussian", bounds=(-np.inf, np.inf))
    expected = np.maximum(np.expm1(log.entries(i, j)), 0.0)
    np.testing.assert_allclose(found.entries(i, j), expected, rtol=1e-9)
    np.testing.assert_allclose(found.to_dense()[i, j], expected, rtol=1e-9)
    np.testing.assert_allclose(found.latent(i, j), log.entries(i, j), rtol=1e-9)
    low, high = found.interval(i, j, 0.9)
    theirs = log.interval(i, j, 0.9)
    np.testing.assert_allclose(high, np.expm1(theirs.high), rtol=1e-9)
    assert low.min() >= 0.0
    assert 0.86 < np.mean((low <= Y[i, j]) & (Y[i, j] <= high)) < 0.94
    as_numbers = complete(X, likelihood="gaussian")
    assert any("counts" in hint for hint in as_numbers.report["hints"])
    found.save(tmp_path / "counts.npz")
    again = LowRank.load(tmp_path / "counts.npz")
    new = Observations.from_dense(X[:3])
    np.testing.assert_allclose(again.fold_in(new).to_dense(), found.fold_in(new).to_dense())
    off = np.abs(found.fold_in(new).to_dense() - found.to_dense()[:3]) / (1 + found.to_dense()[:3])
    assert np.median(off) < 0.1


def test_what_is_no_count_is_refused():
    X = np.array([[1.0, 2.0], [-1.0, 3.0]])
    with pytest.raises(DataError, match="counts must not be below 0"):
        complete(X, likelihood="counts")
