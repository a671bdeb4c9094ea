"""Scores of players, products or answers from pairwise comparisons."""

from entrywise.apply.ranking.rank import Ranking, rank

__all__ = ["Ranking", "rank"]
