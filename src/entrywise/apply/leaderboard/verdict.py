"""What a buyer should conclude, in a sentence: who leads, whom it cannot be told from, and what settling would cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entrywise.apply.leaderboard.bought import Bought
from entrywise.apply.leaderboard.scores import Scores
from entrywise.fragments import unit_of
from entrywise.queries import Prices
from entrywise.types import Array, Indices

NAMED = 3  # contenders that are called by name
NORMAL = 1.645  # deviations apart when no pair is sure yet


def verdict(
    board: Scores,
    bought: Bought,
    names: Sequence[str],
    prices: Prices | None = None,
    currency: str | None = None,
) -> str:
    """Return one sentence about the leader and the cheapest way to tell it from one more row.

    The price assumes that the gap stays as it looks now, and that the error of a difference falls as its rows'
    cells grow in number: 1/k - 1/n.
    """
    first = int(board.order[0])
    beaten = board.told.surely[first]
    rivals = np.array([i for i in board.order[1:] if not beaten[i]], np.int64)
    told = f"{names[first]} is surely better than {int(beaten.sum())} of {len(names) - 1}"
    if not len(rivals):
        return f"{told}: the winner is clear"
    told += f"; it cannot be told from {_listed([names[i] for i in rivals])}"
    cost = settling_costs(board, bought, first, rivals, prices)
    cost[cost <= 0] = (
        np.inf
    )  # apart as it looks now; that it is not sure yet comes from the number of rivals
    if not np.isfinite(cost).any():
        return told
    cheapest = int(np.argmin(cost))
    amount = f"{cost[cheapest]:.3g}{unit_of(currency)}"
    rival = names[rivals[cheapest]]
    return f"{told}; another {amount} would settle {rival}, if the gap stays as it looks"


def settling_costs(
    board: Scores, bought: Bought, first: int, rivals: Indices, prices: Prices | None = None
) -> Array:
    """Return what cells of both rows would cost until each rival is told from the first, shape (len(rivals),)."""
    m, n = bought.shape
    i, j = np.divmod(np.arange(m * n), n)
    price = (prices or Prices()).of("entry", i, j).reshape(m, n).mean(axis=1)
    cells = bought.there.sum(axis=1)
    sure = board.apart.normal[board.told.surely]
    apart = float(sure.min()) if len(sure) else NORMAL
    found = np.full(len(rivals), np.inf)
    for k, l in enumerate(rivals):
        gap = board.mean[first] - board.mean[l]
        deviation = board.apart.deviation[first, l]
        pair = np.array([first, l])
        if not (gap > 0 and deviation > 0) or np.all(board.cells[pair] >= cells[pair]):
            continue  # no gap to settle, or no cell left to settle it with
        share = min(1.0, (gap / (apart * deviation)) ** 2)
        have = np.maximum(board.cells[pair], 1)
        wanted = 1.0 / (share * (1.0 / have - 1.0 / cells[pair]) + 1.0 / cells[pair])
        found[k] = float(np.sum((np.ceil(wanted) - have) * price[pair]))
    return found


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in words, the first few by name."""
    if len(names) == 1:
        return names[0]
    if len(names) <= NAMED:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    rest = len(names) - NAMED
    return f"{', '.join(names[:NAMED])} and {rest} other{'s' if rest > 1 else ''}"
