"""The cheapest entries that would link what the known entries leave apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrywise.observations import Observations
from entrywise.queries import Prices
from entrywise.types import Indices


def connecting_entries(
    observations: Observations,
    prices: Prices | None = None,
    avoid: NDArray[np.bool_] | None = None,
    parts: tuple[int, Indices, Indices] | None = None,
) -> tuple[Indices, Indices]:
    """Return (rows, cols) of the cheapest entries that link all rows and columns of a rank-one matrix.

    Parameters
    ----------
    observations : Observations
        Known entries; exact zeros link nothing.
    prices : Prices, optional
        What entries cost. Without them all cost the same, and each part is linked to the one with most known
        entries, at its largest ones, where noise matters least.
    avoid : ndarray of bool of shape (m, n), optional
        Entries that cannot be had.
    parts : (count, row_component, col_component), optional
        Components of the entries that are not zero, where they are known.

    Examples
    --------
    >>> nan = float("nan")
    >>> rows, cols = connecting_entries(Observations.from_dense([[1, 2, nan], [3, nan, nan], [nan, nan, 5]]))
    >>> list(zip(rows.tolist(), cols.tolist(), strict=True))
    [(2, 0)]
    """
    zero = observations.values == 0
    seen = observations.take(~zero) if zero.any() else observations
    count, of_rows, of_cols = parts or seen.components
    if count == 1:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if (
        zero.any() and seen.shape[0] * seen.shape[1] <= 10**7
    ):  # known zeros link nothing: no use asking them again
        avoid = np.zeros(seen.shape, bool) if avoid is None else avoid.copy()
        avoid[observations.rows[zero], observations.cols[zero]] = True
    if prices is None and avoid is None:
        return _at_the_largest(seen, count, of_rows, of_cols)
    return _cheapest(seen.shape, prices or Prices(), avoid, count, of_rows.copy(), of_cols.copy())


def _at_the_largest(
    seen: Observations, count: int, of_rows: Indices, of_cols: Indices
) -> tuple[Indices, Indices]:
    m, n = seen.shape
    strength_of_rows = np.bincount(seen.rows, seen.values**2, m)
    strength_of_cols = np.bincount(seen.cols, seen.values**2, n)
    main = (
        int(np.argmax(np.bincount(of_rows[seen.rows], minlength=count)))
        if len(seen)
        else int(of_rows[0])
    )
    hub_row = int(np.argmax(np.where(of_rows == main, strength_of_rows, -1.0)))
    in_main = np.flatnonzero(of_cols == main)
    first: list[int] = [] if len(in_main) else [0]
    if first:  # nothing known at all: start with the first column
        in_main = np.zeros(1, np.int64)
    hub_col = int(in_main[np.argmax(strength_of_cols[in_main])])
    apart = np.ones(count, bool)
    apart[[main, int(of_cols[hub_col])]] = False
    best_row, best_col = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    for strength, of, best in (
        (strength_of_rows, of_rows, best_row),
        (strength_of_cols, of_cols, best_col),
    ):
        order = np.argsort(strength, kind="stable")
        best[of[order]] = order  # the strongest line of each part is written last
    best_row, best_col = best_row[apart], best_col[apart]
    take_row = best_row >= 0
    rows = np.r_[np.full(len(first), hub_row), np.where(take_row, best_row, hub_row)]
    cols = np.r_[np.array(first, np.int64), np.where(take_row, hub_col, best_col)]
    return rows, cols


def _cheapest(
    shape: tuple[int, int],
    prices: Prices,
    avoid: NDArray[np.bool_] | None,
    count: int,
    of_rows: Indices,
    of_cols: Indices,
) -> tuple[Indices, Indices]:
    """Grow a cheapest spanning tree over the parts (Boruvka), the grid read row by row."""
    m, n = shape
    all_cols = np.arange(n)
    rows: list[int] = []
    cols: list[int] = []
    while count > 1:
        best = np.full(count, np.inf)
        at = np.full((count, 2), -1, np.int64)
        for i in range(m):
            price = prices.of("entry", np.full(n, i), all_cols).astype(np.float64)
            price[of_cols == of_rows[i]] = np.inf
            if avoid is not None:
                price[avoid[i]] = np.inf
            j = int(np.argmin(price))
            if price[j] < best[of_rows[i]]:
                best[of_rows[i]], at[of_rows[i]] = price[j], (i, j)
            better = np.flatnonzero(price < best[of_cols])
            order = better[np.argsort(-price[better], kind="stable")]
            best[of_cols[order]], at[of_cols[order]] = (
                price[order],
                np.column_stack([np.full(len(order), i), order]),
            )
        grown = False
        for c in np.argsort(best, kind="stable"):
            i, j = at[c]
            if np.isfinite(best[c]) and of_rows[i] != of_cols[j]:
                rows.append(int(i))
                cols.append(int(j))
                old, new = of_cols[j], of_rows[i]
                of_rows[of_rows == old], of_cols[of_cols == old] = new, new
                grown = True
        if not grown:  # some parts cannot be linked by entries that can be had
            break
        _, of = np.unique(np.r_[of_rows, of_cols], return_inverse=True)
        of_rows, of_cols, count = of[:m], of[m:], int(of.max()) + 1
    return np.array(rows, np.int64), np.array(cols, np.int64)
