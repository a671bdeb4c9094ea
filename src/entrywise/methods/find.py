"""Every method, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entrywise.exceptions import ParameterError
from entrywise.methods import active, online, passive
from entrywise.methods.method import Method, Room
from entrywise.queries import Plan

METHODS: tuple[Method, ...] = (*passive.METHODS, *active.METHODS, *online.METHODS)
_BY_NAME = {method.name: method for method in reversed(METHODS)}
_BY_ROOM = {(method.room, method.name): method for method in METHODS}  # rank-one is in two


def get(name: str, room: Room | None = None) -> Method:
    """Return the method called `name`, hyphens or underscores."""
    name = name.replace("_", "-")
    found = _BY_NAME.get(name) if room is None else _BY_ROOM.get((room, name))
    if found is None:
        known = ", ".join(m.name for m in METHODS if room in (None, m.room))
        kind = "method" if room is None else f"{room} method"
        raise ParameterError(f"no {kind} is called {name!r}; there are {known}")
    return found


def make_plan(name: str, params: Mapping[str, Any]) -> Plan:
    """Return the plan of an active method, its parameters given as plain values."""
    plan = get(name, "active").load()(**params)
    assert isinstance(plan, Plan)
    return plan
