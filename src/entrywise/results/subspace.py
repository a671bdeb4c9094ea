"""A subspace near which samples lie, and the scores of samples of which only a part is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import DataError
from entrywise.results.result import Result
from entrywise.types import Array


@dataclass(frozen=True, eq=False, repr=False)
class Subspace(Result):
    r"""A k-dimensional subspace of :math:`R^d` near which samples lie, with the spectrum it was taken from.

    Parameters
    ----------
    components : ndarray of shape (k, d)
        Orthonormal rows, strongest first; the largest loading of each is positive.
    explained_variance : ndarray of shape (k,)
        Variance (second moment, when no mean was taken out) along each component.
    mean : ndarray of shape (d,)
        What is subtracted before projecting; zeros when samples were not centred.
    spectrum : ndarray of shape (d,)
        All eigenvalues, largest first.

    Examples
    --------
    >>> line = Subspace(np.array([[0.6, 0.8]]), np.array([4.0]), np.zeros(2), np.array([4.0, 1.0]))
    >>> line.transform([[3.0, 4.0], [3.0, np.nan]]).round(3).tolist()
    [[5.0], [3.462]]
    >>> round(line.captured(np.diag([0.0, 1.0])), 2)
    0.64
    """

    components: Array
    explained_variance: Array
    mean: Array
    spectrum: Array

    @property
    def k(self) -> int:
        """Dimension of the subspace."""
        return int(self.components.shape[0])

    @property
    def d(self) -> int:
        """Attributes of a sample."""
        return int(self.components.shape[1])

    @property
    def explained_variance_ratio(self) -> Array:
        """Share of all variance along each component."""
        total = float(self.spectrum.sum())
        return self.explained_variance / total if total > 0 else np.zeros(self.k)

    @property
    def noise_variance(self) -> float:
        """Mean variance along the directions left out."""
        rest = self.spectrum[self.k :]
        return float(rest.mean()) if len(rest) else 0.0

    def projection(self) -> Array:
        """Return the projection onto the subspace, shape (d, d)."""
        return np.asarray(self.components.T @ self.components)

    def captured(self, covariance: ArrayLike) -> float:
        """Return the share of the best k-dimensional energy of `covariance` that the subspace captures."""
        C = np.asarray(covariance, dtype=np.float64)
        best = float(np.linalg.eigvalsh(C)[-self.k :].sum())
        return (
            float(np.einsum("kd,de,ke->", self.components, C, self.components)) / best
            if best > 0
            else 1.0
        )

    def transform(self, X: Any) -> Array:
        r"""Return the scores of partly seen samples, shape (n, k); NaN, or what is not stored, was not seen.

        With :math:`V` the components, o the attributes seen, :math:`\Lambda` their variances and
        :math:`\sigma^2` the noise variance, the score is the regularised least squares fit

        .. math:: z = \Lambda (\sigma^2 I + V_o V_o^\top (\Lambda - \sigma^2 I))^{-1} V_o (x_o - \mu_o),

        the conditional mean of the plain projection under a Gaussian with this spectrum: a sample seen whole
        gets :math:`V (x - \mu)`, one of which nothing was seen gets 0.
        """
        V, k = self.components, self.k
        centred, seen, whole = self._centred(X)
        b = np.asarray(centred @ V.T)  # (n, k)
        part = np.flatnonzero(~whole)
        if not len(part):
            return b
        scale = float(self.explained_variance.max(initial=0.0))
        if scale <= 0:
            b[part] = 0.0
            return b
        noise = max(self.noise_variance, 1e-8 * scale) / scale  # round-off must not be fitted
        variance = np.maximum(self.explained_variance / scale, noise)
        outer = (V.T[:, :, None] * V.T[:, None, :]).reshape(self.d, k * k)
        for start in range(0, len(part), max(1, 2**22 // (k * k))):
            i = part[start : start + max(1, 2**22 // (k * k))]
            G = np.asarray(seen[i] @ outer).reshape(len(i), k, k)
            G = G * (variance - noise) + noise * np.eye(k)
            b[i] = variance * np.linalg.solve(G, b[i][:, :, None])[:, :, 0]
        return b

    def _centred(self, X: Any) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Return the seen attributes less their mean, where they are seen, and which samples are seen whole."""
        if not hasattr(X, "tocsr"):
            X = (
                np.ma.filled(np.ma.asarray(X).astype(float), np.nan)
                if np.ma.isMA(X)
                else np.asarray(X, float)
            )
        if X.ndim != 2 or X.shape[1] != self.d:
            raise DataError(
                f"samples must be an array with one row a sample and {self.d} columns, got {X.shape}"
            )
        if isinstance(X, np.ndarray):
            known = ~np.isnan(X)
            return (
                np.where(known, X - self.mean, 0.0),
                known.astype(np.float64),
                np.asarray(known.all(axis=1)),
            )
        centred = X.tocsr().astype(np.float64, copy=True)
        seen = centred.copy()
        seen.data = np.ones_like(centred.data)
        centred.data -= self.mean[centred.indices]
        return centred, seen, np.diff(centred.indptr) == self.d

    def inverse_transform(self, scores: ArrayLike) -> Array:
        """Return the samples that scores stand for, shape (n, d)."""
        return np.asarray(np.asarray(scores, dtype=np.float64) @ self.components + self.mean)
