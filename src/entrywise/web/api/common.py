"""Who asks, about which study, and how it is answered."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Request
from fastapi.responses import JSONResponse

from entrywise.study import Study
from entrywise.web.background import Background
from entrywise.web.exchange import Exchange
from entrywise.web.guard import Who, named, needs, who
from entrywise.web.story import Story

MOMENT = 0.3  # seconds that a request waits for what is worked out beside it
AGAIN = 1  # seconds after which to come back

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


def exchange(request: Request) -> Exchange:
    """Return where questions go out and answers come in."""
    found: Exchange = request.app.state.exchange
    return found


def study_of(request: Request, name: str) -> Study:
    """Return the study that an address names."""
    return background(request).study(named(name))


def telling(request: Request, name: str) -> Story | None:
    """Return what is told of a study, None while it is worked out for the first time."""
    found = background(request).wait(named(name), MOMENT)
    return None if found is None else found.story
