"""Columns of names as numbers: what crowds and rankings do first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import DataError
from entrywise.linalg.small_crowd import crowd_steps
from entrywise.types import Indices

Names = NDArray[Any]

ROOMY = 4  # whole numbers up to so many times their count are numbered through a table
SMALL = 1000  # and up to so much more


def flat_names(values: ArrayLike, name: str) -> Names:
    """Return one flat array of names with none missing; objects become text."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must be one flat list, got shape {array.shape}")
    if array.dtype.kind in "OTf":
        for t, x in enumerate(array.tolist()):
            if x is None or x != x:
                raise DataError(f"{name} must not be missing, number {t} is; leave that answer out")
    if array.dtype.kind in "OTV":
        array = np.array([str(x) for x in array.tolist()])
    return array


def numbered(names: Names) -> tuple[Indices, Names]:
    """Return the names as numbers, in order of appearance, and the name of each number."""
    if names.dtype.kind in "iu" and len(names) and names.min() >= 0:
        top = int(names.max())
        if top <= ROOMY * len(names) + SMALL:
            found, first = crowd_steps(len(names)).number(names.astype(np.int64), top + 1)
            return np.asarray(found), names[first]
    code: dict[Any, int] = {}
    listed = names.tolist()
    found = np.fromiter((code.setdefault(x, len(code)) for x in listed), np.int64, len(listed))
    return found, np.array(list(code), dtype=names.dtype)
