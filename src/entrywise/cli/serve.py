"""``entrywise serve``: the page and the service of a database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from entrywise.cli._options import Where
from entrywise.cli._shared import say
from entrywise.exceptions import ParameterError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
# seconds after which a thread gives way: a request must not wait long for those that speak to the database
SWITCH = 0.0005


def serve(
    database: Where,
    host: Annotated[str, typer.Option(help="Where to listen; this machine alone.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8642,
    cert: Annotated[Path | None, typer.Option(help="Certificate (PEM), for TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    behind_proxy: Annotated[
        bool, typer.Option(help="TLS is spoken by a proxy in front of it.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name under which browsers may call it.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page.")] = True,
) -> None:
    """Serve studies: a page for people and an interface for programs, on this machine unless told otherwise.

    Example: entrywise serve lab.db
    """
    if (cert is None) != (key is None):
        raise ParameterError("--cert and --key belong together; give both")
    if host not in LOOPBACK and cert is None and not behind_proxy:
        raise ParameterError(
            f"--host {host} can be reached from elsewhere; give --cert and --key, or --behind-proxy"
        )
    try:
        import uvicorn

        from entrywise.web.app import create_app
        from entrywise.web.guard import LOOPBACK as OURS
    except ModuleNotFoundError as error:
        raise ParameterError(f"{error.name} is missing; install entrywise[web]") from None

    import socket

    listening = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
    )
    # an answer has two parts, and the second must not wait until the client has confirmed the first, 40 ms later
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = int(listening.getsockname()[1])
    secure = cert is not None or behind_proxy
    shown = f"[{host}]" if ":" in host else host
    app = create_app(database, hosts=(*OURS, shown, *(allow_host or ())), secure=secure)
    link = app.state.door.link()
    name = (allow_host or ["127.0.0.1" if host == "0.0.0.0" else shown])[0]  # noqa: S104
    address = f"{'https' if cert else 'http'}://{name}:{port}/enter?link={link}"
    say(f"open this link; it works once: {address}")
    if open_browser and host in LOOPBACK:
        import webbrowser

        webbrowser.open(address)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses may hold the one-time link
        ssl_certfile=cert,
        ssl_keyfile=key,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    sys.setswitchinterval(SWITCH)
    uvicorn.Server(config).run(sockets=[listening])
