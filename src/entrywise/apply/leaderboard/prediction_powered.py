"""Prediction-powered means of rows: raw means corrected by what a judge says of the whole row. Baselines."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.leaderboard.scores import student
from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.types import Array, Indices

Tuning = Literal["none", "row", "pooled"]


class Powered(NamedTuple):
    """Means of rows with intervals and the share `power` of the judge's correction, each of shape (m,)."""

    mean: Array
    low: Array
    high: Array
    power: Array


def prediction_powered(
    dear: Observations, judge: Observations, level: float = 0.9, *, tuning: Tuning = "row"
) -> Powered:
    r"""Return the mean of every row by prediction-powered inference.

    .. math:: \hat\theta_i = \bar y_i + \lambda (\bar x_i^{\,all} - \bar x_i), \quad
       \mathrm{var} = s^2_{y - \lambda x} (1/k - 1/n) + \lambda^2 s^2_x (1/N - 1/n)

    with means over the k cells that both instruments were asked and over the N that the judge was. Rows are finite: all
    n cells are the population, so a row that is known whole has no error.

    Parameters
    ----------
    tuning : {"none", "row", "pooled"}
        ``none``: :math:`\lambda = 1` (Angelopoulos et al. 2023); ``row``: the regression slope within each row, which gives the same means
        as the tuned estimator of PPI++; ``pooled``: one slope within all rows.

    References
    ----------
    .. [A23] Angelopoulos et al., *Prediction-powered inference*, Science 2023.
    .. [AD23] Angelopoulos, Duchi, Zrnic, *PPI++: efficient prediction-powered inference*, 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(4, 50))
    >>> dear = Observations.from_dense(np.where(rng.random((4, 50)) < 0.4, truth, np.nan))
    >>> found = prediction_powered(dear, Observations.from_dense(truth + 7.0))
    >>> bool(np.allclose(found.mean, truth.mean(axis=1)))
    True
    """
    if tuning not in ("none", "row", "pooled"):
        raise ParameterError(f"tuning must be none, row or pooled, got {tuning!r}")
    if dear.shape != judge.shape:
        raise DataError(f"both tables must have one shape, got {dear.shape} and {judge.shape}")
    m, n = dear.shape
    said = judge.to_dense()[dear.rows, dear.cols]
    both = np.flatnonzero(~np.isnan(said))
    rows, x, y = dear.rows[both], said[both], dear.values[both]
    k, everywhere = np.bincount(rows, minlength=m), np.bincount(judge.rows, minlength=m)
    middle_x, middle_y = _means(rows, x, m), _means(rows, y, m)
    off_x, off_y = x - middle_x[rows], y - middle_y[rows]
    power = _power(rows, off_x, off_y, m, tuning)
    all_x = _means(judge.rows, judge.values, m)
    mean = middle_y + power * (all_x - middle_x)
    freedom = np.maximum(k - 1.0, 0.0)
    left = np.bincount(rows, (off_y - power[rows] * off_x) ** 2, m)
    spread = np.bincount(judge.rows, (judge.values - all_x[judge.rows]) ** 2, m)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = left / freedom * (1.0 / k - 1.0 / n)
        variance += power**2 * spread / (everywhere - 1.0) * (1.0 / everywhere - 1.0 / n)
        half = student(level, freedom) * np.sqrt(np.maximum(variance, 0.0))
    mean = np.where(k > 0, mean, np.nan)
    return Powered(mean, mean - half, mean + half, power)


def _power(rows: Indices, x: Array, y: Array, m: int, tuning: Tuning) -> Array:
    """Return the share of the judge's correction in each row."""
    if tuning == "none":
        return np.ones(m)
    squares, products = np.bincount(rows, x**2, m), np.bincount(rows, x * y, m)
    if tuning == "pooled":
        total = float(squares.sum())
        return np.full(m, float(products.sum()) / total if total > 0 else 0.0)
    known: NDArray[np.bool_] = squares > 0
    return np.where(known, products / np.where(known, squares, 1.0), 0.0)


def _means(rows: Indices, values: Array, m: int) -> Array:
    return np.asarray(np.bincount(rows, values, m) / np.maximum(np.bincount(rows, minlength=m), 1))
