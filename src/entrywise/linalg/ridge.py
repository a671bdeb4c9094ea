"""Ridge regression over a whole grid of penalties, with leave-one-out errors, from one SVD.

With X = P diag(s) Q' every penalty only changes the filter f = s^2 / (s^2 + penalty). The squared leave-one-out
residual of row i, summed over all targets, is a quadratic form in g = 1 - f whose matrices do not depend on
the penalty; the whole grid is one matrix product in the size of the smaller side of X, not of the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries import Array

_BLOCK = 2**22  # largest number of doubles in one block of the quadratic forms


@dataclass(frozen=True, eq=False)
class RidgePath:
    r"""Ridge solutions :math:`Z(\lambda) = \arg\min \|Y - X Z\|_F^2 + \lambda \|Z\|_F^2` for many penalties.

    Parameters
    ----------
    penalties : ndarray of shape (l,)
    error : ndarray of shape (l,)
        Mean squared leave-one-row-out error at each penalty.
    """

    penalties: Array
    error: Array
    _s: Array
    _G: Array  # P'Y
    _Qt: Array

    @property
    def best(self) -> float:
        """Penalty of smallest leave-one-out error; of equals, the largest."""
        low = self.error.min()
        return float(self.penalties[np.flatnonzero(self.error <= low * (1 + 1e-12))].max())

    def solution(self, penalty: float | None = None) -> Array:
        """Return the coefficients at `penalty` (default: the best one), shape (d, n)."""
        penalty = self.best if penalty is None else penalty
        return np.asarray(self._Qt.T @ (_shrink(self._s, penalty)[:, None] * self._G))


def ridge_path(X: Array, Y: Array, penalties: Array) -> RidgePath:
    r"""Return ridge solutions and leave-one-out errors over a grid of penalties, from one SVD.

    Parameters
    ----------
    X : ndarray of shape (s, d)
    Y : ndarray of shape (s, n)
    penalties : ndarray of shape (l,)
        Each finite and above 0.

    Returns
    -------
    RidgePath

    Notes
    -----
    Leaving out row i changes its residual to :math:`(y_i - \hat y_i) / (1 - h_i)`, with
    :math:`h_i = \sum_a f_a P_{ia}^2`; exact for ridge regression. The cost is that of one SVD of X plus one
    product of (s, k^2 / 2) with (k^2 / 2, l), k = min(s, d).

    Examples
    --------
    >>> X, Y = np.eye(3)[:, :2], np.ones((3, 1))
    >>> path = ridge_path(X, Y, np.array([1.0]))
    >>> path.error, path.solution().ravel()
    (array([1.]), array([0.5, 0.5]))
    """
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    penalties = np.atleast_1d(np.asarray(penalties, dtype=np.float64))
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not len(X):
        raise ParameterError(f"X and Y must have the same rows, at least one, got {X.shape} and {Y.shape}")
    if not len(penalties) or not np.all(np.isfinite(penalties) & (penalties > 0)):
        raise ParameterError(f"penalties must be finite and above 0, at least one, got {penalties[:3]}")
    P, s, Qt = np.linalg.svd(X, full_matrices=False)
    G = P.T @ Y  # (k, n)
    with np.errstate(under="ignore"):
        g = penalties / (s[:, None] ** 2 + penalties)  # (k, l)
    outside = Y - P @ G  # zero when d >= s
    kept = 1.0 - P**2 @ (1.0 - g)  # 1 - h, (s, l); exact form below when h is close to 1
    if len(s) == len(X):  # P is square and orthogonal: 1 - h = sum of g P^2, without cancellation
        kept = P**2 @ g
    a, b = np.triu_indices(len(s))
    M = G @ G.T
    weight = np.where(a == b, 1.0, 2.0) * M[a, b]
    pairs = g[a] * g[b]  # (k (k + 1) / 2, l)
    cross = 2.0 * P * (outside @ G.T)  # (s, k)
    base = np.einsum("sn,sn->s", outside, outside)
    error = np.zeros(len(penalties))
    step = max(1, _BLOCK // max(1, len(a)))
    for start in range(0, len(X), step):
        i = slice(start, start + step)
        squares = (P[i][:, a] * P[i][:, b] * weight) @ pairs + cross[i] @ g + base[i, None]
        error += (np.maximum(squares, 0.0) / np.maximum(kept[i], np.finfo(float).tiny) ** 2).sum(axis=0)
    return RidgePath(penalties, error / Y.size if Y.size else error, s, G, Qt)


def _shrink(s: Array, penalty: float) -> Array:
    return np.asarray(np.divide(s, s**2 + penalty, out=np.zeros_like(s), where=s > 0))
