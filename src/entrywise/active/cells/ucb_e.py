"""UCB-E and its low-rank form: the bandit baselines for naming the best row.

The row whose mean plus a bonus for having been seen little is largest gets the next cells. The low-rank form fills in
unseen cells by an ensemble of factorisations, whose spread is the bonus, and buys the cells that the ensemble disputes most.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from entrywise.active.cells.calibration import calibrated, refit
from entrywise.active.cells.purchase import Purchase, check_purchase
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.passive.alternating_least_squares import alternating_least_squares
from entrywise.queries import Asking, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed

_MEMBERS = 8


@plan(tolerates_failed=True)
def ucb_e(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float,
    bonus: float = 1.0,
    batch: int = 8,
    low_rank: bool = False,
    warm_up: float = 0.05,
    rank: int = 1,
    available: Any = None,
    rng: Seed = None,
) -> Asking[LowRank]:
    r"""Find the row with the largest mean by upper confidence bounds.

    .. math:: i = \arg\max_i \hat\mu_i + \sqrt{a / T_i}

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
        Only the budget looks at them; the rule is blind to prices, as published.
    budget : float
    bonus : float
        a in the formula; with `low_rank` the weight of the ensemble's spread.
    batch : int
        Cells bought of the chosen row at a time. Small batches do better on few columns.
    low_rank : bool
        Fill in unseen cells by an ensemble of rank-`rank` factorisations of random subsets after a random `warm_up`
        share of the cells (UCB-E-LRF).
    available : array of bool of shape (m, n), optional

    Returns
    -------
    LowRank
        A fit of what was bought; ``report["best"]`` is the row by the rule's own estimate.

    References
    ----------
    .. [ABM10] Audibert, Bubeck, Munos, *Best arm identification in multi-armed bandits*, COLT 2010.
    .. [ZCM25] Zhou, Chen, Ma et al., *On speeding up language model evaluation*, ICLR 2025: UCB-E on models by
       examples, and UCB-E-LRF. Ours trains each member on its own random nine tenths of the cells.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import MatrixOracle
    >>> A = np.random.default_rng(0).standard_normal((10, 60)) + np.arange(10)[:, None]
    >>> ew.play(ucb_e((10, 60), budget=120, rng=0), MatrixOracle(A)).report["best"]
    9
    """
    if batch < 1 or not bonus >= 0 or rank < 1 or not 0 < warm_up < 1:
        raise ParameterError(
            f"batch and rank must be 1 or more, bonus 0 or more, warm_up in 0..1, got {batch}, {rank}, {bonus}, {warm_up}"
        )
    state = check_purchase(shape, prices, budget, available, cast(np.random.Generator, rng))
    status, rounds = "finished", 0
    try:
        if low_rank:
            first, chance = state.draw(
                lambda rows: np.ones((len(rows), shape[1])),
                min(budget, warm_up * shape[0] * shape[1]),
            )
            if len(first):
                yield from state.buy(first, "warm-up", chance)
        while True:
            score, spread = _bounds(state, bonus, low_rank, rank, rounds)
            cells = _next(state, score, spread, batch)
            if not len(cells):
                break
            yield from state.buy(cells, "ucb-e")
            rounds += 1
    except Exhausted:
        status = "exhausted"
    found = calibrated(state, refit(state, None, rank, rounds), status, rounds, "ucb-e", "best")
    means = _means(state) if not low_rank else _bounds(state, 0.0, True, rank, rounds)[0]
    best = int(np.argmax(means)) if len(state.values) else None
    return replace(found, report=dict(found.report) | {"best": best})


def _means(state: Purchase) -> Array:
    m = state.shape[0]
    counts = np.bincount(state.rows, minlength=m)
    total = np.bincount(state.rows, state.values, m)
    return np.where(counts > 0, total / np.maximum(counts, 1), -np.inf)


def _bounds(
    state: Purchase, bonus: float, low_rank: bool, rank: int, seed: int
) -> tuple[Array, Array | None]:
    """Return the upper bound of every row's mean, and with `low_rank` the ensemble's spread of every cell."""
    m, n = state.shape
    counts = np.bincount(state.rows, minlength=m)
    if not low_rank or len(state.values) < 2:
        with np.errstate(divide="ignore"):
            return np.where(
                counts > 0, _means(state) + np.sqrt(bonus / np.maximum(counts, 1)), np.inf
            ), None
    seen = state.observations
    rng = np.random.default_rng(seed)
    members = []
    for k in range(_MEMBERS):
        some = seen.take(rng.random(len(seen)) < 0.9)
        members.append(
            alternating_least_squares(
                some if len(some) else seen, min(rank, m, n), rng=k
            ).to_dense()
        )
    cells = np.stack(members)
    middle, spread = cells.mean(axis=0), cells.std(axis=0)
    middle[seen.rows, seen.cols] = seen.values
    spread[seen.rows, seen.cols] = 0.0
    return middle.mean(axis=1) + bonus * spread.mean(axis=1), spread


def _next(state: Purchase, score: Array, spread: Array | None, batch: int) -> Indices:
    """Return the next cells: of the best row by `score` that still has affordable ones."""
    n = state.shape[1]
    for i in np.lexsort((state.rng.random(len(score)), -score)):
        row = np.array([i])
        price = state.price(row)[0]
        places = np.flatnonzero(state.is_open(row)[0] & (price <= state.left * (1 + 1e-12)))
        if not len(places):
            continue
        order = (
            state.rng.permutation(len(places))
            if spread is None
            else np.argsort(-spread[i, places], kind="stable")
        )
        places = places[order][:batch]
        paid = np.cumsum(price[places]) <= state.left * (1 + 1e-12)
        return np.asarray(i * n + places[paid])
    return np.zeros(0, np.int64)
