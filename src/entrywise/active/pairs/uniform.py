"""Uniform sampling of all pairs: the baseline that knows nothing and learns nothing on the way."""

from __future__ import annotations

from entrywise.active.pairs.halving import ranked
from entrywise.active.pairs.tally import BestPair, Tally, finish, pulls_for, spread
from entrywise.exceptions import Exhausted
from entrywise.queries import Asking, History, Prices, plan
from entrywise.types import Seed, generator


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def uniform_pairs(
    n: int,
    prices: Prices | None = None,
    *,
    budget: float,
    diagonal: bool = False,
    rng: Seed = None,
    history: History | None = None,
) -> Asking[BestPair]:
    """Find the smallest entry of a symmetric matrix by measuring all pairs equally often (Naive).

    Parameters
    ----------
    n : int
    prices : Prices, optional
        Price of an answer, one number.
    budget : float
        Dealt evenly to the pairs; where it does not divide, chance decides who gets one more.
    diagonal : bool
        Whether the pairs (i, i) take part.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import MatrixOracle
    >>> ew.play(uniform_pairs(3, budget=3, rng=0), MatrixOracle([[0, 3, 1], [3, 0, 2], [1, 2, 0]])).pair
    (0, 2)
    """
    total = pulls_for(n, prices, budget, diagonal, "uniform_pairs")
    draws = generator(rng)
    tally = Tally(n, history=history)
    status = "finished"
    try:
        yield from spread(tally, total, diagonal, draws)
    except Exhausted:
        status = "exhausted"
    pair = (0, 0 if diagonal else 1)
    if len(tally.keys):
        rows, cols = ranked(tally, tally.rows, tally.cols, None, draws)
        pair = (int(rows[0]), int(cols[0]))
    return finish(tally, pair, status, {"pairs_measured": len(tally.keys)})
