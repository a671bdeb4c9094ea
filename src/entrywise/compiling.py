"""Says on a terminal that numerical code is being compiled: once on a machine, from then on it is read from a cache.

Kernels are compiled when they are first called, for some seconds each (:mod:`entrywise.linalg._jit` tells of each one).
Whoever waits sees a line with a bar, which goes away; nothing is said where stderr is no terminal, or shows a bar already.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 0.5  # seconds of compiling before anything is said
EVERY = 0.1  # seconds between two pictures of the bar
WIDTH, MOVING = 24, 6  # characters of the bar, and of what moves in it


class Notice:
    """A line on stderr while something is compiled; kernels that others call are compiled within these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._unsaid = 0, 0
        self._kernels, self._spent, self._since = 0, 0.0, 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Take note that a kernel is being compiled."""
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._kernels, self._since = self._kernels + 1, time.monotonic()
            if self._unsaid or sys.stderr is None or not sys.stderr.isatty():
                return
            self._ended.clear()
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Take note that it is ready: the line goes away."""
        with self._lock:
            self._depth -= 1
            if self._depth:
                return
            self._spent += time.monotonic() - self._since
            thread, self._thread = self._thread, None
            self._ended.set()
        if thread is not None:
            thread.join()

    @contextmanager
    def unsaid(self) -> Iterator[None]:
        """Say nothing meanwhile: somebody else shows a bar, or wants to be left alone."""
        with self._lock:
            self._unsaid += 1
        try:
            yield
        finally:
            with self._lock:
                self._unsaid -= 1

    def _show(self) -> None:
        """Draw the line until the kernel is ready, after some patience."""
        stream, words = sys.stderr, ""
        if self._ended.wait(max(0.0, PATIENCE - self._spent)):
            return
        while True:
            words = self._words()
            stream.write("\r" + words)
            stream.flush()
            if self._ended.wait(EVERY):
                break
        stream.write("\r" + " " * len(words) + "\r")
        stream.flush()

    def _words(self) -> str:
        seconds = self._spent + time.monotonic() - self._since
        there_and_back = WIDTH - MOVING
        at = there_and_back - abs(int(seconds / EVERY) % (2 * there_and_back) - there_and_back)
        bar = (" " * at + "=" * MOVING).ljust(WIDTH)
        return f"compiling, once: kernel {self._kernels}  [{bar}]  {seconds:.0f} s"


NOTICE = Notice()
