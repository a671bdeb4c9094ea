"""On a terminal it is said that code is compiled; threads of a fit hand on what went wrong."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from entrywise import compiling
from entrywise.linalg.variational import _each


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    # not that of sys, which belongs to the tests' own capture
    monkeypatch.setattr(compiling, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    return stream


def compiled(notice, inside=0, until=None):
    """Compile a kernel, in which others are compiled, until a stream shows it, or for a moment."""
    before = "" if until is None else until.getvalue()
    notice.begin()
    for _ in range(inside):
        notice.begin()
        notice.end()
    for _ in range(5 if until is None else 6000):
        if until is not None and until.getvalue() != before:
            break
        time.sleep(0.01)
    notice.end()


def test_a_line_with_a_bar_is_shown_and_goes_away(terminal):
    notice = compiling.Notice()
    compiled(notice, inside=2, until=terminal)
    compiled(notice, until=terminal)
    lines = [x for x in terminal.getvalue().split("\r") if x.strip()]
    assert lines[0].startswith("compiling, once: kernel 1  [")
    assert "======" in lines[0]
    assert any("kernel 2" in line for line in lines)
    assert not any("kernel 3" in line for line in lines)  # those inside are not counted
    assert terminal.getvalue().endswith("\r" + " " * len(lines[-1]) + "\r")


def test_nothing_is_said_without_a_terminal_or_where_a_bar_is_shown(terminal, monkeypatch):
    notice = compiling.Notice()
    with notice.unsaid(), notice.unsaid():
        compiled(notice)
    assert terminal.getvalue() == ""
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(compiling.sys, "stderr", stream)
        compiled(notice)
        assert stream is None or stream.getvalue() == ""
    monkeypatch.setattr(compiling.sys, "stderr", terminal)
    assert terminal.getvalue() == ""
    compiled(notice, until=terminal)
    assert terminal.getvalue() != ""


def test_what_takes_no_time_is_not_spoken_of(terminal, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 60.0)
    notice = compiling.Notice()
    compiled(notice)
    assert terminal.getvalue() == ""


@pytest.mark.slow
def test_who_waits_for_a_kernel_is_told(tmp_path):
    """A kernel that no cache has, called by a program on a terminal."""
    program = """if True:
        import numpy as np
        from entrywise import compiling
        compiling.PATIENCE = 0.0
        from entrywise.linalg._jit_words import in_order
        print(in_order(np.array([3, 1, 3]), 9).tolist())
    """
    heard = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=theirs,
            check=True,
        )
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:  # all was read
            pass
        os.close(ours)
        assert done.stdout.split() == [b"[1,", b"3]"]
        heard.append(said.decode())
    assert "compiling, once: kernel 1  [" in heard[0]
    assert heard[1] == ""  # from the cache


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_threads_share_the_work(threads, count):
    called = []
    _each(called.append, count, threads)
    assert sorted(called) == list(range(count))


@pytest.mark.parametrize("threads", [1, 3])
def test_what_goes_wrong_in_a_thread_is_raised_and_ends_the_work(threads):
    called = []

    def call(number):
        called.append(number)
        if number == 2:
            raise ValueError("line 2")

    with pytest.raises(ValueError, match="line 2"):
        _each(call, 1000, threads)
    assert len(called) < 1000
