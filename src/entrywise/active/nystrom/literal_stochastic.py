"""S-MCANS as its paper writes it: successive elimination on principal submatrices, then m1 and m2 repetitions.

It proves what it promises and costs accordingly. For work, take :func:`~entrywise.active.stochastic_nystrom`.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from entrywise.active.pairs.tally import MOST, Tally, pull
from entrywise.bounds.active_psd import constants, nystrom_queries, repetitions
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint, Prices, plan
from entrywise.results import Certificate, PSDFactor
from entrywise.types import Array, Indices, Seed, generator

STRIDE = 1.02  # rounds are tested at growing distances: fewer tests, the same union bound
SMALLEST = 1e-12  # share of the largest eigenvalue of W below which one cannot be inverted
SAFE = 1e-3  # the same where C1 and C2 are estimated from a few answers


@plan(symmetric=True, fresh=True, tolerates_failed=True)
def literal_stochastic_nystrom(
    n: int,
    prices: Prices | None = None,
    *,
    rank: int = 4,
    epsilon: float,
    delta: float = 0.05,
    theta: float | None = None,
    budget: float | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[PSDFactor]:
    r"""Complete an unknown PSD matrix of chances by S-MCANS as printed.

    .. math:: \Pr(\max_{ij} |\hat L_{ij} - L_{ij}| \le \epsilon) \ge 1 - \delta, \qquad y \sim \mathrm{Bern}(L_{ij})

    Parameters
    ----------
    n : int
        Side K of the matrix.
    prices : Prices, optional
        Price of an entry, one number.
    rank : int
        The paper's r.
    epsilon, delta : float
        With probability 1 - `delta` every entry is within `epsilon`.
    theta : float, optional
        One number in place of the constants C1 and C2; estimated from the answers otherwise, and then nothing is
        promised: the theorem takes them as known.
    budget : float, optional
        Ends it early, with the Nyström extension of what was measured by then and no promise.
    rng : int or Generator

    Returns
    -------
    PSDFactor
        ``factor`` of shape (n, k) and the chosen columns as ``pivots``.

    Notes
    -----
    A warning tells what it costs at least: millions of measurements where
    :func:`~entrywise.active.stochastic_nystrom` takes thousands.

    References
    ----------
    .. [BGN17] Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017,
       Algorithms 4.1 and 4.2, equations (3) and (4), Theorem 4.3.
    """
    if n < 1:
        raise ParameterError(f"n of literal_stochastic_nystrom must be at least 1, got {n}")
    if not 1 <= rank <= n:
        raise ParameterError(f"rank of literal_stochastic_nystrom must be in 1..{n}, got {rank}")
    if not 0 < delta < 1:
        raise ParameterError(
            f"delta of literal_stochastic_nystrom must be between 0 and 1, got {delta}"
        )
    least = nystrom_queries(n, rank, repetitions(n, rank, epsilon, delta, theta=theta))
    if resume is None:
        warnings.warn(
            f"the theorem's version needs at least {least:.2g} measurements, selection of columns not counted; "
            "stochastic_nystrom with a budget is the version that ends",
            UserWarning,
            stacklevel=2,
        )
    draws = generator(rng) if resume is None else resume.generator()
    tally = Tally(n, bounded=True)
    chosen = np.zeros(1, np.int64)  # 1
    if resume is not None:
        tally.restore(resume.arrays)
        chosen = np.array(resume.arrays["chosen"], np.int64)
    promise: tuple[Certificate, ...] = ()
    status = "finished"
    try:
        while len(chosen) < rank:  # 3
            yield Checkpoint(tally.arrays() | {"chosen": chosen}, draws)
            others = np.setdiff1d(np.arange(n), chosen)  # 2, 4
            best = yield from eliminate_submatrices(tally, chosen, others, delta / (2 * rank))  # 5
            chosen = np.append(chosen, best)  # 6
        yield Checkpoint(tally.arrays() | {"chosen": chosen}, draws)
        yield from _top_up(tally, *_grid(np.arange(n), chosen), 1)
        of = None
        if theta is None:
            C, W, _ = _estimates(tally, chosen)
            of = constants(C, _safe(W))
        m1, m2 = repetitions(n, rank, epsilon, delta, theta=theta, of=of)
        yield from _top_up(tally, *_grid(chosen, chosen), m2)  # 8
        yield from _top_up(tally, *_grid(np.arange(n), chosen), m1)  # 8
        if theta is not None:  # Theorem 4.3 takes C1 and C2 as known; estimates prove nothing
            promise = (_promise(epsilon, delta),)
    except Exhausted:
        status = "exhausted"
    C, W, measured = _estimates(tally, chosen)
    report = {"measurements": tally.asked, "forecast": float(least)}
    F = _extension(C, W) if measured else np.zeros((n, rank))
    return PSDFactor(F, chosen, certificates=promise, status=status, report=report)


def _promise(epsilon: float, delta: float) -> Certificate:
    return Certificate(
        f"largest error of an entry, with probability {1 - delta:g}",
        epsilon,
        (
            "the matrix is PSD of this rank",
            "answers are independent coins",
            "theta is at least C1 and C2 of Theorem 4.3",
        ),
        vacuous=epsilon >= 1.0,
    )


def _extension(C: Array, W: Array) -> Array:
    """Return F with F F' = C W^+ C', the Nyström extension."""
    values, vectors = np.linalg.eigh(W)
    keep = values > SMALLEST * max(float(values.max()), 1e-300)
    return np.asarray(C @ (vectors[:, keep] / np.sqrt(values[keep])))


def eliminate_submatrices(
    tally: Tally, chosen: Indices, others: Indices, delta: float
) -> Asking[int]:
    """Return the candidate whose principal submatrix has the largest smallest singular value (Algorithm 4.2).

    At n = 200 and rank 2 this takes some 1e10 coin flips; budgets end it long before.
    """
    S, arms, p, t = others, len(others), len(chosen) + 1, 0  # 1
    a, b = np.triu_indices(len(chosen))
    while len(S) > 1:  # 3
        stride = max(1, int(t * (STRIDE - 1.0)))
        index = np.column_stack([np.tile(chosen, (len(S), 1)), S])  # (arms, p)
        rows = np.concatenate([chosen[a], np.repeat(S, p)])
        cols = np.concatenate([chosen[b], index.ravel()])
        yield from pull(tally, rows, cols, np.full(len(rows), stride))  # 2, 9
        t += stride  # 8
        log = math.log(2 * p * math.pi**2 * arms * t * t / (6 * delta))  # 4
        count, total = tally.look(index[:, :, None], index[:, None, :])
        count = np.maximum(count, 1.0)
        sigma = np.linalg.svd(total / count, compute_uv=False)[:, -1]  # 5
        bernstein = 2 * log / (3 * count.min(axis=(1, 2)))
        alpha = bernstein + np.sqrt(0.5 * log * (1.0 / count).sum(axis=(1, 2)))  # 6
        best = int(np.argmax(sigma))
        S = S[sigma[best] - sigma < alpha[best] + alpha]  # 7
    return int(S[0])  # 11


def _grid(rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
    """Return rows x cols, each entry of the symmetric matrix once."""
    i, j = np.repeat(rows, len(cols)), np.tile(cols, len(rows))
    low, high = np.minimum(i, j), np.maximum(i, j)
    pairs = np.unique(np.column_stack([low, high]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _top_up(tally: Tally, rows: Indices, cols: Indices, times: int) -> Asking[None]:
    """Measure entries until each has `times` answers."""
    count, _ = tally.look(rows, cols)
    missing = np.maximum(min(times, MOST) - count.astype(np.int64), 0)  # no budget pays for more
    yield from pull(tally, rows, cols, missing)


def _estimates(tally: Tally, chosen: Indices) -> tuple[Array, Array, bool]:
    count, total = tally.look(np.arange(tally.n)[:, None], chosen[None, :])
    C = total / np.maximum(count, 1.0)
    return C, C[chosen], bool(count.any())


def _safe(W: Array) -> Array:
    """Return W with its eigenvalues no smaller than a thousandth of the largest: C1 and C2 need an inverse."""
    values, vectors = np.linalg.eigh(W)
    least = SAFE * max(float(values.max()), SAFE)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)
