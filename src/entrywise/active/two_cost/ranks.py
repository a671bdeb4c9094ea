"""How many directions there are: what the singular values of a few columns, or of a block of entries, say of the rank.

For X = sqrt(t/k) U V' + E with Gaussian U (m, k), V (d, k) and noise E of known variance, every rotation of the rows or
columns of X is as likely as X, so its singular values are all that it tells of k. Their likelihood has no closed form
and is simulated for each k: given V the smaller Gram matrix of X is Wishart, a small triangular matrix to draw, and
the logarithms of its eigenvalues are nearly Gaussian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from entrywise.active.two_cost.constants import (
    ABOVE_NOISE,
    DRAWS,
    LEAST_TRIED,
    MANY_COLUMNS,
    MANY_LINES,
    MOST_DIRECTIONS,
    NEARLY_ALL,
    TAILS,
    UNLIKELY,
    WEAKEST_SIGNAL,
)
from entrywise.types import Array, Indices

Piece = tuple[Array, float]  # a part of the matrix as it was seen, and the variance of its noise


@dataclass(frozen=True)
class Ranks:
    """Ranks that are possible, shape (p,), and their probabilities."""

    values: Indices
    weights: Array

    @classmethod
    def equally(cls, *values: int) -> Ranks:
        """Return ranks of equal probability."""
        return cls(np.array(values), np.full(len(values), 1 / len(values)))


# what is believed of a matrix of which nothing was seen
BEFORE = Ranks.equally(*range(2, LEAST_TRIED + 1))


def estimate_rank(C: Array, noise: float) -> tuple[int, float]:
    """Return the number of directions in noisy columns C (m, d), and the noise variance that the others show.

    Singular values above what noise of standard deviation `noise` can reach count; when that would be nearly
    all of many, the noise is taken from their median instead (the matrix is not of low rank).
    """
    m, d = C.shape
    s = _singular_values(C, 1e-4 * noise)
    if not len(s) or s[0] <= 0:
        return 1, 0.0
    floor = s[0] * max(m, d) * np.finfo(float).eps
    from_noise = noise * ABOVE_NOISE * (math.sqrt(m) + math.sqrt(d))
    k = int(np.sum(s > max(from_noise, floor)))
    if k <= MOST_DIRECTIONS * min(m, d) or d < MANY_COLUMNS:
        return max(1, k), 0.0
    k = max(1, int(np.sum(s > _median_threshold(m, d) * np.median(s))))
    lack = float(np.sum(s[k:] ** 2)) / (m * d) - noise**2
    return k, max(0.0, lack)


def _median_threshold(m: int, d: int) -> float:
    """Return what the median singular value of noise is multiplied by to cut it off (Gavish and Donoho 2014)."""
    b = min(m, d) / max(m, d)
    return 0.56 * b**3 - 0.95 * b**2 + 1.82 * b + 1.43


def believed_ranks(*pieces: Piece) -> Ranks:
    """Return the ranks that independent pieces of a matrix leave possible, each with the variance of its noise.

    A rank of one is taken for two: a matrix that is thought too simple costs more than one thought too rich.
    """
    if not pieces:
        return BEFORE
    lines, rank = max(
        (min(X.shape), estimate_rank(X, math.sqrt(variance))[0]) for X, variance in pieces
    )
    if lines > MANY_LINES:
        rank = max(rank, 2)
        one_more = rank > NEARLY_ALL * lines
        return Ranks.equally(*range(rank, rank + 1 + one_more))
    most = max(LEAST_TRIED, 2 * lines)
    evidence = np.sum([rank_evidence(X, variance, most) for X, variance in pieces], axis=0)
    evidence[0] = -np.inf
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    kept = np.flatnonzero(weights > UNLIKELY)
    return Ranks(1 + kept, weights[kept] / weights[kept].sum())


def rank_evidence(X: Array, variance: float, most: int) -> Array:
    """Return the log-likelihood of the ranks 1..most, up to a constant, from X (m, d) with noise of this variance.

    A mean says nothing of the rank and is taken out, that of every line along the longer side, which then is as if it were
    one shorter. The simulated matrices have the size of signal that X has; they come from a stream of their own, so that
    the same X always says the same. To an exact X a little noise is added, lest directions that are not there differ in round-off.
    """
    X = X if X.shape[0] >= X.shape[1] else X.T
    largest = float(np.abs(X).max())
    X = X - X.mean(axis=0)
    p, q = sorted((X.shape[0] - 1, X.shape[1]))
    if p == 0 or float(np.abs(X).max()) <= 1e-14 * largest:
        return np.zeros(most)
    size = float(np.sum(X**2)) / (p * q)
    rng = np.random.default_rng(0)
    least = 1e-9 * size
    if variance < least:
        noise = rng.standard_normal(X.shape)
        X, variance = X + math.sqrt(least) * (noise - noise.mean(axis=0)), least
    signal = max(size - variance, WEAKEST_SIGNAL * size)
    seen = np.log(_singular_values(X, math.sqrt(variance))[:p] ** 2 / q)
    T = _wishart_roots(p, q, rng)
    V = rng.standard_normal((DRAWS, p, most))
    G = np.zeros((DRAWS, p, p))
    found = np.zeros(most)
    for k in range(most):
        G += V[:, :, k, None] * V[:, None, :, k]
        scale = p * signal / np.trace(G, axis1=1, axis2=2)[:, None, None]
        root = np.linalg.cholesky(scale * G + variance * np.eye(p)) @ T
        squares = np.linalg.eigvalsh(root @ root.transpose(0, 2, 1))[:, ::-1]
        drawn = np.log(np.maximum(squares / q, 1e-6 * variance))
        found[k] = _log_density(seen, drawn)
    return found


def _wishart_roots(p: int, q: int, rng: np.random.Generator) -> Array:
    """Return triangular roots of Wishart matrices of side p with q degrees of freedom, shape (DRAWS, p, p)."""
    T = np.tril(rng.standard_normal((DRAWS, p, p)), -1)
    at = np.arange(p)
    T[:, at, at] = np.sqrt(rng.chisquare(q - at, (DRAWS, p)))
    return T


def _log_density(x: Array, drawn: Array) -> float:
    """Return the logarithm of Student's density at x (p,) with the mean and the spread of draws (DRAWS, p)."""
    p = len(x)
    spread = np.cov(drawn, rowvar=False).reshape(p, p) + 1e-4 * np.eye(p)
    off = x - drawn.mean(axis=0)
    far = float(off @ np.linalg.solve(spread, off))
    size = float(np.linalg.slogdet(spread)[1])
    return -0.5 * size - 0.5 * (TAILS + p) * math.log1p(far / TAILS)


def _singular_values(X: Array, small: float) -> Array:
    """Return the singular values of X, largest first; those far below `small` need not be exact."""
    if small < 1e-6 * float(np.abs(X).max(initial=0.0)):
        return np.asarray(np.linalg.svd(X, compute_uv=False))
    G = X.T @ X if X.shape[0] > X.shape[1] else X @ X.T
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(G)[::-1], 1e-12 * small**2)))
