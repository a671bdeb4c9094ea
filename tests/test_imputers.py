"""The imputers keep scikit-learn's promises, and complete."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from entrywise.estimators import LowRankImputer, SoftImputer
from entrywise.exceptions import DataError, ParameterError

BOTH = [LowRankImputer(), LowRankImputer(2), SoftImputer(penalty=2.0), SoftImputer(max_rank=3)]


@parametrize_with_checks([LowRankImputer(), SoftImputer(penalty=1.0)])
def test_scikit_learn(estimator, check):
    check(estimator)


def table(seed=0, m=120, n=10, rank=2, share=0.7):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal(
        (rank, n)
    ) + 0.05 * rng.standard_normal((m, n))
    A = A * np.geomspace(0.01, 100.0, n) + np.arange(n)  # columns in different units
    return A, np.where(rng.random((m, n)) < share, A, np.nan)


@pytest.mark.parametrize("imputer", BOTH, ids=repr)
def test_fills_gaps_and_leaves_the_rest(imputer):
    A, X = table()
    kept = X.copy()
    filled = clone(imputer).fit_transform(X)
    np.testing.assert_array_equal(X, kept)
    known = ~np.isnan(X)
    np.testing.assert_array_equal(filled[known], X[known])
    scaled = (filled - A) / A.std(axis=0)
    assert np.sqrt(np.mean(scaled[~known] ** 2)) < 0.35
    np.testing.assert_array_equal(filled, clone(imputer).fit(X).transform(X))
    np.testing.assert_array_equal(filled, clone(imputer).fit_transform(X))


@pytest.mark.parametrize("imputer", BOTH, ids=repr)
def test_new_rows(imputer):
    A, X = table(1)
    filled = clone(imputer).fit(X[:90]).transform(X[90:])
    gaps = np.isnan(X[90:])
    assert np.sqrt(np.mean((((filled - A[90:]) / A.std(axis=0))[gaps]) ** 2)) < 0.4


@pytest.mark.parametrize("imputer", BOTH, ids=repr)
def test_a_weight_of_two_is_a_repeated_row(imputer):
    _, X = table(2, m=40)
    weights = np.ones(40)
    weights[[3, 7, 11]] = 2.0
    weights[5] = 0.0
    X[3, 0] = np.nan
    weighted = clone(imputer).fit(X, sample_weight=weights).transform(X)
    order = np.r_[np.delete(np.arange(40), 5), 3, 7, 11]
    repeated = clone(imputer).fit(X[order]).transform(X)
    np.testing.assert_array_equal(weighted, repeated)


def test_row_weights_of_low_rank_are_repeated_rows():
    from entrywise import Observations
    from entrywise.passive import low_rank

    _, X = table(3, m=40)
    X = X / np.nanstd(X, axis=0)
    w = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    order = np.repeat(np.arange(40), w.astype(int))
    options = {"rank": 2, "tol": 1e-9, "max_sweeps": 400}
    one = low_rank(Observations.from_dense(X), row_weights=w, **options)
    many = low_rank(Observations.from_dense(X[order]), **options)
    assert np.abs(one.to_dense()[order] - many.to_dense()).max() < 0.02
    with pytest.raises(ParameterError, match="row_weights"):
        low_rank(Observations.from_dense(X), row_weights=w - 1)


def test_frames_in_frames_out():
    import pandas as pd
    import polars as pl

    _, X = table(4)
    names = [f"feature {k}" for k in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=np.arange(len(X)) + 5)
    filled = LowRankImputer().set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == names
    assert list(filled.index) == list(frame.index)
    assert not filled.isna().any().any()
    out = (
        LowRankImputer().set_output(transform="polars").fit_transform(pl.DataFrame(X, schema=names))
    )
    assert isinstance(out, pl.DataFrame)
    assert out.columns == names
    np.testing.assert_array_equal(out.to_numpy(), filled.to_numpy())


def test_empty_columns_are_left_out_or_kept():
    _, X = table(5)
    X[:, 4] = np.nan
    left_out = LowRankImputer().fit(X)
    assert left_out.transform(X).shape[1] == 9
    assert "x4" not in left_out.get_feature_names_out()
    kept = LowRankImputer(keep_empty_features=True).fit(X)
    assert kept.transform(X).shape[1] == 10
    assert np.all(np.isfinite(kept.transform(X)))
    assert np.all(np.abs(kept.transform(X)[:, 4]) < 5)


def lumpy(seed, m=400):
    """A table whose noise is mostly small and sometimes large, and differs between columns."""
    rng = np.random.default_rng([11, seed])
    A = rng.standard_normal((m, 2)) @ rng.standard_normal((2, 12))
    A += rng.uniform(0.1, 1.0, 12) * rng.standard_t(2.5, A.shape)
    return A, np.where(rng.random(A.shape) < 0.7, A, np.nan)


@pytest.mark.slow
@pytest.mark.parametrize("imputer", [LowRankImputer(), SoftImputer(penalty=20.0)])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_as_they_say_in_new_rows(imputer, level):
    covered = []
    for seed in range(4):
        A, X = lumpy(seed)
        low, high = clone(imputer).fit(X[:300]).interval(X[300:], level)
        gaps = np.isnan(X[300:])
        covered.append(((low <= A[300:]) & (A[300:] <= high))[gaps].mean())
    assert np.mean(covered) == pytest.approx(level, abs=0.05)


def test_calibrating_leaves_the_fit_as_it_is():
    _, X = lumpy(9)
    imputer = LowRankImputer().fit(X)
    before = imputer.transform(X)
    first = imputer.interval(X, 0.8)
    np.testing.assert_array_equal(imputer.transform(X), before)
    np.testing.assert_array_equal(imputer.interval(X, 0.8), first)
    assert imputer.completed_.calibration is None


def test_in_a_pipeline_and_on_hard_tables():
    _, X = table(7)
    assert np.all(np.isfinite(make_pipeline(StandardScaler(), LowRankImputer()).fit_transform(X)))
    constant = np.full((6, 3), 2.0)
    constant[1, 2] = np.nan
    np.testing.assert_allclose(LowRankImputer().fit_transform(constant), 2.0)
    with pytest.raises(ValueError, match="no known entry"):
        LowRankImputer().fit(np.full((4, 3), np.nan))


def test_rows_are_filled_from_their_features_alone():
    rng = np.random.default_rng(3)
    F = rng.standard_normal((200, 3))
    A = F @ rng.standard_normal((3, 6)) + 0.1 * rng.standard_normal((200, 6))
    X = np.where(rng.random(A.shape) < 0.6, A, np.nan)
    imputer = LowRankImputer().fit(X[:150], row_features=F[:150])
    empty = np.full((50, 6), np.nan)
    told = imputer.transform(empty, row_features=F[150:])
    blind = imputer.transform(empty)
    assert np.mean((told - A[150:]) ** 2) < 0.3 * np.mean((blind - A[150:]) ** 2)
    low, high = imputer.interval(empty, 0.9, row_features=F[150:])
    assert 0.8 < np.mean((low <= A[150:]) & (high >= A[150:])) < 0.99
    with pytest.raises(DataError, match="row_features must have 50 rows"):
        imputer.transform(empty, row_features=F)
    by_column = LowRankImputer(col_features=rng.standard_normal((6, 2))).fit(X)
    assert by_column.transform(X).shape == (200, 6)
