"""Which model of a crowd the answers ask for: a race of Dawid-Skene models, decided by their evidence."""

from __future__ import annotations

import numpy as np

from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.dawid_skene import (
    SAME,
    CrowdFit,
    apart,
    fit_coin,
    fit_full,
    fit_vote,
    table_counts,
)
from entrywise.types import Array

# Set on made crowds of seven sizes and six kinds, so that labels stay within a tenth of a point of the vote or above.
MARGIN = 0.04  # nats an item that a suppler model must gain
FINE = 0.02  # nats an item between two models that explain the same surplus
LEAST = 8.0  # nats in all, where items are few
CLEAR = 3.0  # nats in all that skills must gain over the vote
ENOUGH = 30  # answers of a worker: half of all must come from such, or one skill a worker is all that is learned
COARSE = 2e-3  # mean change at which the race ends
CLOSE = 0.01  # nats an item that the race may err by
TABLE_LIMIT = 20_000_000  # numbers in the confusion matrices


def choose(
    answers: CrowdAnswers, rank_one: Array | None = None, shares: str = "auto"
) -> tuple[CrowdFit, dict[str, float]]:
    """Return the model that the answers ask for, and the evidence of all.

    With few answers a worker only ``vote`` and ``one-coin`` with equal shares compete: they do not fall below the
    majority vote. Else confusion matrices must gain `MARGIN` nats an item over one coin. Free class shares and a bias common to all
    workers explain the same surplus of one answer, and where the answers cannot tell them apart neither is used:
    free shares must gain `MARGIN` over equal ones, and `FINE` over the rival.

    All models race coarsely first; where no choice hangs on less than `CLOSE` nats an item, only the winner goes on.
    A winner that loses the names of classes is left: for the coins, and where these lose them too for the other
    confusion matrices.
    """
    many = float(answers.per_worker[answers.per_worker >= ENOUGH].sum()) >= 0.5 * len(answers)
    small = len(answers.workers) * len(answers.classes) ** 2 <= TABLE_LIMIT
    free = [False, True][: 1 + many] if shares == "auto" else [shares == "free"]
    n = len(answers.items)
    vote = fit_vote(answers)
    coins = [fit_coin(answers, vote.q, shares=free[0], tol=COARSE)]
    coins += [fit_coin(answers, coins[0], shares=f, tol=COARSE) for f in free[1:]]
    fulls: list[CrowdFit] = []
    if small and many:
        # else equal shares tell nothing of free ones
        alike = coins[-1].evidence < coins[0].evidence + FINE * n
        goal = coins[0].evidence + (MARGIN - CLOSE) * n if alike else -np.inf
        fulls = [fit_full(answers, vote.q, shares=free[0], tol=COARSE, goal=goal)]
        if fulls[0].evidence > goal:
            begin = fulls[0] if alike else vote.q
            fulls += [fit_full(answers, begin, shares=f, tol=COARSE) for f in free[1:]]
    fits = [[vote], coins, fulls]
    found = _race(answers, fits, rank_one)
    raced = sorted((f for kind in fits for f in kind), key=_evidence)
    every = {f.name: float(f.evidence) for f in raced}
    if keeps_names(answers, found):
        return found, every
    others = [f for f in fulls if f.name != found.name]
    for coins_left, fulls_left in ((coins, []), (coins[:1], others), (coins[:1], [])):
        found = _race(answers, [[vote], coins_left, fulls_left], rank_one)
        if keeps_names(answers, found):
            break
    return found, every


def _race(answers: CrowdAnswers, fits: list[list[CrowdFit]], rank_one: Array | None) -> CrowdFit:
    """Return the model that the evidence asks for, converged, and from the better of two starts."""
    n = len(answers.items)
    found, slack = _decide(fits, n)
    if slack < CLOSE * n:
        fits[:] = [[polish(answers, f) for f in kind] for kind in fits]
        found, _ = _decide(fits, n)
    else:
        found = polish(answers, found)
    if rank_one is not None and found.model != "vote":
        found = refit(answers, found, rank_one)
    return found


def keeps_names(answers: CrowdAnswers, found: CrowdFit) -> bool:
    """Whether an answer is likeliest, in the crowd as a whole, where it is true.

    Confusion matrices explain answers as well with two classes exchanged, and at times better: where two are hard to tell
    apart and the most doubtful items were asked most. Free class shares may give every item to one class, and call all
    other answers errors.
    """
    if found.coin and not found.shares:
        return True
    labels = np.eye(found.q.shape[1])[found.q.argmax(axis=1)]
    counts = table_counts(answers, labels) if found.coin else found.counts
    pooled = counts.sum(axis=0) + 1e-9  # (answer, truth)
    chance = pooled / pooled.sum(axis=0)
    return bool(np.all(chance.argmax(axis=1) == np.arange(len(chance))))


def _decide(fits: list[list[CrowdFit]], n: int) -> tuple[CrowdFit, float]:
    """Return the model that the evidence asks for, and the nats by which the nearest decision was taken."""
    (vote,), coins, fulls = fits
    wide, fine = max(MARGIN * n, LEAST), max(FINE * n, LEAST / 2)
    slack = np.inf

    def beats(a: float, b: float) -> bool:
        nonlocal slack
        slack = min(slack, abs(a - b))
        return a > b

    found = coins[0] if beats(coins[0].evidence, vote.evidence + CLEAR) else vote
    best = max(found, coins[-1], key=_evidence)
    if fulls and beats(max(f.evidence for f in fulls), best.evidence + wide):
        if len(fulls) > 1:
            return fulls[int(beats(fulls[1].evidence, fulls[0].evidence + fine))], slack
        return fulls[0], slack
    if len(coins) > 1:
        rivals = [found.evidence + wide, *(f.evidence + fine for f in fulls[:-1])]
        if beats(coins[1].evidence, max(rivals)):
            found = coins[1]
    return found, slack


def polish(answers: CrowdAnswers, found: CrowdFit) -> CrowdFit:
    """Go on with a coarse fit until it has converged."""
    if found.model == "vote":
        return found
    return (fit_coin if found.coin else fit_full)(answers, found, shares=found.shares)


def refit(answers: CrowdAnswers, found: CrowdFit, start: Array) -> CrowdFit:
    """Fit the same model from another start too, and keep the higher evidence.

    Turning all workers of a neighbourhood upside down explains their answers as well as before; so the other
    start must not part from the vote by more than `FINE` of the answers. Where it leads to the same place it is left.
    """
    fit = fit_coin if found.coin else fit_full
    again = fit(answers, start, shares=found.shares, near=found.q)
    if apart(again.q, found.q) < SAME:
        return found
    items = np.arange(len(answers.items))
    with_vote = [float(answers.votes[items, f.q.argmax(axis=1)].mean()) for f in (found, again)]
    better = again.evidence > found.evidence and with_vote[1] >= with_vote[0] - FINE
    return again if better else found


def _evidence(fit: CrowdFit) -> float:
    return fit.evidence
