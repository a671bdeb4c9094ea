"""Plans by name: a study keeps a plan as its name, its parameters as plain JSON, and a seed."""

from __future__ import annotations

import importlib
import inspect
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from entrywise import __version__, methods
from entrywise.exceptions import ParameterError
from entrywise.queries import Plan, Prices
from entrywise.study.store import Record


def versions() -> dict[str, str]:
    """Return what a study notes of the software that made it."""
    return {"entrywise": __version__, "numpy": np.__version__, "python": platform.python_version()}


def maker(name: str) -> Callable[..., Plan]:
    """Return the function that makes the plan called `name`, or the one at ``module:function``."""
    if ":" not in name:
        made: Callable[..., Plan] = methods.get(name, "active").load()
        return made
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"a plan is a method's name or module:function, got {name!r}: {error}"
        ) from None
    if not callable(found):
        raise ParameterError(
            f"{name} must be a function that returns a Plan, got {type(found).__name__}"
        )
    return found  # type: ignore[no-any-return]


def parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters that a plan takes."""
    return inspect.signature(maker(name)).parameters


def sized(
    plan: str, params: Mapping[str, Any], rows: Sequence[str] | None, cols: Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return (params with the sizes that labels give, labels by axis)."""
    found = dict(params)
    if rows is None and cols is None:
        return found, {}
    labels = {
        axis: _unique(names, axis)
        for axis, names in (("row", rows), ("col", cols))
        if names is not None
    }
    made = maker(plan)
    size, symmetric = getattr(made, "size", "shape"), getattr(made, "symmetric", False)
    if size == "shape":
        found[size] = _shaped(plan, found.get(size), labels)
    elif symmetric or "row" not in labels:  # a side, or the attributes of fresh samples
        for axis, names in labels.items():
            found[size] = _agree(found.get(size), len(names), axis)
    else:
        raise ParameterError(
            f"the rows of {plan} are samples that come to exist as they are asked for; "
            "give labels of its columns alone"
        )
    return found, labels


def _shaped(plan: str, given: Any, labels: Mapping[str, Sequence[str]]) -> list[int]:
    """Return (m, n) from what was given and the labels of both axes."""
    shape = list(given or (None, None))
    for k, axis in enumerate(("row", "col")):
        if axis in labels:
            shape[k] = _agree(shape[k], len(labels[axis]), axis)
    if None in shape:
        raise ParameterError(
            f"the shape of {plan} is known in part only; give labels of both axes, or shape"
        )
    return shape


def _agree(given: int | None, count: int, axis: str) -> int:
    if given is not None and given != count:
        raise ParameterError(
            f"there are {count} labels of {axis}s, but a size of {given} was given; they must agree"
        )
    return count


def _unique(names: Sequence[str], axis: str) -> list[str]:
    found = [str(name) for name in names]
    if len(set(found)) < len(found) or not found:
        twice = next((name for k, name in enumerate(found) if name in found[:k]), None)
        raise ParameterError(
            f"labels of {axis}s must be unique, and there must be one; got {twice!r} twice"
        )
    return found


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON keeps them, refusing what it cannot keep."""
    try:
        found: dict[str, Any] = json.loads(
            json.dumps(dict(params), default=_number, allow_nan=False)
        )
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"a study keeps parameters as plain JSON: {error}; give numbers, texts and lists"
        ) from None
    return found


def _number(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be kept")


def make(record: Record) -> tuple[Plan, float | None, Prices | None]:
    """Return (plan, budget for the ledger, prices for the ledger) of a study.

    Budget and prices go to the plan when it takes them; the ledger enforces the budget in any case.
    """
    takes = parameters(record.plan)
    params = {
        k: tuple(v) if k == "shape" and isinstance(v, list) else v for k, v in record.params.items()
    }
    prices = None if record.prices is None else Prices.from_json(record.prices)
    if "rng" in takes:
        params["rng"] = record.seed
    if "budget" in takes and record.budget is not None:
        params["budget"] = record.budget
    if "prices" in takes and prices is not None:
        params["prices"], prices = prices, None
    plan = maker(record.plan)(**params)
    if not isinstance(plan, Plan):
        raise ParameterError(
            f"{record.plan} must return a Plan, got {type(plan).__name__}; decorate it with @plan"
        )
    return plan, record.budget if record.budget is not None else plan.budget, prices
