"""The label of every item and the skill of every worker, from who said what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.apply.crowd.agreement import SHRINK, Skills, rank_one_skills
from entrywise.apply.crowd.answers import CrowdAnswers, Repeats
from entrywise.apply.crowd.choice import TABLE_LIMIT, choose, refit
from entrywise.apply.crowd.confidence import (
    ConfidenceReading,
    WrongLabels,
    gold_places,
    leave_out,
    read_gold,
    tempered,
    wrong_labels,
)
from entrywise.apply.crowd.dawid_skene import CrowdFit, coin_step, fit_coin, fit_full, fit_vote
from entrywise.apply.crowd.skills import kinds_of, skills_of
from entrywise.apply.names import Names
from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.frames import make_frame
from entrywise.results import Interval, Result
from entrywise.results.result import refuse_level
from entrywise.types import Array, Indices

Model = Literal["auto", "vote", "one-coin", "dawid-skene"]
Shares = Literal["auto", "equal", "free"]
FAIR = 0.3  # skill at the start of a worker whose agreement tells nothing
FREE = 0.02  # nats an item that free class shares must gain over equal ones
# what the report has from gold items
TOLD_BY_GOLD = ("gold_items", "wrong_labels", "wrong_labels_low", "wrong_labels_high")


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

    def to_frame(self, of: Literal["items", "workers"] = "items", backend: str = "polars") -> Any:
        """Return the items with their labels, or the workers with their skills, as a frame (polars, pandas or pyarrow)."""
        columns: dict[str, Any]
        if of == "items":
            columns = {"item": self.items, "label": self.labels, "confidence": self.confidence}
        elif of == "workers":
            names = ("answers", "skill", "deviation", "informed")
            columns = {"worker": self.workers} | {name: getattr(self, name) for name in names}
            columns["kind"] = self.kinds
        else:
            raise ParameterError(f"of must be items or workers, got {of!r}")
        return make_frame(columns, backend)

    def interval(self, level: float = 0.95) -> Interval:
        """Return where each worker's skill lies with chance `level`, NaN where it cannot be told."""
        from scipy.stats import beta

        refuse_level(level)
        m = self.skill
        v = np.minimum(self.deviation**2, 0.9 * m * (1.0 - m))  # no law on 0..1 is wider
        size = np.maximum(
            m * (1.0 - m) / v - 1.0, 1e-3
        )  # the Beta law with this mean and deviation
        ends = (1 - level) / 2, (1 + level) / 2
        a, b = m * size, (1.0 - m) * size
        low, high = (beta.ppf(x, a, b) for x in ends)
        # where chances rise towards an end of 0..1, the interval goes there
        low = np.where(b <= 1.0, beta.ppf(1.0 - level, a, b), np.where(a <= 1.0, 0.0, low))
        high = np.where(b <= 1.0, 1.0, np.where(a <= 1.0, beta.ppf(level, a, b), high))
        return Interval(np.where(np.isnan(m), np.nan, low), np.where(np.isnan(m), np.nan, high))


def consensus(
    items: ArrayLike,
    workers: ArrayLike,
    labels: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    model: Model = "auto",
    shares: Shares = "auto",
    repeats: Repeats = "refuse",
    gold: Mapping[Any, Any] | None = None,
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
    gold : mapping of items to true labels, optional
        Items checked by hand, drawn at random, 30 to 50 say. They change no label; they say how the confidence is to be
        read, and how many labels are wrong (``report["wrong_labels"]``, with the ends of a 95 % interval).

    Returns
    -------
    Consensus

    Notes
    -----
    The prior :math:`\alpha` common to all workers is learned, so that with few answers a worker the labels go to the
    majority vote's and do not fall below it. Expectation-maximisation starts at the vote and at rank-one skills,
    and the higher evidence is kept. Confidence is tempered: the exponent, at most 1, with which everyone else's
    posterior best predicts each answer, and no more than :math:`1/(1 + 0.22 (v - 1))` for v answers: what they cannot show, the
    errors that workers make together, is taken as usual on ten public sets; `gold` measures it for this crowd.

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
    data = CrowdAnswers.of(items, workers, labels, classes, repeats)
    if not data.shared.any():
        raise NotIdentifiable(
            f"no item was answered by two workers ({len(data.items)} items, {len(data.workers)} workers), so nothing "
            "tells who is right; collect a second answer for some items"
        )
    return _consensus(data, model, shares, gold)


def _consensus(
    data: CrowdAnswers, model: Model, shares: Shares, gold: Mapping[Any, Any] | None
) -> Consensus:
    checked = None if gold is None else gold_places(data, gold)
    rank_one = rank_one_skills(data, SHRINK, exact=False)
    fit, evidence = _fit(data, model, shares, _start(data, rank_one))
    power = leave_out(data, fit)
    best = data.likeliest(fit.q)
    items = np.arange(len(best))
    firm = tempered(data, fit.q, power)
    q = ConfidenceReading().of(firm)
    confidence = _trusted(data, rank_one, q[items, best])
    report = {"evidence": evidence, "temper": power}
    if checked is not None:
        places, truth = checked
        right = best[places] == truth
        told = ~np.isnan(confidence[places])
        places, right = places[told], right[told]
        report |= _told_by_gold(wrong_labels(confidence[places], right, confidence))
        q = read_gold(firm[places], best[places], right).of(firm)
        confidence = _trusted(data, rank_one, q[items, best])
    skills = skills_of(data, fit, q, rank_one)
    kinds = kinds_of(skills, data)
    report = _report(data, fit, rank_one, kinds) | report
    report["expected_wrong_labels"] = _expected_wrong(confidence)
    report["items_without_confidence"] = int(np.isnan(confidence).sum())
    return Consensus(
        items=data.items,
        labels=data.classes[best],
        confidence=confidence,
        probabilities=q,
        classes=data.classes,
        workers=data.workers,
        answers=data.per_worker.astype(np.int64),
        skill=skills.skill,
        deviation=skills.deviation,
        informed=skills.informed,
        kinds=kinds,
        component=rank_one.component,
        report=report,
    )


def _expected_wrong(confidence: Array) -> float:
    """Return the expected share of wrong labels, NaN where no confidence can be told."""
    told = confidence[~np.isnan(confidence)]
    return float(1.0 - told.mean()) if len(told) else np.nan


def _trusted(data: CrowdAnswers, rank_one: Skills, confidence: Array) -> Array:
    """Confidence, NaN where the skill of none of an item's workers can be told."""
    judged = np.bincount(data.item, rank_one.determined[data.worker], len(confidence))
    return np.where(judged > 0, confidence, np.nan)


def _told_by_gold(wrong: WrongLabels) -> dict[str, float]:
    told = (wrong.items, wrong.share, wrong.low, wrong.high)
    return dict(zip(TOLD_BY_GOLD, told, strict=True))


def _report(data: CrowdAnswers, fit: CrowdFit, rank_one: Skills, kinds: Names) -> dict[str, Any]:
    _, size = np.unique(rank_one.component, return_counts=True)
    named = [str(c) for c in data.classes]
    return {
        "model": fit.name,
        "iterations": fit.iterations,
        "class_shares": dict(zip(named, np.exp(fit.prior).tolist(), strict=True)),
        "components": int(np.sum(size > 1)),
        "workers_sharing_no_item": int((~data.shared).sum()),
        "workers_not_comparable": int(np.sum(kinds == "not comparable")),
        "adversarial_workers": int(np.sum(kinds == "adversarial")),
        "coin_workers": int(np.sum(kinds == "coin")),
    }


def _fit(
    data: CrowdAnswers, model: Model, shares: Shares, start: Array
) -> tuple[CrowdFit, dict[str, float]]:
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
    fit = fit_coin if model == "one-coin" else fit_full
    tried = (False, True) if shares == "auto" else (shares == "free",)
    fits = [refit(data, fit(data, shares=free), start) for free in tried]
    gained = fits[-1].evidence > fits[0].evidence + FREE * len(data.items)
    return fits[-1] if gained else fits[0], {f.name: f.evidence for f in fits}


def _start(data: CrowdAnswers, rank_one: Skills) -> Array:
    """Posterior of the items under one coin with the rank-one skills."""
    k = len(data.classes)
    s = np.clip(np.where(np.isnan(rank_one.skill), FAIR, rank_one.skill), -0.95, 0.95)
    p = np.clip((1.0 + (k - 1.0) * s) / k, 0.02, 0.98)
    gain = np.log(p / (1.0 - p)) + np.log(k - 1.0)
    q = data.votes.copy()
    coin_step(data, np.zeros(k), gain, q, np.empty(len(p)))
    return q
