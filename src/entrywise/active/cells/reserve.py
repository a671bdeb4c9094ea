"""The blind reserve: cells drawn before anything is known, hidden from the rule and from all but the last fit.

A cell is in the reserve when a number that belongs to it for good, u(seed, row, col), lies below its
chance. A study that grows raises the chances or adds cells; what was in the reserve stays in it.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.purchase import Purchase, among
from entrywise.linalg import small
from entrywise.types import Array, Indices

RESERVED = 0.2  # largest chance of a cell to be in the reserve: the rest must stay for the rule
OVERDRAWN = 1.2  # times its money that the reserve, which is drawn by chance, may cost
CACHED = 1 << 17  # cells drawn at once
MOST_REMEMBERED = 4  # reserves; a plan looks at its own in every step
NOTHING = (np.zeros(0, np.int64), np.zeros(0))

_REMEMBERED: dict[bytes, tuple[Indices, Array]] = {}


def uniform_of(seed: int, rows: Indices, cols: Indices) -> Array:
    """Return a number in 0..1 for each cell, shapes broadcast, the same whatever the size of the matrix and the step.

    Three rounds of the finalizer of SplitMix64 over the seed, the row and the column.
    """
    state = _mixed(_words(seed, rows) ^ np.asarray(cols).astype(np.uint64))
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _words(seed: int, rows: Indices) -> NDArray[np.uint64]:
    """Return the scrambled word of each row."""
    start = _mixed(np.full(1, seed % 2**64, np.uint64))
    return _mixed(start ^ np.asarray(rows).astype(np.uint64))


def _below(seed: int, rows: Indices, n: int, chance: Array) -> Indices:
    """Return the places of whole rows, one row after the other, whose numbers lie below their chances."""
    if small.is_small(len(rows), n):
        return np.flatnonzero(uniform_of(seed, rows[:, None], np.arange(n)) < chance)
    from entrywise.linalg._jit_words import below

    return np.asarray(below(_words(seed, rows), np.ascontiguousarray(chance), n))


def column_order(seed: int, count: int) -> Indices:
    """Return columns in a random order of their own; columns that come later do not change the order of the others."""
    columns = np.arange(count)
    return np.argsort(uniform_of(seed, np.full(count, -1), columns), kind="stable")


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words scrambled (Steele, Lea, Flood 2014)."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray(z)


def reserve_cells(state: Purchase, share: float, seed: int) -> tuple[Indices, Array]:
    """Return the cells of a reserve for a `share` of the budget, and their chances min(.2, c / sqrt(price)).

    Of all powers of the price this one makes the reserve worth most equally weighted cells for its
    money: with chances c p^-a that is N^2 money / (sum p^a sum p^(1-a)), largest at a = 1/2
    (Cauchy-Schwarz). Cells known beforehand are no part of it. Where chance drew too dear a reserve,
    the cells are kept whose numbers lie deepest below their chances.
    """
    money = share * state.budget
    if money <= 0:
        return NOTHING
    key = _key(state, money, seed)
    if key is None:
        return _drawn(state, money, seed)
    found = _REMEMBERED.pop(key, None)
    if found is None:
        found = _drawn(state, money, seed)
        for array in found:
            array.flags.writeable = False
    _REMEMBERED[key] = found  # the latest last
    while len(_REMEMBERED) > MOST_REMEMBERED:
        _REMEMBERED.pop(next(iter(_REMEMBERED)), None)
    return found


def _key(state: Purchase, money: float, seed: int) -> bytes | None:
    """Return what a reserve follows from, as a digest; None where prices are a function."""
    price = state.prices.modes.get("entry")
    if callable(price):
        return None
    made = hashlib.blake2b(repr((state.shape, money, seed)).encode())
    for part in (price, state.known, state.available):
        array = np.ascontiguousarray(np.zeros(0) if part is None else part)
        made.update(repr((array.shape, part is None)).encode() + array.tobytes())
    return made.digest()


def _drawn(state: Purchase, money: float, seed: int) -> tuple[Indices, Array]:
    """Draw the reserve: one pass over the cells, in pieces that stay in the processor's cache."""
    c = _constant(state, money)
    n = state.shape[1]
    cells = []
    for rows in state.row_blocks(CACHED):
        at = _below(seed, rows, n, _chance(c, state.line_price(rows)))
        if not state.all_may_be_reserve:
            at = at[state.may_be_reserve(rows).ravel()[at]]
        cells.append(rows[0] * n + at)
    chosen = np.concatenate(cells)
    price = state.price_of(chosen)
    chance = _chance(c, price)
    if price.sum() <= OVERDRAWN * money:
        return chosen, chance
    order = np.argsort(uniform_of(seed, chosen // n, chosen % n) / chance, kind="stable")
    bill = np.cumsum(price[order])
    paid = np.sort(order[: int(np.searchsorted(bill, OVERDRAWN * money, side="right"))])
    return chosen[paid], chance[paid]


def _chance(c: float, price: Array) -> Array:
    return np.minimum(RESERVED, c / np.sqrt(price))


def _constant(state: Purchase, money: float) -> float:
    """Return the c at which a reserve is expected to cost `money`.

    With prices in order, the cheapest k are capped: the cost is .2 sum_{i <= k} n_i p_i + c sum_{i > k} n_i sqrt(p_i),
    where n_i cells have the price p_i.
    """
    price, counts = _prices(state)
    if not len(price):
        return 0.0
    roots = np.sqrt(price)
    capped = RESERVED * np.r_[0.0, np.cumsum(counts * price)[:-1]]
    rest = np.cumsum((counts * roots)[::-1])[::-1]
    c = (money - capped) / rest  # when the cells before each are capped
    fits = np.flatnonzero(c <= RESERVED * roots)
    return float(c[fits[0]]) if len(fits) else float(RESERVED * roots[-1])


def _prices(state: Purchase) -> tuple[Array, Array]:
    """Return the prices of the cells that may be in a reserve, in order, and how many cells have each."""
    found, counts = [], []
    for rows in state.row_blocks():
        price = state.line_price(rows)
        found.append(price.ravel())
        if state.all_may_be_reserve:
            counts.append(np.full(price.size, len(rows) * state.shape[1] // price.size))
            continue
        axis = tuple(k for k in (0, 1) if price.shape[k] == 1)  # along which cells cost the same
        counts.append(state.may_be_reserve(rows).sum(axis=axis, keepdims=True).ravel())
    every, of_each = np.concatenate(found), np.concatenate(counts)
    price, place = np.unique(every, return_inverse=True)
    total = np.asarray(np.bincount(place.ravel(), of_each, len(price)), np.float64)
    return price[total > 0], total[total > 0]


def missing_reserve(state: Purchase, share: float, seed: int) -> tuple[Indices, Array]:
    """Return the cells of the reserve that nobody was asked for yet, as many as the money pays, and their chances."""
    if share <= 0:
        return NOTHING
    cells, chance = reserve_cells(state, share, seed)
    if np.array_equal(cells, state.reserved):
        return NOTHING
    asked = among(state.reserved, cells)[0]
    asked[~asked] = among(state.taken, cells[~asked])[0]
    new = ~asked & state.may_ask(cells)
    cells, chance = cells[new], chance[new]
    paid = np.cumsum(state.price_of(cells)) <= state.left
    return cells[paid], chance[paid]
