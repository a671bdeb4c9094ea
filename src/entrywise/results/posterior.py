"""Posterior arithmetic on factors: the variance of an entry, and a new line folded in. numpy alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from entrywise.exceptions import DataError
from entrywise.types import Array, Indices

_BLOCK = 1 << 15  # entries handled at once


def entry_variance(
    U: Array, V: Array, row_cov: Array, col_cov: Array, i: Indices, j: Indices
) -> Array:
    """Return the variance of ``u_i . v_j + b_i + c_j``, rows and columns independent, shape of i and j."""
    k = U.shape[1]
    flat_i, flat_j = i.ravel(), j.ravel()
    found = np.empty(len(flat_i))
    for start in range(0, len(flat_i), _BLOCK):
        a, b = flat_i[start : start + _BLOCK], flat_j[start : start + _BLOCK]
        Cu, Cv = row_cov[a], col_cov[b]
        u, v = np.ones((len(a), k + 1)), np.ones((len(a), k + 1))
        u[:, :k], v[:, :k] = U[a], V[b]
        found[start : start + _BLOCK] = (
            np.einsum("ta,ta->t", np.einsum("tab,tb->ta", Cu, v), v)
            + np.einsum("ta,ta->t", np.einsum("tab,tb->ta", Cv, u), u)
            + np.einsum("tab,tab->t", Cu[:, :k, :k], Cv[:, :k, :k])
        )
    return np.maximum(found, 0.0).reshape(i.shape)


def fold(
    pointer: Indices,
    other: Indices,
    residual: Array,
    variance: Array,
    V: Array,
    col_cov: Array | None,
    prior_mean: Array,
    prior_cov: Array,
) -> tuple[Array, Array]:
    """Return the posterior mean (r, q) and covariance (r, q, q) of r new lines.

    Line i has observations ``pointer[i]..pointer[i+1]`` of columns `other`; `residual` is the value less
    everything that is not the line's own, `variance` its noise and lack of fit.
    """
    r, q = len(pointer) - 1, len(prior_mean)
    k = q - 1
    P0 = np.linalg.inv(prior_cov)
    P0 = 0.5 * (P0 + P0.T)
    mean, cov = np.empty((r, q)), np.empty((r, q, q))
    for i in range(r):
        at = slice(pointer[i], pointer[i + 1])
        j, w = other[at], 1.0 / variance[at]
        a = np.ones((len(j), q))
        a[:, :k] = V[j]
        G = (a * w[:, None]).T @ a
        h = a.T @ (w * residual[at])
        if col_cov is not None:
            C = np.einsum("t,tab->ab", w, col_cov[j])
            G[:k, :k] += C[:k, :k]
            h[:k] -= C[:k, k]
        cov[i] = np.linalg.inv(G + P0)
        cov[i] = 0.5 * (cov[i] + cov[i].T)
        mean[i] = cov[i] @ (h + P0 @ prior_mean)
    return mean, cov


def factor(scores: Array | None, level: float, at_least_normal: bool = False) -> float:
    """Return by how much to multiply a standard deviation for an interval of the given level.

    The conformal quantile, the ceil((c + 1) level)-th smallest of c scores; the Gaussian one without scores, and
    the Gaussian one widened by the scores' root mean square and largest when they are too few for the level.
    """
    normal = NormalDist().inv_cdf(0.5 + level / 2)
    if scores is None or not len(scores):
        return normal
    k = math.ceil((len(scores) + 1) * level)
    if k > len(scores):
        return max(normal * float(np.sqrt(np.mean(scores**2))), float(scores[-1]))
    return max(float(scores[k - 1]), normal) if at_least_normal else float(scores[k - 1])


def lookup(asked: Sequence[str], labels: Sequence[str], axis: str) -> Indices:
    """Return the position of each label, refusing one that is not there."""
    code = {label: k for k, label in enumerate(labels)}
    missing = next((label for label in asked if label not in code), None)
    if missing is not None:
        raise DataError(
            f"no {axis} is called {missing!r}; there are {len(code)}, such as {next(iter(code), None)!r}"
        )
    return np.fromiter((code[label] for label in asked), np.int64, len(asked))
