"""Best pair and noisy PSD completion: errors against the bandits, halving and a spectral truncation; speed; resuming.

Tuned on seeds 0-9; run here on seeds from 1000. Bars were set before.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import sqlite3
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import entrywise as ew
from _shared import Bars, cpu, show
from entrywise.active import (
    lil_ucb,
    median_elimination,
    sequential_halving,
    stochastic_nystrom,
    successive_elimination,
    uniform_pairs,
)
from entrywise.active.pairs.tally import Tally, spread
from entrywise.apply.pairs import best_pair, regret
from entrywise.gallery import pair_losses
from entrywise.oracles import BernoulliOracle

N = 200
FAMILIES = [("synthetic", 2), ("synthetic", 4), ("bandit", 3), ("coherent", 3)]
FIRST = 1000


def uniform_means(L, budget, seed, diagonal):
    """Return (counts, means), both (n, n) and symmetric, of uniform sampling."""
    tally, oracle = Tally(len(L)), BernoulliOracle(L, rng=seed)
    asking = spread(tally, budget, diagonal, np.random.default_rng(seed))
    batch = next(asking)
    while True:
        try:
            batch = asking.send(oracle(batch))
        except StopIteration:
            break
    n, S = np.zeros(L.shape), np.zeros(L.shape)
    n[tally.rows, tally.cols] = n[tally.cols, tally.rows] = tally.counts
    S[tally.rows, tally.cols] = S[tally.cols, tally.rows] = tally.sums
    return n, S / np.maximum(n, 1)


def lrmc(L, budget, seed, rank, method):
    """Return the pair at the smallest entry of a passive completion of uniform samples."""
    count, mean = uniform_means(L, budget, seed, False)
    rows, cols = np.nonzero(count)
    seen = ew.Observations.from_triplets(rows, cols, mean[rows, cols], L.shape)
    if method == "soft-impute":
        from entrywise.passive import soft_impute

        found = soft_impute(seen, center="none", max_rank=20)
    else:
        from entrywise.passive import optspace

        found = optspace(seen, rank=rank)
    M = found.to_dense()
    M = M + M.T + np.where(np.eye(len(L)), np.inf, 0)
    i, j = np.unravel_index(np.argmin(M), M.shape)
    return int(min(i, j)), int(max(i, j))


PLANS = {
    "best_pair": lambda B, s: best_pair(N, budget=B, rng=s),
    "best_pair, diagonal asked": lambda B, s: best_pair(N, budget=B, rng=s, ask_diagonal=True),
    "halving": lambda B, s: sequential_halving(N, budget=B, rng=s),
    "naive": lambda B, s: uniform_pairs(N, budget=B, rng=s),
    "lil'UCB": lambda B, s: lil_ucb(N, budget=B, rng=s),
    "lil'UCB heuristic": lambda B, s: lil_ucb(N, budget=B, heuristic=True, rng=s),
    "successive elimination": lambda B, s: successive_elimination(N, budget=B, rng=s),
    "median elimination": lambda B, s: median_elimination(N, budget=B, rng=s),
}


def pair_task(bars, seeds, completions):
    rows = []
    for budget in (10**4, 10**5):
        for family, rank in FAMILIES:
            errors = {name: [] for name in PLANS} | {"soft-impute": [], "OptSpace": []}
            for seed in seeds:
                L = pair_losses(family, N, rank, seed)
                for name, make in PLANS.items():
                    found = ew.play(make(budget, seed), BernoulliOracle(L, rng=seed + 10**6))
                    assert found.cost <= budget
                    if "best" in name:
                        assert found.cost == budget
                    errors[name].append(regret(L, found.pair))
                if seed - FIRST < completions:
                    for name in ("soft-impute", "OptSpace"):
                        errors[name].append(regret(L, lrmc(L, budget, seed, rank, name)))
            median = {
                name: float(np.median(e)) if e else float("nan") for name, e in errors.items()
            }
            rows += [(f"{budget:.0e}", family, rank, name, median[name]) for name in errors]
            label = f"{family} r={rank} {budget:.0e}"
            ours = np.array(errors["best_pair"])
            share = 0.25 if budget == 10**4 else 1 / 30
            bars.at_most(
                f"{label}: median error / naive", median["best_pair"] / median["naive"], share
            )
            bars.at_most(
                f"{label}: median error / lil'UCB", median["best_pair"] / median["lil'UCB"], share
            )
            wins = {
                k: int(np.sum(ours <= np.array(errors[k]) + 1e-12)) for k in ("naive", "halving")
            }
            out_of = len(seeds) / 20
            bars.at_least(
                f"{label}: no worse than naive, of {len(seeds)}", wins["naive"], 18 * out_of
            )
            if budget == 10**5:
                bars.at_least(
                    f"{label}: no worse than halving, of {len(seeds)}", wins["halving"], 14 * out_of
                )
            else:
                ratio = median["best_pair"] / max(median["halving"], 1e-12)
                bars.at_most(f"{label}: median error / halving", ratio, 1.2)
                if family == "coherent":
                    bars.at_least(
                        f"{label}: no worse than halving, of {len(seeds)}",
                        wins["halving"],
                        15 * out_of,
                    )
                else:
                    bars.rows.append(
                        (
                            f"{label}: no worse than halving, of {len(seeds)}",
                            str(wins["halving"]),
                            "-",
                            "",
                        )
                    )
    show("error of the chosen pair, medians", ("budget", "family", "rank", "plan", "error"), rows)


def max_norm(bars, seeds):
    rows = []
    for family, rank in FAMILIES:
        found = {"ours": [], "blind": [], "naive": [], "spectral": []}
        for seed in seeds:
            L = pair_losses(family, N, rank, seed)
            for name, diagonal in (("ours", True), ("blind", False)):
                made = stochastic_nystrom(
                    N, rank=rank, budget=10**6, ask_diagonal=diagonal, rng=seed
                )
                found[name].append(
                    np.abs(ew.play(made, BernoulliOracle(L, rng=seed)).to_dense() - L).max()
                )
            _, A = uniform_means(L, 10**6, seed, True)
            values, vectors = np.linalg.eigh(A)
            top = np.argsort(-np.abs(values))[:rank]
            found["naive"].append(np.abs(A - L).max())
            found["spectral"].append(
                np.abs((vectors[:, top] * values[top]) @ vectors[:, top].T - L).max()
            )
        median = {name: float(np.median(e)) for name, e in found.items()}
        rows.append((family, rank, *median.values()))
        bars.at_most(
            f"{family} r={rank} 1e6: max error / naive", median["ours"] / median["naive"], 1 / 2.5
        )
        limit = 1.0 if family == "coherent" else 1.2
        bars.at_most(
            f"{family} r={rank} 1e6: max error / spectral",
            median["ours"] / median["spectral"],
            limit,
        )
    show(
        "max-norm error at 1e6, medians",
        ("family", "rank", "ours", "without diagonal", "naive", "spectral"),
        rows,
    )


def films(bars, seeds):
    """Pairs of films with tiny losses: best_pair beside the argmin of a completion for the same money (ML-1M by gender)."""
    from entrywise.active.pairs.tally import smallest_pairs
    from entrywise.apply.pairs import PopulationOracle
    from entrywise.reproduce.active_psd import films as crowd_of

    crowd = crowd_of("ML-1M", 800, None, "gender")
    L = crowd.losses.to_dense()
    n, rows = len(L), []
    for rank in (2, 4):  # told, and the default
        for budget in (10_000, 50_000, 200_000):
            found = {"best_pair": [], "argmin": []}
            for seed in seeds:
                coins = [PopulationOracle(crowd, rng=seed + 10**6) for _ in range(2)]
                ours = best_pair(n, budget=budget, rank=rank, rng=seed)
                found["best_pair"].append(regret(L, ew.play(ours, coins[0]).pair))
                whole = stochastic_nystrom(
                    n, budget=budget, rank=rank, ask_diagonal=False, rng=seed
                )
                i, j, _ = smallest_pairs(ew.play(whole, coins[1]).factor, 1, False)
                found["argmin"].append(regret(L, (int(i[0]), int(j[0]))))
            median = {name: float(np.median(e)) for name, e in found.items()}
            mean = {name: float(np.mean(e)) for name, e in found.items()}
            each = np.random.default_rng(0).integers(0, len(seeds), (2000, len(seeds)))
            again = [np.median(np.array(found[name])[each], axis=1) for name in found]
            ends = np.quantile(again[0] / np.maximum(again[1], 1e-12), (0.05, 0.95))
            likely = f"{ends[0]:.2f} to {ends[1]:.2f}"
            rows.append((rank, budget, *median.values(), *mean.values(), likely))
            print(*rows[-1], flush=True)
            bars.at_most(
                f"films, rank {rank}, {budget}: median error / argmin's",
                median["best_pair"] / median["argmin"],
                1.0,
            )
    show(
        "pairs of films: errors",
        ("rank", "budget", "median", "of argmin", "mean", "of argmin", "ratio of medians, 90 %"),
        rows,
    )


def speed(bars):
    L = pair_losses("synthetic", N, 4, FIRST)
    rows = []
    for name, make in (("best_pair", best_pair), ("stochastic_nystrom", stochastic_nystrom)):
        seconds, _ = cpu(
            lambda make=make: ew.play(make(N, budget=10**6, rng=0), BernoulliOracle(L, rng=0)), 2
        )
        rows.append((name, seconds))
        bars.at_most(f"{name}, 1e6 pulls at n = {N}: CPU seconds", seconds, 10.0)
    show("CPU seconds for 1e6 pulls", ("plan", "seconds"), rows)


class Dies(Exception):
    """The oracle is gone."""


def resuming(bars, pulls=10**5):
    L = pair_losses("synthetic", N, 4, FIRST)

    class Mortal(BernoulliOracle):
        lives = 10**9

        def answer(self, batch):
            if self.calls >= self.lives:
                raise Dies
            return super().answer(batch)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ads.db"
        params = {"n_items": N}
        whole = ew.Study.create(
            str(path), "whole", plan="best-pair", params=params, budget=pulls, seed=1
        )
        oracle = Mortal(L, rng=5)
        expected = whole.play(oracle)
        study = ew.Study.create(
            str(path), "pairs", plan="best-pair", params=params, budget=pulls, seed=1
        )
        oracle.lives, oracle.calls = oracle.calls - 1, 0
        oracle._rng = np.random.default_rng(5)
        with contextlib.suppress(Dies):
            study.play(oracle)
        del study

        def comes_back():
            start = time.process_time()
            again = ew.Study.open(str(path), "pairs")
            again.advance()
            again.result()
            return time.process_time() - start, again

        resumed = min(comes_back()[0] for _ in range(3))
        state = copy.deepcopy(oracle._rng)
        with sqlite3.connect(path) as database:
            kept = database.execute("SELECT COUNT(*) FROM checkpoints").fetchone()[0]
            saved = database.execute("SELECT * FROM checkpoints").fetchall()
            database.execute("DELETE FROM checkpoints")
            database.commit()
        replayed = min(comes_back()[0] for _ in range(2))
        with sqlite3.connect(path) as database:
            marks = ",".join("?" * len(saved[0]))
            database.executemany(f"INSERT INTO checkpoints VALUES ({marks})", saved)
            database.commit()
        oracle._rng, oracle.lives = state, 10**9
        found = ew.Study.open(str(path), "pairs").play(oracle)
        same = (found.pair, found.value, found.pulls) == (
            expected.pair,
            expected.value,
            expected.pulls,
        )
        same = same and np.array_equal(found.factor, expected.factor)
    show("a study of best-pair, 1e5 coins", ("resumed s", "replayed s", "checkpoints", "same result"),
         [(resumed, replayed, kept, same)])  # fmt: skip
    bars.at_most("study: resume / replay", resumed / replayed, 0.1)
    bars.at_least("study: resumed result is bit-identical", float(same), 1.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five seeds")
    parser.add_argument(
        "--only", action="append", choices=["speed", "resuming", "max-norm", "pairs", "films"]
    )
    parser.add_argument(
        "--completions", type=int, default=3, help="seeds on which soft-impute and OptSpace run too"
    )
    parser.add_argument("--first", type=int, default=FIRST, help="first seed")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    FIRST = given.first
    seeds = range(FIRST, FIRST + (5 if given.quick else 20))
    bars = Bars()
    parts = {
        "speed": lambda: speed(bars),
        "resuming": lambda: resuming(bars),
        "max-norm": lambda: max_norm(bars, seeds),
        "pairs": lambda: pair_task(bars, seeds, given.completions),
        "films": lambda: films(bars, seeds),
    }
    for part in given.only or parts:
        parts[part]()
    bars.end()
