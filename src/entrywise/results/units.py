"""Lines in units of their own: a table of ages, incomes and doses is no matrix until its columns are on one scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.observations import Observations

FEWEST = 3  # known entries of a line that tell its spread
ENOUGH = 8  # that tell it well enough to say that lines differ
MANY = 1_000_000  # entries by which that is judged: about so many, at even distances
APART = 5.0  # times that spreads of lines are apart, from which they may be in units of their own
INNER = (0.1, 0.9)  # quantiles of the lines' spreads between which :func:`apart` measures


@dataclass(frozen=True, eq=False)
class Units:
    """What entries are measured in, line by line: the factors give ``(entry - center) / scale`` of its column, or its row.

    Parameters
    ----------
    center, scale : ndarray of shape (n,), or (m,)
        Of the columns, or of the rows; scales are above 0.
    by_rows : bool
    """

    center: Array
    scale: Array
    by_rows: bool = False

    @classmethod
    def of(cls, seen: Observations, by_rows: bool = False) -> Units:
        """Return the mean and the standard deviation of the known entries of each line.

        A line of fewer than three, or of one value alone, has the geometric mean of the others' scales; one of which
        nothing is known their mean center as well.
        """
        lines = seen.rows if by_rows else seen.cols
        size = seen.shape[0] if by_rows else seen.shape[1]
        count, center, spread = _moments(lines, seen.values, size)
        told = (count >= FEWEST) & (spread > 0)
        usual = float(np.exp(np.mean(np.log(spread[told])))) if told.any() else 1.0
        known = count > 0
        middle = float(center[known].mean()) if known.any() else 0.0
        return cls(np.where(known, center, middle), np.where(told, spread, usual), by_rows)

    @property
    def axis(self) -> str:
        """What the lines are called: ``rows`` or ``columns``."""
        return "rows" if self.by_rows else "columns"

    def at(self, rows: Indices, cols: Indices) -> tuple[Array, Array]:
        """Return center and scale at entries."""
        k = rows if self.by_rows else cols
        return self.center[k], self.scale[k]

    def strip(self, seen: Observations) -> Observations:
        """Return observations in these units: what the factors are fitted to."""
        center, scale = self.at(seen.rows, seen.cols)
        noise = None if seen.noise is None else np.asarray(seen.noise / scale)
        return replace(seen, values=(seen.values - center) / scale, noise=noise, _checked=True)

    def transposed(self) -> Units:
        """Return the units of the transposed matrix."""
        return replace(self, by_rows=not self.by_rows)

    def scaled(self, unit: float) -> Units:
        """Return the units of the matrix times `unit`, above 0."""
        return replace(self, center=self.center * unit, scale=self.scale * unit)


def apart(seen: Observations, by_rows: bool = False) -> float:
    """Return how many times the spread of a line with much of it is that of one with little: 1 where all are alike.

    >>> from entrywise.observations import Observations
    >>> ages_and_incomes = np.outer(np.arange(10.0), [1.0, 1000.0])
    >>> round(apart(Observations.from_dense(ages_and_incomes)))
    251
    """
    step = max(1, len(seen) // MANY)
    lines = (seen.rows if by_rows else seen.cols)[::step]
    size = seen.shape[0] if by_rows else seen.shape[1]
    count, _, spread = _moments(lines, seen.values[::step], size)
    told = np.log(spread[(count >= ENOUGH) & (spread > 0)])
    if len(told) < 2:
        return 1.0
    low, high = np.quantile(told, INNER)
    return float(np.exp(high - low))


def _moments(lines: Indices, values: Array, size: int) -> tuple[Indices, Array, Array]:
    """Return count, mean and standard deviation of the values of each line; 0 where there are none."""
    count = np.bincount(lines, minlength=size)
    center = np.bincount(lines, values, size) / np.maximum(count, 1)
    square = np.bincount(lines, (values - center[lines]) ** 2, size)
    return count, center, np.sqrt(square / np.maximum(count - 1, 1))
