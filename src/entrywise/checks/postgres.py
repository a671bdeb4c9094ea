"""A PostgreSQL server for tests: started in a temporary folder, on loopback, never as root, and taken away again."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entrywise.exceptions import StoreError


def binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs, the newest where there are several, None where there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    installed = Path("/usr/lib/postgresql")
    if installed.is_dir():
        folders += sorted(installed.glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


class Server:
    """A server in a folder of its own, that can be stopped and started again at the same address."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        programs = binaries()
        if programs is None:
            raise StoreError(
                "no PostgreSQL server is installed; on Debian: apt-get install postgresql"
            )
        self._programs, self._folder = programs, folder
        self._who: dict[str, Any] = _somebody() if os.geteuid() == 0 else {}
        if self._who:
            shutil.chown(folder, self._who["user"], self._who["group"])
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "entrywise", "-A", "trust", "-E", "UTF8", "-N", "--locale=C"],
            capture_output=True, text=True, cwd=folder, check=False, **self._who,
        )  # fmt: skip
        if made.returncode:
            raise StoreError(f"initdb failed: {made.stderr.strip().splitlines()[-1]}")
        self._port = _free_port()
        own = {
            "listen_addresses": "127.0.0.1",
            "port": self._port,
            "unix_socket_directories": folder,
        }
        self._settings = [
            part for key, value in (own | settings).items() for part in ("-c", f"{key}={value}")
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://entrywise@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start it and wait until it serves."""
        command: list[str | Path] = [
            self._programs / "postgres",
            "-D",
            self._folder / "data",
            *self._settings,
        ]
        with (self._folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, **self._who
            )
        self._process = process
        _wait(process, self._port, self._folder / "log")

    def stop(self, crash: bool = False) -> None:
        """Stop it: connections are cut, transactions rolled back; a crash leaves it to recover at the next start."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running(**settings: Any) -> Iterator[Server]:
    """Run a server and give it; `settings` are those of postgresql.conf.

    Whoever is root becomes the user ``postgres`` (or ``nobody``) for it, since the server refuses root.
    """
    folder = Path(tempfile.mkdtemp(prefix="entrywise-postgres-"))
    try:
        found = Server(folder, settings)
        try:
            found.start()
            yield found
        finally:
            found.stop(crash=True)  # at once: the folder goes away with it
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def server(**settings: Any) -> Iterator[str]:
    """Run a server and give its URL, as :func:`running` does."""
    with running(**settings) as found:
        yield found.url


def _somebody() -> dict[str, Any]:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise StoreError("the server refuses root, and there is no user postgres or nobody to run it")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=1.0),
        ):
            time.sleep(0.2)  # it listens a moment before it serves
            return
        time.sleep(0.05)
    raise StoreError(
        f"the server did not start: {log.read_text(errors='replace').strip().splitlines()[-1:]}"
    )
