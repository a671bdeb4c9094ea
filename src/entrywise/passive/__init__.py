"""The entries are given: functions from Observations to a result."""

from entrywise.passive.eb import low_rank
from entrywise.passive.popca import partial_pca

__all__ = ["low_rank", "partial_pca"]
