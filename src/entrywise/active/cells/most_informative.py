"""Which entries to buy next: those that lower the posterior variance most for their price.

A low-rank model with a posterior (empirical Bayes) is fitted to what was bought; every cell is scored by how
much its answer would lower the variance of all others, per price; a batch is picked greedily with the
covariances updated after each cell, which needs no values; part of each batch explores at random.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np

from entrywise.active.cells.calibration import (
    calibrated,
    expected_errors,
    pack_fit,
    refit,
    row_means,
    unpack_fit,
)
from entrywise.active.cells.purchase import Purchase, check_purchase
from entrywise.active.cells.rules import RULES, pick_by_rule
from entrywise.active.cells.top_two import top_two
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.gain import Gains
from entrywise.queries import Asking, Checkpoint, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Seed

Goal = Literal["all", "scores", "best"]


@plan(tolerates_failed=True)
def most_informative(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float,
    goal: Goal = "all",
    rule: str = "gain",
    rank: int | None = 6,
    reserve: float = 0.0,
    explore: float = 0.15,
    growth: float = 1.15,
    guard: float = 3.0,
    score_error: float | None = None,
    least_gain: float | None = None,
    available: Any = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[LowRank]:
    r"""Buy the entries of a low-rank matrix that tell most about the others, at their real prices.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
        What each entry costs: a number, per row (m, 1), per column (1, n), per cell (m, n), or a function.
    budget : float
        Money to plan with; never exceeded.
    goal : {"all", "scores", "best"}
        ``all`` cells alike; ``scores``: the mean of every row; ``best``: which row has the largest mean
        (top-two Thompson sampling, see :func:`~entrywise.active.cells.top_two.top_two`).
    rule : str
        ``gain`` (default), or a control: ``random``, ``balanced``, ``leverage``, ``variance``, ``committee``.
    rank : int, optional
        Components of the fit; None lets the fit choose at every round.
    reserve : float
        Share of the budget for a blind reserve: cells drawn first, hidden from the fit and from the rule,
        which make the intervals valid although the rule chose the rest.
    explore : float
        Share of each batch that is drawn at random (in proportion to 1 / price).
    growth : float
        A batch multiplies the money spent by at most this; the model is fitted again after each.
    guard : float
        Cells a line, on the longer side, before the gain rule is trusted; leverage sampling until then.
    score_error : float, optional
        Stop when the mean of every row is known within this (half a 90 % interval of the posterior).
    least_gain : float, optional
        Stop when the next tenth of the budget is expected to lower the error of unbought cells by less than this share.
    available : array of bool of shape (m, n), optional
        Which cells may be bought at all.

    Returns
    -------
    LowRank
        The fit of what was bought and not hidden. With a reserve its intervals are conformal, weighted by
        1 / probability where prices vary; the certificate says so, or says why not.

    Notes
    -----
    Every question carries its arm (reserve, start, greedy or the control's name, explore) and the
    probability with which it was drawn; a greedy pick has probability one.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import MatrixOracle
    >>> A = random_low_rank(40, 30, 2, seed=1)
    >>> found = ew.play(most_informative((40, 30), budget=500, rank=2, rng=1), MatrixOracle(A))
    >>> bool(np.sqrt(np.mean((found.to_dense() - A) ** 2)) < 0.05 * A.std()), found.cost
    (True, 500.0)
    """
    generator = cast(np.random.Generator, rng)
    m, n = shape
    _refuse(goal, rule, rank, reserve, explore, growth, score_error, least_gain)
    if goal == "best":
        made = top_two(
            shape,
            prices,
            budget=budget,
            rank=rank,
            reserve=reserve,
            available=available,
            rng=generator,
        )
        found: LowRank = yield from made.start(resume)
        return found
    state = check_purchase(shape, prices, budget, available, generator)
    fit: LowRank | None = None
    rounds = 0
    if resume is not None:
        state.rng = generator = resume.generator()
        state.restore(resume.arrays)
        rounds = int(resume.arrays["rounds"])
        fit = unpack_fit(resume.arrays)
    status = "finished"
    try:
        if resume is None:
            if reserve > 0:
                yield from state.set_aside(reserve)
            first = state.first_cells()
            if len(first):
                yield from state.buy(first, "start")
        while len(state.values):
            fit = refit(state, fit, rank, rounds)
            if _enough(state, fit, score_error, least_gain):
                break
            money = min(state.left, max((growth - 1.0) * state.spent, state.budget / 200))
            thin = len(state.values) < guard * max(m, n)
            name = "leverage" if rule == "gain" and thin else rule
            share = explore if rule not in ("random", "balanced") else 0.0
            bought = state.spent, len(state.taken)
            cells, arms, chance = _choose(state, fit, name, goal, money, share)
            while (
                not len(cells) and money < state.left
            ):  # the batch was too small for the cell that is next
                money = min(state.left, 2.0 * money)
                cells, arms, chance = _choose(state, fit, name, goal, money, share)
            if not len(cells):
                break
            yield from state.buy(cells, arms, chance)
            rounds += 1
            if (state.spent, len(state.taken)) == bought:
                break
            yield Checkpoint(
                state.arrays() | {"rounds": np.array(rounds)} | pack_fit(fit), generator
            )
    except Exhausted:
        status = "exhausted"
    return calibrated(state, refit(state, fit, rank, rounds), status, rounds, rule, goal)


def _enough(
    state: Purchase, fit: LowRank, score_error: float | None, least_gain: float | None
) -> bool:
    """Tell whether what was asked for is reached."""
    if score_error is not None:
        _, variance = row_means(fit, state.rows, state.cols, state.values)
        if 1.6449 * float(np.sqrt(variance.max())) <= score_error:
            return True
    if least_gain is not None:
        now, then, _ = expected_errors(state, fit, 0.1 * state.budget)
        return now - then < least_gain * now
    return False


def _choose(
    state: Purchase, fit: LowRank, rule: str, goal: Goal, money: float, explore: float
) -> tuple[Any, Any, Any]:
    """Return the cells of the next batch, their arms and their probabilities."""
    some, chance = state.draw(None, explore * money)
    money -= float(state.price_of(some).sum()) if len(some) else 0.0
    if rule == "gain":
        gains = Gains.of(fit, state.rows, state.cols, by_sum=goal == "scores")
        most = int(min(money / state.cheapest(), state.shape[0] * state.shape[1]))
        i, j = (
            gains.pick(state.is_open, state.price, money, most)
            if most
            else (np.zeros(0, np.int64),) * 2
        )
        best, name = i * state.shape[1] + j, "greedy"
        odds = np.ones(len(best))
    else:
        (best, odds), name = pick_by_rule(rule, state, fit, money), rule
    new = ~np.isin(best, some)
    best, odds = best[new], odds[new]
    cells = np.r_[some, best]
    arms = np.array(["explore"] * len(some) + [name] * len(best))
    return cells, arms, np.r_[chance, odds]


def _refuse(
    goal: str,
    rule: str,
    rank: int | None,
    reserve: float,
    explore: float,
    growth: float,
    score_error: float | None,
    least_gain: float | None,
) -> None:
    if goal not in ("all", "scores", "best"):
        raise ParameterError(f"goal must be all, scores or best, got {goal!r}")
    if rule != "gain" and rule not in RULES:
        raise ParameterError(f"rule must be gain, {', '.join(RULES)}, got {rule!r}")
    if rank is not None and rank < 0:
        raise ParameterError(f"rank must be 0 or more, got {rank}")
    for name, value in (("reserve", reserve), ("explore", explore)):
        if not 0 <= value < 1:
            raise ParameterError(f"{name} must be in 0..1, 1 not included, got {value}")
    for name, limit in (("score_error", score_error), ("least_gain", least_gain)):
        if limit is not None and not limit >= 0:
            raise ParameterError(f"{name} must not be below 0, got {limit}")
    if not growth > 1:
        raise ParameterError(f"growth must be above 1, got {growth}")
