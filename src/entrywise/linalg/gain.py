r"""How much the total posterior variance falls when a cell is bought, for all cells, block by block.

With row posteriors :math:`C^u_i`, column posteriors :math:`C^v_j`, designs :math:`\tilde u = (u, 1)`,
:math:`\tilde v = (v, 1)` and answers of variance :math:`\sigma^2`, buying (i, j) lowers the variance of the
other open cells of row i and of column j by

.. math:: \frac{\tilde v_j^\top C^u_i M_i C^u_i \tilde v_j + \tilde u_i^\top C^v_j N_j C^v_j \tilde u_i}
   {\sigma^2 + \mathrm{var}_{ij}}, \qquad M_i = \sum_{j' \text{ open}} \tilde v_{j'} \tilde v_{j'}^\top, \quad
   N_j = \sum_{i' \text{ open}} \tilde u_{i'} \tilde u_{i'}^\top.

For the row means instead of the cells, :math:`M_i` is the outer square of :math:`\sum \tilde v_{j'}`. Both the gain
and the variance are bilinear in features of the row and of the column, so a block of cells is two matrix products.

**Yes/no answers.** The factors give logits; with :math:`w_{ij}` the mean slope of the logistic function there, an answer
says as much of its logit as a measurement with noise variance :math:`1/w_{ij}`, and an error of the logit is
:math:`w_{ij}` times as large in the probability. So :math:`\sigma^2` is :math:`1/w_{ij}`, and the sums
:math:`M_i` and :math:`N_j` weigh every cell by :math:`w_{ij}^2`: what falls is the variance of probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.linalg import small
from entrywise.results import LowRank
from entrywise.results.levels import logistic_slope
from entrywise.results.posterior import (
    col_features,
    design,
    packed,
    row_features,
    squares,
    unpacked,
)
from entrywise.types import Array, Indices

BLOCK = 1 << 20  # cells scored at once
CACHED = 1 << 18  # in single precision: they stay in the processor's cache
FOR_TABLES = 4  # entries a line, from which on features of all lines are made for their variances
NOISELESS = 1e-12  # answers count as at least this noisy, relative to the rows' variances: gains stay finite
SMALLEST = 1e-300
EVERY = slice(None)

IsOpen = Callable[[Indices], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Logits:
    """What yes/no answers are: the parts of their logits beside the factors, and how far the two answers are apart."""

    row: Array  # (m,) offsets, that of the matrix included
    col: Array  # (n,)
    span: float

    @classmethod
    def of(cls, fit: LowRank) -> Logits | None:
        """Return those of a fit of yes/no answers; None for any other."""
        if fit.answers is None or not fit.is_binary:
            return None
        m, n = fit.shape
        row = np.zeros(m) if fit.row_offset is None else fit.row_offset
        col = np.zeros(n) if fit.col_offset is None else fit.col_offset
        return cls(row + fit.offset, col, float(np.ptp(fit.answers.values)))


@dataclass
class Gains:
    """Everything that scoring needs.

    :func:`~entrywise.linalg.greedy.pick` changes the covariances in place, and leaves M and N as they were.

    Symmetric q x q matrices, one a line, are packed as upper triangles: (m, p) and (n, p) with p = q (q + 1) / 2.
    """

    U: Array  # (m, q)
    V: Array  # (n, q)
    Cu: Array  # (m, p)
    Cv: Array  # (n, p)
    M: Array  # (m, p)
    N: Array  # (n, p)
    known: tuple[Indices, Indices]  # (m,) and (n,), cells of each line that are no longer open
    s2: float
    by_sum: bool
    logits: Logits | None = None

    @classmethod
    def of(cls, fit: LowRank, rows: Indices, cols: Indices, by_sum: bool = False) -> Gains:
        """Return the state of a fit of :func:`~entrywise.passive.low_rank`; (rows, cols) are no longer open."""
        if fit.posterior is None or fit.posterior.is_point:
            raise ParameterError("gains need a posterior with covariances; fit with low_rank")
        posterior = fit.posterior
        U, V = design(fit.left), design(fit.right)
        scale = float(np.mean(np.einsum("iaa->i", posterior.rows.cov))) if len(U) else 1.0
        p = U.shape[1] * (U.shape[1] + 1) // 2
        found = cls(
            U,
            V,
            Cu=packed(posterior.rows.cov),
            Cv=packed(posterior.cols.cov),
            M=np.zeros((len(U), p)),
            N=np.zeros((len(V), p)),
            known=(np.bincount(rows, minlength=len(U)), np.bincount(cols, minlength=len(V))),
            s2=max(posterior.answer_variance, NOISELESS * max(scale, SMALLEST)),
            by_sum=by_sum,
            logits=Logits.of(fit),
        )
        if found.logits is None:
            found._count_alike(rows, cols)
        else:
            found._count_by_slope(rows, cols)
        return found

    def _count_alike(self, rows: Indices, cols: Indices) -> None:
        """Set the sums over open cells, all cells but the listed ones, each counted once."""
        U, V = self.U, self.V
        m, n = len(U), len(V)
        a, b = np.triu_indices(U.shape[1])
        UU, VV = (np.take(X, a, axis=1) * np.take(X, b, axis=1) for X in (U, V))
        if self.by_sum:
            bought = np.stack([np.bincount(rows, v[cols], m) for v in V.T], axis=1)
            s = V.sum(axis=0) - bought
            self.M = s[:, a] * s[:, b]
        else:
            self.M = (V.T @ V)[a, b] - self._line_sums(rows, cols, VV, m)
        self.N = (U.T @ U)[a, b] - self._line_sums(cols, rows, UU, n)

    def _line_sums(self, index: Indices, other: Indices, table: Array, size: int) -> Array:
        """Return the sums of table[other] over the cells of each line, shape (size, p)."""
        if small.is_small(len(self.U), len(self.V)):
            return small.line_sums(index, other, table, size)
        from entrywise.linalg._jit_gain import line_sums

        return np.asarray(line_sums(index, other, table, size))

    def _count_by_slope(self, rows: Indices, cols: Indices) -> None:
        """Set the sums over open cells, each weighted by the squared slope from its logit to its answer."""
        a, b = np.triu_indices(self.U.shape[1])
        UU, VV = self.U[:, a] * self.U[:, b], self.V[:, a] * self.V[:, b]
        order = np.argsort(rows, kind="stable")
        rows, cols = rows[order], cols[order]
        left, right = self._variance_halves()
        for part in self.row_blocks():
            slope = self._slopes(part, left[part] @ right)
            low, high = np.searchsorted(rows, (part[0], part[-1] + 1))
            slope[rows[low:high] - part[0], cols[low:high]] = 0.0
            if self.by_sum:
                s = slope @ self.V
                self.M[part] = s[:, a] * s[:, b]
            slope **= 2
            if not self.by_sum:
                self.M[part] = slope @ VV
            self.N += slope.T @ UU[part]

    def _slopes(self, rows: Indices, variance: Array, some: Indices | slice = EVERY) -> Array:
        """Return how much an answer moves with its logit, in `some` columns of rows whose logits have these variances."""
        logits = self.logits
        assert logits is not None
        mean = self.U[rows, :-1] @ self.V[some, :-1].T + logits.row[rows][:, None]
        mean += logits.col[some]
        return np.asarray(logits.span * logistic_slope(mean, variance))

    def answer_noise(
        self, rows: Indices, variance: Array, some: Indices | slice = EVERY
    ) -> float | Array:
        """Return the variance of an answer about what the factors give, in `some` columns of rows."""
        if self.logits is None:
            return self.s2
        return np.asarray(self.logits.span / self._slopes(rows, variance, some))

    def take(self, rows: Indices, cols: Indices) -> None:
        """Let the covariances learn of cells whose answers are still out: a variance needs no value."""
        q = self.U.shape[1]
        a, b = np.triu_indices(q)
        for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
            u, v = self.U[i], self.V[j]
            Cu, Cv = unpacked(self.Cu[i : i + 1], q)[0], unpacked(self.Cv[j : j + 1], q)[0]
            x, z = Cu @ v, Cv @ u
            shared = float(np.sum(Cu[:-1, :-1] * Cv[:-1, :-1]))
            variance = float(v @ x) + float(u @ z) + shared
            d = self._noise_at(i, j, variance) + variance
            self.Cu[i] -= x[a] * x[b] / d
            self.Cv[j] -= z[a] * z[b] / d

    def _noise_at(self, i: int, j: int, variance: float) -> float:
        """Return the variance of one answer about what the factors give."""
        logits = self.logits
        if logits is None:
            return self.s2
        mean = self.U[i, :-1] @ self.V[j, :-1] + logits.row[i] + logits.col[j]
        return 1.0 / float(logistic_slope(np.asarray(mean), np.asarray(variance)))

    def _variance_halves(self) -> tuple[Array, Array]:
        """Return (c, d): the variances of all cells, or of their logits, are ``c @ d``."""
        right = np.ascontiguousarray(col_features(self.V, self.Cv).T)
        return row_features(self.U, self.Cu), right

    def _features(self) -> tuple[Array, Array, Array, Array]:
        """Return (a, b, c, d): the gain times (sigma^2 + variance) of all cells is ``a @ b``, the variance ``c @ d``."""
        own = np.hstack([sandwich(self.Cu, self.M), squares(self.U)])
        spread = row_features(self.U, self.Cu)
        across = np.hstack([squares(self.V), sandwich(self.Cv, self.N)]).T
        right = np.ascontiguousarray(col_features(self.V, self.Cv).T)
        return own, np.ascontiguousarray(across), spread, right

    def blocks(self) -> Iterator[tuple[Indices, Array, Array]]:
        """Yield (rows, gains, variances of the expected answers) for blocks of rows; both of shape (len(rows), n)."""
        gain_left, gain_right, var_left, var_right = self._features()
        for rows in self.row_blocks():
            variance = var_left[rows] @ var_right
            gain = (gain_left[rows] @ gain_right) / (self.answer_noise(rows, variance) + variance)
            if self.logits is not None:
                variance *= self._slopes(rows, variance) ** 2
            yield rows, gain, variance

    def variance_without(self, cells: Indices) -> float:
        """Return the sum of the variances of all entries but those of `cells`, which are in order; not for logits."""
        left, right = row_features(self.U, self.Cu), col_features(self.V, self.Cv)
        n, total = len(right), float(left.sum(axis=0) @ right.sum(axis=0))
        if small.is_small(len(left), n):
            closed = float(np.sum(left[cells // n] * right[cells % n]))
        else:
            from entrywise.linalg._jit_gain import sum_of_products

            pointer = np.searchsorted(cells, n * np.arange(len(left) + 1))
            closed = float(sum_of_products(left, right, pointer, cells, n))
        return max(total - closed, 0.0)

    def open_variance(self, is_open: IsOpen) -> tuple[float, int]:
        """Return the sum of the variances of the expected answers of all open cells, and their number."""
        left, right = self._variance_halves()
        total, count = 0.0, 0
        for rows in self.row_blocks(CACHED):
            free = is_open(rows)
            count += int(np.count_nonzero(free))
            if self.logits is None:
                total += float(np.sum(left[rows] * (free.astype(np.float64) @ right.T)))
                continue
            variance = left[rows] @ right
            variance *= self._slopes(rows, variance) ** 2
            total += float(variance[free].sum())
        return total, count

    def noise(self) -> float | Array:
        """Return the variance of answers about what the factors give: a number, or of shape (m, n) for yes/no answers."""
        if self.logits is None:
            return self.s2
        left, right = self._variance_halves()
        return self.answer_noise(np.arange(len(self.U)), left @ right)

    def row_blocks(self, cells: int = BLOCK) -> list[Indices]:
        """Return the rows in blocks of about so many cells."""
        step = max(1, cells // len(self.V))
        return [
            np.arange(start, min(start + step, len(self.U)))
            for start in range(0, len(self.U), step)
        ]


def foretold_at(fit: LowRank, i: Indices, j: Indices) -> tuple[Array, Array] | None:
    """Return what the factors of a large fit say at many entries, and their posterior variances, (t,) each.

    None where the fit itself is as fast.
    """
    posterior = fit.posterior
    are_few = small.is_small(*fit.shape) or len(i) < FOR_TABLES * sum(fit.shape)
    if are_few or posterior is None or posterior.is_point:
        return None
    from entrywise.linalg._jit_gain import products_at

    m, n = fit.shape
    row = np.zeros(m) if fit.row_offset is None else fit.row_offset
    col = np.zeros(n) if fit.col_offset is None else fit.col_offset
    means = (
        np.column_stack([fit.left, row + fit.offset, np.ones(m)]),
        np.column_stack([fit.right, np.ones(n), col]),
    )
    halves = (
        row_features(design(fit.left), packed(posterior.rows.cov)),
        col_features(design(fit.right), packed(posterior.cols.cov)),
    )
    mean, variance = (np.asarray(products_at(*both, i, j)) for both in (means, halves))
    return mean, np.maximum(variance, 0.0, out=variance)


def leverage(X: Array) -> Array:
    """Return the leverage of each row of X, shape (m,); they sum to the rank."""
    G = X.T @ X
    return np.asarray(np.einsum("ia,ab,ib->i", X, np.linalg.pinv(G, hermitian=True), X))


def sandwich(C: Array, M: Array) -> Array:
    """Return C M C of packed matrices, packed."""
    q = round(np.sqrt(2 * C.shape[1] + 0.25) - 0.5)
    full = unpacked(C, q)
    return packed(full @ unpacked(M, q) @ full)
