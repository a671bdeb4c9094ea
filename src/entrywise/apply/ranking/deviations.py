"""Standard deviations of scores, exact or sampled."""

from __future__ import annotations

import numpy as np

from entrywise.apply.ranking.bradley_terry import Grounded
from entrywise.linalg.laplacian import Laplacian
from entrywise.types import Array

DENSE = 1500  # beyond so many items deviations are sampled,
PROBES = 100  # with so many solves: a deviation to about 7 %


def covariance(ground: Grounded, scatter: Array) -> Array:
    r"""Return the covariance of the scores' errors, each component's mean fixed, shape (n, n).

    With `scatter` (what each pair's games varied by) equal to the weights it is the inverse of the curvature; else the
    sandwich :math:`C (B S B^\top + I/\tau^2) C`.
    """
    part = Laplacian(ground.n, ground.i, ground.j, np.ones(len(ground.i))).components[1]
    C = ground.covariance(part)
    if np.array_equal(scatter, ground.weight):
        return C
    u = C[:, ground.i] - C[:, ground.j]  # (n, e)
    return np.asarray((u * scatter) @ u.T + C @ C * ground.spread**-2.0)


def deviations(ground: Grounded, scatter: Array) -> Array:
    """Return the standard deviation of each score's error, its component's mean fixed."""
    if ground.n <= DENSE:
        return np.sqrt(np.maximum(covariance(ground, scatter).diagonal(), 0.0))
    plain = Laplacian(ground.n, ground.i, ground.j, np.ones(len(ground.i)))
    rng = np.random.default_rng(0)
    total = np.zeros(ground.n)
    for _ in range(PROBES):
        total += ground.sample(rng, scatter, plain) ** 2
    return np.asarray(np.sqrt(total / PROBES))


def variance_of_difference(ground: Grounded, scatter: Array, a: int, b: int) -> float:
    """Return the variance of the error of the difference of two scores, from one solve."""
    e = np.zeros(ground.n)
    e[a], e[b] = 1.0, -1.0
    u = ground.solve(e, 1e-10)
    flows = u[ground.i] - u[ground.j]
    return float(scatter @ flows**2 + u @ u * ground.spread**-2.0)
