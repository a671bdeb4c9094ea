"""Studies: which there are, a new one, where one stands, what changes it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, Response, UploadFile

from entrywise.exceptions import ParameterError
from entrywise.methods import get
from entrywise.queries import Prices
from entrywise.study import Study, changes, plans
from entrywise.study.course import last_answers
from entrywise.web import uploads
from entrywise.web.api.bodies import Amend, Extend, New
from entrywise.web.api.common import Anybody, Owner, Reader, background, said, study_of
from entrywise.web.forecast import forecast
from entrywise.web.guard import Who

router = APIRouter()


@router.get("/studies")
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


@router.post("/studies", status_code=201)
def create(request: Request, body: New, person: Owner) -> Response:
    """Make a study. Only methods of entrywise can be named."""
    get(body.plan, "active")  # data never name code
    work = background(request)

    def make() -> dict[str, Any]:
        options = body.model_dump(exclude={"name"})
        return Study.create(work.store, body.name, **options).status()

    return said(work.job(("create", body.name), make).result(), 201)


@router.post("/studies/upload", status_code=201)
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


@router.post("/forecast")
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


@router.get("/studies/{name}")
def show(request: Request, name: str, person: Reader) -> Response:
    """Say where a study stands."""
    return said(study_of(request, name).status())


@router.get("/studies/{name}/labels")
def labels(request: Request, name: str, person: Reader) -> Response:
    """Return the names of rows and columns (null where they are numbers) and the sizes."""
    found = study_of(request, name).labels
    sizes = {"n_rows": found.n_rows, "n_cols": found.n_cols}
    return said({"rows": found.rows, "cols": found.cols} | sizes)


@router.post("/studies/{name}/amend")
def amend(request: Request, name: str, body: Amend, person: Owner) -> Response:
    """Correct an answer; the log keeps both values and the reason."""
    study = study_of(request, name)
    by_entry = body.id is None
    answer: Any = (body.row, body.col) if by_entry else body.id
    by = body.worker or person.name
    changes.amend(study.store, study.name, study.labels, answer, body.value, by, body.reason)
    background(request).step(study.name)
    return said({"amended": True})


@router.post("/studies/{name}/extend")
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
