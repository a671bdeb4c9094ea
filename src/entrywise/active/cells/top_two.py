"""Which row has the largest mean: top-two Thompson sampling on the row means of a low-rank fit.

Buying what completes the matrix best is the wrong way to find a winner. Here two candidates are drawn from what is
known of the row means, the leader and the best other one, and a cell of one of the two is bought. All rows read the
columns in one random order, so their differences are paired and a winner can be named at any time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.calibration import calibrated, expected_mean_error, fitted, row_means
from entrywise.active.cells.purchase import PER_LINE, Purchase, see_purchase
from entrywise.active.cells.race import (
    against_leader,
    chances_of_best,
    named_winner,
    row_errors,
)
from entrywise.active.cells.reserve import column_order, missing_reserve
from entrywise.exceptions import ParameterError
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.results import Certificate, LowRank
from entrywise.types import Array, Indices, Seed, generator

TRIES = 4  # pairs drawn a cell wanted: rows with nothing left to buy are drawn in vain
DRAWN_AGAIN = 20  # draws for a challenger before the leader is left out by force


@plan(streaming=True)
def top_two(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float,
    confidence: float | None = None,
    rank: int | None = 1,
    reserve: float = 0.0,
    batch: int | None = None,
    available: Any = None,
    likelihood: Literal["gaussian", "binary", "auto"] = "gaussian",
    bounds: tuple[float, float] | None = None,
    row_features: Any = None,
    col_features: Any = None,
    rng: Seed = None,
    situation: Situation,
) -> Batch | LowRank:
    r"""Find the row with the largest mean by buying cells of the rows that may still be it.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
    budget : float
    confidence : float, optional
        Stop as soon as a winner may be named: a wrong one is ever named with probability at most 1 - confidence,
        however often one looks; see :func:`~entrywise.active.cells.race.named_winner`. Cells then go to the rows
        that are least surely below the leader.
    rank : int, optional
        Components of the fit that fills in what was not bought.
    reserve : float
        As in :func:`~entrywise.active.most_informative`.
    batch : int, optional
        Cells bought between two fits; half the number of rows when left out.
    available : array of bool of shape (m, n), optional
    likelihood, bounds, row_features, col_features
        As in :func:`~entrywise.active.most_informative`.

    Returns
    -------
    LowRank
        ``report["best"]`` is the row, ``report["confidence"]`` its posterior probability of being best. The first
        certificate is that confidence.

    References
    ----------
    .. [R16] Russo, *Simple Bayesian algorithms for best-arm identification*, COLT 2016; here on row means over a
       finite population of columns.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import MatrixOracle
    >>> A = np.random.default_rng(0).standard_normal((10, 60)) + np.arange(10)[:, None]
    >>> found = ew.play(top_two((10, 60), budget=120, rng=0), MatrixOracle(A))
    >>> found.report["best"]
    9
    """
    if confidence is not None and not 0 < confidence < 1:
        raise ParameterError(f"confidence must be above 0 and below 1, got {confidence}")
    state = see_purchase(shape, prices, budget, available, generator(rng), situation)
    state.model = AnswerModel.of(state.shape, likelihood, bounds, row_features, col_features)
    return best_row_step(
        state, situation, confidence=confidence, rank=rank, reserve=reserve, size=batch
    )


def best_row_step(
    state: Purchase,
    situation: Situation,
    *,
    confidence: float | None = None,
    rank: int | None,
    reserve: float,
    size: int | None = None,
) -> Batch | LowRank:
    """Return what to buy next, or the answer."""
    cells, chance = missing_reserve(state, reserve, situation.seed)
    if len(cells):
        return state.batch(cells, "reserve", chance)
    columns = column_order(situation.seed, state.shape[1])
    cells = _first_of_rows(state, columns)
    if len(cells):
        return state.batch(cells, "start")
    fit, rounds = fitted(state, rank, situation.step), situation.step
    if not len(state.values):
        return _result(state, fit, rank, rounds, "nothing could be bought")
    _, sure = winner(state, fit, np.random.default_rng(rounds))
    size = size or max(1, state.shape[0] // 2)
    if confidence is None:
        cells = challenge(state, fit, columns, size)
    else:
        table, horizon = _table(state, columns)
        if named_winner(table, confidence, horizon, table.shape[1]) is not None:
            return _result(state, fit, rank, rounds, f"a winner is sure at {confidence:g}")
        cells = _least_sure(state, columns, table, horizon, size)
    if not len(cells):
        return _result(state, fit, rank, rounds, "the money left buys no further cell")
    i, j = np.divmod(cells, state.shape[1])
    return state.batch(
        cells,
        "challenge",
        expected=fit.entries(i, j),
        deviation=None if fit.is_binary else fit.deviation(i, j),
        report={"expected_error": expected_mean_error(state, fit), "confidence": sure},
    )


def standing(state: Purchase, fit: LowRank) -> tuple[Array, Array, Array]:
    """Return mean, deviation and degrees of freedom of every row, from how far its own answers are off the fit, (m,)."""
    mean, _ = row_means(fit, state.rows, state.cols, state.values)
    off = state.values - fit.entries(state.rows, state.cols)
    squares = off**2 + fit.variance(state.rows, state.cols)  # expected under the posterior
    m, n = state.shape
    cells = np.full(m, n) if state.available is None else state.available.sum(axis=1)
    return mean, *row_errors(state.rows, squares, cells)


def winner(state: Purchase, fit: LowRank, rng: np.random.Generator) -> tuple[int, float]:
    """Return the row that is most probably the best, and that probability."""
    chance = chances_of_best(*standing(state, fit), rng)
    return int(chance.argmax()), float(chance.max())


def _table(state: Purchase, columns: Indices) -> tuple[Array, float]:
    """Return what was measured, columns in the common order, and how many pairs of two rows the budget buys."""
    m, n = state.shape
    table = np.full((m, n), np.nan)
    table[state.rows, np.argsort(columns)[state.cols]] = state.values
    a_pair = 2.0 * float(np.mean(state.price_of(state.rows * n + state.cols)))
    return table, min(n, state.budget / a_pair)


def _least_sure(
    state: Purchase, columns: Indices, table: Array, horizon: float, size: int
) -> Indices:
    """Return cells of the rows that are least surely below the leader, and of the leader where it has no more than they."""
    n = state.shape[1]
    leader, evidence = against_leader(table, horizon, n)
    counts = np.bincount(state.taken // n, minlength=len(table))
    evidence[leader] = -np.inf if counts[leader] <= np.delete(counts, leader).max() else np.inf
    left, chosen = state.left, list[int]()
    for i in np.argsort(evidence, kind="stable"):
        row = np.array([i])
        open_ = state.is_open(row)[0] & (state.price(row)[0] <= left + 1e-9 * state.budget)
        places = columns[open_[columns]]
        if len(places):
            chosen.append(int(i) * n + int(places[0]))
            left -= float(state.price(row)[0][places[0]])
        if len(chosen) >= size:
            break
    return np.array(chosen, np.int64)


def _first_of_rows(state: Purchase, columns: Indices) -> Indices:
    """Return the first cells of every row that has fewer than two, in the common order of columns."""
    m, n = state.shape
    counts = np.bincount(state.taken // n, minlength=m)
    cells = []
    for i in np.flatnonzero(counts < PER_LINE):
        places = columns[state.is_open(np.array([i]))[0][columns]]
        cells += [int(i) * n + int(j) for j in places[: PER_LINE - int(counts[i])]]
    picked = state.rng.permutation(np.array(cells, np.int64))
    return np.asarray(picked[np.cumsum(state.price_of(picked)) <= state.left])


def challenge(state: Purchase, fit: LowRank, columns: Indices, size: int) -> Indices:
    """Return cells of leaders and challengers drawn from what is known of the row means, columns in the common order."""
    m, n = state.shape
    mean, deviation, _ = standing(state, fit)
    left, chosen = state.left, list[int]()
    # open cells of a row, the next one last, and its prices
    rows: dict[int, tuple[list[int], Array]] = {}
    closed = np.zeros(m, bool)
    for _ in range(TRIES * size):
        if len(chosen) >= size or closed.all():
            break
        leader, challenger = _two(mean, deviation, state.rng)
        i = leader if state.rng.random() < 0.5 else challenger
        if i not in rows:
            row = np.array([i])
            places = columns[state.is_open(row)[0][columns]][::-1]
            rows[i] = places.tolist(), state.price(row)[0]
        places_left, price = rows[i]
        while places_left and price[places_left[-1]] > left + 1e-9 * state.budget:
            places_left.pop()
        if not places_left:
            closed[i] = True
            deviation[i] = 0.0
            continue
        j = places_left.pop()
        chosen.append(i * n + j)
        left -= price[j]
    return np.array(chosen, np.int64)


def _two(mean: Array, deviation: Array, rng: np.random.Generator) -> tuple[int, int]:
    """Return two different rows, each the best of a draw from the posterior; the second of one where it must not be the first."""

    def draw() -> Array:
        return np.asarray(mean + deviation * rng.standard_normal(len(mean)))

    leader = int(np.argmax(draw()))
    for _ in range(DRAWN_AGAIN):
        challenger = int(np.argmax(draw()))
        if challenger != leader:
            return leader, challenger
    last = draw()
    last[leader] = -np.inf
    return leader, int(np.argmax(last))


def _result(state: Purchase, fit: LowRank, rank: int | None, rounds: int, reason: str) -> LowRank:
    found = calibrated(state, fit, rank, rounds, "top-two", "best", reason)
    if not len(state.values):
        return replace(found, report={**found.report, "best": None, "confidence": 0.0})
    best, sure = winner(state, fit, np.random.default_rng(rounds))
    promise = Certificate(
        "probability that the best row is named",
        sure,
        ("errors of rows are independent beside what columns share",),
        ("rows are measured on columns in one random order",),
    )
    return replace(
        found,
        certificates=(promise, *found.certificates),
        report={**found.report, "best": best, "confidence": sure},
    )
