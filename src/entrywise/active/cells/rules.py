"""The controls: random, balanced, leverage, plain variance, committee.

Each returns the cells of the next batch and the probabilities with which they were drawn; those that
look at the prices divide by them. They are what an active rule must beat to be worth its trouble.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from entrywise.active.cells.calibration import gains_of
from entrywise.active.cells.purchase import Purchase
from entrywise.linalg.gain import leverage
from entrywise.passive.alternating_least_squares import alternating_least_squares
from entrywise.results import LowRank
from entrywise.results.posterior import design
from entrywise.types import Array, Indices

RULES = ("random", "uniform", "balanced", "leverage", "variance", "committee")
MEMBERS = 5  # bootstrap fits of the committee
Blocks = Iterator[tuple[Indices, Array]]  # rows, and a score of each of their cells


def pick_by_rule(
    rule: str, state: Purchase, fit: LowRank, money: float, most: int | None = None
) -> tuple[Indices, Array]:
    """Return (cells, probabilities) that a control would buy with `money`, at most so many.

    ``random`` draws with probability in proportion to 1 / price, ``uniform`` blind to prices, ``balanced`` fills the
    emptiest lines first, ``leverage`` draws by row plus column leverage of the factors per price, ``variance`` takes
    the largest posterior variance per price without updates, ``committee`` the largest spread of bootstrap fits.
    """
    if rule == "random":
        return state.draw(None, money, most)
    if rule == "uniform":
        return state.draw(lambda rows: np.ones((len(rows), state.shape[1])), money, most)
    if rule == "leverage":
        by_row, by_col = leverage(design(fit.left)), leverage(design(fit.right))
        return state.draw(
            lambda rows: (by_row[rows][:, None] + by_col[None, :]) / state.price(rows), money, most
        )
    if rule == "balanced":
        return _emptiest(state, money, most)
    if rule == "variance":
        gains = gains_of(state, fit)
        return _largest(state, ((rows, variance) for rows, _, variance in gains.blocks()), money)
    return _largest(state, _dispute(state, max(fit.rank, 1)), money)


def _emptiest(state: Purchase, money: float, most: int | None) -> tuple[Indices, Array]:
    """Return cells that fill the emptiest lines first, one after the other: each counts for those that follow.

    The emptiest row with an open cell is taken, in it the open cell of the emptiest column; chance decides
    among equals. Cells that the money no longer pays are passed over.
    """
    m, n = state.shape
    row_load = np.bincount(state.taken // n, minlength=m).astype(float)
    col_load = np.bincount(state.taken % n, minlength=n).astype(float)
    ties = state.rng.random(m), state.rng.random(n)  # below 1: loads are whole numbers
    chosen: list[int] = []
    gone: dict[int, Array] = {}  # open cells of the rows met so far
    limit = m * n if most is None else most
    while len(chosen) < limit and np.isfinite(row_load).any():
        i = int(np.argmin(row_load + ties[0]))
        if i not in gone:
            gone[i] = state.is_open(np.array([i]))[0]
        price = state.price(np.array([i]))[0]
        load = np.where(gone[i] & (price <= money * (1 + 1e-12)), col_load + ties[1], np.inf)
        j = int(np.argmin(load))
        if not np.isfinite(load[j]):
            row_load[i] = np.inf  # nothing open, or nothing that can be paid
            continue
        gone[i][j] = False
        money -= float(price[j])
        row_load[i] += 1
        col_load[j] += 1
        chosen.append(i * n + j)
    return np.array(chosen, np.int64), np.ones(len(chosen))


def _dispute(state: Purchase, rank: int) -> Blocks:
    """Yield the spread of bootstrap fits at each cell."""
    seen = state.observations
    members = []
    for k in range(MEMBERS):
        again = seen.take(state.rng.integers(len(seen), size=len(seen)))
        members.append(alternating_least_squares(again, rank, rng=k))
    cols = np.arange(state.shape[1])[None, :]
    for rows in state.row_blocks():
        every = np.stack([fit.entries(rows[:, None], cols) for fit in members])
        yield rows, every.var(axis=0)


def _largest(state: Purchase, blocks: Blocks, money: float) -> tuple[Indices, Array]:
    """Return the cells of largest score per price, as many as the money pays."""
    cells, scores = np.zeros(0, np.int64), np.zeros(0)
    for rows, score in blocks:
        price = state.price(rows)
        if money < price.min():
            continue
        rate = np.where(state.is_open(rows), score / price, -np.inf).ravel()
        keep = int(min(rate.size, money / price.min()))
        top = np.argpartition(-rate, keep - 1)[:keep]
        top = top[np.isfinite(rate[top])]
        cells, scores = np.r_[cells, rows[0] * state.shape[1] + top], np.r_[scores, rate[top]]
    if not len(cells):
        return cells, scores
    cells = cells[np.argsort(-scores, kind="stable")]
    bill = np.cumsum(state.price_of(cells))
    count = int(np.searchsorted(bill, money * (1 + 1e-12), side="right"))
    return cells[:count], np.ones(count)
