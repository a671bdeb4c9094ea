"""Successive and median elimination over all pairs: the guarantees without structure that low rank is held against."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from entrywise.active.pairs.halving import ranked
from entrywise.active.pairs.tally import (
    BestPair,
    Tally,
    count_pairs,
    draw_pairs,
    finish,
    pair_at,
    pull,
    pulls_for,
)
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint, Prices, plan
from entrywise.results import Certificate
from entrywise.types import Indices, Seed

GROWTH = 1.1  # arms are tested after 1, 2, 3, ..., then each 10% more pulls


@plan(symmetric=True, fresh=True, tolerates_failed=True)
def successive_elimination(
    n: int,
    *,
    budget: float,
    delta: float = 0.05,
    diagonal: bool = False,
    prices: Prices | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[BestPair]:
    r"""Find the smallest entry of a symmetric matrix, dropping pairs that are worse for certain.

    After t pulls each, a pair is dropped when its mean exceeds the best by
    :math:`2 \sqrt{\log(\pi^2 m t^2 / (3 \delta)) / (2 t)}`. It ends with one pair, which is the best
    with probability 1 - `delta`, or with the budget.

    Parameters
    ----------
    n : int
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
    _refuse(n, delta, diagonal, "successive_elimination")
    generator = cast(np.random.Generator, rng) if resume is None else resume.generator()
    total, tally = pulls_for(budget, prices, "successive_elimination"), Tally(n, bounded=True)
    arms = count_pairs(n, diagonal)
    t = 0
    if resume is None:
        rows, cols = _every_or_some(total, arms, n, diagonal, generator)
    else:
        tally.restore(resume.arrays)
        rows, cols, t = resume.arrays["rows"], resume.arrays["cols"], int(resume.arrays["t"])
    status, proved = "finished", False
    try:
        while len(rows) > 1:
            stride = min(max(1, int(t * (GROWTH - 1.0))), (total - tally.asked) // len(rows))
            if stride == 0:
                break
            yield Checkpoint(
                tally.arrays() | {"rows": rows, "cols": cols, "t": np.array(t)}, generator
            )
            yield from pull(tally, rows, cols, np.full(len(rows), stride))
            t += stride
            count, sums = tally.look(rows, cols)
            mean = sums / np.maximum(count, 1.0)
            radius = np.sqrt(
                math.log(math.pi**2 * arms * t * t / (3 * delta)) / (2.0 * np.maximum(count, 1.0))
            )
            best = int(np.argmin(mean))
            keep = mean - mean[best] < radius + radius[best]
            rows, cols = rows[keep], cols[keep]
        proved = len(rows) == 1 and t > 0
        if not proved and total > tally.asked:  # what is left does not serve all: some of them
            some = generator.permutation(len(rows))[: total - tally.asked]
            yield from pull(tally, rows[some], cols[some], np.ones(len(some), np.int64))
    except Exhausted:
        status = "exhausted"
    rows, cols = ranked(tally, rows, cols, None, generator)
    words = Certificate(
        f"the pair is the best with probability {1 - delta:g}; error",
        0.0,
        ("answers are independent, in 0..1",),
    )
    certificates = (words,) if proved else ()
    pair = (int(rows[0]), int(cols[0]))
    return finish(tally, pair, status, {"pairs left": len(rows)}, certificates=certificates)


@plan(symmetric=True, fresh=True, tolerates_failed=True)
def median_elimination(
    n: int,
    *,
    budget: float,
    epsilon: float | None = None,
    delta: float = 0.05,
    diagonal: bool = False,
    prices: Prices | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[BestPair]:
    r"""Find a pair within `epsilon` of the smallest entry, dropping the worse half again and again.

    Round l pulls every arm :math:`\lceil 4 \epsilon_l^{-2} \log(3 / \delta_l) \rceil` times, with
    :math:`\epsilon_1 = \epsilon/4`, :math:`\delta_1 = \delta/2`, then 3/4 and 1/2 of them.

    Parameters
    ----------
    n : int
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
    _refuse(n, delta, diagonal, "median_elimination")
    generator = cast(np.random.Generator, rng) if resume is None else resume.generator()
    total, tally = pulls_for(budget, prices, "median_elimination"), Tally(n, bounded=True)
    arms = count_pairs(n, diagonal)
    if epsilon is None:
        epsilon = _affordable(total, arms, delta)
    elif not epsilon > 0:
        raise ParameterError(f"epsilon of median_elimination must be above 0, got {epsilon}")
    done = 0
    if resume is None:
        rows, cols = _every_or_some(total, arms, n, diagonal, generator)
    else:
        tally.restore(resume.arrays)
        rows, cols, done = resume.arrays["rows"], resume.arrays["cols"], int(resume.arrays["round"])
    status, whole = "finished", len(rows) == arms or done > 0
    try:
        while len(rows) > 1:
            yield Checkpoint(
                tally.arrays() | {"rows": rows, "cols": cols, "round": np.array(done)}, generator
            )
            times = _times(epsilon, delta, done)
            if times * len(rows) > total - tally.asked:
                times, whole = (total - tally.asked) // len(rows), False
            if times:
                yield from pull(tally, rows, cols, np.full(len(rows), times))
            rows, cols = ranked(tally, rows, cols, None, generator)
            keep = (len(rows) + 1) // 2 if whole else 1
            rows, cols = rows[:keep], cols[:keep]
            done += 1
    except Exhausted:
        status, whole = "exhausted", False
        rows, cols = ranked(tally, rows, cols, None, generator)
    promise = Certificate(
        f"distance from the best pair, with probability {1 - delta:g}",
        epsilon,
        ("answers are independent, in 0..1",),
        vacuous=epsilon >= 1.0,
    )
    report = {"rounds": done, "epsilon": epsilon}
    pair = (int(rows[0]), int(cols[0]))
    return finish(tally, pair, status, report, certificates=(promise,) if whole else ())


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


def _every_or_some(
    total: int, arms: int, n: int, diagonal: bool, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return all pairs, or as many random ones as can be pulled once."""
    if total >= arms:
        return pair_at(np.arange(arms), n, diagonal)
    return draw_pairs(max(1, total), n, diagonal, rng)


def _refuse(n: int, delta: float, diagonal: bool, who: str) -> None:
    if n < 1 + (not diagonal):
        raise ParameterError(f"n of {who} must be at least {1 + (not diagonal)}, got {n}")
    if not 0 < delta < 1:
        raise ParameterError(f"delta of {who} must be between 0 and 1, got {delta}")
