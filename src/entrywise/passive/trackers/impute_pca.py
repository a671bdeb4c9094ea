"""PCA of completed samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg.pairs import as_samples
from entrywise.observations import Observations
from entrywise.passive.partial_pca import from_covariance
from entrywise.passive.trackers.samples import refuse
from entrywise.results import Subspace

ROWS = 4096  # completed samples held at once


def impute_pca(samples: Any, rank: int, **options: Any) -> Subspace:
    """Return PCA of the samples completed by :func:`entrywise.passive.soft_impute`, which takes the `options`."""
    from entrywise.passive.soft_impute import soft_impute

    X = as_samples(samples)
    refuse(X, rank)
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
