"""Answers, kept in factors: no result holds an m x n array; ``to_dense`` makes one only when asked.

Every result says what it cost, how it ended, and what is promised (:class:`Certificate`).
"""

from entrywise.results.low_rank import Corrected, LowRank
from entrywise.results.matrix import Matrix
from entrywise.results.psd_factor import PSDFactor
from entrywise.results.result import Certificate, Interval, Result
from entrywise.results.subspace import Subspace

__all__ = [
    "Certificate",
    "Corrected",
    "Interval",
    "LowRank",
    "Matrix",
    "PSDFactor",
    "Result",
    "Subspace",
]
