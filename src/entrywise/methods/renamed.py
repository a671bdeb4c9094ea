"""Names of plans and parameters as earlier versions stored them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from entrywise.methods.find import get

# Stored studies speak the words of their day. MOVED: a plan that was chosen by a parameter of another one, with the
# value that chose it (ANY: whatever is not None). RENAMED: parameters as they are called now, None where they went.
ANY: Any = object()
MOVED: Mapping[tuple[str, str, Any], str] = {
    ("adaptive-nystrom", "order", "given"): "literal-adaptive-nystrom",
    ("stochastic-nystrom", "epsilon", ANY): "literal-stochastic-nystrom",
    ("bandit-subspace", "schedule", "theorem"): "literal-bandit-subspace",
}
RENAMED: Mapping[str, Mapping[str, str | None]] = {
    "literal-adaptive-nystrom": {"order": None, "block": None, "rng": None},
    "literal-stochastic-nystrom": {"noise": None, "ask_diagonal": None},
    "stochastic-nystrom": {"epsilon": None, "delta": None, "theta": None},
    "subspace": {"k": "rank", "epochs": "rounds"},
    "bandit-subspace": {"k": "rank", "schedule": None},
    "literal-bandit-subspace": {"k": "rank", "schedule": None},
}


def renamed(plan: str, params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a plan that an earlier version stored, as this one calls them.

    What needs no other word comes back as it is, so that it may be applied to anything, any number of times.

    >>> renamed("subspace", {"d": 10, "k": 2, "epochs": 4})
    ('subspace', {'d': 10, 'rank': 2, 'rounds': 4})
    >>> renamed("stochastic-nystrom", {"n": 9, "rank": 2, "epsilon": 0.1})
    ('literal-stochastic-nystrom', {'n': 9, 'rank': 2, 'epsilon': 0.1})
    """
    name = plan.replace("_", "-")
    for (old, parameter, value), new in MOVED.items():
        given = params.get(parameter)
        chosen = given is not None and (value is ANY or given == value)
        if name == old and chosen:
            name = new
    words = RENAMED.get(name)
    if words is None:
        return plan, dict(params)
    takes = inspect.signature(get(name, "active").load()).parameters
    found = {}
    for key, value in params.items():
        now = words.get(key, key)
        if now is None:
            continue
        left_open = value is None and now in takes and takes[now].default is not None
        if not left_open:  # what nobody chose has a default of its own now
            found[now] = value
    return name, found
