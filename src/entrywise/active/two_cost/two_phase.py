"""Two-phase sampling: uniform entries estimate the leverage scores by which the rest are drawn."""

from __future__ import annotations

from typing import cast

import numpy as np

from entrywise.active.two_cost.setting import affordable
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.observations import Observations
from entrywise.passive.nuclear_norm import nuclear_norm
from entrywise.passive.soft_impute import soft_impute
from entrywise.queries import Asking, Batch, Prices, plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed

WIDE = 300  # smaller side beyond which a given penalty is solved from factors instead of dense SVDs


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
    sweeps: int = 2000,
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
    sweeps : int
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
    if m < 1 or n < 1 or not 1 <= rank <= min(m, n):
        raise ParameterError(
            f"two_phase takes a shape above 0 and a rank in 1..min(shape), got {shape} and {rank}"
        )
    if not 0 < share <= 1:
        raise ParameterError(f"share of two_phase must be above 0 and at most 1, got {share}")
    if not (np.isfinite(budget) and budget > 0):
        raise ParameterError(f"budget of two_phase must be finite and above 0, got {budget}")
    generator = cast(np.random.Generator, rng)
    prices = Prices() if prices is None else prices
    order = generator.permutation(m * n)
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
        second = _draw(_scores(at, y, (m, n), rank), first, generator)
        second = second[: affordable(prices.of("entry", *np.divmod(second, n)), left)]
        if len(second):
            answers = yield Batch.entries(*np.divmod(second, n))
            at, y = _more(at, y, second, answers)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    if len(y) < 2:
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)), offset=float(y.sum()), status=status)
    mean = float(y.mean()) if center else 0.0
    seen = Observations.from_triplets(*np.divmod(at, n), y - mean, (m, n))
    found = None
    if np.any(y != mean):
        if penalty is None or min(m, n) <= WIDE:
            found = nuclear_norm(seen, penalty=penalty, max_sweeps=sweeps, tol=1e-5)
        else:  # the same minimiser without a dense SVD a step
            found = soft_impute(seen, penalty, center="none", max_sweeps=sweeps)
    U, V = (np.zeros((m, 0)), np.zeros((n, 0))) if found is None else (found.left, found.right)
    report = {
        "first": len(first),
        "cells": len(y),
        "penalty": None if found is None else found.report["penalty"],
    }
    return LowRank(U, V, offset=mean, status=status, report=report)


def _more(at: Indices, y: Array, asked: Indices, answers: Array) -> tuple[Indices, Array]:
    good = ~np.isnan(answers)
    return np.concatenate([at, asked[good]]), np.concatenate([y, answers[good]])


def _scores(at: Indices, y: Array, shape: tuple[int, int], rank: int) -> Array:
    """Return what the probability of each entry is proportional to, shape (m n,)."""
    X = np.zeros(shape)
    X.ravel()[at] = y
    U, _, Vt = np.linalg.svd(X, full_matrices=False)
    rows, cols = np.sum(U[:, :rank] ** 2, axis=1), np.sum(Vt[:rank] ** 2, axis=0)
    return np.asarray(rows[:, None] + cols[None, :]).ravel()


def _draw(scores: Array, taken: Indices, rng: np.random.Generator) -> Indices:
    """Return all other entries in an order drawn by their scores, without replacement (exponential races)."""
    rate = np.maximum(scores, 1e-12 * float(scores.max(initial=0.0)) + 1e-300)
    time = rng.exponential(size=len(rate)) / rate
    time[taken] = np.inf
    return np.argsort(time, kind="stable")[: len(rate) - len(taken)].astype(np.int64)
