"""The passes of :mod:`entrywise.linalg._jit_products` in numpy, for tables that are not worth a compiler."""

from __future__ import annotations

import numpy as np

from entrywise.types import Array, Indices


def fitted(i: Indices, j: Indices, x: Array, y: Array, row_of: Indices, col_of: Indices) -> Array:
    """Return x_i y_j, NaN where row and column lie in different components."""
    return np.where(row_of[i] == col_of[j], x[i] * y[j], np.nan)


def reaches_all(
    i: Indices, j: Indices, x: Array, y: Array, row_of: Indices, col_of: Indices
) -> bool:
    """Tell whether none of the entries that :func:`fitted` returns is NaN or infinite."""
    return bool(np.isfinite(fitted(i, j, x, y, row_of, col_of)).all())


def squares(i: Indices, j: Indices, a: Array, w: Array, x: Array, y: Array) -> float:
    """Return the sum of w (a - x_i y_j)^2."""
    return float(np.sum(w * (a - x[i] * y[j]) ** 2))


def newton(i: Indices, j: Indices, a: Array, w: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Return w A^2 with A = x_i y_j, and the sums of w A (a - A) over rows and, with a minus, over columns: (m + n,)."""
    A = x[i] * y[j]
    flow = w * A * (a - A)
    return w * A**2, np.r_[np.bincount(i, flow, len(x)), -np.bincount(j, flow, len(y))]


def line_sums(
    line: Indices, across: Indices, a: Array, w: Array, other: Array, lines: int
) -> tuple[Array, Array]:
    """Return the sums of w a v and of w v^2 over each line, with v the `other` factor where the entry crosses it."""
    v = other[across]
    top, below = (np.bincount(line, terms, lines) for terms in (w * a * v, w * v**2))
    return np.asarray(top, np.float64), np.asarray(below, np.float64)
