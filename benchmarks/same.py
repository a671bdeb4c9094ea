"""Do two versions of the source ask the same questions and give the same numbers? Run across a change that should not matter.

    PYTHONPATH=OLD/src python benchmarks/same.py dump old.json      # every method of METHODS, fixed seeds, two sizes
    python benchmarks/same.py dump new.json
    python benchmarks/same.py compare old.json new.json

What is compared speaks through public faces only, so that a result may change its fields: questions (rows, columns, mode,
arm, chance), completed entries and their intervals, cost, status, certificates, predictions of learners, report keys and
values. ``compare`` prints a line a difference with its size relative to the scale of the old numbers, and exits 1 where
questions differ or a number is further away than 1e-10.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from entrywise import gallery
from entrywise.exceptions import EntrywiseError
from entrywise.methods import METHODS
from entrywise.oracles import BernoulliOracle, MatrixOracle, StreamOracle, TwoCostOracle
from entrywise.play import play
from entrywise.queries import Prices

SEEDS = (0, 1, 2)
TOLERANCE = 1e-10
RENAMED = {
    "epochs": "rounds",
    "k": "rank",
}  # parameters of the large examples, as the newer source calls them
TWO_COST = {"shape": (60, 45), "prices": Prices(column=12), "budget": 900, "rng": 3}
NOISE = {"noise": {"column": 0.3, "entry": 0.05}}
LARGER = {  # the second size: what the small examples leave out (blocks, growth, calibration, many rounds)
    "adaptive-nystrom": {"n": 150, "rng": 3},
    "literal-adaptive-nystrom": {"n": 150},
    "literal-stochastic-nystrom": {"n": 30, "rank": 3, "epsilon": 0.9, "budget": 9000, "rng": 3},
    "stochastic-nystrom": {"n": 30, "rank": 3, "budget": 9000, "rng": 3},
    "noisy-cur": TWO_COST | NOISE,
    "literal-noisy-cur": TWO_COST | {"columns": 20},
    "cur-plus": TWO_COST | {"columns": 12, "rank": 3},
    "two-phase": {"shape": (60, 45), "budget": 900, "rank": 3, "rng": 3},
    "split-nuclear-norm": TWO_COST | NOISE | {"columns": 20},
    "best-pair": {"n_items": 30, "budget": 9000, "rng": 3},
    "sequential-halving": {"n": 30, "budget": 9000, "rng": 3},
    "uniform-pairs": {"n": 30, "budget": 9000, "rng": 3},
    "successive-elimination": {"n": 20, "budget": 9000, "rng": 3},
    "median-elimination": {"n": 20, "budget": 9000, "rng": 3},
    "lil-ucb": {"n": 20, "budget": 5000, "rng": 3},
    "subspace": {"d": 30, "k": 3, "per_sample": 5, "samples": 900, "epochs": 6, "rng": 3},
    "bandit-subspace": {"d": 20, "k": 2, "samples": 900, "updates": 60, "rng": 3},
    "rank-one": {"shape": (40, 30), "extra": 90, "rng": 3},
    "most-informative": {"shape": (60, 50), "budget": 900, "reserve": 0.2, "rng": 3},
    "top-two": {"shape": (30, 40), "budget": 500, "rng": 3},
    "ucb-e": {"shape": (30, 40), "budget": 400, "batch": 10, "rng": 3},
}


def larger_problem(problem: str, seed: int):
    """Return the gallery's problem, of the larger size."""
    rng = np.random.default_rng([seed, 77])
    if problem == "psd_oracle":
        return MatrixOracle(gallery.random_psd(150, 9, seed, condition=30.0))
    if problem == "coin_oracle":
        return BernoulliOracle(gallery.pair_losses("synthetic", 30, 3, seed), rng=rng)
    if problem == "two_cost_oracle":
        A = gallery.random_low_rank(60, 45, 4, rng)
        return TwoCostOracle(A, entry_noise=0.05, column_noise=0.3, rng=rng)
    if problem == "stream_oracle":
        return StreamOracle(gallery.sample_law("power", 30, 3, seed).draw(2000, rng))
    if problem == "multiplicative_oracle":
        A = np.outer(*gallery.random_rank_one(40, 30, rng))
        return MatrixOracle(A * np.exp(0.05 * rng.standard_normal(A.shape)))
    A = gallery.random_low_rank(60, 50, 3, rng)
    return MatrixOracle(A + 0.3 * rng.standard_normal(A.shape))


class Listening:
    """An oracle that writes down what it is asked."""

    def __init__(self, oracle) -> None:
        self.oracle, self.asked = oracle, []

    def __call__(self, batch):
        """Answer, and keep the question."""
        chance = None if batch.probability is None else batch.probability.tolist()
        arm = None if batch.arm is None else batch.arm.tolist()
        self.asked.append([batch.mode, batch.rows.tolist(), batch.cols.tolist(), arm, chance])
        return self.oracle(batch)

    def __getattr__(self, name):
        return getattr(self.oracle, name)


def numbers(found) -> dict:
    """Return what a result says, through public faces."""
    told = {"status": found.status, "cost": float(found.cost), "report": plain(dict(found.report))}
    told["certificates"] = [
        [c.statement, float(c.value), bool(c.vacuous)] for c in found.certificates
    ]
    if hasattr(found, "entries"):
        m, n = found.shape
        i, j = np.arange(m)[:, None], np.arange(n)[None, :]
        told["entries"] = found.entries(i, j).ravel().tolist()
        if hasattr(found, "interval"):
            for of in ("answer", "truth"):
                try:
                    interval = found.interval(i, j, 0.9, of)
                except EntrywiseError:
                    continue
                told[f"low {of}"] = np.ravel(interval.low).tolist()
    for name in ("components", "explained_variance", "pair", "residual", "pivots"):
        if getattr(found, name, None) is not None:
            told[name] = np.ravel(np.asarray(getattr(found, name), float)).tolist()
    return told


def plain(value):
    """Return a report as JSON would write it."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def one(method, seed: int, large: bool) -> dict:
    """Run one method and return what it asked and found."""
    make = getattr(gallery, method.problem)
    params = dict(method.example)
    if large:
        params = LARGER.get(method.name, params)
        takes = inspect.signature(method.load()).parameters
        params = {k if k in takes else RENAMED[k]: v for k, v in params.items()}
    if method.room == "active":
        oracle = Listening(larger_problem(method.problem, seed) if large else make(seed))
        if large and method.name in ("successive-elimination", "median-elimination", "lil-ucb"):
            coins = np.random.default_rng(seed)
            oracle = Listening(
                BernoulliOracle(gallery.pair_losses("synthetic", 20, 2, seed), rng=coins)
            )
        if large and method.name == "bandit-subspace":
            law = gallery.sample_law("power", 20, 2, seed)
            oracle = Listening(StreamOracle(law.draw(2000, np.random.default_rng(seed))))
        found = play(method.load()(**params), oracle)
        return {"asked": oracle.asked, **numbers(found)}
    if method.room == "passive":
        if "rng" in inspect.signature(method.load()).parameters:
            params.setdefault("rng", 3)
        return numbers(method.load()(make(seed), **params))
    learner, said = method.load()(**params), []
    trials = (
        gallery.bicluster_trials(40, 30, 3, 4, 0.05, seed)
        if large and not params.keys() & {"shape", "kernel"}  # these say its size
        else make(seed)
    )
    for i, j, y in trials:
        said.append(int(learner.predict(i, j)))
        learner = learner.learn(i, j, y)
    return {"predictions": said}


def dump(path: str) -> None:
    """Run everything and write it down."""
    warnings.simplefilter("ignore")
    found = {}
    for method in METHODS:
        sizes = (False,) if method.room == "passive" else (False, True)
        for large in sizes:
            for seed in SEEDS:
                key = f"{method.room} {method.name} {'large' if large else 'small'} {seed}"
                found[key] = one(method, seed, large)
        print(method.room, method.name, file=sys.stderr, flush=True)
    Path(path).write_text(json.dumps(found))


def away(old, new) -> float:
    """Return the largest distance of two nested values relative to the scale of the old; inf where they are of two kinds."""
    if isinstance(old, dict) and isinstance(new, dict):
        return max((away(old[k], new[k]) for k in old.keys() & new.keys()), default=0.0)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return np.inf
        if old and all(isinstance(x, int | float) for x in [*old, *new]):
            a, b = np.array(old, float), np.array(new, float)
            if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                return np.inf
            a, b = a[np.isfinite(a)], b[np.isfinite(b)]
            return float(
                np.max(np.abs(a - b), initial=0.0) / max(np.max(np.abs(a), initial=0.0), 1e-300)
            )
        return max((away(x, y) for x, y in zip(old, new, strict=True)), default=0.0)
    if isinstance(old, float) and isinstance(new, float):
        return (
            0.0
            if old == new or (old != old and new != new)
            else abs(old - new) / max(abs(old), 1e-300)
        )
    return 0.0 if old == new else np.inf


def one_style(report: dict) -> dict:
    """Return a report with keys in lower case and underscores, as they are written now."""
    return {key.lower().replace(" ", "_"): value for key, value in report.items()}


def compare(before: str, after: str) -> int:
    """Print what differs; return how many differences are above the tolerance."""
    old, new = json.loads(Path(before).read_text()), json.loads(Path(after).read_text())
    bad, close, exact = 0, 0, 0
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new:
            print(f"{key}: only in {'the old' if key in old else 'the new'}")
            continue
        worst = 0.0
        for what in sorted(old[key].keys() | new[key].keys()):
            if what == "report":
                old[key]["report"] = one_style(old[key]["report"])
                new[key]["report"] = one_style(new[key]["report"])
                lost = sorted(old[key]["report"].keys() ^ new[key]["report"].keys())
                if lost:
                    print(f"{key}: report keys that are in one alone: {', '.join(lost)}")
            both = what in old[key] and what in new[key]
            gap = away(old[key][what], new[key][what]) if both else np.inf
            if gap > 0:
                print(f"{key}: {what} differs by {gap:.1e}")
            worst = max(worst, gap)
        bad, close, exact = (
            bad + (worst > TOLERANCE),
            close + (0 < worst <= TOLERANCE),
            exact + (worst == 0),
        )
    print(f"{exact} identical, {close} within {TOLERANCE:g}, {bad} further away")
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["dump"] and len(sys.argv) == 3:
        dump(sys.argv[2])
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
        sys.exit(compare(*sys.argv[2:]) > 0)
    else:
        sys.exit(__doc__)
