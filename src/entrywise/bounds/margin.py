r"""Margin complexity of a sign matrix, by semidefinite programming, with the kernel that attains it.

.. math:: \mathrm{mc}(U) = \min\{ t : \begin{pmatrix} P & V \\ V^\top & K \end{pmatrix} \succeq 0,\
          P_{ii} \le t,\ K_{jj} \le t,\ U_{ij} V_{ij} \ge 1 \}
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import DataError, ParameterError
from entrywise.types import Array


@dataclass(frozen=True, eq=False)
class Embedding:
    """The best embedding of a sign matrix.

    Parameters
    ----------
    complexity : float
        Margin complexity mc; some embedding separates every label with margin 1 / mc, none does better.
    values : ndarray of shape (m, n)
        V, of the labels' signs, at least 1 in absolute value.
    kernel : ndarray of shape (n, n)
        Kernel between columns with which the kernel perceptron makes at most mc^2 mistakes on every row.
    """

    complexity: float
    values: Array
    kernel: Array

    @property
    def gamma(self) -> float:
        """Learning rate of Theorem 3.1: the margin 1 / mc."""
        return 1.0 / self.complexity


def margin_complexity(U: ArrayLike) -> Embedding:
    """Return the margin complexity of a -1/+1 matrix and the embedding that attains it; 0 marks an unknown label.

    Needs the extra ``sdp`` (cvxpy). For matrices of up to about 60 rows and columns together it takes seconds; time grows
    with the sixth power of the side.

    References
    ----------
    .. [HPP16] Herbster, Pasteris, Pontil, *Mistake Bounds for Binary Matrix Completion*, NIPS 2016, Section 2 and
       Proposition 4.1: mc^2 is also the task complexity, attained by `kernel`.

    Examples
    --------
    >>> found = margin_complexity([[1, 1], [1, -1]])  # Hadamard: mc^2 = 2
    >>> round(found.complexity**2, 3)
    2.0
    """
    U = np.asarray(U, dtype=np.float64)
    if U.ndim != 2 or not np.isin(U, (-1.0, 0.0, 1.0)).all() or U.size == 0:
        raise ParameterError("U must be a matrix of -1, +1 and, where unknown, 0")
    try:
        import cvxpy as cp
    except ImportError:
        raise ParameterError("margin_complexity needs cvxpy; install entrywise[sdp]") from None
    m, n = U.shape
    if not U.any():
        return Embedding(1.0, np.zeros((m, n)), np.eye(n))
    X, t = cp.Variable((m + n, m + n), PSD=True), cp.Variable()
    known = np.nonzero(U)
    constraints = [cp.diag(X) <= t, cp.multiply(U[known], X[:m, m:][known]) >= 1.0]
    problem = cp.Problem(cp.Minimize(t), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # "may be inaccurate": the last digits, and the status says so
        problem.solve(solver=cp.CLARABEL)
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise DataError(f"the semidefinite program ended as {problem.status}; try a smaller matrix")
    return Embedding(
        max(1.0, float(t.value)), np.asarray(X.value[:m, m:]), np.asarray(X.value[m:, m:])
    )


def task_complexity(U: ArrayLike) -> tuple[float, Array]:
    """Return Proposition 4.1's task complexity, mc^2, and the kernel between columns that attains it."""
    found = margin_complexity(U)
    return found.complexity**2, found.kernel
