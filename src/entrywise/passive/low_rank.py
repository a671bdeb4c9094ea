"""Empirical-Bayes low-rank completion: no penalty to search, a variance for every entry.

Rows and columns have Gaussian priors that are learned from the data along with the noise; the posterior
covariance of one side enters the normal equations of the other, so thin rows are shrunk and crowded
ones are not. Components are added as long as the residuals hold more than chance would put there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.variational import Fit, one_blas_thread
from entrywise.observations import Observations
from entrywise.results import LowRank
from entrywise.types import Array, Seed


def low_rank(
    observations: Observations,
    rank: int | None = None,
    *,
    max_rank: int = 30,
    start: LowRank | None = None,
    row_weights: Array | None = None,
    rng: Seed = 0,
    exact: bool = False,
    sweeps: int = 60,
    tol: float = 1e-3,
    progress: Callable[[int, float], None] | None = None,
) -> LowRank:
    r"""Return the low-rank matrix behind noisy known entries, with the variance of every completed entry.

    .. math::
       y_{ij} = \mu + b_i + c_j + u_i^\top v_j + e_{ij}, \quad e_{ij} \sim N(0, s_{ij}^2 + t^2), \quad
       (u_i, b_i) \sim N(m_U, S_U), \quad (v_j, c_j) \sim N(m_V, S_V)

    fitted by variational EM, one block at a time: with :math:`w_{ij} = 1/(s_{ij}^2 + t^2)` the posterior of
    :math:`u_i` has precision :math:`\sum_j w_{ij}(v_j v_j^\top + C^v_j) + S_U^{-1}`; then the priors follow
    from the posterior moments and :math:`t^2` from the expected squares. Sparse throughout: memory is
    O(entries + (m + n) q^2), q = k + 1.

    Parameters
    ----------
    observations : Observations
        Entries may be listed more than once (``duplicates="keep"``). ``noise`` is the instrument's standard
        deviation :math:`s_{ij}`, one for all or one each; None when unknown, and then :math:`t^2` is
        noise and lack of fit together.
    rank : int, optional
        Components besides the biases, 0..min(m, n). None: components are added, up to `max_rank`, whose singular value
        in the residuals exceeds the largest after their signs are drawn anew, as long as the evidence (its
        variational bound) rises; weak ones that it rises without are left out again.
    start : LowRank, optional
        An earlier fit of the same shape to start from (its rank is kept unless `rank` is given); for a few
        more entries, two or three sweeps are then enough.
    row_weights : ndarray of shape (m,), optional
        How many rows alike each row stands for, above 0; one each by default.
    rng : int or Generator
        Draws the start of the subspace iterations and the signs; same seed, same result.
    exact : bool
        Let every line's own covariance enter the other side's equations instead of their average. Better where lines are
        known very unequally, as when some columns are seen whole and others in a few cells; k^2 more work an entry.
    sweeps, tol : int, float
        Stop after so many sweeps, or when :math:`t^2` changes by less than this share in one.
    progress : callable, optional
        Called with (sweep, noise standard deviation) after each sweep.

    Returns
    -------
    LowRank
        The posterior is in its arrays: ``left``/``row_offset`` and ``right``/``col_offset`` are means;
        ``row_cov`` (m, q, q) and ``col_cov`` (n, q, q) covariances of :math:`(u_i, b_i)` and
        :math:`(v_j, c_j)`, the bias last; ``row_prior_mean``, ``row_prior_cov`` (and ``col_``) the learned
        priors; ``noise_variance`` is :math:`s^2` (its mean) and ``lack_variance`` :math:`t^2`, or, when the
        noise was unknown, :math:`t^2` and 0. ``variance(rows, cols)`` is the posterior variance of entries.
        Lines with nothing known get the prior's entries; ``row_counts`` and ``col_counts`` tell which. The report's
        ``evidence`` is the variational bound on the log-likelihood, by which fits of the same entries compare.

    References
    ----------
    .. [LT07] Lim, Teh, *Variational Bayesian approach to movie rating prediction*, KDD Cup 2007; here with
       biases, full prior covariances, known noise beside lack of fit, and the rank chosen.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> i, j = np.nonzero(rng.random(A.shape) < 0.5)
    >>> found = low_rank(Observations.from_triplets(i, j, A[i, j] + 0.1 * rng.standard_normal(len(i)), A.shape))
    >>> found.rank, round(float(np.sqrt(found.noise_variance)), 2)
    (2, 0.1)
    """
    m, n = observations.shape
    generator = np.random.default_rng(rng)
    _check(observations, rank, max_rank, start, sweeps, tol)
    if start is not None:
        generator = np.random.default_rng(generator.integers(2**63))
    fit, offset, scale = _prepare(observations, start)
    fit.exact = exact
    if row_weights is not None:
        fit.rows.times = np.array(row_weights, np.float64)
        if fit.rows.times.shape != (m,) or not np.all(
            np.isfinite(fit.rows.times) & (fit.rows.times > 0)
        ):
            raise ParameterError(f"row_weights must be {m} finite numbers above 0, one a row")
    known_noise = observations.noise is not None
    wanted = rank if rank is not None else (start.rank if start is not None else None)
    done = 0

    def sweep(count: int, until: float) -> float:
        nonlocal done
        change = np.inf
        for _ in range(count):
            if done >= sweeps:
                break
            change = fit.sweep()
            done += 1
            if progress is not None:
                progress(done, scale * float(np.sqrt(fit.t2)))
            if change < until:
                break
        return change

    with one_blas_thread():
        if start is None:
            sweep(2, tol)
        if wanted is None:
            _grow(fit, min(m, n, max_rank), generator, lambda: sweep(5, tol))
        elif wanted > fit.rank and len(observations) > 1:
            fit.grow(*fit.spectrum(wanted - fit.rank, generator)[:2])
        sweep(sweeps, tol)
        if wanted is None:
            _prune(fit)
        fit.sweep(keep=True)
        strengths = fit.balance(last=True)
    return _result(fit, observations, offset, scale, known_noise, strengths, done + 1)


def _grow(fit: Fit, most: int, rng: np.random.Generator, sweep: Callable[[], float]) -> None:
    """Add the components that stand out of chance, as long as the evidence rises."""
    while fit.rank < most:
        before, evidence = fit.state(), fit.evidence
        left, right, singular, chance = fit.spectrum(min(most - fit.rank, 12), rng)
        count = int(np.sum(singular > max(chance[0], 1e-7)))
        if count == 0:
            return
        fit.grow(left[:, :count], right[:, :count])
        sweep()
        if fit.evidence <= evidence:
            fit.restore(before)
            return


def _prune(fit: Fit) -> None:
    """Leave out components that came in by chance: far below the noise, and the evidence rises without them."""
    while fit.rank > 0:
        sizes = fit.balance()
        weak = int(np.sum(sizes < 1e-3 * fit.t2)) or int(sizes[-1] < 0.05 * fit.t2)
        if not weak:
            return
        before, evidence = fit.state(), fit.evidence
        fit.drop(weak)
        for _ in range(3):
            fit.sweep()
        if fit.evidence < evidence:
            fit.restore(before)
            return


def _check(
    seen: Observations,
    rank: int | None,
    max_rank: int,
    start: LowRank | None,
    sweeps: int,
    tol: float,
) -> None:
    m, n = seen.shape
    if rank is not None and not 0 <= rank <= min(m, n):
        raise ParameterError(
            f"rank of low_rank must be in 0..{min(m, n)} for a {m} x {n} matrix, got {rank}"
        )
    if max_rank < 0 or sweeps < 1 or not tol >= 0:
        raise ParameterError(
            f"max_rank must be 0 or more, sweeps 1 or more and tol 0 or more, got {max_rank}, {sweeps} and {tol}"
        )
    if not len(seen):
        raise DataError("low_rank needs at least one known entry, got none")
    if np.abs(seen.values).max() > 1e150:
        raise DataError(
            f"values must be at most 1e150 in size, got {np.abs(seen.values).max()}; change their unit"
        )
    if start is not None and start.shape != seen.shape:
        raise ParameterError(
            f"start must have the shape {seen.shape} of the observations, got {start.shape}"
        )
    if start is not None and (start.row_cov is None or start.row_prior_cov is None):
        raise ParameterError("start must be a result of low_rank; this one has no posterior")
    if start is not None and rank is not None and start.rank > rank:
        raise ParameterError(
            f"start has rank {start.rank}, above the rank {rank} asked for; start from a smaller fit"
        )


def _prepare(seen: Observations, start: LowRank | None) -> tuple[Fit, float, float]:
    """Return the state in units of the data's standard deviation, with the offset and the unit."""
    offset = float(seen.values.mean()) if start is None else start.offset
    scale = float(seen.values.std())
    if not scale > 1e-14 * max(abs(offset), 1e-300):
        scale = max(abs(offset), 1.0)
    values = (seen.values - offset) / scale
    if isinstance(seen.noise, np.ndarray):
        variance = (seen.noise / scale) ** 2
    elif seen.noise is not None:
        variance = np.full(len(seen), (seen.noise / scale) ** 2)
    else:
        variance = np.zeros(0)
    fit = Fit.of(seen.rows, seen.cols, values, variance, seen.shape, 1e-10)
    if start is not None:
        root = np.sqrt(scale)
        for side, factor, bias, cov, mean, prior in (
            (
                fit.rows,
                start.left,
                start.row_offset,
                start.row_cov,
                start.row_prior_mean,
                start.row_prior_cov,
            ),
            (
                fit.cols,
                start.right,
                start.col_offset,
                start.col_cov,
                start.col_prior_mean,
                start.col_prior_cov,
            ),
        ):
            unit = np.r_[np.full(start.rank, root), scale]
            assert cov is not None
            assert mean is not None
            assert prior is not None
            offsets = np.zeros(len(factor)) if bias is None else bias
            side.mean = np.ascontiguousarray(np.column_stack([factor, offsets]) / unit)
            side.cov = cov / np.outer(unit, unit)
            side.average = side.cov.mean(axis=0)
            side.prior_mean, side.prior_cov = mean / unit, prior / np.outer(unit, unit)
        t2 = (
            start.lack_variance
            if seen.noise is not None
            else start.noise_variance + start.lack_variance
        )
        fit.t2 = max(t2 / scale**2, fit.floor)
    return fit, offset, scale


def _result(
    fit: Fit,
    seen: Observations,
    offset: float,
    scale: float,
    known_noise: bool,
    strengths: Array,
    sweeps: int,
) -> LowRank:
    k = fit.rank
    unit = np.r_[np.full(k, np.sqrt(scale)), scale]
    t2 = fit.t2 * scale**2
    instrument = float(np.mean(seen.noise_array() ** 2)) if known_noise else t2
    sides: dict[str, Any] = {}
    for name, side in (("row", fit.rows), ("col", fit.cols)):
        side.cov *= np.outer(unit, unit)
        sides |= {
            f"{name}_offset": side.mean[:, k] * scale,
            f"{name}_cov": side.cov,
            f"{name}_prior_mean": side.prior_mean * unit,
            f"{name}_prior_cov": side.prior_cov * np.outer(unit, unit),
            f"{name}_counts": side.counts,
        }
    return LowRank(
        fit.rows.mean[:, :k] * unit[0] if k else np.zeros((fit.rows.size, 0)),
        fit.cols.mean[:, :k] * unit[0] if k else np.zeros((fit.cols.size, 0)),
        offset=offset,
        noise_variance=instrument,
        lack_variance=t2 if known_noise else 0.0,
        row_labels=seen.row_labels,
        col_labels=seen.col_labels,
        report={
            "method": "low-rank",
            "rank": k,
            "sweeps": sweeps,
            "noise": float(np.sqrt(instrument)),
            "lack_of_fit": float(np.sqrt(t2)) if known_noise else None,
            "component_variances": (strengths * scale**2).tolist(),
            "evidence": fit.evidence - len(seen) * float(np.log(scale)),
        },
        **sides,
    )
