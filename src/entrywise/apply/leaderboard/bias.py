"""Whom a judge favours: its offset and slope by row and by group of columns, and rows that it surely treats otherwise.

A judge is fair when its mean of a row depends on the row's dear mean alone, by one line for all rows. What a row's judge
mean lies above that line is its offset, in the judge's own units. The line allows for errors of both means, and
rows that are named do not bend it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.leaderboard.judge_fit import JudgeFit
from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.observations import Observations
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]

ACCUSED = 0.05  # chance that a fair judge is said to favour any row at all
LEAST_RELIABLE = (
    0.1  # share of the spread of dear means that must be real for a line to be drawn through them
)
ROUNDS = 10  # of naming rows and drawing the line without them; three are enough as a rule
NAMED = 5  # rows that a sentence calls by name
FEWEST = 3  # paired cells of a row or group below which it is not judged


@dataclass(frozen=True, eq=False)
class LineBias:
    """Offset and slope of a judge by row or by group, with intervals; NaN where too little is known.

    ``surely`` are those whose offset cannot be chance, however many were looked at (Holm, at 5 % for all together).
    """

    names: tuple[str, ...] | None
    offset: Array
    low: Array
    high: Array
    slope: Array
    slope_low: Array
    slope_high: Array
    p: Array
    surely: Mask


@dataclass(frozen=True, eq=False)
class Bias:
    """What a judge adds by itself: ``line`` (offset, slope) turns dear means into the judge's; then by row and group."""

    line: tuple[float, float]
    rows: LineBias
    groups: LineBias | None

    @property
    def fair(self) -> bool:
        """Whether no row is surely favoured or put down."""
        return not bool(self.rows.surely.any())

    def words(self, names: Sequence[str]) -> str:
        """Say in a sentence whom the judge favours."""
        told = []
        for verb, sign in (("favours", 1.0), ("puts down", -1.0)):
            some = np.flatnonzero(self.rows.surely & (sign * self.rows.offset > 0))
            some = some[np.argsort(-np.abs(self.rows.offset[some]))]
            listed = [f"{names[i]} by {self._size(i)}" for i in some[:NAMED]]
            if len(some) > NAMED:
                listed.append(f"{len(some) - NAMED} more")
            if listed:
                told.append(f"{verb} {', '.join(listed)}")
        return " and ".join(told) if told else "favours no row beyond chance"

    def _size(self, i: int) -> str:
        """Return how far a row is off, without its sign, and the interval."""
        rows = self.rows
        ends = (rows.low[i], rows.high[i]) if rows.offset[i] > 0 else (-rows.high[i], -rows.low[i])
        return f"{abs(rows.offset[i]):.3g} ({ends[0]:.3g} to {ends[1]:.3g})"


def bias_of(
    fit: JudgeFit,
    residual: Array,
    judge: Observations,
    level: float = 0.9,
    groups: Sequence[str] | None = None,
) -> Bias:
    r"""Return the bias of a judge by row and by group of columns.

    Of row i, over the :math:`N_i` cells that the judge was asked: :math:`\bar x_i` is its own mean and
    :math:`\hat y_i` the mean of the fit plus the mean of the left-out `residual`, so that a wrong fit makes no bias. The
    offset is :math:`o_i = \bar x_i - a - b \hat y_i` with variance
    :math:`b^2 v_i (1/k_i - 1/N_i) + d_i / N_i`, plus that of the line; :math:`v_i` is the mean square of the residuals
    and :math:`d_i` of :math:`x - b y` within the row on paired cells, both shrunk over rows. Slopes b allow for the
    errors of :math:`\hat y` (their mean variance is taken off the spread).
    """
    paired = _paired(fit.dear, judge)
    means = _Means.of(fit, residual, judge, paired)
    line, offset, variance, named, p = _offsets(means)
    slope, slope_error, freedom = _slopes(paired, means.count)
    rows = _lines(None, offset, variance, means.freedom, slope, slope_error, freedom, level)
    rows = replace(rows, p=p, surely=named)
    by_group = None if groups is None else _by_group(paired, line, offset, groups, level)
    return Bias(line, rows, by_group)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Cells that both instruments were asked."""

    at: Indices  # among the dear cells
    rows: Indices
    cols: Indices
    dear: Array
    said: Array


def _paired(dear: Observations, judge: Observations) -> _Pairs:
    table = judge.to_dense()
    said = table[dear.rows, dear.cols]
    at = np.flatnonzero(~np.isnan(said))
    return _Pairs(at, dear.rows[at], dear.cols[at], dear.values[at], said[at])


@dataclass(frozen=True, eq=False)
class _Means:
    """Means of rows by both instruments over the judge's cells, and what is known of their errors."""

    said: Array
    dear: Array
    cells: Indices
    count: Indices
    variance: Array  # of the dear mean
    freedom: Array
    pairs: _Pairs

    @classmethod
    def of(cls, fit: JudgeFit, residual: Array, judge: Observations, pairs: _Pairs) -> _Means:
        m = judge.shape[0]
        cells = np.bincount(judge.rows, minlength=m)
        count = np.bincount(pairs.rows, minlength=m)
        each, some = np.maximum(cells, 1), np.maximum(count, 1)
        guess = fit.entries(judge.rows, judge.cols)
        off = residual[pairs.at]
        dear = np.bincount(judge.rows, guess, m) / each + np.bincount(pairs.rows, off, m) / some
        squares = np.bincount(pairs.rows, off**2, m) / some
        spread, added = shrunk_variances(squares, count.astype(np.float64))
        return cls(
            said=np.bincount(judge.rows, judge.values, m) / each,
            dear=dear,
            cells=cells,
            count=count,
            variance=spread * np.maximum(1.0 / some - 1.0 / each, 0.0),
            freedom=np.asarray(count + added, np.float64),
            pairs=pairs,
        )


def _offsets(means: _Means) -> tuple[tuple[float, float], Array, Array, Mask, Array]:
    """Return the line, offsets and their variances, the rows that are surely treated otherwise, and p-values."""
    from scipy.stats import t

    good = means.count >= FEWEST
    named = np.zeros(len(good), bool)
    for _ in range(ROUNDS):
        among = good & ~named
        line, doubt = _line(means, among)
        offset = means.said - line[0] - line[1] * means.dear
        variance = line[1] ** 2 * means.variance + _own_noise(means, line[1]) + doubt
        size = np.abs(offset) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        p = np.where(good, 2.0 * t.sf(size, means.freedom), np.nan)
        now = holm(p, ACCUSED)
        if np.array_equal(now, named):
            break
        named = now
    hidden = np.where(good, offset, np.nan)
    return line, hidden, variance, named, p


def _line(means: _Means, among: Mask) -> tuple[tuple[float, float], Array]:
    """Return offset and slope of the judge's means on the dear ones, and the variance that this adds to each row."""
    x, y = means.said[among], means.dear[among]
    count = len(x)
    if count < FEWEST:
        return (0.0, 0.0), np.full(len(among), np.inf)
    error = means.variance[among]
    spread = float(np.var(y, ddof=1))
    real = spread - float(error.mean())
    slope = 0.0
    if real > LEAST_RELIABLE * spread:
        slope = float(np.cov(x, y)[0, 1]) / real
    left = x - x.mean() - slope * (y - y.mean())
    noise = float(left @ left) / max(count - 2, 1)
    middle = float(y.mean())
    leverage = (means.dear - middle) ** 2 / max(real * (count - 1), np.finfo(float).tiny)
    doubt = noise * (1.0 / count + (leverage if slope else 0.0))
    return (float(x.mean()) - slope * middle, slope), np.asarray(doubt + np.zeros(len(among)))


def _own_noise(means: _Means, slope: float) -> Array:
    """Return the variance of a row's mean of x - b y over the judge's cells: what chance makes of a fair judge."""
    pairs, m = means.pairs, len(means.said)
    apart = pairs.said - slope * pairs.dear
    some = np.maximum(means.count, 1)
    middle = np.bincount(pairs.rows, apart, m) / some
    squares = np.bincount(pairs.rows, (apart - middle[pairs.rows]) ** 2, m)
    freedom = np.maximum(means.count - 1.0, 0.0)
    spread, _ = shrunk_variances(squares / np.maximum(freedom, 1.0), freedom)
    return np.asarray(spread / np.maximum(means.cells, 1))


def holm(p: Array, chance: float) -> Mask:
    """Tell which of many are surely not chance, so that any mistake among them has at most this chance (Holm 1979).

    >>> holm(np.array([0.001, 0.04, 0.02, np.nan]), 0.05).tolist()
    [True, True, True, False]
    """
    order = np.argsort(np.where(np.isnan(p), np.inf, p), kind="stable")
    count = int(np.sum(~np.isnan(p)))
    limit = chance / np.maximum(count - np.arange(len(p)), 1)
    with np.errstate(invalid="ignore"):
        low = p[order] <= limit
    first = len(p) if low.all() else int(np.argmin(low))
    found = np.zeros(len(p), bool)
    found[order[:first]] = True
    return found


def _slopes(pairs: _Pairs, count: Indices) -> tuple[Array, Array, Array]:
    """Return the slope of the judge on the dear answers within each row, its error and degrees of freedom."""
    return _slopes_within(pairs.rows, pairs, len(count))


def _slopes_within(line: Indices, pairs: _Pairs, size: int) -> tuple[Array, Array, Array]:
    count = np.bincount(line, minlength=size)
    each = np.maximum(count, 1)
    x, y = (z - (np.bincount(line, z, size) / each)[line] for z in (pairs.said, pairs.dear))
    squares = np.bincount(line, y**2, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(squares > 0, np.bincount(line, x * y, size) / squares, np.nan)
        off = np.bincount(line, (x - np.nan_to_num(slope)[line] * y) ** 2, size)
        freedom = np.maximum(count - 2.0, 0.0)
        spread, added = shrunk_variances(off / np.maximum(freedom, 1.0), freedom)
        error = np.sqrt(spread / squares)
    return slope, error, freedom + added


def _by_group(
    pairs: _Pairs, line: tuple[float, float], offset: Array, groups: Sequence[str], level: float
) -> LineBias:
    """Return offset and slope by group of columns; columns are what varies within a group."""
    names, group = np.unique(np.asarray(groups, np.str_), return_inverse=True)
    said = pairs.said - line[0] - line[1] * pairs.dear
    said = said - np.nan_to_num(offset)[pairs.rows]
    n, size = len(group), len(names)
    count = np.bincount(pairs.cols, minlength=n)
    some = np.flatnonzero(count > 0)
    mean = np.bincount(pairs.cols, said, n)[some] / count[some]
    weight, of = count[some].astype(np.float64), group[some]
    total = np.maximum(np.bincount(of, weight, size), np.finfo(float).tiny)
    middle = np.bincount(of, weight * mean, size) / total
    columns = np.bincount(of, minlength=size)
    freedom = np.maximum(columns - 1.0, 0.0)
    off = np.bincount(of, (weight * (mean - middle[of])) ** 2, size) / total**2
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(columns >= FEWEST, off * columns / freedom, np.nan)
    middle = np.where(columns >= FEWEST, middle, np.nan)
    slope, error, slope_freedom = _slopes_within(group[pairs.cols], pairs, size)
    found = _lines(
        tuple(names.tolist()), middle, variance, freedom, slope, error, slope_freedom, level
    )
    return replace(found, surely=holm(found.p, ACCUSED))


def _lines(
    names: tuple[str, ...] | None,
    offset: Array,
    variance: Array,
    freedom: Array,
    slope: Array,
    slope_error: Array,
    slope_freedom: Array,
    level: float,
) -> LineBias:
    from scipy.stats import t

    with np.errstate(invalid="ignore", divide="ignore"):
        half = t.ppf(0.5 + level / 2, np.maximum(freedom, 1)) * np.sqrt(variance)
        reach = t.ppf(0.5 + level / 2, np.maximum(slope_freedom, 1)) * slope_error
        p = 2.0 * np.asarray(t.sf(np.abs(offset) / np.sqrt(variance), np.maximum(freedom, 1)))
    nothing = np.zeros(len(offset), bool)
    return LineBias(
        names, offset, offset - half, offset + half, slope, slope - reach, slope + reach, p, nothing
    )
