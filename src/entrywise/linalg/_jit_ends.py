"""Compiled: bounds on the ends of the spectrum of a signed graph, moved by each update and tightened now and then.

The nearer a bound is to the end, the fewer Lanczos steps a decision takes.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit

ATTEMPTS = 4  # factorizations of one tightening; each halves what is left
PATIENCE = 0.25  # edges of the graph, times updates to wait, for one operation of a tightening
LARGEST = 1000  # vertices of the smaller half
SLACK = 1e-9  # far above the round-off of a factorization


@njit(cache=True)
def moved(nodes, roots, n, gamma, end, way):
    """Return a bound on the largest eigenvalue of way S + gamma v v', given that `end` is one for way S, way +1 or -1.

    t - way S - gamma v v' is positive definite for t > end where gamma v' (t - way S)^-1 v < 1. The Gauss-Radau rule of
    v with a node at `end` (nodes, and square roots of the weights) is not below that form: all derivatives of
    1 / (t - x) are positive. t is at most end + gamma, as the weights sum to 1.
    """
    low, high = end, end + gamma
    for _ in range(40):
        t = 0.5 * (low + high)
        form = 0.0
        for i in range(n):
            form += roots[i] * roots[i] / (t - min(way * nodes[i], end))
        if gamma * form < 1.0:
            high = t
        else:
            low = t
        if high - low <= 1e-3 * (high - end):
            break
    return high * (1.0 + 1e-12) + 1e-12


@njit(cache=True)
def halves(touched, n, place, start, count, pool):
    """Split the vertices that have an edge into two halves without an edge inside; return (vertices, in the smaller half).

    `touched` gets the vertices, the smaller half of each connected part first, and `place` where each of them stands.
    """
    part = np.empty(n, np.int32)
    size = first = 0
    side = np.zeros(n, np.int8)
    for root in range(n):
        if count[root] == 0 or side[root] != 0:
            continue
        side[root] = 1
        part[size] = root
        at, begin = size, size
        size += 1
        ones = 1
        while at < size:
            w = part[at]
            at += 1
            for p in range(start[w], start[w] + count[w]):
                t = pool[p]
                if side[t] == 0:
                    side[t] = -side[w]
                    ones += side[t] == 1
                    part[size] = t
                    size += 1
        if 2 * ones > size - begin:
            ones = size - begin - ones
            for q in range(begin, size):
                side[part[q]] = -side[part[q]]
        first += ones
    here, there = 0, first
    for q in range(size):
        w = part[q]
        if side[w] == 1:
            place[w] = here
            here += 1
        else:
            place[w] = there
            there += 1
        touched[place[w]] = w
    return size, first


@njit(cache=True)
def below(top, scale, symmetric, touched, size, first, place, start, count, net, pool, weight, C):
    """Tell whether top - S is positive definite: one half is eliminated at once, the other by Cholesky in C."""
    for a in range(first):
        C[a, :first] = 0.0
        C[a, a] = top if symmetric else top - scale * net[touched[a]]
    for q in range(first, size):
        w = touched[q]
        pivot = top if symmetric else top - scale * net[w]
        if pivot <= 0.0:
            return False
        for p in range(start[w], start[w] + count[w]):
            a = place[pool[p]]
            c = scale * scale * weight[p] / pivot
            for r in range(start[w], start[w] + count[w]):
                C[a, place[pool[r]]] -= c * weight[r]
    for k in range(first):
        pivot = C[k, k]
        if pivot <= 0.0:
            return False
        for i in range(k + 1, first):
            c = C[k, i] / pivot
            if c != 0.0:
                for j in range(i, first):
                    C[i, j] -= c * C[k, j]
    return True


@njit(cache=True)
def wait(touched, size, first, count):
    """Return after how many updates the edges that they walk, about all of them each, pay for a tightening.

    Never where one would keep a trial waiting for seconds.
    """
    if first > LARGEST:
        return 1e15
    operations, edges = float(first) ** 3 / 3.0 + size, 1.0
    for q in range(first, size):
        operations += float(count[touched[q]]) ** 2
        edges += count[touched[q]]
    return max(16.0, PATIENCE * ATTEMPTS * operations / edges)


@njit(cache=True)
def tightened(high, scale, symmetric, touched, size, first, place, start, count, net, pool, weight):
    """Return a bound on the largest eigenvalue of S and 0 that is not above `high`, by bisection."""
    C = np.empty((first, first))
    low = 0.0
    for _ in range(ATTEMPTS):
        t = 0.5 * (low + high)
        if below(
            t, scale, symmetric, touched, size, first, place, start, count, net, pool, weight, C
        ):
            high = t + SLACK
        else:
            low = t
    return high
