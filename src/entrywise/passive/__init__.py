"""The entries are given: functions from Observations to a result."""

from entrywise.passive.alternating_least_squares import alternating_least_squares
from entrywise.passive.alternating_minimization import alternating_minimization
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.iterative_svd import iterative_svd
from entrywise.passive.log_least_squares import log_least_squares
from entrywise.passive.low_rank import low_rank
from entrywise.passive.multiplicative import RankOne
from entrywise.passive.nuclear_norm import nuclear_norm
from entrywise.passive.optspace import optspace
from entrywise.passive.partial_pca import partial_pca
from entrywise.passive.projected_eigenvector import projected_eigenvector
from entrywise.passive.propagation import propagation
from entrywise.passive.rank_one import rank_one
from entrywise.passive.soft_impute import soft_impute

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
    "rank_one",
    "soft_impute",
]
