"""The controls: random, balanced, leverage, plain variance, committee.

Each returns the cells of the next batch and the probabilities with which they were drawn; those that
look at the prices divide by them. They are what an active rule must beat to be worth its trouble.
"""

from __future__ import annotations

import numpy as np

from entrywise.active.cells.purchase import Purchase
from entrywise.linalg.gain import Gains, leverage
from entrywise.passive.alternating_least_squares import alternating_least_squares
from entrywise.results import LowRank
from entrywise.types import Array, Indices

RULES = ("random", "uniform", "balanced", "leverage", "variance", "committee")
_MEMBERS = 5


def pick_by_rule(rule: str, state: Purchase, fit: LowRank, money: float) -> tuple[Indices, Array]:
    """Return (cells, probabilities) that a control would buy with `money`.

    ``random`` draws with probability in proportion to 1 / price, ``uniform`` blind to prices, ``balanced`` fills the
    emptiest lines first, ``leverage`` draws by row plus column leverage of the factors per price, ``variance`` takes
    the largest posterior variance per price without updates, ``committee`` the largest spread of bootstrap fits.
    """
    if rule == "random":
        return state.draw(None, money)
    if rule == "uniform":
        return state.draw(lambda rows: np.ones((len(rows), state.shape[1])), money)
    if rule == "leverage":
        U = np.column_stack([fit.left, np.ones(state.shape[0])])
        V = np.column_stack([fit.right, np.ones(state.shape[1])])
        by_row, by_col = leverage(U), leverage(V)
        return state.draw(
            lambda rows: (by_row[rows][:, None] + by_col[None, :]) / state.price(rows), money
        )
    if rule == "balanced":
        return _balanced(state, money)
    if rule == "variance":
        gains = Gains.of(fit, state.rows, state.cols)
        return _largest(state, ((rows, variance) for rows, _, variance in gains.blocks()), money)
    return _largest(state, _committee(state, max(fit.rank, 1)), money)


def _balanced(state: Purchase, money: float) -> tuple[Indices, Array]:
    m, n = state.shape
    row_counts = np.bincount(state.rows, minlength=m).astype(float)
    col_counts = np.bincount(state.cols, minlength=n).astype(float)
    noise = state.rng.random((2, max(m, n)))

    def emptiness() -> object:
        for rows in state.row_blocks():
            load = (row_counts[rows] / n)[:, None] + (col_counts / m)[None, :]
            yield (
                rows,
                1.0 / (1e-3 + load + 1e-3 * (noise[0, rows][:, None] + noise[1, :n][None, :])),
            )

    return _largest(state, emptiness(), money, by_price=False)


def _committee(state: Purchase, rank: int) -> object:
    seen = state.observations
    members = []
    for k in range(_MEMBERS):
        again = seen.take(state.rng.integers(len(seen), size=len(seen)))
        members.append(alternating_least_squares(again, rank, rng=k))
    for rows in state.row_blocks():
        every = np.stack(
            [f.entries(rows[:, None], np.arange(state.shape[1])[None, :]) for f in members]
        )
        yield rows, every.var(axis=0)


def _largest(
    state: Purchase, blocks: object, money: float, by_price: bool = True
) -> tuple[Indices, Array]:
    """Return the cells of largest score (per price), as many as the money pays."""
    cells, scores = np.zeros(0, np.int64), np.zeros(0)
    for rows, score in blocks:  # type: ignore[attr-defined]
        price = state.price(rows)
        rate = np.where(state.is_open(rows), score / price if by_price else score, -np.inf).ravel()
        keep = int(min(rate.size, money / price.min())) if money >= price.min() else 0
        if keep == 0:
            continue
        top = np.argpartition(-rate, keep - 1)[:keep]
        top = top[np.isfinite(rate[top])]
        cells, scores = np.r_[cells, rows[0] * state.shape[1] + top], np.r_[scores, rate[top]]
    order = np.argsort(-scores, kind="stable")
    cells = cells[order]
    count = (
        int(np.searchsorted(np.cumsum(state.price_of(cells)), money * (1 + 1e-12), side="right"))
        if len(cells)
        else 0
    )
    return cells[:count], np.ones(count)
