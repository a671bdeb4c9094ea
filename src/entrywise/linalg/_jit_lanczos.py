"""Compiled: certified Lanczos brackets of quadratic forms of exp(S), S a sparse signed graph.

A vertex keeps its neighbours in one stretch of `pool` and the sums of their signs in the same stretch of
`weight`. Work vectors are dense and zero between calls; only the ball that Lanczos reaches is touched.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit

MOST = 64  # Lanczos steps, far beyond what round-off lets matter
TIE = 1e-12  # a bracket narrower than this, relative, is a tie

# what is counted on the way
TICK, STEPS, MAX_STEPS, EDGES, DECISIONS, NODES = range(6)
# what a bracket leaves behind: sums of w exp(t) and w exp(-t) under the lower and the upper rule, and their values
LOW_PLUS, LOW_MINUS, UP_PLUS, UP_MINUS, LOW, UP = range(6)
# rows of the small work array: the Jacobi matrix, then nodes and square roots of the weights of both rules
ALPHA, BETA, WORK, LOW_NODES, LOW_ROOTS, UP_NODES, UP_ROOTS = range(7)


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
def rule(alpha, beta, k, node, free, symmetric, d, e, z):
    """Integrate exp(t), and exp(-t) with `symmetric`, with k Lanczos steps and, with `free`, one more node."""
    for i in range(k):
        d[i] = alpha[i]
        e[i] = beta[i]
    n = k
    if free:
        d[k] = node
        n = k + 1
    quadrature(d, e, z, n)
    plus, minus = 0.0, 0.0
    for i in range(n):
        w = z[i] * z[i]
        plus += w * np.exp(d[i])
        if symmetric:
            minus += w * np.exp(-d[i])
    return plus, minus


@njit(cache=True)
def multiply(cur, new, n, scale, symmetric, start, count, net, pool, weight, stamp, tick, touched):
    """Add S cur to new; return how many vertices the ball holds then, and how many edges were walked."""
    edges = 0
    for q in range(n):
        w = touched[q]
        c = scale * cur[w]
        if c == 0.0:
            continue
        if not symmetric:
            new[w] += c * net[w]
        for p in range(start[w], start[w] + count[w]):
            t = pool[p]
            if stamp[t] != tick:
                stamp[t] = tick
                touched[n] = t
                n += 1
            new[t] += c * weight[p]
        edges += count[w]
    return n, edges


@njit(cache=True)
def side(lower, upper, mass, narrow):
    """Return on which side of 0 a bracket lies, 0 when it does not say; a narrow one around 0 is a tie: +1."""
    if lower >= 0.0:
        return 1
    if narrow:
        return 1 if 0.5 * (lower + upper) >= -TIE * mass else -1
    return -1 if upper < 0.0 else 0


@njit(cache=True)
def between(u, v, start, count, pool, weight):
    """Return the weight of the edge between u and v, 0 where there is none."""
    if count[v] < count[u]:
        u, v = v, u
    for p in range(start[u], start[u] + count[u]):
        if pool[p] == v:
            return float(weight[p])
    return 0.0


@njit(cache=True)
def decide(
    u, v, y, margin, scale, symmetric, low, high, exact,
    start, count, net, pool, weight, x, stamp, touched, small, out, tally,
):  # fmt: skip
    """Return (sign of the prediction, whether label y asks for an update); y = 0 asks for the sign alone.

    S = scale (A + diag(net)), without the diagonal when `symmetric`; v = (e_u + e_v) / sqrt 2; the spectrum of S lies
    in [low, high]. The prediction is the sign of v' F(S) v with F(t) = exp(t) - 1 or, `symmetric`, exp(t) - exp(-t);
    with a margin d, the update asks for the sign at exp(t) - (1 + y d) or (1 - y d) exp(t) - (1 + y d) exp(-t).
    The odd derivatives of all of them are positive, so a Gauss-Radau rule with its free node at `low` is too small
    and one at `high` too large. With `exact` it goes on until the bracket is a tie's width. The last two rules stay in
    `small`, with tally[NODES] nodes.
    """
    alpha, beta, e = small[ALPHA], small[BETA], small[WORK]
    d, z, d_up, z_up = small[LOW_NODES], small[LOW_ROOTS], small[UP_NODES], small[UP_ROOTS]
    old, cur, new = x[0], x[1], x[2]
    tally[DECISIONS] += 1
    c2, c0 = (1.0, 0.0) if symmetric else (0.0, 1.0)
    d1, d2, d0 = (
        (1.0 - y * margin, 1.0 + y * margin, 0.0) if symmetric else (1.0, 0.0, 1.0 + y * margin)
    )
    sign, above = 0, 0
    if margin == 0.0 or y == 0:
        above = y  # nothing more to find out
    if not symmetric and not exact:  # Jensen: v' exp(S) v >= exp(v' S v), which needs no step
        a = scale * (0.5 * (net[u] + net[v]) + between(u, v, start, count, pool, weight))
        if a >= 0.0:
            out[LOW_PLUS] = np.exp(a)
            sign = 1
            if out[LOW_PLUS] >= d0:
                above = 1
            if y != 1 or above == 1:
                share = min(
                    1.0, max(0.0, (high - a) / (high - low))
                )  # the rule of both ends, with no step
                d[0], d[1] = low, high
                z[0], z[1] = np.sqrt(share), np.sqrt(1.0 - share)
                tally[NODES] = 2
                return sign, sign != y or above != y
    tally[TICK] += 1
    tick = tally[TICK]
    touched[0], touched[1] = u, v
    stamp[u] = stamp[v] = tick
    cur[u] = cur[v] = np.sqrt(0.5)
    n = 2
    d_low, d_high, previous = 1.0, 1.0, 0.0
    steps = 0
    for k in range(MOST):
        steps = k + 1
        reach = n
        n, edges = multiply(
            cur, new, n, scale, symmetric, start, count, net, pool, weight, stamp, tick, touched
        )
        tally[EDGES] += edges
        a = 0.0
        for q in range(reach):
            a += cur[touched[q]] * new[touched[q]]
        alpha[k] = a
        norm = 0.0
        for q in range(n):
            w = touched[q]
            new[w] -= a * cur[w] + previous * old[w]
            norm += new[w] * new[w]
        b = np.sqrt(norm)
        invariant = b <= 1e-14 * (abs(a) + previous) or b == 0.0  # k + 1 nodes are exact
        if invariant:
            out[LOW_PLUS], out[LOW_MINUS] = rule(alpha, beta, k + 1, 0.0, False, symmetric, d, e, z)
            out[UP_PLUS], out[UP_MINUS] = out[LOW_PLUS], out[LOW_MINUS]
            d_up[: k + 1], z_up[: k + 1] = d[: k + 1], z[: k + 1]
            tally[NODES] = k + 1
        else:
            if k == 0:
                d_low, d_high = a - low, a - high
            else:
                d_low = a - low - previous * previous / d_low
                d_high = a - high - previous * previous / d_high
            beta[k] = b
            out[LOW_PLUS], out[LOW_MINUS] = rule(
                alpha, beta, k + 1, low + norm / d_low, True, symmetric, d, e, z
            )
            out[UP_PLUS], out[UP_MINUS] = rule(
                alpha, beta, k + 1, high + norm / d_high, True, symmetric, d_up, e, z_up
            )
            tally[NODES] = k + 2
        out[LOW] = out[LOW_PLUS] - c2 * out[LOW_MINUS] - c0
        out[UP] = out[UP_PLUS] - c2 * out[UP_MINUS] - c0
        mass = c0 + out[LOW_PLUS] + out[UP_MINUS]
        narrow = invariant or out[UP] - out[LOW] <= TIE * mass or k == MOST - 1
        if sign == 0 and (narrow or not exact):
            sign = side(out[LOW], out[UP], mass, narrow)
        if above == 0:
            lower = d1 * out[LOW_PLUS] - d2 * out[LOW_MINUS] - d0
            upper = d1 * out[UP_PLUS] - d2 * out[UP_MINUS] - d0
            above = side(lower, upper, mass, narrow)
        if narrow or (sign != 0 and (y == 0 or sign != y or above != 0)):
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
        x[0, w] = x[1, w] = x[2, w] = 0.0
    tally[STEPS] += steps
    if steps > tally[MAX_STEPS]:
        tally[MAX_STEPS] = steps
    return sign, sign != y or above != y
