"""Ridge regression over a whole grid of penalties, with leave-one-out errors, from one SVD.

With X = P diag(s) Q' every penalty only changes the filter f = s^2 / (s^2 + penalty). The squared leave-one-out
residual of row i, summed over all targets, is a quadratic form in g = 1 - f whose matrices do not depend on
the penalty; the whole grid is one matrix product in the size of the smaller side of X, not of the targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries import Array

_BLOCK = 2**22  # largest number of doubles in one block of the quadratic forms
_SMALL = 2_000_000  # products below which every penalty is computed by itself
_NODES_PER_UNIT = 4.5  # Chebyshev points for each unit of the logarithm of the penalty


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
        """Penalty of smallest leave-one-out error; of equals, the first."""
        return float(self.penalties[int(self.error.argmin())])

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
    :math:`h_i = \sum_a f_a P_{ia}^2`; exact for ridge regression. In the logarithm of the penalty the error is analytic
    in the strip :math:`|\mathrm{Im}| < \pi` (the f are logistic, and 1 - h stays in a cone), so that on larger problems
    it is computed at a few Chebyshev points, about 4 a unit, and interpolated to ten digits on the whole grid.

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
    if not len(penalties) or not (penalties.min() > 0 and penalties.max() < np.inf):
        raise ParameterError(f"penalties must be finite and above 0, at least one, got {penalties[:3]}")
    P, s, Qt = np.linalg.svd(X, full_matrices=False)
    G = P.T @ Y  # (k, n)
    low, high = math.log(penalties.min()), math.log(penalties.max())
    nodes = max(8, math.ceil(_NODES_PER_UNIT * (high - low)))
    if len(X) * len(s) ** 2 * (len(penalties) - nodes) < _SMALL:
        error = _left_out(P, s, G, Y, penalties)
    else:
        at = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * np.arange(nodes) / (nodes - 1))
        error = _interpolate(at, _left_out(P, s, G, Y, np.exp(at)), np.log(penalties))
    return RidgePath(penalties, error / max(Y.size, 1), s, G, Qt)


def _left_out(P: Array, s: Array, G: Array, Y: Array, penalties: Array) -> Array:
    """Return the summed squares of the leave-one-out residuals at each penalty, shape (l,)."""
    (m, k), l = P.shape, len(penalties)
    g = penalties / ((s * s)[:, None] + penalties)  # (k, l)
    PP = P * P
    square = k == m  # P is then orthogonal, and 1 - h is a sum of g P^2, without cancellation
    kept = PP @ g if square else (1.0 - PP.sum(axis=1))[:, None] + PP @ g
    M = (G @ G.T).ravel()
    pairs = (g[:, None, :] * g[None, :, :]).reshape(k * k, l)
    error = np.zeros(l)
    outside = None if square else Y - P @ G
    step = max(1, _BLOCK // (k * k))
    for start in range(0, m, step):
        i = slice(start, start + step)
        squares = ((P[i, :, None] * P[i, None, :]).reshape(-1, k * k) * M) @ pairs
        if outside is not None:
            R = outside[i]
            squares += 2.0 * (P[i] * (R @ G.T)) @ g + np.einsum("sn,sn->s", R, R)[:, None]
        squares /= kept[i]
        squares /= kept[i]
        error += squares.sum(axis=0)
    return np.maximum(error, 0.0)


def _interpolate(nodes: Array, values: Array, x: Array) -> Array:
    """Return the polynomial through Chebyshev points at x, by the barycentric formula."""
    weight = np.where(np.arange(len(nodes)) % 2, -1.0, 1.0)
    weight[[0, -1]] *= 0.5
    gap = x[:, None] - nodes[None, :]
    hit = np.abs(gap) < 1e-13 * max(1.0, float(np.abs(nodes).max()))
    B = weight / np.where(hit, 1.0, gap)
    found = (B @ values) / B.sum(axis=1)
    at, which = np.nonzero(hit)
    found[at] = values[which]
    return np.asarray(np.maximum(found, 0.0))


def _shrink(s: Array, penalty: float) -> Array:
    return np.asarray(np.divide(s, s**2 + penalty, out=np.zeros_like(s), where=s > 0))
