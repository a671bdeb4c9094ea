"""Graph Laplacians solved in near-linear time, whatever the graph and its weights.

Potentials whose differences are known along edges, with noise, are the solution of a Laplacian system: log
entries of a rank-one matrix, scores of players, skills of workers. Conjugate gradients are preconditioned by
what serves: the diagonal; the diagonal and moves of whole clusters, pieces of the spanning tree of the heaviest
edges, whose own graph is eliminated approximately; or an approximate Cholesky factor of the whole graph. There nodes are
eliminated from the least connected on, and the clique that a node leaves behind is replaced by a sampled tree on its
neighbours. The spanning tree gives the start, too, so that only the misfit is left to solve for, and noise-free data come
back to the last digit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import ParameterError
from entrywise.linalg import small
from entrywise.linalg.small import CLUSTERS, DIAGONAL, FACTOR
from entrywise.types import Array, Indices

METHODS = (
    "jacobi",
    "clusters",
    "cholesky",
)  # what preconditions, as :meth:`Laplacian.solve` calls it
# the next is tried where one does not converge in so many iterations; clusters cost as much as twenty of them, a factor
# as much as two hundred
STEPS = (30, 200)
# nodes of a cluster, at least: so few where the edges between clusters, those of two taken as one, are at most a
# quarter of all, or so many: clusters of a graph that is like a random one are joined each to each
SMALL, LARGE, JOINED = 16, 1024, 0.25
WEAK = (
    1 / 16
)  # of the heaviest edge of a piece of the tree, what must bind it to the rest of its cluster
LIKE_A_TREE = 1.2  # edges a node, up to which a factor is nearly exact, and soon made
SIMILAR = 0.25  # share of the weights that may lie elsewhere for what did not converge not to be tried again
ALIKE = 1e10  # largest over smallest weight up to which a dense inverse keeps six digits
BORROWED_STEPS = 60  # iterations with the factor of other weights; a new one costs about a hundred
# binary digits of the nodes whose potentials, or flows, stay in the cache together; products with them need both
BLOCK, HALF_BLOCK = 15, 16
ROUND_OFF = 1e-15  # share of the largest potential below which no misfit is solved for
DENSE = 1500  # nodes up to which resistances of many pairs come from a dense inverse
NO_FACTOR = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0)
NO_CLUSTERS = (NO_FACTOR[1], NO_FACTOR[0], *NO_FACTOR)


class Tree(NamedTuple):
    """A spanning forest of the heaviest edges, within 1/256 of their weights: nodes breadth-first, -1 at the roots."""

    nodes: Indices
    parent: Indices
    edge: Indices


class Laplacian:
    r"""The Laplacian :math:`L = B W B^\top` of a weighted graph, ready to be solved many times.

    Parameters
    ----------
    n : int
        Number of nodes.
    i, j : ndarray of int of shape (e,)
        Ends of each edge, i != j; parallel edges add up.
    weights : ndarray of shape (e,) or float
        Positive and finite; they may range over 1e16 and more.
    seed : int
        For the sampled elimination; the answer changes within the tolerance only.

    Attributes
    ----------
    iterations : int
        Conjugate-gradient iterations of the last solve, of the component that took most.
    reached : float
        Relative error at which it ended, told as ``rtol`` of :meth:`solve` is.

    Notes
    -----
    Every connected component is solved on its own and answers have mean zero in each: :meth:`solve` is
    :math:`L^+ b`. Right sides are projected accordingly.

    References
    ----------
    .. [N10] Notay, *An aggregation-based algebraic multigrid method*, ETNA 2010: here two levels, added up.
    .. [KS16] Kyng, Sachdeva, *Approximate Gaussian elimination for Laplacians*, FOCS 2016; here with
       nodes in order of degree and neighbours by rising weight (Gao, Kyng, Spielman, 2023).

    Examples
    --------
    >>> path = Laplacian(3, [0, 1], [1, 2], [1.0, 4.0])
    >>> path.potentials([2.0, -1.0]).round(12) + 0.0
    array([ 1., -1.,  0.])
    >>> path.resistances([0], [2])
    array([1.25])
    """

    def __init__(
        self, n: int, i: ArrayLike, j: ArrayLike, weights: ArrayLike = 1.0, *, seed: int = 0
    ) -> None:
        self.n = int(n)
        self.i, self.j = np.asarray(i, np.int64), np.asarray(j, np.int64)
        self.weights = np.array(np.broadcast_to(np.asarray(weights, np.float64), self.i.shape))
        self.seed = seed
        self.iterations, self.reached = 0, 0.0
        self._way = DIAGONAL
        self._lent: Any = None  # the forest of other weights
        self._rooms: list[Array] = []  # to compute in; those of other weights use them, too
        self._borrowed = False  # whether the factor is that of other weights
        if self.n < 1 or self.n > 2**31 - 1:
            raise ParameterError(f"n of a Laplacian must be in 1..2^31 - 1, got {n}")
        if self.i.ndim != 1 or self.i.shape != self.j.shape:
            raise ParameterError(
                f"i and j must be flat and equally long, got {self.i.shape} and {self.j.shape}"
            )
        if len(self.i):
            self._refuse_ends()
            self._refuse_weights()

    def _refuse_ends(self) -> None:
        low = min(self.i.min(), self.j.min())
        high = max(self.i.max(), self.j.max())
        if low < 0 or high >= self.n:
            wrong = low if low < 0 else high
            raise ParameterError(f"nodes must be in 0..{self.n - 1}, got {wrong}")
        loop = self.i == self.j
        if np.any(loop):
            node = self.i[loop][0]
            raise ParameterError(f"edges must join two nodes, node {node} is joined to itself")

    def _refuse_weights(self) -> None:
        if not (self.weights.min() > 0 and self.weights.max() < np.inf):
            fine = np.isfinite(self.weights) & (self.weights > 0)
            bad = self.weights[~fine][0]
            raise ParameterError(
                f"weights must be finite and above 0, got {bad}; leave such edges out"
            )

    @cached_property
    def _steps(self) -> Any:
        """The steps on the graph: compiled, or in numpy where it is small."""
        if small.is_small_graph(self.n, len(self.i)):
            return small
        from entrywise.linalg import _jit_laplacian

        return _jit_laplacian

    @cached_property
    def _dense(self) -> Callable[[Array], Array] | None:
        """How a small graph is solved: by an inverse, or node by node where its weights are too far apart for one."""
        if self._steps is not small or not len(self.i):
            return None
        if self.weights.max() > ALIKE * self.weights.min():
            factor = small.eliminate(self.n, self.i, self.j, self.weights)
            return partial(small.solve_eliminated, *factor)
        return self.inverse().__matmul__

    @cached_property
    def _forest(self) -> tuple[Tree, Indices, int]:
        order = self._steps.heaviest_first(self.weights)
        edges, part, parts = self._steps.spanning_forest(self.n, self.i, self.j, order)
        return Tree(*self._steps.tree_order(self.n, self.i, self.j, edges)), part, parts

    @property
    def tree(self) -> Tree:
        """A spanning forest of the heaviest edges."""
        return self._forest[0]

    @cached_property
    def components(self) -> tuple[int, Indices]:
        """How many connected components there are, and that of each node."""
        if "_forest" in self.__dict__:
            return self._forest[2], self._forest[1]
        every = np.arange(len(self.i))
        _, part, parts = self._steps.spanning_forest(self.n, self.i, self.j, every)
        return parts, part

    def reweighted(self, weights: ArrayLike) -> Laplacian:
        """Return the same graph with other weights; what does not depend on them is made once for both.

        Its solves begin with this graph's factor, and make one of their own where that does not serve.
        """
        found = copy.copy(self)
        found.weights = np.asarray(weights, np.float64)
        if found.weights.shape != self.i.shape:
            found.weights = np.array(np.broadcast_to(found.weights, self.i.shape))
        if len(self.i):
            found._refuse_weights()
        if self._way != DIAGONAL and not self._similar(found.weights):
            found._way = DIAGONAL
        found._lent = self.__dict__.get("_forest", self._lent)
        for name in ("_dense", "_forest", "_plain", "_eliminated", "_coarse"):
            found.__dict__.pop(name, None)
        found._borrowed = "_factored" in found.__dict__
        return found

    def _similar(self, weights: Array) -> bool:
        """Tell whether these weights are, up to a factor, near to the graph's own."""
        from entrywise.linalg import _jit_laplacian as jit

        return bool(jit.moved(self.weights, weights) <= SIMILAR)

    @classmethod
    def like(
        cls, last: Laplacian | None, n: int, i: Indices, j: Indices, weights: ArrayLike
    ) -> Laplacian:
        """Return the Laplacian of these edges, with the pattern of the `last` one where that had the same."""
        if last is not None and np.array_equal(last.i, i) and np.array_equal(last.j, j):
            return last.reweighted(weights)
        return cls(n, i, j, weights)

    def _give_back(self) -> None:
        """Forget a factor that was made for other weights."""
        if self._borrowed:
            del self.__dict__["_factored"]
            self.__dict__.pop("_eliminated", None)
            self._borrowed = False

    def walk(self, differences: ArrayLike) -> Array:
        """Return potentials that fit the differences on the tree alone, 0 at each component's first node."""
        d = self._per_edge(differences)
        return np.asarray(self._steps.walk(*self.tree, self.i, d))

    @cached_property
    def _pattern(self) -> Any:
        """The lists of neighbours, and the edge that each place belongs to."""
        from entrywise.linalg import _jit_laplacian as jit

        return jit.adjacency(self.n, self.i, self.j)

    def _edges(self, nodes: NDArray[np.int32], ends: tuple[Indices, Indices], block: int) -> Any:
        """Return the edges with nodes named by their place in `nodes`: where components begin, ends, and which they are.

        They come by component, by blocks of the first end, and by the second: what a product reads and writes of
        the first ends stays in the cache, and of the second it comes in order.
        """
        from entrywise.linalg import _jit_laplacian as jit

        count, part = self.components
        place = np.empty(self.n, np.int32)
        place[nodes] = np.arange(self.n, dtype=np.int32)
        a, b, of = place[ends[0]], place[ends[1]], part[ends[0]]
        edges = np.bincount(of, minlength=count)
        begin = np.zeros(count + 1, np.int64)
        np.cumsum(edges, out=begin[1:])
        several = np.count_nonzero(edges) > 1
        if not several and jit.jumps(a, b, 2 << block) <= 2 * (self.n >> block):
            return begin, a, b, slice(None)
        order = jit.counting_sort(b, self.n, np.arange(len(a), dtype=np.int32))
        order = jit.counting_sort(a >> block, (self.n >> block) + 1, order)
        if several:
            order = jit.counting_sort(of, count, order)
        return begin, a[order], b[order], order

    @cached_property
    def _split(self) -> int:
        """The number that all first ends are below and no second one is; 0 where there is none."""
        if not len(self.i):
            return 0
        split = int(self.j.min())
        return split if self.i.max() < split else 0

    @cached_property
    def _in_order(self) -> Any:
        """The graph with components one after the other, and where in each the nodes begin that can be eliminated.

        Those are the ends on the larger side, where all edges lead from one side to the other.
        """
        from entrywise.linalg import _jit_laplacian as jit

        count, part = self.components
        order, ends = np.arange(self.n, dtype=np.int32), (self.i, self.j)
        kept, split = self.n, self._split
        if 0 < 2 * split <= self.n:
            kept = split
        elif split:
            order, ends, kept = np.roll(order, -split), (self.j, self.i), self.n - split
        nodes, _, begin = jit.by_component(order, part, count)
        middle = begin[:-1] + np.bincount(part[order[:kept]], minlength=count)
        block = HALF_BLOCK if split else BLOCK
        return nodes, begin, middle, self._edges(nodes, ends, block)

    @cached_property
    def _plain(self) -> Any:
        """The graph with components one after the other, its diagonal, and that when what can be is eliminated."""
        from entrywise.linalg import _jit_laplacian as jit

        nodes, begin, middle, (edges, a, b, order) = self._in_order
        weights = self.weights[order]
        diagonal = scale = jit.diagonal(self.n, a, b, weights)
        if self._split:
            scale = jit.reduced_diagonal(a, b, weights, diagonal)
        return nodes, begin, middle, (edges, a, b, weights), (diagonal, scale)

    @cached_property
    def _clusters(self) -> Any:
        """Pieces of the forest of the heaviest edges: that of each node, their component, and the edges between them."""
        from entrywise.linalg import _jit_clusters as jit

        (nodes, parent, edge), part, _ = self._lent or self._forest
        for size in (SMALL, LARGE):
            of, count = jit.clusters(nodes, parent, edge, self.weights, size, WEAK)
            a, b, pair = jit.merged(of[self.i], of[self.j], count)
            if len(a) <= JOINED * len(self.i):
                break
        component = np.empty(count, np.int64)
        component[of] = part
        return of, component, a, b, pair

    @cached_property
    def _coarse(self) -> Any:
        """The graph of the clusters, eliminated; of each node, in order, the place of its cluster."""
        from entrywise.linalg import _jit_clusters as jit

        of, component, a, b, pair = self._clusters
        coarse = Laplacian(len(component), a, b, jit.sums(pair, self.weights, len(a)))
        coarse.__dict__["components"] = self.components[0], component
        nodes, begin, _, _, factor = coarse._eliminated
        place = np.empty(coarse.n, np.int32)
        place[nodes] = np.arange(coarse.n, dtype=np.int32)
        return place[of[self._in_order[0]]], begin, *factor

    @cached_property
    def _factored(self) -> Any:
        """The graph with nodes in elimination order within components, and its approximate factor."""
        from entrywise.linalg import _jit_laplacian as jit

        count, part = self.components
        start, to, back, edge = self._pattern
        order, first, rows, share, pivot = jit.eliminate(
            self.n, start, to.copy(), self.weights[edge], back.copy(), self.seed
        )
        nodes, step, begin = jit.by_component(order, part, count)
        place = np.empty(self.n, np.int32)
        place[nodes] = np.arange(self.n, dtype=np.int32)
        factor = jit.reorder_factor(nodes, step, place, first, rows, share, pivot)
        return nodes, begin, self._edges(nodes, (self.i, self.j), BLOCK), factor

    @cached_property
    def _eliminated(self) -> Any:
        """The same with the weights."""
        nodes, begin, (edges, a, b, order), factor = self._factored
        return nodes, begin, begin[1:], (edges, a, b, self.weights[order]), factor

    @property
    def fill(self) -> float:
        """Numbers in the approximate factor for each edge."""
        self._give_back()
        return len(self._eliminated[-1][1]) / max(len(self.i), 1)

    def __matmul__(self, x: ArrayLike) -> Array:
        """Return L x, of shape (n,) or (n, k)."""
        X = np.asarray(x, np.float64)
        if X.ndim == 2:
            return np.column_stack([self @ column for column in X.T])
        if self._steps is small:
            return self.divergence((X[self.i] - X[self.j]) * self.weights)
        nodes, _, _, (_, a, b, weights), _ = self._plain
        y, found = np.empty(self.n), np.empty(self.n)
        self._steps.multiply(0, self.n, a, b, weights, X[nodes], y)
        found[nodes] = y
        return found

    def divergence(self, flow: Array) -> Array:
        """Return B flow: what flows out of each node, shape (n,)."""
        out = np.bincount(self.i, flow, self.n) - np.bincount(self.j, flow, self.n)
        return np.asarray(out, np.float64)

    def precondition(self, r: ArrayLike) -> Array:
        """Return what the approximate factor makes of r: near to L^+ r, in two sweeps."""
        from entrywise.linalg import _jit_laplacian as jit

        self._give_back()
        nodes, _, _, _, factor = self._eliminated
        z = np.empty(self.n)
        jit.apply_factor(0, self.n, *factor, np.asarray(r, np.float64)[nodes], z)
        found = np.empty(self.n)
        found[nodes] = z
        return self.center(found)

    def center(self, x: Array) -> Array:
        """Return x with mean zero in each component."""
        mean = self._by_component(x) / self._by_component(np.ones(self.n))
        return np.asarray(x - mean[self.components[1]])

    def _by_component(self, x: Array) -> Array:
        """Return the sum of x over the nodes of each component."""
        count, part = self.components
        return np.asarray(np.bincount(part, x, count), np.float64)

    def solve(
        self, b: ArrayLike, rtol: float = 1e-8, *, method: str = "auto", most: int = 500
    ) -> Array:
        """Return L^+ b, the solution of mean zero in each component.

        Parameters
        ----------
        b : ndarray of shape (n,) or (n, k)
        rtol : float
            Relative error in the energy norm, as the residual in the preconditioner's norm tells it, or what the last
            iterations gained where the diagonal is the preconditioner of one side.
        method : {"auto", "jacobi", "clusters", "cholesky"}
            ``auto`` keeps the diagonal as preconditioner where that converges within 30 iterations, the diagonal and
            clusters within 200.
        most : int
            Iterations at most.
        """
        if method not in ("auto", *METHODS):
            raise ParameterError(
                f"method of solve must be auto, jacobi, clusters or cholesky, got {method!r}"
            )
        B = np.asarray(b, np.float64)
        if B.shape[:1] != (self.n,) or B.ndim > 2:
            raise ParameterError(f"the right side must have {self.n} rows, got shape {B.shape}")
        if B.ndim == 2:
            return np.column_stack(
                [self.solve(column, rtol, method=method, most=most) for column in B.T]
            )
        if method == "auto" and self._dense is not None:
            return self._solve_small(self._dense, B)
        if method in METHODS[:FACTOR]:
            return self._solve(METHODS.index(method), B, rtol, most)
        found, iterations = np.zeros(self.n), 0
        rest, held = B, np.zeros(self.components[0])
        while method == "auto" and self._way != FACTOR:
            found += self._solve(self._way, rest, rtol, STEPS[self._way], held)
            iterations += self.iterations
            if self.reached <= rtol:
                self.iterations = iterations
                return found
            image = self @ found  # what was found is kept
            rest, held = B - image, self._by_component(found * image)
            like_a_tree = len(self.i) <= LIKE_A_TREE * self.n
            self._way = FACTOR if like_a_tree else self._way + 1
        if self._borrowed:
            found = self._solve(FACTOR, B, rtol, min(BORROWED_STEPS, most))
            if self.reached <= rtol:
                return found
            self._give_back()
        return self._solve(FACTOR, B, rtol, most)

    def _solve_small(self, solved: Callable[[Array], Array], b: Array) -> Array:
        """Return L^+ b of a small graph, the misfit solved for once more."""
        wanted = self.center(b)
        found = self.center(solved(wanted))
        found += self.center(solved(wanted - self @ found))
        self.iterations, self.reached = 1, 0.0
        return found

    def _solve(
        self, way: int, b: Array, rtol: float, most: int, held: Array | None = None
    ) -> Array:
        """Return what one way of preconditioning makes of b; `held` is the energy, by component, of what was found before."""
        from entrywise.linalg._jit_gradients import conjugate_gradients

        diagonals, factor, coarse = NO_FACTOR[-2:], NO_FACTOR, NO_CLUSTERS
        if way == FACTOR:
            nodes, begin, middle, graph, factor = self._eliminated
        else:
            nodes, begin, middle, graph, diagonals = self._plain
        if way == CLUSTERS:
            coarse = self._coarse
        held = np.zeros(len(begin) - 1) if held is None else held
        try:  # threads may come at once
            free = self._rooms.pop()
        except IndexError:
            free = np.empty((6, self.n))
        np.take(b, nodes, out=free[5], mode="clip")  # the other mode makes a copy first
        self.iterations, self.reached = conjugate_gradients(
            way, begin, middle, *graph, *diagonals, factor, coarse, free, held, rtol, most
        )
        found = np.empty(self.n)
        found[nodes] = free[0]
        self._rooms.append(free)
        return found

    def potentials(self, differences: ArrayLike, rtol: float = 1e-8, *, rounds: int = 4) -> Array:
        r"""Return the least-squares potentials :math:`\arg\min_p \sum_e w_e (p_{i_e} - p_{j_e} - d_e)^2`.

        The start is exact on the heaviest spanning tree and only the misfit is solved for, again and again
        while that still changes the answer (at most `rounds` times). Mean zero in each component.
        """
        d = self._per_edge(differences)
        p = self.center(self.walk(d))
        misfit, iterations, last = self._misfit(d, p), 0, np.inf
        for _ in range(rounds):
            if _largest(misfit) <= ROUND_OFF * max(_largest(p), _largest(d)):
                break
            step = self.solve(self.divergence(self.weights * misfit), rtol)
            iterations = max(iterations, self.iterations)
            change, before = float(np.abs(step).max()), misfit
            misfit = self._misfit(d, p + step)
            if not change < 0.5 * last or self._energy(misfit) > self._energy(before):
                break  # round-off has taken over
            p += step
            last = change
            if change <= 1e-13 * max(1.0, float(np.abs(p).max())):
                break
        self.iterations = iterations
        return p

    def _misfit(self, d: Array, p: Array) -> Array:
        return np.asarray(self._steps.misfit(self.i, self.j, d, p))

    def _energy(self, misfit: Array) -> float:
        return float(np.einsum("e,e,e->", self.weights, misfit, misfit))

    def resistances(self, i: ArrayLike, j: ArrayLike, rtol: float = 1e-10) -> Array:
        """Return the effective resistances between i and j, shapes broadcast; infinite across components.

        One solve a pair or one a node, whichever is fewer; a dense inverse where the graph is small.
        """
        a, b = np.broadcast_arrays(np.asarray(i, np.int64), np.asarray(j, np.int64))
        part = self.components[1]
        found = np.where(a == b, 0.0, np.inf)
        ask = np.flatnonzero((part[a] == part[b]) & (a != b))
        u, v = a.ravel()[ask], b.ravel()[ask]
        named = np.unique(np.r_[u, v])
        if self.n <= DENSE and len(u) > 8 and self.weights.max() <= ALIKE * self.weights.min():
            G = self.inverse()
            R = G[u, u] + G[v, v] - 2.0 * G[u, v]
        elif len(named) < len(u):
            at_u = np.asarray(np.searchsorted(named, u))
            at_v = np.asarray(np.searchsorted(named, v))
            own, cross = np.empty(len(named)), np.empty(len(u))
            for k, node in enumerate(named):
                x = self._response(node, -1, rtol)
                own[k] = x[node]
                cross[at_u == k] = x[v[at_u == k]]
            R = own[at_u] + own[at_v] - 2.0 * cross
        else:
            R = np.empty(len(u))
            for k, (s, t) in enumerate(zip(u, v, strict=True)):
                x = self._response(s, t, rtol)
                R[k] = x[s] - x[t]
        found.flat[ask] = R
        return found

    def _response(self, source: int, sink: int, rtol: float) -> Array:
        """Return the potentials when a unit flows in at `source` and out at `sink` (-1: everywhere alike)."""
        e = np.zeros(self.n)
        e[source] = 1.0
        if sink >= 0:
            e[sink] = -1.0
        return self.solve(e, rtol)

    def inverse(self) -> Array:
        """Return an inverse up to a constant in each component, of shape (n, n): for small graphs."""
        here, there = np.r_[self.i, self.j], np.r_[self.j, self.i]
        weights = np.r_[self.weights, self.weights]
        L = np.diag(np.bincount(here, weights, self.n).astype(np.float64))
        np.subtract.at(L, (here, there), weights)
        part = self.components[1]
        typical = float(np.median(L.diagonal()[L.diagonal() > 0])) if len(self.i) else 1.0
        L += (part[:, None] == part[None, :]) * (typical / np.bincount(part)[part])
        return np.asarray(np.linalg.inv(L))

    def _per_edge(self, differences: ArrayLike) -> Array:
        d = np.asarray(differences, np.float64)
        if d.shape != self.i.shape:
            raise ParameterError(
                f"there must be one difference for each of the {len(self.i)} edges, got shape {d.shape}"
            )
        if not np.all(np.isfinite(d)):
            raise ParameterError("differences must be finite; leave unknown ones out")
        return d


def _largest(x: Array) -> float:
    """Return the largest size of a number, 0 where there is none."""
    return max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))


def in_blocks(m: int, n: int, rows: Indices, cols: Indices) -> NDArray[np.int32] | None:
    """Return the order of the entries of an m x n table in which lines are near when they come again, None where any is.

    By blocks of the lines of the shorter side, and within by those of the other: the order of a solve's products.
    """
    if max(m, n) <= 1 << HALF_BLOCK:
        return None
    from entrywise.linalg import _jit_laplacian as jit

    short, long = (rows, cols) if m <= n else (cols, rows)
    order = jit.counting_sort(long, max(m, n), np.arange(len(rows), dtype=np.int32))
    blocks = (min(m, n) >> HALF_BLOCK) + 1
    return np.asarray(jit.counting_sort(short >> HALF_BLOCK, blocks, order))
