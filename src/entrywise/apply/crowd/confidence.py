r"""How far the posterior of an item is to be trusted.

A posterior multiplies the evidence of its workers as if they erred independently; they do not, and it is too sure. Answers
set aside say with what exponent everybody else's posterior predicts them best. They cannot show the errors that workers
make together: v workers whose evidence hangs together by :math:`\rho` are worth :math:`v / (1 + \rho (v - 1))`, and ten public sets tell
a :math:`\rho` that is far off for none of them. Who errs together takes the same wrong class: what weakens are the odds of the
likeliest class against the next, not against all. Gold items, where there are some, measure for this crowd what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.dawid_skene import CrowdFit
from entrywise.exceptions import DataError
from entrywise.types import Array, Indices

TESTED = 10_000  # answers set aside to choose the exponent of the confidence
# exponents, all of which are tried: the score may have several peaks
POWERS = (1.0, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1)
# How far workers' evidence hangs together, and the share of items that fool the crowd: the worst calibration error over ten
# public sets, counted from .06 in its standard errors, is least (1.3). A set of its own would ask for 0 to .7, so that one
# number for all is a compromise; nine sets that were looked at later ask for .4 in the median.
# How far gold may move the logarithm of the power and the log odds of that share: deviations.
TOGETHER, FOOLED = 0.22, 0.03
TURN, SHIFT = 0.7, 1.5
# powers and shares that are weighed by gold items: so fine that twice as many change no confidence by .003
READ_POWERS = np.exp(np.linspace(-1.6, 1.0, 14))
READ_SHARES = 1.0 / (1.0 + np.exp(-np.linspace(-7.0, 2.0, 19)))
FEWEST = 10  # gold items below which they measure nothing
CERTAIN = 1e-9  # a chance of error is told no smaller


def leave_out(answers: CrowdAnswers, fit: CrowdFit) -> float:
    """Return the exponent with which everyone else's posterior predicts an answer best."""
    odds = np.empty((len(answers), len(answers.classes)))
    steps = answers.steps
    steps.left_out(
        answers.start, answers.worker, answers.label, fit.prior, fit.table, fit.coin, odds
    )
    several = np.flatnonzero(np.diff(answers.start)[answers.item] > 1)
    some = several[:: max(1, len(several) // TESTED)]
    said = _said(answers, fit, some)
    return max(POWERS, key=lambda power: float(steps.predicted(odds, said, some, power)))


def _said(answers: CrowdAnswers, fit: CrowdFit, some: Indices) -> Array:
    """Chance that the worker gives the answer it gave, for every truth, shape (some, k)."""
    k = len(answers.classes)
    worker, label = answers.worker[some], answers.label[some]
    if not fit.coin:
        return np.asarray(np.exp(fit.table[worker, label]))
    ratio = np.exp(fit.table[worker, 0, 0]) / (k - 1.0)
    wrong = 1.0 / (1.0 + ratio) / (k - 1.0)
    said = np.repeat(wrong[:, None], k, axis=1)
    said[np.arange(len(some)), label] = ratio / (1.0 + ratio)
    return said


def tempered(answers: CrowdAnswers, q: Array, power: float) -> Array:
    """Return the posterior with what its workers may err in together taken into account, shape (n, k)."""
    votes = np.diff(answers.start)
    power_of = np.minimum(power, 1.0 / (1.0 + TOGETHER * (votes - 1.0)))
    return weakened(q, power_of)


@dataclass(frozen=True)
class ConfidenceReading:
    r"""How a posterior is to be read: to powers b, each with a weight and a share of items that fool the crowd.

    .. math:: q'_c = \sum_b w_b \big( (1 - \epsilon_b)\, q^{(b)}_c + \epsilon_b / k \big)

    with :math:`q^{(b)}` of :func:`weakened`.
    """

    power: tuple[float, ...] = (1.0,)
    fooled: tuple[float, ...] = (FOOLED,)
    weight: tuple[float, ...] = (1.0,)

    def of(self, q: Array) -> Array:
        """Return the posterior so read, shape (n, k)."""
        total = np.zeros_like(q)
        for power, fooled, weight in zip(self.power, self.fooled, self.weight, strict=True):
            found = weakened(q, power)
            total += weight * ((1.0 - fooled) * found + fooled / q.shape[1])
        return total


def weakened(q: Array, power: float | Array) -> Array:
    r"""Return posteriors `q` of shape (n, k) with the odds of the likeliest class against the next to a power.

    .. math:: q'_a + q'_b = q_a + q_b, \qquad q'_a / q'_b = (q_a / q_b)^p

    The other classes keep their chances. `power` is a number or one an item.
    """
    items = np.arange(len(q))
    order = np.argsort(q, axis=1, kind="stable")
    best, next_best = order[:, -1], order[:, -2]
    first, second = q[items, best], q[items, next_best]
    ratio = (second / first) ** power  # at most 1, and first is 1/k or more
    found = q.copy()
    found[items, best] = (first + second) / (1.0 + ratio)
    found[items, next_best] = (first + second) * ratio / (1.0 + ratio)
    return found


@dataclass(frozen=True)
class WrongLabels:
    """The share of labels that are wrong, with its 95 % interval, from so many gold items."""

    items: int
    share: float
    low: float
    high: float


def gold_places(answers: CrowdAnswers, gold: Mapping[Any, Any]) -> tuple[Indices, Indices]:
    """Return the items of `gold` that were answered, and their true classes (-1: one that nobody named)."""
    place = {x: i for i, x in enumerate(answers.items.tolist())}
    classes = {x: c for c, x in enumerate(answers.classes.tolist())}
    known = [item for item in gold if item in place]
    if len(known) < FEWEST:
        raise DataError(
            f"gold must hold {FEWEST} items or more that were answered, it holds {len(known)}; "
            "check a few more by hand, or leave gold out"
        )
    truth = [classes.get(gold[item], -1) for item in known]
    return np.array([place[item] for item in known], np.int64), np.array(truth, np.int64)


def read_gold(q: Array, best: Indices, right: NDArray[np.bool_]) -> ConfidenceReading:
    r"""Return the readings of posteriors `q` of gold items whose label `best` was right or not, each with its chance.

    The power is taken near 1, the share of items that fool the crowd near the usual one. Forty items leave both in doubt, and
    the likeliest pair alone would be too sure of itself: all pairs count, by prior times likelihood.
    """
    at = np.arange(len(q)), best
    sure = np.stack([weakened(q, power)[at] for power in READ_POWERS])  # (powers, items)
    share = READ_SHARES[:, None]
    p = (1.0 - share) * sure[:, None, :] + share / q.shape[1]  # (powers, shares, items)
    p = np.clip(p, CERTAIN, 1.0 - CERTAIN)
    odds = np.log(READ_SHARES / (1.0 - READ_SHARES)) - np.log(FOOLED / (1.0 - FOOLED))
    off = (np.log(READ_POWERS) / TURN)[:, None] ** 2 + (odds / SHIFT) ** 2
    score = np.log(np.where(right, p, 1.0 - p)).sum(axis=2) - 0.5 * off
    chance = np.exp(score - score.max())
    chance /= chance.sum()
    weight = chance.sum(axis=1)
    fooled = chance @ READ_SHARES / np.maximum(weight, 1e-300)
    return ConfidenceReading(
        tuple(READ_POWERS.tolist()), tuple(fooled.tolist()), tuple(weight.tolist())
    )


def wrong_labels(sure: Array, right: NDArray[np.bool_], all_sure: Array) -> WrongLabels:
    """Return the share of wrong labels, from the confidence in gold items, whether they were right, and in all items.

    What the confidence says of all items, plus what gold items correct in it (prediction-powered): unbiased however
    wrong the confidence is. Two more items, one right and one wrong, widen the interval, so that 40 without an error
    do not prove that there is none.
    """
    all_doubt = 1.0 - all_sure[~np.isnan(all_sure)]
    surplus = ~right - (1.0 - sure)
    share = float(all_doubt.mean() + surplus.mean())
    doubt = float((1.0 - sure).mean())
    wider = np.r_[surplus, 1.0 - doubt, -doubt]
    spread = np.sqrt(wider.var(ddof=1) / len(wider) + all_doubt.var() / len(all_doubt))
    low, high = np.clip([share - 1.96 * spread, share + 1.96 * spread], 0.0, 1.0)
    return WrongLabels(len(right), min(max(share, 0.0), 1.0), float(low), float(high))
