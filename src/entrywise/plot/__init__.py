"""Pictures in one visual language; every function draws on axes (its own when none are given) and returns them.

>>> import entrywise as ew
>>> axes = ew.plot.map(ew.Observations.from_dense([[1.0, float("nan")], [2.0, 3.0]]))
>>> axes.get_title(loc="left")
'3 of 4 cells known'
"""

from entrywise.plot.cells import map
from entrywise.plot.curves import against_bound, savings, split
from entrywise.plot.scores import scores, skills
from entrywise.plot.style import COLOURS, figure, figure_axes, save
from entrywise.plot.trust import calibration, coverage, intervals

__all__ = [
    "COLOURS",
    "against_bound",
    "calibration",
    "coverage",
    "figure",
    "figure_axes",
    "intervals",
    "map",
    "save",
    "savings",
    "scores",
    "skills",
    "split",
]
