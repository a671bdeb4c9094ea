"""Leaderboards: rows (models) scored by their mean over columns (tasks), of which only some cells were bought.

What a buyer wants to know: each score with an interval, who is surely better than whom, whether buying by rule was
better than buying at random for the same money, and what more money would bring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise import fragments
from entrywise.active.cells.calibration import expected_errors, row_means, sum_variances
from entrywise.active.cells.purchase import Purchase
from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.queries import Batch, Prices
from entrywise.results import LowRank
from entrywise.results.calibration import normal_width
from entrywise.run import Run
from entrywise.types import Array, Indices, Seed, generator

RANDOM = ("explore", "reserve", "random", "uniform")  # drawn with a known probability
FEWEST_JUDGES = 30  # cells of half a reserve that can judge two purchases
FORETOLD = 3  # draws of what is hidden to see how far the fit foretells itself
FEWEST_ROWS = 10  # foretold rows and draws below which nothing is widened
SAMPLED = 100_000  # cells whose prices stand for all


@dataclass(frozen=True, eq=False)
class Bought:
    """Cells bought, in order, with the arm that wanted them, their probability and their price."""

    shape: tuple[int, int]
    rows: Indices
    cols: Indices
    values: Array
    arms: NDArray[np.str_]
    probability: Array
    price: Array

    @classmethod
    def from_run(cls, run: Run) -> Bought:
        """Return what a run bought, each cell under the arm that wanted it first; failed ones are left out."""
        shape, facts = run.plan.shape, run.facts
        if shape is None or shape[0] is None or not len(facts):
            raise DataError(
                "a leaderboard needs a run over an m x n matrix that has bought something; play it first"
            )
        asked = [e.batch for e in run.log if len(e.batch)]
        keys = np.concatenate([batch.rows * shape[1] + batch.cols for batch in asked])
        arms = np.concatenate([_filled(batch.arm, batch, "") for batch in asked])
        chance = np.concatenate([_filled(batch.probability, batch, 1.0) for batch in asked])
        cells, first = np.unique(keys, return_index=True)
        good = facts[~facts.failed]
        at = first[np.searchsorted(cells, good.rows * shape[1] + good.cols)]
        return cls(
            (shape[0], shape[1]),
            good.rows,
            good.cols,
            good.values,
            arms[at],
            chance[at],
            good.price,
        )

    @classmethod
    def from_log(
        cls, shape: tuple[int, int], lines: Iterable[Mapping[str, Any]], index: Any
    ) -> Bought:
        """Return what the log of a study says was bought; ``index(row, col)`` turns its labels into numbers."""
        told = [x for x in lines if x["what"] == "told" and not x["failed"]]
        if not told:
            raise DataError("nothing was bought yet; ask, measure and tell first")
        at = np.array([index(x["row"], x["col"]) for x in told], np.int64).reshape(-1, 2)
        chances = [1.0 if x["probability"] is None else x["probability"] for x in told]
        return cls(
            shape,
            rows=at[:, 0],
            cols=at[:, 1],
            values=np.array([x["value"] for x in told], np.float64),
            arms=np.array([x["arm"] or "" for x in told]),
            probability=np.array(chances),
            price=np.array([x["price"] for x in told], np.float64),
        )

    def __len__(self) -> int:
        return len(self.values)

    def observations(self, which: Any = slice(None)) -> Observations:
        """Return (some of) what was bought as observations."""
        return Observations.from_triplets(
            self.rows[which], self.cols[which], self.values[which], self.shape, duplicates="mean"
        )


def _filled(column: Any, batch: Batch, otherwise: Any) -> Any:
    return np.full(len(batch), otherwise) if column is None else column


@dataclass(frozen=True, eq=False)
class Scores:
    """Mean of each row over all columns, with an interval, and the places it may take."""

    mean: Array
    low: Array
    high: Array
    deviation: Array
    best_place: Indices
    worst_place: Indices

    @property
    def order(self) -> Indices:
        """Rows from the best to the worst."""
        return np.argsort(-self.mean, kind="stable")

    def _repr_html_(self) -> str:
        """What notebooks show: the rows from the best to the worst, with intervals and places."""
        lines = [
            (
                int(i),
                float(self.mean[i]),
                float(self.low[i]),
                float(self.high[i]),
                f"{self.best_place[i]}-{self.worst_place[i]}",
            )
            for i in self.order
        ]
        return fragments.table(("row", "score", "low", "high", "place"), lines)


def scores(
    fit: LowRank, bought: Bought, level: float = 0.9, prices: Prices | None = None
) -> Scores:
    """Return the score of every row: its mean over all columns, bought cells as they are, the others by the fit.

    The standard deviation is the posterior's, over a finite number of columns, times the larger of
    :func:`extrapolation` and the reserve's conformal factor: the errors of a row's cells go together more than the
    model says, most of all where the dear cells were left out. A row is surely better than another when the interval of their
    difference at this level excludes zero; the places a row may take follow from that.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.active import most_informative
    >>> from entrywise.oracles import MatrixOracle
    >>> A = np.add.outer(np.arange(6.0), np.sin(np.arange(20)))
    >>> run = ew.Run(most_informative((6, 20), budget=60, rank=1, goal="scores", rng=0))
    >>> found = scores(ew.play(run, MatrixOracle(A)), Bought.from_run(run))
    >>> found.order.tolist()
    [5, 4, 3, 2, 1, 0]
    """
    if not 0 < level < 1:
        raise ParameterError(f"level must be above 0 and below 1, got {level}")
    seen = bought.observations()
    mean, variance = row_means(fit, seen.rows, seen.cols, seen.values)
    normal = normal_width(level)
    wider = extrapolation(bought, fit.rank, level, prices)
    if fit.calibration is not None:
        wider = max(wider, fit.calibration.width(level) / normal)
    deviation = wider * np.sqrt(variance)
    apart = mean[:, None] - mean[None, :]
    spread = normal * np.sqrt(deviation[:, None] ** 2 + deviation[None, :] ** 2)
    surely = apart > spread
    np.fill_diagonal(surely, False)
    return Scores(
        mean,
        mean - normal * deviation,
        mean + normal * deviation,
        deviation,
        1 + surely.sum(axis=0),
        len(mean) - surely.sum(axis=1),
    )


def extrapolation(
    bought: Bought, rank: int, level: float = 0.9, prices: Prices | None = None
) -> float:
    """Return by how much deviations of row means must be widened, at least 1: what was bought is asked to foretell itself.

    Half as large a share as is still open is hidden from what was bought: its dearest cells, of which as many are
    kept as were bought among the dearest of all; where prices are equal, any. The rest is fitted, and each row's sum over the
    hidden cells is compared with what the fit says of it, in standard deviations; their quantile at `level` over rows
    and three draws, over the normal one, is returned. It assumes that the step from these cells to those still
    open is like the step from the cheaper of them to the dearer.
    """
    m, n = bought.shape
    seen, prices, rng = bought.observations(), prices or Prices(), np.random.default_rng(0)
    share = 1.0 - len(seen) / (m * n)
    if share <= 0.0 or len(seen) < 2 * (m + n):
        return 1.0
    price, kept = prices.of("entry", seen.rows, seen.cols), 0.0
    some = rng.integers(m * n, size=SAMPLED)
    every = prices.of("entry", some // n, some % n)
    dear = np.quantile(every, 1.0 - share)
    if np.any(every > dear):
        kept = min(1.0, float(np.sum(price > dear)) / (float(np.mean(every > dear)) * m * n))
    ratios = []
    for draw in range(FORETOLD):
        order = np.lexsort((rng.random(len(seen)), price))
        hidden = order[len(seen) - int(0.5 * share * len(seen)) :]
        hidden = hidden[rng.random(len(hidden)) >= kept]
        rest = np.ones(len(seen), bool)
        rest[hidden] = False
        guess = low_rank(seen.take(np.flatnonzero(rest)), min(rank, m, n), rng=draw)
        i, j = seen.rows[hidden], seen.cols[hidden]
        off = np.bincount(i, seen.values[hidden] - guess.entries(i, j), m)
        there = np.bincount(i, minlength=m) > 0
        ratios.append(np.abs(off[there]) / np.sqrt(sum_variances(guess, i, j)[there]))
    every_ratio = np.concatenate(ratios)
    if len(every_ratio) < FEWEST_ROWS:
        return 1.0
    return max(1.0, float(np.quantile(every_ratio, level)) / normal_width(level))


@dataclass(frozen=True)
class Savings:
    """Error against spend, buying by rule and buying at random; empty where it cannot be told, with the reason.

    ``doubt`` is by what factor the quotient of the two errors may be off, up or down, at 90 %: it counts that few cells
    judge both, not that another purchase would have gone otherwise.
    """

    spend: tuple[float, ...] = ()
    rule_error: tuple[float, ...] = ()
    random_error: tuple[float, ...] = ()
    doubt: tuple[float, ...] = ()
    reason: str = ""

    @property
    def surely(self) -> bool:
        """Whether the rule is below random buying at the last spend by more than the doubt."""
        return bool(self.spend) and self.rule_error[-1] * self.doubt[-1] < self.random_error[-1]

    @property
    def enough(self) -> float | None:
        """The spend at which the rule had reached what random buying reached with all of it; None if it never did."""
        if not self.spend or min(self.rule_error) > self.random_error[-1]:
            return None
        falling = np.minimum.accumulate(self.rule_error)
        at = int(np.argmax(falling <= self.random_error[-1]))
        if at == 0:
            return self.spend[0]
        share = (falling[at - 1] - self.random_error[-1]) / (falling[at - 1] - falling[at])
        return float(self.spend[at - 1] + share * (self.spend[at] - self.spend[at - 1]))


def savings(fit: LowRank, bought: Bought, points: int = 5, rng: Seed = 0) -> Savings:
    """Return the error against spend of this rule and of random buying, from cells that were drawn at random.

    Half of the reserve and the exploration cells, in their order, are a purchase at random (by one over the price or over
    its root). They and cells of the rule of equal cost are fitted, at up to `points` spends, and judged on the other half of the
    reserve, which neither has seen, weighted by one over their probability; then the halves change places. With
    too small a reserve, or fewer cells than lines, the answer is that it is unknown.
    """
    lines = max(bought.shape)
    reserve = generator(rng).permutation(np.flatnonzero(bought.arms == "reserve"))
    explore = np.flatnonzero(bought.arms == "explore")
    chosen = np.flatnonzero(~np.isin(bought.arms, RANDOM))
    halves = np.array_split(reserve, 2)
    if len(halves[1]) < FEWEST_JUDGES:
        return Savings(
            reason=f"unknown: a reserve of {len(reserve)} cells is too small to judge both"
        )
    at_random = [np.r_[halves[1], explore], np.r_[halves[0], explore]]
    fewest = min(len(at_random[0]), len(at_random[1]), len(chosen))
    if fewest < lines:
        return Savings(reason=f"unknown: {fewest} cells are fewer than one a line ({lines})")
    bills = [np.cumsum(bought.price[cells]) for cells in (chosen, *at_random)]
    most = min(float(bill[-1]) for bill in bills)
    least = max(float(bill[lines - 1]) for bill in bills)
    spends = np.linspace(least, most, points) if least < most else np.array([most])
    rank = min(fit.rank, *bought.shape)
    judged = [
        [_squares(bought, cells, spends, judge, rank) for cells in (chosen, drawn)]
        for judge, drawn in zip(halves, at_random, strict=True)
    ]
    squares = np.concatenate(judged, axis=2)  # (rule or random, spends, reserve)
    weights = 1.0 / bought.probability[reserve]
    weights /= weights.sum()
    means = np.maximum(squares @ weights, np.finfo(float).tiny)
    shares = squares / means[:, :, None]
    apart = shares[0] - shares[1]  # of the logarithms, cell by cell
    spread = 0.5 * normal_width(0.9) * np.sqrt(apart**2 @ weights**2)
    rule, random = np.sqrt(means).tolist()
    return Savings(
        spend=tuple(spends.tolist()),
        rule_error=tuple(rule),
        random_error=tuple(random),
        doubt=tuple(np.exp(spread).tolist()),
    )


def _squares(bought: Bought, cells: Indices, spends: Array, judge: Indices, rank: int) -> Array:
    """Return the squared errors at `judge` of fits to the first cells that each spend pays, shape (spends, judges)."""
    bill = np.cumsum(bought.price[cells])
    found = np.empty((len(spends), len(judge)))
    for t, spend in enumerate(spends):
        some = cells[: int(np.searchsorted(bill, spend * (1 + 1e-9), side="right"))]
        fit = low_rank(bought.observations(some), rank, rng=0)
        off = fit.entries(bought.rows[judge], bought.cols[judge]) - bought.values[judge]
        found[t] = off**2
    return found


@dataclass(frozen=True)
class Next:
    """What more money would bring: expected root mean square error of cells not bought, now and then."""

    money: float
    now: float
    then: float
    cells: int


def next_money(fit: LowRank, bought: Bought, money: float, prices: Prices | None = None) -> Next:
    """Return what the rule expects of spending `money` more: the error of cells not bought, before and after."""
    state = Purchase(bought.shape, prices or Prices(), money, None, np.random.default_rng(0))
    state.add(bought.rows * bought.shape[1] + bought.cols, bought.values)
    now, then, cells = expected_errors(state, fit, money)
    return Next(money, now, then, cells)
