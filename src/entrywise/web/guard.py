"""Who comes in: hosts, bodies, sessions, tokens, roles. What is not allowed here reaches nothing behind it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from fastapi import HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from entrywise.study import Store, tokens
from entrywise.study.tokens import Token
from entrywise.tables import whole
from entrywise.web.together import Together

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
COOKIE = "entrywise"
LARGEST = 64 * 2**20  # bytes of a body: half a million answers
STRANGER = 16 * 2**10  # bytes of a body that comes without a token or a cookie
PATIENCE = 30.0  # seconds in which a body must have come
SESSION = 12 * 3600.0  # seconds
CSRF = "x-entrywise-csrf"
SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class Turned(Exception):
    """A body that is too large, or too slow."""


class Gate:
    """The outermost wall: only known hosts, bodies of a bounded size that come in a bounded time, safe headers."""

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str], largest: int = LARGEST, patience: float = PATIENCE
    ) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}
        self.largest, self.patience = largest, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # nothing here speaks over websockets
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        refused = self._refused(headers)
        if refused is not None:
            await JSONResponse(*refused, headers=HEADERS)(scope, receive, send)
            return
        body = BoundedBody(receive, self._largest(headers), self.patience)

        async def safe_send(message: Message) -> None:
            if body.refused is not None:
                return  # what the application makes of half a body is not said
            if message["type"] == "http.response.start":
                have = {name for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(x for x in more if x[0] not in have)]
            await send(message)

        with contextlib.suppress(Turned):
            await self.app(scope, body, safe_send)
        if body.refused is not None:
            await JSONResponse(*body.refused, headers=HEADERS)(scope, receive, send)

    def _largest(self, headers: dict[str, str]) -> int:
        """Return how much is read of who shows nothing: enough for a form."""
        known = "authorization" in headers or "cookie" in headers
        return self.largest if known else min(self.largest, STRANGER)

    def _refused(self, headers: dict[str, str]) -> tuple[dict[str, str], int] | None:
        host = headers.get("host", "").lower()
        bare = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if bare not in self.hosts:
            return {"message": f"this service is not called {bare!r}; see --allow-host"}, 421
        size = headers.get("content-length", "0")
        count = whole(size)
        if count is None or count > self.largest:
            return {"message": f"a body has at most {self.largest} bytes; send less at once"}, 413
        return None


class BoundedBody:
    """A body as it comes, of a bounded size and in a bounded time."""

    def __init__(self, receive: Receive, largest: int, patience: float) -> None:
        self.receive, self.largest, self.patience = receive, largest, patience
        self.refused: tuple[dict[str, str], int] | None = None
        self.size, self.done = 0, False
        self.deadline = time.monotonic() + patience

    async def __call__(self) -> Message:
        """Return the next part."""
        if self.done:  # the body is here; this waits for the client to go away
            return await self.receive()
        left = max(self.deadline - time.monotonic(), 0.001)
        try:
            async with asyncio.timeout(left):
                message = await self.receive()
        except TimeoutError:
            self._refuse(f"the body did not come within {self.patience:g} s; try again", 408)
        self.size += len(message.get("body", b""))
        self.done = not message.get("more_body", False)
        if self.size > self.largest:
            self._refuse(f"a body has at most {self.largest} bytes; send less at once", 413)
        return message

    def _refuse(self, words: str, code: int) -> NoReturn:
        self.refused = ({"message": words}, code)
        raise Turned(words)


@dataclass(frozen=True)
class Who:
    """Somebody who was let in: by a token, or by the one-time link as the owner of all."""

    name: str
    token: Token | None = None

    def may(self, role: str, study: str | None) -> bool:
        """Tell whether they may do what `role` may with `study` (None: with the whole database)."""
        return self.token is None or self.token.may(role, study)


@dataclass(frozen=True)
class Session:
    """A browser that was let in; `token` is the id of what it came with, None after the one-time link."""

    csrf: str
    until: float
    token: int | None


class Door:
    """One-time links and sessions, kept in memory alone: they end with the service."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.store, self.clock = store, clock
        self._alone = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="entrywise-door")
        self._verify = Together(self._pool, partial(tokens.verify, store))
        self._links: set[str] = set()
        self._sessions: dict[str, Session] = {}

    def link(self) -> str:
        """Return the secret of a link that lets one browser in, once, as owner."""
        secret = secrets.token_urlsafe(32)
        with self._alone:
            self._links.add(tokens.hashed(secret))
        return secret

    def enter_by_link(self, secret: str) -> str | None:
        """Return the cookie of a new session; None when the link is unknown or was used."""
        with self._alone:
            if tokens.hashed(secret) not in self._links:
                return None
            self._links.discard(tokens.hashed(secret))
        return self._begin(None)

    def enter_by_token(self, secret: str) -> str | None:
        """Return the cookie of a new session for who holds a token; None when it is not valid."""
        token = self.token(secret).result()
        return None if token is None else self._begin(token.id)

    def token(self, secret: str) -> Future[Token | None]:
        """Find out what a token allows now; None when it is not valid."""
        return self._verify.submit(None, secret)

    def close(self) -> None:
        """Finish what is under way and stop."""
        self._pool.shutdown(wait=True)

    def _begin(self, token: int | None) -> str:
        cookie = secrets.token_urlsafe(32)
        now = self.clock()
        with self._alone:
            self._sessions = {k: s for k, s in self._sessions.items() if s.until > now}
            session = Session(secrets.token_urlsafe(24), now + SESSION, token)
            self._sessions[tokens.hashed(cookie)] = session
        return cookie

    def leave(self, cookie: str) -> None:
        """End a session."""
        with self._alone:
            self._sessions.pop(tokens.hashed(cookie), None)

    def session(self, cookie: str | None) -> tuple[Session, Who] | None:
        """Return the session of a cookie and who it is, while it lasts and its token is valid."""
        if not cookie:
            return None
        with self._alone:
            found = self._sessions.get(tokens.hashed(cookie))
        if found is None or found.until <= self.clock():
            return None
        if found.token is None:
            return found, Who("owner")
        token = tokens.still_valid(self.store, found.token)
        return None if token is None else (found, Who(token.title, token))


async def who(request: Request) -> Who:
    """Return who makes a request: by its token, or by its session with the CSRF header where it changes something."""
    door: Door = request.app.state.door
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        token = await asyncio.wrap_future(door.token(secret.strip()))
        if token is None:
            raise HTTPException(401, "the token is unknown, expired or revoked")
        return Who(token.title, token)
    found = await run_in_threadpool(door.session, request.cookies.get(COOKIE))
    if found is None:
        raise HTTPException(
            401, "come in with a token, or by the link that `entrywise serve` shows"
        )
    session, person = found
    if request.method not in SAFE:
        given = request.headers.get(CSRF, "")
        if not hmac.compare_digest(given.encode(), session.csrf.encode()):
            raise HTTPException(403, f"the header {CSRF} must be that of the page")
    return person


def same_origin(request: Request) -> bool:
    """Tell whether a form was sent by a page of ours; a browser says where it comes from."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def needs(role: str) -> Callable[[Request], Awaitable[Who]]:
    """Return a dependency that lets in who has a role for the study in the address, or for all."""

    async def let_in(request: Request) -> Who:
        person = await who(request)
        given: Any = request.path_params.get("name")
        name = None if given is None else named(given)
        if not person.may(role, name):
            what = "all studies" if name is None else f"the study {name!r}"
            raise HTTPException(403, f"this needs the role {role} for {what}")
        return person

    return let_in


def named(part: str) -> str:
    """Return the study that a part of an address names: percent-encoded once more, so that it may hold a slash."""
    return unquote(part)
