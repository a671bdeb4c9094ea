r"""What a game may end in, and how likely: a win either way, or a tie by Davidson's law.

.. math:: P(a) : P(\text{tie}) : P(b) = e^{d/2} : \nu : e^{-d/2}, \qquad d = s_a - s_b

A win counts 1, a tie one half. The mean of that, :math:`\mu(d)`, and its variance are all that the fit needs;
:math:`\nu = 0` is the law of Bradley and Terry.
"""

from __future__ import annotations

import numpy as np

from entrywise.types import Array

FLAT = 1e-12  # least variance of a game, where a chance is 0 or 1 to the last digit


def moments(d: Array, nu: float) -> tuple[Array, Array, Array]:
    """Return mean and variance of a game's outcome at differences d, and the chance of a tie."""
    small = np.exp(-np.abs(d))
    up = np.where(d < 0, small, 1.0)  # e^{d/2} over the larger of it and e^{-d/2}
    tie = nu * np.sqrt(small)
    total = 1.0 + small + tie
    tied = tie / total
    mean = (up + 0.5 * tie) / total
    variance = (up + 0.25 * tie) / total - mean**2
    return mean, np.maximum(variance, FLAT), tied


def misfit(d: Array, won: Array, lost: Array, tied: Array, nu: float) -> float:
    """Return the negative log likelihood of so many games at differences d."""
    size = 0.5 * np.abs(d)
    total = size + np.log(1.0 + np.exp(-2.0 * size) + nu * np.exp(-size))
    value = (won + lost + tied) * total - 0.5 * (won - lost) * d
    if nu > 0:
        value = value - tied * np.log(nu)
    return float(value.sum())
