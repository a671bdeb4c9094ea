"""Leaderboards: rows (models) scored by their mean over columns (tasks), of which only some cells were bought.

What a buyer wants to know: each score with an interval, who is surely better than whom, what a budget would buy, whether
buying by rule was better than buying naively, and how new rows stand against all that is known.
"""

from entrywise.apply.leaderboard.bought import Bought
from entrywise.apply.leaderboard.judged import Judged, judged
from entrywise.apply.leaderboard.order import Order, order, paired
from entrywise.apply.leaderboard.prediction_powered import Powered, prediction_powered
from entrywise.apply.leaderboard.rehearsal import Rehearsal, rehearse
from entrywise.apply.leaderboard.savings import Savings, savings
from entrywise.apply.leaderboard.scores import Scores, scores
from entrywise.apply.leaderboard.verdict import verdict

__all__ = [
    "Bought",
    "Judged",
    "Order",
    "Powered",
    "Rehearsal",
    "Savings",
    "Scores",
    "judged",
    "order",
    "paired",
    "prediction_powered",
    "rehearse",
    "savings",
    "scores",
    "verdict",
]
