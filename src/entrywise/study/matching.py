"""What a plan wants, held against the questions that a study has: new, asked before, or withdrawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.queries import Batch
from entrywise.run import entry_keys
from entrywise.study import past
from entrywise.study.leases import NOT_GONE
from entrywise.study.records import Key, Record, Want
from entrywise.types import Array, Indices

Cell = tuple[str, int, int]  # mode, row, col


def cell_of(record: Record, mode: str, row: int, col: int) -> Cell:
    """Return the entry that a question is about; (i, j) and (j, i) are one of a symmetric matrix."""
    if record.symmetric and row > col:
        row, col = col, row
    return mode, row, col


def questions_of(record: Record, known: past.Past, here: Any) -> dict[Cell, Key]:
    """Return the latest question of each entry, among those that are `here`."""
    t = known.table[here]
    entries = zip(t.mode.tolist(), t.rows.tolist(), t.cols.tolist(), strict=True)
    cells = (cell_of(record, *entry) for entry in entries)
    return dict(zip(cells, known.keys(here), strict=True))


def matched(
    record: Record,
    batch: Batch,
    open_: Indices,
    bill: Array,
    prices: Array,
    earlier: dict[Cell, list[tuple[Key, float]]],
) -> tuple[Indices, list[Want]]:
    """Return (positions that are new, wants of questions that earlier epochs asked and nobody answered)."""
    left = {cell: list(keys) for cell, keys in earlier.items()}
    fresh, again = [], []
    for k in open_.tolist():
        cell = cell_of(record, batch.mode, int(batch.rows[k]), int(batch.cols[k]))
        if not left.get(cell):
            fresh.append(k)
            continue
        key, until = left[cell].pop(0)
        back = until < NOT_GONE
        price = float(bill[k] if batch.unit is not None else prices[k])
        again.append(Want(k, key=key, price=price if back else None, requeue=back))
    return np.array(fresh, np.int64), again


def repeats(
    record: Record, batch: Batch, at: Indices, before: int, there: set[Cell] | None = None
) -> Indices:
    """Return numbers that tell the questions of one entry apart: 0, or how many were asked before in all."""
    running = before + 1 + np.arange(len(at))
    if record.fresh:
        return running
    keys = entry_keys(record.symmetric, batch.rows[at], batch.cols[at])
    again = np.ones(len(at), dtype=bool)
    again[np.unique(keys, return_index=True)[1]] = False
    for k in np.flatnonzero(~again).tolist() if there else ():
        i, j = int(batch.rows[at[k]]), int(batch.cols[at[k]])
        again[k] = cell_of(record, batch.mode, i, j) in (there or ())
    return np.where(again, running, 0)
