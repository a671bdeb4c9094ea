"""A study over the service: the same words as :class:`~entrywise.study.Study`, spoken over HTTP by the standard library.

>>> study = Study.open("https://server:8642", "kinase", token="ew_...")  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from entrywise import exceptions
from entrywise.exceptions import EntrywiseError, ParameterError, StoreError, TellError
from entrywise.results import Certificate, Result
from entrywise.results.kept_features import keep_features
from entrywise.study.entries import Asked, Labels, Question, told_lines

PATIENCE = (
    60.0  # seconds for which what is being worked out, or a server that is away, is waited for
)
LOCAL = ("localhost", "127.0.0.1", "::1")
PAGE = 10_000  # lines of the log in one call


class Connections:
    """Connections to one service, kept open between calls; as many as threads use at once."""

    def __init__(self, parts: SplitResult) -> None:
        self._parts = parts
        self._idle: list[tuple[int, http.client.HTTPConnection]] = []

    def say(
        self, address: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str, bytes]:
        """Return (code, reason, what came back)."""
        method = "GET" if data is None else "POST"
        while True:
            line, used = self._take()
            try:
                line.request(method, address, data, dict(headers))
                answer = line.getresponse()
                found = answer.read()
            except BaseException as error:
                line.close()
                if used and isinstance(error, ConnectionError):
                    continue  # the server hung up while nobody spoke: another line
                raise
            if not answer.will_close:
                self._idle.append((os.getpid(), line))
            return answer.status, answer.reason, found

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """Return a line, and whether it was used before; after a fork they are the parent's."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread took it
                pid, line = self._idle.pop()
                if pid == os.getpid():
                    return line, True
        return self._made(), False

    def _made(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":  # on this machine
            return http.client.HTTPConnection(host, port, timeout=PATIENCE)
        proxy = None if proxy_bypass(host) else getproxies().get("https")
        if proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=PATIENCE)
        way = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        line = http.client.HTTPSConnection(way.hostname or "", way.port, timeout=PATIENCE)
        headers = {}
        if way.username is not None:
            who = f"{unquote(way.username)}:{unquote(way.password or '')}"
            headers["proxy-authorization"] = f"Basic {b64encode(who.encode()).decode()}"
        line.set_tunnel(host, port, headers)
        return line


class RemoteStudy:
    """A study kept by a service.

    Answers are kept when :meth:`tell` returns; the service works out the next questions meanwhile, so that an
    :meth:`ask` may wait for them. A call that was cut off is made again where that is harmless.
    """

    def __init__(self, url: str, name: str, token: str | None = None) -> None:
        parts = _parts(url)
        if parts.scheme == "http" and parts.hostname not in LOCAL and token:
            raise ParameterError(f"a token goes over https alone, got {parts.scheme}://; use https")
        if not token:
            raise ParameterError(
                "the service needs a token; make one with `entrywise token create`"
            )
        self.url = url.rstrip("/")
        self.name = name
        self._path = parts.path.rstrip("/")
        self._headers = {
            "authorization": f"Bearer {token}",
            "content-type": "application/json",
        }
        self._lines = Connections(parts)
        self._names: Labels | None = None
        self.status()  # refuses a study or a token that is not valid

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, {self.url!r})"

    # speaking

    def _call(
        self, what: str, body: Any = None, *, query: Mapping[str, Any] | None = None
    ) -> tuple[int, bytes]:
        """Return (code, what came back), trying again while the server is away."""
        name = quote(quote(self.name, safe=""), safe="")
        address = f"{self._path}/api/v1/studies/{name}{what}"
        if query:
            address += "?" + urlencode(query)
        data = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                code, reason, found = self._lines.say(address, data, self._headers)
                if code < 300:
                    return code, found
                if code < 500 or time.monotonic() > deadline:
                    raise _mistake(reason, found)
            except (OSError, http.client.HTTPException) as error:  # away, or cut off on the way
                if time.monotonic() > deadline:
                    raise StoreError(f"{self.url} does not answer: {error}; try again") from None
            time.sleep(0.5)

    def _json(self, what: str, body: Any = None, **query: Any) -> Any:
        """Return what is said, waiting while it is worked out."""
        return json.loads(self._ready(what, body, **query)[1])

    def _ready(self, what: str, body: Any = None, **query: Any) -> tuple[int, bytes]:
        deadline = time.monotonic() + PATIENCE
        while True:
            code, data = self._call(what, body, query=query)
            if code != 202 or time.monotonic() > deadline:
                return code, data
            time.sleep(0.5)

    # working

    def ask(
        self,
        limit: int | None = None,
        worker: str | None = None,
        lease: float = 3600.0,
        *,
        rows: Any = None,
        cols: Any = None,
        mode: str | None = None,
    ) -> Asked:
        """Return at most `limit` open questions, held by `worker` for `lease` seconds."""
        body = {"limit": limit, "worker": worker, "lease": lease, "mode": mode}
        found = self._json("/ask", body | {"rows": _several(rows), "cols": _several(cols)})
        why, until = found.pop("why"), found.pop("until")
        asked = Asked(
            Question(
                **dict(zip(found, line, strict=True)) | {"index": tuple(line[-1])}, until=until
            )
            for line in zip(*found.values(), strict=True)
        )
        asked.why = why
        return asked

    def tell(self, answers: Any, worker: str | None = None) -> int:
        """Keep answers, all of them or none; return how many were new."""
        items = told_lines(answers)
        if not items:
            return 0
        sizes = {len(item) for item in items}
        if not sizes <= {2, 3}:
            raise TellError("an answer is (id, value) or (row, col, value)")
        if len(sizes) == 2:
            raise TellError("tell answers by id, or by row and col: not both in one call")
        columns = list(zip(*items, strict=True))
        values = [None if x is None else x if isinstance(x, str) else float(x) for x in columns[-1]]
        body: dict[str, Any] = {"value": values, "worker": worker}
        if sizes == {2}:
            body["id"] = [q.id if isinstance(q, Question) else q for q in columns[0]]
        else:
            body |= {"row": [_plain(r) for r in columns[0]], "col": [_plain(c) for c in columns[1]]}
        return int(self._json("/tell", body)["new"])

    def release(self, worker: str | None = None) -> int:
        """Take back what `worker` (or everybody) holds; return how many questions that were."""
        return int(self._json("/release", {"worker": worker})["released"])

    # looking

    def status(self) -> dict[str, Any]:
        """Return where the study stands."""
        found: dict[str, Any] = self._json("")
        return found

    @property
    def state(self) -> str:
        """``open``, ``finished``, ``exhausted`` (the money ran out) or ``closed``."""
        return str(self.status()["state"])

    @property
    def finished(self) -> bool:
        """Whether the plan has returned."""
        return self.state in ("finished", "exhausted")

    @property
    def labels(self) -> Labels:
        """The names of its rows and columns."""
        if self._names is None:
            found = self._json("/labels")
            self._names = Labels(found["rows"], found["cols"], found["n_rows"], found["n_cols"])
        return self._names

    def result(self) -> Any:
        """Return the plan's result, or the best one so far, with its cost and certificate."""
        now = self.status()
        since = {"epoch": now["epoch"], "steps": now["batches"], "answers": now["answered"]}
        code, data = self._ready("/result.npz", **since)
        if code == 202:
            raise StoreError("the result is still being worked out; come back later")
        return Result.load(data)

    @property
    def certificate(self) -> Certificate | None:
        """What is promised about :meth:`result`, in numbers."""
        found: Result = self.result()
        return found.certificate

    def log(self) -> Iterator[dict[str, Any]]:
        """Go through all that was asked and answered, what no longer stands included."""
        first = 0
        while lines := self._json("/log", first=first, limit=PAGE):
            yield from lines
            first += len(lines)
            if len(lines) < PAGE:
                return

    # changing

    def amend(
        self, answer: Any, value: Any, worker: str | None = None, *, reason: str | None = None
    ) -> int:
        """Correct an answer, given by its id or as (row, col); return how many questions are out."""
        body: dict[str, Any] = {"value": value, "worker": worker, "reason": reason}
        if isinstance(answer, str):
            body["id"] = answer
        else:
            body |= {"row": _plain(answer[0]), "col": _plain(answer[1])}
        self._json("/amend", body)
        return int(self.status()["leased"])

    def extend(
        self,
        rows: Sequence[str] | int | None = None,
        cols: Sequence[str] | int | None = None,
        budget: float | None = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
    ) -> None:
        """Add rows and columns (labels, or how many where there are none), their features and money."""
        self._names = None
        body: dict[str, Any] = {"rows": rows, "cols": cols, "budget": budget}
        for axis, lines, given in (("row", rows, row_features), ("col", cols, col_features)):
            if given is None or lines is None:
                continue
            labels = None if isinstance(lines, int) else lines
            size = lines if isinstance(lines, int) else len(lines)
            body[f"{axis}_features"] = keep_features(given, labels, size, axis)
        self._json("/extend", body)


def _parts(url: str) -> SplitResult:
    """Return the parts of a service's address, or refuse it; what may be a secret in it is not shown."""
    try:
        parts = urlsplit(url)
        found = bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port may be no number
        found = False
    if not found or parts.username is not None or parts.query or parts.fragment:
        raise ParameterError(
            "a service's address is such as https://host:8642, with neither a password nor a question in it; give the "
            "token as token="
        )
    return parts


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)


def _several(lines: Any) -> list[Any] | None:
    if lines is None:
        return None
    one = isinstance(lines, str) or not isinstance(lines, Iterable)
    return [lines] if one else [_plain(x) for x in lines]


def _mistake(reason: str, said: bytes) -> EntrywiseError:
    """Return what the service refused, as the library says it."""
    try:
        found = json.loads(said)
    except ValueError:
        found = {}
    words = str(found.get("message") or found.get("detail") or reason)
    kind = getattr(exceptions, str(found.get("kind")), StoreError)
    right = isinstance(kind, type) and issubclass(kind, EntrywiseError)
    return kind(words) if right else StoreError(words)
