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

from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.extrapolation import climb
from entrywise.types import Array, Indices

STRENGTH = (0.3, 1000.0)  # bounds of the prior's strength, in answers
LAST = 4  # fixed-point steps of the prior's strength before evidence is told
AGAIN = 16.0  # how far a fit that goes on may jump at first
SAME = 0.02  # mean distance at which two posteriors are one
LOOKED_AT = 20_000  # items that tell that distance to a hundredth of it
USUAL = (2.8, 1.2)  # the coin's prior at the start: four answers, seven in ten right
POOLED = 4.0  # the tables' prior at the start, in answers, at the pooled shares
LOGS = 7.0  # logarithms of a prior's strength stay within so much of 0: STRENGTH, with room
HOPE = 10.0  # a fit is left when even so many more rises like the last would not reach the goal


@dataclass(frozen=True, eq=False)
class CrowdFit:
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


def learn_strength(answers: CrowdAnswers, counts: Array, prior: Array, steps: int = 4) -> Array:
    """Return a better Dirichlet prior of shape (outcomes, C) for `counts` of shape (W, outcomes, C)."""
    return np.asarray(answers.steps.learn_strength(counts, prior, steps, *STRENGTH))


def fit_vote(answers: CrowdAnswers, tol: float = 1e-4, most: int = 50) -> CrowdFit:
    """All workers have one skill in common: the vote, with a posterior. Items with equal counts are one."""
    n, k = answers.tally.shape
    total = float(len(answers))
    votes, inverse, many = _patterns(answers.tally)
    q, size = votes / votes.sum(axis=1, keepdims=True), np.ones((k, 1))
    p, gain = 0.5, 0.0

    def step(x: Array) -> tuple[Array, float]:
        nonlocal p, gain, q
        p = (float(x[0]) + 1.0) / (total + 2.0)
        gain = np.log(p / (1.0 - p)) + np.log(k - 1.0)
        new = np.exp(gain * (votes - votes.max(axis=1, keepdims=True)))
        new /= new @ size
        change, q = float(many @ np.abs(new - q).sum(axis=1)) / n, new
        return np.array([float(many @ (new * votes).sum(axis=1))]), change

    x = np.array([float(many @ (q * votes).sum(axis=1))])
    x, iterations = climb(step, x, lambda x: np.clip(x, 0.0, total), tol=tol, most=most)
    right = float(x[0])
    evidence = float(many @ entr(q).sum(axis=1)) - n * np.log(k) - (total - right) * np.log(k - 1.0)
    evidence += float(_log_beta(np.array([right + 1.0, total - right + 1.0]), 0))
    strength = np.array([p, 1.0 - p]) * STRENGTH[1]
    every = q[inverse]
    gains = np.full((len(answers.workers), 1, 1), gain)
    return CrowdFit(
        model="vote",
        shares=False,
        q=every,
        evidence=evidence,
        prior=np.full(k, -np.log(k)),
        table=gains,
        counts=coin_counts(answers, every),
        strength=strength,
        iterations=iterations,
    )


def _patterns(votes: Indices) -> tuple[Indices, Indices, Array]:
    """Distinct rows of counts, the row of each item, and how many items have it."""
    k, base = votes.shape[1], int(votes.max()) + 1
    if base**k > 2**62:
        rows, inverse, many = np.unique(votes, axis=0, return_inverse=True, return_counts=True)
        return rows, inverse.ravel(), many.astype(np.float64)
    power = base ** np.arange(k)
    code = votes[:, 0].copy()
    for c in range(1, k):
        code += votes[:, c] * power[c]
    if base**k <= 4 * len(votes):
        count = np.bincount(code)
        codes = np.flatnonzero(count)
        inverse, many = (np.cumsum(count > 0) - 1)[code], count[codes]
    else:
        codes, inverse, many = np.unique(code, return_inverse=True, return_counts=True)
    return (codes[:, None] // power) % base, inverse, many.astype(np.float64)


def fit_coin(
    answers: CrowdAnswers,
    start: Array | CrowdFit | None = None,
    *,
    shares: bool,
    tol: float = 1e-4,
    most: int = 200,
    near: Array | None = None,
) -> CrowdFit:
    """Every worker is right with a chance of its own, whatever the class.

    `start` is a posterior of the items, or a fit to go on from. With `near`, it also ends where the posterior comes
    that close to `near`: it is on the way there.
    """
    W, k = len(answers.workers), len(answers.classes)
    given = answers.per_worker
    q, hits = _begin(answers, start), np.empty(W)
    if isinstance(start, CrowdFit) and start.model == "one-coin":
        x = np.concatenate([start.counts, answers.steps.class_totals(q), np.log(start.strength)])
    else:
        x = np.concatenate([coin_counts(answers, q), answers.steps.class_totals(q), np.log(USUAL)])
    gain, prior, entropy = np.empty(W), np.empty(k), 0.0

    def step(x: Array) -> tuple[Array, float]:
        nonlocal gain, prior, entropy
        N = np.column_stack([x[:W], given - x[:W]])[:, :, None]
        strength = learn_strength(answers, N, np.exp(x[-2:, None]))[:, 0]
        p = (x[:W] + strength[0]) / (given + strength.sum())
        gain = np.log(p / (1.0 - p)) + np.log(k - 1.0)
        prior = _log_shares(x[W:-2], shares)
        change, entropy = coin_step(answers, prior, gain, q, hits)
        if near is not None:
            change = min(change, apart(q, near))
        return np.concatenate([hits, answers.steps.class_totals(q), np.log(strength)]), change

    low = np.r_[np.zeros(W + k), -LOGS, -LOGS]
    top = np.r_[given, np.full(k, float(len(q))), LOGS, LOGS]
    reach = AGAIN if isinstance(start, CrowdFit) else 1.0
    x, iterations = climb(step, x, lambda x: np.clip(x, low, top), tol=tol, most=most, reach=reach)
    N = np.column_stack([hits, given - hits])
    strength = learn_strength(answers, N[:, :, None], np.exp(x[-2:, None]), LAST)[:, 0]
    evidence = entropy + float((_log_beta(N + strength, 1) - _log_beta(strength, 0)).sum())
    evidence += -float(N[:, 1].sum()) * np.log(k - 1.0) + _share_evidence(answers, q, shares)
    return CrowdFit(
        model="one-coin",
        shares=shares,
        q=q,
        evidence=evidence,
        prior=prior,
        table=gain[:, None, None],
        counts=hits,
        strength=strength,
        iterations=iterations,
    )


def fit_full(
    answers: CrowdAnswers,
    start: Array | CrowdFit | None = None,
    *,
    shares: bool,
    tol: float = 1e-4,
    most: int = 200,
    near: Array | None = None,
    goal: float = -np.inf,
) -> CrowdFit:
    """Every worker has a confusion matrix of its own; `start` and `near` as in :func:`fit_coin`.

    It is left, from the third step on, when the evidence, were it to rise ten times as much as by the last step, would
    still be below `goal`.
    """
    W, k = len(answers.workers), len(answers.classes)
    q, counts = _begin(answers, start), np.empty((W, k, k))
    size = W * k * k
    if isinstance(start, CrowdFit) and not start.coin:
        first, strength = start.counts, start.strength
    else:
        first = table_counts(answers, q)
        pooled = first.sum(axis=0) + 0.1  # (answer, truth)
        strength = POOLED * pooled / pooled.sum(axis=0)
    x = np.concatenate([first.ravel(), answers.steps.class_totals(q), np.log(strength).ravel()])
    table, prior, entropy = np.empty((W, k, k)), np.empty(k), 0.0
    told: list[float] = []

    def evidence(strength: Array) -> float:
        tables = _log_beta(counts + strength, 1) - _log_beta(strength, 0)
        return entropy + float(tables.sum()) + _share_evidence(answers, q, shares)

    def step(x: Array) -> tuple[Array, float]:
        nonlocal table, prior, entropy
        before = x[:size].reshape(W, k, k)
        strength = learn_strength(answers, before, np.exp(x[size + k :]).reshape(k, k))
        table = before + strength
        table = np.log(table) - np.log(table.sum(axis=1, keepdims=True))
        prior = _log_shares(x[size : size + k], shares)
        change, entropy = table_step(answers, prior, table, q, counts)
        if goal > -np.inf:
            told.append(evidence(strength) if told else -np.inf)
            if len(told) > 2 and told[-1] + HOPE * max(told[-1] - told[-2], 0.0) < goal:
                change = 0.0
        if near is not None:
            change = min(change, apart(q, near))
        return np.concatenate(
            [counts.ravel(), answers.steps.class_totals(q), np.log(strength).ravel()]
        ), change

    def valid(x: Array) -> Array:
        counted, logs = x[: size + k], x[size + k :]
        x = np.concatenate([np.maximum(counted, 0.0), np.clip(logs, -LOGS, LOGS)])
        part = x[:size].reshape(W, k, k)
        # over the truths it sums to how often the worker gave the answer
        part *= (answers.said / np.maximum(part.sum(axis=2), 1e-300))[:, :, None]
        return x

    reach = AGAIN if isinstance(start, CrowdFit) else 1.0
    x, iterations = climb(step, x, valid, tol=tol, most=most, reach=reach)
    strength = learn_strength(answers, counts, np.exp(x[size + k :]).reshape(k, k), LAST)
    return CrowdFit(
        model="dawid-skene",
        shares=shares,
        q=q,
        evidence=evidence(strength),
        prior=prior,
        table=table,
        counts=counts,
        strength=strength,
        iterations=iterations,
    )


def _begin(answers: CrowdAnswers, start: Array | CrowdFit | None) -> Array:
    if isinstance(start, CrowdFit):
        return start.q.copy()
    return (answers.votes if start is None else start).copy()


def apart(q: Array, other: Array) -> float:
    """Mean over items, `LOOKED_AT` or more through the list, of how far two posteriors lie apart; 0 below `SAME`."""
    some = slice(None, None, max(1, len(q) // LOOKED_AT))
    mean = float(np.abs(q[some] - other[some]).sum()) / len(q[some])
    return 0.0 if mean < SAME else mean


def coin_counts(answers: CrowdAnswers, q: Array) -> Array:
    """Expected right answers of each worker."""
    hits = np.empty(len(answers.workers))
    answers.steps.coin_counts(answers.start, answers.worker, answers.label, q, hits)
    return hits


def doubt_counts(answers: CrowdAnswers, q: Array) -> tuple[Array, Array, Array]:
    """Expected right answers of each worker, their variance, and the doubt about the items it answered, summed."""
    sums = np.empty((len(answers.workers), 3))
    answers.steps.doubt_counts(answers.start, answers.worker, answers.label, q, sums)
    return sums[:, 0], sums[:, 1], sums[:, 2]


def table_counts(answers: CrowdAnswers, q: Array) -> Array:
    """Expected counts of (answer, truth) of each worker, shape (W, k, k)."""
    k = q.shape[1]
    counts = np.empty((len(answers.workers), k, k))
    answers.steps.table_counts(answers.start, answers.worker, answers.label, q, counts)
    return counts


def coin_step(
    answers: CrowdAnswers, prior: Array, gain: Array, q: Array, hits: Array
) -> tuple[float, float]:
    """One pass with each worker's gain in nats: overwrites the posterior and the expected right answers.

    Returns the mean change of the posterior, and its entropy.
    """
    if q.shape[1] > 2:
        change, entropy = answers.steps.coin_step(
            answers.start, answers.worker, answers.label, prior, gain, q, hits
        )
        return float(change), float(entropy)
    ones, weight = np.empty(2 * len(gain)), np.empty(2 * len(gain))
    weight[::2], weight[1::2] = -gain, gain
    change, entropy = answers.steps.binary_step(
        answers.start, answers.code, prior[1] - prior[0], weight, q, ones
    )
    hits[:] = answers.said[:, 0] - ones[::2] + ones[1::2]
    return float(change), float(entropy)


def table_step(
    answers: CrowdAnswers, prior: Array, table: Array, q: Array, counts: Array
) -> tuple[float, float]:
    """One pass with log confusion tables, as :func:`coin_step`; overwrites the expected counts."""
    if q.shape[1] > 2:
        change, entropy = answers.steps.table_step(
            answers.start, answers.worker, answers.label, prior, table, q, counts
        )
        return float(change), float(entropy)
    ones = np.empty(2 * len(table))
    weight = (table[:, :, 1] - table[:, :, 0]).ravel()
    change, entropy = answers.steps.binary_step(
        answers.start, answers.code, prior[1] - prior[0], weight, q, ones
    )
    counts[:, :, 1] = np.minimum(ones.reshape(-1, 2), answers.said)
    counts[:, :, 0] = answers.said - counts[:, :, 1]
    return float(change), float(entropy)


def _log_shares(count: Array, shares: bool) -> Array:
    """Log shares of the classes from the expected number of items in each."""
    if not shares:
        return np.full(len(count), -np.log(len(count)))
    return np.asarray(np.log((count + 1.0) / (count + 1.0).sum()))


def _share_evidence(answers: CrowdAnswers, q: Array, shares: bool) -> float:
    n, k = q.shape
    if not shares:
        return float(-n * np.log(k))
    return float(_log_beta(answers.steps.class_totals(q) + 1.0, 0) - _log_beta(np.ones(k), 0))


def _log_beta(a: Array, axis: int) -> Array:
    return np.asarray(gammaln(a).sum(axis=axis) - gammaln(a.sum(axis=axis)))
