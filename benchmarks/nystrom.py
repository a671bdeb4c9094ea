"""Adaptive Nyström beside scikit-learn's Nystroem and the best rank-k, in one run.

make bench NAME=nystrom [ARGS=--quick]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem

import entrywise as ew
from _shared import Bars, cpu, in_child, show
from entrywise.active import adaptive_nystrom, literal_adaptive_nystrom
from entrywise.estimators import AdaptiveNystroem
from entrywise.gallery import outliers
from entrywise.oracles import KernelOracle

GAMMA = 1.0 / 128


def points(n):
    return np.random.default_rng(2024).standard_normal((n, 64))


def ours_blocked(n, r, seed):
    return (
        AdaptiveNystroem(gamma=GAMMA, n_components=r, random_state=seed).fit(points(n)).trace_error_
    )


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


def speed(bars, n, r):
    rows, seconds = [], {}
    warm_up = 500
    for name, call in (
        ("scikit-learn Nystroem, fit_transform", theirs),
        ("ours, blocked random pivots", ours_blocked),
        ("ours, column by column", ours_by_column),
        ("ours, blocked, with ledger and log", ours_in_a_ledger),
    ):
        call(warm_up, 10, 0)
        times = [cpu(lambda c=call, s=seed: c(n, r, s))[0] for seed in range(3)]
        base = cpu(lambda: points(n))[0]
        seconds[name] = min(times) - base
        _, peak, trace = in_child(call, n, r, 0)
        rows.append((name, seconds[name], peak / (8 * n * r), trace / n))
    show(
        f"RBF of {n} points in 64 dimensions, rank {r}",
        ("", "CPU s", "peak memory / (K r doubles)", "trace error"),
        rows,
    )
    ours, theirs_ = (
        seconds["ours, blocked random pivots"],
        seconds["scikit-learn Nystroem, fit_transform"],
    )
    bars.at_most("blocked CPU / scikit-learn's Nystroem", ours / theirs_, 1.2)
    bars.at_least("column by column / blocked", seconds["ours, column by column"] / ours, 2.0)
    bars.at_most("extra memory, K r doubles (points included)", rows[1][2], 3.0)


def digits(bars):
    X = load_digits().data
    n = len(X)
    oracle = KernelOracle(X)
    distances = -np.log(KernelOracle(X, gamma=1.0 / 1000).block(np.arange(n), np.arange(n))) * 1000
    oracle = KernelOracle(X, gamma=0.1 / np.median(distances[np.triu_indices(n, 1)]))
    rows, largest = [], {}
    eigenvalues = np.linalg.eigvalsh(oracle.block(np.arange(n), np.arange(n)))[::-1]
    for order in ("given", "greedy", "random"):
        if order == "given":
            plans = [literal_adaptive_nystrom(n, rank=200)]
        else:
            seeds = range(5 if order == "random" else 1)
            plans = [adaptive_nystrom(n, rank=200, order=order, rng=s) for s in seeds]
        found = [ew.play(plan, oracle) for plan in plans]
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
    for order in ("random", "greedy"):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="4000 points and rank 200 instead of 20000 and 500"
    )
    quick = parser.parse_args().quick
    bars = Bars()
    digits(bars)
    isolated(bars)
    speed(bars, *((4000, 200) if quick else (20000, 500)))
    bars.end()


if __name__ == "__main__":
    main()
