"""Captured variance against attributes read, on air quality sensors with real gaps and on digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from entrywise.active import subspace
from entrywise.linalg.pairs import PairSums
from entrywise.passive.partial_pca import covariance, partial_pca
from entrywise.passive.trackers import grouse, impute_pca, petrels, zero_fill_pca
from entrywise.play import play
from entrywise.queries import Batch
from entrywise.reproduce.figures import Claim, new_figure, save_csv, save_figure
from entrywise.types import Array

Say = Callable[[str], None]


def air(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """132 sensors of Beijing's air, gaps as they were: captured variance of three components."""
    from entrywise.datasets import beijing_air

    names = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
    X = np.hstack([beijing_air(name) for name in names])
    X = X / np.nanstd(X, axis=0)
    rng = np.random.default_rng(0)
    X = X[rng.permutation(len(X))[: 2000 if quick else 10_000]]
    return _captured(
        folder,
        "air",
        X,
        3,
        (2, 8) if quick else (2, 4, 8, 16, 32),
        quick,
        say,
        "132 sensors, 3 components",
        alike=True,
    )


def digits(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """8 x 8 handwritten digits: captured variance of five components; pixels differ much in size."""
    from sklearn.datasets import load_digits

    X = np.asarray(load_digits().data, dtype=np.float64)
    X = X[np.random.default_rng(0).permutation(len(X))]
    return _captured(
        folder,
        "digits",
        X,
        5,
        (4, 16) if quick else (2, 4, 8, 16, 32),
        quick,
        say,
        "64 pixels, 5 components",
    )


def _captured(
    folder: Path,
    name: str,
    X: Array,
    k: int,
    reads: tuple[int, ...],
    quick: bool,
    say: Say,
    title: str,
    alike: bool = False,
) -> list[Claim]:
    d = X.shape[1]
    reference = covariance(PairSums(d).add(X))
    found: dict[str, list[float]] = {}
    rows = []
    for r in reads:
        for seed in range(1 if quick else 3):
            for method, share in _all(X, k, r, reference, seed, quick).items():
                rows.append((r, method, seed, share))
    for method in dict.fromkeys(row[1] for row in rows):
        found[method] = [
            float(np.mean([s for r_, m_, _, s in rows if (r_, m_) == (r, method)])) for r in reads
        ]
        say(
            f"  {method}: "
            + ", ".join(f"{s:.3f}" for s in found[method])
            + f" at r = {', '.join(map(str, reads))}"
        )
    figure, axes = new_figure(width=6.4, height=4.2)
    ax = axes[0, 0]
    styles = ("o-", "s-", "^--", "v--", "x:", "d:")
    for style, (method, each) in zip(styles, found.items(), strict=False):
        ax.semilogx(reads, each, style, label=method, base=2)
    ax.set_xticks(reads, [str(r) for r in reads])
    ax.set_xlabel("attributes read of each sample")
    ax.set_ylabel("share of the best variance captured")
    ax.set_ylim(0, 1.02)
    ax.set_title(f"{title}, {len(X):,} samples")
    ax.legend(frameon=False, loc="lower right")
    save_figure(folder / f"{name}.png", figure)
    save_csv(folder / f"{name}.csv", ("r", "method", "seed", "captured"), rows)
    ours, chosen = found["partial PCA"], found["chosen attributes"]
    ours_mean, zero_mean = float(np.mean(ours)), float(np.mean(found["zero fill"]))
    words = f"{chosen[0]:.3f} chosen, {ours[0]:.3f} by chance at r = {reads[0]}"
    if alike:  # standardised: there is no larger attribute to look at
        choosing = (
            "attributes all alike: choosing costs little",
            words,
            chosen[0] > ours[0] - 0.05,
        )
    else:
        choosing = ("choosing attributes helps", words, chosen[0] > ours[0])
    return [
        Claim(name, "a few attributes a sample suffice", f"{ours[-1]:.3f} at r = {reads[-1]} of {d}", ours[-1] > 0.95),
        Claim(name, *choosing),
        Claim(name, "better than filling with zeros", f"mean {ours_mean:.3f} against {zero_mean:.3f}", ours_mean > zero_mean),
    ]  # fmt: skip


def _all(X: Array, k: int, r: int, reference: Array, seed: int, quick: bool) -> dict[str, float]:
    """Return what each method captures, all with r looks a sample; a look at a gap is lost."""
    rng = np.random.default_rng(100 * seed + r)
    seen = np.where(np.argsort(rng.random(X.shape), axis=1) < r, X, np.nan)
    mean = np.nan_to_num(np.nanmean(seen, axis=0))
    centred = seen - mean

    def look(batch: Batch) -> Any:
        return [None if np.isnan(x) else x for x in X[batch.rows, batch.cols]]

    plan = subspace(X.shape[1], rank=k, per_sample=r, samples=len(X), center=True, rng=seed)
    found = {
        "partial PCA": partial_pca(seen, k),
        "chosen attributes": play(plan, look),
        "zero fill": zero_fill_pca(np.nan_to_num(centred), k),
        "soft-impute": impute_pca(centred, k, max_rank=3 * k, steps=6, max_sweeps=50, rng=seed)
        if not quick and seed == 0  # slow: one seed
        else None,
        "GROUSE": grouse(centred, k, rng=seed),
        "PETRELS": petrels(centred, k, rng=seed),
    }
    return {name: space.captured(reference) for name, space in found.items() if space is not None}
