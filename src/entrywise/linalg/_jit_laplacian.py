"""Compiled steps of :mod:`entrywise.linalg.laplacian`: spanning tree, elimination, products.

Nothing here allocates more than a few arrays of the graph's size; every loop is sequential, so results are
the same at any thread count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_sets import root_of

CANCELLED = 1e-8  # of a sum, below which a difference from it is round-off
EXACT_KEYS = 64  # buckets of the elimination queue: exact degrees below this, then eight an octave


@njit(cache=True)
def adjacency(n: Any, i: Any, j: Any) -> Any:
    """Return (start, to, back, edge): each edge lies in both its ends' lists, `back` is its twin's place."""
    start = np.zeros(n + 1, np.int64)
    for e in range(len(i)):
        start[i[e] + 1] += 1
        start[j[e] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    to = np.empty(2 * len(i), np.int32)
    back = np.empty(2 * len(i), np.int32)
    edge = np.empty(2 * len(i), np.int32)
    for e in range(len(i)):
        a, b = fill[i[e]], fill[j[e]]
        fill[i[e]] += 1
        fill[j[e]] += 1
        to[a], to[b] = j[e], i[e]
        edge[a] = edge[b] = e
        back[a], back[b] = b, a
    return start, to, back, edge


@njit(cache=True)
def heaviest_first(weights: Any) -> Any:
    """Return the order of the edges by falling weight, told apart by their first nine binary digits; else as they are."""
    bits = weights.view(np.int64)  # in order for positive numbers
    lowest, highest = np.int64(2**62), np.int64(0)
    for e in range(len(bits)):
        lowest, highest = min(lowest, bits[e]), max(highest, bits[e])
    lowest, highest = lowest >> 44, highest >> 44  # sign, exponent and eight digits
    key = np.empty(len(bits), np.int32)
    for e in range(len(bits)):
        key[e] = highest - (bits[e] >> 44)
    every = np.arange(len(bits)).astype(np.int32)
    keys = highest - lowest + 1 if len(bits) else 1
    return counting_sort(key, keys, every)


@njit(cache=True)
def spanning_forest(n: Any, i: Any, j: Any, order: Any) -> Any:
    """Return the edges, taken in `order`, that join two parts (Kruskal), and each node's part."""
    parent = np.arange(n).astype(np.int32)
    size = np.ones(n, np.int32)
    taken = np.empty(max(n - 1, 0), np.int64)
    count = 0
    for e in order:
        a, b = root_of(parent, i[e]), root_of(parent, j[e])
        if a != b:
            if size[a] < size[b]:
                a, b = b, a
            parent[b] = a
            size[a] += size[b]
            taken[count] = e
            count += 1
            if count == n - 1:
                break
    part = np.full(n, -1, np.int64)
    parts = 0
    for v in range(n):  # numbered in order of their first node
        a = root_of(parent, v)
        if part[a] < 0:
            part[a] = parts
            parts += 1
        part[v] = part[a]
    return taken[:count], part, parts


@njit(cache=True)
def tree_order(n: Any, i: Any, j: Any, edges: Any) -> Any:
    """Return (nodes, parent, edge) of a forest in breadth-first order; roots have parent and edge -1."""
    start = np.zeros(n + 1, np.int64)
    for e in edges:
        start[i[e] + 1] += 1
        start[j[e] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    via = np.empty(2 * len(edges), np.int64)
    for e in edges:
        via[fill[i[e]]] = e
        fill[i[e]] += 1
        via[fill[j[e]]] = e
        fill[j[e]] += 1
    nodes = np.empty(n, np.int64)
    parent = np.full(n, -1, np.int64)
    edge = np.full(n, -1, np.int64)
    seen = np.zeros(n, np.bool_)
    end = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        nodes[end] = root
        at = end
        end += 1
        while at < end:
            v = nodes[at]
            at += 1
            for t in range(start[v], start[v + 1]):
                e = via[t]
                u = i[e] + j[e] - v
                if not seen[u]:
                    seen[u] = True
                    parent[u], edge[u] = v, e
                    nodes[end] = u
                    end += 1
    return nodes, parent, edge


@njit(cache=True)
def walk(nodes: Any, parent: Any, edge: Any, i: Any, differences: Any) -> Any:
    """Return potentials p with p_i - p_j = difference on every edge of the forest, 0 at its roots."""
    p = np.zeros(len(nodes))
    for v in nodes:
        e = edge[v]
        if e >= 0:
            p[v] = p[parent[v]] + (differences[e] if i[e] == v else -differences[e])
    return p


@njit(cache=True)
def misfit(i: Any, j: Any, differences: Any, p: Any) -> Any:
    """Return what is left of the differences beside those of the potentials, shape (e,)."""
    found = np.empty(len(i))
    for e in range(len(i)):
        found[e] = differences[e] - (p[i[e]] - p[j[e]])
    return found


@njit(cache=True)
def _key(degree: Any) -> Any:
    if degree < EXACT_KEYS:
        return max(degree, 0)
    return EXACT_KEYS + int(8.0 * np.log2(degree / EXACT_KEYS))


@njit(cache=True)
def _unlink(v: Any, key: Any, head: Any, after: Any, before: Any) -> Any:
    if before[v] >= 0:
        after[before[v]] = after[v]
    else:
        head[key[v]] = after[v]
    if after[v] >= 0:
        before[after[v]] = before[v]


@njit(cache=True)
def _push(v: Any, k: Any, key: Any, head: Any, after: Any, before: Any) -> Any:
    key[v] = k
    before[v] = -1
    after[v] = head[k]
    if head[k] >= 0:
        before[head[k]] = v
    head[k] = v


@njit(cache=True)
def _shift(v: Any, change: Any, degree: Any, key: Any, head: Any, after: Any, before: Any) -> Any:
    """Note that the degree of v has changed."""
    degree[v] += change
    k = _key(degree[v])
    if k != key[v]:
        _unlink(v, key, head, after, before)
        _push(v, k, key, head, after, before)


@njit(cache=True)
def _sort_by_weight(value: Any, node: Any, slot: Any, count: Any) -> Any:
    if count > 48:
        order = np.argsort(value[:count])
        value[:count] = value[:count][order]
        node[:count] = node[:count][order]
        slot[:count] = slot[:count][order]
        return
    for a in range(1, count):
        v, u, s = value[a], node[a], slot[a]
        b = a - 1
        while b >= 0 and value[b] > v:
            value[b + 1], node[b + 1], slot[b + 1] = value[b], node[b], slot[b]
            b -= 1
        value[b + 1], node[b + 1], slot[b + 1] = v, u, s


@njit(cache=True)
def eliminate(n: Any, start: Any, to: Any, weight: Any, back: Any, seed: Any) -> Any:
    """Eliminate node after node, the least connected first, sampling a path for each clique.

    Eliminating a node with d neighbours would join them all; d - 1 sampled edges stand for that clique,
    right on average and exact for d <= 2. `to`, `weight` and `back` are overwritten.

    Returns
    -------
    order : node eliminated at each step
    first : where each step's share of `rows` and `share` begins, shape (n + 1,)
    rows, share : neighbours by rising weight and the share that each takes of what is left
    pivot : weight left for the last neighbour, 0 for the last node of a component
    """
    slots = len(to)
    following = np.empty(slots, np.int32)
    top = np.full(n, -1, np.int32)
    degree = np.empty(n, np.int32)
    for v in range(n):
        degree[v] = start[v + 1] - start[v]
        if degree[v]:
            top[v] = start[v]
            for s in range(start[v], start[v + 1] - 1):
                following[s] = s + 1
            following[start[v + 1] - 1] = -1
    keys = _key(slots + 1) + 2
    head = np.full(keys, -1, np.int32)
    after, before = np.empty(n, np.int32), np.empty(n, np.int32)
    key = np.empty(n, np.int32)
    for v in range(n - 1, -1, -1):
        _push(v, _key(degree[v]), key, head, after, before)

    order = np.empty(n, np.int32)
    first = np.empty(n + 1, np.int64)
    room = max(slots, 16)
    rows = np.empty(room, np.int32)
    share = np.empty(room, np.float64)
    pivot = np.zeros(n)
    mark = np.full(n, -1, np.int32)
    space = 64
    value, node, slot, total = (
        np.empty(space),
        np.empty(space, np.int32),
        np.empty(space, np.int32),
        np.empty(space),
    )
    state = np.uint64(seed) * np.uint64(2654435769) + np.uint64(88172645463325252)
    end = 0
    lowest = 0
    for step in range(n):
        while head[lowest] < 0:
            lowest += 1
        v = head[lowest]
        _unlink(v, key, head, after, before)
        order[step] = v
        first[step] = end
        count = 0
        s = top[v]
        while s >= 0:  # gather the neighbours, parallel edges merged
            follow = following[s]
            w = weight[s]
            if w > 0.0:
                u = to[s]
                if mark[u] < 0:
                    if count == space:
                        value = np.concatenate((value, np.empty(space)))
                        node = np.concatenate((node, np.empty(space, np.int32)))
                        slot = np.concatenate((slot, np.empty(space, np.int32)))
                        total = np.empty(2 * space)
                        space *= 2
                    mark[u] = count
                    value[count], node[count], slot[count] = w, u, s
                    count += 1
                else:
                    value[mark[u]] += w
                    weight[back[s]] = 0.0
                    _shift(u, -1, degree, key, head, after, before)
            s = follow
        for a in range(count):
            mark[node[a]] = -1
        _sort_by_weight(value, node, slot, count)
        if end + count > room:
            rows = np.concatenate((rows, np.empty(room, np.int32)))
            share = np.concatenate((share, np.empty(room)))
            room *= 2
        sum_ = 0.0
        for a in range(count):
            sum_ += value[a]
            total[a] = sum_
        left, scale = sum_, 1.0
        for a in range(count - 1):
            f = value[a] * scale / left
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            draw = total[a] + (state >> np.uint64(11)) * (1.0 / 9007199254740992.0) * (
                sum_ - total[a]
            )
            low, high = a + 1, count - 1
            while low < high:  # the first heavier neighbour whose running total reaches the draw
                middle = (low + high) // 2
                if total[middle] < draw:
                    low = middle + 1
                else:
                    high = middle
            j, k = node[a], node[low]
            s, t = (
                slot[a],
                back[slot[a]],
            )  # t stays in j's list, s moves to k's: they now are the edge (j, k)
            w = f * (1.0 - f) * left
            to[t], weight[t], back[t] = k, w, s
            to[s], weight[s], back[s] = j, w, t
            following[s] = top[k]
            top[k] = s
            _shift(k, 1, degree, key, head, after, before)
            rows[end], share[end] = j, f
            end += 1
            left *= (1.0 - f) * (1.0 - f)
            scale *= 1.0 - f
        if count:
            j = node[count - 1]
            weight[back[slot[count - 1]]] = 0.0
            _shift(j, -1, degree, key, head, after, before)
            rows[end], share[end] = j, 1.0
            end += 1
            pivot[step] = value[count - 1] * scale
            for a in range(count):
                lowest = min(lowest, key[node[a]])
    first[n] = end
    return order, first, rows[:end].copy(), share[:end].copy(), pivot


@njit(cache=True)
def by_component(order: Any, part: Any, parts: Any) -> Any:
    """Return (new order, where each component begins): components one after the other, order kept within."""
    begin = np.zeros(parts + 1, np.int64)
    for v in order:
        begin[part[v] + 1] += 1
    for c in range(parts):
        begin[c + 1] += begin[c]
    fill = begin[:-1].copy()
    found = np.empty(len(order), np.int32)
    step = np.empty(len(order), np.int32)
    for s in range(len(order)):
        v = order[s]
        found[fill[part[v]]] = v
        step[fill[part[v]]] = s
        fill[part[v]] += 1
    return found, step, begin


@njit(cache=True)
def reorder_factor(
    nodes: Any, step: Any, place: Any, first: Any, rows: Any, share: Any, pivot: Any
) -> Any:
    """Return the factor with steps in the order of `nodes` and neighbours named by their place there."""
    n = len(nodes)
    first2 = np.empty(n + 1, np.int64)
    rows2 = np.empty_like(rows)
    share2 = np.empty_like(share)
    pivot2 = np.empty_like(pivot)
    end = 0
    for a in range(n):
        first2[a] = end
        pivot2[a] = pivot[step[a]]
        for t in range(first[step[a]], first[step[a] + 1]):
            rows2[end] = place[rows[t]]
            share2[end] = share[t]
            end += 1
    first2[n] = end
    return first2, rows2, share2, pivot2


@njit(cache=True)
def counting_sort(key: Any, keys: Any, order: Any) -> Any:
    """Return `order` sorted by key[order], one of 0..keys-1; equal ones stay as they are."""
    fill = np.zeros(keys + 1, np.int64)
    for k in key:
        fill[k + 1] += 1
    for k in range(keys):
        fill[k + 1] += fill[k]
    found = np.empty_like(order)
    for e in order:
        k = key[e]
        found[fill[k]] = e
        fill[k] += 1
    return found


@njit(cache=True)
def jumps(a: Any, b: Any, near: Any) -> Any:
    """Return how often, from one edge to the next, the second end goes back or the first one goes `near` nodes or more."""
    count = 0
    for e in range(1, len(a)):
        if b[e] < b[e - 1] or abs(a[e] - a[e - 1]) >= near:
            count += 1
    return count


@njit(cache=True)
def apply_factor(
    a: Any, b: Any, first: Any, rows: Any, share: Any, pivot: Any, r: Any, z: Any
) -> Any:
    """Put into z[a:b] what the factor makes of r[a:b]: forward, pivots, backward."""
    for v in range(a, b):
        z[v] = r[v]
    for v in range(a, b):
        end = first[v + 1] - 1
        if end < first[v]:
            z[v] = 0.0
            continue
        y = z[v]
        for t in range(first[v], end):
            z[rows[t]] += share[t] * y
            y *= 1.0 - share[t]
        z[rows[end]] += y
        z[v] = y / pivot[v]
    for v in range(b - 1, a - 1, -1):
        end = first[v + 1] - 1
        if end < first[v]:
            continue
        y = z[v] + z[rows[end]]
        for t in range(end - 1, first[v] - 1, -1):
            y = (1.0 - share[t]) * y + share[t] * z[rows[t]]
        z[v] = y


@njit(cache=True)
def moved(old: Any, new: Any) -> Any:
    """Return how much of the weights lies elsewhere, both taken as shares of their sums: 0 to 2."""
    before, after, total = 0.0, 0.0, 0.0
    for e in range(len(old)):
        before += old[e]
        after += new[e]
    for e in range(len(old)):
        total += abs(new[e] / after - old[e] / before)
    return total


@njit(cache=True)
def diagonal(n: Any, a: Any, b: Any, weight: Any) -> Any:
    """Return what the edges of each node weigh together, shape (n,)."""
    found = np.zeros(n)
    for e in range(len(a)):
        found[a[e]] += weight[e]
        found[b[e]] += weight[e]
    return found


@njit(cache=True)
def reduced_diagonal(a: Any, b: Any, weight: Any, diagonal: Any) -> Any:
    """Return the diagonal after all second ends are eliminated, at the first ends: what their edges weigh, less w^2 / D2.

    An end that only one edge has gives all of its weight away: lines with many such ones are held by little else. In
    another's place the diagonal stays.
    """
    found = diagonal.copy()
    for e in range(len(a)):
        found[a[e]] -= weight[e] * weight[e] / diagonal[b[e]]
    for v in range(len(found)):
        found[v] = max(found[v], CANCELLED * diagonal[v])
    return found


@njit(cache=True)
def multiply(lo: Any, hi: Any, a: Any, b: Any, weight: Any, x: Any, y: Any) -> Any:
    """Put into y[lo:hi] the Laplacian of the edges (a, b), all of these nodes, times x."""
    for v in range(lo, hi):
        y[v] = 0.0
    for e in range(len(a)):
        u, v = a[e], b[e]
        flow = weight[e] * (x[u] - x[v])
        y[u] += flow
        y[v] -= flow
