"""
Which two items to show together
================================

Two groups of visitors, two hundred advertisements, twenty thousand visits. Each visit shows a pair and tells whether
neither was clicked. The plan is set against showing all pairs equally often.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import uniform_pairs
from entrywise.apply.pairs import Population, PopulationOracle, best_pair, regret


def run():
    rng = np.random.default_rng(3)
    tastes = rng.beta(1.0, 3.0, (2, 200))  # most people ignore most advertisements
    visitors = Population([0.6, 0.4], tastes)
    losses = visitors.losses.to_dense()
    found = ew.play(best_pair(200, budget=20_000, rng=0), PopulationOracle(visitors, rng=1))
    naive = ew.play(uniform_pairs(200, budget=20_000, rng=0), PopulationOracle(visitors, rng=1))
    for name, result in (("best_pair", found), ("uniform", naive)):
        i, j = result.pair
        print(
            f"{name:10} shows {i} and {j}: neither is clicked in {losses[i, j]:.1%} of the visits,"
        )
        print(f"{'':10} {regret(losses, result.pair):.1%} more than for the best pair")
    print(found.certificate)
    axes = plot.map(visitors.losses, ([found.pair[0]], [found.pair[1]]))
    axes.set_title("How often neither is clicked; dot: the pair found", loc="left")
    return regret(losses, found.pair), regret(losses, naive.pair)


if __name__ == "__main__":
    run()
