"""Two instruments, one budget: cheap noisy columns, dear precise entries, and how to split the money.

The columns are bought in a few rounds. After each, the rank and the signal they show go into a closed form for
the error of every further split, and buying stops when more columns would not pay. The precise entries are then
scattered over the columns that were not bought, and both are fitted together by empirical Bayes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from entrywise.active.two_cost.buying import ASSUMED_RATIO, ask, buy_cells, buy_columns, entry_pilot
from entrywise.active.two_cost.fit import Held, fit
from entrywise.active.two_cost.literal import literal_noisy_cur
from entrywise.active.two_cost.risk import Problem, problem_from_columns
from entrywise.active.two_cost.setting import Noise, TwoCost, affordable, read_two_cost
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import Certificate, LowRank
from entrywise.types import Array, Seed

FEW_SEEN = 8  # entries below which their spread, and so every error, is anybody's guess


@plan(tolerates_failed=True)
def noisy_cur(
    shape: tuple[int, int],
    prices: Prices,
    *,
    noise: Noise = None,
    budget: float,
    columns: int | None = None,
    rank: int | None = None,
    estimator: Literal["bayes", "literal"] = "bayes",
    penalty: float | None = None,
    rng: Seed = None,
) -> Asking[LowRank]:
    r"""Complete a matrix from noisy columns and precise entries, one budget split between them.

    .. math:: y_{ij} = a_{ij} + e_{ij}, \quad e_{ij} \sim N(0, \sigma_c^2) \text{ in a column bought}, \
       N(0, \sigma_e^2) \text{ in an entry bought}

    Parameters
    ----------
    shape : (m, n)
    prices : Prices
        Of a ``column`` (m entries at once) and of an ``entry``; one number each, or one for each column and entry.
    noise : mapping or float, optional
        Standard deviations ``{"column": sd, "entry": sd}``. What is unknown (None) is estimated from
        repeated measurements, which are paid for like others and used in the fit.
    budget : float
        Never exceeded, and used up but for less than the price of an entry, unless every entry was bought.
    columns : int, optional
        Number of columns; chosen from the data by default.
    rank : int, optional
        Rank of the matrix where it is known; chosen from the data by default.
    estimator : {"bayes", "literal"}
        ``literal``: Algorithm 1 of the paper with `columns` columns (:func:`literal_noisy_cur`), to compare with.
    penalty : float, optional
        Lambda of the literal estimator; chosen by leave-one-out otherwise.
    rng : int or Generator

    Yields
    ------
    Batch
        Mode ``column``, one unit a column, a few at a time; then mode ``entry``.

    Returns
    -------
    LowRank
        With a posterior: ``interval(rows, cols, 0.9, of="truth")``. ``report`` says how the money was split, what
        was expected of it and what the noise was. When both instruments are exact and the columns show a low rank,
        it is solved exactly and money may be left; ``rank_proven`` in the report says whether anything bought shows
        that the rank is no higher, and only then there is a certificate.

    Notes
    -----
    The paper leaves the split open. Ours minimises the Bayes error of a random rank-k matrix seen by both
    instruments, a fixed point in three numbers (:mod:`entrywise.active.two_cost.risk`), over the ranks that what was seen leaves
    possible (:mod:`entrywise.active.two_cost.ranks`). Where we differ in the estimator:
    precise entries are scattered instead of whole rows, the noise of both instruments enters, and variance
    that no low-rank matrix explains is estimated and allowed for.

    References
    ----------
    .. [HGM21] Hu, Gittens, Magdon-Ismail, *NoisyCUR: an algorithm for two-cost budgeted matrix completion*.
    .. [KKMSZ16] Kabashima, Krzakala, Mezard, Sakata, Zdeborova, *Phase transitions and sample complexity in
       Bayes-optimal matrix factorization*, IEEE Trans. Information Theory 2016: the fixed point.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import TwoCostOracle
    >>> oracle = TwoCostOracle(random_low_rank(80, 60, 3), entry_noise=0.1, column_noise=0.22, rng=0)
    >>> plan = noisy_cur((80, 60), ew.Prices(column=16), noise={"column": 0.22, "entry": 0.1}, budget=720, rng=0)
    >>> found = ew.play(plan, oracle)
    >>> found.cost, found.report["columns"] * 16 + found.report["cells"]
    (720.0, 720)
    """
    setting = read_two_cost(shape, prices, noise, budget)
    m, n = setting.m, setting.n
    most = affordable(np.sort(setting.column_prices), budget)
    if columns is not None and not 0 <= columns <= min(n, most):
        raise ParameterError(
            f"columns of noisy_cur must be in 0..{min(n, most)} for this budget, got {columns}"
        )
    if rank is not None and not 0 <= rank <= min(m, n):
        raise ParameterError(f"rank of noisy_cur must be in 0..{min(m, n)}, got {rank}")
    if estimator not in ("bayes", "literal"):
        raise ParameterError(f"estimator must be bayes or literal, got {estimator!r}")
    if penalty is not None and estimator != "literal":
        raise ParameterError(
            "penalty belongs to estimator='literal'; the default estimator has none"
        )
    generator = cast(np.random.Generator, rng)
    if estimator == "literal":
        if columns is None:
            columns = _default_columns(setting)
        literal = literal_noisy_cur(
            shape,
            prices,
            columns=columns,
            noise=noise,
            budget=budget,
            penalty=penalty,
            rng=generator,
        )
        found: LowRank = yield from literal
        return found
    held = Held(setting, money=float(budget))
    problem = _problem(setting, rank)
    try:
        if setting.column_noise == 0.0 and setting.entry_noise == 0.0 and columns is None:
            exact = yield from _exact(held, rank, generator)
            if exact is not None:
                return exact
            if held.columns:
                problem = problem_from_columns(problem, held.table())
        else:
            problem = yield from entry_pilot(held, problem, columns, generator)
            problem = yield from buy_columns(held, problem, columns, rank, generator)
        yield from buy_cells(held, problem, generator)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    return _result(held, problem, rank, status)


def _problem(setting: TwoCost, rank: int | None) -> Problem:
    """Return what is known before anything was asked; unknown noises at one, signal of that size."""
    column, entry = setting.mean_prices()
    sc2 = 1.0 if setting.column_noise is None else setting.column_noise**2
    se2 = sc2 / ASSUMED_RATIO if setting.entry_noise is None else setting.entry_noise**2
    k = max(1, min(setting.m, setting.n, 4 if rank is None else rank))
    return Problem(setting.m, setting.n, column, entry, sc2, se2, k, max(4 * sc2, 4 * se2, 1e-300))


def _default_columns(setting: TwoCost) -> int:
    """Return the columns that the literal algorithm buys when it is not told: the best split for rank 4."""
    problem = _problem(setting, None)
    row = setting.n * problem.entry_price
    most = int((setting.budget - row) / problem.column_price + 1e-9)
    if most < 1:
        raise ParameterError(
            f"the budget must pay for one column and one row of {setting.n} entries ({problem.column_price + row:g}), "
            f"got {setting.budget:g}"
        )
    return max(1, min(problem.best(setting.budget).columns, most))


def _exact(held: Held, rank: int | None, rng: np.random.Generator) -> Asking[LowRank | None]:
    """Both instruments are exact: buy columns until one lies in the span of the others, then k cells each.

    A column that costs less than k cells is bought whole. Returns None when the columns do not show a low rank and the rest
    cannot be paid, or when what was bought disagrees; then it is fitted as usual.
    """
    setting = held.setting
    m, n = setting.m, setting.n
    order, price = rng.permutation(n), setting.column_prices
    entry = setting.mean_prices()[1]
    U = np.zeros((m, 0))
    while len(held.columns) < n and (rank is None or len(held.columns) < rank):
        d = len(held.columns)
        after = held.money - price[order[d]]
        if after < -1e-9 or after < np.minimum(price[order[d + 1 :]], d * entry).sum() * (
            1 - 1e-12
        ):
            break
        yield from ask(held, Batch.whole_columns(order[d : d + 1], m))
        U = _span(held)
        if U.shape[1] < len(held.columns):
            break
    k = U.shape[1]
    rest = np.setdiff1d(np.arange(n), held.columns)
    whole = rest[price[rest] < k * entry * (1 - 1e-12)]
    if len(whole) and float(price[whole].sum()) <= held.money * (1 + 1e-12):
        yield from ask(held, Batch.whole_columns(whole, m))
        U, rest = _span(held), np.setdiff1d(rest, whole)
        k = U.shape[1]
    if not held.columns or sum(len(v) for v in held.values["column"]) < m * len(held.columns):
        return None  # nothing bought, or some of it failed
    V = np.zeros((n, k))
    V[held.columns] = held.table().T @ U
    check = min(k + 1, m)
    for each in (check, k):
        cells = rng.permuted(np.tile(np.arange(m), (len(rest), 1)), axis=1)[:, :each]
        rows, cols = cells.ravel(), np.repeat(rest, each)
        if float(setting.entry_prices(rows, cols).sum()) <= held.money * (1 + 1e-12):
            break
    else:
        return None
    if len(rows):
        batch = Batch.entries(rows, cols)
        before = len(held.values["entry"])
        yield from ask(held, batch)
        if held.values["entry"] and len(held.values["entry"][before]) < len(batch):
            return None  # some failed; the general fit does with what is there
        Y = held.values["entry"][before].reshape(len(rest), each)
        for t, j in enumerate(rest):
            V[j], *_ = np.linalg.lstsq(U[cells[t]], Y[t], rcond=None)
        off = float(np.abs(np.einsum("tek,tk->te", U[cells], V[rest]) - Y).max(initial=0.0))
        if off > 1e-7 * float(np.abs(Y).max(initial=0.0)):
            return None
    proven = not len(rest) or each > k or k < len(held.columns) - len(whole) or k in (rank, m)
    report = {
        "columns": len(held.columns),
        "cells": len(rows),
        "rank": k,
        "estimator": "exact",
        "rank_proven": proven,
    }
    if not proven:
        return LowRank(U, V, report=report)
    checked = (
        ("one entry more than needed agreed in every column",) if each > k and len(rest) else ()
    )
    statement = "largest error of an entry beyond round-off"
    certificate = Certificate(
        statement, 0.0, (f"rank {k}, columns in general position", "exact answers"), checked
    )
    return LowRank(U, V, certificates=(certificate,), report=report)


def _span(held: Held) -> Array:
    """Return an orthonormal basis of the columns held, shape (m, k)."""
    left, s, _ = np.linalg.svd(held.table(), full_matrices=False)
    return np.asarray(left[:, s > 1e-11 * max(float(s[0]), 1e-300)])


def _result(held: Held, problem: Problem, rank: int | None, status: str) -> LowRank:
    found, setting = fit(held, problem, rank), held.setting
    cells = sum(len(v) for v in held.values["entry"])
    report: dict[str, Any] = {
        "columns": len(held.columns),
        "columns_repeated": held.bought - len(held.columns),
        "cells": cells,
        "rank": found.rank,
        "estimator": "bayes",
        "column_noise": _known(held, "column", setting.column_noise, problem.column_variance),
        "entry_noise": _known(held, "entry", setting.entry_noise, problem.entry_variance),
        "lack_of_fit": math.sqrt(found.lack_variance),
        "expected_error": math.sqrt(problem.risk(len(held.columns), cells * problem.entry_price)),
    }
    certificates: tuple[Certificate, ...] = ()
    if found.has_variance and cells + len(held.columns) * setting.m >= FEW_SEEN:
        value = _posterior_error(found)
        report["posterior_error"] = value
        assumes = (
            "Gaussian noise of the two instruments",
            "factors drawn from a Gaussian, learned from the data",
        )
        certificates = (
            Certificate(
                "root mean squared error of an entry, as the posterior expects", value, assumes
            ),
        )
    return replace(found, status=status, report=report, certificates=certificates)


def _known(held: Held, mode: str, told: float | None, variance: float) -> float | None:
    """Return an instrument's noise as it was told or measured; None where it was only assumed."""
    return math.sqrt(variance) if told is not None or held.repeats(mode)[1] else None


def _posterior_error(found: LowRank) -> float:
    """Return the root mean square of the posterior's standard deviations, over a grid when the matrix is large."""
    m, n = found.shape
    at = np.unique(np.linspace(0, m * n - 1, min(m * n, 20_000)).astype(np.int64))
    i, j = np.divmod(at, n)
    return float(np.sqrt(np.mean(found.deviation(i, j, of="truth") ** 2)))
