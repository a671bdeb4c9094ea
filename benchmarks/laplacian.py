"""Laplacian solves and stationary distributions across graph families, beside scipy, pyamg and sparse LU.

make bench NAME=laplacian                     to a million edges, about five minutes
make bench NAME=laplacian ARGS=--quick        to a hundred thousand
make bench NAME=laplacian ARGS=--large        ten million edges on grid, path and random graphs as well
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from _shared import Bars, cpu, show
from entrywise.linalg.laplacian import Laplacian
from entrywise.linalg.stationary import stationary

FAMILIES = ("random", "grid", "grid 3-D", "path", "star", "power law")


def graph(family, edges, rng):
    """Return (n, i, j) with about so many edges."""
    if family == "random":
        n = edges // 10
        return 2 * n, rng.integers(n, size=edges), n + rng.integers(n, size=edges)
    if family.startswith("grid"):
        d = 3 if "3" in family else 2
        side = round((edges / d) ** (1 / d))
        at = np.arange(side**d).reshape((side,) * d)
        pairs = [(np.delete(at, -1, k).ravel(), np.delete(at, 0, k).ravel()) for k in range(d)]
        return side**d, np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])
    if family == "path":
        return edges + 1, np.arange(edges), np.arange(1, edges + 1)
    if family == "star":
        n, k = edges // 6, 3
        rows, cols = np.repeat(np.arange(k), n), np.tile(np.arange(n), k)
        return (
            2 * n,
            np.r_[rows, np.tile(np.arange(k, n), k)],
            n + np.r_[cols, np.repeat(np.arange(k), n - k)],
        )
    n = edges // 5
    heavy = 1.0 / np.arange(1, n + 1) ** 0.8
    total = np.cumsum(heavy / heavy.sum())
    i, j = (np.minimum(np.searchsorted(total, rng.random(edges)), n - 1) for _ in range(2))
    shuffled = rng.permutation(2 * n)
    return 2 * n, shuffled[i], shuffled[n + j]


def problem(family, edges, spread, seed):
    rng = np.random.default_rng(seed)
    n, i, j = graph(family, edges, rng)
    w = spread ** rng.random(len(i))
    L = Laplacian(n, i, j, w)
    return L, L.center(rng.standard_normal(n))


def ours(family, edges, spread, seed):
    """Return microseconds an edge (tree, factor, solve), iterations, fill and the residual reached."""
    L, b = problem(family, edges, spread, seed)
    fresh = Laplacian(L.n, L.i, L.j, L.weights)
    tree, _ = cpu(lambda: fresh.components)
    setup, _ = cpu(lambda: fresh.fill)
    solve, _ = cpu(lambda: fresh.solve(b, method="cholesky"))
    scale = 1e6 / len(L.i)
    return tree * scale, setup * scale, solve * scale, fresh.iterations, fresh.fill, fresh.reached


def sparse(L):
    from scipy.sparse import coo_matrix

    i, j, w = np.r_[L.i, L.j], np.r_[L.j, L.i], np.r_[L.weights, L.weights]
    A = coo_matrix((-w, (i, j)), shape=(L.n, L.n)).tocsr()
    return (
        A
        - coo_matrix(
            (np.asarray(A.sum(axis=1)).ravel(), (np.arange(L.n), np.arange(L.n))), shape=(L.n, L.n)
        ).tocsr()
    )


def rivals(family, edges, spread, seed, lu):
    """Return rows (name, microseconds an edge, iterations, energy-norm error relative to the solution)."""
    import pyamg
    from scipy.sparse.linalg import LinearOperator, cg, splu

    L, b = problem(family, edges, spread, seed)
    A = sparse(L)
    exact = L.solve(b, 1e-12, method="cholesky")

    def energy(x):
        d = L.center(np.asarray(x)) - exact
        return math.sqrt(max(float(d @ (L @ d)), 0.0) / max(float(exact @ (L @ exact)), 1e-300))

    rows = []
    for name, method in (("entrywise", "auto"), ("entrywise, always factored", "cholesky")):
        fresh = Laplacian(L.n, L.i, L.j, L.weights)
        seconds, x = cpu(lambda fresh=fresh, method=method: fresh.solve(b, method=method))
        rows.append((name, seconds / len(L.i) * 1e6, fresh.iterations, energy(x)))
    diagonal = A.diagonal()
    jacobi = LinearOperator(A.shape, matvec=lambda r: r / np.where(diagonal > 0, diagonal, 1.0))
    steps = [0]

    def count(_):
        steps[0] += 1

    seconds, x = cpu(lambda: cg(A, b, rtol=1e-8, maxiter=1000, M=jacobi, callback=count)[0])
    rows.append(("scipy CG + Jacobi, at most 1000", seconds / len(L.i) * 1e6, steps[0], energy(x)))
    history: list[float] = []

    def amg():
        ground = A + 1e-12 * float(np.median(diagonal)) * sparse_eye(L.n)
        solver = pyamg.smoothed_aggregation_solver(ground, max_coarse=500)
        return solver.solve(b, tol=1e-8, maxiter=200, accel="cg", residuals=history)

    try:
        seconds, x = cpu(amg)
        rows.append(
            (
                "pyamg smoothed aggregation + CG",
                seconds / len(L.i) * 1e6,
                len(history) - 1,
                energy(x),
            )
        )
    except Exception as error:
        rows.append((f"pyamg: {type(error).__name__}", math.nan, 0, math.nan))
    if lu:

        def direct():
            keep = np.flatnonzero(diagonal > 0)[1:]  # ground one node
            x = np.zeros(L.n)
            x[keep] = splu(
                A[keep][:, keep].tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                options={"SymmetricMode": True},
            ).solve(b[keep])
            return x

        if L.components[0] == 1:
            seconds, x = cpu(direct)
            rows.append(("sparse LU (SuperLU)", seconds / len(L.i) * 1e6, 1, energy(x)))
    return rows


def sparse_eye(n):
    from scipy.sparse import identity

    return identity(n, format="csr")


def chain(family, edges, noise, seed):
    rng = np.random.default_rng(seed)
    n, i, j = graph(family, edges, rng)
    p = 0.5 * rng.standard_normal(n)
    a = np.clip(np.exp(p[i] - p[j] + noise * rng.standard_normal(len(i))), 0.01, 100.0)
    seconds, found = cpu(lambda: stationary(n, i, j, 1.0 / (1.0 + a), a / (1.0 + a)))
    return seconds / len(i) * 1e6, found


COLUMNS = (
    "graph",
    "weights over",
    "edges",
    "tree us/edge",
    "factor",
    "solve",
    "iterations",
    "fill",
    "residual",
)


def families(bars, sizes, seed):
    rows, worst = [], 0
    for family in FAMILIES:
        for spread in (1.0, 1e8):
            for edges in sizes:
                tree, setup, solve, steps, fill, reached = ours(family, edges, spread, seed)
                rows.append(
                    (family, f"{spread:g}", f"{edges:g}", tree, setup, solve, steps, fill, reached)
                )
                worst = max(worst, steps)
    show("entrywise: CPU microseconds an edge", COLUMNS, rows)
    bars.at_most(f"PCG iterations to 1e-8, all families, to {sizes[-1]:g} edges", worst, 60)


def beside(edges, seed):
    rows = []
    for family in FAMILIES:
        for spread in (1.0, 1e8):
            lu = edges <= 10_000 or family in (
                "path",
                "star",
                "grid",
            )  # elsewhere LU fills in: at 1e4 edges
            found = [(f"{edges:g}", *row) for row in rivals(family, edges, spread, seed, lu)]
            if not lu:
                found += [
                    ("10000", *row)
                    for row in rivals(family, 10_000, spread, seed, True)
                    if "LU" in row[0]
                ]
            rows += [(family, f"{spread:g}", *row) for row in found]
    columns = ("graph", "weights over", "edges", "solver", "us/edge", "iterations", "energy error")
    show("one system, each solver from scratch", columns, rows)


def chains(bars, sizes, seed):
    rows, rounds, krylov, imbalance = [], 0, 0, 0.0
    for family in FAMILIES:
        for edges in sizes:
            seconds, found = chain(family, edges, 1.0, seed)
            rows.append(
                (family, f"{edges:g}", seconds, found.rounds, found.krylov, found.imbalance)
            )
            rounds, krylov = max(rounds, found.rounds), max(krylov, found.krylov)
            imbalance = max(imbalance, found.imbalance)
    columns = ("graph", "edges", "us/edge", "rounds", "Krylov", "imbalance")
    show("stationary distributions, noise 1 in the logarithm", columns, rows)
    bars.at_most("chain: outer steps", rounds, 5)
    bars.at_most("chain: Krylov steps", krylov, 150)
    bars.at_most("chain: imbalance of a node", imbalance, 1e-10)


def ten_million(bars, seed):
    rows = []
    for family in ("path", "grid", "random"):
        total = {}
        for edges in (100_000, 10_000_000):
            tree, setup, solve, steps, fill, reached = ours(family, edges, 1e8, seed)
            rows.append((family, "1e+08", f"{edges:g}", tree, setup, solve, steps, fill, reached))
            total[edges] = tree + setup + solve
        growth = total[10_000_000] / total[100_000]
        rows.append((family, "", "growth", growth, "", "", "", "", ""))
        print(f"{rows[-1][0]}: done", flush=True)
        if family != "random":
            bars.at_most(f"time an edge, 1e7 over 1e5 edges, {family}", growth, 5)
    show("ten million edges", COLUMNS, rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--only", choices=("families", "beside", "chains", "large"))
    parser.add_argument("--seed", type=int, default=71)
    args = parser.parse_args()
    bars = Bars()
    ours("grid", 2_000, 1e4, 0)  # compile
    chain("grid", 2_000, 1.0, 0)
    sizes = (10_000, 100_000) if args.quick else (10_000, 100_000, 1_000_000)
    if args.only in (None, "families"):
        families(bars, sizes, args.seed)
    if args.only in (None, "beside"):
        beside(10_000 if args.quick else 100_000, args.seed)
    if args.only in (None, "chains"):
        chains(bars, sizes[1:], args.seed)
    if args.large or args.only == "large":
        ten_million(bars, args.seed)
    bars.end()


if __name__ == "__main__":
    main()
