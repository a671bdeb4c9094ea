"""Skills of workers with their deviations, and what kind of worker each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.crowd.agreement import Skills
from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.choice import TABLE_LIMIT
from entrywise.apply.crowd.dawid_skene import CrowdFit, doubt_counts, fit_coin, table_counts
from entrywise.apply.names import Names
from entrywise.types import Array

FIRM = 5.0  # most answers that the crowd's common law may weigh in a worker's skill
COMMON = 0.5  # of the items' doubt that a worker may share with all others, as a deviation: ten public sets
SURE = 1.96  # deviations of the interval that decides a worker's kind


@dataclass(frozen=True)
class WorkerSkills:
    """Chance of a right answer, and how far answers follow the truth, each with its deviation, shapes (W,)."""

    skill: Array
    deviation: Array
    informed: Array
    spread: Array


def skills_of(answers: CrowdAnswers, fit: CrowdFit, q: Array, rank_one: Skills) -> WorkerSkills:
    r"""Return the skills by the posterior `q` of the items, as far as it can be trusted.

    A worker's skill is the share of its answers expected to be right, drawn to the crowd's by a few answers. It varies with
    the answers it did not give, with the doubt about each item, and with what all workers get wrong together,
    half of the mean doubt of its items: that does not fall with their number.
    """
    k = len(answers.classes)
    given = answers.per_worker
    prior = fit.strength
    if fit.model != "one-coin":
        prior = fit_coin(answers, fit.q, shares=fit.shares, most=5).strength
    prior = prior * min(1.0, FIRM / float(prior.sum()))
    right, varied, doubted = doubt_counts(answers, q)
    skill = (right + prior[0]) / (given + prior.sum())
    shared = COMMON * doubted / given
    variance = skill * (1.0 - skill) / (given + prior.sum()) + varied / given**2 + shared**2
    informed, spread = _informed(answers, q, right)
    spread = np.sqrt(spread**2 + (k / (k - 1.0) * shared) ** 2)
    unknown = ~rank_one.determined
    told = (skill, np.sqrt(variance), informed, spread)
    return WorkerSkills(*(np.where(unknown, np.nan, x) for x in told))


def _informed(answers: CrowdAnswers, q: Array, right: Array) -> tuple[Array, Array]:
    """How far answers follow the truth, all classes alike, and its deviation, by the worker's own answers alone."""
    W, k = len(answers.workers), len(answers.classes)
    given = answers.per_worker
    if W * k * k > TABLE_LIMIT:
        p = (right + 1.0 / k) / (given + 1.0)
        spread = np.sqrt(p * (1.0 - p) / (given + 2.0))
        return (k * p - 1.0) / (k - 1.0), k * spread / (k - 1.0)
    N = table_counts(answers, q) + 1.0 / k  # (W, answer, truth), an answer of every class by chance
    total = N.sum(axis=1)
    p = np.einsum("wcc->wc", N) / total
    spread = np.sqrt((p * (1.0 - p) / (total + 1.0)).sum(axis=1))
    return (p.sum(axis=1) - 1.0) / (k - 1.0), spread / (k - 1.0)


def kinds_of(found: WorkerSkills, answers: CrowdAnswers) -> Names:
    """What each worker is, by the interval of how far its answers follow the truth.

    ``reliable``: above 0 for sure. ``adversarial``: below 0 for sure. ``coin``: it may be 0, and is below the crowd's mean
    for sure. Else ``unclear``.
    """
    unknown = np.isnan(found.skill)
    low = found.informed - SURE * found.spread
    high = found.informed + SURE * found.spread
    given = np.where(unknown, 0.0, answers.per_worker)
    total = float((np.where(unknown, 0.0, found.informed) * given).sum())
    usual = total / max(float(given.sum()), 1.0)
    kinds: NDArray[Any] = np.full(len(low), "unclear", "<U14")
    kinds[(low <= 0) & (high < max(usual, 0.0))] = "coin"
    kinds[low > 0] = "reliable"
    kinds[high < 0] = "adversarial"
    kinds[unknown] = "not comparable"
    return kinds
