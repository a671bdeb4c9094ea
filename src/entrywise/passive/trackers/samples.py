"""What every tracker shares: the samples one by one, a random start, the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.pairs import as_samples
from entrywise.results import Subspace
from entrywise.types import Array, Indices, Seed, generator


def refuse(X: Any, rank: int) -> None:
    """Refuse a rank that leaves nothing out."""
    if not 1 <= rank < X.shape[1]:
        raise ParameterError(f"rank must be in 1..{X.shape[1] - 1}, got {rank}")


def start(samples: Any, rank: int, rng: Seed) -> tuple[Any, Array, float]:
    """Return the samples, a random orthonormal start of shape (d, k), and the mean square of a value."""
    X = as_samples(samples)
    refuse(X, rank)
    values = X[~np.isnan(X)] if isinstance(X, np.ndarray) else X.data
    if not len(values):
        raise DataError("nothing was seen; give samples with values")
    U = np.linalg.qr(generator(rng).standard_normal((X.shape[1], rank)))[0]
    return X, U, float(np.mean(values**2)) or 1.0


def each(X: Any) -> Iterator[tuple[Indices, Array]]:
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


def tracked(U: Array, moments: Array, name: str) -> Subspace:
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
