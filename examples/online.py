"""
Predicting votes before they are cast
=====================================

Three blocs of members vote on three kinds of bills. The learner sees one vote at a time, in random order, and predicts it first.
It is told neither the blocs nor how many members and bills there are.
"""

import numpy as np

from entrywise import plot
from entrywise.bounds.binary import winnow_bound
from entrywise.gallery import bicluster_trials
from entrywise.online import MatrixWinnow, RowColumnMajority, auto


def run():
    trials = bicluster_trials(60, 40, 3, 3, noise=0.02, seed=7)
    learner, wrong = auto(), []
    for member, bill, vote in trials:
        wrong.append(learner.predict(member, bill) != vote)
        learner = learner.learn(member, bill, vote)
    tenth = len(trials) // 10
    print(f"auto: {learner.mistakes} mistakes in {learner.trials} votes")
    print(
        f"share of mistakes in the first tenth {sum(wrong[:tenth]) / tenth:.0%}, in the last {sum(wrong[-tenth:]) / tenth:.0%}"
    )
    print(f"best expert: {learner.best}")

    rows, cols, labels = zip(*trials, strict=True)
    counts = {"auto": np.cumsum(wrong)}
    for other in (MatrixWinnow(0.577), RowColumnMajority()):
        said, after = other.follow(rows, cols, labels)
        counts[type(other).__name__] = np.cumsum(said != np.array(labels))
        print(f"{type(other).__name__}: {after.mistakes} mistakes")
    plot.against_bound(counts, bound=winnow_bound(100, 0.577))
    return learner.mistakes, sum(wrong[:tenth]), sum(wrong[-tenth:])


if __name__ == "__main__":
    run()
