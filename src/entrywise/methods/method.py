"""What a row says of a method."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Room = Literal["passive", "active", "online"]


@dataclass(frozen=True)
class Method:
    """A method that users can name.

    Parameters
    ----------
    name : str
        What users write, with hyphens.
    home : str
        ``module:function`` under entrywise.
    room : {"passive", "active", "online"}
        Given by the table that the row stands in.
    paper, guarantee : str
        Where it comes from and what it promises, in a line, with the theorem that says so. "none" begins the line of a
        method without a proof.
    assumes : str
        What the guarantee needs to hold.
    example : mapping
        Arguments of a small instance, for laws and docs (active, online).
    problem : str
        Name of the function in :mod:`entrywise.gallery` that makes what the example works on from a seed:
        an oracle (active), observations (passive), a list of (i, j, y) trials (online).
    """

    name: str
    home: str
    paper: str
    guarantee: str
    assumes: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    room: Room = "active"

    def load(self) -> Any:
        """Return the function or class."""
        module, name = self.home.split(":")
        return getattr(importlib.import_module(f"entrywise.{module}"), name)

    @property
    def kind(self) -> str:
        """How an active method asks: ``streaming`` (nobody waits) or ``batch``; empty for the other rooms."""
        if self.room != "active":
            return ""
        return "streaming" if getattr(self.load(), "streaming", False) else "batch"

    @property
    def summary(self) -> str:
        """First line of its docstring."""
        return (inspect.getdoc(self.load()) or "").split("\n")[0]


def of_room(room: Room, *methods: Method) -> tuple[Method, ...]:
    """Return the methods of a room, a row each."""
    return tuple(replace(method, room=room) for method in methods)
