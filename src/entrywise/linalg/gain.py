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
from entrywise.linalg.variational import one_blas_thread
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
CACHED = 1 << 17  # in single precision: they stay in the processor's cache
NOISELESS = 1e-12  # answers count as at least this noisy, relative to the rows' variances: gains stay finite
SMALLEST = 1e-300
TINY = np.float32(1e-37)  # the least gain that counts, in single precision
EVERY = slice(None)
SLACK = (
    0.3  # in a pass rows buy down to seven tenths of the best rate, so that few are scored again
)
CANDIDATES, DEPTH = 16, 4  # of every row, and so many times what it is expected to buy
FEW = 32  # cells known of a column, up to which a pass takes one more; of others half of what they have beyond
SAMPLED = 64  # columns, one of so many, tell what a row is expected to buy
ROUGH = 1.0 + 1e-4  # by which a gain in single precision may fall short

IsOpen = Callable[[Indices], NDArray[np.bool_]]
LinePrice = Callable[[Indices], Array]


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
    """Everything that scoring needs; :meth:`pick` changes the covariances in place.

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
        if small.is_small(m, n):
            packed_sums = small.packed_sums
        else:
            from entrywise.linalg._jit_gain import packed_sums
        a, b = np.triu_indices(U.shape[1])
        if self.by_sum:
            bought = np.stack([np.bincount(rows, v[cols], m) for v in V.T], axis=1)
            s = V.sum(axis=0) - bought
            self.M = s[:, a] * s[:, b]
        else:
            self.M = (V.T @ V)[a, b] - packed_sums(rows, cols, V, m)
        self.N = (U.T @ U)[a, b] - packed_sums(cols, rows, U, n)

    def _count_by_slope(self, rows: Indices, cols: Indices) -> None:
        """Set the sums over open cells, each weighted by the squared slope from its logit to its answer."""
        a, b = np.triu_indices(self.U.shape[1])
        UU, VV = self.U[:, a] * self.U[:, b], self.V[:, a] * self.V[:, b]
        order = np.argsort(rows, kind="stable")
        rows, cols = rows[order], cols[order]
        left, right = self._variance_halves()
        for part in self._row_blocks():
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

    def _noise(
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
        q = self.U.shape[1]
        a, b = np.triu_indices(q)
        Pu, Pv = (
            (C @ unpacked(M, q) @ C)[:, a, b]
            for C, M in ((unpacked(self.Cu, q), self.M), (unpacked(self.Cv, q), self.N))
        )
        return (
            np.hstack([Pu, squares(self.U)]),
            np.ascontiguousarray(np.hstack([squares(self.V), Pv]).T),
            *self._variance_halves(),
        )

    def blocks(self) -> Iterator[tuple[Indices, Array, Array]]:
        """Yield (rows, gains, variances of the expected answers) for blocks of rows; both of shape (len(rows), n)."""
        gain_left, gain_right, var_left, var_right = self._features()
        for rows in self._row_blocks():
            variance = var_left[rows] @ var_right
            gain = (gain_left[rows] @ gain_right) / (self._noise(rows, variance) + variance)
            if self.logits is not None:
                variance *= self._slopes(rows, variance) ** 2
            yield rows, gain, variance

    def variance_without(self, cells: Indices) -> float:
        """Return the sum of the variances of all entries but those of `cells`, which are in order; not for logits."""
        from scipy.sparse import csr_array

        left, right = self._variance_halves()
        m, n = len(left), right.shape[1]
        pointer = np.searchsorted(cells, n * np.arange(m + 1))
        closed = csr_array((np.ones(len(cells)), cells % n, pointer), shape=(m, n))
        total = float(left.sum(axis=0) @ right.sum(axis=1))
        return max(total - float(np.sum(left * (closed @ right.T))), 0.0)

    def open_variance(self, is_open: IsOpen) -> tuple[float, int]:
        """Return the sum of the variances of the expected answers of all open cells, and their number."""
        left, right = self._variance_halves()
        total, count = 0.0, 0
        for rows in self._row_blocks(CACHED):
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
        return self._noise(np.arange(len(self.U)), left @ right)

    def _roughly(
        self, is_open: IsOpen, price: LinePrice, money: float, some: Indices
    ) -> Iterator[tuple[Indices, NDArray[np.float32], Array, float | Array]]:
        """Yield (rows, gain per price in single precision, prices, noise of answers) of `some` columns.

        Cells that are not open or too dear have -1. The array is used again.
        """
        gain_left, gain_right, var_left, var_right = self._features()
        gain_left, gain_right, top = _single(gain_left, gain_right[:, some])
        var_left, var_right, unit = _single(var_left, var_right[:, some])
        rate = variance = np.empty((0, 0), np.float32)
        for rows in self._row_blocks(CACHED):
            if len(rate) != len(rows):
                rate, variance = np.empty((2, len(rows), len(some)), np.float32)
            np.matmul(var_left[rows], var_right, out=variance)
            np.matmul(gain_left[rows], gain_right, out=rate)
            noise: float | Array = self.s2
            if self.logits is not None:
                noise = self._noise(rows, np.asarray(unit * variance, np.float64), some)
            variance += np.asarray(noise / unit, np.float32)
            cost = price(rows)
            cost = cost if cost.shape[1] == 1 else cost[:, some]
            rate /= variance
            rate *= (top / unit / cost).astype(np.float32)
            free = is_open(rows)[:, some]
            if cost.max() > money:
                free &= cost <= money
            np.copyto(rate, np.float32(-1.0), where=~free)
            yield rows, rate, cost, noise

    def _row_blocks(self, cells: int = BLOCK) -> list[Indices]:
        step = max(1, cells // len(self.V))
        return [
            np.arange(start, min(start + step, len(self.U)))
            for start in range(0, len(self.U), step)
        ]

    def pick(
        self, is_open: IsOpen, price: LinePrice, money: float, most: int, slack: float = SLACK
    ) -> tuple[Indices, Indices]:
        """Return the cells to buy with `money`, at most `most`, best first, covariances updated in between.

        A cell is taken when its gain per price is within `slack` of the best other's, as columns stood when the pass
        began: they learn after it, and a column of few known cells gives a pass one. Of every row the best few (some
        times what it is expected to buy, more where rows are few and long, and 16) are candidates.
        """
        if most < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if small.is_small(len(self.U), len(self.V)):
            buy_greedily = small.buy_greedily
        else:
            from entrywise.linalg._jit_gain import buy_greedily
        with one_blas_thread():
            needs = self._needs(is_open, price, money, most)
            start, cols, costs, noise, bound = self._candidates(is_open, price, money, needs)
        often = 1 + np.maximum(self.known[1] - FEW, 0) // 2
        weight = np.ones(1)
        if self.logits is not None:
            weight = (self.logits.span / noise) ** 2
        return buy_greedily(
            self.U, self.V, self.Cu, self.Cv, self.M, self.N, often, start, cols,
            noise, weight, costs, bound, money, min(most, len(cols)), self.by_sum, slack,
        )  # fmt: skip

    def _needs(self, is_open: IsOpen, price: LinePrice, money: float, most: int) -> Array:
        """Return how many cells every row is expected to buy, shape (m,), from what some columns promise.

        The rate of row i falls about as r_i t_i / (t_i + k) when k cells are added to its t_i. All rows end at one rate
        z, so that k_i = t_i (r_i / z - 1) where that is above 0, and the bill is the money: z is the largest of
        ``sum p t r / (money + sum p t)`` over the rows of the largest r.
        """
        m, n = len(self.U), len(self.V)
        some = np.sort(np.random.default_rng(0).choice(n, -(-n // SAMPLED), replace=False))
        r, p = np.zeros(m), np.ones(m)
        for rows, rate, cost, _ in self._roughly(is_open, price, money, some):
            free = rate > 0
            count = np.maximum(free.sum(axis=1), 1)
            r[rows] = np.where(free, rate, 0.0).sum(axis=1) / count
            p[rows] = np.where(free, cost, 0.0).sum(axis=1) / count
        t = np.maximum(self.known[0], 1.0)
        order = np.argsort(-r, kind="stable")
        z = SMALLEST
        for bill, each in ((money, p), (most, np.ones(m))):
            cost = (each * t)[order]
            z = max(z, float(np.max(np.cumsum(cost * r[order]) / (bill + np.cumsum(cost)))))
        return np.minimum(np.maximum(t * (r / z - 1.0), 0.0), n)

    def _candidates(
        self, is_open: IsOpen, price: LinePrice, money: float, needs: Array
    ) -> tuple[Indices, NDArray[np.int32], Array, Array, Array]:
        """Return the best cells of every row: where each row's begin (m + 1,), their columns, prices, noises, rates."""
        m, n = len(self.U), len(self.V)
        lengths = CANDIDATES + DEPTH * np.ceil(needs * max(1.0, n / m))
        lengths = np.minimum(lengths, n).astype(np.int64)
        counts, parts = np.zeros(m + 1, np.int64), []
        for rows, rate, cost, noise in self._roughly(is_open, price, money, np.arange(n)):
            last = np.take_along_axis(np.sort(rate, axis=1), (n - lengths[rows])[:, None], axis=1)
            near = rate >= np.maximum(last, TINY)
            some, each = np.flatnonzero(near), np.count_nonzero(near, axis=1)
            counts[rows + 1] = each
            places = (some - np.repeat(n * np.arange(len(rows)), each)).astype(np.int32)
            noises = np.zeros(0) if isinstance(noise, float) else noise.ravel()[some]
            parts.append((places, _of_cells(cost, some, each), noises, rate.ravel()[some]))
        cols, costs, noises, rates = (np.concatenate(x) for x in zip(*parts, strict=True))
        if self.logits is None:
            noises = np.full(1, self.s2)
        return np.cumsum(counts), cols, costs, noises, ROUGH * rates.astype(np.float64)


def leverage(X: Array) -> Array:
    """Return the leverage of each row of X, shape (m,); they sum to the rank."""
    G = X.T @ X
    return np.asarray(np.einsum("ia,ab,ib->i", X, np.linalg.pinv(G, hermitian=True), X))


def _of_cells(x: Array, cells: Indices, each: Indices) -> Array:
    """Return what `x`, which broadcasts to a block of rows, has at cells in order; `each` row has so many of them."""
    if x.shape[1] == 1:
        return np.repeat(np.broadcast_to(x[:, 0], len(each)), each)
    if len(x) == 1:
        return np.asarray(x[0, cells % x.shape[1]])
    return np.asarray(x.ravel()[cells])


def _single(left: Array, right: Array) -> tuple[Array, Array, float]:
    """Return factors of ``left @ right / unit`` in single precision, whose entries are at most one, and the unit."""
    size = np.maximum(np.abs(left).max(axis=0, initial=0.0), SMALLEST)
    right = right * size[:, None]
    unit = max(float(np.abs(right).max(initial=0.0)), SMALLEST)
    return (left / size).astype(np.float32), (right / unit).astype(np.float32), unit
