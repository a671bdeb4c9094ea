"""Which entries next, on real matrices: error against spend for every rule, winners, coverage.

Models by data sets (Oboe, at price one and at runtimes), drugs by kinases (KIBA), language models by instructions
(AlpacaEval), readers by jokes (Jester), senators by votes. Errors are on cells that no rule may buy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrywise import datasets, plot
from entrywise.active import most_informative, top_two
from entrywise.active.cells.ucb_e import ucb_e
from entrywise.apply.leaderboard import Bought, scores
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.queries import Prices
from entrywise.reproduce.figures import Claim, Drawing, Figure
from entrywise.run import Run
from entrywise.types import Array

RULES = ("uniform", "random", "balanced", "leverage", "variance", "committee", "gain")
TITLE = "which entries next, on real matrices"
REFERENCE = "No paper: the rules of this project against controls, on cells that no rule may buy."
TUNING = "The rules have no parameter that was searched here; seeds 900 and on were used for nothing else."


def matrices(quick: bool) -> dict[str, tuple[Array, Array | None, tuple[float, ...]]]:
    """Return name -> (matrix with NaN where unknown, prices or None, shares of the whole to spend)."""
    few = (0.1, 0.2) if quick else (0.05, 0.1, 0.2, 0.4)
    seen, runtime = datasets.oboe()
    error = seen.to_dense()
    dense = datasets.kiba()[0].to_dense()
    dense = dense[
        np.argsort(-np.sum(~np.isnan(dense), axis=1), kind="stable")[: 150 if quick else 500]
    ]
    dense = dense[:, np.argsort(-np.sum(~np.isnan(dense), axis=0), kind="stable")[:163]]
    jester = datasets.jester(complete_rows=True).to_dense()[: 150 if quick else 500]
    if quick:
        error, runtime = error[:120], runtime[:120]
    return {
        "oboe": (error, None, few),
        "oboe by runtime": (error, runtime, (0.005, 0.01) if quick else (0.001, 0.005, 0.01, 0.05)),
        "kiba": (dense, None, few),
        "alpaca-eval": (datasets.alpaca_eval().to_dense(), None, few),
        "jester": (jester, None, few),
        "senate": (datasets.votes("senate").to_dense(), None, few),
    }


def spend(work: Drawing) -> list[Claim]:
    """Draw the error against spend for every rule on every matrix."""
    cases = matrices(work.quick)
    seeds = range(900, 902) if work.quick else range(900, 905)
    rules = ("uniform", "random", "gain") if work.quick else RULES
    figure, axes = plot.figure(columns=3, rows=2, width=4.4, height=3.4)
    table, claims = [], []
    for axis, (name, (A, price, shares)) in zip(axes.ravel(), cases.items(), strict=True):
        errors = _errors(A, price, shares, rules, seeds)
        work.say(f"  {name}")
        for k, share in enumerate(shares):
            for rule, e in ((rule, every[k]) for rule, every in errors.items()):
                table.append((name, rule, share, float(e.mean()), float(e.std() / len(e) ** 0.5)))
        _draw_spend(axis, name, shares, errors)
        fair = "uniform" if price is None else "random"
        change = 100 * (np.mean(errors["gain"] / errors[fair], axis=1) - 1)
        claims.append(
            Claim(
                "spend",
                f"{name}: buying by gain beats {fair} buying",
                ", ".join(f"{c:+.1f} %" for c in change),
                bool(np.mean(change) < 0),
                "",
                f"{A.shape[0]} x {A.shape[1]}, {len(seeds)} runs",
            )
        )
    axes[0, 0].legend(fontsize=7, frameon=False)
    work.picture("spend.png", figure)
    work.csv("spend.csv", ("matrix", "rule", "share", "rmse", "standard error"), table)
    return claims


def _errors(A: Array, price: Array | None, shares: Any, rules: Any, seeds: Any) -> dict[str, Array]:
    """Return the errors of each rule, shape (shares, seeds)."""
    known = ~np.isnan(A)
    whole = float(known.sum()) if price is None else float(price[known].sum())
    budgets = [float(np.floor(share * whole)) for share in shares]
    return {
        rule: np.array([[_error(A, price, known, rule, b, s) for s in seeds] for b in budgets])
        for rule in rules
    }


def _draw_spend(axis: Any, name: str, shares: Any, errors: dict[str, Array]) -> None:
    percent = [100 * share for share in shares]
    for rule, every in errors.items():
        wide = 2 if rule == "gain" else 1
        axis.plot(percent, every.mean(axis=1), "o-", ms=3, lw=wide, label=rule)
    axis.set(xscale="log", xlabel="% of the money", ylabel="held-out RMSE", title=name)
    axis.set_xticks(percent, [f"{p:g}" for p in percent], minor=False)
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3)


def _error(A: Array, price: Array | None, known: Any, rule: str, budget: float, seed: int) -> float:
    held = known & (np.random.default_rng(50_000 + seed).random(A.shape) < 0.1)
    prices = None if price is None else Prices(price)
    plan = most_informative(
        A.shape, prices, budget=budget, rule=rule, available=known & ~held, rng=seed
    )
    found = play(plan, MatrixOracle(np.nan_to_num(A)))
    i, j = np.nonzero(held)
    return float(np.sqrt(np.mean((found.entries(i, j) - A[i, j]) ** 2)))


def best(work: Drawing) -> list[Claim]:
    """Draw how often each rule names the best AlpacaEval model."""
    A = datasets.alpaca_eval().to_dense()
    A = np.where(np.isnan(A), np.nanmean(A), A)
    winner = int(A.mean(axis=1).argmax())
    shares = (0.025, 0.05) if work.quick else (0.0125, 0.025, 0.05, 0.1)
    seeds = range(800, 804) if work.quick else range(800, 824)
    plans: dict[str, Callable[[float, int], Any]] = {
        "top-two": lambda budget, seed: top_two(A.shape, budget=budget, rng=seed),
        "UCB-E": lambda budget, seed: ucb_e(A.shape, budget=budget, rng=seed),
        "uniform": lambda budget, seed: most_informative(
            A.shape, budget=budget, rule="uniform", rank=1, rng=seed
        ),
        "gain": lambda budget, seed: most_informative(A.shape, budget=budget, rank=1, rng=seed),
    }
    if not work.quick:
        plans["UCB-E, low rank"] = lambda budget, seed: ucb_e(
            A.shape, budget=budget, low_rank=True, batch=32, rng=seed
        )
    table: list[tuple[Any, ...]] = []
    right: dict[str, list[float]] = {}
    for name, make in plans.items():
        right[name] = []
        for share in shares:
            hits = 0
            for seed in list(seeds)[: 4 if name == "UCB-E, low rank" else None]:
                run = Run(make(float(int(share * A.size)), seed))
                found = play(run, MatrixOracle(A))
                named = found.report.get("best")
                if named is None:
                    named = int(scores(found, Bought.from_run(run)).order[0])
                hits += named == winner
            count = min(len(seeds), 4) if name == "UCB-E, low rank" else len(seeds)
            right[name].append(hits / count)
            table.append((name, share, hits / count, count))
        work.say(f"  {name}: {right[name]}")
    figure, ((axis,),) = plot.figure(width=5.5)
    for name, values in right.items():
        axis.plot([100 * s for s in shares], values, "o-", ms=4, label=name)
    axis.set(
        xscale="log",
        xlabel="% of the cells",
        ylabel="runs that name the best model",
        ylim=(-0.02, 1.05),
    )
    axis.set_xticks([100 * s for s in shares], [f"{100 * s:g}" for s in shares])
    axis.set_xticks([], minor=True)
    axis.legend(fontsize=8, frameon=False)
    axis.grid(alpha=0.3)
    work.picture("best.png", figure)
    work.csv("best.csv", ("rule", "share", "right", "runs"), table)
    at = shares.index(0.05)
    return [
        Claim(
            "best",
            "the best model is found in 95 % of the runs at 5 % of the cells",
            f"{right['top-two'][at]:.2f}",
            right["top-two"][at] >= 0.95,
            "",
            f"{len(seeds)} runs",
        )
    ]


def coverage(work: Drawing) -> list[Claim]:
    """Draw how often 90 % intervals cover cells that were not bought, with a blind reserve."""
    table, claims = [], []
    seeds = range(700, 702) if work.quick else range(700, 710)
    cases = {
        name: case
        for name, case in matrices(work.quick).items()
        if name in ("oboe", "kiba", "jester")
    }
    figure, ((axis,),) = plot.figure(width=5.5)
    for place, (name, (A, _, _)) in enumerate(cases.items()):
        known = ~np.isnan(A)
        found = []
        for seed in seeds:
            run = Run(
                most_informative(
                    A.shape,
                    budget=float(int(0.2 * known.sum())),
                    available=known,
                    reserve=0.15,
                    rng=seed,
                )
            )
            fit = play(run, MatrixOracle(np.nan_to_num(A)))
            left = known.copy()
            for entry in run.log:
                left[entry.batch.rows, entry.batch.cols] = False
            i, j = np.nonzero(left)
            interval = fit.interval(i, j, 0.9)
            found.append(float(np.mean((interval.low <= A[i, j]) & (A[i, j] <= interval.high))))
        work.say(f"  {name}: {np.mean(found):.3f}")
        table += [(name, seed, value) for seed, value in zip(seeds, found, strict=True)]
        axis.plot(np.full(len(found), place), found, "o", ms=4)
        claims.append(
            Claim(
                "coverage",
                f"{name}: 90 % intervals cover 88.5-91.5 %",
                f"{np.mean(found):.3f}",
                bool(0.885 <= np.mean(found) <= 0.915),
                "",
                f"{len(seeds)} runs",
            )
        )
    axis.axhline(0.9, color="black", lw=0.8)
    axis.set_xticks(range(len(cases)), list(cases))
    axis.set(ylabel="share of cells not bought that are covered", ylim=(0.8, 1.0))
    work.picture("coverage.png", figure)
    work.csv("coverage.csv", ("matrix", "seed", "covered"), table)
    return claims


FIGURES: dict[str, Figure] = {
    "spend": Figure(spend, 40),
    "best": Figure(best, 20),
    "coverage": Figure(coverage, 5),
}
PICTURES = {name: [f"{name}.png"] for name in FIGURES}
