"""What plans that look at attributes of fresh samples have in common: what they are told, and what a look costs."""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries import Prices
from entrywise.types import Array

MOST = 2**28  # looks at once: 2 GB of indices
SLACK = 1 + 1e-12  # so that a budget of three looks pays three, whatever the price in binary


def cost_of_looks(
    d: int,
    prices: Prices | None,
    rank: int,
    per_sample: int,
    samples: int | None,
    budget: float | None,
    who: str,
) -> Array:
    """Refuse bad parameters; return the price of each attribute, shape (d,)."""
    if d < 2 or not 1 <= rank < d:
        raise ParameterError(f"rank of {who} must be in 1..d-1, got rank={rank} and d={d}")
    if prices is not None and not isinstance(prices, Prices):
        raise ParameterError(
            f"prices of {who} must be Prices(entry=...), got {prices!r}; give the dimension as rank="
        )
    if samples is None and budget is None:
        raise ParameterError(f"{who} must know when to end; give budget or samples")
    if samples is not None and samples < 1:
        raise ParameterError(f"samples must be at least 1, got {samples}")
    cost = (prices or Prices()).of("entry", np.zeros(d, np.int64), np.arange(d))
    least = float(np.sort(cost)[:per_sample].sum())
    if budget is not None and not (np.isfinite(budget) and budget >= least):
        raise ParameterError(
            f"budget must buy at least one sample of {per_sample} attributes, {least:g}; got {budget}"
        )
    return cost


def refuse_long_rounds(looks: float, more: str) -> None:
    """Refuse so many looks at once that their indices would not fit in memory."""
    if looks > MOST:
        raise ParameterError(
            f"a batch of {looks:.3g} looks is more than the {MOST:,} that fit in memory; look at fewer samples, lower the "
            f"budget, or give {more}="
        )
