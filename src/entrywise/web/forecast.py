"""What a budget would buy of a new study, in plain words, before anything is spent."""

from __future__ import annotations

import math

import numpy as np

from entrywise.fragments import number, unit_of
from entrywise.observations import Observations
from entrywise.types import Array

LEVEL = 0.9
WIDE = 1.645  # deviations on either side that hold LEVEL of a normal law
FEW = 2  # cells for each line, below which little is told about so many
ENOUGH = 3  # known cells of a row from which its spread is taken


def forecast(
    shape: tuple[int, int],
    budget: float,
    *,
    prices: Array | None = None,
    known: Observations | None = None,
    currency: str = "",
) -> list[str]:
    """Return what the money buys, and how well scores would be known if cells were bought at random.

    The rule that a study follows is to do better than that; which of them does is said as answers come in, beside the
    random control. A row's mean over n cells, from k of them drawn without replacement, has the deviation
    ``s sqrt((1 - k/n) / k)``, where s is the deviation of the row's cells.

    Parameters
    ----------
    shape : pair of int
        Rows and columns.
    prices : ndarray of shape (m, n), optional
        Of every cell; 1 where they are left out.
    known : Observations, optional
        What is known beforehand; it need not be bought, and says how far the cells of a row lie apart.

    Examples
    --------
    >>> forecast((2, 3), 6)[-1]
    'The money buys them all: nothing needs to be guessed.'
    """
    m, n = shape
    quotes = np.ones(shape) if prices is None else np.asarray(prices, np.float64)
    wanted = np.ones(shape, bool)
    if known is not None:
        wanted[known.rows, known.cols] = False
    cost = quotes[wanted]
    unit = unit_of(currency)
    words = [f"{m} rows × {n} columns: {m * n} cells{_beforehand(m * n - len(cost))}."]
    if len(cost):
        which = "All of them" if len(cost) == m * n else "The others"
        words[0] += f" {which} would cost {number(float(cost.sum()))}{unit}."
    if budget >= cost.sum():
        return [*words, "The money buys them all: nothing needs to be guessed."]
    count = budget / float(cost.mean())
    most = int(np.searchsorted(np.cumsum(np.sort(cost)), budget, side="right"))
    share = 100 * count / len(cost)
    words.append(
        f"{number(budget)}{unit} buys about {count:.0f} of them ({share:.0f} %){_at_most(most, count)}."
    )
    there = (m * n - len(cost) + count) / m  # cells of a row, in the mean
    if there < 1:
        words.append("That is less than a cell for each row: most rows would stay unknown.")
    else:
        words.append(_scores(there, n, _spread(known)))
    if count + (m * n - len(cost)) < FEW * (m + n):
        words.append(
            f"Fewer than {FEW * (m + n)} cells tell little about so many lines: "
            "add money, or ask about fewer rows or columns."
        )
    return words


def _beforehand(count: int) -> str:
    return f", {count} of them known" if count else ""


def _at_most(most: int, count: float) -> str:
    """Say how many the cheapest cells would be, where that is another number."""
    return f", at most {most} if they are the cheapest" if most > 1.05 * count else ""


def _scores(there: float, n: int, spread: float | None) -> str:
    """Say how well a row's score would be known from cells drawn at random."""
    half = WIDE * math.sqrt(max(1 - there / n, 0.0) / there)
    if spread is None:
        size = f"{half:.2f} times the standard deviation of a row's cells"
    else:
        size = number(half * spread)
    return (
        f"That is {there:.1f} cells a row. Drawn at random they would tell the mean of a row to within ± {size} "
        f"({100 * LEVEL:.0f} %). The study chooses instead, keeps some cells at random to compare, and shows which was better."
    )


def _spread(known: Observations | None) -> float | None:
    """Return the deviation of cells within their row, from rows of which enough is known."""
    if known is None:
        return None
    count = np.bincount(known.rows, minlength=known.shape[0])
    mean = np.bincount(known.rows, known.values, known.shape[0]) / np.maximum(count, 1)
    inside = count[known.rows] >= ENOUGH
    if not inside.any():
        return None
    left = (known.values - mean[known.rows])[inside]
    freedom = int(np.sum((count - 1)[count >= ENOUGH]))
    return float(math.sqrt(left @ left / freedom))
