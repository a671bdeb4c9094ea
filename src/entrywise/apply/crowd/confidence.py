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
POWERS = (
    1.0,
    0.85,
    0.7,
    0.55,
    0.4,
    0.3,
    0.2,
    0.1,
)  # all are tried: the score may have several peaks
TOGETHER = (
    0.15  # how far workers' evidence hangs together: least calibration error over ten public sets
)
SHIFT, TURN = 1.0, 0.5  # how far gold is expected to move log odds, and to stretch them: deviations
FEWEST = 10  # gold items below which they measure nothing
CERTAIN = 1e-9  # a chance of error is told no smaller


def leave_out(answers: CrowdAnswers, fit: CrowdFit) -> float:
    """Return the exponent with which everyone else's posterior predicts an answer best."""
    from entrywise.linalg import _jit_crowd as jit

    odds = np.empty((len(answers), len(answers.classes)))
    jit.left_out(answers.start, answers.worker, answers.label, fit.prior, fit.table, fit.coin, odds)
    several = np.flatnonzero(np.diff(answers.start)[answers.item] > 1)
    some = several[:: max(1, len(several) // TESTED)]
    said = _said(answers, fit, some)
    return max(POWERS, key=lambda power: float(jit.predicted(odds, said, some, power)))


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
class GoldCheck:
    """What gold items say: the map of log odds, and the share of labels that are wrong, with its 95 % interval."""

    items: int
    shift: float
    stretch: float
    error: float
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


def check_gold(confidence: Array, right: NDArray[np.bool_], all_confidence: Array) -> GoldCheck:
    r"""Return how confidence is to be read, from gold items where the label was `right` or not.

    Log odds x become :math:`a + b x`, the likeliest a and b under :math:`a \sim N(0, 1)`, :math:`b \sim N(1, 1/4)`: 40 items move them
    only as far as they can. The share of wrong labels is what the confidence says of all items plus what gold
    items correct in it (prediction-powered: unbiased however wrong the confidence is).
    """
    from scipy.optimize import minimize

    x, sign = _log_odds(confidence), np.where(right, 1.0, -1.0)

    def loss(ab: Array) -> tuple[float, Array]:
        z = sign * (ab[0] + ab[1] * x)
        slope = -sign / (1.0 + np.exp(z))
        off = np.array([ab[0] / SHIFT, (ab[1] - 1.0) / TURN])
        value = float(np.logaddexp(0.0, -z).sum() + 0.5 * off @ off)
        return value, np.array([slope.sum(), slope @ x]) + off / np.array([SHIFT, TURN])

    a, b = minimize(loss, np.array([0.0, 1.0]), jac=True, method="BFGS").x
    doubt, all_doubt = 1.0 - confidence, 1.0 - all_confidence[~np.isnan(all_confidence)]
    surplus = ~right - doubt
    error = float(all_doubt.mean() + surplus.mean())
    spread = np.sqrt(surplus.var(ddof=1) / len(right) + all_doubt.var() / len(all_doubt))
    low, high = np.clip([error - 1.96 * spread, error + 1.96 * spread], 0.0, 1.0)
    return GoldCheck(len(right), float(a), float(max(b, 0.0)), error, float(low), float(high))


def read_by(check: GoldCheck, q: Array) -> Array:
    """Return the posterior with the log odds of its likeliest class moved as gold says, shape (n, k)."""
    best = q.argmax(axis=1)[:, None]
    top = np.take_along_axis(q, best, axis=1)
    moved = 1.0 / (1.0 + np.exp(-(check.shift + check.stretch * _log_odds(top))))
    least = 1.0 / q.shape[1]  # the likeliest stays the likeliest
    moved = np.maximum(moved, least)
    rest = (1.0 - moved) / np.maximum(1.0 - top, CERTAIN)
    found = q * rest
    np.put_along_axis(found, best, moved, axis=1)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _log_odds(p: Array) -> Array:
    p = np.clip(p, CERTAIN, 1.0 - CERTAIN)
    return np.asarray(np.log(p) - np.log1p(-p))
