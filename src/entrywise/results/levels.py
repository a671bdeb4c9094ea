r"""Answers that are one of a few values: how likely each is, given what the factors say.

**Two values.** The factors give a logit :math:`\eta \sim N(m, v)`. The logistic function is a mixture of three normal
distribution functions to 4e-5, :math:`\sigma(x) \approx \sum_k p_k \Phi(s_k x)`, so that its mean is one too:

.. math:: P = E\,\sigma(\eta) = \sum_k p_k \Phi(d_k m), \qquad d_k = s_k / \sqrt{1 + s_k^2 v}

**Several values in order.** The factors give the answer's mean m with standard deviation s; the cuts between the values
and one scale are fitted on held-out answers: :math:`P(y \le l) = \sigma((c_l - m) / (a s))`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

SHARES = np.array([0.16268, 0.58523, 0.25210])  # p_k, made to sum to one below
SLOPES = np.array([0.36408, 0.57785, 0.90799])  # s_k: the largest error of the mixture is 4e-5
SHARES = SHARES / SHARES.sum()
NODES = 10  # of Gauss-Hermite quadrature under a normal distribution: errors below 2e-3 at variance 9, 2e-7 at 1
LEAST_WEIGHT = 1e-6  # an answer that the logit foretells for sure tells nothing of it


@dataclass(frozen=True, eq=False)
class Levels:
    """The possible answers and what makes one likelier than another.

    Parameters
    ----------
    values : ndarray of shape (L,)
        The possible answers, in order.
    cuts : ndarray of shape (L - 1,), or empty
        Where the values part, in the unit of the answers; empty for two values, where the factors give the logit of the
        higher one.
    scale : float
        What the standard deviation of an answer is multiplied with.
    scores : ndarray of shape (c,)
        Sorted scores of held-out answers: how likely the values are that were likelier than the one that came. Behind
        the sets.
    """

    values: Array
    cuts: Array = field(default_factory=lambda: np.zeros(0))
    scale: float = 1.0
    scores: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def is_binary(self) -> bool:
        """Whether the factors give the logit of the higher of two values."""
        return not len(self.cuts)

    def probabilities(self, middle: Array, spread: Array) -> Array:
        """Return how likely each value is, shape (..., L).

        `middle` and `spread` are the logit and its standard deviation (two values), else those of an answer.
        """
        from scipy.special import expit

        if self.is_binary:
            yes = logistic_mean(middle, spread**2)
            return np.stack([1.0 - yes, yes], axis=-1)
        reach = (self.cuts - middle[..., None]) / (self.scale * spread[..., None])
        below = expit(reach)
        ends = np.zeros((*middle.shape, 1))
        return np.asarray(np.diff(np.concatenate([ends, below, ends + 1.0], axis=-1), axis=-1))

    def sets(self, probabilities: Array, level: float) -> NDArray[np.bool_]:
        """Tell which values are in the set that covers with this level, shape (..., L).

        A value is in it when those likelier than it are together at most as likely as the held-out answers say (their
        conformal quantile); without these, at most as `level`.
        """
        return likelier(probabilities) <= self._threshold(level)

    def _threshold(self, level: float) -> float:
        count = len(self.scores)
        k = math.ceil((count + 1) * level)
        return float(self.scores[k - 1]) if k <= count else level

    def scaled(self, unit: float) -> Levels:
        """Return the levels of answers times `unit`, above 0."""
        return replace(self, values=self.values * unit, cuts=self.cuts * unit)


def likelier(probabilities: Array) -> Array:
    """Return how likely the values are together that are likelier than each one; ties in their order."""
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=-1)
    before = np.cumsum(ranked, axis=-1) - ranked
    found = np.empty_like(before)
    np.put_along_axis(found, order, before, axis=-1)
    return found


def set_scores(probabilities: Array, came: Indices) -> Array:
    """Return how likely the values are that were likelier than the one that came, a number of 0..L-1, shape (t,)."""
    return np.asarray(likelier(probabilities)[np.arange(len(came)), came])


def logistic_mean(m: Array, v: Array) -> Array:
    """Return the mean of the logistic function of a normal with mean m and variance v."""
    from scipy.special import ndtr

    found = np.zeros(np.shape(m))
    for p, s in zip(SHARES, SLOPES, strict=True):
        found += p * ndtr(s / np.sqrt(1.0 + s**2 * v) * m)
    return found


def logistic_variance(m: Array, v: Array) -> Array:
    """Return the variance of the logistic function of a normal with mean m and variance v."""
    from scipy.special import expit

    nodes, weights = normal_nodes()
    first, second = np.zeros(np.shape(m)), np.zeros(np.shape(m))
    for x, w in zip(nodes, weights, strict=True):
        y = expit(m + np.sqrt(v) * x)
        first += w * y
        second += w * y**2
    return np.asarray(np.maximum(second - first**2, 0.0))


def pseudo_answers(m: Array, v: Array, yes: Array) -> tuple[Array, Array]:
    r"""Return the Gaussian answers :math:`z = m + (y - P)/w`, and variances 1/w, that stand for yes (1) and no (0).

    With :math:`w = \sum_k p_k d_k \varphi(d_k m)`, the mean slope of the logistic function, one regression on them is a
    step towards the best normal distribution of the logit in the Kullback-Leibler sense.
    """
    P, w = logistic_mean(m, v), logistic_slope(m, v)
    return m + (yes - P) / w, 1.0 / w


def logistic_slope(m: Array, v: Array) -> Array:
    """Return the mean slope w of the logistic function of a normal with mean m and variance v, 1e-6 at least.

    It is also the variance that a yes/no answer has about its probability, on average: :math:`E\\,\\sigma(1 - \\sigma)`.
    """
    found = np.zeros(np.shape(m))
    for p, s in zip(SHARES, SLOPES, strict=True):
        d = s / np.sqrt(1.0 + s**2 * v)
        found += p * d * np.exp(-0.5 * (d * m) ** 2)
    return np.asarray(np.maximum(found / math.sqrt(2.0 * math.pi), LEAST_WEIGHT))


def expected_log(m: Array, v: Array, yes: Array) -> float:
    """Return the sum of the expected log-likelihoods of the answers, the logits normal with means m and variances v."""
    nodes, weights = normal_nodes()
    sign, root = 2.0 * yes - 1.0, np.sqrt(v)
    found = 0.0
    for x, w in zip(nodes, weights, strict=True):
        eta = sign * (m + root * x)
        softly = np.log(1.0 + np.exp(-np.abs(eta)))  # several times faster than logaddexp
        found += w * float((np.minimum(eta, 0.0) - softly).sum())
    return found


def normal_nodes() -> tuple[Array, Array]:
    """Return nodes and weights of the quadrature under a standard normal."""
    x, w = np.polynomial.hermite_e.hermegauss(NODES)
    return x, w / w.sum()
