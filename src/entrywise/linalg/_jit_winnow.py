"""Compiled: the graph of updates that grows, and the loop that predicts and learns.

A stretch of `pool` that is full moves to the end at twice its size. Vertices 0 and 1 never have
neighbours: they stand for a row and a column that were not seen yet. Events are logged so that any
earlier state can be made again.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_ends import halves, moved, tightened, wait
from entrywise.linalg._jit_lanczos import (
    LOW,
    LOW_MINUS,
    LOW_NODES,
    LOW_PLUS,
    LOW_ROOTS,
    NODES,
    TIE,
    UP,
    UP_MINUS,
    UP_NODES,
    UP_PLUS,
    UP_ROOTS,
    decide,
)

# integers of a memory
(
    USED,
    VERTICES,
    EVENTS,
    UPDATES,
    SINCE,
    RESTARTS,
    UP_ROW,
    UP_COL,
    DOWN_ROW,
    DOWN_COL,
    TIGHTENED,
    NEXT,
    VAIN,
) = range(13)
N_INTS = 13
# floats of a memory
GAMMA, TRACE, LOWEST, HIGHEST = range(4)
N_FLOATS = 4


@njit(cache=True)
def span(symmetric, gamma, ints, floats):
    """Interval that holds the spectrum: ends moved by each update, degrees, and the trace of exp(S) above."""
    trace = floats[TRACE]
    if (
        symmetric
    ):  # |A| <= gamma sqrt(largest row sum * largest column sum); 2 cosh(top) + N - 2 <= trace
        most = gamma * np.sqrt(
            float(ints[UP_ROW] + ints[DOWN_ROW]) * float(ints[UP_COL] + ints[DOWN_COL])
        )
        top = min(most, np.arccosh(max(1.0, 0.5 * (trace - ints[VERTICES] + 2.0))), floats[HIGHEST])
        top = top * (1.0 + 1e-12) + 1e-12
        return -top, top
    bottom = max(-0.5 * gamma * (ints[DOWN_ROW] + ints[DOWN_COL]), floats[LOWEST])
    top = min(0.5 * gamma * (ints[UP_ROW] + ints[UP_COL]), np.log(max(1.0, trace)), floats[HIGHEST])
    return bottom * (1.0 + 1e-12) - 1e-12, top * (1.0 + 1e-12) + 1e-12


@njit(cache=True)
def tighten(symmetric, start, count, net, pool, weight, touched, ints, floats):
    """Lower the bound on the largest eigenvalue, if the graph as it is now pays for it, and say when to look again.

    All of it follows from the updates alone, so that a log of them makes the very same state again.
    """
    place = np.empty(len(count), np.int32)
    size, first = halves(touched, len(count), place, start, count, pool)
    gamma = floats[GAMMA]
    pause = int(
        min(wait(touched, size, first, count) * 2.0 ** ints[VAIN], 1e15)
    )  # longer where it was in vain
    if ints[SINCE] - ints[TIGHTENED] >= pause:
        _, before = span(symmetric, gamma, ints, floats)
        scale = gamma if symmetric else 0.5 * gamma
        high = tightened(
            before, scale, symmetric, touched, size, first, place, start, count, net, pool, weight
        )
        floats[HIGHEST] = high
        if symmetric:
            floats[LOWEST] = -high
        ints[VAIN] = 0 if high < 0.98 * before else min(ints[VAIN] + 1, 4)
        ints[TIGHTENED] = ints[SINCE]
    ints[NEXT] = ints[TIGHTENED] + pause


@njit(cache=True)
def move(y, end, symmetric, floats):
    """Take in the new bound on the end of the spectrum that an update of sign y moves; nan stands for unknown."""
    if np.isnan(end):
        end = floats[HIGHEST] + floats[GAMMA] if y > 0 else floats[LOWEST] - floats[GAMMA]
    if symmetric:
        floats[HIGHEST], floats[LOWEST] = abs(end), -abs(end)
    elif y > 0:
        floats[HIGHEST] = end
    else:
        floats[LOWEST] = end


@njit(cache=True)
def add(w, t, y, start, count, room, pool, weight, ints):
    """Add sign y to the edge from w to t and return what it was; the caller has seen to it that the pool has room."""
    for p in range(start[w], start[w] + count[w]):
        if pool[p] == t:
            weight[p] += y
            return weight[p] - y
    if count[w] == room[w]:
        size = max(4, 2 * room[w])
        to = ints[USED]
        for p in range(count[w]):
            pool[to + p] = pool[start[w] + p]
            weight[to + p] = weight[start[w] + p]
        start[w] = to
        room[w] = size
        ints[USED] += size
    pool[start[w] + count[w]] = t
    weight[start[w] + count[w]] = y
    count[w] += 1
    return 0


@njit(cache=True)
def insert(
    u, v, y, delta, end, symmetric, start, count, room, net, ups, downs, pool, weight, ints, floats
):
    """Add an update at (u, v) of sign y to the graph; `delta` goes to the bound on the trace, `end` is a new end."""
    for w in (u, v):
        if count[w] == 0:
            ints[VERTICES] += 1
            floats[TRACE] += 1.0
    was = add(u, v, y, start, count, room, pool, weight, ints)
    add(v, u, y, start, count, room, pool, weight, ints)
    for w in (u, v):  # sums of the positive and of the negative weights at a vertex
        net[w] += y
        if y > 0:
            if was >= 0:
                ups[w] += 1
            else:
                downs[w] -= 1
        elif was <= 0:
            downs[w] += 1
        else:
            ups[w] -= 1
    floats[TRACE] += delta
    move(y, end, symmetric, floats)
    if symmetric:  # one number a vertex: all its updates
        ints[UP_ROW] = max(ints[UP_ROW], ups[u] + downs[u])
        ints[UP_COL] = max(ints[UP_COL], ups[v] + downs[v])
    else:
        ints[UP_ROW] = max(ints[UP_ROW], ups[u])
        ints[UP_COL] = max(ints[UP_COL], ups[v])
        ints[DOWN_ROW] = max(ints[DOWN_ROW], downs[u])
        ints[DOWN_COL] = max(ints[DOWN_COL], downs[v])
    ints[UPDATES] += 1


@njit(cache=True)
def restart(count, net, ups, downs, ints, floats):
    """Forget every update and learn at a rate smaller by sqrt 2."""
    count[:] = 0
    net[:] = 0
    ups[:] = 0
    downs[:] = 0
    floats[TRACE] = floats[LOWEST] = floats[HIGHEST] = 0.0
    floats[GAMMA] /= np.sqrt(2.0)
    for k in (VERTICES, SINCE, UP_ROW, UP_COL, DOWN_ROW, DOWN_COL, TIGHTENED, NEXT, VAIN):
        ints[k] = 0
    ints[RESTARTS] += 1


@njit(cache=True)
def full(doubling, seen, ints, floats):
    """Tell whether this rate has made the ceil(2 c N log N / gamma^2) mistakes after which it doubles."""
    if not doubling:
        return False
    return ints[SINCE] >= np.ceil(2.0 / (3.0 - np.e) * seen * np.log(seen) / floats[GAMMA] ** 2)


@njit(cache=True)
def follow(
    us, vs, ys, fresh, first, seen, symmetric, doubling, margin,
    start, count, room, net, ups, downs, pool, weight, x, stamp, touched, small, out, ints, floats, tally,
    log_u, log_v, log_y, log_delta, log_end, predictions,
):  # fmt: skip
    """Predict and learn the trials from `first` on; return where it stopped because the pool was full."""
    for t in range(first, len(us)):
        u, v, y = us[t], vs[t], ys[t]
        if ints[USED] + 4 * max(4, room[u]) + 4 * max(4, room[v]) > len(pool):
            return t, seen
        gamma = floats[GAMMA]
        low, high = span(symmetric, gamma, ints, floats)
        scale = gamma if symmetric else 0.5 * gamma
        sign, update = decide(
            u, v, y, margin, scale, symmetric, low, high, False,
            start, count, net, pool, weight, x, stamp, touched, small, out, tally,
        )  # fmt: skip
        predictions[t] = sign
        seen += fresh[t]
        if update:
            grow, shrink = np.exp(gamma) - 1.0, np.exp(-gamma) - 1.0
            if symmetric:
                if y > 0:
                    delta = grow * out[UP_PLUS] + shrink * out[UP_MINUS]
                else:
                    delta = grow * out[LOW_MINUS] + shrink * out[LOW_PLUS]
            else:
                delta = grow * out[UP_PLUS] if y > 0 else shrink * out[LOW_PLUS]
            if y > 0:
                end = moved(small[UP_NODES], small[UP_ROOTS], tally[NODES], gamma, high, 1.0)
            else:
                end = -moved(small[LOW_NODES], small[LOW_ROOTS], tally[NODES], gamma, -low, -1.0)
            insert(
                u,
                v,
                y,
                delta,
                end,
                symmetric,
                start,
                count,
                room,
                net,
                ups,
                downs,
                pool,
                weight,
                ints,
                floats,
            )
            ints[SINCE] += 1
            if ints[SINCE] >= ints[NEXT]:
                tighten(symmetric, start, count, net, pool, weight, touched, ints, floats)
        if update or fresh[t] > 0:
            k = ints[EVENTS]
            log_u[k], log_v[k], log_y[k] = u, v, y if update else 0
            log_delta[k], log_end[k] = (delta, end) if update else (0.0, 0.0)
            ints[EVENTS] += 1
        if update and full(doubling, seen, ints, floats):
            restart(count, net, ups, downs, ints, floats)
    return len(us), seen


@njit(cache=True)
def replay(
    log_u, log_v, log_y, log_delta, log_end, first, last, seen, symmetric, doubling,
    start, count, room, net, ups, downs, pool, weight, touched, ints, floats,
):  # fmt: skip
    """Insert logged events without predicting; return where it stopped because the pool was full."""
    for k in range(first, last):
        u, v = log_u[k], log_v[k]
        if ints[USED] + 4 * max(4, room[u]) + 4 * max(4, room[v]) > len(pool):
            return k, seen
        seen = max(seen, u - 1, v - 1)  # vertices are numbered as they appear, from 2
        if log_y[k] != 0:
            insert(
                u, v, log_y[k], log_delta[k], log_end[k], symmetric,
                start, count, room, net, ups, downs, pool, weight, ints, floats,
            )  # fmt: skip
            ints[SINCE] += 1
            if ints[SINCE] >= ints[NEXT]:
                tighten(symmetric, start, count, net, pool, weight, touched, ints, floats)
            if full(doubling, seen, ints, floats):
                restart(count, net, ups, downs, ints, floats)
        ints[EVENTS] = k + 1
    return last, seen


@njit(cache=True)
def many(
    us,
    vs,
    symmetric,
    exact,
    start,
    count,
    net,
    pool,
    weight,
    x,
    stamp,
    touched,
    small,
    out,
    ints,
    floats,
    tally,
    signs,
    values,
):
    """Decide many entries at one state; `values` gets the middle of each bracket."""
    gamma = floats[GAMMA]
    low, high = span(symmetric, gamma, ints, floats)
    scale = gamma if symmetric else 0.5 * gamma
    for t in range(len(us)):
        signs[t], _ = decide(
            us[t], vs[t], 0, 0.0, scale, symmetric, low, high, exact,
            start, count, net, pool, weight, x, stamp, touched, small, out, tally,
        )  # fmt: skip
        if exact:
            values[t] = 0.5 * (out[LOW] + out[UP])
            if symmetric:
                total = 0.5 * (out[LOW_PLUS] + out[LOW_MINUS] + out[UP_PLUS] + out[UP_MINUS])
                values[t] = 0.0 if abs(values[t]) <= TIE * total else values[t] / total
