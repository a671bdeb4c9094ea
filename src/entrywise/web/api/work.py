"""Work: questions are leased, answers are kept."""

from __future__ import annotations

from asyncio import wrap_future
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool

from entrywise.exceptions import TellError
from entrywise.study.entries import Asked
from entrywise.study.records import Filter, Record
from entrywise.web import uploads
from entrywise.web.api.bodies import Ask, Release, Tell
from entrywise.web.api.common import MOMENT, WAIT, Worker, background, exchange, said, study_of
from entrywise.web.background import Background
from entrywise.web.exchange import FEW, Delivery, Handed, Receipt, Wish
from entrywise.web.guard import named

router = APIRouter()


@router.post("/studies/{name}/ask", responses=WAIT)
async def ask(request: Request, name: str, body: Ask, person: Worker) -> Response:
    """Lease questions; while the next ones are worked out, come back after Retry-After seconds."""
    worker = body.worker or (person.token.title if person.token else None) or None
    can = (body.worker, body.rows, body.cols, body.mode)
    wish = Wish(named(name), body.limit, worker, body.lease, can)
    handed = await wrap_future(exchange(request).ask(wish))
    found = handed.asked
    if found is None:
        found = await run_in_threadpool(wait_for_more, background(request), handed, wish)
    few = found is None or len(found) <= FEW
    return shown(found) if few else await run_in_threadpool(shown, found)


def shown(found: Asked | None) -> Response:
    """Say what was asked by columns, until when it is held, and why fewer came than were wanted; None is not ready yet."""
    late = found is None
    asked = Asked() if found is None else found
    columns = ("id", "row", "col", "mode", "price", "unit", "arm", "probability", "plate", "well")
    told: dict[str, Any] = {key: [getattr(q, key) for q in asked] for key in columns}
    told["index"] = [list(q.index) for q in asked]
    told["until"] = asked[0].until if asked else None
    told["why"] = "the next questions are being worked out" if late else asked.why
    return said(told, 202 if late else 200)


def wait_for_more(work: Background, handed: Handed, wish: Wish) -> Asked | None:
    """Have a step made, wait for it a moment, and lease what it asks; None while it is not there."""
    study, late = handed.study, False

    def beside(wanted: Filter, missing: int | None) -> Record:
        nonlocal late
        try:
            work.step(study.name, wanted, missing).result(MOMENT)
        except TimeoutError:
            late = True
        return study.store.record(study.name)

    taking = study.taking(wish.limit, wish.worker, wish.lease, handed.wanted)
    leased = study.lease_more(handed.leased, taking, beside)
    if leased is None and late:
        return None
    return study.asked(leased, wish.limit, handed.wanted)


@router.post(
    "/studies/{name}/tell", responses={409: {"description": "Are you sure? Nothing was kept."}}
)
async def tell(request: Request, name: str, body: Tell, person: Worker) -> Response:
    """Keep answers, all of them or none; they are committed when this returns."""
    if body.id is not None:
        columns: list[Any] = [body.id, body.value]
    elif body.row is not None and body.col is not None:
        columns = [body.row, body.col, body.value]
    else:
        raise TellError("answers need the column id, or the columns row and col")
    if len({len(column) for column in columns}) > 1:
        raise TellError("the columns of answers must be equally long; nothing was kept")
    items = list(zip(*columns, strict=True))
    answers = Delivery(named(name), items, body.worker, body.sure, lambda k: f"answer {k}: ")
    return kept(await wrap_future(exchange(request).tell(answers)))


def kept(what: Receipt) -> Response:
    """Say what came of answers."""
    if what.odd:
        return said({"message": "are you sure? nothing was kept", "odd": list(what.odd)}, 409)
    return said({"new": what.new, "told": what.told})


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
    answers = Delivery(named(name), items, worker or None, sure, blame)
    return kept(exchange(request).tell(answers).result())


@router.post("/studies/{name}/release")
def release(request: Request, name: str, body: Release, person: Worker) -> Response:
    """Give back what a worker holds; everybody's where none is named, which needs an owner."""
    worker = body.worker or (person.token.title if person.token else None)
    if body.worker is None and person.may("owner", named(name)):
        worker = None
    return said({"released": study_of(request, name).release(worker)})
