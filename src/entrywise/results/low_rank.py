"""A completed matrix of low rank with what is known of its error; corrected where entries were seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import DataError, ParameterError
from entrywise.results import posterior
from entrywise.results.matrix import Matrix
from entrywise.results.result import Interval
from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.observations import Observations


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
    row_cov, col_cov : ndarray of shape (m, q, q) and (n, q, q), optional
        Posterior covariance of each row's :math:`(u_i, b_i)` and each column's :math:`(v_j, c_j)`,
        q = k + 1, the bias last.
    noise_variance : float
        Variance of a new measurement about the entry.
    lack_variance : float
        Variance of the entries about the factors (lack of fit), where it can be told from noise.
    row_prior_mean, row_prior_cov, col_prior_mean, col_prior_cov : ndarray of shape (q,) and (q, q), optional
        What a row or column looks like before anything of it is known; :meth:`fold_in` starts from it.
    row_counts, col_counts : ndarray of int64 of shape (m,) and (n,), optional
        Observations the fit had of each line; where it is 0 the line's entries are the prior's, not the data's.
    scores : ndarray of shape (c,), optional
        Sorted conformal scores of held-out entries; see :mod:`entrywise.intervals`.
    count_edges, count_factors : ndarray of shape (g - 1,) and (g,), optional
        By how much the deviations of rows with few, more, ... observations are corrected, and where the groups part.
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
    row_cov: Array | None = None
    col_cov: Array | None = None
    noise_variance: float = 0.0
    lack_variance: float = 0.0
    row_prior_mean: Array | None = None
    row_prior_cov: Array | None = None
    col_prior_mean: Array | None = None
    col_prior_cov: Array | None = None
    row_counts: Indices | None = None
    col_counts: Indices | None = None
    scores: Array | None = None
    count_edges: Array | None = None
    count_factors: Array | None = None
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
        r"""Return the posterior variance of the entries at (rows, cols), shapes broadcast.

        .. math:: \tilde v^\top C^u \tilde v + \tilde u^\top C^v \tilde u + \mathrm{tr}(C^u C^v),
           \qquad \tilde v = (v, 1), \ \tilde u = (u, 1)

        with the trace over the k components. Neither noise nor lack of fit is in it.
        """
        if self.row_cov is None or self.col_cov is None:
            raise ParameterError(
                "variance needs row_cov and col_cov; fit with low_rank, which keeps them"
            )
        i, j = self._where(rows, cols)
        return posterior.entry_variance(self.left, self.right, self.row_cov, self.col_cov, i, j)

    def _all_variances(self) -> Array:
        """Return :meth:`variance` of every entry by matrix products, shape (m, n); zeros without a posterior."""
        (m, n), k = self.shape, self.rank
        if self.row_cov is None or self.col_cov is None:
            return np.zeros((m, n))
        sides = []
        for factor, cov in ((self.left, self.row_cov), (self.right, self.col_cov)):
            x = np.column_stack([factor, np.ones(len(factor))])
            sides.append(((x[:, :, None] * x[:, None, :]).reshape(len(x), -1), cov))
        (gg, Cu), (aa, Cv) = sides
        found = Cu.reshape(m, -1) @ aa.T + gg @ Cv.reshape(n, -1).T
        found += Cu[:, :k, :k].reshape(m, -1) @ Cv[:, :k, :k].reshape(n, -1).T
        return np.asarray(np.maximum(found, 0.0))

    def interval(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        level: float = 0.9,
        of: Literal["answer", "truth"] = "answer",
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

        With held-out ``scores`` the width is their conformal quantile times the entry's own standard deviation
        (one width for all when there is no posterior); without them, or when there are too few for the level, it is
        Gaussian. Conformal intervals are for answers; those of the truth are only widened by as much as the
        scores exceed the Gaussian.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level of interval must be above 0 and below 1, got {level}")
        if of not in ("answer", "truth"):
            raise ParameterError(f"of must be 'answer' or 'truth', got {of!r}")
        if self.row_cov is None and self.scores is None:
            raise ParameterError(
                "this result has no uncertainty; complete with low_rank, or calibrate it with entrywise.intervals.conformal"
            )
        middle = self.entries(rows, cols)
        width = self.deviation(rows, cols, of, noise) * posterior.factor(
            self.scores, level, of == "truth"
        )
        return Interval(middle - width, middle + width)

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry.

        Ones when the result has no posterior: conformal scores are then plain residuals. Corrected for rows with few
        observations where held-out entries showed the need.
        """
        i, j = self._where(rows, cols)
        factor: Array = np.ones(i.shape)
        if (
            self.count_edges is not None
            and self.count_factors is not None
            and self.row_counts is not None
        ):
            factor = np.asarray(
                self.count_factors[
                    np.searchsorted(self.count_edges, self.row_counts[i], side="right")
                ]
            )
        if self.row_cov is None:
            return factor
        spread = self.variance(i, j) + self.lack_variance
        if of == "answer":
            spread = spread + (
                self.noise_variance if noise is None else np.asarray(noise, np.float64) ** 2
            )
        return np.asarray(np.sqrt(spread) * factor)

    def fold_in(
        self, observations: Observations, axis: Literal["rows", "columns"] = "rows"
    ) -> LowRank:
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
        by_row = axis == "rows"
        mine, theirs = (
            (self.col_labels, observations.col_labels)
            if by_row
            else (self.row_labels, observations.row_labels)
        )
        new, shared = (
            (observations.rows, observations.cols)
            if by_row
            else (observations.cols, observations.rows)
        )
        size = self.shape[1 if by_row else 0]
        if mine is not None and theirs is not None and mine != theirs:
            code = posterior.lookup(theirs, mine, "column" if by_row else "row")
            shared = code[shared]
        elif observations.shape[1 if by_row else 0] != size:
            what = f"(new rows, {size})" if by_row else f"({size}, new columns)"
            raise DataError(
                f"observations to fold in must have shape {what}, got {observations.shape}"
            )
        factor, bias, cov, prior_mean, prior_cov = (
            (self.right, self.col_offset, self.col_cov, self.row_prior_mean, self.row_prior_cov)
            if by_row
            else (self.left, self.row_offset, self.row_cov, self.col_prior_mean, self.col_prior_cov)
        )
        if prior_mean is None or prior_cov is None:
            raise ParameterError(
                "this result cannot fold in: it keeps no prior; complete with low_rank or soft_impute"
            )
        lines = observations.shape[0 if by_row else 1]
        order = np.argsort(new, kind="stable")
        j = shared[order]
        residual = observations.values[order] - self.offset - (0.0 if bias is None else bias[j])
        spread = (
            np.full(len(j), self.noise_variance)
            if observations.noise is None
            else observations.noise_array()[order] ** 2
        )
        spread = np.maximum(spread + self.lack_variance, 1e-300)
        pointer = np.searchsorted(new[order], np.arange(lines + 1))
        mean, new_cov = posterior.fold(
            pointer, j, residual, spread, factor, cov, prior_mean, prior_cov
        )
        changed = (
            ("left", "row_offset", "row_cov", "row_counts", "row_labels")
            if by_row
            else ("right", "col_offset", "col_cov", "col_counts", "col_labels")
        )
        values = (
            np.ascontiguousarray(mean[:, :-1]),
            mean[:, -1].copy(),
            None if cov is None else new_cov,
            np.diff(pointer),
            observations.row_labels if by_row else observations.col_labels,
        )
        new_fields: dict[str, Any] = dict(zip(changed, values, strict=True))
        return replace(self, **new_fields, report={"method": "fold-in", "lines": lines})

    def locate(self, rows: Sequence[str], cols: Sequence[str]) -> tuple[Indices, Indices]:
        """Return the indices of labelled entries; a label that is not there is refused."""
        found = []
        for axis, asked, labels in (
            ("row", rows, self.row_labels),
            ("column", cols, self.col_labels),
        ):
            if labels is None:
                raise ParameterError(f"the {axis}s of this result have no labels; ask by index")
            found.append(posterior.lookup(asked, labels, axis))
        return found[0], found[1]

    def __matmul__(self, x: ArrayLike) -> Array:
        X = np.asarray(x, dtype=np.float64)
        found = self.left @ (self.right.T @ X) + self.offset * X.sum(axis=0)
        if self.row_offset is not None:
            found = found + (np.multiply.outer(self.row_offset, X.sum(axis=0)))
        if self.col_offset is not None:
            found = found + self.col_offset @ X
        return np.asarray(found)


@dataclass(frozen=True, eq=False, repr=False)
class Corrected(LowRank):
    r"""A low-rank matrix corrected where entries were seen: what the factors do not explain of them is kept.

    An entry is :math:`u_i \cdot v_j` plus lack of fit of variance :math:`t^2`; seen as y with noise variance
    :math:`s^2` it becomes :math:`f + \frac{t^2}{t^2 + s^2} (y - f)`, f what the factors say. Make one with :meth:`of`.

    Parameters
    ----------
    seen : ndarray of int64 of shape (t,)
        Entries that were seen, as ``row * n + col``, in order.
    shift, seen_variance : ndarray of shape (t,)
        What is added to the factors there, and the variance of the true entry about the sum.
    """

    seen: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    shift: Array = field(default_factory=lambda: np.zeros(0))
    seen_variance: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, found: LowRank, observations: Observations) -> Corrected:
        """Return `found` corrected at its observations, which must carry their noise and list no entry twice."""
        n = found.shape[1]
        at = observations.rows * n + observations.cols
        order = np.argsort(at, kind="stable")
        i, j = observations.rows[order], observations.cols[order]
        s2 = observations.noise_array()[order] ** 2
        t2 = found.lack_variance
        keep = s2 / np.maximum(t2 + s2, 1e-300)  # share of the factors in the corrected entry
        if (
            5 * len(i) > found.shape[0] * n
        ):  # many: matrix products over the whole are faster than picking entries
            fitted, own = found.to_dense()[i, j], found._all_variances()[i, j]
        else:
            fitted, own = (
                found.entries(i, j),
                found.variance(i, j) if found.row_cov is not None else np.zeros(len(i)),
            )
        shift = (1.0 - keep) * (observations.values[order] - fitted)
        fields_of = {f.name: getattr(found, f.name) for f in fields(found)}
        return cls(
            **fields_of
            | {"seen": at[order], "shift": shift, "seen_variance": keep**2 * own + keep * t2}
        )

    def plain(self) -> LowRank:
        """Return the factors alone."""
        return LowRank(**{f.name: getattr(self, f.name) for f in fields(LowRank)})

    def _look_up(self, i: Indices, j: Indices) -> tuple[NDArray[np.bool_], Indices]:
        flat = i * self.shape[1] + j
        at = np.minimum(np.searchsorted(self.seen, flat), max(len(self.seen) - 1, 0))
        return (self.seen[at] == flat if len(self.seen) else np.zeros(flat.shape, bool)), at

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        found = np.array(super().entries(rows, cols))
        hit, at = self._look_up(*self._where(rows, cols))
        found[hit] += self.shift[at[hit]]
        return found

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry."""
        spread = np.array(super().deviation(rows, cols, of, noise))
        i, j = self._where(rows, cols)
        hit, at = self._look_up(i, j)
        if self.row_cov is not None and hit.any():
            added: Any = 0.0
            if of == "answer":
                added = (
                    self.noise_variance
                    if noise is None
                    else np.broadcast_to(np.asarray(noise, float), i.shape)[hit] ** 2
                )
            spread[hit] = np.sqrt(self.seen_variance[at[hit]] + added)
        return spread

    def fold_in(
        self, observations: Observations, axis: Literal["rows", "columns"] = "rows"
    ) -> LowRank:
        """Return new rows (or columns) completed from their own observations; see :meth:`LowRank.fold_in`."""
        return self.plain().fold_in(observations, axis)

    def __matmul__(self, x: ArrayLike) -> Array:
        found = np.array(super().__matmul__(x))
        i, j = np.divmod(self.seen, self.shape[1])
        X = np.asarray(x, dtype=np.float64)
        np.add.at(found, i, (self.shift * X[j].T).T)
        return found
