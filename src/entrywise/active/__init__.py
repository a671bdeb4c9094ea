"""We choose the entries and pay for them: plans, generators that yield a Batch and are sent its answers."""

from entrywise.active.mcans import adaptive_nystrom

__all__ = ["adaptive_nystrom"]
