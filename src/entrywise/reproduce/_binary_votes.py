"""Real matrices in random order: every learner and baseline."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise import plot
from entrywise.online import (
    Doubling,
    GoldmanWarmuth,
    KernelPerceptron,
    Learner,
    MatrixWinnow,
    OnlineFactorization,
    RandomizedRounding,
    RowColumnMajority,
    SymmetricWinnow,
    auto,
)
from entrywise.reproduce._binary_streams import TRIALS, Stream, hazan_of, mistakes
from entrywise.reproduce.figures import Claim, Drawing

DATA = {"zoo": "traits", "house_votes_84": "votes", "senate_106": "votes"}
COLORS = {"auto": "tab:orange", "kernel in hindsight": TRIALS}
RIVALS = (
    "Hazan et al., best of six",
    "randomised rounding",
    "Goldman-Warmuth",
    "MF with replay, best of six",
    "MF once, best of six",
    "rows and columns",
)


def votes(work: Drawing) -> list[Claim]:
    """Real matrices in random order: every learner and baseline."""
    found: dict[str, dict[str, float]] = {}
    for name in DATA:
        U = _matrix(name)
        if U is None:
            work.say(f"  {name}: not there, set ENTRYWISE_DATA to the folder of data sets")
        else:
            found[name] = _counted(work, name, U)
    if not found:
        return []
    names = list(next(iter(found.values())))
    work.csv(
        "votes.csv",
        ("data", *names),
        [(d, *row.values()) for d, row in found.items()],
    )
    figure, axes = plot.figure(columns=len(found), width=4.2)
    for axis, (name, row) in zip(axes[0], found.items(), strict=True):
        _draw(axis, name, row)
        axis.tick_params(labelsize=8, labelleft=axis is axes[0, 0])
    work.picture("votes.png", figure)
    return [_claim(name, row) for name, row in found.items()]


def _matrix(name: str) -> NDArray[np.int64] | None:
    path = Path(os.environ.get("ENTRYWISE_DATA", "")) / name / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as file:
        return np.asarray(file[DATA[name]], np.int64)


def _counted(work: Drawing, name: str, U: NDArray[np.int64]) -> dict[str, float]:
    """Return the mistakes of each learner, and the number of labels."""
    rows, cols = np.nonzero(U)
    order = np.random.default_rng(90).permutation(len(rows))[: 3000 if work.quick else None]
    i, j = rows[order], cols[order]
    stream: Stream = (i, j, U[i, j])
    learners = _learners(U, slow=sum(U.shape) >= 150 or work.quick)

    def counted(which: str) -> float:
        return min((mistakes(x, stream) for x in learners[which]), default=math.nan)

    found: dict[str, float] = work.each(f"votes, {name}", list(learners), counted)
    return found | {"labels": len(order)}


def _learners(U: NDArray[np.int64], slow: bool) -> dict[str, list[Learner]]:
    """Return each learner at its settings; those that solve a program at each trial only where it is small."""
    settings = [(r, q) for r in (3, 10) for q in (0.03, 0.1, 0.3)]
    return {
        "auto": [auto()],
        "symmetric": [SymmetricWinnow()],
        "Algorithm 1, rate 1": [MatrixWinnow(1.0)],
        "Algorithm 1, slack .15": [MatrixWinnow(1.0, 0.15)],
        "doubling": [Doubling()],
        "Hazan et al., best of six": [] if slow else hazan_of(U.shape),
        "randomised rounding": [] if slow else [RandomizedRounding(U.shape)],
        "Goldman-Warmuth": [GoldmanWarmuth()],
        "MF with replay, best of six": [OnlineFactorization(r, q, replay=10) for r, q in settings],
        "MF once, best of six": [OnlineFactorization(r, q) for r, q in settings],
        "rows and columns": [RowColumnMajority()],
        "kernel in hindsight": [KernelPerceptron((U.T @ U / len(U)) ** 3)],
    }


def _draw(axis: Any, name: str, row: dict[str, float]) -> None:
    shown = [x for x in row if x != "labels"][::-1]
    share = [100 * row[x] / row["labels"] for x in shown]
    bars = axis.barh(shown, share, color=[COLORS.get(x, "tab:blue") for x in shown])
    words = ["" if math.isnan(x) else f"{x:.1f}" for x in share]
    axis.bar_label(bars, words, fontsize=8, padding=2)
    for k in np.flatnonzero(np.isnan(share)):
        axis.text(0.3, k, "too slow here", fontsize=8, va="center", color=TRIALS)
    axis.set(
        xlabel="mistakes, % of labels",
        title=name.replace("_", " "),
        xlim=(0, 1.15 * np.nanmax(share)),
    )


def _claim(name: str, row: dict[str, float]) -> Claim:
    best = np.nanmin([row[x] for x in RIVALS])
    what = f"(ours) {name}: auto against the best baseline, tuned in hindsight (bar: 2 % more mistakes)"
    words = f"{row['auto']:.0f} and {best:.0f}"
    size = ("", f"{row['labels']} labels, one order")
    return Claim("votes", what, words, bool(row["auto"] <= 1.02 * best), *size)
