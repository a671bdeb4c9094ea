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
EMPTY = (
    1e-3  # load of a line with nothing bought, and the size of the random order among equal ones
)
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
        return _largest(state, _emptiness(state), money, by_price=False)
    if rule == "variance":
        gains = gains_of(state, fit)
        return _largest(state, ((rows, variance) for rows, _, variance in gains.blocks()), money)
    return _largest(state, _dispute(state, max(fit.rank, 1)), money)


def _emptiness(state: Purchase) -> Blocks:
    """Yield how empty the lines of each cell are, in random order where equally so."""
    m, n = state.shape
    row_load = np.bincount(state.taken // n, minlength=m).astype(float) / n
    col_load = np.bincount(state.taken % n, minlength=n).astype(float) / m
    noise = state.rng.random((2, max(m, n)))
    for rows in state.row_blocks():
        load = row_load[rows][:, None] + col_load[None, :]
        shuffle = noise[0, rows][:, None] + noise[1, :n][None, :]
        yield rows, 1.0 / (EMPTY + load + EMPTY * shuffle)


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


def _largest(
    state: Purchase, blocks: Blocks, money: float, by_price: bool = True
) -> tuple[Indices, Array]:
    """Return the cells of largest score (per price), as many as the money pays."""
    cells, scores = np.zeros(0, np.int64), np.zeros(0)
    for rows, score in blocks:
        price = state.price(rows)
        if money < price.min():
            continue
        rate = np.where(state.is_open(rows), score / price if by_price else score, -np.inf).ravel()
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
