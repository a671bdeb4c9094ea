"""How to split one budget between noisy columns and precise entries: a closed form for the expected error.

Knowing k directions, the coefficients of a column (or row) seen in c places with noise variance w are known to
k w / c an entry, and never worse than the prior's variance. Rows are seen by the columns bought and by
the precise cells; columns bought are seen whole; the others only by their precise cells. What one side does
not know acts as noise on the other, so the three errors are iterated to agreement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.two_cost.constants import (
    ASSUMED_RANK,
    ASSUMED_RATIO,
    ASSUMED_SIGNAL,
    BIAS,
    EXACT,
    FAR_SPLITS,
    FIXED_POINT_ROUNDS,
    FIXED_POINT_TOL,
    MOST_SCATTER,
    NEAR_SPLITS,
    OVERLAP,
    SCATTER,
    TINY,
    WEAKEST_SIGNAL,
)
from entrywise.active.two_cost.ranks import Ranks, estimate_rank
from entrywise.active.two_cost.setting import TwoCost, pays_for
from entrywise.types import Array, Indices


@dataclass(frozen=True)
class Split:
    """What to expect when `columns` columns are bought and the rest of the money goes into entries.

    ``error`` is the expected root mean squared error of an entry of the whole matrix; ``cells`` is the number of
    precise entries, ``per_column`` how many of them fall on a column that was not bought.
    """

    columns: int
    cells: int
    per_column: float
    error: float


@dataclass(frozen=True)
class Problem:
    """What the closed form must know: shape, mean prices, noise and signal variances, rank.

    ``signal`` is the variance of the entries about the mean of their row; ``lack`` the variance that no
    low-rank matrix explains.
    """

    m: int
    n: int
    column_price: float
    entry_price: float
    column_variance: float
    entry_variance: float
    rank: int
    signal: float
    lack: float = 0.0

    def risk(self, d: int, money: float) -> float:
        """Return the expected squared error of an entry with d columns bought and `money` left for entries."""
        ranks = np.array([self.rank + BIAS])
        return float(self.risks(np.array([d]), np.array([money]), ranks)[0, 0])

    def risks(self, d: Indices, money: Array, ranks: Array) -> Array:
        """Return the same for several splits (d and money of shape (l,)) and ranks (p,), shape (p, l)."""
        f = np.clip(money / self.entry_price, 0.0, float(self.m * self.n))
        k = np.asarray(ranks, dtype=np.float64)[:, None]
        free, held = self.fill(np.asarray(d), f, k)
        row, bought, unbought = self._overlaps(d, free, held, k)
        share = d / self.n
        t = max(self.signal, TINY)
        explained = t * (1 - row * (share * bought + (1 - share) * unbought))
        return np.asarray(explained + self._unexplained(share, free, held))

    def _overlaps(self, d: Indices, free: Array, held: Array, k: Array) -> tuple[Array, ...]:
        """Return how far rows, columns bought and columns not bought are known (0..1): the fixed point, each (p, l)."""
        m, n = self.m, self.n
        t = max(self.signal, TINY)
        gain = t / k
        floor = EXACT * self.signal
        sc2, se2 = (max(v + self.lack, floor) for v in (self.column_variance, self.entry_variance))
        row = bought = unbought = np.full(np.broadcast_shapes(k.shape, d.shape), OVERLAP)
        for _ in range(FIXED_POINT_ROUNDS):
            before = row
            whole, part = t * (1 - row * bought), t * (1 - row * unbought)
            x = gain * bought * (d / (sc2 + whole) + held * d / m / (se2 + whole))
            x += gain * unbought * free * (n - d) / m / (se2 + part)
            row = x / (1 + x)
            whole, part = t * (1 - row * bought), t * (1 - row * unbought)
            x = gain * row * (m / (sc2 + whole) + held / (se2 + whole))
            bought = x / (1 + x)
            x = gain * row * free / (se2 + part)
            unbought = x / (1 + x)
            if float(np.abs(row - before).max()) < FIXED_POINT_TOL:
                break
        return row, bought, unbought

    def _unexplained(self, share: Array, free: Array, held: Array) -> Array:
        """Return what stays of the lack of fit: entries that were seen keep only what their noise leaves."""
        t2, sc2, se2 = self.lack, self.column_variance, self.entry_variance
        if t2 == 0:
            return np.zeros_like(share)
        column, entry = t2 * sc2 / (t2 + sc2), t2 * se2 / (t2 + se2)
        a, b = np.minimum(held / self.m, 1.0), np.minimum(free / self.m, 1.0)
        in_bought = a * min(column, entry) + (1 - a) * column
        in_others = b * entry + (1 - b) * t2
        return np.asarray(share * in_bought + (1 - share) * in_others)

    def fill(self, d: Indices, f: Array, ranks: Array) -> tuple[Array, Array]:
        """Return precise cells on each column not bought, and on each column bought, out of f in all."""
        left = np.maximum(self.n - d, 1)
        free = np.where(d == 0, f / self.n, np.minimum(f / left, self.cap(ranks)))
        free = np.where(d >= self.n, 0.0, free)
        rest = np.maximum(f - free * (self.n - d), 0.0) / self.n
        return np.where(d >= self.n, 0.0, free + rest), rest

    def cap(self, ranks: Array | float | None = None) -> Any:
        """Return the cells after which a column knows as much as one that was bought, but at least 2 (k + 1)."""
        column, entry = self.column_variance + self.lack, self.entry_variance + self.lack
        parity = self.m * entry / max(column, TINY)
        k = self.rank if ranks is None else ranks
        return np.minimum(np.maximum(parity, 2.0 * (k + 1)), self.m)

    def split(self, columns: int, money: float, spent: float | None = None) -> Split:
        """Return what to expect of `columns` columns, which cost `spent`, out of `money` in all."""
        left = money - (columns * self.column_price if spent is None else spent)
        cells = pays_for(max(0.0, left), self.entry_price, self.m * self.n)
        each = self.fill(np.array([columns]), np.array([float(cells)]), np.array([self.rank]))[0]
        return Split(columns, cells, float(each[0]), math.sqrt(self.risk(columns, left)))

    def best(
        self,
        money: float,
        ranks: Ranks | None = None,
        *,
        at_least: int = 0,
        spent: float = 0.0,
        paid: float = 0.0,
    ) -> Split:
        """Return the best split of `money`, of which the first `at_least` columns took `spent` and entries `paid`.

        Where the rank is one of `ranks` and not known, the split is that of smallest geometric mean of the risks: of all
        fixed ones the one whose regret, in percent, is smallest on average. The closed form is that of very large matrices.
        Fits of real ones need what it says for `BIAS` directions more, and scatter about that by `SCATTER`: near the point
        where entries alone begin to suffice, some of them fail, and a few columns are worth their price.
        """
        left = money - spent
        d = self._tried(at_least, max(left - paid, 0.0))
        ranks = ranks or Ranks.equally(self.rank)
        scatter = min(SCATTER / math.sqrt(self.m * self.n), MOST_SCATTER)
        more = BIAS + np.array([-1.0, 0.0, 1.0]) * scatter
        each = np.add.outer(ranks.values, more).ravel()
        rest = np.asarray(left - (d - at_least) * self.column_price, dtype=np.float64)
        risks = self.risks(d, rest, each)
        risks = risks.reshape(len(ranks.values), len(more), len(d)).mean(axis=1)
        mean = ranks.weights @ np.log(np.maximum(risks, TINY))
        columns = int(d[mean.argmin()])
        return self.split(columns, money, spent + (columns - at_least) * self.column_price)

    def _tried(self, at_least: int, money: float) -> Indices:
        """Return the numbers of columns to compare: each of the next ones, and some up to all that can be paid."""
        most = min(self.n, at_least + pays_for(money, self.column_price, self.n))
        near = np.arange(at_least, min(most, at_least + NEAR_SPLITS) + 1)
        far = np.linspace(at_least, most, FAR_SPLITS).astype(int)
        return np.unique(np.r_[near, far])

    def marginal(self, money: float) -> float:
        """Return by how much one more unit of money lowers the expected error."""
        step = max(self.column_price, self.entry_price)
        return max(0.0, (self.best(money).error - self.best(money + step).error) / step)


def problem_before(setting: TwoCost, rank: int | None = None) -> Problem:
    """Return what is known before anything was asked; unknown noises at one, signal of that size."""
    m, n = setting.m, setting.n
    column, entry = setting.mean_prices()
    sc2 = 1.0 if setting.column_noise is None else setting.column_noise**2
    se2 = sc2 / ASSUMED_RATIO if setting.entry_noise is None else setting.entry_noise**2
    k = max(1, min(m, n, ASSUMED_RANK if rank is None else rank))
    signal = max(ASSUMED_SIGNAL * sc2, ASSUMED_SIGNAL * se2, TINY)
    return Problem(m, n, column, entry, sc2, se2, k, signal)


def problem_from_columns(base: Problem, C: Array) -> Problem:
    """Return `base` with rank, signal and lack of fit estimated from the columns held, shape (m, d)."""
    d = C.shape[1]
    k, lack = estimate_rank(C, math.sqrt(base.column_variance))
    spread = float(np.var(C, axis=1, ddof=1).mean()) if d > 1 else float(np.var(C))
    signal = max(spread - base.column_variance - lack, WEAKEST_SIGNAL * spread, TINY)
    return replace(base, rank=k, signal=signal, lack=lack)


def water_fill(
    problem: Problem, held: Indices, had: Indices, cells: int, rng: np.random.Generator
) -> Indices:
    """Return the new precise cells for each column, shape (n,): columns not held first, then everywhere.

    `had` of shape (n,) are the precise cells that each column has already.
    """
    m, n = problem.m, problem.n
    count = np.array(had, np.int64)
    free = np.setdiff1d(np.arange(n), held)
    cap = math.ceil(float(problem.cap())) if len(held) else m
    cells = _pour(count, rng.permutation(free), cap, cells)
    _pour(count, rng.permutation(np.arange(n)), m, cells)
    return count - had


def _pour(count: Indices, columns: Indices, most: int, cells: int) -> int:
    """Add cells to the counts of some columns, evenly, up to `most` each; return how many are left."""
    while cells > 0:
        room = most - count[columns]
        columns, room = columns[room > 0], room[room > 0]
        if not len(columns):
            break
        each = min(cells // len(columns), int(room.min()))
        if each == 0:
            count[columns[:cells]] += 1
            return 0
        count[columns] += each
        cells -= each * len(columns)
    return cells


def spread_rows(
    taken: NDArray[np.bool_], count: Indices, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return (rows, cols) of `count[j]` new cells in each column j, all rows used about equally often.

    `taken` of shape (m, n) tells which cells are held already; a column gives no more than it has left.
    """
    m = len(taken)
    load = taken.sum(axis=1).astype(np.float64)
    rows, cols = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for j in rng.permutation(np.flatnonzero(count)):
        order = np.argsort(load + rng.random(m))
        pick = order[~taken[order, j]][: int(count[j])]
        load[pick] += 1
        rows.append(pick)
        cols.append(np.full(len(pick), j, np.int64))
    return np.concatenate(rows), np.concatenate(cols)
