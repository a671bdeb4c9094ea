"""Small problems take numpy's way, which computes what the compiled kernels compute, and loads no compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from entrywise.linalg import (
    _jit_als,
    _jit_crowd,
    _jit_gain,
    _jit_laplacian,
    _jit_products,
    small,
    small_crowd,
    small_products,
)
from entrywise.linalg.gain import sandwich
from entrywise.linalg.greedy import LANES
from entrywise.linalg.laplacian import Laplacian
from entrywise.results.posterior import inside, squares


def problem(seed, known, widest=4, most=3):
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.integers(1, widest + 1))
    t = int(rng.integers(1, most * m * n + 1))  # cells may be seen twice, lines never
    rows, cols = rng.integers(m, size=t), rng.integers(n, size=t)
    variance = rng.random(t) + 0.1 if known else np.zeros(0)
    return rng, m, n, q, rows, cols, rng.standard_normal(t), variance


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
def test_a_half_sweep_is_the_compiled_one(seed, known, each, weighted):
    most = 3 if seed % 4 else 3 * _jit_als.CACHED  # cells, or lines that are read in parts
    rng, m, n, q, rows, cols, values, variance = problem(seed, known, 13, most)
    sides = small.group(rows, cols, values, variance, m)
    for mine, theirs in zip(sides, _jit_als.group(rows, cols, values, variance, m), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    A = np.ones((n, q))
    A[:, :-1] = rng.standard_normal((n, q - 1))
    padded = np.zeros((n, -(-q // 4) * 4))
    padded[:, :q] = A
    B = rng.standard_normal((n if each else 1, q, q))
    extra, P0 = B @ B.transpose(0, 2, 1), np.eye(q) * 2.0
    off, h0 = rng.standard_normal(n), rng.standard_normal(q)
    line, across = (rng.random(k) + 0.5 if weighted else np.zeros(0) for k in (m, n))
    mean, cov, sums = small.half_sweep(*sides, 0.7, line, across, A, off, extra, P0, h0, True)
    x, C, s = np.empty((m, q)), np.empty((m, q, q)), np.zeros(3 * q * q + q + 6)
    every = len(extra) == n
    _jit_als.half_sweep(0, m, *sides, 0.7, line, across, padded, off, extra, every, P0, h0, x, C, s)
    for mine, theirs in ((mean, x), (cov, C), (sums, s)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_products_are_those_of_a_sparse_matrix(seed):
    rng, m, n, q, rows, cols, values, variance = problem(seed, False)
    pointer, other, values, _ = small.group(rows, cols, values, variance, m)
    matrix = csr_array((values, other, pointer), shape=(m, n))
    X, Y = rng.standard_normal((n, q)), rng.standard_normal((m, q))
    forth, back = small.products(pointer, other, values, n)
    np.testing.assert_allclose(forth(X), matrix @ X, atol=1e-12)
    np.testing.assert_allclose(back(Y), matrix.T @ Y, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.booleans())
def test_a_purchase_takes_the_same_cells(seed, by_sum):
    rng, m, n, q, rows, cols, _, _ = problem(seed, False, 9)
    U, V = rng.standard_normal((m, q)), rng.standard_normal((n, q))
    U[:, -1] = V[:, -1] = 1.0
    a, b = np.triu_indices(q)
    table = V[:, a] * V[:, b]
    seen = small.line_sums(rows, cols, table, m)
    compiled = _jit_gain.line_sums(rows, cols, np.ascontiguousarray(table), m)
    np.testing.assert_allclose(seen, compiled, atol=1e-12)
    state = []
    for size in (m, n, m, n):
        B = rng.standard_normal((size, q, q))
        state.append((B @ B.transpose(0, 2, 1))[:, a, b])
    gain = (10.0 * rng.random((m, n))).astype(np.float32)
    variance = tuple((3.0 * rng.random(size)).astype(np.float32) for size in ((m, 2), (2, n)))
    is_open = rng.random((m, n)) < 0.8
    shape = [(m, n), (m, 1), (1, n), (1, 1)][rng.integers(4)]
    price, noise = (
        rng.random(shape) + 0.5,
        rng.random((m, n)[: 2 * rng.integers(2)] or (1, 1)) + 0.1,
    )
    span = float(rng.integers(2))
    unit, level = np.array([2.0, 0.5]), float(rng.random() * 4)
    money, most = float(rng.random() * m * n), int(rng.integers(1, m * n + 1))
    quota, known = rng.integers(0, 3, size=n), rng.integers(1, 5, size=m)
    deep = (float(rng.integers(1, 4)), float(rng.random()))
    before = int(rng.integers(3))  # cells in the basket, which has no room for more
    basket = rng.integers(9, size=(2, before)), rng.random((4, before))
    answers = []
    for ways in (small, _jit_gain):
        Cu, Cv, M, N = (x.copy() for x in state)
        Pu, Pv = sandwich(Cu, M), sandwich(Cv, N)
        np.testing.assert_allclose(_jit_gain.sandwich(Cu, M), Pu, rtol=1e-10, atol=1e-10)
        of_rows, of_cols = known.copy(), np.zeros(n, np.int64)
        free, best, bits = quota.copy(), np.zeros(m), np.packbits(is_open, axis=1)
        wide = ((0, 0), (0, 0 if ways is small else -q % LANES))
        lines, told, count, left = ways.buy_rows(
            np.arange(m), gain, variance, unit, bits, price, noise, span, squares(U), inside(q), np.pad(V, wide),
            Cu, Pu, Cv, Pv, level, money, most + before, free, of_rows, deep, by_sum, best, basket, before,
        )  # fmt: skip
        assert before <= count <= most + before
        np.testing.assert_array_equal(lines[:, :before], basket[0])
        np.testing.assert_array_equal(told[:, :before], basket[1])
        lines, told = lines[:, before:count].copy(), told[:, before:count].copy()
        ways.columns_learn(np.pad(U, wide), Cv, Pv, of_cols, *lines, *told[:2])
        np.testing.assert_array_equal(of_rows, known + np.bincount(lines[0], minlength=m))
        np.testing.assert_array_equal(of_cols, np.bincount(lines[1], minlength=n))
        answers.append([lines, told, left, Cu, Cv, Pu, Pv, free, best, bits])
    for mine, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(answers[0][0], answers[1][0])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.floats(0.0, 9.0))
def test_small_graphs_are_walked_and_solved_alike(seed, decades):
    rng = np.random.default_rng(seed)
    n, e = int(rng.integers(2, 12)), int(rng.integers(1, 25))
    i, j = rng.integers(n, size=e), rng.integers(n, size=e)
    i, j = i[i != j], j[i != j]
    weights = 10.0 ** rng.uniform(0.0, decades, len(i))
    graph = Laplacian(n, i, j, weights)
    order = np.argsort(-weights, kind="stable")
    for mine, theirs in zip(
        small.spanning_forest(n, i, j, order),
        _jit_laplacian.spanning_forest(n, i, j, order),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    edges = small.spanning_forest(n, i, j, order)[0]
    tree = small.tree_order(n, i, j, edges)
    for mine, theirs in zip(tree, _jit_laplacian.tree_order(n, i, j, edges), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    d = rng.standard_normal(len(i))
    np.testing.assert_array_equal(graph.walk(d), _jit_laplacian.walk(*tree, i, d))
    b = graph @ rng.standard_normal(n)
    expected = graph.solve(b, 1e-12, method="cholesky")
    np.testing.assert_allclose(graph.solve(b), expected, rtol=1e-6, atol=1e-6)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.booleans())
def test_passes_over_products_are_the_compiled_ones(seed, apart):
    rng = np.random.default_rng(seed)
    m, n, t = rng.integers(1, 8, size=3) + np.r_[0, 0, 5]
    i, j = rng.integers(m, size=t), rng.integers(n, size=t)
    a, w = rng.standard_normal(t), rng.random(t)
    x, y = rng.standard_normal(m), rng.standard_normal(n)
    row_of, col_of = (rng.integers(1 + apart, size=k) for k in (m, n))
    for one, two in (
        (steps.squares(i, j, a, w, x, y) for steps in (small_products, _jit_products)),
        (steps.line_sums(i, j, a, w, y, m) for steps in (small_products, _jit_products)),
        (steps.line_sums(j, i, a, w, x, n) for steps in (small_products, _jit_products)),
        (steps.newton(i, j, a, w, x, y)[0] for steps in (small_products, _jit_products)),
        (steps.newton(i, j, a, w, x, y)[1] for steps in (small_products, _jit_products)),
    ):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-13)
    x[rng.random(m) < 0.2 * apart] = np.nan
    where = i, j, x, y, row_of, col_of
    fitted = small_products.fitted(*where)
    np.testing.assert_array_equal(fitted, _jit_products.fitted(*where))
    for steps in (small_products, _jit_products):
        assert steps.reaches_all(*where) == np.isfinite(fitted).all()


def few_answers(seed):
    """Answers sorted by item, each worker once an item: start, item, worker, label, and (workers, classes)."""
    rng = np.random.default_rng(seed)
    n, W, k = int(rng.integers(1, 12)), int(rng.integers(2, 7)), int(rng.integers(2, 5))
    said = rng.random((n, W)) < 0.6
    said[np.arange(n), rng.integers(W, size=n)] = True
    item, worker = np.nonzero(said)
    start = np.r_[0, np.cumsum(said.sum(axis=1))]
    return rng, start, item, worker, rng.integers(k, size=len(item)), (W, k)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_steps_of_a_crowd_are_the_compiled_ones(seed):
    rng, start, item, worker, label, (W, k) = few_answers(seed)
    n, prior = len(start) - 1, np.log(rng.dirichlet(np.ones(k)))
    gain = rng.standard_normal(W)
    table = np.log(rng.dirichlet(np.ones(k), (W, k)).transpose(0, 2, 1)).copy()
    q, code = rng.dirichlet(np.ones(k), n), (2 * worker + (label > 0)).astype(np.int32)
    counts = rng.random((W, k, k)) * rng.integers(0, 9, (W, k, k))
    odds, said, some = np.empty((len(item), k)), rng.random((len(item), k)), np.arange(len(item))

    def every(steps):
        first, order = steps.by_worker(worker, W)
        pairs = steps.agreements(start, item, worker, label, first, order)
        i, j, count, same = pairs
        skills = steps.factor_agreement(gain / 4, i, j, count, same / np.maximum(count, 1), 5)
        found = [*steps.number(worker, W), steps.repeated(item, worker, W), first, order, *pairs]
        found += [skills, steps.learn_strength(counts, np.full((k, k), 0.7), 4, 0.5, 500.0)]
        for step, told, size in (
            (steps.coin_step, gain, (W,)),
            (steps.table_step, table, (W, k, k)),
        ):
            mine, sums = q.copy(), np.empty(size)
            found += [*step(start, worker, label, prior, told, mine, sums), mine, sums.copy()]
        mine, sums = q[:, :2].copy(), np.empty(2 * W)
        found += [*steps.binary_step(start, code, 0.3, rng_weight, mine, sums), mine, sums]
        hits, tables, doubts = np.empty(W), np.empty((W, k, k)), np.empty((W, 3))
        steps.coin_counts(start, worker, label, q, hits)
        steps.table_counts(start, worker, label, q, tables)
        steps.doubt_counts(start, worker, label, q, doubts)
        found += [hits, tables, doubts, steps.class_totals(q)]
        for coin, told in ((False, table), (True, gain[:, None, None].copy())):
            steps.left_out(start, worker, label, prior, told, coin, odds)
            found += [odds.copy(), steps.predicted(odds, said, some, 0.4)]
        return found

    rng_weight = rng.standard_normal(2 * W)
    for mine, theirs in zip(every(small_crowd), every(_jit_crowd), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)


def test_agreements_leave_out_a_worker_beside_itself():
    """With repeats kept, a worker is not compared with itself."""
    start, item = np.array([0, 3]), np.zeros(3, np.int64)
    worker, label = np.array([0, 0, 1]), np.array([1, 0, 1])
    for steps in (small_crowd, _jit_crowd):
        found = steps.agreements(start, item, worker, label, *steps.by_worker(worker, 2))
        assert [x.tolist() for x in found] == [[0], [1], [2.0], [1.0]]


SCRIPT = """
import sys
import numpy as np
import entrywise as ew
from entrywise.active import most_informative
from entrywise.oracles import MatrixOracle

rng = np.random.default_rng(0)
A = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
ew.complete(np.where(rng.random(A.shape) < 0.5, A, np.nan)).interval(0, 0)
ew.play(most_informative(A.shape, budget=150, rng=0), MatrixOracle(A))
print({"numba", "scipy", "polars"} & set(sys.modules))
"""


def test_a_first_call_loads_no_compiler():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "set()", done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        (["complete", "table.csv"], []),
        (["complete", "table.csv", "--method", "rank-one"], ["scipy"]),
    ],
)
@pytest.mark.parametrize("sizes", ["alike", "far apart"])
def test_commands_on_small_tables_load_no_compiler(command, loaded, sizes, tmp_path):
    rng = np.random.default_rng(0)
    A = np.outer(rng.random(30) + 1, rng.random(12) + 1) + 0.1 * rng.standard_normal((30, 12))
    if sizes == "far apart":  # of both signs, and some nearly 0
        A = np.outer(np.arange(100.0), np.arange(20.0)) / 500 + rng.standard_normal((100, 20))
    lines = ["row,col,value"]
    lines += [f"r{i},c{j},{A[i, j]}" for i, j in np.argwhere(rng.random(A.shape) < 0.6)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    code = (
        "import sys; from entrywise.cli.app import main\n"
        f"sys.argv = ['entrywise', *{command!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        'sys.stderr.write(f\'loaded {sorted({*sys.modules} & {"numba", "scipy", "polars"})}\')'
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.stderr.endswith(f"loaded {loaded}"), done.stderr
    assert done.stdout.count("\n") > 100


@pytest.mark.slow
def test_a_small_crowd_loads_no_compiler(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    lines = ["item,worker,label"]
    for i in range(60):
        for w in rng.choice(12, 5, replace=False):
            right = rng.random() < 0.6 + 0.03 * w
            lines.append(f"q{i},w{w},{['no', 'yes'][truth[i] if right else 1 - truth[i]]}")
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    code = (
        "import sys; from entrywise.cli.app import main\n"
        "sys.argv = ['entrywise', 'crowd', 'votes.csv']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "sys.stderr.write('numba ' + str('numba' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.stderr.endswith("numba False"), done.stderr
    assert done.stdout.count("\n") > 60
