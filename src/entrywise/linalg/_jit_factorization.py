"""Compiled: online logistic matrix factorisation by stochastic gradients, with replay of earlier trials."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit


@njit(cache=True)
def mixed(x):
    """Return a 64-bit hash (splitmix64): the only randomness, a function of the counter alone."""
    z = np.uint64(x) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def begin(F, first, last, scale):
    """Fill factors first..last with small numbers that depend on their place alone."""
    for w in range(first, last):
        for k in range(F.shape[1]):
            F[w, k] = scale * (float(mixed(w * 1009 + k) >> np.uint64(11)) / 2.0**52 - 1.0)


@njit(cache=True)
def score(F, b, u, v):
    """Return the score of an entry."""
    s = b[u] + b[v]
    for k in range(F.shape[1]):
        s += F[u, k] * F[v, k]
    return s


@njit(cache=True)
def scores(F, b, us, vs, found):
    """Fill `found` with the scores of many entries; -1 stands for a row or column that was never met."""
    for t in range(len(us)):
        u, v = us[t], vs[t]
        if u >= 0 and v >= 0:
            found[t] = score(F, b, u, v)
        elif u >= 0 or v >= 0:
            found[t] = b[max(u, v)]


@njit(cache=True)
def step(F, b, u, v, y, rate, penalty):
    """Take one gradient step on the logistic loss of one label."""
    g = y / (1.0 + np.exp(y * score(F, b, u, v)))
    b[u] += rate * (g - penalty * b[u])
    b[v] += rate * (g - penalty * b[v])
    for k in range(F.shape[1]):
        p, q = F[u, k], F[v, k]
        F[u, k] += rate * (g * q - penalty * p)
        F[v, k] += rate * (g * p - penalty * q)


@njit(cache=True)
def follow(F, b, met, us, vs, ys, first, rate, penalty, replay, predictions):
    """Predict and learn the trials from `first` on; each is followed by `replay` earlier ones.

    `met` marks the rows and columns learnt so far: the factor of one that was never met does not count.
    """
    for t in range(first, len(us)):
        u, v = us[t], vs[t]
        s = score(F, b, u, v) if met[u] and met[v] else b[u] + b[v]
        predictions[t - first] = 1 if s >= 0.0 else -1
        met[u] = met[v] = True
        step(F, b, u, v, float(ys[t]), rate, penalty)
        for r in range(replay):
            p = mixed(t * 131 + r + 7) % np.uint64(t + 1)
            step(F, b, us[p], vs[p], float(ys[p]), rate, penalty)
