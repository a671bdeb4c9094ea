"""Compiled half sweeps of the Bayesian low-rank fit: one small normal equation a row, no m x n array.

Every row is solved by one call alone and sums are kept per chunk of rows, so the result is the same,
bit for bit, whatever the number of threads.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
from numba import njit


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
    hs = np.zeros(q)
    L = np.zeros((q, q))
    C = np.zeros((q, q))
    x = np.zeros(q)
    w1 = 1.0 / base
    for i in range(start, stop):
        G[:] = 0.0
        h[:] = 0.0
        S[:] = 0.0
        hs[:] = 0.0
        weight = 0.0
        squares = 0.0
        logs = 0.0
        t = pointer[i]
        end = pointer[i + 1]
        while t < end:
            if t + 4 <= end:
                a0 = A[other[t]]
                a1 = A[other[t + 1]]
                a2 = A[other[t + 2]]
                a3 = A[other[t + 3]]
                if each:
                    w_0 = 1.0 / (spread[t] + base)
                    w_1 = 1.0 / (spread[t + 1] + base)
                    w_2 = 1.0 / (spread[t + 2] + base)
                    w_3 = 1.0 / (spread[t + 3] + base)
                else:
                    w_0 = w_1 = w_2 = w_3 = w1
                if counted:
                    w_0 *= across[other[t]]
                    w_1 *= across[other[t + 1]]
                    w_2 *= across[other[t + 2]]
                    w_3 *= across[other[t + 3]]
                y0 = values[t] - off[other[t]]
                y1 = values[t + 1] - off[other[t + 1]]
                y2 = values[t + 2] - off[other[t + 2]]
                y3 = values[t + 3] - off[other[t + 3]]
                weight += w_0 + w_1 + w_2 + w_3
                squares += w_0 * y0 * y0 + w_1 * y1 * y1 + w_2 * y2 * y2 + w_3 * y3 * y3
                for b in range(Q):
                    h[b] += (
                        w_0 * y0 * a0[b] + w_1 * y1 * a1[b] + w_2 * y2 * a2[b] + w_3 * y3 * a3[b]
                    )
                for a in range(q):
                    s0 = w_0 * a0[a]
                    s1 = w_1 * a1[a]
                    s2 = w_2 * a2[a]
                    s3 = w_3 * a3[a]
                    for b in range(Q):
                        G[a, b] += s0 * a0[b] + s1 * a1[b] + s2 * a2[b] + s3 * a3[b]
                step = 4
            else:
                a0 = A[other[t]]
                w_0 = 1.0 / (spread[t] + base) if each else w1
                if counted:
                    w_0 *= across[other[t]]
                y0 = values[t] - off[other[t]]
                weight += w_0
                squares += w_0 * y0 * y0
                for b in range(Q):
                    h[b] += w_0 * y0 * a0[b]
                for a in range(q):
                    s0 = w_0 * a0[a]
                    for b in range(Q):
                        G[a, b] += s0 * a0[b]
                step = 1
            if each_extra:
                for s in range(step):
                    E = extra[other[t + s]]
                    w_0 = 1.0 / (spread[t + s] + base) if each else w1
                    if counted:
                        w_0 *= across[other[t + s]]
                    for a in range(q):
                        for b in range(q):
                            S[a, b] += w_0 * E[a, b]
            t += step
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
        mean[i] = x
        if keep:
            cov[i] = C
        if end > pointer[i]:
            times = line[i] if len(line) > 0 else 1.0
            seen = 0.0
            for t in range(pointer[i], end):
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
