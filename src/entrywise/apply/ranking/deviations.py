"""Standard deviations of scores: the diagonal of a Laplacian's pseudo-inverse, exact or sampled."""

from __future__ import annotations

import numpy as np

from entrywise.linalg.laplacian import Laplacian
from entrywise.types import Array

DENSE = 1500  # beyond so many items deviations are sampled,
PROBES = 100  # with so many solves: a deviation to about 7 %


def deviations(graph: Laplacian) -> Array:
    """Return the square roots of the diagonal of the Laplacian's pseudo-inverse."""
    return _exact(graph) if graph.n <= DENSE else _sampled(graph)


def _exact(graph: Laplacian) -> Array:
    G = graph.inverse()
    count, part = graph.components
    member = (part[:, None] == np.arange(count)).astype(np.float64)
    member /= member.sum(axis=0)
    across = G @ member  # (n, components)
    own = across[np.arange(graph.n), part]
    mean = np.einsum("nc,nc->c", member, across)
    variance = np.diag(G) - 2.0 * own + mean[part]
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _sampled(graph: Laplacian) -> Array:
    rng = np.random.default_rng(0)
    total = np.zeros(graph.n)
    for _ in range(PROBES):
        flow = np.sqrt(graph.weights) * rng.standard_normal(len(graph.weights))
        total += graph.solve(graph.divergence(flow), 1e-4) ** 2
    return np.asarray(np.sqrt(total / PROBES))
