"""noisy-cur's forecast from a pilot against what its runs then missed: exact ranks, power laws, a real board."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from _trust import Claims
from entrywise.active import noisy_cur
from entrywise.active.two_cost.forecast import forecast_noisy_cur
from entrywise.observations import Observations
from entrywise.oracles import TwoCostOracle
from entrywise.play import play
from entrywise.queries import Prices

KINDS = ("exact rank", "power law .6", "power law 1", "power law 1.5", "drugs and targets")


def board(kind, rng):
    """Return a matrix of unit variance, or of about that."""
    m, n = (int(x) for x in rng.integers(50, 100, 2))
    if kind == "drugs and targets":
        return kiba(m, n, rng)
    if kind == "exact rank":
        k = int(rng.integers(2, 7))
        v = np.full(k, 1.0 / k)
    else:
        v = np.arange(1.0, min(m, n) + 1) ** (-2 * float(kind.split()[-1]))
        v /= v.sum()
    return (rng.standard_normal((m, len(v))) * np.sqrt(v)) @ rng.standard_normal((n, len(v))).T


def kiba(m, n, rng):
    """Return a block of a board of drugs and targets, gaps filled with the means of its targets; None without it."""
    file = Path(os.environ.get("ENTRYWISE_DATA", ".")) / "kiba" / "kiba.npz"
    if not file.exists():
        return None
    with np.load(file, allow_pickle=False) as data:
        A = next(data[k] for k in data.files if data[k].ndim == 2).astype(float)
    A = A if A.shape[0] > A.shape[1] else A.T
    known = np.isfinite(A).sum(axis=1)
    rows = rng.choice(np.argsort(-known)[: 4 * m], m, replace=False)
    cols = rng.choice(A.shape[1], min(n, A.shape[1]), replace=False)
    A = A[np.ix_(rows, cols)]
    A = np.where(np.isfinite(A), A, np.nanmean(A))
    return (A - A.mean()) / A.std()


def forecasts(claims: Claims) -> None:
    inside, above, width = [], [], []
    for kind in KINDS:
        hit, below, kept = [], [], []
        for k in range(claims.problems(8, 1)):
            rng = np.random.default_rng([claims.seed, 15, KINDS.index(kind), k])
            A = board(kind, rng)
            if A is None:
                print("ENTRYWISE_DATA names no folder with kiba/: left out")
                break
            noise = {"column": float(rng.uniform(0.2, 0.5)), "entry": 0.1}
            prices = Prices(column=float(rng.uniform(8, 24)), entry=1.0)
            budget = float(rng.uniform(0.12, 0.35) * A.size)
            known = rng.random(A.shape) < 0.15
            pilot = Observations.from_dense(np.where(known, A + 0.1 * rng.standard_normal(A.shape), np.nan))  # fmt: skip
            said = forecast_noisy_cur(
                A.shape, prices, noise=noise, budget=budget, pilot=pilot, rng=k
            )
            told = dict(zip(said.columns, said.rows[0], strict=True))
            oracle = TwoCostOracle(A, entry_noise=0.1, column_noise=noise["column"], rng=k)
            found = play(noisy_cur(A.shape, prices, noise=noise, budget=budget, rng=k), oracle)
            error = float(np.sqrt(np.mean((found.to_dense() - A) ** 2)))
            hit.append(told["low"] <= error <= told["high"])
            above.append(error > told["high"])
            print(f"{kind}: {told['low']:.3g} to {told['high']:.3g}, {error:.3g}", flush=True)
            below.append(error / told["error"])
            kept.append(told["high"] / told["low"])
        if hit:
            claims.share("forecast", f"error within the range, {kind}", hit)
            claims.figure("forecast", f"error over its middle, {kind} (median)", float(np.median(below)), len(below))  # fmt: skip
        inside += hit
        width += kept
    claims.share("forecast", "error within the range, all", inside, low=0.85)
    claims.share("forecast", "error above the range, all", above)
    claims.figure("forecast", "high over low (median)", float(np.median(width)), len(width), high=4)
