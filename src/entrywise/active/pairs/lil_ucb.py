"""lil'UCB over all pairs: upper confidence bounds from the law of the iterated logarithm."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

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
from entrywise.types import Seed


@plan(symmetric=True, fresh=True, tolerates_failed=True)
def lil_ucb(
    n: int,
    *,
    budget: float,
    delta: float = 0.005,
    heuristic: bool = False,
    noise: float = 0.5,
    batch: int | None = None,
    diagonal: bool = False,
    prices: Prices | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[BestPair]:
    r"""Find the smallest entry of a symmetric matrix by pulling where the confidence bound is lowest.

    .. math:: \hat\mu_a - (1 + \beta)(1 + \sqrt\varepsilon)
              \sqrt{\frac{2 \sigma^2 (1 + \varepsilon)}{T_a} \log\frac{\log((1 + \varepsilon) T_a + 2)}{\delta}}

    Parameters
    ----------
    n : int
    budget : float
        Fewer pulls than pairs end in a random pick among those whose one answer was best.
    delta : float
        Confidence parameter of the bound.
    heuristic : bool
        epsilon = 0, beta = 1/2, lambda = 1 + 10 / arms instead of 0.01, 1 and 9.
    noise : float
        Standard deviation (sub-Gaussian) of an answer; 1/2 for coins.
    batch : int, optional
        Arms pulled at once; 1 is the sequential algorithm. Default: 1/500 of the budget, so that a million pulls
        take five hundred steps.
    diagonal : bool
        Whether the pairs (i, i) take part.

    Returns
    -------
    BestPair
        The arm pulled most, ties by the mean.

    References
    ----------
    .. [JMNB14] Jamieson, Malloy, Nowak, Bubeck, *lil' UCB*, COLT 2014. "+ 2" inside the logarithm keeps it above zero at
       the first pulls.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import BernoulliOracle
    >>> coins = BernoulliOracle([[0, 0.9, 0.1], [0.9, 0, 0.8], [0.1, 0.8, 0]], rng=0)
    >>> ew.play(lil_ucb(3, budget=3000, rng=0), coins).pair
    (0, 2)
    """
    if n < 1 + (not diagonal):
        raise ParameterError(f"n of lil_ucb must be at least {1 + (not diagonal)}, got {n}")
    if not 0 < delta < 1:
        raise ParameterError(f"delta of lil_ucb must be between 0 and 1, got {delta}")
    if not (np.isfinite(noise) and noise > 0) or (batch is not None and batch < 1):
        raise ParameterError(f"noise must be above 0 and batch at least 1, got {noise} and {batch}")
    generator = cast(np.random.Generator, rng) if resume is None else resume.generator()
    total, tally = pulls_for(budget, prices, "lil_ucb"), Tally(n)
    arms = count_pairs(n, diagonal)
    eps, beta, lam = (0.0, 0.5, 1.0 + 10.0 / arms) if heuristic else (0.01, 1.0, 9.0)
    width = (1.0 + beta) * (1.0 + math.sqrt(eps)) * noise * math.sqrt(2.0 * (1.0 + eps))
    at_once = max(1, total // 500) if batch is None else batch
    if resume is None:
        everyone = total >= arms
        rows, cols = (
            pair_at(np.arange(arms), n, diagonal)
            if everyone
            else draw_pairs(max(1, total), n, diagonal, generator)
        )
        T, S = np.zeros(len(rows)), np.zeros(len(rows))
    else:
        tally.restore(resume.arrays)
        rows, cols, T, S = (resume.arrays[k] for k in ("rows", "cols", "T", "S"))
        T, S = T.copy(), S.copy()
    status = "finished"
    kept = tally.asked
    try:
        if tally.asked == 0 and total:
            yield from pull(tally, rows, cols, np.ones(len(rows), np.int64))
            T, S = tally.look(rows, cols)
        while tally.asked < total and T.max() < 1.0 + lam * (T.sum() - T.max()):
            if tally.asked - kept >= max(1, total // 20):
                yield Checkpoint(
                    tally.arrays() | {"rows": rows, "cols": cols, "T": T, "S": S}, generator
                )
                kept = tally.asked
            seen = np.maximum(T, 1.0)
            bound = S / seen - width * np.sqrt(
                np.log(np.log((1.0 + eps) * seen + 2.0) / delta) / seen
            )
            size = min(at_once, total - tally.asked, len(rows))
            wanted = (
                np.argpartition(bound, size - 1)[:size]
                if size < len(rows)
                else np.arange(len(rows))
            )
            yield from pull(tally, rows[wanted], cols[wanted], np.ones(size, np.int64))
            T[wanted], S[wanted] = tally.look(rows[wanted], cols[wanted])
    except Exhausted:
        status = "exhausted"
    mean = np.where(T > 0, S / np.maximum(T, 1.0), np.inf)
    best = np.lexsort((generator.random(len(T)), mean, -T))[0]
    report = {"most pulls": int(T.max()), "arms": arms}
    return finish(tally, (int(rows[best]), int(cols[best])), status, report)
