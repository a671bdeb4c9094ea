"""
A multiplicative table with most cells missing
==============================================

Sales of products in shops are, to a good approximation, the size of the shop times the appeal of the product.
A few known cells determine the rest, with intervals; where they do not, the answer says so and names the cells
that would help most.
"""

import numpy as np

import entrywise as ew
from entrywise import passive, plot
from entrywise.active import rank_one
from entrywise.gallery import random_rank_one
from entrywise.oracles import MatrixOracle


def run():
    rng = np.random.default_rng(7)
    shops, products = random_rank_one(40, 60, rng)
    sales = 100.0 * np.outer(shops, products)
    known = rng.random(sales.shape) < 0.08
    known[5] = False  # a shop that has just opened
    seen = ew.Observations.from_dense(
        np.where(known, sales + 2.0 * rng.standard_normal(sales.shape), np.nan)
    )

    # %%
    # Complete what can be completed. The new shop cannot: its cells are NaN, and one cell is named that would link it.
    found = passive.rank_one(seen)
    inside = found.identifiable(np.arange(40)[:, None], np.arange(60)[None, :])
    error = np.linalg.norm((found.to_dense() - sales)[inside]) / np.linalg.norm(sales[inside])
    print(f"{seen.share:.0%} known, {inside.mean():.0%} determined, relative error {error:.3f}")
    print("would link the rest:", found.report["connect"])
    print(found.certificate)

    plot.map(found, seen)  # grey: nothing determines the new shop

    # %%
    # Intervals for the true cells.
    low, high = found.interval(np.arange(40)[:, None], np.arange(60)[None, :], 0.95, of="truth")
    covered = float(np.mean(((low <= sales) & (sales <= high))[inside]))
    print(f"95 % intervals cover {covered:.1%} of the cells")

    # %%
    # If cells can be bought, let the plan choose them: here as many as were known above.
    plan = rank_one(sales.shape, budget=len(seen), rng=0)
    bought = ew.play(plan, MatrixOracle(sales, noise=2.0, rng=1))
    chosen = np.linalg.norm(bought.to_dense() - sales) / np.linalg.norm(sales)
    print(f"{bought.cost:.0f} cells chosen: all determined, relative error {chosen:.4f}")
    return {
        "error": float(error),
        "covered": covered,
        "chosen": float(chosen),
        "linking": len(found.report["connect"]),
    }


if __name__ == "__main__":
    run()
