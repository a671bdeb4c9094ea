"""Disjoint sets as a forest: each node points to its parent, a root to itself (union-find)."""

from __future__ import annotations

from typing import Any

from entrywise.linalg._jit import njit


@njit(cache=True, nogil=True)
def root_of(parent: Any, node: Any) -> Any:
    """Return the root of a node's set; the way there is halved for the next time."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
