"""Entries as arms: repeated noisy answers, tallied, and pairs picked without an n x n array.

Plans that measure entries again and again share a :class:`Tally`; (i, j) and (j, i) are one arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import AnswerError, ParameterError
from entrywise.queries import Asking, Batch, History, Prices
from entrywise.results import PSDFactor, Result
from entrywise.types import Array, Indices

CHUNK = 1 << 20  # most measurements in a batch
MOST = 2**53  # most measurements at all: beyond, counts would not be exact
BLOCK = 1 << 22  # entries of F F' made at once


@dataclass(frozen=True, eq=False, repr=False)
class BestPair(Result):
    """The pair with the smallest entry that was found.

    Parameters
    ----------
    pair : tuple of int
        (i, j) with i <= j.
    value : float
        Mean of its answers, NaN when it was never measured.
    pulls : int
        Measurements of this very pair.
    factor : ndarray of shape (n, k), optional
        Estimate F F' of the whole matrix, where the plan made one.
    """

    pair: tuple[int, int]
    value: float = float("nan")
    pulls: int = 0
    factor: Array | None = None

    @property
    def matrix(self) -> PSDFactor | None:
        """Estimate of the whole matrix, where the plan made one."""
        return None if self.factor is None else PSDFactor(self.factor)


class Tally:
    """Counts and sums of the answers to each entry of a symmetric matrix, sorted by entry.

    Answers of a `history` are in it from the start, with `success` as one minus each.

    >>> tally = Tally(4)
    >>> tally.add(np.array([0, 2, 2]), np.array([1, 0, 0]), np.array([1.0, 0.0, 1.0]))
    >>> tally.look(np.array([0, 0]), np.array([2, 3]))
    (array([2., 0.]), array([1., 0.]))
    """

    def __init__(
        self, n: int, bounded: bool = False, history: History | None = None, success: bool = False
    ) -> None:
        self.n = n
        self.bounded = bounded
        self.keys = np.zeros(0, np.int64)
        self.counts = np.zeros(0)
        self.sums = np.zeros(0)
        self.asked = 0
        if history is not None:
            values = 1.0 - history.values if success else history.values
            self.add(history.rows, history.cols, values)
        self.asked = 0  # what was there before is not counted: the budget is for what comes

    def add(self, rows: Indices, cols: Indices, answers: Array) -> None:
        """Take answers in; NaN (a failed measurement) counts as asked and nothing else."""
        self.asked += len(answers)
        good = ~np.isnan(answers)
        if not good.all():
            rows, cols, answers = rows[good], cols[good], answers[good]
        if self.bounded and len(answers) and (answers.min() < 0.0 or answers.max() > 1.0):
            t = int(np.argmax((answers < 0.0) | (answers > 1.0)))
            raise AnswerError(
                f"the answer to entry ({rows[t]}, {cols[t]}) is {answers[t]:g}; coins answer in 0..1, state noise= for "
                "other answers"
            )
        keys = np.minimum(rows, cols) * self.n + np.maximum(rows, cols)
        at = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        if len(self.keys) and np.array_equal(self.keys[at], keys):  # nothing new: no need to sort
            if len(keys) < len(self.keys):
                np.add.at(self.counts, at, 1.0)
                np.add.at(self.sums, at, answers)
            else:
                self.counts += np.bincount(at, minlength=len(self.keys))
                self.sums += np.bincount(at, answers, minlength=len(self.keys))
            return
        every, where = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        old = len(self.keys)
        counts, sums = np.zeros(len(every)), np.zeros(len(every))
        counts[where[:old]], sums[where[:old]] = self.counts, self.sums
        self.counts = counts + np.bincount(where[old:], minlength=len(every))
        self.sums = sums + np.bincount(where[old:], answers, minlength=len(every))
        self.keys = every

    @property
    def rows(self) -> Indices:
        """Smaller index of each entry measured."""
        return self.keys // self.n

    @property
    def cols(self) -> Indices:
        """Larger index of each entry measured."""
        return self.keys % self.n

    def look(self, rows: Indices, cols: Indices) -> tuple[Array, Array]:
        """Return (counts, sums) at some entries, shapes broadcast."""
        rows, cols = np.broadcast_arrays(rows, cols)
        if not len(self.keys):
            return np.zeros(rows.shape), np.zeros(rows.shape)
        keys = np.minimum(rows, cols) * self.n + np.maximum(rows, cols)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        hit = self.keys[at] == keys
        return np.where(hit, self.counts[at], 0.0), np.where(hit, self.sums[at], 0.0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the tally as arrays for a checkpoint."""
        return {
            "keys": self.keys,
            "counts": self.counts,
            "sums": self.sums,
            "asked": np.array(self.asked),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what :meth:`arrays` gave."""
        self.keys, self.counts, self.sums = (arrays[k].copy() for k in ("keys", "counts", "sums"))
        self.asked = int(arrays["asked"])


def pull(tally: Tally, rows: Indices, cols: Indices, times: Indices) -> Asking[None]:
    """Measure each entry so many times, in batches of at most ``CHUNK``, and tally the answers."""
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for a in range(0, total, CHUNK):
        if total <= CHUNK:
            at = np.repeat(np.arange(len(times)), times)
        else:
            at = np.searchsorted(ends, np.arange(a, min(a + CHUNK, total)), side="right")
        i, j = rows[at], cols[at]
        answers = yield Batch(i, j)
        tally.add(i, j, answers)


def share_out(total: int, weights: Array) -> Indices:
    """Return whole numbers in proportion to `weights` that add up to `total` exactly."""
    if not len(weights) or total <= 0:
        return np.zeros(len(weights), np.int64)
    exact = weights * (total / weights.sum())
    whole: Indices = np.floor(exact).astype(np.int64)
    short = total - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return whole


def evenly(total: int, arms: int, rng: np.random.Generator) -> Indices:
    """Return `total` dealt evenly to `arms`; who gets one more is drawn."""
    times = np.full(arms, total // arms, np.int64)
    times[rng.permutation(arms)[: total - int(times.sum())]] += 1
    return times


def count_pairs(n: int, diagonal: bool) -> int:
    """Return the number of entries of a symmetric matrix of side n."""
    return n * (n + 1) // 2 if diagonal else n * (n - 1) // 2


def pair_at(number: Indices, n: int, diagonal: bool) -> tuple[Indices, Indices]:
    """Return the pairs (i, j), i <= j (or i < j), with these numbers in the order of the columns j."""
    number = np.asarray(number, np.int64)
    j = ((np.sqrt(8.0 * number + 1.0) - 1.0) / 2.0).astype(np.int64)
    j = np.where(j * (j + 1) // 2 > number, j - 1, j)  # the root may be off by one
    j = np.where((j + 1) * (j + 2) // 2 <= number, j + 1, j)
    i = number - j * (j + 1) // 2
    return i, j if diagonal else j + 1


def draw_pairs(
    count: int, n: int, diagonal: bool, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return `count` different pairs drawn at random."""
    number = rng.choice(count_pairs(n, diagonal), count, replace=False)
    return pair_at(number, n, diagonal)


def spread(tally: Tally, total: int, diagonal: bool, rng: np.random.Generator) -> Asking[None]:
    """Measure all entries equally often, `total` measurements in all; where they do not suffice, chance decides."""
    every = count_pairs(tally.n, diagonal)
    if every == 0:
        return
    rounds, rest = divmod(total, every)
    if rounds:
        i, j = pair_at(np.arange(every), tally.n, diagonal)
        yield from pull(tally, i, j, np.full(every, rounds))
    if rest:
        i, j = draw_pairs(rest, tally.n, diagonal, rng)
        yield from pull(tally, i, j, np.ones(rest, np.int64))


def smallest_pairs(F: Array, count: int, diagonal: bool) -> tuple[Indices, Indices, Array]:
    """Return (i, j, value) of the `count` smallest entries of F F', i < j, block by block.

    With ``diagonal`` the entries (i, i) take part. Ties go to the smaller indices.
    """
    n = len(F)
    step = max(1, BLOCK // n)
    rows, cols, values = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    for a in range(0, n, step):
        i = np.arange(a, min(a + step, n))
        block = F[i] @ F[a:].T  # nothing before column a is above the diagonal
        i_, j_ = np.nonzero(np.arange(a, n)[None, :] >= i[:, None] + (0 if diagonal else 1))
        flat = block[i_, j_]
        if len(flat) > count:
            keep = np.argpartition(flat, count - 1)[:count]
            i_, j_, flat = i_[keep], j_[keep], flat[keep]
        rows, cols, values = np.r_[rows, i_ + a], np.r_[cols, j_ + a], np.r_[values, flat]
        keep = np.lexsort((cols, rows, values))[:count]
        rows, cols, values = rows[keep], cols[keep], values[keep]
    return rows, cols, values


def pulls_for(n: int, prices: Prices | None, budget: float | None, diagonal: bool, who: str) -> int:
    """Refuse bad sizes and budgets; return how many measurements `budget` pays for, at one price."""
    least = 1 if diagonal else 2
    if n < least:
        raise ParameterError(f"n of {who} must be at least {least}, got {n}")
    if budget is None or not np.isfinite(budget) or budget < 0:
        raise ParameterError(f"budget of {who} must be a finite number not below 0, got {budget}")
    price = 1.0 if prices is None else prices.modes.get("entry", 1.0)
    if not isinstance(price, float):
        raise ParameterError(f"{who} measures every entry at one price; give Prices(entry=number)")
    pulls = np.floor(budget / price * (1.0 + 1e-12))
    if not pulls <= MOST:
        raise ParameterError(
            f"budget of {who} must pay for at most {MOST:,} measurements, got {budget:g} at {price:g} each; lower it"
        )
    return int(pulls)


def every_or_some(
    size: int, n: int, diagonal: bool, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return all pairs, or `size` random ones where that is fewer."""
    arms = count_pairs(n, diagonal)
    if size >= arms:
        return pair_at(np.arange(arms), n, diagonal)
    return draw_pairs(max(1, size), n, diagonal, rng)


def finish(
    tally: Tally, pair: tuple[int, int], status: str, report: Mapping[str, Any], **extra: Any
) -> BestPair:
    """Return the result for `pair` with its mean and its number of answers."""
    i, j = min(pair), max(pair)
    count, total = tally.look(np.array([i]), np.array([j]))
    value = float(total[0] / count[0]) if count[0] else float("nan")
    return BestPair(
        (i, j),
        value,
        int(count[0]),
        status=status,
        report={"measurements": tally.asked, **report},
        **extra,
    )
