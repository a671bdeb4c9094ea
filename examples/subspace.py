"""
Which sensors to read
=====================

Sixty sensors, of which we may read four at a time. A handful carry the signal, but we are not told which. Reading at
random and reading what has varied so far cost the same; the second finds the subspace far better.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import subspace
from entrywise.estimators import PartialPCA
from entrywise.gallery import sample_law
from entrywise.oracles import StreamOracle


def run():
    law = sample_law("few", d=60, k=2, seed=3)
    samples = law.draw(4000, np.random.default_rng(0))

    losses = {}
    for name, floor in (("at random", 1.0), ("what varies", 0.2)):
        plan = subspace(60, rank=2, per_sample=4, budget=16_000, floor=floor, rng=1)
        found = ew.play(plan, StreamOracle(samples))
        losses[name] = 1.0 - found.captured(law.moments)
        print(
            f"reading {name}: {losses[name]:.5f} of the best variance lost, {found.cost:.0f} readings"
        )

    # readings that somebody else took: a table with holes
    rng = np.random.default_rng(1)
    table = np.where(rng.random(samples.shape) < 0.3, samples, np.nan)
    pca = PartialPCA(n_components=2).fit(table)
    print(f"table with 70% holes: {1 - pca.subspace_.captured(law.moments):.5f} lost")
    print(
        f"scores of a sample of which {np.sum(~np.isnan(table[0]))} sensors were read: {pca.transform(table[:1]).round(2)}"
    )
    axes = plot.figure_axes(height=2.4)
    axes.barh(
        list(losses), list(losses.values()), color=[plot.COLOURS["rival"], plot.COLOURS["ours"]]
    )
    axes.set_title("Share of the variance lost", loc="left")
    return losses


if __name__ == "__main__":
    run()
