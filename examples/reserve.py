"""
A blind reserve, and intervals without one
==========================================

A rule buys a quarter of a table whose rows are not equally noisy. Its own model says how wide the intervals are; with a
blind reserve, random cells that the rule never saw say it. Both are held against all the cells that nobody bought.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import most_informative
from entrywise.oracles import MatrixOracle


def run():
    rng = np.random.default_rng(0)
    noise = 0.15 * np.exp(rng.standard_normal((120, 1)))  # some rows are far noisier than others
    table = rng.standard_normal((120, 3)) @ rng.standard_normal((3, 80))
    table += noise * rng.standard_t(3, table.shape)
    budget = table.size // 4
    found, bought = {}, np.zeros(table.shape, bool)
    for name, share in (("with a reserve", 0.15), ("the model's own", 0.0)):
        run = ew.Run(most_informative(table.shape, budget=budget, reserve=share, rng=1))
        found[name] = ew.play(run, MatrixOracle(table))
        for batch, _ in run.log:
            bought[batch.rows, batch.cols] = True
    left = ew.Observations.from_dense(np.where(bought, np.nan, table))
    for name, fit in found.items():
        print(f"{name}: {fit.certificate}")
    axes = plot.coverage(found, left)
    axes.set_title("Intervals of cells that nobody bought", loc="left")
    return {name: ew.metrics.coverage(fit, left, 0.9) for name, fit in found.items()}


if __name__ == "__main__":
    print(run())
