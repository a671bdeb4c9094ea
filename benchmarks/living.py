"""Studies that live: known history, workers who never wait, plates; simulated, without a database.

RMSE on 10 % of the cells that nobody may buy. make bench NAME=living [ARGS="--quick --case history"]
"""

from __future__ import annotations

import argparse
import heapq
import time

import numpy as np

import entrywise as ew
from _shared import Bars, show
from entrywise.active import most_informative
from entrywise.budget import Ledger
from entrywise.oracles import MatrixOracle
from entrywise.queries import History
from entrywise.run import Run
from informative import jester, kiba

SEEDS = range(2600, 2610)  # not used for choosing anything
KNOWN = 0.2  # share of the cells that is known beforehand
BUDGETS = (0.02, 0.05, 0.1, 0.15, 0.2)  # of the cells, beside those
WORKERS, SIGMA = 16, 1.5  # people at work, and the spread of the logarithm of their times
FRESH = range(2700, 2705)  # for plates, whose rule was chosen on seeds 0-5
PLATES = {
    "free": None,
    "half full or more": {"size": 96, "per": "col"},
    "full": {"size": 96, "per": "col", "fill": 1.0},
}
SPENDS = (0.4, 0.6, 0.8, 1.0)  # of the budget, at which errors are compared


def split(A, seed, share):
    """Return (held, known) cells: nobody may buy the first, everybody has the second."""
    there = ~np.isnan(A)
    draw = np.random.default_rng(10_000 + seed).random(A.shape)
    held = there & (draw < 0.1)
    return held, there & ~held & (draw < 0.1 + 0.9 * share)


def rmse(found, A, held):
    i, j = np.nonzero(held)
    return float(np.sqrt(np.mean((found.entries(i, j) - A[i, j]) ** 2)))


def history(bars, name, A, seeds):
    """A plan that is given cells, beside one that had bought them itself, and beside completing them alone."""
    oracle = MatrixOracle(np.nan_to_num(A))
    errors = {"known": [], "bought": [], "complete": []}
    for seed in seeds:
        held, known = split(A, seed, KNOWN)
        i, j = np.nonzero(known)
        given = ew.Observations.from_triplets(i, j, A[i, j], A.shape)
        told = History(i, j, A[i, j], price=np.ones(len(i)), arm=np.full(len(i), "random"))
        may = ~np.isnan(A) & ~held
        alone = rmse(ew.complete(given), A, held)
        rows = {"known": [], "bought": [], "complete": []}
        for share in BUDGETS:
            money = float(int(share * np.sum(~np.isnan(A))))
            plan = most_informative(A.shape, budget=money, available=may, rng=seed)
            rows["known"].append(rmse(ew.play(plan, oracle, known=given), A, held))
            plan = most_informative(A.shape, budget=money + len(i), available=may, rng=seed)
            ledger = Ledger(money + len(i))
            ledger.charge(float(len(i)))
            run = Run(plan, history=told, ledger=ledger)
            rows["bought"].append(rmse(ew.play(run, oracle), A, held))
            rows["complete"].append(alone)
        for key, values in rows.items():
            errors[key].append(values)
    mean = {key: np.mean(values, axis=0) for key, values in errors.items()}
    show(
        f"{name}: {KNOWN:.0%} known, held-out RMSE, {len(seeds)} seeds",
        (
            "more cells",
            "complete alone",
            "plan, cells known",
            "plan, cells bought",
            "known / bought",
        ),
        [
            (f"{share:.0%}", c, k, b, k / b)
            for share, c, k, b in zip(
                BUDGETS, mean["complete"], mean["known"], mean["bought"], strict=True
            )
        ],
    )
    for share, c, k, b in zip(
        BUDGETS, mean["complete"], mean["known"], mean["bought"], strict=True
    ):
        bars.at_most(f"{name}, +{share:.0%}: plan / completing the known alone", k / c, 1.0)
        bars.at_most(f"{name}, +{share:.0%}: cells known / cells bought", k / b, 1.01)


def simulate(run, A, rng, filtered, chunk, looks, error_of):
    """Let workers with log-normal times answer a run; return (busy share, errors at some spends).

    A worker takes up to `chunk` questions at a time and tells them when all are measured. Busy is counted
    until the last question is handed out.
    """
    m = A.shape[0]
    rows = [np.arange(w, m, WORKERS) if filtered else None for w in range(WORKERS)]
    out, clock, found = set(), 0.0, {}
    idle_since = dict.fromkeys(range(WORKERS), 0.0)
    idle, last = 0.0, 0.0
    coming = []

    def hand_out():
        nonlocal idle, last
        for w in list(idle_since):
            here = [k for k in out if not filtered or run.batch.rows[k] % WORKERS == w]
            run.ask(len(here) + chunk, rows=rows[w])
            if run.finished:
                return
            mine = [k for k in run.fitting(rows[w]).tolist() if k not in out][:chunk]
            if not mine:
                continue
            out.update(mine)
            took = float(np.sum(rng.lognormal(0.0, SIGMA, len(mine))))
            heapq.heappush(coming, (clock + took, w, mine))
            idle += clock - idle_since.pop(w)
            last = clock

    hand_out()
    while coming:
        clock, w, mine = heapq.heappop(coming)
        idle_since[w] = clock
        at = np.array(mine)
        out.difference_update(mine)
        run.tell(A[run.batch.rows[at], run.batch.cols[at]], at)
        for look in looks:
            if run.ledger.spent >= look * run.ledger.budget and look not in found:
                found[look] = error_of(run.result if run.finished else run.result_so_far())
        if not run.finished:
            hand_out()
    waited = idle + sum(max(0.0, last - since) for since in idle_since.values())
    return 1.0 - waited / (WORKERS * max(last, 1e-12)), [found[look] for look in looks]


def synchronous(run, A, looks, error_of):
    found = {}
    while (batch := run.ask()) is not None:
        run.tell(A[batch.rows, batch.cols])
        for look in looks:
            if run.ledger.spent >= look * run.ledger.budget and look not in found:
                found[look] = error_of(run.result if run.finished else run.result_so_far())
    return [found[look] for look in looks]


def workers(bars, name, A, share, seeds, filtered, chunk):
    busy, ratios = [], []
    B = np.nan_to_num(A)
    for seed in seeds:
        held, _ = split(A, seed, 0.0)
        may = ~np.isnan(A) & ~held
        money = float(int(share * np.sum(~np.isnan(A))))
        plan = most_informative(A.shape, budget=money, available=may, rng=seed)

        def error_of(found, held=held):
            return rmse(found, A, held)

        base = synchronous(Run(plan), B, SPENDS, error_of)
        run = Run(plan)
        rng = np.random.default_rng(seed)
        at_work, errors = simulate(run, B, rng, filtered, chunk, SPENDS, error_of)
        again = Run.replay(plan, run.steps)
        assert np.array_equal(again.result.left, run.result.left), "the replay differs"
        busy.append(at_work)
        ratios.append(np.array(errors) / np.array(base))
    mean = np.mean(ratios, axis=0)
    what = f"{name}, {'rows of their own' if filtered else 'any cell'}, {chunk} at a time"
    show(
        f"{what}: {WORKERS} workers, {len(seeds)} seeds",
        ("busy", *(f"error at {look:.0%}" for look in SPENDS)),
        [(float(np.mean(busy)), *mean.tolist())],
    )
    bars.at_least(f"{what}: busy until the last question is out", float(np.mean(busy)), 0.95)
    bars.at_most(f"{what}: error at equal spend / synchronous", float(mean.max()), 1.05)


def plates(bars, seeds):
    """Plates of 96 wells on one target, full and filled as the plan likes, beside its free choice of cells."""
    A = kiba()
    oracle = MatrixOracle(np.nan_to_num(A))
    rows = []
    for share in (0.05, 0.15, 0.3):
        errors, used = {}, {}
        for seed in seeds:
            held, _ = split(A, seed, 0.0)
            may = ~np.isnan(A) & ~held
            money = float(int(share * np.sum(~np.isnan(A))))
            for key, plate in PLATES.items():
                plan = most_informative(A.shape, budget=money, available=may, plate=plate, rng=seed)
                run = Run(plan)
                errors.setdefault(key, []).append(rmse(ew.play(run, oracle), A, held))
                if plate is not None:
                    used.setdefault(key, []).append(_wells(run.facts))
        free = np.mean(errors.pop("free"))
        for key, found in errors.items():
            ratio = float(np.mean(found) / free)
            wells = float(np.mean(used[key]))
            rows.append((f"{share:.0%}", key, free, float(np.mean(found)), ratio, wells))
            bars.at_most(
                f"KIBA, plates of 96, {key}, {share:.0%}: error / free choice", ratio, 1.15
            )
    show(
        f"KIBA in plates of 96 on one target, {len(seeds)} seeds",
        ("spend", "plates", "free choice", "error", "ratio", "wells used a plate"),
        rows,
    )


def _wells(told):
    """Return how many wells of a plate were used on average; all of one target."""
    numbers = np.unique(told.plate)
    for number in numbers:
        here = told[told.plate == number]
        assert len(here) <= 96
        assert len(np.unique(here.cols)) == 1
    return len(told) / len(numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 seeds")
    parser.add_argument("--case", action="append", help="history, workers, plates")
    args = parser.parse_args()
    seeds = SEEDS if not args.quick else SEEDS[:3]
    cases = args.case or ["history", "workers", "plates"]
    bars = Bars()
    start = time.time()
    if "history" in cases:
        history(bars, "KIBA", kiba(), seeds)
        history(bars, "Jester", jester(), seeds)
    if "workers" in cases:
        workers(bars, "Jester", jester(), 0.15, seeds, filtered=False, chunk=1)
        workers(bars, "KIBA", kiba(), 0.1, seeds, filtered=False, chunk=5)
        small = jester()[:96, :50]  # a step for each ask: rows of their own share no queue
        workers(bars, "Jester, a block", small, 0.2, seeds, filtered=True, chunk=3)
        workers(bars, "KIBA", kiba(), 0.1, seeds, filtered=True, chunk=32)
    if "plates" in cases:
        plates(bars, FRESH[: len(seeds)])
    print(f"{time.time() - start:.0f} s in all")
    bars.end()


if __name__ == "__main__":
    main()
