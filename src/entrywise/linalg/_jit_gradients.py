"""Compiled conjugate gradients of :mod:`entrywise.linalg.laplacian`, component by component, and what preconditions them.

Every loop is sequential, so results are the same at any thread count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_laplacian import apply_factor, multiply
from entrywise.linalg.small import CLUSTERS, FACTOR

ROUND_OFF = 1e-6  # of the residual that is asked for: there is no more to gain


@njit(cache=True)
def _to_second(a: Any, b: Any, weight: Any, x: Any, y: Any) -> Any:
    """Add to y at the second ends what edges bring from x at the first."""
    for e in range(len(a)):
        y[b[e]] += weight[e] * x[a[e]]


@njit(cache=True)
def _to_first(a: Any, b: Any, weight: Any, x: Any, y: Any) -> Any:
    """Add to y at the first ends what edges bring from x at the second."""
    for e in range(len(a)):
        y[a[e]] += weight[e] * x[b[e]]


@njit(cache=True)
def _precondition(
    way: Any, lo: Any, hi: Any, c: Any, diagonal: Any, factor: Any, coarse: Any, r: Any, z: Any
) -> Any:
    """Put into z[lo:hi] what the preconditioner makes of r[lo:hi], nodes of component c; return r' z."""
    total = 0.0
    if way == FACTOR:
        apply_factor(lo, hi, *factor, r, z)
        for v in range(lo, hi):
            total += r[v] * z[v]
        return total
    for v in range(lo, hi):
        z[v] = r[v] / diagonal[v] if diagonal[v] > 0.0 else 0.0
        total += r[v] * z[v]
    if way == CLUSTERS:
        of, begin, first, rows, share, pivot, scratch = coarse
        right, moved = scratch[0], scratch[1]
        low, high = begin[c], begin[c + 1]
        for k in range(low, high):
            right[k] = 0.0
        for v in range(lo, hi):
            right[of[v]] += r[v]
        apply_factor(low, high, first, rows, share, pivot, right, moved)
        for k in range(low, high):
            total += right[k] * moved[k]
        for v in range(lo, hi):
            z[v] += moved[of[v]]
    return total


@njit(cache=True)
def _solve_reduced(
    way: Any,
    lo: Any,
    mid: Any,
    hi: Any,
    c: Any,
    a: Any,
    b: Any,
    weight: Any,
    diagonal: Any,
    scale: Any,
    factor: Any,
    coarse: Any,
    room: Any,
    held: Any,
    rtol: Any,
    most: Any,
) -> Any:
    """Put into room[0, lo:hi] the solution where all edges lead from the nodes lo..mid-1 to the nodes mid..hi-1.

    The latter are eliminated, exactly: (D1 - W D2^-1 W') x1 = b1 + W D2^-1 b2. Conjugate gradients with the diagonal
    D1 take half as many iterations for it as with D for the whole (Reid, 1972); `scale` is that of the reduced system.

    A residual weighed by the diagonal is far from the error's energy, and what an iteration adds to the energy of x is
    known: what the last quarter of them added stands for what is missing (Hestenes and Stiefel, 1952). Returns
    iterations, the energy of x and what was `held` before, and what is missing.
    """
    x, r, p, q, z, right = room[0], room[1], room[2], room[3], room[4], room[5]
    start = energy = 0.0
    for k in range(lo, mid):
        start += right[k] * right[k] / diagonal[k]
        r[k] = right[k]
        x[k] = 0.0
    for k in range(mid, hi):
        energy += right[k] * right[k] / diagonal[k]
        q[k] = right[k] / diagonal[k]
    start += energy + held
    _to_first(a, b, weight, q, r)
    now = _precondition(way, lo, mid, c, scale, factor, coarse, r, p)
    after = np.empty(most + 1)  # energy of x after so many iterations
    after[0], steps, missing = energy, 0, np.inf
    least = ROUND_OFF * rtol * rtol * start
    while steps < most and missing > rtol * rtol * (energy + held):
        if not now > least:
            missing = 0.0
            break
        for k in range(lo, hi):
            q[k] = 0.0
        _to_second(a, b, weight, p, q)
        for k in range(mid, hi):
            q[k] /= diagonal[k]
        _to_first(a, b, weight, q, q)
        pq = 0.0
        for k in range(lo, mid):
            q[k] = diagonal[k] * p[k] - q[k]
            pq += p[k] * q[k]
        if not pq > 0.0:
            break
        alpha = now / pq
        for k in range(lo, mid):
            x[k] += alpha * p[k]
            r[k] -= alpha * q[k]
        new = _precondition(way, lo, mid, c, scale, factor, coarse, r, z)
        beta = new / now
        for k in range(lo, mid):
            p[k] = z[k] + beta * p[k]
        energy += alpha * now
        steps, now = steps + 1, new
        after[steps] = energy
        if steps > 1:
            missing = energy - after[steps - max(2, steps // 4)]
        if steps == most // 3 and missing > (energy + held) * rtol ** (2.0 / 3.0):
            break
    for k in range(mid, hi):
        q[k] = right[k]
    _to_second(a, b, weight, x, q)
    for k in range(mid, hi):
        x[k] = q[k] / diagonal[k]
    return steps, energy + held, missing


@njit(cache=True)
def _solve_component(
    way: Any,
    lo: Any,
    hi: Any,
    c: Any,
    a: Any,
    b: Any,
    weight: Any,
    diagonal: Any,
    factor: Any,
    coarse: Any,
    room: Any,
    held: Any,
    rtol: Any,
    most: Any,
) -> Any:
    """Put into room[0, lo:hi] the solution for these nodes; return iterations, and r' z at first, with `held`, and at last."""
    x, r, p, q, z, right = room[0], room[1], room[2], room[3], room[4], room[5]
    for k in range(lo, hi):
        r[k] = right[k]
        x[k] = 0.0
    start = _precondition(way, lo, hi, c, diagonal, factor, coarse, r, p)
    now, least, steps = start, start, 0
    start += held
    goal = rtol * rtol * start
    while steps < most and now > goal:
        multiply(lo, hi, a, b, weight, p, q)
        pq = 0.0
        for k in range(lo, hi):
            pq += p[k] * q[k]
        if not pq > 0.0:
            break
        alpha = now / pq
        for k in range(lo, hi):
            x[k] += alpha * p[k]
            r[k] -= alpha * q[k]
        new = _precondition(way, lo, hi, c, diagonal, factor, coarse, r, z)
        beta = new / now
        for k in range(lo, hi):
            p[k] = z[k] + beta * p[k]
        steps, now = steps + 1, max(new, 0.0)
        least = min(least, now)
        if way != FACTOR and steps == most // 3 and least > start * rtol ** (2.0 / 3.0):
            break
    return steps, start, now


@njit(cache=True)
def _center(x: Any, lo: Any, hi: Any) -> Any:
    mean = 0.0
    for k in range(lo, hi):
        mean += x[k]
    mean /= hi - lo
    for k in range(lo, hi):
        x[k] -= mean


@njit(cache=True)
def conjugate_gradients(
    way: Any,
    begin: Any,
    middle: Any,
    edges: Any,
    a: Any,
    b: Any,
    weight: Any,
    diagonal: Any,
    scale: Any,
    factor: Any,
    clusters: Any,
    room: Any,
    held: Any,
    rtol: Any,
    most: Any,
) -> Any:
    """Solve component by component; return iterations and the ratio reached, both of the worst one.

    Component c has the nodes begin[c]..begin[c + 1] - 1 and the edges edges[c]..edges[c + 1] - 1; its nodes from middle[c]
    on are eliminated where there are any.

    room : (6, n), the solution comes to the first row, the right side stands in the last, and all are overwritten. New
    memory would cost as much as a few iterations.

    held : (components,), the energy of what was found before, of which this is the rest: `rtol` is of both together.

    What preconditions: the `diagonal` (`scale` where nodes are eliminated), that and a move of each of the clusters
    (`clusters` : of each node, begin of each component, factor of their graph), or the `factor`.

    Convergence is judged by sqrt(r' z) against its first value, with a good preconditioner the energy norm of the error,
    and by the energy itself where nodes were eliminated. Without the factor components that would take more than `most`
    iterations are given up after a third of them.
    """
    x, right = room[0], room[5]
    x[:] = 0.0
    of, first_cluster, first, rows, share, pivot = clusters
    coarse = of, first_cluster, first, rows, share, pivot, np.empty((2, len(pivot)))
    worst, reached = 0, 0.0
    for c in range(len(begin) - 1):
        lo, mid, hi = begin[c], middle[c], begin[c + 1]
        if hi - lo < 2:
            continue
        e, f = edges[c], edges[c + 1]
        u, v, w = a[e:f], b[e:f], weight[e:f]
        _center(right, lo, hi)
        if mid < hi:
            steps, start, now = _solve_reduced(
                way, lo, mid, hi, c, u, v, w, diagonal, scale, factor, coarse, room, held[c], rtol, most,
            )  # fmt: skip
        else:
            steps, start, now = _solve_component(
                way, lo, hi, c, u, v, w, diagonal, factor, coarse, room, held[c], rtol, most
            )
        _center(x, lo, hi)
        worst = max(worst, steps)
        if start > 0.0:
            reached = max(reached, np.sqrt(now / start))
    return worst, reached
