r"""What a fit knows of its own error: one value with the covariances, the priors and the noise. numpy alone.

A row is :math:`x_i = (u_i, b_i)` and a column :math:`z_j = (v_j, c_j)`, both of length q = k + 1 with the bias last;
an entry is :math:`u_i \cdot v_j + b_i + c_j`. With the designs :math:`\tilde u = (u, 1)`, :math:`\tilde v = (v, 1)`
and rows and columns independent, the variance of an entry is

.. math:: \tilde v^\top C^u \tilde v + \tilde u^\top C^v \tilde u + \mathrm{tr}(C^u C^v),

the trace over the k components. It is bilinear in features of the row and of the column
(:func:`row_features`, :func:`col_features`): picked entries are dot products of them, a block of entries is a matrix
product, and whoever changes covariances (:mod:`entrywise.linalg.gain`) makes the features anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from entrywise.results.matrix import fetch
from entrywise.types import Array, Indices

BLOCK = 1 << 11  # entries handled at once, 2 q (q + 1) numbers each: 2 MB at q = 7
TABLE = 1 << 14  # lines whose features are made once for all entries
ALIVE = 0.05  # a component whose variance is a smaller share of the noise's is dead: chance alone keeps it


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one side, rows or columns: what they look like unseen, and how surely each is known.

    Parameters
    ----------
    prior_mean : ndarray of shape (q,)
    prior_cov : ndarray of shape (q, q)
        What a line looks like before anything of it is known.
    cov : ndarray of shape (m, q, q), or (0, q, q)
        Posterior covariance of each line; of length 0 when the fit is a point (ridge regression: a prior, no posterior).
    weights : ndarray of shape (d, q), optional
        What the line's features f add to its prior mean: ``f @ weights``.
    cold_mean : ndarray of shape (q,), optional
        What a line looks like of which nothing is known, features apart, where that differs from `prior_mean`: the mean of
        the lines weighted by their observations, for entries are asked of what people chose to measure.
    """

    prior_mean: Array
    prior_cov: Array
    cov: Array
    weights: Array | None = None
    cold_mean: Array | None = None

    @classmethod
    def point(cls, prior_mean: Array, prior_cov: Array) -> Lines:
        """Return lines with a prior and no covariances."""
        q = len(prior_mean)
        return cls(prior_mean, prior_cov, np.zeros((0, q, q)))

    def keep(self, places: Indices) -> Lines:
        """Return the lines with only these of their q places."""
        square = np.ix_(places, places)
        return Lines(
            prior_mean=self.prior_mean[places],
            prior_cov=self.prior_cov[square],
            cov=self.cov[:, places[:, None], places],
            weights=None if self.weights is None else self.weights[:, places],
            cold_mean=None if self.cold_mean is None else self.cold_mean[places],
        )

    def means(self, counts: Indices, features: Any = None) -> Array:
        """Return the prior means of lines with so many observations and these features, shape (r, q)."""
        cold = self.prior_mean if self.cold_mean is None else self.cold_mean
        found = np.where(counts[:, None] > 0, self.prior_mean, cold)
        if features is not None and self.weights is not None:
            found = found + features @ self.weights
        return np.asarray(found)

    def scaled(self, unit: float) -> Lines:
        """Return the lines of the matrix times `unit`: components by its root, biases by itself."""
        units = np.full(len(self.prior_mean), np.sqrt(unit))
        units[-1] = unit
        square = np.outer(units, units)
        return Lines(
            prior_mean=self.prior_mean * units,
            prior_cov=self.prior_cov * square,
            cov=self.cov * square,
            weights=None if self.weights is None else self.weights * units,
            cold_mean=None if self.cold_mean is None else self.cold_mean * units,
        )


class RowSums(NamedTuple):
    """Sums over some cells of each row, as :meth:`Posterior.sum_variance` wants them."""

    design: Array  # (m, q) of the columns' (v_j, 1)
    shares: Array  # (m,) of u' C^v_j u
    counts: Array  # (m,) cells


@dataclass(frozen=True, eq=False)
class Posterior:
    """How far the factors, and so the entries, may be off.

    Parameters
    ----------
    rows, cols : Lines
    noise_variance : float
        Variance of a new measurement about the entry.
    lack_variance : float
        Variance of the entries about the factors (lack of fit), where it can be told from noise.
    noise_told : bool
        Whether the noise was given, or told by repeated entries; else `noise_variance` is noise and lack of fit together.
    """

    rows: Lines
    cols: Lines
    noise_variance: float = 0.0
    lack_variance: float = 0.0
    noise_told: bool = False

    @property
    def is_point(self) -> bool:
        """Whether the factors are points: with priors to fold new lines in, without variances."""
        return not len(self.rows.cov)

    @property
    def answer_variance(self) -> float:
        """Variance of a new measurement about what the factors say."""
        return self.noise_variance + self.lack_variance

    def as_point(self) -> Posterior:
        """Return the same priors and noise without covariances."""
        q = len(self.rows.prior_mean)
        none = np.zeros((0, q, q))
        return replace(self, rows=replace(self.rows, cov=none), cols=replace(self.cols, cov=none))

    def transposed(self) -> Posterior:
        """Return the posterior of the transposed matrix."""
        return replace(self, rows=self.cols, cols=self.rows)

    def scaled(self, unit: float) -> Posterior:
        """Return the posterior of the matrix times `unit`, above 0."""
        return replace(
            self,
            rows=self.rows.scaled(unit),
            cols=self.cols.scaled(unit),
            noise_variance=self.noise_variance * unit**2,
            lack_variance=self.lack_variance * unit**2,
        )

    def entry_variance(self, left: Array, right: Array, i: Indices, j: Indices) -> Array:
        """Return the variance of the entries (i, j), of the shape of both; neither noise nor lack of fit is in it."""
        flat_i, flat_j = i.ravel(), j.ravel()
        found = np.empty(len(flat_i))
        of_row = _features_at(row_features, left, self.rows.cov, len(found))
        of_col = _features_at(col_features, right, self.cols.cov, len(found))
        for start in range(0, len(found), BLOCK):
            part = slice(start, start + BLOCK)
            np.einsum("tp,tp->t", of_row(flat_i[part]), of_col(flat_j[part]), out=found[part])
        return np.maximum(found, 0.0, out=found).reshape(i.shape)

    def variance_parts(
        self, left: Array, right: Array, i: Indices, j: Indices
    ) -> tuple[Array, Array]:
        """Return what the row, and what the column, adds to the variance of the entries (i, j), shape (t,) each."""
        of_row, of_col = np.empty(len(i)), np.empty(len(i))
        for start in range(0, len(i), BLOCK):
            part = slice(start, start + BLOCK)
            u, v = design(left[i[part]]), design(right[j[part]])
            x = row_features(u, packed(self.rows.cov[i[part]]))
            z = col_features(v, packed(self.cols.cov[j[part]]))
            half = x.shape[1] // 2
            of_row[part] = np.einsum("tp,tp->t", x[:, :half], z[:, :half])
            of_col[part] = np.einsum("tp,tp->t", x[:, half:], z[:, half:])
        return np.maximum(of_row, 0.0), np.maximum(of_col, 0.0)

    def all_variances(self, left: Array, right: Array) -> Array:
        """Return :meth:`entry_variance` of every entry by matrix products, shape (m, n)."""
        x = row_features(design(left), packed(self.rows.cov))
        z = col_features(design(right), packed(self.cols.cov))
        return np.asarray(np.maximum(x @ z.T, 0.0))

    def row_sums(self, left: Array, right: Array, rows: Indices, cols: Indices) -> RowSums:
        """Return the sums over the listed cells of each row."""
        m = len(left)
        u, v = design(left), design(right)
        shares = np.einsum("ta,tab,tb->t", u[rows], self.cols.cov[cols], u[rows])
        return RowSums(
            design=np.stack([np.bincount(rows, x[cols], m) for x in v.T], axis=1),
            shares=np.asarray(np.bincount(rows, shares, m), np.float64),
            counts=np.bincount(rows, minlength=m).astype(np.float64),
        )

    def other_sums(self, left: Array, right: Array, listed: RowSums) -> RowSums:
        """Return the sums over all cells of each row but the listed ones."""
        u, v = design(left), design(right)
        every = np.einsum("ia,ab,ib->i", u, self.cols.cov.sum(axis=0), u)
        return RowSums(
            design=v.sum(axis=0) - listed.design,
            shares=np.maximum(every - listed.shares, 0.0),
            counts=len(right) - listed.counts,
        )

    def sum_variance(self, sums: RowSums) -> Array:
        r"""Return the variance of new answers summed over those cells of each row, shape (m,).

        .. math:: s^\top C^u_i s + \sum_j \tilde u^\top C^v_j \tilde u + n_i (\sigma^2 + t^2),
           \qquad s = \sum_j \tilde v_j

        The cells of a row share its own uncertainty, so that theirs do not simply add up.
        """
        s = sums.design
        own = sums.counts * self.answer_variance
        found = np.einsum("ia,iab,ib->i", s, self.rows.cov, s) + sums.shares + own
        return np.asarray(np.maximum(found, 0.0))

    def alive(self, share: float = ALIVE) -> Indices:
        """Return the components that vary by more than a `share` of the noise."""
        k = len(self.rows.prior_mean) - 1
        sizes = np.diag(self.rows.prior_cov)[:k] * np.diag(self.cols.prior_cov)[:k]
        return np.flatnonzero(sizes > share * self.answer_variance)

    def keep(self, components: Indices) -> Posterior:
        """Return the posterior with only these components, and the biases."""
        places = np.r_[components, len(self.rows.prior_mean) - 1]
        return replace(self, rows=self.rows.keep(places), cols=self.cols.keep(places))


def design(factor: Array) -> Array:
    """Return ``(u_i, 1)`` for every line, shape (m, k + 1)."""
    found = np.ones((len(factor), factor.shape[1] + 1))
    found[:, :-1] = factor
    return found


def packed(cov: Array) -> Array:
    """Return symmetric matrices as their upper triangles, shape (m, q (q + 1) / 2), those of a line side by side."""
    q = cov.shape[1]
    a, b = np.triu_indices(q)
    # not by an index of arrays, whose answer has the lines of one place side by side
    return np.asarray(np.take(cov.reshape(len(cov), q * q), q * a + b, axis=1))


def unpacked(triangles: Array, q: int) -> Array:
    """Return the symmetric q x q matrices of :func:`packed` triangles."""
    a, b = np.triu_indices(q)
    full = np.empty((len(triangles), q, q))
    full[:, a, b] = full[:, b, a] = triangles
    return full


def squares(x: Array) -> Array:
    """Return the outer squares of the rows of x as triangles, off-diagonals doubled: their dot product with a packed C is x' C x."""
    a, b = np.triu_indices(x.shape[1])
    found = np.take(x, a, axis=1)
    found *= np.take(x, b, axis=1)
    found *= np.where(a == b, 1.0, 2.0)
    return found


def row_features(u: Array, cov: Array) -> Array:
    """Return the row's half of an entry's variance, (m, 2p), from designs (m, q) and packed covariances (m, p)."""
    return np.hstack([cov, squares(u) + inside(u.shape[1]) * cov])


def inside(q: int) -> Array:
    """Return how often the trace of a product of packed matrices counts each of their places, (p,): biases are left out."""
    a, b = np.triu_indices(q)
    return np.where(a == b, 1.0, 2.0) * (b < q - 1)


def col_features(v: Array, cov: Array) -> Array:
    """Return the column's half: ``row_features @ col_features.T`` are the variances of all entries."""
    return np.hstack([squares(v), cov])


def _features_at(
    features: Callable[[Array, Array], Array], factor: Array, cov: Array, count: int
) -> Callable[[Indices], Array]:
    """Return a function from lines to their features: those of all lines are made once where `count` are asked for."""
    if len(factor) <= min(TABLE, count):
        return fetch(features(design(factor), packed(cov)), min(BLOCK, count))
    return lambda lines: features(design(factor[lines]), packed(cov[lines]))


def solve_lines(
    pointer: Indices,
    other: Indices,
    residual: Array,
    variance: Array,
    factor: Array,
    factor_cov: Array,
    prior: Lines,
    features: Any = None,
) -> tuple[Array, Array]:
    """Return the posterior means (r, q) and covariances (r, q, q) of r lines, one ridge regression each.

    Line i has observations ``pointer[i]..pointer[i+1]`` of the lines `other` of the other side, whose components are
    `factor` (n, k), known up to `factor_cov` (n, q, q), or exactly where that has length 0. `residual` is the value less
    everything that is not the line's own, `variance` its noise and lack of fit; `features` (r, d) move the prior means.
    The sweeps of a fit do the same compiled
    (:func:`entrywise.linalg.variational.solve_side`).
    """
    r, q = len(pointer) - 1, len(prior.prior_mean)
    k = q - 1
    P0 = np.linalg.inv(prior.prior_cov)
    P0 = 0.5 * (P0 + P0.T)
    h0 = prior.means(np.diff(pointer), features) @ P0  # (r, q)
    mean, cov = np.empty((r, q)), np.empty((r, q, q))
    for i in range(r):
        at = slice(pointer[i], pointer[i + 1])
        j, w = other[at], 1.0 / variance[at]
        a = design(factor[j])
        G = (a * w[:, None]).T @ a
        h = a.T @ (w * residual[at])
        if len(factor_cov):  # E[v v'] has the covariance in it, and v and c_j go together
            C = np.einsum("t,tab->ab", w, factor_cov[j])
            G[:k, :k] += C[:k, :k]
            h[:k] -= C[:k, k]
        cov[i] = np.linalg.inv(G + P0)
        cov[i] = 0.5 * (cov[i] + cov[i].T)
        mean[i] = cov[i] @ (h + h0[i])
    return mean, cov
