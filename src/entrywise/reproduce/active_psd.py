"""Active PSD completion (Bhargava, Ganti, Nowak, AISTATS 2017): its figures, with the controls that they lack.

The best pair of films (Figure 1, appendix Figure 2), maps of partly evaluated kernels (Figure 2) and synthetic pairs
(appendix Figure 1). The paper's lines are the paper's algorithms: Algorithm 4.1, cut when its budget is spent, and
Algorithm 3.2 with columns in the order in which they come. Ours stand beside them under their own names, and so do two
controls that the paper lacks: sequential halving over all pairs, which knows nothing of low rank, and soft-impute
on random entries, which chooses nothing.
"""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise import datasets, plot
from entrywise.active import (
    adaptive_nystrom,
    lil_ucb,
    literal_adaptive_nystrom,
    literal_stochastic_nystrom,
    sequential_halving,
    stochastic_nystrom,
    uniform_pairs,
)
from entrywise.active.pairs.tally import smallest_pairs
from entrywise.apply.kernels import draw_map, kernel_tsne, neighbour_accuracy
from entrywise.apply.pairs import Population, PopulationOracle, best_pair, regret
from entrywise.exceptions import DataError
from entrywise.gallery import pair_losses
from entrywise.observations import Observations
from entrywise.oracles import BernoulliOracle, KernelOracle
from entrywise.passive import optspace, soft_impute
from entrywise.play import play
from entrywise.queries import Batch, Plan
from entrywise.reproduce.figures import (
    Claim,
    Drawing,
    Figure,
    gap,
)
from entrywise.results import LowRank
from entrywise.types import Array

TITLE = "active PSD completion"
REFERENCE = (
    "Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion: Algorithms, Theory and "
    "Applications*, AISTATS 2017."
)
EXAMPLE = "best_pair"  # of the gallery: the method on a small problem
TUNING = (
    "Nothing was tuned on the seeds shown. Ours and the paper's algorithms are told the number of groups as rank, and so "
    "is OptSpace; soft-impute subtracts biases of rows and columns, which is better here than not to, and chooses its "
    "penalty on held-out answers of each run. The shares of the budget in stochastic_nystrom and best_pair were set on "
    "synthetic matrices with other seeds, those of best_pair on the films of ML-1M with other coins, too. "
    "Algorithm 4.1 has epsilon .1, delta .05, and spends its whole budget on choosing its second column."
)
Coins: TypeAlias = Callable[[int], Any]  # seed -> oracle
PAPER = "S-MCANS (Algorithm 4.1)"
OURS = "stochastic_nystrom (ours)"
BEST = "best_pair (ours)"
COLORS = {
    BEST: "tab:red",
    OURS: "tab:orange",
    PAPER: "black",
    "halving": "tab:green",
    "naive": "tab:gray",
    "lil'UCB": "tab:blue",
    "OptSpace": "tab:purple",
    "soft-impute": "tab:brown",
}
EPSILON = 0.1  # that Algorithm 4.1 is asked for; no budget here lets it finish
# The paper names neither the four groups of occupations nor its films: codes of MovieLens 1M, and its most rated films.
OCCUPATIONS = {
    "students": (4, 10),
    "technical": (2, 12, 15, 17, 20),
    "business and office": (3, 5, 7, 11, 14, 16),
    "others": (0, 1, 6, 8, 9, 13, 18, 19),
}


def films(name: str, count: int, users: int | None, by: str, rank: int = 4) -> Population:
    """Return groups of users and how likely each takes a film, made as the paper does.

    The `count` most rated films, completed by OptSpace, ratings of at least 3 taken as likes, averaged by group.
    """
    seen = datasets.movielens_100k() if name == "ML-100K" else datasets.movielens_1m()
    keep = np.sort(np.argsort(-seen.col_counts, kind="stable")[:count])
    column = np.full(seen.shape[1], -1)
    column[keep] = np.arange(len(keep))
    people = np.arange(seen.shape[0]) if users is None else np.arange(min(users, seen.shape[0]))
    good = (column[seen.cols] >= 0) & (seen.rows < len(people))
    part = Observations.from_triplets(
        seen.rows[good], column[seen.cols[good]], seen.values[good], (len(people), len(keep))
    )
    R = optspace(part, rank, max_sweeps=60).to_dense()
    R[part.rows, part.cols] = part.values
    likes = R >= 3.0
    group = _groups(name, [str(x) for x in (seen.row_labels or ())][: len(people)], by)
    names = np.unique(group)
    tastes = np.array([likes[group == g].mean(axis=0) for g in names])
    return Population(np.array([np.mean(group == g) for g in names]), tastes)


def _groups(name: str, users: Sequence[str], by: str) -> NDArray[np.str_]:
    path = datasets.local(f"movielens_{'100k' if name == 'ML-100K' else '1m'}/users.csv.gz")
    if path is None:
        raise DataError(
            "the table of users is needed: set ENTRYWISE_DATA to the folder that holds movielens_*/users.csv.gz"
        )
    with gzip.open(path, "rt", encoding="utf-8") as file:
        table = {line["user"]: line for line in csv.DictReader(file)}
    if by == "gender":
        return np.array([table[u]["gender"] for u in users])
    of = {code: group for group, codes in OCCUPATIONS.items() for code in codes}
    return np.array([of[int(table[u]["occupation"])] for u in users])


def _random_coins(n: int, budget: int, coins: Any, seed: int) -> Observations:
    """Return coins at uniformly drawn pairs, each on both sides of the diagonal, repeated ones averaged."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(n, size=budget), rng.integers(n - 1, size=budget)
    j = np.where(j >= i, j + 1, j)
    y = coins(Batch(i, j))
    rows, cols = np.r_[i, j], np.r_[j, i]
    return Observations.from_triplets(rows, cols, np.r_[y, y], (n, n), duplicates="mean")


def _smallest(found: LowRank) -> tuple[int, int]:
    """Return the pair with the smallest entry of a completion, made symmetric, block by block."""
    n = found.shape[0]
    best, pair = np.inf, (0, 1)
    every = np.arange(n)
    for a in range(0, n, 256):
        rows = np.arange(a, min(a + 256, n))[:, None]
        block = found.entries(rows, every[None, :]) + found.entries(every[None, :], rows)
        block[rows[:, 0] - a, rows[:, 0]] = np.inf
        k = int(np.argmin(block))
        if block.flat[k] < best:
            best, pair = float(block.flat[k]), (a + k // n, k % n)
    return min(pair), max(pair)


def _choice(name: str, n: int, budget: int, rank: int, coins: Any, seed: int) -> tuple[int, int]:
    """Return the pair that an algorithm names after `budget` coins."""
    if name in ("OptSpace", "soft-impute"):
        seen = _random_coins(n, budget, coins, seed)
        if name == "OptSpace":
            return _smallest(optspace(seen, rank, max_sweeps=60))
        return _smallest(soft_impute(seen, max_rank=4 * rank, rng=seed))
    if name in (PAPER, OURS):
        given = {"rank": rank, "budget": budget, "rng": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the theorem needs far more
            if name == PAPER:
                plan = literal_stochastic_nystrom(n, epsilon=EPSILON, **given)
            else:
                plan = stochastic_nystrom(n, ask_diagonal=False, **given)
            found = play(plan, coins, budget=budget)
        i, j, _ = smallest_pairs(found.factor, 1, False)
        return int(i[0]), int(j[0])
    make: dict[str, Callable[[], Plan]] = {
        BEST: lambda: best_pair(n, budget=budget, rank=rank, rng=seed),
        "halving": lambda: sequential_halving(n, budget=budget, rng=seed),
        "naive": lambda: uniform_pairs(n, budget=budget, rng=seed),
        "lil'UCB": lambda: lil_ucb(n, budget=budget, rng=seed),
    }
    pair: tuple[int, int] = play(make[name](), coins).pair
    return pair


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Pairs to choose from: their losses, who answers, and the rank that the algorithms are told."""

    name: str
    title: str
    losses: Array
    coins: Coins
    rank: int


def _errors(
    work: Drawing,
    problem: PairProblem,
    budgets: Sequence[int],
    runs: int,
    names: Sequence[str] = tuple(COLORS),
) -> dict[str, Array]:
    """Return the error of the algorithms called `names`, shape (budgets, runs)."""
    n = len(problem.losses)

    def error(key: tuple[str, int, int]) -> float:
        name, budget, seed = key
        pair = _choice(name, n, budget, problem.rank, problem.coins(seed), seed)
        return regret(problem.losses, pair)

    keys = [(name, b, s) for b in budgets for s in range(runs) for name in names]
    found = work.each(f"{problem.name}, {n} items", keys, error)
    errors = {
        name: np.array([[found[name, b, s] for s in range(runs)] for b in budgets])
        for name in names
    }
    last = ", ".join(f"{name} {np.mean(e[-1]):.3g}" for name, e in errors.items())
    work.say(f"  {problem.name}, budget {budgets[-1]}: {last}")
    return errors


def _draw(
    ax: Any, budgets: Sequence[int], errors: Mapping[str, Array], title: str, names: Sequence[str]
) -> None:
    for name in names:
        low, middle, high = np.percentile(errors[name], [25, 50, 75], axis=1)
        dash = "o--" if name == PAPER else "o-"
        ax.plot(budgets, middle, dash, color=COLORS[name], label=name, markersize=3)
        ax.fill_between(budgets, low, high, color=COLORS[name], alpha=0.12, linewidth=0)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=1e-4)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("budget (coin flips)")
    ax.set_ylabel(r"$L_{\hat\imath\hat\jmath} - L_{i_*j_*}$, median and quartiles")
    ax.set_title(title, fontsize=10)


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9
    )


def _table(
    work: Drawing, name: str, budgets: Sequence[int], every: Mapping[str, Mapping[str, Array]]
) -> None:
    rows = [
        (problem, budget, name, run, float(e))
        for problem, errors in every.items()
        for name, found in errors.items()
        for budget, line in zip(budgets, found, strict=True)
        for run, e in enumerate(line)
    ]
    work.csv(name, ("problem", "budget", "algorithm", "run", "error"), rows)


def _better(
    figure: str,
    first: str,
    rivals: Sequence[str],
    every: Mapping[str, Mapping[str, Array]],
    size: tuple[str, str],
) -> list[Claim]:
    """Judge whether `first` is below each rival on every problem, at the largest budget, on mean errors."""
    claims = []
    whose = "" if first == PAPER else "(ours) "
    for rival in rivals:
        gaps = {p: gap(e[first][-1], e[rival][-1]) for p, e in every.items()}
        words = [
            f"{p}: {e[first][-1].mean():.2g} against {e[rival][-1].mean():.2g}"
            for p, e in every.items()
        ]
        below = [g.below for g in gaps.values()]
        holds = False if False in below else (True if all(below) else None)
        interval = "; ".join(f"{p}: {g}" for p, g in gaps.items())
        claim = f"{whose}{first} finds better pairs than {rival}"
        claims.append(Claim(figure, claim, "; ".join(words), holds, *size, interval))
    return claims


def _bandits(
    work: Drawing,
    stem: str,
    figure: str,
    budgets: list[int],
    runs: int,
    problems: Iterable[PairProblem],
    size: tuple[str, str],
) -> list[Claim]:
    """Draw every algorithm on each problem, and judge the claims."""
    drawing, axes = plot.figure(3)
    every = {}
    for ax, problem in zip(axes[0], problems, strict=True):
        every[problem.name] = _errors(work, problem, budgets, runs)
        _draw(ax, budgets, every[problem.name], problem.title, list(COLORS))
    _legend(drawing, axes)
    work.picture(f"{stem}.png", drawing)
    _table(work, f"{stem}.csv", budgets, every)
    papers = _better(figure, PAPER, ("naive", "lil'UCB", "OptSpace"), every, size)
    return papers + _better(figure, BEST, ("halving", "soft-impute", OURS), every, size)


def figure_1(work: Drawing) -> list[Claim]:
    """The best pair of films: ML-100K and ML-1M by gender, ML-1M by occupation in four groups."""
    count, users = (120, 400) if work.quick else (800, None)
    runs = work.runs(2, 10)
    budgets = [1000, 10_000] if work.quick else [10_000, 100_000, 1_000_000]

    def problem(name: str, by: str) -> PairProblem:
        crowd = films(name, count, users, by)
        groups = len(crowd.shares)
        title = f"{name}, {by}: {count} films, {groups} groups"
        losses = crowd.losses.to_dense()
        return PairProblem(f"{name} {by}", title, losses, partial(_showing, crowd, 1000), groups)

    kinds = [("ML-100K", "gender"), ("ML-1M", "gender"), ("ML-1M", "occupation")]
    problems = (problem(*kind) for kind in kinds)
    size = (
        "800 films, budgets to 1e6, 10 runs",
        f"{count} films, budgets to {budgets[-1]:.0e}, {runs} runs",
    )
    return _bandits(work, "figure1", "1", budgets, runs, problems, size)


def _showing(crowd: Population, offset: int, seed: int) -> PopulationOracle:
    return PopulationOracle(crowd, rng=seed + offset)


def _tossing(L: Array, offset: int, seed: int) -> BernoulliOracle:
    return BernoulliOracle(L, rng=seed + offset)


def figure_a1(work: Drawing) -> list[Claim]:
    """Synthetic pairs of the appendix: L = U U' with U uniform, and a coherent matrix as well."""
    n, runs = 40 if work.quick else 200, work.runs(2, 10)
    budgets = [500, 5000] if work.quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]

    def problem(family: str, rank: int) -> PairProblem:
        L = pair_losses(family, n, rank, seed=7)
        title = f"{family} ({n}, {rank})"
        return PairProblem(f"{family} {rank}", title, L, partial(_tossing, L, 1000), rank)

    kinds = [("synthetic", 2), ("synthetic", 4), ("coherent", 3)]
    problems = (problem(*kind) for kind in kinds)
    size = (
        "K and r in the panels' titles, 10 runs",
        f"K = {n}, r = 2, 4, 3, budgets to {budgets[-1]:.0e}, {runs} runs",
    )
    return _bandits(work, "appendix1", "A1", budgets, runs, problems, size)


def figure_a2(work: Drawing) -> list[Claim]:
    """LRMC against S-MCANS on ML-100K by gender."""
    count, runs = 80 if work.quick else 800, work.runs(2, 10)
    budgets = [1000, 10_000] if work.quick else [10_000, 100_000, 1_000_000]
    crowd = films("ML-100K", count, 400 if work.quick else None, "gender")
    title = f"ML-100K, gender: {count} films"
    coins = partial(_showing, crowd, 2000)
    problem = PairProblem("ML-100K gender", title, crowd.losses.to_dense(), coins, 2)
    names = (PAPER, "OptSpace", "soft-impute", OURS, BEST)
    errors = _errors(work, problem, budgets, runs, names)
    figure, axes = plot.figure(1, width=6.0)
    _draw(axes[0, 0], budgets, errors, problem.title, names)
    axes[0, 0].legend(fontsize=8)
    work.picture("appendix2.png", figure)
    every = {problem.name: errors}
    _table(work, "appendix2.csv", budgets, every)
    size = (
        "800 films, budgets to 1e6, 10 runs",
        f"{count} films, budgets to {budgets[-1]:.0e}, {runs} runs",
    )
    rivals = _better("A2", PAPER, ("OptSpace", "soft-impute"), every, size)
    return rivals + _better("A2", OURS, ("OptSpace", "soft-impute"), every, size)


def figure_2(work: Drawing) -> list[Claim]:
    """t-SNE of full, partly evaluated (MCANS) and passively completed (SoftImpute) kernels at the same budgets."""
    from sklearn.datasets import load_digits

    pixels, labels = datasets.mnist2500()
    digits, names = load_digits(return_X_y=True)
    five = np.flatnonzero((names >= 1) & (names <= 5))
    five = np.random.default_rng(0).permutation(five)[: 200 if work.quick else 500]
    size = 300 if work.quick else 2500
    problems = [
        ("MNIST2500", f"MNIST{size}", pixels[:size] / 255.0, labels[:size]),
        (
            "USPS500, digits 1-5",
            f"digits 1-5 ({len(five)}), in place of USPS",
            digits[five],
            names[five],
        ),
    ]
    figure, axes = plot.figure(4, 2, 3.4, 3.2)
    rows, claims = [], []
    for line, (theirs, name, X, of) in zip(axes, problems, strict=True):
        maps = work.each(name, [*KERNELS], lambda kind, X=X: _map(kind, X).tolist())  # type: ignore[misc]
        share = 2 * _columns(len(X)) / (len(X) * (len(X) + 1))
        scores = {}
        for ax, kind in zip(line, KERNELS, strict=True):
            Y = np.array(maps[kind])
            scores[kind] = neighbour_accuracy(Y, of)
            draw_map(ax, Y, of, None)
            part = "" if kind == "full kernel" else f", {share:.0%}"
            ax.set_title(f"{kind}{part}: kNN {scores[kind]:.3f}", fontsize=8)
            rows.append((name, kind, len(X), scores[kind]))
        line[0].set_ylabel(name, fontsize=9)
        said = ", ".join(f"{kind} {score:.3f}" for kind, score in scores.items())
        of_size = (f"{theirs}, one run", f"{name}, one run, one map")
        full, mcans, soft = scores["full kernel"], scores[MCANS], scores["soft-impute"]
        ours = scores["adaptive_nystrom (ours)"]
        claims += [
            Claim(
                "2",
                "MCANS is comparable to the full kernel (bar: kNN within .05)",
                said,
                full - mcans <= 0.05,
                *of_size,
            ),
            Claim(
                "2",
                "LRMC gives poor clusters (bar: kNN .08 below MCANS)",
                said,
                mcans - soft >= 0.08,
                *of_size,
            ),
            Claim(
                "2",
                "(ours) the least explained column first is as good (bar: .02)",
                said,
                ours >= mcans - 0.02,
                *of_size,
            ),
        ]
    work.picture("figure2.png", figure)
    work.csv("figure2.csv", ("data", "kernel", "points", "knn accuracy"), rows)
    return claims


MCANS = "MCANS (Algorithm 3.2)"
KERNELS = ("full kernel", MCANS, "adaptive_nystrom (ours)", "soft-impute")
RANK = 20  # columns of a kernel that are evaluated


def _columns(n: int) -> int:
    """Entries that RANK columns and the diagonal cost: the budget of every partial map."""
    return n * (RANK + 1)


def _map(kind: str, X: Array) -> Array:
    """Return the t-SNE map of a kernel, evaluated whole, in columns, or at random entries."""
    from scipy.spatial.distance import pdist

    n = len(X)
    budget = _columns(n)
    oracle = KernelOracle(X, "rbf", gamma=1.0 / float(np.median(pdist(X[:1000], "sqeuclidean"))))
    if kind == MCANS:
        return kernel_tsne(play(literal_adaptive_nystrom(n, rank=RANK), oracle, budget=budget))
    if kind.startswith("adaptive"):
        return kernel_tsne(play(adaptive_nystrom(n, rank=RANK), oracle, budget=budget))
    K = oracle.block(np.arange(n), np.arange(n))
    if kind == "full kernel":
        return kernel_tsne(K)
    i, j = np.triu_indices(n)
    pick = np.random.default_rng(1).permutation(len(i))[:budget]
    i, j = i[pick], j[pick]
    off = i != j
    a, b = np.r_[i, j[off]], np.r_[j, i[off]]
    seen = Observations.from_triplets(a, b, K[a, b], (n, n))
    return kernel_tsne(soft_impute(seen, center="none", max_rank=40))


FIGURES: dict[str, Figure] = {
    "1": Figure(figure_1, 25),
    "2": Figure(figure_2, 1.7),
    "A1": Figure(figure_a1, 6),
    "A2": Figure(figure_a2, 5),
}
PICTURES = {
    "1": ["figure1.png"],
    "2": ["figure2.png"],
    "A1": ["appendix1.png"],
    "A2": ["appendix2.png"],
}
