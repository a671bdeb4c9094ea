"""Compiled clusters of a graph: pieces of its spanning forest, and what the edges between two of them weigh together."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_laplacian import counting_sort


@njit(cache=True)
def clusters(nodes: Any, parent: Any, edge: Any, weight: Any, size: Any, weak: Any) -> Any:
    """Return the cluster of each node, and their number: connected pieces of a forest, breadth-first as `nodes` are.

    From the leaves on a piece is closed when it has `size` nodes, or hangs on an edge that weighs less than `weak` times
    the heaviest one within: two heavy parts held together by little would move against each other, and a cluster cannot.
    """
    n = len(nodes)
    count, heaviest = np.ones(n, np.int32), np.zeros(n)
    found, number = np.full(n, -1, np.int32), 0
    for s in range(n - 1, -1, -1):
        v = nodes[s]
        above = parent[v]
        if above < 0 or count[v] >= size or weight[edge[v]] < weak * heaviest[v]:
            found[v] = number
            number += 1
        else:
            count[above] += count[v]
            heaviest[above] = max(heaviest[above], heaviest[v], weight[edge[v]])
    for s in range(n):
        v = nodes[s]
        if found[v] < 0:
            found[v] = found[parent[v]]
    return found, number


@njit(cache=True)
def merged(a: Any, b: Any, count: Any) -> Any:
    """Return the pairs of clusters that edges lead between, one end each, and the pair of each edge, -1 within a cluster."""
    between = np.flatnonzero(a != b)
    low, high = np.minimum(a[between], b[between]), np.maximum(a[between], b[between])
    order = counting_sort(high, count, np.arange(len(between)).astype(np.int32))
    order = counting_sort(low, count, order)
    pair, first, number = np.full(len(a), -1, np.int32), np.empty(len(order), np.int32), 0
    for k in range(len(order)):
        e, last = order[k], order[max(k - 1, 0)]
        if k == 0 or low[e] != low[last] or high[e] != high[last]:
            first[number] = e
            number += 1
        pair[between[e]] = number - 1
    return low[first[:number]], high[first[:number]], pair


@njit(cache=True)
def sums(pair: Any, weight: Any, count: Any) -> Any:
    """Return what the edges of each pair weigh together, shape (count,)."""
    found = np.zeros(count)
    for e in range(len(pair)):
        if pair[e] >= 0:
            found[pair[e]] += weight[e]
    return found
