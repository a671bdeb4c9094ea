r"""Scores from games: a Gaussian posterior whose prior's spread is learned, or maximum likelihood.

The curvature of the likelihood is the Laplacian of the graph of games, each pair weighted by what its games tell; a
Gaussian prior joins every item to one more node, the ground, by an edge of weight :math:`1/\tau^2`. So every step is one
near-linear solve, and effective resistances are variances of differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrywise.apply.ranking.outcomes import misfit, moments
from entrywise.linalg.laplacian import Laplacian
from entrywise.types import Array, Indices

DENSE = 600  # items up to which covariances come from a dense inverse,
SKETCHED = 20_000  # beyond, from so many solves times 1 / items, three at least
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # for means over a difference's posterior
WEIGHTS = WEIGHTS / WEIGHTS.sum()
USUAL, FIRM = 1.0, 1.0  # the prior of the spread: log odds of order 1, weighing as much as one item
LONGEST = 3.0  # log odds that a score may move in a step
STEPS = 300  # at most; 10 to 50 are usual
SETTLED = 1e-4  # change of scores, and of the logarithm of the spread, at which it ends,
COARSE = 1e-3  # and where variances are sketched


@dataclass(frozen=True)
class Games:
    """Pairs ``i < j`` of `n` items that met: how often i won, j won, and neither."""

    n: int
    i: Indices
    j: Indices
    won: Array
    lost: Array
    tied: Array

    @property
    def played(self) -> Array:
        """Games of each pair."""
        return self.won + self.lost + self.tied

    @property
    def points(self) -> Array:
        """Wins of i, a tie counted one half."""
        return self.won + 0.5 * self.tied


@dataclass(frozen=True)
class ScoreFit:
    """Scores, what each pair's games tell, and what they said beyond the fit.

    ``weight`` is the curvature and ``surplus`` the points above expectation of each pair, ``spread`` the prior's standard
    deviation (inf without a prior), ``nu`` the weight of ties.
    """

    score: Array
    weight: Array
    surplus: Array
    spread: float
    nu: float
    steps: int


class Grounded:
    r"""The matrix :math:`L + I/\tau^2` of a graph of games; :math:`L` alone, up to a mean, when tau is infinite."""

    def __init__(self, n: int, i: Indices, j: Indices, weight: Array, spread: float) -> None:
        self.n, self.i, self.j, self.spread = n, i, j, spread
        self.weight = weight
        if np.isfinite(spread):
            ends = np.r_[i, np.arange(n)], np.r_[j, np.full(n, n)]
            ground = np.full(n, spread**-2.0)
            self.graph = Laplacian(n + 1, *ends, np.r_[weight, ground])
        else:
            self.graph = Laplacian(n, i, j, weight)

    def solve(self, b: Array, rtol: float = 1e-8) -> Array:
        """Return x with (L + I / tau^2) x = b, for b that sums to zero in each component."""
        if self.graph.n == self.n:
            return self.graph.solve(b, rtol)
        x = self.graph.solve(np.r_[b, 0.0], rtol)
        return np.asarray(x[: self.n] - x[self.n])

    def divergence(self, flow: Array) -> Array:
        """Return B flow: what flows out of each item."""
        out = np.bincount(self.i, flow, self.n) - np.bincount(self.j, flow, self.n)
        return np.asarray(out, np.float64)

    def covariance(self, part: Indices) -> Array:
        """Return the dense inverse with every component's mean taken out, shape (n, n)."""
        H = np.zeros((self.n, self.n))
        np.subtract.at(H, (self.i, self.j), self.weight)
        np.subtract.at(H, (self.j, self.i), self.weight)
        np.fill_diagonal(H, H.diagonal() - H.sum(axis=1))
        size = np.bincount(part)[part]
        same = (part[:, None] == part[None, :]) / size
        if np.isfinite(self.spread):
            np.fill_diagonal(H, H.diagonal() + self.spread**-2.0)
            C = np.linalg.inv(H)
            return np.asarray(C - self.spread**2 * same)
        typical = float(np.median(H.diagonal()))
        return np.asarray(np.linalg.inv(H + typical * same) - same / typical)

    def sample(self, rng: np.random.Generator, scatter: Array, center: Laplacian) -> Array:
        """Return scores with the covariance of the estimate's error, one draw."""
        flow = np.sqrt(scatter) * rng.standard_normal(len(scatter))
        b = self.divergence(flow)
        if np.isfinite(self.spread):
            b = b + center.center(rng.standard_normal(self.n)) / self.spread
        return self.solve(b, 1e-4)


def posterior(games: Games, prior: float | None, ties: bool) -> ScoreFit:
    r"""Return the Gaussian posterior of the scores; `prior` is their spread, learned when None.

    Scores m and variances R of the differences of pairs that met are found together (variational Bayes):
    each game's chance and what it tells are averaged over :math:`N(m_a - m_b, R_{ab})`, and the spread solves
    :math:`\tau^2 = (|m|^2 + \mathrm{tr}\,\Sigma + 1) / (n - c + 1)`. The mode of the likelihood instead of that mean would
    learn a spread that is too small wherever games are few.
    """
    n, i, j = games.n, games.i, games.j
    plain = Laplacian(n, i, j, np.ones(len(i)))
    count, part = plain.components
    free = n - count
    spread = USUAL if prior is None else prior
    score, R = np.zeros(n), np.full(len(i), spread**2)
    nu = 1.0 if ties else 0.0
    step = 0
    for step in range(1, STEPS + 1):  # noqa: B007
        weight, surplus, nu = _expected(games, score, R, nu)
        ground = Grounded(n, i, j, weight, spread)
        uphill = plain.center(ground.divergence(surplus) - score / spread**2)
        if n <= DENSE:
            C = ground.covariance(part)
            own = C.diagonal()
            R, trace = own[i] + own[j] - 2.0 * C[i, j], float(own.sum())
            move = C @ uphill
        else:
            R, trace = _sketched(ground, plain)
            move = ground.solve(uphill, 1e-5)  # what is left over comes back in the next step
        score = score + move * min(1.0, LONGEST / max(float(np.abs(move).max()), 1e-300))
        change = float(np.abs(move).max())
        if prior is None:
            better = (float(score @ score) + trace + FIRM * USUAL**2) / (free + FIRM)
            spread, before = better / spread, spread  # twice as far as the step says
            change = max(change, abs(np.log(spread / before)))
        if change < (SETTLED if n <= DENSE else COARSE):
            break
    weight, surplus, nu = _expected(games, score, R, nu)
    return ScoreFit(score, weight, surplus, float(spread), nu, step)


def _expected(games: Games, score: Array, R: Array, nu: float) -> tuple[Array, Array, float]:
    """What each pair's games tell and said, over the posterior of its difference; and a better nu."""
    gap = score[games.i] - score[games.j]
    mean, variance, tied = moments(gap[:, None] + np.sqrt(R)[:, None] * NODES, nu)
    weight = games.played * (variance @ WEIGHTS)
    surplus = games.points - games.played * (mean @ WEIGHTS)
    if nu > 0:
        expected = float(games.played @ (tied @ WEIGHTS))
        nu = nu * float(games.tied.sum()) / expected
    return weight, surplus, nu


def _sketched(ground: Grounded, plain: Laplacian) -> tuple[Array, float]:
    """Variances of the differences of pairs that met, and the trace of the scores' covariance, from a few solves.

    What an item's own games and the prior leave, scaled to the trace that the solves tell.
    """
    i, j, n = ground.i, ground.j, ground.n
    rng = np.random.default_rng(0)
    draws = max(3, SKETCHED // n)
    samples = (ground.sample(rng, ground.weight, plain) for _ in range(draws))
    trace = float(np.mean([x @ x for x in samples]))
    total = np.bincount(i, ground.weight, n) + np.bincount(j, ground.weight, n)
    alone = 1.0 / (total + ground.spread**-2.0)
    alone *= trace / float(alone.sum())
    return alone[i] + alone[j], trace


def maximum_likelihood(games: Games, ties: bool) -> ScoreFit:
    """Maximise the likelihood: Newton steps, halved while they do not help."""
    n, i, j = games.n, games.i, games.j
    total = games.played
    p = np.clip((games.points + 0.5) / (total + 1.0), 1e-6, 1 - 1e-6)
    score = Laplacian(n, i, j, total * p * (1 - p)).potentials(np.log(p / (1 - p)))
    nu = _tie_weight(games, score, 1.0) if ties else 0.0

    def value_at(s: Array) -> float:
        return misfit(s[i] - s[j], games.won, games.lost, games.tied, nu)

    step = 0
    for step in range(1, 101):  # noqa: B007
        mean, variance, _ = moments(score[i] - score[j], nu)
        graph = Laplacian(n, i, j, total * variance)
        move = graph.solve(graph.divergence(games.points - total * mean))
        value, length = value_at(score), 1.0
        while length > 1e-6 and value_at(score + length * move) > value + 1e-12 * abs(value):
            length *= 0.5
        score = score + length * move
        before, nu = nu, _tie_weight(games, score, nu) if ties else 0.0
        settled = float(np.abs(move).max()) <= 1e-8 * max(1.0, float(np.abs(score).max()))
        if settled and abs(nu - before) <= 1e-9 * max(nu, 1.0):
            break
    mean, variance, _ = moments(score[i] - score[j], nu)
    return ScoreFit(score, total * variance, games.points - total * mean, np.inf, nu, step)


def _tie_weight(games: Games, score: Array, nu: float) -> float:
    """Return the nu whose expected number of ties is the one seen."""
    gap = score[games.i] - score[games.j]
    seen = float(games.tied.sum())
    for _ in range(100):
        expected = float(games.played @ moments(gap, nu)[2])
        better = nu * seen / expected
        if abs(better - nu) <= 1e-10 * nu:
            break
        nu = better
    return nu
