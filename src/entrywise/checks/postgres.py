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


@contextlib.contextmanager
def server(**settings: Any) -> Iterator[str]:
    """Run a server and give its URL; `settings` are those of postgresql.conf.

    Whoever is root becomes the user ``postgres`` (or ``nobody``) for it, since the server refuses root.
    """
    programs = binaries()
    if programs is None:
        raise StoreError("no PostgreSQL server is installed; on Debian: apt-get install postgresql")
    who = _somebody() if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="entrywise-postgres-"))
    if who:
        shutil.chown(folder, who["user"], who["group"])
    try:
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "entrywise", "-A", "trust", "-E", "UTF8", "-N", "--locale=C"],
            capture_output=True, text=True, cwd=folder, check=False, **who,
        )  # fmt: skip
        if made.returncode:
            raise StoreError(f"initdb failed: {made.stderr.strip().splitlines()[-1]}")
        port = _free_port()
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder} | settings
        chosen = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        log = (folder / "log").open("wb")
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", *chosen], stdout=log, stderr=log, cwd=folder, **who
        )
        log.close()
        try:
            _wait(process, port, folder / "log")
            yield f"postgresql://entrywise@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: the folder goes away with it
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            time.sleep(0.2)  # it listens a moment before it serves
            return
        time.sleep(0.05)
    raise StoreError(f"the server did not start: {log.read_text(errors='replace').strip().splitlines()[-1:]}")
