r"""How much the total posterior variance falls when a cell is bought, for all cells, block by block.

With row posteriors :math:`C^u_i`, column posteriors :math:`C^v_j`, designs :math:`\tilde u = (u, 1)`,
:math:`\tilde v = (v, 1)` and answers of variance :math:`\sigma^2`, buying (i, j) lowers the variance of the
other open cells of row i and of column j by

.. math:: \frac{\tilde v_j^\top C^u_i M_i C^u_i \tilde v_j + \tilde u_i^\top C^v_j N_j C^v_j \tilde u_i}
   {\sigma^2 + \mathrm{var}_{ij}}, \qquad M_i = \sum_{j' \text{ open}} \tilde v_{j'} \tilde v_{j'}^\top, \quad
   N_j = \sum_{i' \text{ open}} \tilde u_{i'} \tilde u_{i'}^\top.

For the row means instead of the cells, :math:`M_i` is the outer square of :math:`\sum \tilde v_{j'}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrywise.queries import Array, Indices
from entrywise.results import LowRank

BLOCK = 1 << 21  # cells scored at once


@dataclass
class Gains:
    """Everything that scoring needs; :meth:`pick` changes the covariances in place."""

    U: Array  # (m, q)
    V: Array  # (n, q)
    Cu: Array  # (m, q, q)
    Cv: Array  # (n, q, q)
    M: Array  # (m, q, q)
    N: Array  # (n, q, q)
    s2: float
    by_sum: bool

    @classmethod
    def of(cls, fit: LowRank, rows: Indices, cols: Indices, by_sum: bool = False) -> Gains:
        """Return the state of a fit of :func:`~entrywise.passive.low_rank`; (rows, cols) are no longer open."""
        (m, n), q = fit.shape, fit.rank + 1
        assert fit.row_cov is not None
        assert fit.col_cov is not None
        U, V = np.ones((m, q)), np.ones((n, q))
        U[:, :-1], V[:, :-1] = fit.left, fit.right
        M = np.broadcast_to(V.T @ V, (m, q, q)) - _sums(rows, V[cols], m)
        if by_sum:
            s = V.sum(axis=0) - np.stack([np.bincount(rows, V[cols, a], m) for a in range(q)], axis=1)
            M = s[:, :, None] * s[:, None, :]
        N = np.broadcast_to(U.T @ U, (n, q, q)) - _sums(cols, U[rows], n)
        s2 = fit.noise_variance + fit.lack_variance
        scale = float(np.mean(np.einsum("iaa->i", fit.row_cov))) if m else 1.0
        return cls(U, V, fit.row_cov.copy(), fit.col_cov.copy(), M, N, max(s2, 1e-12 * max(scale, 1e-300)), by_sum)

    def halves(self) -> Iterator[tuple[Indices, Array, Array, Array, Array]]:
        """Yield (rows, row's gain, column's gain, row's variance, column's variance) for blocks of rows, each (b, n).

        The gain is (row's + column's) / (sigma^2 + variance); the trace of both covariances counts as the column's.
        """
        n, q = self.V.shape
        a, b = np.triu_indices(q)
        twice = np.where(a == b, 1.0, 2.0)
        VV = (self.V[:, a] * self.V[:, b] * twice).T
        P = np.ascontiguousarray((self.Cv @ self.N @ self.Cv)[:, a, b].T)
        inside = (a < q - 1) & (b < q - 1)
        Cv = np.ascontiguousarray(self.Cv[:, a, b].T)
        step = max(1, BLOCK // n)
        for start in range(0, len(self.U), step):
            rows = np.arange(start, min(start + step, len(self.U)))
            C = self.Cu[rows]
            UU = self.U[rows][:, a] * self.U[rows][:, b] * twice
            own = C[:, a, b]
            yield (
                rows,
                (C @ self.M[rows] @ C)[:, a, b] @ VV,
                UU @ P,
                own @ VV,
                (UU + np.where(inside, own * twice, 0.0)) @ Cv,
            )

    def blocks(self) -> Iterator[tuple[Indices, Array, Array]]:
        """Yield (rows, gains, variances) for blocks of rows; both of shape (len(rows), n)."""
        for rows, row_gain, col_gain, row_var, col_var in self.halves():
            variance = row_var + col_var
            yield rows, (row_gain + col_gain) / (self.s2 + variance), variance

    def pick(
        self,
        is_open: Callable[[Indices], NDArray[np.bool_]],
        price: Callable[[Indices], Array],
        money: float,
        most: int,
    ) -> tuple[Indices, Indices]:
        """Return the cells to buy with `money`, at most `most`, best first, covariances updated in between."""
        from entrywise.linalg._jit_gain import buy_greedily

        m, n = len(self.U), len(self.V)
        length = int(min(n, 16 + 3 * -(-most // m)))
        short = np.full((m, length), -1, np.int32)
        prices, *parts = (np.ones((m, length)) for _ in range(5))
        score = np.zeros(m)
        for rows, *halves in self.halves():
            cost = price(rows)
            rate = (halves[0] + halves[1]) / ((self.s2 + halves[2] + halves[3]) * cost)
            rate[~is_open(rows) | (cost > money)] = -1.0
            top = (
                np.argpartition(rate, n - length, axis=1)[:, n - length :]
                if length < n
                else np.tile(np.arange(n), (len(rows), 1))
            )
            found = np.take_along_axis(rate, top, axis=1)
            short[rows] = np.where(found > 0, top, -1)
            score[rows] = found.max(axis=1)
            for kept, half in zip((prices, *parts), (np.broadcast_to(cost, rate.shape), *halves), strict=True):
                kept[rows] = np.take_along_axis(half, top, axis=1)
        row_gain, col_gain, row_var, col_var = parts
        return buy_greedily(  # type: ignore[no-any-return]
            self.U, self.V, self.Cu, self.Cv, np.ascontiguousarray(self.M), np.ascontiguousarray(self.N), self.s2,
            short, prices, row_gain, row_var, col_gain, col_var, score, money, most, self.by_sum, 1e-12,
        )  # fmt: skip


def leverage(X: Array) -> Array:
    """Return the leverage of each row of X, shape (m,); they sum to the rank."""
    G = X.T @ X
    return np.asarray(np.einsum("ia,ab,ib->i", X, np.linalg.pinv(G, hermitian=True), X))


def _sums(index: Indices, X: Array, size: int) -> Array:
    """Return the sum of x x' over the observations of each line, shape (size, q, q)."""
    q = X.shape[1]
    found = np.empty((size, q, q))
    for a in range(q):
        for b in range(a, q):
            found[:, a, b] = found[:, b, a] = np.bincount(index, X[:, a] * X[:, b], size)
    return found
