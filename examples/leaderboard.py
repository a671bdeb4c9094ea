"""
A leaderboard from a fifth of its cells
=======================================

Forty models, eighty tasks. Buy a fifth of the cells, score the models with intervals and tiers, see whether money was saved,
and add three new models against the finished board.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import row_scores
from entrywise.apply.leaderboard import Bought, savings, scores, verdict
from entrywise.oracles import MatrixOracle


def run():
    rng = np.random.default_rng(0)
    skill, task = rng.standard_normal((43, 3)), rng.standard_normal((3, 80))
    truth = 0.6 + 0.1 * rng.standard_normal((43, 1)) + 0.08 * skill @ task
    truth += 0.05 * rng.standard_normal(truth.shape)
    names = [f"model {i}" for i in range(43)]
    old = truth[:40]

    buying = ew.Run(row_scores(old.shape, budget=0.2 * old.size, rng=1))
    found = ew.play(buying, MatrixOracle(old))
    bought = Bought.from_run(buying)
    board = scores(found, bought)
    error = np.sqrt(np.mean((board.mean - old.mean(axis=1)) ** 2))
    held = np.mean((board.low <= old.mean(axis=1)) & (old.mean(axis=1) <= board.high))
    print(f"{len(bought)} of {old.size} cells; error {error:.4f}; intervals held for {held:.0%}")
    print(verdict(board, bought, names[:40]))
    print(savings(board, bought).words)

    best = board.order[:15]
    plot.scores(
        board.mean[best],
        board.low[best],
        board.high[best],
        names=[names[i] for i in best],
        tier=board.tier[best],
        truth=old.mean(axis=1)[best],
    )

    table = truth.copy()
    table[40:] = np.nan  # three new models, the others known whole
    known = ew.Observations.from_dense(table)
    adding = ew.Run(row_scores(truth.shape, budget=24, rng=1), known=known)
    found = ew.play(adding, MatrixOracle(truth))
    after = scores(found, Bought.from_run(adding))
    for i in range(40, 43):
        print(
            f"{names[i]}: {after.mean[i]:.3f} ({after.low[i]:.3f} to {after.high[i]:.3f}), truly "
            f"{truth[i].mean():.3f}; place {after.best_place[i]} to {after.worst_place[i]} of 43"
        )
    return float(error)


if __name__ == "__main__":
    run()
