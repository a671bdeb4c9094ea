r"""Yes/no answers in the low-rank fit: Gaussian sweeps on pseudo-answers, each with its own noise.

An answer is 1 with probability :math:`\sigma(\eta_{ij})`, and :math:`\eta_{ij} = \mu + u_i \cdot v_j + b_i + c_j` is the
logit. Given both sides' posteriors :math:`\eta \sim N(m, v)`; a half sweep on :math:`z = m + (y - P)/w` with noise variance
1/w, P and w the mean and the mean slope of the logistic function (:mod:`entrywise.results.levels`), is a Newton step of
the Kullback-Leibler bound, whose value is :math:`\sum E \log \sigma(\pm\eta)` less the divergences.

Where lines have a few answers each, posteriors that treat both sides as independent shrink the logits too far (by a fifth
with five answers a column). What every answer's logit would be without that answer follows from its pseudo-answer, without
another fit; one slope for all logits is set by how well these foretell the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.variational import SMALLEST, EmpiricalBayes, Side, residuals_of
from entrywise.results.levels import expected_log, logistic_mean, pseudo_answers
from entrywise.results.posterior import col_features, design, packed, row_features
from entrywise.types import Array, Indices

FIRST_VARIANCE = 2.0  # of a bias before any sweep, in squared logits; learned from then on
NOTHING_ELSE = 1e-9  # added to the variance of every pseudo-answer, which has all of it
STEP = 0.7  # share of the newest pseudo-answers: whole steps overshoot and diverge from 40 % known on, half ones are slow
EXACT_MOST = 1_000_000  # answers up to which every line's own covariance is used
CHANGE = 50.0  # the bound's change an answer is told times this: 1e-3 then stands for 2e-5
BLOCK = 1 << 16  # answers whose moments are made at once
SAMPLED = 100_000  # answers that the bound is computed on when there are more
SLOPE_SPREAD = 0.1  # of the logarithm of the slope before any answer: left-out logits are a little too sure of themselves
STEEPEST = 1.0  # size of that logarithm at most
LEAST_LEFT = 0.05  # share of a logit's precision that is left without one of its answers, at least
DENSE = 4  # cells per answer up to which products over the whole matrix are faster than picking


@dataclass
class BinaryBayes(EmpiricalBayes):
    """The state of the fit of yes/no answers; ``values`` and ``spread`` of both sides are pseudo-answers."""

    offset: float = 0.0
    row_yes: Array = field(default_factory=lambda: np.zeros(0))  # in the rows' order
    col_yes: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of_answers(
        cls, rows: Indices, cols: Indices, yes: Array, shape: tuple[int, int]
    ) -> BinaryBayes:
        """Return the state before any sweep: rank 0, every logit that of the share of yes."""
        sides = Side.pair(rows, cols, yes, np.ones(len(yes)), shape)
        for side in sides:
            side.prior_cov = FIRST_VARIANCE * np.eye(1)
        share = (yes.sum() + 1.0) / (len(yes) + 2.0)
        return cls(
            rows=sides[0],
            cols=sides[1],
            t2=1.0 / (share * (1.0 - share)),
            floor=NOTHING_ELSE,
            exact=len(yes) <= EXACT_MOST,
            offset=float(np.log(share / (1.0 - share))),
            row_yes=sides[0].values,
            col_yes=sides[1].values,
        )

    row_sites: Array | None = (
        None  # (2, t) weights and weighted pseudo-answers of the last half sweep
    )
    col_sites: Array | None = None
    made: tuple[Array, Array, Array, Array] | None = (
        None  # means of both sides, and the moments they gave
    )

    @property
    def base(self) -> float:
        """Variance of every answer beside its own."""
        return NOTHING_ELSE

    def sweep(self, keep: bool = False) -> float:
        """Update rows, then columns, with their priors; return by how much the bound changed an answer, times 50."""
        before = self.evidence
        super().sweep(keep)
        self._bound()
        return CHANGE * abs(self.evidence - before) / self.known

    def _half(self, side: Side, fixed: Side, keep: bool) -> None:
        weight = self._renew(side, fixed)
        super()._half(side, fixed, keep)
        self.t2 = self.known / weight

    def _renew(self, side: Side, fixed: Side) -> float:
        """Make the pseudo-answers of a side anew; return the sum of their weights."""
        at_rows = side is self.rows
        yes = self.row_yes if at_rows else self.col_yes
        old = self.row_sites if at_rows else self.col_sites
        sites, weight = sites_of(*self._moments(side, fixed), yes, old)
        if at_rows:
            self.row_sites = sites
        else:
            self.col_sites = sites
        side.values, side.spread = regressed(sites, self.offset)
        return weight

    def _moments(self, side: Side, fixed: Side) -> tuple[Array, Array]:
        """Return mean and variance of the logits of the answers, in the order of `side`; those last made are kept."""
        made = self.made
        if made is not None and made[0] is side.mean and made[1] is fixed.mean:
            return made[2], made[3]
        m, v = self._make_moments(side, fixed)
        self.made = (side.mean, fixed.mean, m, v)
        return m, v

    def _make_moments(self, side: Side, fixed: Side) -> tuple[Array, Array]:
        i = np.repeat(np.arange(side.size), side.counts)
        j = side.other
        side.values = np.zeros(
            len(j)
        )  # of which the means leave what they say, with the other sign
        m = self.offset - residuals_of(side, fixed)
        u, v = design(side.mean[:, :-1]), design(fixed.mean[:, :-1])
        if len(side.cov) != side.size or len(fixed.cov) != fixed.size:
            return m, _average_variance(u, v, side.average, fixed.average, i, j)
        x, z = row_features(u, packed(side.cov)), col_features(v, packed(fixed.cov))
        if side.size * fixed.size <= DENSE * len(j):
            return m, np.maximum((x @ z.T)[i, j], 0.0)
        found = np.empty(len(j))
        for start in range(0, len(j), BLOCK):
            part = slice(start, start + BLOCK)
            found[part] = np.einsum("tp,tp->t", x[i[part]], z[j[part]])
        return m, np.maximum(found, 0.0)

    def _bound(self) -> None:
        """Set the expected log-likelihood of the answers; of many, it is made from every so manieth."""
        step = -(-len(self.row_yes) // SAMPLED)
        m, v = self._moments(self.rows, self.cols)
        part = slice(None, None, step)
        self.likelihood = step * expected_log(m[part], v[part], self.row_yes[part])

    def residuals(self, row_scale: Array, col_scale: Array) -> Array:
        """Return what the probabilities leave of the answers, in logits at their mean slope, times the lines' scales."""
        m, v = self._moments(self.rows, self.cols)
        i = np.repeat(np.arange(self.rows.size), self.rows.counts)
        rest = (self.row_yes - logistic_mean(m, v)) * self.t2
        return np.asarray(rest * row_scale[i] * col_scale[self.rows.other])


def sites_of(m: Array, v: Array, yes: Array, old: Array | None) -> tuple[Array, float]:
    """Return weights and weighted pseudo-answers, shape (2, t), mixed with the `old` ones; and the newest weights' sum."""
    z, spread = pseudo_answers(m, v, yes)
    w = 1.0 / spread
    sites = np.stack([w, w * z])  # bounded, however surprising an answer is
    if old is not None:
        sites = (1.0 - STEP) * old + STEP * sites
    return sites, float(w.sum())


def regressed(sites: Array, offset: float) -> tuple[Array, Array]:
    """Return the pseudo-answers about the offset and their variances, of :func:`sites_of`."""
    spread = 1.0 / sites[0]
    return sites[1] * spread - offset, spread


def left_out(m: Array, of_row: Array, of_col: Array, yes: Array) -> tuple[Array, Array]:
    r"""Return mean and variance of the logits of answers, each as it would be without its own answer.

    The variance of a logit is that of its row and that of its column. With :math:`z, w` the pseudo-answer and its weight, a
    side of variance r moves by :math:`-k (z - m)` and has variance :math:`k / w`, :math:`k = r w / (1 - r w)`.
    """
    z, spread = pseudo_answers(m, of_row + of_col, yes)
    moved = np.zeros(len(m))
    for part in (of_row, of_col):
        share = part / spread
        moved += share / np.maximum(1.0 - share, LEAST_LEFT)
    return m - moved * (z - m), moved * spread


def slope(m: Array, v: Array, yes: Array, times: Array) -> float:
    r"""Return the number a that logits of means m and variances v are to be multiplied with, so that they foretell answers.

    It minimises :math:`-\sum_t n_t \log P_t(a) + (\log a)^2 / 2 s^2`, P the mean of the logistic function at
    :math:`(a m, a^2 v)`, n how many answers each stands for, s = :data:`SLOPE_SPREAD`.
    """
    from scipy.optimize import minimize_scalar

    sign = 2.0 * yes - 1.0

    def loss(x: float) -> float:
        a = np.exp(x)
        likely = np.maximum(logistic_mean(sign * a * m, a**2 * v), SMALLEST)
        return float(0.5 * (x / SLOPE_SPREAD) ** 2 - times @ np.log(likely))

    found = minimize_scalar(loss, bounds=(-STEEPEST, STEEPEST), method="bounded")
    return float(np.exp(found.x))


def variance_shares(u: Array, v: Array, cov: Array, fixed_cov: Array) -> tuple[Array, Array, float]:
    """Return the parts of the variances of logits when the lines of a side have one covariance: each row's, each column's, one for all."""
    own = np.einsum("ia,ab,ib->i", u, fixed_cov, u)
    other = np.einsum("ja,ab,jb->j", v, cov, v)
    return own, other, float(np.sum(cov[:-1, :-1] * fixed_cov[:-1, :-1]))


def _average_variance(
    u: Array, v: Array, cov: Array, fixed_cov: Array, i: Indices, j: NDArray[np.int32]
) -> Array:
    """Return the variances of the logits when all lines of a side have one covariance."""
    own, other, both = variance_shares(u, v, cov, fixed_cov)
    return np.asarray(np.maximum(own[i] + other[j] + both, 0.0))
