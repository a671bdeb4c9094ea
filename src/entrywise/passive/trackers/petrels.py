"""PETRELS: recursive least squares for each attribute seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.passive.trackers.samples import each, start, tracked
from entrywise.results import Subspace
from entrywise.types import Seed


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
    X, U, scale = start(samples, rank, rng)
    d, k = U.shape
    if not 0 < forget <= 1 or not ridge > 0:
        raise ParameterError(
            f"forget must be in (0, 1] and ridge above 0, got {forget} and {ridge}"
        )
    R = np.tile(ridge * scale * np.eye(k), (d, 1, 1))
    moments, count = np.zeros((k, k)), 0
    for _ in range(passes):
        for o, x in each(X):
            V = U[o]
            a = np.linalg.solve(V.T @ V + ridge * np.eye(k), V.T @ x)
            R[o] = forget * R[o] + np.outer(a, a)
            gain = np.linalg.solve(R[o], np.broadcast_to(a[:, None], (len(o), k, 1)))[:, :, 0]
            U[o] = V + (x - V @ a)[:, None] * gain
            moments, count = forget * moments + np.outer(a, a), count + 1
    weight = count if forget == 1 else (1 - forget**count) / (1 - forget)
    return tracked(U, moments / max(weight, 1.0), "petrels")
