"""Features of lines as plain JSON, in the order of the lines: how a study keeps them, and adds those of new lines.

``{"columns": {name: values}}`` for frames, ``{"array": lines}`` for arrays and similarities, ``{"sparse": {shape, rows,
cols, values}}``. A gap is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entrywise.exceptions import DataError
from entrywise.results.features import FeatureColumn, FeatureTable, columns_of, is_kernel
from entrywise.types import Array

Kept = dict[str, Any]


def keep_features(given: Any, labels: Sequence[str] | None, lines: int, side: str) -> Kept:
    """Return the features of the lines as JSON keeps them; a frame is matched by label, else by place.

    >>> keep_features([[1.0, float("nan")], [2.0, 3.0]], None, 2, "row")
    {'array': [[1.0, None], [2.0, 3.0]]}
    """
    if isinstance(given, Mapping):
        given = open_features(given)
    if hasattr(given, "tocoo"):
        return _kept_sparse(given, lines, side)
    if hasattr(given, "columns"):
        columns = columns_of(given, labels, lines, side)
        return {"columns": {column.name: _values(column) for column in columns}}
    X = _array(given, lines, side)
    return {"array": [[_number(x) for x in line] for line in X]}


def open_features(kept: Mapping[str, Any]) -> Any:
    """Return kept features as :func:`entrywise.complete` takes them."""
    if "columns" in kept:
        return FeatureTable(
            None, [_column(name, values) for name, values in kept["columns"].items()]
        )
    if "array" in kept:
        return np.array(kept["array"], np.float64)  # None becomes NaN
    if "sparse" in kept:
        from scipy.sparse import csr_array

        part = kept["sparse"]
        at = (np.array(part["rows"], np.int64), np.array(part["cols"], np.int64))
        return csr_array((np.array(part["values"], np.float64), at), shape=tuple(part["shape"]))
    raise DataError(
        f"kept features must have 'columns', 'array' or 'sparse', got {', '.join(map(str, kept))}"
    )


def extend_features(
    kept: Kept, given: Any, labels: Sequence[str] | None, more: int, side: str
) -> Kept:
    """Return kept features with those of `more` new lines; gaps where nothing is said of them.

    A similarity has to be given anew, of all lines, old and new.
    """
    if isinstance(given, Mapping):
        given = open_features(given)
    before = open_features(kept)
    if isinstance(before, FeatureTable):
        return _longer_table(before, given, labels, more, side)
    if not isinstance(before, np.ndarray):
        return _longer_sparse(before, given, more, side)
    lines = len(before) + more
    if is_kernel(before, len(before)):
        if given is None or np.shape(given) != (lines, lines):
            raise DataError(
                f"the {side}s have a similarity; give that of all {lines} lines, old and new, as features"
            )
        return keep_features(given, None, lines, side)
    new = np.full((more, before.shape[1]), np.nan)
    if given is not None:
        new = _array(given, more, side)
    if new.shape[1] != before.shape[1]:
        raise DataError(
            f"features of new {side}s must be {before.shape[1]} numbers a line, got {new.shape[1]}"
        )
    return keep_features(np.vstack([before, new]), None, lines, side)


def _longer_table(
    before: FeatureTable, given: Any, labels: Sequence[str] | None, more: int, side: str
) -> Kept:
    new: dict[str, list[Any]] = {}
    if given is not None:
        new = keep_features(given, labels, more, side)["columns"]
    found = {}
    for column in before.columns:
        values = new.get(column.name, [None] * more)
        numbers = column.numbers is not None
        strange = next((v for v in values if isinstance(v, str) is numbers and v is not None), None)
        if strange is not None and numbers:
            raise DataError(
                f"column {column.name!r} of the features holds numbers, got {strange!r} of a new {side}"
            )
        texts = values if numbers else [None if v is None else _text(v) for v in values]
        found[column.name] = _values(column) + texts
    return {"columns": found}


def _longer_sparse(before: Any, given: Any, more: int, side: str) -> Kept:
    from scipy.sparse import csr_array, vstack

    lines, width = before.shape
    new = csr_array((more, width)) if given is None else csr_array(given)
    if new.shape != (more, width):
        raise DataError(f"features of new {side}s must have shape {(more, width)}, got {new.shape}")
    return keep_features(vstack([before, new]), None, lines + more, side)


def in_words(kept: Mapping[str, Any]) -> str:
    """Say how large kept features are, for people.

    >>> in_words({"columns": {"legs": [4, 2, None]}})
    '3 lines: legs'
    """
    if "columns" in kept:
        lines = len(next(iter(kept["columns"].values()), []))
        return f"{lines} lines: {', '.join(kept['columns'])}"
    if "array" in kept:
        width = len(kept["array"][0]) if kept["array"] else 0
        return f"{len(kept['array'])} lines of {width} numbers"
    return "{} lines of {} numbers, most of them 0".format(*kept["sparse"]["shape"])


def _kept_sparse(given: Any, lines: int, side: str) -> Kept:
    coo = given.tocoo()
    if coo.shape[0] != lines:
        raise DataError(f"features of {side}s must have {lines} lines, got {coo.shape[0]}")
    return {
        "sparse": {
            "shape": list(map(int, coo.shape)),
            "rows": coo.row.tolist(),
            "cols": coo.col.tolist(),
            "values": coo.data.astype(float).tolist(),
        }
    }


def _array(given: Any, lines: int, side: str) -> Array:
    X = np.asarray(given, np.float64)
    if X.ndim != 2 or len(X) != lines:
        raise DataError(f"features of {side}s must have {lines} lines, got shape {X.shape}")
    return X


def _column(name: str, values: Sequence[Any]) -> FeatureColumn:
    if any(isinstance(v, str) for v in values):
        return FeatureColumn(name, None, [None if v is None else str(v) for v in values])
    return FeatureColumn(name, np.array(values, np.float64), None)


def _values(column: FeatureColumn) -> list[Any]:
    if column.numbers is None:
        return list(column.texts or [])
    return [_number(x) for x in column.numbers]


def _number(x: float) -> float | None:
    return None if np.isnan(x) else float(x)


def _text(value: Any) -> str:
    """Return a number among texts as it is written: 1, not 1.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
