"""Runs kept in a database: ask and tell that survive crashes, colleagues and months."""

from __future__ import annotations

from entrywise.study.entries import Asked, Labels, Question
from entrywise.study.records import Leased, Record, Told
from entrywise.study.store import Store
from entrywise.study.study import Study

__all__ = ["Asked", "Labels", "Leased", "Question", "Record", "Store", "Study", "Told"]
