"""
A kernel from a few columns
===========================

Complete the RBF kernel of 400 points from the columns that the plan asks for, and compare the
certificate with the true error, which a real user could not see.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import adaptive_nystrom
from entrywise.apply.kernels import draw_map
from entrywise.oracles import KernelOracle


def run():
    X = np.random.default_rng(0).standard_normal((400, 3))
    oracle = KernelOracle(X, "rbf", gamma=0.2)
    found = ew.play(adaptive_nystrom(400, max_error=0.01), oracle)
    truth = oracle.block(np.arange(400), np.arange(400))
    error = np.abs(truth - found.to_dense()).max()
    print(f"{found.rank} columns, {found.cost:.0f} of {400 * 401 // 2} entries")
    print(found.certificate)
    print(f"true largest error: {error:.4g}")
    axes = plot.map(found, (np.tile(np.arange(400), found.rank), np.repeat(found.pivots, 400)))
    axes.set_title(f"{found.rank} columns asked (dots), the rest completed", loc="left")
    axes = plot.figure_axes()
    draw_map(axes, X[:, :2], columns=found.pivots)
    axes.set_title("The points whose columns were asked", loc="left")
    return found.certificate.value, error


if __name__ == "__main__":
    run()
