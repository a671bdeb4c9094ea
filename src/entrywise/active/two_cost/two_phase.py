"""Two-phase sampling: uniform entries estimate the leverage scores by which the rest are drawn."""

from __future__ import annotations

import numpy as np

from entrywise.active.two_cost.constants import DENSE_SIDE, LEAST_RATE, NUCLEAR_GAP, TINY
from entrywise.active.two_cost.setting import affordable, check_size
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.units import in_unit, out_of_unit, unit_of
from entrywise.observations import Observations
from entrywise.passive.nuclear_norm import nuclear_norm
from entrywise.passive.soft_impute import soft_impute
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed, generator


@plan(tolerates_failed=True)
def two_phase(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float,
    rank: int,
    share: float = 0.5,
    penalty: float | None = None,
    center: bool = True,
    max_sweeps: int = 2000,
    rng: Seed = None,
) -> Asking[LowRank]:
    r"""Complete a matrix by nuclear-norm minimisation from entries drawn by estimated leverage scores.

    Entry (i, j) of the second phase is drawn with probability proportional to
    :math:`\hat\mu_i r / m + \hat\nu_j r / n`, the row and column leverage scores of the best rank-r approximation of
    what the first phase saw.

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
        Of an ``entry``; one each by default.
    budget : float
    rank : int
        Rank r at which the leverage scores are taken.
    share : float
        Share of the money for the first phase; 1 is plain nuclear-norm completion of uniform entries (NNa of the
        noisyCUR paper).
    penalty : float, optional
        Penalty of the nuclear norm; chosen on held-out entries by default.
    center : bool
        Subtract the mean before completing. The paper does not.
    max_sweeps : int
        Most SVDs of the nuclear-norm solver.
    rng : int or Generator

    Notes
    -----
    Both leverage scores are used, and the entries of both phases; the program behind the noisyCUR paper's comparison uses
    neither. No entry is drawn twice.

    References
    ----------
    .. [CBSW14] Chen, Bhojanapalli, Sanghavi, Ward, *Coherent matrix completion*, ICML 2014, Algorithm 1.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_low_rank
    >>> from entrywise.oracles import MatrixOracle
    >>> A = random_low_rank(30, 20, 2)
    >>> found = ew.play(two_phase((30, 20), budget=360, rank=2, rng=0), MatrixOracle(A))
    >>> found.cost, bool(np.linalg.norm(found.to_dense() - A) < 0.2 * np.linalg.norm(A))
    (360.0, True)
    """
    m, n = (int(x) for x in shape)
    _check(m, n, rank, share, budget)
    draws = generator(rng)
    prices = Prices() if prices is None else prices
    order = draws.permutation(m * n)
    cost = prices.of("entry", *np.divmod(order, n))
    first = order[: affordable(cost, share * budget)]
    if not len(first):
        raise ParameterError(
            f"budget of two_phase must pay for one entry in its first phase, got {budget:g}"
        )
    at, y = np.zeros(0, np.int64), np.zeros(0)
    try:
        answers = yield Batch.entries(*np.divmod(first, n))
        at, y = _more(at, y, first, answers)
        left = budget - float(cost[: len(first)].sum())
        second = np.zeros(0, np.int64)
        others = cost[len(first) :]
        if len(others) and affordable(others.min(keepdims=True), left):
            second = _draw(_scores(at, y, (m, n), rank), first, draws)
            second = second[: affordable(prices.of("entry", *np.divmod(second, n)), left)]
        if len(second):
            answers = yield Batch.entries(*np.divmod(second, n))
            at, y = _more(at, y, second, answers)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    if len(y) < 2:
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)), offset=float(y.sum()), status=status)
    unit = unit_of(y)
    y = in_unit(y, unit)
    mean = float(y.mean()) if center else 0.0
    found = None
    if np.any(y != mean):
        seen = Observations.from_triplets(*np.divmod(at, n), y - mean, (m, n))
        found = _completed(seen, None if penalty is None else penalty / unit, max_sweeps)
    report = {"first": len(first), "cells": len(y), "penalty": None}
    U, V = np.zeros((m, 0)), np.zeros((n, 0))
    if found is not None:
        U, V = out_of_unit(found.left, unit), found.right
        report["penalty"] = found.report["penalty"] * unit
    check_size(U, V)
    return LowRank(U, V, offset=mean * unit, status=status, report=report)


def _check(m: int, n: int, rank: int, share: float, budget: float) -> None:
    if m < 1 or n < 1 or not 1 <= rank <= min(m, n):
        raise ParameterError(
            f"two_phase takes a shape above 0 and a rank in 1..min(shape), got {(m, n)} and {rank}"
        )
    if not 0 < share <= 1:
        raise ParameterError(f"share of two_phase must be above 0 and at most 1, got {share}")
    if not (np.isfinite(budget) and budget > 0):
        raise ParameterError(f"budget of two_phase must be finite and above 0, got {budget}")


def _completed(seen: Observations, penalty: float | None, max_sweeps: int) -> LowRank:
    """Return the completion of smallest nuclear norm; from factors where a penalty is given and the matrix is wide."""
    if penalty is None or min(seen.shape) <= DENSE_SIDE:
        return nuclear_norm(seen, penalty=penalty, max_sweeps=max_sweeps, tol=NUCLEAR_GAP)
    # the same minimiser without a dense SVD a step
    return soft_impute(seen, penalty, center="none", max_sweeps=max_sweeps)


def _more(at: Indices, y: Array, asked: Indices, answers: Array) -> tuple[Indices, Array]:
    good = ~np.isnan(answers)
    return np.concatenate([at, asked[good]]), np.concatenate([y, answers[good]])


def _scores(at: Indices, y: Array, shape: tuple[int, int], rank: int) -> Array:
    """Return what the probability of each entry is proportional to, shape (m n,)."""
    X = np.zeros(shape)
    X.ravel()[at] = y / unit_of(y)
    U, _, Vt = np.linalg.svd(X, full_matrices=False)
    rows, cols = np.sum(U[:, :rank] ** 2, axis=1), np.sum(Vt[:rank] ** 2, axis=0)
    return np.asarray(rows[:, None] + cols[None, :]).ravel()


def _draw(scores: Array, taken: Indices, rng: np.random.Generator) -> Indices:
    """Return all other entries in an order drawn by their scores, without replacement (exponential races)."""
    rate = np.maximum(scores, LEAST_RATE * float(scores.max(initial=0.0)) + TINY)
    time = rng.exponential(size=len(rate)) / rate
    time[taken] = np.inf
    return np.argsort(time, kind="stable")[: len(rate) - len(taken)].astype(np.int64)
