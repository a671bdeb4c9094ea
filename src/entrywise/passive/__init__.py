"""The entries are given: functions from Observations to a result."""

from entrywise.passive.als import alternating_least_squares
from entrywise.passive.altmin import alternating_minimization
from entrywise.passive.connect import connecting_entries
from entrywise.passive.eb import low_rank
from entrywise.passive.isvd import iterative_svd
from entrywise.passive.logls import log_least_squares
from entrywise.passive.markov import projected_eigenvector
from entrywise.passive.nuclear import nuclear_norm
from entrywise.passive.optspace import optspace
from entrywise.passive.popca import partial_pca
from entrywise.passive.propagation import propagation
from entrywise.passive.rankone import RankOne
from entrywise.passive.softimpute import soft_impute

__all__ = [
    "RankOne",
    "alternating_least_squares",
    "alternating_minimization",
    "connecting_entries",
    "iterative_svd",
    "log_least_squares",
    "low_rank",
    "nuclear_norm",
    "optspace",
    "partial_pca",
    "projected_eigenvector",
    "propagation",
    "soft_impute",
]
