"""What benchmarks share: CPU seconds, peak memory in a child process, and tables of ratios of one run."""

from __future__ import annotations

import gc
import multiprocessing as mp
import resource
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def cpu(call: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Return (fewest CPU seconds of `repeat` calls, last value). CPU time of all threads, children not included."""
    best, value = float("inf"), None
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        value = call()
        best = min(best, time.process_time() - start)
    return best, value


def wall(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return (wall seconds, value)."""
    start = time.perf_counter()
    value = call()
    return time.perf_counter() - start, value


def _rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _child(call: Callable[..., Any], args: Sequence[Any], pipe: Any) -> None:
    base, peak, done = _rss(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, _rss())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.process_time()
    value = call(*args)
    seconds = time.process_time() - start
    done.set()
    watcher.join()
    pipe.send((seconds, max(0, peak - base), value))


def in_child(call: Callable[..., Any], *args: Any) -> tuple[float, int, Any]:
    """Run ``call(*args)`` in a fresh process; return (CPU seconds, peak extra bytes, value)."""
    context = mp.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(call, args, there))
    child.start()
    there.close()
    try:
        found = here.recv()
    except EOFError:
        raise RuntimeError(
            f"{getattr(call, '__name__', call)} died with exit code {child.exitcode}"
        ) from None
    finally:
        child.join()
    return found


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(f"{x:.4g}" if isinstance(x, float) else str(x) for x in row))
    Console(width=160, highlight=False).print(table)


class Bars:
    """Says what was measured against its bar as soon as it is; ``end()`` prints all and exits 1 when one is missed."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str]] = []

    def at_most(self, what: str, value: float, bar: float) -> None:
        """Note that `value` should be at most `bar`."""
        self._note(what, value, f"<= {bar:g}", value <= bar)

    def at_least(self, what: str, value: float, bar: float) -> None:
        """Note that `value` should be at least `bar`."""
        self._note(what, value, f">= {bar:g}", value >= bar)

    def _note(self, what: str, value: float, bar: str, met: bool) -> None:
        row = (what, f"{value:.4g}", bar, "met" if met else "MISSED")
        self.rows.append(row)
        print("  ".join(row), flush=True)

    def end(self) -> None:
        """Print the bars; exit code 1 when one is missed."""
        show("bars", ("what", "measured", "bar", ""), self.rows)
        raise SystemExit(1 if any(row[3] == "MISSED" for row in self.rows) else 0)
