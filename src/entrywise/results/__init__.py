"""Answers, kept in factors: no result holds an m x n array; ``to_dense`` makes one only when asked.

Every result says what it cost, how it ended, and what is promised (:class:`Certificate`).
"""

from entrywise.results.calibration import Calibration
from entrywise.results.corrected import Corrected
from entrywise.results.features import Features
from entrywise.results.levels import Levels
from entrywise.results.low_rank import LowRank
from entrywise.results.matrix import Matrix, lookup
from entrywise.results.posterior import Lines, Posterior
from entrywise.results.psd_factor import PSDFactor
from entrywise.results.result import Certificate, Interval, Result
from entrywise.results.subspace import Subspace
from entrywise.results.units import Units

__all__ = [
    "Calibration",
    "Certificate",
    "Corrected",
    "Features",
    "Interval",
    "Levels",
    "Lines",
    "LowRank",
    "Matrix",
    "PSDFactor",
    "Posterior",
    "Result",
    "Subspace",
    "Units",
    "lookup",
]
