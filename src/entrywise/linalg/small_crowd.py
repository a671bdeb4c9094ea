"""The compiled steps of crowds in numpy alone, for few answers: nothing to compile, nothing to import.

They compute what :mod:`entrywise.linalg._jit_crowd` computes, to round-off; which of the two is taken follows from the
number of answers alone.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

FEW_ANSWERS = (
    10_000  # above, numba's import and its cached kernels take less time than numpy's passes
)


def crowd_steps(answers: int) -> Any:
    """Return the module with the steps for so many answers: this one, or the compiled one."""
    if answers <= FEW_ANSWERS:
        return sys.modules[__name__]
    from entrywise.linalg import _jit_crowd

    return _jit_crowd


def _items(start: Indices) -> Indices:
    """Return the item of each answer."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def number(names: Indices, size: int) -> tuple[Indices, Indices]:
    """Return names 0..size - 1 numbered in order of appearance, and where each appears first."""
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[inverse.ravel()], first[order]


def repeated(item: Indices, worker: Indices, W: int) -> bool:
    """Return whether a worker answered an item more than once."""
    return len(np.unique(item * W + worker)) < len(item)


def by_worker(worker: Indices, W: int) -> tuple[Indices, Indices]:
    """Return where each worker's answers begin, and the answers in order of worker."""
    first = np.zeros(W + 1, np.int64)
    np.cumsum(np.bincount(worker, minlength=W), out=first[1:])
    return first, np.argsort(worker, kind="stable")


def agreements(
    start: Indices, item: Indices, worker: Indices, label: Indices, first: Indices, order: Indices
) -> tuple[Indices, Indices, Array, Array]:
    """Return the pairs of workers i < j who share items, how many they share, and on how many they agree.

    In the order of the compiled step: the last i first, its pairs as its answers meet them.
    """
    W = len(first) - 1
    rank = np.empty(len(worker), np.int64)  # of each answer among its worker's
    rank[order] = np.arange(len(worker)) - first[worker[order]]
    lows, highs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for lag in range(1, int(np.diff(start).max(initial=0))):
        t = np.flatnonzero(item[lag:] == item[:-lag])
        swap = worker[t] > worker[t + lag]
        lows.append(np.where(swap, t + lag, t))
        highs.append(np.where(swap, t, t + lag))
    low, high = np.concatenate(lows), np.concatenate(highs)
    other = worker[low] != worker[high]
    low, high = low[other], high[other]
    met = np.lexsort((-worker[high], rank[low], -worker[low]))
    low, high = low[met], high[met]
    _, at, pair = np.unique(worker[low] * W + worker[high], return_index=True, return_inverse=True)
    shared = np.bincount(pair.ravel(), minlength=len(at)).astype(np.float64)
    same = (label[low] == label[high]).astype(np.float64)
    agreed = np.asarray(np.bincount(pair.ravel(), same, len(at)), np.float64)
    turn = np.argsort(at, kind="stable")
    at = at[turn]
    return worker[low[at]], worker[high[at]], shared[turn], agreed[turn]


def factor_agreement(
    s: Array, i: Indices, j: Indices, count: Array, value: Array, sweeps: int
) -> Array:
    """Return skills with s_i s_j = value in weighted least squares: alternating, half a step at a time."""
    W, both = len(s), np.r_[i, j]
    weight = np.r_[count, count]
    told = weight * np.r_[value, value]
    s = s.copy()
    for _ in range(sweeps):
        across = np.r_[s[j], s[i]]
        top = np.bincount(both, told * across, W)
        low = np.bincount(both, weight * across**2, W)
        step = np.divide(top, low, out=s.copy(), where=low > 0)
        s = np.where(low > 0, np.clip(0.5 * (s + step), -1.0, 1.0), s)
    return s


def _softmax(score: Array, q: Array) -> tuple[float, float]:
    """Write the softmax of `score` (n, k) into `q`; return the mean change of q, and its entropy."""
    above = score - score.max(axis=1, keepdims=True)
    chance = np.exp(above)
    total = chance.sum(axis=1)
    mean = np.sum(np.where(chance > 0, chance * above, 0.0), axis=1)
    new = chance / total[:, None]
    change = float(np.abs(new - q).sum()) / len(q)
    q[:] = new
    return change, float((np.log(total) - mean / total).sum())


def coin_step(
    start: Indices,
    worker: Indices,
    label: Indices,
    prior: Array,
    gain: Array,
    q: Array,
    hits: Array,
) -> tuple[float, float]:
    """One step where worker w favours its answer by ``gain[w]`` nats; return the mean change of q, and its entropy."""
    n, k = q.shape
    item = _items(start)
    score = prior + np.bincount(item * k + label, gain[worker], n * k).reshape(n, k)
    found = _softmax(score, q)
    hits[:] = np.bincount(worker, q[item, label], len(hits))
    return found


def table_step(
    start: Indices,
    worker: Indices,
    label: Indices,
    prior: Array,
    table: Array,
    q: Array,
    counts: Array,
) -> tuple[float, float]:
    """One step with ``table[w, l, c]``, log chance that worker w says l when c is true; return the change and entropy."""
    found = _softmax(_scores(start, worker, label, prior, table), q)
    table_counts(start, worker, label, q, counts)
    return found


def _scores(start: Indices, worker: Indices, label: Indices, prior: Array, table: Array) -> Array:
    """Return the log odds of each item, shape (n, k)."""
    item, n = _items(start), len(start) - 1
    told = table[worker, label]  # (t, k)
    return np.asarray(prior + np.column_stack([np.bincount(item, x, n) for x in told.T]))


def binary_step(
    start: Indices, code: NDArray[np.int32], prior: float, weight: Array, q: Array, counts: Array
) -> tuple[float, float]:
    """One step with two classes: answer ``code = 2 w + l`` adds ``weight[code]`` nats for class 1."""
    n, item = len(start) - 1, _items(start)
    odds = prior + np.bincount(item, weight[code], n)
    e = np.exp(-np.abs(odds))
    less = e / (1.0 + e)
    p = np.where(odds < 0.0, less, 1.0 - less)
    counts[:] = np.bincount(code, p[item], len(counts))
    change = 2.0 * float(np.abs(p - q[:, 1]).sum())
    q[:, 0], q[:, 1] = 1.0 - p, p
    return change / n, float((np.abs(odds) * less + np.log1p(e)).sum())


def learn_strength(counts: Array, prior: Array, steps: int, least: float, most: float) -> Array:
    """Return a better Dirichlet prior (L, C) for `counts` (W, L, C): Minka's fixed-point steps, taken twice as far."""
    from scipy.special import psi

    L = counts.shape[1]
    prior = prior.copy()
    totals = counts.sum(axis=1)  # (W, C)

    def rise(given: Array, a: Array, half: float) -> Array:
        """Sum over workers of digamma(given + a) - digamma(a), and one more with `half`."""
        base = psi(a)
        every = np.where(given > 0, psi(np.maximum(given, 0.0) + a) - base, 0.0).sum(axis=0)
        return np.asarray(psi(half + a) - base + every)

    for _ in range(steps):
        down = np.maximum(rise(totals, prior.sum(axis=0), 0.5 * L), 1e-12)
        prior = prior * (np.maximum(rise(counts, prior, 0.5), 1e-12) / down) ** 2
        size = prior.sum(axis=0)
        prior = np.maximum(prior / size * np.clip(size, least, most), 1e-3)
    return prior


def class_totals(q: Array) -> Array:
    """Expected number of items of each class."""
    return np.asarray(q.sum(axis=0))


def coin_counts(start: Indices, worker: Indices, label: Indices, q: Array, hits: Array) -> None:
    """Expected right answers of each worker."""
    hits[:] = np.bincount(worker, q[_items(start), label], len(hits))


def doubt_counts(start: Indices, worker: Indices, label: Indices, q: Array, sums: Array) -> None:
    """Put into ``sums`` of shape (W, 3) the expected right answers of each worker, their variance, and its items' doubt."""
    item = _items(start)
    p, top = q[item, label], q.max(axis=1)[item]
    for c, told in enumerate((p, p * (1.0 - p), 1.0 - top)):
        sums[:, c] = np.bincount(worker, told, len(sums))


def table_counts(start: Indices, worker: Indices, label: Indices, q: Array, counts: Array) -> None:
    """Expected counts of (answer, truth) of each worker."""
    W, k, _ = counts.shape
    item, code = _items(start), worker * k + label
    for c in range(k):
        counts[:, :, c] = np.bincount(code, q[item, c], W * k).reshape(W, k)


def left_out(
    start: Indices,
    worker: Indices,
    label: Indices,
    prior: Array,
    table: Array,
    coin: bool,
    out: Array,
) -> None:
    """``out[t, c]``: log odds of the truth of answer t's item when that answer is set aside, largest 0.

    ``table`` is (W, k, k), or (W, 1, 1) with the one-coin gains when `coin`.
    """
    item, k = _items(start), out.shape[1]
    if coin:
        told = np.zeros(out.shape)
        told[np.arange(len(worker)), label] = table[worker, 0, 0]
    else:
        told = table[worker, label]
    total = np.column_stack([np.bincount(item, told[:, c], len(start) - 1) for c in range(k)])
    out[:] = (prior + total)[item] - told
    out -= out.max(axis=1, keepdims=True)


def predicted(odds: Array, said: Array, some: Indices, power: float) -> float:
    """Return the log chance of the answers `some` by the tempered odds of :func:`left_out`."""
    q = np.exp(power * odds[some])
    chance = (q * said).sum(axis=1) / q.sum(axis=1)
    return float(np.log(np.maximum(chance, 1e-15)).sum())
