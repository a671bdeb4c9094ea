"""A cheap biased judge beside a dear truth: error, coverage, refusal and bias with simulated judges on real boards.

Judges are simulated on AlpacaEval, KIBA and Jester and on synthetic boards of low rank; the recipe was developed on other
seeds and other judges. ``known``: the judge's answers exist already; ``bought``: they are paid for at 1:10 and 1:50;
``bias``: is a favoured row named, is a fair judge accused; ``invariant``: offset and unit of a judge do not matter;
``ppi``: our prediction-powered means against those of ppi-python.
make bench NAME=judge [ARGS="--only known --seeds 20 --board ae2"]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from functools import cache

import numpy as np

import entrywise as ew
from _shared import Bars, show
from boards import board
from entrywise.active import row_scores
from entrywise.apply.leaderboard import Bought, judged, prediction_powered
from entrywise.apply.leaderboard.scores import completed_means
from entrywise.oracles import MatrixOracle

FIRST = 9000  # smaller seeds were used while choosing
BOARDS = ("ae2", "KIBA", "Jester")
SHARES = (0.05, 0.1)
# against dear low_rank, judge known everywhere
KNOWN = {
    "soft": 0.65,
    "heterogeneous": 1.0,
    "weak": 0.97,
    "useless": 1.01,
    "perfect": 0.1,
    "favouring": 1.0,
}
# judge, its boards, bars against raw means by price; None: against low_rank, and to be refused
BOUGHT = (
    ("soft", BOARDS, {0.1: 0.65, 0.02: 0.50}),
    ("heterogeneous", ("synthetic",), {0.1: 0.90, 0.02: 0.76}),
    ("perfect", (*BOARDS, "synthetic"), {0.1: 0.25}),
    ("useless", (*BOARDS, "synthetic"), {0.1: None, 0.02: None}),
)
NOTHING = 1e-6  # share of the raw error below which both ways have none: no ratio is told


def judge_of(kind: str, A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what a simulated judge says of a board; deviations are in units of that within rows."""
    m, n = A.shape
    unit = float(A.std(axis=1).mean())
    rows, cols, cells = (unit * rng.standard_normal(s) for s in ((m, 1), (1, n), (m, n)))
    apart = A - A.mean()
    if kind == "soft":  # half as far apart, offset, small biases of rows and columns
        return 0.2 * unit + 0.6 * apart + 0.15 * rows + 0.2 * cols + 0.3 * cells
    if kind == "heterogeneous":  # biases of rows as large as what tells them apart
        return 0.6 * apart + 0.5 * rows + 0.3 * cols + 0.5 * cells
    if kind == "weak":
        return 0.3 * apart + 0.2 * rows + cells
    if kind == "useless":  # knows nothing, yet likes some rows and columns
        return 0.3 * rows + 0.3 * cols + cells
    if kind in ("fair", "favouring"):
        said = 0.2 * unit + 0.6 * apart + 0.2 * cols + 0.3 * cells
        if kind == "favouring":  # a tenth of the rows
            said[rng.permutation(m)[: max(1, m // 10)]] += 0.5 * unit
        return said
    return 3.0 - 2.0 * A  # perfect, the other way round


def synthetic(rng: np.random.Generator, m: int = 60, n: int = 400) -> np.ndarray:
    """Return a board of levels, three components and noise."""
    A = 0.5 * rng.standard_normal((m, 1)) + 0.5 * rng.standard_normal((1, n))
    A = A + 0.5 * rng.standard_normal((m, 3)) @ rng.standard_normal((3, n))
    return A + 0.6 * rng.standard_normal((m, n))


def table(name: str, rng: np.random.Generator) -> np.ndarray:
    return synthetic(rng) if name == "synthetic" else board(name).values


def random_cells(A: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return as many random cells of every row, NaN elsewhere."""
    k = max(3, round(share * A.shape[1]))
    place = np.argsort(np.argsort(rng.random(A.shape), axis=1), axis=1)
    return np.where(place < k, A, np.nan)


def standard_error(values) -> float:
    values = np.asarray(values, float)
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def root_ratio(squares, other) -> tuple[float, float]:
    """Return sqrt(mean squares / mean other) and its standard error between seeds (paired, delta method)."""
    squares, other = np.asarray(squares, float), np.asarray(other, float)
    ratio = float(np.sqrt(squares.mean() / other.mean()))
    apart = squares / squares.mean() - other / other.mean()
    return ratio, ratio * standard_error(apart) / 2


@dataclass
class Kept:
    """Squared errors, coverage and widths of one case, seed by seed."""

    squares: dict[str, list[float]] = field(default_factory=dict)
    covered: dict[str, list[float]] = field(default_factory=dict)
    width: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, truth, mean, low=None, high=None) -> None:
        """Note what one way of scoring said of one board."""
        self.squares.setdefault(name, []).append(float(np.mean((mean - truth) ** 2)))
        if low is not None:
            inside = (low <= truth + 1e-9) & (truth <= high + 1e-9)
            self.covered.setdefault(name, []).append(float(np.mean(inside)))
            self.width.setdefault(name, []).append(float(np.mean(high - low)))

    def ratio(self, name: str, other: str) -> tuple[float, float]:
        """Return the error of one way over another's, with its standard error."""
        return root_ratio(self.squares[name], self.squares[other])

    def wide(self, name: str, other: str) -> float:
        """Return the mean width of one way's intervals over another's."""
        return float(np.mean(self.width[name]) / np.mean(self.width[other]))


def cover_bars(bars: Bars, what: str, kept: Kept, means: list[float]) -> str:
    covered = kept.covered["ours"]
    doubt = standard_error(covered)
    bars.at_least(f"{what}: coverage + 2 s.e.", float(np.mean(covered)) + 2 * doubt, 0.87)
    means.append(float(np.mean(covered)))
    return f"{np.mean(covered):.3f} +- {doubt:.3f}"


def progress(lines) -> None:
    """Say on stderr what the last case gave: the whole takes minutes."""
    print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)


def mean_bars(bars: Bars, what: str, means: list[float]) -> None:
    if means:
        bars.at_least(f"{what}: coverage, mean over cases", float(np.mean(means)), 0.90)
        bars.at_most(f"{what}: coverage, mean over cases", float(np.mean(means)), 0.95)


# the judge's answers exist


def known(bars: Bars, names, judges, shares, seeds) -> None:
    lines, means = [], []
    for name in names:
        for kind in judges:
            for share in shares:
                kept = Kept()
                for seed in seeds:
                    rng = np.random.default_rng([seed, 1])
                    A = table(name, rng)
                    _known_once(kept, A, judge_of(kind, A, rng), share, rng)
                lines.append(_known_line(bars, name, kind, share, kept, means))
                progress(lines)
    columns = (
        "board", "judge", "dear", "of low_rank", "of pooled PPI++", "of PPI++ a row", "of raw means",
        "covers", "PPI covers", "width of PPI's",
    )  # fmt: skip
    show(f"the judge is known everywhere, {len(seeds)} seeds from {seeds[0]}", columns, lines)
    mean_bars(bars, "known", means)


def _known_once(kept: Kept, A, X, share, rng) -> None:
    truth, dear = A.mean(axis=1), random_cells(A, share, rng)
    found = judged(dear, X)
    seen, said = ew.Observations.from_dense(dear), ew.Observations.from_dense(X)
    kept.add("ours", truth, found.mean, found.low, found.high)
    kept.add("low_rank", truth, found.alone.mean, found.alone.low, found.alone.high)
    for tuning in ("pooled", "row"):
        powered = prediction_powered(seen, said, tuning=tuning)
        kept.add(tuning, truth, powered.mean, powered.low, powered.high)
    kept.add("raw", truth, np.nanmean(dear, axis=1))


def _known_line(bars: Bars, name, kind, share, kept: Kept, means):
    what = f"known, {name}, {kind}, {share:.0%}"
    ratio, doubt = kept.ratio("ours", "low_rank")
    bars.at_most(f"{what}: of low_rank", ratio, KNOWN[kind])
    told = {}
    exact = np.mean(kept.squares["pooled"]) < NOTHING**2 * np.mean(kept.squares["raw"])
    if exact:
        left, _ = kept.ratio("ours", "raw")
        bars.at_most(f"{what}: of raw means (PPI++ has no error)", left, 1e-3)
        told["pooled"] = "both exact"
    else:
        against, error = kept.ratio("ours", "pooled")
        bars.at_most(f"{what}: of pooled PPI++", against, 0.97)
        bars.at_most(f"{what}: width of pooled PPI's", kept.wide("ours", "pooled"), 1.0)
        told["pooled"] = f"{against:.3f} +- {error:.3f}"
    by_row = "both exact" if exact else f"{kept.ratio('ours', 'row')[0]:.3f}"
    return (
        name, kind, f"{share:.0%}", f"{ratio:.3f} +- {doubt:.3f}", told["pooled"], by_row,
        f"{kept.ratio('ours', 'raw')[0]:.3f}", cover_bars(bars, what, kept, means),
        f"{np.mean(kept.covered['pooled']):.3f}", "" if exact else f"{kept.wide('ours', 'pooled'):.2f}",
    )  # fmt: skip


# the judge is paid for


class Instruments:
    """Answers of both instruments."""

    def __init__(self, human: np.ndarray, judge: np.ndarray) -> None:
        self.tables = {"human": human, "judge": judge}

    def __call__(self, batch):
        """Return the answers of the batch's instrument."""
        return self.tables[batch.mode][batch.rows, batch.cols]


def bought(bars: Bars, names, judges, share, seeds) -> None:
    lines, means = [], []
    for kind, boards, limits in BOUGHT:
        for name in boards:
            if name not in names or kind not in judges:
                continue
            for price, limit in limits.items():
                kept, told = Kept(), []
                for seed in seeds:
                    told.append(_buy(kept, name, kind, price, share, seed))
                lines.append(_bought_line(bars, name, kind, price, limit, kept, told, means))
                progress(lines)
    columns = (
        "board", "judge", "price", "of raw means", "of low_rank", "covers", "width of PPI's", "rho", "needed", "kept",
        "judge's cells", "spent",
    )  # fmt: skip
    title = f"the judge is bought, money for {share:.0%} dear cells, {len(seeds)} seeds"
    show(title, columns, lines)
    mean_bars(bars, "bought", means)


def _buy(kept: Kept, name, kind, price, share, seed):
    rng = np.random.default_rng([seed, 2])
    A = table(name, rng)
    X, truth = judge_of(kind, A, rng), A.mean(axis=1)
    money = float(int(share * A.size))
    prices = ew.Prices(judge=price, human=1.0)
    run = ew.Run(row_scores(A.shape, prices, budget=money, target="human", rng=seed))
    fit = ew.play(run, Instruments(A, X))
    seen = Bought.from_run(run)
    found = judged(seen, prices=prices, target="human")
    kept.add("ours", truth, found.mean, found.low, found.high)
    powered = prediction_powered(seen.observations(), seen.judges["judge"], tuning="pooled")
    kept.add("pooled", truth, powered.mean, powered.low, powered.high)
    kept.add("low_rank", truth, _dear_alone(name, money, seed))
    variance = A.var(axis=1, ddof=1).mean() * (1.0 / share - 1.0) / A.shape[1]
    kept.squares.setdefault("raw", []).append(float(variance))  # exact, of k random cells a row
    told = fit.report["judges"]["judge"]
    return told["rho"], told["needed"], told["kept"], told["bought"] / A.size, fit.cost / money


@cache
def _dear_alone(name, money, seed) -> np.ndarray:
    """Return the scores that the same money buys of the dear instrument, without any judge."""
    A = table(name, np.random.default_rng([seed, 2]))
    alone = ew.Run(row_scores(A.shape, budget=money, rng=seed))
    plain = ew.play(alone, MatrixOracle(A))
    seen = Bought.from_run(alone)
    return completed_means(plain, seen.observations(), seen.there)


def _bought_line(bars: Bars, name, kind, price, limit, kept: Kept, told, means):
    what = f"bought, {name}, {kind}, 1:{1 / price:.0f}"
    ratio, doubt = kept.ratio("ours", "raw")
    against, error = kept.ratio("ours", "low_rank")
    rho, needed, kept_judge, cells, spent = (np.array(x, float) for x in zip(*told, strict=True))
    if limit is not None:
        bars.at_most(f"{what}: of raw means", ratio, limit)
        bars.at_most(f"{what}: width of pooled PPI's", kept.wide("ours", "pooled"), 1.0)
    else:  # PPI has the pilot's pairs alone
        bars.at_most(f"{what}: of low_rank, less 2 s.e.", against - 2 * error, 1.03)
        bars.at_least(f"{what}: refused", 1.0 - float(kept_judge.mean()), 0.95)
    bars.at_most(f"{what}: share of the money spent, largest", float(spent.max()), 1.0 + 1e-9)
    return (
        name, kind, f"1:{1 / price:.0f}", f"{ratio:.3f} +- {doubt:.3f}", f"{against:.3f} +- {error:.3f}",
        cover_bars(bars, what, kept, means), f"{kept.wide('ours', 'pooled'):.2f}",
        f"{rho.mean():.2f}", f"{needed.mean():.2f}",
        f"{kept_judge.mean():.2f}", f"{cells.mean():.3f}", f"{spent.mean():.3f}",
    )  # fmt: skip


# bias


def bias(bars: Bars, names, seeds) -> None:
    """A row favoured by a tenth of the board's range, 10 % dear cells; and a fair judge."""
    lines = []
    for name in names:
        named, falsely, accused = [], [], []
        for seed in seeds:
            rng = np.random.default_rng([seed, 3])
            A = table(name, rng)
            X, dear = judge_of("fair", A, rng), random_cells(A, 0.1, rng)
            accused.append(not judged(dear, X).bias["judge"].fair)
            row = int(rng.integers(len(A)))
            X[row] += 0.1 * (A.max() - A.min())
            rows = judged(dear, X).bias["judge"].rows
            named.append(bool(rows.surely[row] and rows.offset[row] > 0))
            falsely.append(bool(np.delete(rows.surely, row).any()))
        bars.at_least(f"bias, {name}: favoured row named", float(np.mean(named)), 0.8)
        doubt = 2 * float(np.sqrt(0.05 * 0.95 / len(accused)))
        bars.at_most(
            f"bias, {name}: fair judge accused, less 2 s.e.", np.mean(accused) - doubt, 0.05
        )
        lines.append((name, *(f"{np.mean(x):.3f}" for x in (named, falsely, accused))))
    title = f"whom does the judge favour, {len(seeds)} seeds"
    show(
        title, ("board", "favoured row named", "another named as well", "fair judge accused"), lines
    )


def invariant(bars: Bars, names, seeds) -> None:
    """Scores with the judge's answers plus a constant, and in another unit."""
    for name in names:
        worst = 0.0
        for seed in seeds[:3]:
            rng = np.random.default_rng([seed, 4])
            A = table(name, rng)
            X, dear = judge_of("soft", A, rng), random_cells(A, 0.05, rng)
            first = judged(dear, X).mean
            for other in (X + 10.0 * X.std(), 37.0 * X):
                worst = max(worst, float(np.abs(judged(dear, other).mean - first).max()))
        bars.at_most(f"invariant, {name}: largest change of a score", worst, 1e-6)


def against_ppi(bars: Bars, seeds) -> None:
    """Our tuned means a row against ppi-python's, which keeps labelled and unlabelled cells apart."""
    from ppi_py import ppi_mean_pointestimate

    worst = 0.0
    for seed in seeds[:5]:
        rng = np.random.default_rng([seed, 5])
        A = synthetic(rng, 12, 200)
        X, dear = judge_of("soft", A, rng), random_cells(A, 0.2, rng)
        seen, said = ew.Observations.from_dense(dear), ew.Observations.from_dense(X)
        plain = prediction_powered(seen, said, tuning="none").mean
        for i in range(len(A)):
            at = ~np.isnan(dear[i])
            # lam = N / (N - k) of its own way of counting is our 1
            share = np.mean(~at)
            theirs = ppi_mean_pointestimate(A[i, at], X[i, at], X[i, ~at], lam=share)
            worst = max(worst, float(np.abs(theirs - plain[i]).max()))
    bars.at_most("ppi: largest difference from ppi-python", worst, 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser()
    sections = ("known", "bought", "bias", "invariant", "ppi")
    parser.add_argument("--only", choices=sections, action="append")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--board", action="append")
    parser.add_argument("--judge", action="append")
    parser.add_argument("--share", type=float, action="append")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    names, bars = given.board or BOARDS, Bars()
    for section in given.only or sections:
        if section == "known":
            known(bars, names, given.judge or KNOWN, given.share or SHARES, seeds)
        elif section == "bought":
            boards = given.board or (*BOARDS, "synthetic")
            bought(bars, boards, given.judge or KNOWN, (given.share or (0.1,))[0], seeds)
        elif section == "bias":
            bias(bars, names, seeds)
        elif section == "invariant":
            invariant(bars, names, seeds)
        else:
            against_ppi(bars, seeds)
    bars.end()


if __name__ == "__main__":
    main()
