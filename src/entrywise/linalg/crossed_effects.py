"""Least squares where rows and columns have random levels: what features are worth, and how surely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from entrywise.types import Array, Indices

SMALLEST = np.finfo(float).tiny


class Components(NamedTuple):
    """Variances of the levels of rows, of the levels of columns, and of a cell about both."""

    rows: float
    cols: float
    cell: float


def generalised_least_squares(
    features: Array,
    values: Array,
    rows: Indices,
    cols: Indices,
    shape: tuple[int, int],
    variance: Components,
) -> tuple[Array, Array]:
    r"""Return coefficients and their covariance, shapes (p,) and (p, p), in a model with random rows and columns.

    .. math:: y_t = f_t^\top \gamma + b_{i_t} + c_{j_t} + e_t, \quad
              \hat\gamma = (F^\top V^{-1} F)^{-1} F^\top V^{-1} y

    with V of the three variances. :math:`V^{-1} x` is x less what a ridge regression on row and column levels fits
    of it, over the variance of a cell: one factorisation of the smaller side's normal equations.

    Parameters
    ----------
    features : ndarray of shape (t, p)
        One of them is constant as a rule. Features that are alike share what they are worth (smallest norm).
    values : ndarray of shape (t,)
    rows, cols : ndarray of int64 of shape (t,)
    """
    if shape[0] < shape[1]:
        rows, cols, shape = cols, rows, shape[::-1]
        variance = Components(variance.cols, variance.rows, variance.cell)
    both = np.column_stack([features, values])
    left = both - _levels(both, rows, cols, shape, variance)
    normal = features.T @ left / max(variance.cell, SMALLEST)
    inverse: Array = np.asarray(
        np.linalg.pinv(normal[:, :-1], hermitian=True, rcond=1e-10), np.float64
    )
    return inverse @ normal[:, -1], inverse


def _levels(
    x: Array, rows: Indices, cols: Indices, shape: tuple[int, int], variance: Components
) -> Array:
    """Return what row and column levels fit of each column of `x` by ridge regression, shape (t, p)."""
    import scipy.linalg as sla
    import scipy.sparse as sp

    m, n = shape
    ridge_rows = variance.cell / max(variance.rows, SMALLEST)
    ridge_cols = variance.cell / max(variance.cols, SMALLEST)
    both = sp.csr_array((np.ones(len(rows)), (rows, cols)), shape=shape)
    in_rows = sp.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), (m, len(rows)))
    in_cols = sp.csr_array((np.ones(len(rows)), (cols, np.arange(len(rows)))), (n, len(rows)))
    each_row = 1.0 / (np.bincount(rows, minlength=m) + ridge_rows)
    each_col = np.bincount(cols, minlength=n) + ridge_cols
    # rows, the longer side, are eliminated: what is left are n equations
    normal = np.diag(each_col) - (both.T @ (both * each_row[:, None])).toarray()
    by_row, by_col = np.asarray(in_rows @ x), np.asarray(in_cols @ x)
    right = by_col - np.asarray(both.T @ (each_row[:, None] * by_row))
    of_cols = sla.cho_solve(sla.cho_factor(normal), right)
    of_rows = each_row[:, None] * (by_row - np.asarray(both @ of_cols))
    return np.asarray(of_rows[rows] + of_cols[cols])
