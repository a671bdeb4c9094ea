"""Calibrated intervals for completed entries, for any completer.

Some observations are held out, a fit on the others predicts them, and their scores (how far off, in units
of the entry's own standard deviation where the fit has one) are kept in the result. The interval of an
entry is then as wide as the scores say it must be.

**What is promised.** If the entries asked about are exchangeable with the held-out ones (drawn alike, say both
at random from the matrix), the intervals of the fit *without* the held-out entries cover a new answer with
probability at least `level`, whatever the model. Entries of a part of the matrix that was never measured are
not exchangeable with those that were. By default scores come from up to five fits, each without another share, and
the result is fitted again on everything: steadier, but the proof covers only ``refit=False``. The correction of
rows by their counts is made on the same held-out entries, a few numbers from thousands; scales of single rows and columns
are cross-fitted, and used where they make held-out intervals narrower. Lines of which nothing is known get widths of
their own, from whole lines that were hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.blocks import BlockEntries
from entrywise.linalg.cuts import fit_cuts
from entrywise.linalg.line_scales import line_scales
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank, low_rank_of_blocks
from entrywise.results import Calibration, Levels, LowRank
from entrywise.results.levels import set_scores
from entrywise.results.low_rank import log_counts
from entrywise.types import Array, Indices, Seed, generator

FEWEST = 20  # held-out entries below which nothing is calibrated
FOLDS = 5  # most fits to calibrate with, when one tenth is few
FEWEST_BY_COUNT = 200  # held-out entries below which rows are not corrected by their counts
MANY = 50  # times the entries held out, from which they are drawn one by one
DRAWN_TO_ONE = 50.0  # scores of the common size added to each group of rows
FEWEST_BY_LINE = 1000  # held-out entries below which lines get no scale of their own
NARROWER = 0.98  # of the width without scales of lines: what they must reach on held-out entries to be used
SCALE_GROUPS = 5  # parts of the held-out entries; the scales that judge each come from the others
CHECKED_LEVEL = 0.9  # level at which widths are compared
COLD_ENOUGH = 4000  # held-out entries of hidden lines that are enough
LINE_WORDS = ", a scale for every row and column"
TINY = np.finfo(float).tiny


def conformal(
    observations: Observations,
    completer: Callable[..., LowRank] = low_rank,
    *,
    share: float = 0.1,
    most: int = 20_000,
    normalised: bool = True,
    refit: bool = True,
    levels: Array | None = None,
    cold: bool = False,
    row_scales: bool = True,
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
    levels : ndarray, optional
        The values that answers can have, in order: cuts between them are fitted on the held-out entries, behind
        ``found.probability`` and ``found.levels``.
    cold : bool
        Give rows, and columns, of which nothing is known widths of their own, by hiding whole ones.
    row_scales : bool
        Let rows have scales of their own beside columns; False where the rows asked about will be others.
    params
        Passed on to the completer.

    Returns
    -------
    LowRank
        With ``calibration``; ``report`` has ``held_out``, ``held_out_rmse`` and ``interval``, which says how the intervals
        are made. With fewer than 20 entries to hold out the intervals are the model's Gaussian ones; a completer that has
        none is calibrated on all observations, each fifth foretold by the others. The report says which, or ``none``.

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
    held = min(round(share * len(observations)), most)
    draws = generator(rng)
    if held < FEWEST:
        return _calibrate_few(observations, completer, draws, params)
    folds = 1
    if refit:
        folds = min(FOLDS, -(-most // held), len(observations) // held)
    drawn = _drawn(len(observations), folds * held, draws)
    parts = [drawn[f * held : (f + 1) * held] for f in range(folds)]
    fits, tests = _held_out(observations, completer, parts, params)
    if not refit:
        found = calibrate(fits[0], tests[0], normalised=normalised)
        return found if levels is None else _with_levels(found, fits[:1], tests[:1], levels)
    again = params
    if completer is low_rank:
        again = params | {"start": fits[0], "rank": fits[0].rank}
    final = completer(observations, **again)
    if not normalised:
        fits, final = [_as_point(f) for f in fits], _as_point(final)
    found = _calibrate(final, fits, tests, row_scales)
    if levels is not None and not found.is_binary:
        found = _with_levels(found, fits, tests, levels)
    if cold and not found.is_binary:
        fixed = {"rank": final.rank} if completer is low_rank else {}
        found = _with_cold_lines(found, observations, completer, draws, params | fixed)
    return found


def conformal_of_blocks(
    blocks: BlockEntries,
    *,
    share: float = 0.1,
    most: int = 20_000,
    levels: Array | None = None,
    rng: Seed = 0,
    **params: Any,
) -> LowRank:
    """Return what :func:`conformal` makes of entries kept in blocks: fits without held-out entries, then one on all.

    Held-out entries are drawn by hashing their rows and columns, so that they are the same in any blocks.
    """
    held = min(round(share * len(blocks)), most)
    if held < FEWEST:
        raise DataError(
            f"{len(blocks)} entries are too few for blocks; read them into memory with entrywise.read"
        )
    draws = generator(rng)
    folds = min(FOLDS, -(-most // held), len(blocks) // held)
    drawn = blocks.held_out(folds * held, int(draws.integers(1, 2**63)))
    seed = int(draws.integers(2**63))
    fits: list[LowRank] = []
    tests: list[Observations] = []
    for f in range(folds):
        part = drawn.part(f * held, (f + 1) * held)
        fixed = {"rank": fits[0].rank} if fits else {}
        fits.append(low_rank_of_blocks(blocks, out=part, rng=seed, **{**params, **fixed}))
        tests.append(
            Observations.from_triplets(
                part.rows, part.cols, part.values, blocks.shape, duplicates="keep"
            )
        )
    again = params | {"start": fits[0], "rank": fits[0].rank}
    found = _calibrate(low_rank_of_blocks(blocks, rng=seed, **again), fits, tests)
    if levels is not None:
        found = _with_levels(found, fits, tests, levels)
    plain = low_rank_of_blocks(blocks, 0, out=drawn.part(0, held), rng=seed)
    error = float(np.sqrt(np.mean(_errors(plain, tests[0]) ** 2)))
    return _reported(found, bias_rmse=error)


def _with_levels(
    found: LowRank, fits: list[LowRank], tests: list[Observations], levels: Array
) -> LowRank:
    """Return `found` with the probabilities of the levels, cuts and scale fitted to the held-out answers."""
    values = np.unique(np.concatenate([t.values for t in tests]))  # a level never seen has no cut
    if len(values) < 2 or not np.isin(values, levels).all():
        return found
    pairs = list(zip(fits, tests, strict=True))
    middle = np.concatenate([f.latent(t.rows, t.cols) for f, t in pairs])
    scores, spread, i, j = _tried(found.calibration, pairs)
    spread = np.maximum(spread, TINY)
    came = np.searchsorted(values, np.concatenate([t.values for t in tests]))
    answers, chances = _fitted_levels(values, middle, spread, came)
    if found.calibration is not None and len(found.calibration.row_factors) > 1:
        crossed = spread * _crossed_scales(i, j, scores, found.shape)  # no answer judges itself
        other, likely = _fitted_levels(values, middle, crossed, came)
        if _log_score(likely, came) < _log_score(chances, came):
            answers, chances = other, likely
        else:  # scales of lines that make answers less likely are none
            found = _without_line_scales(found, scores)
    return replace(found, answers=replace(answers, scores=np.sort(set_scores(chances, came))))


def _fitted_levels(
    values: Array, middle: Array, spread: Array, came: Indices
) -> tuple[Levels, Array]:
    cuts, scale = fit_cuts(middle, spread, came, len(values))
    answers = Levels(values, cuts, scale)
    return answers, answers.probabilities(middle, spread)


def _log_score(chances: Array, came: Indices) -> float:
    picked = chances[np.arange(len(came)), came]
    return float(-np.mean(np.log(np.maximum(picked, TINY))))


def _without_line_scales(found: LowRank, scores: Array) -> LowRank:
    """Return `found` calibrated by these scores, every line alike."""
    if found.calibration is None:
        return found
    alike = replace(
        found.calibration,
        scores=np.sort(scores),
        row_factors=np.ones(1),
        col_factors=np.ones(1),
    )
    words = str(found.report.get("interval", "")).removesuffix(LINE_WORDS)
    return _reported(replace(found, calibration=alike), interval=words)


def _with_cold_lines(
    found: LowRank,
    seen: Observations,
    completer: Callable[..., LowRank],
    rng: np.random.Generator,
    params: dict[str, Any],
) -> LowRank:
    """Return `found` with the scores of entries in whole rows that were hidden, where some have none; so of columns."""
    of_rows = _cold_scores(seen, seen.rows, seen.row_counts, completer, rng, params)
    of_cols = _cold_scores(seen, seen.cols, seen.col_counts, completer, rng, params)
    if found.calibration is None or not len(of_rows) + len(of_cols):
        return found
    calibration = replace(found.calibration, cold_row_scores=of_rows, cold_col_scores=of_cols)
    told = ((of_rows, "rows"), (of_cols, "columns"))
    words = " and ".join(f"{len(of)} entries of hidden {side}" for of, side in told if len(of))
    return _reported(replace(found, calibration=calibration), cold_interval=f"conformal: {words}")


def _cold_scores(
    seen: Observations,
    line: Indices,
    counts: Indices,
    completer: Callable[..., LowRank],
    rng: np.random.Generator,
    params: dict[str, Any],
) -> Array:
    """Return the sorted scores of the entries of lines that were hidden, a tenth at a time."""
    order = np.flatnonzero(counts > 0)
    if len(order) == len(counts) or len(order) < 2 * FOLDS:
        return np.zeros(0)
    order = rng.permutation(order)
    scores: list[Array] = []
    for hidden in np.array_split(order, 2 * FOLDS)[:FOLDS]:
        out = np.isin(line, hidden)
        fit = completer(seen.take(~out), **params)
        scores.append(scores_of(fit, seen.take(out)))
        if sum(map(len, scores)) >= COLD_ENOUGH:
            break
    found = np.sort(np.concatenate(scores))
    return found if len(found) >= FEWEST else np.zeros(0)


def calibrate(found: LowRank, held_out: Observations, *, normalised: bool = True) -> LowRank:
    """Return `found` with the conformal scores of observations that it was not fitted to."""
    if held_out.shape != found.shape:
        raise ParameterError(
            f"held-out observations must have shape {found.shape}, got {held_out.shape}"
        )
    if not normalised:
        found = _as_point(found)
    return _calibrate(found, [found], [held_out])


def scores_of(found: LowRank, held_out: Observations) -> Array:
    """Return the scores of held-out observations: distances in standard deviations of an answer."""
    noise = None if held_out.noise is None else held_out.noise_array()
    if found.logarithm:  # as the intervals are made
        off = log_counts(held_out.values) - found.latent(held_out.rows, held_out.cols)
        spread = found.latent_deviation(held_out.rows, held_out.cols, "answer", noise)
        return np.asarray(np.abs(off) / np.maximum(spread, TINY))
    spread = found.deviation(held_out.rows, held_out.cols, "answer", noise)
    return np.asarray(np.abs(_errors(found, held_out)) / np.maximum(spread, TINY))


def _held_out(
    seen: Observations,
    completer: Callable[..., LowRank],
    parts: list[Indices],
    params: dict[str, Any],
) -> tuple[list[LowRank], list[Observations]]:
    """Return a fit without each of the parts, and the parts; low_rank keeps the rank that it first found."""
    fits: list[LowRank] = []
    tests: list[Observations] = []
    for part in parts:
        out = np.zeros(len(seen), bool)
        out[part] = True
        fixed = {"rank": fits[0].rank} if fits and completer is low_rank else {}
        fits.append(completer(seen.take(~out), **{**params, **fixed}))
        tests.append(seen.take(out))
    return fits, tests


def _drawn(count: int, some: int, rng: np.random.Generator) -> Indices:
    """Return `some` of `count` numbers in random order; few of very many without an order of all."""
    if MANY * some > count:
        return np.asarray(rng.permutation(count)[:some])
    return np.asarray(rng.choice(count, some, replace=False))


def _calibrate_few(
    seen: Observations,
    completer: Callable[..., LowRank],
    rng: np.random.Generator,
    params: dict[str, Any],
) -> LowRank:
    """Return the fit of few observations: with its own Gaussian intervals, else each fifth foretold by the others.

    What has neither, one observation or parts that cannot be completed, says in its report that there are no intervals.
    """
    found = completer(seen, **params)
    few = f"{len(seen)} observations are too few to hold out {FEWEST} and calibrate"
    if found.has_variance or type(found) is not LowRank:  # others bring their own
        return _reported(found, held_out=0, interval=f"Gaussian: {few}")
    if len(seen) < 2:
        return _reported(found, held_out=0, interval=f"none: {few}")
    try:
        parts = np.array_split(rng.permutation(len(seen)), min(FOLDS, len(seen)))
        fits, tests = _held_out(seen, completer, parts, params)
    except DataError:
        return _reported(found, held_out=0, interval=f"none: {few}")
    return _calibrate(found, fits, tests)


def _calibrate(
    final: LowRank, fits: list[LowRank], tests: list[Observations], row_scales: bool = True
) -> LowRank:
    """Return `final` with the scores that each fit has on its test."""
    plain = [replace(f, calibration=None) for f in fits]
    pairs = list(zip(plain, tests, strict=True))
    if final.answers is not None and final.is_binary:
        return _calibrate_binary(final, pairs)
    scores = np.concatenate([scores_of(f, t) for f, t in pairs])
    errors = np.concatenate([_errors(f, t) for f, t in pairs])
    calibration = Calibration(np.sort(scores))
    counts = [f.row_counts[t.rows] for f, t in pairs if f.row_counts is not None]
    if len(counts) == len(pairs) and len(scores) >= FEWEST_BY_COUNT:
        of_rows = np.asarray(fits[0].row_counts)
        calibration = _by_count(of_rows, np.concatenate(counts), scores)
    words = ""
    if len(scores) >= FEWEST_BY_LINE:
        calibration, words = _by_line(calibration, pairs, final.shape, row_scales)
    kind = "variance-normalised" if final.has_variance else "split"
    folds = "" if len(fits) == 1 else f", {len(fits)} folds,"
    return _reported(
        replace(final, calibration=calibration),
        held_out=len(scores),
        held_out_rmse=float(np.sqrt(np.mean(errors**2))) if len(errors) else float("nan"),
        interval=f"{kind} conformal{folds} on {len(scores)} held-out entries{words}",
    )


def _calibrate_binary(final: LowRank, pairs: list[tuple[LowRank, Observations]]) -> LowRank:
    """Return `final` with sets of answers as likely to cover as the held-out ones say."""
    answers = final.answers
    yes = np.concatenate([f.probability(t.rows, t.cols) for f, t in pairs])
    values = np.concatenate([t.values for _, t in pairs])
    if answers is None:
        return final
    came = np.searchsorted(answers.values, values)
    chances = np.stack([1.0 - yes, yes], axis=-1)
    picked = np.maximum(chances[np.arange(len(came)), came], TINY)
    expected = np.concatenate([f.entries(t.rows, t.cols) for f, t in pairs])
    return _reported(
        replace(final, answers=replace(answers, scores=np.sort(set_scores(chances, came)))),
        held_out=len(values),
        held_out_rmse=float(np.sqrt(np.mean((values - expected) ** 2))),
        held_out_log_loss=float(-np.mean(np.log(picked))),
        interval=f"sets of answers, conformal on {len(values)} held-out entries",
    )


def _by_line(
    calibration: Calibration,
    pairs: list[tuple[LowRank, Observations]],
    shape: tuple[int, int],
    row_scales: bool,
) -> tuple[Calibration, str]:
    """Return the calibration with a scale for every row and column, where that makes held-out intervals narrower.

    Scores are divided by scales that other held-out entries gave, so that their quantile is as honest as without.
    """
    scores, spread, i, j = _tried(calibration, pairs)
    if not row_scales:  # all rows are one to the scales
        i, shape = np.zeros_like(i), (1, shape[1])
    factor = _crossed_scales(i, j, scores, shape)
    own = replace(calibration, scores=np.sort(scores / factor))
    before = calibration.width(CHECKED_LEVEL) * float(spread.mean())
    after = own.width(CHECKED_LEVEL) * float((spread * factor).mean())
    if after > NARROWER * before:
        return calibration, ""
    a, b = line_scales(i, j, scores, shape)
    chosen = replace(own, row_factors=a, col_factors=b)
    return chosen, LINE_WORDS


def _tried(
    calibration: Calibration | None, pairs: list[tuple[LowRank, Observations]]
) -> tuple[Array, Array, Indices, Indices]:
    """Return scores, deviations, rows and columns of the held-out entries, scales of lines left aside."""
    if calibration is not None:
        calibration = replace(calibration, row_factors=np.ones(1), col_factors=np.ones(1))
    trials = [(replace(f, calibration=calibration), t) for f, t in pairs]
    return (
        np.concatenate([scores_of(f, t) for f, t in trials]),
        np.concatenate([f.deviation(t.rows, t.cols) for f, t in trials]),
        np.concatenate([t.rows for _, t in pairs]),
        np.concatenate([t.cols for _, t in pairs]),
    )


def _crossed_scales(i: Indices, j: Indices, scores: Array, shape: tuple[int, int]) -> Array:
    """Return the product of each score's row and column scales, made without the group it is in."""
    group = np.arange(len(scores)) % SCALE_GROUPS  # held-out entries were drawn: any groups do
    factor = np.ones(len(scores))
    for g in range(SCALE_GROUPS):
        others = group != g
        a, b = line_scales(i[others], j[others], scores[others], shape)
        factor[~others] = a[i[~others]] * b[j[~others]]
    return factor


def _by_count(of_rows: Indices, counts: Indices, scores: Array) -> Calibration:
    """Return the scores corrected in the quarters of rows with few, more, ... observations, and the corrections.

    A correction is the scores' root mean square relative to that of all, drawn to one as if fifty more scores of the
    common size had been seen.
    """
    edges = np.unique(np.quantile(of_rows, [0.25, 0.5, 0.75]).astype(np.float64))
    group = np.searchsorted(edges, counts, side="right")
    common = max(float(np.mean(scores**2)), TINY)
    squares = np.bincount(group, scores**2, minlength=len(edges) + 1) + DRAWN_TO_ONE * common
    sizes = np.bincount(group, minlength=len(edges) + 1) + DRAWN_TO_ONE
    factors = np.sqrt(squares / sizes / common)
    return Calibration(np.sort(scores / factors[group]), edges, factors)


def _errors(found: LowRank, held_out: Observations) -> Array:
    return held_out.values - found.entries(held_out.rows, held_out.cols)


def _as_point(found: LowRank) -> LowRank:
    """Return the fit without its variances: scores are then plain distances."""
    if found.posterior is None:
        return found
    return replace(found, posterior=found.posterior.as_point())


def _reported(found: LowRank, **facts: Any) -> LowRank:
    return replace(found, report={**found.report, **facts})
