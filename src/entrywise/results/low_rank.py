"""A completed matrix of low rank, with what is known of its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import DataError, ParameterError
from entrywise.results.calibration import Calibration, normal_width
from entrywise.results.matrix import Matrix, lookup
from entrywise.results.posterior import Lines, Posterior, solve_lines
from entrywise.results.result import Interval
from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.observations import Observations

Axis = Literal["rows", "columns"]
Of = Literal["answer", "truth"]

SMALLEST = 1e-300  # below any variance: keeps quotients of zeros finite


@dataclass(frozen=True, eq=False, repr=False)
class LowRank(Matrix):
    r"""A completed matrix :math:`\hat A = U V^\top + b 1^\top + 1 c^\top + \mu`, kept in factors.

    Parameters
    ----------
    left : ndarray of shape (m, k)
    right : ndarray of shape (n, k)
    row_offset : ndarray of shape (m,), optional
    col_offset : ndarray of shape (n,), optional
    offset : float
    row_counts, col_counts : ndarray of int64 of shape (m,) and (n,), optional
        Observations the fit had of each line; where it is 0 the line's entries are the prior's, not the data's.
    posterior : Posterior, optional
        Covariances of the lines, their priors, the noise: behind :meth:`variance`, :meth:`interval`, :meth:`fold_in`.
    calibration : Calibration, optional
        What held-out entries taught about the intervals; see :mod:`entrywise.intervals`.
    row_labels, col_labels : tuple of str, optional

    Examples
    --------
    >>> found = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))
    >>> found.entry(1, 0), found.shape, found.rank
    (6.0, (2, 2), 1)
    """

    left: Array
    right: Array
    row_offset: Array | None = None
    col_offset: Array | None = None
    offset: float = 0.0
    row_counts: Indices | None = None
    col_counts: Indices | None = None
    posterior: Posterior | None = None
    calibration: Calibration | None = None
    row_labels: tuple[str, ...] | None = None
    col_labels: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""
        return len(self.left), len(self.right)

    @property
    def rank(self) -> int:
        """Number of components, offsets not counted."""
        return int(self.left.shape[1])

    @property
    def has_variance(self) -> bool:
        """Whether every entry has a variance of its own."""
        return self.posterior is not None and not self.posterior.is_point

    @property
    def noise_variance(self) -> float:
        """Variance of a new measurement about the entry; 0 when it is not known."""
        return 0.0 if self.posterior is None else self.posterior.noise_variance

    @property
    def lack_variance(self) -> float:
        """Variance of the entries about the factors, where it can be told from noise; else 0."""
        return 0.0 if self.posterior is None else self.posterior.lack_variance

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        i, j = self._where(rows, cols)
        found = np.einsum("...k,...k->...", self.left[i], self.right[j]) + self.offset
        if self.row_offset is not None:
            found = found + self.row_offset[i]
        if self.col_offset is not None:
            found = found + self.col_offset[j]
        return np.asarray(found)

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the posterior variance of the entries at (rows, cols), shapes broadcast.

        The formula is in :mod:`entrywise.results.posterior`. Neither noise nor lack of fit is in it.
        """
        if self.posterior is None or self.posterior.is_point:
            raise ParameterError(
                "variance needs a posterior with covariances; fit with low_rank, which keeps them"
            )
        i, j = self._where(rows, cols)
        return self.posterior.entry_variance(self.left, self.right, i, j)

    def interval(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        level: float = 0.9,
        of: Of = "answer",
        noise: ArrayLike | None = None,
    ) -> Interval:
        """Return intervals for the entries at (rows, cols), shapes broadcast.

        Parameters
        ----------
        level : float
            Share of the intervals that should cover, above 0 and below 1.
        of : {"answer", "truth"}
            ``answer`` covers a new measurement of the entry, ``truth`` the entry itself.
        noise : float or array, optional
            Standard deviation of the instrument that will answer; else that of the fit.

        With held-out scores (``calibration``) the width is their conformal quantile times the entry's own standard
        deviation (one width for all when there is no posterior); without them, or when there are too few for the level,
        it is Gaussian. Conformal intervals are for answers; those of the truth are only widened by as much as the
        scores exceed the Gaussian.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level of interval must be above 0 and below 1, got {level}")
        if of not in ("answer", "truth"):
            raise ParameterError(f"of must be 'answer' or 'truth', got {of!r}")
        if not self.has_variance and self.calibration is None:
            raise ParameterError(
                "this result has no uncertainty; complete with low_rank, or calibrate it with entrywise.intervals.conformal"
            )
        middle = self.entries(rows, cols)
        reach = self.deviation(rows, cols, of, noise) * self._width(level, of)
        return Interval(middle - reach, middle + reach)

    def _width(self, level: float, of: Of) -> float:
        """Return the standard deviations from the middle of an interval to its ends."""
        if self.calibration is None:
            return normal_width(level)
        width = self.calibration.width(level)
        return max(width, normal_width(level)) if of == "truth" else width

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Of = "answer",
        noise: ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry.

        Ones when the result has no posterior: conformal scores are then plain residuals. Corrected for rows with few
        observations where held-out entries showed the need.
        """
        i, j = self._where(rows, cols)
        factor: Array = np.ones(i.shape)
        if self.calibration is not None and self.row_counts is not None:
            factor = self.calibration.of_counts(self.row_counts[i])
        if not self.has_variance:
            return factor
        spread = self.variance(i, j) + self.lack_variance
        if of == "answer":
            spread = spread + self._noise(noise)
        return np.asarray(np.sqrt(spread) * factor)

    def _noise(self, noise: ArrayLike | None) -> float | Array:
        """Return the variance of an answer by an instrument of this standard deviation, or by the fit's."""
        if noise is None:
            return self.noise_variance
        return np.asarray(noise, np.float64) ** 2

    def keep(self, components: Indices) -> LowRank:
        """Return the matrix with only these components, and the offsets."""
        return replace(
            self,
            left=self.left[:, components],
            right=self.right[:, components],
            posterior=None if self.posterior is None else self.posterior.keep(components),
        )

    def transposed(self) -> LowRank:
        """Return the transposed matrix; its ``calibration`` still speaks of these rows."""
        return replace(
            self,
            left=self.right,
            right=self.left,
            row_offset=self.col_offset,
            col_offset=self.row_offset,
            row_counts=self.col_counts,
            col_counts=self.row_counts,
            posterior=None if self.posterior is None else self.posterior.transposed(),
            row_labels=self.col_labels,
            col_labels=self.row_labels,
        )

    def scaled(self, unit: float) -> LowRank:
        """Return the matrix times `unit`, above 0, with its posterior; report and certificates stay as they are."""
        root = np.sqrt(unit)
        posterior, calibration = self.posterior, self.calibration
        if posterior is not None:
            posterior = posterior.scaled(unit)
        if calibration is not None and not self.has_variance:  # scores are plain distances
            calibration = replace(calibration, scores=calibration.scores * unit)
        return replace(
            self,
            left=self.left * root,
            right=self.right * root,
            row_offset=None if self.row_offset is None else self.row_offset * unit,
            col_offset=None if self.col_offset is None else self.col_offset * unit,
            offset=self.offset * unit,
            posterior=posterior,
            calibration=calibration,
        )

    def fold_in(self, observations: Observations, axis: Axis = "rows") -> LowRank:
        """Return new rows (or columns) completed from their own observations, without refitting.

        Parameters
        ----------
        observations : Observations
            Of shape (r, n): r new rows over the columns of this matrix; (m, c) for new columns. Where both have
            labels on the shared axis they are matched by label.

        Returns
        -------
        LowRank
            The new lines alone, shape (r, n) or (m, c), with their posterior; this result is left as it is.
        """
        if axis not in ("rows", "columns"):
            raise ParameterError(f"axis of fold_in must be 'rows' or 'columns', got {axis!r}")
        n = self.shape[1] if axis == "rows" else self.shape[0]
        shape = f"(new rows, {n})" if axis == "rows" else f"({n}, new columns)"
        if axis == "rows":
            return self._fold_rows(observations, "column", shape)
        turned = self.transposed()._fold_rows(observations.transposed(), "row", shape)
        return turned.transposed()

    def _fold_rows(self, new: Observations, shared: str, shape: str) -> LowRank:
        """Return new rows; `shared` and `shape` are what messages call the axis in common and the shape it wants."""
        if self.posterior is None:
            raise ParameterError(
                "this result cannot fold in: it keeps no prior; complete with low_rank or soft_impute"
            )
        labelled = self.col_labels is not None and new.col_labels is not None
        cols = new.cols
        if labelled and self.col_labels != new.col_labels:
            cols = lookup(new.col_labels or (), self.col_labels or (), shared)[cols]
        elif new.shape[1] != self.shape[1]:
            got = new.shape if shared == "column" else new.shape[::-1]
            raise DataError(f"observations to fold in must have shape {shape}, got {got}")
        lines = new.shape[0]
        order = np.argsort(new.rows, kind="stable")
        pointer = np.searchsorted(new.rows[order], np.arange(lines + 1))
        j = cols[order]
        bias = 0.0 if self.col_offset is None else self.col_offset[j]
        noise = np.full(len(j), self.noise_variance)
        if new.noise is not None:
            noise = new.noise_array()[order] ** 2
        mean, cov = solve_lines(
            pointer,
            j,
            residual=new.values[order] - self.offset - bias,
            variance=np.maximum(noise + self.lack_variance, SMALLEST),
            factor=self.right,
            factor_cov=self.posterior.cols.cov,
            prior=self.posterior.rows,
        )
        rows = self.posterior.rows
        if not self.posterior.is_point:
            rows = Lines(rows.prior_mean, rows.prior_cov, cov)
        return replace(
            self,
            left=np.ascontiguousarray(mean[:, :-1]),
            row_offset=mean[:, -1].copy(),
            row_counts=np.diff(pointer),
            posterior=replace(self.posterior, rows=rows),
            row_labels=new.row_labels,
            report={"method": "fold-in", "lines": lines},
        )

    def locate(self, rows: Sequence[str], cols: Sequence[str]) -> tuple[Indices, Indices]:
        """Return the indices of labelled entries; a label that is not there is refused."""
        return _at(rows, self.row_labels, "row"), _at(cols, self.col_labels, "column")

    def __matmul__(self, x: ArrayLike) -> Array:
        X = np.asarray(x, dtype=np.float64)
        found = self.left @ (self.right.T @ X) + self.offset * X.sum(axis=0)
        if self.row_offset is not None:
            found = found + (np.multiply.outer(self.row_offset, X.sum(axis=0)))
        if self.col_offset is not None:
            found = found + self.col_offset @ X
        return np.asarray(found)


def _at(asked: Sequence[str], labels: tuple[str, ...] | None, axis: str) -> Indices:
    if labels is None:
        raise ParameterError(f"the {axis}s of this result have no labels; ask by index")
    return lookup(asked, labels, axis)
