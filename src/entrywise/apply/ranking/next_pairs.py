r"""Which pairs should meet next: those whose game is expected to lower the uncertainty of the order most.

A game of a and b adds its information :math:`v = E[p(1-p)]` to the edge between them, so that the covariance
:math:`\Sigma` of the scores falls by :math:`v u u^\top / (1 + v R)`, :math:`u = \Sigma(e_a - e_b)`, R being the variance of the
difference (the effective resistance). A batch is chosen greedily, each pair as if those before it had been played.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.names import Names
from entrywise.apply.ranking.deviations import covariance
from entrywise.apply.ranking.outcomes import moments
from entrywise.apply.ranking.rank import Ranking
from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.linalg.laplacian import Laplacian
from entrywise.types import Array, Indices

Goal = Literal["all"] | int
DENSE = 1000  # items up to which every pair is looked at, with the covariance as an array
NEAR = 10  # beyond, each item is looked at beside so many that stand next to it
PROBES = 60  # and variances of differences come from so many solves: to about 18 %


class NextPairs(NamedTuple):
    """Pairs to compare next, the most telling first.

    ``first`` and ``second`` of shape (limit,), ``chance`` that the first wins, and the ``gain``: by how much of its variance the
    game lowers the difference of the two, in the expected case.
    """

    first: Names
    second: Names
    chance: Array
    gain: Array


def next_pairs(found: Ranking, limit: int = 50, *, goal: Goal = "all") -> NextPairs:
    r"""Return the pairs whose comparisons tell most of the order.

    Parameters
    ----------
    found : Ranking
        What :func:`rank` says of the games so far, by ``bradley-terry``.
    limit : int
        Comparisons that can be made before the next look. A pair may be named more than once.
    goal : "all" or int
        The whole order, or who is among the best so many: then differences across that border alone count.

    Notes
    -----
    What is lowered most is :math:`\sum_{cd} \phi(z_{cd})\, \sigma_{cd}^2 / \sigma_{cd}` over the differences that matter, z being a
    difference in its own deviations: a difference that is large for sure needs no more games.
    Components are first joined: their best known items meet until all hang together. Beyond 1000 items each is looked
    at beside its 10 neighbours on either side in the order, and meets at most once a round.

    Examples
    --------
    >>> from entrywise.apply.ranking import rank
    >>> found = rank(["a", "a", "b", "c"], ["b", "b", "c", "d"])
    >>> first, second, chance, gain = next_pairs(found, 1)
    >>> sorted([str(first[0]), str(second[0])])
    ['b', 'd']
    """
    n = len(found.items)
    if limit < 1:
        raise ParameterError(f"limit must be at least 1, got {limit}")
    if goal != "all" and not (isinstance(goal, int) and 1 <= goal < n):
        raise ParameterError(f"goal must be all or a number of items in 1..{n - 1}, got {goal!r}")
    if np.isnan(found.scatter).any() or not np.isfinite(found.spread):
        raise NotIdentifiable(
            "what a game would tell needs a posterior; rank with method='bradley-terry' and prior='auto'"
        )
    joining = _joining(found)[:limit]
    left = limit - len(joining)
    chosen: list[tuple[int, int]] = list(joining)
    if left:
        chosen += _dense(found, left, goal) if n <= DENSE else _sparse(found, left, goal)
    a, b = np.array(chosen, np.int64).reshape(-1, 2).T
    gap = found.score[a] - found.score[b]
    R = _variances(found, a, b)
    p, v = _averaged(gap, R, found)
    return NextPairs(found.items[a], found.items[b], p, v * R / (1.0 + v * R))


def _joining(found: Ranking) -> list[tuple[int, int]]:
    """The middle item of every further component meets that of the first."""
    part = found.component
    starts = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
    sizes = np.diff(np.r_[starts, len(part)])
    middle = (starts + sizes // 2).tolist()
    return [(middle[0], other) for other in middle[1:]]


def _averaged(gap: Array, R: Array, found: Ranking) -> tuple[Array, Array]:
    """Chance of the first, and what a game tells, over the posterior of the difference."""
    # the mean of a logistic over a Gaussian is nearly the logistic of a gap shrunk so
    shrunk = gap / np.sqrt(1.0 + np.pi * R / 8.0)
    p, v, _ = moments(shrunk, float(found.report["weight_of_ties"]))
    return p, v


def _dense(found: Ranking, limit: int, goal: Goal) -> list[tuple[int, int]]:
    r"""Return the most telling of all pairs, one after the other.

    With the goal K and :math:`G = C K C`, a game of a and b lowers :math:`\mathrm{tr}(K C)` by
    :math:`v\, u^\top K u / (1 + v R)`, and both R and :math:`u^\top K u` are differences' variances, by C and by G.
    """
    C = covariance(found.curvature, found.weight)
    n = len(C)
    together = found.component[:, None] == found.component[None, :]
    i, j = np.nonzero(np.triu(together, 1))
    if not len(i):
        return []
    gap = found.score[:, None] - found.score[None, :]
    G = C @ _goal(found, C, i, j, gap[i, j], goal) @ C
    R, fall = _between(C), _between(G)  # all of shape (n, n)
    chosen: list[tuple[int, int]] = []
    for _ in range(limit):
        _, v = _averaged(gap, R, found)
        a, b = divmod(int(np.where(together, v * fall / (1.0 + v * R), -1.0).argmax()), n)
        chosen.append((min(a, b), max(a, b)))
        # C and G as they are expected to be after that game
        u, g = C[:, a] - C[:, b], G[:, a] - G[:, b]
        share = v[a, b] / (1.0 + v[a, b] * R[a, b])
        cross = np.outer(u, g)
        square = np.outer(u, u)
        G = G - share * (cross + cross.T) + share**2 * fall[a, b] * square
        C = C - share * square
        R, fall = _between(C), _between(G)
    return chosen


def _between(X: Array) -> Array:
    """Return the variance of every difference, shape (n, n), where X is the covariance."""
    own = X.diagonal()
    return np.asarray(own[:, None] + own[None, :] - 2.0 * X)


def _goal(found: Ranking, C: Array, i: Indices, j: Indices, gap: Array, goal: Goal) -> Array:
    """The goal as a Laplacian: how much the variance of each difference matters, shape (n, n)."""
    sd = np.sqrt(C[i, i] + C[j, j] - 2.0 * C[i, j])
    weight = np.exp(-0.5 * (gap / sd) ** 2) / sd
    if goal != "all":
        inside = np.arange(len(C)) < goal  # items stand in their order
        weight = np.where(inside[i] != inside[j], weight, 0.0)
    K = np.zeros_like(C)
    K[i, j] = K[j, i] = -weight
    np.fill_diagonal(K, -K.sum(axis=1))
    return K


def _sparse(found: Ranking, limit: int, goal: Goal) -> list[tuple[int, int]]:
    """Neighbours in the order, the most telling first, each item once a round."""
    n = len(found.items)
    here = np.repeat(np.arange(n), NEAR)
    there = here + np.tile(np.arange(1, NEAR + 1), n)
    fine = there < n
    here, there = here[fine], there[fine]
    fine = found.component[here] == found.component[there]
    if goal != "all":
        fine &= (here < goal) != (there < goal)
    i, j = here[fine], there[fine]
    R = _sketched(found, i, j)
    _, v = _averaged(found.score[i] - found.score[j], R, found)
    value = v * R
    chosen: list[tuple[int, int]] = []
    while len(chosen) < limit and len(i):
        met: NDArray[np.bool_] = np.zeros(n, bool)
        for e in np.argsort(-value, kind="stable").tolist():
            if len(chosen) == limit:
                break
            if not (met[i[e]] or met[j[e]]):
                met[i[e]] = met[j[e]] = True
                chosen.append((int(i[e]), int(j[e])))
                value[e] /= 1.0 + value[e]
    return chosen


def _sketched(found: Ranking, i: Indices, j: Indices) -> Array:
    ground = found.curvature
    plain = Laplacian(ground.n, ground.i, ground.j, np.ones(len(ground.i)))
    rng = np.random.default_rng(0)
    total = np.zeros(len(i))
    for _ in range(PROBES):
        x = ground.sample(rng, ground.weight, plain)
        total += (x[i] - x[j]) ** 2
    return np.asarray(total / PROBES)


def _variances(found: Ranking, a: Indices, b: Indices) -> Array:
    """Variances of differences now; across components, of two items that nothing is known of."""
    apart = found.component[a] != found.component[b]
    if len(found.items) > DENSE:
        R = _sketched(found, a, b)
    else:
        C = covariance(found.curvature, found.weight)
        R = C[a, a] + C[b, b] - 2.0 * C[a, b]
    return np.where(apart, 2.0 * found.spread**2, R)
