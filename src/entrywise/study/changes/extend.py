"""More rows, more columns, more money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries import Prices
from entrywise.results.kept_features import extend_features
from entrywise.study import plans
from entrywise.study.changes.epoch import Change, begin_epoch, same, tried
from entrywise.study.changes.settings import quotes_of, refuse_money
from entrywise.study.plans import Maker
from entrywise.study.records import Record
from entrywise.study.store import Store

Lines = Sequence[str] | int | None  # labels of new lines, or how many there are


def extend(
    store: Store,
    name: str,
    maker: Maker,
    rows: Lines,
    cols: Lines,
    budget: float | None,
    prices: Prices | Mapping[str, Any] | None,
    features: Mapping[str, Any] | None = None,
) -> None:
    """Add rows, columns and money to a study; `features` are those of the new lines, by axis."""
    if rows is None and cols is None and budget is None:
        raise ParameterError("extend a study by rows, columns or a budget; none of them was given")
    refuse_money(budget)

    def edit(record: Record) -> Change:
        if budget is not None and record.total is None:
            raise ParameterError(
                f"study {name!r} has no budget, so it needs no more; set one with reopen(budget=)"
            )
        total = record.total if budget is None else (record.total or 0.0) + budget
        params, labels = _grown(store, record, maker, rows, cols, features or {})
        quotes = record.prices if prices is None else quotes_of(prices)
        change = same(record, "extend", total=total, params=params, prices=quotes, labels=labels)
        _refuse_short(change)
        return tried(record, change, maker)

    begin_epoch(store, name, edit)


def _grown(
    store: Store,
    record: Record,
    maker: Maker,
    rows: Lines,
    cols: Lines,
    features: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return (parameters with the new size and the features of new lines, new labels by axis)."""
    new, more = _new_lines(record, store.labels(record.id), {"row": rows, "col": cols})
    params = dict(record.params)
    size = getattr(maker(record.plan), "size", "shape")
    if size != "shape":
        if not record.symmetric and more["row"]:
            raise ParameterError(f"the rows of {record.plan} come to exist as they are asked for")
        params[size] += more["col"] or more["row"]
        return params, new
    m, n = params[size]
    params[size] = [m + more["row"], n + more["col"]]
    if params.get("available") is not None:
        there = np.asarray(params["available"], dtype=bool)
        wider = np.pad(there, ((0, more["row"]), (0, more["col"])), constant_values=True)
        params["available"] = wider.tolist()
    return params | _longer_features(params, features, new, more), new


def _new_lines(
    record: Record, there: Mapping[str, Sequence[str]], given: Mapping[str, Lines]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return (new labels, how many lines are new), by axis."""
    new: dict[str, list[str]] = {}
    more = {"row": 0, "col": 0}
    for axis, lines in given.items():
        if isinstance(lines, int):
            if axis in there:
                raise ParameterError(
                    f"the {axis}s of this study have labels; give those of the new ones: --{axis}s FILE"
                )
            more[axis] = lines
        elif lines is not None:
            if axis not in there:
                raise ParameterError(
                    f"the {axis}s of this study have no labels; say how many are new instead"
                )
            new[axis] = plans.unique([*there[axis], *lines], axis)[len(there[axis]) :]
            more[axis] = len(new[axis])
    if record.symmetric and new:
        both = new.get("row") or new["col"]
        return {"row": both, "col": both}, {"row": len(both), "col": len(both)}
    return new, more


def _longer_features(
    params: Mapping[str, Any],
    given: Mapping[str, Any],
    labels: Mapping[str, Sequence[str]],
    more: Mapping[str, int],
) -> dict[str, Any]:
    """Return the features of all lines, old and new."""
    found = {}
    for name, axis in zip(plans.FEATURES, ("row", "col"), strict=True):
        if params.get(name) is None:
            if given.get(axis) is not None:
                raise ParameterError(
                    f"the {axis}s of this study have no features; set those of all lines with change({name}=)"
                )
            continue
        if more[axis]:
            found[name] = extend_features(
                params[name], given.get(axis), labels.get(axis), more[axis], axis
            )
    return found


def _refuse_short(change: Change) -> None:
    """Refuse prices that do not reach the new lines."""
    params = change.epoch.params
    shape = params.get("shape", (params.get("n"),) * 2)
    for mode, quotes in (change.epoch.prices or {}).items():
        if not isinstance(quotes, list):
            continue
        grid = np.atleast_2d(np.asarray(quotes, np.float64))
        for count, size, axis in zip(grid.shape, shape, ("rows", "columns"), strict=True):
            if size is not None and count not in (1, size):
                raise ParameterError(
                    f"there are prices of {mode} for {count} {axis}, and {size} {axis} with the new ones; "
                    "give those of the new ones (--price rows:COLUMN, cols:COLUMN or a file)"
                )
