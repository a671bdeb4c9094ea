"""numba's compiler for the kernels beside this file; on a terminal it is said that somebody waits for it."""

from __future__ import annotations

from typing import Any

from numba import njit
from numba.core import event

from entrywise.compiling import NOTICE

__all__ = ["njit"]


class _Compiling(event.Listener):
    """Hears of every kernel that is compiled, not of those that come from the cache."""

    def on_start(self, event: Any) -> None:
        NOTICE.begin()

    def on_end(self, event: Any) -> None:
        NOTICE.end()


event.register("numba:compile", _Compiling())
