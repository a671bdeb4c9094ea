"""Labels and worker skills from the answers of a crowd, without any truth.

Workers who agree with others are right more often: agreement between workers is a rank-one matrix of their skills,
seen where they share items. Completing it gives a start; a Dawid-Skene model with learned shrinkage gives the
labels, and which model (vote, one coin, confusion matrices) the answers themselves decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.apply._agreement import Skills, rank_one_skills
from entrywise.apply._answers import Answers, Names, Repeats
from entrywise.apply._dawidskene import Fit, coin_step, fit_coin, fit_full, fit_vote
from entrywise.apply._race import TABLE_LIMIT, choose, refit
from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.results import Interval, Result
from entrywise.types import Array, Indices

Model = Literal["auto", "vote", "one-coin", "dawid-skene"]
Shares = Literal["auto", "equal", "free"]
SHRINK = 20.0  # pseudo-answers at the mean skill, for the rank-one start
TESTED = 10_000  # answers set aside to choose the exponent of the confidence
FIRM = 5.0  # most answers that the crowd's common law may weigh in a worker's skill


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Consensus(Result):
    """Labels of items and skills of workers.

    Parameters
    ----------
    items, labels : ndarray of shape (n,)
        Names of the items in order of appearance, and the label found for each.
    confidence : ndarray of shape (n,)
        Chance that the label is right; NaN where the skill of none of its workers can be told.
    probabilities : ndarray of shape (n, k)
        Chance of each of the `classes`, of shape (k,).
    workers, answers : ndarray of shape (W,)
        Names of the workers and how many answers each gave.
    skill, deviation : ndarray of shape (W,)
        Chance that an answer of the worker is right, and its standard deviation; NaN where it cannot be told.
    informed : ndarray of shape (W,)
        1 always right, 0 a coin (answers that do not depend on the truth), below 0 adversarial.
    kinds : ndarray of str of shape (W,)
        ``reliable``, ``coin``, ``adversarial``, ``unclear`` (too few answers) or ``not comparable``.
    component : ndarray of int64 of shape (W,)
        Workers of different components share no item, not even through others.
    """

    items: Names
    labels: Names
    confidence: Array
    probabilities: Array
    classes: Names
    workers: Names
    answers: Indices
    skill: Array
    deviation: Array
    informed: Array
    kinds: Names
    component: Indices

    def interval(self, level: float = 0.95) -> Interval:
        """Return where each worker's skill lies with chance `level`, NaN where it cannot be told."""
        from scipy.stats import beta

        if not 0 < level < 1:
            raise ParameterError(f"level must be between 0 and 1, got {level}")
        m, v = self.skill, self.deviation**2
        size = np.maximum(
            m * (1.0 - m) / v - 1.0, 1e-3
        )  # the Beta law with this mean and deviation
        low, high = (
            beta.ppf(x, m * size, (1.0 - m) * size) for x in ((1 - level) / 2, (1 + level) / 2)
        )
        return Interval(np.asarray(low), np.asarray(high))


def consensus(
    items: ArrayLike,
    workers: ArrayLike,
    labels: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    model: Model = "auto",
    shares: Shares = "auto",
    repeats: Repeats = "refuse",
) -> Consensus:
    r"""Infer the label of every item and the skill of every worker from who said what.

    .. math:: P(c \mid \text{answers}) \propto \pi_c \prod_{w} \theta^{w}_{c, \ell_w}, \qquad
              \theta^w_c \sim \mathrm{Dirichlet}(\alpha_c)

    Parameters
    ----------
    items, workers, labels : array-like of shape (t,)
        Answer t: this worker gave this label to this item. Numbers or text; text is never parsed.
    classes : array-like, optional
        All classes there are, when some were never chosen.
    model : {"auto", "vote", "one-coin", "dawid-skene"}
        One skill for all, one a worker, or a confusion matrix a worker. ``auto`` takes the stiffest that
        explains the answers: confusion matrices must raise the evidence by 0.04 nats an item, and are tried only
        where half of the answers come from workers who gave 30 or more.
    shares : {"auto", "equal", "free"}
        Whether classes are taken as equally frequent. A class that is rare and a crowd that shuns it look alike
        when answers are few; ``auto`` learns the shares only where the answers tell the two apart.
    repeats : {"refuse", "first", "last", "keep"}
        What to do with a worker who answered an item twice.

    Returns
    -------
    Consensus

    Notes
    -----
    The prior :math:`\alpha` common to all workers is learned, so that with few answers a worker the labels go to the
    majority vote's and do not fall below it. Expectation-maximisation starts at the vote and at rank-one skills,
    and the higher evidence is kept. Confidence is tempered: the exponent, at most 1, with which everyone else's
    posterior best predicts each answer. It cannot see errors that all workers make together.

    References
    ----------
    .. [DS79] Dawid, Skene, *Maximum likelihood estimation of observer error-rates using the EM algorithm*, 1979;
       here with a learned Dirichlet prior.
    .. [MOSS18] Ma, Olshevsky, Saligrama, Szepesvari, *Gradient descent for sparse rank-one matrix completion for
       crowd-sourced aggregation of sparsely interacting workers*, 2018; here by logarithms on the double cover.

    Examples
    --------
    >>> found = consensus([1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc" * 3), ["x", "x", "y", "y", "y", "y", "x", "x", "x"])
    >>> found.labels.tolist(), found.report["model"]
    (['x', 'y', 'x'], 'vote, equal class shares')
    """
    data = Answers.of(items, workers, labels, classes, repeats)
    if not data.shared.any():
        raise NotIdentifiable(
            f"no item was answered by two workers ({len(data.items)} items, {len(data.workers)} workers), so nothing "
            "tells who is right; collect a second answer for some items"
        )
    return _consensus(data, model, shares)


def agreement_skills(
    items: ArrayLike,
    workers: ArrayLike,
    labels: ArrayLike,
    *,
    shrink: float = SHRINK,
    repeats: Repeats = "refuse",
) -> tuple[Names, Array]:
    """Return the workers and their skills from agreement alone, by rank-one completion.

    A skill is (k p - 1) / (k - 1) for a worker who is right with chance p among k classes: 1 always right, 0 a coin,
    below 0 adversarial. It is NaN where agreement does not determine it: a worker, or a group of workers,
    without a cycle of odd length in the graph of shared items. `shrink` is a number of pseudo-answers at the mean.

    Examples
    --------
    >>> who, skill = agreement_skills([1, 1, 1, 2, 2, 2, 3], list("abcabcd"), list("xxyyyyx"), shrink=0)
    >>> who.tolist(), np.isnan(skill).tolist()
    (['a', 'b', 'c', 'd'], [False, False, False, True])
    """
    if not (np.isfinite(shrink) and shrink >= 0):
        raise ParameterError(f"shrink must be finite and not below 0, got {shrink}")
    data = Answers.of(items, workers, labels, None, repeats)
    return data.workers, rank_one_skills(data, shrink).skill


def majority_vote(
    items: ArrayLike, workers: ArrayLike, labels: ArrayLike, *, repeats: Repeats = "refuse"
) -> tuple[Names, Names, Array]:
    """Return (items, label with most votes, its share of the votes); ties go to the class chosen most overall.

    Examples
    --------
    >>> majority_vote([1, 1, 2], ["a", "b", "a"], ["x", "x", "y"])[1].tolist()
    ['x', 'y']
    """
    data = Answers.of(items, workers, labels, None, repeats)
    best = _argmax(data.votes, data)
    return data.items, data.classes[best], data.votes[np.arange(len(best)), best]


def _consensus(data: Answers, model: Model, shares: Shares) -> Consensus:
    rank_one = rank_one_skills(data, SHRINK, exact=False)
    fit, evidence = _fit(data, model, shares, _start(data, rank_one))
    right, temper = _leave_out(data, fit)
    skill, deviation = _skills(data, fit, right, rank_one)
    informed, spread = _informed(data, fit, skill, deviation)
    q = fit.q if temper == 1.0 else fit.q**temper
    q = q / (q @ np.ones((q.shape[1], 1)))
    best = _argmax(fit.q, data)
    confidence = q[np.arange(len(best)), best]
    alone = ~data.shared
    if np.isnan(skill).any():
        confidence[np.bincount(data.item, ~np.isnan(skill)[data.worker], len(best)) == 0] = np.nan
    kinds = _kinds(informed, spread, data, np.isnan(skill))
    _, size = np.unique(rank_one.component, return_counts=True)
    report = {
        "model": fit.name,
        "evidence": evidence,
        "temper": temper,
        "iterations": fit.iterations,
        "class shares": dict(
            zip((str(c) for c in data.classes), np.exp(fit.prior).tolist(), strict=True)
        ),
        "components": int(np.sum(size > 1)),
        "workers sharing no item": int(alone.sum()),
        "workers not comparable": int(np.isnan(skill).sum()),
        **{f"{kind} workers": int(np.sum(kinds == kind)) for kind in ("adversarial", "coin")},
        "items without confidence": int(np.isnan(confidence).sum()),
    }
    return Consensus(
        items=data.items, labels=data.classes[best], confidence=confidence, probabilities=q, classes=data.classes,
        workers=data.workers, answers=data.per_worker.astype(np.int64), skill=skill, deviation=deviation,
        informed=informed, kinds=kinds, component=rank_one.component, report=report,
    )  # fmt: skip


def _fit(data: Answers, model: Model, shares: Shares, start: Array) -> tuple[Fit, dict[str, float]]:
    if model not in ("auto", "vote", "one-coin", "dawid-skene"):
        raise ParameterError(f"model must be auto, vote, one-coin or dawid-skene, got {model!r}")
    if shares not in ("auto", "equal", "free"):
        raise ParameterError(f"shares must be auto, equal or free, got {shares!r}")
    W, k = len(data.workers), len(data.classes)
    if model == "auto":
        return choose(data, start, shares)
    if model == "vote":
        found = fit_vote(data)
        return found, {found.name: found.evidence}
    if model == "dawid-skene" and W * k * k > TABLE_LIMIT:
        raise ParameterError(
            f"{W} confusion matrices of {k} x {k} are too many; take model='one-coin'"
        )
    fits = []
    for free in (False, True) if shares == "auto" else (shares == "free",):
        fit = (fit_coin if model == "one-coin" else fit_full)(data, shares=free)
        fits.append(refit(data, fit, start))
    found = fits[-1] if fits[-1].evidence > fits[0].evidence + 0.02 * len(data.items) else fits[0]
    return found, {f.name: f.evidence for f in fits}


def _start(data: Answers, rank_one: Skills) -> Array:
    """Posterior of the items under one coin with the rank-one skills."""
    k = len(data.classes)
    s = np.clip(np.where(np.isnan(rank_one.skill), 0.3, rank_one.skill), -0.95, 0.95)
    p = np.clip((1.0 + (k - 1.0) * s) / k, 0.02, 0.98)
    q = data.votes.copy()
    coin_step(data, np.zeros(k), np.log(p / (1.0 - p)) + np.log(k - 1.0), q, np.empty(len(p)))
    return q


def _leave_out(data: Answers, fit: Fit) -> tuple[Array, float]:
    """Return how likely each answer is right by everyone else's, and the exponent that predicts answers best."""
    from entrywise.linalg import _jit_crowd as jit

    t, k = len(data), len(data.classes)
    odds = np.empty((t, k))
    jit.left_out(data.start, data.worker, data.label, fit.prior, fit.table, fit.coin, odds)
    several = np.flatnonzero(np.diff(data.start)[data.item] > 1)
    some = several[:: max(1, len(several) // TESTED)]
    worker, label = data.worker[some], data.label[some]
    if fit.coin:
        ratio = np.exp(fit.table[worker, 0, 0]) / (k - 1.0)
        said = np.repeat((1.0 / (1.0 + ratio) / (k - 1.0))[:, None], k, axis=1)
        said[np.arange(len(some)), label] = ratio / (1.0 + ratio)
    else:
        said = np.exp(fit.table[worker, label])  # (some, truth)
    powers = (1.0, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1)  # all: the score may have several peaks
    temper = max(powers, key=lambda power: float(jit.predicted(odds, said, some, power)))
    return np.asarray(jit.right_chance(data.label, odds, temper)), temper


def _skills(data: Answers, fit: Fit, right: Array, rank_one: Skills) -> tuple[Array, Array]:
    """Mean and deviation of each worker's skill, its own answers judged by the others'."""
    from entrywise.linalg import _jit_crowd as jit

    W, k = len(data.workers), len(data.classes)
    prior = (
        fit.strength
        if fit.model == "one-coin"
        else fit_coin(data, fit.q, shares=fit.shares, most=5).strength
    )
    prior = prior * min(1.0, FIRM / float(prior.sum()))
    first, order = data.by_worker
    size = np.diff(data.start)
    if size.min() < 2:  # an item's only answer is judged by nobody
        several = size[data.item[order]] > 1
        first, order = np.r_[0, np.cumsum(several)][first], order[several]
    mean, deviation = np.empty(W), np.empty(W)
    a, b = (max(float(x), 1.0) for x in prior)
    jit.skill_moments(first, right[order], 1.0 / (k - 1.0), a, b, mean, deviation)
    unknown = ~rank_one.determined
    mean[unknown], deviation[unknown] = np.nan, np.nan
    return mean, deviation


def _informed(data: Answers, fit: Fit, skill: Array, deviation: Array) -> tuple[Array, Array]:
    """How far answers follow the truth, all classes alike, and its deviation."""
    k = len(data.classes)
    if fit.coin:
        return (k * skill - 1.0) / (k - 1.0), k * deviation / (k - 1.0)
    N = fit.counts + fit.strength
    total = N.sum(axis=1)  # (W, truth)
    p = np.einsum("wcc->wc", N) / total
    spread = np.sqrt((p * (1.0 - p) / (total + 1.0)).sum(axis=1)) / (k - 1.0)
    unknown = np.isnan(skill)
    return np.where(unknown, np.nan, (p.sum(axis=1) - 1.0) / (k - 1.0)), np.where(
        unknown, np.nan, spread
    )


def _kinds(informed: Array, spread: Array, data: Answers, unknown: NDArray[np.bool_]) -> Names:
    low, high = informed - 1.96 * spread, informed + 1.96 * spread
    given = np.where(unknown, 0.0, data.per_worker)
    usual = float((np.where(unknown, 0.0, informed) * given).sum() / max(given.sum(), 1.0))
    kinds: NDArray[Any] = np.full(len(informed), "unclear", "<U14")
    kinds[(low <= 0) & (high < max(usual, 0.0))] = "coin"
    kinds[low > 0] = "reliable"
    kinds[high < 0] = "adversarial"
    kinds[unknown] = "not comparable"
    return kinds


def _argmax(q: Array, data: Answers) -> Indices:
    """The likeliest class of each item; ties go to the class chosen most overall."""
    often = np.bincount(data.label, minlength=len(data.classes))
    order = np.argsort(-often, kind="stable")
    best, top = np.full(len(q), order[0]), q[:, order[0]].copy()
    for c in order[1:]:
        better = q[:, c] > top + 1e-9
        best[better] = c
        np.maximum(top, q[:, c], out=top)
    return np.asarray(best, np.int64)
