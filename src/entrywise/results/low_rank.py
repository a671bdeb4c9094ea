"""A completed matrix of low rank, with what is known of its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.frames import make_frame, named_lines
from entrywise.results.calibration import Calibration, normal_width
from entrywise.results.features import Features
from entrywise.results.levels import (
    Levels,
    logistic_mean,
    logistic_variance,
    pseudo_answers,
)
from entrywise.results.matrix import Matrix, lookup, products_at
from entrywise.results.posterior import Lines, Posterior, solve_lines
from entrywise.results.result import Interval, refuse_level
from entrywise.results.units import Units
from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.observations import Observations

Axis = Literal["rows", "columns"]
Of = Literal["answer", "truth"]

SMALLEST = 1e-300  # below any variance: keeps quotients of zeros finite
FOLDING_STEPS = 25  # regressions of a new line on yes/no answers; the mean then moves by less than 1e-6 as a rule
DENSE_BLOCK = (
    1 << 22
)  # entries made at once by a product with another scale than the factors': 32 MB


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
    bounds : (float, float), optional
        The range of an answer; intervals are clipped to it, the entries are not.
    answers : Levels, optional
        The values that an answer can have, where they are few: behind :meth:`probability` and :meth:`levels`. With two
        values and no cuts the factors give a logit, :meth:`latent`, and the entries are expected answers.
    logarithm : bool
        Whether the factors give the logarithm of one plus the answer, as for counts; the entries are answers.
    units : Units, optional
        Where columns, or rows, are in units of their own: the factors, ``posterior`` and the noise are in standard
        deviations of a line, entries and intervals in its unit.
    row_features, col_features : Features, optional
        How features of lines were encoded; ``posterior`` has their weights.
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
    bounds: tuple[float, float] | None = None
    answers: Levels | None = None
    logarithm: bool = False
    units: Units | None = None
    row_features: Features | None = None
    col_features: Features | None = None
    row_labels: tuple[str, ...] | None = None
    col_labels: tuple[str, ...] | None = None

    @classmethod
    def of_entries(cls, seen: Observations, left: Array, right: Array, **fields: Any) -> LowRank:
        """Return a fit to `seen`, which knows the labels and how often each line was seen."""
        lines = ("row_counts", "col_counts", "row_labels", "col_labels")
        return cls(left, right, **{name: getattr(seen, name) for name in lines}, **fields)

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

    @property
    def interval_of(self) -> Of:
        """What an interval can be of: the ``truth`` where noise can be told from lack of fit, else an ``answer``."""
        told = self.posterior is not None and self.posterior.noise_told
        return "truth" if told or self.is_binary else "answer"

    @property
    def is_binary(self) -> bool:
        """Whether answers have two values, of which the factors give the logit."""
        return self.answers is not None and self.answers.is_binary

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast: for yes/no answers the expected answer."""
        return self.answered(self.latent(rows, cols), rows, cols)

    def answered(self, found: Array, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols) where the factors say `found` there, see :meth:`latent`."""
        if self.logarithm:
            return np.asarray(np.maximum(np.expm1(found), 0.0))
        if self.units is not None:
            center, scale = self.units.at(*self._where(rows, cols))
            return np.asarray(center + scale * found)
        if self.answers is None or not self.answers.is_binary:
            return found
        low, high = self.answers.values
        yes = logistic_mean(found, self._latent_variance(*self._where(rows, cols)))
        return np.asarray(low + (high - low) * yes)

    def latent(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return what the factors say at (rows, cols): the entries, as they are or in standard deviations of their line;
        the logit of yes/no answers; log1p of counts.
        """
        i, j = self._where(rows, cols)
        found = products_at(self.left, self.right, i, j)
        found += self.offset
        if self.row_offset is not None:
            found += self.row_offset[i]
        if self.col_offset is not None:
            found += self.col_offset[j]
        return found

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the posterior variance of the entries at (rows, cols), shapes broadcast.

        The formula is in :mod:`entrywise.results.posterior`. Neither noise nor lack of fit is in it. Of yes/no answers it
        is the variance of the expected answer.
        """
        i, j = self._where(rows, cols)
        found = self._latent_variance(i, j)
        if self.logarithm:
            return np.asarray((1.0 + self.entries(i, j)) ** 2 * found)
        if self.units is not None:
            return np.asarray(self.units.at(i, j)[1] ** 2 * found)
        if self.answers is None or not self.answers.is_binary:
            return found
        low, high = self.answers.values
        return np.asarray((high - low) ** 2 * logistic_variance(self.latent(i, j), found))

    def _latent_variance(self, i: Indices, j: Indices) -> Array:
        if self.posterior is None or self.posterior.is_point:
            raise ParameterError(
                "variance needs a posterior with covariances; fit with low_rank, which keeps them"
            )
        return self.posterior.entry_variance(self.left, self.right, i, j)

    def probability(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return how likely the higher of two answers is, or each of several (one more axis), at (rows, cols)."""
        found = self._probabilities(*self._where(rows, cols))
        return np.asarray(found[..., 1] if found.shape[-1] == 2 else found)

    def levels(self, rows: ArrayLike, cols: ArrayLike, level: float = 0.9) -> NDArray[np.bool_]:
        """Tell which answers are in the set that covers a new one with this level, at (rows, cols).

        Of the shape of both and one more axis, along ``answers.values``: ``found.answers.values[found.levels(3, 4)]``.
        """
        refuse_level(level, "level of levels")
        answers = self._levels()
        return answers.sets(self._probabilities(*self._where(rows, cols)), level)

    def _levels(self) -> Levels:
        if self.answers is None:
            raise ParameterError(
                "this result knows of no levels; complete with likelihood='binary' or 'ordinal'"
            )
        return self.answers

    def _probabilities(self, i: Indices, j: Indices) -> Array:
        answers = self._levels()
        if answers.is_binary:
            spread = np.sqrt(self._latent_variance(i, j))
        else:
            spread = self.deviation(i, j)
        return answers.probabilities(self.latent(i, j), spread)

    def to_frame(
        self,
        rows: ArrayLike | None = None,
        cols: ArrayLike | None = None,
        *,
        level: float | None = None,
        backend: str = "polars",
    ) -> Any:
        """Return entries as a long frame (polars, pandas or pyarrow): row, col, value, and low, high where `level` is given.

        `rows` and `cols` are numbers from 0 and broadcast; all entries where they are left out.
        """
        if rows is None or cols is None:
            m, n = self.shape
            every = (np.arange(m)[:, None], np.arange(n)[None, :])
            rows = every[0] if rows is None else np.asarray(rows).reshape(-1, 1)
            cols = every[1] if cols is None else np.asarray(cols).reshape(1, -1)
        i, j = (x.ravel() for x in np.broadcast_arrays(rows, cols))
        columns: dict[str, Any] = {
            "row": named_lines(self.row_labels, i),
            "col": named_lines(self.col_labels, j),
            "value": self.entries(i, j),
        }
        if level is not None:
            columns["low"], columns["high"] = self.interval(i, j, level)
        return make_frame(columns, backend)

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
            ``answer`` covers a new measurement of the entry, ``truth`` the entry itself. The truth needs the noise:
            given with the observations, or told by entries that were measured more than once. Without it nobody can say
            how much of what the factors miss is noise and how much is truth, and
            :class:`~entrywise.exceptions.NotIdentifiable` is raised.
        noise : float or array, optional
            Standard deviation of the instrument that will answer; else that of the fit.

        Notes
        -----
        With held-out scores (``calibration``) the width is their conformal quantile times the entry's own standard
        deviation (one width for all when there is no posterior); without them, or when there are too few for the level,
        it is Gaussian. Conformal intervals are for answers; those of the truth are only widened by as much as the
        scores exceed the Gaussian. Intervals are clipped to ``bounds``. Of yes/no answers the interval of an answer is
        that of its set (:meth:`levels`), and the interval of the truth is that of the expected answer.
        """
        refuse_level(level, "level of interval")
        if of not in ("answer", "truth"):
            raise ParameterError(f"of must be 'answer' or 'truth', got {of!r}")
        if not self.has_variance and self.calibration is None:
            raise ParameterError(
                "this result has no uncertainty; complete with low_rank, or calibrate it with entrywise.intervals.conformal"
            )
        if of == "truth" and self.interval_of != "truth":
            raise NotIdentifiable(
                "without noise= or repeated entries, noise and lack of fit cannot be told apart, and no interval of "
                "the truth can be had; give the noise, measure some entries twice, or take of='answer'"
            )
        if self.is_binary:
            return self._binary_interval(*self._where(rows, cols), level, of)
        middle = self.latent(rows, cols)
        reach = self.latent_deviation(rows, cols, of, noise) * self._width(rows, cols, level, of)
        ends = (middle - reach, middle + reach)
        if self.logarithm:
            ends = (np.expm1(ends[0]), np.expm1(ends[1]))
        if self.units is not None:
            center, scale = self.units.at(*self._where(rows, cols))
            ends = (center + scale * ends[0], center + scale * ends[1])
        low, high = self.bounds or (-np.inf, np.inf)
        return Interval(*(np.clip(end, low, high) for end in ends))

    def _binary_interval(self, i: Indices, j: Indices, level: float, of: Of) -> Interval:
        low, high = self._levels().values
        if of == "answer":
            no, yes = np.moveaxis(self.levels(i, j, level), -1, 0)
            return Interval(np.where(no, low, high), np.where(yes, high, low))
        middle = self.latent(i, j)
        reach = normal_width(level) * np.sqrt(self._latent_variance(i, j))
        sure = np.zeros(i.shape)
        ends = (logistic_mean(end, sure) for end in (middle - reach, middle + reach))
        return Interval(*(low + (high - low) * end for end in ends))

    def _width(self, rows: ArrayLike, cols: ArrayLike, level: float, of: Of) -> Array:
        """Return the standard deviations from the middle of each interval to its ends."""
        i, j = self._where(rows, cols)
        if self.calibration is None:
            return np.full(i.shape, normal_width(level))
        width = self.calibration.widths(level, *self._cold(i, j))
        return np.maximum(width, normal_width(level)) if of == "truth" else width

    def _cold(self, i: Indices, j: Indices) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which entries lie in a row, and which in a column, of which nothing was seen."""
        none = np.zeros(i.shape, bool)
        rows = none if self.row_counts is None else self.row_counts[i] == 0
        cols = none if self.col_counts is None else self.col_counts[j] == 0
        return rows, cols

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Of = "answer",
        noise: ArrayLike | None = None,
        variance: Array | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry.

        Ones when the result has no posterior: conformal scores are then plain residuals. Corrected for rows with few
        observations, or line by line, where held-out entries showed the need. `variance` is the posterior's at these
        entries, on the scale of :meth:`latent`, where somebody has it; it is left as it is.
        """
        i, j = self._where(rows, cols)
        if self.answers is not None and self.answers.is_binary:
            return self._binary_deviation(i, j, of)
        found = self.latent_deviation(i, j, of, noise, variance)
        if self.units is not None:
            return np.asarray(self.units.at(i, j)[1] * found)
        return np.asarray((1.0 + self.entries(i, j)) * found) if self.logarithm else found

    def latent_deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Of = "answer",
        noise: ArrayLike | None = None,
        variance: Array | None = None,
    ) -> Array:
        """Return :meth:`deviation` on the scale of :meth:`latent`; the noise is given in the unit of the entries."""
        i, j = self._where(rows, cols)
        if noise is not None and self.logarithm:
            noise = np.asarray(noise, np.float64) / (1.0 + self.entries(i, j))
        if noise is not None and self.units is not None:
            noise = np.asarray(noise, np.float64) / self.units.at(i, j)[1]
        found: Array = np.ones(i.shape)
        if self.has_variance:
            found = self._latent_variance(i, j) if variance is None else variance
            own = self.lack_variance + (self._noise(noise) if of == "answer" else 0.0)
            found = np.asarray(found + own)
            np.sqrt(found, out=found)
        if self.calibration is not None:
            counts = None if self.row_counts is None else self.row_counts[i]
            found = found * self.calibration.factors(i, j, counts, self._cold(i, j))
        return np.asarray(found)

    def _binary_deviation(self, i: Indices, j: Indices, of: Of) -> Array:
        if of == "truth":
            return np.asarray(np.sqrt(self.variance(i, j)))
        low, high = self._levels().values
        yes = self.probability(i, j)
        return np.asarray((high - low) * np.sqrt(yes * (1.0 - yes)))

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
        """Return the transposed matrix; corrections by counts in its ``calibration`` are still those of these rows."""
        return replace(
            self,
            left=self.right,
            right=self.left,
            row_offset=self.col_offset,
            col_offset=self.row_offset,
            row_counts=self.col_counts,
            col_counts=self.row_counts,
            posterior=None if self.posterior is None else self.posterior.transposed(),
            calibration=None if self.calibration is None else self.calibration.transposed(),
            units=None if self.units is None else self.units.transposed(),
            row_features=self.col_features,
            col_features=self.row_features,
            row_labels=self.col_labels,
            col_labels=self.row_labels,
        )

    def scaled(self, unit: float) -> LowRank:
        """Return the matrix times `unit`, above 0, with its posterior; report and certificates stay as they are."""
        root = np.sqrt(unit)
        bounds, answers = self.bounds, self.answers
        if bounds is not None:
            bounds = (bounds[0] * unit, bounds[1] * unit)
        if answers is not None:
            answers = answers.scaled(unit)
        if self.is_binary:  # a logit has no unit
            return replace(self, bounds=bounds, answers=answers)
        if self.units is not None:
            return replace(self, bounds=bounds, answers=answers, units=self.units.scaled(unit))
        posterior, calibration = self.posterior, self.calibration
        if posterior is not None:
            posterior = posterior.scaled(unit)
        if calibration is not None and not self.has_variance:  # scores are plain distances
            calibration = calibration.scaled(unit)
        return replace(
            self,
            left=self.left * root,
            right=self.right * root,
            row_offset=None if self.row_offset is None else self.row_offset * unit,
            col_offset=None if self.col_offset is None else self.col_offset * unit,
            offset=self.offset * unit,
            posterior=posterior,
            calibration=calibration,
            bounds=bounds,
            answers=answers,
        )

    def fold_in(
        self, observations: Observations, axis: Axis = "rows", *, features: Any = None
    ) -> LowRank:
        """Return new rows (or columns) completed from their own observations, without refitting.

        Parameters
        ----------
        observations : Observations
            Of shape (r, n): r new rows over the columns of this matrix; (m, c) for new columns. Where both have
            labels on the shared axis they are matched by label.
        features : frame or array, optional
            Features of the new lines, as those that the fit had; a line may then have no observation at all.

        Returns
        -------
        LowRank
            The new lines alone, shape (r, n) or (m, c), with their posterior; this result is left as it is.
        """
        if axis not in ("rows", "columns"):
            raise ParameterError(f"axis of fold_in must be 'rows' or 'columns', got {axis!r}")
        if self.units is not None and self.units.axis == axis:
            raise ParameterError(
                f"{axis} of this fit are in units of their own, which new ones would bring; complete all of them anew"
            )
        n = self.shape[1] if axis == "rows" else self.shape[0]
        shape = f"(new rows, {n})" if axis == "rows" else f"({n}, new columns)"
        if axis == "rows":
            return self._fold_rows(observations, "column", shape, features)
        turned = self.transposed()._fold_rows(observations.transposed(), "row", shape, features)
        return turned.transposed()

    def _fold_rows(self, new: Observations, shared: str, shape: str, features: Any) -> LowRank:
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
        known = None if features is None else self._encoded(features, new.row_labels, lines)
        values, rows = new.values[order], self.posterior.rows
        if self.is_binary:
            yes = self._yes(values)
            eta = spread = np.zeros(len(j))
            i = np.repeat(np.arange(lines), np.diff(pointer))
            for _ in range(FOLDING_STEPS - 1):
                mean, cov = self._solve_rows(pointer, j, *pseudo_answers(eta, spread, yes), known)
                trial = self._with_rows(mean, replace(rows, cov=cov), pointer, new.row_labels)
                eta, spread = trial.latent(i, j), trial._latent_variance(i, j)
            values, variance = pseudo_answers(eta, spread, yes)
        else:
            values, variance = self._latent_answers(values, j, new, order)
        mean, cov = self._solve_rows(pointer, j, values, variance, known)
        if not self.posterior.is_point:
            rows = replace(rows, cov=cov)
        return self._with_rows(mean, rows, pointer, new.row_labels)

    def _latent_answers(
        self, values: Array, cols: Indices, new: Observations, order: Indices
    ) -> tuple[Array, Array]:
        """Return answers of new rows on the scale of the factors, and their variances about them."""
        found, slope = values, np.ones(len(values))
        if self.logarithm:
            found, slope = log_counts(values), 1.0 + values
        elif self.units is not None:
            center, slope = self.units.at(cols, cols)  # of columns: rows have none of their own
            found = (values - center) / slope
        noise = np.full(len(values), self.noise_variance)
        if new.noise is not None:
            noise = new.noise_array()[order] ** 2 / slope**2
        return found, noise + self.lack_variance

    def _yes(self, values: Array) -> Array:
        """Return 1 for the higher of two answers and 0 for the lower; refuse any other."""
        low, high = self._levels().values
        strange = np.flatnonzero((values != low) & (values != high))
        if len(strange):
            raise DataError(f"answers must be {low:g} or {high:g}, got {values[strange[0]]:g}")
        return np.asarray((values == high).astype(np.float64))

    def _encoded(self, features: Any, labels: tuple[str, ...] | None, lines: int) -> Any:
        if self.row_features is None:
            raise ParameterError(
                "this fit had no features of these lines; complete with row_features or col_features"
            )
        return self.row_features.encode(features, labels, lines)

    def _solve_rows(
        self,
        pointer: Indices,
        j: Indices,
        values: Array,
        variance: Array,
        features: Any,
    ) -> tuple[Array, Array]:
        posterior = cast(Posterior, self.posterior)
        bias = 0.0 if self.col_offset is None else self.col_offset[j]
        return solve_lines(
            pointer,
            j,
            residual=values - self.offset - bias,
            variance=np.maximum(variance, SMALLEST),
            factor=self.right,
            factor_cov=posterior.cols.cov,
            prior=posterior.rows,
            features=features,
        )

    def _with_rows(
        self, mean: Array, rows: Lines, pointer: Indices, labels: tuple[str, ...] | None
    ) -> LowRank:
        """Return the matrix with other rows, of these means and covariances."""
        posterior = replace(cast(Posterior, self.posterior), rows=rows)
        calibration = self.calibration
        if calibration is not None:
            calibration = calibration.without_rows()
        return replace(
            self,
            left=np.ascontiguousarray(mean[:, :-1]),
            row_offset=mean[:, -1].copy(),
            row_counts=np.diff(pointer),
            posterior=posterior,
            calibration=calibration,
            row_labels=labels,
            report={"method": "fold-in", "lines": len(mean)},
        )

    def locate(self, rows: Sequence[str], cols: Sequence[str]) -> tuple[Indices, Indices]:
        """Return the indices of labelled entries; a label that is not there is refused."""
        return _at(rows, self.row_labels, "row"), _at(cols, self.col_labels, "column")

    def __matmul__(self, x: ArrayLike) -> Array:
        X = np.asarray(x, dtype=np.float64)
        if self.is_binary or self.logarithm or self.units is not None:
            m, n = self.shape
            step = max(1, DENSE_BLOCK // n)
            cut = (np.arange(s, min(s + step, m)) for s in range(0, m, step))
            return np.concatenate([self.entries(i[:, None], np.arange(n)) @ X for i in cut])
        found = self.left @ (self.right.T @ X) + self.offset * X.sum(axis=0)
        if self.row_offset is not None:
            found = found + (np.multiply.outer(self.row_offset, X.sum(axis=0)))
        if self.col_offset is not None:
            found = found + self.col_offset @ X
        return np.asarray(found)


def log_counts(values: Array) -> Array:
    """Return the logarithms of one plus counts; refuse numbers below 0."""
    wrong = np.flatnonzero(~(values >= 0))
    if len(wrong):
        raise DataError(f"counts must not be below 0, got {values[wrong[0]]:g}")
    return np.asarray(np.log1p(values))


def _at(asked: Sequence[str], labels: tuple[str, ...] | None, axis: str) -> Indices:
    if labels is None:
        raise ParameterError(f"the {axis}s of this result have no labels; ask by index")
    return lookup(asked, labels, axis)
