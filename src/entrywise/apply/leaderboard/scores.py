"""The score of every row with an interval: bought cells as they are, the others by the fit.

The interval asks what was bought to foretell itself: cells are left out by fifths, the rest is fitted, and the errors on
those left out say how large a row's errors are. Its width is that of a design-based estimate, which adds the mean of
the errors to the predictions; the scores themselves are the fit's, whose errors are smaller. Measured, not proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from entrywise import fragments
from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.designs import chances
from entrywise.active.cells.left_out import left_out_residuals
from entrywise.apply.leaderboard.bought import Bought
from entrywise.apply.leaderboard.new_rows import against_history
from entrywise.apply.leaderboard.order import (
    Differences,
    Order,
    Promise,
    levelled,
    order,
    paired,
    unpaired,
)
from entrywise.exceptions import ParameterError
from entrywise.frames import make_frame, named_lines
from entrywise.linalg.shrinkage import shrunk_variances
from entrywise.observations import Observations
from entrywise.queries import Prices
from entrywise.results import LowRank
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]

PRICE_GROUPS = 10  # of equal size, within which residuals count as alike
SURE = 1e-6  # weight of cells that were sure to be drawn: they speak only for groups that have no others
FEW = 5  # cells on which a score rests too lightly to be called more than a guess
BLOCK = 1 << 20  # cells completed at once
HIDDEN_PARTS = 5  # of the rows, each hidden from a fit that foretells it by its features


class Completed(Protocol):
    """Whatever says what every cell is."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the board."""

    def entries(self, rows: Any, cols: Any) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The mean of each row over its columns, with an interval, a tier, and the places it may take.

    ``deviation`` and ``freedom`` belong to the mean; ``cells`` counts what each row's score rests on, ``spent`` what it
    cost; ``apart`` are the differences between rows, ``told`` which of them are sure; ``how`` says in words how the
    intervals were made.
    """

    mean: Array
    low: Array
    high: Array
    deviation: Array
    freedom: Array
    cells: Indices
    spent: Array
    apart: Differences
    told: Order
    how: str

    @property
    def order(self) -> Indices:
        """Rows from the best to the worst."""
        return np.argsort(-self.mean, kind="stable")

    def _repr_html_(self) -> str:
        """What notebooks show: the rows from the best to the worst, with intervals and places."""
        lines = [
            (
                int(i),
                float(self.mean[i]),
                float(self.low[i]),
                float(self.high[i]),
                f"{self.best_place[i]}-{self.worst_place[i]}",
            )
            for i in self.order
        ]
        return fragments.table(("row", "score", "low", "high", "place"), lines)

    def to_frame(self, rows: Sequence[str] | None = None, backend: str = "polars") -> Any:
        """Return the board as a frame (polars, pandas or pyarrow), best first; `rows` are the names of the rows."""
        at = self.order
        columns: dict[str, Any] = {"row": named_lines(rows, at), "score": self.mean[at]}
        for name in ("low", "high", "tier", "best_place", "worst_place", "cells", "spent"):
            columns[name] = getattr(self, name)[at]
        return make_frame(columns, backend)

    @property
    def tier(self) -> Indices:
        """Tier of each row, from 1; see :attr:`Order.tier`."""
        return self.told.tier

    @property
    def best_place(self) -> Indices:
        """The best place that each row may take, from 1."""
        return self.told.best_place

    @property
    def worst_place(self) -> Indices:
        """The worst place that each row may take."""
        return self.told.worst_place

    @property
    def light(self) -> Mask:
        """Rows whose score rests on fewer than five cells."""
        return np.asarray(self.cells < FEW)


def scores(
    fit: LowRank | None,
    bought: Bought,
    level: float = 0.9,
    prices: Prices | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    promise: Promise = "pairs",
    columns: Literal["these", "sample"] = "these",
    rng: int = 0,
) -> Scores:
    r"""Return the score of every row: its mean over all columns, bought cells as they are, the others by the fit.

    .. math:: s_i \pm t_{d_i + d_0} \sqrt{v_i (1/k_i - 1/n_i)}

    with :math:`v_i` the mean square of errors on cells left out by fifths, shrunk over rows (:math:`d_0` degrees
    of freedom from the others). Where prices differ within rows cells were drawn with unequal chances
    :math:`\pi_{ij}`; the root is then over :math:`\sum_j (1/\pi_{ij} - 1) v_{ij} / n_i^2`, :math:`v_{ij}` the mean square
    of cells as dear, times the row's own factor: the variance of the doubly robust mean with the errors modelled
    (errors go with the price, and the few dear cells that were drawn cannot tell for a row alone).

    Boards bought with goal ``order`` are scored by raw means over common columns, differences paired. New rows
    beside a known history get the interval of its replay, see :func:`~entrywise.apply.leaderboard.new_rows.against_history`.

    Parameters
    ----------
    fit : LowRank, optional
        A fit of what was bought; made here when None.
    bought : Bought
        Its ``model`` says what answers are taken for and which features the lines have; fits without a fifth are made
        alike. A row without cells is then as its features say, and its interval as wide as rows with cells are off when
        they are hidden whole.
    level : float
        Of the intervals, and of the claims who is better.
    prices : Prices, optional
        Needed where prices differ within rows.
    bounds : (low, high), optional
        Range of the answers; scores and intervals stay within what is still possible.
    promise : {"pairs", "all", "holm"}
        Of the claims who is better, see :func:`~entrywise.apply.leaderboard.order.order`.
    columns : {"these", "sample"}
        What intervals and claims speak of: the mean over these very columns (a row all of whose cells are known then
        has no error left), or over all columns such as these, of which these are a random sample.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.active import row_scores
    >>> from entrywise.oracles import MatrixOracle
    >>> A = np.add.outer(np.arange(6.0), np.sin(np.arange(20)))
    >>> run = ew.Run(row_scores((6, 20), budget=60, rng=0))
    >>> found = scores(ew.play(run, MatrixOracle(A)), Bought.from_run(run))
    >>> found.order.tolist(), found.tier.tolist()
    ([5, 4, 3, 2, 1, 0], [6, 5, 4, 3, 2, 1])
    """
    if not 0 < level < 1:
        raise ParameterError(f"level must be above 0 and below 1, got {level}")
    if columns not in ("these", "sample"):
        raise ParameterError(f"columns must be these or sample, got {columns!r}")
    seen, there = bought.observations(), bought.there
    if np.any(bought.arms == "order"):
        common, values = _common(bought)
        population = there.sum(axis=1).astype(np.float64)
        if columns == "sample":
            population[:] = np.inf
        found = paired(
            levelled(values, there[:, common]),
            np.inf if columns == "sample" else bought.shape[1],
            rng,
        )
        mean, how = found.mean, "raw means over common columns"
        deviation, freedom = _own_errors(values, population)
    else:
        fit = bought.model.fit(seen, None) if fit is None else fit
        mean = completed_means(fit, seen, there, bounds)
        mean, deviation, freedom, how = _intervals(fit, bought, mean, prices, level, rng)
        found = unpaired(mean, deviation, freedom, rng)
        if columns == "sample":
            table = np.where(there, fit.entries(*np.indices(bought.shape)), np.nan)
            table[seen.rows, seen.cols] = seen.values
            found, deviation, freedom = _among_others(table, found, deviation, freedom, rng)
    if columns == "sample":
        how += "; the columns count as a sample of others"
    half = student(level, freedom) * deviation
    low, high = mean - half, mean + half
    if bounds is not None and columns == "sample":
        low, high = np.clip(low, *bounds), np.clip(high, *bounds)
    elif bounds is not None:
        low, high = possible(seen, there, bounds, low, high)
    return Scores(
        mean,
        low,
        high,
        deviation,
        freedom,
        cells=np.bincount(seen.rows, minlength=bought.shape[0]),
        spent=bought.spent_by_row,
        apart=found,
        told=order(found, level, promise),
        how=how,
    )


def completed_means(
    fit: Completed, seen: Observations, there: Mask, bounds: tuple[float, float] | None = None
) -> Array:
    """Return the mean of every row over the cells that exist: seen ones as they are, the others by the fit, (m,)."""
    m, n = fit.shape
    total = np.zeros(m)
    step = max(1, BLOCK // n)
    columns = np.arange(n)
    for first in range(0, m, step):
        rows = np.arange(first, min(first + step, m))
        block = fit.entries(rows[:, None], columns)
        if bounds is not None:
            block = np.clip(block, *bounds)
        total[rows] = np.where(there[rows], block, 0.0).sum(axis=1)
    guess = fit.entries(seen.rows, seen.cols)
    if bounds is not None:
        guess = np.clip(guess, *bounds)
    inside = there[seen.rows, seen.cols]
    total += np.bincount(seen.rows[inside], (seen.values - guess)[inside], m)
    return np.asarray(total / np.maximum(there.sum(axis=1), 1))


def equal_chances(rows: Indices, residual: Array, cells: Indices) -> tuple[Array, Array]:
    """Return deviation and degrees of freedom of the mean of rows whose cells were drawn alike, each of shape (m,).

    The interval I1: v_i (1/k_i - 1/n_i), v_i the shrunk mean square of the left-out residuals.
    """
    m = len(cells)
    counts = np.bincount(rows, minlength=m).astype(np.float64)
    squares = np.bincount(rows, residual**2, m) / np.maximum(counts, 1.0)
    variance, added = shrunk_variances(squares, counts)
    rest = np.maximum(1.0 / np.maximum(counts, 1.0) - 1.0 / np.maximum(cells, 1), 0.0)
    return np.sqrt(variance * rest), counts + added


def unequal_chances(
    seen: Observations, residual: Array, price: Array, chance: Array, there: Mask
) -> tuple[Array, Array]:
    """Return deviation and degrees of freedom of the mean of rows whose cells were drawn with `chance` (m, n).

    Wanted is a sum over all cells of (1/chance - 1) times squared errors, so those seen count by (1/chance - 1)/chance:
    the few dear ones that were drawn speak for the many that were not. A cell that was sure to be drawn, and was
    not because the money ended, counts by its squared error alone.
    """
    m = seen.shape[0]
    of_cells = np.log(price)
    of_seen = of_cells[seen.rows, seen.cols]
    edges = np.quantile(of_seen, np.linspace(0.0, 1.0, PRICE_GROUPS + 1)[1:-1])
    group = np.searchsorted(edges, of_seen)
    inverse = 1.0 / np.maximum(chance[seen.rows, seen.cols], np.finfo(float).tiny)
    weight = inverse * np.maximum(inverse - 1.0, SURE)
    heavy = np.bincount(group, weight * residual**2, PRICE_GROUPS)
    level = heavy / np.maximum(np.bincount(group, weight, PRICE_GROUPS), np.finfo(float).tiny)
    expected = np.maximum(level[group], np.finfo(float).tiny)
    counts = np.bincount(seen.rows, minlength=m).astype(np.float64)
    own = np.bincount(seen.rows, residual**2 / expected, m) / np.maximum(counts, 1.0)
    factor, added = shrunk_variances(own, counts)
    spread = level[np.searchsorted(edges, of_cells)]
    with np.errstate(divide="ignore"):
        odds = np.where(there & (chance > 0), 1.0 / chance - 1.0, 0.0)
    missed = there.copy()
    missed[seen.rows, seen.cols] = False
    never = missed & (~(chance > 0) | (chance >= 1.0))
    variance = np.sum(odds * spread, axis=1) + np.sum(never * spread, axis=1)
    cells = np.maximum(there.sum(axis=1), 1)
    return np.sqrt(variance * factor) / cells, counts + added


def _intervals(
    fit: LowRank, bought: Bought, mean: Array, prices: Prices | None, level: float, rng: int
) -> tuple[Array, Array, Array, str]:
    """Return means, deviations, degrees of freedom, and how they were made."""
    seen, there = bought.observations(), bought.there
    known = np.zeros(bought.shape, bool)
    known[bought.rows[bought.known], bought.cols[bought.known]] = True
    new = np.zeros(len(mean), bool)
    new[bought.rows[bought.arms == "new row"]] = True
    price = _price(bought, prices)
    whole = np.bincount(seen.rows, minlength=len(mean)) >= there.sum(axis=1)
    old = ~whole & ~new
    deviation, freedom = np.zeros(len(mean)), np.full(len(mean), float(len(seen)))
    how = "every cell is known"
    if old.any():
        model = replace(bought.model, likelihood="binary" if fit.is_binary else "gaussian")
        how = "errors on cells left out by fifths"
        if _ignores(model, fit):
            how += ", without the features of the fit"
        residual = left_out_residuals(seen, fit.rank, rng=rng, model=model)
        fresh = np.unique(bought.cols[bought.arms == "new column"])
        if len(fresh):
            found = _by_strata(seen, residual, there, fresh)
            how += ", of known and new columns apart"
        elif np.all(price == price[:, :1]):
            found = equal_chances(seen.rows, residual, there.sum(axis=1))
        else:
            chance = chances(price, there, float(price[seen.rows, seen.cols].sum()))
            chance = np.where(known, 1.0, chance)
            found = unequal_chances(seen, residual, price, chance, there)
            how += ", weighted by the chances with which cells were drawn"
        deviation, freedom = np.where(whole, 0.0, found[0]), np.where(whole, freedom, found[1])
        empty = np.bincount(seen.rows, minlength=len(mean)) == 0
        if empty.any() and not empty.all():
            deviation[empty] = _unseen_deviation(model, seen, there, mean, fit.rank, rng)
    if new.any():
        mean, deviation, freedom = (np.array(x) for x in (mean, deviation, freedom))
        told = against_history(bought, new, price, level)
        mean[new], deviation[new], freedom[new] = told.mean, told.deviation, np.inf
        how = f"new rows: {told.how}"
    return mean, deviation, freedom, how


def _ignores(model: AnswerModel, fit: LowRank) -> bool:
    """Tell whether a fit had features that the model does not know."""
    sides = ((model.row_features, fit.row_features), (model.col_features, fit.col_features))
    return any(known is None and used is not None for known, used in sides)


def _unseen_deviation(
    model: AnswerModel, seen: Observations, there: Mask, mean: Array, rank: int, rng: int
) -> float:
    """Return how far the mean of a row may be off of which no cell is known.

    Without features of rows all that is known of it is how the others differ. With them, the others are hidden a fifth
    at a time and foretold by their features.
    """
    full = np.flatnonzero(np.bincount(seen.rows, minlength=len(mean)))
    if len(full) < 2:
        return float("inf")
    if model.row_features is None or len(full) < 2 * HIDDEN_PARTS:
        return float(np.std(mean[full], ddof=1))
    off: list[Array] = []
    for hidden in np.array_split(np.random.default_rng(rng).permutation(full), HIDDEN_PARTS):
        out = np.isin(seen.rows, hidden)
        fit = model.fit(seen.take(np.flatnonzero(~out)), rank)
        guess = completed_means(fit, seen.take(np.zeros(0, np.int64)), there)
        off.append((guess - mean)[hidden])
    return float(np.sqrt(np.mean(np.concatenate(off) ** 2)))


def _by_strata(
    seen: Observations, residual: Array, there: Mask, fresh: Indices
) -> tuple[Array, Array]:
    """Return deviation and degrees of freedom of the mean of rows whose known and new columns were drawn apart.

    With shares n_s / n of the cells the variance is the sum of (n_s / n)^2 times that of each part's mean.
    """
    new = np.zeros(there.shape[1], bool)
    new[fresh] = True
    variance, freedom = np.zeros(len(there)), np.full(len(there), np.inf)
    for part in (new, ~new):
        cells, mine = (there & part).sum(axis=1), part[seen.cols]
        if np.all(np.bincount(seen.rows[mine], minlength=len(there)) >= cells):
            continue  # all of it is known
        deviation, own = equal_chances(seen.rows[mine], residual[mine], cells)
        variance += (cells / np.maximum(there.sum(axis=1), 1)) ** 2 * deviation**2
        freedom = np.minimum(freedom, own)
    return np.sqrt(variance), freedom


def _price(bought: Bought, prices: Prices | None) -> Array:
    m, n = bought.shape
    i, j = np.divmod(np.arange(m * n), n)
    return (prices or Prices()).of("entry", i, j).reshape(m, n)


def _common(bought: Bought) -> tuple[Indices, Array]:
    """Return the columns that goal order bought (k,), and their values, NaN where a cell is missing, (m, k)."""
    mine = bought.arms == "order"
    columns = np.unique(bought.cols[mine])
    place = np.searchsorted(columns, bought.cols[mine])
    values = np.full((bought.shape[0], len(columns)), np.nan)
    values[bought.rows[mine], place] = bought.values[mine]
    return columns, values


def _own_errors(values: Array, population: Array) -> tuple[Array, Array]:
    """Return deviation and degrees of freedom of raw means over columns drawn from `population`, shape (m,)."""
    there = ~np.isnan(values)
    counts = there.sum(axis=1).astype(np.float64)
    level = np.where(there, values, 0.0).sum(axis=1) / np.maximum(counts, 1.0)
    squares = np.where(there, values - level[:, None], 0.0) ** 2
    freedom = np.maximum(counts - 1.0, 0.0)
    variance, added = shrunk_variances(squares.sum(axis=1) / np.maximum(freedom, 1.0), freedom)
    rest = 1.0 / np.maximum(counts, 1.0) - 1.0 / np.maximum(population, 1)
    return np.sqrt(variance * np.maximum(rest, 0.0)), freedom + added


def _among_others(
    table: Array, found: Differences, deviation: Array, freedom: Array, rng: int
) -> tuple[Differences, Array, Array]:
    """Return differences, deviations and degrees of freedom with the draw of the columns added.

    The completed table stands for the columns; what completing adds is independent of which columns they are.
    """
    drawn = paired(table, np.inf, rng + 1)
    own, own_freedom = _own_errors(table, np.full(len(table), np.inf))
    both = Differences(
        found.mean,
        np.sqrt(found.deviation**2 + drawn.deviation**2),
        np.minimum(found.freedom, drawn.freedom),
        found.noise + drawn.noise,
    )
    return both, np.sqrt(deviation**2 + own**2), np.minimum(freedom, own_freedom)


def student(level: float, freedom: Array) -> Array:
    """Return how many deviations lie between the middle and the ends of an interval."""
    from scipy.stats import t

    return np.asarray(t.ppf(0.5 + level / 2, freedom))


def possible(
    seen: Observations, there: Mask, bounds: tuple[float, float], low: Any, high: Any
) -> tuple[Array, Array]:
    """Return the interval cut to what answers between the bounds can still make of each mean."""
    m = seen.shape[0]
    cells = np.maximum(there.sum(axis=1), 1)
    total = np.bincount(seen.rows, seen.values, m)
    still = cells - np.bincount(seen.rows, minlength=m)
    least = (total + still * bounds[0]) / cells
    most = (total + still * bounds[1]) / cells
    return np.clip(low, least, most), np.clip(high, least, most)
