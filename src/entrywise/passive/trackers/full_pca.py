"""PCA of samples seen whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.exceptions import DataError
from entrywise.linalg.pairs import as_samples
from entrywise.passive.partial_pca import from_covariance
from entrywise.passive.trackers.samples import refuse
from entrywise.results import Subspace


def full_pca(samples: Any, rank: int, *, center: bool = False) -> Subspace:
    """Return PCA of samples seen whole: what partial information is measured against."""
    X = as_samples(samples)
    refuse(X, rank)
    if not isinstance(X, np.ndarray) or np.isnan(X).any():
        raise DataError("full_pca takes samples seen whole, without NaN; use partial_pca")
    mean = X.mean(axis=0) if center else np.zeros(X.shape[1])
    return from_covariance((X - mean).T @ (X - mean) / (len(X) - center), rank, mean, "none")
