"""Which rows are surely better than which: paired differences, few or no false claims, tiers and places.

Two promises. ``pairs``: among all the pairs called apart, at most half of 1 - level are the wrong way round on
average (Benjamini and Hochberg on two-sided tests: half of their false claims have the wrong sign). ``all``: with
probability `level` not one pair is called wrongly (the largest of all differences, by steps). Holm's method
is here as a rival: it separates fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]
Promise = Literal["pairs", "all", "holm"]

SHARED = 2.0  # pairs share rows, so less of the spread of their variances is their own; set on seeds 0-119 of three boards
DRAWS = (
    200  # of the largest difference; its 90 % quantile then moves by about 1 % from seed to seed
)


@dataclass(frozen=True, eq=False)
class Differences:
    """Scores of rows and what is known of the errors of their differences.

    Parameters
    ----------
    mean : ndarray of shape (m,)
        NaN for a row of which nothing is known.
    deviation, freedom : ndarray of shape (m, m)
        Standard deviation of the error of each difference, and its degrees of freedom.
    noise : ndarray of shape (draws, m)
        Errors of all rows at once, drawn from what the data say of them.
    """

    mean: Array
    deviation: Array
    freedom: Array
    noise: Array

    @cached_property
    def normal(self) -> Array:
        """Differences in normal units: as unlikely as their Student statistics, shape (m, m)."""
        from scipy.special import ndtri, stdtr

        above = np.triu_indices(len(self.mean), 1)
        apart = self.mean[above[0]] - self.mean[above[1]]
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.abs(apart) / self.deviation[above]
        same = ~(size > 0)  # no difference, or nothing known
        tail = stdtr(self.freedom[above], -np.where(same, 0.0, size))
        size = np.where(same, 0.0, -ndtri(np.maximum(tail, 1e-300)))
        found = np.zeros(self.deviation.shape)
        found[above] = np.sign(np.nan_to_num(apart)) * size
        return found - found.T


def paired(values: Array, columns: float, rng: np.random.Generator | int = 0) -> Differences:
    r"""Return the differences between rows that were measured on the same k random columns of `columns`.

    The influence of column j on row i is :math:`\psi_{ij} = y_{ij} - \bar y_i`; a difference has the variance
    :math:`\sum_j (\psi_{ij} - \psi_{lj})^2 / (k - 1) \cdot (1/k - 1/n)`, lightly shrunk over all pairs: what
    columns do to both rows alike cancels. Gaps (NaN) are left out of their row's mean and make its influences larger.

    Parameters
    ----------
    values : ndarray of shape (m, k)
    columns : float
        How many there are; infinity when they are a sample of any number.
    """
    m, k = values.shape
    if k < 2:
        raise ParameterError(f"paired differences need at least 2 common columns, got {k}")
    there = ~np.isnan(values)
    own = np.maximum(there.sum(axis=1), 1)
    mean = np.where(there, values, 0.0).sum(axis=1) / own
    with np.errstate(divide="ignore"):
        larger = k / own * np.sqrt((own / k) * (k - 1) / np.maximum(own - 1, 1))
    influence = np.where(there, values - mean[:, None], 0.0) * larger[:, None]
    products = influence @ influence.T / (k - 1)
    level = np.diag(products)
    squares = np.maximum(level[:, None] + level[None, :] - 2.0 * products, 0.0)
    fewer = np.minimum(own[:, None], own[None, :]) - 1.0
    unit = 0.5 * (k / own[:, None] + k / own[None, :])  # 1 without gaps
    above = np.triu_indices(m, 1)
    variance, added = shrunk_variances((squares / unit)[above], fewer[above], SHARED)
    shrunk = np.zeros((m, m))
    shrunk[above] = variance * unit[above]
    shrunk += shrunk.T
    rest = max(1.0 / k - 1.0 / columns, 0.0)
    draws = np.random.default_rng(rng).standard_normal((DRAWS, k))
    noise = draws @ influence.T * np.sqrt(rest / (k - 1))
    mean = np.where(there.any(axis=1), mean, np.nan)
    return Differences(mean, np.sqrt(shrunk * rest), fewer + added, noise)


def unpaired(
    mean: Array, deviation: Array, freedom: Array, rng: np.random.Generator | int = 0
) -> Differences:
    """Return the differences between rows whose errors are independent of each other."""
    draws = np.random.default_rng(rng).standard_normal((DRAWS, len(mean)))
    both = np.sqrt(deviation[:, None] ** 2 + deviation[None, :] ** 2)
    freedom = np.minimum(freedom[:, None], freedom[None, :])
    return Differences(mean, both, freedom, draws * deviation)


@dataclass(frozen=True, eq=False)
class Order:
    """Who is surely better than whom: ``surely[i, l]`` when row i is better than row l, shape (m, m)."""

    surely: Mask
    promise: str

    @property
    def best_place(self) -> Indices:
        """The best place that each row may take, from 1."""
        return np.asarray(1 + self.surely.sum(axis=0))

    @property
    def worst_place(self) -> Indices:
        """The worst place that each row may take."""
        return np.asarray(len(self.surely) - self.surely.sum(axis=1))

    @property
    def tier(self) -> Indices:
        """Tier of each row: in the first nobody is surely better; in the next only rows of tiers before; and so on."""
        tier = np.zeros(len(self.surely), np.int64)
        left = np.ones(len(tier), bool)
        number = 0
        while left.any():
            number += 1
            first = left & ~self.surely[left].any(axis=0)
            if not first.any():  # claims that go in a circle: the rest shares a tier
                first = left.copy()
            tier[first] = number
            left &= ~first
        return tier


def order(found: Differences, level: float = 0.9, promise: Promise = "pairs") -> Order:
    """Return which rows are surely better than which under the promise asked for.

    Examples
    --------
    >>> values = np.random.default_rng(1).standard_normal((3, 40)) + np.array([[0.0], [0.1], [5.0]])
    >>> told = order(paired(values, columns=400), promise="all")
    >>> told.tier, told.best_place, told.worst_place
    (array([2, 2, 1]), array([2, 2, 1]), array([3, 3, 1]))
    """
    if not 0 < level < 1:
        raise ParameterError(f"level must be above 0 and below 1, got {level}")
    kinds = {"pairs": _few_false, "all": _none_false, "holm": _holm}
    if promise not in kinds:
        raise ParameterError(f"promise must be pairs, all or holm, got {promise!r}")
    return Order(kinds[promise](found, level), promise)


def _few_false(found: Differences, level: float) -> Mask:
    """Benjamini and Hochberg's rule: the k-th smallest of N two-sided p-values is at most (1 - level) k / N."""
    normal = found.normal
    size = np.sort(np.abs(normal[np.triu_indices(len(normal), 1)]))[::-1]
    share = np.arange(1, len(size) + 1) / max(len(size), 1)
    small = np.flatnonzero(_two_sided(size) <= (1.0 - level) * share)
    if not len(small):
        return np.zeros(normal.shape, bool)
    return np.asarray(normal >= size[small[-1]])


def _holm(found: Differences, level: float) -> Mask:
    """Holm's rule: the k-th smallest of N two-sided p-values is at most (1 - level) / (N - k + 1), and so are all before."""
    normal = found.normal
    size = np.sort(np.abs(normal[np.triu_indices(len(normal), 1)]))[::-1]
    large = np.flatnonzero(_two_sided(size) > (1.0 - level) / np.arange(len(size), 0, -1))
    count = int(large[0]) if len(large) else len(size)
    if count == 0:
        return np.zeros(normal.shape, bool)
    return np.asarray(normal >= size[count - 1])


def _none_false(found: Differences, level: float) -> Mask:
    """The largest of all differences by steps: pairs already apart no longer count for its quantile."""
    normal = found.normal
    with np.errstate(divide="ignore"):
        weight = np.where(found.deviation > 0, 1.0 / found.deviation, 0.0).astype(np.float32)
    np.fill_diagonal(weight, 0.0)
    noise = found.noise.astype(np.float32)
    surely = np.zeros(normal.shape, bool)
    buffer = np.empty_like(weight)
    while True:
        largest = [_largest(x, weight, buffer) for x in noise]
        more = (normal > np.quantile(largest, level)) & ~surely
        if not more.any():
            return surely
        surely |= more
        weight = np.where(surely | surely.T, np.float32(0.0), weight)


def _largest(x: NDArray[np.float32], weight: NDArray[np.float32], buffer: Any) -> float:
    """Return the largest of all weighted differences; `buffer` is used again from draw to draw."""
    np.subtract.outer(x, x, out=buffer)
    np.multiply(buffer, weight, out=buffer)
    return float(buffer.max())


def _two_sided(normal: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(2.0 * ndtr(-normal))
