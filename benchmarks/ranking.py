"""Ranking from comparisons beside choix: the same scores, sparse, with intervals, and a word on what cannot be told.

``make bench NAME=ranking``; ``ARGS=--quick`` leaves the largest sizes out.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from _shared import Bars, cpu, show
from entrywise.apply.ranking import rank

SEED = 71_205


def games(seed, n, t, spread=1.0):
    rng = np.random.default_rng([SEED, seed])
    s = rng.normal(0, spread, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    won = rng.random(t) < 1 / (1 + np.exp(s[b] - s[a]))
    return np.where(won, a, b), np.where(won, b, a), s


def peer(call):
    """Return (seconds, scores or the reason why there are none)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, s = cpu(call)
    except Exception as error:
        return float("nan"), f"{type(error).__name__}: {str(error)[:60]}"
    return seconds, s if np.all(np.isfinite(s)) else "NaN scores, no error"


def main() -> None:
    import choix

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    bars = Bars()
    rank([0, 1], [1, 0])  # compile

    won, lost, s = games(0, 200, 8000)
    found = rank(won, lost, prior=None)
    want = choix.opt_pairwise(
        200, list(zip(won.tolist(), lost.tolist(), strict=True)), alpha=1e-12, tol=1e-10
    )
    gap = float(np.abs(found.score - (want - want.mean())[found.items]).max())
    bars.at_most(
        "maximum likelihood: largest difference from choix.opt_pairwise (200 items)", gap, 1e-4
    )

    rows = []
    for n, t in (
        ((1000, 20_000), (2000, 40_000))
        if quick
        else ((1000, 20_000), (3000, 60_000), (6000, 120_000))
    ):
        won, lost, s = games(n, n, t)
        data = list(zip(won.tolist(), lost.tolist(), strict=True))
        full, chain = (
            (lambda d=data, n=n: choix.opt_pairwise(n, d, alpha=0.01)),
            (lambda d=data, n=n: choix.lsr_pairwise(n, d, alpha=0.01)),
        )
        peers = {"lsr_pairwise": peer(chain)}
        if n <= 3000:  # beyond, a dense Hessian at every step takes minutes
            peers["opt_pairwise"] = peer(full)
        for ours in ("bradley-terry", "spectral"):
            seconds, mine = cpu(lambda o=ours, w=won, l=lost: rank(w, l, method=o))
            right = np.corrcoef(s[mine.items], mine.score)[0, 1]
            for name, (peer_seconds, said) in peers.items():
                peer_right = said if isinstance(said, str) else np.corrcoef(s, said)[0, 1]
                rows.append(
                    (
                        ours,
                        name,
                        n,
                        t,
                        seconds,
                        peer_seconds,
                        peer_seconds / seconds,
                        right,
                        peer_right,
                    )
                )
    last = next(r for r in rows if r[0] == "bradley-terry" and r[1] == "lsr_pairwise" and r[2] == n)
    bars.at_least(
        f"choix's quickest (lsr_pairwise) seconds / ours (bradley-terry), {n} items",
        last[6],
        1 if quick else 10,
    )
    show(
        "time and truth",
        (
            "ours",
            "choix",
            "items",
            "comparisons",
            "ours s",
            "choix s",
            "ratio",
            "corr",
            "choix corr",
        ),
        rows,
    )

    rows = []
    for name, (won, lost), n in (
        ("two groups that never met", ([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]), 6),
        ("an item that never lost", ([0, 0, 1, 2], [1, 2, 2, 1]), 3),
        ("1000 items, 3000 games", games(9, 1000, 3000)[:2], 1000),
    ):
        won, lost = np.asarray(won), np.asarray(lost)
        data = list(zip(won.tolist(), lost.tolist(), strict=True))
        mine = rank(won, lost)
        _, said = peer(lambda d=data, n=n: choix.lsr_pairwise(n, d))
        words = said if isinstance(said, str) else "scores"
        note = f"finite, {mine.report['components']} components, {mine.report['never lost']} never lost"
        rows.append((name, note, words))
        bars.at_least(f"finite scores: {name}", float(np.all(np.isfinite(mine.score))), 1)
    show("what choix 0.4 (alpha = 0) says, and ours", ("data", "ours", "choix.lsr_pairwise"), rows)

    covered = []
    for seed in range(10 if quick else 40):
        won, lost, s = games(100 + seed, 100, 4000)
        found = rank(won, lost)
        low, high = found.interval(0.95)
        true = s[found.items] - s.mean()
        covered.append(100 * np.mean((low <= true) & (true <= high)))
    bars.at_least("95 % intervals of scores cover, %", float(np.mean(covered)), 93)
    bars.at_most("95 % intervals of scores cover, %", float(np.mean(covered)), 97)

    if not quick:
        won, lost, s = games(5, 200_000, 1_000_000)
        seconds, found = cpu(lambda: rank(won, lost))
        print(
            f"200,000 items, 1,000,000 comparisons: {seconds:.1f} CPU s, {found.report['iterations']} Newton steps"
        )
        bars.at_most("200,000 items, 1,000,000 comparisons, CPU seconds", seconds, 60)
    bars.end()


if __name__ == "__main__":
    main()
