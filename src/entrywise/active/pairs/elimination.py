"""Successive and median elimination over all pairs: the guarantees without structure that low rank is held against."""

from __future__ import annotations

import math

import numpy as np

from entrywise.active.pairs.race import Race
from entrywise.active.pairs.tally import BestPair, count_pairs, finish, pull, pulls_for
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint, History, Prices, plan
from entrywise.results import Certificate
from entrywise.types import Seed, generator

GROWTH = 1.1  # arms are tested after 1, 2, 3, ..., then each 10% more pulls
LEAST = 1e-100  # of epsilon and delta: smaller ones ask for more pulls than can be counted
COINS = ("answers are independent, in 0..1",)


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def successive_elimination(
    n: int,
    prices: Prices | None = None,
    *,
    budget: float,
    delta: float = 0.05,
    diagonal: bool = False,
    rng: Seed = None,
    resume: Checkpoint | None = None,
    history: History | None = None,
) -> Asking[BestPair]:
    r"""Find the smallest entry of a symmetric matrix, dropping pairs that are worse for certain.

    After t pulls each, a pair is dropped when its mean exceeds the best by
    :math:`2 \sqrt{\log(\pi^2 m t^2 / (3 \delta)) / (2 t)}`. It ends with one pair, which is the best
    with probability 1 - `delta`, or with the budget.

    Parameters
    ----------
    n : int
    prices : Prices, optional
        Price of an answer, one number.
    budget : float
    delta : float
        Chance of error. Answers must lie in 0..1.
    diagonal : bool
        Whether the pairs (i, i) take part.

    References
    ----------
    .. [EMM06] Even-Dar, Mannor, Mansour, *Action elimination and stopping conditions*, JMLR 2006, Algorithm 3; tested at
       growing distances, which the same union bound covers.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import BernoulliOracle
    >>> coins = BernoulliOracle([[0, 0.9, 0.1], [0.9, 0, 0.8], [0.1, 0.8, 0]], rng=0)
    >>> found = ew.play(successive_elimination(3, budget=10_000, rng=0), coins)
    >>> found.pair, found.cost < 200
    ((0, 2), True)
    """
    total = pulls_for(n, prices, budget, diagonal, "successive_elimination")
    _refuse_delta(delta, "successive_elimination")
    arms = count_pairs(n, diagonal)
    race = Race(n, total, diagonal, generator(rng), resume, history, bounded=True)  # 1
    status, proved = "finished", False
    try:
        while len(race.rows) > 1:
            stride = max(1, int(race.done * (GROWTH - 1.0)))
            stride = min(stride, race.left // len(race.rows))
            if stride == 0:
                break
            yield race.checkpoint()
            yield from race.pull_each(stride)  # 2
            race.done += stride
            _drop_worse(race, arms, delta)  # 3, 4
        proved = len(race.rows) == 1 and race.done > 0
        if not proved and race.left > 0:  # what is left does not serve all: some of them
            some = race.rng.permutation(len(race.rows))[: race.left]
            once = np.ones(len(some), np.int64)
            yield from pull(race.tally, race.rows[some], race.cols[some], once)
    except Exhausted:
        status = "exhausted"
    race.rank_arms()
    words = f"the pair is the best with probability {1 - delta:g}; error"
    return finish(
        race.tally,
        race.first,
        status,
        {"pairs_left": len(race.rows)},
        certificates=(Certificate(words, 0.0, COINS),) if proved else (),
    )


def _drop_worse(race: Race, arms: int, delta: float) -> None:
    """Drop the arms whose mean exceeds the best by both radii."""
    count, sums = race.look()
    count = np.maximum(count, 1.0)
    mean = sums / count
    log = math.log(math.pi**2 * arms * race.done * race.done / (3 * delta))
    radius = np.sqrt(log / (2.0 * count))
    best = int(np.argmin(mean))
    keep = mean - mean[best] < radius + radius[best]
    race.rows, race.cols = race.rows[keep], race.cols[keep]


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def median_elimination(
    n: int,
    prices: Prices | None = None,
    *,
    budget: float,
    epsilon: float | None = None,
    delta: float = 0.05,
    diagonal: bool = False,
    rng: Seed = None,
    resume: Checkpoint | None = None,
    history: History | None = None,
) -> Asking[BestPair]:
    r"""Find a pair within `epsilon` of the smallest entry, dropping the worse half again and again.

    Round l pulls every arm :math:`\lceil 4 \epsilon_l^{-2} \log(3 / \delta_l) \rceil` times, with
    :math:`\epsilon_1 = \epsilon/4`, :math:`\delta_1 = \delta/2`, then 3/4 and 1/2 of them.

    Parameters
    ----------
    n : int
    prices : Prices, optional
        Price of an answer, one number.
    budget : float
    epsilon : float, optional
        None: the smallest that the budget affords.
    delta : float
        Chance of error. Answers must lie in 0..1.
    diagonal : bool
        Whether the pairs (i, i) take part.

    References
    ----------
    .. [EMM06] Even-Dar, Mannor, Mansour, *Action elimination and stopping conditions*, JMLR 2006, Algorithm 4.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import BernoulliOracle
    >>> coins = BernoulliOracle([[0, 0.9, 0.1], [0.9, 0, 0.8], [0.1, 0.8, 0]], rng=0)
    >>> ew.play(median_elimination(3, budget=10_000, rng=0), coins).pair
    (0, 2)
    """
    total = pulls_for(n, prices, budget, diagonal, "median_elimination")
    _refuse_delta(delta, "median_elimination")
    arms = count_pairs(n, diagonal)
    if epsilon is None:
        epsilon = _affordable(total, arms, delta)
    elif not LEAST <= epsilon <= 1 / LEAST:
        raise ParameterError(
            f"epsilon of median_elimination must be in {LEAST:g}..{1 / LEAST:g}, got {epsilon}"
        )
    race = Race(n, total, diagonal, generator(rng), resume, history, bounded=True)  # 1
    status, whole = "finished", len(race.rows) == arms or race.done > 0
    try:
        while len(race.rows) > 1:  # 5
            yield race.checkpoint()
            times = _times(epsilon, delta, race.done)
            if times * len(race.rows) > race.left:
                times, whole = race.left // len(race.rows), False
            if times:
                yield from race.pull_each(times)  # 2
            race.rank_arms()  # 3
            keep = (len(race.rows) + 1) // 2 if whole else 1
            race.rows, race.cols = race.rows[:keep], race.cols[:keep]  # 4
            race.done += 1
    except Exhausted:
        status, whole = "exhausted", False
        race.rank_arms()
    promise = Certificate(
        f"distance from the best pair, with probability {1 - delta:g}",
        epsilon,
        COINS,
        vacuous=epsilon >= 1.0,
    )
    return finish(
        race.tally,
        race.first,
        status,
        {"rounds": race.done, "epsilon": epsilon},
        certificates=(promise,) if whole else (),
    )


def _times(epsilon: float, delta: float, done: int) -> int:
    e, d = epsilon / 4 * 0.75**done, delta / 2 ** (done + 1)
    return math.ceil(4.0 / e**2 * math.log(3.0 / d))


def _cost(epsilon: float, arms: int, delta: float) -> int:
    total, done = 0, 0
    while arms > 1:
        total += arms * _times(epsilon, delta, done)
        arms, done = (arms + 1) // 2, done + 1
    return total


def _affordable(total: int, arms: int, delta: float) -> float:
    """Return the smallest epsilon whose pulls fit into `total`, by bisection; it may exceed 1 and say nothing."""
    low, high = -20.0, 20.0  # log2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _cost(2.0**middle, arms, delta) <= total else (middle, high)
    return float(2.0**high)


def _refuse_delta(delta: float, who: str) -> None:
    if not LEAST <= delta < 1:
        raise ParameterError(f"delta of {who} must be in {LEAST:g}..1, got {delta}")
