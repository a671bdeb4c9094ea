"""Which rows are surely better than which: paired differences, few or no false claims, tiers and places.

Two promises. ``pairs``: among all the pairs called apart, at most half of 1 - level are the wrong way round on
average (Benjamini and Hochberg on two-sided tests: half of their false claims have the wrong sign). ``all``: with
probability `level` not one pair is called wrongly (the largest of all differences, by steps). Holm's method
is here as a rival: it separates fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]
Promise = Literal["pairs", "all", "holm"]

SHARED = 2.0  # pairs share rows, so less of the spread of their variances is their own; set on seeds 0-119 of three boards
LEVEL_SWEEPS = (
    50  # of rows and columns in turn; the last column alone has gaps as a rule, and ten would do
)
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


def levelled(values: Array, wanted: Mask) -> Array:
    r"""Return values of which the levels of columns are taken out, where cells that exist were not measured.

    A row that was measured on an easier column than the others would look better than it is. With
    :math:`y_{ij} \approx r_i + c_j` by least squares it becomes :math:`y_{ij} - c_j` and the mean of :math:`c` over
    the columns that exist for row i; differences on the same columns stay what they are. Without gaps nothing changes.

    Parameters
    ----------
    values : ndarray of shape (m, k)
        NaN where nothing was measured.
    wanted : ndarray of bool of shape (m, k)
        Which cells exist.
    """
    there = ~np.isnan(values)
    wanted = wanted | there
    if np.array_equal(wanted, there):
        return values
    seen = np.where(there, values, 0.0)
    of_rows = np.maximum(there.sum(axis=1), 1)
    of_columns = np.maximum(there.sum(axis=0), 1)
    c = np.zeros(values.shape[1])
    for _ in range(LEVEL_SWEEPS):
        r = (seen - there * c).sum(axis=1) / of_rows
        c = (seen - there * r[:, None]).sum(axis=0) / of_columns
    middle = (wanted * c).sum(axis=1) / np.maximum(wanted.sum(axis=1), 1)
    return np.asarray(values - c + middle[:, None])


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
    """Who is surely better than whom: ``surely[i, l]`` when row i is better than row l, shape (m, m); `mean` are the scores."""

    surely: Mask
    mean: Array
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
        """Tier of each row, from 1: rows in the order of their scores, cut where a row is surely worse than one of its tier.

        Inside a tier nobody is surely better than anybody; every tier but the first begins with a row that is surely
        worse than one of the tier before. No row of a lower score stands in a better tier.
        """
        tier = np.ones(len(self.surely), np.int64)
        ranked = np.argsort(-self.mean, kind="stable")
        number, begin = 1, 0
        for at, i in enumerate(ranked):
            if self.surely[ranked[begin:at], i].any():
                number, begin = number + 1, at
            tier[i] = number
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
    return Order(kinds[promise](found, level), found.mean, promise)


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
    noise = np.ascontiguousarray(found.noise.T, np.float32)
    surely = np.zeros(normal.shape, bool)
    while True:
        limit = np.quantile(_largest(noise, weight), level)
        more = (normal > limit) & ~surely
        if not more.any():
            return surely
        surely |= more
        weight = np.where(surely | surely.T, np.float32(0.0), weight)


def _largest(noise: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest of all weighted differences of each draw, noise of shape (m, draws)."""
    largest = np.zeros(noise.shape[1], np.float32)
    for i in range(len(weight) - 1):
        apart = noise[i + 1 :] - noise[i]
        apart *= weight[i, i + 1 :, None]
        np.abs(apart, out=apart)
        np.maximum(largest, apart.max(axis=0), out=largest)
    return largest


def _two_sided(normal: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(2.0 * ndtr(-normal))
