"""Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020: figures 1, 2, 4, 5, theorem 3.

Figure 1 knows the first rows and columns (a star), figure 2 random entries. Figure 4 shows ridge regression, figure 5
how much the methods vary. ``bounds`` shows theorem 3: consistent methods grow exponentially where the chain stays below
corollary 2; ``sdp`` holds small cases against semidefinite programming. Beside the paper's methods stand the refined
fit, our default, and alternating minimisation with clipping, which the paper mentions and does not draw.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrywise import plot
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
from entrywise.reproduce.figures import (
    Claim,
    Drawing,
    Figure,
    gap,
    mean_interval,
    new_panel,
)
from entrywise.results import LowRank
from entrywise.types import Array

Errors = dict[str, Array]  # method -> errors of shape (values, trials)
TITLE = "minimax rank-one factorization"
REFERENCE = (
    "Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020. The appendix with its figures 4 "
    "and 5 was not at hand: they are rebuilt from what the paper says of them."
)
EXAMPLE = "rank_one"  # of the gallery: the method on a small problem
TUNING = (
    "Nothing is tuned: log least squares and the refined fit have no parameter, the chain is told the range [1/10, 10] of "
    "the entries as in the paper, alternating minimisation runs 1000 iterations or fewer where it has converged, clipping cuts "
    "at 3 times the root mean square of a factor, and ridge regression is drawn for every penalty. Seeds 0, 1, ... throughout."
)
STYLES = {
    "log-LS": ("C0", "o-"), "unweighted log-LS": ("C1", "s-"), "Markov chain": ("C2", "^-"), "propagation": ("C3", "v:"),
    "alt-min, SVD": ("C4", "D--"), "alt-min, random": ("C5", "x--"), "alt-min, clipped": ("C6", "+:"),
    "refined (ours)": ("black", "*-"),
}  # fmt: skip
CLIP = 3.0  # times the root mean square of a factor
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
            "alt-min, clipped": alternating_minimization(seen, clip=CLIP, max_sweeps=iterations),
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


def relative(found: LowRank, x: Array, y: Array) -> float:
    """Return the relative Frobenius error, block by block; at most 1e9, so that means can be drawn."""
    total = 0.0
    for start in range(0, len(x), 500):
        part = slice(start, start + 500)
        total += float(np.sum((found.left[part] @ found.right.T - np.outer(x[part], y)) ** 2))
    error = math.sqrt(total) / (float(np.linalg.norm(x)) * float(np.linalg.norm(y)))
    return min(error, 1e9) if math.isfinite(error) else 1e9


def sweep(
    work: Drawing,
    what: str,
    values: Sequence[Any],
    make: Callable[[Any, int], tuple[Array, Array, Observations]],
    trials: int,
) -> Errors:
    """Return each method's errors at every value."""

    def errors(key: tuple[Any, int]) -> dict[str, float]:
        x, y, seen = make(*key)
        return {name: relative(found, x, y) for name, found in fit(seen, key[1]).items()}

    found = work.each(what, [(v, t) for v in values for t in range(trials)], errors)
    return {
        name: np.array([[found[v, t][name] for t in range(trials)] for v in values])
        for name in STYLES
    }


def convergence(
    work: Drawing, what: str, mask: str, n: int, trials: int, steps: Sequence[int], p: float = 0.01
) -> Errors:
    """Return errors against the iterations that alternating minimisation is given; log-LS needs none."""
    starts: dict[str, dict[str, Any]] = {
        "alt-min, SVD": {"start": "svd"},
        "alt-min, random": {"start": "random"},
        "alt-min, clipped": {"start": "svd", "clip": CLIP},
    }

    def errors(t: int) -> dict[str, list[float]]:
        x, y, seen = draw(mask, n, 1e-3, t, p=p)
        level = relative(log_least_squares(seen, certify=False), x, y)
        found = {"log-LS": [level] * len(steps)}
        for name, how in starts.items():
            found[name] = [
                relative(alternating_minimization(seen, max_sweeps=k, rng=t, **how), x, y)
                for k in steps
            ]
        return found

    each = work.each(f"{what}, {n}, {list(steps)}", range(trials), errors)
    return {
        name: np.array([each[t][name] for t in range(trials)]).T for name in ("log-LS", *starts)
    }


def _draw(
    work: Drawing, name: str, panels: list[tuple[str, str, Sequence[Any], Errors]], title: str
) -> None:
    figure, axes = plot.figure(columns=2, rows=(len(panels) + 1) // 2, width=5.6, height=4.0)
    for ax in axes.ravel()[len(panels) :]:
        ax.set_axis_off()
    rows = []
    for ax, (letter, label, values, every) in zip(axes.ravel(), panels, strict=False):
        means = {method: errors.mean(axis=1) for method, errors in every.items()}
        for method, errors in means.items():
            color, style = STYLES[method]
            ax.loglog(values, errors, style, color=color, label=method, markersize=5, linewidth=1.3)
            rows += [
                (letter, label, value, method, float(error))
                for value, error in zip(values, errors, strict=True)
            ]
        smallest = min(float(e.min()) for e in means.values())
        ax.set_ylim(smallest / 2, min(30.0, 3 * max(float(e.max()) for e in means.values())))
        ax.set_xlabel(label)
        ax.set_ylabel("relative error, mean")
        ax.set_title(f"({letter})")
        ax.grid(alpha=0.25)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    work.picture(f"figure{name}.png", figure)
    work.csv(
        f"figure{name}.csv",
        ("panel", "variable", "value", "method", "mean relative error"),
        rows,
    )


def _near(values: Sequence[float], value: float) -> int:
    return int(np.argmin(np.abs(np.log(np.asarray(values) / value))))


def _size(n: int, trials: int, more: str = "") -> tuple[str, str]:
    """Return the size and the repeats of an experiment, theirs and ours."""
    return f"1000 x 1000, mean of 50{more}", f"{n} x {n}, mean of {trials}"


def _below(
    figure: str, claim: str, size: tuple[str, str], at: str, first: Array, second: Array
) -> Claim:
    """Judge whether errors of one method are below those of another, run by run."""
    found = gap(first, second, ratio=True)
    words = f"{first.mean():.2e} against {second.mean():.2e} {at}"
    return Claim(figure, claim, words, found.below, *size, str(found))


def figure_1(work: Drawing) -> list[Claim]:
    """Star masks: error against disturbance, known rows and columns, iterations and size."""
    n = QUICK[0] if work.quick else 1000
    trials = work.runs(QUICK[1], 50)
    deltas = (1e-4, 1e-2, 1.0, 10.0) if work.quick else DELTAS
    a = sweep(work, f"1a, star, {n}", deltas, lambda delta, t: draw("star", n, delta, t), trials)
    ks = (1, 3, 10) if work.quick else (1, 3, 10, 20)
    b = sweep(work, f"1b, rows, {n}", ks, lambda k, t: draw("star", n, 1e-3, t, k=k), trials)
    steps = (1, 10, 30, 100, 1000) if work.quick else (1, 3, 10, 30, 100, 300, 1000, 3000)
    c = convergence(work, "1c, iterations", "star", n, trials, steps)
    sizes = (n // 4, n // 2, n) if work.quick else (100, 250, 500, 1000, 2000)
    d = sweep(work, "1d, sizes", sizes, lambda size, t: draw("star", size, 1e-3, t), trials)
    panels: list[tuple[str, str, Sequence[Any], Errors]] = [
        ("a", "disturbance delta", deltas, a), ("b", "known rows and columns", ks, b),
        ("c", "iterations", steps, c), ("d", "rows and columns of the matrix", sizes, d),
    ]  # fmt: skip
    _draw(work, "1", panels, f"Known: the first rows and columns; n = {n}, mean of {trials}")
    small, large, last = 0, _near(deltas, 1.0), len(deltas) - 1
    ls, svd, ours = a["log-LS"], a["alt-min, SVD"], a["refined (ours)"]
    size = _size(n, trials)
    growth = gap(
        d["alt-min, SVD"][-1] / d["alt-min, SVD"][0], d["log-LS"][-1] / d["log-LS"][0], ratio=True
    )
    some = [k for k in range(len(deltas)) if deltas[k] <= 3]
    worst = max(float(ours[k].mean() / min(ls[k].mean(), svd[k].mean())) for k in some)
    at30 = _near(steps, 30)
    chain = a["Markov chain"]
    rival = ls if ls[last].mean() < svd[last].mean() else svd
    clipped = gap(svd[small], a["alt-min, clipped"][small], ratio=True)
    return [
        _below(
            "1a",
            "log-LS dominates on star masks: small disturbances",
            size,
            f"of alt-min at delta = {deltas[small]:g}",
            ls[small],
            svd[small],
        ),
        _below(
            "1a",
            "log-LS dominates on star masks: large disturbances",
            size,
            f"of alt-min at delta = {deltas[large]:g}",
            ls[large],
            svd[large],
        ),
        Claim(
            "1a",
            "(ours) refined, never above either by 1 %, delta <= 3",
            f"largest ratio of means {worst:.3f}",
            worst <= 1.01,
            *size,
        ),
        _below(
            "1a",
            "the chain's error saturates and wins for large disturbances",
            size,
            f"of the better of log-LS and alt-min at delta = {deltas[last]:g}",
            chain[last],
            rival[last],
        ),
        _below(
            "1a",
            "(ours) refined is the best at the largest disturbance, too",
            size,
            f"of the chain at delta = {deltas[last]:g}: where noise drowns the table, bounds are worth more",
            ours[last],
            chain[last],
        ),
        Claim(
            "1a",
            "alt-min without clipping is better than with it",
            f"{svd[small].mean():.2e} against {a['alt-min, clipped'][small].mean():.2e} at delta = {deltas[small]:g}",
            clipped.below,
            *size,
            str(clipped),
        ),
        _below(
            "1b",
            "alt-min from a random start does not recover, even with many rows",
            size,
            f"of alt-min, random, at {ks[-1]} rows and columns",
            b["log-LS"][-1],
            b["alt-min, random"][-1],
        ),
        _below(
            "1c",
            "alt-min converges slowly on star masks (bar: 10 times log-LS after 30 iterations)",
            size,
            f"(ten times log-LS, and alt-min after {steps[at30]})",
            10 * c["log-LS"][at30],
            c["alt-min, SVD"][at30],
        ),
        Claim(
            "1d",
            "alt-min degrades with size, log-LS does not (growth from the smallest to the largest)",
            f"alt-min {np.mean(d['alt-min, SVD'][-1] / d['alt-min, SVD'][0]):.2f}, "
            f"log-LS {np.mean(d['log-LS'][-1] / d['log-LS'][0]):.2f}",
            None if growth.below is None else not growth.below,
            "to 4000 x 4000, mean of 50",
            f"{sizes[0]} to {sizes[-1]}, mean of {trials}",
            str(growth),
        ),
    ]


def figure_2(work: Drawing) -> list[Claim]:
    """Random masks: error against disturbance, share known and iterations."""
    n, p = (QUICK[0], QUICK[2]) if work.quick else (1000, 0.01)
    trials = work.runs(QUICK[1], 50)
    deltas = (1e-4, 1e-2, 1.0, 10.0) if work.quick else DELTAS
    a = sweep(
        work, f"2a, random, {n}", deltas, lambda delta, t: draw("random", n, delta, t, p=p), trials
    )
    shares = (p, 2 * p) if work.quick else (0.008, 0.01, 0.02, 0.05)
    b = sweep(work, f"2b, share, {n}", shares, lambda q, t: draw("random", n, 1e-3, t, p=q), trials)
    steps = (1, 10, 30, 100) if work.quick else (1, 3, 10, 30, 100, 300)
    c = convergence(work, "2c, iterations", "random", n, trials, steps, p)
    panels: list[tuple[str, str, Sequence[Any], Errors]] = [
        ("a", "disturbance delta", deltas, a), ("b", "share of known entries", shares, b), ("c", "iterations", steps, c)
    ]  # fmt: skip
    _draw(work, "2", panels, f"Known: random entries; n = {n}, mean of {trials}")
    x, y = random_rank_one(n, n, 0)
    A = np.outer(x, y)
    constant = float(np.linalg.norm(A - A.mean()) / np.linalg.norm(A))
    small = [k for k in range(len(deltas)) if deltas[k] <= 0.1]
    ls, svd, chain = a["log-LS"], a["alt-min, SVD"], a["Markov chain"]
    away = max(abs(float(ls[k].mean() / svd[k].mean()) - 1) for k in small)
    size, tenth, at30 = _size(n, trials), _near(deltas, 0.1), _near(steps, 30)
    rival = ls if ls[-1].mean() < svd[-1].mean() else svd
    saturated = mean_interval(chain[-1])
    alike = gap(b["alt-min, SVD"][-1], 1.1 * b["log-LS"][-1], ratio=True)
    unweighted = a["unweighted log-LS"]
    return [
        Claim(
            "2a",
            "log-LS and alt-min are alike on random masks (bar: 10 %)",
            f"within {100 * away:.1f} % for delta <= 0.1",
            away < 0.1,
            *size,
        ),
        _below(
            "2a",
            "weighted log-LS dominates the paper's other methods at small disturbances",
            size,
            "of the better of unweighted log-LS and the chain",
            ls[0],
            np.minimum(unweighted[0], chain[0]),
        ),
        _below(
            "2a",
            "the chain's error saturates and wins for large disturbances",
            size,
            f"of the better of log-LS and alt-min at delta = {deltas[-1]:g}",
            chain[-1],
            rival[-1],
        ),
        Claim(
            "2a",
            "(ours) that saturation is worth more than a constant (bar: 5 %)",
            f"{saturated[0]:.2f}, best constant {constant:.2f}",
            True
            if saturated[2] < 0.95 * constant
            else (False if saturated[1] > 0.95 * constant else None),
            *size,
            f"[{saturated[1]:.2f}, {saturated[2]:.2f}]",
        ),
        _below(
            "2a",
            "propagation performs poorly (bar: 3 times log-LS)",
            size,
            f"(three times log-LS, and propagation at delta = {deltas[tenth]:g})",
            3 * ls[tenth],
            a["propagation"][tenth],
        ),
        Claim(
            "2b",
            "alt-min performs as well as log-LS (bar: 10 %)",
            f"ratio {np.mean(b['alt-min, SVD'][-1] / b['log-LS'][-1]):.3f} at {shares[-1]:g} known",
            alike.below,
            *size,
            f"with the bar, {alike}",
        ),
        _below(
            "2c",
            "alt-min takes over 30 iterations even here (bar: 5 % above log-LS)",
            size,
            f"(log-LS and 5 %, and alt-min after {steps[at30]})",
            1.05 * c["log-LS"][at30],
            c["alt-min, SVD"][at30],
        ),
    ]


def figure_4(work: Drawing) -> list[Claim]:
    """Appendix figure 4: ridge regression, equation (1), for every penalty, on both masks."""
    n, p = (QUICK[0], QUICK[2]) if work.quick else (1000, 0.01)
    trials = work.runs(2, 50)
    delta = 1e-3
    ridges = (1e-4, 1e-2, 1.0) if work.quick else (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
    masks = ("star", "random")

    def errors(key: tuple[str, int]) -> dict[str, Any]:
        mask, t = key
        x, y, seen = draw(mask, n, delta, t, p=p)
        fits = [alternating_minimization(seen, ridge=q, max_sweeps=1000) for q in ridges]
        level = relative(log_least_squares(seen, certify=False), x, y)
        return {"ridge": [relative(found, x, y) for found in fits], "log-LS": level}

    found = work.each(f"4, ridge, {n}", [(m, t) for m in masks for t in range(trials)], errors)
    figure, axes = plot.figure(columns=2, width=5.2)
    claims, rows = [], []
    for ax, mask in zip(axes[0], masks, strict=True):
        ridge = np.array([found[mask, t]["ridge"] for t in range(trials)])  # (trials, ridges)
        level = np.array([found[mask, t]["log-LS"] for t in range(trials)])
        ax.loglog(
            ridges, ridge.mean(axis=0), "s-", color="C1", label="ridge regression, alternating"
        )
        ax.axhline(level.mean(), color="C0", label="log-LS, no parameter")
        ax.set(
            xlabel="penalty lambda", ylabel="relative error, mean", title=f"{mask} mask, n = {n}"
        )
        ax.legend(frameon=False, fontsize=8)
        rows += [(mask, q, float(e)) for q, e in zip(ridges, ridge.mean(axis=0), strict=True)]
        best = ridge[:, int(np.argmin(ridge.mean(axis=0)))]
        spread = float(ridge.mean(axis=0).max() / ridge.mean(axis=0).min())
        claim = f"{mask}: ridge regression is unstable (bar: no penalty within 10 % of log-LS)"
        apart = gap(1.1 * level, best, ratio=True)
        words = f"best penalty {best.mean():.2e}, log-LS {level.mean():.2e}; worst over best penalty {spread:.0f}"
        claims.append(Claim("4", claim, words, apart.below, *_size(n, trials), str(apart)))
    work.picture("figure4.png", figure)
    work.csv("figure4.csv", ("mask", "penalty", "mean relative error"), rows)
    return claims


def figure_5(work: Drawing) -> list[Claim]:
    """Appendix figure 5: how much the error varies from trial to trial over the iterations."""
    n, p = (QUICK[0], QUICK[2]) if work.quick else (1000, 0.01)
    trials = max(2, work.runs(3, 50))
    steps = (1, 10, 100) if work.quick else (1, 3, 10, 30, 100, 300, 1000)
    figure, axes = plot.figure(columns=2, width=5.2)
    claims, rows = [], []
    for ax, mask in zip(axes[0], ("star", "random"), strict=True):
        found = convergence(work, f"5, {mask}", mask, n, trials, steps, p)
        for name, errors in found.items():
            color, style = STYLES[name]
            deviation = errors.std(axis=1, ddof=1)
            ax.loglog(steps, deviation, style, color=color, label=name)
            rows += [(mask, name, k, float(v)) for k, v in zip(steps, deviation, strict=True)]
        ax.set(xlabel="iterations", ylabel="standard deviation of the relative error")
        ax.set_title(f"{mask} mask, n = {n}, {trials} trials")
        ax.legend(frameon=False, fontsize=8)
        at = _near(steps, 100)
        sd = {name: float(e[at].std(ddof=1)) for name, e in found.items()}
        ratio = sd["alt-min, SVD"] / sd["log-LS"]
        low, high = _sd_interval(ratio, trials)
        claim = f"{mask}: alt-min has a high variance over the iterations (bar: twice the deviation of log-LS)"
        words = ", ".join(f"{name} {v:.1e}" for name, v in sd.items()) + f" after {steps[at]}"
        holds = True if low > 2 else (False if high < 2 else None)
        interval = f"ratio {ratio:.3g} [{low:.3g}, {high:.3g}]"
        claims.append(Claim("5", claim, words, holds, *_size(n, trials), interval))
    work.picture("figure5.png", figure)
    work.csv("figure5.csv", ("mask", "method", "iterations", "deviation"), rows)
    return claims


def _sd_interval(ratio: float, trials: int) -> tuple[float, float]:
    """Return the interval of a ratio of two standard deviations, by the F distribution."""
    from scipy.stats import f

    q = float(f.ppf(0.975, trials - 1, trials - 1))
    return ratio / math.sqrt(q), ratio * math.sqrt(q)


def figure_bounds(work: Drawing) -> list[Claim]:
    """Theorem 3: two families on which every consistent method fails and the chain does not."""
    sizes = (5, 20, 80) if work.quick else (5, 10, 20, 40, 80, 160)
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
    figure, axes = plot.figure(columns=2, width=5.2)
    ax = axes[0, 0]
    ax.semilogy(sizes, consistent, "o-", label="log-LS (consistent)")
    ax.semilogy(sizes, lower, ":", label="theorem 3 (a), lower bound")
    ax.semilogy(sizes, chain, "^-", label="Markov chain, entries in [1/2, 2]")
    ax.semilogy(sizes, upper, "--", label="corollary 2, upper bound")
    ax.set_xlabel("n, staircase of known entries, disturbance 2")
    ax.set_ylabel("Frobenius error")
    ax.legend(frameon=False, fontsize=8)
    lows = (0.3, 1e-2, 1e-4) if work.quick else (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
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
    work.picture("bounds.png", figure)
    work.csv(
        "bounds.csv",
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
            "",
            f"n to {sizes[-1]}, no chance in it",
        ),
        Claim(
            "T3a",
            "the chain stays below corollary 2",
            f"{chain[-1]:.1f} at n = {sizes[-1]}, bound {upper[-1]:.1e}",
            below,
            "",
            f"n to {sizes[-1]}, no chance in it",
        ),
        Claim(
            "T3b",
            "one small entry costs n / (3 low)",
            f"{plain[-1]:.1e} at low = {lows[-1]:g}, chain {bounded[-1]:.1f}",
            all(c >= 20 / 3 / low for c, low in zip(plain, lows, strict=True)),
            "",
            "20 x 20, no chance in it",
        ),
    ]


def figure_sdp(work: Drawing) -> list[Claim]:
    """Small cases against the semidefinite relaxation of Cosse and Demanet (needs the extra sdp)."""
    from entrywise.bounds.semidefinite import semidefinite

    n, trials = (3, 2) if work.quick else (4, 10)
    trials = work.runs(trials, trials)
    deltas = (1e-3, 0.1) if work.quick else (1e-3, 1e-2, 0.1, 0.5)

    def errors(key: tuple[float, int]) -> dict[str, float]:
        delta, t = key
        x, y, seen = draw("star", n, delta, t, k=2)
        found = {
            "Cosse-Demanet": semidefinite(seen),
            "log-LS": log_least_squares(seen, certify=False),
            "refined (ours)": rank_one(seen, certify=False),
        }
        return {name: relative(one, x, y) for name, one in found.items()}

    each = work.each(f"sdp, {n}", [(q, t) for q in deltas for t in range(trials)], errors)
    names = ("Cosse-Demanet", "log-LS", "refined (ours)")
    errors_of = {
        name: np.array([[each[q, t][name] for t in range(trials)] for q in deltas])
        for name in names
    }
    figure, ax = new_panel(width=5.6)
    for name, style in zip(names, ("^--", "o-", "*-"), strict=True):
        ax.loglog(deltas, errors_of[name].mean(axis=1), style, label=name)
    ax.set(xlabel="disturbance delta", ylabel="relative error, mean")
    ax.set_title(f"{n} x {n}, two rows and columns known, mean of {trials}")
    ax.legend(frameon=False)
    work.picture("sdp.png", figure)
    rows = [
        (q, name, float(e))
        for name in names
        for q, line in zip(deltas, errors_of[name], strict=True)
        for e in line
    ]
    work.csv("sdp.csv", ("delta", "method", "relative error"), rows)
    first = gap(errors_of["log-LS"][-1], 1.05 * errors_of["Cosse-Demanet"][-1], ratio=True)
    words = ", ".join(f"{name} {e[-1].mean():.2e}" for name, e in errors_of.items())
    return [
        Claim(
            "sdp",
            "(ours) log-LS is no worse than the relaxation (bar: 5 %), which takes n^4 unknowns",
            f"{words} at delta = {deltas[-1]:g}",
            first.below,
            "no experiment",
            f"{n} x {n}, mean of {trials}",
            f"with the bar, {first}",
        )
    ]


FIGURES: dict[str, Figure] = {
    "1": Figure(figure_1, 13),
    "2": Figure(figure_2, 3),
    "4": Figure(figure_4, 2),
    "5": Figure(figure_5, 1.3),
    "bounds": Figure(figure_bounds, 0.2),
    "sdp": Figure(figure_sdp, 0.4),
}
PICTURES = {
    "1": ["figure1.png"],
    "2": ["figure2.png"],
    "4": ["figure4.png"],
    "5": ["figure5.png"],
    "bounds": ["bounds.png"],
    "sdp": ["sdp.png"],
}
