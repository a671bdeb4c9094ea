"""What each answer is off from a fit without it: cells left out by fifths of every row."""

from __future__ import annotations

import numpy as np

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.observations import Observations
from entrywise.types import Array, Indices

FOLDS = 5  # fits to learn a row's errors from; ten were no better


def folds_within_rows(rows: Indices, folds: int, rng: np.random.Generator) -> Indices:
    """Return the fold of each cell, every row dealt out evenly, each from another fold on, shape (t,)."""
    by_row = np.lexsort((rng.random(len(rows)), rows))
    sorted_rows = rows[by_row]
    first = np.searchsorted(sorted_rows, sorted_rows)
    turn = np.arange(len(rows)) - first
    start = rng.integers(folds, size=int(rows.max(initial=0)) + 1)
    found = np.empty(len(rows), np.int64)
    found[by_row] = (turn + start[sorted_rows]) % folds
    return found


def left_out_residuals(
    seen: Observations,
    rank: int | None,
    folds: int = FOLDS,
    rng: int = 0,
    model: AnswerModel | None = None,
) -> Array:
    """Return what each answer is off from a fit without it, cells left out by fifths of every row, shape (t,)."""
    model = AnswerModel() if model is None else model
    fold = folds_within_rows(seen.rows, folds, np.random.default_rng(rng))
    residual = np.zeros(len(seen))
    for f in range(folds):
        out = fold == f
        if not out.any() or out.all():
            residual[out] = seen.values[out] - seen.values.mean()
            continue
        fit = model.fit(seen.take(np.flatnonzero(~out)), rank)
        residual[out] = seen.values[out] - fit.entries(seen.rows[out], seen.cols[out])
    return residual
