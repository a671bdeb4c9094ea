"""Sequential halving: the best of many arms within a fixed budget.

All arms get the same number of pulls, the worse half is dropped, and so on; no confidence level, no constants.
"""

from __future__ import annotations

import math

import numpy as np

from entrywise.active.pairs.tally import (
    BestPair,
    Tally,
    count_pairs,
    evenly,
    every_or_some,
    finish,
    pull,
    pulls_for,
)
from entrywise.exceptions import Exhausted
from entrywise.queries import Asking, Checkpoint, History, Prices, plan
from entrywise.types import Array, Indices, Seed, generator


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def sequential_halving(
    n: int,
    prices: Prices | None = None,
    *,
    budget: float,
    diagonal: bool = False,
    rng: Seed = None,
    resume: Checkpoint | None = None,
    history: History | None = None,
) -> Asking[BestPair]:
    r"""Find the smallest entry of a symmetric matrix by halving over all pairs, no structure assumed.

    .. math:: (i, j) = \arg\min_{i < j} L_{ij}, \qquad y \sim L_{ij} + \text{noise}

    Parameters
    ----------
    n : int
        Items; the arms are their n (n - 1) / 2 pairs.
    prices : Prices, optional
        Price of an answer, one number.
    budget : float
        Money to spend; every measurement it pays for is made. Where it does not give each pair a pull in
        each round, a random subset of pairs that it can serve takes part.
    diagonal : bool
        Whether the pairs (i, i) take part.
    rng : int or Generator

    References
    ----------
    .. [KKS13] Karnin, Koren, Somekh, *Almost optimal exploration in multi-armed bandits*, ICML 2013. Pulls of earlier
       rounds are kept in the means; ties are broken at random.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import pair_losses
    >>> from entrywise.oracles import BernoulliOracle
    >>> L = pair_losses("synthetic", 20, 2)
    >>> found = ew.play(sequential_halving(20, budget=4000, rng=0), BernoulliOracle(L, rng=0))
    >>> found.cost, bool(L[found.pair] < 0.05)
    (4000.0, True)
    """
    total = pulls_for(n, prices, budget, diagonal, "sequential_halving")
    draws = generator(rng) if resume is None else resume.generator()
    tally, arms = Tally(n, history=history), count_pairs(n, diagonal)
    if resume is None:
        rows, cols = every_or_some(arms_for(total, arms), n, diagonal, draws)  # 1
        rounds = rounds_for(len(rows))
    else:
        tally.restore(resume.arrays)
        rows, cols = resume.arrays["rows"], resume.arrays["cols"]
        rounds = int(resume.arrays["rounds"])
    status = "finished"
    try:
        while rounds:  # 2
            here = {"rows": rows, "cols": cols, "rounds": np.array(rounds)}
            yield Checkpoint(tally.arrays() | here, draws)
            part = (total - tally.asked) // rounds
            rows, cols = yield from halve(tally, rows, cols, part, draws)  # 3, 4
            rounds -= 1
    except Exhausted:
        status = "exhausted"
        rows, cols = ranked(tally, rows, cols, None, draws)
    return finish(tally, (int(rows[0]), int(cols[0])), status, {"arms": arms})  # 5


def halve(
    tally: Tally,
    rows: Indices,
    cols: Indices,
    total: int,
    rng: np.random.Generator,
    guess: Array | None = None,
    worth: Array | float = 1.0,
) -> Asking[tuple[Indices, Indices]]:
    """Spend `total` pulls evenly on the arms and return the better half, best first.

    ``guess`` counts as ``worth`` answers to each arm: it settles ties and what was seldom pulled.
    """
    yield from pull(tally, rows, cols, evenly(total, len(rows), rng))
    rows, cols = ranked(tally, rows, cols, guess, rng, worth)
    keep = max(1, len(rows) // 2)
    return rows[:keep], cols[:keep]


def ranked(
    tally: Tally,
    rows: Indices,
    cols: Indices,
    guess: Array | None,
    rng: np.random.Generator,
    worth: Array | float = 1.0,
) -> tuple[Indices, Indices]:
    """Return the arms with the smallest mean first, ties in random order, arms never pulled last."""
    count, total = tally.look(rows, cols)
    if guess is None:
        mean = np.where(count > 0, total / np.maximum(count, 1.0), np.inf)
    else:
        mean = (total + worth * guess) / (count + worth)
    order = np.lexsort((rng.random(len(rows)), mean))
    return rows[order], cols[order]


def rounds_for(arms: int) -> int:
    """Return how often `arms` are halved until one is left."""
    return max(1, math.ceil(math.log2(arms))) if arms > 1 else 1


def arms_for(total: int, most: int) -> int:
    """Return the largest number of arms, at most `most`, of which each gets a pull in every round."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle * rounds_for(middle) <= total else (low, middle - 1)
    return low
