"""Nature chooses the entries: learners that predict, then learn."""

from entrywise.online._learner import Learner
from entrywise.online.doubling import Doubling
from entrywise.online.majority import Majority, auto
from entrywise.online.rowcol import RowColumnMajority
from entrywise.online.symmetric import SymmetricWinnow
from entrywise.online.winnow import MatrixWinnow

__all__ = ["Doubling", "Learner", "Majority", "MatrixWinnow", "RowColumnMajority", "SymmetricWinnow", "auto"]
