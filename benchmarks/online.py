"""Online binary completion: exactness, speed, and mistakes against single learners and baselines.

make bench NAME=online                 everything but the long stream
make bench NAME=online ARGS=--quick    one seed, fewer configurations
make bench NAME=online ARGS="--only auto --before"    auto beside itself without refits and sleep (a quarter of an hour)
make bench NAME=online ARGS="--only speed --steady"    also until nothing is left to learn, and m + n = 100,000 (an hour)
"""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np

from _shared import Bars, show
from entrywise.gallery import bicluster_trials
from entrywise.online import (
    Doubling,
    GoldmanWarmuth,
    HazanKaleShalevShwartz,
    KernelPerceptron,
    Majority,
    MatrixWinnow,
    OnlineFactorization,
    RowColumnMajority,
    SymmetricWinnow,
    auto,
    majority,
)

SEEDS = (21, 22, 23)  # the defaults were chosen on 101-103, 201-203 and 301-305
ROWS = [(2, 2, 0.0), (5, 5, 0.0), (100, 5, 0.0), (10, 10, 0.0), (5, 5, 0.1), (5, 5, 0.2)]
SINGLES = {  # beside auto's own experts, which are counted from its run
    "winnow 2": MatrixWinnow(2.0),
    "winnow 1": MatrixWinnow(1.0),
    "winnow .707": MatrixWinnow(0.707),
    "winnow .25": MatrixWinnow(0.25),
    "winnow 1, slack .1": MatrixWinnow(1.0, 0.1),
    "doubling": Doubling(),
    "symmetric 1, .2": SymmetricWinnow(1.0, 0.2),
}
EXPERTS = (
    "winnow 1, slack .15",
    "symmetric 1, .4",
    "symmetric .5, .2",
    "MF 100 replays",
    "low rank, refitted",
)
SETTINGS = [(rank, rate) for rank in (3, 10) for rate in (0.03, 0.1, 0.3)]


def literal(m, n, rows, cols, labels, gamma, tie=1e-9):
    """Algorithm 1 with an eigendecomposition a mistake; return predictions and CPU seconds."""
    start = time.process_time()
    S, E = np.zeros((m + n, m + n)), np.eye(m + n)
    predictions = np.zeros(len(labels), np.int8)
    for t, (i, j, y) in enumerate(zip(rows, cols, labels, strict=True)):
        q = 0.5 * (E[i, i] + E[m + j, m + j]) + E[i, m + j]
        predictions[t] = 1 if q >= 1.0 - tie else -1
        if predictions[t] != y:
            for a in (i, m + j):
                for b in (i, m + j):
                    S[a, b] += 0.5 * gamma * y
            eigenvalues, V = np.linalg.eigh(S)
            E = (V * np.exp(eigenvalues)) @ V.T
    return predictions, time.process_time() - start


def exactness(bars, quick):
    configurations = [
        (30, 30, 2, 2, 0.25, 0.0), (30, 30, 3, 3, 0.577, 0.0), (30, 60, 4, 3, 1.0, 0.0), (60, 30, 2, 10, 2.0, 0.0),
        (50, 50, 3, 3, 1.0, 0.1), (60, 40, 5, 5, 0.5, 0.2), (40, 60, 10, 10, 2.0, 0.1), (80, 80, 5, 5, 0.447, 0.0),
        (100, 50, 2, 5, 0.707, 0.05), (100, 100, 10, 4, 1.0, 0.2), (150, 100, 5, 5, 1.5, 0.0), (200, 200, 5, 5, 1.0, 0.0),
        (200, 100, 3, 8, 0.577, 0.1),
    ]  # fmt: skip
    table, different, mean, most = [], 0, [], 0
    for m, n, k, l, gamma, noise in configurations[
        : 7 if quick else None
    ]:  # every entry once, to the last one
        rows, cols, labels = np.array(bicluster_trials(m, n, k, l, noise, seed=[31, m, n, k])).T
        wanted, _ = literal(m, n, rows, cols, labels, gamma)
        found, learner = MatrixWinnow(gamma).follow(rows, cols, labels)
        off = int((found != wanted).sum())
        different += off
        mean.append(learner.work["mean_steps"])
        most = max(most, int(learner.work["max_steps"]))
        done = (len(labels), learner.mistakes, off, mean[-1], learner.work["max_steps"])
        table.append((f"{m}x{n}", f"{k},{l}", gamma, noise, *done))
    columns = ("size", "k,l", "gamma", "noise", "trials", "mistakes", "different", "steps", "most")
    show("the same mistakes as the literal algorithm", columns, table)
    bars.at_least("configurations compared", len(table), 7 if quick else 12)
    bars.at_most("predictions unlike the literal algorithm's", different, 0)
    bars.at_most("mean Lanczos steps, worst configuration", max(mean), 3)
    bars.at_most("most Lanczos steps", most, 10)


def stream(N, T, seed, k=5, noise=0.0):
    rng = np.random.default_rng(seed)
    m = N // 2
    blocks = rng.choice([-1, 1], (k, k))
    r, c = rng.integers(k, size=m), rng.integers(k, size=m)
    rows, cols = rng.integers(m, size=T), rng.integers(m, size=T)
    labels = blocks[r[rows], c[cols]]
    return rows, cols, np.where(rng.random(T) < noise, -labels, labels)


def timed(learner, rows, cols, labels):
    """Return the learner after the stream and the CPU seconds that it took."""
    start = time.process_time()
    learner = learner.learn_many(rows, cols, labels)
    return learner, time.process_time() - start


def of_auto(bars, quick, before):
    """Time auto on noisy labels to 20 (m + n), beside auto as it was: four experts that never sleep."""
    N = 2000 if quick else 10_000
    auto().follow(*stream(200, 12_000, 0, noise=0.2))  # compiled, or loaded
    trials = stream(N, 20 * N, 43, noise=0.2)
    learner, seconds = timed(auto(), *trials)
    rows = [("auto", N, learner.mistakes / N, 20 * N / seconds, int(learner.awake.sum()))]
    bars.at_least(f"auto, labels/s (CPU), m + n = {N}, 20 % noise, to 20 N", 20 * N / seconds, 1e4)
    if before or quick:
        majority.HEAVY = 2**62  # nobody is dear enough to sleep
        old, slow = timed(Majority(auto().experts[:4]), *trials)
        rows.append(("without refits and sleep", N, old.mistakes / N, 20 * N / slow, 4))
        ratio = learner.mistakes / old.mistakes
        bars.at_most("mistakes of auto / without refits and sleep", ratio, 1.01)
    show("auto, 5 x 5 biclusters", ("", "m+n", "M/N", "labels/s", "experts awake"), rows)


def speed(bars, quick, steady):
    MatrixWinnow(0.447).follow(*stream(20, 50, 0))  # compiled, or loaded
    T = 500 if quick else 1000
    rows, cols, labels = np.array(bicluster_trials(200, 200, 5, 5, 0.0, seed=11)[:T]).T
    _, slow = literal(200, 200, rows, cols, labels, 0.447)
    start = time.process_time()
    MatrixWinnow(0.447).follow(rows, cols, labels)
    fast = max(time.process_time() - start, 1e-6)
    print("literal", slow, "Lanczos", fast, flush=True)
    bars.at_least(
        f"times the literal algorithm end to end, m + n = 400, {T} trials", slow / fast, 50
    )

    rows, cols, labels = stream(1000, 20_000, 11)
    start = time.process_time()
    _, learner = MatrixWinnow(0.447).follow(rows, cols, labels)
    each = (time.process_time() - start) / learner.mistakes
    S = np.random.default_rng(0).standard_normal((1000, 1000))
    start = time.process_time()
    for _ in range(2 if quick else 4):
        eigenvalues, V = np.linalg.eigh(S + S.T)
        (V * np.exp(eigenvalues / 100)) @ V.T
    one = (time.process_time() - start) / (2 if quick else 4)
    bars.at_least("times the literal algorithm per mistake, m + n = 1000", one / each, 1000)

    table = []
    sizes = [(1000, 20, 0.447, 60.0), (1000, 20, 1.0, 60.0), (10_000, 20, 0.447, 600.0)]
    sizes += [] if quick else [(10_000, 60, 0.447, 30.0)]
    learnt = (
        [(1000, 100, 0.447, 900.0), (4000, 100, 0.447, 900.0), (10_000, 100, 0.447, 2400.0)]
        if steady
        else []
    )
    for N, times, gamma, most in (
        sizes + learnt + ([(100_000, 60, 0.447, 1200.0)] if steady else [])
    ):
        learner = MatrixWinnow(gamma)
        rows, cols, labels = stream(N, times * N, 12)
        spent, chunk = 0.0, times * N // 20
        for first in range(0, times * N, chunk):
            part = slice(first, first + chunk)
            before, edges = learner.mistakes, learner.work["edges"]
            start = time.process_time()
            learner = learner.learn_many(rows[part], cols[part], labels[part])
            seconds = time.process_time() - start
            spent += seconds
            if (first // chunk) % 5 == 4 or spent > most:
                wrong = (learner.mistakes - before) / chunk
                walked = (learner.work["edges"] - edges) / chunk
                row = (
                    N,
                    gamma,
                    (first + chunk) / N,
                    learner.mistakes / N,
                    wrong,
                    walked,
                    chunk / seconds,
                )
                print(*(f"{x:.4g}" for x in row), flush=True)
                table.append(row)
            if spent > most:
                break
        if (N, times) == (10_000, 20):
            bars.at_least(
                "trials/s at m + n = 10,000, mean of the first 20 N", times * N / spent, 20_000
            )
    show(
        "cost of a trial as M/N grows",
        ("m+n", "gamma", "T/N", "M/N", "error now", "edges/trial", "trials/s now"),
        table,
    )
    settled = [row for row in table if row[4] < 0.02 and row[2] == 100]
    if len(settled) > 1:  # at 100,000 it would take days to get there
        N, edges, rate = (np.array([row[k] for row in settled]) for k in (0, 5, 6))
        power, offset = np.polyfit(np.log(N), np.log(edges), 1)
        ahead = math.exp(offset) * 100_000**power
        print(
            f"steady state: edges/trial grow as (m+n)^{power:.2f} over {N.astype(int).tolist()}; at 100,000, extrapolated:"
            f" {ahead:.3g} edges/trial, {edges[-1] * rate[-1] / ahead:.3g} trials/s"
        )


def race(learners, rows, cols, labels):
    return {
        name: learner.follow(rows, cols, labels)[1].mistakes for name, learner in learners.items()
    }


def factorizations(rows, cols, labels, replay):
    found = [
        OnlineFactorization(r, q, replay=replay).follow(rows, cols, labels)[1].mistakes
        for r, q in SETTINGS
    ]
    return min(found)


def synthetic(bars, quick):
    table = []
    for k, l, noise in ROWS:
        sums: dict[str, int] = {}
        for seed in SEEDS[: 1 if quick else None]:
            rng = np.random.default_rng([seed, k, l, round(100 * noise)])
            trials = bicluster_trials(100, 100, k, l, noise, rng)
            rows, cols, labels = np.array(trials).T
            learner = auto().learn_many(rows, cols, labels)
            found = {
                "auto": learner.mistakes,
                **dict(zip(EXPERTS, learner.losses.tolist(), strict=True)),
            }
            found |= race(SINGLES, rows, cols, labels)
            found["rows+cols"] = RowColumnMajority().follow(rows, cols, labels)[1].mistakes
            found["goldman-warmuth"] = GoldmanWarmuth().follow(rows, cols, labels)[1].mistakes
            found["MF once"] = factorizations(rows, cols, labels, 0)
            found["MF replay"] = factorizations(rows, cols, labels, 10)
            U = np.zeros((100, 100))
            U[rows, cols] = labels
            found["hindsight kernel"] = hindsight(U, rows, cols, labels)
            for name, wrong in found.items():
                sums[name] = sums.get(name, 0) + wrong
        best = min(sums[name] for name in (*SINGLES, *EXPERTS))
        row = f"{k}x{l}" + (f", noise {noise:g}" if noise else "")
        bars.at_most(f"{row}: auto / best single learner", sums["auto"] / best, 1.05)
        if not noise:
            bars.at_most(
                f"{row}: auto / MF with replay (best of 6)",
                sums["auto"] / sums["MF replay"],
                0.9999,
            )
        table.append((row, *sums.values()))
        print(row, sums, flush=True)
    seeds = 1 if quick else len(SEEDS)
    show(f"mistakes, 100 x 100, every entry once, sum over {seeds} seeds", ("rows", *sums), table)
    rng = np.random.default_rng(11)
    table = []
    for noise in (0.0, 0.1):
        rows, cols, labels = np.array(bicluster_trials(30, 30, 3, 3, noise, rng)).T
        hks = {
            f"HKS {rate:g}": HazanKaleShalevShwartz((30, 30), rate, math.sqrt(3))
            for rate in (0.1, 0.3, 1.0)
        }
        found = race({"auto": auto(), **hks, "winnow 1": MatrixWinnow(1.0)}, rows, cols, labels)
        table.append((f"3x3, noise {noise:g}", *found.values()))
    show("against the whole Hazan-Kale-Shalev-Shwartz algorithm, 30 x 30", ("rows", *found), table)


def hindsight(U, rows, cols, labels):
    """Kernel perceptron with the kernel of the whole matrix: correlations of its columns, sharpened; best of 3."""
    C = U.T @ U / len(U)
    return min(
        KernelPerceptron(np.sign(C) * np.abs(C) ** p).follow(rows, cols, labels)[1].mistakes
        for p in (1, 3, 9)
    )


def real(bars, quick):
    folder = Path(os.environ.get("ENTRYWISE_DATA", ""))
    table = []
    for name, key, seeds in (
        ("zoo", "traits", SEEDS),
        ("house_votes_84", "votes", SEEDS),
        ("senate_106", "votes", SEEDS[:1]),
    ):
        sums: dict[str, int] = {}
        with np.load(folder / name / f"{name}.npz") as file:
            U = file[key].astype(np.int64)
        for seed in seeds[: 1 if quick else None]:
            rows, cols = np.nonzero(U)
            order = np.random.default_rng(seed).permutation(len(rows))[: 20_000 if quick else None]
            rows, cols = rows[order], cols[order]
            labels = U[rows, cols]
            found = race(
                {"auto": auto(), "winnow 1": MatrixWinnow(1.0), "rows+cols": RowColumnMajority()},
                rows,
                cols,
                labels,
            )
            found["goldman-warmuth"] = min(
                race({b: GoldmanWarmuth(b) for b in (0.5, 0.8)}, rows, cols, labels).values()
            )
            found["MF once"] = factorizations(rows, cols, labels, 0)
            found["MF replay"] = factorizations(rows, cols, labels, 10)
            found["hindsight kernel"] = hindsight(U, rows, cols, labels)
            for learner, wrong in found.items():
                sums[learner] = sums.get(learner, 0) + wrong
        table.append((name, *sums.values()))
        print(name, sums, flush=True)
        rivals = [sums[x] for x in ("rows+cols", "goldman-warmuth", "MF once", "MF replay")]
        if name != "zoo":
            bars.at_most(f"{name}: auto / best baseline", sums["auto"] / min(rivals), 1.02)
    show("real data, known entries in random order", ("data", *sums), table)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steady", action="store_true", help="m + n = 100,000 to its steady state")
    parser.add_argument("--before", action="store_true", help="auto as it was, beside it")
    parser.add_argument("--only", choices=("exactness", "speed", "auto", "synthetic", "real"))
    args = parser.parse_args()
    bars = Bars()
    if args.only in (None, "exactness"):
        exactness(bars, args.quick)
    if args.only in (None, "speed"):
        speed(bars, args.quick, args.steady)
    if args.only in (None, "auto"):
        of_auto(bars, args.quick, args.before)
    if args.only in (None, "synthetic"):
        synthetic(bars, args.quick)
    if args.only in (None, "real"):
        real(bars, args.quick)
    bars.end()


if __name__ == "__main__":
    main()
