"""The JSON interface under ``/api/v1``: arrays in, arrays out, so that many answers are one call. Runs no plan."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from entrywise.web.api import map, news, results, studies, tokens, work
from entrywise.web.api.bodies import Mistake

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
for part in (studies, work, results, map, news, tokens):
    api.include_router(part.router)
