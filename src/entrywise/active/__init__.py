"""We choose the entries and pay for them: plans, generators that yield a Batch and are sent its answers."""

from entrywise.active.elimination import median_elimination, successive_elimination
from entrywise.active.halving import sequential_halving
from entrywise.active.lilucb import lil_ucb
from entrywise.active.mbeg import bandit_subspace
from entrywise.active.mcans import adaptive_nystrom
from entrywise.active.naive import uniform_pairs
from entrywise.active.neyman import subspace
from entrywise.active.rankone import rank_one
from entrywise.active.smcans import stochastic_nystrom

__all__ = [
    "adaptive_nystrom",
    "bandit_subspace",
    "lil_ucb",
    "median_elimination",
    "rank_one",
    "sequential_halving",
    "stochastic_nystrom",
    "subspace",
    "successive_elimination",
    "uniform_pairs",
]
