r"""Projected eigenvector: a rank-one matrix in the stationary distribution of a chain.

When bounds on all entries are known, the known ones are projected on them and become the rates of a random walk
between rows and columns. Its stationary distribution holds the factors, and large disturbances cannot make
the error grow exponentially as they do in every consistent method.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.linalg.stationary import stationary
from entrywise.observations import Observations
from entrywise.passive.multiplicative import SPAN, MultiplicativeFit, RankOne
from entrywise.types import Array


def projected_eigenvector(observations: Observations, low: float, high: float) -> RankOne:
    r"""Complete a positive rank-one matrix whose entries all lie in [low, high], through a Markov chain.

    .. math:: M_{ij} = \frac{\mu}{\mu + a_{ij}}, \quad M_{ji} = \frac{a_{ij}}{\mu + a_{ij}}, \qquad
        \pi M = 0, \qquad \hat A_{ij} = \mu \, \pi_i / \pi_j, \qquad \mu = \sqrt{\mathrm{low} \cdot \mathrm{high}}

    Parameters
    ----------
    observations : Observations
        Known entries; those outside [low, high] are projected on it.
    low, high : float
        Bounds on every entry of the true matrix, 0 < low < high.

    Returns
    -------
    RankOne
        NaN where no chain of known entries links row and column. The report says how far the stationary
        distribution is out of balance, and warns when the fit predicts no better than a constant.

    Notes
    -----
    The paper's last step has :math:`\mu^2` where it must be :math:`\mu`, and its :math:`\pi` is projected on
    :math:`[\rho^{-2}, \rho^2] / (m + n)`, :math:`\rho = \sqrt{\mathrm{high}/\mathrm{low}}`. Entries of the
    completed matrix may leave [low, high]; clip them where rank one does not matter. For small noise
    :func:`~entrywise.passive.rank_one` is better.

    References
    ----------
    .. [HOS20] Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020, Algorithm 2.

    Examples
    --------
    >>> nan = float("nan")
    >>> table = Observations.from_dense([[2.0, nan, 4.0], [nan, 9.0, 6.0], [1.0, 3.0, nan]])
    >>> projected_eigenvector(table, low=0.5, high=20.0).to_dense().round(9)
    array([[2., 6., 4.],
           [3., 9., 6.],
           [1., 3., 2.]])
    """
    if not (math.isfinite(low) and math.isfinite(high) and 0 < low < high):
        raise ParameterError(
            f"projected_eigenvector needs bounds with 0 < low < high, got low={low}, high={high}; "
            "for entries of both signs use rank_one"
        )
    if not len(observations):
        raise ParameterError(
            "projected_eigenvector needs at least one observation, got none; observe some entries"
        )
    fit = MultiplicativeFit(observations)
    seen, low, high = fit.seen, low / fit.power, high / fit.power
    if not high / SPAN <= low:
        raise ParameterError(
            f"low and high of projected_eigenvector must lie within a factor of {SPAN:g}, got high / low = "
            f"{high / low if low > 0 else math.inf:g}; give closer bounds"
        )
    m, n = seen.shape
    i, j = seen.rows, seen.cols
    mu, rho = math.sqrt(low) * math.sqrt(high), math.sqrt(high / low)
    a = np.clip(seen.values, low, high)  # 1
    found = stationary(m + n, i, m + j, mu / (mu + a), a / (mu + a))  # 2
    most = 2.0 * math.log(rho)
    log_pi = np.clip(found.log_pi, -most, most)  # 3  mean one, not sum one
    log_z = np.r_[log_pi[:m], -log_pi[m:]] + 0.5 * math.log(mu / fit.scale)
    fit.place(np.exp(log_z), i, j, found.components[:m], found.components[m:])  # 4
    report = {
        "projected": int(np.sum(a != seen.values)),
        "clipped": int(np.sum(log_pi != found.log_pi)),
        "imbalance": found.imbalance,
        "rounds": found.rounds,
        "krylov": found.krylov,
    }
    result = fit.result("projected eigenvector", certify=False, **report)
    warning = _no_better_than_a_constant(result, seen.values, fit.power)
    if warning:
        warnings.warn(warning, stacklevel=2)
        result = replace(result, report={**result.report, "warning": warning})
    return result


def _no_better_than_a_constant(found: RankOne, values: Array, power: float) -> str | None:
    """Compare the generalised cross-validation errors of the fit and of the best constant, in units of `power`."""
    t, degrees = len(values), found.report["degrees_of_freedom"]
    if degrees < 1 or t < 3:
        return None
    fitted = found.entries(found.seen_rows, found.seen_cols) / power
    ours = t * float(np.sum((values - fitted) ** 2)) / degrees**2
    constant = t * float(np.sum((values - values.mean()) ** 2)) / (t - 1) ** 2
    if ours < constant or constant == 0:
        return None
    return (
        f"the completed matrix predicts no better than the constant {values.mean() * power:.4g} (cross-validated squared "
        f"error {ours / constant:.3g} times as large): the noise hides the rows and columns"
    )
