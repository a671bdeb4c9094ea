"""How to split one budget between noisy columns and precise entries: a closed form for the expected error.

Knowing k directions, the coefficients of a column (or row) seen in c places with noise variance w are known to
k w / (c - k - 1) an entry, and never worse than the prior's variance. Rows are seen by the columns bought and by
the precise cells; columns bought are seen whole; the others only by their precise cells. What one side does
not know acts as noise on the other, so the three errors are iterated to agreement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.queries import Array, Indices

MANY_COLUMNS = 24  # columns of which not all can be directions of a low-rank matrix
PLENTY = 1.25  # entries for each unknown of the matrix from which on entries alone complete it


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
        m, n = self.m, self.n
        f = min(max(money, 0.0) / self.entry_price, float(m * n))
        sc2, se2 = self.column_variance + self.lack, self.entry_variance + self.lack
        free, held = self.fill(d, f)
        t = max(self.signal, 1e-300)
        gain = t / self.rank
        row = bought = unbought = 0.3
        for _ in range(200):
            before = row, bought, unbought
            x = gain * bought * (d / (sc2 + t * (1 - row * bought)) + held * d / m / (se2 + t * (1 - row * bought)))
            x += gain * unbought * free * (n - d) / m / (se2 + t * (1 - row * unbought))
            row = x / (1 + x)
            x = gain * row * (m / (sc2 + t * (1 - row * bought)) + held / (se2 + t * (1 - row * bought)))
            bought = x / (1 + x)
            x = gain * row * free / (se2 + t * (1 - row * unbought))
            unbought = x / (1 + x)
            if max(abs(a - b) for a, b in zip(before, (row, bought, unbought), strict=True)) < 1e-6:
                break
        share = d / n
        return t * (1 - row * (share * bought + (1 - share) * unbought)) + self._unexplained(share, free, held)

    def _unexplained(self, share: float, free: float, held: float) -> float:
        """Return what stays of the lack of fit: entries that were seen keep only what their noise leaves."""
        t2, sc2, se2 = self.lack, self.column_variance, self.entry_variance
        if t2 == 0:
            return 0.0
        column, entry = t2 * sc2 / (t2 + sc2), t2 * se2 / (t2 + se2)
        a, b = min(held / self.m, 1.0), min(free / self.m, 1.0)
        return share * (a * min(column, entry) + (1 - a) * column) + (1 - share) * (b * entry + (1 - b) * t2)

    def fill(self, d: int, f: float) -> tuple[float, float]:
        """Return precise cells on each column not bought, and on each column bought."""
        if d >= self.n:
            return 0.0, f / self.n
        if d == 0:
            return f / self.n, 0.0
        cap = self.cap()
        free = min(f / (self.n - d), cap)
        rest = f - free * (self.n - d)
        return free + rest / self.n, rest / self.n

    def cap(self) -> float:
        """Return the cells after which a column knows as much as one that was bought, but at least 2 (k + 1)."""
        parity = self.m * (self.entry_variance + self.lack) / max(self.column_variance + self.lack, 1e-300)
        return float(min(max(parity, 2.0 * (self.rank + 1)), self.m))

    def split(self, columns: int, money: float) -> Split:
        """Return what to expect of `columns` columns out of `money` in all."""
        left = money - columns * self.column_price
        cells = int(max(0.0, left) / self.entry_price + 1e-9)
        cells = min(cells, self.m * self.n)
        return Split(columns, cells, self.fill(columns, cells)[0], math.sqrt(self.risk(columns, left)))

    def enough(self, money: float, held: int) -> int:
        """Return the columns that real fits need beyond what the closed form says, at most 70 % of the money.

        The closed form is that of very large matrices. Where the entries alone hardly determine the matrix, fewer than
        about 3 k / 2 columns leave the span so uncertain that fits fall behind it; and while most columns show a new
        direction, the rank is not known yet.
        """
        new = self.rank >= 0.6 * held
        k = self.rank + (2 if new else 1)  # few columns show too few directions rather than too many
        if not new and money / self.entry_price >= PLENTY * k * (self.m + self.n - k):
            return 0
        return min(self.n, math.ceil(1.5 * k) + 2, int(0.7 * money / self.column_price))

    def entries_suffice(self, money: float) -> bool:
        """Tell whether no column pays at any rank up to six, and buying a few to find out is dear."""
        if money / self.entry_price < PLENTY * 6 * (self.m + self.n - 6) or min(self.m, self.n) < 8:
            return False
        if 4 * self.column_price < 0.08 * money:
            return False
        return all(replace(self, rank=k).best(money).columns == 0 for k in (2, 4, 6))

    def best(self, money: float, at_least: int = 0, spent: float = 0.0) -> Split:
        """Return the best split of `money`, of which `spent` went into the first `at_least` columns."""
        left = money - spent
        most = min(self.n, at_least + int(left / self.column_price + 1e-9))
        grid = np.unique(
            np.r_[np.arange(at_least, min(most, at_least + 64) + 1), np.linspace(at_least, most, 97).astype(int)]
        )
        risks = [self.risk(int(d), left - (d - at_least) * self.column_price) for d in grid]
        d = int(grid[int(np.argmin(risks))])
        paid = spent + (d - at_least) * self.column_price
        cells = min(int((money - paid) / self.entry_price + 1e-9), self.m * self.n)
        return Split(d, cells, self.fill(d, cells)[0], math.sqrt(min(risks)))

    def marginal(self, money: float) -> float:
        """Return by how much one more unit of money lowers the expected error."""
        step = max(self.column_price, self.entry_price)
        return (self.best(money).error - self.best(money + step).error) / step


def estimate_rank(C: Array, noise: float) -> tuple[int, float]:
    """Return the number of directions in noisy columns C (m, d), and the noise variance that the others show.

    Singular values above what noise of standard deviation `noise` can reach count; when that would be nearly
    all of many, the noise is taken from their median instead (the matrix is not of low rank).
    """
    m, d = C.shape
    s = np.linalg.svd(C, compute_uv=False)
    if not len(s) or s[0] <= 0:
        return 1, 0.0
    floor = s[0] * max(m, d) * np.finfo(float).eps
    k = int(np.sum(s > max(noise * 1.02 * (math.sqrt(m) + math.sqrt(d)), floor)))
    lack = 0.0
    if k > 0.8 * min(m, d) and d >= MANY_COLUMNS:
        b = min(m, d) / max(m, d)
        omega = 0.56 * b**3 - 0.95 * b**2 + 1.82 * b + 1.43
        k = max(1, int(np.sum(s > omega * np.median(s))))
        lack = max(0.0, float(np.sum(s[k:] ** 2)) / (m * d) - noise**2)
    return max(1, k), lack


def problem_from_columns(base: Problem, C: Array) -> Problem:
    """Return `base` with rank, signal and lack of fit estimated from the columns held, shape (m, d)."""
    d = C.shape[1]
    k, lack = estimate_rank(C, math.sqrt(base.column_variance))
    spread = float(np.var(C, axis=1, ddof=1).mean()) if d > 1 else float(np.var(C))
    signal = max(spread - base.column_variance - lack, 1e-3 * spread, 1e-300)
    return replace(base, rank=k, signal=signal, lack=lack)


def water_fill(problem: Problem, held: Indices, had: Indices, cells: int, rng: np.random.Generator) -> Indices:
    """Return the new precise cells for each column, shape (n,): columns not held first, then everywhere.

    `had` of shape (n,) are the precise cells that each column has already.
    """
    m, n = problem.m, problem.n
    count = np.array(had, np.int64)
    free = np.setdiff1d(np.arange(n), held)
    cap = math.ceil(problem.cap()) if len(held) else m
    for targets, most in ((free, cap), (np.arange(n), m)):
        targets = rng.permutation(targets)
        while cells > 0 and len(targets):
            room = most - count[targets]
            targets, room = targets[room > 0], room[room > 0]
            if not len(targets):
                break
            each = min(cells // len(targets), int(room.min()))
            if each == 0:
                count[targets[:cells]] += 1
                cells = 0
                break
            count[targets] += each
            cells -= each * len(targets)
    return count - had


def spread_rows(taken: NDArray[np.bool_], count: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return (rows, cols) of `count[j]` new cells in each column j, all rows used about equally often.

    `taken` of shape (m, n) tells which cells are held already; a column gives no more than it has left.
    """
    m = len(taken)
    load = taken.sum(axis=1).astype(np.float64)
    rows, cols = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for j in rng.permutation(np.flatnonzero(count)):
        order = np.lexsort((rng.random(m), load))
        pick = order[~taken[order, j]][: int(count[j])]
        load[pick] += 1
        rows.append(pick)
        cols.append(np.full(len(pick), j, np.int64))
    return np.concatenate(rows), np.concatenate(cols)


def check_problem(problem: Problem) -> None:
    """Refuse a problem whose numbers make no sense."""
    if not 1 <= problem.rank <= min(problem.m, problem.n):
        raise ParameterError(f"rank must be in 1..{min(problem.m, problem.n)}, got {problem.rank}")
    if not problem.signal > 0:
        raise ParameterError(f"signal must be above 0, got {math.sqrt(max(problem.signal, 0.0))}")
