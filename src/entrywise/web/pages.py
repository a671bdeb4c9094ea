"""The page: studies, a study, work, log, a new study. Plain HTML; what moves is in ``static/entrywise.js``."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from entrywise import fragments
from entrywise.exceptions import StoreError
from entrywise.methods import METHODS
from entrywise.study import Store
from entrywise.study.tokens import ROLES
from entrywise.web import report, story
from entrywise.web.api.common import background
from entrywise.web.api.studies import readable
from entrywise.web.guard import COOKIE, SESSION, Door, Session, Who, named, same_origin

pages = APIRouter()
GOALS = (  # what a newcomer may want, in plain words: method, goal
    ("Score the rows by their mean over the columns", "row-scores", "scores"),
    ("Know who is better than whom", "row-scores", "order"),
    ("Find the best row", "top-two", ""),
    ("Know every cell as well as the money allows", "most-informative", "all"),
)
SORRY = "Come in by the link that `entrywise serve` shows, or with a token."


def _templates() -> jinja2.Environment:
    folder = str(files("entrywise.web") / "templates")
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(folder), autoescape=True)
    made.filters["number"] = fragments.number
    made.filters["date"] = report.date
    made.filters["address"] = lambda name: quote(quote(str(name), safe=""), safe="")
    return made


TEMPLATES = _templates()


def _page(name: str, code: int = 200, **what: Any) -> HTMLResponse:
    return HTMLResponse(TEMPLATES.get_template(name).render(**what), code)


def _session(request: Request) -> tuple[Session, Who] | None:
    door: Door = request.app.state.door
    return door.session(request.cookies.get(COOKIE))


def _shown(request: Request, template: str, role: str, name: str | None, **what: Any) -> Response:
    """Return a page to who may see it; others are shown the door, or told that they may not."""
    found = _session(request)
    if found is None:
        return _page("enter.html", 401, message=SORRY)
    session, person = found
    if not person.may(role, name):
        words = f"This needs the role {role}."
        return _page("sorry.html", 403, message=words, csrf=session.csrf, person=person.name)
    roles = [r for r in ROLES if person.may(r, name)]
    return _page(template, csrf=session.csrf, person=person.name, roles=roles, study=name, **what)


def _cookie(request: Request, to: str, value: str) -> Response:
    answer = RedirectResponse(to, 303)
    answer.set_cookie(
        COOKIE,
        value,
        max_age=int(SESSION),
        httponly=True,
        samesite="strict",
        secure=request.app.state.secure,
    )
    return answer


@pages.get("/enter")
def enter(request: Request, link: str = "") -> Response:
    """Let a browser in by its one-time link; the link is of no use afterwards."""
    door: Door = request.app.state.door
    cookie = door.enter_by_link(link) if link else None
    if cookie is None:
        words = "This link was used, or never made. " + SORRY if link else SORRY
        return _page("enter.html", 401, message=words)
    return _cookie(request, "/", cookie)


@pages.post("/enter")
def enter_by_token(request: Request, token: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Let a browser in with a token."""
    if not same_origin(request):
        return _page("enter.html", 403, message="The form must be sent from this page.")
    door: Door = request.app.state.door
    cookie = door.enter_by_token(token.strip())
    if cookie is None:
        return _page("enter.html", 401, message="The token is unknown, expired or revoked.")
    return _cookie(request, "/", cookie)


@pages.get("/")
def home(request: Request) -> Response:
    """Show the studies."""
    found = _session(request)
    listed = [] if found is None else readable(request, found[1])
    name = found[1].token.study if found is not None and found[1].token is not None else None
    return _shown(request, "studies.html", "reader", name, studies=listed)


@pages.get("/new")
def new(request: Request) -> Response:
    """Show the form of a new study."""
    plans = [m for m in METHODS if m.room == "active"]
    return _shown(request, "new.html", "owner", None, goals=GOALS, plans=plans)


@pages.get("/tokens")
def tokens(request: Request) -> Response:
    """Show who may do what."""
    return _shown(request, "tokens.html", "owner", None)


@pages.get("/study/{name}")
def study(request: Request, name: str) -> Response:
    """Show a study."""
    given = named(name)
    if missing := _missing(request, given, "reader"):
        return missing
    found = background(request).study(given)
    mark = background(request).mark(given)
    told = background(request).telling(given)
    record, now = found.store.record(given), found.status()
    parts: dict[str, Any] = {} if told is None else _parts(told.story)
    if record.n_rows and record.n_cols:
        parts["shape"] = (record.n_rows, record.n_cols)
    parts |= {"now": now, "ready": told is not None, "mark": mark}
    parts["stale"] = told is not None and not background(request).fresh(given, told)
    return _shown(request, "study.html", "reader", given, **parts)


def _parts(told: story.Story) -> dict[str, Any]:
    unit = fragments.unit_of(told.now["currency"])
    found: dict[str, Any] = {"advice": story.advice(told), "glance": report.glance(told)}
    found["curves"] = fragments.joined(report.error_curve(told, unit))
    found["board"] = ""
    if told.board is not None:
        found["board"] = fragments.joined(report.board(told, story.LEVEL))
    certificates = () if told.result is None else told.result.certificates
    found["certificates"] = fragments.joined(report.certificate(c) for c in certificates)
    found["missing"] = told.missing
    return found


@pages.get("/study/{name}/work")
def work(request: Request, name: str) -> Response:
    """Show the form of who measures."""
    given = named(name)
    return _missing(request, given, "worker") or _shown(request, "work.html", "worker", given)


@pages.get("/study/{name}/log")
def log(request: Request, name: str) -> Response:
    """Show all that was asked and answered."""
    given = named(name)
    return _missing(request, given, "reader") or _shown(request, "log.html", "reader", given)


def _missing(request: Request, name: str, role: str) -> Response | None:
    """Return a page that says that a study is not there; None where it is, or where nobody is told."""
    found = _session(request)
    if found is None or not found[1].may(role, name):
        return None
    store: Store = background(request).store
    try:
        store.record(name)
    except StoreError:
        session, person = found
        words = "There is no such study."
        return _page("sorry.html", 404, message=words, csrf=session.csrf, person=person.name)
    return None


@pages.post("/leave")
def leave(request: Request) -> Response:
    """End the session."""
    door: Door = request.app.state.door
    if same_origin(request):
        door.leave(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/enter", 303)
    answer.delete_cookie(COOKIE)
    return answer
