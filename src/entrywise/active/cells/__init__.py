"""Cells of a general low-rank matrix, bought at their prices: for all cells, for row means, for the best row."""

from entrywise.active.cells.most_informative import most_informative
from entrywise.active.cells.row_scores import row_scores
from entrywise.active.cells.top_two import top_two
from entrywise.active.cells.ucb_e import ucb_e

__all__ = ["most_informative", "row_scores", "top_two", "ucb_e"]
