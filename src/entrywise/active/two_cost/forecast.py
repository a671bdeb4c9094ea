"""What a budget will buy, before anything is spent: forecasts by plan name, for the command line and for code.

A forecast is a function of the setting that returns rows of one table. To add one for another plan, write the function
and add it to ``FORECASTS``; its keyword arguments are those that :func:`forecast` is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrywise.active.two_cost.noisy_cur import noisy_cur
from entrywise.active.two_cost.rehearsal import rehearsed, with_noise
from entrywise.active.two_cost.risk import Problem
from entrywise.active.two_cost.setting import Noise, TwoCost, check_ordinary, read_two_cost
from entrywise.bounds.noisycur import Traits, budgets
from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.queries import Plan, Prices
from entrywise.types import Seed, generator

GAUSSIAN_MEDIAN = 0.674  # half of the entries of a standard Gaussian are larger than this in size
COLUMNS = (
    "rank",
    "columns",
    "entries",
    "per_column",
    "error",
    "per_unit",
    "budget_noisy_cur",
    "budget_nuclear_norm",
)
LEGEND = (
    "per_column: entries on each column not bought; error: root mean squared, of an entry; per_unit: by how much one more "
    "unit of money lowers it; budget_noisy_cur and budget_nuclear_norm: budgets that the paper compares, constants one, below "
    "the latter nuclear-norm completion has no theory. With its constants (epsilon .5, delta .05, incoherence and condition 1)"
)


@dataclass(frozen=True)
class Forecast:
    """Rows of a table, the assumptions behind them in a sentence, and what the columns mean."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    assumes: str
    legend: str = ""


def forecast_noisy_cur(
    shape: tuple[int, int],
    prices: Prices,
    *,
    noise: Noise,
    budget: float,
    rank: int | None = None,
    signal: float = 1.0,
    pilot: Observations | None = None,
    rng: Seed = 0,
) -> Forecast:
    """Return how :func:`noisy_cur` would split the budget, the error to expect and what more money is worth.

    Parameters
    ----------
    shape, prices, noise, budget
        As of :func:`entrywise.active.noisy_cur`; both noises must be given.
    rank : int, optional
        Rank of the matrix; by default one row each for 2, 4 and 8.
    signal : float
        Standard deviation of the entries about the mean of their row.
    pilot : Observations, optional
        Entries measured before, of this matrix or of one like it (of any shape), with their noise or that of ``entry``.
        Its spectrum, with the tail, replaces `rank` and `signal`, and the error is a range from rehearsals of the plan
        (:mod:`~entrywise.active.two_cost.rehearsal`), as long as about ten runs of it.
    rng : int or Generator
        For the rehearsals.

    Returns
    -------
    Forecast
        With a pilot one row: ``low``, ``error`` and ``high``, and the ``components`` and the ``tail`` (its share of the variance)
        that the pilot shows. Without: a row a rank, the rank taken as exact, so that ``error`` is a lower end where the
        spectrum has a tail. Then ``columns`` and ``entries`` to buy, ``per_column`` entries on each column not bought,
        ``error`` (root mean squared, of an entry), ``per_unit`` by how much one more unit of money lowers it, then
        ``budget_noisy_cur`` and ``budget_nuclear_norm``, the budgets that the paper compares
        (:func:`entrywise.bounds.noisycur.budgets`). The legend says what Theorem 1 asks for with its constants, of a matrix
        with the best traits.

    Examples
    --------
    >>> noise = {"column": 0.22, "entry": 0.1}
    >>> found = forecast_noisy_cur((80, 60), Prices(column=16), noise=noise, budget=720, rank=3, signal=0.4)
    >>> found.rows[0][:3]
    (3, 29, 256)
    """
    setting = read_two_cost(shape, prices, noise, budget)
    m, n = setting.m, setting.n
    noises = _check(setting, rank, signal)
    if pilot is not None:
        return _from_pilot(pilot, (m, n), prices, noises, budget, generator(rng))
    column, entry = setting.mean_prices()
    rows, asked = [], []
    for k in _ranks(rank, min(m, n)):
        problem = Problem(
            m=m,
            n=n,
            column_price=column,
            entry_price=entry,
            column_variance=noises["column"] ** 2,
            entry_variance=noises["entry"] ** 2,
            rank=k,
            signal=signal**2,
        )
        best = problem.best(budget)
        theory = budgets(_ideal(problem, signal), Prices(column=column, entry=entry), noise=noises)
        about = (
            best.per_column,
            best.error,
            problem.marginal(budget),
            theory["noisy_cur"],
            theory["nuclear_norm"],
        )
        asked.append(f"{theory['theorem']:.3g} (rank {k})")
        rows.append((k, best.columns, best.cells, *map(_rounded, about)))
    return Forecast(
        COLUMNS,
        tuple(rows),
        f"a matrix of the given rank with Gaussian factors, entries {signal:g} (standard deviation) about the mean of their "
        "row, fitted with both noises known; error is a lower end where the spectrum has a tail: a pilot tells",
        f"{LEGEND} Theorem 1 asks for {', '.join(asked)}; all entries cost {m * n * entry:.3g}",
    )


def _from_pilot(
    pilot: Observations,
    shape: tuple[int, int],
    prices: Prices,
    noise: dict[str, float],
    budget: float,
    rng: np.random.Generator,
) -> Forecast:
    """Return the range of errors that rehearsals with spectra like the pilot's show."""

    def make(draws: np.random.Generator) -> Plan:
        return noisy_cur(shape, prices, noise=noise, budget=budget, rng=draws)

    found, seen = rehearsed(make, with_noise(pilot, noise["entry"]), shape, noise, rng)
    tail = seen.beyond / seen.total if seen.total > 0 else 0.0
    row = (len(seen.leading), *map(_rounded, (tail, found.low, found.middle, found.high)))
    return Forecast(
        ("components", "tail", "low", "error", "high"),
        (row,),
        f"a matrix like those whose pilots look like the {len(pilot)} entries of this one: a spectrum that falls off as a "
        "power, with few components or many, factors Gaussian",
        "components: that the pilot shows; tail: share of the variance beyond them; low, error, high: root mean squared, of an "
        "entry",
    )


def _check(setting: TwoCost, rank: int | None, signal: float) -> dict[str, float]:
    """Return both noises, or refuse what cannot be forecast."""
    if setting.column_noise is None or setting.entry_noise is None:
        raise ParameterError("a forecast must know both noises; give noise of column and of entry")
    if not (math.isfinite(signal) and signal > 0):
        raise ParameterError(f"signal of a forecast must be finite and above 0, got {signal}")
    check_ordinary(signal, "signal of a forecast", "count the answers in another unit")
    for mode, sd in (("column", setting.column_noise), ("entry", setting.entry_noise)):
        if sd:
            check_ordinary(sd, f"noise of {mode}", "count the answers in another unit, or say 0")
    full = min(setting.m, setting.n)
    if rank is not None and not 1 <= rank <= full:
        raise ParameterError(f"rank of a forecast must be in 1..{full}, got {rank}")
    return {"column": setting.column_noise, "entry": setting.entry_noise}


def _ranks(rank: int | None, most: int) -> tuple[int, ...]:
    """Return the ranks that get a row: the one given, else those of 2, 4 and 8 that there may be."""
    if rank is not None:
        return (rank,)
    return tuple(k for k in (2, 4, 8) if k <= most) or (1,)


def _ideal(problem: Problem, signal: float) -> Traits:
    """Return the best traits that a matrix of this rank and signal may have for Theorem 1."""
    m, n, k = problem.m, problem.n, problem.rank
    return Traits(
        m=m,
        n=n,
        rank=k,
        incoherence=1.0,
        condition=1.0,
        density=GAUSSIAN_MEDIAN * signal,
        norm2=m * n * signal**2,
        smallest=signal * math.sqrt(m * n / k),
    )


def _rounded(x: float) -> float:
    """Return x to three digits: a forecast knows no more."""
    return float(f"{x:.3g}")


FORECASTS: dict[str, Callable[..., Forecast]] = {"noisy-cur": forecast_noisy_cur}


def forecast(plan: str, **setting: Any) -> Forecast:
    """Return the forecast for the plan called `plan`; see :data:`FORECASTS` for those that have one."""
    name = plan.replace("_", "-")
    if name not in FORECASTS:
        raise ParameterError(f"there is a forecast for {', '.join(FORECASTS)}, not for {plan!r}")
    return FORECASTS[name](**setting)
