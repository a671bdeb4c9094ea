"""The smallest entry of a symmetric matrix from repeated noisy answers: pairs as arms of a bandit."""

from entrywise.active.pairs.elimination import median_elimination, successive_elimination
from entrywise.active.pairs.halving import sequential_halving
from entrywise.active.pairs.lil_ucb import lil_ucb
from entrywise.active.pairs.uniform import uniform_pairs

__all__ = [
    "lil_ucb",
    "median_elimination",
    "sequential_halving",
    "successive_elimination",
    "uniform_pairs",
]
