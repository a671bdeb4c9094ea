"""How far a completion is from the truth, and how often its intervals cover."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.results import LowRank, Matrix
from entrywise.types import Array


def rmse(found: Matrix | ArrayLike, truth: Observations | ArrayLike) -> float:
    """Return the root mean squared error: of a result at the entries of `truth`, or between two arrays.

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0]) == 2**0.5
    True
    """
    return float(np.sqrt(np.mean(_errors(found, truth) ** 2)))


def mae(found: Matrix | ArrayLike, truth: Observations | ArrayLike) -> float:
    """Return the mean absolute error."""
    return float(np.mean(np.abs(_errors(found, truth))))


def relative_error(found: Matrix | ArrayLike, truth: ArrayLike) -> float:
    r"""Return the relative Frobenius error :math:`\|\hat A - A\|_F / \|A\|_F`."""
    A = np.asarray(truth, np.float64)
    size = float(np.linalg.norm(A))
    if size == 0:
        raise DataError("relative_error needs a truth that is not zero; use rmse")
    return float(np.linalg.norm(_errors(found, A))) / size


def coverage(found: LowRank, truth: Observations, level: float = 0.9) -> float:
    """Return the share of the answers in `truth` that the intervals of the given level cover."""
    low, high = found.interval(truth.rows, truth.cols, level, noise=_noise(truth))
    return float(np.mean((low <= truth.values) & (truth.values <= high)))


def coverage_by_count(
    found: LowRank,
    truth: Observations,
    level: float = 0.9,
    groups: int = 4,
    counts: ArrayLike | None = None,
) -> Array:
    """Return the coverage in groups of rows from the least to the most observed, shape (groups,).

    Rows are ranked by `counts`, their numbers of observations in the fit, and split into groups of equally many rows.
    A group without answers in `truth` has NaN.
    """
    known = found.row_counts if counts is None else np.asarray(counts)
    if known is None:
        raise ParameterError("coverage_by_count needs counts; this result does not keep them")
    if groups < 1:
        raise ParameterError(f"groups must be 1 or more, got {groups}")
    group = np.empty(len(known), np.int64)
    group[np.argsort(known, kind="stable")] = np.arange(len(known)) * groups // len(known)
    low, high = found.interval(truth.rows, truth.cols, level, noise=_noise(truth))
    inside = ((low <= truth.values) & (truth.values <= high)).astype(np.float64)
    of = group[truth.rows]
    total = np.bincount(of, minlength=groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.bincount(of, inside, minlength=groups) / np.where(total > 0, total, np.nan)
        )


def mean_width(found: LowRank, truth: Observations, level: float = 0.9) -> float:
    """Return the mean width of the intervals at the entries of `truth`."""
    low, high = found.interval(truth.rows, truth.cols, level, noise=_noise(truth))
    return float(np.mean(high - low))


def _noise(truth: Observations) -> Array | None:
    return None if truth.noise is None else truth.noise_array()


def _errors(found: Matrix | ArrayLike, truth: Observations | ArrayLike) -> Array:
    if isinstance(truth, Observations):
        if not len(truth):
            raise DataError("an error needs at least one true entry, got none")
        if isinstance(found, Matrix):
            return np.asarray(found.entries(truth.rows, truth.cols) - truth.values)
        return np.asarray(np.asarray(found, np.float64)[truth.rows, truth.cols] - truth.values)
    A = np.asarray(truth, np.float64)
    B = found.to_dense() if isinstance(found, Matrix) else np.asarray(found, np.float64)
    if A.shape != B.shape:
        raise DataError(f"the two must have one shape, got {B.shape} and {A.shape}")
    known = ~np.isnan(A)
    return np.asarray((B - A)[known])
