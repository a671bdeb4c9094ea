"""GROUSE: steps along geodesics of the Grassmannian."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.passive.trackers.samples import each, start, tracked
from entrywise.results import Subspace
from entrywise.types import Seed

UPRIGHT = 1000  # samples after which the columns are made orthonormal again


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
    X, U, _ = start(samples, rank, rng)
    d, k = U.shape
    moments, count = np.zeros((k, k)), 0
    for _ in range(passes):
        for o, x in each(X):
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
    return tracked(U, moments / max(count, 1), "grouse")
