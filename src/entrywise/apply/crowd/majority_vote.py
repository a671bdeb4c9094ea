"""The label that most workers gave: what every model of a crowd is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from entrywise.apply.crowd.answers import CrowdAnswers, Repeats
from entrywise.apply.names import Names
from entrywise.types import Array


def majority_vote(
    items: ArrayLike, workers: ArrayLike, labels: ArrayLike, *, repeats: Repeats = "refuse"
) -> tuple[Names, Names, Array]:
    """Return (items, label with most votes, its share of the votes); ties go to the class chosen most overall.

    Examples
    --------
    >>> majority_vote([1, 1, 2], ["a", "b", "a"], ["x", "x", "y"])[1].tolist()
    ['x', 'y']
    """
    answers = CrowdAnswers.of(items, workers, labels, None, repeats)
    best = answers.likeliest(answers.votes)
    return answers.items, answers.classes[best], answers.votes[np.arange(len(best)), best]
