"""Which entries to buy next: those that lower the posterior variance most for their price.

A low-rank model with a posterior (empirical Bayes) is fitted to what was bought; every cell is scored by how
much its answer would lower the variance of all others, per price; a batch is picked greedily with the
covariances updated after each cell, which needs no values; part of each batch explores at random. What is out
counts as bought: its variance is known before its value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.calibration import (
    calibrated,
    expected_error,
    expected_errors,
    expected_mean_error,
    fitted,
    gains_of,
    row_means,
)
from entrywise.active.cells.plates import (
    Plate,
    PlateFormat,
    balanced_plate,
    gain_plate,
    next_number,
    plate_gains,
    plates_batch,
    starting,
    without_plate_effects,
)
from entrywise.active.cells.purchase import Purchase, see_purchase
from entrywise.active.cells.reserve import missing_reserve
from entrywise.active.cells.rules import RULES, pick_by_rule
from entrywise.active.cells.top_two import best_row_step
from entrywise.exceptions import ParameterError
from entrywise.linalg.gain import Gains, foretold_at
from entrywise.linalg.greedy import pick
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.results import LowRank
from entrywise.types import Seed, generator

Goal = Literal["all", "scores", "best"]

LEAST = 1 / 200  # share of the budget that a batch has at least: at most so many fits
AHEAD = 0.1  # share of the budget that `least_gain` looks ahead
NORMAL_90 = 1.6449  # half a Gaussian 90 % interval, in standard deviations


@plan(streaming=True)
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
    plate: dict[str, Any] | None = None,
    likelihood: Literal["gaussian", "binary", "auto"] = "gaussian",
    bounds: tuple[float, float] | None = None,
    row_features: Any = None,
    col_features: Any = None,
    units: Literal["one", "columns", "rows"] = "one",
    rng: Seed = None,
    situation: Situation,
) -> Batch | LowRank:
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
        Share of the budget for a blind reserve: cells drawn first and hidden from the rule, which make the
        intervals valid although the rule chose the rest. The last fit has them, too.
    explore : float
        Share of each batch that is drawn at random (in proportion to 1 / price).
    growth : float
        A batch multiplies the money spent, or held by what is out, by at most this; the model is fitted before each.
    guard : float
        Cells a line, on the longer side, before the gain rule is trusted; leverage sampling until then.
    score_error : float, optional
        Stop when the mean of every row is known within this (half a 90 % interval of the posterior).
    least_gain : float, optional
        Stop when the next tenth of the budget is expected to lower the error of unbought cells by less than this share.
    available : array of bool of shape (m, n), optional
        Which cells may be bought at all.
    plate : dict, optional
        Cells are measured in plates: ``{"size": 96, "per": "col", "lines": 1, "replicates": 2, "controls": [[0, 3]]}``.
        A plate of `size` wells holds cells of so many `lines` (columns, or rows), each measured `replicates` times, and
        the `controls`, which tell the effect of the plate and are not bought cells. Every well is paid; some stay empty
        where their money is better spent on another plate, but a share ``fill`` (one half) is used.
    likelihood : {"gaussian", "binary", "auto"}
        ``binary``: answers have two values and are fitted as probabilities; a cell is then worth most where its answer is
        open and much of its lines is unknown, see :mod:`entrywise.linalg.gain`. ``auto`` takes two-valued answers so.
    bounds : (low, high), optional
        The range of an answer; intervals are clipped to it. With ``auto`` that of few levels is taken from the answers.
    row_features, col_features : frame, array, similarity or sparse matrix, optional
        Features of the lines, in order, as in :func:`entrywise.complete`: every fit has them, so that lines of which
        little was bought are drawn to what their features say.
    units : {"one", "columns", "rows"}
        ``columns`` (``rows``): each has a unit of its own, as ages, incomes and doses have. They are fitted, and cells are
        chosen, in standard deviations of what is known of each, so that large numbers do not draw all of the money;
        questions, entries and intervals are in the units of the answers, expected errors in standard deviations. For
        goal ``all``, without plates.

    Returns
    -------
    LowRank
        The fit of what was bought. With a reserve its intervals are conformal, each fifth of the reserve predicted
        from everything else, weighted by 1 / probability where prices vary; the certificate says so, or says why not.

    Notes
    -----
    Every question carries its arm (reserve, start, greedy or the control's name, explore), the
    probability with which it was drawn (one for a greedy pick), and what the fit expects as its answer.

    It streams: a step looks at what is known and bought, and at what is out, and nobody waits. Known
    entries are fitted from the first step on; lines that have two cells or more need no first ones. A
    cell of the reserve that the rule wants is handed over for nothing, whether its answer is there or not.

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
    if units != "one":
        _refuse_units(units, goal, rule, score_error, plate)
    form = None if plate is None else _plate_format(plate, shape, goal, rule, reserve)
    if form is not None:
        situation = replace(situation, facts=without_plate_effects(situation.facts))
    state = see_purchase(shape, prices, budget, available, generator(rng), situation)
    described = row_features, col_features
    state.model = AnswerModel.of(state.shape, likelihood, bounds, *described, units)
    if form is not None:  # controls are never bought
        state = state.with_taken(form.control_cells(state.shape))
    waiting = len(situation.pending) or situation.filtered
    if waiting and state.left < state.cheapest():
        return Batch.empty()  # it cannot end yet: no fit in vain
    if goal == "best":
        return best_row_step(state, situation, rank=rank, reserve=reserve)
    wanted = _blind(state, form, reserve, situation)
    if wanted is not None:
        return wanted
    fit = fitted(state, rank, situation.step)
    reason = _enough(state, fit, score_error, least_gain)
    if not reason:
        money = min(state.left, max((growth - 1.0) * state.spent, LEAST * state.budget))
        share = 0.0 if rule in ("random", "balanced") else explore
        thin = len(state.values) < guard * max(shape)
        gains = gains_of(state, fit, by_sum=goal == "scores")
        if goal == "all":
            error = expected_error(state, fit, gains)
        else:
            error = expected_mean_error(state, fit)
        if form is not None:
            plates = choose_plates(state, fit, form, thin, money, share)
            wanted = _plates(state, form, plates, situation)
        else:
            name = "leverage" if rule == "gain" and thin else rule
            wanted = choose(state, fit, gains, name, money, share)
    if wanted is None:
        reason = reason or "the money left buys no further cell"
        return calibrated(state, fit, rank, situation.step, rule, goal, reason)
    return _foretold(wanted, fit, error)


def _blind(
    state: Purchase, form: PlateFormat | None, reserve: float, situation: Situation
) -> Batch | None:
    """Return what is bought before a fit can tell: the reserve, and the first cells of lines or plates."""
    cells, chance = missing_reserve(state, reserve, situation.seed)
    if len(cells):
        return state.batch(cells, "reserve", chance)
    if form is None:
        cells = state.first_cells()
        return state.batch(cells, "start") if len(cells) else None
    first = balanced_plate(state, form, state.left) if starting(state, form) else None
    return None if first is None else _plates(state, form, [first], situation)


def _plates(
    state: Purchase, form: PlateFormat, plates: list[Plate], situation: Situation
) -> Batch | None:
    if not plates:
        return None
    first = next_number(situation.facts, situation.pending)
    return plates_batch(state, form, plates, first)


def choose_plates(
    state: Purchase, fit: LowRank, form: PlateFormat, thin: bool, money: float, explore: float
) -> list[Plate]:
    """Return the next plates: one, or as many as `money` pays whole."""
    gains = plate_gains(state, fit, form)
    plates: list[Plate] = []
    state = replace(state)
    while not plates or money > 0:
        if thin:
            plate = balanced_plate(state, form, state.left)
        else:
            plate = gain_plate(state, form, gains, state.left, explore)
        if plate is None or (state.limit is not None and plates):
            break
        cost = form.cost(state, plate)
        if plates and cost > money:
            break
        plates.append(plate)
        money -= cost
        state.spent += cost
        state = state.with_taken(plate.cells)
    return plates


def _enough(
    state: Purchase, fit: LowRank, score_error: float | None, least_gain: float | None
) -> str:
    """Say that what was asked for is reached, if it is, or cannot be."""
    if not len(state.values):
        return "nothing could be bought"
    if score_error is not None:
        _, variance = row_means(fit, state.rows, state.cols, state.values)
        if NORMAL_90 * float(np.sqrt(variance.max())) <= score_error:
            return f"the mean of every row is known within {score_error:g}"
    if least_gain is not None:
        now, then, _ = expected_errors(state, fit, AHEAD * state.budget)
        if now - then < least_gain * now:
            return f"{AHEAD:.0%} more of the budget would lower the expected error by less than {least_gain:.2%}"
    return ""


def _foretold(batch: Batch, fit: LowRank, error: float) -> Batch:
    """Return the batch with what the fit expects of it, and of the cells that nobody bought.

    No yes/no answer is implausible: it has no deviation.
    """
    cells = batch.rows, batch.cols
    latent, variance = foretold_at(fit, *cells) or (fit.latent(*cells), None)
    deviation = None if fit.is_binary else fit.deviation(*cells, variance=variance)
    return replace(
        batch,
        expected=fit.answered(latent, *cells),
        deviation=deviation,
        report={"expected_error": error},
    )


def choose(
    state: Purchase, fit: LowRank, gains: Gains, rule: str, money: float, explore: float
) -> Batch | None:
    """Return the next batch, which the gains learn of; None when no money left buys any cell.

    Where `money` is too little for the cell that is next, it is doubled until it pays it.
    """
    while True:
        wanted = _batch(state, fit, gains, rule, money, explore)
        if len(wanted):
            return state.cut(wanted)
        if money >= state.left:
            return None
        money = min(state.left, 2.0 * money)


def _batch(
    state: Purchase, fit: LowRank, gains: Gains, rule: str, money: float, explore: float
) -> Batch:
    n, most = state.shape[1], state.affordable(money)
    few: int | None = None
    if state.limit is not None:  # so few cells that their number, not their money, is shared out
        few = int(explore * most + state.rng.random())
    some, chance = state.draw(None, explore * money if few is None else money, few)
    money -= float(state.price_of(some).sum())
    rest = min(state.affordable(money), most - len(some))
    if rule == "gain":
        i, j = pick(gains, state.open_bits(but=some), state.line_price, money, rest)
        odds, name = np.ones(len(i)), "greedy"
    else:
        best, odds = pick_by_rule(rule, state.with_taken(some), fit, money, rest)
        (i, j), name = np.divmod(best, n), rule
    return Batch(
        np.concatenate([some // n, i]),
        np.concatenate([some % n, j]),
        arm=np.repeat(np.array(["explore", name]), (len(some), len(i))),
        probability=np.concatenate([chance, odds]),
    )


def _plate_format(
    plate: dict[str, Any], shape: tuple[int, int], goal: str, rule: str, reserve: float
) -> PlateFormat:
    if goal != "all" or rule != "gain" or reserve > 0:
        raise ParameterError(
            "plates are filled for goal all by the rule gain, without a reserve, which needs single "
            f"cells; got {goal!r}, {rule!r} and {reserve}"
        )
    return PlateFormat.of(plate, shape)


def _refuse_units(
    units: str, goal: str, rule: str, score_error: float | None, plate: dict[str, Any] | None
) -> None:
    if goal != "all" or rule == "committee" or score_error is not None or plate is not None:
        raise ParameterError(
            f"units={units!r} go with goal all, without score_error, a committee or plates: lines in different units have "
            f"no common mean; got goal {goal!r}, rule {rule!r}, score_error {score_error} and plate {plate}"
        )


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
