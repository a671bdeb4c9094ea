"""Low-rank imputers in scikit-learn's form: NaN in, filled out, new rows without refitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from entrywise.exceptions import DataError
from entrywise.intervals import conformal
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.passive.soft_impute import soft_impute
from entrywise.results import Calibration, Interval, LowRank
from entrywise.types import Array, Seed


class _Imputer(TransformerMixin, BaseEstimator, ABC):
    """What both imputers share: columns put on one scale, equal rows merged, rows folded in."""

    scale: bool
    keep_empty_features: bool

    @abstractmethod
    def _complete(
        self,
        seen: Observations,
        weights: Array,
        row_features: Array | None,
        like: LowRank | None = None,
    ) -> LowRank:
        """Complete the scaled entries; a row of weight 2 counts as two. What `like` chose is not chosen again."""

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the known entries of X, shape (n_samples, n_features); a row of weight 2 counts as two."""
        return self._fit(X, sample_weight, None)

    def _fit(self, X: Any, sample_weight: ArrayLike | None, row_features: ArrayLike | None) -> Self:
        X = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2
        )
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        F = None if row_features is None else _row_features(row_features, len(X))[weights > 0]
        X, weights = X[weights > 0], weights[weights > 0]
        if not len(X):
            raise DataError("at least one sample must have a weight above 0")
        first, weights = _merge(X if F is None else np.hstack([X, F]), weights)
        X, F = X[first], None if F is None else F[first]
        known = ~np.isnan(X)
        self._empty = ~known.any(axis=0)
        if self._empty.all():
            raise DataError("X has no known entry; give at least one")
        mass = weights @ known
        Z = np.where(known, X, 0.0)
        mean = (weights @ Z) / np.maximum(mass, 1e-300)
        spread = np.sqrt(weights @ (np.where(known, X - mean, 0.0) ** 2) / np.maximum(mass, 1e-300))
        usable = spread > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        self.center_ = np.where(self._empty, 0.0, mean)
        self.scale_ = np.where(usable, spread, 1.0) if self.scale else np.ones(X.shape[1])
        i, j = np.nonzero(known)
        values = (X[i, j] - self.center_[j]) / self.scale_[j]
        self._seen = Observations(i, j, values, X.shape), weights, F
        self._calibrated: LowRank | None = None
        self.completed_ = self._complete(*self._seen)
        self.n_components_ = self.completed_.rank
        self.n_iter_ = int(self.completed_.report["sweeps"])
        return self

    def transform(self, X: Any) -> Array:
        """Return X with its gaps filled, known entries as they are; rows need not have been in the fit."""
        return self._transform(X, None)

    def _transform(self, X: Any, row_features: ArrayLike | None) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        filled = X.copy()
        i, j = np.nonzero(np.isnan(X))
        if len(i):
            folded = self._fold(X, row_features)
            filled[i, j] = folded.entries(i, j) * self.scale_[j] + self.center_[j]
        return np.asarray(filled if self.keep_empty_features else filled[:, ~self._empty])

    def interval(
        self, X: Any, level: float = 0.9, row_features: ArrayLike | None = None
    ) -> Interval:
        """Return the ends of intervals for the gaps of X, arrays like X with the known entries themselves elsewhere.

        They are calibrated: the first call holds out some of the known entries of the fit, foretells them as gaps are
        filled, and widths follow how far off that was (:func:`entrywise.intervals.conformal`). It takes as long as a few
        fits. With fewer than 200 known entries, intervals are the model's own where it has some.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        if self._calibrated is None:
            self._calibrated = replace(self.completed_, calibration=self._calibration())
        ends = []
        i, j = np.nonzero(np.isnan(X))
        found = self._fold(X, row_features, self._calibrated).interval(i, j, level)
        for end in found:
            filled = X.copy()
            filled[i, j] = end * self.scale_[j] + self.center_[j]
            ends.append(filled)
        return Interval(*ends)

    def _calibration(self) -> Calibration | None:
        """Return what entries held out of the fit say of its intervals, their rows folded in as gaps are filled."""
        seen, weights, F = self._seen

        def fold(part: Observations) -> LowRank:
            fit = self._complete(part, weights, F, like=self.completed_)
            return fit.fold_in(part, features=F)

        return conformal(seen, fold, row_scales=False, rng=self.random_state).calibration

    def _fold(
        self, X: Array, row_features: ArrayLike | None, found: LowRank | None = None
    ) -> LowRank:
        i, j = np.nonzero(~np.isnan(X))
        values = (X[i, j] - self.center_[j]) / self.scale_[j]
        F = None if row_features is None else _row_features(row_features, len(X))
        found = self.completed_ if found is None else found
        return found.fold_in(Observations(i, j, values, X.shape), features=F)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the columns of the output: those of the input, empty ones left out."""
        check_is_fitted(self, "n_features_in_")
        names = _check_feature_names_in(self, input_features)
        return np.asarray(names if self.keep_empty_features else names[~self._empty], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class LowRankImputer(_Imputer):
    """Fill gaps from the low-rank structure of all columns together, with intervals and no penalty to choose.

    Columns are put on one scale, :func:`entrywise.passive.low_rank` is fitted, and a row, seen or new, is completed
    from its own known entries. ``fit_transform`` is ``fit`` then ``transform``.

    Parameters
    ----------
    n_components : int, optional
        Components besides row and column biases; chosen when None.
    scale : bool
        Divide each column by its standard deviation first.
    keep_empty_features : bool
        Keep columns of which nothing is known (filled with 0) instead of leaving them out.
    random_state : int, RandomState, Generator or None
    max_sweeps, tol : int, float
        As ``max_sweeps`` and ``tol`` of low_rank.
    col_features : array of shape (n_features, d), optional
        Features of the columns. Those of the rows are given to ``fit`` and ``transform`` as ``row_features``, of shape
        (n_samples, d), also through scikit-learn's metadata routing.

    Attributes
    ----------
    completed_ : LowRank
        The fit, on standardised columns; its rows are the distinct rows of X.
    n_components_, n_iter_ : int
    center_, scale_ : ndarray of shape (n_features,)
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 8))
    >>> X = np.where(rng.random(A.shape) < 0.7, A, np.nan)
    >>> imputer = LowRankImputer().fit(X[:150])
    >>> new = imputer.transform(X[150:])
    >>> bool(np.abs(new - A[150:]).mean() < 0.1)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        scale: bool = True,
        keep_empty_features: bool = False,
        random_state: Seed = 0,
        max_sweeps: int = 60,
        tol: float = 1e-3,
        col_features: ArrayLike | None = None,
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.col_features = col_features

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        row_features: ArrayLike | None = None,
    ) -> Self:
        """Learn from the known entries of X, shape (n_samples, n_features), and the rows' features, if any."""
        return self._fit(X, sample_weight, row_features)

    def transform(self, X: Any, row_features: ArrayLike | None = None) -> Array:
        """Return X with its gaps filled, known entries as they are; a row may have features alone."""
        return self._transform(X, row_features)

    def _complete(
        self,
        seen: Observations,
        weights: Array,
        row_features: Array | None,
        like: LowRank | None = None,
    ) -> LowRank:
        alike = bool(np.all(weights == 1.0))
        return low_rank(
            seen,
            self.n_components if like is None else like.rank,
            row_weights=None if alike else weights,
            row_features=row_features,
            col_features=self.col_features,
            rng=self.random_state,
            max_sweeps=self.max_sweeps,
            tol=self.tol,
        )


class SoftImputer(_Imputer):
    """Fill gaps by the softImpute method: squared error plus a nuclear norm, its penalty chosen on held-out entries.

    Parameters
    ----------
    penalty : float, optional
        On standardised columns; chosen when None.
    max_rank : int, optional
        Most components.
    scale, keep_empty_features, random_state
        See :class:`LowRankImputer`.
    max_sweeps, tol : int, float
        As ``max_sweeps`` and ``tol`` of soft_impute.

    Attributes
    ----------
    completed_, n_components_, n_iter_, center_, scale_, n_features_in_, feature_names_in_
        See :class:`LowRankImputer`.

    Examples
    --------
    >>> X = np.outer(np.linspace(-2, 2, 40), np.arange(1.0, 6.0))
    >>> X[30, 3] = np.nan  # was 4.3; a nuclear norm shrinks
    >>> float(round(SoftImputer(penalty=0.01).fit_transform(X)[30, 3], 1))
    4.1
    """

    def __init__(
        self,
        penalty: float | None = None,
        *,
        max_rank: int | None = None,
        scale: bool = True,
        keep_empty_features: bool = False,
        random_state: Seed = 0,
        max_sweeps: int = 300,
        tol: float = 1e-5,
    ) -> None:
        self.penalty = penalty
        self.max_rank = max_rank
        self.scale = scale
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state
        self.max_sweeps = max_sweeps
        self.tol = tol

    def _complete(
        self,
        seen: Observations,
        weights: Array,
        row_features: Array | None,
        like: LowRank | None = None,
    ) -> LowRank:
        # a row that stands for w rows alike is, to the nuclear norm, one row times the root of w
        scaled = Observations(
            seen.rows, seen.cols, seen.values * np.sqrt(weights)[seen.rows], seen.shape
        )
        penalty = self.penalty if like is None else like.report["penalty"]
        return soft_impute(
            scaled, penalty, max_rank=self.max_rank, center="none", rng=self.random_state,
            max_sweeps=self.max_sweeps, tol=self.tol,
        )  # fmt: skip


def _row_features(given: ArrayLike, lines: int) -> Array:
    found = np.asarray(given, np.float64)
    if found.ndim != 2 or len(found) != lines:
        raise DataError(f"row_features must have {lines} rows like X, got shape {found.shape}")
    return found


def _merge(X: Array, weights: Array) -> tuple[NDArray[np.int64], Array]:
    """Return where the distinct rows first appear, in order, and their total weights.

    A repeated row and a row of weight two are then the same thing, bit for bit.
    """
    canonical = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0))
    keys = canonical.view(np.uint64)
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    total = np.bincount(group.ravel(), weights)
    return first[order], np.asarray(total[order], np.float64)
