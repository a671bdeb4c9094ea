"""Compiled steps of fits whose entries lie in chunks of lines: products with residuals, chance by hashing, components.

Chance is a hash of (row, column, seed), so that it does not depend on which chunk an entry is in, nor on the side.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_sets import root_of

# the increments and factors of SplitMix64 (Steele, Lea, Flood 2014), which mixes 64 bits
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32, _63 = (np.uint64(k) for k in (30, 27, 31, 32, 63))


@njit(cache=True, nogil=True, inline="always")
def _mixed(x):
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@njit(cache=True, nogil=True)
def pair_hash(i, j, seed):
    """Return 64 bits that look random and follow from (row, column, seed) alone."""
    pair = (np.uint64(i) << _32) | np.uint64(j)
    return _mixed(_mixed(pair + seed * _STEP) + _STEP)


@njit(cache=True, nogil=True)
def hashes(pointer, other, first, seed, found):
    """Write the hash of every entry of some rows, the first of which is row `first`, into `found`."""
    for i in range(len(pointer) - 1):
        for t in range(pointer[i], pointer[i + 1]):
            found[t] = pair_hash(first + i, other[t], seed)


@njit(cache=True, nogil=True)
def logits(pointer, other, X, Z, own_share, other_share, offset, both, m, v):
    """Write means and variances of the logits of some lines' entries, in order, into `m` and `v`.

    X : (lines, q) means of these lines, the bias last; Z : (n, q) means of the other side; `own_share`, `other_share` and
    `both` are the parts of a variance.
    """
    k = X.shape[1] - 1
    for i in range(len(pointer) - 1):
        for t in range(pointer[i], pointer[i + 1]):
            j = other[t]
            s = X[i, k] + Z[j, k]
            for a in range(k):
                s += X[i, a] * Z[j, a]
            m[t] = s + offset
            v[t] = max(own_share[i] + other_share[j] + both, 0.0)


@njit(cache=True, nogil=True)
def residual_product(
    pointer,
    other,
    values,
    X,
    Z,
    own_scale,
    other_scale,
    first,
    by_rows,
    seed,
    V,
    found,
):
    """Multiply the scaled residuals of some lines by V, shape (n, b), into `found`, shape (lines, b).

    X : (lines, q) means of these lines, the bias last; Z : (n, q) means of the other side.
    first : number of the first line, which with `by_rows` is a row.
    seed : 0 for the residuals as they are; else their signs are drawn anew.
    """
    k = X.shape[1] - 1
    width = V.shape[1]
    for i in range(len(pointer) - 1):
        for b in range(width):
            found[i, b] = 0.0
        for t in range(pointer[i], pointer[i + 1]):
            j = other[t]
            s = values[t] - X[i, k] - Z[j, k]
            for a in range(k):
                s -= X[i, a] * Z[j, a]
            s *= own_scale[i] * other_scale[j]
            if seed != 0:
                if by_rows:
                    bits = pair_hash(first + i, j, seed)
                else:
                    bits = pair_hash(j, first + i, seed)
                if bits >> _63:
                    s = -s
            for b in range(width):
                found[i, b] += s * V[j, b]


@njit(cache=True, nogil=True)
def unite(parent, rows, cols):
    """Join rows and columns (which follow the rows in `parent`) that an entry links."""
    m = parent[-1]
    for t in range(len(rows)):
        a, b = root_of(parent, rows[t]), root_of(parent, m + cols[t])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
