"""The map of a matrix: pieces of it, and all about one cell."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response

from entrywise.exceptions import ParameterError
from entrywise.results import Matrix
from entrywise.study.cells import cells, said_of
from entrywise.web import story as stories
from entrywise.web.api.common import Reader, gives, said, study_of, telling

router = APIRouter()
TILE = 1024  # rows and columns of a piece of a map, at most


@router.get(
    "/studies/{name}/tile", response_class=Response, responses=gives("application/octet-stream")
)
def tile(
    request: Request,
    name: str,
    person: Reader,
    row: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    col: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    rows: Annotated[int, Query(ge=1, le=TILE)] = TILE,
    cols: Annotated[int, Query(ge=1, le=TILE)] = TILE,
    row_every: Annotated[int, Query(ge=1, le=2**20)] = 1,
    col_every: Annotated[int, Query(ge=1, le=2**20)] = 1,
    show: Annotated[str, Query(pattern="^(value|doubt)$")] = "value",
    sort: Annotated[bool, Query()] = False,
) -> Response:
    """Return a piece of the map: a byte of state for each cell, then a float32 of value or width of the interval.

    `row_every` and `col_every` take each so-many-th row and column, so that a tall matrix is a small picture; a cell
    there has the most of the states it stands for. `sort` puts the rows by their scores. The headers ``x-rows`` and
    ``x-cols`` say how many there are.
    """
    study = study_of(request, name)
    record = study.store.record(study.name)
    if record.n_rows is None or record.n_cols is None:
        raise ParameterError("the matrix has no size; there is no map of it")
    told = telling(request, name)
    m, n = record.n_rows, record.n_cols
    order = np.arange(m)
    if sort and told is not None and told.board is not None and len(told.board.mean) == m:
        order = np.asarray(told.board.order)
    i = np.arange(row, min(row + rows * row_every, m), row_every)
    j = np.arange(col, min(col + cols * col_every, n), col_every)
    states = np.zeros((len(i), len(j)), np.uint8)
    values = np.full((len(i), len(j)), np.nan, np.float32)
    if len(i) and len(j):
        found = told.result if told is not None else None
        if isinstance(found, Matrix) and found.shape == (m, n):
            values[:] = shown(found, order[i], j, show)
        place = np.empty(m, np.int64)
        place[order] = np.arange(m)
        last = min(int(i[-1]) + row_every, m)
        whole = (0, m) if sort else (row, last)
        seen = cells(study.store, record, whole, (col, min(int(j[-1]) + col_every, n)))
        at = place[seen.rows]
        inside = (at >= row) & (at < last)
        a, b = (at[inside] - row) // row_every, (seen.cols[inside] - col) // col_every
        np.maximum.at(states, (a, b), seen.states[inside])
        known = np.isfinite(seen.values[inside])
        values[a[known], b[known]] = seen.values[inside][known] if show == "value" else 0.0
    data = states.tobytes() + values.astype("<f4").tobytes()
    headers = {"x-rows": str(len(i)), "x-cols": str(len(j))}
    return Response(data, media_type="application/octet-stream", headers=headers)


def shown(found: Any, i: Any, j: Any, show: str) -> Any:
    """Return the values of a piece of the map, or the widths of their intervals."""
    rows, cols = np.repeat(i, len(j)), np.tile(j, len(i))
    if show == "value":
        return np.asarray(found.entries(rows, cols)).reshape(len(i), len(j))
    if not stories.has_intervals(found):
        return np.nan
    low, high = found.interval(rows, cols, stories.LEVEL, of=found.interval_of)
    return (high - low).reshape(len(i), len(j))


@router.get("/studies/{name}/cell")
def cell(
    request: Request,
    name: str,
    person: Reader,
    row: Annotated[int, Query(ge=0, lt=2**31)],
    col: Annotated[int, Query(ge=0, lt=2**31)],
    sort: Annotated[bool, Query()] = False,
) -> Response:
    """Return all about one cell of the map: labels, value, interval, who told it and when."""
    study = study_of(request, name)
    record = study.store.record(study.name)
    told = telling(request, name)
    if sort and told is not None and told.board is not None and row < len(told.board.mean):
        row = int(told.board.order[row])
    names = study.labels
    if row >= (record.n_rows or 0) or col >= (record.n_cols or 0):
        raise ParameterError(f"there is no cell ({row}, {col})")
    about: dict[str, Any] = {"row": names.row(row), "col": names.col(col), "index": [row, col]}
    if told is not None and isinstance(told.result, Matrix):
        value, low, high = stories.entries(told.result, [row], [col])
        about["value"] = value[0]
        about["low"] = None if low is None else low[0]
        about["high"] = None if high is None else high[0]
    return said(about | {"said": said_of(study.store, record, row, col)})
