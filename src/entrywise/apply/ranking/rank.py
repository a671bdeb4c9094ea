r"""Scores of players, products or answers from pairwise comparisons.

Log odds of winning are differences of scores, so that comparisons form a graph whose Laplacian holds both the next
step and the uncertainty of every difference. Sparse throughout: hundreds of thousands of items in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.apply.names import Names, flat_names, numbered
from entrywise.apply.ranking.bradley_terry import (
    Games,
    Grounded,
    ScoreFit,
    maximum_likelihood,
    posterior,
)
from entrywise.apply.ranking.deviations import deviations, variance_of_difference
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.frames import make_frame
from entrywise.linalg.laplacian import Laplacian
from entrywise.results import Interval, Result
from entrywise.results.result import refuse_level
from entrywise.types import Array, Indices

Method = Literal["bradley-terry", "spectral"]
Ties = Literal["half", "davidson"]
Errors = Literal["games", "pairs"]
WALKED = 0.1  # of a win each way that the spectral method adds to every pair that met
EXPOSED = 0.95  # most of a pair's surplus that its own pull on the scores may have hidden


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
    wins, losses, ties : ndarray of shape (n,)
    left, right, weight : ndarray of shape (e,)
        Pairs compared and what each tells of the difference of its scores (the Laplacian's weights).
    scatter : ndarray of shape (e,)
        What the points of each pair vary by; the weights, unless errors go by pairs. NaN: no interval can be told.
    spread : float
        Standard deviation of the scores before any game, given or learned; inf without a prior.
    """

    items: Names
    score: Array
    component: Indices
    wins: Array
    losses: Array
    ties: Array
    left: Indices
    right: Indices
    weight: Array
    scatter: Array
    spread: float

    @property
    def curvature(self) -> Grounded:
        """The matrix whose inverse is the scores' covariance, ready to be solved."""
        return Grounded(len(self.items), self.left, self.right, self.weight, self.spread)

    @cached_property
    def deviation(self) -> Array:
        """Standard deviation of each score, the component's mean being fixed; sampled beyond 1500 items."""
        self._refuse_spectral()
        return deviations(self.curvature, self.scatter)

    def to_frame(self, level: float | None = 0.95, backend: str = "polars") -> Any:
        """Return the items as a frame (polars, pandas or pyarrow), with intervals unless `level` is None."""
        columns: dict[str, Any] = {"item": self.items, "score": self.score}
        if level is not None:
            columns["low"], columns["high"] = self.interval(level)
        columns |= {name: getattr(self, name) for name in ("wins", "losses", "ties", "component")}
        return make_frame(columns, backend)

    def interval(self, level: float = 0.95) -> Interval:
        """Return where each score lies with chance `level`, the component's mean being fixed."""
        z = self._quantile(level)
        return Interval(self.score - z * self.deviation, self.score + z * self.deviation)

    def compare(self, a: Any, b: Any, level: float = 0.95) -> tuple[float, float, float]:
        """Return the chance that `a` beats `b`, and its lower and upper end with chance `level`."""
        self._refuse_spectral()
        i, j = self._place(a), self._place(b)
        if self.component[i] != self.component[j]:
            raise NotIdentifiable(
                f"no chain of comparisons links {a!r} to {b!r}; let them or their rivals meet once"
            )
        gap, variance = float(self.score[i] - self.score[j]), 0.0
        if i != j:
            variance = variance_of_difference(self.curvature, self.scatter, i, j)
        reach = self._quantile(level) * np.sqrt(variance)
        low, middle, high = (
            float(1.0 / (1.0 + np.exp(-x))) for x in (gap - reach, gap, gap + reach)
        )
        return middle, low, high

    def _quantile(self, level: float) -> float:
        """Deviations on either side; Student's where the spread is learned, from as many items as there are."""
        from scipy.special import ndtri, stdtrit

        refuse_level(level)
        tail = (1.0 + level) / 2.0
        if not self.report["spread_learned"]:
            return float(ndtri(tail))
        free = len(self.items) - int(self.report["components"])
        return float(stdtrit(max(free, 1), tail))

    def _place(self, name: Any) -> int:
        at = np.flatnonzero(self.items == name)
        if not len(at):
            raise ParameterError(f"{name!r} must be one of the {len(self.items)} items")
        return int(at[0])

    def _refuse_spectral(self) -> None:
        if np.isnan(self.scatter).any():
            raise NotIdentifiable(
                "the spectral method tells no errors of its scores; take method='bradley-terry'"
            )


def rank(
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    tied: ArrayLike | None = None,
    method: Method = "bradley-terry",
    prior: float | Literal["auto"] | None = "auto",
    ties: Ties = "half",
    errors: Errors = "games",
) -> Ranking:
    r"""Rank items from comparisons: scores with intervals that hold, however few the games.

    .. math:: P(a \text{ beats } b) = \frac{1}{1 + e^{s_b - s_a}}, \qquad s \sim N(0, \tau^2)

    Parameters
    ----------
    winners, losers : array-like of shape (t,)
        Who won and who lost comparison t; names, numbers or text.
    counts : array-like of shape (t,), optional
        How often.
    tied : array-like of bool of shape (t,), optional
        Comparisons that nobody won.
    method : {"bradley-terry", "spectral"}
        A Gaussian posterior, each step a Laplacian solve; or a walk that moves to whoever wins (rank
        centrality, with each pair weighted by its comparisons): one linear system, noisier, and without intervals.
    prior : "auto", float or None
        Spread of the scores before any game, a standard deviation in log odds: learned from the games, given, or none.
        With None the scores are those of maximum likelihood, and an item that never lost, or a group that no
        outsider beat, has no finite score, and is refused by name.
    ties : {"half", "davidson"}
        A tie is half a win each way; or an outcome of its own, likelier between equals, whose frequency is learned.
    errors : {"games", "pairs"}
        Whether games are independent, or only pairs: when the same two meet under the same judge again and again, or
        strengths depend on the rival, errors are taken from how far each pair strayed (a sandwich).

    Returns
    -------
    Ranking

    Notes
    -----
    Chances are averaged over the posterior of each difference, and the spread is learned with them (variational
    Bayes): scores are then neither too far apart nor too close, and 90 % intervals cover 88 to 92 % of the true scores
    (``make bench NAME=calibration``). For more than 1500 items deviations are sampled, to about 7 %;
    :meth:`Ranking.compare` is exact. Items never linked by comparisons get separate scales, and comparing them is refused.

    References
    ----------
    .. [BT52] Bradley, Terry, *Rank analysis of incomplete block designs*, Biometrika, 1952.
    .. [D70] Davidson, *On extending the Bradley-Terry model to accommodate ties*, JASA, 1970.
    .. [NOS16] Negahban, Oh, Shah, *Rank centrality*, Operations Research, 2016.

    Examples
    --------
    >>> found = rank(["ann", "ann", "bob", "ann", "cat"], ["bob", "bob", "ann", "cat", "bob"])
    >>> found.items.tolist()
    ['ann', 'cat', 'bob']
    >>> bool(0.5 < found.compare("ann", "bob")[0] < 0.8)
    True
    """
    _refuse_options(method, prior, ties, errors)
    names, games = _games(winners, losers, counts, tied)
    fit = _fit(names, games, method, prior, ties)
    scatter = _scatter(games, fit, method, errors)
    learned = method == "bradley-terry" and isinstance(prior, str)
    return _in_order(names, games, fit, scatter, {"method": method, "spread_learned": learned})


def _refuse_options(method: str, prior: Any, ties: str, errors: str) -> None:
    for name, value, known in (
        ("method", method, ("bradley-terry", "spectral")),
        ("ties", ties, ("half", "davidson")),
        ("errors", errors, ("games", "pairs")),
    ):
        if value not in known:
            raise ParameterError(f"{name} must be {' or '.join(known)}, got {value!r}")
    if prior is None or (isinstance(prior, str) and prior == "auto"):
        return
    if isinstance(prior, str) or not (np.isfinite(prior) and prior > 0):
        raise ParameterError(
            f"prior must be auto, None or a standard deviation above 0, got {prior!r}"
        )


def _games(
    winners: ArrayLike, losers: ArrayLike, counts: ArrayLike | None, tied: ArrayLike | None
) -> tuple[Names, Games]:
    """Return names, and the games of each pair i < j."""
    won, lost = flat_names(winners, "winners"), flat_names(losers, "losers")
    if len(won) != len(lost):
        raise DataError(f"winners and losers must be equally long, got {len(won)} and {len(lost)}")
    if not len(won):
        raise DataError("there are no comparisons; give at least one")
    times = np.ones(len(won)) if counts is None else np.asarray(counts, np.float64)
    if times.shape != won.shape or not np.all(np.isfinite(times) & (times >= 0)):
        raise DataError("counts must be one finite number, not below 0, for each comparison")
    even = np.zeros(len(won), bool) if tied is None else np.asarray(tied)
    if even.shape != won.shape or even.dtype != bool:
        raise DataError("tied must be one true or false for each comparison")
    if won.dtype.kind != lost.dtype.kind:
        won, lost = won.astype(str), lost.astype(str)
    code, names = numbered(np.concatenate([won, lost]))
    a, b = code[: len(won)], code[len(won) :]
    if np.any(a == b):
        own = str(names[a[a == b][0]])
        raise DataError(
            f"an item must be compared with another, {own!r} was with itself; leave that out"
        )
    n = len(names)
    key, at = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_inverse=True)
    forth, back, none = (
        np.asarray(np.bincount(at, times * which, len(key)), np.float64)
        for which in ((a < b) & ~even, (a > b) & ~even, even)
    )
    kept = forth + back + none > 0
    if not kept.any():
        raise DataError("all counts are 0; give at least one comparison")
    pairs = key[kept] // n, key[kept] % n
    return names, Games(n, *pairs, forth[kept], back[kept], none[kept])


def _fit(
    names: Names, games: Games, method: Method, prior: float | str | None, ties: Ties
) -> ScoreFit:
    own_law = ties == "davidson" and bool(games.tied.any())
    if not own_law:
        half = 0.5 * games.tied
        nothing = np.zeros_like(half)
        games = Games(games.n, games.i, games.j, games.won + half, games.lost + half, nothing)
    if method == "spectral":
        return _spectral(games)
    if prior is None:
        _refuse_unbeaten(names, games)
        return maximum_likelihood(games, own_law)
    return posterior(games, None if isinstance(prior, str) else float(prior), own_law)


def _spectral(games: Games) -> ScoreFit:
    """The walk goes from i to j as often as j beat i; where it dwells, scores are high."""
    from entrywise.linalg.stationary import stationary

    won, lost = games.won + WALKED, games.lost + WALKED
    found = stationary(games.n, games.i, games.j, lost, won)
    gap = found.log_pi[games.i] - found.log_pi[games.j]
    p = 1.0 / (1.0 + np.exp(-gap))
    weight = games.played * np.maximum(p * (1.0 - p), 1e-12)
    return ScoreFit(
        score=found.log_pi,
        weight=weight,
        surplus=games.won - games.played * p,
        spread=np.inf,
        nu=0.0,
        steps=found.krylov,
    )


def _scatter(games: Games, fit: ScoreFit, method: Method, errors: Errors) -> Array:
    """What the points of each pair vary by."""
    if method == "spectral":
        return np.full(len(games.i), np.nan)
    if errors == "games":
        return fit.weight
    # a pair pulls the scores its own way; undone, a pair at a time
    ground = Grounded(games.n, games.i, games.j, fit.weight, fit.spread)
    resistance = ground.graph.resistances(games.i, games.j)
    pull = np.minimum(fit.weight * resistance, EXPOSED)
    return np.asarray((fit.surplus / (1.0 - pull)) ** 2)


def _in_order(
    names: Names, games: Games, fit: ScoreFit, scatter: Array, chosen: dict[str, Any]
) -> Ranking:
    """Sort by component and score, and say what was found."""
    n, i, j = games.n, games.i, games.j
    graph = Laplacian(n, i, j, fit.weight)
    count, part = graph.components
    score = graph.center(fit.score)
    size = np.bincount(part, minlength=count)
    place = np.lexsort((np.arange(n), -score, part, -size[part]))
    new = np.empty(n, np.int64)
    new[place] = np.arange(n)
    firsts = np.sort(np.unique(part[place], return_index=True)[1])
    renamed = np.empty(count, np.int64)
    renamed[part[place][firsts]] = np.arange(count)
    wins = np.bincount(i, games.won, n) + np.bincount(j, games.lost, n)
    losses = np.bincount(i, games.lost, n) + np.bincount(j, games.won, n)
    ties = np.bincount(i, games.tied, n) + np.bincount(j, games.tied, n)
    report = {
        **chosen,
        "pairs": len(i),
        "comparisons": float(games.played.sum()),
        "ties": float(games.tied.sum()),
        "components": int(count),
        "largest_component": int(size.max()),
        "iterations": fit.steps,
        "spread": fit.spread,
        "weight_of_ties": fit.nu,
        "never_lost": int(np.sum((losses == 0) & (ties == 0))),
        "never_won": int(np.sum((wins == 0) & (ties == 0))),
    }
    return Ranking(
        items=names[place],
        score=score[place],
        component=renamed[part][place],
        wins=np.asarray(wins, np.float64)[place],
        losses=np.asarray(losses, np.float64)[place],
        ties=np.asarray(ties, np.float64)[place],
        left=new[i],
        right=new[j],
        weight=fit.weight,
        scatter=scatter,
        spread=fit.spread,
        report=report,
    )


def _refuse_unbeaten(names: Names, games: Games) -> None:
    """Refuse a group that no outsider beat though they met: its score has no finite maximum."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, i, j = games.n, games.i, games.j
    forth, back = games.won + games.tied > 0, games.lost + games.tied > 0
    winner = np.r_[i[forth], j[back]]
    loser = np.r_[j[forth], i[back]]
    beaten = coo_array((np.ones(len(winner)), (winner, loser)), shape=(n, n))
    _, group = connected_components(beaten, connection="strong")
    split = group[i] != group[j]
    if np.any(split):
        e = int(np.flatnonzero(split)[0])
        up, down = (i[e], j[e]) if forth[e] else (j[e], i[e])
        raise NotIdentifiable(
            f"no chain of wins leads from {str(names[down])!r} back to {str(names[up])!r}, so their "
            "difference has no finite estimate; let prior be auto, or give one more comparison the other way"
        )
