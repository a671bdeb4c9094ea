r"""Worker skills from agreement alone, by rank-one completion.

Two workers who are right with chances :math:`p_i, p_j`, errors spread evenly over the other classes, agree with chance
:math:`(1 + (k-1) s_i s_j) / k` where :math:`s = (k p - 1) / (k - 1)`: agreement is a rank-one matrix, seen where two
workers share items, with a noise that falls with the number they share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrywise.apply._answers import Answers
from entrywise.linalg.laplacian import Laplacian
from entrywise.queries import Array, Indices

CROWDED = 60  # of an item's answers, so many are compared with each other


class Agreement(NamedTuple):
    """Pairs of workers ``i < j`` who share ``shared`` items, and their scaled agreement."""

    i: Indices
    j: Indices
    shared: Array
    value: Array


class Skills(NamedTuple):
    """What agreement tells: ``skill`` (1 always right, 0 a coin, below 0 adversarial), NaN where it is not determined."""

    skill: Array
    component: Indices
    determined: NDArray[np.bool_]


def agreement(answers: Answers) -> Agreement:
    """Compare all pairs of workers on the items they share."""
    from scipy.sparse import coo_array

    W, k = len(answers.workers), len(answers.classes)
    item, worker, label = answers.item, answers.worker, answers.label
    place = np.arange(len(item)) - answers.start[item]
    size = np.diff(answers.start)[item]
    keep = (size > 1) & (
        (place * CROWDED) // np.maximum(size, CROWDED) != ((place - 1) * CROWDED) // np.maximum(size, CROWDED)
    )
    item, worker, label = item[keep], worker[keep], label[keep]
    ones = np.ones(len(item))
    said = coo_array((ones, (item, worker)), shape=(len(answers.items), W)).tocsr()
    said_so = coo_array((ones, (item * k + label, worker)), shape=(len(answers.items) * k, W)).tocsr()
    both = (said.T @ said).tocoo()
    upper = both.row < both.col
    i, j, count = both.row[upper].astype(np.int64), both.col[upper].astype(np.int64), both.data[upper]
    alike = (said_so.T @ said_so).tocoo()
    upper = alike.row < alike.col
    key, same = alike.row[upper].astype(np.int64) * W + alike.col[upper], alike.data[upper]
    order, mine = np.argsort(key), i * W + j
    agreed = np.zeros(len(i))
    if len(key):
        at = np.minimum(np.searchsorted(key[order], mine), len(key) - 1)
        hit = key[order][at] == mine
        agreed[hit] = same[order][at][hit]
    return Agreement(i, j, count, (k * agreed / np.maximum(count, 1.0) - 1.0) / (k - 1.0))


def rank_one_skills(answers: Answers, shrink: float, sweeps: int = 30) -> Skills:
    r"""Return skills :math:`s` with :math:`s_i s_j \approx` agreement, weighted by the items shared.

    Logarithms first: :math:`\log|s_i| + \log|s_j|` is a Laplacian system on the double cover, where every worker has a
    copy of either sign; a component with no odd cycle leaves a free scale, and its skills are not determined. Then
    weighted least squares in the original space, from workers who are all above a coin and from the signs along
    the tree of the most telling pairs: one weak worker inside that tree turns all behind it, so the second must fit
    better. Each skill is drawn to the mean by `shrink` pseudo-answers.
    """
    W = len(answers.workers)
    i, j, count, value = agreement(answers)
    component, odd = _components(W, i, j)
    if not len(i):
        return Skills(np.full(W, np.nan), component, odd)
    size = np.maximum(np.abs(value), 0.5 / np.sqrt(count))  # an agreement near zero is known to one deviation only
    weight = count * size**2
    cover = Laplacian(2 * W, np.r_[i, j], np.r_[j + W, i + W], np.r_[weight, weight])
    x = cover.potentials(np.log(np.r_[size, size]))
    s = np.exp(np.clip((x[:W] - x[W:]) / 2.0, -5.0, 0.0))
    flips = np.rint(np.abs(Laplacian(W, i, j, weight).walk((value < 0).astype(np.float64))))
    starts = s, np.where(flips % 2 > 0, -s, s)
    fits = [_least_squares(x, i, j, count, value, sweeps) for x in starts]
    misfit = [float((count * (value - x[i] * x[j]) ** 2).sum()) for x in fits]
    s = fits[int(misfit[1] < 0.98 * misfit[0])]
    given = answers.per_worker
    side = np.bincount(component, s * given, component.max() + 1)
    s = np.where(side[component] < 0, -s, s)
    mean = float((s * given).sum() / given.sum())
    s = (given * s + shrink * mean) / (given + shrink)
    return Skills(np.where(odd, s, np.nan), component, odd)


def _least_squares(s: Array, i: Indices, j: Indices, count: Array, value: Array, sweeps: int) -> Array:
    """Weighted alternating least squares on s_i s_j = value, half a step at a time."""
    W = len(s)
    for _ in range(sweeps):
        top = np.bincount(i, count * value * s[j], W) + np.bincount(j, count * value * s[i], W)
        low = np.bincount(i, count * s[j] ** 2, W) + np.bincount(j, count * s[i] ** 2, W)
        s = np.clip(0.5 * (s + np.where(low > 0, top / np.maximum(low, 1e-300), s)), -1.0, 1.0)
    return s


def _components(W: int, i: Indices, j: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """Components of the worker graph, and which workers lie on one with an odd cycle."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(i), np.int8)
    _, component = connected_components(coo_array((ones, (i, j)), shape=(W, W)), directed=False)
    ends = np.r_[i, j], np.r_[j + W, i + W]
    _, cover = connected_components(coo_array((np.r_[ones, ones], ends), shape=(2 * W, 2 * W)), directed=False)
    return component.astype(np.int64), cover[:W] == cover[W:]
