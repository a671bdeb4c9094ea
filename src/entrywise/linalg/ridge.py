"""Ridge regression: over a whole grid of penalties from one SVD, and of many lines at once towards one prior.

:func:`ridge_path` has leave-one-out errors: with X = P diag(s) Q' every penalty only changes the filter
f = s^2 / (s^2 + penalty). The squared leave-one-out residual of row i, summed over all targets, is a quadratic form in
g = 1 - f whose matrices do not depend on the penalty: a penalty costs the rows times the square of the smaller side of X,
whatever the number of targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.types import Array, Indices

_TINY = float(np.finfo(float).tiny)
# points a unit of the logarithm of the penalty, and how many carry to one penalty; the finer where the coarser leaves doubt
_LEVELS = ((2.6, 10), (5.0, 12))


@dataclass(frozen=True, eq=False)
class RidgePath:
    r"""Ridge solutions :math:`Z(\lambda) = \arg\min \|Y - X Z\|_F^2 + \lambda \|Z\|_F^2` for many penalties.

    Parameters
    ----------
    penalties : ndarray of shape (l,)
    best : float
        Penalty of smallest leave-one-row-out error; of equals, the first.
    least : float
        That error: the mean square over rows and targets.
    """

    penalties: Array
    best: float
    least: float
    _terms: tuple[Array, ...]
    _G: Array  # P'Y
    _Qt: Array

    @cached_property
    def error(self) -> Array:
        """Mean squared leave-one-row-out error at each penalty, shape (l,)."""
        from entrywise.linalg._jit_ridge import left_out

        return np.asarray(left_out(*self._terms, self.penalties))

    def solution(self, penalty: float | None = None) -> Array:
        """Return the coefficients at `penalty` (default: the best one), shape (d, n)."""
        penalty, s = self.best if penalty is None else penalty, self._terms[1]
        return np.asarray(self._Qt.T @ ((s / (s * s + penalty))[:, None] * self._G))


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
    in the strip :math:`|\mathrm{Im}| < \pi` (the f are logistic, and 1 - h stays in a cone), so that on a fine grid it is
    computed at a few points a unit, carried to all penalties by polynomials through the ten points around each, and
    computed as it is wherever it may be smallest, as far as those through eight points differ from them.

    Examples
    --------
    >>> X, Y = np.eye(3)[:, :2], np.ones((3, 1))
    >>> path = ridge_path(X, Y, np.array([1.0]))
    >>> path.error, path.solution().ravel()
    (array([1.]), array([0.5, 0.5]))
    """
    from entrywise.linalg._jit_ridge import least, left_out

    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    penalties = np.atleast_1d(np.asarray(penalties, dtype=np.float64))
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not len(X):
        raise ParameterError(
            f"X and Y must have the same rows, at least one, got {X.shape} and {Y.shape}"
        )
    levels = _levels(penalties.tobytes())
    try:
        P, s, Qt = np.linalg.svd(X, full_matrices=False)
    except np.linalg.LinAlgError:
        raise ParameterError("X must be finite") from None
    unit = max(float(s[0]) ** 2, _TINY) if relative and len(s) else 1.0
    penalties = penalties * unit
    G = P.T @ Y  # (k, n)
    terms = (P, s, *_terms(P, G, Y))
    for nodes, weights, fewer, first in levels:
        at, error = least(*terms, penalties, nodes * unit, weights, fewer, first, len(nodes))
        if at >= 0:
            break
    else:  # too few penalties to save anything, or too much doubt: each by itself
        every = left_out(*terms, penalties)
        if not (np.isfinite(X).all() and np.isfinite(Y).all()):
            raise ParameterError("X and Y must be finite")
        at = int(every.argmin())
        error = float(every[at])
    return RidgePath(penalties, float(penalties[at]), error, terms, G, Qt)


def ridge_lines(F: Array, weights: Any, targets: Array, mean: Array, cov: Array) -> Array:
    r"""Return the coefficients of every line on F under one Gaussian prior, shape (lines, k).

    .. math:: \Big(\sum_i w_{ti} f_i f_i^\top + \Sigma^{-1}\Big)^{-1} \Big(\sum_i w_{ti} y_{ti} f_i + \Sigma^{-1} \mu\Big)

    Parameters
    ----------
    F : ndarray of shape (n, k)
    weights : ndarray or sparse array of shape (lines, n)
        Precision :math:`w_{ti}` with which line t is known at i; 0 where it is not.
    targets : ndarray of shape (lines, k)
        :math:`\sum_i w_{ti} y_{ti} f_i`.
    mean, cov : ndarray of shape (k,) and (k, k)
        The prior's :math:`\mu` and :math:`\Sigma`.

    Examples
    --------
    >>> ridge_lines(np.ones((3, 1)), np.ones((1, 3)), np.array([[6.0]]), np.zeros(1), np.eye(1))
    array([[1.5]])
    """
    n, k = F.shape
    outer = (F[:, :, None] * F[:, None, :]).reshape(n, k * k)
    grams = (weights @ outer).reshape(-1, k, k)
    precision = np.linalg.inv(cov)
    pulled = (targets + precision @ mean)[..., None]
    return np.asarray(np.linalg.solve(grams + precision, pulled)[..., 0])


@lru_cache(maxsize=16)
def _levels(raw: bytes) -> list[tuple[Array, Array, Array, Indices]]:
    """Return points around a grid of penalties; for each penalty weights of the points around it, and the first of them.

    Lagrange's polynomials in the logarithm of the penalty, also those without the two outermost points; a common factor
    of all penalties changes nothing in them. A grid of no more penalties than points has none.
    """
    penalties = np.frombuffer(raw)
    low, high = penalties.min(initial=np.inf), penalties.max(initial=-np.inf)
    if not 0 < low <= high < np.inf:
        raise ParameterError(
            f"penalties must be finite and above 0, at least one, got {penalties[:3]}"
        )
    found = []
    for per_unit, around in _LEVELS:
        x = (np.log(penalties) - np.log(low)) * per_unit  # in steps between points
        first = np.floor(x).astype(np.int64)
        at = np.arange(first.max() + around) + 1 - around // 2
        if len(penalties) <= len(at):
            continue
        gap = (x - first)[:, None] - at[:around]
        found.append(
            (low * np.exp(at / per_unit), _lagrange(gap), _lagrange(gap[::4, 1:-1]), first)
        )
    return found


def _lagrange(gap: Array) -> Array:
    """Return the weights of points that lie `gap` steps away, in order, shape (l, w)."""
    j = np.arange(gap.shape[1])
    return np.stack([np.prod(gap[:, j != k] / (k - j[j != k]), axis=1) for k in j], axis=1)


def _terms(P: Array, G: Array, Y: Array) -> tuple[Array, Array, Array, Array]:
    """Return what the leave-one-out errors need beside P and s, over the number of targets."""
    m, k = P.shape
    size = max(Y.size, 1)
    M = G @ G.T / size
    if k >= m:  # P is orthogonal, and 1 - h is a sum of g P^2, without cancellation
        nothing = np.zeros(m)
        return M, np.zeros((m, k)), nothing, nothing
    R = Y - P @ G
    cross = R @ G.T / size
    alone = np.einsum("sn,sn->s", R, R) / size
    outside = 1.0 - np.einsum("sk,sk->s", P, P)
    return M, cross, alone, outside
