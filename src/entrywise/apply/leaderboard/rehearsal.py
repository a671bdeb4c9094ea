"""What would each budget have bought? The same purchase, played many times on a board that is there already.

A past board stands in for the one to be bought. For each budget the plan buys from it with fresh seeds; errors, coverage and
separated pairs are counted against its own truth, beside the exact error of naive scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.row_scores import row_scores
from entrywise.apply.leaderboard.bought import Bought
from entrywise.apply.leaderboard.scores import Scores, scores
from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.queries import Prices
from entrywise.run import Run
from entrywise.types import Array

BUDGETS = (0.02, 0.05, 0.1, 0.2)
RELIABLE = (
    0.9  # share of the variance between scores that is true: then errors are a third of the spread
)
BAND = 0.95  # quantile of Student's t at either end of the printed band


@dataclass(frozen=True)
class Rehearsed:
    """One goal at one budget, over repeats: means, and a band for the error of a single purchase.

    ``error`` is the root mean square error of scores, ``naive`` the exact one of naive scores for the same money; ``covered``
    the share of intervals that held, ``separated`` the share of pairs called apart, ``false`` how many of these wrongly,
    ``tau`` Kendall's rank correlation with the truth.
    """

    budget: float
    share: float
    goal: str
    error: float
    low: float
    high: float
    naive: float
    covered: float
    width: float
    separated: float
    false: float
    tau: float

    @property
    def ratio(self) -> float:
        """Error over the naive one."""
        return self.error / self.naive if self.naive > 0 else float("nan")


@dataclass(frozen=True)
class Rehearsal:
    """Budgets compared on a past board, and what follows."""

    lines: tuple[Rehearsed, ...]
    spread: float
    repeats: int

    def of(self, goal: str) -> tuple[Rehearsed, ...]:
        """Return the lines of one goal."""
        return tuple(x for x in self.lines if x.goal == goal)

    @property
    def advice(self) -> str:
        """Which goal and budget to take, in a sentence; or that buying by rule would not help."""
        mine = self.of("scores") or self.lines
        limit = np.sqrt(1.0 - RELIABLE) * self.spread
        enough = [x for x in mine if x.error <= limit]
        wins = [x for x in mine if x.high < x.naive]
        if not wins:
            middle = float(np.median([x.ratio for x in mine]))
            return (
                f"buying by rule would not surely help here (error {middle:.2f} of naive scores in the median): "
                "take the same random columns for every row, goal order"
            )
        if not enough:
            best = mine[-1]
            return (
                f"none of these budgets tells the rows apart with reliability {RELIABLE:g}; take goal "
                f"{best.goal} and more than {best.share:.0%} of the cost, or be content with tiers"
            )
        first = enough[0]
        return (
            f"take goal {first.goal} and {first.share:.0%} of the whole cost ({first.budget:g}): scores then have "
            f"reliability {RELIABLE:g} or more, at {first.ratio:.2f} of the naive error"
        )


def rehearse(
    table: Observations,
    budgets: Sequence[float] = BUDGETS,
    *,
    goals: Sequence[str] = ("scores", "order"),
    prices: Prices | None = None,
    level: float = 0.9,
    repeats: int = 10,
    rng: int = 0,
    **model: Any,
) -> Rehearsal:
    """Return what each budget would have bought of a board that is known, wholly or in part.

    Parameters
    ----------
    table : Observations
        The past board; what it lacks cannot be bought, and its truth is each row's mean over what is there.
    budgets : sequence of float
        Shares of the whole cost, above 0 and below 1.
    goals : sequence of {"scores", "order"}
    repeats : int
        Purchases for each goal and budget, with seeds `rng`, `rng` + 1, ...
    model
        ``likelihood``, ``bounds``, ``row_features``, ``col_features`` of :func:`~entrywise.active.row_scores`.

    Returns
    -------
    Rehearsal
        The band of each line is for a single purchase on as many other rows of the same kind: it counts the variance
        between repeats and between rows, of the forecast and of the purchase.

    Examples
    --------
    >>> from entrywise.gallery import random_low_rank
    >>> past = Observations.from_dense(random_low_rank(30, 60, 2, 1))
    >>> told = rehearse(past, (0.1, 0.3), goals=("scores",), repeats=3)
    >>> [x.error < x.naive for x in told.lines]
    [True, True]
    """
    _refuse(table, budgets, goals, repeats)
    there = np.zeros(table.shape, bool)
    there[table.rows, table.cols] = True
    values = np.zeros(table.shape)
    values[table.rows, table.cols] = table.values
    truth = np.sum(values * there, axis=1) / there.sum(axis=1)
    m, n = table.shape
    i, j = np.divmod(np.arange(m * n), n)
    price = (prices or Prices()).of("entry", i, j).reshape(m, n)
    whole = float(price[there].sum())
    lines = []
    for goal in goals:
        for share in sorted(budgets):
            bought = [
                purchase(values, there, share * whole, goal, prices, level, rng + k, **model)
                for k in range(repeats)
            ]
            naive = naive_error(values, there, share)
            lines.append(_line(bought, truth, share * whole, share, goal, naive))
    return Rehearsal(tuple(lines), float(np.std(truth)), repeats)


def purchase(
    values: Array,
    there: NDArray[np.bool_],
    budget: float,
    goal: str = "scores",
    prices: Prices | None = None,
    level: float = 0.9,
    seed: int = 0,
    **model: Any,
) -> Scores:
    """Return the scores that one purchase on a known board leads to; `model` are parameters of the plan."""
    plan = row_scores(
        values.shape,
        prices,
        budget=budget,
        goal=goal,
        available=there,
        rng=seed,
        **model,
    )
    run = Run(plan)
    fit = play(run, MatrixOracle(values))
    bounds = model.get("bounds")
    return scores(fit, Bought.from_run(run), level, prices, bounds=bounds)


def naive_error(values: Array, there: NDArray[np.bool_], share: float) -> float:
    """Return the exact error of naive scores: sqrt(mean_i S_i^2 (1/k_i - 1/n_i)), k_i = share n_i."""
    cells = there.sum(axis=1)
    mean = np.sum(values * there, axis=1) / cells
    squares = np.sum(there * (values - mean[:, None]) ** 2, axis=1) / np.maximum(cells - 1, 1)
    return float(np.sqrt(np.mean(squares * (1.0 / share - 1.0) / cells)))


def _line(
    bought: Sequence[Scores], truth: Array, budget: float, share: float, goal: str, naive: float
) -> Rehearsed:
    from scipy.stats import kendalltau
    from scipy.stats import t as student

    squares = np.array([(x.mean - truth) ** 2 for x in bought])  # (repeats, m)
    error = float(np.sqrt(squares.mean()))
    single = np.log(np.maximum(squares.mean(axis=1), 1e-300)) / 2
    between = float(np.var(single, ddof=1)) if len(single) > 1 else 0.0
    by_row = squares.mean(axis=0)
    rows = float(np.var(by_row) / len(by_row) / max(4.0 * by_row.mean() ** 2, 1e-300))
    # the purchase to come has its own draw and its own rows; so had the forecast
    variance = between * (1.0 + 1.0 / len(bought)) + 2.0 * rows
    doubt = float(np.exp(student.ppf(BAND, len(bought) - 1) * np.sqrt(variance)))
    better = truth[:, None] > truth[None, :]
    pairs = len(truth) * (len(truth) - 1) / 2
    claims = [int(x.told.surely.sum()) for x in bought]
    wrong = [int((x.told.surely & ~better).sum()) for x in bought]
    covered = [np.mean((x.low <= truth) & (truth <= x.high)) for x in bought]
    return Rehearsed(
        budget=budget,
        share=share,
        goal=goal,
        error=error,
        low=error / doubt,
        high=error * doubt,
        naive=naive,
        covered=float(np.mean(covered)),
        width=float(np.mean([np.mean(x.high - x.low) for x in bought])),
        separated=float(np.mean(claims) / max(pairs, 1)),
        false=float(np.sum(wrong) / max(np.sum(claims), 1)),
        tau=float(np.mean([kendalltau(x.mean, truth).statistic for x in bought])),
    )


def _refuse(table: Observations, budgets: Any, goals: Any, repeats: int) -> None:
    counts = np.bincount(table.rows, minlength=table.shape[0])
    if table.shape[0] < 2 or counts.min() < 2:
        row = int(np.argmin(counts))
        raise DataError(
            f"a rehearsal needs at least 2 rows with 2 known cells each, row {row} has {counts.min()}; drop it"
        )
    if not len(budgets) or not all(0 < x < 1 for x in budgets):
        raise ParameterError(f"budgets must be shares above 0 and below 1, got {tuple(budgets)}")
    if not set(goals) <= {"scores", "order"}:
        raise ParameterError(f"goals must be scores or order, got {tuple(goals)}")
    if repeats < 2:
        raise ParameterError(f"repeats must be 2 or more, got {repeats}")
