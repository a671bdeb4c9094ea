"""entrywise: which entries of an unknown matrix are worth paying for, and how far to trust the rest.

``import entrywise as ew`` loads numpy alone; everything else loads where it is used.
"""

from __future__ import annotations

import importlib
from typing import Any

from entrywise.budget import Ledger
from entrywise.complete import complete
from entrywise.observations import Observations
from entrywise.play import (
    play,  # here at once, as complete: the name is the function's, not the module's
)
from entrywise.queries import Batch, Checkpoint, Plan, Prices, plan
from entrywise.results import Certificate, Interval, LowRank, PSDFactor, Result
from entrywise.run import Run

__version__ = "0.1.0"

_LAZY = {"Study": "study", "Subspace": "results", "read": "formats"}
_ROOMS = frozenset(
    {"exceptions", "types", "queries", "observations", "results", "npz", "linalg", "bounds"}
    | {
        "passive",
        "intervals",
        "active",
        "online",
        "run",
        "oracles",
        "budget",
        "tables",
        "formats",
        "metrics",
    }
    | {
        "gallery",
        "methods",
        "plot",
        "datasets",
        "apply",
        "estimators",
        "checks",
        "study",
        "reproduce",
    }
)

__all__ = [
    "Batch",
    "Certificate",
    "Checkpoint",
    "Interval",
    "Ledger",
    "LowRank",
    "Observations",
    "PSDFactor",
    "Plan",
    "Prices",
    "Result",
    "Run",
    "Study",
    "Subspace",
    "__version__",
    "complete",
    "plan",
    "play",
    "read",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"entrywise.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"entrywise.{name}")
    raise AttributeError(f"module 'entrywise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__) | _ROOMS)
