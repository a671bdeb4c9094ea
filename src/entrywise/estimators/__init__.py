"""scikit-learn and river faces, one file an estimator; each loads where it is used."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AdaptiveNystroem": "nystroem",
    "BinaryStream": "stream",
    "LowRankImputer": "imputers",
    "PartialPCA": "partial_pca",
    "SoftImputer": "imputers",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"entrywise.estimators.{_HOME[name]}"), name)
    raise AttributeError(f"module 'entrywise.estimators' has no attribute {name!r}")
