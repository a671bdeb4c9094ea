"""Dear answers fitted with what cheap judges say: four features of every cell and judge, then low rank on what is left.

A judge's table is completed by itself and taken apart: the level of the row, the level of the column, their interaction,
and what the judge says of the cell beyond these. Each part is trusted as far as the dear answers bear it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.left_out import FOLDS, folds_within_rows, left_out_residuals
from entrywise.linalg.crossed_effects import Components, generalised_least_squares
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.results import LowRank
from entrywise.types import Array, Indices, distinct

PARTS = ("row", "column", "interaction", "cell")
ROUNDS = 2  # coefficients with the variances of the dear answers, then with those of what is left
SMALLEST = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Judge:
    """A judge's answers in units of their own spread, taken apart into levels, interaction and residual.

    ``rows`` (m,) and ``cols`` (n,) are levels; ``left`` @ ``right.T`` is the interaction, without row and column means;
    ``rest`` is what is left of each answer, a sparse (m, n) array, zero where the judge was not asked.
    """

    seen: Observations
    fit: LowRank
    rows: Array
    cols: Array
    left: Array
    right: Array
    rest: Any

    @classmethod
    def of(cls, answers: Observations) -> Judge:
        """Return the parts of a judge's answers, which do not depend on its offset and unit."""
        centre, spread = float(answers.values.mean()), float(answers.values.std())
        if not spread > 1e-14 * max(abs(centre), SMALLEST):
            spread = 1.0  # says the same of everything
        seen = Observations.from_triplets(
            answers.rows, answers.cols, (answers.values - centre) / spread, answers.shape
        )
        fit = low_rank(seen)
        middle_left, middle_right = fit.left.mean(axis=0), fit.right.mean(axis=0)
        rows = fit.left @ middle_right
        cols = fit.right @ middle_left
        if fit.row_offset is not None:
            rows = rows + fit.row_offset
        if fit.col_offset is not None:
            cols = cols + fit.col_offset
        rest = Observations.from_triplets(
            seen.rows,
            seen.cols,
            seen.values - fit.entries(seen.rows, seen.cols),
            seen.shape,
        )
        return cls(
            seen=seen,
            fit=fit,
            rows=rows - rows.mean(),
            cols=cols - cols.mean(),
            left=fit.left - middle_left,
            right=fit.right - middle_right,
            rest=rest.to_csr(),
        )

    def parts(self, rows: Indices, cols: Indices) -> Array:
        """Return the four features of some cells, shape (t, 4)."""
        found = np.empty((len(rows), len(PARTS)))
        found[:, 0] = self.rows[rows]
        found[:, 1] = self.cols[cols]
        found[:, 2] = np.einsum("tk,tk->t", self.left[rows], self.right[cols])
        found[:, 3] = np.asarray(self.rest[rows, cols]).ravel()
        return found

    def block(self, rows: Indices, weights: Array) -> tuple[Array, Array]:
        """Return what levels and interaction, and what the residuals say of whole rows, each of shape (r, n)."""
        said = np.add.outer(weights[0] * self.rows[rows], weights[1] * self.cols)
        if self.left.shape[1]:
            said += weights[2] * (self.left[rows] @ self.right.T)
        return said, weights[3] * self.rest[rows].toarray()

    def asked(self, rows: Indices, cols: Indices) -> NDArray[np.bool_]:
        """Tell of which cells the judge was asked, shape (t,)."""
        n = self.seen.shape[1]
        return np.isin(rows * n + cols, self.seen.rows * n + self.seen.cols)

    @cached_property
    def counts(self) -> Indices:
        """How many cells of each row the judge was asked, shape (m,)."""
        return np.bincount(self.seen.rows, minlength=self.seen.shape[0])

    @cached_property
    def rest_variance(self) -> float:
        """Variance of an answer about a fit without it."""
        return float(np.mean(left_out_residuals(self.seen, self.fit.rank) ** 2))


@dataclass(frozen=True, eq=False)
class JudgeFit:
    """The dear answers, fitted.

    ``weights`` (judges, 4) say how far each part of each judge is trusted, ``errors`` how surely that is known;
    ``slopes`` (m,) how much more or less the judges' residuals are worth in each row; ``low_rank`` fits what is left.
    """

    dear: Observations
    judges: tuple[Judge, ...]
    weights: Array
    errors: Array
    slopes: Array
    plain: LowRank
    low_rank: LowRank
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the board."""
        return self.dear.shape

    @property
    def trusted(self) -> bool:
        """Whether anything that a judge says is used."""
        return bool(np.any(self.weights != 0))

    def entries(self, rows: Any, cols: Any) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        i, j = np.broadcast_arrays(np.asarray(rows), np.asarray(cols))
        flat_rows, flat_cols = i.ravel(), j.ravel()
        whole = distinct(flat_rows)
        if len(whole) * self.shape[1] == len(flat_rows):  # whole rows
            at = np.searchsorted(whole, flat_rows)
            return np.asarray(self._block(whole)[at, flat_cols].reshape(i.shape))
        said, rest = said_by(self.judges, self.weights, flat_rows, flat_cols)
        found = self.low_rank.entries(flat_rows, flat_cols) + said
        found += (1.0 + self.slopes[flat_rows]) * rest
        return np.asarray(found.reshape(i.shape))

    def _block(self, rows: Indices) -> Array:
        found = self.low_rank.entries(rows[:, None], np.arange(self.shape[1]))
        for judge, weights in zip(self.judges, self.weights, strict=True):
            said, rest = judge.block(rows, weights)
            found = found + said + (1.0 + self.slopes[rows, None]) * rest
        return np.asarray(found)

    def without_each(self, rng: int = 0) -> Iterator[tuple[Indices, JudgeFit]]:
        """Yield fifths of every row's dear cells, and the fit of what is left without them.

        Coefficients stay as they are: a handful of numbers learned from all cells of the board.
        """
        dear = self.dear
        said, rest = said_by(self.judges, self.weights, dear.rows, dear.cols)
        left = _with_values(dear, dear.values - said - rest)
        fold = folds_within_rows(dear.rows, FOLDS, np.random.default_rng(rng))
        for f in range(FOLDS):
            out, inside = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            if not len(out) or not len(inside):
                continue
            some = left.take(inside)
            fit = low_rank(some, self.low_rank.rank, **self.options)
            off = some.values - fit.entries(some.rows, some.cols)
            slopes = row_slopes(some.rows, rest[inside], off, dear.shape[0])
            yield out, replace(self, dear=dear.take(inside), slopes=slopes, low_rank=fit)


def fit_with_judges(dear: Observations, judges: tuple[Judge, ...], **options: Any) -> JudgeFit:
    r"""Return the fit of dear answers with what judges say.

    Coefficients of all features by generalised least squares with random rows and columns, whose variances a low-rank
    fit has learned; each times :math:`\max(0, 1 - 1/t^2)`, t over its standard error: a judge who knows nothing
    is left out. Low rank on what is left; then both once more; then a slope of the residuals of its own for each row,
    drawn towards none by as much as chance explains. Options go to :func:`~entrywise.passive.low_rank`.
    """
    plain = fit = low_rank(dear, **options)
    weights = errors = np.zeros((len(judges), len(PARTS)))
    features = _features(judges, dear)
    for _ in range(ROUNDS):
        weights, errors = _weights(features, dear, components(fit))
        said = np.einsum("tjp,jp->t", features, weights)
        left = _with_values(dear, dear.values - said)
        if not weights.any():
            fit = plain
            break
        fit = low_rank(left, **options)
    rest = features[:, :, 3] @ weights[:, 3]
    slopes = np.zeros(dear.shape[0])
    if rest.any():
        off = left.values - fit.entries(left.rows, left.cols)
        slopes = row_slopes(dear.rows, rest, off, dear.shape[0])
    if slopes.any():
        fit = low_rank(_with_values(dear, left.values - slopes[dear.rows] * rest), **options)
    return JudgeFit(dear, judges, weights, errors, slopes, plain, fit, options)


def without_judges(fit: JudgeFit) -> JudgeFit:
    """Return the plain fit of the same dear answers, as one with no judges."""
    none = np.zeros((0, len(PARTS)))
    slopes = np.zeros(fit.shape[0])
    return replace(fit, judges=(), weights=none, errors=none, slopes=slopes, low_rank=fit.plain)


def components(fit: LowRank) -> Components:
    """Return the variances that a fit has learned; the interaction counts with the cell."""
    posterior = fit.posterior
    assert posterior is not None
    k = fit.rank
    moments = [
        side.prior_cov[:k, :k] + np.outer(side.prior_mean[:k], side.prior_mean[:k])
        for side in (posterior.rows, posterior.cols)
    ]
    interaction = float(np.sum(moments[0] * moments[1]))
    return Components(
        rows=float(posterior.rows.prior_cov[k, k]),
        cols=float(posterior.cols.prior_cov[k, k]),
        cell=posterior.answer_variance + interaction,
    )


def said_by(
    judges: tuple[Judge, ...], weights: Array, rows: Indices, cols: Indices
) -> tuple[Array, Array]:
    """Return what judges say of some cells, by levels and interaction and by their residuals, each of shape (t,)."""
    said, rest = np.zeros(len(rows)), np.zeros(len(rows))
    for judge, weight in zip(judges, weights, strict=True):
        parts = judge.parts(rows, cols)
        said += parts[:, :3] @ weight[:3]
        rest += parts[:, 3] * weight[3]
    return said, rest


def row_slopes(rows: Indices, rest: Array, off: Array, m: int) -> Array:
    """Return by how much more the judges' residuals are worth in each row, shrunk, shape (m,).

    Slopes of `off` on `rest`; the variance between rows by moments (DerSimonian and Laird).
    """
    squares = np.bincount(rows, rest**2, m)
    some = squares > 0
    if some.sum() < 2:
        return np.zeros(m)
    each = np.bincount(rows, rest * off, m) / np.maximum(squares, SMALLEST)
    freedom = max(len(rows) - int(some.sum()), 1)
    noise = float(np.sum((off - each[rows] * rest) ** 2)) / freedom
    own, weight = each[some], squares[some] / max(noise, SMALLEST)
    middle = float(np.sum(weight * own) / np.sum(weight))
    spread = float(np.sum(weight * (own - middle) ** 2)) - (len(own) - 1)
    spread /= float(np.sum(weight) - np.sum(weight**2) / np.sum(weight))
    found = np.zeros(m)
    if spread > 0:
        found[some] = spread / (spread + 1.0 / weight) * own
    return found


def _features(judges: tuple[Judge, ...], dear: Observations) -> Array:
    """Return the features of the dear cells, shape (t, judges, 4)."""
    found = [judge.parts(dear.rows, dear.cols) for judge in judges]
    return np.stack(found, axis=1) if found else np.zeros((len(dear), 0, len(PARTS)))


def _weights(features: Array, dear: Observations, variance: Components) -> tuple[Array, Array]:
    """Return how far each part of each judge is trusted, and the standard errors, each of shape (judges, 4).

    Judges who say alike share their worth: the same part of several judges is turned to its principal axes, and each
    axis is shrunk by itself.
    """
    t, count, parts = features.shape
    if not count:
        return np.zeros((0, parts)), np.zeros((0, parts))
    axes = [np.linalg.eigh(x.T @ x)[1] for x in np.moveaxis(features, 2, 0)]
    turned = np.stack([features[:, :, p] @ axes[p] for p in range(parts)], axis=2)
    design = np.column_stack([np.ones(t), turned.reshape(t, -1)])
    found, cov = generalised_least_squares(
        design, dear.values, dear.rows, dear.cols, dear.shape, variance
    )
    found = found[1:]
    squared = np.maximum(np.diag(cov)[1:], SMALLEST)
    trust = np.maximum(1.0 - squared / np.maximum(found**2, SMALLEST), 0.0)
    kept = (trust * found).reshape(count, parts)
    error = np.sqrt(squared).reshape(count, parts)
    weights = np.column_stack([axes[p] @ kept[:, p] for p in range(parts)])
    errors = np.column_stack([np.sqrt(axes[p] ** 2 @ error[:, p] ** 2) for p in range(parts)])
    return weights, errors


def _with_values(seen: Observations, values: Array) -> Observations:
    return Observations.from_triplets(
        seen.rows,
        seen.cols,
        values,
        seen.shape,
        row_labels=seen.row_labels,
        col_labels=seen.col_labels,
    )
