"""A plan under way, and what it remembers; no input or output happens here."""

from entrywise.run.beginning import Known, by_mode, fill_memory, refuse_asymmetry
from entrywise.run.memory import Memory, Stock, entry_keys
from entrywise.run.run import Entry, Run
from entrywise.run.stream import LoggedStep, Stream, diverged, new_questions, verify_step

__all__ = [
    "Entry",
    "Known",
    "LoggedStep",
    "Memory",
    "Run",
    "Stock",
    "Stream",
    "by_mode",
    "diverged",
    "entry_keys",
    "fill_memory",
    "new_questions",
    "refuse_asymmetry",
    "verify_step",
]
