"""We choose the entries and pay for them: plans, generators that yield a Batch and are sent its answers."""

from entrywise.active.cells import most_informative, row_scores, top_two, ucb_e
from entrywise.active.nystrom import (
    adaptive_nystrom,
    literal_adaptive_nystrom,
    literal_stochastic_nystrom,
    stochastic_nystrom,
)
from entrywise.active.pairs import (
    lil_ucb,
    median_elimination,
    sequential_halving,
    successive_elimination,
    uniform_pairs,
)
from entrywise.active.rank_one import rank_one
from entrywise.active.subspaces import bandit_subspace, literal_bandit_subspace, subspace
from entrywise.active.two_cost import (
    cur_plus,
    literal_noisy_cur,
    noisy_cur,
    split_nuclear_norm,
    two_phase,
)

__all__ = [
    "adaptive_nystrom",
    "bandit_subspace",
    "cur_plus",
    "lil_ucb",
    "literal_adaptive_nystrom",
    "literal_bandit_subspace",
    "literal_noisy_cur",
    "literal_stochastic_nystrom",
    "median_elimination",
    "most_informative",
    "noisy_cur",
    "rank_one",
    "row_scores",
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
