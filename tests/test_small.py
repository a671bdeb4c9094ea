"""Small problems take numpy's way, which computes what the compiled kernels compute, and loads no compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrywise.linalg import _jit_als, _jit_gain, _jit_laplacian, small
from entrywise.linalg.laplacian import Laplacian


def problem(seed, known):
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.integers(1, 5))
    t = int(rng.integers(1, 3 * m * n))  # cells may be seen twice, lines never
    rows, cols = rng.integers(m, size=t), rng.integers(n, size=t)
    variance = rng.random(t) + 0.1 if known else np.zeros(0)
    return rng, m, n, q, rows, cols, rng.standard_normal(t), variance


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans())
def test_a_half_sweep_is_the_compiled_one(seed, known, each, weighted):
    rng, m, n, q, rows, cols, values, variance = problem(seed, known)
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
@given(st.integers(0, 2**32), st.booleans())
def test_a_purchase_takes_the_same_cells(seed, by_sum):
    rng, m, n, q, rows, cols, _, _ = problem(seed, False)
    U, V = rng.standard_normal((m, q)), rng.standard_normal((n, q))
    U[:, -1] = V[:, -1] = 1.0
    a, b = np.triu_indices(q)
    seen = small.packed_sums(rows, cols, V, m)
    np.testing.assert_allclose(seen, _jit_gain.packed_sums(rows, cols, V, m), atol=1e-12)
    state = []
    for size in (m, n, m, n):
        B = rng.standard_normal((size, q, q))
        state.append((B @ B.transpose(0, 2, 1))[:, a, b])
    short = np.stack([rng.permutation(n) for _ in range(m)]).astype(np.int32)
    price, noise, weight = rng.random((m, n)) + 0.5, rng.random((m, n)) + 0.1, rng.random((m, n))
    most, money = int(rng.integers(1, m * n + 1)), float(rng.random() * m * n)
    answers = []
    for buy in (small.buy_greedily, _jit_gain.buy_greedily):
        given_ = [x.copy() for x in state]
        got = buy(U, V, *given_, noise, weight, short.copy(), price, money, most, by_sum, 0.1)
        answers.append((got, given_))
    (mine, after), (theirs, expected) = answers
    np.testing.assert_array_equal(mine, theirs)
    for x, y in zip(after, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8)


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
print("numba" in sys.modules)
"""


def test_a_first_call_loads_no_compiler():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "False", done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", [["complete", "table.csv"], ["complete", "table.csv", "--method", "rank-one"]]
)
def test_commands_on_small_tables_load_no_compiler(command, tmp_path):
    rng = np.random.default_rng(0)
    A = np.outer(rng.random(30) + 1, rng.random(12) + 1) + 0.1 * rng.standard_normal((30, 12))
    lines = ["row,col,value"]
    lines += [f"r{i},c{j},{A[i, j]}" for i, j in np.argwhere(rng.random(A.shape) < 0.6)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    code = (
        "import sys; from entrywise.cli.app import main\n"
        f"sys.argv = ['entrywise', *{command!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "sys.stderr.write('numba ' + str('numba' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.stderr.endswith("numba False"), done.stderr
    assert done.stdout.count("\n") > 100
