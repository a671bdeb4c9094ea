"""Active PSD completion (Bhargava, Ganti, Nowak, AISTATS 2017): its figures, with the control that they lack.

The best pair of films (Figure 1, appendix Figure 2), maps of partly evaluated kernels (Figure 2) and synthetic pairs
(appendix Figure 1). Sequential halving over all pairs, which knows nothing of low rank, stands beside the paper's baselines.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise import datasets
from entrywise.active import (
    adaptive_nystrom,
    lil_ucb,
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
from entrywise.queries import Batch
from entrywise.reproduce.figures import Claim, Figure, new_figure, save_csv, save_figure
from entrywise.types import Array

Say: TypeAlias = Callable[[str], None]
Coins: TypeAlias = Callable[[int], Any]  # seed -> oracle
COLORS = {
    "best pair": "tab:red",
    "S-MCANS": "tab:orange",
    "halving": "tab:green",
    "naive": "tab:gray",
    "lil'UCB": "tab:blue",
    "OptSpace": "tab:purple",
}
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


def _lrmc(n: int, budget: int, coins: Any, rank: int, seed: int) -> tuple[int, int]:
    """Return the smallest entry of OptSpace's completion of uniformly sampled coins."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(n, size=budget), rng.integers(n - 1, size=budget)
    j = np.where(j >= i, j + 1, j)
    y = coins(Batch(i, j))
    rows, cols = np.r_[i, j], np.r_[j, i]
    seen = Observations.from_triplets(rows, cols, np.r_[y, y], (n, n), duplicates="mean")
    found = optspace(seen, rank, max_sweeps=60)
    left = np.hstack([found.left, found.right])  # symmetrised: (U V' + V U') as a product
    right = np.hstack([found.right, found.left])
    best, pair = np.inf, (0, 1)
    for a in range(0, n, 256):
        block = left[a : a + 256] @ right.T
        block[np.arange(len(block)), np.arange(a, a + len(block))] = np.inf
        k = int(np.argmin(block))
        if block.flat[k] < best:
            best, pair = float(block.flat[k]), (a + k // n, k % n)
    return min(pair), max(pair)


def _errors(
    L: Array,
    coins: Coins,
    budgets: Sequence[int],
    rank: int,
    runs: int,
    say: Say,
    names: Sequence[str] = tuple(COLORS),
) -> dict[str, Array]:
    """Return the error of the algorithms called `names`, shape (budgets, runs)."""
    n = len(L)
    errors = {name: np.empty((len(budgets), runs)) for name in names}
    plans: dict[str, Callable[[int, int], Any]] = {
        "best pair": lambda B, s: best_pair(n, budget=B, rank=rank, rng=s),
        "halving": lambda B, s: sequential_halving(n, budget=B, rng=s),
        "naive": lambda B, s: uniform_pairs(n, budget=B, rng=s),
        "lil'UCB": lambda B, s: lil_ucb(n, budget=B, rng=s),
    }
    plans = {name: make for name, make in plans.items() if name in names}
    for b, budget in enumerate(budgets):
        for s in range(runs):
            for name, make in plans.items():
                errors[name][b, s] = regret(L, play(make(budget, s), coins(s)).pair)
            found = play(
                stochastic_nystrom(n, rank=rank, budget=budget, ask_diagonal=False, rng=s), coins(s)
            )
            i, j, _ = smallest_pairs(found.factor, 1, False)
            errors["S-MCANS"][b, s] = regret(L, (int(i[0]), int(j[0])))
            errors["OptSpace"][b, s] = regret(L, _lrmc(n, budget, coins(s), rank, s))
        say(
            f"  budget {budget}: "
            + ", ".join(f"{name} {np.median(e[b]):.3g}" for name, e in errors.items())
        )
    return errors


def _draw(
    ax: Any, budgets: Sequence[int], errors: Mapping[str, Array], title: str, names: Sequence[str]
) -> None:
    for name in names:
        low, middle, high = np.percentile(errors[name], [25, 50, 75], axis=1)
        ax.plot(budgets, middle, "o-", color=COLORS[name], label=name, markersize=3)
        ax.fill_between(budgets, low, high, color=COLORS[name], alpha=0.15, linewidth=0)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=1e-4)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("budget (coin flips)")
    ax.set_ylabel(r"$L_{\hat\imath\hat\jmath} - L_{i_*j_*}$")
    ax.set_title(title, fontsize=10)


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9
    )


def _table(path: Path, budgets: Sequence[int], every: Mapping[str, Mapping[str, Array]]) -> None:
    rows = [
        (problem, budget, name, run, float(e))
        for problem, errors in every.items()
        for name, found in errors.items()
        for budget, line in zip(budgets, found, strict=True)
        for run, e in enumerate(line)
    ]
    save_csv(path, ("problem", "budget", "algorithm", "run", "error"), rows)


def _claims(figure: str, every: Mapping[str, Mapping[str, Array]]) -> list[Claim]:
    """Return the paper's claims at the largest budget, and the control's."""
    claims = []
    last = {
        p: {name: float(np.median(e[-1])) for name, e in errors.items()}
        for p, errors in every.items()
    }
    for rival in ("naive", "lil'UCB", "OptSpace"):
        words = [f"{p}: {m['S-MCANS']:.2g} against {m[rival]:.2g}" for p, m in last.items()]
        holds = all(m["S-MCANS"] <= m[rival] for m in last.values())
        claims.append(
            Claim(figure, f"S-MCANS finds better pairs than {rival}", "; ".join(words), holds)
        )
    for rival in ("S-MCANS", "halving"):
        words = [f"{p}: {m['best pair']:.2g} against {m[rival]:.2g}" for p, m in last.items()]
        holds = all(m["best pair"] <= m[rival] for m in last.values())
        claims.append(
            Claim(figure, f"(ours) asking the finalists beats {rival}", "; ".join(words), holds)
        )
    return claims


def _bandits(
    folder: Path,
    stem: str,
    figure: str,
    budgets: list[int],
    runs: int,
    problems: Iterable[tuple[str, str, Array, Coins, int]],
    say: Say,
) -> list[Claim]:
    """Draw every algorithm on each problem (name, title, losses, who answers, rank), and judge the claims."""
    drawing, axes = new_figure(3)
    every = {}
    for ax, (name, title, L, coins, rank) in zip(axes[0], problems, strict=True):
        say(name)
        every[name] = _errors(L, coins, budgets, rank, runs, say)
        _draw(ax, budgets, every[name], title, list(COLORS))
    _legend(drawing, axes)
    save_figure(folder / f"{stem}.png", drawing)
    _table(folder / f"{stem}.csv", budgets, every)
    return _claims(figure, every)


def figure_1(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """The best pair of films: ML-100K and ML-1M by gender, ML-1M by occupation in four groups."""
    count, users, runs = (120, 400, 3) if quick else (800, None, 10)
    budgets = [1000, 10_000, 50_000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]

    def problem(name: str, by: str) -> tuple[str, str, Array, Coins, int]:
        crowd = films(name, count, users, by)
        groups = len(crowd.shares)
        title = f"{name}, {by}: {count} films, {groups} groups"
        losses = crowd.losses.to_dense()
        return f"{name} {by}", title, losses, partial(_showing, crowd, 1000), groups

    kinds = [("ML-100K", "gender"), ("ML-1M", "gender"), ("ML-1M", "occupation")]
    problems = (problem(*kind) for kind in kinds)
    return _bandits(folder, "figure1", "1", budgets, runs, problems, say)


def _showing(crowd: Population, offset: int, seed: int) -> PopulationOracle:
    return PopulationOracle(crowd, rng=seed + offset)


def _tossing(L: Array, offset: int, seed: int) -> BernoulliOracle:
    return BernoulliOracle(L, rng=seed + offset)


def figure_a1(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Synthetic pairs of the appendix: L = U U' with U uniform, and a coherent matrix as well."""
    n, runs = (40, 3) if quick else (200, 10)
    budgets = [500, 5000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]

    def problem(family: str, rank: int) -> tuple[str, str, Array, Coins, int]:
        L = pair_losses(family, n, rank, seed=7)
        title = f"{family} ({n}, {rank})"
        return f"{family} {rank}", title, L, partial(_tossing, L, 1000), rank

    kinds = [("synthetic", 2), ("synthetic", 4), ("coherent", 3)]
    problems = (problem(*kind) for kind in kinds)
    return _bandits(folder, "appendix1", "A1", budgets, runs, problems, say)


def figure_a2(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """LRMC against S-MCANS on ML-100K by gender."""
    count, runs = (80, 2) if quick else (800, 10)
    budgets = [1000, 10_000] if quick else [10_000, 100_000, 1_000_000]
    crowd = films("ML-100K", count, 400 if quick else None, "gender")
    L = crowd.losses.to_dense()
    coins = partial(_showing, crowd, 2000)
    names = ("S-MCANS", "OptSpace", "best pair")
    errors = _errors(L, coins, budgets, 2, runs, say, names)
    figure, axes = new_figure(1)
    _draw(axes[0, 0], budgets, errors, f"ML-100K, gender: {count} films", names)
    axes[0, 0].legend(fontsize=8)
    save_figure(folder / "appendix2.png", figure)
    _table(folder / "appendix2.csv", budgets, {"ML-100K gender": errors})
    ours, theirs = float(np.median(errors["S-MCANS"][-1])), float(np.median(errors["OptSpace"][-1]))
    return [
        Claim(
            "A2",
            "LRMC is much inferior on ML-100K",
            f"S-MCANS {ours:.2g}, OptSpace {theirs:.2g}",
            ours < theirs,
        )
    ]


def figure_2(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """t-SNE of full, partly evaluated (MCANS) and passively completed (SoftImpute) kernels at the same budgets."""
    from scipy.spatial.distance import pdist
    from sklearn.datasets import load_digits

    pixels, labels = datasets.mnist2500()
    digits, names = load_digits(return_X_y=True)
    five = np.flatnonzero((names >= 1) & (names <= 5))
    five = np.random.default_rng(0).permutation(five)[: 200 if quick else 500]
    size, rank = (300, 20) if quick else (2500, 20)
    problems = [
        (f"MNIST{size}", pixels[:size] / 255.0, labels[:size]),
        (f"digits 1-5 ({len(five)}), in place of USPS500", digits[five], names[five]),
    ]
    figure, axes = new_figure(3, 2, 3.6, 3.4)
    rows, claims = [], []
    for line, (name, X, of) in zip(axes, problems, strict=True):
        n = len(X)
        budget = n * (rank + 1)
        oracle = KernelOracle(
            X, "rbf", gamma=1.0 / float(np.median(pdist(X[:1000], "sqeuclidean")))
        )
        K = oracle.block(np.arange(n), np.arange(n))
        found = play(adaptive_nystrom(n, rank=rank), oracle, budget=budget)
        i, j = np.triu_indices(n)
        pick = np.random.default_rng(1).permutation(len(i))[:budget]
        i, j = i[pick], j[pick]
        off = i != j
        a, b = np.r_[i, j[off]], np.r_[j, i[off]]
        soft = soft_impute(
            Observations.from_triplets(a, b, K[a, b], (n, n)), center="none", max_rank=40
        )
        share = 2 * budget / (n * (n + 1))
        scores = []
        for ax, (title, kernel) in zip(
            line,
            (
                ("full kernel", K),
                (f"MCANS, {share:.0%}", found),
                (f"SoftImpute, {share:.0%}", soft),
            ),
            strict=True,
        ):
            Y = kernel_tsne(kernel)
            scores.append(neighbour_accuracy(Y, of))
            draw_map(ax, Y, of, found.pivots if kernel is found else None)
            ax.set_title(f"{title}: kNN {scores[-1]:.3f}", fontsize=9)
            rows.append((name, title, budget if kernel is not K else n * (n + 1) // 2, scores[-1]))
            say(f"  {name}, {title}: {scores[-1]:.3f}")
        line[0].set_ylabel(name, fontsize=9)
        said = f"{name}: full {scores[0]:.3f}, MCANS {scores[1]:.3f}, SoftImpute {scores[2]:.3f}"
        claims.append(
            Claim(
                "2",
                "MCANS is comparable to the full kernel (kNN within .05)",
                said,
                scores[0] - scores[1] <= 0.05,
            )
        )
        claims.append(
            Claim(
                "2",
                "LRMC gives poor clusters (kNN .08 below MCANS)",
                said,
                scores[1] - scores[2] >= 0.08,
            )
        )
    save_figure(folder / "figure2.png", figure)
    save_csv(folder / "figure2.csv", ("data", "kernel", "entries", "knn accuracy"), rows)
    return claims


FIGURES: dict[str, Figure] = {"1": figure_1, "2": figure_2, "A1": figure_a1, "A2": figure_a2}
