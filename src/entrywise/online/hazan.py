"""The whole algorithm of Hazan, Kale and Shalev-Shwartz, projection and all, for small matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.online._learner import Learner, Replayed, positive, two_sizes
from entrywise.types import Array

LARGEST = 2000  # rows and columns together: an eigendecomposition of this side takes seconds
SWEEPS = 100  # of the projection at most; a handful is usual
NEAR = 1e-3  # a diagonal entry may exceed its cap by this share
TIE = 1e-12  # scores nearer to 0 than this are round-off


class _Projected(Replayed):
    """log P, with P kept: the diagonal of P never exceeds half the max-norm."""

    def __init__(self, shape: tuple[int, int], rate: float, max_norm: float) -> None:
        super().__init__()
        self._shape, self._rate, self._cap = shape, rate, 0.5 * max_norm
        N = sum(shape)
        self._H = math.log(self._cap) * np.eye(N)
        self._P = self._cap * np.eye(N)

    def fresh(self) -> _Projected:
        return _Projected(self._shape, self._rate, 2.0 * self._cap)

    def score(self, i: int, j: int) -> float:
        m, n = self._shape
        if i >= m or j >= n:
            raise ParameterError(
                f"entry must lie in {m} x {n}, got ({i}, {j}); declare a larger shape"
            )
        found = 2.0 * float(self._P[i, m + j])
        return 0.0 if abs(found) < TIE else found

    def absorb(self, i: int, j: int, y: int) -> None:
        if y * self.score(i, j) >= 1.0:  # hinge loss: nothing to learn
            return
        k = self._shape[0] + j
        self._H[i, k] += self._rate * y
        self._H[k, i] += self._rate * y
        self._P = _exp(self._H)
        # Bregman projection onto bounded diagonals: lower what is too large, again and again
        for _ in range(SWEEPS):
            excess = np.maximum(np.diag(self._P) / self._cap, 1.0)
            if excess.max() <= 1.0 + NEAR:
                break
            self._H -= np.diag(np.log(excess))
            self._P = _exp(self._H)


def _exp(H: Array) -> Array:
    eigenvalues, V = np.linalg.eigh(H)
    return np.asarray((V * np.exp(eigenvalues)) @ V.T)


@dataclass(frozen=True, eq=False)
class HazanKaleShalevShwartz(Learner):
    r"""Predict with matrix multiplicative weights over matrices of bounded max-norm, projected after every update.

    .. math:: \hat y = \mathrm{sign}\, (P_{ij} - N_{ij}), \quad \begin{pmatrix} 0 & W \\ W^\top & 0\end{pmatrix} = P - N, \quad
              P, N \succeq 0,\ P_{ii}, N_{ii} \le \tfrac12 \|W\|_{\max}

    Parameters
    ----------
    shape : (int, int)
        Of the matrix; it must be known.
    rate : float
        Learning rate.
    max_norm : float
        Bound on the max-norm; sqrt(min(k, l)) for k x l biclusters.

    Notes
    -----
    Several eigendecompositions of side m + n a trial: for comparison, m + n of a hundred or so. P and N are mirror images of
    each other (columns' signs flipped), so one of them is kept; hinge loss.

    References
    ----------
    .. [HKS12] Hazan, Kale, Shalev-Shwartz, *Near-optimal algorithms for online matrix prediction*, COLT 2012, Algorithm 1.

    Examples
    --------
    >>> HazanKaleShalevShwartz((3, 3)).learn_many([0, 0, 1], [0, 1, 0], [1, -1, -1]).predict(1, 1)
    1
    """

    shape: tuple[int, int]
    rate: float = 0.3
    max_norm: float = 2.0

    def _refuse(self) -> None:
        object.__setattr__(self, "shape", two_sizes(self.shape, LARGEST))
        positive(self.rate, "rate")
        positive(self.max_norm, "max_norm")

    def _empty(self) -> _Projected:
        return _Projected(self.shape, float(self.rate), float(self.max_norm))
