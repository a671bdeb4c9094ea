"""Cells for the scores of rows: half of them common columns, half spread, and columns of choice for new rows.

The score of a row is its mean over all columns. Common columns tell rows apart and give their factors, spread cells
touch every column; rows that scatter more get more. The plan streams: a step looks at what is taken and what was
answered, and asks for what the design still lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.designs import (
    LEAST_SHARE,
    Mask,
    allocation,
    chances,
    greedy_columns,
    new_columns,
    new_rows,
    row_deviations,
    spread,
)
from entrywise.active.cells.purchase import see_purchase
from entrywise.active.cells.reserve import column_order, uniform_of
from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.results import Certificate, LowRank
from entrywise.types import Array, Indices, Seed, generator

Goal = Literal["scores", "order"]


@plan(streaming=True)
def row_scores(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float,
    goal: Goal = "scores",
    core: float = 0.5,
    rank: int | None = None,
    available: Any = None,
    likelihood: Literal["gaussian", "binary", "auto"] = "gaussian",
    bounds: tuple[float, float] | None = None,
    row_features: Any = None,
    col_features: Any = None,
    rng: Seed = None,
    situation: Situation,
) -> Batch | LowRank:
    r"""Buy the cells from which the mean of every row over all columns is estimated best.

    ``scores``, where all cells of a row cost the same: of the k cells a row that the money pays, a share `core` are
    random columns, the same for all rows. Their residuals about row and column levels say how far each row scatters;
    the rest is spread over the columns used least, in Neyman's proportion to deviation over root price (no
    row gets less than .3 of an equal share). Where prices differ within rows, cells are drawn with probability
    :math:`\min(1, c/\sqrt{p_{ij}})` instead, which :func:`~entrywise.apply.leaderboard.scores` needs for its interval.

    ``order``: random columns, the same for all rows, and nothing else: differences of rows are then paired.

    **New rows.** With at least 20 rows known beforehand for at least half of their cells, money goes to the other
    rows only, and to the columns that lower the variance of their means most per price, under a fit of what is known.
    **New columns.** With at least 20 columns known for at least half of their cells, rows need no common columns to be
    placed: the money is spread over the others, rows in Neyman's proportion, columns alike.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
    budget : float
        Money to plan with; never exceeded.
    goal : {"scores", "order"}
    core : float
        Share of the money for common columns; .35 to .8 differ little.
    rank : int, optional
        Components of the fit; None lets the fit choose.
    available : array of bool of shape (m, n), optional
        Which cells may be bought at all; the score of a row is its mean over these.
    likelihood, bounds, row_features, col_features
        As in :func:`~entrywise.active.most_informative`.

    Returns
    -------
    LowRank
        The fit of everything bought and known; :func:`~entrywise.apply.leaderboard.scores` turns it into scores.

    References
    ----------
    .. [N34] Neyman, *On the two different aspects of the representative method*, JRSS 1934: allocation in
       proportion to deviation over root price.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import MatrixOracle
    >>> A = np.add.outer(np.arange(6.0), np.sin(np.arange(20)))
    >>> found = ew.play(row_scores((6, 20), budget=60, rng=0), MatrixOracle(A))
    >>> found.cost, found.report["goal"]
    (60.0, 'scores')
    """
    if goal not in ("scores", "order"):
        raise ParameterError(f"goal of row_scores must be scores or order, got {goal!r}")
    if not 0 <= core <= 1:
        raise ParameterError(f"core must be in 0..1, got {core}")
    state = see_purchase(shape, prices, budget, available, generator(rng), situation)
    model = AnswerModel.of(state.shape, likelihood, bounds, row_features, col_features)
    board = _Board.of(state.shape, state.prices, state.available, situation, model)
    if not board.can_buy:
        cells, arm = np.zeros(0, np.int64), ""
    elif goal == "order":
        cells, arm = board.columns(np.inf), "order"
    elif board.new is not None:
        cells, arm = board.against_history(rank), "new row"
    elif board.new_cols is not None and board.priced_by_row:
        cells, arm = board.over_new_columns(), "new column"
    elif board.priced_by_row:
        cells, arm = board.core_and_spread(core)
    else:
        cells, arm = board.by_price(), "priced"
    wanted = board.batch(cells, arm)
    if len(wanted) or len(situation.pending):
        return wanted
    return board.result(goal, rank)


@dataclass(eq=False)
class _Board:
    """What one step looks at, as arrays of shape (m, n)."""

    shape: tuple[int, int]
    price: Array
    available: Mask
    taken: Mask
    new: Mask | None
    new_cols: Mask | None
    seen: Observations
    situation: Situation
    model: AnswerModel

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        prices: Prices,
        allowed: Mask | None,
        now: Situation,
        model: AnswerModel,
    ) -> _Board:
        m, n = shape
        i, j = np.divmod(np.arange(m * n), n)
        price = prices.of("entry", i, j).reshape(m, n)
        available = np.ones(shape, bool) if allowed is None else allowed
        taken, known = np.zeros(shape, bool), np.zeros(shape, bool)
        for table in (now.facts, now.pending):
            taken[table.rows, table.cols] = True
        earlier = now.facts.known | (now.facts.epoch < now.epoch)
        before = now.facts[earlier & ~now.facts.failed]
        known[before.rows, before.cols] = True
        told = now.facts[~now.facts.failed & (now.facts.arm != "control")]
        seen = Observations.from_triplets(
            told.rows, told.cols, told.values, shape, duplicates="mean"
        )
        new, new_cols = new_rows(known, available), new_columns(known, available)
        return cls(shape, price, available, taken, new, new_cols, seen, now, model)

    @property
    def open(self) -> Mask:
        return self.available & ~self.taken

    @property
    def left(self) -> float:
        return np.inf if self.situation.left is None else self.situation.left

    @property
    def can_buy(self) -> bool:
        """Whether the money pays any cell that is still open."""
        return bool(np.any(self.price[self.open] <= self.left * (1 + 1e-12)))

    @property
    def money(self) -> float:
        """What is left, and the price of all that is taken, whoever paid for it: the design is about all cells."""
        return self.left + float(self.price[self.taken].sum())

    @property
    def priced_by_row(self) -> bool:
        """Whether all cells of a row cost the same."""
        return bool(np.all(self.price == self.price[:, :1]))

    def columns(self, most: float) -> Indices:
        """Return the open cells of the first common columns, column by column, up to `most` columns."""
        n = self.shape[1]
        first = column_order(self.situation.seed, n)[: int(min(most, n))]
        rows, place = np.nonzero(self.open[:, first])
        by_column = np.lexsort((rows, place))
        return np.asarray(rows[by_column] * n + first[place[by_column]])

    def core_and_spread(self, core: float) -> tuple[Indices, str]:
        """Return what is still open of the common columns; when they are all asked, the spread."""
        a_column = float(self.price[:, 0] @ self.available.mean(axis=1))
        k = self.money / a_column
        common = self.columns(round(core * k)) if np.isfinite(k) else self.columns(np.inf)
        common = common[np.cumsum(self.price.ravel()[common]) <= self.left * (1 + 1e-12)]
        if len(common):
            return common, "core"
        return self._spread(round(core * k)), "spread"

    def _spread(self, common: int) -> Indices:
        """Return cells that bring every row to its share of the money."""
        in_core = np.zeros(self.shape[1], bool)
        in_core[column_order(self.situation.seed, len(in_core))[:common]] = True
        core = (self.taken & in_core).sum(axis=1)
        return self._spread_over(np.ones(self.shape[1], bool), core)

    def over_new_columns(self) -> Indices:
        """Return cells of new columns that bring every row to its share of the money."""
        assert self.new_cols is not None
        return self._spread_over(self.new_cols, np.zeros(self.shape[0], np.int64))

    def _spread_over(self, columns: Mask, core: Indices) -> Indices:
        """Return cells of some columns; of each row `core` cells are there already, a share of the rest is sure."""
        price, taken, still = self.price[:, 0], self.taken & columns, self.open & columns
        have = taken.sum(axis=1)
        money = self.left + float(price @ have)
        equal = (money - float(price @ core)) / float(price.sum())
        least = np.maximum(core + LEAST_SHARE * max(equal, 0.0), have)
        target = allocation(
            row_deviations(self.seen) if len(self.seen) else np.ones(len(have)),
            price,
            least=least,
            most=have + still.sum(axis=1),
            money=money,
        )
        missing = np.maximum(target - have, 0)
        if len(
            self.situation.pending
        ):  # answers are still to come: one cell a row, then look again
            missing = np.minimum(missing, 1)
        rng = np.random.default_rng([self.situation.seed, 2, self.situation.step])
        return spread(missing, self.taken, still, rng)

    def by_price(self) -> Indices:
        """Return open cells in the order in which independent draws by price take them."""
        wanted = self.available
        chance = chances(self.price, wanted, self.money)
        i, j = np.divmod(np.arange(self.price.size), self.shape[1])
        when = uniform_of(self.situation.seed, i, j).reshape(self.shape)
        with np.errstate(divide="ignore"):
            when = np.where(self.open, when / chance, np.inf)
        order = np.argsort(when, axis=None, kind="stable")
        return order[: int(np.count_nonzero(self.open))]

    def against_history(self, rank: int | None) -> Indices:
        """Return the columns that tell most of each new row, the best first."""
        assert self.new is not None
        fresh = np.flatnonzero(self.new)
        known = self.seen.take(np.flatnonzero(~self.new[self.seen.rows]))
        fit = self.model.fit(known, rank)
        mine = self.taken & self.new[:, None]
        root = np.sqrt(
            self.price[fresh].mean(axis=1)
        )  # cells in proportion to one over the root price
        share = (self.left + float(self.price[mine].sum())) * root / root.sum()
        picked, extra = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        memory = dict[bytes, Indices]()
        for i, money in zip(fresh, share, strict=True):
            key = self.available[i].tobytes() + self.price[i].tobytes()
            if key not in memory:
                more = money + float(self.price[i].max())  # one cell beyond its share
                memory[key] = greedy_columns(fit, self.available[i], self.price[i], more)
            columns = memory[key]
            paid = np.cumsum(self.price[i, columns]) <= money * (1 + 1e-9)
            free = self.open[i, columns]
            picked.append(i * self.shape[1] + columns[free & paid])
            extra.append(i * self.shape[1] + columns[free & ~paid])
        return np.concatenate(picked + extra)  # what is left over buys from the rest

    def batch(self, cells: Indices, arm: str) -> Batch:
        """Return those cells that the filter allows and the money pays, in their order."""
        n = self.shape[1]
        now = self.situation
        cells = cells[now.allows(cells // n, cells % n)]
        cells = self._affordable(cells)[: now.limit]
        chance = np.ones(len(cells))
        if arm == "priced":
            chance = chances(self.price, self.available, self.money).ravel()[cells]
        return Batch(cells // n, cells % n, arm=np.full(len(cells), arm), probability=chance)

    def _affordable(self, cells: Indices) -> Indices:
        """Return the cells that the money pays one after the other, leaving out those that are too dear."""
        price = self.price.ravel()[cells]
        limit = self.left * (1 + 1e-12)
        paid = np.cumsum(price) <= limit
        if paid.all():
            return cells
        first = int(np.argmin(paid))
        left = limit - float(price[:first].sum())
        kept = list(range(first))
        for k in np.flatnonzero(price[first:] <= left) + first:
            if price[k] <= left:
                kept.append(int(k))
                left -= float(price[k])
        return cells[kept]

    def result(self, goal: str, rank: int | None) -> LowRank:
        """Return the fit of everything that was answered."""
        m, n = self.shape
        bought = int(np.count_nonzero(~self.situation.facts.known))
        report = {"rule": "row-scores", "goal": goal, "bought": bought}
        if not len(self.seen):
            return LowRank(np.zeros((m, 0)), np.zeros((n, 0)), report=report)
        fit = self.model.fit(self.seen, None if rank is None else min(rank, m, n))
        assumes = ("what was bought foretells itself as it foretells the rest",)
        checked = ("every row's cells were drawn at random, or replayed on known rows",)
        promise = Certificate("share of 90 % intervals of scores that cover", 0.9, assumes, checked)
        return replace(fit, certificates=(promise,), report={**fit.report, **report})
