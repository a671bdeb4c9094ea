"""Compiled passes over the known entries of a table of products: :mod:`entrywise.passive.multiplicative`.

Each reads the entries once and writes no array of their number that is not its answer. In numpy, for small tables, they
stand in :mod:`entrywise.linalg.small`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg._jit import njit


@njit(cache=True)
def fitted(i: Any, j: Any, x: Any, y: Any, row_of: Any, col_of: Any) -> Any:
    """Return x_i y_j, NaN where row and column lie in different components."""
    found = np.empty(len(i))
    for t in range(len(i)):
        found[t] = x[i[t]] * y[j[t]] if row_of[i[t]] == col_of[j[t]] else np.nan
    return found


@njit(cache=True)
def reaches_all(i: Any, j: Any, x: Any, y: Any, row_of: Any, col_of: Any) -> Any:
    """Tell whether none of the entries that :func:`fitted` returns is NaN or infinite."""
    lost = 0
    for t in range(len(i)):
        lost += row_of[i[t]] != col_of[j[t]] or not np.isfinite(x[i[t]] * y[j[t]])
    return lost == 0


@njit(cache=True)
def squares(i: Any, j: Any, a: Any, w: Any, x: Any, y: Any) -> Any:
    """Return the sum of w (a - x_i y_j)^2."""
    total = 0.0
    for t in range(len(i)):
        residual = a[t] - x[i[t]] * y[j[t]]
        total += w[t] * residual * residual
    return total


@njit(cache=True)
def newton(i: Any, j: Any, a: Any, w: Any, x: Any, y: Any) -> Any:
    """Return w A^2 with A = x_i y_j, and the sums of w A (a - A) over rows and, with a minus, over columns: (m + n,)."""
    m = len(x)
    weights, right = np.empty(len(i)), np.zeros(m + len(y))
    for t in range(len(i)):
        A = x[i[t]] * y[j[t]]
        weights[t] = w[t] * A * A
        flow = w[t] * A * (a[t] - A)
        right[i[t]] += flow
        right[m + j[t]] -= flow
    return weights, right


@njit(cache=True)
def line_sums(line: Any, across: Any, a: Any, w: Any, other: Any, lines: Any) -> Any:
    """Return the sums of w a v and of w v^2 over each line, with v the `other` factor where the entry crosses it."""
    top, below = np.zeros(lines), np.zeros(lines)
    for t in range(len(line)):
        v = other[across[t]]
        top[line[t]] += w[t] * a[t] * v
        below[line[t]] += w[t] * v * v
    return top, below
