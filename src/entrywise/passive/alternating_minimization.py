r"""Alternating minimisation of the squared error of a rank-one fit, with an optional ridge.

Each half step is one weighted average a line, so that an iteration is cheap; on masks without a spectral gap
(a few full rows and columns) it takes thousands of them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.observations import Observations
from entrywise.passive.multiplicative import MultiplicativeFit, RankOne
from entrywise.types import Array, Indices, Seed, generator

POWER_STEPS = 100  # of the svd start: a direction is enough, the sweeps do the rest


def alternating_minimization(
    observations: Observations,
    *,
    ridge: float = 0.0,
    start: Literal["svd", "random"] = "svd",
    clip: float | None = None,
    max_sweeps: int = 1000,
    tol: float = 1e-14,
    rng: Seed = 0,
) -> RankOne:
    r"""Complete a rank-one matrix by solving for x and y in turn.

    .. math:: \min_{x, y} \sum_{(i,j) \in \Omega} (a_{ij} - x_i y_j)^2 + \lambda (\|x\|^2 + \|y\|^2)

    Parameters
    ----------
    observations : Observations
    ridge : float
        :math:`\lambda`, equation (1) of the paper with squared norms; 0 for plain alternating minimisation.
    start : {"svd", "random"}
        The leading singular vector of the matrix with zeros where nothing is known, or a random one (of one sign
        where most entries are positive).
    clip : float, optional
        After each half step, entries of a factor above `clip` times its root mean square are cut back to it.
    max_sweeps : int
        Pairs of half steps at most.
    tol : float
        Stop when the squared error falls by less than this share in a sweep.
    rng : int or Generator
        For the random start.

    References
    ----------
    .. [LLR16] Li, Liang, Risteski, *Recovery guarantee of weighted low-rank approximation via alternating
       minimization*, ICML 2016; the clipping there sets rows to zero, here it shortens them.

    Examples
    --------
    >>> nan = float("nan")
    >>> table = Observations.from_dense([[2.0, nan, 4.0], [nan, 9.0, 6.0], [1.0, 3.0, nan]])
    >>> alternating_minimization(table).entries([0, 1, 2], [1, 0, 2]).round(6)
    array([6., 3., 2.])
    """
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ParameterError(f"ridge must be finite and not below 0, got {ridge}")
    if start not in ("svd", "random"):
        raise ParameterError(f"start must be svd or random, got {start!r}")
    if clip is not None and not clip >= 1:
        raise ParameterError(f"clip must be at least 1, got {clip}")
    if max_sweeps < 1:
        raise ParameterError(f"max_sweeps must be at least 1, got {max_sweeps}")
    if not np.any(observations.values):
        raise NotIdentifiable(
            "alternating_minimization needs at least one known entry that is not zero; observe one"
        )
    fit = MultiplicativeFit(observations)
    live = fit.seen.take(fit.seen.values != 0)
    _, row_of, col_of = live.components
    fit.row_of, fit.col_of = row_of.copy(), col_of.copy()
    fit.x = np.where(live.row_counts > 0, 1.0, np.nan)
    fit.y = np.where(live.col_counts > 0, _start(live, start, col_of, generator(rng)), np.nan)
    fit.adopt_zero_lines()
    used = fit.used()
    i, j, a, w = fit.i[used], fit.j[used], fit.a[used], fit.precision[used]
    x, y = fit.x, fit.y
    inside = ridge / fit.power * fit.unit**2 / fit.scale  # the fit divides entries by the largest
    now, sweeps = np.inf, 0
    while sweeps < max_sweeps:
        sweeps += 1
        x = _clipped(fit.best_lines(i, j, a, w, y, x, inside), clip)
        y = _clipped(fit.best_lines(j, i, a, w, x, y, inside), clip)
        error = fit.objective(x, y, used)
        new = error + inside * float(np.nansum(x**2) + np.nansum(y**2))
        if abs(now - new) <= tol * new:
            break
        now = new
    fit.x, fit.y = x, y
    name = "ridge" if ridge > 0 else "alternating minimisation"
    return fit.result(f"{name}, {start} start", certify=False, sweeps=sweeps)


def _start(seen: Observations, kind: str, col_of: Indices, rng: np.random.Generator) -> Array:
    """Return a first y: random, or the leading right singular vector of each component, by power steps."""
    y = rng.standard_normal(seen.shape[1])
    if np.mean(seen.values > 0) > 0.5:  # a table that looks positive gets a positive start
        y = np.abs(y)
    if kind == "random":
        return y
    S = seen.to_csr()
    count = int(col_of.max()) + 1
    for _ in range(POWER_STEPS):
        y = S.T @ (S @ y)
        norm = np.sqrt(np.bincount(col_of, y**2, count))
        y = y / np.where(norm > 0, norm, 1.0)[col_of]
    return np.asarray(y)


def _clipped(v: Array, clip: float | None) -> Array:
    if clip is None:
        return v
    most = clip * float(np.sqrt(np.nanmean(v**2)))
    return np.clip(v, -most, most)
