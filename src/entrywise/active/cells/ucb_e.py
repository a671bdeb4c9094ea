"""UCB-E and its low-rank form: the bandit baselines for naming the best row.

The row whose mean plus a bonus for having been seen little is largest gets the next cells. The low-rank form fills in
unseen cells by an ensemble of factorisations, whose spread is the bonus, and buys the cells that the ensemble disputes most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.active.cells.calibration import calibrated, fitted
from entrywise.active.cells.purchase import Purchase, see_purchase
from entrywise.exceptions import ParameterError
from entrywise.passive.alternating_least_squares import alternating_least_squares
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed, generator

MEMBERS = 8  # factorisations in the ensemble
SHARE = 0.9  # of the cells that each one sees


@plan(streaming=True)
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
    situation: Situation,
) -> Batch | LowRank:
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
    state = see_purchase(shape, prices, budget, available, generator(rng), situation)
    rounds = situation.step
    if low_rank:
        money = min(state.left, warm_up * shape[0] * shape[1] - len(state.taken))
        first, chance = state.draw(_alike(state), money)
        if len(first):
            return state.batch(first, "warm-up", chance)
    score, spread = bounds(state, bonus, rank if low_rank else None, rounds)
    cells = next_cells(state, score, spread, batch)
    if len(cells):
        return state.batch(cells, "ucb-e")
    reason = "the money left buys no further cell"
    fit = fitted(state, rank, rounds)
    found = calibrated(state, fit, rank, rounds, "ucb-e", "best", reason)
    means = bounds(state, 0.0, rank, rounds)[0] if low_rank else _means(state)
    best = int(np.argmax(means)) if len(state.values) else None
    return replace(found, report={**found.report, "best": best})


def _alike(state: Purchase) -> Callable[[Indices], Array]:
    """Return weights that are the same for every cell."""
    return lambda rows: np.ones((len(rows), state.shape[1]))


def _means(state: Purchase) -> Array:
    """Return the mean of what was bought of each row, minus infinity where nothing was."""
    m = state.shape[0]
    counts = np.bincount(state.rows, minlength=m)
    total = np.bincount(state.rows, state.values, m)
    return np.where(counts > 0, total / np.maximum(counts, 1), -np.inf)


def bounds(
    state: Purchase, bonus: float, rank: int | None, seed: int
) -> tuple[Array, Array | None]:
    """Return the upper bound of every row's mean, and with a `rank` the ensemble's spread of every cell."""
    if rank is not None and len(state.values) >= 2:
        return _ensemble(state, bonus, rank, seed)
    m, n = state.shape
    seen = np.bincount(state.rows, minlength=m)
    counts = seen + np.bincount(state.out // n, minlength=m)  # what is out is looked at already
    means = np.where(seen > 0, _means(state), 0.0)
    bound = means + np.sqrt(bonus / np.maximum(counts, 1))
    return np.where(seen > 0, bound, np.where(counts > 0, -np.inf, np.inf)), None


def _ensemble(state: Purchase, bonus: float, rank: int, seed: int) -> tuple[Array, Array]:
    """Return the bounds and the spread of factorisations, each of its own random nine tenths of the cells."""
    seen = state.observations
    rng = np.random.default_rng(seed)
    members = []
    for k in range(MEMBERS):
        some = seen.take(rng.random(len(seen)) < SHARE)
        fit = alternating_least_squares(some if len(some) else seen, min(rank, *state.shape), rng=k)
        members.append(fit.to_dense())
    cells = np.stack(members)
    middle, spread = cells.mean(axis=0), cells.std(axis=0)
    middle[seen.rows, seen.cols] = seen.values
    spread[seen.rows, seen.cols] = 0.0
    return middle.mean(axis=1) + bonus * spread.mean(axis=1), spread


def next_cells(state: Purchase, score: Array, spread: Array | None, batch: int) -> Indices:
    """Return the next cells: of the best row by `score` that still has affordable ones."""
    n, money = state.shape[1], state.left * (1 + 1e-12)
    for i in np.lexsort((state.rng.random(len(score)), -score)):
        row = np.array([i])
        price = state.price(row)[0]
        places = np.flatnonzero(state.is_open(row)[0] & (price <= money))
        if not len(places):
            continue
        if spread is None:
            order = state.rng.permutation(len(places))
        else:
            order = np.argsort(-spread[i, places], kind="stable")
        places = places[order][:batch]
        paid = np.cumsum(price[places]) <= money
        return np.asarray(i * n + places[paid])
    return np.zeros(0, np.int64)
