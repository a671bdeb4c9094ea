"""Adaptive Nyström beside scikit-learn's Nystroem and the best rank-k, in one run.

make bench NAME=nystrom [ARGS="--quick --only speed"]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from threadpoolctl import threadpool_limits

import entrywise as ew
from _shared import Bars, cpu, in_child, show, wall
from entrywise.active import adaptive_nystrom, literal_adaptive_nystrom
from entrywise.estimators import AdaptiveNystroem
from entrywise.gallery import outliers
from entrywise.oracles import KernelOracle

GAMMA = 1.0 / 128


def points(n):
    return np.random.default_rng(2024).standard_normal((n, 64))


def ours(n, r, seed, order="gain"):
    model = AdaptiveNystroem(gamma=GAMMA, n_components=r, random_state=seed, order=order)
    model.fit_transform(points(n))
    return model.trace_error_


def ours_at_random(n, r, seed):
    return ours(n, r, seed, "random")


def ours_by_column(n, r, seed):
    from entrywise.estimators.nystroem import _drive

    X = points(n)
    return float(
        _drive(adaptive_nystrom(n, rank=r, order="random", rng=seed), KernelOracle(X, gamma=GAMMA))
        .certificates[1]
        .value
    )


def ours_in_a_ledger(n, r, seed):
    plan = adaptive_nystrom(n, rank=r, order="random", block=max(1, min(r // 8, 128)), rng=seed)
    return float(ew.play(plan, KernelOracle(points(n), gamma=GAMMA)).certificates[1].value)


def theirs(n, r, seed):
    X = points(n)
    Z = Nystroem(gamma=GAMMA, n_components=r, random_state=seed).fit_transform(X)
    return float(n - np.einsum("nk,nk->", Z, Z))


CALLS = {
    "scikit-learn": theirs,
    "ours, by gain": ours,
    "ours, random blocks": ours_at_random,
    "ours, column by column": ours_by_column,
    "ours, random blocks, ew.play": ours_in_a_ledger,
}


def speed(bars, n, r):
    """Time fit_transform against fit_transform, seeds in turn, so that a busy machine hits all alike.

    CPU seconds with one BLAS thread for all: a second one that waits for work counts as much as one that works. Wall seconds
    are of another call with as many as there are.
    """
    seconds = {name: [] for name in CALLS}
    left = {name: [] for name in CALLS}
    for call in CALLS.values():
        call(500, 10, 0)  # imports and buffers
    base = min(cpu(lambda: points(n))[0] for _ in range(2))
    with threadpool_limits(1, user_api="blas"):
        for seed in range(2):
            for name, call in CALLS.items():
                if seed > 0 and name == "ours, column by column":
                    continue
                taken, trace = cpu(lambda c=call, s=seed: c(n, r, s))
                seconds[name].append(taken - base)
                left[name].append(trace / n)
    walls = {name: wall(lambda c=call: c(n, r, 0))[0] - base for name, call in CALLS.items()}
    peaks = {name: in_child(call, n, r, 0)[1] / (8 * n * r) for name, call in CALLS.items()}
    rows = [
        (name, min(seconds[name]), walls[name], peaks[name], np.mean(left[name])) for name in CALLS
    ]
    columns = ("", "CPU s", "wall s", "peak memory / (n r doubles)", "trace error")
    show(f"RBF of {n} points in 64 dimensions, rank {r}: fit_transform", columns, rows)
    ratio = {name: min(seconds[name]) / min(seconds["scikit-learn"]) for name in CALLS}
    error = {name: np.mean(left[name]) / np.mean(left["scikit-learn"]) for name in CALLS}
    bars.at_most("fit_transform CPU / scikit-learn's", ratio["ours, by gain"], 1.15)
    bars.at_most("trace error / scikit-learn's", error["ours, by gain"], 1.0)
    bars.at_most("ew.play CPU / scikit-learn's", ratio["ours, random blocks, ew.play"], 2.5)
    blocked = ratio["ours, column by column"] / ratio["ours, random blocks"]
    bars.at_least("column by column / blocks", blocked, 2.0)


def large(bars, n, r):
    """Memory at a size where it counts: points are the caller's and not counted."""
    _, peak, trace = in_child(ours_beside_points, n, r, 0)
    points_kept = 8 * n * 64
    share = (peak - points_kept) / (8 * n * r)
    show(f"{n} points, rank {r}", ("peak / (n r doubles)", "trace error"), [(share, trace / n)])
    bars.at_most("memory of fit_transform, n r doubles", share, 2.2)


def ours_beside_points(n, r, seed):
    X = np.empty((n, 64))
    rng = np.random.default_rng(seed)
    for a in range(0, n, 10_000):
        X[a : a + 10_000] = rng.standard_normal((min(10_000, n - a), 64))
    model = AdaptiveNystroem(gamma=GAMMA, n_components=r, random_state=seed)
    model.fit_transform(X)
    return model.trace_error_


def planned(n, rank, order, seed):
    if order == "given":
        return literal_adaptive_nystrom(n, rank=rank)
    return adaptive_nystrom(n, rank=rank, order=order, rng=seed)


def digits(bars):
    X = load_digits().data
    n = len(X)
    oracle = KernelOracle(X)
    distances = -np.log(KernelOracle(X, gamma=1.0 / 1000).block(np.arange(n), np.arange(n))) * 1000
    oracle = KernelOracle(X, gamma=0.1 / np.median(distances[np.triu_indices(n, 1)]))
    rows, largest = [], {}
    eigenvalues = np.linalg.eigvalsh(oracle.block(np.arange(n), np.arange(n)))[::-1]
    for order in ("given", "greedy", "random", "gain"):
        found = [
            ew.play(planned(n, 200, order, s), oracle)
            for s in range(5 if order in ("random", "gain") else 1)
        ]
        if order == "given":  # rank known: the diagonal was not asked; it is one
            left = [1.0 - np.einsum("nk,nk->n", f.factor, f.factor) for f in found]
        else:
            left = [f.residual for f in found]
        largest[order] = float(np.median([d.max() for d in left]))
        rows.append(
            (
                order,
                float(np.median([d.sum() for d in left])) / n,
                largest[order],
                int(found[0].cost),
            )
        )
    rows.append(("best rank-200", float(eigenvalues[200:].sum()) / n, float("nan"), n * n))
    show(
        "digits, gamma = .1 / median(d^2), k = 200",
        ("order", "trace error", "max error", "entries"),
        rows,
    )
    bars.at_most(
        "digits: greedy max error / given order's", largest["greedy"] / largest["given"], 0.2
    )


def isolated(bars):
    X = outliers(2000, 0.1, seed=77)
    gamma = 0.05
    oracle = KernelOracle(X, gamma=gamma)
    K = oracle.block(np.arange(2000), np.arange(2000))
    eigenvalues = np.linalg.eigvalsh(K)[::-1]
    best = eigenvalues[200:].sum()
    rows = []
    for order in ("random", "greedy", "gain"):
        trace = np.median(
            [
                ew.play(adaptive_nystrom(2000, rank=200, order=order, rng=s), oracle)
                .certificates[1]
                .value
                for s in range(5)
            ]
        )
        rows.append((order, trace / 2000, trace / best))
    uniform = []
    for seed in range(5):
        Z = Nystroem(gamma=gamma, n_components=200, random_state=seed).fit_transform(X)
        uniform.append(2000 - (Z**2).sum())
    rows.append(
        ("uniform columns (scikit-learn)", np.median(uniform) / 2000, np.median(uniform) / best)
    )
    rows.append(("best rank-200", best / 2000, 1.0))
    show("10 % isolated outliers, K = 2000, k = 200", ("order", "trace error", "/ best"), rows)
    bars.at_most("outliers: random pivoting's trace error / best rank-k", rows[0][2], 2.0)


SECTIONS = ("digits", "isolated", "speed", "large")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="4000 points and rank 200")
    parser.add_argument(
        "--only", choices=SECTIONS, action="append", help="a section; may be repeated"
    )
    given = parser.parse_args()
    wanted = given.only or SECTIONS
    bars = Bars()
    if "digits" in wanted:
        digits(bars)
    if "isolated" in wanted:
        isolated(bars)
    if "speed" in wanted:
        speed(bars, *((4000, 200) if given.quick else (50_000, 500)))
    if "large" in wanted:
        large(bars, *((20_000, 100) if given.quick else (1_000_000, 200)))
    bars.end()


if __name__ == "__main__":
    main()
