"""Studies to strike: plans, and measurements that say the same of the same question, whoever makes them.

A worker that was killed and the one that takes over its question must find the same number, else no result could be
compared. So the coin of a question is tossed by its name, and the noise of an entry drawn by its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrywise import gallery
from entrywise.methods import METHODS
from entrywise.oracles import BernoulliOracle, StreamOracle, TwoCostOracle
from entrywise.queries import Batch, Plan, Prices, Situation, plan
from entrywise.results import LowRank
from entrywise.study.records import Leased
from entrywise.study.study import Study
from entrywise.types import Array


@plan(streaming=True)
def scattered(
    shape: tuple[int, int], prices: Prices | None = None, *, budget: float | None = None, size: int = 5,
    rng: Any = None, situation: Situation,
) -> Batch | LowRank:  # fmt: skip
    """Ask for entries in an order of its own, a few at a time, until the money is gone: for tests of studies."""
    m, n = shape
    facts, out = situation.facts, situation.pending
    order = np.argsort(_scores(situation.seed, m, n), kind="stable")
    rows, cols = order // n, order % n
    taken = np.isin(order, np.concatenate([facts.rows * n + facts.cols, out.rows * n + out.cols]))
    some = np.flatnonzero(~taken & situation.allows(rows, cols))
    count = size if situation.limit is None else situation.limit
    some = some[:count]
    if situation.left is not None:
        bill = np.cumsum((prices or Prices()).of("entry", rows[some], cols[some]))
        some = some[bill <= situation.left + 1e-9]
    if len(some):
        return Batch.entries(rows[some], cols[some], expected=np.zeros(len(some)))
    found = np.zeros((m, n))
    good = ~facts.failed
    found[facts.rows[good], facts.cols[good]] = facts.values[good]
    return LowRank(found, np.eye(n))


def _scores(seed: int, m: int, n: int) -> Array:
    """Return a number for each entry that does not depend on the size of the matrix."""
    i, j = np.divmod(np.arange(m * n, dtype=np.uint64), np.uint64(n))
    mixed = (i * np.uint64(0x9E3779B97F4A7C15)) ^ (j * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed + np.uint64(seed % 2**63)) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray((mixed ^ (mixed >> np.uint64(32))).astype(np.float64))


PLANS: dict[str, Callable[..., Plan]] = {"entrywise.study.subjects:scattered": scattered}
STREAMING = "entrywise.study.subjects:scattered"


@dataclass(frozen=True)
class Truth:
    """What honest measurements say.

    `matrix` holds the entries, or the chances of coins where `coin`; samples of a stream come round again. `noise` is
    the standard deviation of each instrument.
    """

    matrix: Array
    coin: bool = False
    noise: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    def values(self, leased: Leased) -> Array:
        """Return what is measured, one number a question."""
        columns = (leased.batches, leased.positions, leased.rows, leased.cols, leased.modes)
        questions = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([self.value(*question) for question in questions])

    def value(self, batch: int, position: int, row: int, col: int, mode: str) -> float:
        """Return what is measured for one question."""
        entry = float(self.matrix[row % len(self.matrix), col])
        if self.coin:
            chance = np.random.default_rng([self.seed, batch, position]).random()
            return float(chance < entry)
        if mode not in self.noise:
            return entry
        place = [self.seed, row, col, *mode.encode()]
        return entry + self.noise[mode] * float(np.random.default_rng(place).standard_normal())

    def wrong(self, value: float) -> float:
        """Return another value, as a slip of the hand would."""
        return 1.0 - value if self.coin else value + 1.0


@dataclass(frozen=True)
class Subject:
    """A study to strike: what it is made with, what is true, and how it is extended (0: not at all)."""

    plan: str
    options: Mapping[str, Any]
    truth: Truth
    lines: int = 0
    money: float = 0.0
    ordered: bool = True  # whether what it asks depends on the order in which answers come

    def create(self, url: Any, name: str, **changed: Any) -> Study:
        """Make the study; `changed` options differ."""
        options = {**self.options, **changed}
        return Study.create(url, name, plan=self.plan, plans=PLANS, **options)

    def extend(self, study: Study) -> None:
        """Give the study more lines and more money."""
        more: dict[str, Any] = {"budget": self.money} if self.money else {}
        if self.lines:
            more["rows"] = self.lines
            if self.plan == STREAMING:
                more["cols"] = self.lines
        if more:
            study.extend(**more)


def nystrom(n: int, rank: int, seed: int) -> Subject:
    """Return an adaptive Nyström study of an n x n matrix, which may grow by 10."""
    truth = Truth(gallery.random_psd(n + 10, rank, seed))
    options = {"params": {"n": n}, "seed": seed}
    return Subject("adaptive-nystrom", options, truth, lines=10, ordered=False)


def stream(n: int, rank: int, seed: int) -> Subject:
    """Return a streaming study of an eighth of an n x n matrix, which may grow by 10."""
    truth = Truth(gallery.random_psd(n + 10, rank, seed))
    options = {"params": {"shape": [n, n]}, "seed": seed, "budget": float(n * n // 8)}
    return Subject(STREAMING, options, truth, lines=10, money=20.0, ordered=False)


def registered(name: str, seed: int) -> Subject:
    """Return a study of a method's small example."""
    (method,) = (m for m in METHODS if m.name == name and m.room == "active")
    params = {k: v for k, v in method.example.items() if k != "rng"}
    options: dict[str, Any] = {k: params.pop(k) for k in ("budget", "prices") if k in params}
    options |= {"params": params, "seed": seed}
    oracle = getattr(gallery, method.problem)(seed)
    streaming = method.kind == "streaming"
    money = 0.1 * options.get("budget", 0.0)
    return Subject(name, options, _truth_of(oracle, seed), money=money, ordered=streaming)


def _truth_of(oracle: Any, seed: int) -> Truth:
    if isinstance(oracle, StreamOracle):
        samples, attributes = gallery.STREAM
        rows = np.repeat(np.arange(samples), attributes)
        cols = np.tile(np.arange(attributes), samples)
        answers = oracle(Batch.entries(rows, cols))
        return Truth(answers.reshape(samples, attributes))
    coin = isinstance(oracle, BernoulliOracle)
    noise = oracle.noise if isinstance(oracle, TwoCostOracle) else {}
    return Truth(np.asarray(oracle.matrix), coin, noise, seed)
