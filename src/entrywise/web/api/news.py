"""News of a study while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from entrywise.web.api.common import Reader, background, gives
from entrywise.web.guard import named

router = APIRouter()


@router.get("/studies/{name}/events", response_class=Response, responses=gives("text/event-stream"))
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
