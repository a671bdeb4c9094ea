"""
A leaderboard from a fifth of its cells
=======================================

Thirty models, sixty tasks, dear and cheap ones. Buy a fifth of the whole cost, rank the models, and compare with the truth.
"""

import numpy as np

import entrywise as ew
from entrywise.active import most_informative
from entrywise.apply.leaderboard import Bought, scores
from entrywise.oracles import MatrixOracle


def run():
    rng = np.random.default_rng(0)
    truth = (
        0.6
        + 0.1 * rng.standard_normal((30, 1))
        + rng.standard_normal((30, 2)) @ rng.standard_normal((2, 60)) * 0.05
    )
    price = rng.lognormal(0, 1, (1, 60))
    budget = 0.2 * 30 * price.sum()
    buying = ew.Run(
        most_informative(truth.shape, ew.Prices(price), budget=budget, rank=2, goal="scores", rng=1)
    )
    found = ew.play(buying, MatrixOracle(truth, 0.02, 2))
    board = scores(found, Bought.from_run(buying))
    right = np.corrcoef(board.mean, truth.mean(axis=1))[0, 1]
    print(
        f"spent {found.cost:.0f} of {30 * price.sum():.0f}; scores correlate {right:.3f} with the truth"
    )
    print("the three best:", board.order[:3], "truly:", np.argsort(-truth.mean(axis=1))[:3])
    return right


if __name__ == "__main__":
    run()
