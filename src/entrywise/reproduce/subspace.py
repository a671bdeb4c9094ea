"""Subspace learning with partial information (Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016), figure by figure.

The paper prints no experiments: its theorems are measured here, on their own laws and on real data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from entrywise.active import subspace
from entrywise.active.subspaces.bandit import draw_pairs
from entrywise.bounds import subspace as bounds
from entrywise.gallery import sample_law
from entrywise.linalg.pairs import PairSums
from entrywise.oracles import MatrixOracle
from entrywise.passive.partial_pca import covariance, from_covariance, partial_pca
from entrywise.play import play
from entrywise.reproduce._subspace_data import air, digits
from entrywise.reproduce.figures import Claim, Figure, new_figure, save_csv, save_figure
from entrywise.types import Array

Say = Callable[[str], None]


def some_of(X: Array, r: int, rng: np.random.Generator) -> Array:
    """Return X with r attributes of each sample left, drawn without replacement."""
    return np.where(np.argsort(rng.random(X.shape), axis=1) < r, X, np.nan)


def unit(X: Array) -> Array:
    """Return samples on the unit sphere: the theorems take |x| <= 1."""
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _excess(d: int, k: int, r: int, m: int, seeds: range) -> float:
    """Mean excess of partial PCA on a flat law on the sphere."""
    found = []
    for seed in seeds:
        law, rng = sample_law("flat", d, k, seed), np.random.default_rng(seed)
        many = unit(law.draw(40_000, rng))
        C = many.T @ many / len(many)
        best = float(np.linalg.eigvalsh(C)[-k:].sum())
        pca = partial_pca(some_of(unit(law.draw(m, rng)), r, rng), k, center=False)
        found.append(best * (1.0 - pca.captured(C)))
    return float(np.mean(found))


def excess(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Excess loss against samples, d and k, with Corollary 3."""
    seeds = range(2 if quick else 5)
    grid = (1000, 4000) if quick else (1000, 2000, 5000, 10_000, 20_000, 50_000)
    rows: list[tuple[Any, ...]] = []
    figure, axes = new_figure(columns=3)
    for c, r in enumerate((2, 5, 10, 25)):
        found = [_excess(50, 3, r, m, seeds) for m in grid]
        bound = [bounds.popca_excess(50, 3, r, m) for m in grid]
        rows += [(50, 3, r, m, f, b) for m, f, b in zip(grid, found, bound, strict=True)]
        axes[0, 0].loglog(grid, found, f"C{c}o-", label=f"r = {r}")
        axes[0, 0].loglog(grid, bound, f"C{c}--", linewidth=1)
        say(
            f"  r = {r}: {found[-1]:.4f} after {grid[-1]} samples, Corollary 3 allows {bound[-1]:.3f}"
        )
    m = 2000 if quick else 10_000
    for ax, name, values in ((axes[0, 1], "d", (10, 25, 50, 100)), (axes[0, 2], "k", (1, 2, 4, 8))):
        sizes = [{"d": 50, "k": 3, name: v} for v in values]
        found = [_excess(s["d"], s["k"], 5, m, seeds) for s in sizes]
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
    save_figure(folder / "excess.png", figure)
    save_csv(folder / "excess.csv", ("d", "k", "r", "samples", "excess", "corollary_3"), rows)
    ratio = max(row[4] / row[5] for row in rows)
    return [
        Claim(
            "excess",
            "expected excess at most (d/r) sqrt(k/m)",
            f"largest ratio {ratio:.3f}",
            ratio <= 1.0,
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


def _needed(excess_at: Callable[[int, int], float], level: float, seeds: range, start: int) -> int:
    """Return the smallest m, to a third, whose mean excess over the seeds is at most `level`."""
    m = float(start)
    while np.mean([excess_at(round(m), seed) for seed in seeds]) > level and m < 1e6:
        m *= 1.33
    return round(m)


def price(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Samples needed on the hard law of Theorem 4, attributes seen by chance or chosen."""
    r, sizes, seeds = 2, (8, 24) if quick else (8, 16, 32, 64, 128), range(6 if quick else 25)
    found: dict[str, list[int]] = {"by chance": [], "chosen": []}
    rows = []
    for d in sizes:
        laws = [
            bounds.coins_law(d, 1, 1 / 32, np.random.default_rng(1000 + seed)) for seed in seeds
        ]
        for name, excess_of in (("by chance", _passive), ("chosen", _active)):
            at = lambda m, seed, d=d, laws=laws, f=excess_of: f(laws[seed], d, r, m, seed)  # noqa: E731
            found[name].append(_needed(at, 0.05, seeds, 8))
            rows.append((name, d, r, found[name][-1]))
        say(
            f"  d = {d}: "
            + ", ".join(f"{name} {each[-1]:,} samples" for name, each in found.items())
        )
    figure, axes = new_figure()
    ax, x = axes[0, 0], np.array(sizes) / r
    slopes = {}
    for c, (name, each) in enumerate(found.items()):
        slopes[name] = float(np.polyfit(np.log(x), np.log(each), 1)[0])
        ax.loglog(x, each, f"C{c}o-", label=f"attributes {name}: exponent {slopes[name]:.2f}")
    for power, style, name in ((2, "k:", "by chance"), (1, "k--", "chosen")):
        ax.loglog(
            x, found[name][0] * (x / x[0]) ** power, style, linewidth=0.8, label=f"(d / r)^{power}"
        )
    ax.set_xlabel("d / r")
    ax.set_ylabel("samples until the mean excess is 0.05")
    ax.set_title("The hard law of Theorem 4, k = 1, r = 2")
    ax.set_xticks(x, [f"{v:g}" for v in x])
    ax.minorticks_off()
    ax.legend(frameon=False)
    save_figure(folder / "price.png", figure)
    save_csv(folder / "price.csv", ("attributes", "d", "r", "samples"), rows)
    passive, active = slopes["by chance"], slopes["chosen"]
    return [
        Claim(
            "price",
            "seen by chance, the price is (d/r)^2",
            f"exponent {passive:.2f}",
            1.6 <= passive <= 2.4,
        ),
        Claim(
            "price",
            "chosen, a linear price may be had",
            f"exponent {active:.2f} of subspace",
            active <= 1.3,
        ),
    ]


def regime(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Where Theorem 7 beats Corollary 3."""
    figure, axes = new_figure(columns=2)
    rows, begins = [], {}
    for ax, d in zip(axes[0], (100, 1000), strict=True):
        k, r, epsilon = 1, 2, np.geomspace(1e-5, 1e-1, 33 if quick else 201)
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
        say(f"  d = {d}: MBEG's bound is the better one below epsilon = {begins[d]:.2g}")
    axes[0, 0].set_ylabel("samples")
    axes[0, 0].legend(frameon=False)
    save_figure(folder / "regime.png", figure)
    save_csv(folder / "regime.csv", ("d", "epsilon", "corollary_3", "theorem_7", "lower"), rows)
    agree = all((row[3] < row[2]) == (begins[row[0]] >= row[1] > 0) for row in rows)
    words = f"below epsilon = {begins[100]:.2g} (d = 100), {begins[1000]:.2g} (d = 1000)"
    return [
        Claim(
            "regime",
            "MBEG's bound is better for small epsilon, by the two conditions of 3.2",
            words,
            agree,
        )
    ]


def one_attribute(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """One attribute a sample cannot tell two lines of the plane apart."""
    runs, grid = 200 if quick else 2000, (1, 3, 10, 30, 100)
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
    figure, axes = new_figure(columns=2)
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
    save_figure(folder / "one-attribute.png", figure)
    rows = [(r, m, p) for r, each in right.items() for m, p in zip(grid, each, strict=True)]
    save_csv(folder / "one-attribute.csv", ("r", "samples", "right"), rows)
    say(
        f"  right with {grid[-1]} samples: {right[1][-1]:.2f} by one attribute, {right[2][-1]:.2f} by two"
    )
    holds = abs(right[1][-1] - 0.5) < 4 * 0.5 / np.sqrt(runs) and min(right[2]) == 1.0
    words = f"right in {right[1][-1]:.2f} of runs at r = 1, {right[2][-1]:.2f} at r = 2"
    return [Claim("one-attribute", "learning with r = 1 is impossible", words, bool(holds))]


def single(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Samples until the law x = e_j is found: the open question of section 4."""
    r, sizes, seeds = (
        4,
        (8, 32, 128) if quick else (8, 16, 32, 64, 128, 256, 512),
        range(5 if quick else 25),
    )
    ours, theirs, rows = [], [], []
    for d in sizes:
        laws = [bounds.spike_law(d, (7 * seed) % d) for seed in seeds]
        at = lambda m, seed, d=d, laws=laws: _active(laws[seed], d, r, m, seed)  # noqa: E731
        ours.append(_needed(at, 0.5, seeds, 1))
        theirs.append(
            float(np.median([_first_product(d, (7 * seed) % d, r, seed) for seed in seeds]))
        )
        rows.append((d, ours[-1], theirs[-1]))
    figure, axes = new_figure()
    ax, x = axes[0, 0], np.array(sizes)
    slopes = [float(np.polyfit(np.log(x), np.log(y), 1)[0]) for y in (ours, theirs)]
    ax.loglog(x, theirs, "C1o-", label=f"MBEG's first nonzero product: exponent {slopes[1]:.2f}")
    ax.loglog(x, ours, "C0o-", label=f"subspace: exponent {slopes[0]:.2f}")
    ax.loglog(x, 2 * x**2 / r, "k:", linewidth=0.8, label="2 d^2 / r")
    ax.loglog(x, x / r, "k--", linewidth=0.8, label="d / r")
    ax.set_xlabel("d")
    ax.set_ylabel("samples until found in half of the runs")
    ax.set_title("x = e_j always, r = 4")
    ax.legend(frameon=False)
    save_figure(folder / "single.png", figure)
    save_csv(folder / "single.csv", ("d", "subspace", "mbeg"), rows)
    say(f"  exponents of d: subspace {slopes[0]:.2f}, MBEG {slopes[1]:.2f}")
    return [
        Claim(
            "single",
            "MBEG needs of the order of d^2 samples on x = e_j",
            f"exponent {slopes[1]:.2f}",
            slopes[1] > 1.6,
        ),
        Claim(
            "single",
            "open: a linear price for any epsilon",
            f"exponent {slopes[0]:.2f} on this law",
            slopes[0] < 1.4,
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
    "excess": excess,
    "price": price,
    "regime": regime,
    "one-attribute": one_attribute,
    "single": single,
    "air": air,
    "digits": digits,
}
