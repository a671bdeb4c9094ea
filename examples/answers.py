"""
Answers as they are: yes or no, stars, a range
==============================================

Three tables of 200 rows and 60 columns, a third of each known. Yes/no answers give probabilities, levels give sets of
answers, and a declared range bounds every interval. All three are checked on answers that the fits never saw.
"""

import numpy as np

import entrywise as ew
from entrywise import plot


def run():
    rng = np.random.default_rng(0)
    level = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 60))
    level += rng.standard_normal((200, 1)) + rng.standard_normal(60)
    known = rng.random(level.shape) < 1 / 3

    yes = (rng.random(level.shape) < 1 / (1 + np.exp(-1.5 * level))).astype(float)
    votes, new = parts(yes, known)
    found = ew.complete(votes)
    chance = found.probability(new.rows, new.cols)
    right = np.mean((chance > 0.5) == (new.values == 1))
    print("; ".join(found.report["reasons"]))
    print(f"the likelier answer is right for {right:.1%} of {len(new)} answers never seen")
    plot.calibration(chance, new.values == 1)

    stars = np.clip(np.round(3 + 0.8 * level + 0.6 * rng.standard_normal(level.shape)), 1, 5)
    ratings, new = parts(stars, known)
    found = ew.complete(ratings)
    likely = found.probability(new.rows, new.cols)
    sets = found.levels(new.rows, new.cols, 0.9)
    held = np.mean(sets[np.arange(len(new)), new.values.astype(int) - 1])
    print(
        f"sets of stars hold {held:.1%}, with {sets.sum(axis=1).mean():.1f} of 5 stars in the mean"
    )
    draw_sets(likely, sets, new.values)

    share = np.clip(0.5 + 0.3 * level + 0.1 * rng.standard_normal(level.shape), 0, 1)
    shares, new = parts(share, known)
    for bounds in ((-np.inf, np.inf), (0, 1)):
        found = ew.complete(shares, bounds=bounds)
        low, high = found.interval(new.rows, new.cols, 0.9)
        print(f"bounds {bounds}: mean width {np.mean(high - low):.3f}")
    axes = plot.intervals(low, high, new.values)
    axes.axhspan(-0.3, 0, color=plot.COLOURS["faint"], alpha=0.4)
    axes.axhspan(1, 1.3, color=plot.COLOURS["faint"], alpha=0.4)
    axes.set_ylim(-0.3, 1.3)
    axes.legend(frameon=False, loc="upper left", ncols=3)
    return right, held


def parts(table, known):
    """Return the known answers, and the others."""
    seen = ew.Observations.from_dense(np.where(known, table, np.nan))
    return seen, ew.Observations.from_dense(np.where(known, np.nan, table))


def draw_sets(likely, sets, stars):
    """Draw the probability of each star in eight cells; what is in the set is blue, the answer has a ring."""
    axes = plot.figure_axes()
    for x in range(8):
        for k in range(5):
            colour = plot.COLOURS["ours" if sets[x, k] else "faint"]
            axes.scatter(x, k + 1, s=700 * likely[x, k] + 6, color=colour, linewidths=0)
        axes.scatter(x, stars[x], s=260, facecolors="none", edgecolors=plot.COLOURS["alarm"])
    axes.set_ylim(0.4, 5.6)
    axes.set_xticks([])
    axes.set_title(
        "Which stars? Size: probability, blue: in the set, ring: the answer", loc="left", fontsize=9
    )
    axes.set_xlabel("cells never seen")
    axes.set_ylabel("stars")


if __name__ == "__main__":
    run()
