"""Partial PCA and subspace plans: throughput, bias, excess against the bound, looks saved by choosing.

make bench NAME=subspace                      all bars, some minutes
make bench NAME=subspace ARGS=--quick         fewer samples and seeds: a look, no bars
make bench NAME=subspace ARGS=--stream        ten million samples of 1000 attributes in one pass
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp

import entrywise as ew
from _shared import Bars, cpu, in_child, show
from entrywise.active import bandit_subspace, subspace
from entrywise.bounds.subspace import popca_excess, spike_law
from entrywise.gallery import sample_law
from entrywise.linalg.pairs import PairSums
from entrywise.oracles import MatrixOracle
from entrywise.passive import partial_pca
from entrywise.passive.partial_pca import covariance

SEEDS = range(9000, 9007)  # used nowhere else


def sparse_samples(m, d, r, seed):
    """m samples that show exactly r of d attributes."""
    rng = np.random.default_rng(seed)
    idx = np.empty((m, r), np.int32)
    for a in range(0, m, 2000):
        b = min(a + 2000, m)
        idx[a:b] = np.sort(
            np.argpartition(rng.random((b - a, d), dtype=np.float32), r, axis=1)[:, :r], axis=1
        )
    return sp.csr_array(
        (rng.standard_normal(m * r), idx.ravel(), np.arange(0, m * r + 1, r)), shape=(m, d)
    )


def counting_route(X, means):
    """The sparse route that also counts pairs: products, counts, and with `means` the sums for those."""
    M = X.copy()
    M.data = np.ones_like(M.data)
    return (X.T @ X, M.T @ M, X.T @ M) if means else (X.T @ X, M.T @ M)


def throughput(bars, quick):
    rows, d = [], 1000
    for r, m in ((10, 60_000), (30, 15_000), (100, 4000)):
        m //= 4 if quick else 1
        X = sparse_samples(m, d, r, 1)
        D = X.toarray()
        sums, plain = PairSums(d).add(X[:100]), PairSums(d, False).add(X[:100])
        calls = {
            "ours": lambda s=plain, X=X: s.add(X),
            "ours, with means": lambda s=sums, X=X: s.add(X),
            "sparse X'X": lambda X=X: X.T @ X,
            "sparse, counting": lambda X=X: counting_route(X, False),
            "sparse, counting, means": lambda X=X: counting_route(X, True),
            "dense X'X": lambda D=D: D.T @ D,
        }
        best = dict.fromkeys(calls, np.inf)
        for _ in range(3 if quick else 7):  # in turn, so that a busy machine slows all alike
            for name, call in calls.items():
                best[name] = min(best[name], cpu(call)[0])
        speed = {name: m / seconds for name, seconds in best.items()}
        rows.append((r, *(f"{v:,.0f}" for v in speed.values())))
        if r == 10:
            bars.at_least("r=10: ours / sparse X'X", speed["ours"] / speed["sparse X'X"], 2.0)
            bars.at_least(
                "r=10: ours with means / sparse X'X",
                speed["ours, with means"] / speed["sparse X'X"],
                2.0,
            )
            bars.at_least(
                "r=10: ours / sparse, counting", speed["ours"] / speed["sparse, counting"], 5.0
            )
            ratio = speed["ours, with means"] / speed["sparse, counting, means"]
            bars.at_least("r=10: ours with means / sparse, counting, means", ratio, 5.0)
        if r == 100:
            bars.at_least("r=100: ours / dense X'X", speed["ours"] / speed["dense X'X"], 0.9)
            bars.at_least(
                "r=100: ours with means / dense X'X",
                speed["ours, with means"] / speed["dense X'X"],
                0.9,
            )
    show("samples a second of CPU, d = 1000", ("r", *calls), rows)


def pass_over(m, d=1000, r=10):
    """Sums of m samples added piece by piece (one piece of 40,000, over and over); returns seconds spent adding."""
    X = sparse_samples(40_000, d, r, 3)
    sums = PairSums(d).add(X[:10])
    spent = 0.0
    for _ in range(0, m, 40_000):
        start = time.process_time()
        sums.add(X)
        spent += time.process_time() - start
    return spent


def linearity(bars, quick):
    sizes = (40_000, 80_000) if quick else (200_000, 400_000, 800_000)
    found = [in_child(pass_over, m) for m in sizes]
    rows = [
        (f"{m:,}", f"{value:.2f}", f"{m / value:,.0f}", f"{peak / 2**20:.0f}")
        for m, (_, peak, value) in zip(sizes, found, strict=True)
    ]
    show("one pass, d = 1000, r = 10", ("samples", "CPU s", "samples/s", "peak MiB"), rows)
    growth = found[-1][2] / found[0][2] / (sizes[-1] / sizes[0])
    bars.at_most("time for 4x the samples / 4" if not quick else "time for 2x / 2", growth, 1.35)
    bars.at_most("peak memory for the most / for the fewest", found[-1][1] / found[0][1], 1.2)


def masks(kind, m, d, r, rng):
    if kind == "Bernoulli":
        return rng.random((m, d)) < r / d
    if kind == "nonuniform":
        return rng.random((m, d)) < np.linspace(0.5, 1.5, d) * r / d
    seen = np.zeros((m, d), bool)
    drawn = (
        np.argpartition(rng.random((m, d)), r, axis=1)[:, :r]
        if kind == "exactly r"
        else rng.integers(d, size=(m, r))
    )
    seen[np.arange(m)[:, None], drawn] = True
    return seen


def bias(bars, quick):
    d, r, m, blocks = 12, 4, 40_000 if quick else 400_000, 100
    exact = {
        "Bernoulli": {"mask": "bernoulli", "per_sample": r},
        "exactly r": {"mask": "exactly"},
        "with replacement": {"mask": "replacement", "per_sample": r},
        "nonuniform": {"mask": "bernoulli", "per_sample": np.linspace(0.5, 1.5, d) * r / d},
    }
    law, rows, off = sample_law("power", d, 3, 77), [], ~np.eye(d, dtype=bool)
    for kind, options in exact.items():
        rng = np.random.default_rng(9100)
        found = {"pairwise": [], "known chances": [], "equation (4)": []}
        for _ in range(blocks):
            X = law.draw(m // blocks, rng)
            sums = PairSums(d, False).add(np.where(masks(kind, len(X), d, r, rng), X, np.nan))
            found["pairwise"].append(covariance(sums, center=False))
            found["known chances"].append(covariance(sums, center=False, **options))
            found["equation (4)"].append(
                covariance(sums, center=False, mask="bernoulli", per_sample=r)
            )
        z = {}
        for name, each in found.items():
            error, standard = (
                np.mean(each, axis=0) - law.moments,
                np.std(each, axis=0, ddof=1) / np.sqrt(blocks),
            )
            z[name] = float(np.abs(error / standard)[off].max())
        rows.append((kind, *(f"{v:.2f}" for v in z.values())))
        for name in ("pairwise", "known chances"):
            bars.at_most(
                f"{kind}, {name}: largest off-diagonal bias in standard errors", z[name], 4.0
            )
    show(f"largest off-diagonal bias in standard errors, {m:,} samples", ("mask", *found), rows)
    rng = np.random.default_rng(5)
    X = sparse_samples(20_000, 200, 10, 5)
    X.data += 20.0
    parts = PairSums(200)
    for a in range(0, 20_000, 3000):
        parts = parts.merge(PairSums(200).add(X[a : a + 3000]))
    C, D = covariance(PairSums(200).add(X)), covariance(parts)
    bars.at_most(
        "merge against one pass, relative", float(np.abs(C - D).max() / np.abs(C).max()), 1e-12
    )


def on_sphere(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def excess(bars, quick):
    d, k, rows = 50, 3, []
    worst = 0.0
    for r in (2, 5, 10, 25):
        row = [r]
        for m in (2000, 10_000, 50_000):
            ratios = []
            for seed in SEEDS[: 2 if quick else 5]:
                law, rng = sample_law("flat", d, k, seed), np.random.default_rng(seed)
                many = on_sphere(
                    law.draw(100_000, rng)
                )  # the theorem takes |x| <= 1: samples on the unit sphere
                C = many.T @ many / len(many)
                X = np.where(masks("exactly r", m, d, r, rng), on_sphere(law.draw(m, rng)), np.nan)
                best = np.linalg.eigvalsh(C)[-k:].sum()
                ratios.append(
                    best
                    * (1 - partial_pca(X, k, center=False).captured(C))
                    / popca_excess(d, k, r, m)
                )
            row.append(f"{np.mean(ratios):.4f}")
            worst = max(worst, float(np.mean(ratios)))
        rows.append(row)
    show(
        "expected excess / Corollary 3, d = 50, k = 3, |x| = 1",
        ("r", "m=2,000", "m=10,000", "m=50,000"),
        rows,
    )
    bars.at_most("largest expected excess / Corollary 3", worst, 0.2)
    shares = []
    for seed in SEEDS:
        law, rng = sample_law("flat", d, k, seed), np.random.default_rng(seed)
        X = law.draw(20_000, rng)
        X[~masks("exactly r", 20_000, d, 2, rng)] = np.nan
        shares.append(partial_pca(X, k, center=False).captured(law.moments))
    bars.at_least("energy captured at r=2, m=20,000, worst of 7 seeds", min(shares), 0.95)


def choosing(bars, quick):
    rows = []
    worst = {"few": 0.0, "power": 0.0, "flat": 0.0}
    for d, k, r, m in ((40, 2, 2, 20_000), (40, 2, 8, 5000), (100, 2, 4, 20_000)):
        for kind in worst:
            loss = {"uniform": [], "chosen": [], "MBEG": []}
            for seed in SEEDS[: 2 if quick else 7]:
                law = sample_law(kind, d, k, seed)
                X = law.draw(m, np.random.default_rng(seed))
                best = np.linalg.eigvalsh(law.moments)[-k:].sum()
                plans = {
                    "uniform": subspace(d, rank=k, per_sample=r, budget=m * r, floor=1.0, rng=seed),
                    "chosen": subspace(d, rank=k, per_sample=r, budget=m * r, rng=seed),
                    "MBEG": bandit_subspace(d, rank=k, per_sample=r, budget=m * r, rng=seed),
                }
                for name, plan in plans.items():
                    loss[name].append(law.excess(ew.play(plan, MatrixOracle(X)).components) / best)
            ratio = float(np.median(np.array(loss["chosen"]) / np.array(loss["uniform"])))
            worst[kind] = max(worst[kind], ratio)
            rows.append(
                (
                    d,
                    r,
                    f"{m:,}",
                    kind,
                    *(f"{np.median(v):.5f}" for v in loss.values()),
                    f"{ratio:.3f}",
                )
            )
    show(
        "excess / best energy, same looks (median)",
        ("d", "r", "samples", "law", *loss, "chosen / uniform"),
        rows,
    )
    for kind, bar in (("few", 0.2), ("power", 0.6), ("flat", 1.2)):
        bars.at_most(
            f"chosen / uniform, {kind}: worst of three sizes, median of seeds", worst[kind], bar
        )


def first_success(plan, law, m, seed, every):
    """Samples after which the plan's subspace is the right one, or infinity."""
    X = law.draw(m, np.random.default_rng(seed))
    run = ew.Run(plan)
    oracle = MatrixOracle(X)
    while not run.finished:
        run.tell(oracle(run.ask()))
        if run.number % every == 0 and law.excess(run.result_so_far().components) < 0.1:
            return int(run.log[-1].batch.rows[-1]) + 1
    return m if law.excess(run.result.components) < 0.1 else np.inf


def single_attribute(bars, quick):
    """On x = e_j: how many samples until it is found, r = 4."""
    r, rows, ours, theirs = 4, [], [], []
    sizes = (8, 16, 32, 64) if quick else (8, 16, 32, 64, 128, 256, 512)
    for d in sizes:
        mine, mbeg = [], []
        for seed in SEEDS[: 3 if quick else 7]:
            law = spike_law(d, seed % d)
            m = 8 * d
            mine.append(
                first_success(
                    subspace(d, rank=1, per_sample=r, samples=m, rounds=min(m, 64), rng=seed),
                    law,
                    m,
                    seed,
                    1,
                )
            )
            mbeg.append(first_pair(d, seed % d, r, seed))
        ours.append(np.median(mine))
        theirs.append(np.median(mbeg))
        rows.append((d, d / r, ours[-1], 2 * d * d / r, theirs[-1]))
    show(
        "samples until e_j is found, r = 4 (median)",
        ("d", "d / r", "subspace", "2 d^2 / r", "MBEG's first nonzero product"),
        rows,
    )
    slope = lambda y: float(np.polyfit(np.log(sizes), np.log(y), 1)[0])  # noqa: E731
    bars.at_most("growth of subspace's samples: exponent of d", slope(ours), 1.3)
    bars.at_least("growth of MBEG's samples: exponent of d", slope(theirs), 1.7)


def first_pair(d, j, r, seed):
    """Samples until MBEG draws the pair (j, j): before that its weights cannot move from uniform."""
    from entrywise.active.subspaces.bandit import draw_pairs

    rng, W, done = np.random.default_rng(seed), np.eye(d) / d, 0
    while True:
        s, q = draw_pairs(W, 1, 0.3, 100_000 * r // 2, rng)
        hit = np.flatnonzero((s == j) & (q == j))
        if len(hit):
            return done + int(hit[0]) // (r // 2) + 1
        done += 100_000


def stream():
    """Ten million samples of 1000 attributes, ten seen in each, one pass."""
    _, peak, value = in_child(pass_over, 10_000_000)
    show(
        "ten million samples, d = 1000, r = 10, one pass",
        ("CPU s adding", "samples/s", "peak MiB over the imports, with the piece being added"),
        [(f"{value:.1f}", f"{1e7 / value:,.0f}", f"{peak / 2**20:.0f}")],
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer samples and seeds")
    parser.add_argument(
        "--stream", action="store_true", help="only the pass over ten million samples"
    )
    parser.add_argument(
        "--only", choices=["throughput", "linearity", "bias", "excess", "choosing", "single"]
    )
    args = parser.parse_args()
    if args.stream:
        stream()
        return
    bars = Bars()
    parts = {
        "throughput": throughput,
        "linearity": linearity,
        "bias": bias,
        "excess": excess,
        "choosing": choosing,
        "single": single_attribute,
    }
    for name, part in parts.items():
        if args.only in (None, name):
            part(bars, args.quick)
    bars.end()


if __name__ == "__main__":
    main()
