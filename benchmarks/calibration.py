"""What rankings and crowds say of their own error, counted on fresh problems; and what choosing who is asked next saves.

``make bench NAME=calibration`` (all, some minutes), ``ARGS="--only rank"`` for a part, ``--quick`` for fewer problems. A case
fails when its figure is more than two standard errors outside its bar. The real sets need ENTRYWISE_DATA.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from _shared import Bars, show
from entrywise.apply.crowd import consensus, majority_vote, next_labels
from entrywise.apply.ranking import next_pairs, rank
from entrywise.exceptions import NotIdentifiable

warnings.filterwarnings("ignore")
SEED = 22_11_16
SETS = ("bluebird", "rte", "sentiment", "dog", "wsd", "sp_amt", "web", "product", "sp", "trec")
GOLD = 40  # items checked by hand in a draw


# comparisons


def games(rng, n, t, spread):
    """Return (winners, losers, scores) of t games between random pairs."""
    s = rng.normal(0, spread, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    return *played(rng, s, a, b), s


def played(rng, s, a, b):
    won = rng.random(len(a)) < 1 / (1 + np.exp(s[b] - s[a]))
    return np.where(won, a, b), np.where(won, b, a)


def ranks(bars, quick):
    rows = []
    problems = 12 if quick else 60
    for n, t in ((30, 600), (100, 1000), (100, 4000), (300, 4500)):
        for spread in (1.0, 2.0, 4.0):
            covered, along, size = [], [], []
            for k in range(problems):
                rng = np.random.default_rng([SEED, n, t, int(spread), k])
                won, lost, s = games(rng, n, t, spread)
                found = rank(won, lost)
                true = s[found.items] - s[found.items].mean()
                low, high = found.interval(0.9)
                covered.append(np.mean((low <= true) & (true <= high)))
                along.append(found.score @ true)
                size.append(found.score @ found.score)
            cover, error = np.mean(covered), np.std(covered) / np.sqrt(problems)
            along, size = np.array(along), np.array(size)
            slope = along.sum() / size.sum()
            slope_error = np.std(along - slope * size) * np.sqrt(problems) / size.sum()
            rows.append((n, t, spread, cover, error, slope, slope_error))
            name = f"{n} items, {t} games, spread {spread:g}"
            bars.at_least(f"90 % intervals cover (+ 2 s.e.): {name}", cover + 2 * error, 0.88)
            bars.at_most(f"90 % intervals cover (- 2 s.e.): {name}", cover - 2 * error, 0.92)
            bars.at_least(f"slope (+ 2 s.e.): {name}", slope + 2 * slope_error, 0.95)
            bars.at_most(f"slope (- 2 s.e.): {name}", slope - 2 * slope_error, 1.05)
    columns = ("items", "games", "spread", "90 % cover", "s.e.", "slope of truth on score", "s.e.")
    show(f"rank: nominal against measured, {problems} problems a case", columns, rows)


def tau_curve(seed, s, steps, choose):
    """Kendall's tau after each round of as many games as there are items."""
    n, rng = len(s), np.random.default_rng(seed)
    won, lost = played(rng, s, np.arange(n), (np.arange(n) + 1) % n)
    told = []
    for _ in range(steps):
        found = rank(won, lost)
        score = np.empty(n)
        score[found.items] = found.score
        told.append(kendalltau(score, s)[0])
        if choose:
            a, b, _, _ = next_pairs(found, n)
        else:
            a = rng.integers(0, n, n)
            b = (a + rng.integers(1, n, n)) % n
        more = played(rng, s, a, b)
        won, lost = np.r_[won, more[0]], np.r_[lost, more[1]]
    return told


def pairs_next(bars, quick):
    rows = []
    sizes = ((30, 16), (60, 16)) if quick else ((30, 20), (60, 20), (200, 12))
    for n, steps in sizes:
        seeds = 4 if quick else 20
        for spread in (1.0, 2.0, 4.0):
            taus = {True: [], False: []}
            for k in range(seeds):
                s = np.random.default_rng([SEED, n, int(spread), k]).normal(0, spread, n)
                for choose, kept in taus.items():
                    kept.append(tau_curve([SEED, k], s, steps, choose))
            random, chosen = np.mean(taus[False], axis=0), np.mean(taus[True], axis=0)
            rounds = np.arange(1, steps + 1)
            reached = np.interp(random[-1], np.maximum.accumulate(chosen), rounds)
            fewer = steps / reached
            rows.append((n, spread, steps * n, random[-1], chosen[-1], fewer))
            bar = {1.0: 0.95, 2.0: 1.4, 4.0: 2.0}[spread]
            bars.at_least(f"rank next: times fewer games, {n} items, spread {spread:g}", fewer, bar)
    columns = ("items", "spread", "games", "tau at random", "tau, next", "times fewer games")
    show(f"rank next against random pairs, {seeds} seeds", columns, rows)


# crowds


def real_set(name):
    """Return (items, workers, labels, truth by item) of a public set, or None."""
    import pandas as pd

    folder = os.environ.get("ENTRYWISE_DATA")
    file = Path(folder or ".") / "crowdsourcing" / f"{name}_labels.csv.gz"
    if not file.exists():
        return None
    answers = pd.read_csv(file)
    truth = pd.read_csv(file.with_name(f"{name}_truth.csv.gz"))
    columns = (answers[c].to_numpy() for c in ("item", "worker", "label"))
    return *columns, dict(zip(truth["item"], truth["truth"], strict=True))


def error_of_confidence(sure, right, bins):
    """Expected calibration error over bins of equal size."""
    parts = np.array_split(np.argsort(sure, kind="stable"), bins)
    gaps = [abs(sure[b].mean() - right[b].mean()) * len(b) for b in parts if len(b)]
    return sum(gaps) / len(sure)


def said_and_right(found, truth):
    known = np.array([x in truth for x in found.items.tolist()])
    known &= ~np.isnan(found.confidence)
    true = np.array([truth.get(x) for x in found.items.tolist()], object)
    return found.confidence[known], (found.labels == true)[known], found.items[known]


def crowds(bars, quick):
    rows, pooled, skills = [], {"with gold": [], "without": []}, []
    draws = 4 if quick else 20
    for name in SETS:
        data = real_set(name)
        if data is None:
            print("ENTRYWISE_DATA names no folder with crowdsourcing/: the real sets are left out")
            return
        *columns, truth = data
        found = consensus(*columns)
        sure, right, items = said_and_right(found, truth)
        bins = int(np.clip(len(sure) // 50, 2, 10))
        without = error_of_confidence(sure, right, bins)
        pooled["without"].append((sure, right))
        said, was, rate = [], [], []
        for k in range(draws):
            rng = np.random.default_rng([SEED, len(name), k])
            chosen = rng.choice(items, min(GOLD, len(items) // 2), replace=False).tolist()
            again = consensus(*columns, gold={x: truth[x] for x in chosen})
            c, r, at = said_and_right(again, truth)
            rest = ~np.isin(at, chosen)
            said.append(c[rest])
            was.append(r[rest])
            low, high = again.report["wrong labels, low"], again.report["wrong labels, high"]
            rate.append(low <= 1 - right.mean() <= high)
        said, was = np.concatenate(said), np.concatenate(was)
        pooled["with gold"].append((said, was))
        with_gold = error_of_confidence(said, was, bins)
        inside = skills_inside(found, columns, truth)
        skills.append(inside)
        cover = np.mean(inside) if len(inside) else np.nan
        rows.append(
            (
                name,
                len(sure),
                sure.mean(),
                right.mean(),
                without,
                with_gold,
                np.mean(rate),
                len(inside),
                cover,
            )
        )
        bars.at_most(f"calibration error without gold: {name}", without, 0.06)
        bars.at_most(f"calibration error with {GOLD} gold items: {name}", with_gold, 0.04)
    columns = (
        "set", "items", "said", "right", "error without gold", "with gold", "wrong labels covered", "workers", "95 % skills cover",
    )  # fmt: skip
    show(f"crowd confidence and skills, {draws} draws of {GOLD} gold items", columns, rows)
    for kind, parts in pooled.items():
        sure, right = (np.concatenate(x) for x in zip(*parts, strict=True))
        table = []
        for low in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99):
            high = {0.3: 0.5, 0.5: 0.6, 0.6: 0.7, 0.7: 0.8, 0.8: 0.9, 0.9: 0.95, 0.95: 0.99}.get(
                low, 2
            )
            here = (sure >= low) & (sure < high)
            if here.sum() >= 300:
                gap = sure[here].mean() - right[here].mean()
                table.append(
                    (
                        f"{low}-{min(high, 1)}",
                        int(here.sum()),
                        sure[here].mean(),
                        right[here].mean(),
                        gap,
                    )
                )
                bars.at_most(f"|said - right|, {kind}, bin from {low}", abs(gap), 0.03)
        show(f"pooled bins, {kind}", ("bin", "items", "said", "right", "too sure by"), table)
    inside = np.concatenate(skills)
    bars.at_least(f"95 % intervals of skills cover, {len(inside)} workers", inside.mean(), 0.9)


def skills_inside(found, columns, truth):
    """Whether the share right of each worker with 10 or more checked answers lies in its interval."""
    item, worker, label = columns
    known = np.array([x in truth for x in item.tolist()])
    right = np.array([truth.get(x) for x in item.tolist()], object) == label
    low, high = found.interval(0.95)
    inside = []
    for k, name in enumerate(found.workers.tolist()):
        mine = known & (worker == name)
        if mine.sum() >= 10 and not np.isnan(low[k]):
            share = right[mine].mean()
            inside.append(low[k] - 1e-9 <= share <= high[k] + 1e-9)
    return np.array(inside, bool)


def labels_next(bars, quick):
    rows = []
    replays = 2 if quick else 10
    for name in ("bluebird", "rte", "sentiment", "dog", "sp_amt", "web", "sp"):
        data = real_set(name)
        if data is None:
            return
        curves = {True: [], False: []}
        for k in range(replays):
            for choose, kept in curves.items():
                kept.append(accuracy_curve(data, np.random.default_rng([SEED, k]), choose))
        uniform, chosen = (np.mean(curves[c], axis=0) for c in (False, True))
        rise = 100 * (uniform[11] - uniform[5])  # from 30 to 60 % of the labels, in steps of 5 %
        share = np.arange(1, len(uniform) + 1) * 0.05
        reached = np.interp(uniform[11], np.maximum.accumulate(chosen), share)
        rows.append(
            (
                name,
                100 * uniform[5],
                100 * uniform[11],
                rise,
                100 * chosen[11],
                100 * (1 - reached / 0.6),
            )
        )
    show(
        f"crowd next against labels at random, {replays} replays: accuracy %, labels saved %",
        ("set", "random, 30 %", "random, 60 %", "rise", "next, 60 %", "saved at random's 60 %"), rows,
    )  # fmt: skip
    saved = [row[5] for row in rows if row[3] >= 1.0]
    if saved:
        bars.at_least(
            f"crowd next: labels saved, median of {len(saved)} sets that still rise, %",
            float(np.median(saved)),
            30,
        )


def accuracy_curve(data, rng, choose):
    """Accuracy after 5, 10, ... 60 % of the labels of a set, bought at random or as `next_labels` says."""
    item, worker, label, truth = data
    total = len(item)
    names = np.unique(item)
    left = {x: list(rng.permutation(np.flatnonzero(item == x))) for x in names.tolist()}
    order = rng.permutation(total)
    bought, told = [], []
    for step in range(1, 13):
        want = total * step * 5 // 100 - len(bought)
        if not choose:
            bought = order[: len(bought) + want].tolist()
        elif not bought:
            first = [left[x].pop() for x in rng.permutation(names).tolist()[:want]]
            bought += first
            want -= len(first)
        if choose:
            while want > 0:
                open_items = [x for x in names.tolist() if left[x]]
                batch = min(want, max(20, len(names) // 5))
                ask, _, _ = next_labels(
                    item[bought], worker[bought], label[bought], limit=batch, among=open_items
                )
                for x in ask.tolist():
                    if left[x]:
                        bought.append(left[x].pop())
                        want -= 1
        told.append(accuracy(item[bought], worker[bought], label[bought], truth))
    return told


def accuracy(item, worker, label, truth):
    """Share of all items whose label is right; an item without labels is wrong."""
    try:
        found = consensus(item, worker, label, classes=np.unique(label))
        items, labels = found.items, found.labels
    except NotIdentifiable:  # no item has two answers yet
        items, labels, _ = majority_vote(item, worker, label)
    said = dict(zip(items.tolist(), labels.tolist(), strict=True))
    return np.mean([said.get(x) == c for x, c in truth.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer problems")
    parts = {"rank": ranks, "pairs": pairs_next, "crowd": crowds, "labels": labels_next}
    parser.add_argument("--only", choices=parts)
    args = parser.parse_args()
    bars = Bars()
    for name, part in parts.items():
        if args.only in (None, name):
            part(bars, args.quick)
    bars.end()


if __name__ == "__main__":
    main()
