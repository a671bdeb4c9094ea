"""Compiled passes over answers sorted by item: one expectation-maximisation step, leave-one-out skills."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def _softmax(score: Any, q: Any) -> Any:
    """Write the softmax of `score` into `q`; return how much q changed."""
    top, total, change = score.max(), 0.0, 0.0
    for c in range(len(score)):
        score[c] = np.exp(score[c] - top)
        total += score[c]
    for c in range(len(score)):
        p = score[c] / total
        change += abs(p - q[c])
        q[c] = p
    return change


@njit(cache=True)
def coin_step(start: Any, worker: Any, label: Any, prior: Any, gain: Any, q: Any, hits: Any) -> Any:
    """One step where worker w favours its answer by ``gain[w]`` nats; return the mean change of q.

    ``prior`` of shape (k,) in nats; ``q`` of shape (n, k) and ``hits`` of shape (W,) are overwritten.
    """
    n, k = q.shape
    hits[:] = 0.0
    change = 0.0
    score = np.empty(k)
    for i in range(n):
        score[:] = prior
        for t in range(start[i], start[i + 1]):
            score[label[t]] += gain[worker[t]]
        change += _softmax(score, q[i])
        for t in range(start[i], start[i + 1]):
            hits[worker[t]] += q[i, label[t]]
    return change / n


@njit(cache=True)
def table_step(start: Any, worker: Any, label: Any, prior: Any, table: Any, q: Any, counts: Any) -> Any:
    """One step with ``table[w, l, c]``, log chance that worker w says l when c is true; return the mean change of q.

    ``q`` of shape (n, k) and ``counts`` of shape (W, k, k) are overwritten.
    """
    n, k = q.shape
    counts[:] = 0.0
    change = 0.0
    score = np.empty(k)
    for i in range(n):
        score[:] = prior
        for t in range(start[i], start[i + 1]):
            w, l = worker[t], label[t]
            for c in range(k):
                score[c] += table[w, l, c]
        change += _softmax(score, q[i])
        for t in range(start[i], start[i + 1]):
            w, l = worker[t], label[t]
            for c in range(k):
                counts[w, l, c] += q[i, c]
    return change / n


@njit(cache=True)
def binary_step(start: Any, code: Any, prior: float, weight: Any, q: Any, counts: Any) -> Any:
    """One step with two classes: answer ``code = 2 w + l`` adds ``weight[code]`` nats for class 1.

    ``q`` of shape (n, 2) and ``counts`` of shape (2 W,), the expected answers given to items of class 1, are
    overwritten; returns the mean change of q.
    """
    n, change = len(start) - 1, 0.0
    counts[:] = 0.0
    for i in range(n):
        odds = prior
        for t in range(start[i], start[i + 1]):
            odds += weight[code[t]]
        p = 1.0 / (1.0 + np.exp(-odds))
        for t in range(start[i], start[i + 1]):
            counts[code[t]] += p
        change += 2.0 * abs(p - q[i, 1])
        q[i, 0], q[i, 1] = 1.0 - p, p
    return change / n


@njit(cache=True)
def _digamma(x: float) -> Any:
    """Return the digamma function at x > 0, to 1e-12: recurrence above 8, then its asymptotic series."""
    found = 0.0
    while x < 8.0:
        found -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return found + np.log(x) - 0.5 / x - series


@njit(cache=True)
def learn_strength(counts: Any, prior: Any, steps: int, least: float, most: float) -> Any:
    """Return a better Dirichlet prior (L, C) for `counts` (W, L, C): Minka's fixed-point steps, taken twice as far.

    Each column is the prior of one distribution over L outcomes; its sum is kept between `least` and `most`. One
    more worker, with half an answer of every outcome, keeps small crowds from certainty.
    """
    W, L, C = counts.shape
    prior = prior.copy()
    up, total = np.empty(L), 0.0
    for c in range(C):
        for _ in range(steps):
            size = prior[:, c].sum()
            at_size = _digamma(size)
            down = _digamma(0.5 * L + size) - at_size
            for l in range(L):
                at = _digamma(prior[l, c])
                up[l] = _digamma(0.5 + prior[l, c]) - at
                for w in range(W):
                    if counts[w, l, c] > 0.0:
                        up[l] += _digamma(counts[w, l, c] + prior[l, c]) - at
            for w in range(W):
                total = 0.0
                for l in range(L):
                    total += counts[w, l, c]
                if total > 0.0:
                    down += _digamma(total + size) - at_size
            for l in range(L):
                prior[l, c] *= (max(up[l], 1e-12) / max(down, 1e-12)) ** 2
            size = prior[:, c].sum()
            for l in range(L):
                prior[l, c] = max(prior[l, c] / size * min(max(size, least), most), 1e-3)
    return prior


@njit(cache=True)
def coin_counts(start: Any, worker: Any, label: Any, q: Any, hits: Any) -> None:
    """Expected right answers of each worker."""
    hits[:] = 0.0
    for i in range(q.shape[0]):
        for t in range(start[i], start[i + 1]):
            hits[worker[t]] += q[i, label[t]]


@njit(cache=True)
def table_counts(start: Any, worker: Any, label: Any, q: Any, counts: Any) -> None:
    """Expected counts of (answer, truth) of each worker."""
    counts[:] = 0.0
    for i in range(q.shape[0]):
        for t in range(start[i], start[i + 1]):
            for c in range(q.shape[1]):
                counts[worker[t], label[t], c] += q[i, c]


@njit(cache=True)
def left_out(start: Any, worker: Any, label: Any, prior: Any, table: Any, coin: bool, out: Any) -> None:
    """``out[t, c]``: log odds of the truth of answer t's item when that answer is set aside, largest 0.

    ``table`` is (W, k, k), or (W, 1, 1) with the one-coin gains when `coin`.
    """
    k = out.shape[1]
    score = np.empty(k)
    for i in range(len(start) - 1):
        score[:] = prior
        for t in range(start[i], start[i + 1]):
            if coin:
                score[label[t]] += table[worker[t], 0, 0]
            else:
                for c in range(k):
                    score[c] += table[worker[t], label[t], c]
        for t in range(start[i], start[i + 1]):
            for c in range(k):
                out[t, c] = score[c]
            if coin:
                out[t, label[t]] -= table[worker[t], 0, 0]
            else:
                for c in range(k):
                    out[t, c] -= table[worker[t], label[t], c]
            top = out[t].max()
            for c in range(k):
                out[t, c] -= top


@njit(cache=True)
def right_chance(label: Any, odds: Any, power: float) -> Any:
    """Return how likely each answer is right by the tempered odds of :func:`left_out`."""
    found = np.empty(len(label))
    for t in range(len(label)):
        total = 0.0
        for c in range(odds.shape[1]):
            total += np.exp(power * odds[t, c])
        found[t] = np.exp(power * odds[t, label[t]]) / total
    return found


@njit(cache=True)
def _log_product(right: Any, other: float, s: float) -> Any:
    """Return the log of prod [r s + (1 - r) o (1 - s)], sixteen factors a logarithm."""
    value, product = 0.0, 1.0
    for t in range(len(right)):
        product *= right[t] * s + (1.0 - right[t]) * other * (1.0 - s)
        if t & 15 == 15:
            value += np.log(product)
            product = 1.0
    return value + np.log(product)


@njit(cache=True)
def _slope(right: Any, other: float, a: float, b: float, s: float) -> tuple[float, float]:
    """First and second derivative of the log density of a skill, the second with its sign turned."""
    slope = (a - 1.0) / s - (b - 1.0) / (1.0 - s)
    curve = (a - 1.0) / s**2 + (b - 1.0) / (1.0 - s) ** 2
    for t in range(len(right)):
        wrong = (1.0 - right[t]) * other
        d = (right[t] - wrong) / (right[t] * s + wrong * (1.0 - s))
        slope += d
        curve += d * d
    return slope, curve


@njit(cache=True)
def skill_moments(first: Any, right: Any, other: float, a: float, b: float, mean: Any, deviation: Any) -> None:
    r"""Mean and standard deviation of each worker's skill s under

    .. math:: s^{a-1} (1-s)^{b-1} \prod_t [r_t s + (1 - r_t) o (1 - s)],

    ``right[first[w]:first[w + 1]]`` being how likely the answers of worker w are right by everyone else's, and
    ``other`` = 1 / (k - 1). The log density is concave: safeguarded Newton steps find its mode, and a grid of six
    deviations either way the moments.
    """
    points = 33
    density = np.empty(points)
    for w in range(len(first) - 1):
        r = right[first[w] : first[w + 1]]
        low, high, s = 1e-6, 1.0 - 1e-6, a / (a + b)
        for _ in range(12):
            slope, curve = _slope(r, other, a, b, s)
            if slope > 0.0:
                low = s
            else:
                high = s
            step = slope / max(curve, 1e-12)
            s = s + step if low < s + step < high else 0.5 * (low + high)
            if abs(step) * np.sqrt(curve) < 1e-3:
                break
        _, curve = _slope(r, other, a, b, s)
        reach = max(6.0 / np.sqrt(max(curve, 36.0)), 2.0 / np.sqrt(len(r) + a + b))  # at a border the curve misleads
        near, far = max(1e-9, s - reach), min(1.0 - 1e-9, s + reach)
        for g in range(points):
            x = near + (far - near) * (g + 0.5) / points
            density[g] = (a - 1.0) * np.log(x) + (b - 1.0) * np.log(1.0 - x) + _log_product(r, other, x)
        top, total, one, two = density.max(), 0.0, 0.0, 0.0
        for g in range(points):
            x = near + (far - near) * (g + 0.5) / points - s
            e = np.exp(density[g] - top)
            total += e
            one += e * x
            two += e * x * x
        mean[w] = s + one / total
        deviation[w] = np.sqrt(max(two / total - (one / total) ** 2, 1e-18))
