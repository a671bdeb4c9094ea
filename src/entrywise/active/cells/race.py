"""Which row is best: its chance of being so, and when one may stop and say it.

All rows are measured on columns in one random order, so any two of them share the columns of the shorter one and their
difference is paired. A winner is named when the evidence against a tie with every other row is strong enough
at any time, see :mod:`entrywise.bounds.anytime_t`.
"""

from __future__ import annotations

import math

import numpy as np

from entrywise.bounds.anytime_t import log_evidence
from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.types import Array, Indices

DRAWS = 4000  # of the row means, for the chance of being best
FEWEST = 5  # pairs before a winner may be named: skewed differences are far from normal at first


def row_errors(rows: Indices, squares: Array, cells: Indices) -> tuple[Array, Array]:
    """Return deviation and degrees of freedom of every row's mean, from the squared errors of its k cells of n, (m,)."""
    m = len(cells)
    counts = np.bincount(rows, minlength=m).astype(np.float64)
    variance, added = shrunk_variances(
        np.bincount(rows, squares, m) / np.maximum(counts, 1.0), counts
    )
    rest = 1.0 / np.maximum(counts, 1.0) - 1.0 / np.maximum(cells, 1)
    return np.sqrt(variance * np.maximum(rest, 0.0)), counts + added


def chances_of_best(
    mean: Array, deviation: Array, freedom: Array, rng: np.random.Generator
) -> Array:
    """Return for every row the probability that its mean is the largest, errors independent between rows, (m,)."""
    draws = rng.standard_normal((DRAWS, len(mean)))
    draws /= np.sqrt(rng.chisquare(freedom, (DRAWS, len(mean))) / freedom)
    wins = np.bincount(np.argmax(mean + deviation * draws, axis=1), minlength=len(mean))
    return np.asarray((wins + 0.5) / (DRAWS + 0.5 * len(mean)))  # never quite 0 or 1


def named_winner(
    table: Array, confidence: float, horizon: float, population: float = math.inf
) -> int | None:
    """Return the row that surely has the largest mean, None while nobody may say so.

    Parameters
    ----------
    table : ndarray of shape (m, k)
        What was measured, columns in the common random order, NaN where nothing was.
    confidence : float
        A wrong winner is ever named with probability at most 1 - confidence: the evidence against a tie with
        each of the m - 1 others must reach (m - 1) / (1 - confidence).
    horizon : float
        Pairs at which the test is to be sharpest.
    population : float
        How many columns there are in all.
    """
    m = len(table)
    if m < 2:
        return 0
    leader, evidence = against_leader(table, horizon, population)
    enough = np.log((m - 1) / (1.0 - confidence))
    return leader if bool(np.all(np.delete(evidence, leader) >= enough)) else None


def against_leader(table: Array, horizon: float, population: float = math.inf) -> tuple[int, Array]:
    """Return the row with the largest mean, and the log evidence that each other row is below it, shape (m,).

    0 for the leader, for rows with fewer than five common columns, and for those that are above it on them.
    """
    there = ~np.isnan(table)
    counts = there.sum(axis=1)
    means = np.where(there, table, 0.0).sum(axis=1) / np.maximum(counts, 1)
    leader = int(np.argmax(np.where(counts > 0, means, -np.inf)))
    apart = table[leader] - table  # (m, k)
    pairs = np.sum(~np.isnan(apart), axis=1)
    mean = np.nansum(apart, axis=1) / np.maximum(pairs, 1)
    squares = np.nansum((apart - mean[:, None]) ** 2, axis=1)
    evidence = log_evidence(mean, squares / np.maximum(pairs - 1, 1), pairs, horizon, population)
    return leader, np.where((mean > 0) & (pairs >= FEWEST), evidence, 0.0)
