"""Compiled passes over answers sorted by item: agreement, one expectation-maximisation step, leave-one-out skills."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.linalg._jit import njit

LARGE = 1e200  # a product of numbers from 1 to the number of classes whose logarithm is taken before it overflows


@njit(cache=True)
def number(names: Any, size: int) -> Any:
    """Return names 0..size - 1 numbered in order of appearance, and where each appears first."""
    place, first = np.full(size, -1, np.int64), np.empty(size, np.int64)
    found, met = np.empty(len(names), np.int64), 0
    for t in range(len(names)):
        if place[names[t]] < 0:
            place[names[t]], first[met] = met, t
            met += 1
        found[t] = place[names[t]]
    return found, first[:met].copy()


@njit(cache=True)
def repeated(item: Any, worker: Any, W: int) -> Any:
    """Return whether a worker answered an item more than once; `item` must not fall."""
    last = np.full(W, -1, np.int64)
    for t in range(len(item)):
        if last[worker[t]] == item[t]:
            return True
        last[worker[t]] = item[t]
    return False


@njit(cache=True)
def by_worker(worker: Any, W: int) -> Any:
    """Return where each worker's answers begin, and the answers in order of worker."""
    first = np.zeros(W + 1, np.int64)
    for w in worker:
        first[w + 1] += 1
    for w in range(W):
        first[w + 1] += first[w]
    place, order = first[:-1].copy(), np.empty(len(worker), np.int64)
    for t in range(len(worker)):
        order[place[worker[t]]] = t
        place[worker[t]] += 1
    return first, order


@njit(cache=True)
def _longer(x: Any, used: int, size: int) -> Any:
    """Return an array of `size` that begins with what x holds."""
    found = np.empty(size, x.dtype)
    for t in range(used):
        found[t] = x[t]
    return found


@njit(cache=True)
def agreements(start: Any, item: Any, worker: Any, label: Any, first: Any, order: Any) -> Any:
    """Return the pairs of workers i < j who share items, how many they share, and on how many they agree.

    Workers come from the last to the first; what an item has in store are the answers of those before.
    """
    W, size = len(first) - 1, 2 * len(worker)
    shared, met = np.zeros((W, 2)), np.empty(W, np.int64)  # items in common, and answers alike
    i, j = np.empty(size, np.int64), np.empty(size, np.int64)
    count, same = np.empty(size), np.empty(size)
    store, said = np.empty(len(worker), np.int32), np.empty(len(worker), np.int32)
    full = start[:-1].copy()
    pairs = 0
    for w in range(W - 1, -1, -1):
        seen = 0
        for t in order[first[w] : first[w + 1]]:
            at = item[t]
            for s in range(start[at], full[at]):
                v = store[s]
                if shared[v, 0] == 0.0:
                    met[seen] = v
                    seen += 1
                shared[v, 0] += 1.0
                shared[v, 1] += said[s] == label[t]
        for t in order[first[w] : first[w + 1]]:
            at = item[t]
            store[full[at]], said[full[at]] = w, label[t]
            full[at] += 1
        if pairs + seen > size:
            size = 2 * (pairs + seen)
            i, j = _longer(i, pairs, size), _longer(j, pairs, size)
            count, same = _longer(count, pairs, size), _longer(same, pairs, size)
        for v in met[:seen]:
            i[pairs], j[pairs], count[pairs], same[pairs] = w, v, shared[v, 0], shared[v, 1]
            shared[v, 0], shared[v, 1] = 0.0, 0.0
            pairs += 1
    return i[:pairs], j[:pairs], count[:pairs], same[:pairs]


@njit(cache=True)
def factor_agreement(s: Any, i: Any, j: Any, count: Any, value: Any, sweeps: int) -> Any:
    """Return skills with s_i s_j = value in weighted least squares: alternating, half a step at a time."""
    W = len(s)
    s, top, low = s.copy(), np.empty(W), np.empty(W)
    for _ in range(sweeps):
        for w in range(W):
            top[w], low[w] = 0.0, 0.0
        for e in range(len(i)):
            a, b, c = s[i[e]], s[j[e]], count[e]
            top[i[e]] += c * value[e] * b
            low[i[e]] += c * b * b
            top[j[e]] += c * value[e] * a
            low[j[e]] += c * a * a
        for w in range(W):
            if low[w] > 0.0:
                s[w] = min(max(0.5 * (s[w] + top[w] / low[w]), -1.0), 1.0)
    return s


@njit(cache=True)
def _softmax(score: Any, q: Any, i: int) -> Any:
    """Write the softmax of `score` into ``q[i]``; return how much that changed, and its entropy in two parts.

    The entropy is the second number, and the logarithm of the third, from 1 to k: those of many items are taken in one.
    """
    k = len(score)
    top, total, change, mean = score[0], 0.0, 0.0, 0.0
    for c in range(1, k):
        top = max(top, score[c])
    for c in range(k):
        above = score[c] - top
        x = np.exp(above)
        score[c] = x
        total += x
        if x > 0.0:
            mean += x * above
    share = 1.0 / total
    for c in range(k):
        p = score[c] * share
        change += abs(p - q[i, c])
        q[i, c] = p
    return change, -mean * share, total


@njit(cache=True)
def coin_step(start: Any, worker: Any, label: Any, prior: Any, gain: Any, q: Any, hits: Any) -> Any:
    """One step where worker w favours its answer by ``gain[w]`` nats; return the mean change of q, and its entropy.

    ``prior`` of shape (k,) in nats; ``q`` of shape (n, k) and ``hits`` of shape (W,) are overwritten.
    """
    n, k = q.shape
    hits[:] = 0.0
    change, entropy, product = 0.0, 0.0, 1.0
    score = np.empty(k)
    for i in range(n):
        for c in range(k):
            score[c] = prior[c]
        for t in range(start[i], start[i + 1]):
            score[label[t]] += gain[worker[t]]
        moved, spread, total = _softmax(score, q, i)
        change += moved
        entropy += spread
        product *= total
        if product > LARGE:
            entropy += np.log(product)
            product = 1.0
        for t in range(start[i], start[i + 1]):
            hits[worker[t]] += q[i, label[t]]
    return change / n, entropy + np.log(product)


@njit(cache=True)
def table_step(
    start: Any, worker: Any, label: Any, prior: Any, table: Any, q: Any, counts: Any
) -> Any:
    """One step with ``table[w, l, c]``, log chance that worker w says l when c is true; return the mean change of q
    and its entropy.

    ``q`` of shape (n, k) and ``counts`` of shape (W, k, k) are overwritten.
    """
    n, k = q.shape
    counts[:] = 0.0
    change, entropy, product = 0.0, 0.0, 1.0
    score = np.empty(k)
    for i in range(n):
        for c in range(k):
            score[c] = prior[c]
        for t in range(start[i], start[i + 1]):
            w, l = worker[t], label[t]
            for c in range(k):
                score[c] += table[w, l, c]
        moved, spread, total = _softmax(score, q, i)
        change += moved
        entropy += spread
        product *= total
        if product > LARGE:
            entropy += np.log(product)
            product = 1.0
        for t in range(start[i], start[i + 1]):
            w, l = worker[t], label[t]
            for c in range(k):
                counts[w, l, c] += q[i, c]
    return change / n, entropy + np.log(product)


@njit(cache=True)
def binary_step(start: Any, code: Any, prior: float, weight: Any, q: Any, counts: Any) -> Any:
    """One step with two classes: answer ``code = 2 w + l`` adds ``weight[code]`` nats for class 1.

    ``q`` of shape (n, 2) and ``counts`` of shape (2 W,), the expected answers given to items of class 1, are
    overwritten; returns the mean change of q, and its entropy.
    """
    n, change, entropy, product = len(start) - 1, 0.0, 0.0, 1.0
    counts[:] = 0.0
    for i in range(n):
        odds = prior
        for t in range(start[i], start[i + 1]):
            odds += weight[code[t]]
        e = np.exp(-abs(odds))
        less = e / (1.0 + e)
        p = less if odds < 0.0 else 1.0 - less
        for t in range(start[i], start[i + 1]):
            counts[code[t]] += p
        change += 2.0 * abs(p - q[i, 1])
        q[i, 0], q[i, 1] = 1.0 - p, p
        entropy += abs(odds) * less  # and log(1 + e), a thousand in one logarithm
        product *= 1.0 + e
        if i % 1000 == 999:
            entropy += np.log(product)
            product = 1.0
    return change / n, entropy + np.log(product)


@njit(cache=True)
def _digamma(x: float) -> Any:
    """Return the digamma function at x > 0, to 1e-12: recurrence above 6, then its asymptotic series."""
    found = 0.0
    while x < 6.0:
        found -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (
        1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760))))
    )
    return found + np.log(x) - 0.5 / x - series


@njit(cache=True)
def _digamma_sum(counts: Any, a: float) -> Any:
    """Return the sum of digamma(count + a) - digamma(a) over counts above 0, sixteen logarithms in one."""
    found, product, met = 0.0, 1.0, 0
    for w in range(len(counts)):
        if counts[w] > 0.0:
            x = counts[w] + a
            while x < 6.0:
                found -= 1.0 / x
                x += 1.0
            z = 1.0 / x
            y = z * z
            found -= 0.5 * z
            found -= y * (
                1 / 12
                - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760))))
            )
            product *= x
            met += 1
            if met & 15 == 0:
                found += np.log(product)
                product = 1.0
    return found + np.log(product) - met * _digamma(a)


@njit(cache=True)
def learn_strength(counts: Any, prior: Any, steps: int, least: float, most: float) -> Any:
    """Return a better Dirichlet prior (L, C) for `counts` (W, L, C): Minka's fixed-point steps, taken twice as far.

    Each column is the prior of one distribution over L outcomes; its sum is kept between `least` and `most`. One
    more worker, with half an answer of every outcome, keeps small crowds from certainty.
    """
    W, L, C = counts.shape
    prior = prior.copy()
    up, totals = np.empty(L), np.empty(W)
    for c in range(C):
        for w in range(W):
            totals[w] = 0.0
            for l in range(L):
                totals[w] += counts[w, l, c]
        for _ in range(steps):
            size = prior[:, c].sum()
            down = _digamma(0.5 * L + size) - _digamma(size) + _digamma_sum(totals, size)
            for l in range(L):
                up[l] = (
                    _digamma(0.5 + prior[l, c])
                    - _digamma(prior[l, c])
                    + _digamma_sum(counts[:, l, c], prior[l, c])
                )
            for l in range(L):
                prior[l, c] *= (max(up[l], 1e-12) / max(down, 1e-12)) ** 2
            size = prior[:, c].sum()
            for l in range(L):
                prior[l, c] = max(prior[l, c] / size * min(max(size, least), most), 1e-3)
    return prior


@njit(cache=True)
def class_totals(q: Any) -> Any:
    """Expected number of items of each class."""
    n, k = q.shape
    found = np.zeros(k)
    for i in range(n):
        for c in range(k):
            found[c] += q[i, c]
    return found


@njit(cache=True)
def coin_counts(start: Any, worker: Any, label: Any, q: Any, hits: Any) -> None:
    """Expected right answers of each worker."""
    hits[:] = 0.0
    for i in range(q.shape[0]):
        for t in range(start[i], start[i + 1]):
            hits[worker[t]] += q[i, label[t]]


@njit(cache=True)
def doubt_counts(start: Any, worker: Any, label: Any, q: Any, sums: Any) -> None:
    """Put into ``sums`` of shape (W, 3) the expected right answers of each worker, their variance, and its items' doubt."""
    sums[:] = 0.0
    for i in range(q.shape[0]):
        top = q[i, 0]
        for c in range(1, q.shape[1]):
            top = max(top, q[i, c])
        for t in range(start[i], start[i + 1]):
            p, w = q[i, label[t]], worker[t]
            sums[w, 0] += p
            sums[w, 1] += p * (1.0 - p)
            sums[w, 2] += 1.0 - top


@njit(cache=True)
def table_counts(start: Any, worker: Any, label: Any, q: Any, counts: Any) -> None:
    """Expected counts of (answer, truth) of each worker."""
    counts[:] = 0.0
    for i in range(q.shape[0]):
        for t in range(start[i], start[i + 1]):
            for c in range(q.shape[1]):
                counts[worker[t], label[t], c] += q[i, c]


@njit(cache=True)
def _for_one(table: Any, w: Any, l: Any, coin: bool) -> Any:
    """Nats for class 1 against class 0 in the answer l of worker w."""
    if coin:
        return table[w, 0, 0] if l == 1 else -table[w, 0, 0]
    return table[w, l, 1] - table[w, l, 0]


@njit(cache=True)
def left_out(
    start: Any, worker: Any, label: Any, prior: Any, table: Any, coin: bool, out: Any
) -> None:
    """``out[t, c]``: log odds of the truth of answer t's item when that answer is set aside, largest 0.

    ``table`` is (W, k, k), or (W, 1, 1) with the one-coin gains when `coin`.
    """
    k = out.shape[1]
    score = np.empty(k)
    if k == 2:
        for i in range(len(start) - 1):
            total = prior[1] - prior[0]
            for t in range(start[i], start[i + 1]):
                total += _for_one(table, worker[t], label[t], coin)
            for t in range(start[i], start[i + 1]):
                odds = total - _for_one(table, worker[t], label[t], coin)
                out[t, 0], out[t, 1] = min(-odds, 0.0), min(odds, 0.0)
        return
    for i in range(len(start) - 1):
        for c in range(k):
            score[c] = prior[c]
        for t in range(start[i], start[i + 1]):
            if coin:
                score[label[t]] += table[worker[t], 0, 0]
            else:
                for c in range(k):
                    score[c] += table[worker[t], label[t], c]
        for t in range(start[i], start[i + 1]):
            w, l, top = worker[t], label[t], -np.inf
            for c in range(k):
                less = 0.0
                if not coin:
                    less = table[w, l, c]
                elif c == l:
                    less = table[w, 0, 0]
                out[t, c] = score[c] - less
                top = max(top, out[t, c])
            for c in range(k):
                out[t, c] -= top


@njit(cache=True)
def predicted(odds: Any, said: Any, some: Any, power: float) -> Any:
    """Return the log chance of the answers `some` by the tempered odds of :func:`left_out`.

    ``said[s, c]`` is how likely the worker of ``some[s]`` gives that answer when c is true.
    """
    found, product = 0.0, 1.0
    for s in range(len(some)):
        total, chance = 0.0, 0.0
        for c in range(odds.shape[1]):
            o = odds[some[s], c]
            q = 1.0 if o == 0.0 else np.exp(power * o)
            total += q
            chance += q * said[s, c]
        product *= max(chance / total, 1e-15)
        if s & 15 == 15:
            found += np.log(product)
            product = 1.0
    return found + np.log(product)
