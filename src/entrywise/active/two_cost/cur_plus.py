"""CUR+: noisy columns and rows give two subspaces, single entries the small matrix between them."""

from __future__ import annotations

import numpy as np

from entrywise.active.two_cost.setting import (
    Noise,
    TwoCost,
    affordable,
    check_size,
    filled,
    read_two_cost,
)
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.units import in_unit, out_of_unit, unit_of
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed, generator


@plan(tolerates_failed=True)
def cur_plus(
    shape: tuple[int, int],
    prices: Prices,
    *,
    columns: int,
    rows: int | None = None,
    rank: int,
    noise: Noise = None,
    budget: float,
    rng: Seed = None,
) -> Asking[LowRank]:
    r"""Complete a matrix from whole columns, whole rows, and entries spread at random.

    .. math:: \min_Z \sum_{(i,j) \in \Omega} (y_{ij} - u_i^\top Z v_j)^2, \qquad \bar A = U Z V^\top

    with U and V the `rank` leading singular vectors of the columns and of the rows bought.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices
        Of a ``column`` and an ``entry``, and of a ``row`` where rows can be bought whole; otherwise a row is bought
        as n entries.
    columns, rows : int
        How many of each, without replacement; as many rows as columns by default.
    rank : int
        Rank r of the result, at most the smaller of columns and rows.
    noise : ignored
        The algorithm does not use it; accepted so that all two-cost plans are called alike.
    budget : float
        What is left after columns and rows goes into entries, uniformly at random.
    rng : int or Generator

    Returns
    -------
    LowRank
        ``left`` is U Z of shape (m, r), ``right`` is V of shape (n, r).

    Notes
    -----
    The program behind the noisyCUR paper's comparison takes the first r vectors of an unsorted eigendecomposition; here they are
    the leading ones. Columns and rows are drawn without replacement. Failed answers in columns and rows are filled with means.

    References
    ----------
    .. [XJZ15] Xu, Jin, Zhou, *CUR algorithm for partially observed matrices*, ICML 2015.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import TwoCostOracle
    >>> A = random_low_rank(40, 30, 3)
    >>> oracle = TwoCostOracle(A, entry_noise=0.0, column_noise=0.0, rng=0)
    >>> plan = cur_plus((40, 30), ew.Prices(column=8), columns=4, rank=3, budget=300, rng=0)
    >>> found = ew.play(plan, oracle)
    >>> bool(abs(found.to_dense() - A).max() < 1e-10), found.cost
    (True, 293.0)
    """
    setting = read_two_cost(shape, prices, noise, budget, "cur_plus")
    m, n = setting.m, setting.n
    rows = columns if rows is None else rows
    _check(setting, columns, rows, rank)
    draws = generator(rng)
    J, I = draws.choice(n, columns, replace=False), draws.choice(m, rows, replace=False)
    wide, tall = _lines(I, n, prices), Batch.whole_columns(J, m)
    left = budget - float(prices.charges(tall).sum()) - float(prices.charges(wide).sum())
    if left < 0:
        raise ParameterError(
            f"the budget must pay for {columns} columns and {rows} rows, {budget:g} does not; take fewer"
        )
    U, Z, V = np.zeros((m, 0)), np.zeros((0, 0)), np.zeros((n, 0))
    report = {"columns": 0, "rows": 0, "cells": 0}
    try:
        C = np.reshape((yield tall), (columns, m)).T
        report["columns"] = columns
        R = np.reshape((yield wide), (rows, n))
        report["rows"] = rows
        unit = unit_of(R)
        R = filled(in_unit(R, unit))
        U, V = _leading(filled(in_unit(C, unit_of(C))), rank), _leading(R.T, rank)
        Z = out_of_unit(
            np.linalg.pinv(U[I]) @ R @ V, unit
        )  # from the rows alone, until entries are known
        at = draws.permutation(m * n)
        i, j = np.divmod(at[: affordable(setting.entry_prices(*np.divmod(at, n)), left)], n)
        y = np.array((yield Batch.entries(i, j))) if len(i) else np.zeros(0)
        good = ~np.isnan(y)
        report["cells"] = int(good.sum())
        if good.sum() >= rank * rank:
            Z = _between(U[i[good]], V[j[good]], y[good])
        status = "finished"
    except Exhausted:
        status = "exhausted"
    check_size(U @ Z, V)
    return LowRank(U @ Z, V, status=status, report=report)


def _check(setting: TwoCost, columns: int, rows: int, rank: int) -> None:
    m, n = setting.m, setting.n
    if not 1 <= columns <= n or not 1 <= rows <= m:
        raise ParameterError(
            f"cur_plus takes 1..{n} columns and 1..{m} rows, got {columns} and {rows}"
        )
    most = min(columns, rows)
    if not 1 <= rank <= most:
        raise ParameterError(
            f"rank of cur_plus must be in 1..{most}, the smaller of columns and rows, got {rank}"
        )


def _lines(I: Indices, n: int, prices: Prices) -> Batch:
    """Return the batch of whole rows: units of their own where rows have a price, else n entries each."""
    rows, cols = np.repeat(I, n), np.tile(np.arange(n), len(I))
    if "row" not in prices.modes:
        return Batch(rows, cols, "entry")
    return Batch(rows, cols, "row", unit=np.repeat(np.arange(len(I)), n))


def _leading(X: Array, rank: int) -> Array:
    """Return the leading left singular vectors, largest first, shape (len(X), rank)."""
    return np.asarray(np.linalg.svd(X, full_matrices=False)[0][:, :rank])


def _between(U: Array, V: Array, y: Array) -> Array:
    """Return the Z (r, r) that fits entries y (t,) by least squares, given their rows of U and V, (t, r) each."""
    t, r = U.shape
    design = np.einsum("ta,tb->tab", U, V).reshape(t, r * r)
    unit = unit_of(y)
    Z = np.linalg.lstsq(design, in_unit(y, unit), rcond=None)[0].reshape(r, r)
    return out_of_unit(Z, unit)
