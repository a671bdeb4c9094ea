"""Plans by name: a study keeps a plan as its name, its parameters as plain JSON, and a seed."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from entrywise import __version__, methods
from entrywise.exceptions import ParameterError, StoreError
from entrywise.queries import Plan, Prices
from entrywise.results.kept_features import keep_features
from entrywise.study.records import Record

FEATURES = ("row_features", "col_features")  # parameters that describe lines


def versions() -> dict[str, str]:
    """Return what a study notes of the software that made it."""
    return {"entrywise": __version__, "numpy": np.__version__, "python": platform.python_version()}


Maker = Callable[[str], Callable[..., Plan]]  # a plan's name -> the function that makes it


def makers(allowed: Mapping[str, Callable[..., Plan]] | None = None) -> Maker:
    """Return how plans are found by name: registered methods, installed ones, and those that are `allowed`.

    Data never name code: ``module:function`` in a database or an archive is opened only where the person who opens
    it says so.
    """
    given = dict(allowed or {})

    def find(name: str) -> Callable[..., Plan]:
        if name in given:
            return given[name]
        if any(method.name == name for method in methods.METHODS):
            made: Callable[..., Plan] = methods.get(name, "active").load()
            return made
        for entry in importlib.metadata.entry_points(group="entrywise.plans"):
            if entry.name == name:
                return checked(name, entry.load())
        if ":" in name:
            raise StoreError(
                f"this study runs {name!r}, a plan that is not of entrywise; if you trust it, open it with "
                f"--allow-plan {name}, or Study.open(..., plans={{{name!r}: function}})"
            )
        made_: Callable[..., Plan] = methods.get(name, "active").load()
        return made_  # says which names there are

    return find


def imported(name: str) -> Callable[..., Plan]:
    """Return the plan at ``module:function``, which a person named."""
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except Exception as error:  # the module is somebody's own
        raise ParameterError(
            f"a plan is a method's name or module:function, got {name!r}: {error}"
        ) from None
    return checked(name, found)


def checked(name: str, found: Any) -> Callable[..., Plan]:
    """Refuse what cannot make a plan."""
    if not callable(found):
        raise ParameterError(
            f"{name} must be a function that returns a Plan, got {type(found).__name__}"
        )
    return found  # type: ignore[no-any-return]


def sized(
    plan: str,
    made: Callable[..., Plan],
    params: Mapping[str, Any],
    rows: Sequence[str] | None,
    cols: Sequence[str] | None,
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return (params with the sizes that labels give, labels by axis)."""
    found = dict(params)
    if rows is None and cols is None:
        return found, {}
    labels = {
        axis: unique(names, axis)
        for axis, names in (("row", rows), ("col", cols))
        if names is not None
    }
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


def unique(names: Sequence[str], axis: str) -> list[str]:
    """Return labels as texts; refuse one that is there twice."""
    found = [str(name) for name in names]
    if len(set(found)) < len(found) or not found:
        twice = next((name for k, name in enumerate(found) if name in found[:k]), None)
        raise ParameterError(
            f"labels of {axis}s must be unique, and there must be one; "
            + (
                "none was given"
                if twice is None
                else f"{twice!r} would be there twice, leave one out"
            )
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


def features_of(
    params: Mapping[str, Any], labels: Mapping[str, Sequence[str]], shape: Sequence[int | None]
) -> dict[str, Any]:
    """Return the features of lines among the parameters as a study keeps them, in the order of the lines."""
    found = {}
    for name, axis, size in zip(FEATURES, ("row", "col"), shape, strict=True):
        if params.get(name) is not None:
            found[name] = keep_features(params[name], labels.get(axis), int(size or 0), axis)
    return found


def without_features(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other parameters; features that are None, which takes them away, included."""
    return {k: v for k, v in params.items() if k not in FEATURES or v is None}


def _number(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be kept")


def parameters(function: Callable[..., Plan]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters that a plan takes."""
    return inspect.signature(function).parameters


def streams(plan: str) -> bool:
    """Tell whether a registered plan is a streaming one; code that data name is not looked at."""
    return _says(plan, "streaming")


def by_worker(plan: str) -> bool:
    """Tell whether the columns of a registered plan are workers, who are asked for their own labels."""
    return _says(plan, "by_worker")


def classes_of(record: Record) -> list[str] | None:
    """Return the names of values of a study whose answers are classes; None where they are numbers."""
    return record.params.get("classes") if by_worker(record.plan) else None


def named_column(
    plan: str, params: Mapping[str, Any], labels: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the column of gold by its number, where it is given by its label."""
    given = params.get("gold")
    if not isinstance(given, str) or not by_worker(plan):
        return {}
    names = list(labels.get("col", ()))
    if given not in names:
        raise ParameterError(
            f"gold must be one of the columns, got {given!r}; add a column for whoever knows the truth"
        )
    return {"gold": names.index(given)}


def _says(plan: str, what: str) -> bool:
    method = next((m for m in methods.METHODS if m.name == plan and m.room == "active"), None)
    return method is not None and bool(getattr(method.load(), what, False))


def prices_of(record: Record) -> Prices | None:
    """Return what the study quotes."""
    return None if record.prices is None else Prices.from_json(record.prices)


def make(record: Record, maker: Maker) -> Plan:
    """Return the plan of a study's epoch; seed, money and prices go to it where it takes them."""
    function = maker(record.plan)
    takes = parameters(function)
    params = {
        k: tuple(v) if k == "shape" and isinstance(v, list) else v for k, v in record.params.items()
    }
    if "rng" in takes:
        params["rng"] = record.seed
    if "budget" in takes and record.total is not None:
        params["budget"] = record.total
    if "prices" in takes and record.prices is not None:
        params["prices"] = prices_of(record)
    try:
        plan: Any = function(**params)
    except TypeError as error:
        raise ParameterError(
            f"{record.plan} does not take these parameters: {error}; give a function that returns a Plan"
        ) from None
    if not isinstance(plan, Plan):
        raise ParameterError(
            f"{record.plan} must return a Plan, got {type(plan).__name__}; decorate it with @plan"
        )
    return plan
