"""Completion of given entries beside its peers: error, CPU seconds, memory, coverage, in one run.

make bench NAME=completion                  synthetic 2000 x 1000, MovieLens-100K, Jester, AlpacaEval, coverage
make bench NAME=completion ARGS=--large     also 50k x 20k with 5M entries
make bench NAME=completion ARGS=--huge      also 1e6 x 1e6 with 1e7 entries, rank 10
make bench NAME=completion ARGS="--only whole --before OTHER/src"    ew.complete of 20M entries, wall time on all cores,
                                            beside an earlier version's sources and cmfrec
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from _shared import Bars, in_child, show

LAMBDAS = {  # cmfrec's grids of five, placed so that its best is inside
    "small": (0.02, 0.1, 0.5, 2.0, 10.0),
    "large": (0.02, 0.1, 0.5, 2.0, 10.0),
    "movielens": (2.0, 5.0, 10.0, 15.0, 30.0),
    "jester": (60.0, 150.0, 400.0, 1000.0, 2500.0),
    "alpaca": (0.5, 2.0, 5.0, 10.0, 30.0),
}
SEEDS = (70101, 70102, 70103)  # never used for tuning


def synthetic(m, n, rank, known, test, noise, seed):
    """Return (rows, cols, values) to fit and to test on: rank `rank`, biases of sd 0.5, noise."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank)) / np.sqrt(rank)
    b, c = 0.5 * rng.standard_normal(m), 0.5 * rng.standard_normal(n)
    key = np.unique(rng.integers(m * n, size=int(1.1 * (known + test)) + 100))
    key = rng.permutation(key)[: known + test]
    i, j = key // n, key % n
    y = np.empty(len(i))
    for s in range(0, len(i), 2**20):
        at = slice(s, s + 2**20)
        y[at] = np.einsum("tk,tk->t", U[i[at]], V[j[at]]) + b[i[at]] + c[j[at]] + 3.0
    y += noise * rng.standard_normal(len(y))
    return (i[:known], j[:known], y[:known]), (i[known:], j[known:], y[known:])


def real(name, seed):
    """Return a 90/10 split of a real matrix and its shape."""
    from entrywise import datasets

    seen = {
        "movielens": datasets.movielens_100k,
        "jester": lambda: datasets.jester(),
        "alpaca": datasets.alpaca_eval,
    }[name]()
    kept, held = seen.split(0.1 if name != "alpaca" else 0.5, np.random.default_rng(seed))
    return (kept.rows, kept.cols, kept.values), (held.rows, held.cols, held.values), seen.shape


def data(what, seed):
    if what == "small":
        return *synthetic(2000, 1000, 10, 200_000, 50_000, 0.1, seed), (2000, 1000)
    if what == "large":
        return *synthetic(50_000, 20_000, 10, 5_000_000, 200_000, 0.1, seed), (50_000, 20_000)
    return real(what, seed)


def error(guess, truth):
    return float(np.sqrt(np.mean((guess - truth) ** 2)))


# Each method runs in a fresh process on its own kind of input, made before the clock starts. Imports and compilation, which
# happen once per machine, are done on a tiny problem first; seconds are the fit's CPU alone. Memory: peak of the process.


class Ours:
    """low_rank on Observations."""

    name = "entrywise"

    @staticmethod
    def given(train, shape):
        """Return the input of the fit."""
        from entrywise.observations import Observations

        return Observations(*train, shape)

    @staticmethod
    def fit(seen, rank=None):
        """Return a function that predicts, and facts about the fit."""
        from entrywise.passive import low_rank

        found = low_rank(seen, rank)
        return found.entries, {"rank": found.rank, "sweeps": found.report["sweeps"]}


class Cmfrec:
    """CMF by ALS, its defaults but for the penalty."""

    name = "cmfrec"

    @staticmethod
    def given(train, shape):
        """Return the input of the fit."""
        import pandas as pd

        return pd.DataFrame(
            {
                "UserId": train[0].astype(np.int32),
                "ItemId": train[1].astype(np.int32),
                "Rating": train[2],
            }
        )

    @staticmethod
    def fit(frame, rank=10, penalty=10.0, iterations=10):
        """Return a function that predicts, and facts about the fit."""
        from cmfrec import CMF

        model = CMF(k=rank, lambda_=penalty, niter=iterations, nthreads=1, verbose=False)
        model.fit(frame)
        return (lambda i, j: np.asarray(model.predict(i, j), float)), {}


class Surprise:
    """SVD by stochastic gradient."""

    name = "surprise SVD"

    @staticmethod
    def given(train, shape):
        """Return the input of the fit."""
        import pandas as pd
        from surprise import Dataset, Reader

        frame = pd.DataFrame({"u": train[0], "i": train[1], "r": train[2]})
        span = (float(train[2].min()), float(train[2].max()))
        return Dataset.load_from_df(frame, Reader(rating_scale=span)).build_full_trainset()

    @staticmethod
    def fit(trainset, rank=10, epochs=100):
        """Return a function that predicts, and facts about the fit."""
        from surprise import SVD

        model = SVD(n_factors=rank, n_epochs=epochs, random_state=0)
        model.fit(trainset)
        return (
            lambda i, j: np.array([model.predict(a, b).est for a, b in zip(i, j, strict=True)])
        ), {}


class SoftImpute(Ours):
    """softImpute-ALS, its penalty chosen on held-out entries."""

    name = "softImpute-ALS (ours)"

    @staticmethod
    def fit(seen, rank=20):
        """Return a function that predicts, and facts about the fit."""
        from entrywise.passive import soft_impute

        sweeps = 200 if len(seen) < 10**6 else 60
        found = soft_impute(
            seen, max_rank=min(rank, *seen.shape), max_sweeps=sweeps, tol=1e-5, steps=8
        )
        return found.entries, {"rank": found.rank}


FANCY = """
import resource, sys, time
import numpy as np
from fancyimpute import SoftImpute
file = np.load(sys.argv[1])
X = np.full(file["shape"], np.nan)
X[file["i"], file["j"]] = file["y"]
start = time.process_time()
filled = SoftImpute(verbose=False).fit_transform(X)
seconds = time.process_time() - start
error = np.sqrt(np.mean((filled[file["ti"], file["tj"]] - file["ty"]) ** 2))
print(error, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def fancyimpute(python, what, seed):
    """Run fancyimpute's SoftImpute, its defaults, in a Python that still has versions it works with."""
    if python is None:
        return (
            None,
            "",
            "",
            "",
            "no --fancyimpute: a Python with fancyimpute 0.7.0, scikit-learn < 1.6, numpy < 2",
        )
    train, test, shape = data(what, seed)
    if np.prod(shape) > 1e8:
        return None, "", "", "", f"not run: it makes several dense {shape[0]} x {shape[1]} arrays"
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        named = dict(zip(("i", "j", "y", "ti", "tj", "ty"), (*train, *test), strict=True))
        np.savez(file.name, shape=np.array(shape), **named)
        done = subprocess.run([python, "-c", FANCY, file.name], capture_output=True, text=True)
    if done.returncode:
        return None, "", "", "", done.stderr.strip().splitlines()[-1]
    return *map(float, done.stdout.split()), "", ""


def job(peer, what, seed, kwargs):
    """Run in a child: warm up on a tiny problem, then fit and test; return RMSE, CPU seconds, peak and extra MB, facts."""
    tiny, _ = synthetic(60, 40, 2, 1000, 10, 0.1, 0)
    peer.fit(peer.given(tiny, (60, 40)), **{k: 2 if k == "rank" else v for k, v in kwargs.items()})
    train, test, shape = data(what, seed)
    given = peer.given(train, shape)
    del train
    base, peak, done = _rss(), 0, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, _rss())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.process_time()
    predict, facts = peer.fit(given, **kwargs)
    seconds = time.process_time() - start
    done.set()
    watcher.join()
    guess = np.concatenate(
        [
            predict(test[0][s : s + 2**18], test[1][s : s + 2**18])
            for s in range(0, len(test[0]), 2**18)
        ]
    )
    return (
        error(guess, test[2]),
        seconds,
        max(peak, base) / 2**20,
        (max(peak, base) - base) / 2**20,
        facts,
    )


def _rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(peer, what, seed, **kwargs):
    found = in_child(job, peer, what, seed, kwargs)[2]
    print(what, seed, peer.name, kwargs, *found, flush=True)
    return found


def against_peers(what, seeds, bars, python=None):
    rows, ratios = [], []
    for seed in seeds:
        auto, given = run(Ours, what, seed), run(Ours, what, seed, rank=10)
        grid = [run(Cmfrec, what, seed, penalty=p) for p in LAMBDAS[what]]
        best = min(grid, key=lambda g: g[0])
        rows.append((seed, "entrywise, rank chosen", *auto))
        rows.append((seed, "entrywise, rank 10", *given))
        rows += [
            (seed, f"cmfrec, lambda {p:g}", *g) for p, g in zip(LAMBDAS[what], grid, strict=True)
        ]
        total = sum(g[1] for g in grid)
        rows.append(
            (
                seed,
                "cmfrec, best of its grid",
                best[0],
                total,
                best[2],
                best[3],
                "seconds of all five",
            )
        )
        ratios.append(
            (
                auto[0] / best[0],
                auto[1] / total,
                given[1] / np.mean([g[1] for g in grid]),
                auto[2] / best[2],
            )
        )
        if seed == seeds[0]:
            penalty = LAMBDAS[what][[g[0] for g in grid].index(best[0])]
            longer = run(Cmfrec, what, seed, penalty=penalty, iterations=30)
            rows.append((seed, "cmfrec, 30 iterations, best lambda", *longer))
            for name, found in (
                *((peer.name, run(peer, what, seed)) for peer in (Surprise, SoftImpute)),
                ("fancyimpute SoftImpute", fancyimpute(python, what, seed)),
            ):
                if found[0] is None:
                    rows.append((seed, name, "does not run", "", "", "", found[4]))
                    continue
                rows.append((seed, name, *found))
                bars.at_most(f"{what}: RMSE / {name}", auto[0] / found[0], 1.0)
    show(
        f"{what}: test RMSE, CPU seconds, peak and extra MB",
        ("seed", "method", "RMSE", "CPU s", "MB", "extra MB", ""),
        rows,
    )
    names = (
        "RMSE / cmfrec's best",
        "whole job / cmfrec's grid, CPU",
        "one fit / one cmfrec fit, CPU",
        "peak memory / cmfrec",
    )
    for k, (name, bar) in enumerate(zip(names, (1.005, 0.5, 1.5, 1.35), strict=True)):
        bars.at_most(f"{what}: {name} (worst seed)", max(r[k] for r in ratios), bar)


def on_real_data(bars, quick):
    rows, films = [], []
    cases = [("movielens", s) for s in range(70010, 70012 if quick else 70015)] + [
        ("jester", 70020),
        ("alpaca", 70021),
    ]
    for what, seed in cases:
        mine = run(Ours, what, seed)
        grid = [run(Cmfrec, what, seed, penalty=p)[0] for p in LAMBDAS[what]]
        other = run(Surprise, what, seed, epochs=20)[0] if seed in (70010, 70021) else ""
        best = LAMBDAS[what][int(np.argmin(grid))]
        rows.append(
            (what, seed, mine[0], min(grid), other, mine[4], f"cmfrec's best lambda {best:g}")
        )
        print(*rows[-1], flush=True)
        if what == "movielens":
            films.append(mine[0])
    show(
        "real data: test RMSE (AlpacaEval: half held out)",
        ("data", "seed", "entrywise", "cmfrec's best", "surprise", "", ""),
        rows,
    )
    bars.at_most(f"MovieLens-100K: mean RMSE of {len(films)} splits", float(np.mean(films)), 0.905)


def covers(seed, kind):
    """Return (coverage, coverage in the sparsest quartile of rows, mean width) of 90 % intervals."""
    from entrywise import datasets
    from entrywise.intervals import conformal
    from entrywise.metrics import coverage, coverage_by_count, mean_width
    from entrywise.observations import Observations

    rng = np.random.default_rng(seed)
    if kind == "movielens":
        kept, held = datasets.movielens_100k().split(0.1, rng)
    else:
        m, n, rank, known, noise = kind
        thin = rng.random(m) ** 2 + 0.1  # rows are known to very different degrees
        U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank)) / np.sqrt(rank)
        A = U @ V.T + 0.5 * rng.standard_normal((m, 1)) + 0.5 * rng.standard_normal(n)
        cells = rng.choice(
            m * n, size=known + 20_000, replace=False, p=np.repeat(thin / thin.sum() / n, n)
        )
        i, j = cells // n, cells % n
        y = A[i, j] + noise * rng.standard_normal(len(i))
        seen = Observations(i, j, y, (m, n))
        at = rng.permutation(len(i))
        kept, held = seen.take(at[20_000:]), seen.take(at[:20_000])
    found = conformal(kept, rng=seed)
    return (
        coverage(found, held),
        coverage_by_count(found, held)[0],
        mean_width(found, held),
        found.rank,
    )


def intervals(bars):
    kinds = [
        (500, 300, r, t, s)
        for r, t, s in ((3, 20_000, 0.3), (5, 30_000, 0.1), (2, 12_000, 1.0), (8, 40_000, 0.5))
    ] * 2
    rows = []
    for k, kind in enumerate([*kinds, "movielens", "movielens"]):
        found = covers(71030 + k, kind)
        rows.append((str(kind), 71030 + k, *found))
    show(
        "90 % intervals on held-out entries",
        ("data", "seed", "coverage", "sparsest quartile", "width", "rank"),
        rows,
    )
    for row in rows:
        bars.at_least(f"coverage {row[0]} {row[1]}", row[2], 0.885)
        bars.at_most(f"coverage {row[0]} {row[1]}", row[2], 0.915)
        bars.at_least(f"coverage {row[0]} {row[1]}, sparsest quartile of rows", row[3], 0.87)


def huge():
    """Fit 1e6 x 1e6 with 1e7 entries; return error and peak bytes of the whole process."""
    from entrywise.observations import Observations
    from entrywise.passive import low_rank

    train, test = synthetic(10**6, 10**6, 10, 10**7, 10**5, 0.1, 70050)
    found = low_rank(Observations(*train, (10**6, 10**6)), 10, max_sweeps=15)
    guess = found.entries(test[0], test[1])
    return (
        error(guess, test[2]),
        float(np.std(test[2])),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )


def whole_child(who, known):
    """Complete `known` entries of 200k x 20k as a user does; return wall seconds, peak MB of the process, and facts."""
    shape = (200_000, 20_000) if known > 5_000_000 else (50_000, 10_000)
    tiny, _ = synthetic(400, 300, 2, 60_000, 10, 0.1, 0)
    train, test = synthetic(*shape, 10, known, 100_000, 0.1, 70060)
    peer = Cmfrec if who == "cmfrec" else Ours
    given = peer.given(train, shape)
    del train
    if who == "cmfrec":
        start = time.perf_counter()
        predict, facts = peer.fit(given, penalty=0.5)
    else:
        import entrywise as ew

        ew.complete(Ours.given(tiny, (400, 300)))  # compiled, or loaded
        start = time.perf_counter()
        found = ew.complete(given)
        predict, facts = found.entries, {"rank": found.rank, "sweeps": found.report["sweeps"]}
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    guess = np.asarray(predict(test[0], test[1]))
    return {"seconds": seconds, "MB": peak, "RMSE": error(guess, test[2]), **facts}


def whole_run(who, known, source=None):
    """Run :func:`whole_child` in a process of its own, with the package from `source`."""
    path = [source] if source else []
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([*path, *sys.path]))
    call = [sys.executable, __file__, "--child", who, str(known)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    print(who, source or "", found, flush=True)
    return found


def whole(bars, known, before, turns):
    """Time all of ew.complete against an earlier version, in turn, and its memory against cmfrec's."""
    found = {"now": [], "before": []}
    for _ in range(turns):
        found["now"].append(whole_run("now", known))
        if before:
            found["before"].append(whole_run("before", known, before))
    peer = whole_run("cmfrec", known)
    rows = [
        (name, min(r["seconds"] for r in runs), max(r["MB"] for r in runs), runs[0]["RMSE"])
        for name, runs in (*found.items(), ("cmfrec, one thread, one penalty", [peer]))
        if runs
    ]
    show(f"ew.complete of {known:,} entries", ("", "wall s", "peak MB", "RMSE"), rows)
    if before:
        ratio = rows[0][1] / rows[1][1]
        bars.at_most("wall seconds / before", ratio, 0.8)
    bars.at_most("peak memory of the process / cmfrec's", rows[0][2] / rows[-1][2], 2.0)
    bars.at_most("RMSE / cmfrec's", rows[0][3] / rows[-1][3], 1.005)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--before", help="sources of an earlier version, for whole")
    parser.add_argument("--known", type=int, default=20_000_000, help="entries, for whole")
    parser.add_argument("--turns", type=int, default=1, help="runs of each, for whole")
    parser.add_argument("--quick", action="store_true", help="one synthetic seed, two splits")
    parser.add_argument("--large", action="store_true", help="also 50k x 20k with 5M entries")
    parser.add_argument("--huge", action="store_true", help="also 1e6 x 1e6 with 1e7 entries")
    parser.add_argument(
        "--only",
        choices=["small", "real", "intervals", "large", "huge", "whole"],
        help="one part alone",
    )
    parser.add_argument(
        "--fancyimpute", help="a Python with fancyimpute 0.7.0, scikit-learn < 1.6 and numpy < 2"
    )
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(whole_child(asked.child[0], int(asked.child[1]))))
        return
    bars = Bars()
    parts = (
        {asked.only}
        if asked.only
        else {"small", "real", "intervals"}
        | ({"large"} if asked.large else set())
        | ({"huge"} if asked.huge else set())
    )
    if "whole" in parts:
        whole(bars, asked.known, asked.before, asked.turns)
    if "small" in parts:
        against_peers("small", SEEDS[:1] if asked.quick else SEEDS, bars, asked.fancyimpute)
    if "real" in parts:
        on_real_data(bars, asked.quick)
    if "intervals" in parts:
        intervals(bars)
    if "large" in parts:
        against_peers("large", SEEDS[:1], bars, asked.fancyimpute)
    if "huge" in parts:
        found = in_child(huge)
        show(
            "1e6 x 1e6, 1e7 entries, rank 10",
            ("RMSE", "sd of the test values", "peak GB of the process", "CPU s"),
            [(*found[2], found[0])],
        )
        bars.at_most("1e6 x 1e6: peak GB", found[2][2], 8.0)
    bars.end()


if __name__ == "__main__":
    main()
