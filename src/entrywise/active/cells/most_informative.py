"""Which entries to buy next: those that lower the posterior variance most for their price.

A low-rank model with a posterior (empirical Bayes) is fitted to what was bought; every cell is scored by how
much its answer would lower the variance of all others, per price; a batch is picked greedily with the
covariances updated after each cell, which needs no values; part of each batch explores at random.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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
from entrywise.types import Array, Indices, Seed, generator

Goal = Literal["all", "scores", "best"]

LEAST = 1 / 200  # share of the budget that a batch has at least: at most so many fits
AHEAD = 0.1  # share of the budget that `least_gain` looks ahead
NORMAL_90 = 1.6449  # half a Gaussian 90 % interval, in standard deviations


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
    _refuse(goal, rule, rank, reserve, explore, growth, score_error, least_gain)
    if goal == "best":
        same = {"budget": budget, "rank": rank, "reserve": reserve, "available": available}
        found: LowRank = yield from top_two(shape, prices, **same, rng=rng).start(resume)
        return found
    state = check_purchase(shape, prices, budget, available, generator(rng))
    fit: LowRank | None = None
    rounds, status = 0, "finished"
    if resume is not None:
        state.rng = resume.generator()
        state.restore(resume.arrays)
        rounds, fit = int(resume.arrays["rounds"]), unpack_fit(resume.arrays)
    try:
        if resume is None:
            yield from _open(state, reserve)
        while len(state.values):
            fit = refit(state, fit, rank, rounds)
            if _enough(state, fit, score_error, least_gain):
                break
            thin = len(state.values) < guard * max(shape)
            name = "leverage" if rule == "gain" and thin else rule
            share = 0.0 if rule in ("random", "balanced") else explore
            money = min(state.left, max((growth - 1.0) * state.spent, LEAST * state.budget))
            chosen = choose(state, fit, name, goal, money, share)
            if chosen is None:
                break
            before = state.spent, len(state.taken)
            yield from state.buy(*chosen)
            rounds += 1
            if (state.spent, len(state.taken)) == before:
                break
            arrays = state.arrays() | {"rounds": np.array(rounds)} | pack_fit(fit)
            yield Checkpoint(arrays, state.rng)
    except Exhausted:
        status = "exhausted"
    return calibrated(state, refit(state, fit, rank, rounds), status, rounds, rule, goal)


def _open(state: Purchase, reserve: float) -> Asking[None]:
    """Buy the blind reserve and a few cells of every line."""
    if reserve > 0:
        yield from state.set_aside(reserve)
    first = state.first_cells()
    if len(first):
        yield from state.buy(first, "start")


def _enough(
    state: Purchase, fit: LowRank, score_error: float | None, least_gain: float | None
) -> bool:
    """Tell whether what was asked for is reached."""
    if score_error is not None:
        _, variance = row_means(fit, state.rows, state.cols, state.values)
        if NORMAL_90 * float(np.sqrt(variance.max())) <= score_error:
            return True
    if least_gain is not None:
        now, then, _ = expected_errors(state, fit, AHEAD * state.budget)
        return now - then < least_gain * now
    return False


def choose(
    state: Purchase, fit: LowRank, rule: str, goal: Goal, money: float, explore: float
) -> tuple[Indices, NDArray[np.str_], Array] | None:
    """Return the cells of the next batch, their arms and their probabilities; None when no money left buys any.

    Where `money` is too little for the cell that is next, it is doubled until it pays it.
    """
    while True:
        cells, arms, chance = _batch(state, fit, rule, goal, money, explore)
        if len(cells):
            return cells, arms, chance
        if money >= state.left:
            return None
        money = min(state.left, 2.0 * money)


def _batch(
    state: Purchase, fit: LowRank, rule: str, goal: Goal, money: float, explore: float
) -> tuple[Indices, NDArray[np.str_], Array]:
    some, chance = state.draw(None, explore * money)
    if len(some):
        money -= float(state.price_of(some).sum())
    if rule == "gain":
        gains = Gains.of(fit, state.rows, state.cols, by_sum=goal == "scores")
        i, j = gains.pick(state.is_open, state.price, money, state.affordable(money))
        best, odds, name = i * state.shape[1] + j, np.ones(len(i)), "greedy"
    else:
        (best, odds), name = pick_by_rule(rule, state, fit, money), rule
    new = ~np.isin(best, some)
    best, odds = best[new], odds[new]
    arms = np.array(["explore"] * len(some) + [name] * len(best))
    return np.r_[some, best], arms, np.r_[chance, odds]


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
