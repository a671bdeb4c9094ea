"""Randomised rounding: predict as if the labels still to come were coins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.online._learner import Learner, Replayed, positive, two_sizes
from entrywise.types import Array

LARGEST = (
    1000  # rows and columns together: every prediction takes singular values of the whole matrix
)


class _Playouts(Replayed):
    """Labels known, and coins in place of those that are not."""

    def __init__(self, shape: tuple[int, int], trace_norm: float, playouts: int, seed: int) -> None:
        super().__init__()
        self._shape, self._radius = shape, trace_norm
        self._playouts, self._seed = playouts, seed
        self._Y = np.zeros(shape)
        rng = np.random.default_rng(seed)
        self._coins = rng.choice([-1.0, 1.0], size=(playouts, *shape))

    def fresh(self) -> _Playouts:
        return _Playouts(self._shape, self._radius, self._playouts, self._seed)

    def score(self, i: int, j: int) -> float:
        m, n = self._shape
        if i >= m or j >= n:
            raise ParameterError(
                f"entry must lie in {m} x {n}, got ({i}, {j}); declare a larger shape"
            )
        if self._Y[i, j]:  # each entry comes once; a second time its label is known
            return float(self._Y[i, j])
        G = np.where(self._Y != 0.0, self._Y, self._coins)
        up, down = G.copy(), G.copy()
        up[:, i, j], down[:, i, j] = 1.0, -1.0
        spread = self._radius / 2 * float(np.mean(_largest(up) - _largest(down)))
        return min(1.0, max(-1.0, spread))

    def absorb(self, i: int, j: int, y: int) -> None:
        self._Y[i, j] = y


def _largest(X: Array) -> Array:
    """Return the largest singular value of each matrix, shape (len(X),)."""
    m, n = X.shape[1:]
    S = X @ X.transpose(0, 2, 1) if m <= n else X.transpose(0, 2, 1) @ X
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(S)[:, -1], 0.0)))


@dataclass(frozen=True, eq=False)
class RandomizedRounding(Learner):
    r"""Predict by comparing the two labels when coins stand for the labels still to come.

    .. math:: p = \tfrac K2\, \mathbb E_\sigma \big[\, \|G_\sigma + E_{ij}\| - \|G_\sigma - E_{ij}\|\, \big], \ \hat y = \mathrm{sign}\,p

    with :math:`G_\sigma` the known labels, a coin in every other place and 0 at (i, j), and the spectral norm: the minimax
    forecaster over matrices of trace norm at most K, whose expected loss is at most that of the best of them plus
    :func:`entrywise.bounds.binary.rounding_bound`.

    Parameters
    ----------
    shape : (int, int)
        Of the matrix: every entry is to come once, in any order (the transductive setting).
    trace_norm : float, optional
        K; by default :math:`\sqrt{2 m n}`, the largest trace norm of 2 x 2 biclusters. The sign of p does not depend on it.
    playouts : int
        Draws of the coins over which the mean is taken; the paper takes one a trial and predicts at random.
    seed : int
        Of the coins, drawn once.

    Notes
    -----
    The paper predicts +1 with probability (1 + p) / 2, and its bound is on the expectation; predicting the sign makes at
    most twice the expected mistakes, and usually fewer. The coins of an entry are the same at every trial, which leaves the
    bound as it is, since each prediction has the right expectation. A prediction takes `playouts` pairs of spectral norms.

    References
    ----------
    .. [CS11] Cesa-Bianchi, Shamir, *Efficient online learning via randomized rounding*, NIPS 2011, Sections 3 and 4.

    Examples
    --------
    >>> RandomizedRounding((3, 3)).learn_many([0, 0, 1], [0, 1, 0], [1, -1, -1]).predict(1, 1)
    1
    """

    shape: tuple[int, int]
    trace_norm: float | None = None
    playouts: int = 4
    seed: int = 0

    def _refuse(self) -> None:
        object.__setattr__(self, "shape", two_sizes(self.shape, LARGEST))
        if self.trace_norm is not None:
            positive(self.trace_norm, "trace_norm")
        if self.playouts < 1:
            raise ParameterError(f"playouts must be at least 1, got {self.playouts}")

    def _empty(self) -> _Playouts:
        m, n = self.shape
        radius = (2.0 * m * n) ** 0.5 if self.trace_norm is None else float(self.trace_norm)
        return _Playouts(self.shape, radius, int(self.playouts), int(self.seed))
