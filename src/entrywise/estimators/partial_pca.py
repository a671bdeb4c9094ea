"""Principal components of samples with missing attributes, in scikit-learn's form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from entrywise.exceptions import ParameterError
from entrywise.linalg.pairs import PairSums
from entrywise.passive.partial_pca import Mask, Repair, from_sums
from entrywise.results import Subspace
from entrywise.types import Array


class PartialPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """PCA of data with missing attributes: one pass, nothing imputed, merged across machines.

    On complete data it is ordinary PCA. NaN, masked entries, and entries that a scipy sparse matrix does not
    store were not seen (so stored zeros count, and the others are unknown, not zero).

    Parameters
    ----------
    n_components : int, optional
        Dimension of the subspace, below the number of attributes; None keeps every direction with variance, at most
        all but one.
    center : bool
        Take the means out.
    mask, per_sample, repair
        See :func:`entrywise.passive.partial_pca`; the default is right under any mask that does not look at the values.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
    subspace_ : Subspace
        All of these, with the spectrum and the report.
    sums_ : PairSums
        What was kept of the data; ``sums_.save(path)`` writes it.
    n_samples_seen_ : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 2)) @ rng.standard_normal((2, 6)) + 5.0
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> pca = PartialPCA(n_components=2).fit(X)
    >>> pca.transform(X[:5]).shape
    (5, 2)
    >>> half = PartialPCA(n_components=2).fit(X[:1000]).merge(PartialPCA(n_components=2).fit(X[1000:]))
    >>> bool(np.allclose(half.components_, pca.components_))
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        center: bool = True,
        mask: Mask = "pairwise",
        per_sample: float | ArrayLike | None = None,
        repair: Repair = "soft",
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.mask = mask
        self.per_sample = per_sample
        self.repair = repair

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all of `X`; `sample_weight` counts repetitions of a row."""
        X = self._samples(X, reset=True, least=2)
        self.sums_ = PairSums(X.shape[1], self.center)
        self._add(X, sample_weight)
        _ = self.subspace_  # what cannot be identified is told here
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more samples; the components are computed when they are next asked for."""
        first = not hasattr(self, "sums_")
        X = self._samples(X, reset=first, least=1)
        if first:
            self.sums_ = PairSums(X.shape[1], self.center)
        return self._add(X, sample_weight)

    def merge(self, other: PartialPCA) -> PartialPCA:
        """Return an estimator that has seen what both have seen; neither is changed."""
        check_is_fitted(self)
        check_is_fitted(other)
        found = self.__class__(**self.get_params(deep=False))
        found.sums_ = self.sums_.merge(other.sums_)
        found.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found

    def transform(self, X: Any) -> Array:
        """Return scores, shape (n, k): regularised least squares on the attributes that each sample shows."""
        check_is_fitted(self)
        return self.subspace_.transform(self._samples(X, reset=False, least=1))

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return the samples that scores stand for, shape (n, d)."""
        check_is_fitted(self)
        return self.subspace_.inverse_transform(X)

    def get_covariance(self) -> Array:
        """Return the covariance of the model: components plus noise alike in all other directions."""
        s = self.subspace_
        V = s.components
        return np.asarray(
            (V.T * (s.explained_variance - s.noise_variance)) @ V + s.noise_variance * np.eye(s.d)
        )

    @property
    def subspace_(self) -> Subspace:
        """The components with their spectrum, computed once after each change."""
        check_is_fitted(self, "sums_")
        asked = (self.n_components, self.mask, self.repair, self.sums_.rows)
        if getattr(self, "_asked", None) != asked or not hasattr(self, "_subspace"):
            if self.center != self.sums_.centered:
                raise ParameterError("center was changed after the first samples; fit again")
            k = self.sums_.d - 1 if self.n_components is None else self.n_components
            found = from_sums(
                self.sums_,
                k,
                center=self.center,
                mask=self.mask,
                per_sample=self.per_sample,
                repair=self.repair,
            )
            if self.n_components is None:
                some = max(1, int(np.sum(found.explained_variance > 1e-10 * found.spectrum[0])))
                found = replace(
                    found,
                    components=found.components[:some],
                    explained_variance=found.explained_variance[:some],
                )
            self._subspace = found
            self._asked = asked
        return self._subspace

    @property
    def components_(self) -> Array:
        """Orthonormal rows, strongest first."""
        return self.subspace_.components

    @property
    def explained_variance_(self) -> Array:
        """Variance along each component."""
        return self.subspace_.explained_variance

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of all variance along each component."""
        return self.subspace_.explained_variance_ratio

    @property
    def mean_(self) -> Array:
        """Mean of each attribute over the samples that show it."""
        return self.subspace_.mean

    @property
    def noise_variance_(self) -> float:
        """Mean variance along the directions left out."""
        return self.subspace_.noise_variance

    @property
    def n_components_(self) -> int:
        """Dimension of the subspace."""
        return self.subspace_.k

    @property
    def n_samples_seen_(self) -> int:
        """Samples seen so far, those that showed nothing included."""
        check_is_fitted(self, "sums_")
        return self.sums_.rows

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _samples(self, X: Any, reset: bool, least: int) -> Any:
        if np.ma.isMaskedArray(X):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
            ensure_min_features=2 if reset else 1,
        )

    def _add(self, X: Any, sample_weight: ArrayLike | None) -> Self:
        from sklearn.utils.validation import _check_sample_weight

        weights = (
            None
            if sample_weight is None
            else _check_sample_weight(sample_weight, X, dtype=np.float64)
        )
        self.sums_.add(X, weights)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
