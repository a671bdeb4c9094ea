"""Looking at chosen attributes: MBEG's parts, the allocation by size, their bounds, and the rivals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise.active import bandit_subspace, literal_bandit_subspace, subspace
from entrywise.active.subspaces.bandit import draw_pairs, pair_estimate
from entrywise.active.subspaces.subspace import _draw
from entrywise.bounds import subspace as bounds
from entrywise.exceptions import DataError, ParameterError
from entrywise.gallery import sample_law
from entrywise.linalg.capped import decompose, project
from entrywise.oracles import FunctionOracle, MatrixOracle, StreamOracle
from entrywise.passive import partial_pca
from entrywise.passive.trackers import full_pca, grouse, impute_pca, petrels, zero_fill_pca
from entrywise.run import Run


def in_hull(d, k, rng, spread=1.0):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    w = np.exp(project(spread * rng.standard_normal(d), k))
    return (Q * w) @ Q.T


def chances(W, k, alpha):
    d = len(W)
    w = np.diagonal(W)
    return (1 - alpha) * (w[:, None] + w) / (2 * d * k) + alpha / d**2


# ---------------------------------------------------------------- MBEG's parts


@given(st.integers(2, 9), st.integers(0, 10**6), st.floats(0.01, 0.5))
def test_estimate_of_a_pair_has_no_bias(d, seed, alpha):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, d))
    W, x = in_hull(d, k, rng), rng.standard_normal(d)
    p = chances(W, k, alpha)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    expected = np.zeros((d, d))
    for s in range(d):
        for q in range(d):
            expected += p[s, q] * pair_estimate(
                d, np.array([s]), np.array([q]), np.array([x[s] * x[q] / p[s, q]])
            )
    assert np.abs(expected - np.outer(x, x)).max() <= 1e-12 * max(1.0, float(x @ x))


def test_pairs_are_drawn_by_equation_7():
    rng = np.random.default_rng(1)
    W = in_hull(6, 2, rng, 2.0)
    n = 400_000
    s, q = draw_pairs(W, 2, 0.3, n, rng)
    seen = np.bincount(s * 6 + q, minlength=36).reshape(6, 6) / n
    p = chances(W, 2, 0.3)
    assert np.all(np.abs(seen - p) < 5 * np.sqrt(p / n))


@given(st.integers(2, 30), st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_projection_stays_in_the_hull_and_is_the_nearest(d, seed, spread):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, d))
    log_u = spread * rng.standard_normal(d)
    w = np.exp(project(log_u, k))
    assert w.min() >= 0.0
    assert w.max() <= 1.0
    assert w.sum() == pytest.approx(k, abs=1e-9)
    if spread <= 1.0:  # no point of the hull is nearer in relative entropy
        u = np.exp(log_u)
        distance = lambda v: np.sum(v * np.log(np.maximum(v, 1e-300) / u) - v + u)  # noqa: E731
        for _ in range(20):
            other = np.exp(project(log_u + rng.standard_normal(d), k))
            mixed = 0.9 * w + 0.1 * other
            assert distance(w) <= distance(mixed) + 1e-9


def test_projection_refuses():
    with pytest.raises(ParameterError, match=r"1\.\.2"):
        project(np.zeros(2), 3)
    np.testing.assert_allclose(np.exp(project(np.zeros(4), 4)), np.ones(4))


@given(st.integers(2, 20), st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 8.0]))
def test_decomposition_is_exact_with_at_most_d_terms(d, seed, spread):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, d))
    W = in_hull(d, k, rng, spread)
    beta, members, V = decompose(W, k)
    assert len(beta) <= d
    assert beta.min() > 0
    assert beta.sum() == pytest.approx(1.0)
    assert all(len(J) == k for J in members)
    total = sum(b * V[:, J] @ V[:, J].T for b, J in zip(beta, members, strict=True))
    assert np.abs(total - W).max() <= 1e-9


@pytest.mark.slow
def test_literal_mbeg_learns_and_carries_theorem_7():
    law = bounds.coins_law(5, 1, 1 / 16, np.random.default_rng(3))
    m = 3 * bounds.mbeg_minimum(5, 2)
    X = law.draw(m, np.random.default_rng(0))
    top = ew.play(
        literal_bandit_subspace(5, rank=1, samples=m, output="top", rng=0), MatrixOracle(X)
    )
    assert law.excess(top.components) < 0.05
    assert top.certificate.value == pytest.approx(math.sqrt(8 * 7 * math.log(5) / (2 * m)))
    drawn = ew.play(literal_bandit_subspace(5, rank=1, samples=m, rng=0), MatrixOracle(X))
    assert drawn.components.shape == (1, 5)
    big = ew.play(literal_bandit_subspace(5, rank=1, samples=m, rng=0), MatrixOracle(3.0 * X))
    assert big.certificate.vacuous
    assert big.certificate.checked == ()


def test_practical_mbeg_finds_a_line_at_any_scale():
    law = sample_law("few", 12, 1, seed=2)
    X = law.draw(6000, np.random.default_rng(1))
    found = [
        ew.play(bandit_subspace(12, rank=1, per_sample=4, samples=6000, rng=5), StreamOracle(c * X))
        for c in (1.0, 1e6)
    ]
    assert found[0].captured(law.moments) > 0.97
    np.testing.assert_allclose(found[0].components, found[1].components, atol=1e-8)
    assert found[0].explained_variance[0] == pytest.approx(
        np.linalg.eigvalsh(law.moments)[-1], rel=0.2
    )


def test_mbeg_looks_at_no_more_than_r_attributes_a_sample():
    oracle = MatrixOracle(np.random.default_rng(0).standard_normal((300, 5)))
    run = Run(bandit_subspace(5, rank=2, per_sample=4, samples=300, updates=30, rng=0))
    while not run.finished:
        batch = run.ask()
        assert np.bincount(batch.rows - batch.rows.min()).max() <= 4
        assert len(set(zip(batch.rows.tolist(), batch.cols.tolist(), strict=True))) == len(batch)
        run.tell(oracle(batch))
    assert run.result.report["samples"] == 300


# ---------------------------------------------------------------- the default


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bar"), [("few", 0.2), ("power", 0.6), ("flat", 1.2)])
def test_chosen_attributes_beat_uniform_ones(kind, bar):
    ratios = []
    for seed in (101, 102, 103):
        law = sample_law(kind, 40, 2, seed)
        X = law.draw(8000, np.random.default_rng(seed))
        loss = [
            law.excess(
                ew.play(
                    subspace(40, rank=2, per_sample=2, budget=16_000, floor=f, rng=seed),
                    MatrixOracle(X),
                ).components
            )
            for f in (0.2, 1.0)
        ]
        ratios.append(loss[0] / loss[1])
    assert np.median(ratios) <= bar


def test_a_single_attribute_is_found_in_d_over_r_looks():
    for d in (16, 128):
        law = bounds.spike_law(d, d // 3)
        wins = 0
        for seed in range(10):
            m = 3 * d // 2
            X = law.draw(m, np.random.default_rng(seed))
            found = ew.play(subspace(d, rank=1, per_sample=4, samples=m, rng=seed), MatrixOracle(X))
            wins += law.excess(found.components) < 1e-9
        assert wins >= 9


def test_prices_steer_the_looks_and_the_budget_holds():
    d = 10
    law = sample_law("flat", d, 2, seed=4)
    X = law.draw(20_000, np.random.default_rng(1))
    price = np.r_[np.full(5, 1.0), np.full(5, 16.0)]
    prices = ew.Prices(entry=price[None, :])
    plan = subspace(d, rank=2, per_sample=3, budget=20_000.0, prices=prices, rng=0)
    assert plan.shape == (None, d)
    found = ew.play(plan, MatrixOracle(X))
    assert 0.98 * 20_000 <= found.cost <= 20_000
    looks = np.array(found.report["looks"])
    assert found.cost == pytest.approx(float(looks @ price))
    assert looks[:5].mean() > 1.8 * looks[5:].mean()
    assert found.captured(law.moments) > 0.98
    free = ew.play(
        subspace(d, rank=2, per_sample=3, samples=1000, budget=20_000.0, rng=0), MatrixOracle(X)
    )
    assert free.cost == 3000.0


def test_failed_looks_are_left_out():
    law = sample_law("flat", 8, 2, seed=0)
    X = law.draw(3000, np.random.default_rng(0))
    rng = np.random.default_rng(5)
    oracle = FunctionOracle(lambda i, j: None if rng.random() < 0.3 else X[i, j])
    found = ew.play(subspace(8, rank=2, per_sample=4, samples=3000, rng=0), oracle)
    assert found.captured(law.moments) > 0.98
    assert 0.65 < found.report["attributes_seen"] / 12_000 < 0.75


def test_centred_looks_find_the_subspace_about_the_mean():
    law = sample_law("flat", 10, 2, seed=1)
    X = law.draw(6000, np.random.default_rng(0)) + np.linspace(-5, 5, 10)
    found = ew.play(
        subspace(10, rank=2, per_sample=4, samples=6000, center=True, rng=0), MatrixOracle(X)
    )
    assert found.captured(law.moments) > 0.99
    np.testing.assert_allclose(found.mean, np.linspace(-5, 5, 10), atol=0.1)


def test_drawing_without_replacement_follows_the_weights():
    rng = np.random.default_rng(0)
    w = np.array([4.0, 2.0, 1.0, 1.0])
    seen = _draw(60_000, w, 2, rng)
    assert np.all(seen[:, 0] < seen[:, 1])
    p = w / w.sum()
    first = p + sum(p[j] * p / (1 - p[j]) * (np.arange(4) != j) for j in range(4))
    share = np.bincount(seen.ravel(), minlength=4) / len(seen)
    np.testing.assert_allclose(share, first, atol=0.01)
    np.testing.assert_array_equal(_draw(3, w, 4, rng), np.tile(np.arange(4), (3, 1)))


def test_nothing_bought_still_gives_a_subspace():
    for plan in (
        subspace(6, rank=2, samples=100, rng=0),
        bandit_subspace(6, rank=2, samples=100, rng=0),
    ):
        found = Run(plan).exhaust()
        assert found.status == "exhausted"
        np.testing.assert_allclose(found.components @ found.components.T, np.eye(2), atol=1e-12)


def test_zero_samples_give_a_subspace():
    zeros = MatrixOracle(np.zeros((200, 6)))
    for plan in (
        subspace(6, rank=2, samples=200, rng=0),
        bandit_subspace(6, rank=2, samples=200, rng=0),
    ):
        found = ew.play(plan, zeros)
        assert np.all(found.explained_variance == 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: subspace(5, rank=5, samples=9), "rank=5 and d=5"),
        (lambda: subspace(5, rank=0, samples=9), "rank=0"),
        (lambda: subspace(5, rank=2, per_sample=1, samples=9), "cannot tell directions apart"),
        (lambda: subspace(5, rank=2, per_sample=6, samples=9), r"2\.\.5, got 6"),
        (lambda: subspace(5, rank=2), "give budget or samples"),
        (lambda: subspace(5, rank=2, samples=0), "at least 1"),
        (lambda: subspace(5, rank=2, budget=3.0), "at least one sample of 4 attributes, 4"),
        (lambda: subspace(5, rank=2, budget=float("nan")), "budget"),
        (lambda: subspace(5, rank=2, samples=9, floor=1.5), "floor"),
        (lambda: subspace(5, rank=2, samples=9, rounds=0), "rounds"),
        (lambda: bandit_subspace(5, rank=5, samples=9), "rank=5 and d=5"),
        (lambda: bandit_subspace(5, rank=2, per_sample=3, samples=9), "even"),
        (lambda: bandit_subspace(5, rank=2), "give budget or samples"),
        (lambda: bandit_subspace(5, rank=2, budget=1.0), "at least one sample"),
        (lambda: bandit_subspace(5, rank=2, samples=0), "at least 1"),
        (
            lambda: literal_bandit_subspace(5, rank=2, samples=9),
            "Theorem 7 needs at least 575",
        ),
        (lambda: bandit_subspace(5, 2, samples=9, rank=2), "give the dimension as rank="),
        (lambda: bandit_subspace(5, rank=2, budget=1e300), "fit in memory"),
        (lambda: subspace(5, rank=2, budget=1e300), "fit in memory"),
        (lambda: bandit_subspace(5, rank=2, samples=9, output="x"), "output"),
        (lambda: bandit_subspace(5, rank=2, samples=9, eta=-1.0), "eta"),
        (lambda: bandit_subspace(5, rank=2, samples=9, alpha=2.0), "alpha"),
        (lambda: bandit_subspace(5, rank=2, samples=9, updates=0), "updates"),
        (lambda: bandit_subspace(5, rank=2, samples=9, max_square=0.0), "max_square"),
    ],
)
def test_plans_refuse_at_once(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


# ---------------------------------------------------------------- bounds and hard laws


def test_bounds_as_printed():
    assert bounds.popca_samples(50, 3, 5, 0.1) == 30_000
    assert bounds.popca_samples(50, 3, 5, 0.4, max_square=4.0) == 30_000
    assert bounds.popca_excess(50, 3, 5, 30_000) == pytest.approx(0.1)
    assert bounds.popca_excess(50, 3, 5, 30_000, max_square=4.0) == pytest.approx(0.4)
    assert bounds.popca_excess(50, 3, 5, 0) == math.inf
    assert bounds.passive_lower(50, 3, 5, 0.001) == pytest.approx(100 * 3 / 32e-6)
    assert bounds.passive_lower(50, 30, 5, 0.001) == 0.0
    assert bounds.passive_lower(50, 3, 5, 0.1) == 0.0
    assert bounds.active_lower(100, 2, 0.01) == pytest.approx(100 / (16 * 2 * 0.01))
    assert bounds.active_lower(100, 2, 0.9) == 0.0
    m = bounds.mbeg_samples(10, 2, 2, 0.01)
    assert m == math.ceil(8 * 2 * 6 * 2 / 1e-4 * math.log(10))
    assert bounds.mbeg_excess(10, 2, 2, m) == pytest.approx(0.01, rel=1e-6)
    assert bounds.mbeg_excess(10, 2, 2, 10) == math.inf
    assert [bounds.mbeg_minimum(d, 2) for d in (30, 100)] == pytest.approx([3.4e5, 1.8e7], rel=0.02)
    for bad in ((1, 1, 2), (5, 5, 2), (5, 2, 1), (5, 2, 6)):
        with pytest.raises(ParameterError):
            bounds.popca_samples(*bad, 0.1)
    with pytest.raises(ParameterError, match="epsilon"):
        bounds.popca_samples(5, 2, 2, 0.0)
    with pytest.raises(ParameterError, match="max_square"):
        bounds.popca_samples(5, 2, 2, 0.1, max_square=-1.0)


@given(st.integers(3, 2000), st.integers(1, 4), st.sampled_from([2, 4, 8]), st.floats(1e-6, 0.5))
def test_section_3_2_is_what_the_bounds_say(d, k, r, epsilon):
    k, r = min(k, d - 1), min(r, d - d % 2)
    found = bounds.compare(d, k, r, epsilon)
    left = 8 * k * (d + r) / r * k / epsilon**2 * math.log(d)
    right = 2 * d**4 * r / (d + r) * math.log(d)
    passive = (d / r) ** 2 * k / epsilon**2
    if abs(left - passive) > 1e-9 * passive:
        assert found.dimension_large == (left < passive)
    if abs(right - passive) > 1e-9 * passive:
        assert found.epsilon_small == (right < passive)
    if abs(left - right) > 1e-9 * right:
        assert found.linear_price == (right < left)
    assert found.active_is_better == (found.dimension_large and found.epsilon_small)


@pytest.mark.parametrize("pairs", [True, False])
def test_coins_law(pairs):
    rng = np.random.default_rng(0)
    law = bounds.coins_law(8, 3, 0.02, rng, pairs=pairs)
    X = law.draw(200_000, rng)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    np.testing.assert_allclose(X.T @ X / len(X), law.moments, atol=0.006)
    best = np.linalg.eigvalsh(law.moments)[-3:].sum()
    assert best == pytest.approx((1 + 16 * 0.02) / 2)
    if pairs:  # one attribute alone says nothing about the coins
        assert set(np.round(np.abs(X[X != 0]), 9)) == {round(math.sqrt(0.5), 9)}
        np.testing.assert_allclose(np.diagonal(law.moments)[:6], 1 / 6)
    with pytest.raises(ParameterError, match="k <= d / 2"):
        bounds.coins_law(4, 3, 0.02, rng)


def test_spike_and_diagonal_laws():
    rng = np.random.default_rng(0)
    law = bounds.spike_law(5, 2, 0.25)
    X = law.draw(40_000, rng)
    assert X[:, 2].mean() == pytest.approx(0.25, abs=0.02)
    assert law.excess(np.eye(5)[:1]) == pytest.approx(0.25)
    assert law.excess(np.eye(5)[2:3]) == pytest.approx(0.0)
    with pytest.raises(ParameterError, match=r"0\.\.4"):
        bounds.spike_law(5, 5)
    a, b = (bounds.diagonals_law(sign) for sign in (1, -1))
    for law in (a, b):  # each attribute alone is the same fair coin
        X = law.draw(20_000, rng)
        np.testing.assert_allclose(np.unique(X), [-math.sqrt(0.5), math.sqrt(0.5)])
        assert np.abs(X.mean(axis=0)).max() < 0.03
    assert a.excess(b.draw(1, rng) / 1.0) == pytest.approx(1.0)


# ---------------------------------------------------------------- rivals


@pytest.mark.slow
def test_rivals_on_well_seen_data():
    law = sample_law("power", 20, 2, seed=3)
    rng = np.random.default_rng(0)
    X = law.draw(1500, rng)
    Y = X.copy()
    Y[rng.random(X.shape) < 0.4] = np.nan
    from scipy.sparse import csr_array

    i, j = np.nonzero(~np.isnan(Y))
    S = csr_array((Y[i, j], (i, j)), shape=Y.shape)
    assert full_pca(X, 2).captured(law.moments) > 0.999
    assert full_pca(X + 3.0, 2, center=True).captured(law.moments) > 0.999
    for rival in (petrels, grouse):
        found = rival(Y, 2, rng=0)
        assert found.captured(law.moments) > 0.97
        np.testing.assert_allclose(found.components @ found.components.T, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(rival(S, 2, rng=0).components, found.components, atol=1e-9)
    assert petrels(Y, 2, forget=0.999, rng=0).captured(law.moments) > 0.97
    assert grouse(Y, 2, decay=False, step=0.1, passes=2, rng=0).captured(law.moments) > 0.95
    assert impute_pca(Y[:300], 2, penalty=0.5).captured(law.moments) > 0.95
    assert impute_pca(S[:300], 2, penalty=0.5).captured(law.moments) > 0.95
    np.testing.assert_allclose(
        zero_fill_pca(S, 2).components, zero_fill_pca(Y, 2).components, atol=1e-9
    )


def test_pairwise_beats_zero_fill_under_uneven_masks_and_trackers_at_two_attributes():
    law = sample_law("flat", 30, 2, seed=5)
    rng = np.random.default_rng(1)
    X = law.draw(15_000, rng)
    uneven = np.where(rng.random(X.shape) < np.linspace(0.02, 0.3, 30), X, np.nan)
    ours = partial_pca(uneven, 2, center=False).captured(law.moments)
    assert ours > 0.97
    assert zero_fill_pca(uneven, 2).captured(law.moments) < ours - 0.1
    two = np.where(np.argsort(rng.random(X.shape), axis=1) < 2, X, np.nan)
    ours = partial_pca(two, 2, center=False).captured(law.moments)
    assert ours > 0.95
    for rival in (petrels, grouse):
        assert rival(two[:4000], 2, rng=0).captured(law.moments) < 0.6


def test_rivals_refuse():
    X = np.random.default_rng(0).standard_normal((9, 4))
    for rival in (petrels, grouse, zero_fill_pca, full_pca, impute_pca):
        with pytest.raises(ParameterError, match=r"1\.\.3"):
            rival(X, 4)
    with pytest.raises(DataError, match="seen whole"):
        full_pca(np.where(X > 0, X, np.nan), 2)
    with pytest.raises(DataError, match="nothing was seen"):
        grouse(np.full((3, 4), np.nan), 2)
    with pytest.raises(ParameterError, match="forget"):
        petrels(X, 2, forget=0.0)


# ---------------------------------------------------------------- reproduction


@pytest.mark.slow
@pytest.mark.parametrize("name", ["price", "regime", "lemma13", "one-attribute", "single"])
def test_quick_figures(name, tmp_path):
    from entrywise.reproduce.figures import Drawing
    from entrywise.reproduce.subspace import FIGURES

    claims = FIGURES[name](Drawing(tmp_path, say=lambda words: None))
    assert all(claim.ours for claim in claims)
    assert all(claim.found for claim in claims)
    assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert len((tmp_path / f"{name}.csv").read_text().splitlines()) > 2


@pytest.mark.slow
def test_quick_figure_of_real_sensors(data_folder, tmp_path):
    from entrywise.reproduce.figures import Drawing
    from entrywise.reproduce.subspace import FIGURES

    claims = FIGURES["air"](Drawing(tmp_path, say=lambda words: None))
    found = {claim.claim: claim for claim in claims}
    assert "(ours) partial PCA captures more than zero fill" in found
    assert "(ours) partial PCA captures more than streaming PCA" in found
    assert all(
        claim.holds is None or claim.interval == "" for claim in claims
    )  # one run: no interval


# ---------------------------------------------------------------- what the paper positions itself against


@pytest.mark.parametrize("name", ["streaming_pca", "online_pca", "capped_msg"])
def test_online_rivals_find_the_subspace_of_whole_and_partial_samples(name):
    from entrywise.gallery import sample_law
    from entrywise.passive import trackers

    law, rng = sample_law("flat", 20, 2, 3), np.random.default_rng(3)
    X = law.draw(6000, rng)
    method = getattr(trackers, name)
    more = {} if name == "online_pca" else {"rng": 0}
    assert method(X, 2, **more).captured(law.moments) > 0.98
    seen = np.where(rng.random(X.shape) < 0.4, X, np.nan)
    found = method(seen, 2, **more)
    assert found.captured(law.moments) > 0.9
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(2), atol=1e-8)
    with pytest.raises(ParameterError, match="blocks"):
        method(X, 2, blocks=0)
    with pytest.raises(DataError, match="nothing was seen"):
        method(np.full((3, 4), np.nan), 2)


def test_moments_of_blocks_are_equation_4():
    from entrywise.passive.trackers.moments import block_moments

    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[rng.random(X.shape) < 0.5] = np.nan
    p = np.mean(~np.isnan(X))
    Z = np.nan_to_num(X)
    by_hand = Z.T @ Z / 40 / p**2 - (1 / p**2 - 1 / p) * np.diag((Z**2).mean(axis=0))
    np.testing.assert_allclose(next(block_moments(X, 1)), by_hand)
    halves = list(block_moments(X, 2))
    np.testing.assert_allclose(sum(halves) / 2, by_hand)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=8), st.integers(1, 7))
def test_capped_weights_are_the_nearest_in_the_hull(values, k):
    from entrywise.passive.trackers.capped_msg import _to_hull

    v, k = np.array(values), min(k, len(values))
    w = _to_hull(v, k)
    assert w.sum() == pytest.approx(k, abs=1e-6)
    assert ((w >= 0) & (w <= 1)).all()
    rng = np.random.default_rng(0)
    for _ in range(20):  # no other point of the hull is nearer
        other = rng.dirichlet(np.ones(len(v))) * k
        other = other if other.max() <= 1 else np.full(len(v), k / len(v))
        assert np.sum((w - v) ** 2) <= np.sum((other - v) ** 2) + 1e-6


def test_lemma_13_by_hand_and_against_lemma_2():
    from entrywise.bounds.subspace import lounici_error

    C = np.diag([0.5, 0.25, 0.0])
    each = 0.5 * 0.75 * 9 / (4 * 100) * np.log(6)
    by_hand = np.sqrt(min(0.3125, 0.0625 + each, 2 * each, 3 * each))
    assert lounici_error(C, 2, 100) == pytest.approx(by_hand)
    full = np.diag([1.0, 0.0, 0.0])  # samples that fill the ball
    assert lounici_error(full, 2, 100) >= min(1.0, 3 / 2 / 10)
    assert lounici_error(0.1 * full, 2, 100) < 3 / 2 / 10  # short ones: it adapts, Lemma 2 does not
