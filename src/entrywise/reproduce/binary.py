"""Mistake bounds for binary matrix completion (Herbster, Pasteris, Pontil, NIPS 2016): theorems against measurements.

The paper has no experiments. These figures hold its statements against what happens: mistakes and bound for biclusters,
noise, graph labelings and sizes, the adversary, and real votes with every learner and baseline.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise.bounds.binary import (
    adversary,
    bicluster_bound,
    graph_complexity_bound,
    graph_kernel,
    lower_bound,
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
    RowColumnMajority,
    SymmetricWinnow,
    auto,
)
from entrywise.reproduce.figures import Claim, Figure, new_figure, save_csv, save_figure

Say: TypeAlias = Callable[[str], None]
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


def biclusters(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Mistakes of Algorithm 1 against Corollary 5.3 and the lower bound, as the number of kinds grows."""
    side, seeds = (40, 1) if quick else (100, 3)
    kinds = (2, 3, 5, 8, 12) if quick else (2, 3, 5, 8, 12, 20, 30)
    rows: list[tuple[Any, ...]] = []
    for k in kinds:
        say(f"  {k} x {k} biclusters")
        for seed in range(seeds):
            stream = _stream(side, side, k, k, 0.0, 50 + seed)
            rate = 1 / math.sqrt(k)
            forced = _forced(MatrixWinnow(rate), side, k)
            theory = bicluster_bound(side, side, k, k)
            rows.append(
                (
                    k,
                    seed,
                    _mistakes(MatrixWinnow(rate), stream),
                    _mistakes(auto(), stream),
                    forced,
                    theory,
                )
            )
    save_csv(folder / "biclusters.csv", ("k", "seed", "winnow", "auto", "adversary", "bound"), rows)
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
    save_figure(folder / "biclusters.png", figure)
    ratio = table[:, 5] / np.maximum(table[:, 2], 1)
    all_forced = all(row[4] >= lower_bound(side, side, int(row[0])) for row in rows)
    return [
        Claim(
            "biclusters",
            "mistakes <= Corollary 5.3",
            f"bound / mistakes {ratio.min():.1f} to {ratio.max():.1f}",
            bool((ratio >= 1).all()),
        ),
        Claim(
            "biclusters",
            "Theorem 5.4: the adversary forces l m mistakes",
            f"{mean[-1, 4]:.0f} at l = {kinds[-1]}",
            all_forced,
        ),
        Claim(
            "biclusters",
            "the bound says something at this size",
            f"below {side**2:,} trials for {sum(mean[:, 5] < side**2)} of {len(kinds)} k",
            None,
        ),
    ]


def noise(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Mistakes as labels are flipped, against Theorem 3.1 with the flips as violations."""
    side, seeds = (40, 1) if quick else (100, 2)
    levels = (0.0, 0.05, 0.1, 0.2, 0.3)
    learners: dict[str, Learner] = {
        "Algorithm 1": MatrixWinnow(1 / math.sqrt(5)),
        "Algorithm 1, slack": MatrixWinnow(1.0, 0.15),
        "auto": auto(),
        "rows and columns": RowColumnMajority(),
        "MF with replay": OnlineFactorization(5, 0.1, replay=10),
    }
    rows: list[tuple[Any, ...]] = []
    for level in levels:
        say(f"  noise {level:g}")
        for seed in range(seeds):
            stream = _stream(side, side, 5, 5, level, 60 + seed)
            flips = round(level * side**2)
            bound = winnow_bound(2 * side, 1 / math.sqrt(5), flips)
            rows.append(
                (level, seed, flips, bound, *(_mistakes(x, stream) for x in learners.values()))
            )
    save_csv(folder / "noise.csv", ("noise", "seed", "flips", "bound", *learners), rows)
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
    save_figure(folder / "noise.png", figure)
    within = bool((table[:, 4] <= table[:, 3]).all())
    worst = table[table[:, 0] == 0.2].mean(axis=0)
    return [
        Claim(
            "noise",
            "mistakes <= Theorem 3.1 with the flips as violations",
            f"{worst[4]:.0f} <= {worst[3]:.0f} at 20 %",
            within,
        ),
        Claim(
            "noise",
            "Algorithm 1 is sensitive to noise",
            f"at 20 %: {worst[4]:.0f}, rows and columns {worst[7]:.0f}, auto {worst[6]:.0f}",
            None,
        ),
    ]


def graphs(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Labelings of an unknown graph: Algorithm 1 against the perceptron that knows the graph."""
    m, n, seeds = (60, 30, 1) if quick else (150, 60, 3)
    cuts = (1, 2, 4) if quick else (1, 2, 4, 8)
    rows: list[tuple[Any, ...]] = []
    ring = np.eye(n, k=1) + np.eye(n, k=-1)
    ring[0, -1] = ring[-1, 0] = 1.0
    kernel = graph_kernel(ring)
    for cut in cuts:
        say(f"  {2 * cut} cuts of a ring of {n}")
        for seed in range(seeds):
            rng = np.random.default_rng([70, cut, seed])
            ends = np.sort([rng.permutation(n)[: 2 * cut] for _ in range(m)], axis=1)
            U = np.array(
                [
                    np.where(np.searchsorted(e, np.arange(n), side="right") % 2 == 0, 1, -1)
                    for e in ends
                ]
            )
            order = rng.permutation(m * n)
            i, j = order // n, order % n
            stream = (i, j, U[i, j])
            squared = graph_complexity_bound(ring, U)
            rate = 1 / math.sqrt(squared)
            bound = winnow_bound(m + n, rate)
            found = [
                _mistakes(x, stream)
                for x in (MatrixWinnow(rate), MatrixWinnow(1.0), auto(), KernelPerceptron(kernel))
            ]
            rows.append((2 * cut, seed, squared, bound, *found))
    names = (
        "Algorithm 1 at the bound's rate",
        "Algorithm 1, rate 1",
        "auto",
        "perceptron, graph known",
    )
    save_csv(folder / "graphs.csv", ("cut", "seed", "mc^2 bound", "bound", *names), rows)
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
    save_figure(folder / "graphs.png", figure)
    mean = table.mean(axis=0)
    return [
        Claim(
            "graphs",
            "mistakes <= the resistance bound",
            f"{mean[4]:.0f} <= {mean[3]:.0f} on average",
            bool((table[:, 4] <= table[:, 3]).all()),
        ),
        Claim(
            "graphs",
            "comparable with knowing the graph, up to a logarithm",
            f"auto {mean[6]:.0f}, perceptron {mean[7]:.0f}",
            bool(mean[6] <= math.log(m + n) * mean[7]),
        ),
    ]


def sizes(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Mistakes a row as the matrix grows, and along one stream: doubling, rates, the symmetric form."""
    sides = (20, 40, 80) if quick else (25, 50, 100, 200)
    rows: list[tuple[Any, ...]] = []
    for side in sides:
        say(f"  {side} x {side}")
        stream = _stream(side, side, 5, 5, 0.0, 80)
        found = [_mistakes(x, stream) for x in (MatrixWinnow(1 / math.sqrt(5)), auto())]
        rows.append((side, bicluster_bound(side, side, 5, 5), *found))
    save_csv(folder / "sizes.csv", ("side", "bound", "winnow", "auto"), rows)
    table = np.array(rows, float)
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
    side = 40 if quick else 100
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
    save_figure(folder / "sizes.png", figure)
    thin = np.unique(np.linspace(0, side * side - 1, 200).astype(int))
    save_csv(
        folder / "stream.csv",
        ("trial", *curves),
        [(int(t) + 1, *(int(c[t]) for c in curves.values())) for t in thin],
    )
    growth = np.log(table[-1, 2] / table[0, 2]) / np.log(table[-1, 0] / table[0, 0])
    return [
        Claim(
            "sizes",
            "mistakes grow more slowly than the trials (exponent 2)",
            f"exponent {growth:.2f}",
            bool(growth < 2.0),
        ),
        Claim(
            "sizes",
            "doubling needs no rate",
            f"{curves['doubling'][-1]} mistakes, no restart; auto {curves['auto'][-1]}",
            None,
        ),
    ]


def votes(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Real matrices in random order: every learner and baseline."""
    home = Path(os.environ.get("ENTRYWISE_DATA", ""))
    data = {"zoo": "traits", "house_votes_84": "votes", "senate_106": "votes"}
    found: dict[str, dict[str, float]] = {}
    for name, key in data.items():
        path = home / name / f"{name}.npz"
        if not path.exists():
            say(f"  {name}: not there, set ENTRYWISE_DATA to the folder of data sets")
            continue
        say(f"  {name}")
        with np.load(path) as file:
            U = file[key].astype(np.int64)
        rows, cols = np.nonzero(U)
        order = np.random.default_rng(90).permutation(len(rows))[: 3000 if quick else None]
        i, j = rows[order], cols[order]
        stream = (i, j, U[i, j])
        settings = [(r, q) for r in (3, 10) for q in (0.03, 0.1, 0.3)]
        hazan = (
            HazanKaleShalevShwartz(U.shape, 0.3, 2.0) if sum(U.shape) < 150 and not quick else None
        )
        found[name] = {
            "auto": _mistakes(auto(), stream),
            "symmetric": _mistakes(SymmetricWinnow(), stream),
            "Algorithm 1, rate 1": _mistakes(MatrixWinnow(1.0), stream),
            "Algorithm 1, slack .15": _mistakes(MatrixWinnow(1.0, 0.15), stream),
            "doubling": _mistakes(Doubling(), stream),
            "Hazan et al.": math.nan if hazan is None else _mistakes(hazan, stream),
            "Goldman-Warmuth": _mistakes(GoldmanWarmuth(), stream),
            "MF with replay, best": min(
                _mistakes(OnlineFactorization(r, q, replay=10), stream) for r, q in settings
            ),
            "MF once, best": min(_mistakes(OnlineFactorization(r, q), stream) for r, q in settings),
            "rows and columns": _mistakes(RowColumnMajority(), stream),
            "kernel in hindsight": _mistakes(KernelPerceptron((U.T @ U / len(U)) ** 3), stream),
            "labels": len(order),
        }
    if not found:
        return []
    names = list(next(iter(found.values())))
    save_csv(
        folder / "votes.csv", ("data", *names), [(d, *row.values()) for d, row in found.items()]
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
    save_figure(folder / "votes.png", figure)
    rivals = (
        "Hazan et al.",
        "Goldman-Warmuth",
        "MF with replay, best",
        "MF once, best",
        "rows and columns",
    )
    claims = []
    for name, row in found.items():
        best = np.nanmin([row[x] for x in rivals])
        what = f"{name}: auto against the best baseline without hindsight"
        claims.append(
            Claim(
                "votes", what, f"{row['auto']:.0f} and {best:.0f}", bool(row["auto"] <= 1.02 * best)
            )
        )
    return claims


FIGURES: dict[str, Figure] = {
    "biclusters": biclusters,
    "noise": noise,
    "graphs": graphs,
    "sizes": sizes,
    "votes": votes,
}
