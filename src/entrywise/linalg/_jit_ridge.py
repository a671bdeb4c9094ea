"""Compiled leave-one-out errors of ridge regression over a grid of penalties."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit

_WIDTH = 64  # penalties at a time: what they need stays in the processor's nearest memory


@njit(cache=True, nogil=True, error_model="numpy")
def left_out(P, s, M, cross, alone, outside, penalties):
    """Return the summed squares of the leave-one-out residuals at each penalty, shape (l,).

    P : (m, k) left singular vectors; s : (k,) singular values; M : (k, k) Gram matrix of P'Y.
    cross : (m, k) products of what no penalty explains with P'Y; alone : (m,) its squares; outside : (m,) 1 - sum of P^2.
    """
    m, k = P.shape
    error = np.zeros(len(penalties))
    g = np.empty((k, _WIDTH))
    slope, square, kept, total = (
        np.empty(_WIDTH),
        np.empty(_WIDTH),
        np.empty(_WIDTH),
        np.empty(_WIDTH),
    )
    for start in range(0, len(penalties), _WIDTH):
        w = min(_WIDTH, len(penalties) - start)
        here = penalties[start : start + w]
        for a in range(k):
            c = s[a] * s[a]
            for j in range(w):
                g[a, j] = here[j] / (c + here[j])
        total[:] = 0.0
        for i in range(m):
            for j in range(w):
                square[j], kept[j] = alone[i], outside[i]
            for a in range(k):
                p = P[i, a]
                c = p * M[a, a]
                for j in range(w):
                    slope[j] = 2.0 * cross[i, a] + c * g[a, j]
                for b in range(a % 2, a, 2):
                    c, e = 2.0 * P[i, b] * M[a, b], 2.0 * P[i, b + 1] * M[a, b + 1]
                    for j in range(w):
                        slope[j] += c * g[b, j] + e * g[b + 1, j]
                if a % 2:
                    c = 2.0 * P[i, 0] * M[a, 0]
                    for j in range(w):
                        slope[j] += c * g[0, j]
                for j in range(w):
                    x = p * g[a, j]
                    square[j] += x * slope[j]
                    kept[j] += p * x
            for j in range(w):
                total[j] += square[j] / (kept[j] * kept[j])
        error[start : start + w] = total[:w]
    return np.maximum(error, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def least(P, s, M, cross, alone, outside, penalties, nodes, weights, fewer, first, most):
    """Return (which penalty has the smallest leave-one-out error, that error), or (-1, 0) where over `most` may have it.

    weights : (l, w), first : (l,) of the w nodes around each penalty; fewer : (l / 4, w - 2) without the outermost,
    of every fourth penalty. What the two polynomials differ by, at most, is how far off the better one may be. Of equals, the first.
    """
    at = left_out(P, s, M, cross, alone, outside, nodes)
    near = np.empty(len(penalties))
    doubt = 0.0
    for i in range(len(penalties)):
        value = 0.0
        for j in range(weights.shape[1]):
            value += weights[i, j] * at[first[i] + j]
        near[i] = value
    for i in range(len(fewer)):  # every fourth tells as much
        other = 0.0
        for j in range(fewer.shape[1]):
            other += fewer[i, j] * at[first[4 * i] + 1 + j]
        doubt = max(doubt, abs(near[4 * i] - other))
    if not np.isfinite(near.sum()):
        return -1, 0.0
    low = np.flatnonzero(near <= near.min() + 2.0 * doubt)
    if len(low) > most:
        return -1, 0.0
    error = left_out(P, s, M, cross, alone, outside, penalties[low])
    best = error.argmin()
    return low[best], error[best]
