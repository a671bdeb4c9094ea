"""Two instruments, one budget: error against every rival at its best, regret of the split, Jester, cost, coverage.

make bench NAME=noisycur                      all bars, about ten minutes
make bench NAME=noisycur ARGS=--quick         fewer seeds and scenarios: a look, no bars
make bench NAME=noisycur ARGS="--only regret" one part: synthetic, regret, jester or solve
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import entrywise as ew
from _shared import Bars, cpu, show
from entrywise.active import literal_noisy_cur, noisy_cur, split_nuclear_norm
from entrywise.active.two_cost.literal import GRID, leverage
from entrywise.linalg.ridge import ridge_path
from entrywise.oracles import TwoCostOracle
from entrywise.reproduce._noisycur import (
    column_grid,
    contests,
    cur_plus_settings,
    error,
    errors,
    jester,
    overlay,
    played,
    synthetic,
)

SEEDS = range(4200, 4220)  # used nowhere else
SCENARIOS = range(
    9500, 9514
)  # used nowhere else; those below 7100, 9200-9413, 9514-9540 and 9600-9699 informed us
PENALTIES = (0.15, 0.3, 0.6, 1.2)


def best(found):
    """Return (setting, mean error) of the setting with the smallest mean error: chosen with the truth."""
    setting = min(found, key=lambda s: found[s].mean())
    return setting, float(found[setting].mean())


def paper_sets(bars, quick):
    seeds = SEEDS[:3] if quick else SEEDS
    rows = []
    for c in contests("synthetic", synthetic(), 4):
        A = c.matrix(0)
        grid = list(range(10, c.most_columns(A) + 1, 2))
        settings = {
            "literal_noisy_cur": grid,
            "literal_noisy_cur, authors' code": grid,
            "CUR+": cur_plus_settings(c, A, (4, 8, 12, 14, 16, 18, 20)),
            "NNs": [(d, f, True) for d in (8, 16, 24, 32) for f in (0.25, 0.5, 1.0)],
            "NNa": [(1.0, p, True) for p in PENALTIES],
            "Chen": [(0.5, p, True) for p in PENALTIES],
        }
        ours, inside, unseen, used = [], 0, 0, []
        for seed in seeds:
            A = c.matrix(seed)
            plan = noisy_cur(A.shape, c.prices(len(A)), noise=c.noise, budget=c.budget(A), rng=seed)
            found, run = played(c, plan, A, seed)
            ours.append(error(found.to_dense(), A))
            used.append(found.report["columns"])
            known = np.zeros(A.shape, bool)
            for batch, _ in run.log:
                known[batch.rows, batch.cols] = True
            i, j = np.nonzero(~known)
            low, high = found.interval(i, j, 0.9, of="truth")
            inside += int(np.sum((low <= A[i, j]) & (A[i, j] <= high)))
            unseen += len(i)
        mean = float(np.mean(ours))
        rows.append(
            (c.name, "noisy_cur, automatic", f"columns {min(used)}..{max(used)}", 100 * mean, 1.0)
        )
        for method, tried in settings.items():
            setting, value = best(errors(c, method, tried, seeds))
            rows.append((c.name, method, str(setting), 100 * value, mean / value))
            bar = {"literal_noisy_cur": 0.70, "literal_noisy_cur, authors' code": 0.80}.get(
                method, 1.0
            )
            bars.at_most(f"{c.name}: ours over {method} at its best", mean / value, bar)
        cover = inside / unseen
        bars.at_least(
            f"{c.name}: coverage of 90 % intervals for the truth, unseen entries", cover, 0.87
        )
        bars.at_most(
            f"{c.name}: coverage of 90 % intervals for the truth, unseen entries", cover, 0.93
        )
    show(
        f"80 x 60, budget 720, {len(seeds)} seeds: error in percent",
        ("set", "method", "best setting", "error", "ours / it"),
        rows,
    )


def scenario(seed):
    """Draw a two-cost problem: shape, rank 2-8, noise-variance ratio 2-100, alpha .05-.8, budget 5-40 %."""
    rng = np.random.default_rng(seed)
    m, n = [(80, 60), (100, 50), (60, 120), (200, 80), (60, 60), (150, 40)][rng.integers(6)]
    rank = int(rng.integers(2, 9))
    ratio, alpha, share, sc2 = (
        float(np.exp(rng.uniform(np.log(a), np.log(b))))
        for a, b in ((2, 100), (0.05, 0.8), (0.05, 0.4), (0.05, 1.0))
    )
    return {
        "m": m,
        "n": n,
        "rank": rank,
        "ratio": ratio,
        "alpha": alpha,
        "share": share,
        "sc2": sc2,
    }


def one(s, seed, k, columns):
    """Return the squared error and the columns used on matrix k of a scenario, at a fixed split or the automatic one."""
    rng = np.random.default_rng([seed, k])
    A = (
        rng.standard_normal((s["m"], s["rank"]))
        @ rng.standard_normal((s["rank"], s["n"]))
        / np.sqrt(s["rank"])
    )
    noise = {"column": s["sc2"] ** 0.5, "entry": (s["sc2"] / s["ratio"]) ** 0.5}
    prices = ew.Prices(column=s["alpha"] * s["m"])
    budget = s["share"] * A.size
    plan = noisy_cur(
        A.shape, prices, noise=noise, budget=budget, columns=columns, rng=1000 * seed + k
    )
    oracle = TwoCostOracle(A, entry_noise=noise["entry"], column_noise=noise["column"], rng=rng)
    found = ew.play(plan, oracle)
    assert found.cost <= budget * (1 + 1e-9)
    return float(np.mean((found.to_dense() - A) ** 2)), found.report["columns"]


def split_regret(bars, quick):
    warnings.simplefilter("ignore", UserWarning)
    rows, regrets = [], []
    matrices = 3 if quick else 20
    for seed in SCENARIOS[:3] if quick else SCENARIOS:
        s = scenario(seed)
        top = min(s["n"], int(s["share"] * s["n"] / s["alpha"]))
        grid = sorted({0, *(int(d) for d in np.linspace(min(3, top), top, 8))})
        fixed = {
            d: np.sqrt(np.mean([one(s, seed, k, d)[0] for k in range(matrices)])) for d in grid
        }
        mine = [one(s, seed, k, None) for k in range(matrices)]
        value = float(np.sqrt(np.mean([x[0] for x in mine])))
        d = min(fixed, key=lambda d: fixed[d])
        regrets.append(value / fixed[d])
        words = f"{s['m']} x {s['n']}, rank {s['rank']}, ratio {s['ratio']:.3g}, alpha {s['alpha']:.2g}, budget {s['share']:.0%}"
        used = f"{min(x[1] for x in mine)}..{max(x[1] for x in mine)}"
        rows.append((seed, words, d, float(fixed[d]), used, value, regrets[-1]))
        print(f"{words}: regret {regrets[-1]:.3f}", flush=True)
    columns = ("seed", "scenario", "best d", "its error", "automatic d", "its error", "regret")
    show(f"split: automatic against the best fixed one, {matrices} matrices each", columns, rows)
    bars.at_most("split: median regret", float(np.median(regrets)), 1.03)
    bars.at_most("split: worst regret", float(np.max(regrets)), 1.2)


def jokes(bars, quick):
    A = jester(1000 if quick else None)
    seeds = SEEDS[: 1 if quick else 3]
    rows = []
    for c in contests("jester", lambda seed: A, 10):
        found = {}
        for d in column_grid(c, A, 4 if quick else 8, 5):
            for seed in seeds:
                X, run = played(
                    c,
                    literal_noisy_cur(
                        A.shape, c.prices(len(A)), columns=d, budget=c.budget(A), rng=seed
                    ),
                    A,
                    seed,
                )
                found.setdefault(d, []).append(
                    (error(X.to_dense(), A), error(overlay(run, X.to_dense()), A))
                )
        d = min(found, key=lambda d: np.mean([x[1] for x in found[d]]))
        literal = np.mean(found[d], axis=0)
        mine, seconds = [], []
        for seed in seeds:
            plan = noisy_cur(A.shape, c.prices(len(A)), noise=c.noise, budget=c.budget(A), rng=seed)
            start = time.process_time()
            X, run = played(c, plan, A, seed)
            seconds.append(time.process_time() - start)
            mine.append((error(X.to_dense(), A), error(overlay(run, X.to_dense()), A)))
        ours = np.mean(mine, axis=0)
        start = time.process_time()
        nuclear = split_nuclear_norm(
            A.shape,
            c.prices(len(A)),
            columns=0,
            noise=c.noise,
            budget=c.budget(A),
            scattered=True,
            rng=0,
        )
        nn = played(c, nuclear, A, seeds[0])[0]
        slow = time.process_time() - start
        rows += [
            (c.name, f"literal, d = {d}", *literal, ""),
            (c.name, f"noisy_cur, d = {X.report['columns']}", *ours, min(seconds)),
            (c.name, "nuclear norm of entries (one solve)", error(nn.to_dense(), A), "", slow),
        ]
        bars.at_most(f"{c.name}: ours over literal at its best d", ours[0] / literal[0], 0.9999)
        bars.at_most(
            f"{c.name}: the same, bought entries overlaid for both", ours[1] / literal[1], 0.9999
        )
        bars.at_most(
            f"{c.name}: CPU seconds of the whole plan over one nuclear-norm solve",
            min(seconds) / slow,
            0.1,
        )
    show(f"Jester {A.shape}: relative error", ("set", "method", "error", "overlaid", "CPU s"), rows)


def solves(bars, quick):
    rows = []
    rng = np.random.default_rng(0)
    sizes = (
        (80, 60, 18, 7),
        (80, 60, 12, 8),
        (300, 200, 40, 30),
        (7200, 100, 40, 216),
        (1682, 943, 150, 100),
    )
    for m, n, d, s in sizes[:1] if quick else sizes:
        C, Y = rng.standard_normal((m, d)), rng.standard_normal((s, n))
        X = C[:s]

        def once(X=X, Y=Y, C=C):
            U, v, Wt = np.linalg.svd(X, full_matrices=False)
            return C @ (Wt.T @ ((v / (v**2 + 1.0))[:, None] * (U.T @ Y)))

        def path(X=X, Y=Y, C=C):
            return C @ ridge_path(X, Y, GRID, relative=True).solution()

        inner = 300 if m < 200 else 10
        scores, single, whole = (
            cpu(lambda f=f, k=inner: [f() for _ in range(k)], 15)[0] / inner
            for f in (lambda C=C: leverage(C), once, path)
        )
        ratio = (scores + whole) / (scores + single)
        times = (1e3 * t for t in (scores, single, whole))
        rows.append((f"{m} x {n}, d = {d}, s = {s}", len(GRID), *times, whole / single, ratio))
        bars.at_most(
            f"ridge over {len(GRID)} penalties over one solve, {m} x {n}, d = {d}",
            whole / single,
            2.0,
        )
    columns = (
        "problem",
        "penalties",
        "lines 2-3, ms",
        "one ridge, ms",
        "whole grid, ms",
        "ridge ratio",
        "ratio of lines 2-7",
    )
    show("ridge path", columns, rows)


PARTS = {"synthetic": paper_sets, "regret": split_regret, "jester": jokes, "solve": solves}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=PARTS, action="append")
    args = parser.parse_args()
    bars = Bars()
    for name in args.only or PARTS:
        PARTS[name](bars, args.quick)
    bars.end()


if __name__ == "__main__":
    main()
