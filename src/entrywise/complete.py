"""``ew.complete``: choose a passive method, say which and why, and calibrate its intervals."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from entrywise.answers import (
    LIKELIHOODS,
    likelihood_of,
    looks_like_counts,
    range_certificate,
    range_of,
)
from entrywise.exceptions import DataError, ParameterError
from entrywise.frames import is_frame
from entrywise.held_out import IN_UNITS, MARGIN, compare, own_units, without_words
from entrywise.intervals import conformal, conformal_of_blocks
from entrywise.linalg.blocks import BlockEntries, is_blocks
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank, low_rank_of_blocks
from entrywise.passive.rank_one import rank_one
from entrywise.results import Features, LowRank
from entrywise.results.features import labels_of
from entrywise.types import Indices, Seed, generator

YARDSTICK = 2_000_000  # entries by which the error of biases alone is told; more are many
TINY_SIDE = 10  # lines of the shorter side below which yes/no fits are chosen by held-out loss
CLIPPED = 0.01  # least probability that a Gaussian fit of yes/no answers is taken to mean
LINE_BYTES = 48  # least that a line takes at rank 0, its covariance not counted; measured
ENTRY_BYTES = 40  # least that a known entry takes; measured
COPIES = 2  # of a line's covariance while the components are turned
LOW_RANK = ("low-rank", "low_rank")
BLOCK_PARAMS = ("rank", "max_rank", "tol", "max_sweeps")
LIKELIHOOD_WORDS: dict[str, list[str]] = {
    "gaussian": [],
    "binary": ["two-valued answers: fitted as probabilities"],
    "ordinal": ["few levels: cuts between them fitted on held-out entries"],
    "counts": ["counts: fitted as log1p of themselves"],
}
CGROUP = Path("/sys/fs/cgroup/memory.max")


def complete(
    observations: Any,
    method: str = "auto",
    *,
    likelihood: str = "auto",
    bounds: tuple[float, float] | None = None,
    units: str = "auto",
    row_features: Any = None,
    col_features: Any = None,
    rng: Seed = 0,
    random_state: Seed = None,
    calibrate: bool = True,
    progress: Callable[[int, float], None] | None = None,
    engine: Any = None,
    **params: Any,
) -> LowRank:
    """Complete a matrix from known entries, with intervals, and say how in ``found.report``.

    Parameters
    ----------
    observations : Observations, array with NaN, scipy sparse matrix, long dataframe, or Blocks
        :class:`entrywise.scale.Blocks` are entries kept in files, more than memory holds; they are completed by
        ``low-rank``, from numbers, levels or yes/no answers, and go on where they stopped when the program died.
    method : str
        ``auto``, or a passive method by name (``entrywise methods passive``): ``low-rank``, ``rank-one``,
        ``soft-impute``, ... ``auto`` fits :func:`~entrywise.passive.low_rank` and, where the fit finds at most two
        components, the rank-one fit too, and takes the one with the smaller error on held-out entries.
    likelihood : {"auto", "gaussian", "binary", "ordinal", "counts"}
        What answers are. ``binary``: two values, fitted as probabilities. ``ordinal``: a few levels in order, numbers to
        the fit, with cuts between them fitted on held-out entries. ``auto`` takes them where the values say so: two, or up
        to eleven that are all used. ``counts``: log1p of them is fitted, entries and intervals are counts; never taken by
        ``auto``, which hints at it. For ``low-rank`` only.
    bounds : (low, high), optional
        The range of an answer; intervals are clipped to it. Without, that of levels is taken from the known entries.
        ``(-inf, inf)`` takes none.
    units : {"auto", "one", "columns", "rows"}
        What values are measured in. ``one``: all in the same unit. ``columns``: each column in its own, as ages beside
        incomes; it is fitted in standard deviations of each column, and entries and intervals are in its unit again.
        ``auto`` takes what foretells held-out entries better, where the spreads of columns, or of rows, are more than five
        times apart and no bounds are given. For ``low-rank`` and numbers only.
    row_features, col_features : frame, array, similarity or sparse matrix, optional
        Features of the lines, by label or in order: see :class:`~entrywise.results.Features`. Labels that only the
        features name become lines without entries, completed from their features. For ``low-rank`` only.
    rng, random_state : int, Generator or RandomState
        Two names of one seed: ours, and that of scikit-learn, which wins where it is given.
    calibrate : bool
        Hold out a tenth (at most 20,000) to calibrate intervals, then fit on everything.
    progress : callable, optional
        Called with (sweep, noise) by methods that can.
    engine : Executor or dask Client, optional
        What works on blocks: this process (default), a ``concurrent.futures.Executor``, or a Dask client. The result
        is the same, bit for bit.
    params
        Parameters of the method, such as ``rank``.

    Returns
    -------
    LowRank
        ``report`` has ``method`` and ``reasons``; ``shape``, ``known``, ``share``, ``components``; ``empty_rows`` and
        ``empty_cols`` (lines with nothing known: their entries are the prior's); ``rank``, ``noise``,
        ``held_out_rmse`` beside ``bias_rmse`` (what row and column biases alone would have); ``interval``; ``hints``.
        Values beyond 1e-100..1e100 are completed in a ``unit`` that the report then names and its numbers are in; where
        lines are in ``units`` of their own, its numbers are in standard deviations of a line.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> A = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 60))
    >>> X = np.where(rng.random(A.shape) < 0.4, A + 0.1 * rng.standard_normal(A.shape), np.nan)
    >>> found = complete(X)
    >>> found.report["method"], found.rank
    ('low-rank', 3)
    """
    if is_blocks(observations):
        _refuse_for_blocks(method, likelihood, units, row_features, col_features, params)
        blocks = observations.on(engine)
        draws = generator(rng if random_state is None else random_state)
        return _of_blocks(blocks, likelihood, bounds, draws, calibrate, progress, params)
    if engine is not None:
        raise ParameterError(
            "engine works on blocks; write the entries with entrywise.scale.write_blocks and give Blocks(folder)"
        )
    seen = as_observations(observations)
    if not len(seen):
        raise DataError("complete needs at least one known entry, got none")
    range_ = range_of(seen.values, bounds)
    kind = _kind(seen, likelihood, method)
    seen = _with_described_lines(seen, row_features, col_features)
    described = _described(seen, row_features, col_features, method)
    check_memory(seen, int(params.get("rank") or 0))
    unit = seen.unit
    if unit != 1.0:
        told = next((name for name in IN_UNITS if params.get(name) is not None), None)
        if told is not None:
            raise DataError(
                f"values as large as {np.abs(seen.values).max():g} are completed in another unit, which {told} does not "
                "follow; change the unit of both"
            )
        seen = seen.scaled(1.0 / unit)
    draws = generator(rng if random_state is None else random_state)
    able = method in ("auto", *LOW_RANK) and kind == "gaussian" and bounds is None
    own, why = own_units(seen, units, able, method == "auto", draws, {**params, **described})
    if own is not None:
        seen = own.strip(seen)
        method = "low-rank" if method == "auto" else method
    if method == "auto":
        params = {**params, **described}
        chosen = likelihood == "auto"
        found, reasons = _auto(seen, kind, chosen, draws, calibrate, progress, params)
    elif method in LOW_RANK:
        params = {**params, **described}
        found = _named(seen, method, kind, draws, calibrate, progress, params)
        reasons = [*(why or ["asked for by name"]), *LIKELIHOOD_WORDS[kind]]
    else:
        found = _named(seen, method, "gaussian", draws, calibrate, progress, params)
        reasons = ["asked for by name"]
    report = {**summary(seen), **found.report, "reasons": reasons, "hints": hints(seen)}
    if own is not None:
        found, report["units"] = replace(found, units=own), own.axis
    if unit != 1.0:
        found, report["unit"] = found.scaled(unit), unit
    if kind == "counts" and range_ is None:
        return replace(found, bounds=(0.0, np.inf), report=report)
    return _in_range(found, range_, bounds is not None, report)


def _refuse_for_blocks(
    method: str,
    likelihood: str,
    units: str,
    row_features: Any,
    col_features: Any,
    params: dict[str, Any],
) -> None:
    """Refuse what cannot be done on blocks."""
    if method not in ("auto", *LOW_RANK):
        raise ParameterError(f"blocks are completed by low-rank, got method {method!r}")
    if likelihood == "counts":
        raise ParameterError(
            "blocks are not fitted as counts; give likelihood 'auto', 'gaussian', 'binary' or 'ordinal'"
        )
    if units not in ("auto", "one"):
        raise ParameterError(
            f"blocks are fitted in one unit, got units={units!r}; put their lines on one scale first"
        )
    if row_features is not None or col_features is not None:
        raise ParameterError(
            "blocks take no features; read the entries into memory with entrywise.read"
        )
    if params.pop("exact", False):
        raise ParameterError(
            "exact=True sends every line's covariance in every sweep, which blocks do not; leave it out"
        )
    unknown = [name for name in params if name not in BLOCK_PARAMS]
    if unknown:
        raise ParameterError(
            f"a fit of blocks takes no parameter {unknown[0]!r}; it takes {', '.join(BLOCK_PARAMS)}"
        )


def _of_blocks(
    blocks: BlockEntries,
    likelihood: str,
    bounds: tuple[float, float] | None,
    rng: np.random.Generator,
    calibrate: bool,
    progress: Any,
    params: dict[str, Any],
) -> LowRank:
    """Return the completion of entries kept in blocks."""
    kind = _block_kind(blocks, likelihood)
    range_ = bounds if bounds is None else range_of(np.array(blocks.range), bounds)
    if range_ is None and blocks.levels is not None:
        range_ = float(blocks.levels[0]), float(blocks.levels[-1])
    params = {**params, "progress": progress}
    if kind == "binary":
        params["likelihood"] = kind
    if calibrate:
        levels = blocks.distinct if kind == "ordinal" else None
        found = conformal_of_blocks(blocks, levels=levels, rng=rng, **params)
    else:
        found = low_rank_of_blocks(blocks, rng=rng, **params)
    plural = "s" if found.rank != 1 else ""
    reasons = [
        "entries in blocks",
        *LIKELIHOOD_WORDS[kind],
        f"low-rank found {found.rank} component{plural} beside the biases",
    ]
    report = {**blocks.report, **found.report, "reasons": reasons, "hints": []}
    blocks.clear()
    return _in_range(found, range_, bounds is not None, report)


def _block_kind(blocks: BlockEntries, likelihood: str) -> str:
    """Return the likelihood to fit with: as asked, or what suits the values; on a tiny side two values are numbers."""
    if likelihood not in LIKELIHOODS:
        raise ParameterError(
            f"likelihood must be one of {', '.join(LIKELIHOODS)}, got {likelihood!r}"
        )
    if likelihood == "ordinal" and blocks.distinct is None:
        raise DataError("likelihood='ordinal' needs few different values; these blocks have many")
    if likelihood != "auto":
        return likelihood
    if blocks.levels is None:
        return "gaussian"
    binary = len(blocks.levels) == 2 and min(blocks.shape) >= TINY_SIDE
    return "binary" if binary else "ordinal"


def _in_range(
    found: LowRank, range_: tuple[float, float] | None, declared: bool, report: dict[str, Any]
) -> LowRank:
    """Return the result with the range of an answer and its report."""
    certificates = found.certificates
    if range_ is not None and np.isfinite(range_).any():
        certificates = (*certificates, range_certificate(range_, declared))
    return replace(found, bounds=range_, certificates=certificates, report=report)


def _kind(seen: Observations, likelihood: str, method: str) -> str:
    """Return the likelihood to fit with; only low-rank knows of others than the Gaussian."""
    kind = likelihood_of(seen.values, likelihood)
    if method in ("auto", *LOW_RANK) or likelihood in ("auto", "gaussian"):
        return kind
    raise ParameterError(f"{method} knows no likelihood {likelihood!r}; use low-rank")


def _with_described_lines(seen: Observations, row_features: Any, col_features: Any) -> Observations:
    """Return the observations with an empty line for every label that only the features name."""
    row_labels, col_labels = (
        _longer(labels, given)
        for labels, given in ((seen.row_labels, row_features), (seen.col_labels, col_features))
    )
    m = seen.shape[0] if row_labels is None else len(row_labels)
    n = seen.shape[1] if col_labels is None else len(col_labels)
    if (m, n) == seen.shape:
        return seen
    return replace(seen, shape=(m, n), row_labels=row_labels, col_labels=col_labels)


def _longer(labels: tuple[str, ...] | None, given: Any) -> tuple[str, ...] | None:
    named = None if given is None or labels is None else labels_of(given)
    if labels is None or not named or not set(named) & set(labels):
        return labels
    return tuple(dict.fromkeys([*labels, *named]))


def _described(
    seen: Observations, row_features: Any, col_features: Any, method: str
) -> dict[str, Any]:
    """Return the features as the fit takes them, encoded once."""
    found = {}
    if row_features is not None:
        coded = Features.of(row_features, seen.row_labels, seen.shape[0], "row")
        found["row_features"] = coded
    if col_features is not None:
        coded = Features.of(col_features, seen.col_labels, seen.shape[1], "column")
        found["col_features"] = coded
    if found and method not in ("auto", *LOW_RANK):
        raise ParameterError(f"{method} takes no features; use low-rank")
    return found


def check_memory(seen: Observations, rank: int = 0) -> None:
    """Refuse a shape of which not even the factors fit into this machine's memory."""
    q = rank + 1
    lines = sum(seen.shape)
    need = lines * (LINE_BYTES + COPIES * 8 * q * q) + ENTRY_BYTES * len(seen)
    have = _memory()
    if need > have:
        m, n = seen.shape
        raise DataError(
            f"completing {m} x {n} from {len(seen)} known entries needs at least {need / 1e9:,.0f} GB and this machine has "
            f"{have / 1e9:,.0f} GB; number the rows and columns that occur one after the other, or label them"
        )


def _memory() -> float:
    """Return the bytes of memory that we may use: the machine's, or the control group's if that is less."""
    have = float("inf")
    if hasattr(os, "sysconf"):
        have = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # there is none, or it says "max"
        have = min(have, float(CGROUP.read_text()))
    return have


def as_observations(data: Any) -> Observations:
    """Return observations from what people have: an array with NaN, a sparse matrix, a long or wide frame."""
    if isinstance(data, Observations):
        return data
    if hasattr(data, "tocoo"):
        return Observations.from_sparse(data)
    if is_frame(data):
        return Observations.from_frame(data)
    try:
        return Observations.from_dense(np.asarray(data, dtype=np.float64))
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"observations must be Observations, an array with NaN, a sparse matrix or a long dataframe, "
            f"got {type(data).__name__}"
        ) from None


def summary(seen: Observations) -> dict[str, Any]:
    """Return what there is to complete from: sizes, known share, components, lines with nothing known."""
    row_part, col_part = _parts(seen)
    linked = np.unique(np.r_[row_part[seen.row_counts > 0], col_part[seen.col_counts > 0]])
    return {
        "shape": seen.shape,
        "known": len(seen),
        "share": seen.share,
        "components": len(linked),
        "empty_rows": int(np.sum(seen.row_counts == 0)),
        "empty_cols": int(np.sum(seen.col_counts == 0)),
    }


def _parts(seen: Observations) -> tuple[Indices, Indices]:
    """Return the connected component of each row and column; of many entries by a forest, which most of them need not enter."""
    if len(seen) <= YARDSTICK:
        return seen.components[1:]
    from entrywise.linalg._jit_laplacian import spanning_forest

    m, n = seen.shape
    part = spanning_forest(m + n, seen.rows, seen.cols + m, np.arange(len(seen)))[1]
    return part[:m], part[m:]


def hints(seen: Observations) -> list[str]:
    """Return what else would serve these data, and what to be careful about."""
    found = []
    spread = float(np.ptp(seen.values))
    if spread == 0:
        found.append("every known value is the same: the completion is that constant")
    elif seen.is_binary and len(seen) >= 10:
        found.append(
            "the values are binary: `entrywise online` learns such a matrix with few mistakes; "
            "for votes of workers on items `entrywise crowd` weighs the workers"
        )
    if looks_like_counts(seen.values):
        found.append(
            "the values look like counts: likelihood='counts' completes log1p of them, and no interval "
            "goes below 0"
        )
    m, n = seen.shape
    diagonal = seen.values[seen.rows == seen.cols] if m == n else np.zeros(0)
    if m == n and seen.is_symmetric and len(diagonal) and np.all(diagonal >= 0) and spread > 0:
        found.append(
            "the matrix is square and symmetric with a diagonal of one sign: if it is positive semidefinite and you can "
            "ask for entries, `entrywise kernel` certifies the rest from a few columns"
        )
    if len(seen) == m * n:
        found.append("every entry is known: there is nothing to complete, the fit smooths")
    if min(m, n) == 1:
        found.append(
            "one row or column alone says nothing of its unknown entries: they get the mean"
        )
    return found


def _auto(
    seen: Observations,
    kind: str,
    chosen: bool,
    rng: np.random.Generator,
    calibrate: bool,
    progress: Any,
    params: dict[str, Any],
) -> tuple[LowRank, list[str]]:
    """Return the better of low-rank and rank one, and why; `chosen` says that the likelihood was not asked for."""
    why = LIKELIHOOD_WORDS[kind]
    if kind == "binary" and chosen and min(seen.shape) < TINY_SIDE:
        kind, why = _tiny(seen, rng, params)
    found = _calibrated(seen, low_rank, kind, rng, calibrate, {**params, "progress": progress})
    plural = "s" if found.rank != 1 else ""
    reasons = [*why, f"low-rank found {found.rank} component{plural} beside the biases"]
    constant = float(np.ptp(seen.values)) == 0
    if (
        kind in ("binary", "counts")
        or found.rank > 2
        or min(seen.shape) < 2
        or constant
        or params
        or len(seen) < 5
    ):
        return found, reasons
    errors = compare(seen, (low_rank, without_words(rank_one)), rng)
    if errors is None:
        return found, [*reasons, "too few linked entries to try rank one"]
    general, one = errors
    compared = f"side by side, held-out error {general:.4g} with low-rank, {one:.4g} with rank one"
    if one >= MARGIN * general:
        return found, [*reasons, compared]
    products = rank_one(seen)
    report = {**products.report, "method": "rank-one", "rank": 1, "held_out_rmse": one}
    return replace(products, report=report), [f"rank one fits better: {compared}"]


def _tiny(
    seen: Observations, rng: np.random.Generator, params: dict[str, Any]
) -> tuple[str, list[str]]:
    """Return the likelihood of yes/no answers with the smaller held-out loss, and why: on tiny sides logits overfit."""
    kept, held = seen.split(0.2, np.random.default_rng(rng.integers(2**63)))
    low, high = np.unique(seen.values)
    yes = held.values == high
    losses = []
    for fit in ("binary", "gaussian"):
        if len(np.unique(kept.values)) < 2 or not len(held):
            return "ordinal", ["two-valued answers on a tiny side: too few to fit probabilities"]
        found = low_rank(kept, likelihood=fit, **params)
        chance = (found.entries(held.rows, held.cols) - low) / (high - low)
        chance = np.clip(chance, CLIPPED, 1.0 - CLIPPED)
        losses.append(float(-np.mean(np.log(np.where(yes, chance, 1.0 - chance)))))
    words = f"held-out log-loss {losses[0]:.3g} as probabilities, {losses[1]:.3g} as numbers"
    if losses[0] < losses[1]:
        return "binary", [*LIKELIHOOD_WORDS["binary"], words]
    return "ordinal", [f"two-valued answers on a tiny side: fitted as numbers, {words}"]


def _calibrated(
    seen: Observations,
    fit: Callable[..., LowRank],
    kind: str,
    rng: np.random.Generator,
    calibrate: bool,
    params: dict[str, Any],
) -> LowRank:
    """Return the fit of low_rank with intervals, its likelihood `kind`."""
    if kind in ("binary", "counts"):
        params = {**params, "likelihood": kind}
    if not calibrate:
        return fit(seen, **params)
    empty = bool(np.any(seen.row_counts == 0) or np.any(seen.col_counts == 0))
    levels = None
    if kind == "ordinal":
        levels = np.unique(seen.values)
    found = conformal(seen, fit, levels=levels, cold=empty, rng=rng, **params)
    if found.report.get("held_out") and fit is low_rank:
        # what biases alone would do, on as many held-out entries: the yardstick for the held-out error
        kept, held = _some_rows(seen).split(0.1, np.random.default_rng(0))
        plain = low_rank(kept, 0)  # numbers, whatever the likelihood
        error = float(np.sqrt(np.mean((plain.entries(held.rows, held.cols) - held.values) ** 2)))
        found = replace(found, report={**found.report, "bias_rmse": error})
    return found


def _some_rows(seen: Observations) -> Observations:
    """Return so many whole rows, at random, as have about YARDSTICK entries: enough to tell what biases alone would do."""
    if len(seen) <= YARDSTICK:
        return seen
    drawn = np.random.default_rng(0).random(seen.shape[0]) < YARDSTICK / len(seen)
    return seen.take(drawn[seen.rows])


def _named(
    seen: Observations,
    method: str,
    kind: str,
    rng: np.random.Generator,
    calibrate: bool,
    progress: Any,
    params: dict[str, Any],
) -> LowRank:
    """Return the completion by the method of this name."""
    from entrywise.methods import get

    row = get(method, "passive")
    fit = row.load()
    params = _checked(row.name, fit, params, progress)
    if row.name == "low-rank":
        found = _calibrated(seen, fit, kind, rng, calibrate, params)
        return replace(found, report={**found.report, "method": row.name})
    found = fit(seen, **params)
    if not isinstance(found, LowRank):
        raise ParameterError(
            f"{row.name} does not complete a matrix; use low-rank, soft-impute or another that does"
        )
    report = {**found.report, "method": row.name}
    if calibrate and type(found) is LowRank:  # others bring their own intervals
        trial = conformal(seen, fit, refit=False, rng=rng, **params)
        told = ("held_out", "held_out_rmse", "interval")
        report |= {key: trial.report[key] for key in told if key in trial.report}
        found = replace(found, calibration=trial.calibration)
    return replace(found, report=report)


def _checked(
    name: str, fit: Callable[..., Any], params: dict[str, Any], progress: Any
) -> dict[str, Any]:
    """Return the parameters that a method gets; refuse those it does not take and ask for those it needs."""
    takes = inspect.signature(fit).parameters
    others = list(takes.values())[1:]
    unknown = [given for given in params if given not in takes]
    if unknown:
        raise ParameterError(
            f"{name} takes no parameter {unknown[0]!r}; it takes {', '.join(p.name for p in others)}"
        )
    required = [p.name for p in others if p.default is p.empty and p.name not in params]
    if required:
        raise ParameterError(f"{name} needs {', '.join(required)}; give it")
    if progress is not None and "progress" in takes:
        return {**params, "progress": progress}
    return params
