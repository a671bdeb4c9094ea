"""A scale for every row and every column: how much larger the errors of some lines are than others'."""

from __future__ import annotations

import numpy as np

from entrywise.types import Array, Indices

DRAWN_TO_ONE = 10.0  # scores of the common size added to each line's: fewer make even rows wider, more miss noisy ones
ROUNDS = 4  # of rows and columns in turn; the scales then move by less than a hundredth


def line_scales(
    rows: Indices, cols: Indices, scores: Array, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Return scales a (m,) and b (n,) under which ``scores / (a_i b_j)`` are alike in every row and column.

    Each is the mean size of its line's scores, drawn to one as if ten more of the common size had been seen.
    """
    m, n = shape
    sizes = scores / max(float(scores.mean()), np.finfo(float).tiny)
    a, b = np.ones(m), np.ones(n)
    row_counts = np.bincount(rows, minlength=m) + DRAWN_TO_ONE
    col_counts = np.bincount(cols, minlength=n) + DRAWN_TO_ONE
    for _ in range(ROUNDS):
        a = (np.bincount(rows, sizes / b[cols], m) + DRAWN_TO_ONE) / row_counts
        b = (np.bincount(cols, sizes / a[rows], n) + DRAWN_TO_ONE) / col_counts
    return a, b
