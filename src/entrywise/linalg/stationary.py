r"""Stationary distributions of chains on graphs, in near-linear time and to the last digit of every entry.

A random walk that goes from i to j with rate :math:`M_{ij}` settles where what flows into each node flows out.
Around a reversible guess the flow is a Laplacian plus a small skew part, so that GMRES preconditioned by the
Laplacian's approximate factor needs a few dozen steps; rescaling by the solution and solving again for what
is left gains digits in every entry, large or small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from entrywise.linalg.laplacian import Laplacian
from entrywise.types import Array, Indices

INNER = 1e-6  # what each round asks of GMRES
GOAL = 1e-13  # imbalance of a node, relative to its outflow, that is round-off


@dataclass(frozen=True)
class Stationary:
    """Logarithms of the stationary distribution, mean of exp(log_pi) one in each component, and how it was found."""

    log_pi: Array
    components: Indices
    imbalance: float
    rounds: int
    krylov: int


def stationary(
    n: int, i: Indices, j: Indices, forth: Array, back: Array, rounds: int = 5
) -> Stationary:
    r"""Return the stationary distribution of the chain with rates `forth` from i to j and `back` from j to i.

    Parameters
    ----------
    n : int
        Number of states.
    i, j : ndarray of int64 of shape (e,)
    forth, back : ndarray of shape (e,)
        Positive rates.
    rounds : int
        Rescalings at most; three are usual.

    Notes
    -----
    Judged by :math:`\max_j |\sum_i \pi_i M_{ij}| / (\pi_j \sum_i M_{ji})`: a small residual in norm says nothing
    about small entries (dense LU is off by 41 in a logarithm, on a path, at a residual of 2e-16).

    Examples
    --------
    >>> found = stationary(3, np.array([0, 1]), np.array([1, 2]), np.array([1.0, 1.0]), np.array([2.0, 4.0]))
    >>> np.exp(found.log_pi - found.log_pi[0]).round(12)
    array([1.   , 0.5  , 0.125])
    """
    # detailed balance pi_i forth = pi_j back, in least squares: log pi_i - log pi_j = log(back / forth)
    shape = Laplacian(n, i, j, 2.0 * forth * back / (forth + back))
    log_pi = shape.potentials(np.log(back) - np.log(forth))
    count, part = shape.components
    log_forth, log_back = np.log(forth), np.log(back)
    out = np.bincount(i, forth, n) + np.bincount(j, back, n)
    krylov = done = 0
    best, imbalance = log_pi, math.inf
    for done in range(rounds + 1):
        top = np.full(count, -np.inf)
        np.maximum.at(top, part, log_pi)
        log_pi = log_pi - top[part]
        # net flow along each edge as seen from either end: no entry is lost beside a larger one
        gap = log_pi[i] - log_pi[j]
        inflow = np.bincount(i, back * np.exp(np.minimum(-gap, 700.0)), n)
        inflow += np.bincount(j, forth * np.exp(np.minimum(gap, 700.0)), n)
        with np.errstate(invalid="ignore", divide="ignore"):
            new = float(np.max(np.where(out > 0, np.abs(inflow / out - 1.0), 0.0)))
        if new < imbalance:
            best, imbalance, settled = log_pi, new, new > 0.25 * imbalance
        else:
            settled = True
        if imbalance <= GOAL or (settled and done > 1) or done == rounds:
            break
        F = np.exp(np.maximum(log_pi[i] + log_forth, -600.0))
        B = np.exp(np.maximum(log_pi[j] + log_back, -600.0))
        graph = shape.reweighted(0.5 * (F + B))
        v, steps = _gmres(graph, i, j, F, B, min(max(INNER, 0.1 * GOAL / imbalance), 0.1))
        krylov += steps
        # stay positive; what is cut comes back next round
        log_pi = log_pi + np.log1p(np.maximum(v, -0.99))
    mean = np.bincount(part, np.exp(best), count) / np.bincount(part, minlength=count)
    return Stationary(best - np.log(mean)[part], part, imbalance, done, krylov)


def _gmres(
    graph: Laplacian, i: Indices, j: Indices, F: Array, B: Array, rtol: float, most: int = 60
) -> tuple[Array, int]:
    """Solve for the relative correction v of the flow, GMRES in the norm of the preconditioner."""

    def net(v: Array) -> Array:
        # what flows out of each node, less what flows in
        return graph.divergence(F * v[i] - B * v[j])

    r = -net(np.ones(graph.n))
    z = graph.precondition(r)
    norm = math.sqrt(max(float(r @ z), 0.0))
    if norm == 0.0:
        return np.zeros(graph.n), 0
    V = np.empty((most, graph.n))
    U = np.empty((most, graph.n))  # P^-1 V: the norm is that of P^-1
    H = np.zeros((most + 1, most))
    y: Array = np.zeros(0)
    k, beta = 0, norm
    for k in range(1, most + 1):
        V[k - 1], U[k - 1] = z / beta, r / beta
        r = net(V[k - 1])
        z = graph.precondition(r)
        for _ in range(2):  # classical Gram-Schmidt, twice
            h = V[:k] @ r
            r = r - h @ U[:k]
            z = z - h @ V[:k]
            H[:k, k - 1] += h
        H[k, k - 1] = beta = math.sqrt(max(float(r @ z), 0.0))
        right = np.zeros(k + 1)
        right[0] = norm
        y = np.asarray(np.linalg.lstsq(H[: k + 1, :k], right, rcond=None)[0], np.float64)
        left = float(np.linalg.norm(right - H[: k + 1, :k] @ y))
        if left <= rtol * norm or beta <= 1e-14 * abs(H[k - 1, k - 1]):
            break
    return np.asarray(y @ V[:k]), k
