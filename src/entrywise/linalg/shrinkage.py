"""Variances of many lines, each drawn towards the common one by as much as their spread allows."""

from __future__ import annotations

import numpy as np

from entrywise.types import Array

LEAST_SPREAD = 1e-3  # squared coefficient of variation below which all lines count as equal


def shrunk_variances(squares: Array, freedom: Array, weight: float = 1.0) -> tuple[Array, float]:
    r"""Return the variance of every line, shrunk, and how many degrees of freedom the common one adds.

    With mean squares :math:`s_i^2` on :math:`d_i` degrees of freedom the lines' own variances have the squared
    coefficient of variation c, found by moments: that of the :math:`s_i^2` less the :math:`e = 2/\bar d` which
    chance alone would give, over 1 + e. An inverse chi-square prior with that spread has
    :math:`d_0 = 4 + 2/c` degrees of freedom, and

    .. math:: v_i = \frac{(d_0 - 2) \bar s^2 + d_i s_i^2}{d_0 + d_i}.

    Parameters
    ----------
    squares : ndarray of shape (m,)
        Mean square of each line; what a line without degrees of freedom says does not count.
    freedom : ndarray of shape (m,)
        Degrees of freedom, 0 or more.
    weight : float
        How many times more the common variance counts than its spread says.

    Examples
    --------
    >>> variance, added = shrunk_variances(np.array([0.5, 1.0, 6.0]), np.array([4.0, 4.0, 4.0]))
    >>> variance.round(2), round(added, 1)
    (array([1.58, 1.72, 3.14]), 10.2)
    """
    total = float(np.sum(freedom))
    if not total > 0:
        return np.full(len(squares), np.nan), 4.0 + 2.0 / LEAST_SPREAD
    counts = freedom > 0
    pool = float(np.sum(freedom[counts] * squares[counts])) / total
    if not pool > 0:
        return np.zeros(len(squares)), 4.0 + 2.0 / LEAST_SPREAD
    apart = (squares[counts] / pool - 1.0) ** 2
    spread = float(np.sum(freedom[counts] * apart)) / total
    chance = 2.0 / float(np.mean(freedom[counts]))
    own = max((spread - chance) / (1.0 + chance), LEAST_SPREAD)
    added = weight * (4.0 + 2.0 / own)
    seen = np.where(counts, freedom * squares, 0.0)
    return np.asarray(((added - 2.0) * pool + seen) / (added + freedom)), added
