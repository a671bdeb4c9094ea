"""Streaming PCA with missing entries: a block power method."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.passive.trackers.moments import block_moments, dense_samples
from entrywise.passive.trackers.samples import tracked
from entrywise.results import Subspace
from entrywise.types import Seed, generator


def streaming_pca(
    samples: Any, rank: int, *, blocks: int | None = None, rng: Seed = None
) -> Subspace:
    r"""Track a subspace by one power step a block of samples.

    .. math:: Q \leftarrow \mathrm{qr}(\hat C_b Q), \qquad b = 1, 2, \ldots

    Parameters
    ----------
    samples : as in :func:`entrywise.passive.partial_pca`
    rank : int
    blocks : int, optional
        Power steps; by default :math:`\lceil 2 \log d \rceil`: more blocks are smaller and noisier.
    rng : int or Generator
        Of the start.

    Notes
    -----
    Memory is O(d k) in the paper; here a block's moments are formed, O(d^2), which changes no number. The moments are
    :func:`~entrywise.passive.trackers.moments.block_moments`. Its theorem takes Gaussian samples.

    References
    ----------
    .. [MCJ14] Mitliagkas, Caramanis, Jain, *Streaming PCA with many missing entries*, 2014, Algorithm 1.
    .. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace learning with partial information*, JMLR 17, 2016.
    """
    X = dense_samples(samples, rank)
    d = X.shape[1]
    steps = int(np.ceil(2.0 * np.log(d))) if blocks is None else blocks
    if steps < 1:
        raise ParameterError(f"blocks must be at least 1, got {blocks}")
    Q = np.linalg.qr(generator(rng).standard_normal((d, rank)))[0]
    variances = np.zeros((rank, rank))
    for C in block_moments(X, steps):
        Q = np.linalg.qr(C @ Q)[0]
        variances = Q.T @ C @ Q
    return tracked(Q, variances, "streaming PCA")
