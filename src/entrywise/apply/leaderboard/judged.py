"""Scores of rows by a dear instrument, with the help of cheap judges whose answers may be biased, skewed or useless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.active.cells.instruments import Residuals, Worth
from entrywise.apply.leaderboard.bias import Bias, bias_of
from entrywise.apply.leaderboard.bought import Bought
from entrywise.apply.leaderboard.judge_fit import (
    SMALLEST,
    Judge,
    JudgeFit,
    components,
    fit_with_judges,
    without_judges,
)
from entrywise.apply.leaderboard.order import Promise, order, unpaired
from entrywise.apply.leaderboard.scores import (
    Mask,
    Scores,
    completed_means,
    equal_chances,
    possible,
    student,
)
from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.queries import Prices
from entrywise.results.matrix import lookup
from entrywise.types import Array

Table = Observations | ArrayLike
Estimate = Literal["fit", "doubly robust"]


@dataclass(frozen=True, eq=False)
class Judged(Scores):
    """Scores of a dear instrument with the help of judges, and what the judges are worth.

    ``alone`` are the scores without judges, with intervals of the same kind; ``worth`` and ``bias`` have one line a
    judge; ``fit`` is the fit behind the scores. ``row_labels`` name the rows where the tables do.
    """

    alone: Scores
    worth: Mapping[str, Worth]
    bias: Mapping[str, Bias]
    fit: JudgeFit
    row_labels: tuple[str, ...] | None

    @property
    def words(self) -> tuple[str, ...]:
        """What the judges are worth and whom they favour, a sentence each."""
        return self.words_for(self.row_labels or tuple(str(i) for i in range(len(self.mean))))

    def words_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """Say the same, rows called by these names."""
        width = [float(np.mean(x.high - x.low)) for x in (self, self.alone)]
        change = width[0] / width[1] - 1.0 if width[1] > 0 else 0.0
        compared = "wider" if change > 0 else "narrower"
        told = [f"{name}: {worth.words}" for name, worth in self.worth.items()]
        told += [f"{name} {bias.words(names)}" for name, bias in self.bias.items()]
        return (*told, f"with judges intervals are {abs(change):.0%} {compared} than without")


def judged(
    dear: Table | Bought,
    judge: Table | Mapping[str, Table] | None = None,
    level: float = 0.9,
    *,
    bounds: tuple[float, float] | None = None,
    prices: Prices | None = None,
    target: str = "entry",
    groups: Sequence[str] | None = None,
    estimate: Estimate = "fit",
    row_features: Any = None,
    col_features: Any = None,
    promise: Promise = "pairs",
    rng: int = 0,
) -> Judged:
    r"""Return the score of every row by the dear instrument, with the help of what judges say.

    Each judge's table is completed and taken apart into row levels, column levels, interaction and what is left of each
    answer; the dear answers say how far each part is trusted, and low rank fits the rest (see
    :func:`~entrywise.apply.leaderboard.judge_fit.fit_with_judges`). Neither the offset nor the unit of a judge
    matters. A judge who knows nothing is left out, at almost no cost. The score is the mean of dear answers as they
    are and of predictions elsewhere, with the interval

    .. math:: s_i \pm t \sqrt{f v_i (1/k_i - 1/n) + \gamma_e^2 s_e^2 (1/N_i - 1/n)},

    :math:`v_i` from errors on cells left out by fifths, shrunk over rows; :math:`k_i` dear cells and :math:`N_i` cells of
    the judge, whose left-out residuals have variance :math:`s_e^2` and coefficient :math:`\gamma_e`. The factor f is how
    much smaller the squared errors of these scores are than those of doubly robust ones, by Stein's estimate of risk over
    all rows plus its standard error: well below 1 where the judge has the same bias in every row. Measured, not
    proved; the dear cells must have been drawn at random within rows, and among those that the judge was asked.

    Parameters
    ----------
    dear : Observations, array with NaN, or Bought
        What the dear instrument said.
    judge : the same, or a mapping of names to them
        What judges said, of all cells or of some. Tables with labels are matched by these, and the board has all rows
        and columns that any of them names. None: the judges of `dear`, a purchase.
    level : float
    bounds : (low, high), optional
        Range of dear answers; predictions, scores and intervals stay inside.
    prices, target : optional
        Prices by instrument, the judges' by name: what a judge is worth is then compared with what it costs.
    groups : sequence of str of length n, optional
        Group of each column, for the bias of judges.
    estimate : {"fit", "doubly robust"}
        ``doubly robust``: cross-fitted predictions of all cells plus the mean error on the dear cells: unbiased
        whatever the fit, with a larger error as a rule.
    row_features, col_features : optional
        As :func:`~entrywise.passive.low_rank` takes them; those of a purchase when left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(20, 1)) + rng.normal(size=(20, 60))
    >>> judge = 3.0 + 0.5 * truth + 0.2 * rng.normal(size=(20, 60))
    >>> dear = np.where(rng.random((20, 60)) < 0.15, truth, np.nan)
    >>> found = judged(dear, judge)
    >>> bool(np.mean(found.high - found.low) < 0.5 * np.mean(found.alone.high - found.alone.low))
    True
    """
    if not 0 < level < 1:
        raise ParameterError(f"level must be above 0 and below 1, got {level}")
    if estimate not in ("fit", "doubly robust"):
        raise ParameterError(f"estimate must be fit or doubly robust, got {estimate!r}")
    bought, tables, labels = _board(dear, judge)
    seen = bought.observations()
    if not len(seen):
        raise DataError("judged needs dear answers, got none; measure some cells of every row")
    if groups is not None and len(groups) != bought.shape[1]:
        raise ParameterError(f"groups must name one for each of {bought.shape[1]} columns")
    judges = tuple(Judge.of(table) for table in tables.values())
    options = {
        "row_features": bought.model.row_features if row_features is None else row_features,
        "col_features": bought.model.col_features if col_features is None else col_features,
    }
    fit = fit_with_judges(seen, judges, **options)
    with_judges, residual = _scored(fit, bought, level, bounds, promise, estimate, rng)
    alone = with_judges
    if fit.trusted:
        alone, _ = _scored(without_judges(fit), bought, level, bounds, promise, estimate, rng)
    given = {f.name: getattr(with_judges, f.name) for f in fields(Scores)}
    return Judged(
        **given,
        alone=alone,
        worth=_worth(seen, tables, prices, target, bought.further),
        bias={name: bias_of(fit, residual, table, level, groups) for name, table in tables.items()},
        fit=fit,
        row_labels=labels,
    )


def _scored(
    fit: JudgeFit,
    bought: Bought,
    level: float,
    bounds: tuple[float, float] | None,
    promise: Promise,
    estimate: Estimate,
    rng: int,
) -> tuple[Scores, Array]:
    """Return the scores of a fit, and the left-out residuals of the dear cells."""
    seen, there = fit.dear, bought.there
    residual, mean = _cross_fitted(fit, there, rng)
    deviation, freedom = equal_chances(seen.rows, residual, there.sum(axis=1))
    if estimate == "fit":
        robust, mean = mean, completed_means(fit, seen, there, bounds)
        deviation = deviation * np.sqrt(_risk(fit, mean - robust, deviation))
    deviation = _with_doubt(fit, deviation, there)
    half = student(level, freedom) * deviation
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = possible(seen, there, bounds, low, high)
    apart = unpaired(mean, deviation, freedom, rng)
    found = Scores(
        mean,
        low,
        high,
        deviation,
        freedom,
        cells=np.bincount(seen.rows, minlength=len(mean)),
        spent=bought.spent_by_row,
        apart=apart,
        told=order(apart, level, promise),
        how="errors on dear cells left out by fifths, judges' features kept",
    )
    return found, residual


def _cross_fitted(fit: JudgeFit, there: Mask, rng: int) -> tuple[Array, Array]:
    """Return left-out residuals of the dear cells, shape (t,), and doubly robust means of the rows, shape (m,).

    These are predictions of every cell by fits without a fifth, plus the mean error on that fifth.
    """
    dear, m = fit.dear, len(there)
    counts = np.bincount(dear.rows, minlength=m)
    nothing = dear.take(np.zeros(0, np.int64))
    residual = dear.values - dear.values.mean()
    total = np.zeros(m)
    for out, part in fit.without_each(rng):
        rows, cols = dear.rows[out], dear.cols[out]
        residual[out] = dear.values[out] - part.entries(rows, cols)
        guess = completed_means(part, nothing, there)
        total += np.bincount(rows, guess[rows] + residual[out], m)
    plain = completed_means(fit, nothing, there)
    return residual, np.where(counts > 0, total / np.maximum(counts, 1), plain)


def _risk(fit: JudgeFit, apart: Array, deviation: Array) -> float:
    r"""Return the mean squared error of scores in units of that of doubly robust ones, at most 1.

    A score s is drawn from the unbiased d towards what the other rows suggest, by ds/dd = B. With var d = V

    .. math:: E (s - \theta)^2 = E (s - d)^2 - V + 2 B V

    (Stein 1981), averaged over rows, plus one standard error; B is how far the fit trusts a row's own level.
    """
    counts = np.bincount(fit.dear.rows, minlength=len(deviation))
    some = np.flatnonzero((counts > 0) & (deviation > 0))
    if len(some) < 2:
        return 1.0
    learned = components(fit.low_rank)
    noise = learned.cell / counts[some]
    own = learned.rows / np.maximum(learned.rows + noise, SMALLEST)
    each = (apart[some] / deviation[some]) ** 2 - 1.0 + 2.0 * own
    risk = float(each.mean() + each.std(ddof=1) / np.sqrt(len(some)))
    return float(np.clip(risk, own.mean(), 1.0))


def _with_doubt(fit: JudgeFit, deviation: Array, there: Mask) -> Array:
    """Return the deviations of rows with the doubt added of what judges would say of cells that they were not asked."""
    cells = np.maximum(there.sum(axis=1), 1)
    rows = fit.dear.rows
    counts = np.bincount(rows, minlength=len(cells))
    doubt = np.zeros(len(cells))
    for judge, weights in zip(fit.judges, fit.weights, strict=True):
        rest = 1.0 / np.maximum(judge.counts, 1) - 1.0 / cells
        if weights[3] != 0 and np.any(rest > 0):
            both = np.bincount(rows[judge.asked(rows, fit.dear.cols)], minlength=len(cells))
            root = np.sqrt(judge.rest_variance * np.maximum(rest, 0.0))
            # dear cells that the judge was not asked have all of it in their own residuals
            doubt += abs(float(weights[3])) * root * both / np.maximum(counts, 1)
    deviation = np.where(counts >= cells, 0.0, np.sqrt(deviation**2 + doubt**2))
    empty = counts == 0  # all that is known of such a row is how far judges are off elsewhere
    learned = components(fit.low_rank)
    blind = learned.rows + learned.cell / cells
    return np.where(empty, np.sqrt(blind + doubt**2), deviation)


def _worth(
    dear: Observations,
    tables: Mapping[str, Observations],
    prices: Prices | None,
    target: str,
    further: Mapping[str, int],
) -> dict[str, Worth]:
    """Return what each judge is worth, with its price where that is known."""
    found = {}
    for name, table in tables.items():
        price = None
        if prices is not None and {name, target} <= set(prices.modes):
            i, j = np.divmod(np.arange(dear.shape[0] * dear.shape[1]), dear.shape[1])
            price = float(prices.of(name, i, j).mean() / prices.of(target, i, j).mean())
        worth = Residuals.of(dear, {name: table}).worth([0], price)
        found[name] = replace(worth, further=further.get(name))
    return found


def _board(
    dear: Table | Bought, judge: Table | Mapping[str, Table] | None
) -> tuple[Bought, dict[str, Observations], tuple[str, ...] | None]:
    """Return purchase and judges on one board, and the names of its rows."""
    if judge is None:
        if not isinstance(dear, Bought) or not dear.judges:
            raise ParameterError("judged needs what a judge said; give judge=")
        return dear, dict(dear.judges), None
    given = judge if isinstance(judge, Mapping) else {"judge": judge}
    tables = {name: _table(x) for name, x in given.items()}
    if isinstance(dear, Bought):
        for name, table in tables.items():
            _refuse_shape(name, table.shape, dear.shape)
        return dear, tables, None
    first = _table(dear)
    rows, cols = (
        _all_labels([getattr(x, axis) for x in (first, *tables.values())])
        for axis in ("row_labels", "col_labels")
    )
    first = _placed("dear", first, rows, cols, first.shape)
    tables = {name: _placed(name, x, rows, cols, first.shape) for name, x in tables.items()}
    return Bought.from_table(first), tables, rows


def _table(given: Table) -> Observations:
    if isinstance(given, Observations):
        return given
    return Observations.from_dense(given)


def _all_labels(labels: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Return all names that tables give to the lines of an axis, in order; None when one of them has none."""
    if any(x is None for x in labels):
        return None
    return tuple(dict.fromkeys(name for some in labels for name in some or ()))


def _placed(
    name: str,
    table: Observations,
    rows: tuple[str, ...] | None,
    cols: tuple[str, ...] | None,
    shape: tuple[int, int],
) -> Observations:
    """Return a table on the board that has these rows and columns."""
    index, size = [table.rows, table.cols], [*shape]
    for axis, wanted in enumerate((rows, cols)):
        own = (table.row_labels, table.col_labels)[axis]
        if wanted is None or own is None:
            if table.shape[axis] != shape[axis]:
                _refuse_shape(name, table.shape, shape)
            continue
        index[axis] = lookup(own, wanted, "line")[index[axis]]
        size[axis] = len(wanted)
    return Observations.from_triplets(
        index[0],
        index[1],
        table.values,
        (size[0], size[1]),
        duplicates="mean",
        row_labels=rows,
        col_labels=cols,
    )


def _refuse_shape(name: str, got: tuple[int, int], wanted: tuple[int, int]) -> None:
    if got != wanted:
        raise DataError(
            f"{name} must have the shape {wanted} of the dear table, got {got}; or give both tables labels"
        )
