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
from entrywise.types import Array, Indices

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
    from entrywise.linalg import _jit_crowd as jit

    W, k = len(answers.workers), len(answers.classes)
    start, item, worker, label = answers.start, answers.item, answers.worker, answers.label
    first, order = answers.by_worker
    size = np.diff(start)
    if size.max() > CROWDED:
        place, size = np.arange(len(item)) - start[item], np.maximum(size, CROWDED)[item]
        keep = (place * CROWDED) // size != ((place - 1) * CROWDED) // size
        start = np.r_[0, np.cumsum(keep)][start]
        item, worker, label = item[keep], worker[keep], label[keep]
        first, order = jit.by_worker(worker, W)
    i, j, count, same = jit.agreements(start, item, worker, label, first, order)
    return Agreement(i, j, count, (k * same / np.maximum(count, 1.0) - 1.0) / (k - 1.0))


def rank_one_skills(
    answers: Answers, shrink: float, sweeps: int = 30, *, exact: bool = True
) -> Skills:
    r"""Return skills :math:`s` with :math:`s_i s_j \approx` agreement, weighted by the items shared.

    Logarithms first: :math:`\log|s_i| + \log|s_j|` is a Laplacian system on the double cover, where every worker has a
    copy of either sign; a component with no odd cycle leaves a free scale, and its skills are not determined. Then
    weighted least squares in the original space, from workers who are all above a coin and from the signs along
    the tree of the most telling pairs: one weak worker inside that tree turns all behind it, so the second must fit
    better. Each skill is drawn to the mean by `shrink` pseudo-answers. Where a start is all that is asked for, the
    Laplacian need not be solved to the end: not `exact`.
    """
    from entrywise.linalg import _jit_crowd as jit

    W = len(answers.workers)
    i, j, count, value = agreement(answers)
    if not len(i):
        return Skills(np.full(W, np.nan), np.arange(W), np.zeros(W, bool))
    size = np.maximum(
        np.abs(value), 0.5 / np.sqrt(count)
    )  # an agreement near zero is known to one deviation only
    weight = count * size**2
    cover = Laplacian(2 * W, np.r_[i, j], np.r_[j + W, i + W], np.r_[weight, weight])
    plain, sides = Laplacian(W, i, j, weight), cover.components[1]
    component, odd = (
        plain.components[1],
        sides[:W] == sides[W:],
    )  # a walk of odd length joins a worker's two copies
    x = (
        cover.potentials(np.log(np.r_[size, size]))
        if exact
        else _near_potentials(cover, np.log(np.r_[size, size]))
    )
    s = np.exp(np.clip((x[:W] - x[W:]) / 2.0, -5.0, 0.0))
    flips = np.rint(np.abs(plain.walk((value < 0).astype(np.float64))))
    starts = s, np.where(flips % 2 > 0, -s, s)
    fits = [jit.factor_agreement(x, i, j, count, value, sweeps) for x in starts]
    misfit = [float((count * (value - x[i] * x[j]) ** 2).sum()) for x in fits]
    s = fits[int(misfit[1] < 0.98 * misfit[0])]
    given = answers.per_worker
    side = np.bincount(component, s * given, component.max() + 1)
    s = np.where(side[component] < 0, -s, s)
    mean = float((s * given).sum() / given.sum())
    s = (given * s + shrink * mean) / (given + shrink)
    return Skills(np.where(odd, s, np.nan), component, odd)


def _near_potentials(graph: Laplacian, differences: Array) -> Array:
    """Potentials on the tree of the heaviest edges, and some conjugate-gradient steps for the misfit."""
    p = graph.walk(differences)
    flow = graph.weights * (differences - (p[graph.i] - p[graph.j]))
    return np.asarray(p + graph.solve(graph.divergence(flow), 1e-2, method="jacobi", most=30))
