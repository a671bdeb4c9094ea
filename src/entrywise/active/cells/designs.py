"""Which cells to buy for the means of rows: common columns, spread cells, cells by price, columns for new rows.

Pure array steps. A board is m x n; masks of booleans say which cells are taken and which may be bought.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.results import LowRank
from entrywise.results.levels import logistic_slope
from entrywise.results.posterior import design
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]

NARROW, WIDE = 0.4, 2.5  # of the mean deviation: no row counts as steadier, or as wilder, than this
LEAST_SHARE = 0.3  # of an equal share of the spread goes to every row, however steady it looks
LEAST_CHANCE = 0.01  # with which every cell is drawn, however dear, where the money allows it
HISTORY_ROWS = (
    20  # known rows below which a replay says too little: its 90 % quantile is the 19th of 20
)
HISTORY_SHARE = 0.5  # of its cells that must be known for a row to count as known


def new_rows(known: Mask, available: Mask) -> Mask | None:
    """Tell which rows are new beside a history worth replaying, shape (m,); None where there is none.

    A row is old when at least half of its cells are known beforehand. With fewer than 20 old rows a replay has too few
    errors for a quantile at 90 %, and the rows are bought as if nothing was known of the others.
    """
    cells = np.maximum(available.sum(axis=1), 1)
    old = known.sum(axis=1) >= HISTORY_SHARE * cells
    if old.sum() < HISTORY_ROWS or old.all():
        return None
    return np.asarray(~old)


def new_columns(known: Mask, available: Mask) -> Mask | None:
    """Tell which columns are new beside a history that tells the rows apart, shape (n,); None where there is none.

    As :func:`new_rows`, of columns: 20 old ones are enough to place a row.
    """
    return new_rows(known.T, available.T)


def row_deviations(seen: Observations) -> Array:
    """Return how far the answers of each row scatter about row and column levels, shrunk, shape (m,)."""
    m = seen.shape[0]
    counts = np.bincount(seen.rows, minlength=m)
    if len(seen) < 2 or counts.max() < 2:
        return np.ones(m)
    residual = seen.values - low_rank(seen, 0).entries(seen.rows, seen.cols)
    squares = np.bincount(seen.rows, residual**2, m) / np.maximum(counts, 1)
    variance, _ = shrunk_variances(squares, counts.astype(np.float64))
    return np.sqrt(variance)


def allocation(
    deviation: Array, price: Array, least: Array, most: Array, money: float
) -> NDArray[np.int64]:
    """Return how many cells each row gets for `money`, shape (m,): Neyman's allocation within limits.

    A row's share goes with its deviation over the root of its price, which makes the mean of the squared errors
    smallest; deviations are clipped to [.4, 2.5] of their mean, since they are estimates.
    """
    middle = float(np.mean(deviation))
    if not middle > 0:
        deviation, middle = np.ones(len(deviation)), 1.0
    weight = np.clip(deviation / middle, NARROW, WIDE) / np.sqrt(price)
    most = np.asarray(most, np.float64)
    least = np.minimum(least, most)
    low, high = 0.0, float(np.max(most / weight, initial=0.0))
    for _ in range(60):  # bisection: the bill rises with the factor
        factor = 0.5 * (low + high)
        bill = float(np.sum(price * np.clip(factor * weight, least, most)))
        low, high = (factor, high) if bill <= money else (low, factor)
    wanted = np.clip(low * weight, least, most)
    whole = np.floor(wanted + 1e-9).astype(np.int64)
    left = money * (1 + 1e-12) - float(price @ whole)
    while True:  # what rounding down left over, one cell after the other
        room = (whole < most) & (price <= left)
        if not room.any():
            return whole
        i = int(np.argmax(np.where(room, wanted - whole, -np.inf)))
        whole[i] += 1
        left -= float(price[i])


def spread(counts: Indices, taken: Mask, open_: Mask, rng: np.random.Generator) -> Indices:
    """Return cells, ``counts[i]`` of row i: rows in random order take the open columns used least, ties at random."""
    m, n = open_.shape
    used = taken.sum(axis=0).astype(np.float64)
    picked = [np.zeros(0, np.int64)]
    for i in rng.permutation(m):
        free = np.flatnonzero(open_[i])
        order = np.argsort(used[free] + rng.random(len(free)))
        columns = free[order[: counts[i]]]
        used[columns] += 1.0
        picked.append(i * n + columns)
    return np.concatenate(picked)


def chances(price: Array, open_: Mask, money: float) -> Array:
    r"""Return with which probability each cell is drawn so that `money` is spent in expectation, shape (m, n).

    :math:`\pi_{ij} = \min(1, c / \sqrt{p_{ij}})`: of all powers of the price this one gives the smallest variance of a
    weighted sum for its money where residuals are alike. No cell has less than .01, unless that alone costs half the money.
    """
    root = np.where(open_, 1.0 / np.sqrt(price), 0.0)
    least = LEAST_CHANCE if LEAST_CHANCE * float(price[open_].sum()) <= 0.5 * money else 0.0
    floor = np.where(open_, least, 0.0)
    low, high = 0.0, float(np.sqrt(price[open_].max(initial=1.0)))
    for _ in range(60):
        factor = 0.5 * (low + high)
        bill = float(np.sum(price * np.clip(factor * root, floor, 1.0)))
        low, high = (factor, high) if bill <= money else (low, factor)
    return np.where(open_, np.clip(low * root, floor, 1.0), 0.0)


def greedy_columns(fit: LowRank, open_: Mask, price: Array, money: float) -> Indices:
    """Return the columns that lower the variance of a new row's mean most for their price, shape (k,).

    The row's factors start at the prior that `fit` learned from the known rows; buying column j takes its own variance
    out of the sum over the open cells and narrows the factors, neither of which needs its answer.
    """
    C, V, own = _before(fit)
    s = V[open_].sum(axis=0)
    free, left = open_.copy(), money
    chosen: list[int] = []
    while True:
        affordable = free & (price <= left * (1 + 1e-12))
        if not affordable.any():
            return np.array(chosen, np.int64)
        CV = V @ C  # (n, q)
        shared = np.einsum("ja,ja->j", CV, V)
        with_sum = V @ (C @ s)
        # fall of s'Cs + sum of own variances when j leaves the sum and is known
        fall = 2.0 * with_sum - shared + (with_sum - shared) ** 2 / (shared + own) + own
        rate = np.where(affordable, fall / price, -np.inf)
        j = int(np.argmax(rate))
        chosen.append(j)
        free[j] = False
        left -= float(price[j])
        C = C - np.outer(CV[j], CV[j]) / (shared[j] + own[j])
        s = s - V[j]


def _before(fit: LowRank) -> tuple[Array, Array, Array]:
    """Return the prior covariance of a row, how answers go with it (n, q), and each one's own variance.

    That is its noise and the column's uncertainty. Yes/no answers go with their logits by the mean slope, which is
    also their variance about their probabilities.
    """
    posterior = fit.posterior
    assert posterior is not None
    mean = posterior.rows.prior_mean.copy()
    V = design(fit.right)
    expected = V @ mean + fit.offset
    mean[-1] = 1.0  # the design of a column's own level
    square = np.outer(mean, mean)
    square[:-1, :-1] += posterior.rows.prior_cov[:-1, :-1]
    columns = np.einsum("ab,jab->j", square, posterior.cols.cov)
    C = posterior.rows.prior_cov
    own = columns + posterior.answer_variance
    if fit.answers is not None and fit.is_binary:
        level = 0.0 if fit.col_offset is None else fit.col_offset
        w = logistic_slope(expected + level, np.einsum("ja,ab,jb->j", V, C, V) + columns)
        span = float(np.ptp(fit.answers.values))
        V, own = span * w[:, None] * V, span**2 * (w**2 * columns + w)
    return C, V, np.maximum(own, np.finfo(float).tiny)
