"""Cells for the scores of rows: half of them common columns, half spread, and columns of choice for new rows.

The score of a row is its mean over all columns. Common columns tell rows apart and give their factors, spread cells
touch every column; rows that scatter more get more. The plan streams: a step looks at what is taken and what was
answered, and asks for what the design still lacks. Cheap judges beside the instrument that counts are in
:mod:`entrywise.active.cells.judges`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.board import Board
from entrywise.active.cells.judges import Bench
from entrywise.active.cells.purchase import see_purchase
from entrywise.exceptions import ParameterError
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.results import LowRank
from entrywise.types import Seed, generator

Goal = Literal["scores", "order"]


@plan(streaming=True)
def row_scores(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float,
    goal: Goal = "scores",
    target: str | None = None,
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

    **Judges.** With a `target`, scores are wanted of that instrument, and every other mode of `prices` is a judge: cheaper,
    and possibly biased. A pilot of a fifth of the money asks all of them the same cells; what is learned of each
    judge splits the rest (:mod:`~entrywise.active.cells.instruments`), and a judge that is not worth its price is
    asked no more. Cells of the target are among those that judges were asked. What is known beforehand of judges is
    free. :func:`~entrywise.apply.leaderboard.judged` turns all answers into scores.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
    budget : float
        Money to plan with; never exceeded.
    goal : {"scores", "order"}
    target : str, optional
        The instrument whose answers count, such as ``human`` in ``Prices(judge=0.02, human=1)``.
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
    if target is not None:
        if goal != "scores":
            raise ParameterError(f"a target is for goal scores, got goal {goal!r}")
        bench = Bench.of(state.shape, prices, state.available, target, core, situation, model)
        return bench.step(rank)
    board = Board.of(state.shape, state.prices, state.available, situation, model)
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
