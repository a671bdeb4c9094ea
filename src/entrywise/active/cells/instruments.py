r"""Cheap instruments beside a dear one: how much a pilot says of them, and how to split the money.

With k dear cells a row among N cells that a judge was asked, residuals correlated by rho, the variance of a row's mean is
proportional to

.. math:: V(k, N) = (1 - \rho^2)(1/k - 1/n) + \rho^2 (1/N - 1/n),

and a row's money is B = k + c N, prices in units of the dear one. Without the judge it is 1/B - 1/n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from entrywise.active.cells.left_out import left_out_residuals
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.types import Array

WORTH_IT = 0.03  # smallest gain in standard deviation for which a judge is bought beyond the pilot
FEWEST = 12  # pairs below which a correlation says nothing


class MoneySplit(NamedTuple):
    """Cells a row of the dear instrument and of the judges, and by how much the standard deviation falls."""

    dear: float
    judged: float
    gain: float


@dataclass(frozen=True)
class Worth:
    """What a judge is worth beside the dear instrument.

    ``rho`` is the correlation of what both say beyond row and column levels and low rank, ``error`` its standard error
    on so many ``pairs``; at a price that is the share ``price`` of the dear one's, rho must exceed ``needed``.
    ``further`` counts the cells that were bought beyond the pilot, None where no pilot was planned.
    """

    rho: float
    error: float
    pairs: int
    price: float | None = None
    further: int | None = None

    @property
    def needed(self) -> float | None:
        """The smallest correlation that pays at this price."""
        return None if self.price is None else needed(self.price)

    @property
    def words(self) -> str:
        """In a sentence."""
        told = (
            f"rho {self.rho:.2f} +- {self.error:.2f} beyond rows and columns, on {self.pairs} pairs"
        )
        if self.price is not None:
            told += (
                f"; at {self.price:.3g} of the dear price it would have to exceed {self.needed:.2f}"
            )
        if self.further is None:
            return told
        return f"{told}: {self.further or 'none'} bought beyond the pilot"


def needed(price: float) -> float:
    """Return the correlation above which a judge at this price (in units of the dear one) pays at all.

    >>> round(needed(0.02), 2), round(needed(0.1), 2)
    (0.28, 0.57)
    """
    return 2.0 * float(np.sqrt(price)) / (1.0 + price)


def split(
    rho: float,
    price: float,
    money: float,
    n: float,
    *,
    pilot: float = 0.0,
) -> MoneySplit:
    """Return the split of a row's money that makes the variance of its mean smallest.

    Parameters
    ----------
    rho : float
        Correlation of the residuals, 0..1.
    price : float
        Of the judge's cell; the dear one costs 1.
    money : float
        Of one row.
    n : float
        Cells of a row.
    pilot : float
        Cells that were bought from both already.
    """
    alone = min(money - price * pilot, n)
    before = 1.0 / max(alone, 1e-9) - 1.0 / n
    least = min(max(pilot, 1e-9), n)
    own, shared = float(np.sqrt(max(1.0 - rho**2, 0.0))), rho * float(np.sqrt(price))
    k = money * own / max(own + shared, 1e-300)
    k = max(k, money - price * n)  # the judge can say no more than everything
    k = float(np.clip(k, least, money / (1.0 + price)))  # every dear cell is judged as well
    judged = min((money - k) / price, n) if price > 0 else n
    k = min(k, n)
    after = (1.0 - rho**2) * (1.0 / k - 1.0 / n) + rho**2 * (1.0 / max(judged, k) - 1.0 / n)
    if not before > 0:
        return MoneySplit(alone, 0.0, 0.0)
    return MoneySplit(k, max(judged, k), 1.0 - float(np.sqrt(max(after, 0.0) / before)))


@dataclass(frozen=True, eq=False)
class Residuals:
    """What the dear instrument and the judges say of the same cells beyond a fit without them.

    ``dear`` has shape (t,), ``judges`` (t, judges).
    """

    dear: Array
    judges: Array

    @classmethod
    def of(cls, dear: Observations, judges: Mapping[str, Observations]) -> Residuals:
        """Return the residuals at cells that all instruments were asked."""
        dense = [x.to_dense() for x in judges.values()]
        paired = np.ones(len(dear), bool)
        for table in dense:
            paired &= ~np.isnan(table[dear.rows, dear.cols])
        both = dear.take(np.flatnonzero(paired))
        if len(both) < FEWEST:
            return cls(np.zeros(0), np.zeros((0, len(dense))))
        said = [
            Observations.from_triplets(
                both.rows, both.cols, table[both.rows, both.cols], both.shape
            )
            for table in dense
        ]
        off = [left_out_residuals(x, low_rank(x).rank) for x in (both, *said)]
        return cls(off[0], np.column_stack([off[0][:, None], *off[1:]])[:, 1:])

    def worth(self, which: list[int], price: float | None = None) -> Worth:
        """Return what some of the judges together are worth: the multiple correlation, less what chance gives."""
        t = len(self.dear)
        if not which or t < FEWEST or not np.any(self.dear):
            return Worth(0.0, 0.0 if t else np.inf, t, price)
        X = self.judges[:, which]
        guess = X @ np.linalg.lstsq(X, self.dear, rcond=None)[0]
        total = float(self.dear @ self.dear)
        squared = float(guess @ guess) / total
        p = len(which) - 1  # a single slope's chance is in its standard error
        squared = max(0.0, 1.0 - (1.0 - squared) * t / max(t - p, 1))
        rho = float(np.sqrt(min(squared, 1.0)))
        return Worth(rho, (1.0 - squared) / float(np.sqrt(t)), t, price)


def choose(
    residuals: Residuals, price: Array, money: float, n: float, pilot: float
) -> tuple[list[int], MoneySplit]:
    """Return which judges to buy beyond the pilot and how to split a row's money; none when none is worth it.

    Judges are added one by one, the best first, as long as the standard deviation falls by another 3 %; correlations
    count less one standard error. Several judges are bought on the same cells.
    """
    chosen: list[int] = []
    spent = float(price.sum()) * pilot  # on the pilot, by all judges
    best = MoneySplit(money - spent, 0.0, 0.0)
    while True:
        tried = []
        for j in set(range(len(price))) - set(chosen):
            some = [*chosen, j]
            worth = residuals.worth(some)
            c = float(price[some].sum())
            others = (float(price.sum()) - c) * pilot
            rho = max(worth.rho - worth.error, 0.0) if np.isfinite(worth.error) else 0.0
            tried.append((split(rho, c, money - others, n, pilot=pilot), some))
        if not tried:
            return chosen, best
        found, some = max(tried, key=lambda x: x[0].gain)
        if found.gain < best.gain + WORTH_IT:
            return chosen, best
        chosen, best = some, found
