"""Compiled passes over answers sorted by item: one expectation-maximisation step, leave-one-out skills."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def coin_step(start: Any, worker: Any, label: Any, prior: Any, gain: Any, q: Any, hits: Any) -> tuple[float, float]:
    """One step where worker w favours its answer by ``gain[w]`` nats; return (change of q, entropy of q).

    ``prior`` of shape (k,) in nats; ``q`` of shape (n, k) and ``hits`` of shape (W,) are overwritten.
    """
    n, k = q.shape
    hits[:] = 0.0
    change, entropy = 0.0, 0.0
    score = np.empty(k)
    for i in range(n):
        score[:] = prior
        for t in range(start[i], start[i + 1]):
            score[label[t]] += gain[worker[t]]
        top, total = score.max(), 0.0
        for c in range(k):
            score[c] = score[c] - top
            e = np.exp(score[c])
            total += e
        log_total = np.log(total)
        for c in range(k):
            p = np.exp(score[c]) / total
            entropy -= p * (score[c] - log_total)
            change += abs(p - q[i, c])
            q[i, c] = p
        for t in range(start[i], start[i + 1]):
            hits[worker[t]] += q[i, label[t]]
    return change / n, entropy


@njit(cache=True)
def table_step(start: Any, worker: Any, label: Any, prior: Any, table: Any, q: Any, counts: Any) -> tuple[float, float]:
    """One step with ``table[w, l, c]``, log chance that worker w says l when c is true.

    ``q`` of shape (n, k) and ``counts`` of shape (W, k, k) are overwritten; returns (change of q, entropy of q).
    """
    n, k = q.shape
    counts[:] = 0.0
    change, entropy = 0.0, 0.0
    score = np.empty(k)
    for i in range(n):
        score[:] = prior
        for t in range(start[i], start[i + 1]):
            w, l = worker[t], label[t]
            for c in range(k):
                score[c] += table[w, l, c]
        top, total = score.max(), 0.0
        for c in range(k):
            score[c] = score[c] - top
            total += np.exp(score[c])
        log_total = np.log(total)
        for c in range(k):
            p = np.exp(score[c]) / total
            entropy -= p * (score[c] - log_total)
            change += abs(p - q[i, c])
            q[i, c] = p
        for t in range(start[i], start[i + 1]):
            w, l = worker[t], label[t]
            for c in range(k):
                counts[w, l, c] += q[i, c]
    return change / n, entropy


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
    """``out[t, c]``: posterior of the truth of answer t's item when that answer is set aside.

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
            top, total = out[t].max(), 0.0
            for c in range(k):
                out[t, c] = np.exp(out[t, c] - top)
                total += out[t, c]
            for c in range(k):
                out[t, c] /= total


@njit(cache=True)
def skill_moments(
    first: Any, order: Any, right: Any, other: float, a: float, b: float, mean: Any, deviation: Any
) -> None:
    r"""Mean and standard deviation of each worker's skill s under

    .. math:: s^{a-1} (1-s)^{b-1} \prod_t [r_t s + (1 - r_t) o (1 - s)],

    ``right[t]`` being how likely answer t is right by everyone else's answers and ``other`` = 1 / (k - 1).
    ``order[first[w]:first[w + 1]]`` are the answers of worker w. The log density is concave: bisection finds
    its mode, and a grid of eight deviations either way the moments.
    """
    points = 65
    log_density = np.empty(points)
    for w in range(len(first) - 1):
        low, high = 1e-9, 1.0 - 1e-9
        for _ in range(40):
            s = 0.5 * (low + high)
            slope = (a - 1.0) / s - (b - 1.0) / (1.0 - s)
            for t in range(first[w], first[w + 1]):
                r = right[order[t]]
                wrong = (1.0 - r) * other
                slope += (r - wrong) / (r * s + wrong * (1.0 - s))
            if slope > 0.0:
                low = s
            else:
                high = s
        s = 0.5 * (low + high)
        curve = (a - 1.0) / s**2 + (b - 1.0) / (1.0 - s) ** 2
        for t in range(first[w], first[w + 1]):
            r = right[order[t]]
            wrong = (1.0 - r) * other
            curve += ((r - wrong) / (r * s + wrong * (1.0 - s))) ** 2
        reach = 8.0 / np.sqrt(max(curve, 64.0))
        near, far = max(1e-9, s - reach), min(1.0 - 1e-9, s + reach)
        for g in range(points):
            x = near + (far - near) * g / (points - 1)
            value = (a - 1.0) * np.log(x) + (b - 1.0) * np.log(1.0 - x)
            for t in range(first[w], first[w + 1]):
                r = right[order[t]]
                value += np.log(r * x + (1.0 - r) * other * (1.0 - x))
            log_density[g] = value
        top = log_density.max()
        total, one, two = 0.0, 0.0, 0.0
        for g in range(points):
            x = near + (far - near) * g / (points - 1)
            e = np.exp(log_density[g] - top)
            total += e
            one += e * x
            two += e * x * x
        mean[w] = one / total
        deviation[w] = np.sqrt(max(two / total - mean[w] ** 2, 1e-18))
