"""Did buying by rule save money? Against the exact error of naive scores for the same spend, everything paid counted.

Naive is what one does without us: the same random columns for every row (or as many random cells a row) and raw means. Its
expected error is known from the variance within rows alone, so nothing has to be bought naively to compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from entrywise.apply.leaderboard.bought import Bought
from entrywise.apply.leaderboard.scores import Scores
from entrywise.queries import Prices
from entrywise.types import Array

BETWEEN = 0.1  # deviation of the log error from purchase to purchase beyond chance between rows: .06-.13 on five boards
SURE = 1.2816  # normal quantile: "surely" is said at 90 %


@dataclass(frozen=True)
class Savings:
    """Error of our scores over that of naive ones for the same money, and what naive buying would have cost.

    ``ratio`` with its 80 % interval from ``low`` to ``high``; ``share`` of a naive buyer's money that was saved, with the
    same doubt (``share_low``, ``share_high``; below 0 where naive buying is cheaper). ``error`` is ours, for ``bought``
    of what everything costs. ``reason`` says why nothing is known.
    """

    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    share: float = math.nan
    share_low: float = math.nan
    share_high: float = math.nan
    error: float = math.nan
    bought: float = math.nan
    reason: str = ""

    def naive(self, bought: float) -> float:
        """Return the error of naive scores that `bought` (a share of what everything costs) pays for."""
        return self.error / self.ratio * math.sqrt((1 / bought - 1) / (1 / self.bought - 1))

    @property
    def surely(self) -> bool:
        """Whether money was saved with 90 % confidence."""
        return self.high < 1.0

    @property
    def words(self) -> str:
        """What may be said, in a sentence."""
        if self.reason:
            return f"savings: not known; {self.reason}"
        told = f"error {self.ratio:.2f} of naive scores for the same money ({self.low:.2f} to {self.high:.2f})"
        if self.surely:
            return f"{told}: surely saved, about {self.share:.0%} of what naive scores as good would cost"
        if self.low > 1.0:
            return f"{told}: naive buying would have been better"
        return f"{told}: whether money was saved is not known"


def savings(board: Scores, bought: Bought, prices: Prices | None = None) -> Savings:
    r"""Return how our error compares with the naive one for the same spend, reserve and failures included.

    .. math:: \text{ours}^2 = \overline{d_i^2}, \qquad \text{naive}^2 = \overline{S_i^2 (1/k - 1/n_i)}

    with :math:`d_i` the deviations of the scores, :math:`S_i^2` the variance within row i, estimated from what was
    bought, and k what the money buys of every row at its price. The doubt counts that the m errors of one purchase are a draw,
    and that purchases differ by more than that.
    """
    m, n = bought.shape
    i, j = np.divmod(np.arange(m * n), n)
    price = (prices or Prices()).of("entry", i, j).reshape(m, n)
    if np.any(bought.arms == "order"):
        return Savings(reason="these are naive scores: common columns, raw means")
    if bought.known.any():
        return Savings(reason="part of the board was known beforehand; rehearse to compare")
    if not np.all(price == price[:, :1]):
        return Savings(reason="prices differ within rows; rehearse to compare")
    counts = np.bincount(bought.rows, minlength=m)
    if counts.min() < 2:
        return Savings(reason="some rows have fewer than two cells")
    cells = bought.there.sum(axis=1)
    share = bought.spent / float(price[:, 0] @ cells)
    if share >= 1.0:
        return Savings(reason="everything was bought")
    naive = float(np.sqrt(np.mean(_within(bought) * (1.0 / share - 1.0) / cells)))
    squares = board.deviation**2
    ours = float(np.sqrt(np.mean(squares)))
    if not (naive > 0 and ours > 0):
        return Savings(reason="the answers of a row do not differ")
    chance = (
        0.5 * float(np.sum(squares**2)) / float(np.sum(squares)) ** 2
    )  # of half the log of a mean square
    doubt = math.exp(SURE * math.hypot(math.sqrt(chance), BETWEEN))
    ratio = ours / naive
    saved, least, most = (_saved(x, share) for x in (ratio, ratio * doubt, ratio / doubt))
    return Savings(ratio, ratio / doubt, ratio * doubt, saved, least, most, ours, share)


def _within(bought: Bought) -> Array:
    """Return the variance within each row, from its bought cells, shape (m,)."""
    m = bought.shape[0]
    counts = np.bincount(bought.rows, minlength=m)
    mean = np.bincount(bought.rows, bought.values, m) / counts
    squares = np.bincount(bought.rows, (bought.values - mean[bought.rows]) ** 2, m)
    return np.asarray(squares / (counts - 1))


def _saved(ratio: float, share: float) -> float:
    """Return which part of a naive buyer's money is saved who wants the same error: 1/k' - 1/n = ratio^2 (1/k - 1/n)."""
    naive_share = 1.0 / (1.0 + ratio**2 * (1.0 / share - 1.0))
    return 1.0 - share / naive_share
