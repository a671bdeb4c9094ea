"""The entries are given: functions from Observations to a result."""

from entrywise.passive.als import alternating_least_squares
from entrywise.passive.eb import low_rank
from entrywise.passive.isvd import iterative_svd
from entrywise.passive.nuclear import nuclear_norm
from entrywise.passive.optspace import optspace
from entrywise.passive.popca import partial_pca
from entrywise.passive.softimpute import soft_impute

__all__ = [
    "alternating_least_squares",
    "iterative_svd",
    "low_rank",
    "nuclear_norm",
    "optspace",
    "partial_pca",
    "soft_impute",
]
