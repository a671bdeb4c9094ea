"""The answer of a study: its result, entries, log and report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from entrywise.exceptions import ParameterError, StoreError
from entrywise.results import Matrix
from entrywise.web import story as stories
from entrywise.web.api.bodies import Entries
from entrywise.web.api.common import (
    MOMENT,
    WAIT,
    Reader,
    background,
    gives,
    said,
    study_of,
    telling,
)
from entrywise.web.guard import named
from entrywise.web.report import written

router = APIRouter()


@router.get("/studies/{name}/result", responses=WAIT)
def result(request: Request, name: str, person: Reader) -> Response:
    """Say what the result is, what it cost and what is certified; the scores where rows are scored.

    It is the latest that was worked out; ``fresh`` says whether nothing happened since.
    """
    latest = background(request).wait(named(name), MOMENT)
    if latest is None:
        return said({"why": "it is being worked out"}, 202)
    told, fresh = latest.story, background(request).fresh(named(name), latest)
    found = told.result
    if found is None:
        return said({"kind": None, "why": told.missing, "fresh": fresh})
    shown: dict[str, Any] = {"kind": type(found).__name__, "status": found.status, "fresh": fresh}
    shown |= {"cost": found.cost, "report": dict(found.report)}
    shown["certificates"] = [vars(c) for c in found.certificates]
    shown |= {k: getattr(found, k) for k in ("shape", "rank", "pair") if hasattr(found, k)}
    shown["board"] = None if told.board is None else scored(told)
    return said(shown)


def scored(told: stories.Story) -> dict[str, Any]:
    """Return the scores by columns, the best first."""
    board = told.board
    assert board is not None
    order = board.order
    return {
        "row": [told.labels.row(int(i)) for i in order],
        "score": board.mean[order],
        "low": board.low[order],
        "high": board.high[order],
        "best_place": board.best_place[order],
        "worst_place": board.worst_place[order],
    }


@router.get(
    "/studies/{name}/result.npz",
    response_class=Response,
    responses=WAIT | gives("application/octet-stream"),
)
def result_file(
    request: Request,
    name: str,
    person: Reader,
    epoch: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    steps: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    answers: Annotated[int, Query(ge=0, lt=2**53)] = 0,
) -> Response:
    """Return the result as a file for ``Result.load``, not older than the state of the study that is given."""
    latest = background(request).wait(named(name), MOMENT, (epoch, steps, answers))
    if latest is None:
        return said({"why": "it is being worked out"}, 202)
    told = latest.story
    if told.result is None:
        raise StoreError(told.missing)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.npz")
        told.result.save(path)
        with open(path, "rb") as file:
            data = file.read()
    return Response(data, media_type="application/octet-stream")


@router.post("/studies/{name}/entries", responses=WAIT)
def completed(request: Request, name: str, body: Entries, person: Reader) -> Response:
    """Return completed entries with their intervals, by columns."""
    told = telling(request, name)
    if told is None:
        return said({"why": "it is being worked out"}, 202)
    if len(body.row) != len(body.col):
        raise ParameterError("row and col must be equally long")
    if not isinstance(told.result, Matrix):
        raise ParameterError(told.missing or "the result has no entries")
    at = [told.labels.index(r, c) for r, c in zip(body.row, body.col, strict=True)]
    i, j = ([a for a, _ in at], [b for _, b in at])
    value, low, high = stories.entries(told.result, i, j, body.level)
    return said({"value": value, "low": low, "high": high})


@router.get("/studies/{name}/log")
def log(
    request: Request,
    name: str,
    person: Reader,
    first: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    find: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Return what was asked and answered, in order; `find` keeps lines with that text."""
    lines: Iterator[dict[str, Any]] = study_of(request, name).log()
    if find:
        keys = ("id", "row", "col", "worker", "what")
        lines = (x for x in lines if any(find.lower() in str(x[k]).lower() for k in keys))
    return said(list(islice(lines, first, first + limit)))


@router.get(
    "/studies/{name}/report.html", response_class=Response, responses=WAIT | gives("text/html")
)
def report(request: Request, name: str, person: Reader) -> Response:
    """Return the report in one file, to save."""
    told = telling(request, name)
    if told is None:
        return said({"why": "it is being worked out"}, 202)
    page = written(told, stories.all_cells(study_of(request, name), told))
    headers = {"content-disposition": 'attachment; filename="report.html"'}
    return Response(page, media_type="text/html", headers=headers)
