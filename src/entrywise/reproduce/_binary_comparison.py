"""The paper's main comparison: its bound beside those of its rivals, and what their algorithms do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise import plot
from entrywise.bounds.binary import (
    bicluster_bound,
    data_bound,
    regret_bound,
    rounding_bound,
    winnow_bound,
)
from entrywise.online import MatrixWinnow, RandomizedRounding, auto
from entrywise.reproduce._binary_streams import TRIALS, hazan_of, legend, mistakes, stream_of
from entrywise.reproduce.figures import Claim, Drawing, gap

KINDS = 3  # of rows and of columns
OURS, HAZAN, ROUNDING = "Theorem 3.1", "Hazan et al.", "Cesa-Bianchi and Shamir"  # whose bounds
LEARNERS = ("Algorithm 1", "Hazan et al., best of six", "randomised rounding", "auto")


@dataclass(frozen=True)
class _Counts:
    """Bounds and mistakes by side and stream."""

    sides: tuple[int, ...]
    seeds: int
    each: dict[tuple[int, int], dict[str, float]]

    @property
    def columns(self) -> list[str]:
        return list(next(iter(self.each.values())))

    def at(self, side: int, column: str) -> NDArray[np.float64]:
        """Return a column at one side, a number a stream."""
        return np.array([self.each[side, t][column] for t in range(self.seeds)])

    def mean(self, column: str) -> list[float]:
        """Return the mean of a column at each side."""
        return [float(self.at(side, column).mean()) for side in self.sides]


def comparison(work: Drawing) -> list[Claim]:
    """The paper's main comparison: bounds of Hazan et al. and of Cesa-Bianchi and Shamir, and their algorithms."""
    sides = (10, 20, 30) if work.quick else (10, 20, 40)
    seeds = work.runs(1, 5)
    keys = [(side, seed) for side in sides for seed in range(seeds)]
    found = _Counts(sides, seeds, work.each("comparison", keys, _counted))
    work.csv(
        "comparison.csv",
        ("side", "seed", *found.columns),
        [(*key, *found.each[key].values()) for key in keys],
    )
    far = np.geomspace(10, 1e6, 60)
    bounds = _bounds(far)
    figure, axes = plot.figure(columns=2, width=6.4, height=4.4)
    _draw_counts(axes[0, 0], found)
    _draw_bounds(axes[0, 1], far, bounds)
    work.picture("comparison.png", figure)
    size = ("", f"to {sides[-1]} x {sides[-1]}, {seeds} streams; bounds to a million")
    return [*_bounds_claims(far, bounds, size), *_learners_claims(found, size)]


def _counted(key: tuple[int, int]) -> dict[str, float]:
    side, seed = key
    stream = stream_of(side, side, KINDS, KINDS, 0.0, 200 + seed)
    rows, cols, labels = stream
    U = np.zeros((side, side))
    U[rows, cols] = labels
    norm = float(np.linalg.norm(U, "nuc"))
    winnow, hazan, rounding, our_auto = LEARNERS
    return {
        OURS: bicluster_bound(side, side, KINDS, KINDS),
        "Theorem 3.1, margins from the labels": data_bound(U)[0],
        HAZAN: regret_bound(norm, side, side, side * side) / 2,
        ROUNDING: rounding_bound(norm, rows, cols) / 2,
        winnow: mistakes(MatrixWinnow(1 / math.sqrt(KINDS)), stream),
        hazan: min(mistakes(x, stream) for x in hazan_of((side, side))),
        rounding: mistakes(RandomizedRounding((side, side), norm), stream),
        our_auto: mistakes(auto(), stream),
    }


def _bounds(far: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the bounds at sides that no stream reaches, for a trace norm of n sqrt(k)."""
    root = math.sqrt(KINDS)
    hazan = [regret_bound(n * root, int(n), int(n), int(n * n)) / 2 for n in far]
    return {
        OURS: np.array([winnow_bound(int(2 * n), 1 / root) for n in far]),
        HAZAN: np.array(hazan),
        ROUNDING: far * root * np.sqrt(far),
    }


def _draw_counts(axis: Any, found: _Counts) -> None:
    for c, name in enumerate(found.columns[:4]):
        axis.plot(found.sides, found.mean(name), "--", color=f"C{c}", label=f"bound: {name}")
    for c, name in enumerate(LEARNERS):
        axis.plot(found.sides, found.mean(name), "o-", color=f"C{c + 4}", label=name)
    trials = [x**2 for x in found.sides]
    axis.plot(found.sides, trials, ":", color=TRIALS, label="every trial wrong")
    axis.set(xlabel="rows = columns", ylabel="mistakes", xscale="log", yscale="log")
    axis.set(title=f"{KINDS} x {KINDS} biclusters, every entry once")
    axis.set_xticks(found.sides, [str(x) for x in found.sides], minor=False)
    axis.set_xticks([], minor=True)
    legend(axis)


def _draw_bounds(
    axis: Any, far: NDArray[np.float64], bounds: dict[str, NDArray[np.float64]]
) -> None:
    for c, (name, values) in zip((0, 2, 3), bounds.items(), strict=True):
        axis.loglog(far, values / far**2, "--", color=f"C{c}", label=name)
    axis.axhline(1.0, color=TRIALS, ls=":", label="every trial wrong")
    axis.set(xlabel="rows = columns", ylabel="bound, share of the trials")
    axis.set(title=f"the same bounds further on, trace norm n sqrt({KINDS})")
    legend(axis)


def _bounds_claims(
    far: NDArray[np.float64], bounds: dict[str, NDArray[np.float64]], size: tuple[str, str]
) -> list[Claim]:
    speaks = {name: _first(far[values < far**2]) for name, values in bounds.items()}
    crossing = _first(far[bounds[OURS] < bounds[ROUNDING]])
    ours = speaks[OURS]
    return [
        Claim(
            "comparison",
            "Theorem 3.1 becomes non-trivial after fewer examples than the bound of Hazan et al.",
            f"from n = {ours:.0f} against {speaks[HAZAN]:.0f}",
            ours < speaks[HAZAN],
            *size,
        ),
        Claim(
            "comparison",
            "and after fewer than that of Cesa-Bianchi and Shamir",
            f"from n = {ours:.0f} against {speaks[ROUNDING]:.0f}; smaller than "
            f"theirs from n = {crossing:.2g} on",
            ours < speaks[ROUNDING],
            *size,
        ),
    ]


def _learners_claims(found: _Counts, size: tuple[str, str]) -> list[Claim]:
    side = found.sides[-1]
    last = {name: found.at(side, name) for name in LEARNERS}
    words = ", ".join(f"{name} {v.mean():.0f}" for name, v in last.items())
    winnow, hazan, rounding, _ = LEARNERS
    within = all(x[rounding] <= 2 * x[ROUNDING] for x in found.each.values())
    first = gap(last[winnow], last[hazan], ratio=True)
    return [
        Claim(
            "comparison",
            "(ours) randomised rounding by signs stays below twice its bound",
            words,
            within,
            *size,
        ),
        Claim(
            "comparison",
            f"(ours) Algorithm 1 makes fewer mistakes than Hazan et al. at n = {side}",
            words,
            first.below,
            *size,
            str(first),
        ),
    ]


def _first(values: NDArray[np.float64]) -> float:
    return float(values[0]) if len(values) else math.inf
