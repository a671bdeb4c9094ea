"""Is a mean really above zero? A t-test that stays true however often one looks.

The test multiplies the evidence of every new number; under a true mean of zero it reaches 1/a with probability at most a,
at whatever moment one looks. Exact for independent normal numbers of unknown variance, and then for any stopping rule.

References
----------
.. [WR23] Wang, Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
   variance*, 2023, Theorem 4.7: the mixture over the standardised effect with a normal law. Numbers drawn without
   replacement only make it more cautious.
"""

from __future__ import annotations

import math

import numpy as np

from entrywise.types import Array

BEST_AT = 7.9  # numbers over prior numbers at which the boundary is lowest for a = .05


def log_evidence(mean: Array, variance: Array, count: Array, horizon: float) -> Array:
    r"""Return the logarithm of the evidence against a mean of zero, shapes broadcast.

    .. math:: \log E = \tfrac12 \log\frac{g}{k + g} + \frac{k}{2}
       \log\frac{1 + T^2/(k-1)}{1 + T^2 g / ((k + g)(k - 1))}, \qquad T^2 = k \bar x^2 / s^2

    Parameters
    ----------
    mean, variance, count : arrays
        Of the numbers seen so far; their variance with k - 1 in its denominator.
    horizon : float
        The count at which the test is to be sharpest: g = horizon / 7.9.
    """
    k = np.asarray(count, np.float64)
    g = max(horizon, 1.0) / BEST_AT
    freedom = np.maximum(k - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = k * np.asarray(mean) ** 2 / np.asarray(variance) / freedom
        rise = np.log1p(square) - np.log1p(square * g / (k + g))
        rise = np.where(np.isinf(square), np.log((k + g) / g), rise)
        found = 0.5 * np.log(g / (k + g)) + 0.5 * k * rise
    return np.where((k >= 2) & ~np.isnan(square), found, 0.0)


def half_width(deviation: float, count: int, level: float, horizon: float) -> float:
    """Return half the width of the confidence sequence after `count` numbers: it covers at all times at once.

    Examples
    --------
    >>> round(half_width(1.0, 100, 0.95, horizon=100), 3), round(half_width(1.0, 2, 0.95, horizon=100), 3)
    (0.31, inf)
    """
    if count < 2:
        return math.inf
    g = max(horizon, 1.0) / BEST_AT
    rise = ((count + g) / g / (1.0 - level) ** 2) ** (1.0 / count)
    below = 1.0 - rise * g / (count + g)
    if below <= 0.0:
        return math.inf
    return deviation * math.sqrt((count - 1) / count * (rise - 1.0) / below)
