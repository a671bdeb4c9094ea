"""Capped MSG: projected gradients on matrices of bounded rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.passive.trackers.moments import block_moments, dense_samples
from entrywise.passive.trackers.samples import tracked
from entrywise.results import Subspace
from entrywise.types import Array, Seed, generator


def capped_msg(
    samples: Any,
    rank: int,
    *,
    cap: int | None = None,
    step: float | None = None,
    blocks: int = 100,
    rng: Seed = None,
) -> Subspace:
    r"""Track a subspace by projected stochastic gradients, the iterate's rank capped.

    .. math:: P \leftarrow \Pi (P + \eta_b\, \hat C_b), \qquad 0 \preceq P \preceq I,\ \mathrm{tr}\, P = k,\ \mathrm{rank}\, P \le K

    Parameters
    ----------
    samples : as in :func:`entrywise.passive.partial_pca`
    rank : int
    cap : int, optional
        K; by default k + 1, with which the authors found no local optimum.
    step : float, optional
        :math:`\eta_b = c / \sqrt b` with this c; by default one over the mean trace of the moments.
    blocks : int
        Updates.
    rng : int or Generator
        Of the start.

    References
    ----------
    .. [ACS13] Arora, Cotter, Srebro, *Stochastic optimization of PCA with capped MSG*, NIPS 2013, with the moments of partly
       seen samples in place of :math:`x x^\top`.
    """
    X = dense_samples(samples, rank)
    d = X.shape[1]
    most = min(d, rank + 1 if cap is None else cap)
    if most < rank or blocks < 1 or (step is not None and not step > 0):
        raise ParameterError(
            f"cap must be at least {rank}, blocks and step above 0, got {cap}, {blocks} and {step}"
        )
    every = list(block_moments(X, blocks))
    scale = float(np.mean([np.trace(C) for C in every])) or 1.0
    size = 1.0 / scale if step is None else step
    U = np.linalg.qr(generator(rng).standard_normal((d, most)))[0]
    weights = np.full(most, rank / most)
    for b, C in enumerate(every, start=1):
        P = (U * weights) @ U.T + size / np.sqrt(b) * C
        values, V = np.linalg.eigh(P)
        U, weights = V[:, ::-1][:, :most], _to_hull(values[::-1][:most], rank)
    top = np.argsort(-weights, kind="stable")[:rank]
    Q = U[:, top]
    return tracked(Q, Q.T @ (sum(every) / len(every)) @ Q, "capped MSG")


def _to_hull(values: Array, k: int) -> Array:
    """Return the nearest weights in 0..1 that add up to k: all moved by one shift and clipped."""
    low, high = float(values.min()) - 1.0, float(values.max())
    for _ in range(100):  # bisection on the shift, to the last bit
        shift = (low + high) / 2
        if np.clip(values - shift, 0.0, 1.0).sum() > k:
            low = shift
        else:
            high = shift
    return np.asarray(np.clip(values - high, 0.0, 1.0))
