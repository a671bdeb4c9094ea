"""Making a study, new or from another: its first questions are worked out before a database is touched."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.active.cells.calibration import reserve_advice
from entrywise.exceptions import ParameterError
from entrywise.queries import Prices
from entrywise.run import Known
from entrywise.study import past, plans
from entrywise.study.changes.epoch import flags_of
from entrywise.study.changes.known import known_table
from entrywise.study.changes.settings import kept, quotes_of, refuse_money, refuse_own
from entrywise.study.entries import Labels
from entrywise.study.plans import Maker
from entrywise.study.records import Advance, Epoch, Record
from entrywise.study.schema import GIVEN
from entrywise.study.steps import Steps
from entrywise.study.store import Store


def create(
    url: str | Store,
    name: str,
    plan: str,
    maker: Maker,
    params: Mapping[str, Any],
    seed: int | None,
    budget: float | None,
    prices: Prices | Mapping[str, Any] | None,
    known: Known | None,
    rows: Sequence[str] | None,
    cols: Sequence[str] | None,
    currency: str | None,
) -> Store:
    """Make a new study and its first questions; a database is touched once all of that is in order."""
    refuse_own(params)
    refuse_money(budget)
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    others = plans.plain(plans.without_features(params))
    full, labels = plans.sized(plan, maker(plan), others, rows, cols)
    full |= plans.features_of(params, labels, full.get("shape") or (None, None))
    full |= plans.named_column(plan, full, labels)
    record = Record(
        name=name,
        plan=plan,
        seed=int(seed),
        params=full,
        prices=quotes_of(prices),
        total=None if budget is None else float(budget),
        currency=currency,
    )
    return begin(url, record, maker, labels, known)


def begin(
    url: str | Store,
    record: Record,
    maker: Maker,
    labels: Mapping[str, list[str]],
    known: Known | past.Past | None,
    change: str = "create",
) -> Store:
    """Work out the first questions of a study and keep it, with what is known."""
    if not record.name or "\n" in record.name:
        raise ParameterError(f"a study's name must be one line of text, got {record.name!r}")
    plan = plans.make(record, maker)
    shape = plan.shape or (None, None)
    if plan.symmetric and ("row" in labels) != ("col" in labels):
        both = labels.get("row") or labels["col"]
        labels = {"row": both, "col": both}
    record = replace(
        record,
        **flags_of(plan),
        n_rows=shape[0],
        n_cols=shape[1],
        total=record.total if record.total is not None else plan.budget,
        versions=plans.versions(),
    )
    names = Labels(labels.get("row"), labels.get("col"), *shape)
    if not isinstance(known, past.Past):
        known = past.given(known_table(record, known, names))
    record = replace(record, given=int((known.batch == GIVEN).sum()))
    made = Steps(None, maker).first(record, known)
    _warn_of_reserve(record, made)
    store = Store.of(url)
    record = replace(record, created_at=store.now())
    epoch = Epoch(record.params, record.prices, record.total, change, record.dropped)
    store.create(record, epoch, labels, known, made)
    return store


def _warn_of_reserve(record: Record, made: Advance) -> None:
    """Warn where the blind reserve that is asked first will be too small for the intervals that it is for."""
    share = record.params.get("reserve")
    if not isinstance(share, float) or not 0 < share < 1 or not made.steps:
        return
    first = made.steps[0].batch
    if first is None or first.arm is None or first.probability is None or record.budget is None:
        return
    chance = first.probability[first.arm == "reserve"]
    cells = (record.n_rows or 0) * (record.n_cols or 0) - record.given
    words = reserve_advice(chance, share, record.budget, cells)
    if words is not None:
        warnings.warn(words, stacklevel=5)


def fork(
    store: Store,
    name: str,
    new: str,
    maker: Maker,
    *,
    url: str | Store | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int | None = None,
    budget: float | None = None,
    prices: Prices | Mapping[str, Any] | None = None,
) -> Store:
    """Start the plan again under a new name with all that was told; what it cost counts, what is out stays behind."""
    record = store.record(name)
    refuse_own(params or {})
    labels = store.labels(record.id)
    told = past.read(store.database, record)
    there = told.state == past.ANSWERED
    copied = past.Past(
        told.batch[there], told.position[there], told.told, told.state[there], unseen=[]
    )
    begun = Record(
        name=new,
        plan=record.plan,
        seed=record.seed if seed is None else int(seed),
        params={**record.params, **kept(params or {}, labels, record)},
        prices=record.prices if prices is None else quotes_of(prices),
        dropped=record.dropped,
        currency=record.currency,
        total=record.total if budget is None else float(budget),
        committed=float(copied.table.price.sum()),
        first_step=record.next_step,
        next_step=record.next_step,
        asked=int((copied.batch != GIVEN).sum()),
        parent=name,
    )
    return begin(store if url is None else url, begun, maker, labels, copied, "fork")
