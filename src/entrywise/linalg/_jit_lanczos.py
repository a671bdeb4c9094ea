"""Compiled: certified Lanczos brackets of quadratic forms of exp(S), S a sparse signed graph.

A vertex keeps its neighbours in one stretch of `pool`, packed as ``2 * neighbour + (sign > 0)``. Work
vectors are dense and zero between calls; only the ball that Lanczos reaches is touched.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit

MOST = 64  # Lanczos steps, far beyond what round-off lets matter
TIE = 1e-12  # a bracket narrower than this, relative, is a tie

# what is counted on the way
TICK, STEPS, MAX_STEPS, EDGES, DECISIONS = range(5)
# what a bracket leaves behind: sums of w exp(t) and w exp(-t) under the lower and the upper rule, and their values
LOW_PLUS, LOW_MINUS, UP_PLUS, UP_MINUS, LOW, UP = range(6)


@njit(cache=True)
def quadrature(d, e, z, n):
    """Nodes (in d) and square roots of the weights (in z) of a Jacobi matrix: implicit QL, first row only."""
    for i in range(n):
        z[i] = 0.0
    z[0] = 1.0
    e[n - 1] = 0.0
    for l in range(n):
        for _ in range(60):
            m = l
            while m < n - 1:
                if abs(e[m]) <= 2.3e-16 * (abs(d[m]) + abs(d[m + 1])):
                    break
                m += 1
            if m == l:
                break
            g = (d[l + 1] - d[l]) / (2.0 * e[l])
            r = np.hypot(g, 1.0)
            g = d[m] - d[l] + e[l] / (g + (r if g >= 0 else -r))
            s, c, p = 1.0, 1.0, 0.0
            early = False
            for i in range(m - 1, l - 1, -1):
                f, b = s * e[i], c * e[i]
                r = np.hypot(f, g)
                e[i + 1] = r
                if r == 0.0:
                    d[i + 1] -= p
                    e[m] = 0.0
                    early = True
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                f = z[i + 1]
                z[i + 1] = s * z[i] + c * f
                z[i] = c * z[i] - s * f
            if early:
                continue
            d[l] -= p
            e[l] = g
            e[m] = 0.0


@njit(cache=True)
def rule(alpha, beta, k, node, tail, free, c1, c2, d, e, z):
    """Integrate c1 exp(t) - c2 exp(-t) with k Lanczos steps and, with `free`, one more node at `node`."""
    for i in range(k):
        d[i] = alpha[i]
        e[i] = beta[i]
    n = k
    if free:
        d[k] = node + tail
        n = k + 1
    quadrature(d, e, z, n)
    plus, minus = 0.0, 0.0
    for i in range(n):
        w = z[i] * z[i]
        plus += w * np.exp(d[i])
        if c2 != 0.0:
            minus += w * np.exp(-d[i])
    return c1 * plus - c2 * minus, plus, minus


@njit(cache=True)
def decide(
    u, v, c1, c2, c0, scale, diagonal, low, high, exact, start, count, net, pool, x, stamp, touched, small, out, tally
):
    """Sign of v' F(S) v, F(t) = c1 exp(t) - c2 exp(-t) - c0, certified; `out` gets the last brackets.

    S = scale (A + diag(net)) with `diagonal`, else scale A; v = (e_u + e_v) / sqrt 2; the spectrum lies in
    [low, high]. The odd derivatives of F are positive, so a Gauss-Radau rule with its free node at `low`
    is too small and one at `high` too large. With `exact` it goes on until the bracket is a tie's width.
    """
    alpha, beta, d, e, z = small[0], small[1], small[2], small[3], small[4]
    old, cur, new = x[0], x[1], x[2]
    tally[TICK] += 1
    tick = tally[TICK]
    half = np.sqrt(0.5)
    touched[0], touched[1] = u, v
    stamp[u] = stamp[v] = tick
    n = 2
    cur[u], cur[v] = half, half
    sign = 0
    d_low, d_high = 1.0, 1.0
    previous = 0.0
    steps = 0
    for k in range(MOST):
        steps = k + 1
        reach = n
        edges = 0
        for q in range(reach):  # new = S cur
            w = touched[q]
            c = scale * cur[w]
            if c == 0.0:
                continue
            if diagonal:
                new[w] += c * net[w]
            for p in range(start[w], start[w] + count[w]):
                t = pool[p] >> 1
                if stamp[t] != tick:
                    stamp[t] = tick
                    touched[n] = t
                    n += 1
                if pool[p] & 1:
                    new[t] += c
                else:
                    new[t] -= c
            edges += count[w]
        tally[EDGES] += edges
        a = 0.0
        for q in range(reach):
            a += cur[touched[q]] * new[touched[q]]
        alpha[k] = a
        if k == 0 and c2 == 0.0 and not exact and np.exp(a) >= c0:  # Jensen: v' exp(S) v >= exp(v' S v)
            out[LOW_PLUS] = out[UP_PLUS] = np.exp(a)
            out[LOW] = np.exp(a) - c0
            out[UP] = np.inf
            sign = 1
            break
        norm = 0.0
        size = abs(a) + previous
        for q in range(n):
            w = touched[q]
            new[w] -= a * cur[w] + previous * old[w]
            norm += new[w] * new[w]
        b = np.sqrt(norm)
        if b <= 1e-14 * size or b == 0.0:  # an invariant subspace: k + 1 nodes are exact
            value, out[LOW_PLUS], out[LOW_MINUS] = rule(alpha, beta, k + 1, 0.0, 0.0, False, c1, c2, d, e, z)
            out[UP_PLUS], out[UP_MINUS] = out[LOW_PLUS], out[LOW_MINUS]
            out[LOW] = out[UP] = value - c0
            sign = 1 if value - c0 >= -TIE * (abs(c0) + out[LOW_PLUS] + out[LOW_MINUS]) else -1
            break
        if k == 0:
            d_low, d_high = a - low, a - high
        else:
            d_low = a - low - previous * previous / d_low
            d_high = a - high - previous * previous / d_high
        beta[k] = b
        lower, out[LOW_PLUS], out[LOW_MINUS] = rule(alpha, beta, k + 1, low, norm / d_low, True, c1, c2, d, e, z)
        upper, out[UP_PLUS], out[UP_MINUS] = rule(alpha, beta, k + 1, high, norm / d_high, True, c1, c2, d, e, z)
        out[LOW], out[UP] = lower - c0, upper - c0
        mass = abs(c0) + out[UP_PLUS] + out[LOW_MINUS]
        narrow = upper - lower <= TIE * mass or k == MOST - 1
        if not exact:
            if lower - c0 >= 0.0:
                sign = 1
                break
            if upper - c0 < 0.0 and not narrow:
                sign = -1
                break
        if narrow:
            middle = 0.5 * (lower + upper) - c0
            sign = 1 if middle >= -TIE * mass else -1
            break
        for q in range(n):
            w = touched[q]
            old[w] = 0.0
            new[w] /= b
        spare = old
        old, cur, new = cur, new, spare
        previous = b
    for q in range(n):
        w = touched[q]
        x[0, w] = 0.0
        x[1, w] = 0.0
        x[2, w] = 0.0
    tally[STEPS] += steps
    tally[DECISIONS] += 1
    if steps > tally[MAX_STEPS]:
        tally[MAX_STEPS] = steps
    return sign
