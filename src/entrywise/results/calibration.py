"""What held-out entries taught about the width of intervals: one value beside the posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from entrywise.types import Array, Indices


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
    """

    scores: Array
    count_edges: Array = field(default_factory=lambda: np.zeros(0))
    count_factors: Array = field(default_factory=lambda: np.ones(1))

    def of_counts(self, counts: Indices) -> Array:
        """Return the correction of rows with so many observations."""
        group = np.searchsorted(self.count_edges, counts, side="right")
        return np.asarray(self.count_factors[group])

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
