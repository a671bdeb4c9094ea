"""Commands run as a shell would, in the process of the tests: starting Python anew takes longer than most of them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import NamedTuple
from unittest import mock

from entrywise.cli.app import main


class Done(NamedTuple):
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


def entrywise(*words, cwd=".", input="", env=None) -> Done:
    """Run a command with these words."""
    stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO(x)) for x in (input.encode(), b"", b""))
    code = 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        mock.patch.object(sys, "stdin", stdin),
        mock.patch.object(sys, "argv", ["entrywise", *map(str, words)]),
        mock.patch.dict(os.environ, env or {}),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, *(_written(x) for x in (stdout, stderr)))


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
