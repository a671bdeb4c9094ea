"""Entries that somebody measured anyway: known from the beginning, or added later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import sqlalchemy as sa

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.queries import History
from entrywise.run import Known, by_mode, refuse_asymmetry
from entrywise.study.changes.epoch import Change, Said, begin_epoch, same
from entrywise.study.entries import Labels
from entrywise.study.records import Key, Record, number_or_none
from entrywise.study.schema import questions
from entrywise.study.store import Store
from entrywise.types import Indices


def add(store: Store, name: str, labels: Labels, seen: Known) -> int:
    """Add entries that somebody measured anyway, as known; return how many."""

    def edit(record: Record) -> Change:
        table = known_table(replace(record, fresh=False), seen, labels)
        if record.fresh:
            return same(record, "add", known=table)
        there = _questions_at(store, record, table)
        new = np.array([key is None for key in there], dtype=bool)
        said = [
            Said(key, "known", value=float(table.values[k]), noise=number_or_none(table.noise[k]))
            for k, key in enumerate(there)
            if key is not None
        ]
        return same(record, "add", known=table[new], said=said)

    begin_epoch(store, name, edit)
    return len(seen) if isinstance(seen, Observations) else sum(map(len, seen.values()))


def known_table(record: Record, known: Known | None, names: Labels) -> History:
    """Return known entries of all instruments as one table."""
    parts = []
    for mode, seen in by_mode(record.params, known).items():
        table = _known_by(record, seen, names)
        parts.append(replace(table, mode=np.full(len(table), mode)))
    return sum(parts, History.empty())


def _known_by(record: Record, seen: Observations, names: Labels) -> History:
    """Return known entries as a table, labels translated, sizes and symmetry checked."""
    _refuse_useless(record, seen)
    rows = _translated("row", seen.rows, seen.row_labels, names.rows)
    cols = _translated("col", seen.cols, seen.col_labels, names.cols)
    values, noise = seen.values, seen.noise_array(default=np.nan)
    if record.symmetric:
        whole = (record.n_rows or int(rows.max(initial=0)) + 1, record.n_cols or 1)
        refuse_asymmetry(Observations(rows, cols, values, whole))
        pairs = (np.minimum(rows, cols) << 31) | np.maximum(rows, cols)  # (i, j) and (j, i) are one
        first = np.sort(np.unique(pairs, return_index=True)[1])
        rows, cols, values, noise = rows[first], cols[first], values[first], noise[first]
    size = len(rows)
    known = np.ones(size, dtype=bool)
    return History(rows, cols, values, noise=noise, price=np.zeros(size), known=known)


def _refuse_useless(record: Record, seen: Observations) -> None:
    """Refuse known entries where the plan cannot use any, or where they do not fit its matrix."""
    if record.fresh and not record.history:
        raise ParameterError(
            f"{record.plan} wants fresh answers each time; known entries cannot serve it, leave them out"
        )
    for count, size in zip(seen.shape, (record.n_rows, record.n_cols), strict=True):
        if size is not None and count > size:
            raise ParameterError(
                f"known entries have shape {seen.shape}, the study's is {record.n_rows, record.n_cols}"
            )


def _translated(
    axis: str, lines: Indices, given: Sequence[str] | None, own: Sequence[str] | None
) -> Indices:
    """Return lines as the study numbers them, by their labels where both have labels."""
    if own is None or given is None or tuple(own) == given:
        return lines
    code = {label: k for k, label in enumerate(own)}
    missing = next((label for label in given if label not in code), None)
    if missing is not None:
        raise ParameterError(
            f"known entries (--known) name the {axis} {missing!r}, which the study does not have; "
            f"leave it out, or add it to --{axis}s"
        )
    return np.array([code[label] for label in given], np.int64)[lines]


def _questions_at(store: Store, record: Record, table: History) -> list[Key | None]:
    """Return the question that stands for each entry, where there is one."""
    if record.params.get("target") is not None:
        return _questions_by_mode(store, record, table)
    entries = list(zip(table.rows.tolist(), table.cols.tolist(), strict=True))
    found = []
    for match, last in store.tells.find(record, entries):
        found.append(match[0] if match else last)
    return found


def _questions_by_mode(store: Store, record: Record, table: History) -> list[Key | None]:
    """Return the last question of each entry by its own instrument."""
    q = questions.c
    query = sa.select(q.mode, q.row, q.col, q.batch, q.position).where(q.study == record.id)
    query = query.order_by(q.batch, q.position)
    asked = store.database.read(lambda c: c.execute(query).all())
    there = {(x[0], int(x[1]), int(x[2])): (int(x[3]), int(x[4])) for x in asked}
    entries = zip(table.mode.tolist(), table.rows.tolist(), table.cols.tolist(), strict=True)
    return [there.get(entry) for entry in entries]
