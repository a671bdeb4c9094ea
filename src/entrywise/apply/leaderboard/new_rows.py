"""New rows against all that is known: a replay on the known rows says how far off such scores are.

Every known row is treated as new once: the others are fitted, the same plan buys its columns, and its score is compared
with the truth. The quantile of those errors, in standard deviations of the fit, makes the interval of the really new rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.calibration import row_means
from entrywise.active.cells.designs import greedy_columns
from entrywise.apply.leaderboard.bought import Bought
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.results import LowRank
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]

FOLDS = 5  # parts of the known rows, each treated as new while the others are history


@dataclass(frozen=True, eq=False)
class NewScores:
    """Scores of new rows; ``deviation`` makes a normal interval at the level asked for as wide as the replay says."""

    mean: Array
    deviation: Array
    how: str


def against_history(bought: Bought, new: Mask, price: Array, level: float) -> NewScores:
    """Return the scores of new rows from their own cells and a fit of the known rows, with replayed intervals."""
    from scipy.stats import norm

    seen = bought.observations()
    old = np.flatnonzero(~new)
    history = _rows(seen, old)
    fit = low_rank(history)
    fresh = np.flatnonzero(new)
    own = _rows(seen, fresh)
    mean, spread = folded_means(fit, own, bought.there[fresh])
    replay = Replay.of(history)
    wider = np.ones(len(fresh))
    memory: dict[tuple[int, bytes], float] = {}
    counts = np.bincount(own.rows, minlength=len(fresh))
    for at, i in enumerate(fresh):
        unit = (
            price[i] / price[i].min()
        )  # only quotients matter: rows of one price are replayed once
        key = (int(counts[at]), unit.tobytes())
        if key not in memory:
            money = float(unit[own.cols[own.rows == at]].sum())
            memory[key] = quantile(replay.ratios(unit, money), level)
        wider[at] = memory[key]
    how = f"{len(old)} known rows treated as new in turn, the same plan replayed on them"
    return NewScores(mean, spread * wider / float(norm.ppf(0.5 + level / 2)), how)


def folded_means(fit: LowRank, own: Observations, there: Mask) -> tuple[Array, Array]:
    """Return mean and standard deviation of the score of rows that `fit` has not seen, from their own cells."""
    folded = fit.fold_in(own)
    gaps = np.nonzero(~there)
    rows, cols = np.r_[own.rows, gaps[0]], np.r_[own.cols, gaps[1]]
    values = np.r_[own.values, np.zeros(len(gaps[0]))]
    mean, variance = row_means(folded, rows, cols, values)  # gaps count as zeros, known for sure
    larger = fit.shape[1] / np.maximum(there.sum(axis=1), 1)
    return mean * larger, np.sqrt(variance) * larger


@dataclass(frozen=True, eq=False)
class Replay:
    """Known rows in parts, and for each part a fit of the others."""

    history: Observations
    fold: Indices
    fits: tuple[LowRank, ...]

    @classmethod
    def of(cls, history: Observations, folds: int = FOLDS, rng: int = 0) -> Replay:
        """Return the parts of the known rows with their fits."""
        m = history.shape[0]
        fold = np.random.default_rng(rng).permutation(m) % folds
        fits = []
        for f in range(folds):
            rest = _rows(history, np.flatnonzero(fold != f))
            fits.append(low_rank(rest))
        return cls(history, fold, tuple(fits))

    def errors(self, price: Array, money: float) -> tuple[Array, Array]:
        """Return what each known row's score would have been off, and its standard deviation, had it been bought new."""
        m, n = self.history.shape
        off, spread = np.zeros(m), np.zeros(m)
        table = self.history.to_dense()
        for f, fit in enumerate(self.fits):
            rows = np.flatnonzero(self.fold == f)
            there = ~np.isnan(table[rows])
            at, columns = _same_plan(fit, there, price, money)
            own = Observations.from_triplets(at, columns, table[rows][at, columns], (len(rows), n))
            mean, spread[rows] = folded_means(fit, own, there)
            off[rows] = mean - np.nanmean(table[rows], axis=1)
        return off, spread

    def ratios(self, price: Array, money: float) -> Array:
        """Return the replayed errors in standard deviations, without sign."""
        off, spread = self.errors(price, money)
        return np.abs(off) / np.maximum(spread, np.finfo(float).tiny)


def quantile(ratios: Array, level: float) -> float:
    """Return the conformal quantile: the ceil((c + 1) level)-th smallest of c; the largest where they are too few."""
    k = math.ceil((len(ratios) + 1) * level)
    return float(np.sort(ratios)[min(k, len(ratios)) - 1])


def _same_plan(fit: LowRank, there: Mask, price: Array, money: float) -> tuple[Indices, Indices]:
    """Return (row, column) of the cells that the plan would have bought of each row."""
    memory: dict[bytes, Indices] = {}
    rows, cols = [], []
    for at, open_ in enumerate(there):
        key = open_.tobytes()
        if key not in memory:
            share = float(
                np.mean(open_)
            )  # a row with gaps has as large a share of its cells bought
            memory[key] = greedy_columns(fit, open_, price, share * money)
        cols.append(memory[key])
        rows.append(np.full(len(memory[key]), at))
    return np.concatenate(rows), np.concatenate(cols)


def _rows(seen: Observations, which: Indices) -> Observations:
    """Return the observations of some rows alone, numbered anew."""
    place = np.full(seen.shape[0], -1)
    place[which] = np.arange(len(which))
    keep = place[seen.rows] >= 0
    return Observations.from_triplets(
        place[seen.rows[keep]],
        seen.cols[keep],
        seen.values[keep],
        (len(which), seen.shape[1]),
    )
