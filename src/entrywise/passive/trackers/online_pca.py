"""Online PCA: exponentiated gradient over projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.linalg.capped import project
from entrywise.passive.partial_pca import from_covariance
from entrywise.passive.trackers.moments import block_moments, dense_samples
from entrywise.results import Subspace


def online_pca(
    samples: Any, rank: int, *, rate: float | None = None, blocks: int = 100
) -> Subspace:
    r"""Track a subspace by multiplicative updates of a weight matrix in the hull of the projections.

    .. math:: W \leftarrow \Pi \exp(\log W + \eta\, \hat C_b), \qquad 0 \preceq W \preceq I,\ \mathrm{tr}\, W = k

    Parameters
    ----------
    samples : as in :func:`entrywise.passive.partial_pca`
    rank : int
    rate : float, optional
        :math:`\eta`; by default :math:`\sqrt{k \log(d / k) / b} / s`, s the mean trace of the moments.
    blocks : int
        Updates; one a sample is the paper's, for samples seen whole.

    Returns
    -------
    Subspace
        The leading eigenvectors of the mean of W.

    References
    ----------
    .. [WK08] Warmuth, Kuzmin, *Randomized online PCA algorithms with regret bounds that are logarithmic in the dimension*,
       JMLR 9, 2008; with the moments of partly seen samples in place of :math:`x x^\top`, as the bandit form of
       Gonen et al. 2016 has them.
    """
    X = dense_samples(samples, rank)
    d = X.shape[1]
    if blocks < 1 or (rate is not None and not rate > 0):
        raise ParameterError(f"blocks and rate must be above 0, got {blocks} and {rate}")
    every = list(block_moments(X, blocks))
    scale = float(np.mean([np.trace(C) for C in every])) or 1.0
    eta = np.sqrt(rank * np.log(d / rank) / len(every)) / scale if rate is None else rate
    H, total = np.zeros((d, d)), np.zeros((d, d))
    for C in every:
        H = H + eta * C
        values, V = np.linalg.eigh(H)
        total += (V * np.exp(project(values, rank))) @ V.T
    found = from_covariance(total, rank, np.zeros(d), "none")
    return _with_variances(found, sum(every) / len(every))


def _with_variances(found: Subspace, C: Any) -> Subspace:
    """Return the same span with the variance of the samples along it."""
    from dataclasses import replace

    V = found.components
    variance = np.maximum(np.einsum("kd,de,ke->k", V, C, V), 0.0)
    spectrum = np.concatenate([variance, np.zeros(V.shape[1] - len(V))])
    return replace(found, explained_variance=variance, spectrum=spectrum)
