"""Mistake bounds for binary matrix completion (Herbster, Pasteris, Pontil, NIPS 2016): theorems against measurements.

The paper has no experiments. These figures hold its statements against what happens: mistakes and bound for biclusters,
noise, graph labelings and sizes, the adversary, real votes with every learner and baseline, and its main comparison:
the bounds of Hazan, Kale and Shalev-Shwartz and of Cesa-Bianchi and Shamir, with what their algorithms do.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise.bounds.binary import (
    adversary,
    bicluster_bound,
    data_bound,
    graph_complexity_bound,
    graph_kernel,
    lower_bound,
    regret_bound,
    rounding_bound,
    winnow_bound,
)
from entrywise.gallery import bicluster_trials
from entrywise.online import (
    Doubling,
    GoldmanWarmuth,
    HazanKaleShalevShwartz,
    KernelPerceptron,
    Learner,
    MatrixWinnow,
    OnlineFactorization,
    RandomizedRounding,
    RowColumnMajority,
    SymmetricWinnow,
    auto,
)
from entrywise.reproduce.figures import (
    Claim,
    Drawing,
    Figure,
    gap,
    mean_interval,
    new_figure,
    save_csv,
    save_figure,
)

TITLE = "mistake bounds for binary matrices"
REFERENCE = (
    "Herbster, Pasteris, Pontil, *Mistake Bounds for Binary Matrix Completion*, NIPS 2016. The paper prints no experiment: "
    "its theorems are measured here."
)
TUNING = (
    "Algorithm 1 runs at the rate its theorem names, or at 1 on real data; auto has no parameter. Factorisation (ranks 3 and 10, "
    "steps .03, .1, .3) and Hazan et al. (rates .1, .3, 1, max-norms 2 and 4) are shown at the best of six settings, chosen in "
    "hindsight on the stream shown. Randomised rounding has no parameter that moves its predictions."
)
HAZAN = [(rate, norm) for rate in (0.1, 0.3, 1.0) for norm in (2.0, 4.0)]  # the six settings
Stream: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
TRIALS, BOUND, ADVERSARY = "tab:gray", "tab:red", "tab:purple"


def _mistakes(learner: Learner, stream: Stream) -> int:
    return learner.follow(*stream)[1].mistakes


def _curve(learner: Learner, stream: Stream) -> NDArray[np.int64]:
    return np.cumsum(learner.follow(*stream)[0] != stream[2])


def _forced(learner: Learner, side: int, l: int) -> int:
    """Mistakes that the adversary of Theorem 5.4 forces."""
    now = learner

    def predict(i: int, j: int) -> int:
        return now.predict(i, j)

    for i, j, y in adversary(side, side, l, predict):
        now = now.learn(i, j, y)
    return now.mistakes


def _stream(m: int, n: int, k: int, l: int, noise: float, seed: int) -> Stream:
    rows, cols, labels = np.array(bicluster_trials(m, n, k, l, noise, seed), np.int64).T
    return rows, cols, labels


def _legend(axis: Any) -> None:
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def biclusters(work: Drawing) -> list[Claim]:
    """Mistakes of Algorithm 1 against Corollary 5.3 and the lower bound, as the number of kinds grows."""
    side, seeds = 40 if work.quick else 100, work.runs(1, 5)
    kinds = (2, 3, 5, 8, 12) if work.quick else (2, 3, 5, 8, 12, 20, 30)

    def counted(key: tuple[int, int]) -> list[float]:
        k, seed = key
        stream = _stream(side, side, k, k, 0.0, 50 + seed)
        rate = 1 / math.sqrt(k)
        forced = _forced(MatrixWinnow(rate), side, k)
        found = _mistakes(MatrixWinnow(rate), stream), _mistakes(auto(), stream)
        return [*found, forced, bicluster_bound(side, side, k, k)]

    keys = [(k, seed) for k in kinds for seed in range(seeds)]
    each = work.each(f"biclusters, {side}", keys, counted)
    rows = [(*key, *each[key]) for key in keys]
    save_csv(
        work.folder / "biclusters.csv", ("k", "seed", "winnow", "auto", "adversary", "bound"), rows
    )
    table = np.array(rows, float)
    mean = np.array([table[table[:, 0] == k].mean(axis=0) for k in kinds])
    figure, axes = new_figure(width=6.8)
    axis = axes[0, 0]
    axis.plot(kinds, mean[:, 5], color=BOUND, label="Corollary 5.3")
    axis.axhline(side**2, color=TRIALS, ls=":", label=f"every trial wrong ({side**2:,})")
    axis.plot(kinds, mean[:, 4], color=ADVERSARY, marker="v", label="forced by the adversary")
    axis.plot(kinds, mean[:, 2], marker="o", label=r"Algorithm 1, $\gamma = 1/\sqrt{k}$")
    axis.plot(kinds, mean[:, 3], marker="s", label="auto")
    axis.set(
        xlabel="kinds of rows and of columns, k = l",
        ylabel="mistakes",
        yscale="log",
        title=f"{side} x {side}, every entry once",
    )
    _legend(axis)
    save_figure(work.folder / "biclusters.png", figure)
    ratio = table[:, 5] / np.maximum(table[:, 2], 1)
    all_forced = all(row[4] >= lower_bound(side, side, int(row[0])) for row in rows)
    size = ("", f"{side} x {side}, {seeds} streams")
    return [
        Claim(
            "biclusters",
            "mistakes <= Corollary 5.3",
            f"bound / mistakes {ratio.min():.1f} to {ratio.max():.1f}",
            bool((ratio >= 1).all()),
            *size,
        ),
        Claim(
            "biclusters",
            "Theorem 5.4: the adversary forces l m mistakes",
            f"{mean[-1, 4]:.0f} at l = {kinds[-1]}",
            all_forced,
            *size,
        ),
        Claim(
            "biclusters",
            "(ours) the bound says something at this size",
            f"below {side**2:,} trials for {sum(mean[:, 5] < side**2)} of {len(kinds)} k",
            bool((mean[:, 5] < side**2).all()),
            *size,
        ),
    ]


def noise(work: Drawing) -> list[Claim]:
    """Mistakes as labels are flipped, against Theorem 3.1 with the flips as violations."""
    side, seeds = 40 if work.quick else 100, work.runs(1, 5)
    levels = (0.0, 0.05, 0.1, 0.2, 0.3)
    learners: dict[str, Learner] = {
        "Algorithm 1": MatrixWinnow(1 / math.sqrt(5)),
        "Algorithm 1, slack": MatrixWinnow(1.0, 0.15),
        "auto": auto(),
        "rows and columns": RowColumnMajority(),
        "MF with replay": OnlineFactorization(5, 0.1, replay=10),
    }

    def counted(key: tuple[float, int]) -> list[float]:
        level, seed = key
        stream = _stream(side, side, 5, 5, level, 60 + seed)
        flips = round(level * side**2)
        bound = winnow_bound(2 * side, 1 / math.sqrt(5), flips)
        return [flips, bound, *(_mistakes(x, stream) for x in learners.values())]

    keys = [(level, seed) for level in levels for seed in range(seeds)]
    each = work.each(f"noise, {side}", keys, counted)
    rows = [(*key, *each[key]) for key in keys]
    save_csv(work.folder / "noise.csv", ("noise", "seed", "flips", "bound", *learners), rows)
    table = np.array(rows, float)
    figure, axes = new_figure(width=6.8)
    axis = axes[0, 0]
    for c, name in enumerate(learners):
        axis.plot(
            levels, [table[table[:, 0] == x, 4 + c].mean() for x in levels], marker="o", label=name
        )
    axis.plot(levels, [x * side**2 for x in levels], color=TRIALS, ls=":", label="labels flipped")
    axis.set(
        xlabel="share of labels flipped",
        ylabel="mistakes",
        title=f"5 x 5 biclusters, {side} x {side}",
    )
    _legend(axis)
    save_figure(work.folder / "noise.png", figure)
    within = bool((table[:, 4] <= table[:, 3]).all())
    noisy = table[table[:, 0] == 0.2]
    worst = noisy.mean(axis=0)
    sensitive = gap(noisy[:, 7], noisy[:, 4], ratio=True)
    size = ("", f"{side} x {side}, 5 x 5, {seeds} streams")
    return [
        Claim(
            "noise",
            "mistakes <= Theorem 3.1 with the flips as violations",
            f"{worst[4]:.0f} <= {worst[3]:.0f} at 20 %",
            within,
            *size,
        ),
        Claim(
            "noise",
            "Algorithm 1 is sensitive to noise (bar: at 20 % the majority of rows and columns is better)",
            f"at 20 %: {worst[4]:.0f}, rows and columns {worst[7]:.0f}, auto {worst[6]:.0f}",
            sensitive.below,
            *size,
            str(sensitive),
        ),
    ]


def graphs(work: Drawing) -> list[Claim]:
    """Labelings of an unknown graph: Algorithm 1 against the perceptron that knows the graph."""
    m, n = (60, 30) if work.quick else (150, 60)
    seeds = work.runs(1, 5)
    cuts = (1, 2, 4) if work.quick else (1, 2, 4, 8)
    ring = np.eye(n, k=1) + np.eye(n, k=-1)
    ring[0, -1] = ring[-1, 0] = 1.0
    kernel = graph_kernel(ring)

    def counted(key: tuple[int, int]) -> list[float]:
        cut, seed = key
        rng = np.random.default_rng([70, cut, seed])
        ends = np.sort([rng.permutation(n)[: 2 * cut] for _ in range(m)], axis=1)
        passed = np.array([np.searchsorted(e, np.arange(n), side="right") for e in ends])
        U = np.where(passed % 2 == 0, 1, -1)
        order = rng.permutation(m * n)
        i, j = order // n, order % n
        stream = (i, j, U[i, j])
        squared = graph_complexity_bound(ring, U)
        rate = 1 / math.sqrt(squared)
        learners = (MatrixWinnow(rate), MatrixWinnow(1.0), auto(), KernelPerceptron(kernel))
        return [squared, winnow_bound(m + n, rate), *(_mistakes(x, stream) for x in learners)]

    keys = [(cut, seed) for cut in cuts for seed in range(seeds)]
    each = work.each(f"graphs, {m} x {n}", keys, counted)
    rows = [(2 * cut, seed, *each[cut, seed]) for cut, seed in keys]
    names = (
        "Algorithm 1 at the bound's rate",
        "Algorithm 1, rate 1",
        "auto",
        "perceptron, graph known",
    )
    save_csv(work.folder / "graphs.csv", ("cut", "seed", "mc^2 bound", "bound", *names), rows)
    table = np.array(rows, float)
    figure, axes = new_figure(width=6.8)
    axis = axes[0, 0]
    for c, name in enumerate(names):
        axis.plot(
            [2 * k for k in cuts],
            [table[table[:, 0] == 2 * k, 4 + c].mean() for k in cuts],
            marker="o",
            label=name,
        )
    axis.axhline(m * n, color=TRIALS, ls=":", label=f"every trial wrong ({m * n:,})")
    axis.set(
        xlabel="edges cut by each labeling",
        ylabel="mistakes",
        title=f"{m} labelings of a ring of {n}, unknown",
        ylim=(0, None),
    )
    _legend(axis)
    save_figure(work.folder / "graphs.png", figure)
    mean = table.mean(axis=0)
    size = ("", f"{m} labelings of {n} vertices, {seeds} streams a cut")
    known = gap(table[:, 6], math.log(m + n) * table[:, 7], ratio=True)
    literal = gap(table[:, 4], math.log(m + n) * table[:, 7], ratio=True)
    return [
        Claim(
            "graphs",
            "mistakes <= the resistance bound",
            f"{mean[4]:.0f} <= {mean[3]:.0f} on average",
            bool((table[:, 4] <= table[:, 3]).all()),
            *size,
        ),
        Claim(
            "graphs",
            "Algorithm 1 is comparable with knowing the graph, up to a logarithm",
            f"Algorithm 1 {mean[4]:.0f}, perceptron {mean[7]:.0f}, logarithm {math.log(m + n):.1f}",
            literal.below,
            *size,
            f"with the logarithm, {literal}",
        ),
        Claim(
            "graphs",
            "(ours) so is auto",
            f"auto {mean[6]:.0f}, perceptron {mean[7]:.0f}",
            known.below,
            *size,
            f"with the logarithm, {known}",
        ),
    ]


def sizes(work: Drawing) -> list[Claim]:
    """Mistakes a row as the matrix grows, and along one stream: doubling, rates, the symmetric form."""
    sides = (20, 40, 80) if work.quick else (25, 50, 100, 200)
    seeds = work.runs(1, 5)

    def counted(key: tuple[int, int]) -> list[float]:
        side, seed = key
        stream = _stream(side, side, 5, 5, 0.0, 80 + seed)
        found = [_mistakes(x, stream) for x in (MatrixWinnow(1 / math.sqrt(5)), auto())]
        return [bicluster_bound(side, side, 5, 5), *found]

    keys = [(side, seed) for side in sides for seed in range(seeds)]
    each = work.each("sizes", keys, counted)
    rows = [(*key, *each[key]) for key in keys]
    save_csv(work.folder / "sizes.csv", ("side", "seed", "bound", "winnow", "auto"), rows)
    every = np.array(rows, float)
    table = np.array([np.delete(every[every[:, 0] == x].mean(axis=0), 1) for x in sides])
    figure, axes = new_figure(columns=2, width=6.4)
    axis = axes[0, 0]
    both = 2 * table[:, 0]
    axis.plot(both, table[:, 1] / both, color=BOUND, label="Corollary 5.3")
    axis.plot(both, table[:, 0] / 2, color=TRIALS, ls=":", label="every trial wrong")
    axis.plot(both, table[:, 2] / both, marker="o", label=r"Algorithm 1, $\gamma = 1/\sqrt{5}$")
    axis.plot(both, table[:, 3] / both, marker="s", label="auto")
    axis.set(
        xlabel="rows plus columns",
        ylabel="mistakes a row or column",
        xscale="log",
        yscale="log",
        title="5 x 5 biclusters",
    )
    axis.set_xticks(both, [f"{x:.0f}" for x in both], minor=False)
    axis.set_xticks([], minor=True)
    _legend(axis)
    side = 40 if work.quick else 100
    stream = _stream(side, side, 5, 5, 0.0, 81)
    along: dict[str, Learner] = {
        "rate 1/4": MatrixWinnow(0.25),
        "rate 1": MatrixWinnow(1.0),
        "doubling": Doubling(),
        "symmetric": SymmetricWinnow(),
        "auto": auto(),
    }
    curves = {name: _curve(learner, stream) for name, learner in along.items()}
    axis = axes[0, 1]
    for name, curve in curves.items():
        axis.plot(np.arange(1, len(curve) + 1), curve, label=name)
    axis.set(xlabel="trial", ylabel="mistakes so far", title=f"one stream, {side} x {side}")
    _legend(axis)
    save_figure(work.folder / "sizes.png", figure)
    thin = np.unique(np.linspace(0, side * side - 1, 200).astype(int))
    save_csv(
        work.folder / "stream.csv",
        ("trial", *curves),
        [(int(t) + 1, *(int(c[t]) for c in curves.values())) for t in thin],
    )
    first, last = (np.array([each[x, t][1] for t in range(seeds)]) for x in (sides[0], sides[-1]))
    growth = mean_interval(np.log(last / first) / np.log(sides[-1] / sides[0]))
    size = ("", f"sides {sides[0]} to {sides[-1]}, {seeds} streams")
    return [
        Claim(
            "sizes",
            "mistakes grow more slowly than the trials (exponent 2)",
            f"exponent {growth[0]:.2f}",
            True if growth[2] < 2.0 else (False if growth[1] > 2.0 else None),
            *size,
            f"[{growth[1]:.2f}, {growth[2]:.2f}]",
        ),
        Claim(
            "sizes",
            "doubling needs no rate (bar: 12 times Algorithm 1 at its rate, Corollary 3.2)",
            f"{curves['doubling'][-1]} mistakes, no restart; auto {curves['auto'][-1]}",
            bool(curves["doubling"][-1] <= 12 * _mistakes(MatrixWinnow(1 / math.sqrt(5)), stream)),
            "",
            f"one stream, {side} x {side}",
        ),
    ]


def comparison(work: Drawing) -> list[Claim]:
    """The paper's main comparison: bounds of Hazan et al. and of Cesa-Bianchi and Shamir, and their algorithms."""
    sides = (10, 20, 30) if work.quick else (10, 20, 40)
    seeds, k = work.runs(1, 5), 3
    names = ("Algorithm 1", "Hazan et al., best of six", "randomised rounding", "auto")

    def counted(key: tuple[int, int]) -> dict[str, float]:
        side, seed = key
        stream = _stream(side, side, k, k, 0.0, 200 + seed)
        rows, cols, labels = stream
        U = np.zeros((side, side))
        U[rows, cols] = labels
        norm = float(np.linalg.norm(U, "nuc"))
        hazan = [
            _mistakes(HazanKaleShalevShwartz(U.shape, rate, most), stream) for rate, most in HAZAN
        ]
        return {
            "Theorem 3.1": bicluster_bound(side, side, k, k),
            "Theorem 3.1, margins from the labels": data_bound(U)[0],
            "Hazan et al.": regret_bound(norm, side, side, side * side) / 2,
            "Cesa-Bianchi and Shamir": rounding_bound(norm, rows, cols) / 2,
            names[0]: _mistakes(MatrixWinnow(1 / math.sqrt(k)), stream),
            names[1]: min(hazan),
            names[2]: _mistakes(RandomizedRounding(U.shape, norm), stream),
            names[3]: _mistakes(auto(), stream),
        }

    keys = [(side, seed) for side in sides for seed in range(seeds)]
    each = work.each("comparison", keys, counted)
    columns = list(each[keys[0]])
    save_csv(
        work.folder / "comparison.csv",
        ("side", "seed", *columns),
        [(*key, *each[key].values()) for key in keys],
    )
    mean = {
        c: [float(np.mean([each[side, t][c] for t in range(seeds)])) for side in sides]
        for c in columns
    }
    figure, axes = new_figure(columns=2, width=6.4, height=4.4)
    axis = axes[0, 0]
    for c, name in enumerate(columns[:4]):
        axis.plot(sides, mean[name], "--", color=f"C{c}", label=f"bound: {name}")
    for c, name in enumerate(names):
        axis.plot(sides, mean[name], "o-", color=f"C{c + 4}", label=name)
    axis.plot(sides, [x**2 for x in sides], ":", color=TRIALS, label="every trial wrong")
    axis.set(xlabel="rows = columns", ylabel="mistakes", xscale="log", yscale="log")
    axis.set(title=f"{k} x {k} biclusters, every entry once")
    axis.set_xticks(sides, [str(x) for x in sides], minor=False)
    axis.set_xticks([], minor=True)
    _legend(axis)
    far = np.geomspace(10, 1e6, 60)
    axis = axes[0, 1]
    bounds_of = {
        "Theorem 3.1": [winnow_bound(int(2 * n), 1 / math.sqrt(k)) for n in far],
        "Hazan et al.": [
            regret_bound(n * math.sqrt(k), int(n), int(n), int(n * n)) / 2 for n in far
        ],
        "Cesa-Bianchi and Shamir": [n * math.sqrt(k) * math.sqrt(n) for n in far],
    }
    for c, (name, values) in zip((0, 2, 3), bounds_of.items(), strict=True):
        axis.loglog(far, np.array(values) / far**2, "--", color=f"C{c}", label=name)
    axis.axhline(1.0, color=TRIALS, ls=":", label="every trial wrong")
    axis.set(xlabel="rows = columns", ylabel="bound, share of the trials")
    axis.set(title=f"the same bounds further on, trace norm n sqrt({k})")
    _legend(axis)
    save_figure(work.folder / "comparison.png", figure)
    speaks = {name: _first_below(far, values) for name, values in bounds_of.items()}
    ours, _, rounding = (np.array(v) for v in bounds_of.values())
    crossing = far[ours < rounding]
    size = ("", f"to {sides[-1]} x {sides[-1]}, {seeds} streams; bounds to a million")
    last = {name: np.array([each[sides[-1], t][name] for t in range(seeds)]) for name in names}
    words = ", ".join(f"{name} {v.mean():.0f}" for name, v in last.items())
    within = all(
        each[key][name] <= 2 * each[key]["Cesa-Bianchi and Shamir"]
        for key in keys
        for name in names[2:3]
    )
    first = gap(last[names[0]], last[names[1]], ratio=True)
    return [
        Claim(
            "comparison",
            "Theorem 3.1 becomes non-trivial after fewer examples than the bound of Hazan et al.",
            f"from n = {speaks['Theorem 3.1']:.0f} against {speaks['Hazan et al.']:.0f}",
            speaks["Theorem 3.1"] < speaks["Hazan et al."],
            *size,
        ),
        Claim(
            "comparison",
            "and after fewer than that of Cesa-Bianchi and Shamir",
            f"from n = {speaks['Theorem 3.1']:.0f} against {speaks['Cesa-Bianchi and Shamir']:.0f}; smaller than "
            f"theirs from n = {crossing[0] if len(crossing) else math.inf:.2g} on",
            speaks["Theorem 3.1"] < speaks["Cesa-Bianchi and Shamir"],
            *size,
        ),
        Claim(
            "comparison",
            "(ours) randomised rounding by signs stays below twice its bound",
            words,
            within,
            *size,
        ),
        Claim(
            "comparison",
            f"(ours) Algorithm 1 makes fewer mistakes than Hazan et al. at n = {sides[-1]}",
            words,
            first.below,
            *size,
            str(first),
        ),
    ]


def _first_below(sides: Any, bounds: list[float]) -> float:
    """Return the side from which a bound is below the number of trials."""
    good = [float(n) for n, b in zip(sides, bounds, strict=True) if b < n * n]
    return good[0] if good else math.inf


def votes(work: Drawing) -> list[Claim]:
    """Real matrices in random order: every learner and baseline."""
    home = Path(os.environ.get("ENTRYWISE_DATA", ""))
    data = {"zoo": "traits", "house_votes_84": "votes", "senate_106": "votes"}
    found: dict[str, dict[str, float]] = {}
    for name, key in data.items():
        path = home / name / f"{name}.npz"
        if not path.exists():
            work.say(f"  {name}: not there, set ENTRYWISE_DATA to the folder of data sets")
            continue
        with np.load(path) as file:
            U = file[key].astype(np.int64)
        rows, cols = np.nonzero(U)
        order = np.random.default_rng(90).permutation(len(rows))[: 3000 if work.quick else None]
        i, j = rows[order], cols[order]
        stream = (i, j, U[i, j])
        settings = [(r, q) for r in (3, 10) for q in (0.03, 0.1, 0.3)]
        slow = sum(U.shape) >= 150 or work.quick
        learners: dict[str, list[Learner]] = {
            "auto": [auto()],
            "symmetric": [SymmetricWinnow()],
            "Algorithm 1, rate 1": [MatrixWinnow(1.0)],
            "Algorithm 1, slack .15": [MatrixWinnow(1.0, 0.15)],
            "doubling": [Doubling()],
            "Hazan et al., best of six": []
            if slow
            else [HazanKaleShalevShwartz(U.shape, rate, most) for rate, most in HAZAN],
            "randomised rounding": [] if slow else [RandomizedRounding(U.shape)],
            "Goldman-Warmuth": [GoldmanWarmuth()],
            "MF with replay, best of six": [
                OnlineFactorization(r, q, replay=10) for r, q in settings
            ],
            "MF once, best of six": [OnlineFactorization(r, q) for r, q in settings],
            "rows and columns": [RowColumnMajority()],
            "kernel in hindsight": [KernelPerceptron((U.T @ U / len(U)) ** 3)],
        }

        def counted(which: str, stream: Stream = stream, learners: Any = learners) -> float:
            return min((_mistakes(x, stream) for x in learners[which]), default=math.nan)

        found[name] = work.each(f"votes, {name}", list(learners), counted)
        found[name]["labels"] = len(order)
    if not found:
        return []
    names = list(next(iter(found.values())))
    save_csv(
        work.folder / "votes.csv",
        ("data", *names),
        [(d, *row.values()) for d, row in found.items()],
    )
    figure, axes = new_figure(columns=len(found), width=4.2)
    for axis, (name, row) in zip(axes[0], found.items(), strict=True):
        shown = names[:-1][::-1]
        share = [100 * row[x] / row["labels"] for x in shown]
        colors = [
            "tab:orange" if x == "auto" else TRIALS if "hindsight" in x else "tab:blue"
            for x in shown
        ]
        bars = axis.barh(shown, share, color=colors)
        axis.bar_label(
            bars, fmt=lambda x: "" if math.isnan(x) else f"{x:.1f}", fontsize=8, padding=2
        )
        for k in np.flatnonzero(np.isnan(share)):
            axis.text(0.3, k, "too slow here", fontsize=8, va="center", color=TRIALS)
        axis.set(
            xlabel="mistakes, % of labels",
            title=name.replace("_", " "),
            xlim=(0, 1.15 * np.nanmax(share)),
        )
        axis.tick_params(labelsize=8, labelleft=axis is axes[0, 0])
    save_figure(work.folder / "votes.png", figure)
    rivals = (
        "Hazan et al., best of six",
        "randomised rounding",
        "Goldman-Warmuth",
        "MF with replay, best of six",
        "MF once, best of six",
        "rows and columns",
    )
    claims = []
    for name, row in found.items():
        best = np.nanmin([row[x] for x in rivals])
        what = f"(ours) {name}: auto against the best baseline, tuned in hindsight (bar: 2 % more mistakes)"
        words = f"{row['auto']:.0f} and {best:.0f}"
        size = ("", f"{row['labels']} labels, one order")
        claims.append(Claim("votes", what, words, bool(row["auto"] <= 1.02 * best), *size))
    return claims


FIGURES: dict[str, Figure] = {
    "biclusters": Figure(biclusters, 2),
    "noise": Figure(noise, 2),
    "graphs": Figure(graphs, 2),
    "sizes": Figure(sizes, 1.5),
    "comparison": Figure(comparison, 5),
    "votes": Figure(votes, 8),
}
PICTURES = {name: [f"{name}.png"] for name in FIGURES}
