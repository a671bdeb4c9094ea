"""Which entries next: error against spend beside random buying, winners, coverage, and the cost of a round.

RMSE on 10 % of the cells that no rule may buy, paired by seed. make bench NAME=informative [ARGS="--quick --case oboe"]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import entrywise as ew
from _shared import Bars, cpu, in_child, show
from entrywise.active import most_informative
from entrywise.apply.leaderboard import Bought, scores
from entrywise.oracles import MatrixOracle

DATA = Path(os.environ.get("ENTRYWISE_DATA", "../shared/data"))
SEEDS = range(
    1800, 1810
)  # not used for choosing anything; guard and growth were chosen on seeds 0-7, 1500-1609 led to changes


TURNS = 15  # of a round's timings; the best of each would tell less: quiet moments come to one or the other


def oboe():
    file = np.load(DATA / "oboe" / "oboe.npz")
    return file["error"].astype(float), file["runtime_s"].astype(float)


def kiba():
    file = np.load(DATA / "kiba" / "kiba.npz")
    A = np.full((2111, 229), np.nan)
    A[file["drug"], file["target"]] = file["score"]
    A = A[np.argsort(-np.sum(~np.isnan(A), axis=1), kind="stable")[:500]]
    return A[:, np.argsort(-np.sum(~np.isnan(A), axis=0), kind="stable")[:163]]


def alpaca():
    return np.load(DATA / "alpaca-eval" / "preferences.npz")["preference"].astype(float)


def alpaca_filled():
    A = alpaca()
    return np.where(np.isnan(A), np.nanmean(A), A)


def jester():
    q = np.load(DATA / "jester_1" / "jester1.npz")["ratings_x100"]
    R = np.where(q == -32768, np.nan, q / 100.0)
    return R[~np.isnan(R).any(axis=1)][:500]


def play_on(A, price, rule, budget, seed, known, held, **extra):
    prices = None if price is None else ew.Prices(price)
    plan = most_informative(
        A.shape, prices, budget=budget, rule=rule, available=known & ~held, rng=seed, **extra
    )
    return ew.play(plan, MatrixOracle(np.nan_to_num(A)))


def compare(bars, name, A, price, shares, limits, baseline, seeds):
    known = ~np.isnan(A)
    total = float(known.sum()) if price is None else float(price[known].sum())
    rows = []
    for share, limit in zip(shares, limits, strict=True):
        change, base = [], []
        for seed in seeds:
            held = known & (np.random.default_rng(10_000 + seed).random(A.shape) < 0.1)
            error = {}
            for rule in (baseline, "gain"):
                found = play_on(A, price, rule, float(np.floor(share * total)), seed, known, held)
                i, j = np.nonzero(held)
                error[rule] = np.sqrt(np.mean((found.entries(i, j) - A[i, j]) ** 2))
            change.append(100 * (error["gain"] / error[baseline] - 1))
            base.append(error[baseline])
        mean, spread = float(np.mean(change)), float(np.std(change) / np.sqrt(len(change)))
        rows.append(
            (
                f"{share:.3g}",
                float(np.mean(base)),
                f"{mean:+.1f} +- {spread:.1f} %",
                f"{limit:+g} %",
            )
        )
        bars.at_most(f"{name}, {share:.3g} of the money: RMSE against {baseline}, %", mean, limit)
    show(
        f"{name}: held-out RMSE against {baseline}, {len(seeds)} seeds",
        ("share", f"RMSE of {baseline}", "change", "bar"),
        rows,
    )


def coverage(bars, name, A, price, share, low, high, seeds):
    known = ~np.isnan(A)
    total = float(known.sum()) if price is None else float(price[known].sum())
    cells, means = [], []
    for seed in seeds:
        bought = np.zeros(A.shape, bool)
        run = ew.Run(
            most_informative(A.shape, None if price is None else ew.Prices(price), budget=float(np.floor(share * total)),
                             available=known, rng=seed, reserve=0.15)
        )  # fmt: skip
        oracle = MatrixOracle(np.nan_to_num(A))
        found = ew.play(run, oracle)
        for entry in run.log:
            bought[entry.batch.rows, entry.batch.cols] = True
        i, j = np.nonzero(known & ~bought)
        interval = found.interval(i, j, 0.9)
        cells.append(float(np.mean((interval.low <= A[i, j]) & (A[i, j] <= interval.high))))
        if known.all():
            bill = Bought.from_run(run)
            found_scores = scores(found, bill, 0.9, run.prices)
            means.append(
                float(
                    np.mean(
                        (found_scores.low <= A.mean(axis=1)) & (A.mean(axis=1) <= found_scores.high)
                    )
                )
            )
    show(f"{name}, {share:.3g}: coverage of 90 % intervals", ("", "mean", "lowest", "highest"),
         [("cells", float(np.mean(cells)), min(cells), max(cells))]
         + ([("row means", float(np.mean(means)), min(means), max(means))] if means else []))  # fmt: skip
    bars.at_least(f"{name}, {share:.3g}: cells covered", float(np.mean(cells)), low)
    bars.at_most(f"{name}, {share:.3g}: cells covered", float(np.mean(cells)), high)
    if means:
        bars.at_least(f"{name}, {share:.3g}: row means covered", float(np.mean(means)), 0.87)
        bars.at_most(f"{name}, {share:.3g}: row means covered", float(np.mean(means)), 0.93)


def one_step(m, n, share):
    """Return CPU seconds of a fit, of a whole step of the plan (with that fit), which buys 15 % more, of its reserve; cells.

    Seconds are of shape (TURNS, 3): in each turn the three are timed one after the other, on a machine in one mood.
    """
    from entrywise.active.cells.calibration import fitted
    from entrywise.active.cells.purchase import Purchase
    from entrywise.active.cells.reserve import reserve_cells
    from entrywise.queries import History, Situation

    rng = np.random.default_rng(3)
    A = ew.LowRank(rng.standard_normal((m, 6)), rng.standard_normal((n, 6)))
    prices = ew.Prices(rng.lognormal(0.0, 1.0, (m, 1)))
    cells = np.sort(rng.choice(m * n, int(share * m * n), replace=False))
    budget = 2.0 * float(prices.of("entry", *np.divmod(cells, n)).sum())
    plan = most_informative((m, n), prices, budget=budget, reserve=0.1, rng=1)
    state = Purchase((m, n), prices, budget, None, rng)
    hidden, chance = reserve_cells(state, 0.1, plan.seed)
    known = np.r_[hidden, np.setdiff1d(cells, hidden)]
    i, j = np.divmod(known, n)
    facts = History(
        i,
        j,
        A.entries(i, j) + 0.1 * rng.standard_normal(len(known)),
        arm=np.where(np.arange(len(known)) < len(hidden), "reserve", "greedy"),
        probability=np.r_[chance, np.ones(len(known) - len(hidden))],
        price=prices.of("entry", i, j),
    )
    now = Situation(step=5, facts=facts, left=budget - float(facts.price.sum()), seed=plan.seed)
    state.see(now)
    wanted = plan.step(now)  # compiled, or loaded
    assert set(wanted.arm) == {"explore", "greedy"}
    seconds = [
        [
            cpu(lambda: fitted(state, 6, 5))[0],
            cpu(lambda: plan.step(now))[0],
            cpu(lambda k=k: reserve_cells(state, 0.1, plan.seed + k))[0],  # none is remembered
        ]
        for k in range(1, TURNS + 1)
    ]
    return np.array(seconds), len(known) + len(wanted)


def winners(bars, seeds, python):
    A = alpaca_filled()
    best, right, seconds = int(A.mean(axis=1).argmax()), 0, 0.0
    for seed in seeds:
        plan = most_informative(
            A.shape, budget=float(int(0.05 * A.size)), goal="best", rank=1, rng=seed
        )
        spent, found = cpu(lambda p=plan: ew.play(p, MatrixOracle(A)))
        right += found.report["best"] == best
        seconds += spent
    rows = [("top-two", right / len(seeds), seconds / len(seeds))]
    theirs = banditeval_seconds(A, int(0.05 * A.size), python)
    if theirs is not None:
        rows.append(("banditeval, low-rank rule", float("nan"), theirs))
        bars.at_least("banditeval's CPU / ours", theirs / (seconds / len(seeds)), 20)
    show(
        f"best AlpacaEval model at 5 % of the cells, {len(seeds)} runs",
        ("", "right", "CPU s a run"),
        rows,
    )
    bars.at_least("right winner", right / len(seeds), 0.95)


PEER = """
import sys, time
import numpy as np, torch
torch.set_num_threads(1)
from banditeval.bandits import upper_confidence_bound_exploration_low_rank_factorization as step
A = torch.tensor(np.load(sys.argv[1]), dtype=torch.float32)
seen = torch.full(A.shape, float("nan"))
torch.manual_seed(0)
pick = torch.rand(A.shape) < 0.051
seen[pick] = A[pick]
start = time.process_time()
for _ in range(5):
    i, j = step(seen)
    seen[i, j] = A[i, j]
print((time.process_time() - start) / 5)
"""


def banditeval_seconds(A, budget, python):
    """Return the CPU seconds that banditeval's low-rank rule (batches of 32) takes for `budget` cells after its warm-up.

    Five steps are timed in the Python that has it; None where none is given.
    """
    if python is None:
        print("no --peer: a Python with banditeval and torch installed; its row is left out")
        return None
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, A)
        done = subprocess.run(
            [python, "-c", PEER, file.name], capture_output=True, text=True, check=True
        )
    return float(done.stdout) * budget / 32


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 seeds")
    parser.add_argument(
        "--case", action="append", help="oboe, kiba, alpaca, jester, runtime, coverage, best, round"
    )
    parser.add_argument(
        "--peer", help="a Python that has banditeval, to time its low-rank rule beside ours"
    )
    args = parser.parse_args()
    seeds = SEEDS if not args.quick else SEEDS[:3]
    cases = args.case or [
        "oboe",
        "kiba",
        "alpaca",
        "jester",
        "runtime",
        "coverage",
        "best",
        "round",
    ]
    bars = Bars()
    start = time.time()
    if "oboe" in cases:
        compare(bars, "Oboe", oboe()[0], None, (0.1, 0.2, 0.4), (-7, -11, -3), "uniform", seeds)
    if "kiba" in cases:
        compare(bars, "KIBA", kiba(), None, (0.05, 0.1, 0.2), (-5, -5, -4.5), "uniform", seeds)
    if "alpaca" in cases:
        compare(
            bars, "AlpacaEval", alpaca(), None, (0.05, 0.2, 0.4), (1, -2, -2.5), "uniform", seeds
        )
    if "jester" in cases:
        compare(bars, "Jester", jester(), None, (0.05, 0.1, 0.2, 0.4), (0.7,) * 4, "uniform", seeds)
    if "runtime" in cases:
        compare(
            bars, "Oboe by runtime", *oboe(), (0.005, 0.01, 0.05), (-9, -10, -5), "random", seeds
        )
    if "coverage" in cases:
        for name, A in (
            ("Oboe", oboe()[0]),
            ("KIBA", kiba()),
            ("Jester", jester()),
            ("AlpacaEval", alpaca_filled()),
        ):
            coverage(bars, name, A, None, 0.1, 0.885, 0.915, seeds)
        coverage(bars, "Oboe by runtime", *oboe(), 0.05, 0.87, 0.93, seeds)
    if "best" in cases:
        winners(bars, range(1700, 1724) if not args.quick else range(1700, 1704), args.peer)
    if "round" in cases:
        in_child(one_step, 300, 200, 0.2)  # compiles: what LLVM takes is not the purchase's
        _, memory, (seconds, cells) = in_child(one_step, 5000, 2000, 0.05)
        fit, step, drawn = seconds.T
        best = seconds.min(axis=0)
        show(
            "one step, 5000 x 2000, 5 % known, row prices, a reserve of a tenth",
            ("", "fit, CPU s", "whole step", "step / fit", "reserve drawn, once", "peak MB"),
            [
                ("median", *np.median([fit, step, step / fit, drawn], axis=1), memory / 2**20),
                ("best", best[0], best[1], best[1] / best[0], best[2], ""),
            ],
        )
        ratios = np.median([step / fit, (step + drawn) / fit], axis=1)
        bars.at_most("one step / the fit alone, median of turns", ratios[0], 2.0)
        bars.at_most("the step that draws the reserve / the fit, median of turns", ratios[1], 2.0)
        bars.at_most(
            "peak memory beside 8-byte (cells known and bought + (m + n) q^2)",
            memory / 8 / (cells + 7000 * 49),
            40,
        )
    print(f"{time.time() - start:.0f} s in all")
    bars.end()


if __name__ == "__main__":
    main()
