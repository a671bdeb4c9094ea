r"""Worker skills from agreement alone, by rank-one completion.

Two workers who are right with chances :math:`p_i, p_j`, errors spread evenly over the other classes, agree with chance
:math:`(1 + (k-1) s_i s_j) / k` where :math:`s = (k p - 1) / (k - 1)`: agreement is a rank-one matrix, seen where two
workers share items, with a noise that falls with the number they share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.apply.crowd.answers import CrowdAnswers, Repeats
from entrywise.apply.names import Names
from entrywise.exceptions import ParameterError
from entrywise.linalg.laplacian import Laplacian
from entrywise.linalg.small import FEW_NODES
from entrywise.types import Array, Indices

CROWDED = 60  # of an item's answers, so many are compared with each other
TOO_MANY = (
    250_000  # pairs of answers from which some items are left out; ten public sets have fewer
)
ENOUGH = 30  # pairs for each worker that are kept then: noisy skills (deviations of .2) that ended in the same labels 27 times of 27
FEW_ANSWERS = 30  # of a worker: items of those who gave fewer are never left out
SHRINK = (
    20.0  # pseudo-answers at the mean skill: 0, 20 and 60 were tried, 20 loses least to the vote
)
WEAKEST = -5.0  # log skill of a worker whose agreement is all noise, at the start
SWEEPS = 30  # of least squares
ROUGH = 8  # of them for a start: skills are then .03 from the end, and have deviations of .2
NEAR, STEPS = 0.01, 30  # relative residual of a start's logarithms, and steps towards it at most
TURNED = 0.98  # of the misfit: what signs along the tree must reach to be believed


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


def agreement_skills(
    items: ArrayLike,
    workers: ArrayLike,
    labels: ArrayLike,
    *,
    shrink: float = SHRINK,
    repeats: Repeats = "refuse",
) -> tuple[Names, Array]:
    """Return the workers and their skills from agreement alone, by rank-one completion.

    A skill is (k p - 1) / (k - 1) for a worker who is right with chance p among k classes: 1 always right, 0 a coin,
    below 0 adversarial. It is NaN where agreement does not determine it: a worker, or a group of workers,
    without a cycle of odd length in the graph of shared items. `shrink` is a number of pseudo-answers at the mean.

    Examples
    --------
    >>> who, skill = agreement_skills([1, 1, 1, 2, 2, 2, 3], list("abcabcd"), list("xxyyyyx"), shrink=0)
    >>> who.tolist(), np.isnan(skill).tolist()
    (['a', 'b', 'c', 'd'], [False, False, False, True])
    """
    if not (np.isfinite(shrink) and shrink >= 0):
        raise ParameterError(f"shrink must be finite and not below 0, got {shrink}")
    answers = CrowdAnswers.of(items, workers, labels, None, repeats)
    return answers.workers, rank_one_skills(answers, shrink).skill


def agreement(answers: CrowdAnswers, *, thin: bool = False) -> Agreement:
    """Compare all pairs of workers on the items they share; with `thin`, on some of these where pairs are very many."""
    W, k = len(answers.workers), len(answers.classes)
    start, item, worker, label = answers.start, answers.item, answers.worker, answers.label
    if np.diff(start).max() > CROWDED:
        keep = _spread(start, item)
        start = np.r_[0, np.cumsum(keep)][start]
        item, worker, label = item[keep], worker[keep], label[keep]
    size = np.diff(start)
    pairs = size * (size - 1) // 2
    if thin and pairs.sum() > TOO_MANY:
        kept = _thinned(answers, pairs)
        among = np.repeat(kept, size)
        worker, label, size = worker[among], label[among], size[kept]
        start = np.r_[0, np.cumsum(size)]
        item = np.repeat(np.arange(len(size)), size)
    first, order = answers.steps.by_worker(worker, W)
    i, j, count, same = answers.steps.agreements(start, item, worker, label, first, order)
    share = same / np.maximum(count, 1.0)
    return Agreement(i, j, count, (k * share - 1.0) / (k - 1.0))


def _thinned(answers: CrowdAnswers, pairs: Indices) -> NDArray[np.bool_]:
    """Which items to compare workers on: evenly through the list, and all of workers with few answers."""
    share = max(ENOUGH * len(answers.workers), TOO_MANY // 5) / float(pairs.sum())
    steps = np.floor(np.arange(len(pairs) + 1) * min(share, 1.0))
    kept = np.diff(steps) > 0
    rare = answers.per_worker < FEW_ANSWERS
    kept[answers.item[rare[answers.worker]]] = True
    return np.asarray(kept)


def _spread(start: Indices, item: Indices) -> NDArray[np.bool_]:
    """Which answers to compare: `CROWDED` of each item, evenly through its list."""
    place = np.arange(len(item)) - start[item]
    size = np.maximum(np.diff(start), CROWDED)[item]
    return np.asarray((place * CROWDED) // size != ((place - 1) * CROWDED) // size)


def rank_one_skills(answers: CrowdAnswers, shrink: float, *, exact: bool = True) -> Skills:
    r"""Return skills :math:`s` with :math:`s_i s_j \approx` agreement, weighted by the items shared.

    Logarithms first: :math:`\log|s_i| + \log|s_j|` is a Laplacian system on the double cover, where every worker has a
    copy of either sign; a component with no odd cycle leaves a free scale, and its skills are not determined. Then
    weighted least squares in the original space, from workers who are all above a coin and from the signs along
    the tree of the most telling pairs: one weak worker inside that tree turns all behind it, so the second must fit
    better. Each skill is drawn to the mean by `shrink` pseudo-answers. Where a start is all that is asked for, not `exact`,
    the Laplacian need not be solved to the end, and of very many pairs some are enough.
    """
    W = len(answers.workers)
    i, j, count, value = agreement(answers, thin=not exact)
    if not len(i):
        return Skills(np.full(W, np.nan), np.arange(W), np.zeros(W, bool))
    # an agreement near zero is known to one deviation only
    size = np.maximum(np.abs(value), 0.5 / np.sqrt(count))
    weight = count * size**2
    graph = Laplacian(W, i, j, weight)
    odd = _on_odd_cycles(graph)
    component = graph.components[1]
    s = np.exp(np.clip(_log_sizes(graph, np.log(size), exact), WEAKEST, 0.0))
    flips = np.rint(np.abs(graph.walk((value < 0).astype(np.float64))))
    starts = s, np.where(flips % 2 > 0, -s, s)
    sweeps = SWEEPS if exact else ROUGH
    fits = [answers.steps.factor_agreement(x, i, j, count, value, sweeps) for x in starts]
    misfit = [float((count * (value - x[i] * x[j]) ** 2).sum()) for x in fits]
    s = fits[int(misfit[1] < TURNED * misfit[0])]
    given = answers.per_worker
    side = np.bincount(component, s * given, component.max() + 1)
    s = np.where(side[component] < 0, -s, s)
    mean = float((s * given).sum() / given.sum())
    s = (given * s + shrink * mean) / (given + shrink)
    return Skills(np.where(odd, s, np.nan), component, odd)


def _on_odd_cycles(graph: Laplacian) -> NDArray[np.bool_]:
    """Which workers are in a component with a cycle of odd length: an edge joins two that are alike far along the tree."""
    side = np.rint(np.abs(graph.walk(np.ones(len(graph.i))))) % 2
    parts, component = graph.components
    odd = np.zeros(parts, bool)
    odd[component[graph.i[side[graph.i] == side[graph.j]]]] = True
    return np.asarray(odd[component])


def _log_sizes(graph: Laplacian, log_size: Array, exact: bool) -> Array:
    """Logarithms of the skills' sizes whose sums along edges are known, by potentials on the double cover."""
    if not exact and 2 * graph.n > FEW_NODES:
        return _near_logs(graph, log_size)
    W, i, j = graph.n, graph.i, graph.j
    cover = Laplacian(2 * W, np.r_[i, j], np.r_[j + W, i + W], np.r_[graph.weights, graph.weights])
    x = cover.potentials(np.r_[log_size, log_size])
    return np.asarray((x[:W] - x[W:]) / 2.0)


def _near_logs(graph: Laplacian, log_size: Array) -> Array:
    r"""Return x with :math:`x_i + x_j \approx` the logarithms, near to weighted least squares.

    The normal equations are those of the double cover for potentials of opposite sign on the two copies; conjugate
    gradients from 0, scaled by the diagonal.
    """
    W, i, j, weight = graph.n, graph.i, graph.j, graph.weights

    def gathered(flow: Array) -> Array:
        return np.asarray(np.bincount(i, flow, W) + np.bincount(j, flow, W))

    diagonal = np.maximum(gathered(weight), 1e-300)
    x, r = np.zeros(W), gathered(weight * log_size)
    z = r / diagonal
    p, now = z, float(r @ z)
    goal = NEAR**2 * now
    for _ in range(STEPS):
        if now <= goal:
            break
        q = gathered(weight * (p[i] + p[j]))
        far = now / float(p @ q)
        x, r = x + far * p, r - far * q
        z = r / diagonal
        now, before = float(r @ z), now
        p = z + (now / before) * p
    return x
