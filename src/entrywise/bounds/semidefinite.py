r"""Rank-one completion by semidefinite programming: a referee for small tables.

With :math:`z = (x, y)` the unknown factors, a matrix M of moments replaces the products :math:`z_a z_b z_c z_d`; known
entries are equations between moments, and every entry of the table is the moment of :math:`x_i y_j`.
"""

from __future__ import annotations

import warnings
from itertools import combinations_with_replacement

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.results import LowRank
from entrywise.types import Array

LARGEST = 10  # rows and columns together: 56 x 56 moments; time grows with the twelfth power
TRACE = 1e-6  # weight of the trace beside the squared misfit, in units of the largest known entry


def semidefinite(observations: Observations, *, trace: float = TRACE) -> LowRank:
    r"""Complete a small rank-one table by the second level of the moment hierarchy, smallest trace.

    .. math:: \min_{M \succeq 0} \sum_{(i,j) \in \Omega} \sum_q \big(M[x_i y_j\, q] - a_{ij} M[q]\big)^2 + \tau\,\mathrm{tr}\, M,
              \qquad M[1] = 1,\ q \in \{1, z_a z_b\}

    Parameters
    ----------
    observations : Observations
        At most 10 rows and columns together.
    trace : float
        :math:`\tau`: among the moments that fit equally well the smallest trace is taken.

    Returns
    -------
    LowRank
        The best approximation of rank one of :math:`M[x_i y_j]`.

    Notes
    -----
    The authors ask for equality, or for an error below a bound that must be known; here the squared misfit is minimised,
    which needs no such bound. Moments of odd order vanish, since :math:`-z` fits as well as :math:`z`. Needs the extra ``sdp``.

    References
    ----------
    .. [CD17] Cosse, Demanet, *Stable rank one matrix completion is solved by two rounds of semidefinite programming
       relaxation*, 2017; the paper that [HOS20] calls closest to itself.

    Examples
    --------
    >>> seen = Observations.from_dense([[2.0, 4.0], [3.0, float("nan")]])
    >>> round(float(semidefinite(seen).entry(1, 1)), 2)
    6.0
    """
    m, n = observations.shape
    if m + n > LARGEST:
        raise ParameterError(
            f"semidefinite takes at most {LARGEST} rows and columns together, got {m + n}; use rank_one"
        )
    try:
        import cvxpy as cp
    except ImportError:
        raise ParameterError("semidefinite needs cvxpy; install entrywise[sdp]") from None
    unit = float(np.abs(observations.values).max(initial=0.0)) or 1.0
    pairs = list(combinations_with_replacement(range(m + n), 2))
    basis: list[tuple[int, ...]] = [(), *pairs]
    products = [tuple(sorted((*p, *q))) for p in basis for q in basis]
    names = sorted(set(products), key=lambda one: (len(one), one))
    number = {name: k for k, name in enumerate(names)}
    moments = cp.Variable(len(names))
    M = cp.reshape(moments[[number[p] for p in products]], (len(basis), len(basis)), order="C")
    misfit = []
    for i, j, a in zip(
        observations.rows, observations.cols, observations.values / unit, strict=True
    ):
        entry = (int(i), m + int(j))
        left = [number[tuple(sorted((*entry, *q)))] for q in basis]
        misfit.append(moments[left] - float(a) * moments[[number[q] for q in basis]])
    objective = cp.sum_squares(cp.hstack(misfit)) + trace * cp.trace(M)
    problem = cp.Problem(cp.Minimize(objective), [M >> 0, moments[number[()]] == 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the status says so
        problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise DataError(f"the semidefinite program ended as {problem.status}; try a smaller table")
    X = np.array([[moments.value[number[i, m + j]] for j in range(n)] for i in range(m)])
    return _rank_one(unit * X)


def _rank_one(X: Array) -> LowRank:
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    return LowRank(U[:, :1] * s[:1], Vt[:1].T, report={"method": "semidefinite"})
