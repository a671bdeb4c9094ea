"""Comparisons and crowds: scores, skills and confidence, and what choosing who is asked next saves."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from _shared import show
from _trust import Claims
from entrywise.apply.crowd import consensus, majority_vote, next_labels
from entrywise.apply.ranking import next_pairs, rank
from entrywise.exceptions import NotIdentifiable

SETS = ("bluebird", "rte", "sentiment", "dog", "wsd", "sp_amt", "web", "product", "sp", "trec")
GOLD = 40  # items checked by hand in a draw
GROUPS = 20  # of items, one left out after another for standard errors
BINS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 2.0)  # of confidence


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


def ranks(claims: Claims) -> None:
    problems = claims.problems(60, 12)
    for n, t in ((30, 600), (100, 1000), (100, 4000), (300, 4500)):
        for spread in (1.0, 2.0, 4.0):
            covered, along, size = [], [], []
            for k in range(problems):
                rng = np.random.default_rng([claims.seed, n, t, int(spread), k])
                won, lost, s = games(rng, n, t, spread)
                found = rank(won, lost)
                true = s[found.items] - s[found.items].mean()
                low, high = found.interval(0.9)
                covered.append(np.mean((low <= true) & (true <= high)))
                along.append(found.score @ true)
                size.append(found.score @ found.score)
            along, size = np.array(along), np.array(size)
            slope = along.sum() / size.sum()
            error = np.std(along - slope * size) * np.sqrt(problems) / size.sum()
            name = f"{n} items, {t} games, spread {spread:g}"
            claims.share("rank", f"90 % intervals cover: {name}", covered, 0.88, 0.92)
            claims.figure("rank", f"slope of truth on score: {name}", slope, problems, 0.95, 1.05, error)  # fmt: skip


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


def pairs_next(claims: Claims) -> None:
    sizes = ((30, 16), (60, 16)) if claims.quick else ((30, 20), (60, 20), (200, 12))
    seeds = claims.problems(20, 4)
    rows = []
    for n, steps in sizes:
        for spread in (1.0, 2.0, 4.0):
            taus = {True: [], False: []}
            for k in range(seeds):
                s = np.random.default_rng([claims.seed, n, int(spread), k]).normal(0, spread, n)
                for choose, kept in taus.items():
                    kept.append(tau_curve([claims.seed, k], s, steps, choose))
            fewer, error = times_fewer(np.array(taus[False]), np.array(taus[True]))
            last = (np.mean(taus[c], axis=0)[-1] for c in (False, True))
            rows.append((n, spread, steps * n, *last, fewer))
            bar = {1.0: 0.95, 2.0: 1.4, 4.0: 2.0}[spread]
            claims.figure("rank next", f"times fewer games, {n} items, spread {spread:g}", fewer, seeds, low=bar, error=error)  # fmt: skip
    columns = ("items", "spread", "games", "tau at random", "tau, next", "times fewer games")
    show(f"rank next against random pairs, {seeds} seeds", columns, rows)


def times_fewer(random, chosen):
    """How many times fewer rounds reach the last tau of random pairs, and its error by leaving out seeds."""
    every = _times_fewer(random, chosen)
    n = len(random)
    one_less = [_times_fewer(np.delete(random, k, 0), np.delete(chosen, k, 0)) for k in range(n)]
    return every, float(np.sqrt((n - 1) * np.var(one_less)))


def _times_fewer(random, chosen):
    random, chosen = random.mean(axis=0), np.maximum.accumulate(chosen.mean(axis=0))
    steps = len(random)
    return float(steps / np.interp(random[-1], chosen, np.arange(1, steps + 1)))


# crowds


def crowd_folder():
    return Path(os.environ.get("ENTRYWISE_DATA", ".")) / "crowdsourcing"


def real_set(name):
    """Return (items, workers, labels, truth by item) of a public set, or None."""
    import pandas as pd

    file = crowd_folder() / f"{name}_labels.csv.gz"
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


def with_error(sure, right, bins, *groups):
    """Calibration error and its standard error, by leaving out each of the `groups` of one kind after another."""
    every, variance = error_of_confidence(sure, right, bins), 0.0
    for group in groups:
        names = np.unique(group)
        less = [error_of_confidence(sure[group != g], right[group != g], bins) for g in names]
        variance += (len(names) - 1) * np.var(less)
    return every, float(np.sqrt(variance))


def said_and_right(found, truth):
    known = np.array([x in truth for x in found.items.tolist()])
    known &= ~np.isnan(found.confidence)
    true = np.array([truth.get(x) for x in found.items.tolist()], object)
    return found.confidence[known], (found.labels == true)[known], found.items[known]


def crowds(claims: Claims) -> None:
    made_crowds(claims)
    pooled, skills = {"with gold": [], "without": []}, []
    for name in SETS:
        data = real_set(name)
        if data is None:
            print("ENTRYWISE_DATA names no folder with crowdsourcing/: the real sets are left out")
            return
        *columns, truth = data
        found = consensus(*columns)
        sure, right, items = said_and_right(found, truth)
        group = np.arange(len(sure)) % GROUPS
        said, was, at, draw, rate = with_gold(claims, columns, truth, items, wrong=1 - right.mean())
        pooled["without"].append((sure, right))
        pooled["with gold"].append((said, was))
        bins = int(np.clip(len(sure) // 50, 2, 10))
        far, error = with_error(sure, right, bins, group)
        claims.figure("crowd", f"calibration error without gold: {name}", far, len(sure), high=0.06, error=error)  # fmt: skip
        far, error = with_error(said, was, bins, at % GROUPS, draw)
        claims.figure("crowd", f"calibration error with gold: {name}", far, len(sure), high=0.04, error=error)  # fmt: skip
        claims.share("crowd", f"share of wrong labels inside its interval (95 %): {name}", rate)
        skills.append(skills_inside(found, columns, truth))
    for kind, parts in pooled.items():
        pooled_bins(claims, kind, *(np.concatenate(x) for x in zip(*parts, strict=True)))
    claims.share("crowd", "95 % intervals of skills cover", np.concatenate(skills), low=0.9)
    further_crowds()


def further_crowds():
    """Sets in the same folder that nothing was fitted to: said and right without gold, and the vote beside us."""
    rows = []
    for file in sorted(crowd_folder().glob("*_labels.csv.gz")):
        name = file.name.removesuffix("_labels.csv.gz")
        if name in SETS:
            continue
        *columns, truth = real_set(name)
        found = consensus(*columns)
        sure, right, _ = said_and_right(found, truth)
        items, labels, _ = majority_vote(*columns)
        vote = [truth[x] == c for x, c in zip(items.tolist(), labels.tolist(), strict=True) if x in truth]  # fmt: skip
        bins = int(np.clip(len(sure) // 50, 2, 10))
        far, error = with_error(sure, right, bins, np.arange(len(sure)) % GROUPS)
        wrong = (100 * (1 - np.mean(x)) for x in (vote, right, sure))
        rows.append((name, found.report["model"], *wrong, far, error))
    if rows:
        columns = ("set", "model", "vote's error, %", "ours", "said", "calibration error", "s.e.")
        show("further sets, without gold", columns, rows)


def with_gold(claims, columns, truth, items, wrong):
    """Confidence, whether it was right, which item and draw, and whether the error rate was covered, over draws of gold."""
    said, was, places, draws, rate = [], [], [], [], []
    for k in range(claims.problems(20, 4)):
        rng = np.random.default_rng([claims.seed, len(items), k])
        chosen = rng.choice(items, min(GOLD, len(items) // 2), replace=False).tolist()
        found = consensus(*columns, gold={x: truth[x] for x in chosen})
        c, r, at = said_and_right(found, truth)
        rest = ~np.isin(at, chosen)
        said.append(c[rest])
        was.append(r[rest])
        places.append(np.flatnonzero(rest))
        draws.append(np.full(rest.sum(), k))
        low, high = (found.report[f"wrong_labels_{end}"] for end in ("low", "high"))
        rate.append(low <= wrong <= high)
    return *(np.concatenate(x) for x in (said, was, places, draws)), rate


CROWDS = (
    "independent",
    "items of unlike difficulty",
    "copies within groups",
    "5 % of items fool most workers",
    "20 % of items fool most workers",
)


def made_crowd(kind, rng):
    """Return (items, workers, labels, truth by item) of a crowd that errs together in one way."""
    n, W, k = 400, int(rng.integers(20, 60)), int(rng.integers(2, 5))
    votes = int(rng.choice([3, 5, 10]))
    truth = rng.integers(0, k, n)
    item = np.repeat(np.arange(n), votes)
    worker = np.concatenate([rng.choice(W, votes, replace=False) for _ in range(n)])
    odds = rng.normal(1.2, 0.8, W)[worker]  # of being right against one other class
    if kind == "items of unlike difficulty":
        odds = odds + rng.normal(0.0, 1.2, n)[item]
    right = rng.random(len(item)) < 1 / (1 + (k - 1) * np.exp(-odds))
    other = (truth[item] + rng.integers(1, k, len(item))) % k
    label = np.where(right, truth[item], other)
    if kind == "copies within groups":
        label = copied(item, worker // 5, label, rng)
    elif kind.endswith("fool most workers"):
        decoy = (truth + rng.integers(1, k, n)) % k
        fooled = rng.random(n) < int(kind.split()[0]) / 100
        takes = fooled[item] & (rng.random(len(item)) < 0.8)
        label = np.where(takes, decoy[item], label)
    return item, worker, label, dict(enumerate(truth.tolist()))


def copied(item, group, label, rng):
    """Return labels half of which are that of the first answer of their group to the item."""
    pair = item * (group.max() + 1) + group
    _, first, back = np.unique(pair, return_index=True, return_inverse=True)
    copies = rng.random(len(label)) < 0.5
    return np.where(copies, label[first][back], label)


def made_crowds(claims: Claims) -> None:
    """Made crowds with correlated workers, a draw of gold each, pooled over the crowds of a kind."""
    for kind in CROWDS:
        kept = {"without gold": [], "with gold": []}
        rate, skills = [], []
        for k in range(claims.problems(40, 16)):
            rng = np.random.default_rng([claims.seed, 14, CROWDS.index(kind), k])
            *columns, truth = made_crowd(kind, rng)
            found = consensus(*columns)
            sure, right, items = said_and_right(found, truth)
            kept["without gold"].append((sure, right, np.full(len(sure), k)))
            chosen = rng.choice(items, GOLD, replace=False).tolist()
            checked = consensus(*columns, gold={x: truth[x] for x in chosen})
            said, was, at = said_and_right(checked, truth)
            rest = ~np.isin(at, chosen)
            kept["with gold"].append((said[rest], was[rest], np.full(rest.sum(), k)))
            low, high = (checked.report[f"wrong_labels_{end}"] for end in ("low", "high"))
            rate.append(low <= 1 - right.mean() <= high)
            skills.append(np.mean(skills_inside(found, columns, truth)))
        for words, bar in (("without gold", 0.06), ("with gold", 0.04)):
            sure, right, group = (np.concatenate(x) for x in zip(*kept[words], strict=True))
            far, error = with_error(sure, right, 10, group)
            claims.figure("made crowds", f"calibration error {words}: {kind}", far, len(sure), high=bar, error=error)  # fmt: skip
        claims.share("made crowds", f"share of wrong labels inside its interval (95 %): {kind}", rate)  # fmt: skip
        claims.share("made crowds", f"95 % intervals of skills cover: {kind}", skills, low=0.9)


def pooled_bins(claims, kind, sure, right):
    for low, high in itertools.pairwise(BINS):
        here = (sure >= low) & (sure < high)
        if here.sum() >= 300:
            gap = abs(sure[here].mean() - right[here].mean())
            name = f"|said - right|, {kind}, said {low}-{min(high, 1)}"
            error = float(right[here].std() / np.sqrt(here.sum()))
            claims.figure("crowd", name, gap, int(here.sum()), high=0.03, error=error)


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


def labels_next(claims: Claims) -> None:
    rows = []
    replays = claims.problems(10, 2)
    for name in ("bluebird", "rte", "sentiment", "dog", "sp_amt", "web", "sp"):
        data = real_set(name)
        if data is None:
            return
        curves = {True: [], False: []}
        for k in range(replays):
            for choose, kept in curves.items():
                kept.append(accuracy_curve(data, np.random.default_rng([claims.seed, k]), choose))
        uniform, chosen = (100 * np.mean(curves[c], axis=0) for c in (False, True))
        rise = uniform[11] - uniform[5]  # from 30 to 60 % of the labels, in steps of 5 %
        share = np.arange(1, len(uniform) + 1) * 0.05
        reached = np.interp(uniform[11], np.maximum.accumulate(chosen), share)
        saved = 100 * (1 - reached / 0.6)
        rows.append((name, uniform[5], uniform[11], rise, chosen[11], saved))
    columns = ("set", "random, 30 %", "random, 60 %", "rise", "next, 60 %", "saved at random's 60 %")  # fmt: skip
    show(f"crowd next against labels at random, {replays} replays: accuracy %", columns, rows)
    saved = [row[5] for row in rows if row[3] >= 1.0]
    if saved:
        claims.figure("crowd next", "labels saved, %, median of rising sets", float(np.median(saved)), len(saved), low=30)  # fmt: skip


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
