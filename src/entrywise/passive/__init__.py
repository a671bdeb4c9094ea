"""The entries are given: functions from Observations to a result."""

from entrywise.passive.eb import low_rank

__all__ = ["low_rank"]
