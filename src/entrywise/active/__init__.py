"""We choose the entries and pay for them: plans, generators that yield a Batch and are sent its answers."""

from entrywise.active.curplus import cur_plus
from entrywise.active.elimination import median_elimination, successive_elimination
from entrywise.active.halving import sequential_halving
from entrywise.active.informative import most_informative
from entrywise.active.lilucb import lil_ucb
from entrywise.active.mbeg import bandit_subspace
from entrywise.active.mcans import adaptive_nystrom
from entrywise.active.naive import uniform_pairs
from entrywise.active.ncur import noisy_cur
from entrywise.active.ncur_literal import literal_noisy_cur
from entrywise.active.neyman import subspace
from entrywise.active.nnsplit import split_nuclear_norm
from entrywise.active.rankone import rank_one
from entrywise.active.smcans import stochastic_nystrom
from entrywise.active.toptwo import top_two
from entrywise.active.twophase import two_phase
from entrywise.active.ucbe import ucb_e

__all__ = [
    "adaptive_nystrom",
    "bandit_subspace",
    "cur_plus",
    "lil_ucb",
    "literal_noisy_cur",
    "median_elimination",
    "most_informative",
    "noisy_cur",
    "rank_one",
    "sequential_halving",
    "split_nuclear_norm",
    "stochastic_nystrom",
    "subspace",
    "successive_elimination",
    "top_two",
    "two_phase",
    "ucb_e",
    "uniform_pairs",
]
