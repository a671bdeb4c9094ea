"""Nuclear-norm completion of noisy columns and precise rows, each held to its own noise (NNs of the noisyCUR paper)."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from entrywise.active.two_cost.setting import Noise, affordable, read_two_cost
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed


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
    sweeps: int = 300,
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
    sweeps : int
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
    if setting.column_noise is None or setting.entry_noise is None:
        raise ParameterError(
            "split_nuclear_norm must know both noises; give noise={'column': sd, 'entry': sd}"
        )
    if not 0 <= columns <= n:
        raise ParameterError(f"columns of split_nuclear_norm must be in 0..{n}, got {columns}")
    if len(factors) != 2 or not all(np.isfinite(c) and c >= 0 for c in factors):
        raise ParameterError(
            f"factors of split_nuclear_norm must be two numbers, not below 0, got {factors}"
        )
    generator = cast(np.random.Generator, rng)
    J = generator.choice(n, columns, replace=False)
    left = budget - float(setting.column_prices[J].sum())
    if left < 0:
        raise ParameterError(
            f"the budget must pay for {columns} columns, {budget:g} does not; take fewer"
        )
    Y, of = np.zeros((m, n)), np.zeros((m, n), np.int8)  # 1: seen in a column, 2: seen as an entry
    report = {"columns": 0, "cells": 0}
    try:
        if columns:
            _note(Y, of, Batch.whole_columns(J, m), (yield Batch.whole_columns(J, m)), 1)
            report["columns"] = columns
        at = generator.permutation(m * n) if scattered else _by_rows(generator.permutation(m), n)
        few = affordable(setting.entry_prices(*np.divmod(at, n)), left)
        batch = Batch.entries(*np.divmod(at[: few if scattered else few - few % n], n))
        if len(batch):
            _note(Y, of, batch, (yield batch), 2)
            report["cells"] = len(batch)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    if not of.any():
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)), status=status, report=report)
    mean = float(Y[of > 0].mean()) if center else 0.0
    radius = [
        float(np.sqrt(c * np.sum(of == mark))) * sd
        for mark, c, sd in (
            (1, factors[0], setting.column_noise),
            (2, factors[1], setting.entry_noise),
        )
    ]
    U, V, done = least_nuclear_norm(Y - mean, of, radius, sweeps)
    return LowRank(U, V, offset=mean, status=status, report={**report, "sweeps": done})


def least_nuclear_norm(
    Y: Array, of: NDArray[np.int8], radius: list[float], sweeps: int
) -> tuple[Array, Array, int]:
    """Return factors of the smallest nuclear norm within balls around what was seen, by Douglas-Rachford splitting.

    ``of`` of shape (m, n) is 0 where nothing is known and otherwise the number (from 1) of the ball an entry belongs to.
    """
    masks = [of == k + 1 for k in range(len(radius))]
    X = np.where(of > 0, Y, 0.0)
    size = float(np.linalg.norm(X))
    if size == 0.0:
        return np.zeros((len(Y), 0)), np.zeros((Y.shape[1], 0)), 0
    step = 0.1 * float(np.linalg.norm(X, 2))
    U, V = np.zeros((len(Y), 0)), np.zeros((Y.shape[1], 0))
    for sweep in range(1, sweeps + 1):
        U, V = _shrink(X, step)
        Z = U @ V.T
        W = 2 * Z - X
        for mask, r in zip(masks, radius, strict=True):
            off = W[mask] - Y[mask]
            norm = float(np.linalg.norm(off))
            if norm > r:
                W[mask] = Y[mask] + off * (r / norm)
        X = X + W - Z
        if float(np.linalg.norm(W - Z)) < 1e-4 * size:
            return U, V, sweep
    return U, V, sweeps


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
