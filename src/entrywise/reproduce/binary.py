"""Mistake bounds for binary matrix completion (Herbster, Pasteris, Pontil, NIPS 2016): theorems against measurements.

The paper has no experiments. These figures hold its statements against what happens: mistakes and bound for biclusters,
noise, graph labelings and sizes, the adversary, real votes with every learner and baseline, and its main comparison:
the bounds of Hazan, Kale and Shalev-Shwartz and of Cesa-Bianchi and Shamir, with what their algorithms do.
"""

from __future__ import annotations

import math

import numpy as np

from entrywise import plot
from entrywise.bounds.binary import (
    bicluster_bound,
    graph_complexity_bound,
    graph_kernel,
    lower_bound,
    winnow_bound,
)
from entrywise.online import (
    Doubling,
    KernelPerceptron,
    Learner,
    MatrixWinnow,
    OnlineFactorization,
    RowColumnMajority,
    SymmetricWinnow,
    auto,
)
from entrywise.reproduce._binary_comparison import comparison
from entrywise.reproduce._binary_streams import TRIALS, curve, forced, legend, mistakes, stream_of
from entrywise.reproduce._binary_votes import votes
from entrywise.reproduce.figures import (
    Claim,
    Drawing,
    Figure,
    gap,
    mean_interval,
    new_panel,
)

TITLE = "mistake bounds for binary matrices"
REFERENCE = (
    "Herbster, Pasteris, Pontil, *Mistake Bounds for Binary Matrix Completion*, NIPS 2016. The paper prints no experiment: "
    "its theorems are measured here."
)
EXAMPLE = "online"  # of the gallery: the method on a small problem
TUNING = (
    "Algorithm 1 runs at the rate its theorem names, or at 1 on real data; auto has no parameter. Factorisation (ranks 3 and 10, "
    "steps .03, .1, .3) and Hazan et al. (rates .1, .3, 1, max-norms 2 and 4) are shown at the best of six settings, chosen in "
    "hindsight on the stream shown. Randomised rounding has no parameter that moves its predictions."
)
BOUND, ADVERSARY = "tab:red", "tab:purple"


def biclusters(work: Drawing) -> list[Claim]:
    """Mistakes of Algorithm 1 against Corollary 5.3 and the lower bound, as the number of kinds grows."""
    side, seeds = 40 if work.quick else 100, work.runs(1, 5)
    kinds = (2, 3, 5, 8, 12) if work.quick else (2, 3, 5, 8, 12, 20, 30)

    def counted(key: tuple[int, int]) -> list[float]:
        k, seed = key
        stream = stream_of(side, side, k, k, 0.0, 50 + seed)
        rate = 1 / math.sqrt(k)
        most = forced(MatrixWinnow(rate), side, k)
        found = mistakes(MatrixWinnow(rate), stream), mistakes(auto(), stream)
        return [*found, most, bicluster_bound(side, side, k, k)]

    keys = [(k, seed) for k in kinds for seed in range(seeds)]
    each = work.each(f"biclusters, {side}", keys, counted)
    rows = [(*key, *each[key]) for key in keys]
    work.csv("biclusters.csv", ("k", "seed", "winnow", "auto", "adversary", "bound"), rows)
    table = np.array(rows, float)
    mean = np.array([table[table[:, 0] == k].mean(axis=0) for k in kinds])
    figure, axis = new_panel(width=6.8)
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
    legend(axis)
    work.picture("biclusters.png", figure)
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
        stream = stream_of(side, side, 5, 5, level, 60 + seed)
        flips = round(level * side**2)
        bound = winnow_bound(2 * side, 1 / math.sqrt(5), flips)
        return [flips, bound, *(mistakes(x, stream) for x in learners.values())]

    keys = [(level, seed) for level in levels for seed in range(seeds)]
    each = work.each(f"noise, {side}", keys, counted)
    rows = [(*key, *each[key]) for key in keys]
    work.csv("noise.csv", ("noise", "seed", "flips", "bound", *learners), rows)
    table = np.array(rows, float)
    figure, axis = new_panel(width=6.8)
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
    legend(axis)
    work.picture("noise.png", figure)
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
        return [squared, winnow_bound(m + n, rate), *(mistakes(x, stream) for x in learners)]

    keys = [(cut, seed) for cut in cuts for seed in range(seeds)]
    each = work.each(f"graphs, {m} x {n}", keys, counted)
    rows = [(2 * cut, seed, *each[cut, seed]) for cut, seed in keys]
    names = (
        "Algorithm 1 at the bound's rate",
        "Algorithm 1, rate 1",
        "auto",
        "perceptron, graph known",
    )
    work.csv("graphs.csv", ("cut", "seed", "mc^2 bound", "bound", *names), rows)
    table = np.array(rows, float)
    figure, axis = new_panel(width=6.8)
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
    legend(axis)
    work.picture("graphs.png", figure)
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
        stream = stream_of(side, side, 5, 5, 0.0, 80 + seed)
        found = [mistakes(x, stream) for x in (MatrixWinnow(1 / math.sqrt(5)), auto())]
        return [bicluster_bound(side, side, 5, 5), *found]

    keys = [(side, seed) for side in sides for seed in range(seeds)]
    each = work.each("sizes", keys, counted)
    rows = [(*key, *each[key]) for key in keys]
    work.csv("sizes.csv", ("side", "seed", "bound", "winnow", "auto"), rows)
    every = np.array(rows, float)
    table = np.array([np.delete(every[every[:, 0] == x].mean(axis=0), 1) for x in sides])
    figure, axes = plot.figure(columns=2, width=6.4)
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
    legend(axis)
    side = 40 if work.quick else 100
    stream = stream_of(side, side, 5, 5, 0.0, 81)
    along: dict[str, Learner] = {
        "rate 1/4": MatrixWinnow(0.25),
        "rate 1": MatrixWinnow(1.0),
        "doubling": Doubling(),
        "symmetric": SymmetricWinnow(),
        "auto": auto(),
    }
    curves = {name: curve(learner, stream) for name, learner in along.items()}
    axis = axes[0, 1]
    for name, line in curves.items():
        axis.plot(np.arange(1, len(line) + 1), line, label=name)
    axis.set(xlabel="trial", ylabel="mistakes so far", title=f"one stream, {side} x {side}")
    legend(axis)
    work.picture("sizes.png", figure)
    thin = np.unique(np.linspace(0, side * side - 1, 200).astype(int))
    work.csv(
        "stream.csv",
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
            bool(curves["doubling"][-1] <= 12 * mistakes(MatrixWinnow(1 / math.sqrt(5)), stream)),
            "",
            f"one stream, {side} x {side}",
        ),
    ]


FIGURES: dict[str, Figure] = {
    "biclusters": Figure(biclusters, 2),
    "noise": Figure(noise, 2),
    "graphs": Figure(graphs, 1),
    "sizes": Figure(sizes, 0.7),
    "comparison": Figure(comparison, 1.8),
    "votes": Figure(votes, 2),
}
PICTURES = {name: [f"{name}.png"] for name in FIGURES}
