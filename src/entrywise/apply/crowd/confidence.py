r"""How far the posterior of an item is to be trusted.

A posterior multiplies the evidence of its workers as if they erred independently; they do not, and it is too sure. Answers
set aside say with what exponent everybody else's posterior predicts them best. They cannot show the errors that workers
make together: v workers whose evidence hangs together by :math:`\rho` are worth :math:`v / (1 + \rho (v - 1))`, and ten public sets tell
the usual :math:`\rho`. Gold items, where there are some, measure for this crowd what is left.
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
# How far workers' evidence hangs together, and the share of items that fool the crowd: least calibration error over ten
# public sets. How far gold may move the logarithm of the power and the log odds of that share: deviations.
TOGETHER, FOOLED = 0.12, 0.03
TURN, SHIFT = 0.7, 1.5
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
    q = q ** power_of[:, None]
    return np.asarray(q / q.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class ConfidenceReading:
    """How a posterior is to be read: to a power, and with a share of items that fool the crowd.

    .. math:: q'_c = (1 - \\epsilon)\\, q_c^b / \\textstyle\\sum q^b + \\epsilon / k
    """

    power: float = 1.0
    fooled: float = FOOLED

    def of(self, q: Array) -> Array:
        """Return the posterior so read, shape (n, k)."""
        found = q if self.power == 1.0 else q**self.power
        found = found / found.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - self.fooled) * found + self.fooled / q.shape[1])


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
    r"""Return the likeliest reading of posteriors `q` of gold items whose label `best` was right or not.

    The power is taken near 1, the share of items that fool the crowd near the usual one: 40 items move them only as far as
    they can.
    """
    from scipy.optimize import minimize

    at = np.arange(len(q)), best

    def loss(x: Array) -> float:
        reading = ConfidenceReading(float(np.exp(x[0])), float(1.0 / (1.0 + np.exp(-x[1]))))
        p = np.clip(reading.of(q)[at], CERTAIN, 1.0 - CERTAIN)
        off = np.array([x[0] / TURN, (x[1] - usual) / SHIFT])
        return float(-np.log(np.where(right, p, 1.0 - p)).sum() + 0.5 * off @ off)

    usual = np.log(FOOLED / (1.0 - FOOLED))
    x = minimize(loss, np.array([0.0, usual]), method="Nelder-Mead").x
    return ConfidenceReading(float(np.exp(x[0])), float(1.0 / (1.0 + np.exp(-x[1]))))


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
