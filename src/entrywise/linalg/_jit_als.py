"""Compiled half sweeps of the Bayesian low-rank fit: one small normal equation a row, no m x n array.

Every row is solved by one call alone and sums are kept per chunk of rows, so the result is the same,
bit for bit, whatever the number of threads.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_lanes import LINE, load, prefetch, repeated, store

CACHED = 256  # observations whose designs stay in the processor's first cache


@njit(cache=True, nogil=True)
def group(rows, cols, values, variance, size):
    """Return the observations sorted by row: (pointer, cols as int32, values, variance), stable."""
    pointer = np.zeros(size + 1, np.int64)
    for t in range(len(rows)):
        pointer[rows[t] + 1] += 1
    for i in range(size):
        pointer[i + 1] += pointer[i]
    at = pointer[:-1].copy()
    other = np.empty(len(rows), np.int32)
    found = np.empty(len(rows), np.float64)
    each = len(variance) == len(rows)
    spread = np.empty(len(rows) if each else 0, np.float64)
    for t in range(len(rows)):
        p = at[rows[t]]
        at[rows[t]] = p + 1
        other[p] = cols[t]
        found[p] = values[t]
        if each:
            spread[p] = variance[t]
    return pointer, other, found, spread


@njit(cache=True, nogil=True, forceinline=True)
def _add_products(A, other, first, count, w, y, G, h):
    """Add to G the sum of w a a', and to h that of y a, over `count` observations.

    A four by four part after the other, which stays in the processor's registers; parts below the diagonal ones are left
    out. Sums are added in the order of the observations.
    """
    Q = A.shape[1]
    for b in range(0, Q, 4):
        right = load(h, b)
        for t in range(count):
            right += repeated(y, t) * load(A, other[first + t] * Q + b)
        store(h, b, right)
        for a in range(0, b + 4, 4):
            at = a * Q + b
            g0, g1 = load(G, at), load(G, at + Q)
            g2, g3 = load(G, at + 2 * Q), load(G, at + 3 * Q)
            for t in range(count):
                j = other[first + t] * Q
                v = repeated(w, t) * load(A, j + b)
                g0 += repeated(A, j + a) * v
                g1 += repeated(A, j + a + 1) * v
                g2 += repeated(A, j + a + 2) * v
                g3 += repeated(A, j + a + 3) * v
            for s, g in enumerate((g0, g1, g2, g3)):
                store(G, at + s * Q, g)


@njit(cache=True, nogil=True)
def half_sweep(
    start,
    stop,
    pointer,
    other,
    values,
    spread,
    base,
    line,
    across,
    A,
    off,
    extra,
    each_extra,
    P0,
    h0,
    mean,
    cov,
    sums,
):
    """Solve rows start..stop-1: posterior mean and covariance of ``x_i = (u_i, b_i)``.

    A : (n, Q) designs ``(v_j, 1)`` padded with zeros to a multiple of four; off : (n,) what is not row i's.
    spread, base : variance of an observation is ``spread[t] + base`` (spread may be empty: zero).
    line, across : how many lines each one stands for, on this side and on the other; empty when one each.
    extra : covariance of the other side's ``(v_j, c_j)``, (n, q, q) when `each_extra`, else (1, q, q).
    P0, h0 : prior precision and precision times mean.
    mean : (m, q), cov : (m, q, q) or (0, q, q) when not wanted.
    sums : (3 q^2 + q + 6,) sum of C_i, of weight_i C_i, of x x', of x, then rows with observations, weight,
        expected weighted squares, observations, log det C_i, and log variances of the observations.
    """
    Q = A.shape[1]
    q = P0.shape[0]
    k = q - 1
    keep = len(cov) > 0
    each = len(spread) > 0
    counted = len(across) > 0
    G = np.zeros((Q, Q))
    h = np.zeros(Q)
    S = np.zeros((q, q))
    L = np.zeros((q, q))
    C = np.zeros((q, q))
    x = np.zeros(q)
    w, y = np.empty(CACHED), np.empty(CACHED)  # weights, and weighted values
    alike = 1.0 / base
    for i in range(start, stop):
        weight = squares = logs = 0.0
        for a in range(Q):
            h[a] = 0.0
            for b in range(Q):
                G[a, b] = 0.0
        for a in range(q):
            for b in range(q):
                S[a, b] = 0.0
        for first in range(pointer[i], pointer[i + 1], CACHED):
            count = min(CACHED, pointer[i + 1] - first)
            for t in range(count):
                j = other[first + t]
                for s in range(0, Q, LINE):
                    prefetch(A, j * Q + s)
                w[t] = 1.0 / (spread[first + t] + base) if each else alike
                if counted:
                    w[t] *= across[j]
                y[t] = values[first + t] - off[j]
                weight += w[t]
                squares += w[t] * y[t] * y[t]
                y[t] *= w[t]
            _add_products(A, other, first, count, w, y, G, h)
            if each_extra:
                for t in range(count):
                    j = other[first + t]
                    for a in range(q):
                        for b in range(q):
                            S[a, b] += w[t] * extra[j, a, b]
        for a in range(q):
            for b in range(a):
                G[a, b] = G[b, a]
        if not each_extra:
            for a in range(q):
                for b in range(q):
                    S[a, b] = weight * extra[0, a, b]
        # E[a a'] adds the covariance of v_j; its covariance with c_j moves the right-hand side
        squares += S[k, k]
        for a in range(k):
            h[a] -= S[a, k]
            for b in range(k):
                G[a, b] += S[a, b]
        for a in range(q):
            for b in range(a + 1):
                s0 = G[a, b] + P0[a, b]
                for c in range(b):
                    s0 -= L[a, c] * L[b, c]
                if a == b:
                    L[a, a] = np.sqrt(s0)
                else:
                    L[a, b] = s0 / L[b, b]
        for a in range(q):
            s0 = h[a] + h0[a]
            for c in range(a):
                s0 -= L[a, c] * x[c]
            x[a] = s0 / L[a, a]
        for a in range(q - 1, -1, -1):
            s0 = x[a]
            for c in range(a + 1, q):
                s0 -= L[c, a] * x[c]
            x[a] = s0 / L[a, a]
        # inverse of L in place of S, then C = L^-T L^-1
        for a in range(q):
            S[a, a] = 1.0 / L[a, a]
            for b in range(a):
                s0 = 0.0
                for c in range(b, a):
                    s0 -= L[a, c] * S[c, b]
                S[a, b] = s0 / L[a, a]
        for a in range(q):
            for b in range(a + 1):
                s0 = 0.0
                for c in range(a, q):
                    s0 += S[c, a] * S[c, b]
                C[a, b] = s0
                C[b, a] = s0
        for a in range(q):  # place by place: to set a slice takes seconds to compile
            mean[i, a] = x[a]
        if keep:
            for a in range(q):
                for b in range(q):
                    cov[i, a, b] = C[a, b]
        seen = float(pointer[i + 1] - pointer[i])
        if seen > 0:
            times = line[i] if len(line) > 0 else 1.0
            if counted or each:
                seen = 0.0
                for t in range(pointer[i], pointer[i + 1]):
                    c0 = across[other[t]] if counted else 1.0
                    seen += c0
                    if each:
                        logs += c0 * np.log(spread[t] + base)
            if not each:
                logs = seen * np.log(base)
            fit = squares
            for a in range(q):
                fit -= 2.0 * x[a] * h[a]
                for b in range(q):
                    fit += G[a, b] * (x[a] * x[b] + C[a, b])
                    sums[a * q + b] += times * C[a, b]
                    sums[q * q + a * q + b] += times * weight * C[a, b]
                    sums[2 * q * q + a * q + b] += times * x[a] * x[b]
                sums[3 * q * q + a] += times * x[a]
            sums[3 * q * q + q] += times
            sums[3 * q * q + q + 1] += times * weight
            sums[3 * q * q + q + 2] += times * fit
            sums[3 * q * q + q + 3] += times * seen
            for a in range(q):
                sums[3 * q * q + q + 4] -= times * 2.0 * np.log(L[a, a])
            sums[3 * q * q + q + 5] += times * logs


@njit(cache=True, nogil=True)
def residuals(pointer, other, values, U, V, row_off, col_off, row_scale, col_scale, found):
    """Write the residuals of the observations sorted by row, times the scales of their lines, into `found`."""
    k = U.shape[1]
    for i in range(len(pointer) - 1):
        for t in range(pointer[i], pointer[i + 1]):
            j = other[t]
            s = values[t] - row_off[i] - col_off[j]
            for a in range(k):
                s -= U[i, a] * V[j, a]
            found[t] = s * row_scale[i] * col_scale[j]
