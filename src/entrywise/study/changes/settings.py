"""Other settings of a study: open or closed, its money, parameters, prices, version, lines left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError, StoreError
from entrywise.queries import Prices
from entrywise.study import plans
from entrywise.study.changes.epoch import Change, begin_epoch, same, tried
from entrywise.study.plans import Maker
from entrywise.study.records import Record
from entrywise.study.store import Store

_OWN = ("rng", "budget", "prices", "resume", "history", "situation")


def close(store: Store, name: str) -> None:
    """Stop asking and telling."""
    while True:
        record = store.record(name)
        if record.state != "open":
            raise StoreError(f"study {name!r} is {record.state}; only an open one can be closed")
        if _set_state(store, record, "closed"):
            return


def _set_state(store: Store, record: Record, state: str) -> bool:
    change = {"cursor": record.cursor + 1, "trouble": None, "state": state}
    return store.database.write(lambda c: store.swap(c, record, change))


def reopen(store: Store, name: str, maker: Maker, budget: float | None) -> None:
    """Go on with a closed study, or set the money that a study has in all."""
    refuse_money(budget)
    if budget is not None:

        def edit(record: Record) -> Change:
            return tried(record, same(record, "reopen", total=float(budget)), maker)

        begin_epoch(store, name, edit)
        return
    while True:
        record = store.record(name)
        if record.state == "exhausted":
            raise ParameterError(
                f"the money of study {name!r} ran out; reopen it with a larger budget"
            )
        if record.state != "closed":
            raise StoreError(f"study {name!r} is {record.state}; only a closed one can be reopened")
        if _set_state(store, record, "open"):
            return


def drop(store: Store, name: str, maker: Maker, rows: Sequence[int], cols: Sequence[int]) -> None:
    """Ask no more in some rows and columns; what was answered there stays."""

    def edit(record: Record) -> Change:
        if record.streaming:
            old = record.dropped or {}
            dropped = {
                "rows": sorted({*old.get("rows", []), *rows}),
                "cols": sorted({*old.get("cols", []), *cols}),
            }
            return same(record, "drop", dropped=dropped)
        if "available" not in plans.parameters(maker(record.plan)):
            raise ParameterError(
                f"{record.plan} cannot do without a line of its matrix; fork the study without it"
            )
        m, n = record.n_rows or 0, record.n_cols or 0
        open_ = np.array(record.params.get("available") or np.ones((m, n)), dtype=bool)
        open_[list(rows), :] = False
        open_[:, list(cols)] = False
        params = {**record.params, "available": open_.tolist()}
        return tried(record, same(record, "drop", params=params), maker)

    begin_epoch(store, name, edit)


def set_params(
    store: Store,
    name: str,
    maker: Maker,
    params: Mapping[str, Any],
    prices: Prices | Mapping[str, Any] | None,
) -> None:
    """Go on with other parameters or prices."""
    refuse_own(params)

    def edit(record: Record) -> Change:
        size = getattr(maker(record.plan), "size", "shape")
        if size in params and list(np.atleast_1d(params[size])) != list(
            np.atleast_1d(record.params[size])
        ):
            raise ParameterError(f"{size} is the size of the study; extend it instead")
        both = {**record.params, **kept(params, store.labels(record.id), record)}
        quotes = record.prices if prices is None else quotes_of(prices)
        return tried(record, same(record, "change", params=both, prices=quotes), maker)

    begin_epoch(store, name, edit)


def renew(store: Store, name: str, maker: Maker) -> None:
    """Begin an epoch with this version of the plan."""

    def edit(record: Record) -> Change:
        return tried(record, same(record, "renew"), maker)

    begin_epoch(store, name, edit)


def refuse_money(budget: float | None) -> None:
    """Refuse a budget that is no money."""
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget (--budget) must be finite and not below 0, got {budget:g}")


def refuse_own(params: Mapping[str, Any]) -> None:
    """Refuse parameters that a study gives to its plan by itself."""
    for own in _OWN:
        if own in params:
            word = "seed" if own == "rng" else own
            raise ParameterError(
                f"{own} is not a parameter of a study's plan; give {word} beside params"
            )


def kept(
    params: Mapping[str, Any], labels: Mapping[str, Sequence[str]], record: Record
) -> dict[str, Any]:
    """Return other parameters of a study as it keeps them."""
    features = plans.features_of(params, labels, (record.n_rows, record.n_cols))
    others = plans.plain(plans.without_features(params))
    return others | features | plans.named_column(record.plan, others, labels)


def quotes_of(prices: Prices | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return prices as a study keeps them."""
    if prices is None:
        return None
    return (prices if isinstance(prices, Prices) else Prices.from_json(prices)).to_json()
