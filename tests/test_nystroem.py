"""The scikit-learn face of adaptive Nyström."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from entrywise.estimators import AdaptiveNystroem


@parametrize_with_checks(
    [
        AdaptiveNystroem(n_components=5),
        AdaptiveNystroem(n_components=5, order="random"),
        AdaptiveNystroem(n_components=5, order="greedy"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:300] / 16.0


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "linear", "cosine", "chi2"])
def test_features_reproduce_the_kernel(digits, kernel):
    from sklearn.metrics.pairwise import pairwise_kernels

    K = pairwise_kernels(digits, metric=kernel)
    model = AdaptiveNystroem(kernel, n_components=300, order="greedy").fit(digits)
    Z = model.transform(digits)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-6 * np.abs(K).max())
    assert model.max_error_ <= 1e-6 * np.abs(K).max()


def test_precomputed_kernels_may_have_fewer_components_than_points(digits):
    K = rbf_kernel(digits, gamma=0.05)
    with pytest.raises(ValueError, match=r".+"):
        Nystroem("precomputed", n_components=40, random_state=0).fit(K).transform(K[:10])
    model = AdaptiveNystroem("precomputed", n_components=40, order="greedy").fit(K)
    points = AdaptiveNystroem("rbf", gamma=0.05, n_components=40, order="greedy").fit(digits)
    np.testing.assert_array_equal(model.component_indices_, points.component_indices_)
    Z = model.transform(K)
    np.testing.assert_allclose(Z, points.transform(digits), atol=1e-8)
    assert np.abs(Z @ Z.T - K).max() == pytest.approx(model.max_error_, rel=1e-6)


def test_it_chooses_better_than_uniform_columns(digits):
    K = rbf_kernel(digits, gamma=0.02)
    ours = (
        AdaptiveNystroem(gamma=0.02, n_components=40, order="greedy").fit(digits).transform(digits)
    )
    uniform = []
    for seed in range(9):
        Z = Nystroem(gamma=0.02, n_components=40, random_state=seed).fit_transform(digits)
        uniform.append(np.abs(K - Z @ Z.T).max())
    assert np.abs(K - ours @ ours.T).max() < np.median(uniform)


def test_names_out_and_callables(digits):
    model = AdaptiveNystroem(lambda x, y: float(x @ y), n_components=3).fit(digits[:20])
    assert list(model.get_feature_names_out()) == [
        "adaptivenystroem0",
        "adaptivenystroem1",
        "adaptivenystroem2",
    ]
    with pytest.raises(ValueError, match="n_components must be at least 1, got 0"):
        AdaptiveNystroem(n_components=0).fit(digits)


@pytest.mark.parametrize("order", ["gain", "random", "greedy"])
def test_fit_transform_returns_the_features_of_transform(digits, order):
    model = AdaptiveNystroem(n_components=40, gamma=0.02, order=order, random_state=3)
    Z = model.fit_transform(digits)
    np.testing.assert_allclose(Z, model.transform(digits), atol=1e-8)
    again = AdaptiveNystroem(n_components=40, gamma=0.02, order=order, random_state=3).fit(digits)
    np.testing.assert_array_equal(again.component_indices_, model.component_indices_)
