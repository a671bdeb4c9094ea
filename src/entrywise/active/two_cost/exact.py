"""Two exact instruments: columns until one lies in the span of the others, then as many cells as there are directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from entrywise.active.two_cost.buying import ask
from entrywise.active.two_cost.constants import AGREES, CELL, CENT, SAME_SPAN, TINY
from entrywise.active.two_cost.holdings import Holdings
from entrywise.queries import Asking, Batch
from entrywise.results import Certificate, LowRank
from entrywise.types import Array, Indices


def exact(held: Holdings, rank: int | None, rng: np.random.Generator) -> Asking[LowRank | None]:
    """Both instruments are exact: buy columns until one lies in the span of the others, then k cells each.

    A column that costs less than k cells is bought whole. Returns None when the columns do not show a low rank and the rest
    cannot be paid, or when what was bought disagrees; then it is fitted as usual.
    """
    setting = held.setting
    m, n = setting.m, setting.n
    U = yield from _independent_columns(held, rank, rng)
    one_by_one = len(held.columns)
    U = yield from _cheap_columns(held, U)
    if not held.columns or _some_failed(held):
        return None
    k = U.shape[1]
    rest = np.setdiff1d(np.arange(n), held.columns)
    V = np.zeros((n, k))
    V[held.columns] = held.table().T @ U
    cells = _cells(held, rest, k, rng)
    if cells is None:
        return None
    if len(cells.rows):
        batch = Batch.entries(cells.rows, cells.cols)
        yield from ask(held, batch)
        values = held.latest("entry")[2]
        if len(values) < len(batch):
            return None  # some failed; the general fit does with what is there
        Y = values.reshape(len(rest), cells.each)
        V[rest] = _coefficients(U, cells.places, Y)
        if not _agree(U, cells.places, V[rest], Y):
            return None
    checked = cells.each > k
    proven = not len(rest) or checked or k < one_by_one or k in (rank, m)
    report = {
        "columns": len(held.columns),
        "cells": len(cells.rows),
        "rank": k,
        "estimator": "exact",
        "rank_proven": proven,
    }
    promise = (_certificate(k, checked and len(rest) > 0),) if proven else ()
    return LowRank(U, V, certificates=promise, report=report)


def _independent_columns(
    held: Holdings, rank: int | None, rng: np.random.Generator
) -> Asking[Array]:
    """Buy columns one by one while each brings a new direction and the others can still be paid; return their span."""
    setting = held.setting
    m, n = setting.m, setting.n
    order, price = rng.permutation(n), setting.column_prices
    entry = setting.mean_prices()[1]
    U = np.zeros((m, 0))
    while len(held.columns) < (n if rank is None else min(n, rank)):
        d = len(held.columns)
        after = held.money - price[order[d]]
        others = np.minimum(price[order[d + 1 :]], d * entry).sum()
        if after < -CELL or after < others * (1 - CENT):
            break
        yield from ask(held, Batch.whole_columns(order[d : d + 1], m))
        U = _span(held)
        if U.shape[1] < len(held.columns):
            break
    return U


def _cheap_columns(held: Holdings, U: Array) -> Asking[Array]:
    """Buy the columns that cost less than the cells which would tell them; return the span of all."""
    setting = held.setting
    price = setting.column_prices
    rest = np.setdiff1d(np.arange(setting.n), held.columns)
    by_cells = U.shape[1] * setting.mean_prices()[1]
    cheap = rest[price[rest] < by_cells * (1 - CENT)]
    if not len(cheap) or float(price[cheap].sum()) > held.money * (1 + CENT):
        return U
    yield from ask(held, Batch.whole_columns(cheap, setting.m))
    return _span(held)


def _some_failed(held: Holdings) -> bool:
    answered = sum(len(values) for values in held.values["column"])
    return answered < held.setting.m * len(held.columns)


class ExactCells(NamedTuple):
    """ExactCells to measure: ``each`` in every column left, at rows ``places`` (columns, each); flat in ``rows``, ``cols``."""

    each: int
    places: Indices
    rows: Indices
    cols: Indices


def _cells(held: Holdings, rest: Indices, k: int, rng: np.random.Generator) -> ExactCells | None:
    """Return k + 1 cells in each column left, the last to check, or k where no more can be paid; None where not even those."""
    m = held.setting.m
    for each in (min(k + 1, m), k):
        every = np.tile(np.arange(m), (len(rest), 1))
        places = rng.permuted(every, axis=1)[:, :each]
        rows, cols = places.ravel(), np.repeat(rest, each)
        cost = float(held.setting.entry_prices(rows, cols).sum())
        if cost <= held.money * (1 + CENT):
            return ExactCells(each, places, rows, cols)
    return None


def _coefficients(U: Array, places: Indices, Y: Array) -> Array:
    """Return the coefficients on U of every column seen at its places, shape (columns, k)."""
    found = [np.linalg.lstsq(U[at], y, rcond=None)[0] for at, y in zip(places, Y, strict=True)]
    return np.array(found)


def _agree(U: Array, places: Indices, V: Array, Y: Array) -> bool:
    """Tell whether the cells lie in the span, to round-off."""
    off = np.abs(np.einsum("tek,tk->te", U[places], V) - Y)
    return float(off.max(initial=0.0)) <= AGREES * float(np.abs(Y).max(initial=0.0))


def _span(held: Holdings) -> Array:
    """Return an orthonormal basis of the columns held, shape (m, k)."""
    left, s, _ = np.linalg.svd(held.table(), full_matrices=False)
    return np.asarray(left[:, s > SAME_SPAN * max(float(s[0]), TINY)])


def _certificate(k: int, checked: bool) -> Certificate:
    return Certificate(
        "largest error of an entry beyond round-off",
        0.0,
        (f"rank {k}, columns in general position", "exact answers"),
        ("one entry more than needed agreed in every column",) if checked else (),
    )
