"""
A ranking from comparisons
==========================

Forty recipes, each tasted against a few others. Scores come with intervals, and what was never compared is
ranked apart instead of being guessed.
"""

import numpy as np

from entrywise import plot
from entrywise.apply.ranking import rank


def run(seed: int = 0) -> dict[str, float]:
    """Return the correlation with the true scores, the share of intervals that cover, and the number of components."""
    rng = np.random.default_rng(seed)
    n, t = 40, 1200
    taste = rng.normal(0, 1, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    won = rng.random(t) < 1 / (1 + np.exp(taste[b] - taste[a]))
    winner = [f"recipe {x}" for x in np.where(won, a, b)] + [
        "soup x",
        "soup y",
    ]  # the soups met nobody else
    loser = [f"recipe {x}" for x in np.where(won, b, a)] + ["soup y", "soup x"]

    found = rank(winner, loser)
    low, high = found.interval(0.95)
    for k in range(5):
        print(f"{found.items[k]:10s} {found.score[k]:5.2f} in [{low[k]:.2f}, {high[k]:.2f}]")
    first, second = found.items[0], found.items[1]
    chance, least, most = found.compare(first, second)
    print(f"{first} beats {second} with chance {chance:.2f}, between {least:.2f} and {most:.2f}")
    print(f"{found.report['components']} components were never compared with each other")
    recipes = [
        (k, int(name.split()[1]))
        for k, name in enumerate(found.items.tolist())
        if name.startswith("recipe")
    ]
    at, who = np.array(recipes).T
    true = taste[who] - taste[who].mean()
    names = found.items[at].tolist()
    plot.scores(found.score[at], low[at], high[at], names=names, truth=true)
    return {
        "correlation": float(np.corrcoef(found.score[at], true)[0, 1]),
        "covered": float(np.mean((low[at] <= true) & (true <= high[at]))),
        "components": float(found.report["components"]),
    }


if __name__ == "__main__":
    run()
