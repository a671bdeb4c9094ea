"""Ridge regression over a whole grid of penalties, with leave-one-out errors, from one SVD.

With X = P diag(s) Q' every penalty only changes the filter f = s^2 / (s^2 + penalty). The squared leave-one-out
residual of row i, summed over all targets, is a quadratic form in g = 1 - f whose matrices do not depend on
the penalty; the whole grid is one matrix product in the size of the smaller side of X, not of the targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries import Array

_SMALL = 300_000  # products below which every penalty is computed by itself
_TINY = float(np.finfo(float).tiny)
_DOUBT = 1e-9  # interpolated errors are this near to the true ones, relative to the largest
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
        return np.asarray(self._Qt.T @ ((self._s / (self._s**2 + penalty))[:, None] * self._G))


def ridge_path(X: Array, Y: Array, penalties: Array, *, relative: bool = False) -> RidgePath:
    r"""Return ridge solutions and leave-one-out errors over a grid of penalties, from one SVD.

    Parameters
    ----------
    X : ndarray of shape (s, d)
    Y : ndarray of shape (s, n)
    penalties : ndarray of shape (l,)
        Each finite and above 0.
    relative : bool
        The penalties are given in units of the largest squared singular value of X.

    Returns
    -------
    RidgePath

    Notes
    -----
    Leaving out row i changes its residual to :math:`(y_i - \hat y_i) / (1 - h_i)`, with
    :math:`h_i = \sum_a f_a P_{ia}^2`; exact for ridge regression. In the logarithm of the penalty the error is analytic
    in the strip :math:`|\mathrm{Im}| < \pi` (the f are logistic, and 1 - h stays in a cone), so that on larger problems
    it is computed at a few Chebyshev points, about 4 a unit, interpolated to ten digits of the largest on the whole grid,
    and computed again wherever it may be smallest: ``best`` is the same.

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
    few, weights = _nodes(penalties.tobytes())
    P, s, Qt = np.linalg.svd(X, full_matrices=False)
    unit = max(float(s[0]) ** 2, _TINY) if relative and len(s) else 1.0
    penalties = penalties * unit
    G = P.T @ Y  # (k, n)
    if len(X) * len(s) ** 2 * (len(penalties) - len(few)) < _SMALL:
        error = _left_out(P, s, G, Y, penalties)
    else:
        error = np.maximum(weights @ _left_out(P, s, G, Y, few * unit), 0.0)
        low = np.flatnonzero(error <= error.min() + _DOUBT * error.max())  # where the smallest may be
        error[low] = _left_out(P, s, G, Y, penalties[low])
    return RidgePath(penalties, error, s, G, Qt)


@lru_cache(maxsize=16)
def _nodes(raw: bytes) -> tuple[Array, Array]:
    """Return Chebyshev points of a grid of penalties, and the matrix that carries values from them to the grid.

    The barycentric formula in the logarithm of the penalty; a common factor of all penalties changes nothing in it.
    """
    penalties = np.frombuffer(raw)
    low, high = penalties.min(initial=np.inf), penalties.max(initial=-np.inf)
    if not 0 < low <= high < np.inf:
        raise ParameterError(f"penalties must be finite and above 0, at least one, got {penalties[:3]}")
    x, length = np.log(penalties / low), math.log(high / low)
    count = max(8, math.ceil(_NODES_PER_UNIT * length))
    at = 0.5 * length * (1.0 - np.cos(np.pi * np.arange(count) / (count - 1)))
    weight = np.where(np.arange(count) % 2, -1.0, 1.0)
    weight[[0, -1]] *= 0.5
    gap = x[:, None] - at[None, :]
    hit = np.abs(gap) < 1e-13 * max(1.0, length)
    B = np.where(hit.any(axis=1)[:, None], hit, weight / np.where(hit, 1.0, gap))
    return low * np.exp(at), B / B.sum(axis=1, keepdims=True)


def _left_out(P: Array, s: Array, G: Array, Y: Array, penalties: Array) -> Array:
    """Return the mean squared leave-one-out residual at each penalty, shape (l,)."""
    from entrywise.linalg._jit_ridge import left_out

    m, k = P.shape
    size = max(Y.size, 1)
    if k < m:
        R = Y - P @ G
        outside = 1.0 - np.einsum("sk,sk->s", P, P)
        return np.asarray(
            left_out(P, s, G @ G.T / size, R @ G.T / size, np.einsum("sn,sn->s", R, R) / size, outside, penalties)
        )
    nothing = np.zeros(m)  # P is orthogonal, and 1 - h is a sum of g P^2, without cancellation
    return np.asarray(left_out(P, s, G @ G.T / size, np.zeros((m, k)), nothing, nothing, penalties))
