"""What the baselines share: a penalty chosen on held-out entries, cells listed once, limits checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.results import LowRank
from entrywise.types import Array, Indices

WORSE = 3  # penalties in a row that are worse than the best before the path ends


def best_penalty(
    observations: Observations,
    penalties: Sequence[float],
    fit: Callable[[Observations, float, LowRank | None], LowRank],
    rng: np.random.Generator,
    share: float = 0.1,
) -> tuple[float, Array]:
    """Return the penalty with the least squared error on a random held-out `share`, and the error of each.

    The path goes from the first penalty to the last, each fit started from the one before, and ends early once
    three in a row are worse than the best.
    """
    if len(observations) < 2:
        raise DataError("a penalty cannot be chosen on one observation; give one")
    kept, held = observations.split(max(share, 1.0 / len(observations)), rng)
    errors = np.full(len(penalties), np.nan)
    start: LowRank | None = None
    for k, penalty in enumerate(penalties):
        start = fit(kept, penalty, start)
        errors[k] = np.sqrt(np.mean((start.entries(held.rows, held.cols) - held.values) ** 2))
        if k - int(np.nanargmin(errors)) >= WORSE:
            break
    return float(penalties[int(np.nanargmin(errors))]), errors


def cells(
    rows: Indices, cols: Indices, values: Array, n: int
) -> tuple[Indices, Indices, Array, Array]:
    """Return each cell once: rows, cols, mean value and how often it was listed."""
    key = rows * n + cols
    unique, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    mean = np.bincount(inverse, values) / count
    return unique // n, unique % n, mean, count.astype(np.float64)


def check_limits(tol: float, max_sweeps: int) -> None:
    """Refuse limits that would never stop or never start."""
    if max_sweeps < 1 or not tol >= 0:
        raise ParameterError(
            f"max_sweeps must be 1 or more and tol 0 or more, got {max_sweeps} and {tol}"
        )
