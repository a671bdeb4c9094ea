"""The compiled steps of small problems in numpy alone: nothing to compile, nothing to import.

A first call should not wait for a compiler. Below :data:`SMALL` cells the sweeps of the low-rank fit, its residuals
and the greedy purchase take these ways, below :data:`FEW_NODES` nodes the graphs of rank-one fits and rankings; the
choice follows from the size of the problem alone. They compute what the kernels of :mod:`entrywise.linalg._jit_als`,
:mod:`entrywise.linalg._jit_gain` and :mod:`entrywise.linalg._jit_laplacian` compute, to round-off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

# cells m x n: above, the hundreds of fits of a rehearsal take longer than numba's import and its cached kernels
SMALL = 10_000
LAST = 0.25  # share of a purchase's slack that stays until its money runs out
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


def packed_sums(index: Indices, other: Indices, X: Array, size: int) -> Array:
    """Return the packed sum of x x' over the observations of each line, shape (size, q (q + 1) / 2)."""
    a, b = np.triu_indices(X.shape[1])
    found = np.zeros((size, len(a)))
    np.add.at(found, index, X[other][:, a] * X[other][:, b])
    return found


def buy_greedily(
    U: Array,
    V: Array,
    Cu: Array,
    Cv: Array,
    M: Array,
    N: Array,
    often: Indices,
    start: Indices,
    cols: NDArray[np.int32],
    noise: Array,
    weight: Array,
    price: Array,
    bound: Array,
    money: float,
    most: int,
    by_sum: bool,
    slack: float,
) -> tuple[Indices, Indices]:
    """Pick cells by largest fall of variance per price, as the compiled greedy purchase does; see there."""
    full = [_unpacked(x, U.shape[1]) for x in (Cu, Cv, M, N)]
    state = _Purchase(U, V, full[0], full[1], full[2], full[3], often, by_sum)
    price, noise, weight = (np.broadcast_to(x, cols.shape) for x in (price, noise, weight))
    of = np.repeat(np.arange(len(U)), np.diff(start))
    all_money = max(money, 1e-300)
    while len(state.picked) < most:
        best = np.zeros(len(U))
        np.maximum.at(best, of, np.where((cols >= 0) & (price <= money), bound, 0.0))
        top = best.max(initial=0.0)
        if not top > 0.0:
            break
        level = (1.0 - slack * max(money / all_money, LAST)) * top
        for i in np.flatnonzero(best >= level).tolist():
            part = slice(start[i], start[i + 1])
            near = (cols[part] >= 0) & (bound[part] >= level) & (price[part] <= money)
            if not near.any():
                continue
            look = _Look(state, i, cols[part], noise[part], weight[part])
            money = look.buy_down_to(level, near, bound[part], price[part], money, most, slack)
        state.columns_learn()
    a, b = np.triu_indices(U.shape[1])
    for packed, whole in zip((Cu, Cv, M, N), full, strict=True):
        packed[:] = whole[:, a, b]
    cells = np.array(state.picked, np.int64).reshape(-1, 2)
    return cells[:, 0].copy(), cells[:, 1].copy()


class _Purchase:
    """Covariances and sums over open cells of all lines, in full: (m, q, q) and (n, q, q), and what was picked."""

    def __init__(
        self,
        U: Array,
        V: Array,
        Cu: Array,
        Cv: Array,
        M: Array,
        N: Array,
        often: Indices,
        by_sum: bool,
    ) -> None:
        self.U, self.V = U, V
        self.Cu, self.Cv, self.M, self.N = Cu, Cv, M, N
        self.Pv = Cv @ N @ Cv
        self.by_sum = by_sum
        self.often, self.free = often, often.copy()  # cells that a pass may still take of a column
        self.picked: list[tuple[int, int]] = []
        self.news: list[tuple[int, int, float, float]] = []  # of this pass: 1 / d and weight

    def columns_learn(self) -> None:
        """Let columns learn of the purchases of a pass."""
        for i, j, inverse, lost in self.news:
            u = self.U[i]
            x = self.Cv[j] @ u
            self.Cv[j] -= inverse * np.outer(x, x)
            self.N[j] -= lost * np.outer(u, u)
        for j in {j for _, j, _, _ in self.news}:
            self.Pv[j] = self.Cv[j] @ self.N[j] @ self.Cv[j]
        self.news, self.free = [], self.often.copy()


class _Look:
    """What the candidates of one row promise; a purchase changes them by rank-one terms."""

    def __init__(
        self,
        state: _Purchase,
        i: int,
        cols: NDArray[np.int32],
        noise: Array,
        weight: Array,
    ) -> None:
        self.state, self.i, self.cols = state, i, cols
        self.noise, self.weight = noise, weight
        J = np.maximum(cols, 0)
        u, Cu = state.U[i], state.Cu[i]
        Cv = state.Cv[J]  # (L, q, q)
        self.X = state.V[J]  # (L, q)
        self.row_gain = np.einsum("ta,ab,tb->t", self.X, Cu @ state.M[i] @ Cu, self.X)
        self.row_var = np.einsum("ta,ab,tb->t", self.X, Cu, self.X)
        self.col_gain = np.einsum("a,tab,b->t", u, state.Pv[J], u)
        self.col_var = np.einsum("a,tab,b->t", u, Cv, u)
        self.col_var += np.einsum("ab,tab->t", Cu[:-1, :-1], Cv[:, :-1, :-1])

    def rates(self, price: Array) -> Array:
        """Return what each candidate gains for its price, shape (L,)."""
        spread = self.noise + self.row_var + self.col_var
        return np.asarray((self.row_gain + self.col_gain) / (spread * price))

    def buy_down_to(
        self,
        level: float,
        near: NDArray[np.bool_],
        bound: Array,
        price: Array,
        money: float,
        most: int,
        slack: float,
    ) -> float:
        """Take from the best of those that are `near` on, each that still reaches the level; return the money left."""
        picked, rate = self.state.picked, self.rates(price)
        before, ratio, other = len(picked), 1.0, np.ones(len(rate), bool)
        bound[near] = rate[near]
        live = np.flatnonzero(near & (rate >= level))
        for at in live[np.argsort(-rate[live], kind="stable")].tolist():
            if len(picked) == most:
                break
            if price[at] > money or not self.state.free[self.cols[at]]:
                continue
            bound[at] = self.rates(price)[at]
            ratio, other[at] = bound[at] / rate[at], False
            if bound[at] >= level:
                money -= price[at] * (1.0 - 1e-12)
                self.buy(at)
        if len(picked) > before and slack > 0.0:
            bound[other] *= ratio
        return money

    def buy(self, at: int) -> None:
        """Take the candidate at a place: its row learns from it, its column after the pass."""
        state, i, j = self.state, self.i, int(self.cols[at])
        self.cols[at] = -1
        v = state.V[j]
        inverse = 1.0 / (self.noise[at] + self.row_var[at] + self.col_var[at])
        lost = float(self.weight[at])
        state.picked.append((i, j))
        state.free[j] -= 1
        state.news.append((i, j, inverse, lost))
        x, w, square = _terms(state.Cu[i], state.M[i], v, inverse, 0.0 if state.by_sum else lost)
        y, z = self.X @ x, self.X @ w
        self.row_gain = np.maximum(self.row_gain + y * (square * y - 2.0 * inverse * z), 0.0)
        self.row_var = np.maximum(self.row_var - y * y * inverse, 0.0)
        state.Cu[i] -= inverse * np.outer(x, x)
        if not state.by_sum:
            state.M[i] -= lost * np.outer(v, v)


def _terms(C: Array, M: Array, v: Array, inverse: float, lost: float) -> tuple[Array, Array, float]:
    """Return x = C v, w = C M x and c: a purchase of design v turns P = C M C into P - (x w' + w x') / d + c x x'.

    M loses `lost` times v v'.
    """
    x = C @ v
    h = M @ x
    square = float(h @ x) * inverse**2
    square -= lost * (1.0 - float(x @ v) * inverse) ** 2
    return x, C @ h, square


def _unpacked(packed: Array, q: int) -> Array:
    """Return packed symmetric matrices in full, shape (lines, q, q)."""
    a, b = np.triu_indices(q)
    full = np.empty((len(packed), q, q))
    full[:, a, b] = full[:, b, a] = packed
    return full


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
