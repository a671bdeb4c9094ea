"""Calibrated intervals for completed entries, for any completer.

Some observations are held out, a fit on the others predicts them, and their scores (how far off, in units
of the entry's own standard deviation where the fit has one) are kept in the result. The interval of an
entry is then as wide as the scores say it must be.

**What is promised.** If the entries asked about are exchangeable with the held-out ones (drawn alike, say both
at random from the matrix), the intervals of the fit *without* the held-out entries cover a new answer with
probability at least `level`, whatever the model. Entries of a part of the matrix that was never measured are
not exchangeable with those that were. By default scores come from up to five fits, each without another share, and
the result is fitted again on everything: steadier, but the proof covers only ``refit=False``. The correction of
rows by their counts is made on the same held-out entries, a few numbers from thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed

FEWEST = 20  # held-out entries below which nothing is calibrated
FOLDS = 5  # most fits to calibrate with, when one tenth is few


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
        Share of the observations to hold out at a time, and how many held-out entries are enough. While they are fewer,
        another share is held out and the rest fitted, up to five times (only with `refit`).
    normalised : bool
        Divide residuals by the entry's own standard deviation where the completer has a posterior (thin rows then
        get wider intervals); otherwise one width for all. Either way the quarters of rows with few, more, ... observations
        get a factor each, from the size of their scores.
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
    (True, 415)
    """
    if not 0 < share < 1:
        raise ParameterError(f"share of conformal must be above 0 and below 1, got {share}")
    generator = np.random.default_rng(rng)
    held = min(round(share * len(observations)), most)
    if held < FEWEST:
        found = completer(observations, **params)
        how = f"Gaussian: {len(observations)} observations are too few to hold out {FEWEST} and calibrate"
        return replace(found, report={**found.report, "held_out": 0, "interval": how})
    folds = min(FOLDS, -(-most // held), len(observations) // held) if refit else 1
    order = generator.permutation(len(observations))
    fits: list[LowRank] = []
    tests: list[Observations] = []
    for f in range(folds):
        out = np.zeros(len(observations), bool)
        out[order[f * held : (f + 1) * held]] = True
        kept = observations.take(~out)
        fixed = {"rank": fits[0].rank} if fits and completer is low_rank else {}
        fits.append(completer(kept, **{**params, **fixed}))
        tests.append(observations.take(out))
    if not refit:
        return calibrate(fits[0], tests[0], normalised=normalised)
    again = params | ({"start": fits[0], "rank": fits[0].rank} if completer is low_rank else {})
    final = completer(observations, **again)
    if not normalised:
        fits, final = (
            [replace(f, row_cov=None, col_cov=None) for f in fits],
            replace(final, row_cov=None, col_cov=None),
        )
    return _calibrate(final, fits, tests)


def calibrate(found: LowRank, held_out: Observations, *, normalised: bool = True) -> LowRank:
    """Return `found` with the conformal scores of observations that it was not fitted to."""
    if held_out.shape != found.shape:
        raise ParameterError(
            f"held-out observations must have shape {found.shape}, got {held_out.shape}"
        )
    if not normalised:
        found = replace(found, row_cov=None, col_cov=None)
    return _calibrate(found, [found], [held_out])


def scores_of(found: LowRank, held_out: Observations) -> Array:
    """Return the scores of held-out observations: distances in standard deviations of an answer."""
    noise = None if held_out.noise is None else held_out.noise_array()
    spread = found.deviation(held_out.rows, held_out.cols, "answer", noise)
    scores = np.abs(held_out.values - found.entries(held_out.rows, held_out.cols))
    return np.asarray(scores / np.maximum(spread, np.finfo(float).tiny))


def _calibrate(final: LowRank, fits: list[LowRank], tests: list[Observations]) -> LowRank:
    """Return `final` with the scores that each fit has on its test."""
    plain = [replace(f, count_edges=None, count_factors=None) for f in fits]
    scores = np.concatenate([scores_of(f, t) for f, t in zip(plain, tests, strict=True)])
    errors = np.concatenate(
        [t.values - f.entries(t.rows, t.cols) for f, t in zip(plain, tests, strict=True)]
    )
    edges, factors = None, None
    if all(f.row_counts is not None for f in fits) and len(scores) >= 200:
        counts = np.concatenate([f.row_counts[t.rows] for f, t in zip(fits, tests, strict=True)])  # type: ignore[index]
        edges, factors, group = _by_count(np.asarray(fits[0].row_counts), counts, scores)
        scores = scores / factors[group]
    kind = "variance-normalised" if final.row_cov is not None else "split"
    kind += "" if len(fits) == 1 else f" conformal, {len(fits)} folds,"
    report = {
        **final.report,
        "held_out": len(scores),
        "held_out_rmse": float(np.sqrt(np.mean(errors**2))) if len(errors) else float("nan"),
        "interval": f"{kind}{' conformal' if len(fits) == 1 else ''} on {len(scores)} held-out entries",
    }
    return replace(
        final, scores=np.sort(scores), count_edges=edges, count_factors=factors, report=report
    )


def _by_count(of_rows: Indices, counts: Indices, scores: Array) -> tuple[Array, Array, Indices]:
    """Return where the quarters of rows part by their counts, the scores' relative size in each, and each score's quarter.

    Sizes are root mean squares, drawn to one as if fifty more scores of the common size had been seen.
    """
    edges = np.unique(np.quantile(of_rows, [0.25, 0.5, 0.75]).astype(np.float64))
    group = np.searchsorted(edges, counts, side="right")
    common = max(float(np.mean(scores**2)), np.finfo(float).tiny)
    squares = np.bincount(group, scores**2, minlength=len(edges) + 1) + 50.0 * common
    factors = np.sqrt(squares / (np.bincount(group, minlength=len(edges) + 1) + 50.0) / common)
    return edges, factors, group
