"""Nuclear-norm completion of noisy columns and precise rows, each held to its own noise (NNs of the noisyCUR paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrywise.active.two_cost.constants import SPLIT_STEP, SPLIT_TOL
from entrywise.active.two_cost.setting import (
    Noise,
    TwoCost,
    affordable,
    check_size,
    read_two_cost,
)
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.units import in_unit, out_of_unit, unit_of
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed, generator


@plan(tolerates_failed=True)
def split_nuclear_norm(
    shape: tuple[int, int],
    prices: Prices,
    *,
    columns: int,
    noise: Noise,
    budget: float,
    factors: tuple[float, float] = (1.0, 1.0),
    scattered: bool = False,
    center: bool = True,
    max_sweeps: int = 300,
    rng: Seed = None,
) -> Asking[LowRank]:
    r"""Complete a matrix from noisy columns and precise rows by the smallest nuclear norm that fits both.

    .. math:: \min \|Z\|_* \quad \text{with} \quad \|P_{\Omega_c}(Z - Y)\|_F^2 \le C_1 |\Omega_c| \sigma_c^2, \quad
       \|P_{\Omega_e}(Z - Y)\|_F^2 \le C_2 |\Omega_e| \sigma_e^2

    Parameters
    ----------
    shape : (m, n)
    prices : Prices
    columns : int
        d, columns drawn uniformly without replacement; the rest of the money buys precise rows.
    noise : mapping
        Standard deviations ``{"column": sd, "entry": sd}``; both must be known.
    budget : float
    factors : (float, float)
        :math:`C_1` and :math:`C_2`.
    scattered : bool
        Scatter the precise entries over the matrix instead of buying whole rows.
    center : bool
        Subtract the mean of what was seen before completing. The paper does not.
    max_sweeps : int
        Douglas-Rachford steps, one SVD each; they end early when the iterate stands still.
    rng : int or Generator

    Notes
    -----
    Solved with its two constraints as printed; the program behind the paper penalises with one weight instead. An entry that
    both instruments saw counts as precise alone.

    References
    ----------
    .. [HGM21] Hu, Gittens, Magdon-Ismail, *NoisyCUR: an algorithm for two-cost budgeted matrix completion*, eq. (5).

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import TwoCostOracle
    >>> oracle = TwoCostOracle(random_low_rank(40, 30, 3), entry_noise=0.1, column_noise=0.2, rng=0)
    >>> noise = {"column": 0.2, "entry": 0.1}
    >>> plan = split_nuclear_norm((40, 30), ew.Prices(column=8), columns=15, noise=noise, budget=300, rng=0)
    >>> found = ew.play(plan, oracle)
    >>> found.report["cells"], found.cost
    (180, 300.0)
    """
    setting = read_two_cost(shape, prices, noise, budget, "split_nuclear_norm")
    m, n = setting.m, setting.n
    noises = _check(setting, columns, factors)
    draws = generator(rng)
    J = draws.choice(n, columns, replace=False)
    left = budget - float(setting.column_prices[J].sum())
    if left < 0:
        raise ParameterError(
            f"the budget must pay for {columns} columns, {budget:g} does not; take fewer"
        )
    Y, of = np.zeros((m, n)), np.zeros((m, n), np.int8)  # 1: seen in a column, 2: seen as an entry
    report = {"columns": 0, "cells": 0}
    try:
        if columns:
            batch = Batch.whole_columns(J, m)
            _note(Y, of, batch, (yield batch), 1)
            report["columns"] = columns
        batch = _precise(setting, left, scattered, draws)
        if len(batch):
            _note(Y, of, batch, (yield batch), 2)
            report["cells"] = len(batch)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    if not of.any():
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)), status=status, report=report)
    unit = unit_of(Y)
    Y = in_unit(Y, unit)
    mean = float(Y[of > 0].mean()) if center else 0.0
    radius = [
        float(np.sqrt(factor * np.sum(of == mark))) * (sd / unit)
        for mark, factor, sd in zip((1, 2), factors, noises, strict=True)
    ]
    U, V, report["sweeps"] = least_nuclear_norm(Y - mean, of, radius, max_sweeps)
    U = out_of_unit(U, unit)
    check_size(U, V)
    return LowRank(U, V, offset=mean * unit, status=status, report=report)


def _check(setting: TwoCost, columns: int, factors: tuple[float, float]) -> tuple[float, float]:
    """Return the noises of columns and entries, or refuse what cannot be solved."""
    if setting.column_noise is None or setting.entry_noise is None:
        raise ParameterError(
            "split_nuclear_norm must know both noises; give noise={'column': sd, 'entry': sd}"
        )
    if not 0 <= columns <= setting.n:
        raise ParameterError(
            f"columns of split_nuclear_norm must be in 0..{setting.n}, got {columns}"
        )
    if len(factors) != 2 or not all(np.isfinite(c) and c >= 0 for c in factors):
        raise ParameterError(
            f"factors of split_nuclear_norm must be two numbers, not below 0, got {factors}"
        )
    return setting.column_noise, setting.entry_noise


def _precise(setting: TwoCost, money: float, scattered: bool, rng: np.random.Generator) -> Batch:
    """Return the precise entries that `money` pays for: whole rows, or scattered ones."""
    m, n = setting.m, setting.n
    at = rng.permutation(m * n) if scattered else _by_rows(rng.permutation(m), n)
    few = affordable(setting.entry_prices(*np.divmod(at, n)), money)
    whole = few if scattered else few - few % n
    return Batch.entries(*np.divmod(at[:whole], n))


def least_nuclear_norm(
    Y: Array, of: NDArray[np.int8], radius: list[float], max_sweeps: int
) -> tuple[Array, Array, int]:
    """Return factors of the smallest nuclear norm within balls around what was seen, by Douglas-Rachford splitting.

    ``of`` of shape (m, n) is 0 where nothing is known and otherwise the number (from 1) of the ball an entry belongs to.
    """
    masks = [of == k + 1 for k in range(len(radius))]
    X = np.where(of > 0, Y, 0.0)
    size = float(np.linalg.norm(X))
    if size == 0.0:
        return np.zeros((len(Y), 0)), np.zeros((Y.shape[1], 0)), 0
    step = SPLIT_STEP * float(np.linalg.norm(X, 2))
    U, V = np.zeros((len(Y), 0)), np.zeros((Y.shape[1], 0))
    for sweep in range(1, max_sweeps + 1):
        U, V = _shrink(X, step)
        Z = U @ V.T
        W = 2 * Z - X
        for mask, r in zip(masks, radius, strict=True):
            off = W[mask] - Y[mask]
            norm = float(np.linalg.norm(off))
            if norm > r:
                W[mask] = Y[mask] + off * (r / norm)
        X = X + W - Z
        if float(np.linalg.norm(W - Z)) < SPLIT_TOL * size:
            return U, V, sweep
    return U, V, max_sweeps


def _shrink(X: Array, by: float) -> tuple[Array, Array]:
    """Return factors of X with its singular values lowered by `by`, through the Gram matrix of the short side."""
    if X.shape[0] < X.shape[1]:
        V, U = _shrink(X.T, by)
        return U, V
    values, Q = np.linalg.eigh(X.T @ X)
    s = np.sqrt(np.maximum(values, 0.0))
    keep = s > by
    Q, s = Q[:, keep], s[keep]
    return X @ (Q * ((s - by) / s)), Q


def _by_rows(rows: Indices, n: int) -> Indices:
    return np.asarray((rows[:, None] * n + np.arange(n)).ravel())


def _note(Y: Array, of: NDArray[np.int8], batch: Batch, answers: Array, mark: int) -> None:
    good = ~np.isnan(answers)
    Y[batch.rows[good], batch.cols[good]] = answers[good]
    of[batch.rows[good], batch.cols[good]] = mark
