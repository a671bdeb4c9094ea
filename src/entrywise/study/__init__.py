"""Runs kept in a database: ask and tell that survive crashes, colleagues and months."""

from __future__ import annotations

from entrywise.study.entries import Labels, Question
from entrywise.study.sql import SQLStore
from entrywise.study.store import Leased, Record, Store, Told
from entrywise.study.study import Study

__all__ = ["Labels", "Leased", "Question", "Record", "SQLStore", "Store", "Study", "Told"]
