"""How far the posterior of an item is to be trusted, judged by how well it predicts answers set aside."""

from __future__ import annotations

import numpy as np

from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.dawid_skene import CrowdFit
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


def leave_out(answers: CrowdAnswers, fit: CrowdFit) -> tuple[Array, float]:
    """Return how likely each answer is right by everyone else's, and the exponent that predicts answers best."""
    from entrywise.linalg import _jit_crowd as jit

    odds = np.empty((len(answers), len(answers.classes)))
    jit.left_out(answers.start, answers.worker, answers.label, fit.prior, fit.table, fit.coin, odds)
    several = np.flatnonzero(np.diff(answers.start)[answers.item] > 1)
    some = several[:: max(1, len(several) // TESTED)]
    said = _said(answers, fit, some)
    temper = max(POWERS, key=lambda power: float(jit.predicted(odds, said, some, power)))
    return np.asarray(jit.right_chance(answers.label, odds, temper)), temper


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
