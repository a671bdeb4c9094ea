"""Compiled sums over the pairs of attributes that a sample shows; used by :mod:`entrywise.linalg.pairs`.

``T[i, j]`` for i <= j holds the sums of one pair: the product x_i x_j, the count, x_i and x_j (the last
two only when ``T`` has four columns). Both kernels walk one row of T at a time, so that the sums being
added to stay in the fastest cache; samples must list their attributes in increasing order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg._jit import njit
from entrywise.types import Array


@njit(cache=True)
def add_short(
    first: NDArray[np.int64],
    attributes: NDArray[np.int32],
    values: Array,
    T: Array,
    j_of: NDArray[np.int32],
    v_of: Array,
) -> None:
    """Add samples of few attributes, weight one: the tails of the samples are first sorted by attribute.

    ``j_of`` and ``v_of`` have room for r (r + 1) / 2 numbers a sample. Reading them back is sequential,
    where :func:`add_long` jumps from sample to sample.
    """
    d, n = T.shape[0], len(first) - 1
    start = np.zeros(d + 1, np.int64)
    for s in range(n):
        for a in range(first[s], first[s + 1]):
            start[attributes[a] + 1] += first[s + 1] - a
    for i in range(d):
        start[i + 1] += start[i]
    at = start[:d].copy()
    both = T.shape[2] == 4
    for s in range(n):
        for a in range(first[s], first[s + 1]):
            x = 1.0 if both else values[a]
            p = at[attributes[a]]
            for b in range(a, first[s + 1]):
                j_of[p] = attributes[b]
                v_of[p] = x * values[b]
                p += 1
            at[attributes[a]] = p
    for i in range(d):
        row = T[i]
        if both:
            x = 0.0
            for p in range(start[i], start[i + 1]):
                j, y = j_of[p], v_of[p]
                if j == i:  # a sample's tail begins with attribute i itself
                    x = y
                row[j, 0] += x * y
                row[j, 1] += 1.0
                row[j, 2] += x
                row[j, 3] += y
        else:
            for p in range(start[i], start[i + 1]):
                j = j_of[p]
                row[j, 0] += v_of[p]
                row[j, 1] += 1.0


@njit(cache=True)
def add_long(
    first: NDArray[np.int64], attributes: NDArray[np.int32], values: Array, weights: Array, T: Array
) -> None:
    """Add weighted samples of any length: each row of T gathers the samples that show its attribute."""
    d, n = T.shape[0], len(first) - 1
    start = np.zeros(d + 1, np.int64)
    for a in range(len(attributes)):
        start[attributes[a] + 1] += 1
    for i in range(d):
        start[i + 1] += start[i]
    at = start[:d].copy()
    position = np.empty(len(attributes), np.int64)
    sample = np.empty(len(attributes), np.int64)
    for s in range(n):
        for a in range(first[s], first[s + 1]):
            p = at[attributes[a]]
            position[p] = a
            sample[p] = s
            at[attributes[a]] = p + 1
    both = T.shape[2] == 4
    for i in range(d):
        row = T[i]
        for t in range(start[i], start[i + 1]):
            a, s = position[t], sample[t]
            w = weights[s]
            x = w * values[a]
            if both:
                for b in range(a, first[s + 1]):
                    j, y = attributes[b], values[b]
                    row[j, 0] += x * y
                    row[j, 1] += w
                    row[j, 2] += x
                    row[j, 3] += w * y
            else:
                for b in range(a, first[s + 1]):
                    j = attributes[b]
                    row[j, 0] += x * values[b]
                    row[j, 1] += w
