"""What held-out entries taught about the width of intervals: one value beside the posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of held-out entries, and how rows with few observations differ; made by :mod:`entrywise.intervals`.

    Parameters
    ----------
    scores : ndarray of shape (c,)
        Sorted conformal scores: distances in standard deviations of an answer (plain ones where the fit has none).
    count_edges, count_factors : ndarray of shape (g - 1,) and (g,)
        Where the groups of rows with few, more, ... observations part, and by how much each one's deviations are
        corrected; one group and a factor of one when nothing is.
    row_factors, col_factors : ndarray of shape (m,) and (n,), or of one number for all
        By how much the deviations of each row and column are corrected.
    cold_row_scores, cold_col_scores : ndarray
        Sorted scores of entries in whole rows and columns that were hidden; empty when that was not tried, and lines of
        which nothing is known are then treated as the others.
    """

    scores: Array
    count_edges: Array = field(default_factory=lambda: np.zeros(0))
    count_factors: Array = field(default_factory=lambda: np.ones(1))
    row_factors: Array = field(default_factory=lambda: np.ones(1))
    col_factors: Array = field(default_factory=lambda: np.ones(1))
    cold_row_scores: Array = field(default_factory=lambda: np.zeros(0))
    cold_col_scores: Array = field(default_factory=lambda: np.zeros(0))

    def of_counts(self, counts: Indices) -> Array:
        """Return the correction of rows with so many observations."""
        group = np.searchsorted(self.count_edges, counts, side="right")
        return np.asarray(self.count_factors[group])

    def factors(
        self, i: Indices, j: Indices, counts: Indices | None, cold: tuple[Flags, Flags]
    ) -> Array:
        """Return the correction of the deviations of entries (i, j); cold lines have their own scores instead."""
        found = _picked(self.row_factors, i) * _picked(self.col_factors, j)
        if counts is not None:
            found = found * self.of_counts(counts)
        apart = cold[0] & (len(self.cold_row_scores) > 0)
        apart |= cold[1] & (len(self.cold_col_scores) > 0)
        return np.asarray(np.where(apart, 1.0, found))

    def widths(self, level: float, cold_row: Flags, cold_col: Flags) -> Array:
        """Return :meth:`width` for each entry, from the scores of its kind; both ends cold take the wider."""
        found = np.full(cold_row.shape, self.width(level))
        kinds = ((cold_row, self.cold_row_scores), (cold_col, self.cold_col_scores))
        widest = np.zeros(cold_row.shape)
        for cold, scores in kinds:
            if len(scores):
                own = replace(self, scores=scores).width(level)
                widest = np.maximum(widest, np.where(cold, own, 0.0))
        return np.where(widest > 0, widest, found)

    def transposed(self) -> Calibration:
        """Return the calibration of the transposed matrix; counts are still those of these rows."""
        return replace(
            self,
            row_factors=self.col_factors,
            col_factors=self.row_factors,
            cold_row_scores=self.cold_col_scores,
            cold_col_scores=self.cold_row_scores,
        )

    def without_rows(self) -> Calibration:
        """Return the calibration for other rows: what was learned of each row is left out."""
        return replace(self, row_factors=np.ones(1))

    def scaled(self, unit: float) -> Calibration:
        """Return the calibration where scores are plain distances, of answers times `unit`."""
        names = ("scores", "cold_row_scores", "cold_col_scores")
        return replace(self, **{name: getattr(self, name) * unit for name in names})

    def width(self, level: float) -> float:
        """Return the conformal quantile: the ceil((c + 1) level)-th smallest of c scores.

        When they are too few for the level: the Gaussian one times their root mean square, or the largest of them,
        whichever is more; the Gaussian one when there are none.
        """
        scores = self.scores
        if not len(scores):
            return normal_width(level)
        k = math.ceil((len(scores) + 1) * level)
        if k <= len(scores):
            return float(scores[k - 1])
        return max(normal_width(level) * float(np.sqrt(np.mean(scores**2))), float(scores[-1]))


def normal_width(level: float) -> float:
    """Return by how many standard deviations a Gaussian interval of the given level reaches to either side."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def _picked(factors: Array, at: Indices) -> Array:
    """Return each line's factor, or the only one."""
    return np.asarray(factors[at] if len(factors) > 1 else np.full(at.shape, factors[0]))
