"""A plan under way, and what it remembers; no input or output happens here."""

from entrywise.run.memory import Memory, Stock
from entrywise.run.run import Entry, Run, diverged, refuse_asymmetry

__all__ = ["Entry", "Memory", "Run", "Stock", "diverged", "refuse_asymmetry"]
