"""Crowd labels and skills beside crowd-kit: ten real sets, sparse worker graphs, few answers a worker, speed.

``make bench NAME=crowd`` (all, some minutes) or ``ARGS=--quick`` (fewer draws). Real sets need ENTRYWISE_DATA.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from _shared import Bars, cpu, show
from entrywise.apply.crowd import agreement_skills, consensus

warnings.filterwarnings("ignore")
SETS = ("bluebird", "rte", "sentiment", "dog", "wsd", "sp_amt", "web", "product", "sp", "trec")
SEED = 61_116_02


def draw(rng, n, W, v, k, kind, graph, shares=None):
    """Return (items, workers, labels, truth, chance of a right answer) of a made crowd."""
    chance = {
        "spammer": lambda: np.where(rng.random(W) < 0.5, 0.95 if k == 2 else 0.9, 1.0 / k),
        "beta": lambda: rng.beta(5, 2, W),
        "adversaries": lambda: np.where(rng.random(W) < 0.15, 0.15, rng.beta(8, 2, W)),
        "alike": lambda: np.full(W, 0.75 if k == 2 else 0.6),
        "good": lambda: rng.beta(18, 2, W),
        "biased": lambda: rng.beta(5, 2, W),
    }[kind]()
    theta = np.repeat(np.repeat(((1 - chance) / (k - 1))[:, None, None], k, 1), k, 2)
    theta[:, range(k), range(k)] = chance[:, None]
    if kind == "biased":  # class 0 is harder for everyone, by a different amount
        hard = rng.beta(4, 3, W)
        theta[:, 0, :], theta[:, 0, 0] = ((1 - hard) / (k - 1))[:, None], hard
    truth = rng.choice(k, n, p=shares)
    if graph == "ring":
        worker = ((np.arange(n) * W // n)[:, None] + np.arange(v) + rng.integers(0, 2, (n, 1))) % W
    else:
        worker = distinct(rng, n, W, v)
    item, worker = np.repeat(np.arange(n), v), worker.ravel()
    label = (
        (rng.random(n * v)[:, None] > theta[worker, truth[item]].cumsum(axis=1))
        .sum(axis=1)
        .clip(0, k - 1)
    )
    return item, worker, label, truth, chance


def distinct(rng, n, W, v):
    """Return v different workers for each of n items, drawn at random, shape (n, v)."""
    if n * W < 10**7:
        return np.argsort(rng.random((n, W)), axis=1)[:, :v]
    worker = rng.integers(W, size=(n, v))
    while True:
        again = (np.diff(np.sort(worker, axis=1), axis=1) == 0).any(axis=1)
        if not again.any():
            return worker
        worker[again] = rng.integers(W, size=(int(again.sum()), v))


def vote_accuracy(item, label, truth, k):
    votes = np.zeros((len(truth), k))
    np.add.at(votes, (item, label), 1)
    top = votes == votes.max(axis=1, keepdims=True)
    return 100 * np.mean(top[np.arange(len(truth)), truth] / top.sum(axis=1))


def frame(item, worker, label):
    return pd.DataFrame({"task": item, "worker": worker, "label": label})


def real(bars):
    from crowdkit.aggregation import DawidSkene, OneCoinDawidSkene

    folder = os.environ.get("ENTRYWISE_DATA")
    if not folder or not (Path(folder) / "crowdsourcing").is_dir():
        print("ENTRYWISE_DATA names no folder with crowdsourcing/: the real sets are left out")
        return
    rows = []
    for name in SETS:
        answers = pd.read_csv(Path(folder) / "crowdsourcing" / f"{name}_labels.csv.gz")
        gold = pd.read_csv(Path(folder) / "crowdsourcing" / f"{name}_truth.csv.gz").set_index(
            "item"
        )["truth"]
        item, worker, label = (answers[c].to_numpy() for c in ("item", "worker", "label"))
        seconds, found = cpu(lambda i=item, w=worker, l=label: consensus(i, w, l))
        ours = pd.Series(found.labels, index=found.items)
        gold = gold[gold.index.isin(ours.index)]
        right = ours[gold.index].to_numpy() == gold.to_numpy()
        error = {"ours": 100 * (1 - right.mean())}
        for peer in (DawidSkene(n_iter=100), OneCoinDawidSkene(n_iter=100)):
            said = peer.fit_predict(frame(item, worker, label))
            error[type(peer).__name__] = 100 * np.mean(
                said[gold.index].to_numpy() != gold.to_numpy()
            )
        votes = (
            answers.groupby(["item", "label"])
            .size()
            .unstack(fill_value=0)
            .reindex(columns=range(int(max(label.max(), gold.max())) + 1), fill_value=0)
        )
        votes = votes.loc[gold.index].to_numpy()
        top = votes == votes.max(axis=1, keepdims=True)
        vote = 100 * (1 - np.mean(top[np.arange(len(gold)), gold.to_numpy()] / top.sum(axis=1)))
        sure = pd.Series(found.confidence, index=found.items)[gold.index].to_numpy()
        known = ~np.isnan(sure)
        rows.append(
            (name, error["ours"], error["DawidSkene"], error["OneCoinDawidSkene"], vote, found.report["model"],
             100 * np.mean(sure[known]), 100 * np.mean(right[known]), found.report["temper"], seconds)
        )  # fmt: skip
        bars.at_most(
            f"{name}: error beyond crowd-kit's Dawid-Skene, points",
            error["ours"] - error["DawidSkene"],
            0.5,
        )
    show(
        "real sets, error %",
        (
            "set",
            "ours",
            "ck DS",
            "ck one-coin",
            "vote",
            "model",
            "confidence %",
            "right %",
            "temper",
            "s",
        ),
        rows,
    )


def speed(bars, quick):
    """Time all of ours against crowd-kit's fits, in turn, on random graphs of workers and on a ring."""
    cases = [(40_000, 2000, 2, "random"), (40_000, 2000, 5, "random"), (40_000, 2000, 2, "ring")]
    if not quick:
        cases.append((200_000, 10_000, 2, "random"))
    rows = []
    for n, W, k, graph in cases:
        rows.append(_timed(bars, n, W, k, graph, repeat=1 if n > 100_000 else 3))
    columns = (
        "labels",
        "workers",
        "classes",
        "graph",
        "ours s",
        "ck DS s",
        "ck one-coin s",
        "ours %",
        "ck DS %",
    )
    show("CPU seconds; ours is auto: five models, skills, intervals", columns, rows)


def _timed(bars, n, W, k, graph, repeat):
    from crowdkit.aggregation import DawidSkene, OneCoinDawidSkene

    rng = np.random.default_rng(SEED)
    item, worker, label, truth, _ = draw(rng, n, W, 5, k, "beta", graph)
    consensus(item[:500], worker[:500], label[:500])  # compile
    table = frame(item, worker, label)
    ours = full = np.inf
    for _ in range(
        repeat
    ):  # in turn, so that both see the same machine; the fewest seconds of each
        seconds, found = cpu(lambda: consensus(item, worker, label))
        ours = min(ours, seconds)
        seconds, theirs = cpu(lambda: DawidSkene(n_iter=100).fit_predict(table))
        full = min(full, seconds)
    coin, _ = cpu(lambda: OneCoinDawidSkene(n_iter=100).fit_predict(table))
    what = f"{n * 5:,} labels, {k} classes, {graph}"
    bars.at_least(f"crowd-kit Dawid-Skene's seconds / ours: {what}", full / ours, 8)
    accuracy = [100 * np.mean(np.asarray(x) == truth) for x in (found.labels, theirs)]
    bars.at_least(f"accuracy beyond crowd-kit's, points: {what}", accuracy[0] - accuracy[1], -0.5)
    return (n * 5, W, k, graph, ours, full, coin, *accuracy)


def skills(bars, draws):
    from crowdkit.aggregation import OneCoinDawidSkene

    rows = []
    for n, W, v, k in ((1000, 200, 5, 2), (2000, 200, 5, 2), (800, 100, 5, 4), (1000, 200, 3, 2)):
        for kind in ("spammer", "beta", "adversaries"):
            found = []
            for t in range(draws):
                rng = np.random.default_rng([SEED, 1, n, v, k, len(kind), t])
                item, worker, label, _, chance = draw(rng, n, W, v, k, kind, "ring")
                ours = consensus(item, worker, label)
                peer = OneCoinDawidSkene(n_iter=100).fit(frame(item, worker, label)).skills_
                true = chance[ours.workers]
                low, high = ours.interval(0.95)
                start = [agreement_skills(item, worker, label, shrink=s)[1] for s in (0, 20, 60)]
                found.append(
                    [np.abs(ours.skill - true).mean(), np.abs(peer[ours.workers].to_numpy() - true).mean(),
                     100 * np.mean((low <= true) & (true <= high)),
                     *(np.nanmean(np.abs((1 + (k - 1) * s) / k - true)) for s in start)]
                )  # fmt: skip
            mean = np.mean(found, axis=0)
            name = f"{n} items, {W} workers, {v} votes, k={k}, {kind}"
            rows.append((name, n * v // W, *mean))
            bars.at_most(f"skill error / crowd-kit OneCoin's: {name}", mean[0] / mean[1], 1.0)
    columns = (
        "ring graph",
        "answers each",
        "ours",
        "ck one-coin",
        "95 % covers %",
        "rank one n0=0",
        "n0=20",
        "n0=60",
    )
    show(f"mean |skill error|, {draws} draws", columns, rows)


def few(bars, draws):
    rows = []
    settings = (
        (600, 200, 5, 2), (1000, 200, 3, 2), (400, 400, 3, 2), (600, 450, 3, 2), (600, 180, 3, 4), (500, 250, 5, 3), (200, 70, 5, 2),
    )  # fmt: skip
    for n, W, v, k in settings:
        for kind in ("spammer", "beta", "adversaries", "alike", "good", "biased"):
            for shares in (None, [0.8, *[0.2 / (k - 1)] * (k - 1)]):
                gains = []
                for t in range(draws):
                    rng = np.random.default_rng([SEED, 2, n, W, v, k, len(kind), shares is None, t])
                    graph = "ring" if t % 2 else "random"
                    item, worker, label, truth, _ = draw(rng, n, W, v, k, kind, graph, shares)
                    found = consensus(item, worker, label)
                    top = (
                        found.probabilities >= found.probabilities.max(axis=1, keepdims=True) - 1e-9
                    )
                    ours = 100 * np.mean(
                        (top / top.sum(axis=1, keepdims=True))[np.arange(n), truth]
                    )
                    gains.append(ours - vote_accuracy(item, label, truth, k))
                name = f"{n}/{W}/{v}, k={k}, {kind}{'' if shares is None else ', 80 % one class'}"
                rows.append(
                    (
                        name,
                        n * v / W,
                        np.mean(gains),
                        np.min(gains),
                        np.mean(np.array(gains) < -0.5),
                    )
                )
    rows.sort(key=lambda r: r[2])
    show(
        f"few answers a worker: accuracy minus the vote's, points ({draws} draws; the 25 lowest of {len(rows)})",
        ("items/workers/votes", "answers each", "mean", "worst draw", "draws below -0.5"), rows[:25],
    )  # fmt: skip
    bars.at_least(
        "few answers: lowest mean gain over the vote of all settings, points", rows[0][2], -0.5
    )
    print(
        f"mean gain over all settings {np.mean([r[2] for r in rows]):.2f}, worst single draw {min(r[3] for r in rows):.2f}"
    )
    print(f"single draws more than 0.5 below the vote: {100 * np.mean([r[4] for r in rows]):.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("--only", choices=("real", "speed", "skills", "few"))
    args = parser.parse_args()
    bars = Bars()
    parts = {
        "real": lambda: real(bars),
        "speed": lambda: speed(bars, args.quick),
        "skills": lambda: skills(bars, 2 if args.quick else 6),
        "few": lambda: few(bars, 2 if args.quick else 8),
    }
    for name, part in parts.items():
        if args.only in (None, name):
            part()
    bars.end()


if __name__ == "__main__":
    main()
