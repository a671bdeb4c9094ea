r"""How much the total posterior variance falls when many cells of one line are bought together.

The cells of a plate lie in one column j, each in a row i of its own. Their answers make the column known,

.. math:: C^{v\prime}_j = \Bigl( (C^v_j)^{-1} + \sum_i \frac{\tilde u_i \tilde u_i^\top}{d_i} \Bigr)^{-1}, \qquad
   d_i = \sigma^2 + \tilde v_j^\top C^u_i \tilde v_j + \mathrm{tr}(C^u_i C^v_j),

which is what they say of it, :math:`\mathrm{tr}\, N_j (C^v_j - C^{v\prime}_j)`. A column that becomes known tells of the
rows: before the answers are there, :math:`S_j = \tilde v_j \tilde v_j^\top + C^v_j - C^{v\prime}_j` is what is expected of the
square of its design, and the answer in row i lowers the variance of that row's open cells by

.. math:: \frac{\mathrm{tr}\, C^u_i M_i C^u_i S_j}{\sigma^2 + \mathrm{tr}\, C^u_i S_j + \mathrm{var}'_{ij}}.

Cell by cell, with :math:`\tilde v_j \tilde v_j^\top` alone, a column of which nothing is known would seem to say nothing of
its rows. For plates on rows the two sides change places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.gain import Gains
from entrywise.results.posterior import packed, squares, unpacked
from entrywise.types import Array, Indices


@dataclass(eq=False)
class HalfGain:
    """The lines of one side: designs (k, q), and covariances and sums over open cells, packed, (k, p)."""

    X: Array
    C: Array
    M: Array

    @property
    def outer(self) -> Array:
        """Outer squares of the designs, packed as covariances are."""
        a, b = np.triu_indices(self.X.shape[1])
        return np.asarray(self.X[:, a] * self.X[:, b])


class JointGains:
    """Gains of many cells of one line at once; :meth:`take` changes the covariances of `gains` in place.

    Parameters
    ----------
    gains : Gains
    axis : int
        1: the lines are columns, 0: they are rows. Arrays of cells here have shape (crossing lines, lines).
    """

    def __init__(self, gains: Gains, axis: int) -> None:
        rows, cols = HalfGain(gains.U, gains.Cu, gains.M), HalfGain(gains.V, gains.Cv, gains.N)
        self.cross, self.line = (rows, cols) if axis else (cols, rows)
        q = gains.U.shape[1]
        a, b = np.triu_indices(q)
        self._q, self._twice = q, np.where(a == b, 1.0, 2.0)
        self._inside = self._twice * (b < q - 1)  # the trace leaves the biases out
        noise = np.broadcast_to(gains.noise(), (len(gains.U), len(gains.V)))
        self._noise = noise if axis else noise.T

    def best(
        self, is_open: NDArray[np.bool_], price: Array, count: int
    ) -> tuple[Array, Array, Array]:
        """Return what the `count` best open cells of each line are worth, their price, and what each cell adds a price.

        Shapes (l,), (l,) and (k, l) for l lines and k crossing ones; cells that are not open add minus infinity.
        """
        spread = self._spread(self.line.outer, self.line.C)
        weight = np.where(is_open, 1.0 / spread, 0.0)
        share = np.minimum(1.0, count / np.maximum(is_open.sum(axis=0), 1))
        after = self._after(weight * share)
        own = squares(self.cross.X) @ self._product(after, self.line.M).T
        own /= spread + squares(self.cross.X) @ after.T
        score = np.where(is_open, (self._told(after) + own) / price, -np.inf)
        chosen = _largest(score, count)
        after = self._after(np.where(chosen, weight, 0.0))
        value = np.where(chosen, self._told(after), 0.0).sum(axis=0)
        value += ((self.line.C - after) * self.line.M) @ self._twice
        return value, np.where(chosen, price, 0.0).sum(axis=0), score

    def take(self, crossing: Indices, line: int) -> None:
        """Let the covariances learn of cells of one line that were bought together and are still out."""
        at = np.zeros(self._noise.shape, bool)
        at[crossing, line] = True
        spread = self._spread(self.line.outer, self.line.C)
        after = self._after(np.where(at, 1.0 / spread, 0.0))
        S = self.line.outer + self.line.C - after
        d = self._spread(S, after) + squares(self.cross.X) @ after.T
        lost = self._product(self.cross.C[crossing], np.tile(S[line], (len(crossing), 1)))
        self.cross.C[crossing] -= lost / d[crossing, line][:, None]
        self.line.C[line] = after[line]
        self.cross.M[crossing] -= self.line.outer[line]
        self.line.M[line] -= self.cross.outer[crossing].sum(axis=0)

    def _spread(self, S: Array, C: Array) -> Array:
        """Return the variances of answers without what the line itself leaves open: noise + <C_i, S_j> + tr(C_i C_j)."""
        crossing = self.cross.C
        return np.asarray(
            self._noise + (crossing * self._twice) @ S.T + (crossing * self._inside) @ C.T
        )

    def _after(self, weight: Array) -> Array:
        """Return the lines' covariances after cells of these weights 1 / d, (k, l), packed."""
        information = unpacked(weight.T @ self.cross.outer, self._q)
        C = unpacked(self.line.C, self._q)
        # (1 + C I)^-1 C, which needs no inverse of a covariance that may vanish
        found = np.linalg.solve(np.eye(self._q) + C @ information, C)
        return packed(0.5 * (found + found.transpose(0, 2, 1)))

    def _told(self, after: Array) -> Array:
        """Return by how much each answer lowers the variance of its crossing line, (k, l)."""
        S = self.line.outer + self.line.C - after
        P = self._product(self.cross.C, self.cross.M) * self._twice
        return np.asarray(P @ S.T / (self._spread(S, after) + squares(self.cross.X) @ after.T))

    def _product(self, C: Array, M: Array) -> Array:
        """Return C M C, all packed."""
        full = unpacked(C, self._q)
        return packed(full @ unpacked(M, self._q) @ full)


def _largest(score: Array, count: int) -> NDArray[np.bool_]:
    """Tell which cells are among the `count` of largest score of their line, those of score minus infinity left out."""
    chosen = np.zeros(score.shape, bool)
    top = np.argpartition(-score, min(count, len(score)) - 1, axis=0)[:count]
    np.put_along_axis(chosen, top, True, axis=0)
    return chosen & np.isfinite(score)
