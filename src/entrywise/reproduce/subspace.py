"""Subspace learning with partial information (Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016), figure by figure.

The paper prints no experiments: its theorems are measured here, on their own laws and on real data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from entrywise import plot
from entrywise.active import subspace
from entrywise.active.subspaces.bandit import draw_pairs
from entrywise.bounds import subspace as bounds
from entrywise.gallery import sample_law
from entrywise.linalg.pairs import PairSums
from entrywise.oracles import MatrixOracle
from entrywise.passive.partial_pca import covariance, from_covariance, partial_pca
from entrywise.play import play
from entrywise.reproduce._subspace_data import air, digits
from entrywise.reproduce.figures import (
    Claim,
    Drawing,
    Figure,
    new_panel,
)
from entrywise.types import Array

TITLE = "subspace learning with partial information"
REFERENCE = (
    "Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17, 2016. The paper prints no "
    "experiment: its theorems are measured here, on their own laws and on real data, beside the methods it positions itself "
    "against."
)
EXAMPLE = "subspace"  # of the gallery: the method on a small problem
TUNING = (
    "Partial PCA and choosing attributes have no parameter. PETRELS, GROUSE, streaming PCA, online PCA and capped MSG are "
    "shown at the best of three settings each (step, ridge, blocks, blocks, cap), chosen in hindsight at every point; "
    "soft-impute chooses its penalty on held-out values."
)


def some_of(X: Array, r: int, rng: np.random.Generator) -> Array:
    """Return X with r attributes of each sample left, drawn without replacement."""
    return np.where(np.argsort(rng.random(X.shape), axis=1) < r, X, np.nan)


def unit(X: Array) -> Array:
    """Return samples on the unit sphere: the theorems take |x| <= 1."""
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _excess(work: Drawing, d: int, k: int, r: int, m: int, seeds: range) -> float:
    """Mean excess of partial PCA as printed, equation (4), on a flat law on the sphere under Bernoulli masks."""

    def one(seed: int) -> float:
        law, rng = sample_law("flat", d, k, seed), np.random.default_rng(seed)
        many = unit(law.draw(40_000, rng))
        C = many.T @ many / len(many)
        best = float(np.linalg.eigvalsh(C)[-k:].sum())
        X = unit(law.draw(m, rng))
        seen = np.where(rng.random(X.shape) < r / d, X, np.nan)
        pca = partial_pca(
            seen, k, center=False, mask="bernoulli", per_sample=float(r), repair="none"
        )
        return best * (1.0 - pca.captured(C))

    found = work.each(f"excess, d {d}, k {k}, r {r}, {m} samples", seeds, one)
    return float(np.mean(list(found.values())))


def excess(work: Drawing) -> list[Claim]:
    """Excess loss against samples, d and k, with Corollary 3."""
    seeds = range(work.runs(2, 5))
    grid = (1000, 4000) if work.quick else (1000, 2000, 5000, 10_000, 20_000, 50_000)
    rows: list[tuple[Any, ...]] = []
    figure, axes = plot.figure(columns=3)
    for c, r in enumerate((2, 5, 10, 25)):
        found = [_excess(work, 50, 3, r, m, seeds) for m in grid]
        bound = [bounds.popca_excess(50, 3, r, m) for m in grid]
        rows += [(50, 3, r, m, f, b) for m, f, b in zip(grid, found, bound, strict=True)]
        axes[0, 0].loglog(grid, found, f"C{c}o-", label=f"r = {r}")
        axes[0, 0].loglog(grid, bound, f"C{c}--", linewidth=1)
        work.say(
            f"  r = {r}: {found[-1]:.4f} after {grid[-1]} samples, Corollary 3 allows {bound[-1]:.3f}"
        )
    m = 2000 if work.quick else 10_000
    for ax, name, values in ((axes[0, 1], "d", (10, 25, 50, 100)), (axes[0, 2], "k", (1, 2, 4, 8))):
        sizes = [{"d": 50, "k": 3, name: v} for v in values]
        found = [_excess(work, s["d"], s["k"], 5, m, seeds) for s in sizes]
        bound = [bounds.popca_excess(s["d"], s["k"], 5, m) for s in sizes]
        rows += [(s["d"], s["k"], 5, m, f, b) for s, f, b in zip(sizes, found, bound, strict=True)]
        ax.loglog(values, found, "C0o-", label=f"measured, r = 5, {m:,} samples")
        ax.loglog(values, bound, "C0--", linewidth=1, label="Corollary 3")
        ax.set_xlabel(name)
        ax.set_xticks(values, [str(v) for v in values])
        ax.minorticks_off()
        ax.legend(frameon=False)
    axes[0, 0].set_xlabel("samples")
    axes[0, 0].set_ylabel("excess loss")
    axes[0, 0].set_title("d = 50, k = 3; dashed: Corollary 3")
    axes[0, 0].set_ylim(bottom=axes[0, 0].get_ylim()[0] / 8)
    axes[0, 0].legend(frameon=False, loc="lower left", ncols=2)
    work.picture("excess.png", figure)
    work.csv("excess.csv", ("d", "k", "r", "samples", "excess", "corollary_3"), rows)
    ratio = max(row[4] / row[5] for row in rows)
    return [
        Claim(
            "excess",
            "expected excess at most (d/r) sqrt(k/m)",
            f"largest ratio {ratio:.3f}",
            ratio <= 1.0,
            "",
            f"d to 100, {grid[-1]:,} samples, mean of {len(seeds)}",
        )
    ]


def _passive(law: bounds.Law, d: int, r: int, m: int, seed: int) -> float:
    """Excess of partial PCA after m samples, each attribute seen on its own with chance r / d."""
    rng = np.random.default_rng(seed)
    X = law.draw(m, rng)
    sums = PairSums(d, False).add(np.where(rng.random(X.shape) < r / d, X, np.nan))
    return law.excess(from_covariance(covariance(sums, center=False), 1, np.zeros(d)).components)


def _active(law: bounds.Law, d: int, r: int, m: int, seed: int) -> float:
    """Excess after m samples of which r attributes were chosen."""
    X = law.draw(m, np.random.default_rng(seed))
    return law.excess(
        play(subspace(d, rank=1, per_sample=r, samples=m, rng=seed), MatrixOracle(X)).components
    )


LEVEL = 0.05  # of the mean excess at which samples are counted
DRAWS = 400  # resamples of the seeds behind an interval


def _curves(
    work: Drawing,
    what: str,
    sizes: Sequence[int],
    grid: Sequence[int],
    seeds: range,
    one: Callable[[int, int, int], float],
    level: float,
) -> dict[int, Array]:
    """Return the excess at every size and number of samples of a fixed grid, shape (grid, seeds) each.

    Beyond the point where all seeds are at a tenth of the level nothing is measured: NaN.
    """
    found = {}
    for d in sizes:
        rows: list[Any] = []
        for m in grid:
            done = bool(rows) and max(rows[-1]) < 0.1 * level
            each = (
                {} if done else work.each(f"{what}, d {d}, {m} samples", seeds, partial(one, d, m))
            )
            rows.append([0.0] * len(seeds) if done else list(each.values()))
        found[d] = np.array(rows)
    return found


def _reached(curve: Array, grid: Sequence[int], level: float) -> float:
    """Return the samples at which the mean excess falls to the level, between points of the grid; NaN if it does not."""
    mean = np.minimum.accumulate(curve.mean(axis=1))  # more samples are no worse, but for chance
    below = np.flatnonzero(mean <= level)
    if not len(below):
        return float("nan")
    k = int(below[0])
    if k == 0:
        return float(grid[0])
    ends = np.log([max(mean[k], 1e-12), mean[k - 1]])
    share = (np.log(level) - ends[1]) / (ends[0] - ends[1])
    return float(np.exp((1 - share) * np.log(grid[k - 1]) + share * np.log(grid[k])))


def _exponent(
    curves: dict[int, Array], grid: Sequence[int], level: float
) -> tuple[float, float, float, list[float]]:
    """Return the exponent of d in the samples needed, its 95 % interval over resampled seeds, and the samples."""
    sizes = np.log(list(curves))

    def slope(pick: Any) -> float:
        needed = np.log([_reached(c[:, pick], grid, level) for c in curves.values()])
        good = np.isfinite(needed)
        return float(np.polyfit(sizes[good], needed[good], 1)[0]) if good.sum() > 1 else np.nan

    count = next(iter(curves.values())).shape[1]
    rng = np.random.default_rng(0)
    drawn = [slope(rng.integers(count, size=count)) for _ in range(DRAWS)]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    needed = [_reached(c, grid, level) for c in curves.values()]
    return slope(np.arange(count)), float(low), float(high), needed


def _within(low: float, high: float, least: float, most: float) -> bool | None:
    """Return whether an interval lies within the bars, None where it crosses one."""
    if low >= least and high <= most:
        return True
    return False if high < least or low > most else None


def price(work: Drawing) -> list[Claim]:
    """Samples needed on the hard law of Theorem 4, attributes seen by chance or chosen."""
    r, sizes = 2, (8, 24) if work.quick else (8, 16, 32, 64, 128)
    seeds = range(work.runs(8, 100))
    grid = [2**k for k in range(3, 12 if work.quick else 17)]

    def one(method: Any, d: int, m: int, seed: int) -> float:
        law = bounds.coins_law(d, 1, 1 / 32, np.random.default_rng(1000 + seed))
        return float(method(law, d, r, m, seed))

    figure, axes = plot.figure()
    ax, x = axes[0, 0], np.array(sizes) / r
    rows, found = [], {}
    ways = {"by chance": _passive, "chosen": _active}
    for c, (name, method) in enumerate(ways.items()):
        curves = _curves(work, f"price, {name}", sizes, grid, seeds, partial(one, method), LEVEL)
        slope, low, high, needed = _exponent(curves, grid, LEVEL)
        found[name] = (slope, low, high, needed)
        label = f"attributes {name}: exponent {slope:.2f} [{low:.2f}, {high:.2f}]"
        ax.loglog(x, needed, f"C{c}o-", label=label)
        rows += [
            (name, d, r, m, seed, float(e))
            for d, curve in curves.items()
            for m, line in zip(grid, curve, strict=True)
            for seed, e in enumerate(line)
        ]
    for power, style, name in ((2, "k:", "by chance"), (1, "k--", "chosen")):
        first = found[name][3][0]
        label = f"(d / r)^{power}"
        ax.loglog(x, first * (x / x[0]) ** power, style, linewidth=0.8, label=label)
    ax.set_xlabel("d / r")
    ax.set_ylabel(f"samples until the mean excess is {LEVEL}")
    ax.set_title(f"The hard law of Theorem 4, k = 1, r = 2, {len(seeds)} seeds")
    ax.set_xticks(x, [f"{v:g}" for v in x])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)
    work.picture("price.png", figure)
    work.csv("price.csv", ("attributes", "d", "r", "samples", "seed", "excess"), rows)
    size = (
        "",
        f"d {sizes[0]} to {sizes[-1]}, {len(seeds)} seeds, samples {grid[0]} to {grid[-1]:,}",
    )
    chance, chosen = found["by chance"], found["chosen"]
    return [
        Claim(
            "price",
            "seen by chance, the price is (d/r)^2 (bars: 1.6 and 2.4)",
            f"exponent {chance[0]:.2f}",
            _within(chance[1], chance[2], 1.6, 2.4),
            *size,
            f"[{chance[1]:.2f}, {chance[2]:.2f}]",
        ),
        Claim(
            "price",
            "chosen, a linear price may be had (bar: 1.3)",
            f"exponent {chosen[0]:.2f} of subspace (ours); Theorem 7 is MBEG's",
            _within(chosen[1], chosen[2], -np.inf, 1.3),
            *size,
            f"[{chosen[1]:.2f}, {chosen[2]:.2f}]",
        ),
    ]


def regime(work: Drawing) -> list[Claim]:
    """Where Theorem 7 beats Corollary 3."""
    figure, axes = plot.figure(columns=2)
    rows, begins = [], {}
    for ax, d in zip(axes[0], (100, 1000), strict=True):
        k, r, epsilon = 1, 2, np.geomspace(1e-5, 1e-1, 33 if work.quick else 201)
        found = [bounds.compare(d, k, r, float(e)) for e in epsilon]
        lower = [
            max(bounds.active_lower(d, r, float(e)), bounds.passive_lower(d, k, d, float(e)))
            for e in epsilon
        ]
        ax.loglog(epsilon, [c.passive_samples for c in found], label="Corollary 3 (by chance)")
        ax.loglog(epsilon, [c.active_samples for c in found], label="Theorem 7 (MBEG)")
        ax.loglog(epsilon, lower, "k:", label="lower bounds (Theorems 5, 12)")
        rows += [
            (d, e, c.passive_samples, c.active_samples, b)
            for e, c, b in zip(epsilon, found, lower, strict=True)
        ]
        better = [float(e) for e, c in zip(epsilon, found, strict=True) if c.active_is_better]
        begins[d] = max(better) if better else 0.0
        if better:
            ax.axvspan(epsilon[0], begins[d], color="C1", alpha=0.12)
        ax.set_title(f"d = {d}, k = 1, r = 2; shaded: section 3.2 holds")
        ax.set_xlabel("epsilon")
        work.say(f"  d = {d}: MBEG's bound is the better one below epsilon = {begins[d]:.2g}")
    axes[0, 0].set_ylabel("samples")
    axes[0, 0].legend(frameon=False)
    work.picture("regime.png", figure)
    work.csv("regime.csv", ("d", "epsilon", "corollary_3", "theorem_7", "lower"), rows)
    agree = all((row[3] < row[2]) == (begins[row[0]] >= row[1] > 0) for row in rows)
    words = f"below epsilon = {begins[100]:.2g} (d = 100), {begins[1000]:.2g} (d = 1000)"
    return [
        Claim(
            "regime",
            "MBEG's bound is better for small epsilon, by the two conditions of 3.2",
            words,
            agree,
            "",
            "two formulas, no chance in them",
        )
    ]


def lemma13(work: Drawing) -> list[Claim]:
    """Lemma 13 (Lounici) beside Lemma 2: error of the covariance, measured and bounded, for large and small samples."""
    d, r, runs = 30, 5, work.runs(2, 10)
    grid = (500, 2000) if work.quick else (500, 1000, 2000, 5000, 10_000, 20_000)
    figure, axes = plot.figure(columns=2)
    rows, better = [], {}
    for ax, size in zip(axes[0], (1.0, 0.1), strict=True):
        law = bounds.coins_law(d, 3, 1 / 32, np.random.default_rng(0), pairs=False)
        C = size * law.moments  # samples of squared length `size` under the bound 1

        def error(m: int, seed: int, law: Any = law, size: float = size, C: Array = C) -> float:
            rng = np.random.default_rng([m, seed])
            X = np.sqrt(size) * law.draw(m, rng)
            sums = PairSums(d, False).add(np.where(rng.random(X.shape) < r / d, X, np.nan))
            found = covariance(sums, center=False, mask="bernoulli", per_sample=float(r))
            return float(np.linalg.norm(found - C))

        each = work.each(
            f"lemma13, {size:g}", [(m, t) for m in grid for t in range(runs)], lambda k: error(*k)
        )
        measured = [float(np.mean([each[m, t] for t in range(runs)])) for m in grid]
        two = [d / r / np.sqrt(m) for m in grid]
        thirteen = [bounds.lounici_error(C, r, m) for m in grid]
        ax.loglog(grid, measured, "o-", label="measured, equation (4)")
        ax.loglog(grid, two, "--", label="Lemma 2")
        ax.loglog(grid, thirteen, ":", label="Lemma 13, c1 = 1")
        ax.set(xlabel="samples", title=f"|x|^2 = {size:g}, bounded by 1; d = {d}, r = {r}")
        ax.legend(frameon=False)
        rows += list(zip([size] * len(grid), grid, measured, two, thirteen, strict=True))
        better[size] = all(b >= a for a, b in zip(two, thirteen, strict=True))
    axes[0, 0].set_ylabel("Frobenius error of the second moments")
    work.picture("lemma13.png", figure)
    header = ("square", "samples", "measured", "lemma_2", "lemma_13")
    work.csv("lemma13.csv", header, rows)
    of = ("", f"d = {d}, r = {r}, mean of {runs}")
    held = max(m / b for _, _, m, b, _ in rows)
    return [
        Claim(
            "lemma13",
            "Lemma 2: the expected error is at most (d/r) / sqrt(m)",
            f"largest ratio {held:.3f}",
            held <= 1.0,
            *of,
        ),
        Claim(
            "lemma13",
            "Lemma 13 is always worse than Lemma 2: samples that fill the ball",
            "with c1 = 1",
            better[1.0],
            *of,
        ),
        Claim(
            "lemma13",
            "Lemma 13 is always worse than Lemma 2: samples a tenth as large",
            "with c1 = 1 it adapts to the trace, Lemma 2 does not",
            better[0.1],
            *of,
        ),
    ]


def one_attribute(work: Drawing) -> list[Claim]:
    """One attribute a sample cannot tell two lines of the plane apart."""
    runs, grid = work.runs(200, 2000), (1, 3, 10, 30, 100)
    right: dict[int, list[float]] = {1: [], 2: []}
    for r in right:
        for m in grid:
            rng, hits = np.random.default_rng(m), 0
            for _ in range(runs):
                sign = int(rng.choice([-1, 1]))
                X = some_of(bounds.diagonals_law(sign).draw(m, rng), r, rng)
                product = covariance(PairSums(2, False).add(X), center=False)[0, 1]
                guess = (
                    np.sign(product) if product else rng.choice([-1, 1])
                )  # nothing seen of the product: a coin
                hits += int(guess == sign)
            right[r].append(hits / runs)
    shares = []
    for sign in (1, -1):
        X = bounds.diagonals_law(sign).draw(20_000, np.random.default_rng(5))
        shares.append([float(np.mean(X[:, j] > 0)) for j in (0, 1)])
    figure, axes = plot.figure(columns=2)
    at = np.arange(2)
    for c, (name, each) in enumerate(zip(("first law", "second law"), shares, strict=True)):
        axes[0, 0].bar(at + 0.35 * c - 0.18, each, 0.33, label=name, color=f"C{c}")
    axes[0, 0].set_xticks(at, ["attribute 1", "attribute 2"])
    axes[0, 0].set_ylim(0, 1)
    axes[0, 0].set_ylabel("share of positive values")
    axes[0, 0].legend(frameon=False)
    axes[0, 0].set_title("Each attribute alone: the same coin")
    for c, (r, each) in enumerate(right.items()):
        axes[0, 1].semilogx(grid, each, f"C{c}o-", label=f"r = {r}")
    axes[0, 1].set_ylim(0, 1.05)
    axes[0, 1].set_xlabel("samples")
    axes[0, 1].set_ylabel("chance of the right line")
    axes[0, 1].legend(frameon=False)
    axes[0, 1].set_title("One attribute a sample, or two")
    work.picture("one-attribute.png", figure)
    rows = [(r, m, p) for r, each in right.items() for m, p in zip(grid, each, strict=True)]
    work.csv("one-attribute.csv", ("r", "samples", "right"), rows)
    work.say(
        f"  right with {grid[-1]} samples: {right[1][-1]:.2f} by one attribute, {right[2][-1]:.2f} by two"
    )
    holds = abs(right[1][-1] - 0.5) < 4 * 0.5 / np.sqrt(runs) and min(right[2]) == 1.0
    words = f"right in {right[1][-1]:.2f} of runs at r = 1, {right[2][-1]:.2f} at r = 2"
    low, high = (right[1][-1] + side * 1.96 * 0.5 / np.sqrt(runs) for side in (-1, 1))
    size = ("", f"{runs} runs, {grid[-1]} samples")
    interval = f"r = 1: [{low:.3f}, {high:.3f}]"
    claim = "learning with r = 1 is impossible"
    return [Claim("one-attribute", claim, words, bool(holds), *size, interval)]


def single(work: Drawing) -> list[Claim]:
    """Samples until the law x = e_j is found: the open question of section 4."""
    r = 4
    sizes = (8, 32, 128) if work.quick else (8, 16, 32, 64, 128, 256)
    seeds = range(work.runs(5, 40))
    grid = [2**k for k in range(0, 12)]

    def one(d: int, m: int, seed: int) -> float:
        return _active(bounds.spike_law(d, (7 * seed) % d), d, r, m, seed)

    curves = _curves(work, "single, subspace", sizes, grid, seeds, one, 0.5)
    slope, low, high, needed = _exponent(curves, grid, 0.5)
    keys = [(d, seed) for d in sizes for seed in seeds]
    first = work.each(
        "single, MBEG", keys, lambda k: _first_product(k[0], (7 * k[1]) % k[0], r, k[1])
    )
    logs = np.log([[first[d, seed] for seed in seeds] for d in sizes])  # (sizes, seeds)
    x = np.array(sizes)
    rng = np.random.default_rng(0)

    def theirs(pick: Any) -> float:
        return float(np.polyfit(np.log(x), np.median(logs[:, pick], axis=1), 1)[0])

    drawn = [theirs(rng.integers(len(seeds), size=len(seeds))) for _ in range(DRAWS)]
    bottom, top = np.percentile(drawn, [2.5, 97.5])
    mbeg = theirs(np.arange(len(seeds)))
    figure, ax = new_panel(width=5.6)
    median = np.exp(np.median(logs, axis=1))
    ax.loglog(x, median, "C1o-", label=f"MBEG's first nonzero product: exponent {mbeg:.2f}")
    ax.loglog(x, needed, "C0o-", label=f"subspace (ours): exponent {slope:.2f}")
    ax.loglog(x, 2 * x**2 / r, "k:", linewidth=0.8, label="2 d^2 / r")
    ax.loglog(x, x / r, "k--", linewidth=0.8, label="d / r")
    ax.set_xlabel("d")
    ax.set_ylabel("samples until found in half of the runs")
    ax.set_title(f"x = e_j always, r = 4, {len(seeds)} seeds")
    ax.legend(frameon=False, fontsize=8)
    work.picture("single.png", figure)
    rows = [(d, o, float(m)) for d, o, m in zip(sizes, needed, median, strict=True)]
    work.csv("single.csv", ("d", "subspace", "mbeg"), rows)
    size = ("", f"d {sizes[0]} to {sizes[-1]}, {len(seeds)} seeds")
    return [
        Claim(
            "single",
            "MBEG needs of the order of d^2 samples on x = e_j (bar: 1.6)",
            f"exponent {mbeg:.2f}",
            _within(float(bottom), float(top), 1.6, np.inf),
            *size,
            f"[{bottom:.2f}, {top:.2f}]",
        ),
        Claim(
            "single",
            "(ours) open in the paper: a linear price for any epsilon (bar: 1.4)",
            f"exponent {slope:.2f} of subspace on this law",
            _within(low, high, -np.inf, 1.4),
            *size,
            f"[{low:.2f}, {high:.2f}]",
        ),
    ]


def _first_product(d: int, j: int, r: int, seed: int) -> int:
    """Return the samples until MBEG draws the pair (j, j): before that its weights stay uniform."""
    rng, W, done = np.random.default_rng(seed), np.eye(d) / d, 0
    while True:
        s, q = draw_pairs(W, 1, 0.3, 50_000 * r // 2, rng)
        hit = np.flatnonzero((s == j) & (q == j))
        if len(hit):
            return done + int(hit[0]) // (r // 2) + 1
        done += 50_000


FIGURES: dict[str, Figure] = {
    "excess": Figure(excess, 0.4),
    "price": Figure(price, 1.6),
    "regime": Figure(regime, 0.1),
    "lemma13": Figure(lemma13, 0.5),
    "one-attribute": Figure(one_attribute, 0.5),
    "single": Figure(single, 0.5),
    "air": Figure(air, 1.5),
    "digits": Figure(digits, 0.6),
}
PICTURES = {name: [f"{name}.png"] for name in FIGURES}
