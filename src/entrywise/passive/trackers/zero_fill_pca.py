"""PCA with zeros in place of what was not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg.pairs import as_samples
from entrywise.passive.partial_pca import from_covariance
from entrywise.passive.trackers.samples import refuse
from entrywise.results import Subspace


def zero_fill_pca(samples: Any, rank: int) -> Subspace:
    """Return PCA of the samples with 0 in place of what was not seen."""
    X = as_samples(samples)
    refuse(X, rank)
    Y = np.nan_to_num(X) if isinstance(X, np.ndarray) else X
    C = Y.T @ Y
    C = np.asarray(C if isinstance(C, np.ndarray) else C.toarray()) / X.shape[0]
    return from_covariance(C, rank, np.zeros(X.shape[1]), "none")
