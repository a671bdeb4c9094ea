"""Which fit foretells entries that it did not see: methods compared, and lines in units of their own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.line_scales import line_scales
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.passive.rank_one import rank_one
from entrywise.results import LowRank, Units
from entrywise.results.units import APART, apart
from entrywise.types import Array, Indices

MARGIN = 0.98  # another fit must have at most this share of low_rank's held-out error to be chosen
FEW = 500  # observations below which methods are compared by folds instead of on one tenth
FOLDS = 5
UNITS = ("auto", "one", "columns", "rows")
FEW_FOR_UNITS = 50  # observations below which they are not
FAR_BETTER = 2.0  # times smaller in standard deviations: raw values then count no more
NO_NEWS = 0.95  # standard deviations: an error above is hardly better than that of each line's mean
IN_UNITS = ("penalty", "max_error", "weights", "low", "high", "start")  # in the unit of the values


def compare(
    seen: Observations, fits: tuple[Callable[..., LowRank], ...], rng: np.random.Generator
) -> Array | None:
    """Return each method's error on the same held-out entries, one tenth or five folds; None where they cannot tell.

    Only entries that every method completes are counted; None when fewer than five, or half, are.
    """
    found = _errors(seen, fits, rng)
    return None if found is None else np.asarray(np.sqrt(np.mean(found[0] ** 2, axis=1)))


def _errors(
    seen: Observations, fits: tuple[Callable[..., LowRank], ...], rng: np.random.Generator
) -> tuple[Array, Indices] | None:
    """Return the errors of each method, shape (fits, t), and the t held-out observations; as :func:`compare`."""
    few = len(seen) < FEW
    order = rng.permutation(len(seen))
    size = len(seen) // (FOLDS if few else 10)
    starts = [f * size for f in range(FOLDS if few else 1)]
    errors: list[Array] = []
    parts: list[Indices] = []
    for start in starts:
        last = few and start == starts[-1]
        held = np.zeros(len(seen), bool)
        held[order[start : None if last else start + size]] = True
        kept, test = seen.take(~held), seen.take(held)
        try:
            guesses = np.stack([fit(kept).entries(test.rows, test.cols) for fit in fits])
        except DataError:
            return None
        errors.append(guesses - test.values)
        parts.append(np.flatnonzero(held))
    found = np.concatenate(errors, axis=1)
    usable = np.all(np.isfinite(found), axis=0)
    if usable.sum() < max(5, 0.5 * found.shape[1]):
        return None
    return found[:, usable], np.concatenate(parts)[usable]


def without_words(fit: Callable[..., LowRank]) -> Callable[[Observations], LowRank]:
    """Return a rank-one fit that certifies nothing."""
    return lambda kept: fit(kept, certify=False)


def own_units(
    seen: Observations,
    units: str,
    able: bool,
    products: bool,
    rng: np.random.Generator,
    params: dict[str, Any],
) -> tuple[Units | None, list[str]]:
    """Return the units of columns, or of rows, where these have their own, and why.

    `able` says that the fit to come knows units; with `products` rank one is tried, too.
    """
    if units not in UNITS:
        raise ParameterError(f"units must be one of {', '.join(UNITS)}, got {units!r}")
    able = able and all(params.get(name) is None for name in IN_UNITS)
    if units in ("rows", "columns"):
        if not able:
            raise ParameterError(
                f"units={units!r} is for numbers that low-rank completes, without bounds or a start; give one of them alone"
            )
        return Units.of(seen, units == "rows"), [f"{units} are in units of their own"]
    if units == "one" or not able or len(seen) < FEW_FOR_UNITS:
        return None, []
    sizes = [apart(seen, by_rows) for by_rows in (False, True)]
    if max(sizes) < APART:
        return None, []
    # a row that meets a column of large numbers is spread, too: which side it is, both together say
    off = np.abs(seen.values - np.median(seen.values))
    of_rows, of_cols = (
        np.ptp(np.log(x)) for x in line_scales(seen.rows, seen.cols, off, seen.shape)
    )
    own = Units.of(seen, bool(of_rows > of_cols))
    told = _foretold(seen, own, products and not params, rng, params)
    if told is None:
        return None, []
    words = (
        f"{own.axis} are in units of their own (spreads {sizes[own.by_rows]:.0f} times apart): held-out error {told[1]:.3g} "
        f"standard deviations, {told[0]:.3g} in one unit"
    )
    return own, [words]


def _foretold(
    seen: Observations,
    own: Units,
    products: bool,
    rng: np.random.Generator,
    params: dict[str, Any],
) -> Array | None:
    """Return held-out errors, in standard deviations of a line, in one unit and in their own; None where one unit is to be kept.

    With `products` rank one must be beaten, too.
    """

    def in_units(kept: Observations) -> LowRank:
        return replace(low_rank(own.strip(kept), **params), units=own)

    fits: tuple[Callable[..., LowRank], ...] = (lambda kept: low_rank(kept, **params), in_units)
    found = None
    if products and min(seen.shape) > 1:
        three = (*fits, without_words(rank_one))
        found = _errors(seen, three, copy.deepcopy(rng))
    if found is None:  # rank one leaves too much open
        found = _errors(seen, fits, copy.deepcopy(rng))
    if found is None:
        return None
    errors, at = found
    raw = np.sqrt(np.mean(errors**2, axis=1))
    told = np.sqrt(np.mean((errors / own.at(seen.rows[at], seen.cols[at])[1]) ** 2, axis=1))
    better = told[1] <= MARGIN * np.delete(told, 1).min()
    sound = raw[1] <= raw[0] and told[1] < NO_NEWS  # also as the values are, and better than a mean
    return told if better and (sound or told[0] > FAR_BETTER * told[1]) else None
