"""Calibrated intervals for completed entries, for any completer.

Some observations are held out, a fit on the others predicts them, and their scores (how far off, in units
of the entry's own standard deviation where the fit has one) are kept in the result. The interval of an
entry is then as wide as the scores say it must be.

**What is promised.** If the entries asked about are exchangeable with the held-out ones (drawn alike, say both
at random from the matrix), the intervals of the fit *without* the held-out entries cover a new answer with
probability at least `level`, whatever the model. Entries of a part of the matrix that was never measured are
not exchangeable with those that were. By default the result is fitted again on everything, which the proof does not
cover; it has more data than the calibrated fit, so that in practice the intervals are a little wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.passive.eb import low_rank
from entrywise.queries import Array, Seed
from entrywise.results import LowRank

FEWEST = 20  # held-out entries below which nothing is calibrated


def conformal(
    observations: Observations,
    completer: Callable[..., LowRank] = low_rank,
    *,
    share: float = 0.1,
    most: int = 20_000,
    normalised: bool = True,
    refit: bool = True,
    rng: Seed = 0,
    **params: Any,
) -> LowRank:
    """Return the completed matrix with intervals calibrated on held-out entries (split conformal).

    Parameters
    ----------
    completer : callable
        ``completer(observations, **params)`` returns a LowRank; :func:`~entrywise.passive.low_rank` by default.
    share, most : float, int
        Share of the observations to hold out, and the largest number.
    normalised : bool
        Divide residuals by the entry's own standard deviation where the completer has a posterior (thin rows then
        get wider intervals); otherwise one width for all.
    refit : bool
        Fit again on everything after calibrating; False keeps the fit that the guarantee is about.
    params
        Passed on to the completer.

    Returns
    -------
    LowRank
        With ``scores``; ``report`` has ``held_out``, ``held_out_rmse`` and ``interval``, which says how the intervals
        are made. With fewer than 20 entries to hold out nothing is calibrated: the intervals are the model's Gaussian
        ones, and the report says so.

    References
    ----------
    .. [VGS05] Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2005.
    .. [LGRTW18] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, *Distribution-free predictive inference for
       regression*, JASA 2018: scores divided by an estimate of their spread.

    Examples
    --------
    >>> gen = np.random.default_rng(0)
    >>> A = np.outer(gen.standard_normal(50), gen.standard_normal(40))
    >>> i, j = np.nonzero(gen.random(A.shape) < 0.4)
    >>> seen = Observations.from_triplets(i, j, A[i, j] + 0.1 * gen.standard_normal(len(i)), A.shape)
    >>> found = conformal(seen)
    >>> low, high = found.interval(3, 4, 0.9)
    >>> bool(low < A[3, 4] < high), found.report["held_out"]
    (True, 83)
    """
    if not 0 < share < 1:
        raise ParameterError(f"share of conformal must be above 0 and below 1, got {share}")
    generator = np.random.default_rng(rng)
    held = min(round(share * len(observations)), most)
    if held < FEWEST:
        found = completer(observations, **params)
        how = f"Gaussian: {len(observations)} observations are too few to hold out {FEWEST} and calibrate"
        return replace(found, report={**found.report, "held_out": 0, "interval": how})
    kept, test = observations.split(held / len(observations), generator)
    found = calibrate(completer(kept, **params), test, normalised=normalised)
    if not refit:
        return found
    again = params | ({"start": found, "rank": found.rank} if completer is low_rank and _grown(found) else {})
    final = completer(observations, **again)
    if not normalised:
        final = replace(final, row_cov=None, col_cov=None)
    kept_words = {k: found.report[k] for k in ("held_out", "held_out_rmse", "interval")}
    return replace(final, scores=found.scores, report={**final.report, **kept_words})


def calibrate(found: LowRank, held_out: Observations, *, normalised: bool = True) -> LowRank:
    """Return `found` with the conformal scores of observations that it was not fitted to."""
    if held_out.shape != found.shape:
        raise ParameterError(f"held-out observations must have shape {found.shape}, got {held_out.shape}")
    if not normalised:
        found = replace(found, row_cov=None, col_cov=None)
    errors = held_out.values - found.entries(held_out.rows, held_out.cols)
    scores = scores_of(found, held_out)
    kind = "variance-normalised" if found.row_cov is not None else "split"
    report = {
        **found.report,
        "held_out": len(held_out),
        "held_out_rmse": float(np.sqrt(np.mean(errors**2))) if len(errors) else float("nan"),
        "interval": f"{kind} conformal on {len(held_out)} held-out entries",
    }
    return replace(found, scores=scores, report=report)


def scores_of(found: LowRank, held_out: Observations) -> Array:
    """Return the sorted scores of held-out observations: distances in standard deviations of an answer."""
    noise = None if held_out.noise is None else held_out.noise_array()
    spread = found.deviation(held_out.rows, held_out.cols, "answer", noise)
    scores = np.abs(held_out.values - found.entries(held_out.rows, held_out.cols))
    return np.sort(scores / np.maximum(spread, np.finfo(float).tiny))


def _grown(found: LowRank) -> bool:
    return found.row_cov is not None and found.row_prior_cov is not None
