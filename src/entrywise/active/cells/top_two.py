"""Which row has the largest mean: top-two Thompson sampling on the row means of a low-rank fit.

Buying what completes the matrix best is the wrong way to find a winner. Here two candidates are drawn from the
posterior of the row means, the leader and the best other one, and a cell of one of the two is bought.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from entrywise.active.cells.calibration import calibrated, pack_fit, refit, row_means, unpack_fit
from entrywise.active.cells.purchase import Purchase, check_purchase
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint, Prices, plan
from entrywise.results import Certificate, LowRank
from entrywise.types import Indices, Seed

_DRAWS = 2000


@plan(tolerates_failed=True)
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
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[LowRank]:
    r"""Find the row with the largest mean by buying cells of the rows that may still be it.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
    budget : float
    confidence : float, optional
        Stop as soon as the leader is best with this posterior probability.
    rank : int, optional
        Components of the fit that fills in what was not bought.
    reserve : float
        As in :func:`~entrywise.active.most_informative`.
    batch : int, optional
        Cells bought between two fits; half the number of rows when left out.
    available : array of bool of shape (m, n), optional

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
    m = shape[0]
    if confidence is not None and not 0 < confidence < 1:
        raise ParameterError(f"confidence must be above 0 and below 1, got {confidence}")
    state = check_purchase(shape, prices, budget, available, cast(np.random.Generator, rng))
    size = batch or max(1, m // 2)
    fit: LowRank | None = None
    rounds = 0
    if resume is not None:
        state.rng = resume.generator()
        state.restore(resume.arrays)
        rounds, fit = int(resume.arrays["rounds"]), unpack_fit(resume.arrays)
    status = "finished"
    try:
        if resume is None:
            if reserve > 0:
                yield from state.set_aside(reserve)
            yield from _two_a_row(state)
        while len(state.values):
            fit = refit(state, fit, rank, rounds)
            _, sure = winner(state, fit, np.random.default_rng(rounds))
            if confidence is not None and sure >= confidence:
                break
            cells = _challenge(state, fit, size)
            if not len(cells):
                break
            yield from state.buy(cells, "challenge")
            rounds += 1
            yield Checkpoint(
                state.arrays() | {"rounds": np.array(rounds)} | pack_fit(fit), state.rng
            )
    except Exhausted:
        status = "exhausted"
    return _result(state, refit(state, fit, rank, rounds), status, rounds)


def winner(state: Purchase, fit: LowRank, rng: np.random.Generator) -> tuple[int, float]:
    """Return the row that is most often best under the posterior, and how often it is."""
    mean, variance = row_means(fit, state.rows, state.cols, state.values)
    draws = mean + np.sqrt(variance) * rng.standard_normal((_DRAWS, len(mean)))
    wins = np.bincount(draws.argmax(axis=1), minlength=len(mean))
    return int(wins.argmax()), float(wins.max() / _DRAWS)


def _two_a_row(state: Purchase) -> Asking[None]:
    """Buy two cells of every row, cheap ones where prices differ."""
    m, n = state.shape
    cells = []
    for i in range(m):
        places = np.flatnonzero(state.is_open(np.array([i]))[0])
        cells += [i * n + int(j) for j in state._cheap(places, state.price(np.array([i]))[0], 2)]
    picked = state.rng.permutation(np.array(cells, np.int64))
    picked = picked[np.cumsum(state.price_of(picked)) <= state.left] if len(picked) else picked
    if len(picked):
        yield from state.buy(picked, "start")


def _challenge(state: Purchase, fit: LowRank, size: int) -> Indices:
    """Return cells of leaders and challengers drawn from the posterior of the row means."""
    m, n = state.shape
    mean, variance = row_means(fit, state.rows, state.cols, state.values)
    deviation = np.sqrt(variance)
    left, chosen = state.left, list[int]()
    open_of: dict[int, list[int]] = {}
    price_of: dict[int, Any] = {}
    closed = np.zeros(m, bool)
    for _ in range(4 * size):
        if len(chosen) >= size or closed.all():
            break
        leader = int(np.argmax(mean + deviation * state.rng.standard_normal(m)))
        challenger = leader
        for _ in range(20):
            challenger = int(np.argmax(mean + deviation * state.rng.standard_normal(m)))
            if challenger != leader:
                break
        else:
            second = mean + deviation * state.rng.standard_normal(m)
            second[leader] = -np.inf
            challenger = int(np.argmax(second))
        i = leader if state.rng.random() < 0.5 else challenger
        if i not in open_of:
            open_of[i] = state.rng.permutation(
                np.flatnonzero(state.is_open(np.array([i]))[0])
            ).tolist()
            price_of[i] = state.price(np.array([i]))[0]
        while open_of[i] and price_of[i][open_of[i][-1]] > left + 1e-9 * state.budget:
            open_of[i].pop()
        if not open_of[i]:
            closed[i] = True
            deviation[i] = 0.0
            continue
        j = open_of[i].pop()
        chosen.append(i * n + j)
        left -= price_of[i][j]
    return np.array(chosen, np.int64)


def _result(state: Purchase, fit: LowRank, status: str, rounds: int) -> LowRank:
    found = calibrated(state, fit, status, rounds, "top-two", "best")
    if not len(state.values):
        return replace(found, report=dict(found.report) | {"best": None, "confidence": 0.0})
    best, sure = winner(state, fit, np.random.default_rng(rounds))
    promise = Certificate(
        "posterior probability that the best row is named",
        sure,
        ("the low-rank model holds", "rows are judged on these columns"),
    )
    return replace(
        found,
        certificates=(promise, *found.certificates),
        report=dict(found.report) | {"best": best, "confidence": sure},
    )
