"""Laplacian solver and stationary distributions, against dense referees and across graph families."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrywise.exceptions import ParameterError
from entrywise.linalg import _jit_clusters, _jit_laplacian
from entrywise.linalg.laplacian import HALF_BLOCK, WEAK, Laplacian, in_blocks
from entrywise.linalg.small import CLUSTERS
from entrywise.linalg.stationary import stationary

FAMILIES = ("random", "grid", "path", "star", "power law")


def graph(family, edges, rng):
    """Return (n, i, j) of a connected graph with about so many edges."""
    if family == "random":
        n = edges // 10
        i, j = rng.integers(n, size=edges), n + rng.integers(n, size=edges)
        ring = np.arange(2 * n - 1)
        return 2 * n, np.r_[i, ring], np.r_[j, ring + 1]
    if family == "grid":
        side = int(np.sqrt(edges / 2))
        at = np.arange(side * side).reshape(side, side)
        return (
            side * side,
            np.r_[at[:-1].ravel(), at[:, :-1].ravel()],
            np.r_[at[1:].ravel(), at[:, 1:].ravel()],
        )
    if family == "path":
        return edges + 1, np.arange(edges), np.arange(1, edges + 1)
    if family == "star":
        n = edges // 6
        rows, cols = np.nonzero((np.arange(n)[:, None] < 3) | (np.arange(n)[None, :] < 3))
        return 2 * n, rows, n + cols
    n = edges // 4
    heavy = 1.0 / np.arange(1, n + 1) ** 0.8
    i, j = (rng.choice(n, edges, p=heavy / heavy.sum()) for _ in range(2))
    ring = np.arange(2 * n - 1)
    return 2 * n, np.r_[i, ring], np.r_[n + j, ring + 1]


def dense(L):
    D = np.zeros((L.n, L.n))
    for i, j, w in zip(L.i, L.j, L.weights, strict=True):
        D[i, i] += w
        D[j, j] += w
        D[i, j] -= w
        D[j, i] -= w
    return D


@st.composite
def small_graphs(draw):
    n = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1])
    edges = draw(st.lists(pairs, max_size=30)) if n > 1 else []
    weights = draw(st.lists(st.floats(1e-3, 1e3), min_size=len(edges), max_size=len(edges)))
    i, j = np.array(edges, np.int64).reshape(-1, 2).T
    return Laplacian(n, i, j, np.array(weights)), draw(st.integers(0, 2**32 - 1))


@given(small_graphs())
def test_solve_and_potentials_agree_with_dense_least_squares(case):
    L, seed = case
    rng = np.random.default_rng(seed)
    b, d = rng.standard_normal(L.n), rng.standard_normal(len(L.i))
    expected = L.center(np.linalg.pinv(dense(L), rcond=1e-12) @ L.center(b))
    np.testing.assert_allclose(
        L.solve(b, 1e-13), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max(initial=1e-9)
    )
    B = np.zeros((len(L.i), L.n))
    B[np.arange(len(L.i)), L.i], B[np.arange(len(L.i)), L.j] = 1.0, -1.0
    s = np.sqrt(L.weights)
    fit = (
        L.center(np.linalg.lstsq(s[:, None] * B, s * d, rcond=1e-13)[0])
        if len(d)
        else np.zeros(L.n)
    )
    np.testing.assert_allclose(L.potentials(d), fit, atol=1e-9)
    np.testing.assert_allclose(L @ np.eye(L.n), dense(L), atol=1e-9)


@given(small_graphs(), st.sampled_from([1e12, 1e20, 1e40]))
def test_small_graphs_with_weights_far_apart_agree_with_fractions(case, spread):
    L, seed = case
    rng = np.random.default_rng(seed)
    L = Laplacian(L.n, L.i, L.j, spread ** rng.random(len(L.i)))
    b = L.center(rng.integers(-9, 9, L.n).astype(float))
    expected = in_fractions(L, b)
    np.testing.assert_allclose(L.solve(b), expected, atol=1e-9 * np.abs(expected).max(initial=0.0))


def in_fractions(L, b):
    """Solve a Laplacian system without rounding, the last node of each component at 0, then centred."""
    parts, part = L.components
    A = [[Fraction(0)] * L.n for _ in range(L.n)]
    for i, j, w in zip(L.i.tolist(), L.j.tolist(), map(Fraction, L.weights.tolist()), strict=True):
        for one, two in ((i, j), (j, i)):
            A[one][one] += w
            A[one][two] -= w
    free = [
        k for k in range(L.n) if k not in {max(np.flatnonzero(part == c)) for c in range(parts)}
    ]
    rows = [[A[k][l] for l in free] + [Fraction(float(b[k]))] for k in free]
    for k in range(len(free)):  # Gauss-Jordan; the minors of a Laplacian have pivots above 0
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for other in range(len(free)):
            if other != k:
                factor = rows[other][k]
                rows[other] = [x - factor * y for x, y in zip(rows[other], rows[k], strict=True)]
    x = [Fraction(0)] * L.n
    for k, row in zip(free, rows, strict=True):
        x[k] = row[-1]
    same = [[x[k] for k in range(L.n) if part[k] == part[node]] for node in range(L.n)]
    return np.array([float(x[k] - sum(same[k]) / len(same[k])) for k in range(L.n)])


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 1e8])
@pytest.mark.parametrize("family", FAMILIES)
def test_iterations_stay_below_sixty(family, spread):
    rng = np.random.default_rng(5)
    n, i, j = graph(family, 20_000, rng)
    L = Laplacian(n, i, j, spread ** rng.random(len(i)))
    x = L.solve(L.center(rng.standard_normal(n)), method="cholesky")
    assert L.iterations <= 60
    assert L.reached <= 1e-8
    assert np.all(np.isfinite(x))


@pytest.mark.parametrize("spread", [1.0, 1e8, 1e16])
@pytest.mark.parametrize("family", FAMILIES)
def test_noise_free_differences_come_back_to_the_last_digit(family, spread):
    rng = np.random.default_rng(6)
    n, i, j = graph(family, 3_000, rng)
    L = Laplacian(n, i, j, spread ** rng.random(len(i)))
    p = 4.0 * rng.standard_normal(n)
    found = L.potentials(p[i] - p[j])
    np.testing.assert_allclose(found, L.center(p), atol=1e-12)


def test_the_seed_changes_the_answer_within_the_tolerance_only():
    rng = np.random.default_rng(0)
    n, i, j = graph("grid", 2_000, rng)
    b = rng.standard_normal(n)
    one, two = (Laplacian(n, i, j, 1.0, seed=s).solve(b, 1e-10, method="cholesky") for s in (0, 1))
    again = Laplacian(n, i, j, 1.0, seed=0).solve(b, 1e-10, method="cholesky")
    assert np.array_equal(one, again)
    np.testing.assert_allclose(one, two, atol=1e-6 * np.abs(one).max())


def test_jacobi_is_kept_where_it_converges_and_left_where_it_does_not():
    rng = np.random.default_rng(1)
    n, i, j = graph("path", 2_000, rng)
    path = Laplacian(n, i, j, 1.0)
    path.solve(rng.standard_normal(n))
    assert path.iterations <= 2  # the factor of a tree is exact
    n, i, j = graph("random", 5_000, rng)
    random = Laplacian(n, i, j, 1.0)
    b = rng.standard_normal(n)
    x = random.solve(b)
    np.testing.assert_allclose(
        x, random.solve(b, 1e-10, method="cholesky"), atol=1e-6 * np.abs(x).max()
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.floats(0.0, 3.0))
def test_graphs_of_two_sides_are_solved_on_one(seed, decades):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 12, size=2)
    i, j = rng.integers(m, size=20), m + rng.integers(n, size=20)
    few = int(rng.integers(1, 21))
    L = Laplacian(m + n, i[:few], j[:few], 10.0 ** rng.uniform(0.0, decades, few))
    b = rng.standard_normal(m + n)
    x = L.solve(b, 1e-12, method="jacobi", most=100)
    np.testing.assert_allclose(x, np.linalg.pinv(dense(L)) @ L.center(b), atol=1e-8)
    assert L.iterations <= min(m, n)  # on the shorter side, each direction once


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32), st.floats(0.0, 6.0), st.booleans())
def test_clusters_are_pieces_of_the_tree_and_their_graph_is_the_sum(seed, decades, two_sides):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(2, 40)), int(rng.integers(2, 6))
    few = int(rng.integers(1, 90))
    half = n // 2 if two_sides else n
    i, j = rng.integers(half, size=few), (n - half) + rng.integers(half, size=few)
    i, j = i[i != j], j[i != j]
    L = Laplacian(n, i, j, 10.0 ** rng.uniform(0.0, decades, len(i)))
    tree = L.tree
    of, count = _jit_clusters.clusters(*tree, L.weights, size, WEAK)
    assert sorted(set(of.tolist())) == list(range(count))
    for c in range(count):
        inside = np.flatnonzero(of == c)
        tops = [v for v in inside if tree.parent[v] < 0 or of[tree.parent[v]] != c]
        assert len(tops) == 1  # connected
        at = tree.edge[tops[0]]
        within = [L.weights[tree.edge[v]] for v in inside if v != tops[0]]
        assert at < 0 or len(inside) >= size or L.weights[at] < WEAK * max(within)
    a, b, pair = _jit_clusters.merged(of[L.i], of[L.j], count)
    coarse = Laplacian(count, a, b, _jit_clusters.sums(pair, L.weights, len(a)))
    P = np.eye(count)[of]
    np.testing.assert_allclose(dense(coarse), P.T @ dense(L) @ P, rtol=1e-9, atol=1e-6)
    assert len({*zip(a.tolist(), b.tolist(), strict=True)}) == len(a)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.floats(0.0, 3.0), st.booleans())
def test_clusters_solve_what_a_dense_inverse_does(seed, decades, two_sides):
    rng = np.random.default_rng(seed)
    n, few = int(rng.integers(2, 60)), int(rng.integers(1, 120))
    half = n // 2 if two_sides else n
    i, j = rng.integers(half, size=few), (n - half) + rng.integers(half, size=few)
    i, j = i[i != j], j[i != j]
    L = Laplacian(n, i, j, 10.0 ** rng.uniform(0.0, decades, len(i)))
    b = rng.standard_normal(n)
    x = L.solve(b, 1e-12, method="clusters")
    np.testing.assert_allclose(x, np.linalg.pinv(dense(L)) @ L.center(b), atol=1e-8)


def test_clusters_take_as_few_iterations_in_large_grids_as_in_small_ones():
    rng = np.random.default_rng(10)
    taken = {}
    for side in (20, 60):
        at = np.arange(side**3).reshape(side, side, side)
        ends = [(at[:-1], at[1:]), (at[:, :-1], at[:, 1:]), (at[:, :, :-1], at[:, :, 1:])]
        i, j = (np.concatenate([pair[k].ravel() for pair in ends]) for k in (0, 1))
        L = Laplacian(side**3, i, j, np.exp(rng.standard_normal(len(i))))
        b = rng.standard_normal(L.n)
        x = L.solve(b, 1e-6)
        taken[side] = L.iterations
        residual = L.center(b) - L @ x
        assert np.linalg.norm(residual) <= 1e-4 * np.linalg.norm(b)
    assert taken[60] <= 1.3 * taken[20] <= 100
    plain = L.solve(b, 1e-6, method="jacobi", most=1000)
    assert L.iterations >= 3 * taken[60]
    np.testing.assert_allclose(x, plain, atol=1e-3 * np.abs(x).max())


def test_heavy_parts_held_together_by_little_are_clusters_of_their_own():
    """Pairs of nodes joined by 1e8, in a ring of edges of weight 1: each pair moves as a whole, and against the others."""
    n = 2_000
    pair = np.arange(0, n, 2)
    ring = np.r_[pair, pair], np.r_[pair + 1, (pair + 2) % n]
    far = np.random.default_rng(11).permutation(n)
    i, j = np.r_[ring[0], far[: n // 2]], np.r_[ring[1], far[n // 2 :]]
    L = Laplacian(n, i, j, np.r_[np.full(n // 2, 1e8), np.ones(n // 2), np.ones(n // 2)])
    b = np.random.default_rng(12).standard_normal(n)
    x = L.solve(b, 1e-8, method="clusters")
    assert L.iterations <= 100
    np.testing.assert_allclose(x, L.solve(b, 1e-12, method="cholesky"), atol=1e-5 * np.abs(x).max())


def test_two_sides_take_half_the_iterations_of_the_whole():
    rng = np.random.default_rng(8)
    n, i, j = 4_000, rng.integers(2_000, size=20_000), 2_000 + rng.integers(2_000, size=20_000)
    halves, whole = Laplacian(n, i, j), Laplacian(n, j, i)  # one graph, its sides not told
    b = rng.standard_normal(n)
    np.testing.assert_allclose(
        *(L.solve(b, 1e-10, method="jacobi") for L in (halves, whole)), atol=1e-7
    )
    assert halves.iterations <= whole.iterations // 2 + 1


@pytest.mark.parametrize("most", ["rows", "cols"])
def test_entries_come_in_blocks_of_the_shorter_side(most):
    rng = np.random.default_rng(9)
    m, n = (150_000, 90_000) if most == "rows" else (90_000, 150_000)
    rows, cols = rng.integers(m, size=30_000), rng.integers(n, size=30_000)
    order = in_blocks(m, n, rows, cols)
    short, long = (cols, rows) if most == "rows" else (rows, cols)
    expected = np.lexsort((np.arange(len(rows)), long, short >> HALF_BLOCK))
    np.testing.assert_array_equal(order, expected)
    assert in_blocks(1 << HALF_BLOCK, 5, rows[:9] % 5, cols[:9] % 5) is None


def test_products_and_weights_follow_edges_that_are_in_order_already():
    rng = np.random.default_rng(10)
    m, n = 700, 400
    rows, cols = rng.integers(m, size=5_000), rng.integers(n, size=5_000)
    order = np.lexsort((rows, cols))
    weights, x, b = rng.random(5_000) + 0.1, rng.standard_normal(m + n), rng.standard_normal(m + n)
    L = Laplacian(m + n, rows, m + cols, weights)
    sorted_ = Laplacian(m + n, rows[order], m + cols[order], weights[order])
    for one in (L, sorted_):
        np.testing.assert_allclose(one @ x, dense(one) @ x, atol=1e-9)
        twice = one.reweighted(2.0 * one.weights)
        np.testing.assert_allclose(twice.solve(b, 1e-10), one.solve(b, 1e-10) / 2.0, atol=1e-7)
    np.testing.assert_allclose(L.solve(b, 1e-10), sorted_.solve(b, 1e-10), atol=1e-7)


def test_heaviest_edges_come_first():
    weights = np.r_[1e-300, 3.0, 2.0, 3.0, 1e300, 2.999]
    order = _jit_laplacian.heaviest_first(weights)
    assert order.tolist() == [4, 1, 3, 5, 2, 0]
    assert len(_jit_laplacian.heaviest_first(weights[:0])) == 0


def test_components_are_solved_alone_whatever_their_scales():
    L = Laplacian(7, [0, 1, 3, 4], [1, 2, 4, 5], [1e12, 1e12, 1e-6, 1e-6])
    count, part = L.components
    assert count == 3
    assert part.tolist() == [0, 0, 0, 1, 1, 1, 2]
    p = L.potentials([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(p, [4 / 3, 1 / 3, -5 / 3, 10 / 3, 1 / 3, -11 / 3, 0.0], rtol=1e-12)
    assert np.isinf(L.resistances([0], [3])[0])
    assert L.resistances([6], [6])[0] == 0.0


def test_resistances_by_pair_by_node_and_dense_agree():
    rng = np.random.default_rng(2)
    n, i, j = graph("grid", 300, rng)
    L = Laplacian(n, i, j, rng.uniform(0.5, 2.0, len(i)))
    u, v = np.arange(12)[:, None], np.arange(20, 32)[None, :]
    whole = L.resistances(u, v)  # dense
    pairs = [L.resistances([a], [b])[0] for a, b in ((0, 20), (5, 30))]
    np.testing.assert_allclose([whole[0, 0], whole[5, 10]], pairs, rtol=1e-8)
    wild = Laplacian(
        n, i, j, 1e12 ** rng.random(len(i))
    )  # too wide for the dense inverse: one solve a node
    nodes = wild.resistances(u, v)
    np.testing.assert_allclose(nodes[3, 4], wild.resistances([3], [24])[0], rtol=1e-5)


def test_precondition_is_near_to_the_inverse():
    rng = np.random.default_rng(3)
    n, i, j = graph("grid", 1_000, rng)
    L = Laplacian(n, i, j, 1.0)
    x = L.center(rng.standard_normal(n))
    near = L.precondition(L @ x)
    assert np.linalg.norm(near - x) < 0.9 * np.linalg.norm(x)
    assert L.fill < 5


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((0, [], [], []), "n of a Laplacian"),
        ((2, [0], [0], [1.0]), "joined to itself"),
        ((2, [0], [2], [1.0]), "nodes must be in 0..1, got 2"),
        ((2, [0], [1], [0.0]), "weights must be finite and above 0"),
        ((2, [0], [1], [np.inf]), "weights must be finite and above 0"),
        ((2, [0, 1], [1], [1.0]), "equally long"),
    ],
)
def test_bad_graphs_are_refused(args, words):
    with pytest.raises(ParameterError, match=words):
        Laplacian(*args)


def test_bad_right_sides_are_refused():
    L = Laplacian(2, [0], [1], 1.0)
    with pytest.raises(ParameterError, match="one difference for each of the 1 edges"):
        L.potentials([1.0, 2.0])
    with pytest.raises(ParameterError, match="finite"):
        L.potentials([np.nan])
    with pytest.raises(ParameterError, match="2 rows"):
        L.solve([1.0])
    with pytest.raises(ParameterError, match="auto, jacobi, clusters or cholesky"):
        L.solve([1.0, -1.0], method="lu")
    assert L.solve(np.eye(2)).shape == (2, 2)


def gth(n, i, j, forth, back):
    """Grassmann, Taksar, Heyman: elimination without subtraction, exact in every entry; logarithms returned."""
    P = np.zeros((n, n))
    np.add.at(P, (i, j), forth)
    np.add.at(P, (j, i), back)
    for k in range(n - 1, 0, -1):
        P[:k, k] /= P[k, :k].sum()
        P[:k, :k] += np.multiply.outer(P[:k, k], P[k, :k])
    log_pi = np.zeros(n)
    for k in range(1, n):
        with np.errstate(divide="ignore"):
            terms = log_pi[:k] + np.log(P[:k, k])
        log_pi[k] = terms.max() + np.log(np.exp(terms - terms.max()).sum())
    return log_pi


@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_stationary_distribution_equals_gth_in_every_entry(family, noise):
    rng = np.random.default_rng(7)
    n, i, j = graph(family, 900, rng)
    a = np.exp(0.5 * rng.standard_normal(len(i)) + noise * rng.standard_normal(len(i)))
    forth, back = 1.0 / (1.0 + a), a / (1.0 + a)
    found = stationary(n, i, j, forth, back)
    expected = gth(n, i, j, forth, back)
    difference = found.log_pi - expected
    assert np.abs(difference - difference.mean()).max() <= 1e-12
    assert found.imbalance <= 1e-10
    assert found.rounds <= 5
    assert found.krylov <= 150


def test_stationary_of_several_components_has_mean_one_in_each():
    found = stationary(
        5, np.array([0, 2]), np.array([1, 3]), np.array([1.0, 3.0]), np.array([1.0, 1.0])
    )
    np.testing.assert_allclose(np.exp(found.log_pi), [1.0, 1.0, 0.5, 1.5, 1.0], rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("decades", [0.1, 12.0])
def test_the_same_graph_with_other_weights_solves_as_a_new_one(family, decades):
    """A factor that was made for other weights serves, or is given back; components stay apart."""
    rng = np.random.default_rng(5)
    n, i, j = graph(family, 3000, rng)
    i, j, n = np.r_[i, n + i], np.r_[j, n + j], 2 * n + 3  # two components and three lone nodes
    first = Laplacian(n, i, j, rng.random(len(i)) + 0.5)
    b = first.center(rng.standard_normal(n))
    first.solve(b, method="cholesky")
    weights = 10.0 ** (decades * rng.random(len(i)))
    again = first.reweighted(weights)
    found = again.solve(b, 1e-10)
    fresh = Laplacian(n, i, j, weights).solve(b, 1e-10)
    assert again.components[0] == 5
    assert again.reached <= 1e-10
    gap = found - fresh
    assert gap @ (again @ gap) <= 1e-12 * (fresh @ (again @ fresh))


@pytest.mark.parametrize("seed", range(3))
def test_what_the_diagonal_found_is_kept_when_clusters_take_over(seed):
    rng = np.random.default_rng(seed)
    at = np.arange(6400).reshape(80, 80)
    i, j = np.r_[at[:-1].ravel(), at[:, :-1].ravel()], np.r_[at[1:].ravel(), at[:, 1:].ravel()]
    weights = 10.0 ** rng.uniform(-1.0, 0.0, len(i))
    graph = Laplacian(6400, i, j, weights)
    b = graph.center(rng.standard_normal(6400))
    exact = graph.solve(b, 1e-12, method="cholesky")
    found = graph.solve(b, 1e-3)
    assert graph._way == CLUSTERS  # the diagonal alone did not do
    assert graph.reached <= 1e-3
    off = found - exact
    assert off @ (graph @ off) <= 4e-6 * (exact @ (graph @ exact))
    fresh = Laplacian(6400, i, j, weights)
    fresh.solve(b, 1e-3, method="jacobi", most=30)
    begun = fresh.iterations
    fresh.solve(b, 1e-3, method="clusters")
    assert graph.iterations <= begun + fresh.iterations
