"""S-MCANS as its paper writes it: successive elimination on principal submatrices, then m1 and m2 repetitions.

It proves what it promises and costs accordingly; :func:`~entrywise.active.stochastic_nystrom` runs it when
``epsilon`` is given.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from entrywise.active.pairs.tally import Tally, pull
from entrywise.bounds.active_psd import constants, nystrom_queries, repetitions
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Checkpoint
from entrywise.results import Certificate, PSDFactor
from entrywise.types import Array, Indices

STRIDE = 1.02  # rounds are tested at growing distances: fewer tests, the same union bound


def literal(
    n: int,
    rank: int,
    epsilon: float,
    delta: float,
    theta: float | None,
    noise: float | None,
    ask_diagonal: bool,
    rng: np.random.Generator,
    resume: Checkpoint | None,
) -> Asking[PSDFactor]:
    """Run Algorithm 4.1 with m1, m2 of equations (3) and (4); its lines in the margin."""
    if noise is not None or not ask_diagonal:
        raise ParameterError(
            "epsilon is for coins with a diagonal that can be asked; leave noise and ask_diagonal alone"
        )
    if rank > n:
        raise ParameterError(f"rank must be in 1..{n}, got {rank}")
    least = nystrom_queries(n, rank, repetitions(n, rank, epsilon, delta, theta=theta))
    if resume is None:
        warnings.warn(
            f"the theorem's version needs at least {least:.2g} measurements, selection of columns not counted; "
            "give budget= and no epsilon for the version that ends",
            UserWarning,
            stacklevel=2,
        )
    tally = Tally(n, bounded=True)
    chosen = np.zeros(1, np.int64)  # 1
    if resume is not None:
        tally.restore(resume.arrays)
        chosen = np.array(resume.arrays["chosen"], np.int64)
    assumes = (
        "the matrix is PSD of this rank",
        "answers are independent coins",
        "theta is large enough",
    )
    promise: tuple[Certificate, ...] = ()
    status = "finished"
    try:
        while len(chosen) < rank:  # 3
            yield Checkpoint(tally.arrays() | {"chosen": chosen}, rng)
            others = np.setdiff1d(np.arange(n), chosen)
            best = yield from eliminate_submatrices(tally, chosen, others, delta / (2 * rank))  # 5
            chosen = np.append(chosen, best)  # 6
        yield Checkpoint(tally.arrays() | {"chosen": chosen}, rng)
        yield from _top_up(tally, *_grid(np.arange(n), chosen), 1)
        of = None
        if theta is None:
            C, W, _ = _estimates(tally, chosen)
            of = constants(C, _safe(W))
        m1, m2 = repetitions(n, rank, epsilon, delta, theta=theta, of=of)
        yield from _top_up(tally, *_grid(chosen, chosen), m2)  # 8
        yield from _top_up(tally, *_grid(np.arange(n), chosen), m1)
        words = f"largest error of an entry, with probability {1 - delta:g}"
        promise = (Certificate(words, epsilon, assumes, (), vacuous=epsilon >= 1.0),)
    except Exhausted:
        status = "exhausted"
    C, W, measured = _estimates(tally, chosen)
    if not measured:
        return PSDFactor(
            np.zeros((n, rank)), chosen, status=status, report={"measurements": tally.asked}
        )
    values, vectors = np.linalg.eigh(W)
    keep = values > 1e-12 * max(float(values.max()), 1e-300)
    F = C @ (vectors[:, keep] / np.sqrt(values[keep]))
    report = {"measurements": tally.asked, "forecast": float(least)}
    return PSDFactor(F, chosen, certificates=promise, status=status, report=report)


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
        rows = np.concatenate([chosen[a], np.repeat(S, p)])
        cols = np.concatenate(
            [chosen[b], np.column_stack([np.tile(chosen, (len(S), 1)), S]).ravel()]
        )
        yield from pull(tally, rows, cols, np.full(len(rows), stride))  # 2, 9
        t += stride
        log = math.log(2 * p * math.pi**2 * arms * t * t / (6 * delta))  # 4
        index = np.column_stack([np.tile(chosen, (len(S), 1)), S])  # (arms, p)
        count, total = tally.look(index[:, :, None], index[:, None, :])
        count = np.maximum(count, 1.0)
        sigma = np.linalg.svd(total / count, compute_uv=False)[:, -1]  # 5
        alpha = 2 * log / (3 * count.min(axis=(1, 2))) + np.sqrt(
            0.5 * log * (1.0 / count).sum(axis=(1, 2))
        )  # 6
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
    missing = np.maximum(times - count.astype(np.int64), 0)
    yield from pull(tally, rows, cols, missing)


def _estimates(tally: Tally, chosen: Indices) -> tuple[Array, Array, bool]:
    count, total = tally.look(np.arange(tally.n)[:, None], chosen[None, :])
    C = total / np.maximum(count, 1.0)
    return C, C[chosen], bool(count.any())


def _safe(W: Array) -> Array:
    """Return W with its eigenvalues no smaller than a thousandth of the largest: C1 and C2 need an inverse."""
    values, vectors = np.linalg.eigh(W)
    return np.asarray(
        (vectors * np.maximum(values, 1e-3 * max(float(values.max()), 1e-3))) @ vectors.T
    )
