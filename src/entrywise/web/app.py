"""The service: the page and the JSON interface over the studies of one store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from entrywise import __version__
from entrywise.exceptions import EntrywiseError, StoreError
from entrywise.study import Store
from entrywise.web import guard
from entrywise.web.api import api
from entrywise.web.background import Background
from entrywise.web.exchange import Exchange
from entrywise.web.guard import Door, Gate
from entrywise.web.pages import pages


def create_app(
    store: str | Store,
    *,
    hosts: Iterable[str] = guard.LOOPBACK,
    secure: bool = False,
    largest: int = guard.LARGEST,
    patience: float = guard.PATIENCE,
) -> FastAPI:
    """Return the service over the studies of a store, as an ASGI application.

    Parameters
    ----------
    store : str or Store
        A database file, URL, or a store that is open.
    hosts : iterable of str
        The names under which it may be called; others are refused.
    secure : bool
        Whether it is reached over TLS alone: cookies are then never sent without.
    largest, patience : int, float
        Bytes of a body at most, and the seconds in which it must come.
    """
    work = Background(Store.of(store, must_exist=True))

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.exchange.close()
        app.state.door.close()
        work.close()

    app = FastAPI(
        title="entrywise",
        version=__version__,
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        lifespan=life,
    )
    app.state.background = work
    app.state.exchange = Exchange(work)
    app.state.door = Door(work.store)
    app.state.secure = secure
    app.include_router(api)
    app.include_router(pages, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=str(files("entrywise.web") / "static")))
    app.add_exception_handler(EntrywiseError, _mistake)
    app.add_middleware(Gate, hosts=tuple(hosts), largest=largest, patience=patience)
    return app


async def _mistake(request: Request, error: Exception) -> Response:
    """Say what was wrong with a request, in the words of the library."""
    missing = isinstance(error, StoreError) and "there is no study" in str(error)
    words = {"message": str(error), "kind": type(error).__name__}
    if missing:
        words["message"] = "there is no such study"  # its name is enough: others' are not told
    return JSONResponse(words, 404 if missing else 422)
