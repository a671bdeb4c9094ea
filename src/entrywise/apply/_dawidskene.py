r"""Dawid-Skene models of a crowd, fitted by expectation-maximisation with learned shrinkage.

Worker w says l about an item of class c with chance :math:`\theta^w_{cl}`. Rows of :math:`\theta` are drawn from a
Dirichlet law common to all workers, whose mean and strength are learned from the counts (empirical Bayes): few
answers a worker, or workers alike, and all shrink to the common row; then the labels are the majority vote's.
Five models, from stiff to supple: ``vote`` (one skill for all), ``one-coin`` (one skill a worker) and
``dawid-skene`` (a confusion matrix a worker), the last two with equal or with free class shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, gammaln

from entrywise.apply._answers import Answers
from entrywise.queries import Array

STRENGTH = (0.3, 1000.0)  # bounds of the prior's strength, in answers
MARGIN, FINE, LEAST = 0.04, 0.02, 8.0  # nats an item that a suppler model must gain, and nats in all
CLEAR = 3.0  # nats in all that skills must gain over the vote
ENOUGH = (
    30  # answers: half of all must come from workers who gave as many, or one skill a worker is all that is learned
)
TABLE_LIMIT = 20_000_000  # numbers in the confusion matrices


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model.

    ``q`` of shape (n, k) is the posterior of the items' classes, ``evidence`` a lower bound on the log marginal
    likelihood, ``table`` the log confusion (W, answer, truth), or (W, 1, 1) gains in nats under one coin.
    """

    model: str
    shares: bool
    q: Array
    evidence: float
    prior: Array
    table: Array
    counts: Array
    strength: Array
    iterations: int

    @property
    def coin(self) -> bool:
        """Whether workers have one skill each, or one in all."""
        return self.model != "dawid-skene"

    @property
    def name(self) -> str:
        """The model and its class shares."""
        return self.model + (", free class shares" if self.shares else ", equal class shares")


def learn_strength(counts: Array, prior: Array, steps: int = 4) -> Array:
    """Return a better Dirichlet prior of shape (outcomes, C) for `counts` of shape (W, outcomes, C)."""
    from entrywise.linalg import _jit_crowd as jit

    return np.asarray(jit.learn_strength(counts, prior, steps, *STRENGTH))


def fit_vote(answers: Answers, tol: float = 1e-4, most: int = 50) -> Fit:
    """All workers have one skill in common: the vote, with a posterior."""
    from entrywise.linalg import _jit_crowd as jit

    n, k = answers.votes.shape
    W, total = len(answers.workers), float(len(answers))
    q, hits, prior = answers.votes.copy(), np.empty(W), np.full(k, -np.log(k))
    jit.coin_counts(answers.start, answers.worker, answers.label, q, hits)
    for step in range(1, most + 1):
        p = (hits.sum() + 1.0) / (total + 2.0)
        gain = np.full(W, np.log(p / (1.0 - p)) + np.log(k - 1.0))
        change = _coin_step(answers, prior, gain, q, hits)
        iterations = step
        if change < tol:
            break
    right = hits.sum()
    evidence = _entropy(q) - n * np.log(k) - (total - right) * np.log(k - 1.0)
    evidence += float(_log_beta(np.array([right + 1.0, total - right + 1.0]), 0))
    strength = np.array([p, 1.0 - p]) * STRENGTH[1]
    return Fit("vote", False, q, evidence, prior, gain[:, None, None], hits, strength, iterations)


def fit_coin(answers: Answers, start: Array | None = None, *, shares: bool, tol: float = 1e-4, most: int = 200) -> Fit:
    """Every worker is right with a chance of its own, whatever the class."""
    from entrywise.linalg import _jit_crowd as jit

    k = len(answers.classes)
    given = answers.per_worker
    q, hits = (answers.votes if start is None else start).copy(), np.empty(len(given))
    strength = np.array([2.8, 1.2])
    jit.coin_counts(answers.start, answers.worker, answers.label, q, hits)
    for step in range(1, most + 1):
        strength = learn_strength(np.column_stack([hits, given - hits])[:, :, None], strength[:, None])[:, 0]
        p = (hits + strength[0]) / (given + strength.sum())
        gain, prior = np.log(p / (1.0 - p)) + np.log(k - 1.0), _log_shares(q, shares)
        change = _coin_step(answers, prior, gain, q, hits)
        iterations = step
        if change < tol:
            break
    N = np.column_stack([hits, given - hits])
    evidence = _entropy(q) + float((_log_beta(N + strength, 1) - _log_beta(strength, 0)).sum())
    evidence += -float(N[:, 1].sum()) * np.log(k - 1.0) + _share_evidence(q, shares)
    return Fit("one-coin", shares, q, evidence, prior, gain[:, None, None], hits, strength, iterations)


def fit_full(answers: Answers, start: Array | None = None, *, shares: bool, tol: float = 1e-4, most: int = 200) -> Fit:
    """Every worker has a confusion matrix of its own."""
    from entrywise.linalg import _jit_crowd as jit

    k = len(answers.classes)
    q, counts = (answers.votes if start is None else start).copy(), np.empty((len(answers.workers), k, k))
    jit.table_counts(answers.start, answers.worker, answers.label, q, counts)
    pooled = counts.sum(axis=0) + 0.1  # (answer, truth)
    strength = 4.0 * pooled / pooled.sum(axis=0)
    for step in range(1, most + 1):
        strength = learn_strength(counts, strength)
        table = counts + strength
        table = np.log(table) - np.log(table.sum(axis=1, keepdims=True))
        prior = _log_shares(q, shares)
        change = _table_step(answers, prior, table, q, counts)
        iterations = step
        if change < tol:
            break
    evidence = _entropy(q) + float((_log_beta(counts + strength, 1) - _log_beta(strength, 0)).sum())
    return Fit(
        "dawid-skene", shares, q, evidence + _share_evidence(q, shares), prior, table, counts, strength, iterations
    )


def choose(answers: Answers, rank_one: Array | None = None, shares: str = "auto") -> tuple[Fit, dict[str, float]]:
    """Return the model that the answers ask for, and the evidence of all.

    With few answers a worker only ``vote`` and ``one-coin`` with equal shares compete: they do not fall below the
    majority vote. Else confusion matrices must gain `MARGIN` nats an item over one coin. Free class shares and a bias common to all
    workers explain the same surplus of one answer, and where the answers cannot tell them apart neither is used:
    free shares must gain `MARGIN` over equal ones, and `FINE` over the rival.
    """
    n = len(answers.items)
    wide, fine = max(MARGIN * n, LEAST), max(FINE * n, LEAST / 2)
    many = float(answers.per_worker[answers.per_worker >= ENOUGH].sum()) >= 0.5 * len(answers)
    small = len(answers.workers) * len(answers.classes) ** 2 <= TABLE_LIMIT
    free = [False, True][: 1 + many] if shares == "auto" else [shares == "free"]
    coins = [fit_coin(answers, shares=f) for f in free]
    fulls = [fit_full(answers, shares=f) for f in free] if small and many else []
    vote = fit_vote(answers)
    fits = [vote, *coins, *fulls]
    found = coins[0] if coins[0].evidence > vote.evidence + CLEAR else vote
    best = max(found, coins[-1], key=_evidence)
    if fulls and max(f.evidence for f in fulls) > best.evidence + wide:
        found = fulls[-1] if fulls[-1].evidence > fulls[0].evidence + fine else fulls[0]
    elif coins[-1].evidence > max([found.evidence + wide] + [f.evidence + fine for f in fulls[:-1]]):
        found = coins[-1]
    if rank_one is not None and found.model != "vote":
        found = refit(answers, found, rank_one)
    return found, {f.name: float(f.evidence) for f in sorted(fits, key=_evidence)}


def refit(answers: Answers, found: Fit, start: Array) -> Fit:
    """Fit the same model from another start too, and keep the higher evidence.

    Turning all workers of a neighbourhood upside down explains their answers as well as before; so the other
    start must not part from the vote by more than `FINE` of the answers.
    """
    again = (fit_coin if found.coin else fit_full)(answers, start, shares=found.shares)
    items = np.arange(len(answers.items))
    with_vote = [float(answers.votes[items, f.q.argmax(axis=1)].mean()) for f in (found, again)]
    return again if again.evidence > found.evidence and with_vote[1] >= with_vote[0] - FINE else found


def _coin_step(answers: Answers, prior: Array, gain: Array, q: Array, hits: Array) -> float:
    from entrywise.linalg import _jit_crowd as jit

    if q.shape[1] > 2:
        return float(jit.coin_step(answers.start, answers.worker, answers.label, prior, gain, q, hits))
    ones = np.empty(2 * len(gain))
    weight = np.column_stack([-gain, gain]).ravel()
    change = jit.binary_step(answers.start, answers.code, prior[1] - prior[0], weight, q, ones)
    hits[:] = answers.said[:, 0] - ones[::2] + ones[1::2]
    return float(change)


def _table_step(answers: Answers, prior: Array, table: Array, q: Array, counts: Array) -> float:
    from entrywise.linalg import _jit_crowd as jit

    if q.shape[1] > 2:
        return float(jit.table_step(answers.start, answers.worker, answers.label, prior, table, q, counts))
    ones = np.empty(2 * len(table))
    weight = (table[:, :, 1] - table[:, :, 0]).ravel()
    change = jit.binary_step(answers.start, answers.code, prior[1] - prior[0], weight, q, ones)
    counts[:, :, 1] = np.minimum(ones.reshape(-1, 2), answers.said)
    counts[:, :, 0] = answers.said - counts[:, :, 1]
    return float(change)


def _entropy(q: Array) -> float:
    return float(entr(q).sum())


def _evidence(fit: Fit) -> float:
    return fit.evidence


def _log_shares(q: Array, shares: bool) -> Array:
    if not shares:
        return np.full(q.shape[1], -np.log(q.shape[1]))
    count = np.ones(len(q)) @ q + 1.0
    return np.asarray(np.log(count / count.sum()))


def _share_evidence(q: Array, shares: bool) -> float:
    n, k = q.shape
    if not shares:
        return float(-n * np.log(k))
    return float(_log_beta(q.sum(axis=0) + 1.0, 0) - _log_beta(np.ones(k), 0))


def _log_beta(a: Array, axis: int) -> Array:
    return np.asarray(gammaln(a).sum(axis=axis) - gammaln(a.sum(axis=axis)))
