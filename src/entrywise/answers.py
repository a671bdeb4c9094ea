"""What an answer can be: its range and its levels, declared or as the known entries show."""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.results.result import Certificate
from entrywise.types import Array, Indices

LIKELIHOODS = ("auto", "gaussian", "binary", "ordinal", "counts")
MOST_LEVELS = 11  # different values up to which they may be levels: a scale from 0 to 10
MOST_ASKED = 50  # different values that are levels when one says so
EACH_SEEN = 10  # known entries for each level at least, else few values are chance
OVERSPREAD = 0.75  # standard deviation over mean from which whole numbers are counts: an even spread from 0 on has .58
SOME = 1000  # values that show at once that they are just numbers
RAREST = 10.0  # a level is used when it has at least one tenth of an even share of the answers

Range = tuple[float, float]


def levels_of(values: Array) -> Array | None:
    """Return the values, in order, where they are few and each is used; None where they are just numbers.

    Two values are levels however rare one is. Of more, the rarest must have a tenth of an even share: counts and
    rounded measurements tail off, levels of a scale do not.
    """
    if len(np.unique(values[:SOME])) > MOST_LEVELS:
        return None
    return levels_among(*np.unique(values, return_counts=True))


def levels_among(found: Array, counts: Indices) -> Array | None:
    """Return what :func:`levels_of` does, of different values in order and how often each came."""
    total = int(counts.sum())
    if len(found) < 2 or len(found) > MOST_LEVELS or total < EACH_SEEN * len(found):
        return None
    even = total / len(found)
    if len(found) > 2 and counts.min() * RAREST < even:
        return None
    return np.asarray(found)


def looks_like_counts(values: Array) -> bool:
    """Tell whether the values are counts: whole numbers from 0 on, no levels, whose spread is large beside their mean.

    >>> rng = np.random.default_rng(0)
    >>> looks_like_counts(rng.poisson(rng.gamma(0.5, 20.0, 500)).astype(float)), looks_like_counts(np.arange(500.0))
    (True, False)
    """
    whole = bool(np.all((values >= 0) & (values == np.floor(values))))
    if not whole or len(values) < EACH_SEEN or levels_of(values) is not None:
        return False
    return float(values.std()) > OVERSPREAD * float(values.mean())


def likelihood_of(values: Array, asked: str) -> str:
    """Return ``gaussian``, ``binary``, ``ordinal`` or ``counts``: as asked, or what suits the values; refuse what cannot be."""
    if asked not in LIKELIHOODS:
        raise ParameterError(f"likelihood must be one of {', '.join(LIKELIHOODS)}, got {asked!r}")
    if asked == "ordinal" and len(np.unique(values)) > MOST_ASKED:
        raise DataError(
            f"likelihood='ordinal' needs at most {MOST_ASKED} different values, got {len(np.unique(values))}; "
            "round them, or leave the likelihood out"
        )
    if asked != "auto":
        return asked
    levels = levels_of(values)
    if levels is None:
        return "gaussian"
    return "binary" if len(levels) == 2 else "ordinal"


def range_of(values: Array, declared: Range | None) -> Range | None:
    """Return the range of an answer: as declared, or that of levels; None where nothing bounds it."""
    if declared is None:
        levels = levels_of(values)
        return None if levels is None else (float(levels[0]), float(levels[-1]))
    low, high = (float(end) for end in declared)
    if not low < high:
        raise ParameterError(
            f"bounds must be a lower and a higher number, got {low:g} and {high:g}"
        )
    outside = np.flatnonzero((values < low) | (values > high))
    if len(outside):
        raise DataError(
            f"values must lie in the bounds {low:g}..{high:g}, got {values[outside[0]]:g}; widen the bounds"
        )
    return low, high


def range_certificate(bounds: Range, declared: bool) -> Certificate:
    """Return what is promised of the range, and whether it was declared or seen."""
    low, high = bounds
    if declared:
        how = "the declared bounds hold"
        seen = "no known entry lies outside the bounds"
    else:
        how = "answers have no other values than the known ones"
        seen = "the known entries have few values, each used"
    return Certificate(
        f"width of the range {low:g}..{high:g}, {'declared' if declared else 'observed'}, "
        "that no interval leaves",
        value=high - low,
        assumes=(how,),
        checked=(seen,),
    )
