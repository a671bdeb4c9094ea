"""Completion: intervals of the truth where the noise is told, and of what imputers fill in."""

from __future__ import annotations

import numpy as np

from _trust import Claims
from entrywise.estimators import LowRankImputer, SoftImputer
from entrywise.exceptions import NotIdentifiable
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank

LACKS = ("none", "half the noise", "twice the noise", "heavy tails", "a power-law spectrum")


def truth(kind, rng):
    """Return (truth, noise): low rank, and what it lacks."""
    m, n = rng.integers(30, 90, 2)
    k, noise = int(rng.integers(1, 5)), float(rng.uniform(0.1, 0.5))
    A = rng.standard_normal((m, k)) @ rng.standard_normal((k, n)) / np.sqrt(k)
    if kind == "half the noise":
        A += 0.5 * noise * rng.standard_normal(A.shape)
    elif kind == "twice the noise":
        A += 2.0 * noise * rng.standard_normal(A.shape)
    elif kind == "heavy tails":
        A += noise * rng.standard_t(4, A.shape)
    elif kind == "a power-law spectrum":
        U, V = (np.linalg.qr(rng.standard_normal((size, min(m, n))))[0] for size in (m, n))
        A = (U * np.arange(1.0, min(m, n) + 1) ** -1.2) @ V.T * np.sqrt(m * n)
    return A, noise


def truths(claims: Claims) -> None:
    """Intervals of the truth: with the noise given, with it told by repeats, and without."""
    for kind in LACKS:
        given, repeated, refused = [], [], []
        for k in range(claims.problems(60, 6)):
            rng = np.random.default_rng([claims.seed, 8, LACKS.index(kind), k])
            A, noise = truth(kind, rng)
            known = rng.random(A.shape) < rng.uniform(0.25, 0.6)
            i, j = np.nonzero(known)
            twice = rng.random(len(i)) < 0.2
            i, j = np.r_[i, i[twice]], np.r_[j, j[twice]]
            values = A[i, j] + noise * rng.standard_normal(len(i))
            seen = Observations.from_triplets(i, j, values, A.shape, duplicates="keep")
            once = Observations.from_dense(np.where(known, A + noise * rng.standard_normal(A.shape), np.nan))  # fmt: skip
            told = Observations.from_triplets(once.rows, once.cols, once.values, A.shape, noise=noise)  # fmt: skip
            for kept, source in ((given, told), (repeated, seen)):
                low, high = low_rank(source).interval(*np.nonzero(~known), 0.9, of="truth")
                kept.append(np.mean((low <= A[~known]) & (A[~known] <= high)))
            try:
                low_rank(once).interval(0, 0, of="truth")
                refused.append(False)
            except NotIdentifiable:
                refused.append(True)
        for words, kept in (("noise given", given), ("20 % repeated", repeated)):
            claims.share("truth", f"90 % intervals cover, {words}, lack of fit: {kind}", kept, 0.86, 0.94)  # fmt: skip
        claims.share("truth", f"refused without noise, lack of fit: {kind}", refused, low=1)


TABLES = ("normal", "heavy tails", "skewed", "whole numbers", "columns unlike each other")


def table(kind, rng):
    """Return the rows of a table with latent factors and one kind of noise."""
    m, n, k = int(rng.integers(150, 500)), int(rng.integers(8, 20)), int(rng.integers(1, 4))
    A = rng.standard_normal((m, k)) @ rng.standard_normal((k, n))
    if kind == "heavy tails":
        return A + 0.5 * rng.standard_t(2.5, A.shape)
    if kind == "skewed":
        return np.exp(0.6 * (A + 0.5 * rng.standard_normal(A.shape)))
    if kind == "whole numbers":
        return rng.poisson(np.exp(0.5 * A)).astype(float)
    size = rng.uniform(0.05, 2.0, n) if kind == "columns unlike each other" else 0.5
    return A + size * rng.standard_normal(A.shape)


def imputers(claims: Claims) -> None:
    """Gaps of rows that were in the fit, and of rows that were not."""
    levels = {0.9: 0.02, 0.5: 0.03}  # and how far off they may be
    for name, make in (("LowRankImputer", LowRankImputer), ("SoftImputer", SoftImputer)):
        covered = {(where, level): [] for level in levels for where in ("fitted rows", "new rows")}
        for k in range(claims.problems(40, 5)):
            rng = np.random.default_rng([claims.seed, 9, k])
            A = table(TABLES[k % len(TABLES)], rng)
            X = np.where(rng.random(A.shape) < rng.uniform(0.6, 0.9), A, np.nan)
            half = 2 * len(X) // 3
            imputer = make().fit(X[:half])
            parts = {"fitted rows": slice(half), "new rows": slice(half, None)}
            for (where, level), kept in covered.items():
                part = parts[where]
                low, high = imputer.interval(X[part], level)
                gaps = np.isnan(X[part])
                kept.append(np.mean(((low <= A[part]) & (A[part] <= high))[gaps]))
        for (where, level), kept in covered.items():
            bars = level - levels[level], level + levels[level]
            claims.share("imputers", f"{name}, {where}: {100 * level:g} % intervals cover", kept, *np.round(bars, 3))  # fmt: skip
