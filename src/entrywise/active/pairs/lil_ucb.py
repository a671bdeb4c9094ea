"""lil'UCB over all pairs: upper confidence bounds from the law of the iterated logarithm."""

from __future__ import annotations

import math

import numpy as np

from entrywise.active.pairs.race import Race
from entrywise.active.pairs.tally import BestPair, count_pairs, finish, pull, pulls_for
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint, History, Prices, plan
from entrywise.types import Array, Seed, generator

STEPS = 500  # batches that the budget is pulled in
CHECKPOINTS = 20  # places to resume


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def lil_ucb(
    n: int,
    prices: Prices | None = None,
    *,
    budget: float,
    delta: float = 0.005,
    heuristic: bool = False,
    noise: float = 0.5,
    batch: int | None = None,
    diagonal: bool = False,
    rng: Seed = None,
    resume: Checkpoint | None = None,
    history: History | None = None,
) -> Asking[BestPair]:
    r"""Find the smallest entry of a symmetric matrix by pulling where the confidence bound is lowest.

    .. math:: \hat\mu_a - (1 + \beta)(1 + \sqrt\varepsilon)
              \sqrt{\frac{2 \sigma^2 (1 + \varepsilon)}{T_a} \log\frac{\log((1 + \varepsilon) T_a + 2)}{\delta}}

    Parameters
    ----------
    n : int
    prices : Prices, optional
        Price of an answer, one number.
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

    Notes
    -----
    The constants are those of the authors' experiments. Their analysis asks for delta below
    log(1 + epsilon) / e, .0037 at epsilon = .01, and for single pulls; with the default delta = .005, with ``heuristic`` (epsilon
    = 0) or in batches it promises nothing.

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
    total = pulls_for(n, prices, budget, diagonal, "lil_ucb")
    if not 0 < delta < 1:
        raise ParameterError(f"delta of lil_ucb must be between 0 and 1, got {delta}")
    if not (np.isfinite(noise) and noise > 0) or (batch is not None and batch < 1):
        raise ParameterError(f"noise must be above 0 and batch at least 1, got {noise} and {batch}")
    arms = count_pairs(n, diagonal)
    eps, beta, lam = (0.0, 0.5, 1.0 + 10.0 / arms) if heuristic else (0.01, 1.0, 9.0)
    width = (1.0 + beta) * (1.0 + math.sqrt(eps)) * noise * math.sqrt(2.0 * (1.0 + eps))
    at_once = max(1, total // STEPS) if batch is None else batch
    race = Race(n, total, diagonal, generator(rng), resume, history)
    tally, rows, cols = race.tally, race.rows, race.cols
    T, S = race.look()  # pulls of each arm, and the sum of its answers
    status, kept = "finished", tally.asked
    try:
        new = np.flatnonzero(T == 0)
        if tally.asked == 0 and total and len(new):  # 1  every arm once
            yield from pull(tally, rows[new], cols[new], np.ones(len(new), np.int64))
            T, S = race.look()
        while race.left > 0 and T.max() < 1.0 + lam * (T.sum() - T.max()):  # 2
            if tally.asked - kept >= max(1, total // CHECKPOINTS):
                yield race.checkpoint()
                kept = tally.asked
            size = min(at_once, race.left, len(rows))
            wanted = np.arange(len(rows))
            if size < len(rows):
                bound = _lower_bound(T, S, width, eps, delta)
                wanted = np.argpartition(bound, size - 1)[:size]  # 3  those of the lowest bound
            yield from pull(tally, rows[wanted], cols[wanted], np.ones(size, np.int64))
            T[wanted], S[wanted] = tally.look(rows[wanted], cols[wanted])  # 4
    except Exhausted:
        status = "exhausted"
    mean = np.where(T > 0, S / np.maximum(T, 1.0), np.inf)
    best = np.lexsort((race.rng.random(len(T)), mean, -T))[0]  # 5  the arm pulled most
    report = {"most_pulls": int(T.max()), "arms": arms}
    return finish(tally, (int(rows[best]), int(cols[best])), status, report)


def _lower_bound(T: Array, S: Array, width: float, eps: float, delta: float) -> Array:
    """Return the lower end of each arm's confidence interval after T pulls that add up to S."""
    seen = np.maximum(T, 1.0)
    log = np.log(np.log((1.0 + eps) * seen + 2.0) / delta)
    return np.asarray(S / seen - width * np.sqrt(log / seen))
