"""Work: questions are leased, answers are kept."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, Response, UploadFile

from entrywise.exceptions import TellError
from entrywise.study import entries
from entrywise.study.cells import far_off
from entrywise.study.entries import Asked
from entrywise.study.records import Filter, Record
from entrywise.web import uploads
from entrywise.web.api.bodies import Ask, Release, Tell
from entrywise.web.api.common import MOMENT, WAIT, Worker, background, said, study_of
from entrywise.web.guard import named

router = APIRouter()


@router.post("/studies/{name}/ask", responses=WAIT)
def ask(request: Request, name: str, body: Ask, person: Worker) -> Response:
    """Lease questions; while the next ones are worked out, come back after Retry-After seconds."""
    study, work = study_of(request, name), background(request)
    late = False

    def beside(wanted: Filter, missing: int | None) -> Record:
        """Have a step made, and wait for it a moment."""
        nonlocal late
        try:
            work.step(study.name, wanted, missing).result(MOMENT)
        except TimeoutError:
            late = True
        return study.store.record(study.name)

    worker = body.worker or (person.token.title if person.token else None) or None
    wanted = study.wanted(body.worker, body.rows, body.cols, body.mode)
    leased = study.lease(body.limit, worker, body.lease, wanted, advance=beside)
    if leased is None and late:
        return said(by_columns(Asked(), "the next questions are being worked out"), 202)
    found = study.asked(leased, body.limit, wanted)
    return said(by_columns(found, found.why))


def by_columns(found: Asked, why: str | None) -> dict[str, Any]:
    """Return questions by columns, until when they are held, and why fewer came than were wanted."""
    columns = ("id", "row", "col", "mode", "price", "unit", "arm", "probability", "plate", "well")
    told: dict[str, Any] = {key: [getattr(q, key) for q in found] for key in columns}
    told["index"] = [list(q.index) for q in found]
    return told | {"until": found[0].until if found else None, "why": why}


@router.post(
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


@router.post(
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


@router.post("/studies/{name}/release")
def release(request: Request, name: str, body: Release, person: Worker) -> Response:
    """Give back what a worker holds; everybody's where none is named, which needs an owner."""
    worker = body.worker or (person.token.title if person.token else None)
    if body.worker is None and person.may("owner", named(name)):
        worker = None
    return said({"released": study_of(request, name).release(worker)})
