"""Positive semidefinite matrices from their columns: exact answers (adaptive), noisy ones (stochastic)."""

from entrywise.active.nystrom.adaptive import adaptive_nystrom
from entrywise.active.nystrom.literal_adaptive import literal_adaptive_nystrom
from entrywise.active.nystrom.literal_stochastic import literal_stochastic_nystrom
from entrywise.active.nystrom.stochastic import stochastic_nystrom

__all__ = [
    "adaptive_nystrom",
    "literal_adaptive_nystrom",
    "literal_stochastic_nystrom",
    "stochastic_nystrom",
]
