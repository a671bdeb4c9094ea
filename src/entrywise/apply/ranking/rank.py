r"""Scores of players, products or answers from pairwise comparisons.

Log odds of winning are differences of scores, so that comparisons form a graph whose Laplacian holds both the next
Newton step and the uncertainty of every difference. Sparse throughout: hundreds of thousands of items in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.apply.names import Names, flat_names, numbered
from entrywise.apply.ranking.deviations import deviations
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.linalg.laplacian import Laplacian
from entrywise.results import Interval, Result
from entrywise.types import Array, Indices

Method = Literal["bradley-terry", "spectral"]
FLAT = 1e-12  # least curvature of a game, where a chance is 0 or 1 to the last digit


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Ranking(Result):
    """Scores of items, comparable within a component.

    Parameters
    ----------
    items : ndarray of shape (n,)
        Names, best first within each component, larger components first.
    score : ndarray of shape (n,)
        a beats b with chance 1 / (1 + exp(score_b - score_a)); mean zero in each component.
    component : ndarray of int64 of shape (n,)
        Items of different components were never compared, not even through others.
    wins, losses : ndarray of shape (n,)
    left, right, weight : ndarray of shape (e,)
        Pairs compared and what each tells of the difference of its scores (the Laplacian's weights).
    """

    items: Names
    score: Array
    component: Indices
    wins: Array
    losses: Array
    left: Indices
    right: Indices
    weight: Array

    @cached_property
    def deviation(self) -> Array:
        """Standard deviation of each score, the component's mean being fixed; sampled beyond 1500 items."""
        return deviations(Laplacian(len(self.items), self.left, self.right, self.weight))

    def interval(self, level: float = 0.95) -> Interval:
        """Return where each score lies with chance `level`, the component's mean being fixed."""
        z = _quantile(level)
        return Interval(self.score - z * self.deviation, self.score + z * self.deviation)

    def compare(self, a: Any, b: Any, level: float = 0.95) -> tuple[float, float, float]:
        """Return the chance that `a` beats `b`, and its lower and upper end with chance `level`."""
        i, j = self._place(a), self._place(b)
        if self.component[i] != self.component[j]:
            raise NotIdentifiable(
                f"no chain of comparisons links {a!r} to {b!r}; let them or their rivals meet once"
            )
        gap, spread = float(self.score[i] - self.score[j]), 0.0
        if i != j:
            spread = float(
                np.sqrt(
                    Laplacian(len(self.items), self.left, self.right, self.weight).resistances(
                        [i], [j]
                    )[0]
                )
            )
        z = _quantile(level)
        low, middle, high = (
            float(1.0 / (1.0 + np.exp(-x))) for x in (gap - z * spread, gap, gap + z * spread)
        )
        return middle, low, high

    def _place(self, name: Any) -> int:
        at = np.flatnonzero(self.items == name)
        if not len(at):
            raise ParameterError(f"{name!r} must be one of the {len(self.items)} items")
        return int(at[0])


def rank(
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    method: Method = "bradley-terry",
    prior: float = 0.1,
) -> Ranking:
    r"""Rank items from comparisons: maximum likelihood, or the stationary distribution of a chain.

    .. math:: P(a \text{ beats } b) = \frac{1}{1 + e^{s_b - s_a}}

    Parameters
    ----------
    winners, losers : array-like of shape (t,)
        Who won and who lost comparison t; names, numbers or text.
    counts : array-like of shape (t,), optional
        How often; a tie is half a win each way.
    method : {"bradley-terry", "spectral"}
        Newton steps on the likelihood, each a Laplacian solve; or a walk that moves to whoever wins (rank
        centrality, with each pair weighted by its comparisons): one linear system, a little noisier.
    prior : float
        Wins added each way to every pair that met. With 0 an item that never lost, or a group that no outsider
        beat, has no finite score, and is refused by name.

    Returns
    -------
    Ranking

    Notes
    -----
    Deviations come from the Laplacian of the likelihood's curvature: its pseudo-inverse is their covariance. For
    more than 1500 items their diagonal is sampled, to about 7 %; :meth:`Ranking.compare` is exact.
    Items never linked by comparisons get separate scales, and comparing them is refused.

    References
    ----------
    .. [BT52] Bradley, Terry, *Rank analysis of incomplete block designs*, Biometrika, 1952.
    .. [NOS16] Negahban, Oh, Shah, *Rank centrality*, Operations Research, 2016.

    Examples
    --------
    >>> found = rank(["ann", "ann", "bob", "ann", "cat"], ["bob", "bob", "ann", "cat", "bob"])
    >>> found.items.tolist()
    ['ann', 'cat', 'bob']
    >>> round(found.compare("ann", "bob")[0], 2)
    0.76
    """
    if method not in ("bradley-terry", "spectral"):
        raise ParameterError(f"method must be bradley-terry or spectral, got {method!r}")
    if not (np.isfinite(prior) and prior >= 0):
        raise ParameterError(f"prior must be finite and not below 0, got {prior}")
    names, i, j, forth, back = _pairs(winners, losers, counts)
    n = len(names)
    if prior == 0:
        _refuse_unbeaten(names, i, j, forth, back)
        if method == "spectral" and (forth.min() <= 0 or back.min() <= 0):
            raise ParameterError(
                "the spectral method needs prior above 0 where a pair has only one winner"
            )
    won, lost = forth + prior, back + prior
    score, iterations = (_newton if method == "bradley-terry" else _spectral)(n, i, j, won, lost)
    p = 1.0 / (1.0 + np.exp(-(score[i] - score[j])))
    weight = (won + lost) * np.maximum(p * (1.0 - p), FLAT)
    graph = Laplacian(n, i, j, weight)
    count, part = graph.components
    score = graph.center(score)
    size = np.bincount(part, minlength=count)
    place = np.lexsort((np.arange(n), -score, part, -size[part]))
    new = np.empty(n, np.int64)
    new[place] = np.arange(n)
    renamed = np.empty(count, np.int64)
    renamed[part[place][np.sort(np.unique(part[place], return_index=True)[1])]] = np.arange(count)
    wins = np.asarray(np.bincount(i, forth, n) + np.bincount(j, back, n), np.float64)
    losses = np.asarray(np.bincount(i, back, n) + np.bincount(j, forth, n), np.float64)
    report = {
        "method": method, "pairs": len(i), "comparisons": float((forth + back).sum()), "components": int(count),
        "largest component": int(size.max()), "iterations": iterations, "prior": prior,
        "never lost": int(np.sum(losses == 0)), "never won": int(np.sum(wins == 0)),
    }  # fmt: skip
    return Ranking(
        items=names[place], score=score[place], component=renamed[part][place],
        wins=wins[place], losses=losses[place], left=new[i], right=new[j], weight=weight, report=report,
    )  # fmt: skip


def _pairs(
    winners: ArrayLike, losers: ArrayLike, counts: ArrayLike | None
) -> tuple[Names, Indices, Indices, Array, Array]:
    """Return names, pairs i < j, and how often i beat j and j beat i."""
    won, lost = flat_names(winners, "winners"), flat_names(losers, "losers")
    if len(won) != len(lost):
        raise DataError(f"winners and losers must be equally long, got {len(won)} and {len(lost)}")
    if not len(won):
        raise DataError("there are no comparisons; give at least one")
    times = np.ones(len(won)) if counts is None else np.asarray(counts, np.float64)
    if times.shape != won.shape or not np.all(np.isfinite(times) & (times >= 0)):
        raise DataError("counts must be one finite number, not below 0, for each comparison")
    if won.dtype.kind != lost.dtype.kind:
        won, lost = won.astype(str), lost.astype(str)
    code, names = numbered(np.concatenate([won, lost]))
    a, b = code[: len(won)], code[len(won) :]
    if np.any(a == b):
        raise DataError(
            f"an item must be compared with another, {str(names[a[a == b][0]])!r} was with itself; leave that out"
        )
    key, at = np.unique(np.minimum(a, b) * len(names) + np.maximum(a, b), return_inverse=True)
    forth = np.asarray(np.bincount(at, times * (a < b), len(key)), np.float64)
    back = np.asarray(np.bincount(at, times * (a > b), len(key)), np.float64)
    kept = forth + back > 0
    if not kept.any():
        raise DataError("all counts are 0; give at least one comparison")
    return names, key[kept] // len(names), key[kept] % len(names), forth[kept], back[kept]


def _newton(n: int, i: Indices, j: Indices, won: Array, lost: Array) -> tuple[Array, int]:
    """Maximise the likelihood: Newton steps, halved while they do not help."""
    total = won + lost
    p = np.clip((won + 0.5) / (total + 1.0), 1e-6, 1 - 1e-6)
    score = Laplacian(n, i, j, total * p * (1 - p)).potentials(np.log(p / (1 - p)))

    def misfit(s: Array) -> float:
        d = s[i] - s[j]
        return float((won * np.logaddexp(0, -d) + lost * np.logaddexp(0, d)).sum())

    value, step = misfit(score), 0
    for step in range(1, 101):  # noqa: B007
        p = 1.0 / (1.0 + np.exp(-(score[i] - score[j])))
        graph = Laplacian(n, i, j, total * np.maximum(p * (1.0 - p), FLAT))
        move = graph.solve(graph.divergence(won - total * p))
        length = 1.0
        while length > 1e-6 and misfit(score + length * move) > value + 1e-12 * abs(value):
            length *= 0.5
        score = score + length * move
        value = misfit(score)
        if float(np.abs(move).max()) <= 1e-8 * max(1.0, float(np.abs(score).max())):
            break
    return score, step


def _spectral(n: int, i: Indices, j: Indices, won: Array, lost: Array) -> tuple[Array, int]:
    """The walk goes from i to j as often as j beat i; where it dwells, scores are high."""
    from entrywise.linalg.stationary import stationary

    found = stationary(n, i, j, lost, won)
    return found.log_pi, found.krylov


def _refuse_unbeaten(names: Names, i: Indices, j: Indices, forth: Array, back: Array) -> None:
    """Refuse a group that no outsider beat though they met: its score has no finite maximum."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(names)
    source, sink = (
        np.r_[i[forth > 0], j[back > 0]],
        np.r_[j[forth > 0], i[back > 0]],
    )  # winner -> loser
    _, group = connected_components(
        coo_array((np.ones(len(source)), (source, sink)), shape=(n, n)), connection="strong"
    )
    split = group[i] != group[j]
    if np.any(split):
        e = int(np.flatnonzero(split)[0])
        up, down = (i[e], j[e]) if forth[e] > 0 else (j[e], i[e])
        raise NotIdentifiable(
            f"no chain of wins leads from {str(names[down])!r} back to {str(names[up])!r}, so their difference has no "
            "finite estimate; give prior above 0, or one more comparison the other way"
        )


def _quantile(level: float) -> float:
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise ParameterError(f"level must be between 0 and 1, got {level}")
    return float(ndtri((1.0 + level) / 2.0))
