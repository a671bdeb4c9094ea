"""Features of lines in a file: a table whose first column names the lines, or an array."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from entrywise.exceptions import DataError
from entrywise.results.features import FeatureColumn, FeatureTable
from entrywise.tables import files
from entrywise.tables.numbers import is_gap
from entrywise.tables.roles import read_labels

NUMPY = (".npy", ".npz")


def read_features(path: str | os.PathLike[str]) -> Any:
    """Return features as :func:`entrywise.complete` takes them.

    A table has a header and the labels of the lines in its first column; numbers may have gaps, texts are categories. An
    ``.npy`` file holds an array with a line for every row or column, or their similarity.
    """
    if files.ending(path) in NUMPY:
        found = files.arrays_of(path)
        if isinstance(found, dict):
            if len(found) != 1:
                raise DataError(f"{path} must hold one array of features, got {len(found)}")
            found = next(iter(found.values()))
        return np.asarray(found, np.float64)
    labels, table = read_labels(path)
    columns = []
    for column in table.columns[1:]:
        if column.kind == "text":
            texts = [None if is_gap(cell) else cell for cell in column.cells]
            columns.append(FeatureColumn(column.name, None, texts))
        else:
            columns.append(FeatureColumn(column.name, column.numbers, None))
    if not columns:
        raise table.error("has no features beside the labels; give at least one column")
    return FeatureTable(labels, columns)
