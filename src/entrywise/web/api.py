"""The JSON interface under ``/api/v1``: arrays in, arrays out, so that many answers are one call. Runs no plan."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Annotated, Any

import numpy as np
from fastapi import (
    APIRouter,
    Depends,
    File,
    Form,
    Query,
    Request,
    Response,
    UploadFile,
)
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from entrywise.exceptions import ParameterError, StoreError, TellError
from entrywise.methods import get
from entrywise.queries import Prices
from entrywise.results import Matrix
from entrywise.study import Study, changes, entries, plans, status, tokens
from entrywise.study.cells import cells, far_off, said_of
from entrywise.study.course import last_answers
from entrywise.study.records import Filter
from entrywise.study.study import joined
from entrywise.web import story as stories
from entrywise.web import uploads
from entrywise.web.background import Background
from entrywise.web.forecast import forecast
from entrywise.web.guard import Who, named, needs, who
from entrywise.web.report import written


class Mistake(BaseModel):
    """What was wrong with a request: a sentence, or what of it could not be understood."""

    message: str | None = None
    kind: str | None = None
    detail: Any = None


REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Mistake, "description": "The body cannot be read."},
    401: {"model": Mistake, "description": "No token, or one that is unknown, expired or revoked."},
    403: {"model": Mistake, "description": "The role does not allow it, or the CSRF header lacks."},
    404: {"model": Mistake, "description": "There is no such study or address."},
    408: {"model": Mistake, "description": "The body came too slowly."},
    413: {"model": Mistake, "description": "The body is too large."},
    421: {"model": Mistake, "description": "The service is not called by that name."},
    422: {"model": Mistake, "description": "The request is wrong; nothing was changed."},
}
api = APIRouter(prefix="/api/v1", responses=REFUSED)
MOMENT = 0.3  # seconds that a request waits for what is worked out beside it
AGAIN = 1  # seconds after which to come back
MOST = 1_000_000  # questions, answers or entries in one call
TILE = 1024  # rows and columns of a piece of a map, at most

Anybody = Annotated[Who, Depends(who)]
Reader = Annotated[Who, Depends(needs("reader"))]
Worker = Annotated[Who, Depends(needs("worker"))]
Owner = Annotated[Who, Depends(needs("owner"))]
WAIT: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "It is being worked out; come back after Retry-After seconds.",
        "content": {"application/json": {}},
    }
}


def gives(media: str) -> dict[int | str, dict[str, Any]]:
    """Return how the schema tells that an answer is no JSON."""
    return {200: {"description": "What was asked for.", "content": {media: {}}}}


BYTES, PAGE, NEWS = (
    gives("application/octet-stream"),
    gives("text/html"),
    gives("text/event-stream"),
)


class Body(BaseModel):
    """What a request brings; a name that is unknown is refused."""

    model_config = ConfigDict(extra="forbid")


class New(Body):
    """A new study."""

    name: str = Field(min_length=1, max_length=200)
    plan: str
    params: dict[str, Any] = {}
    seed: int | None = Field(None, ge=0, lt=2**63)
    budget: float | None = None
    currency: str | None = None
    prices: dict[str, Any] | None = None
    rows: list[str] | None = None
    cols: list[str] | None = None


class Ask(Body):
    """Questions that are wanted."""

    limit: int | None = Field(None, ge=1, le=MOST)
    worker: str | None = None
    lease: float = Field(3600.0, gt=0, le=366 * 86400.0)
    rows: list[str | int] | None = None
    cols: list[str | int] | None = None
    mode: str | None = None


class Tell(Body):
    """Answers by columns: of ids, or of rows and columns; a value of null has failed."""

    id: list[str] | None = Field(None, max_length=MOST)
    row: list[str | int] | None = Field(None, max_length=MOST)
    col: list[str | int] | None = Field(None, max_length=MOST)
    value: list[float | str | None] = Field(max_length=MOST)
    worker: str | None = None
    sure: bool = (
        True  # False: answers far from what was expected are asked back, and nothing is kept
    )


class Release(Body):
    """Questions to give back."""

    worker: str | None = None


class Entries(Body):
    """Completed entries that are wanted."""

    row: list[str | int] = Field(max_length=MOST)
    col: list[str | int] = Field(max_length=MOST)
    level: float = Field(stories.LEVEL, gt=0, lt=1)


class Amend(Body):
    """A correction: of an answer by its id, or of an entry."""

    id: str | None = None
    row: str | int | None = None
    col: str | int | None = None
    value: float | str | None = None
    worker: str | None = None
    reason: str | None = Field(None, max_length=2000)


class Extend(Body):
    """What a study gets more of."""

    rows: list[str] | int | None = None
    cols: list[str] | int | None = None
    budget: float | None = None
    row_features: dict[str, Any] | None = None
    col_features: dict[str, Any] | None = None


class NewToken(Body):
    """A token to make."""

    role: str
    study: str | None = None
    days: float = 30.0
    title: str = Field("", max_length=200)


def plain(value: Any) -> Any:
    """Return a value as JSON can say it: arrays as lists, what is not a number as null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | bool | None) else str(value)


def said(content: Any, code: int = 200) -> JSONResponse:
    """Return an answer, asking to come back where it is not ready."""
    headers = {"retry-after": str(AGAIN)} if code == 202 else None
    return JSONResponse(plain(content), code, headers=headers)


def background(request: Request) -> Background:
    """Return what works beside the requests."""
    found: Background = request.app.state.background
    return found


def study_of(request: Request, name: str) -> Study:
    """Return the study that an address names."""
    return background(request).study(named(name))


# studies


@api.get("/studies")
def studies(request: Request, person: Anybody) -> Response:
    """List the studies that the caller may read: state, share spent, error, last answer."""
    return said(readable(request, person))


def readable(request: Request, person: Who) -> list[dict[str, Any]]:
    """Return a line for each study that somebody may read."""
    store = background(request).store
    last = last_answers(store)
    return [
        line(request, record.name) | {"last_answer": last.get(record.id)}
        for record in store.records()
        if person.may("reader", record.name)
    ]


def line(request: Request, name: str) -> dict[str, Any]:
    """Return what a list of studies says of one."""
    now = background(request).study(name).status()
    wanted = ("name", "plan", "state", "spent", "budget", "left", "currency", "expected_error")
    more = ("answered", "open", "leased", "free", "trouble", "sentence")
    return {k: now[k] for k in (*wanted, *more)}


@api.post("/studies", status_code=201)
def create(request: Request, body: New, person: Owner) -> Response:
    """Make a study. Only methods of entrywise can be named."""
    get(body.plan, "active")  # data never name code
    work = background(request)

    def make() -> dict[str, Any]:
        options = body.model_dump(exclude={"name"})
        return Study.create(work.store, body.name, **options).status()

    return said(work.job(("create", body.name), make).result(), 201)


@api.post("/studies/upload", status_code=201)
def create_from_files(
    request: Request,
    person: Owner,
    name: Annotated[str, Form(min_length=1, max_length=200)],
    plan: Annotated[str, Form()],
    budget: Annotated[float | None, Form()] = None,
    currency: Annotated[str | None, Form()] = None,
    goal: Annotated[str | None, Form()] = None,
    seed: Annotated[int | None, Form(ge=0, lt=2**63)] = None,
    rows: Annotated[UploadFile | None, File()] = None,
    cols: Annotated[UploadFile | None, File()] = None,
    known: Annotated[UploadFile | None, File()] = None,
    prices: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Make a study from files: the labels of rows and columns, prices, what is known."""
    get(plan, "active")
    row_names, col_names = uploads.labels(rows), uploads.labels(cols)
    params: dict[str, Any] = {"goal": goal} if goal else {}
    work = background(request)
    seen, quotes = uploads.beside(row_names, col_names or row_names, known, prices)

    def make() -> dict[str, Any]:
        made = Study.create(
            work.store,
            name,
            plan=plan,
            params=params,
            seed=seed,
            budget=budget,
            currency=currency or None,
            known=seen,
            prices=None if quotes is None else Prices(quotes),
            rows=row_names,
            cols=col_names,
        )
        return made.status()

    return said(work.job(("create", name), make).result(), 201)


@api.post("/forecast")
def foretell(
    request: Request,
    person: Owner,
    rows: Annotated[UploadFile, File()],
    cols: Annotated[UploadFile, File()],
    budget: Annotated[float, Form(gt=0, le=1e300)],
    currency: Annotated[str, Form(max_length=20)] = "",
    known: Annotated[UploadFile | None, File()] = None,
    prices: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Say what a budget would buy of a study that is not made yet; nothing is kept."""
    row_names, col_names = uploads.labels(rows), uploads.labels(cols)
    if not row_names or not col_names:
        raise ParameterError("a forecast needs the labels of rows and columns")
    seen, quotes = uploads.beside(row_names, col_names, known, prices)
    shape = (len(row_names), len(col_names))
    return said({"words": forecast(shape, budget, prices=quotes, known=seen, currency=currency)})


@api.get("/studies/{name}")
def show(request: Request, name: str, person: Reader) -> Response:
    """Say where a study stands."""
    return said(study_of(request, name).status())


@api.get("/studies/{name}/labels")
def labels(request: Request, name: str, person: Reader) -> Response:
    """Return the names of rows and columns (null where they are numbers) and the sizes."""
    found = study_of(request, name).labels
    sizes = {"n_rows": found.n_rows, "n_cols": found.n_cols}
    return said({"rows": found.rows, "cols": found.cols} | sizes)


# work


@api.post("/studies/{name}/ask", responses=WAIT)
def ask(request: Request, name: str, body: Ask, person: Worker) -> Response:
    """Lease questions; while the next ones are worked out, come back after Retry-After seconds."""
    study, work = study_of(request, name), background(request)
    record = study.store.record(study.name)
    if record.state == "closed":
        raise StoreError(f"study {study.name!r} is closed; reopen it to ask")
    worker = body.worker or (person.token.title if person.token else None)
    if worker is not None and "\n" in worker:
        raise ParameterError(f"a worker's name must be one line of text, got {worker!r}")
    names = study.labels
    wanted = Filter(names.lines("row", body.rows), names.lines("col", body.cols), body.mode)
    take = study.store.leases.take
    found = take(record, body.limit, worker, body.lease, wanted)
    count = 0 if found is None else len(found)
    ready = True
    if record.state == "open" and count < (body.limit or 1) and (record.streaming or not count):
        missing = None if body.limit is None else body.limit - count
        job = work.step(study.name, wanted, missing)
        try:
            job.result(MOMENT)
            more = take(record, missing, worker, body.lease, wanted)
            if more is not None:
                found = more if found is None else joined(found, more)
        except TimeoutError:
            ready = False
    listed = [] if found is None else names.questions(found, found.until)
    columns = ("id", "row", "col", "mode", "price", "unit", "arm", "probability", "plate", "well")
    told: dict[str, Any] = {key: [getattr(q, key) for q in listed] for key in columns}
    told["index"] = [list(q.index) for q in listed]
    told["until"] = listed[0].until if listed else None
    told["why"] = None
    if not listed and not ready:
        told["why"] = "the next questions are being worked out"
        return said(told, 202)
    if len(listed) < (body.limit or 1):
        told["why"] = why(study)
    return said(told)


def why(study: Study) -> str:
    """Return why fewer questions came than were wanted."""
    now = study.status()
    if now["state"] != "open":
        return f"the study is {now['state']}"
    held = status.out(now)
    return f"{held}, {now['free']} are free; no more fit what you can measure now"


@api.post(
    "/studies/{name}/tell", responses={409: {"description": "Are you sure? Nothing was kept."}}
)
def tell(request: Request, name: str, body: Tell, person: Worker) -> Response:
    """Keep answers, all of them or none; they are committed when this returns."""
    items: list[tuple[Any, ...]]
    if body.id is not None:
        columns: list[Any] = [body.id, body.value]
    elif body.row is not None and body.col is not None:
        columns = [body.row, body.col, body.value]
    else:
        raise TellError("answers need the column id, or the columns row and col")
    if len({len(column) for column in columns}) > 1:
        raise TellError("the columns of answers must be equally long; nothing was kept")
    items = list(zip(*columns, strict=True))
    return keep(request, name, items, body.worker, body.sure)


def keep(
    request: Request,
    name: str,
    items: list[tuple[Any, ...]],
    worker: Any,
    sure: bool,
    blame: Any = None,
) -> Response:
    """Keep answers and have the next questions worked out beside."""
    study = study_of(request, name)
    store, blame = study.store, blame or (lambda k: f"answer {k}: ")
    record = store.record(study.name)
    told = entries.parse(store.tells, record, study.labels, items, blame)
    if not sure:
        odd = far_off(store, record, told)
        if odd:
            return said({"message": "are you sure? nothing was kept", "odd": odd}, 409)
    new, left = 0, None
    if len(told.value):
        new, left = store.tells.put(record, told, worker, study.labels.name, blame)
    if left is None:
        background(request).step(study.name)
    return said({"new": new, "told": len(told.value)})


@api.post(
    "/studies/{name}/upload", responses={409: {"description": "Are you sure? Nothing was kept."}}
)
def upload(
    request: Request,
    name: str,
    person: Worker,
    file: Annotated[UploadFile, File()],
    worker: Annotated[str | None, Form()] = None,
    sure: Annotated[bool, Form()] = True,
) -> Response:
    """Keep the answers of a file (CSV or workbook with a column value, and id or row and col)."""
    items, blame = uploads.answers(file)
    return keep(request, name, items, worker or None, sure, blame)


@api.post("/studies/{name}/release")
def release(request: Request, name: str, body: Release, person: Worker) -> Response:
    """Give back what a worker holds; everybody's where none is named, which needs an owner."""
    worker = body.worker or (person.token.title if person.token else None)
    if body.worker is None and person.may("owner", named(name)):
        worker = None
    return said({"released": study_of(request, name).release(worker)})


# changes


@api.post("/studies/{name}/amend")
def amend(request: Request, name: str, body: Amend, person: Owner) -> Response:
    """Correct an answer; the log keeps both values and the reason."""
    study = study_of(request, name)
    by_entry = body.id is None
    answer: Any = (body.row, body.col) if by_entry else body.id
    by = body.worker or person.name
    changes.amend(study.store, study.name, study.labels, answer, body.value, by, body.reason)
    background(request).step(study.name)
    return said({"amended": True})


@api.post("/studies/{name}/extend")
def extend(request: Request, name: str, body: Extend, person: Owner) -> Response:
    """Add rows, columns and money."""
    study, work = study_of(request, name), background(request)
    maker = plans.makers({})
    features = {"row": body.row_features, "col": body.col_features}

    def change() -> None:
        lines = (body.rows, body.cols)
        changes.extend(study.store, study.name, maker, *lines, body.budget, None, features)

    work.job(("change", study.name, id(body)), change).result()
    work.forget(study.name)
    work.step(study.name)
    return said(study_of(request, name).status())


# the answer


def telling(request: Request, name: str) -> stories.Story | None:
    """Return what is told of a study, None while it is worked out for the first time."""
    found = background(request).wait(named(name), MOMENT)
    return None if found is None else found.story


@api.get("/studies/{name}/result", responses=WAIT)
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


@api.get("/studies/{name}/result.npz", response_class=Response, responses=WAIT | BYTES)
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


@api.post("/studies/{name}/entries", responses=WAIT)
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


@api.get("/studies/{name}/log")
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


@api.get("/studies/{name}/report.html", response_class=Response, responses=WAIT | PAGE)
def report(request: Request, name: str, person: Reader) -> Response:
    """Return the report in one file, to save."""
    told = telling(request, name)
    if told is None:
        return said({"why": "it is being worked out"}, 202)
    page = written(told, stories.all_cells(study_of(request, name), told))
    headers = {"content-disposition": 'attachment; filename="report.html"'}
    return Response(page, media_type="text/html", headers=headers)


# the map


@api.get("/studies/{name}/tile", response_class=Response, responses=BYTES)
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


@api.get("/studies/{name}/cell")
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


# news


@api.get("/studies/{name}/events", response_class=Response, responses=NEWS)
async def events(request: Request, name: str, person: Reader) -> Response:
    """Send word when something happened in a study (server-sent events), looking once a second."""
    work, given = background(request), named(name)
    await asyncio.to_thread(work.mark, given)  # refuses a study that is not there

    async def news() -> AsyncIterator[str]:
        before, quiet = None, 0
        while not await request.is_disconnected():
            mark = await asyncio.to_thread(work.mark, given)
            quiet += 1
            if mark != before:
                yield f"event: news\ndata: {mark}\n\n"
                before, quiet = mark, 0
            elif quiet >= 15:
                yield ": still here\n\n"
                quiet = 0
            await asyncio.sleep(1.0)

    return StreamingResponse(news(), media_type="text/event-stream")


# tokens


@api.get("/tokens")
def list_tokens(request: Request, person: Owner) -> Response:
    """List tokens: what they allow and until when; never the tokens themselves."""
    return said([vars(t) for t in tokens.listed(background(request).store)])


@api.post("/tokens", status_code=201)
def create_token(request: Request, body: NewToken, person: Owner) -> Response:
    """Make a token; this answer is the only place where it is shown."""
    store = background(request).store
    secret, made = tokens.create(
        store, body.role, study=body.study, days=body.days, title=body.title
    )
    return said(vars(made) | {"token": secret}, 201)


@api.delete("/tokens/{id}")
def revoke_token(request: Request, id: int, person: Owner) -> Response:
    """Make a token useless at once."""
    tokens.revoke(background(request).store, id)
    return said({"revoked": id})
