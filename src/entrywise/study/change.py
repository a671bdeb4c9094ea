"""What changes a study as a whole: making, closing, reopening, correcting, forking it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError, StoreError, TellError
from entrywise.observations import Observations
from entrywise.queries import Prices
from entrywise.run import refuse_asymmetry
from entrywise.study import plans, replay, report
from entrywise.study.entries import Labels, number, parse_id
from entrywise.study.sql import SQLStore
from entrywise.study.store import Record

_OWN = ("rng", "budget", "prices", "resume")


def create(
    url: str | SQLStore,
    name: str,
    plan: str,
    params: Mapping[str, Any],
    seed: int | None,
    budget: float | None,
    prices: Prices | Mapping[str, Any] | None,
    known: Observations | None,
    rows: Sequence[str] | None,
    cols: Sequence[str] | None,
) -> SQLStore:
    """Make a new study and its first questions; a database is touched once all of that is in order."""
    if not name or "\n" in name:
        raise ParameterError(f"a study's name must be one line of text, got {name!r}")
    for own in _OWN:
        if own in params:
            word = "seed" if own == "rng" else own
            raise ParameterError(
                f"{own} is not a parameter of a study's plan; give {word} beside params"
            )
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget must be finite and not below 0, got {budget}")
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    quotes = prices.to_json() if isinstance(prices, Prices) else prices
    full, labels = plans.sized(plan, plans.plain(params), rows, cols)
    record = Record(
        name, plan, full, int(seed), budget, 0.0, None if quotes is None else Prices.from_json(quotes).to_json(),
        False, False, False, None, None, "open", None, 0, 0, 0, 0, None, plans.versions(), time.time(),
    )  # fmt: skip
    return begin(url, record, labels, {} if known is None else {"entry": known}, named=True)


def begin(
    url: str | SQLStore,
    record: Record,
    labels: dict[str, list[str]],
    known: Mapping[str, Any],
    named: bool = False,
) -> SQLStore:
    """Work out the first questions of a study and keep it, with what is known, by mode."""
    plan = plans.make(record)[0]
    shape = plan.shape or (None, None)
    if plan.symmetric and ("row" in labels) != ("col" in labels):
        both = labels.get("row") or labels["col"]
        labels = {"row": both, "col": both}
    record = replace(
        record, symmetric=plan.symmetric, fresh=plan.fresh, tolerates_failed=plan.tolerates_failed,
        n_rows=shape[0], n_cols=shape[1],
    )  # fmt: skip
    names = Labels(labels.get("row"), labels.get("col"), *shape)
    if named and known and plan.fresh:
        raise ParameterError(
            f"{record.plan} wants fresh answers each time; known entries cannot serve it, leave them out"
        )
    memory = {mode: _known(record, seen, names) if named else seen for mode, seen in known.items()}
    run = replay.start(record, memory)
    first = replay.step(run, 0)
    record = replace(
        record, state=first.state, next_batch=len(first.asked), current=len(first.asked) - 1
    )
    columns: dict[str, Any] = {
        "mode": [],
        "row": np.zeros(0, int),
        "col": np.zeros(0, int),
        "value": np.zeros(0),
    }
    for mode, (i, j, value) in memory.items():
        columns["mode"] = [*columns["mode"], *([mode] * len(i))]
        for key, part in (("row", i), ("col", j), ("value", value)):
            columns[key] = np.concatenate([columns[key], part])
    store = SQLStore.of(url)
    store.create(record, labels, {"position": np.arange(len(columns["mode"]))} | columns, first)
    return store


def _known(record: Record, seen: Observations, names: Labels) -> tuple[Any, Any, Any]:
    """Return (rows, cols, values) of known entries, labels translated, sizes and symmetry checked."""
    for count, size in zip(seen.shape, (record.n_rows, record.n_cols), strict=True):
        if size is not None and count > size:
            raise ParameterError(
                f"known entries have shape {seen.shape}, the study's is {record.n_rows, record.n_cols}"
            )
    rows, cols = seen.rows, seen.cols
    for axis, own in (("row", names.rows), ("col", names.cols)):
        given = seen.row_labels if axis == "row" else seen.col_labels
        if own is None or given is None or tuple(own) == given:
            continue
        code = {label: k for k, label in enumerate(own)}
        missing = next((label for label in given if label not in code), None)
        if missing is not None:
            raise ParameterError(
                f"known entries name the {axis} {missing!r}, which the study does not have"
            )
        into = np.array([code[label] for label in given], np.int64)
        rows, cols = (into[rows], cols) if axis == "row" else (rows, into[cols])
    if record.symmetric:
        refuse_asymmetry(
            Observations(rows, cols, seen.values, (record.n_rows or 1, record.n_cols or 1))
        )
    return rows, cols, seen.values


def close(store: SQLStore, name: str) -> None:
    """Stop asking and telling."""
    while True:
        record = store.record(name)
        if record.state != "open":
            raise StoreError(f"study {name!r} is {record.state}; only an open one can be closed")
        if store.set_state(record, state="closed"):
            return


def reopen(store: SQLStore, name: str, budget: float | None, now: float) -> None:
    """Go on with a closed study, or give money to one that needs it."""
    while True:
        record = store.record(name)
        change: dict[str, Any] = {"state": "open"}
        if budget is not None:
            if "budget" in plans.parameters(record.plan):
                raise ParameterError(
                    f"{record.plan} plans with its budget; fork the study with another, its answers serve as memory"
                )
            spent = report.money(store, record, now)
            least = spent["spent"] + spent["reserved"]
            if not (math.isfinite(budget) and budget >= least):
                raise ParameterError(
                    f"{least:g} is spent or reserved; the budget must be at least that, got {budget}"
                )
            change["budget"] = float(budget)
        elif record.state == "exhausted":
            raise ParameterError(
                f"the money of study {name!r} ran out; reopen it with a larger budget"
            )
        elif record.state != "closed":
            raise StoreError(f"study {name!r} is {record.state}; only a closed one can be reopened")
        if record.state == "finished":
            raise StoreError(
                f"study {name!r} is finished; money changes nothing, fork it for other parameters"
            )
        if store.set_state(record, **change):
            return


def amend(
    store: SQLStore,
    name: str,
    labels: Labels,
    answer: Any,
    value: Any,
    worker: str | None,
    now: float,
) -> None:
    """Correct an answer: withdraw what was asked after its batch and note the old value."""
    new = number(value)
    while True:
        record = store.record(name)
        if record.state == "closed":
            raise StoreError(f"study {name!r} is closed; reopen it to amend")
        if math.isnan(new) and not record.tolerates_failed:
            raise TellError(f"{record.plan} cannot do without an answer; amend it to a number")
        at = _which(store, record, labels, answer)
        source = store.source(record.id, at)
        if source is None:
            raise TellError(f"question {at[0]}.{at[1]} has no answer to amend; tell one")
        if source == "memory":
            entry = store.entries_of(record.id, [at])[at]
            _, told = store.find(record.id, [entry[0]], [entry[1]], record.symmetric)[0]
            where = (
                "it was known beforehand: fork the study"
                if told is None
                else f"amend {told[0]}.{told[1]}"
            )
            raise TellError(
                f"question {at[0]}.{at[1]}, entry {labels.name(*entry)}, was answered from memory; {where}"
            )
        keep = max(
            row.number
            for row in store.batches(record.id)
            if not row.dead and row.wanted and row.number <= at[0]
        )
        if store.amend(record, at, keep, None if math.isnan(new) else new, worker, now):
            return


def _which(store: SQLStore, record: Record, labels: Labels, answer: Any) -> tuple[int, int]:
    answer = getattr(answer, "id", answer)
    if isinstance(answer, str):
        at = parse_id(answer)
        if at not in store.entries_of(record.id, [at]):
            raise TellError(f"study {record.name!r} has no question {answer}")
        return at
    try:
        row, col = answer
    except (TypeError, ValueError):
        raise TellError(f"an answer to amend is an id or (row, col), got {answer!r}") from None
    entry = labels.index(row, col)
    if record.fresh:
        raise TellError("this plan measures entries repeatedly; name the answer to amend by its id")
    _, last = store.find(record.id, [entry[0]], [entry[1]], record.symmetric)[0]
    if last is None:
        raise TellError(f"entry {labels.name(*entry)} was not answered; there is nothing to amend")
    return last


def fork(
    store: SQLStore,
    name: str,
    new: str,
    *,
    url: str | SQLStore | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int | None = None,
    budget: float | None = None,
    prices: Prices | Mapping[str, Any] | None = None,
) -> SQLStore:
    """Start the plan again with all answers of a study as memory; what they cost counts."""
    record = store.record(name)
    quotes = prices.to_json() if isinstance(prices, Prices) else prices
    memory = dict(store.known(record.id))
    for dead in (True, False):  # what stands comes last, and wins
        memory = replay.joined(memory, store.told(record.id, 0, record.next_batch, dead=dead))
    begun = replace(
        record, name=new, params={**record.params, **plans.plain(params or {})}, trouble=None, cursor=0, rewinds=0,
        seed=record.seed if seed is None else int(seed), budget=record.budget if budget is None else float(budget),
        sunk=report.money(store, record, time.time())["spent"], parent=name, versions=plans.versions(),
        prices=record.prices if quotes is None else quotes, created_at=time.time(), id=0,
    )  # fmt: skip
    return begin(store if url is None else url, begun, store.labels(record.id), memory)
