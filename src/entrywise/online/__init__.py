"""Nature chooses the entries: learners that predict, then learn."""

from entrywise.online._learner import Learner
from entrywise.online.doubling import Doubling
from entrywise.online.factorization import OnlineFactorization
from entrywise.online.goldman_warmuth import GoldmanWarmuth
from entrywise.online.hazan import HazanKaleShalevShwartz
from entrywise.online.kernel_perceptron import KernelPerceptron
from entrywise.online.majority import Majority, auto
from entrywise.online.randomized_rounding import RandomizedRounding
from entrywise.online.refitted_low_rank import RefittedLowRank
from entrywise.online.row_column import RowColumnMajority
from entrywise.online.symmetric import SymmetricWinnow
from entrywise.online.winnow import MatrixWinnow

__all__ = [
    "Doubling",
    "GoldmanWarmuth",
    "HazanKaleShalevShwartz",
    "KernelPerceptron",
    "Learner",
    "Majority",
    "MatrixWinnow",
    "OnlineFactorization",
    "RandomizedRounding",
    "RefittedLowRank",
    "RowColumnMajority",
    "SymmetricWinnow",
    "auto",
]
