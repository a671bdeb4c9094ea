"""A positive semidefinite matrix as the square of a factor."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from entrywise.results.matrix import Matrix, products_at
from entrywise.types import Array, Indices


@dataclass(frozen=True, eq=False, repr=False)
class PSDFactor(Matrix):
    r"""A positive semidefinite matrix :math:`\hat A = F F^\top` of side n.

    Parameters
    ----------
    factor : ndarray of shape (n, k)
    pivots : ndarray of int64 of shape (k,)
        Columns that were asked, in the order in which they were chosen.
    residual : ndarray of shape (n,), optional
        Diagonal of what the factor leaves unexplained; NaN where the diagonal was not asked.
    """

    factor: Array
    pivots: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    residual: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, n) of the matrix."""
        return (len(self.factor),) * 2

    @property
    def rank(self) -> int:
        """Number of columns of the factor."""
        return int(self.factor.shape[1])

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        i, j = self._where(rows, cols)
        return products_at(self.factor, self.factor, i, j)

    def __matmul__(self, x: ArrayLike) -> Array:
        return np.asarray(self.factor @ (self.factor.T @ np.asarray(x, dtype=np.float64)))
