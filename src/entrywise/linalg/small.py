"""The compiled steps of small problems in numpy alone: nothing to compile, nothing to import.

A first call should not wait for a compiler. Below :data:`SMALL` cells the sweeps of the low-rank fit, its residuals, its
spectrum and the greedy purchase take these ways, below :data:`FEW_NODES` nodes the graphs of rank-one fits and rankings; the
choice follows from the size of the problem alone. They compute what the kernels of :mod:`entrywise.linalg._jit_als`,
:mod:`entrywise.linalg._jit_gain` and :mod:`entrywise.linalg._jit_laplacian` compute, to round-off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

# cells m x n: above, the hundreds of fits of a rehearsal take longer than numba's import and its cached kernels
SMALL = 10_000
DIAGONAL, CLUSTERS, FACTOR = 0, 1, 2  # what preconditions the solves of a Laplacian
MISSES = 3  # cells of a row, one after the other, that no longer reach the level: the next ones will not either
ROUGH = 1.0 + 1e-4  # by which a gain in single precision may fall short
FEW_NODES, FEW_EDGES = (
    300,
    20_000,
)  # of a graph: its forest in plain Python takes a few milliseconds


def group(
    rows: Indices, cols: Indices, values: Array, variance: Array, size: int
) -> tuple[Indices, NDArray[np.int32], Array, Array]:
    """Return the observations sorted by row: (pointer, cols as int32, values, variance), stable."""
    order = np.argsort(rows, kind="stable")
    pointer = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=pointer[1:])
    spread = variance[order] if len(variance) == len(rows) else np.zeros(0)
    return pointer, cols[order].astype(np.int32), values[order], spread


def is_small(m: int, n: int) -> bool:
    """Tell whether a matrix of this shape takes the ways of this module."""
    return m * n <= SMALL


def products(
    pointer: Indices, other: NDArray[np.int32], values: Array, n: int
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return products with the m x n matrix of entries sorted by row, and with its transpose; it is made dense."""
    m = len(pointer) - 1
    matrix = np.zeros((m, n))
    np.add.at(matrix, (np.repeat(np.arange(m), np.diff(pointer)), other), values)
    return matrix.__matmul__, matrix.T.__matmul__


def is_small_graph(n: int, edges: int) -> bool:
    """Tell whether a graph of so many nodes and edges takes the ways of this module."""
    return n <= FEW_NODES and edges <= FEW_EDGES


def half_sweep(
    pointer: Indices,
    other: NDArray[np.int32],
    values: Array,
    spread: Array,
    base: float,
    line: Array,
    across: Array,
    A: Array,
    off: Array,
    extra: Array,
    P0: Array,
    h0: Array,
    keep: bool,
) -> tuple[Array, Array, Array]:
    """Return means (m, q), covariances (m, q, q) when kept, and sums, as the compiled half sweep does.

    A : (n, q) designs ``(v_j, 1)``; the other arguments are those of the compiled one. Weights fill an m x n array,
    so that every sum over the observations of a line is a matrix product.
    """
    m, n, q = len(pointer) - 1, len(A), len(h0)
    k = q - 1
    counts = np.diff(pointer)
    of = np.repeat(np.arange(m), counts)  # (t,) line of each observation
    at = of * n + other
    variance = spread + base if len(spread) else np.full(len(values), base)
    times = across[other] if len(across) else np.ones(len(values))
    w = times / variance
    y = values - off[other]
    W = np.bincount(at, w, m * n).reshape(m, n)
    WY = np.bincount(at, w * y, m * n).reshape(m, n)
    G = (W @ (A[:, :, None] * A[:, None, :]).reshape(n, q * q)).reshape(m, q, q)
    h = WY @ A
    weight = W.sum(axis=1)
    if len(extra) == n and n > 1:
        S = (W @ extra.reshape(n, q * q)).reshape(m, q, q)
    else:
        S = weight[:, None, None] * extra[0]
    # E[a a'] adds the covariance of v_j; its covariance with c_j moves the right-hand side
    squares = np.bincount(of, w * y**2, m) + S[:, k, k]
    G[:, :k, :k] += S[:, :k, :k]
    h[:, :k] -= S[:, :k, k]
    L = np.linalg.cholesky(G + P0)
    root = np.linalg.inv(L)
    C = root.transpose(0, 2, 1) @ root
    x = np.einsum("iab,ib->ia", C, h + h0)
    second = x[:, :, None] * x[:, None, :]
    fit = squares - 2.0 * (x * h).sum(axis=1) + (G * (second + C)).sum(axis=(1, 2))
    seen, logs = np.bincount(of, times, m), np.bincount(of, times * np.log(variance), m)
    logdet = -2.0 * np.log(np.einsum("iaa->ia", L)).sum(axis=1)
    share = np.where(counts > 0, line if len(line) else 1.0, 0.0)
    parts = [share @ C.reshape(m, -1), (share * weight) @ C.reshape(m, -1)]
    parts += [share @ second.reshape(m, -1), share @ x]
    numbers = (np.ones(m), weight, fit, seen, logdet, logs)
    parts += [np.array([share @ number for number in numbers])]
    return x, C if keep else np.empty((0, q, q)), np.concatenate(parts)


def residuals(
    pointer: Indices,
    other: NDArray[np.int32],
    values: Array,
    U: Array,
    V: Array,
    row_off: Array,
    col_off: Array,
    row_scale: Array,
    col_scale: Array,
) -> Array:
    """Return the residuals of the observations sorted by row, times the scales of their lines, shape (t,)."""
    of = np.repeat(np.arange(len(pointer) - 1), np.diff(pointer))
    fitted = np.einsum("tk,tk->t", U[of], V[other])
    return np.asarray(
        (values - row_off[of] - col_off[other] - fitted) * row_scale[of] * col_scale[other]
    )


def line_sums(index: Indices, other: Indices, table: Array, size: int) -> Array:
    """Return the sum of table[other] over the observations of each line, shape (size, p)."""
    found = np.zeros((size, table.shape[1]))
    np.add.at(found, index, table[other])
    return found


def buy_rows(
    rows: Indices,
    gain: NDArray[np.float32],
    variance: tuple[NDArray[np.float32], NDArray[np.float32]],
    unit: Array,
    bits: NDArray[np.uint8],
    price: Array,
    noise: Array,
    span: float,
    squares: Array,
    inside: Array,
    V: Array,
    Cu: Array,
    Pu: Array,
    Cv: Array,
    Pv: Array,
    level: float,
    money: float,
    most: int,
    quota: Indices,
    known: Indices,
    deep: tuple[float, float],
    by_sum: bool,
    best: Array,
    bought: tuple[Indices, Array],
    count: int,
) -> tuple[Indices, Array, int, float]:
    """Buy in a block of rows what reaches `level`, as the compiled way does; see there."""
    q = V.shape[1]
    a, b = np.triu_indices(q)
    price, noise = (np.broadcast_to(x, gain.shape) for x in (price, noise))
    spread = unit[1] * (variance[0] @ variance[1]) + noise
    every = unit[0] * gain / (spread * price)
    is_open = np.unpackbits(bits[rows], axis=1, count=len(V)).view(np.bool_)
    gain_forms, variance_forms = squares[rows], squares[rows] + inside * Cu[rows]
    new: list[tuple[int, int, float, float, float, float]] = []
    for r, i in enumerate(rows.tolist()):
        rate = np.where(is_open[r] & (price[r] <= money), every[r], 0.0)
        near = np.flatnonzero(rate >= level / ROUGH)
        if not len(near) or count + len(new) == most:
            best[i] = ROUGH * rate.max(initial=0.0)
            continue
        near = near[np.argsort(-rate[near], kind="stable")]
        enough = deep[0] + deep[1] * known[i] * (rate[near[0]] / level - 1.0)
        near = near[: int(np.ceil(enough))]
        C = _unpacked(Cu[i : i + 1], q)[0]
        P = _unpacked(Pu[i : i + 1], q)[0]
        gain_form, variance_form = gain_forms[r], variance_forms[r]
        ratio, highest, before, looked, missed = 1.0, 0.0, len(new), 0, 0
        for j in near.tolist():
            if missed == MISSES:
                break
            looked += 1
            if count + len(new) == most or price[r, j] > money or quota[j] <= 0:
                highest = max(highest, rate[j])
                quota[j] = -1 if quota[j] == 0 else quota[j]
                continue
            v = V[j]
            x, w = C @ v, P @ v
            along, spread = max(float(v @ w), 0.0), max(float(v @ x), 0.0)
            own = float(gain_form @ Cv[j])
            d = noise[r, j] + spread + float(variance_form @ Cv[j])
            now = (along + float(gain_form @ Pv[j])) / (d * price[r, j])
            ratio = now / rate[j]
            if now < level:
                highest = max(highest, now)
                missed += 1
                continue
            missed = 0
            money -= price[r, j] * (1.0 - 1e-12)
            quota[j] -= 1
            bits[i, j >> 3] &= np.uint8(255 ^ (128 >> (j & 7)))
            loss = 1.0 if span == 0.0 else float((span / noise[r, j]) ** 2)
            new.append((i, j, d - own, loss, now, price[r, j]))
            square = along / d**2
            if not by_sum:
                square -= loss * (1.0 - spread / d) ** 2
            C -= np.outer(x, x) / d
            P += square * np.outer(x, x) - (np.outer(x, w) + np.outer(w, x)) / d
        best[i] = ROUGH * np.delete(rate, near[:looked]).max(initial=0.0)
        known[i] += len(new) - before
        if len(new) > before:
            Cu[i], Pu[i] = C[a, b], P[a, b]
            best[i] *= min(ratio, 1.0)
        best[i] = max(best[i], highest)
    lines = np.array([x[:2] for x in new], np.int64).reshape(-1, 2).T
    told = np.array([x[2:] for x in new], np.float64).reshape(-1, 4).T
    lines, told = np.hstack([bought[0][:, :count], lines]), np.hstack([bought[1][:, :count], told])
    return lines, told, count + len(new), money


def columns_learn(
    U: Array,
    C: Array,
    P: Array,
    known: Indices,
    rows: Indices,
    cols: Indices,
    variance: Array,
    lost: Array,
) -> None:
    """Let columns learn of all purchases of a turn, at once: what the compiled way comes to; see there.

    With G and L the sums of u u' over the variance, and times lost, and T = (I + C G)^-1, C' = T C and P' = T P T' - C' L C'.
    """
    q = U.shape[1]
    a, b = np.triu_indices(q)
    some, counts = np.unique(cols, return_counts=True)
    if not len(some):
        return
    known[some] += counts
    squares = U[rows][:, a] * U[rows][:, b]
    sums = np.zeros((2, *C.shape))
    for total, times in zip(sums, (1.0 / variance, lost), strict=True):
        np.add.at(total, cols, times[:, None] * squares)
    G, L = (_unpacked(total[some], q) for total in sums)
    before, N = _unpacked(C[some], q), _unpacked(P[some], q)
    T = np.linalg.inv(np.eye(q) + before @ G)
    after = T @ before
    N = T @ N @ T.transpose(0, 2, 1) - after @ L @ after.transpose(0, 2, 1)
    C[some], P[some] = after[:, a, b], N[:, a, b]


def _unpacked(packed: Array, q: int) -> Array:
    """Return packed symmetric matrices in full, shape (lines, q, q)."""
    a, b = np.triu_indices(q)
    full = np.empty((len(packed), q, q))
    full[:, a, b] = full[:, b, a] = packed
    return full


def heaviest_first(weights: Array) -> Indices:
    """Return the order of the edges by falling weight; equal ones stay as they are."""
    return np.argsort(-weights, kind="stable")


def spanning_forest(n: int, i: Indices, j: Indices, order: Indices) -> tuple[Indices, Indices, int]:
    """Return the edges, taken in `order`, that join two parts (Kruskal), each node's part, and their number."""
    members = [[v] for v in range(n)]  # of the part that a node leads
    leader = list(range(n))
    taken = []
    for e, a, b in zip(order.tolist(), i[order].tolist(), j[order].tolist(), strict=True):
        a, b = leader[a], leader[b]
        if a == b:
            continue
        if len(members[a]) < len(members[b]):
            a, b = b, a
        for v in members[b]:
            leader[v] = a
        members[a] += members[b]
        taken.append(e)
    _, first, part = np.unique(leader, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))  # numbered in order of their first node
    return np.array(taken, np.int64), number[part].astype(np.int64), len(first)


def tree_order(n: int, i: Indices, j: Indices, edges: Indices) -> tuple[Indices, Indices, Indices]:
    """Return (nodes, parent, edge) of a forest in breadth-first order; roots have parent and edge -1."""
    ways: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e in edges.tolist():
        a, b = int(i[e]), int(j[e])
        ways[a].append((b, e))
        ways[b].append((a, e))
    nodes: list[int] = []
    parent, edge = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    seen = np.zeros(n, bool)
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        at = len(nodes)
        nodes.append(root)
        while at < len(nodes):
            for u, e in ways[nodes[at]]:
                if not seen[u]:
                    seen[u] = True
                    parent[u], edge[u] = nodes[at], e
                    nodes.append(u)
            at += 1
    return np.array(nodes, np.int64), parent, edge


def walk(nodes: Indices, parent: Indices, edge: Indices, i: Indices, differences: Array) -> Array:
    """Return potentials p with p_i - p_j = difference on every edge of the forest, 0 at its roots."""
    p = np.zeros(len(nodes))
    for v in nodes.tolist():
        e = edge[v]
        if e >= 0:
            p[v] = p[parent[v]] + (differences[e] if i[e] == v else -differences[e])
    return p


def misfit(i: Indices, j: Indices, differences: Array, p: Array) -> Array:
    """Return what is left of the differences beside those of the potentials, shape (e,)."""
    return np.asarray(differences - (p[i] - p[j]))


def eliminate(n: int, i: Indices, j: Indices, weights: Array) -> tuple[Array, Array]:
    """Eliminate the nodes of a graph one after another; return the shares and pivots of its factor, (n, n) and (n,).

    Neighbours of a node that goes are joined by what flowed through it: sums and products of positive numbers alone, so
    that every number is right to the last digits whatever the weights (as in the elimination of Grassmann, Taksar and
    Heyman). The pivot of the last node of each component is 0.
    """
    W, pivot = np.zeros((n, n)), np.zeros(n)
    np.add.at(W, (i, j), weights)
    np.add.at(W, (j, i), weights)
    share = np.zeros((n, n))
    for k in range(n):
        after = W[k, k + 1 :]
        pivot[k] = after.sum()
        if pivot[k] > 0:
            share[k, k + 1 :] = after / pivot[k]
            W[k + 1 :, k + 1 :] += np.outer(after, share[k, k + 1 :])
    return share, pivot


def solve_eliminated(share: Array, pivot: Array, b: Array) -> Array:
    """Return x with L x = b from the factor of :func:`eliminate`, 0 at the last node of each component."""
    x, n = np.array(b), len(b)
    for k in range(n):
        x[k + 1 :] += share[k, k + 1 :] * x[k]
    x = np.divide(x, pivot, out=np.zeros(n), where=pivot > 0)
    for k in range(n - 1, -1, -1):
        x[k] += share[k, k + 1 :] @ x[k + 1 :]
    return x
