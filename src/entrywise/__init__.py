"""entrywise: which entries of an unknown matrix are worth paying for, and how far to trust the rest.

``import entrywise as ew`` loads numpy alone; everything else loads where it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Batch": "queries",
    "Checkpoint": "queries",
    "Plan": "queries",
    "Prices": "queries",
    "plan": "queries",
    "Observations": "observations",
    "Certificate": "results",
    "Interval": "results",
    "LowRank": "results",
    "PSDFactor": "results",
    "Result": "results",
    "Subspace": "results",
    "Run": "run",
    "Ledger": "budget",
    "play": "play",
    "complete": "complete",
    "read": "files",
    "Study": "study",
}
_ROOMS = frozenset(
    ["exceptions", "queries", "observations", "results", "linalg", "bounds", "passive", "active", "online", "intervals", "methods", "run", "oracles", "budget", "play", "files", "datasets", "gallery", "metrics", "apply", "estimators", "checks", "study", "reproduce"]
)

__all__ = sorted(_HOME) + ["__version__"]

if TYPE_CHECKING:
    from entrywise.budget import Ledger
    from entrywise.observations import Observations
    from entrywise.play import play
    from entrywise.queries import Batch, Checkpoint, Plan, Prices, plan
    from entrywise.results import Certificate, Interval, LowRank, PSDFactor, Result
    from entrywise.run import Run


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"entrywise.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"entrywise.{name}")
    raise AttributeError(f"module 'entrywise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__) | _ROOMS)
