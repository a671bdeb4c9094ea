r"""A completed rank-one matrix that knows what it cannot know.

Known entries link rows and columns. Where no chain of known entries links a row to a column, their entry is
not determined by the data, and is NaN here. Where one does, the effective resistance between the two says how
far noise reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.bounds.rank_one import Sensitivity
from entrywise.exceptions import ParameterError
from entrywise.results import Interval, LowRank
from entrywise.types import Array, Indices


def _none() -> Indices:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class RankOne(LowRank):
    r"""A completed matrix :math:`\hat A = x y^\top` with one gauge in each connected component.

    Parameters
    ----------
    row_component, col_component : ndarray of int64 of shape (m,) and (n,)
        Entry (i, j) is determined where they agree, and NaN elsewhere.
    seen_rows, seen_cols : ndarray of int64 of shape (t,)
        The entries that the fit used.
    precision : ndarray of shape (t,)
        Inverse noise variance of each, up to the factor ``sigma**2``.
    sigma : float
        Noise: estimated from the residuals, or 1 where the observations came with theirs; NaN when neither
        can be had.
    degrees : float
        Degrees of freedom of `sigma`, infinite when it is known; 0 when there are none left.

    Examples
    --------
    >>> from entrywise.observations import Observations
    >>> from entrywise.passive.log_least_squares import log_least_squares
    >>> nan = float("nan")
    >>> found = log_least_squares(Observations.from_dense([[1, 2, nan], [3, nan, nan], [nan, nan, 5]]))
    >>> found.to_dense().round(12)
    array([[ 1.,  2., nan],
           [ 3.,  6., nan],
           [nan, nan,  5.]])
    """

    row_component: Indices = field(default_factory=_none)
    col_component: Indices = field(default_factory=_none)
    seen_rows: Indices = field(default_factory=_none)
    seen_cols: Indices = field(default_factory=_none)
    precision: Array = field(default_factory=lambda: np.zeros(0))
    sigma: float = np.nan
    degrees: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.row_component):
            object.__setattr__(self, "row_component", np.zeros(self.shape[0], np.int64))
            object.__setattr__(self, "col_component", np.zeros(self.shape[1], np.int64))

    @property
    def components(self) -> int:
        """How many parts the lines fall into that cannot be compared with each other."""
        return len(np.unique(np.r_[self.row_component, self.col_component]))

    def identifiable(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Tell which entries the known ones determine."""
        i, j = self._where(rows, cols)
        return np.asarray(self.row_component[i] == self.col_component[j])

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), NaN where nothing determines them."""
        i, j = self._where(rows, cols)
        found = self.left[i, 0] * self.right[j, 0]
        return np.where(self.row_component[i] == self.col_component[j], found, np.nan)

    def to_dense(self) -> Array:
        """Return the whole matrix as an array of shape (m, n), NaN where nothing determines it."""
        return self.entries(np.arange(self.shape[0])[:, None], np.arange(self.shape[1])[None, :])

    def __matmul__(self, x: ArrayLike) -> Array:
        """Return A x; NaN in rows that would need an undetermined entry."""
        X = np.asarray(x, np.float64)
        flat = X.reshape(len(X), -1)
        count = int(max(self.row_component.max(), self.col_component.max())) + 1
        sums, used = np.zeros((count, flat.shape[1])), np.zeros((count, flat.shape[1]))
        live = np.isfinite(self.right[:, 0])
        np.add.at(sums, self.col_component[live], self.right[live] * flat[live])
        np.add.at(used, self.col_component, flat != 0)
        found = self.left * sums[self.row_component]
        found[used[self.row_component] < used.sum(axis=0)] = np.nan
        return np.asarray(found.reshape(len(self.left), *X.shape[1:]))

    def scaled(self, unit: float) -> LowRank:
        """Return the matrix times `unit`, its noise with it; see :meth:`LowRank.scaled`."""
        return replace(super().scaled(unit), sigma=self.sigma * unit)  # type: ignore[call-arg]

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How disturbances of the known entries reach the others."""
        return Sensitivity(self.seen_rows, self.seen_cols, self.left, self.right, self.precision)

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        r"""Return the variance of the estimate, :math:`\sigma^2 \hat A_{ij}^2 R_{ij}`, NaN where nothing determines it.

        Entries of lines that are zero have that of the line's own least-squares fit.
        """
        i, j = self._where(rows, cols)
        A = self.entries(i, j)
        found = np.full(A.shape, np.nan)
        usual = np.isfinite(A) & (A != 0)
        if usual.any():
            found[usual] = A[usual] ** 2 * self.sensitivity.resistances(i[usual], j[usual])
        zero = A == 0
        if zero.any():
            x, y = self.left[:, 0], self.right[:, 0]
            s, t, p = self.seen_rows, self.seen_cols, self.precision
            of_row = np.bincount(s, p * y[t] ** 2, len(x))[i[zero]]
            of_col = np.bincount(t, p * x[s] ** 2, len(y))[j[zero]]
            with np.errstate(divide="ignore", invalid="ignore"):
                found[zero] = np.where(
                    x[i[zero]] == 0, y[j[zero]] ** 2 / of_row, x[i[zero]] ** 2 / of_col
                )
        return np.asarray(self.sigma**2 * found)

    def interval(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        level: float = 0.9,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Interval:
        r"""Return intervals that cover with probability `level`: a new measurement (``answer``) or the entry (``truth``).

        .. math:: \hat A_{ij} \pm t \, \sigma \sqrt{\hat A_{ij}^2 R_{ij}\ [+\,1]}

        with t from Student's law, :math:`R` the effective resistance between row i and column j. NaN where the
        known entries determine nothing, and everywhere when they leave no degree of freedom to tell the noise by (the
        report says so). `noise` is the standard deviation of the new measurement, that of the known entries when not
        given.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level of an interval must be in (0, 1), got {level}")
        if of not in ("answer", "truth"):
            raise ParameterError(f"of must be 'answer' or 'truth', got {of!r}")
        from scipy.stats import norm, t

        variance = self.variance(rows, cols)
        A = self.entries(rows, cols)
        if of == "answer":
            typical = float(np.median(self.precision)) if len(self.precision) else 1.0
            new = self.sigma**2 / typical if noise is None else np.asarray(noise, np.float64) ** 2
            variance = variance + new
        known = np.isinf(self.degrees)
        factor = (
            norm.ppf(0.5 + level / 2) if known else t.ppf(0.5 + level / 2, max(self.degrees, 1.0))
        )
        half = factor * np.sqrt(variance)
        return Interval(A - half, A + half)
