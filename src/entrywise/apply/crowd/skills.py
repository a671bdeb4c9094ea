"""Skills of workers with their deviations, and what kind of worker each is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.crowd.agreement import Skills
from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.dawid_skene import CrowdFit, fit_coin
from entrywise.apply.names import Names
from entrywise.types import Array

FIRM = 5.0  # most answers that the crowd's common law may weigh in a worker's skill
SURE = 1.96  # deviations of the interval that decides a worker's kind


def skills_of(
    answers: CrowdAnswers, fit: CrowdFit, right: Array, rank_one: Skills
) -> tuple[Array, Array]:
    """Mean and deviation of each worker's skill, its own answers judged by the others'."""
    from entrywise.linalg import _jit_crowd as jit

    W, k = len(answers.workers), len(answers.classes)
    prior = fit.strength
    if fit.model != "one-coin":
        prior = fit_coin(answers, fit.q, shares=fit.shares, most=5).strength
    prior = prior * min(1.0, FIRM / float(prior.sum()))
    first, order = answers.by_worker
    size = np.diff(answers.start)
    if size.min() < 2:  # an item's only answer is judged by nobody
        several = size[answers.item[order]] > 1
        first, order = np.r_[0, np.cumsum(several)][first], order[several]
    mean, deviation = np.empty(W), np.empty(W)
    a, b = (max(float(x), 1.0) for x in prior)
    jit.skill_moments(first, right[order], 1.0 / (k - 1.0), a, b, mean, deviation)
    unknown = ~rank_one.determined
    mean[unknown], deviation[unknown] = np.nan, np.nan
    return mean, deviation


def informed_by(
    answers: CrowdAnswers, fit: CrowdFit, skill: Array, deviation: Array
) -> tuple[Array, Array]:
    """How far answers follow the truth, all classes alike, and its deviation."""
    k = len(answers.classes)
    if fit.coin:
        return (k * skill - 1.0) / (k - 1.0), k * deviation / (k - 1.0)
    N = fit.counts + fit.strength
    total = N.sum(axis=1)  # (W, truth)
    p = np.einsum("wcc->wc", N) / total
    informed = (p.sum(axis=1) - 1.0) / (k - 1.0)
    spread = np.sqrt((p * (1.0 - p) / (total + 1.0)).sum(axis=1)) / (k - 1.0)
    unknown = np.isnan(skill)
    return np.where(unknown, np.nan, informed), np.where(unknown, np.nan, spread)


def kinds_of(
    informed: Array, spread: Array, answers: CrowdAnswers, unknown: NDArray[np.bool_]
) -> Names:
    """What each worker is, by the interval of how far its answers follow the truth."""
    low, high = informed - SURE * spread, informed + SURE * spread
    given = np.where(unknown, 0.0, answers.per_worker)
    usual = float((np.where(unknown, 0.0, informed) * given).sum() / max(given.sum(), 1.0))
    kinds: NDArray[Any] = np.full(len(informed), "unclear", "<U14")
    kinds[(low <= 0) & (high < max(usual, 0.0))] = "coin"
    kinds[low > 0] = "reliable"
    kinds[high < 0] = "adversarial"
    kinds[unknown] = "not comparable"
    return kinds
