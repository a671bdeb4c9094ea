"""Rank-one tables under four kinds of noise: intervals for the truth, for answers, and the expected error."""

from __future__ import annotations

import numpy as np

from _trust import Claims
from entrywise.observations import Observations
from entrywise.passive import rank_one

KINDS = ("of one size", "of counts", "proportional", "multiplicative")


def table(kind, rng):
    """Return (truth, a draw of answers to all entries, another draw)."""
    m, n = rng.integers(15, 60, 2)
    spread = rng.uniform(0.3, 1.0)
    A = np.outer(np.exp(rng.normal(0, spread, m)), np.exp(rng.normal(0, spread, n)))
    size = rng.uniform(0.03, 0.25)
    if kind == "of counts":
        A *= rng.uniform(10, 60) / np.median(A)
    answers = []
    for _ in range(2):
        e = rng.standard_normal(A.shape)
        if kind == "of one size":
            answers.append(A + size * np.median(A) * e)
        elif kind == "of counts":
            answers.append(rng.poisson(A).astype(float))
        elif kind == "proportional":
            answers.append(A * (1 + size * e))
        else:
            answers.append(A * np.exp(2 * size * e))
    return A, *answers


def tables(claims: Claims) -> None:
    for kind in KINDS:
        truth, answer, expected, actual, named = [], [], [], [], []
        for k in range(claims.problems(150, 12)):
            rng = np.random.default_rng([claims.seed, 7, KINDS.index(kind), k])
            A, seen, fresh = table(kind, rng)
            known = rng.random(A.shape) < rng.uniform(0.15, 0.6)
            found = rank_one(Observations.from_dense(np.where(known, seen, np.nan)))
            every = tuple(np.indices(A.shape))
            can = found.identifiable(*every)
            for of, kept, right in (("truth", truth, A), ("answer", answer, fresh)):
                low, high = found.interval(*every, 0.9, of=of)
                kept.append(np.mean(((low <= right) & (right <= high))[can]))
            expected.append(found.certificates[1].value ** 2 / np.sum(A[can] ** 2))
            actual.append(np.sum((found.to_dense() - A)[can] ** 2) / np.sum(A[can] ** 2))
            named.append(found.report["noise_law"] == kind)
        claims.share("rank one", f"90 % intervals of the truth cover, noise {kind}", truth, 0.87, 0.93)  # fmt: skip
        claims.share("rank one", f"90 % intervals of answers cover, noise {kind}", answer, 0.87, 0.93)  # fmt: skip
        ratio = np.sqrt(np.mean(actual) / np.mean(expected))
        claims.figure("rank one", f"error over what was expected, noise {kind}", ratio, len(actual), high=1.25)  # fmt: skip
        claims.share("rank one", f"law named rightly, noise {kind}", named)
