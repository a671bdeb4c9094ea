"""Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020: figures 1 and 2, theorem 3.

Figure 1 knows the first rows and columns (a star), figure 2 random entries. ``bounds`` shows theorem 3: consistent
methods grow exponentially where the chain stays below corollary 2. Beside the paper's methods stands the refined
fit, our default.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from entrywise.bounds.rank_one import block_family, corollary_2, path_family, smallest_gap
from entrywise.gallery import random_rank_one
from entrywise.linalg.laplacian import Laplacian
from entrywise.observations import Observations
from entrywise.passive import (
    RankOne,
    alternating_minimization,
    log_least_squares,
    projected_eigenvector,
    propagation,
    rank_one,
)
from entrywise.reproduce.figures import Claim, Figure, new_figure, save_csv, save_figure
from entrywise.types import Array

Say = Callable[[str], None]
Errors = dict[str, list[float]]
STYLES = {
    "log-LS": ("C0", "o-"), "unweighted log-LS": ("C1", "s-"), "Markov chain": ("C2", "^-"), "propagation": ("C3", "v:"),
    "alt-min, SVD": ("C4", "D--"), "alt-min, random": ("C5", "x--"), "refined (ours)": ("black", "*-"),
}  # fmt: skip
QUICK = (200, 2, 0.05)  # side, trials and share known of the quick form
DELTAS = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)


def fit(seen: Observations, seed: int, iterations: int = 1000) -> dict[str, RankOne]:
    """Return every method's answer to the same entries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the chain says when it is no better than a constant
        return {
            "log-LS": log_least_squares(seen, certify=False),
            "unweighted log-LS": log_least_squares(seen, weighted=False, certify=False),
            "Markov chain": projected_eigenvector(seen, 0.1, 10.0),
            "propagation": propagation(seen),
            "alt-min, SVD": alternating_minimization(seen, max_sweeps=iterations),
            "alt-min, random": alternating_minimization(
                seen, start="random", max_sweeps=iterations, rng=seed
            ),
            "refined (ours)": rank_one(seen, certify=False),
        }


def draw(
    mask: str, n: int, delta: float, seed: int, k: int = 3, p: float = 0.01
) -> tuple[Array, Array, Observations]:
    """Return the factors and the disturbed known entries; random masks are drawn until they are connected."""
    rng = np.random.default_rng([seed, n, round(1e6 * p), k])
    x, y = random_rank_one(n, n, rng)
    while True:
        if mask == "star":
            i = np.r_[np.repeat(np.arange(k), n), np.tile(np.arange(k, n), k)]
            j = np.r_[np.tile(np.arange(n), k), np.repeat(np.arange(k), n - k)]
        else:
            cells = np.flatnonzero(rng.random(n * n) < p)
            i, j = cells // n, cells % n
        seen = Observations(i, j, x[i] * y[j] + delta * rng.uniform(-0.5, 0.5, len(i)), (n, n))
        if seen.components[0] == 1:
            return x, y, seen


def relative(found: RankOne, x: Array, y: Array) -> float:
    """Return the relative Frobenius error, block by block; at most 1e9, so that means can be drawn."""
    total = 0.0
    for start in range(0, len(x), 500):
        part = slice(start, start + 500)
        total += float(np.sum((found.left[part] @ found.right.T - np.outer(x[part], y)) ** 2))
    error = math.sqrt(total) / (float(np.linalg.norm(x)) * float(np.linalg.norm(y)))
    return min(error, 1e9) if math.isfinite(error) else 1e9


def sweep(
    values: Sequence[Any],
    make: Callable[[Any, int], tuple[Array, Array, Observations]],
    trials: int,
) -> Errors:
    """Return each method's mean error at every value."""
    means: Errors = {}
    for value in values:
        each: Errors = {}
        for seed in range(trials):
            x, y, seen = make(value, seed)
            for name, found in fit(seen, seed).items():
                each.setdefault(name, []).append(relative(found, x, y))
        for name, errors in each.items():
            means.setdefault(name, []).append(float(np.mean(errors)))
    return means


def convergence(mask: str, n: int, trials: int, steps: Sequence[int], p: float = 0.01) -> Errors:
    """Return mean errors against the iterations that alternating minimisation is given; log-LS needs none."""
    drawn = [draw(mask, n, 1e-3, seed, p=p) for seed in range(trials)]

    def mean(fits: list[RankOne]) -> float:
        return float(
            np.mean([relative(found, x, y) for found, (x, y, _) in zip(fits, drawn, strict=True)])
        )

    level = mean([log_least_squares(seen, certify=False) for _, _, seen in drawn])
    means: Errors = {"log-LS": [level] * len(steps)}
    starts: tuple[tuple[str, Literal["svd", "random"]], ...] = (
        ("alt-min, SVD", "svd"),
        ("alt-min, random", "random"),
    )
    for name, start in starts:
        means[name] = [
            mean(
                [
                    alternating_minimization(seen, start=start, max_sweeps=k, rng=t)
                    for t, (_, _, seen) in enumerate(drawn)
                ]
            )
            for k in steps
        ]
    return means


def _draw(
    folder: Path, name: str, panels: list[tuple[str, str, Sequence[Any], Errors]], title: str
) -> None:
    figure, axes = new_figure(columns=2, rows=(len(panels) + 1) // 2, width=5.6, height=4.0)
    for ax in axes.ravel()[len(panels) :]:
        ax.set_axis_off()
    rows = []
    for ax, (letter, label, values, means) in zip(axes.ravel(), panels, strict=False):
        for method, errors in means.items():
            color, style = STYLES[method]
            ax.loglog(values, errors, style, color=color, label=method, markersize=5, linewidth=1.3)
            rows += [
                (letter, label, value, method, error)
                for value, error in zip(values, errors, strict=True)
            ]
        smallest = min(min(e) for e in means.values())
        ax.set_ylim(smallest / 2, min(30.0, 3 * max(max(e) for e in means.values())))
        ax.set_xlabel(label)
        ax.set_ylabel("relative error, mean")
        ax.set_title(f"({letter})")
        ax.grid(alpha=0.25)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    save_figure(folder / f"figure{name}.png", figure)
    save_csv(
        folder / f"figure{name}.csv",
        ("panel", "variable", "value", "method", "mean relative error"),
        rows,
    )


def _near(values: Sequence[float], value: float) -> int:
    return int(np.argmin(np.abs(np.log(np.asarray(values) / value))))


def figure_1(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Star masks: error against disturbance, known rows and columns, iterations and size."""
    n, trials = QUICK[:2] if quick else (1000, 10)
    deltas = (1e-4, 1e-2, 1.0, 10.0) if quick else DELTAS
    say("  (a) size of the disturbance")
    a = sweep(deltas, lambda delta, seed: draw("star", n, delta, seed), trials)
    say("  (b) known rows and columns")
    ks = (1, 3, 10) if quick else (1, 2, 3, 5, 10, 20)
    b = sweep(ks, lambda k, seed: draw("star", n, 1e-3, seed, k=k), trials)
    say("  (c) iterations of alternating minimisation")
    steps = (1, 10, 30, 100, 1000) if quick else (1, 3, 10, 30, 100, 300, 1000, 3000)
    c = convergence("star", n, trials, steps)
    say("  (d) size of the matrix")
    sizes = (n // 4, n // 2, n) if quick else (100, 250, 500, 1000, 2000, 4000)
    d = sweep(sizes, lambda size, seed: draw("star", size, 1e-3, seed), trials)
    panels: list[tuple[str, str, Sequence[Any], Errors]] = [
        ("a", "disturbance delta", deltas, a), ("b", "known rows and columns", ks, b),
        ("c", "iterations", steps, c), ("d", "rows and columns of the matrix", sizes, d),
    ]  # fmt: skip
    _draw(folder, "1", panels, f"Known: the first rows and columns; n = {n}, mean of {trials}")
    small, large = 0, _near(deltas, 1.0)
    ls, svd, ours = a["log-LS"], a["alt-min, SVD"], a["refined (ours)"]
    at30 = c["alt-min, SVD"][_near(steps, 30)]
    best = [k for k in range(len(deltas)) if deltas[k] <= 3]
    growth = [d[name][-1] / d[name][0] for name in ("alt-min, SVD", "log-LS")]
    return [
        Claim(
            "1a",
            "log-LS dominates on star masks: small disturbances",
            f"{ls[small]:.2e} against {svd[small]:.2e} of alt-min at delta = {deltas[small]:g}",
            ls[small] < 0.9 * svd[small],
        ),
        Claim(
            "1a",
            "log-LS dominates on star masks: large disturbances (alt-min wins where it does not)",
            f"{ls[large]:.3f} against {svd[large]:.3f} of alt-min at delta = {deltas[large]:g}",
            ls[large] < svd[large],
        ),
        Claim(
            "1a",
            "(ours) refined, never above either by 1 %, delta <= 3",
            f"largest ratio {max(ours[k] / min(ls[k], svd[k]) for k in best):.3f}",
            all(ours[k] <= 1.01 * min(ls[k], svd[k]) for k in best),
        ),
        Claim(
            "1a",
            "the chain's error saturates and wins for large disturbances",
            f"{a['Markov chain'][-1]:.2f} at delta = {deltas[-1]:g}; log-LS {ls[-1]:.2f}, refined {ours[-1]:.2f}",
            a["Markov chain"][-1] < min(ls[-1], svd[-1]),
        ),
        Claim(
            "1b",
            "alt-min from a random start does not recover, even with many rows",
            f"{b['alt-min, random'][-1]:.1e} against {b['log-LS'][-1]:.1e} at {ks[-1]} rows and columns",
            b["alt-min, random"][-1] > 2 * b["log-LS"][-1],
        ),
        Claim(
            "1c",
            "alt-min converges slowly on star masks",
            f"after {steps[_near(steps, 30)]} iterations {at30:.1e}, log-LS {c['log-LS'][0]:.1e}",
            at30 > 10 * c["log-LS"][0],
        ),
        Claim(
            "1d",
            "alt-min degrades with size, log-LS does not",
            f"error at the largest over the smallest size: alt-min {growth[0]:.1f}, log-LS {growth[1]:.1f}",
            growth[0] > 1.5 * growth[1],
        ),
    ]


def figure_2(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Random masks: error against disturbance, share known and iterations."""
    n, trials, p = QUICK if quick else (1000, 10, 0.01)
    deltas = (1e-4, 1e-2, 1.0, 10.0) if quick else DELTAS
    say("  (a) size of the disturbance")
    a = sweep(deltas, lambda delta, seed: draw("random", n, delta, seed, p=p), trials)
    say("  (b) share of known entries")
    shares = (p, 2 * p) if quick else (0.008, 0.01, 0.02, 0.05, 0.1)
    b = sweep(shares, lambda share, seed: draw("random", n, 1e-3, seed, p=share), trials)
    say("  (c) iterations of alternating minimisation")
    steps = (1, 10, 30, 100) if quick else (1, 3, 10, 30, 100, 300)
    c = convergence("random", n, trials, steps, p)
    panels: list[tuple[str, str, Sequence[Any], Errors]] = [
        ("a", "disturbance delta", deltas, a), ("b", "share of known entries", shares, b), ("c", "iterations", steps, c)
    ]  # fmt: skip
    _draw(folder, "2", panels, f"Known: random entries; n = {n}, mean of {trials}")
    x, y = random_rank_one(n, n, 0)
    A = np.outer(x, y)
    constant = float(np.linalg.norm(A - A.mean()) / np.linalg.norm(A))
    small = [k for k in range(len(deltas)) if deltas[k] <= 0.1]
    ls, svd = a["log-LS"], a["alt-min, SVD"]
    away = max(abs(ls[k] / svd[k] - 1) for k in small)
    last = a["Markov chain"][-1]
    return [
        Claim(
            "2a",
            "log-LS and alt-min are alike on random masks",
            f"within {100 * away:.1f} % for delta <= 0.1",
            away < 0.1,
        ),
        Claim(
            "2a",
            "weighted log-LS dominates the paper's other methods at small disturbances",
            f"{ls[0]:.1e} against {a['unweighted log-LS'][0]:.1e} and {a['Markov chain'][0]:.1e}",
            ls[0] < min(a["unweighted log-LS"][0], a["Markov chain"][0]),
        ),
        Claim(
            "2a",
            "the chain's error saturates and wins for large disturbances",
            f"{last:.2f} at delta = {deltas[-1]:g}, log-LS {ls[-1]:.2f}, alt-min {svd[-1]:.3g}",
            last < min(ls[-1], svd[-1]),
        ),
        Claim(
            "2a",
            "(ours) that saturation is worth more than a constant",
            f"{last:.2f}, best constant {constant:.2f}",
            last < 0.95 * constant,
        ),
        Claim(
            "2a",
            "propagation performs poorly",
            f"{a['propagation'][_near(deltas, 0.1)]:.1e} against {ls[_near(deltas, 0.1)]:.1e}",
            a["propagation"][_near(deltas, 0.1)] > 3 * ls[_near(deltas, 0.1)],
        ),
        Claim(
            "2b",
            "alt-min performs as well as log-LS",
            f"ratio {b['alt-min, SVD'][-1] / b['log-LS'][-1]:.2f} at {shares[-1]:g} known",
            b["alt-min, SVD"][-1] < 1.1 * b["log-LS"][-1],
        ),
        Claim(
            "2c",
            "alt-min takes over 30 iterations even here",
            f"{c['alt-min, SVD'][_near(steps, 30)] / c['log-LS'][0]:.2f} of log-LS after {steps[_near(steps, 30)]}",
            c["alt-min, SVD"][_near(steps, 30)] > 1.05 * c["log-LS"][0],
        ),
    ]


def figure_bounds(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Theorem 3: two families on which every consistent method fails and the chain does not."""
    sizes = (5, 20, 80) if quick else (5, 10, 20, 40, 80, 160)
    rows: list[tuple[str, float, float, float, float, float]] = []
    consistent, chain, lower, upper = [], [], [], []
    for n in sizes:
        seen, A = path_family(n, 2.0)
        gap = smallest_gap(Laplacian(2 * n, seen.rows, n + seen.cols))
        consistent.append(float(np.linalg.norm(rank_one(seen, certify=False).to_dense() - A)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chain.append(
                float(np.linalg.norm(projected_eigenvector(seen, 0.5, 2.0).to_dense() - A))
            )
        lower.append(math.exp(2.0 * math.sqrt((2 * n - 1) / 2)) - 1)
        upper.append(corollary_2((n, n), 2.0, gap, 2.0))
        rows.append(("path", n, consistent[-1], chain[-1], lower[-1], upper[-1]))
    figure, axes = new_figure(columns=2, width=5.2)
    ax = axes[0, 0]
    ax.semilogy(sizes, consistent, "o-", label="log-LS (consistent)")
    ax.semilogy(sizes, lower, ":", label="theorem 3 (a), lower bound")
    ax.semilogy(sizes, chain, "^-", label="Markov chain, entries in [1/2, 2]")
    ax.semilogy(sizes, upper, "--", label="corollary 2, upper bound")
    ax.set_xlabel("n, staircase of known entries, disturbance 2")
    ax.set_ylabel("Frobenius error")
    ax.legend(frameon=False, fontsize=8)
    lows = (0.3, 1e-2, 1e-4) if quick else (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
    plain, bounded = [], []
    for low in lows:
        seen, A = block_family(20, low)
        plain.append(float(np.linalg.norm(log_least_squares(seen, certify=False).to_dense() - A)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bounded.append(
                float(np.linalg.norm(projected_eigenvector(seen, 0.5, 2.0).to_dense() - A))
            )
        rows.append(("blocks", low, plain[-1], bounded[-1], 20 / 3 / low, math.nan))
    ax = axes[0, 1]
    ax.loglog(lows, plain, "o-", label="log-LS (consistent)")
    ax.loglog(lows, [20 / 3 / low for low in lows], ":", label="theorem 3 (b), lower bound")
    ax.loglog(lows, bounded, "^-", label="Markov chain, entries in [1/2, 2]")
    ax.set_xlabel("smallest known entry; two blocks of 10 x 10")
    ax.set_ylabel("Frobenius error")
    ax.legend(frameon=False, fontsize=8)
    save_figure(folder / "bounds.png", figure)
    save_csv(
        folder / "bounds.csv",
        ("family", "n or smallest", "log-LS", "chain", "lower bound", "upper bound"),
        rows,
    )
    exponential = all(c >= b for c, b in zip(consistent, lower, strict=True))
    below = all(c <= b for c, b in zip(chain, upper, strict=True))
    return [
        Claim(
            "T3a",
            "consistent methods grow as exp(c sqrt(R / 2))",
            f"{consistent[-1]:.1e} at n = {sizes[-1]}, bound {lower[-1]:.1e}",
            exponential,
        ),
        Claim(
            "T3a",
            "the chain stays below corollary 2",
            f"{chain[-1]:.1f} at n = {sizes[-1]}, bound {upper[-1]:.1e}",
            below,
        ),
        Claim(
            "T3b",
            "one small entry costs n / (3 low)",
            f"{plain[-1]:.1e} at low = {lows[-1]:g}, chain {bounded[-1]:.1f}",
            all(c >= 20 / 3 / low for c, low in zip(plain, lows, strict=True)),
        ),
    ]


FIGURES: dict[str, Figure] = {"1": figure_1, "2": figure_2, "bounds": figure_bounds}
