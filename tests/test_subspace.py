"""Principal components of partly seen samples: sums, estimators, results, the estimator class, the command."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise.estimators import PartialPCA
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.gallery import sample_law
from entrywise.linalg import pairs
from entrywise.linalg.pairs import PairSums
from entrywise.passive import partial_pca
from entrywise.passive.partial_pca import covariance, from_covariance, limit


def holes(X, share, rng):
    Y = X.copy()
    Y[rng.random(X.shape) < share] = np.nan
    return Y


def to_sparse(Y):
    i, j = np.nonzero(~np.isnan(Y))
    return sp.csr_array((Y[i, j], (i, j)), shape=Y.shape)


def referee(Y, w, center):
    """Covariance pair by pair, straight from the definition."""
    d = Y.shape[1]
    seen = ~np.isnan(Y)
    n = (seen * w[:, None]).sum(axis=0)
    mu = (
        np.array([np.average(Y[seen[:, j], j], weights=w[seen[:, j]]) for j in range(d)])
        if center
        else np.zeros(d)
    )
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            both = seen[:, i] & seen[:, j]
            N = w[both].sum()
            degrees = N * (1 - 1 / n[i] - 1 / n[j] + N / (n[i] * n[j])) if center else N
            if degrees > 1e-9:
                C[i, j] = np.sum(w[both] * (Y[both, i] - mu[i]) * (Y[both, j] - mu[j])) / degrees
    return C


@given(
    st.integers(2, 7), st.integers(30, 80), st.floats(0.05, 0.7), st.booleans(), st.booleans(),
    st.sampled_from([1.0, 1e-150, 1e150, 1e-8, 1e8]), st.integers(0, 10**6),
)  # fmt: skip
def test_every_route_gives_the_pairwise_complete_covariance(
    d, n, share, center, weighted, scale, seed
):
    rng = np.random.default_rng(seed)
    Y = holes(rng.standard_normal((n, d)) + 3.0 * rng.standard_normal(d), share, rng)
    Y[:2] = rng.standard_normal((2, d))
    w = rng.integers(0, 4, n).astype(float) if weighted else None
    if weighted:
        w[:2] = 1.0
    expected = referee(Y, np.ones(n) if w is None else w, center) * scale**2
    size = np.abs(expected).max()
    for X in (Y * scale, to_sparse(Y * scale), np.ma.masked_invalid(Y * scale)):
        found = covariance(PairSums(d, center).add(X, w), center=center)
        np.testing.assert_allclose(found, expected, atol=1e-11 * size)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.97])
def test_short_long_and_dense_walks_agree(monkeypatch, center, share):
    rng = np.random.default_rng(3)
    Y = holes(rng.standard_normal((700, 40)) + 2.0, share, rng)
    states = []
    for short, dense, room in (
        (10**9, 2.0, 500),
        (10**9, 2.0, 2**21),
        (0, 2.0, 500),
        (0, -1.0, 500),
    ):
        monkeypatch.setattr(pairs, "SHORT", short)
        monkeypatch.setattr(pairs, "DENSE_SHARE", dense)
        monkeypatch.setattr(pairs, "ROOM", room)
        states.append(PairSums(40, center).add(Y))
    for other in states[1:]:
        np.testing.assert_allclose(other.products(), states[0].products(), atol=1e-9)
        np.testing.assert_array_equal(other.counts(), states[0].counts())
        assert (other.rows, other.short, other.samples) == (
            states[0].rows,
            states[0].short,
            states[0].samples,
        )
        assert other.largest == pytest.approx(states[0].largest)
        if center:
            np.testing.assert_allclose(other.firsts(), states[0].firsts(), atol=1e-9)
            np.testing.assert_allclose(other.means(), np.nanmean(Y, axis=0), atol=1e-12)


def test_merge_equals_one_pass():
    rng = np.random.default_rng(5)
    Y = holes(rng.standard_normal((3000, 30)) * np.geomspace(1, 100, 30) + 50.0, 0.6, rng)
    whole = PairSums(30).add(Y)
    parts = PairSums(30)
    for a in range(0, 3000, 700):
        parts = parts.merge(PairSums(30).add(to_sparse(Y[a : a + 700])))
    C, D = covariance(whole), covariance(parts)
    assert np.abs(C - D).max() <= 1e-12 * np.abs(C).max()
    np.testing.assert_array_equal(whole.counts(), parts.counts())
    streamed = PairSums(30)
    for row in Y[:200]:
        streamed.add(row[None, :])
    np.testing.assert_allclose(
        covariance(streamed), covariance(PairSums(30).add(Y[:200])), rtol=1e-9, atol=1e-7
    )


def test_the_row_of_the_method_table_works():
    from entrywise import gallery, methods

    row = methods.get("partial-pca")
    found = row.load()(getattr(gallery, row.problem)(0), **row.example)
    assert found.captured(sample_law("flat", 10, 2, 0).moments) > 0.9
    with pytest.raises(ParameterError, match="does not complete"):
        ew.complete(gallery.seen_samples(0), method="partial-pca", rank=2)


def test_sums_are_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    sums = PairSums(5).add(holes(rng.standard_normal((40, 5)), 0.4, rng))
    sums.save(tmp_path / "sums.npz")
    back = PairSums.load(tmp_path / "sums.npz")
    np.testing.assert_array_equal(back.T, sums.T)
    assert (back.rows, back.short, back.samples, back.centered) == (40, sums.short, 40.0, True)
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(DataError, match="pair sums"):
        PairSums.load(tmp_path / "other.npz")


def masks(kind, m, d, r, rng):
    if kind == "bernoulli":
        return rng.random((m, d)) < r / d
    if kind == "nonuniform":
        return rng.random((m, d)) < np.linspace(0.5, 1.5, d) * r / d
    seen = np.zeros((m, d), bool)
    if kind == "exactly":
        seen[np.arange(m)[:, None], np.argpartition(rng.random((m, d)), r, axis=1)[:, :r]] = True
    else:
        seen[np.arange(m)[:, None], rng.integers(d, size=(m, r))] = True
    return seen


CHANCES = {
    "bernoulli": {"mask": "bernoulli", "per_sample": 4},
    "exactly": {"mask": "exactly"},
    "replacement": {"mask": "replacement", "per_sample": 4},
    "nonuniform": {"mask": "bernoulli", "per_sample": np.linspace(0.5, 1.5, 12) * 4 / 12},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANCES)
def test_no_bias_under_any_mask(kind):
    d, r, m, blocks = 12, 4, 400_000, 40
    law = sample_law("power", d, 3, seed=1)
    rng = np.random.default_rng(11)
    for options in ({}, CHANCES[kind]):
        estimates = []
        for _ in range(blocks):
            X = law.draw(m // blocks, rng)
            X[~masks(kind, m // blocks, d, r, rng)] = np.nan
            estimates.append(covariance(PairSums(d, False).add(X), center=False, **options))
        error = np.mean(estimates, axis=0) - law.moments
        standard = np.std(estimates, axis=0, ddof=1) / np.sqrt(blocks)
        off = ~np.eye(d, dtype=bool)
        assert np.abs(error / standard).max() < 4.5  # 78 entries; 4.5 standard errors of 40 blocks
        assert np.sqrt(np.mean(error[off] ** 2)) < 1.5 * np.sqrt(np.mean(standard[off] ** 2))


def test_equation_4_on_masks_of_exactly_r_halves_covariances():
    rng = np.random.default_rng(2)
    law = sample_law("flat", 20, 2, seed=0)
    X = law.draw(100_000, rng)
    X[~masks("exactly", len(X), 20, 2, rng)] = np.nan
    sums = PairSums(20, False).add(X)
    right = covariance(sums, center=False, mask="exactly")
    shrunk = covariance(sums, center=False, mask="bernoulli", per_sample=2)
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(shrunk[off], right[off] * (2 - 1) * 20 / (2 * (20 - 1)))


def test_complete_data_is_ordinary_pca():
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 6)) + 100.0 * rng.standard_normal(6)
    found, known = partial_pca(X, 3), PCA(3).fit(X)
    np.testing.assert_allclose(found.explained_variance, known.explained_variance_)
    np.testing.assert_allclose(np.abs(found.components), np.abs(known.components_), atol=1e-10)
    np.testing.assert_allclose(found.mean, known.mean_)
    assert found.noise_variance == pytest.approx(known.noise_variance_)
    np.testing.assert_allclose(np.abs(found.transform(X)), np.abs(known.transform(X)), atol=1e-8)
    np.testing.assert_allclose(found.explained_variance_ratio, known.explained_variance_ratio_)


@pytest.mark.slow
def test_centred_estimate_is_unbiased_with_few_samples():
    rng = np.random.default_rng(4)
    A = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.4, 0.3, 0.6]])
    total, runs = np.zeros((3, 3)), 20_000
    Y = rng.standard_normal((runs, 6, 3)) @ A.T + 5.0
    Y[:, :3, 0], Y[:, 4:, 2] = np.nan, np.nan
    for y in Y[:4000]:
        total += covariance(PairSums(3).add(y))
    assert np.abs(total / 4000 - A @ A.T).max() < 0.06


def test_means_far_from_zero_are_taken_out():
    rng = np.random.default_rng(6)
    law = sample_law("flat", 20, 2, seed=3)
    X = law.draw(20_000, rng) + 10.0 * rng.standard_normal(20)
    X[rng.random(X.shape) > np.linspace(0.1, 0.6, 20)] = np.nan
    assert partial_pca(X, 2).captured(law.moments) > 0.99
    assert partial_pca(X, 2, center=False).captured(law.moments) < 0.9


def test_repair_cuts_covariances_and_lifts_eigenvalues():
    rng = np.random.default_rng(7)
    law = sample_law("flat", 30, 3, seed=2)
    X = holes(law.draw(2000, rng), 0.85, rng)
    C = covariance(PairSums(30, False).add(X), center=False)
    cut = limit(C)
    sd = np.sqrt(np.diagonal(C))
    assert np.all(np.abs(cut) <= np.outer(sd, sd) * (1 + 1e-12))
    np.testing.assert_allclose(np.diagonal(cut), np.diagonal(C))
    raw, clip, soft = (
        partial_pca(X, 3, center=False, repair=how) for how in ("none", "clip", "soft")
    )
    np.testing.assert_allclose(raw.spectrum, np.linalg.eigvalsh(C)[::-1])
    values, V = np.linalg.eigh(cut)
    low = values[0]
    assert low < 0
    assert clip.spectrum.min() == soft.spectrum.min() == 0.0
    np.testing.assert_allclose(soft.explained_variance, clip.explained_variance - 0.5 * abs(low))
    np.testing.assert_array_equal(soft.components, clip.components)
    errors = [
        np.linalg.norm((V * np.maximum(values - s, 0)) @ V.T - law.moments)
        for s in (0.0, 0.5 * abs(low))
    ]
    assert errors[1] < errors[0] < np.linalg.norm(C - law.moments)


def test_cutting_covariances_helps_where_pairs_are_rare():
    rng = np.random.default_rng(8)
    law = sample_law("power", 30, 2, seed=6)
    X = law.draw(3000, rng) * rng.standard_exponential((3000, 1))  # heavy tails
    X[~masks("exactly", 3000, 30, 2, rng)] = np.nan
    raw, cut = (partial_pca(X, 2, repair=how).captured(law.moments) for how in ("none", "soft"))
    assert cut > raw
    whole = law.draw(200, rng)
    C = covariance(PairSums(30).add(whole))
    np.testing.assert_allclose(limit(C), C, rtol=1e-12)  # complete data need no repair


@pytest.mark.parametrize(("r", "m"), [(2, 2000), (2, 20_000), (5, 2000), (10, 5000), (25, 2000)])
def test_excess_is_far_below_corollary_3(r, m):
    from entrywise.bounds.subspace import popca_excess

    law = sample_law("flat", 50, 3, seed=8)
    rng = np.random.default_rng(r + m)
    unit = lambda X: X / np.linalg.norm(X, axis=1, keepdims=True)  # noqa: E731  the theorem takes |x| <= 1
    many = unit(law.draw(50_000, rng))
    C = many.T @ many / len(many)
    best = np.linalg.eigvalsh(C)[-3:].sum()
    shares = []
    for _ in range(3):
        X = unit(law.draw(m, rng))
        X[~masks("exactly", m, 50, r, rng)] = np.nan
        shares.append(partial_pca(X, 3, center=False).captured(C))
    assert best * (1 - np.mean(shares)) <= 0.2 * popca_excess(50, 3, r, m)
    if (r, m) == (2, 20_000):
        assert min(shares) >= 0.95


def test_observations_and_weights():
    rng = np.random.default_rng(9)
    Y = holes(rng.standard_normal((60, 5)), 0.3, rng)
    w = rng.integers(0, 4, 60)
    a = partial_pca(ew.Observations.from_dense(Y), 2)
    np.testing.assert_allclose(a.components, partial_pca(Y, 2).components, atol=1e-12)
    b, c = partial_pca(Y, 2, weights=w), partial_pca(np.repeat(Y, w, axis=0), 2)
    np.testing.assert_allclose(b.components, c.components, atol=1e-9)
    np.testing.assert_allclose(b.explained_variance, c.explained_variance)
    twice = ew.Observations.from_triplets(
        [0, 0, 1], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2), duplicates="keep"
    )
    with pytest.raises(DataError, match="listed twice"):
        partial_pca(twice, 1)


def test_one_attribute_a_sample_is_refused_with_the_reason():
    X = np.full((50, 4), np.nan)
    X[np.arange(50), np.arange(50) % 4] = 1.0
    with pytest.raises(NotIdentifiable, match=r"no sample shows two attributes .50 of 50"):
        partial_pca(X, 2)


def test_bad_input_is_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    with pytest.raises(ParameterError, match=r"1\.\.3 for 4 attributes, got 4"):
        partial_pca(X, 4)
    for k in (0, -1, 9, 1.5):
        with pytest.raises(ParameterError, match="rank"):
            partial_pca(X, k)
    with pytest.raises(
        NotIdentifiable, match=r"attribute 2 was never seen; observe it or leave it out"
    ):
        partial_pca(np.where(np.arange(4) == 2, np.nan, X), 2)
    with pytest.raises(DataError, match="every attribute is constant"):
        partial_pca(np.full((10, 3), 7.0), 1)
    bad = X.copy()
    bad[3, 1] = np.inf
    with pytest.raises(DataError, match="attribute 1 of sample 3 is inf"):
        partial_pca(bad, 2)
    with pytest.raises(DataError, match="stored values must be finite"):
        partial_pca(sp.csr_array(bad), 2)
    with pytest.raises(DataError, match="one row a sample"):
        partial_pca(X[0], 2)
    with pytest.raises(DataError, match="4 attributes"):
        PairSums(4).add(X[:, :3])
    with pytest.raises(DataError, match="one sample has no variance"):
        partial_pca(X[:1], 2)
    with pytest.raises(DataError, match="must be numbers"):
        partial_pca([["a", "b"]], 1)
    with pytest.raises(DataError, match="no samples"):
        partial_pca(np.zeros((0, 4)), 2)
    with pytest.raises(ParameterError, match="repair"):
        partial_pca(X, 2, repair="hard")
    with pytest.raises(ParameterError, match="mask"):
        partial_pca(X, 2, mask="sometimes")
    with pytest.raises(ParameterError, match="per_sample"):
        partial_pca(X, 2, mask="bernoulli")
    with pytest.raises(ParameterError, match="probabilities"):
        partial_pca(X, 2, mask="bernoulli", per_sample=[0.1, 0.2, 0.0, 0.3])
    with pytest.raises(ParameterError, match="not exactly r"):
        partial_pca(holes(X, 0.3, rng), 2, mask="exactly")
    with pytest.raises(ParameterError, match="one number of attributes"):
        partial_pca(X, 2, mask="replacement", per_sample=[2, 2, 2, 2])
    for weights in (np.ones(3), -np.ones(30)):
        with pytest.raises(ParameterError, match="weights"):
            partial_pca(X, 2, weights=weights)
    with pytest.raises(ParameterError, match="weights belong to samples"):
        partial_pca(PairSums(4).add(X), 2, weights=np.ones(30))
    with pytest.raises(ParameterError, match="without means"):
        partial_pca(PairSums(4, centered=False).add(X), 2)
    with pytest.raises(ParameterError, match="one kind"):
        PairSums(4).merge(PairSums(5))
    with pytest.raises(ParameterError, match="at least 1"):
        PairSums(0)
    with pytest.raises(ParameterError, match="max_square must bound"):
        partial_pca(X, 2, center=False, max_square=1e-3)


def test_constant_columns_and_unseen_pairs_are_no_harm():
    rng = np.random.default_rng(1)
    X = np.c_[rng.standard_normal((500, 3)) @ rng.standard_normal((3, 5)), np.full(500, 3.0)]
    found = partial_pca(holes(X, 0.4, rng), 2)
    assert np.abs(found.components[:, 5]).max() < 1e-12
    X[:250, 0], X[250:, 1] = np.nan, np.nan
    found = partial_pca(X, 2)
    assert found.report["pairs_never_seen_together"] == 1
    assert np.isfinite(found.components).all()
    short = X.copy()
    short[:7, 1:] = np.nan
    assert partial_pca(short, 2).report["samples_with_fewer_than_two_attributes"] == 7


def test_inputs_are_left_alone():
    rng = np.random.default_rng(1)
    X = holes(rng.standard_normal((50, 6)), 0.5, rng)
    S = sp.coo_array(to_sparse(X)).tocsr()[::-1]
    S.indices[S.indptr[0] : S.indptr[1]] = S.indices[S.indptr[0] : S.indptr[1]][::-1].copy()
    S.has_sorted_indices = False
    before = (X.copy(), S.data.copy(), S.indices.copy())
    found = partial_pca(X, 2)
    partial_pca(S, 2)
    found.transform(X)
    found.transform(S)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(S.data, before[1])
    np.testing.assert_array_equal(S.indices, before[2])


def test_certificate_of_corollary_3():
    rng = np.random.default_rng(1)
    law = sample_law("flat", 10, 2, seed=0)
    X = law.draw(4000, rng)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    X[rng.random(X.shape) < 0.5] = np.nan
    printed = {"center": False, "mask": "bernoulli", "repair": "none", "max_square": 1.0}
    printed["per_sample"] = float(np.mean(np.sum(~np.isnan(X), axis=1)))
    found = partial_pca(X, 2, **printed)
    assert found.certificate.value == pytest.approx((1 / 0.5) * np.sqrt(2 / 4000), rel=0.05)
    assert not found.certificate.vacuous
    assert partial_pca(X[:5], 2, **printed).certificate.vacuous
    assert partial_pca(X, 2).certificate is None


def test_transform_is_the_gaussian_conditional_mean():
    rng = np.random.default_rng(3)
    V = np.linalg.qr(rng.standard_normal((6, 2)))[0].T
    spectrum = np.array([5.0, 2.0, 0.3, 0.3, 0.3, 0.3])
    mean = rng.standard_normal(6)
    space = ew.Subspace(V, spectrum[:2], mean, spectrum)
    C = (V.T * (spectrum[:2] - 0.3)) @ V + 0.3 * np.eye(6)
    X = rng.standard_normal((20, 6))
    Y = holes(X, 0.5, rng)
    Z = space.transform(Y)
    for z, y in zip(Z, Y, strict=True):
        o = ~np.isnan(y)
        expected = (
            V @ C[:, o] @ np.linalg.solve(C[np.ix_(o, o)], y[o] - mean[o])
            if o.any()
            else np.zeros(2)
        )
        np.testing.assert_allclose(z, expected, atol=1e-10)
    np.testing.assert_allclose(space.transform(to_sparse(Y)), Z, atol=1e-12)
    np.testing.assert_allclose(space.transform(np.ma.masked_invalid(Y)), Z)
    np.testing.assert_allclose(space.transform(X), (X - mean) @ V.T)
    np.testing.assert_allclose(space.inverse_transform(Z), Z @ V + mean)
    exact = ew.Subspace(V, spectrum[:2], np.zeros(6), np.r_[spectrum[:2], np.zeros(4)])
    z = rng.standard_normal((1, 2))
    full = z @ V
    full[0, 3:] = np.nan
    np.testing.assert_allclose(exact.transform(full), z, atol=1e-5)
    nothing = ew.Subspace(V, np.zeros(2), np.zeros(6), np.zeros(6))
    assert np.array_equal(nothing.transform(full), np.zeros((1, 2)))
    with pytest.raises(DataError, match="6 columns"):
        space.transform(X[:, :4])


def test_subspace_results(tmp_path):
    C = np.diag([3.0, 1.0, 2.0])
    found = from_covariance(C, 2, np.zeros(3))
    assert (found.k, found.d) == (2, 3)
    np.testing.assert_allclose(found.projection(), np.diag([1.0, 0.0, 1.0]), atol=1e-12)
    assert found.captured(C) == pytest.approx(1.0)
    assert found.captured(np.zeros((3, 3))) == 1.0
    found.save(tmp_path / "space.npz")
    back = ew.Subspace.load(tmp_path / "space.npz")
    np.testing.assert_array_equal(back.components, found.components)
    np.testing.assert_array_equal(back.spectrum, found.spectrum)


def test_check_estimator():
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(PartialPCA(), on_skip=None)


def test_partial_fit_merge_and_lazy_components():
    rng = np.random.default_rng(2)
    Y = holes(rng.standard_normal((600, 3)) @ rng.standard_normal((3, 8)) + 4.0, 0.5, rng)
    whole = PartialPCA(3).fit(Y)
    stream = PartialPCA(3)
    for a in range(0, 600, 50):
        stream.partial_fit(Y[a : a + 50])
    merged = PartialPCA(3).fit(Y[:200]).merge(PartialPCA(3).fit(to_sparse(Y[200:])))
    for other in (stream, merged):
        np.testing.assert_allclose(other.components_, whole.components_, atol=1e-10)
        np.testing.assert_allclose(
            other.transform(Y[:9]), whole.transform(Y[:9]), rtol=1e-5, atol=1e-8
        )
        assert other.n_samples_seen_ == 600
    np.testing.assert_allclose(whole.fit_transform(Y), whole.transform(Y))
    covered = whole.get_covariance()
    np.testing.assert_allclose(np.linalg.eigvalsh(covered)[::-1][:3], whole.explained_variance_)
    assert list(whole.get_feature_names_out()) == ["partialpca0", "partialpca1", "partialpca2"]
    assert whole.inverse_transform(whole.transform(Y[:4])).shape == (4, 8)
    w = rng.integers(0, 3, 600)
    a, b = PartialPCA(3).fit(Y, sample_weight=w), PartialPCA(3).fit(np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-9)
    assert whole.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=0.1)
    one = PartialPCA(3).partial_fit(Y[:1])
    with pytest.raises(DataError):
        one.components_  # noqa: B018
    whole.center = False
    whole.n_components = 2
    with pytest.raises(ParameterError, match="center was changed"):
        whole.components_  # noqa: B018


def test_frames_and_masked_arrays_fit():
    import pandas as pd

    rng = np.random.default_rng(2)
    Y = holes(rng.standard_normal((100, 4)), 0.3, rng)
    frame = pd.DataFrame(Y, columns=list("abcd"))
    a, b = PartialPCA(2).fit(frame), PartialPCA(2).fit(np.ma.masked_invalid(Y))
    np.testing.assert_allclose(a.components_, b.components_)
    assert list(a.feature_names_in_) == list("abcd")
    assert list(a.merge(a).feature_names_in_) == list("abcd")


@pytest.fixture
def command():
    import typer
    from typer.testing import CliRunner

    from entrywise.cli._shared import run_command
    from entrywise.cli.subspace import subspace

    app = typer.Typer()
    app.command()(subspace)

    def call(*args):
        return CliRunner().invoke(app, [str(a) for a in args])

    call.app, call.run = app, run_command
    return call


def test_command_reads_tables_with_holes(tmp_path, command):
    import polars as pl

    rng = np.random.default_rng(2)
    Y = holes(rng.standard_normal((200, 2)) @ rng.standard_normal((2, 5)), 0.4, rng)
    frame = (
        pl.DataFrame({f"s{j}": Y[:, j] for j in range(5)})
        .fill_nan(None)
        .with_columns(time=pl.lit("noon"))
    )
    frame.write_parquet(tmp_path / "r.parquet")
    frame.write_csv(tmp_path / "r.csv")
    np.save(tmp_path / "r.npy", Y)
    np.savez(tmp_path / "r.npz", X=Y)
    sp.save_npz(tmp_path / "sparse.npz", to_sparse(Y))
    outputs = []
    for name in ("r.parquet", "r.csv", "r.npy", "r.npz", "sparse.npz"):
        found = command(tmp_path / name, "-k", 2, "-f", "csv")
        assert found.exit_code == 0, found.output
        outputs.append([line.split(",")[:3] for line in found.stdout.splitlines()[1:3]])
        assert "time" in found.stderr or not name.startswith("r.p")
    for other in outputs[1:]:
        np.testing.assert_allclose(np.array(other, float), np.array(outputs[0], float), rtol=1e-9)
    found = command(
        tmp_path / "r.csv", "-k", 2, "--standardize", "--loadings", tmp_path / "l.csv", "--scores", tmp_path / "s.csv",
        "--out", tmp_path / "o.npz", "--plot", tmp_path / "p.png", "--leave-out", "s4", "-f", "json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 1 + 2 * 4
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 201
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert ew.Subspace.load(tmp_path / "o.npz").report["attributes"] == ["s0", "s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b,c\n1,2,3\n4,5,7\n", ("-k", "3"), "--components must be in 1..2"),
        ("a,b,c\n1,,3\n4,,7\n", (), "'b' of .* was never seen; leave it out"),
        ("a,b,c\n1,2,inf\n4,5,7\n", (), "line 2 of .*'c', is inf"),
        ("a,b,c\n1,,\n,5,\n,,2\n", (), "no sample shows two attributes"),
        ("a,b,c\n1,2,3\n4,2,7\n", ("--standardize",), "'b' is constant"),
        ("a,b,c\n1,2,3\n4,2,7\n", ("--leave-out", "z"), "no column 'z'"),
        ("a,b\nx,y\nz,w\n", (), "two columns of numbers"),
    ],
)
def test_command_tells_what_is_wrong(tmp_path, command, text, options, message):
    (tmp_path / "t.csv").write_text(text)
    found = command(tmp_path / "t.csv", *options)
    assert found.exit_code == 1
    with pytest.raises(ew.exceptions.EntrywiseError, match=message):
        raise found.exception


def test_real_sensors_with_real_gaps(data_folder):
    with np.load(data_folder / "beijing_air" / "beijing_air.npz") as file:
        X = file["values"].reshape(-1, 132)[:8000].astype(float)
    X = X / np.nanstd(X, axis=0)
    rng = np.random.default_rng(0)
    reference = covariance(PairSums(132).add(X))
    Y = X.copy()
    Y[np.argsort(rng.random(X.shape), axis=1) >= 12] = np.nan
    assert partial_pca(Y, 3).captured(reference) > 0.95
