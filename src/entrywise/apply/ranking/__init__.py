"""Scores of players, products or answers from pairwise comparisons, and which should meet next."""

from entrywise.apply.ranking.next_pairs import NextPairs, next_pairs
from entrywise.apply.ranking.rank import Ranking, rank

__all__ = ["NextPairs", "Ranking", "next_pairs", "rank"]
