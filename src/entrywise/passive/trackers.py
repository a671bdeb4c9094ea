"""What partial PCA is compared with: PETRELS, GROUSE, PCA of zero-filled or completed data, PCA of everything.

All take samples as :func:`entrywise.passive.partial_pca` does, work through the origin unless they say otherwise, and
return a :class:`~entrywise.results.Subspace`. The two trackers go through the samples one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.pairs import as_samples
from entrywise.observations import Observations
from entrywise.passive.partial_pca import from_covariance
from entrywise.results import Subspace
from entrywise.types import Array, Indices, Seed, generator

UPRIGHT = 1000  # samples after which the columns of GROUSE are made orthonormal again
ROWS = 4096  # completed samples held at once


def petrels(
    samples: Any,
    rank: int,
    *,
    forget: float = 1.0,
    ridge: float = 0.1,
    passes: int = 1,
    rng: Seed = None,
) -> Subspace:
    r"""Track a subspace by recursive least squares, one for each attribute seen.

    .. math:: a = \arg\min_a \|x_o - U_o a\|^2, \quad R_j \leftarrow \lambda R_j + a a^\top, \quad
              U_j \leftarrow U_j + (x_j - a^\top U_j) R_j^{-1} a

    Parameters
    ----------
    samples : as in :func:`entrywise.passive.partial_pca`
    rank : int
    forget : float
        The share :math:`\lambda` of its past that an attribute keeps at each look; 1 forgets nothing.
    ridge : float
        Start of :math:`R_j`, times the identity, and regulariser of a, relative to the scale of the data.
    passes : int
        How often the samples are gone through.

    References
    ----------
    .. [CEC13] Chi, Eldar, Calderbank, *PETRELS: parallel subspace estimation and tracking by recursive least squares
       from partial observations*, IEEE Trans. Signal Processing 61, 2013, Algorithm 1.
    """
    X, U, scale = _start(samples, rank, rng)
    d, k = U.shape
    if not 0 < forget <= 1 or not ridge > 0:
        raise ParameterError(
            f"forget must be in (0, 1] and ridge above 0, got {forget} and {ridge}"
        )
    R = np.tile(ridge * scale * np.eye(k), (d, 1, 1))
    moments, count = np.zeros((k, k)), 0
    for _ in range(passes):
        for o, x in _each(X):
            V = U[o]
            a = np.linalg.solve(V.T @ V + ridge * np.eye(k), V.T @ x)
            R[o] = forget * R[o] + np.outer(a, a)
            gain = np.linalg.solve(R[o], np.broadcast_to(a[:, None], (len(o), k, 1)))[:, :, 0]
            U[o] = V + (x - V @ a)[:, None] * gain
            moments, count = forget * moments + np.outer(a, a), count + 1
    weight = count if forget == 1 else (1 - forget**count) / (1 - forget)
    return _tracked(U, moments / max(weight, 1.0), "petrels")


def grouse(
    samples: Any,
    rank: int,
    *,
    step: float = 1.0,
    decay: bool = True,
    passes: int = 1,
    rng: Seed = None,
) -> Subspace:
    r"""Track a subspace by rank-one steps along geodesics of the Grassmannian.

    Parameters
    ----------
    samples : as in :func:`entrywise.passive.partial_pca`
    rank : int
    step : float
        Of the angle, relative to the greedy angle ``atan(|residual| / |projection|)``.
    decay : bool
        Let the step fall like 1 / sqrt(1 + t / d), for a fixed subspace in noise; otherwise it stays.
    passes : int

    References
    ----------
    .. [BNR10] Balzano, Nowak, Recht, *Online identification and tracking of subspaces from highly incomplete information*,
       Allerton 2010.
    """
    X, U, _ = _start(samples, rank, rng)
    d, k = U.shape
    moments, count = np.zeros((k, k)), 0
    for _ in range(passes):
        for o, x in _each(X):
            V = U[o]
            a = np.linalg.lstsq(V, x, rcond=1e-8)[0]
            p = U @ a
            residual = np.zeros(d)
            residual[o] = x - V @ a
            size_p, size_r = float(np.linalg.norm(p)), float(np.linalg.norm(residual))
            if size_r > 1e-12 * size_p and size_p > 0:
                slower = np.sqrt(1.0 + count / d) if decay else 1.0
                angle = step * np.arctan(size_r / size_p) / slower
                turn = (np.cos(angle) - 1.0) * p / size_p + np.sin(angle) * residual / size_r
                U += np.outer(turn, a / np.linalg.norm(a))
            count += 1
            moments += np.outer(a, a)
            if count % UPRIGHT == 0:  # round-off slowly tilts the columns
                U = np.linalg.qr(U)[0]
    return _tracked(U, moments / max(count, 1), "grouse")


def zero_fill_pca(samples: Any, rank: int) -> Subspace:
    """Return PCA of the samples with 0 in place of what was not seen."""
    X = as_samples(samples)
    _refuse(X, rank)
    Y = np.nan_to_num(X) if isinstance(X, np.ndarray) else X
    C = Y.T @ Y
    C = np.asarray(C if isinstance(C, np.ndarray) else C.toarray()) / X.shape[0]
    return from_covariance(C, rank, np.zeros(X.shape[1]), "none")


def full_pca(samples: Any, rank: int, *, center: bool = False) -> Subspace:
    """Return PCA of samples seen whole: what partial information is measured against."""
    X = as_samples(samples)
    _refuse(X, rank)
    if not isinstance(X, np.ndarray) or np.isnan(X).any():
        raise DataError("full_pca takes samples seen whole, without NaN; use partial_pca")
    mean = X.mean(axis=0) if center else np.zeros(X.shape[1])
    return from_covariance((X - mean).T @ (X - mean) / (len(X) - center), rank, mean, "none")


def impute_pca(samples: Any, rank: int, **options: Any) -> Subspace:
    """Return PCA of the samples completed by :func:`entrywise.passive.soft_impute`, which takes the `options`."""
    from entrywise.passive.soft_impute import soft_impute

    X = as_samples(samples)
    _refuse(X, rank)
    options.setdefault("center", "none")
    observations = (
        Observations.from_dense(X) if isinstance(X, np.ndarray) else Observations.from_sparse(X)
    )
    found = soft_impute(observations, **options)
    m, d = found.shape
    C = np.zeros((d, d))
    for a in range(0, m, ROWS):
        rows = np.arange(a, min(a + ROWS, m))
        block = found.entries(rows[:, None], np.arange(d)[None, :])
        C += block.T @ block
    return from_covariance(C / m, rank, np.zeros(d), "none")


def _refuse(X: Any, rank: int) -> None:
    if not 1 <= rank < X.shape[1]:
        raise ParameterError(f"rank must be in 1..{X.shape[1] - 1}, got {rank}")


def _start(samples: Any, rank: int, rng: Seed) -> tuple[Any, Array, float]:
    """Return the samples, a random orthonormal start of shape (d, k), and the mean square of a value."""
    X = as_samples(samples)
    _refuse(X, rank)
    values = X[~np.isnan(X)] if isinstance(X, np.ndarray) else X.data
    if not len(values):
        raise DataError("nothing was seen; give samples with values")
    U = np.linalg.qr(generator(rng).standard_normal((X.shape[1], rank)))[0]
    return X, U, float(np.mean(values**2)) or 1.0


def _each(X: Any) -> Iterator[tuple[Indices, Array]]:
    """Yield each sample that shows anything as (attributes, values)."""
    if isinstance(X, np.ndarray):
        for x in X:
            o = np.flatnonzero(~np.isnan(x))
            if len(o):
                yield o, x[o]
        return
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        if b > a:
            yield X.indices[a:b].astype(np.int64), X.data[a:b]


def _tracked(U: Array, moments: Array, name: str) -> Subspace:
    """Return the span of U with the variance that its coefficients had."""
    Q, R = np.linalg.qr(U)
    values, W = np.linalg.eigh(R @ moments @ R.T)
    V = (Q @ W[:, ::-1]).T
    k, d = V.shape
    sign = np.where(V[np.arange(k), np.abs(V).argmax(axis=1)] < 0, -1.0, 1.0)
    variance = np.maximum(values[::-1], 0.0)
    return Subspace(
        V * sign[:, None],
        variance,
        np.zeros(d),
        np.concatenate([variance, np.zeros(d - k)]),
        report={"method": name},
    )
