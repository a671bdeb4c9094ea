"""
Labels from a crowd
===================

Twelve workers answer questions with three possible answers. Four know their trade, six are middling, one throws a die and
one answers wrongly on purpose. Nobody tells us who is who: workers who agree with others are right more often.
"""

import numpy as np

from entrywise import plot
from entrywise.apply.crowd import consensus, majority_vote


def run(seed: int = 0) -> dict[str, float]:
    """Return the share of right labels, of the vote and of the consensus, and the largest error of a skill."""
    rng = np.random.default_rng(seed)
    skill = np.array([0.92] * 4 + [0.65] * 6 + [1 / 3, 0.1])
    n, votes, k = 600, 5, 3
    truth = rng.integers(0, k, n)
    worker = np.argsort(rng.random((n, len(skill))), axis=1)[:, :votes].ravel()
    item = np.repeat(np.arange(n), votes)
    right = rng.random(len(item)) < skill[worker]
    label = np.where(right, truth[item], (truth[item] + rng.integers(1, k, len(item))) % k)

    found = consensus(item, worker, label)
    _, vote, _ = majority_vote(item, worker, label)
    low, high = found.interval(0.95)
    for w in np.argsort(found.workers):
        print(
            f"worker {found.workers[w]:2d}: {found.skill[w]:.2f} in [{low[w]:.2f}, {high[w]:.2f}]  {found.kinds[w]}"
        )
    shares = {
        "vote": float(np.mean(vote == truth)),
        "consensus": float(np.mean(found.labels == truth)),
    }
    print(
        f"right labels: vote {shares['vote']:.3f}, consensus {shares['consensus']:.3f}; model: {found.report['model']}"
    )
    names = [f"worker {w}" for w in found.workers]
    plot.skills(found.skill, low, high, names=names, chance=1 / k)
    return {**shares, "skill error": float(np.abs(found.skill - skill[found.workers]).max())}


if __name__ == "__main__":
    run()
