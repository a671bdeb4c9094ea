"""Is a mean really above zero? A t-test that stays true however often one looks.

The test multiplies the evidence of every new number; under a true mean of zero it reaches 1/a with probability at most a,
at whatever moment one looks. Exact for independent normal numbers of unknown variance, and then for any stopping rule.

References
----------
.. [WR23] Wang, Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
   variance*, 2023: the mixture over the standardised effect with a normal law, scale-free.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from entrywise.types import Array

BEST_AT = 7.9  # numbers over prior numbers at which the boundary is lowest for a = .05


def log_evidence(
    mean: Array, variance: Array, count: Array, horizon: float, population: float = math.inf
) -> Array:
    r"""Return the logarithm of the evidence against a mean of zero, shapes broadcast.

    .. math:: \log E = \tfrac12 \log\frac{g}{k + g} + \frac{\nu + 1}{2}
       \log\frac{1 + T^2/\nu}{1 + T^2 g / ((k + g) \nu)}, \qquad T^2 = k \bar x^2 / s^2, \quad \nu = c - 1

    Numbers drawn without replacement from N wander like a Brownian bridge, which is a Brownian motion on the clock
    k = c / (1 - c/N) instead of the count c.

    Parameters
    ----------
    mean, variance, count : arrays
        Of the c numbers seen so far; their variance with c - 1 in its denominator.
    horizon : float
        The count at which the test is to be sharpest: g is its clock over 7.9.
    population : float
        N, how many numbers there are in all.
    """
    counts = np.asarray(count, np.float64)
    horizon = min(horizon, 0.9 * population)  # sharpest before the very end, where all is known
    freedom = np.maximum(counts - 1.0, 1.0)
    g = float(_clock(np.asarray(max(horizon, 1.0)), population)) / BEST_AT
    with np.errstate(divide="ignore", invalid="ignore"):
        k = _clock(counts, population)
        square = k * np.asarray(mean) ** 2 / np.asarray(variance) / freedom
        rise = np.log1p(square) - np.log1p(square * g / (k + g))
        rise = np.where(np.isinf(square), np.log((k + g) / g), rise)
        found = 0.5 * np.log(g / (k + g)) + 0.5 * (freedom + 1.0) * rise
    found = np.where(np.isinf(k) & (np.asarray(mean) != 0), np.inf, found)
    return np.where((counts >= 2) & ~np.isnan(square), found, 0.0)


def _clock(count: ArrayLike, population: float) -> Array:
    """Return counts on the clock of sampling without replacement; one number short of all at most."""
    with np.errstate(divide="ignore"):
        counts = np.asarray(count, np.float64)
        return np.asarray(counts / np.maximum(1.0 - counts / population, 0.0))


def half_width(
    deviation: float, count: int, level: float, horizon: float, population: float = math.inf
) -> float:
    """Return half the width of the confidence sequence after `count` numbers: it covers at all times at once.

    Examples
    --------
    >>> round(half_width(1.0, 100, 0.95, horizon=100), 3), round(half_width(1.0, 2, 0.95, horizon=100), 3)
    (0.31, inf)
    """
    if count < 2:
        return math.inf
    if count >= population:
        return 0.0
    horizon = min(horizon, 0.9 * population)
    k = float(_clock(np.asarray(float(count)), population))
    g = float(_clock(np.maximum(horizon, 1.0), population)) / BEST_AT
    rise = ((k + g) / g / (1.0 - level) ** 2) ** (1.0 / count)
    below = 1.0 - rise * g / (k + g)
    if below <= 0.0:
        return math.inf
    return deviation * math.sqrt((count - 1) / k * (rise - 1.0) / below)
