"""Sequential halving: the best of many arms within a fixed budget.

All arms get the same number of pulls, the worse half is dropped, and so on; no confidence level, no constants.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from entrywise.active.pairs.tally import (
    BestPair,
    Tally,
    count_pairs,
    draw_pairs,
    evenly,
    finish,
    pair_at,
    pull,
    pulls_for,
)
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint, Prices, plan
from entrywise.types import Array, Indices, Seed


@plan(symmetric=True, fresh=True, tolerates_failed=True)
def sequential_halving(
    n: int,
    *,
    budget: float,
    diagonal: bool = False,
    prices: Prices | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[BestPair]:
    r"""Find the smallest entry of a symmetric matrix by halving over all pairs, no structure assumed.

    .. math:: (i, j) = \arg\min_{i < j} L_{ij}, \qquad y \sim L_{ij} + \text{noise}

    Parameters
    ----------
    n : int
        Items; the arms are their n (n - 1) / 2 pairs.
    budget : float
        Money to spend; every measurement it pays for is made. Where it does not give each pair a pull in
        each round, a random subset of pairs that it can serve takes part.
    diagonal : bool
        Whether the pairs (i, i) take part.
    prices : Prices, optional
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
    if n < 1 + (not diagonal):
        raise ParameterError(
            f"n of sequential_halving must be at least {1 + (not diagonal)}, got {n}"
        )
    generator = cast(np.random.Generator, rng) if resume is None else resume.generator()
    total = pulls_for(budget, prices, "sequential_halving")
    tally = Tally(n)
    if resume is None:
        every = count_pairs(n, diagonal)
        size = arms_for(total, every)
        rows, cols = (
            pair_at(np.arange(every), n, diagonal)
            if size == every
            else draw_pairs(size, n, diagonal, generator)
        )
        rounds = rounds_for(size)
    else:
        tally.restore(resume.arrays)
        rows, cols, rounds = (
            resume.arrays["rows"],
            resume.arrays["cols"],
            int(resume.arrays["rounds"]),
        )
    status = "finished"
    try:
        while rounds:
            yield Checkpoint(
                tally.arrays() | {"rows": rows, "cols": cols, "rounds": np.array(rounds)}, generator
            )
            rows, cols = yield from halve(
                tally, rows, cols, (total - tally.asked) // rounds, generator
            )
            rounds -= 1
    except Exhausted:
        status = "exhausted"
        rows, cols = ranked(tally, rows, cols, None, generator)
    return finish(tally, (int(rows[0]), int(cols[0])), status, {"arms": count_pairs(n, diagonal)})


def halve(
    tally: Tally,
    rows: Indices,
    cols: Indices,
    total: int,
    rng: np.random.Generator,
    guess: Array | None = None,
) -> Asking[tuple[Indices, Indices]]:
    """Spend `total` pulls evenly on the arms and return the better half, best first.

    ``guess`` counts as one answer to each arm: it settles ties and what was seldom pulled.
    """
    yield from pull(tally, rows, cols, evenly(total, len(rows), rng))
    rows, cols = ranked(tally, rows, cols, guess, rng)
    keep = max(1, len(rows) // 2)
    return rows[:keep], cols[:keep]


def ranked(
    tally: Tally, rows: Indices, cols: Indices, guess: Array | None, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return the arms with the smallest mean first, ties in random order, arms never pulled last."""
    count, total = tally.look(rows, cols)
    if guess is None:
        mean = np.where(count > 0, total / np.maximum(count, 1.0), np.inf)
    else:
        mean = (total + guess) / (count + 1.0)
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
