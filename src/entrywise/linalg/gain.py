r"""How much the total posterior variance falls when a cell is bought, for all cells, block by block.

With row posteriors :math:`C^u_i`, column posteriors :math:`C^v_j`, designs :math:`\tilde u = (u, 1)`,
:math:`\tilde v = (v, 1)` and answers of variance :math:`\sigma^2`, buying (i, j) lowers the variance of the
other open cells of row i and of column j by

.. math:: \frac{\tilde v_j^\top C^u_i M_i C^u_i \tilde v_j + \tilde u_i^\top C^v_j N_j C^v_j \tilde u_i}
   {\sigma^2 + \mathrm{var}_{ij}}, \qquad M_i = \sum_{j' \text{ open}} \tilde v_{j'} \tilde v_{j'}^\top, \quad
   N_j = \sum_{i' \text{ open}} \tilde u_{i'} \tilde u_{i'}^\top.

For the row means instead of the cells, :math:`M_i` is the outer square of :math:`\sum \tilde v_{j'}`. Both the gain
and the variance are bilinear in features of the row and of the column, so a block of cells is two matrix products.
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
NOISELESS = 1e-12  # answers count as at least this noisy, relative to the rows' variances: gains stay finite
SMALLEST = 1e-300
SLACK = 0.1  # in a pass rows buy down to nine tenths of the best rate, so that few are scored again
CANDIDATES = 16  # of every row, beside twice the average need


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
    s2: float
    by_sum: bool

    @classmethod
    def of(cls, fit: LowRank, rows: Indices, cols: Indices, by_sum: bool = False) -> Gains:
        """Return the state of a fit of :func:`~entrywise.passive.low_rank`; (rows, cols) are no longer open."""
        if fit.posterior is None or fit.posterior.is_point:
            raise ParameterError("gains need a posterior with covariances; fit with low_rank")
        (m, n), posterior = fit.shape, fit.posterior
        if small.is_small(m, n):
            packed_sums = small.packed_sums
        else:
            from entrywise.linalg._jit_gain import packed_sums
        U, V = design(fit.left), design(fit.right)
        a, b = np.triu_indices(U.shape[1])
        if by_sum:
            bought = np.stack([np.bincount(rows, v[cols], m) for v in V.T], axis=1)
            s = V.sum(axis=0) - bought
            M = s[:, a] * s[:, b]
        else:
            M = (V.T @ V)[a, b] - packed_sums(rows, cols, V, m)
        N = (U.T @ U)[a, b] - packed_sums(cols, rows, U, n)
        scale = float(np.mean(np.einsum("iaa->i", posterior.rows.cov))) if m else 1.0
        s2 = max(posterior.answer_variance, NOISELESS * max(scale, SMALLEST))
        return cls(
            U, V, Cu=packed(posterior.rows.cov), Cv=packed(posterior.cols.cov), M=M, N=N, s2=s2, by_sum=by_sum
        )  # fmt: skip

    def take(self, rows: Indices, cols: Indices) -> None:
        """Let the covariances learn of cells whose answers are still out: a variance needs no value."""
        q = self.U.shape[1]
        a, b = np.triu_indices(q)
        for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
            u, v = self.U[i], self.V[j]
            Cu, Cv = unpacked(self.Cu[i : i + 1], q)[0], unpacked(self.Cv[j : j + 1], q)[0]
            x, z = Cu @ v, Cv @ u
            shared = float(np.sum(Cu[:-1, :-1] * Cv[:-1, :-1]))
            d = self.s2 + float(v @ x) + float(u @ z) + shared
            self.Cu[i] -= x[a] * x[b] / d
            self.Cv[j] -= z[a] * z[b] / d

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
            row_features(self.U, self.Cu),
            np.ascontiguousarray(col_features(self.V, self.Cv).T),
        )

    def blocks(self) -> Iterator[tuple[Indices, Array, Array]]:
        """Yield (rows, gains, variances) for blocks of rows; both of shape (len(rows), n)."""
        gain_left, gain_right, var_left, var_right = self._features()
        for rows in self._row_blocks():
            variance = var_left[rows] @ var_right
            yield rows, (gain_left[rows] @ gain_right) / (self.s2 + variance), variance

    def halves(self) -> tuple[Array, Array]:
        """Return what every cell would take away of the variance of its row, and of its column, both (m, n)."""
        gain_left, gain_right, var_left, var_right = self._features()
        p = self.Cu.shape[1]
        spread = self.s2 + var_left @ var_right
        by_row = gain_left[:, :p] @ gain_right[:p] / spread
        return by_row, gain_left[:, p:] @ gain_right[p:] / spread

    def line_variance(self, axis: int) -> Array:
        """Return the variance that the open cells of each row (0) or column (1) owe to the line itself."""
        q = self.U.shape[1]
        a, b = np.triu_indices(q)
        twice = np.where(a == b, 1.0, 2.0)
        C, S = (self.Cv, self.N) if axis else (self.Cu, self.M)
        return np.asarray((C * S * twice).sum(axis=1))

    def _orders(self) -> Iterator[tuple[Indices, NDArray[np.float32]]]:
        """Yield (rows, gains in single precision and a unit of their own): an order, not a value; the array is used again."""
        gain_left, gain_right, var_left, var_right = self._features()
        gain_left, gain_right, _ = _single(gain_left, gain_right)
        var_left, var_right, unit = _single(var_left, var_right)
        s2 = np.float32(self.s2 / unit)
        gain = variance = np.empty((0, 0), np.float32)
        for rows in self._row_blocks():
            if len(gain) != len(rows):
                gain, variance = np.empty((2, len(rows), len(self.V)), np.float32)
            np.matmul(var_left[rows], var_right, out=variance)
            np.matmul(gain_left[rows], gain_right, out=gain)
            variance += s2
            gain /= variance
            yield rows, gain

    def _row_blocks(self) -> list[Indices]:
        step = max(1, BLOCK // len(self.V))
        return [
            np.arange(start, min(start + step, len(self.U)))
            for start in range(0, len(self.U), step)
        ]

    def pick(
        self,
        is_open: Callable[[Indices], NDArray[np.bool_]],
        price: Callable[[Indices], Array],
        money: float,
        most: int,
        slack: float = SLACK,
    ) -> tuple[Indices, Indices]:
        """Return the cells to buy with `money`, at most `most`, best first, covariances updated in between.

        A cell is taken when its gain per price is within `slack` of the best other's. Of every row the best few
        (twice the average need, more where rows are few and long, and 16) are candidates.
        """
        if most < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        m, n = len(self.U), len(self.V)
        if small.is_small(m, n):
            buy_greedily = small.buy_greedily
        else:
            from entrywise.linalg._jit_gain import buy_greedily
        need = most / m * max(1.0, n / m)
        length = int(min(n, CANDIDATES + 2 * np.ceil(need)))
        short, prices = np.empty((m, length), np.int32), np.ones((m, length))
        with one_blas_thread():
            for rows, rate in self._orders():
                cost = price(rows)
                rate /= cost
                rate[~is_open(rows) | (cost > money)] = -1.0
                top = _largest(rate, length)
                short[rows] = np.where(np.take_along_axis(rate, top, axis=1) > 0, top, -1)
                prices[rows] = np.take_along_axis(np.broadcast_to(cost, rate.shape), top, axis=1)
        return buy_greedily(
            self.U, self.V, self.Cu, self.Cv, self.M, self.N, self.s2,
            short, prices, money, most, self.by_sum, slack,
        )  # fmt: skip


def _largest(rate: NDArray[np.float32], length: int) -> Indices:
    """Return the columns of the largest in each row, in no order, shape (rows, length)."""
    n = rate.shape[1]
    if length < n:
        return np.argpartition(rate, n - length)[:, n - length :]
    return np.broadcast_to(np.arange(n), rate.shape)


def leverage(X: Array) -> Array:
    """Return the leverage of each row of X, shape (m,); they sum to the rank."""
    G = X.T @ X
    return np.asarray(np.einsum("ia,ab,ib->i", X, np.linalg.pinv(G, hermitian=True), X))


def _single(left: Array, right: Array) -> tuple[Array, Array, float]:
    """Return factors of ``left @ right / unit`` in single precision, whose entries are at most one, and the unit."""
    size = np.maximum(np.abs(left).max(axis=0, initial=0.0), SMALLEST)
    right = right * size[:, None]
    unit = max(float(np.abs(right).max(initial=0.0)), SMALLEST)
    return (left / size).astype(np.float32), (right / unit).astype(np.float32), unit
