"""Figures 1-4 of the noisyCUR paper: error against the budget, and against the number of noisy columns.

Every method is drawn as the paper has it and, where that is unfair to it, tuned: nuclear norms are centred and their
penalty chosen on held-out entries, CUR+ has its basis sorted and its number of rows searched, the literal algorithm
chooses lambda by leave-one-out. ``noisy_cur`` with nothing tuned is a level line at the split it chose, and a curve over
fixed splits. Where a matrix is not of low rank it corrects the entries it saw by what was measured there; on those
matrices every rival is drawn with the entries that it measured put in, and dotted as published. Two more figures show
what the paper says in words: that noisyCUR is faster than nuclear norms, and that rows may be coherent.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from entrywise import plot
from entrywise.reproduce._noisycur import (
    METHODS,
    SMALL,
    Contest,
    both_errors,
    column_grid,
    contests,
    cur_plus_settings,
    jester,
    movielens,
    played,
    synthetic,
)
from entrywise.reproduce.figures import (
    Claim,
    Drawing,
    Figure,
    gap,
    new_panel,
)
from entrywise.types import Array

TITLE = "noisyCUR"
REFERENCE = (
    "Hu, Gittens, Magdon-Ismail, *NoisyCUR: an algorithm for two-cost budgeted matrix completion*, ECML PKDD 2020. MovieLens "
    "is completed by iterative SVD (Hard-Impute) where the paper used a method of Cho and Reyhani."
)
EXAMPLE = "two_cost"  # of the gallery: the method on a small problem
TUNING = (
    "Each rival is shown at the best of its settings, chosen with the truth on the seeds shown: the number of columns (8 to 12 "
    "values) for the literal algorithm, which also has its penalty by leave-one-out; columns and rows (three numbers of rows "
    "with each) for CUR+; the same numbers of columns for NNs; the penalty of NNa and Chen on held-out entries, or, on the large "
    "matrices, as the best of three on seed 0. noisy_cur (automatic) is told nothing but prices, noises and budget."
)
Tried = dict[str, tuple[str, list[Any]]]  # name: method of the contest, and its settings
STYLE = {
    "noisy_cur": ("tab:blue", "-", "o"),
    "literal_noisy_cur": ("tab:orange", "-", "s"),
    "literal_noisy_cur, authors' code": ("tab:red", "--", "s"),
    "CUR+": ("tab:green", "-", "^"),
    "NNs": ("tab:purple", "-", "v"),
    "NNs, not centred": ("tab:purple", ":", "v"),
    "NNa": ("tab:brown", "--", None),
    "NNa, not centred": ("tab:brown", ":", None),
    "Chen": ("tab:gray", "--", None),
    "Chen, not centred": ("tab:gray", ":", None),
}


def _line(axis: Any, name: str, x: Any, y: Any, label: str | None = None) -> None:
    color, dash, marker = STYLE[name]
    axis.plot(
        x, y, dash, color=color, marker=marker, markersize=3.5, linewidth=1.3, label=label or name
    )


def _plain_ticks(axis: Any) -> None:
    """Write 2, 5, 10 and not powers of ten on a logarithmic axis; make one that spans little linear."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    bottom, top = axis.get_ylim()
    if top < 4 * bottom:
        axis.set_yscale("linear")
        return
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_minor_formatter(NullFormatter())


def _found(
    work: Drawing, c: Contest, name: str, method: str, settings: list[Any], runs: int
) -> dict[Any, Array]:
    """Return errors of a method at each setting: shape (2, runs), as published and with its entries put in."""
    kept: dict[int, Array] = {}

    def one(key: tuple[Any, int]) -> list[float]:
        setting, seed = key
        if seed not in kept:
            kept.clear()
            kept[seed] = c.matrix(seed)
        return list(both_errors(c, method, setting, kept[seed], seed))

    keys = [(setting, seed) for seed in range(runs) for setting in settings]
    found = work.each(f"{c.name}, {c.share:.0%}, {name}", keys, one)
    return {s: np.array([found[s, seed] for seed in range(runs)]).T for s in settings}


def figure1(work: Drawing) -> list[Claim]:
    """Error against the budget on the synthetic set, low noise; shaded where nuclear norms have no theory."""
    runs = work.runs(2, 10)
    shares = (0.1, 0.2, 0.4) if work.quick else (0.08, 0.12, 0.16, 0.22, 0.3, 0.4, 0.5, 0.65)
    base = contests("synthetic", synthetic(), 4)[0]
    rows: list[tuple[Any, ...]] = []
    curves: dict[str, list[Array]] = {}
    for share in shares:
        contest = replace(base, name="synthetic, over budgets", share=share)
        for name, (method, settings) in _over_budgets(contest, work.quick).items():
            setting, best = _best(_found(work, contest, name, method, settings, runs))
            curves.setdefault(name, []).append(100 * best)
            rows.append((share, name, setting, 100 * float(best.mean())))
    header = ("budget", "method", "best setting", "error_percent")
    work.csv("figure1.csv", header, rows)
    means = {name: [float(e.mean()) for e in each] for name, each in curves.items()}
    _draw_budgets(work, [100 * share for share in shares], means)
    return _budget_claims(curves, shares, runs)


def _over_budgets(c: Contest, quick: bool) -> Tried:
    """Return the methods of figure 1, each with the settings of which the best is drawn."""
    A = c.matrix(0)
    grid = column_grid(c, A, 4 if quick else 8, 4)
    halves = sorted({max(4, d // 2) for d in grid})
    return {
        "noisy_cur": ("noisy_cur", [None]),
        "literal_noisy_cur": ("literal_noisy_cur", list(grid)),
        "CUR+": ("CUR+", cur_plus_settings(c, A, halves)),
        "NNs": ("NNs", [(d, 0.5, True) for d in grid]),
        "NNa": ("NNa", [(1.0, None, True)]),
        "NNa, not centred": ("NNa", [(1.0, None, False)]),
    }


def _draw_budgets(work: Drawing, percents: list[float], curves: dict[str, list[float]]) -> None:
    figure, axis = new_panel(width=6.2, height=4.2)
    for name, values in curves.items():
        _line(axis, name, percents, values)
    limit = 100 * (80 + 60) * 4 * math.log(80 + 60) / 4800
    axis.axvspan(percents[0], min(limit, percents[-1]), color="tab:red", alpha=0.08)
    axis.set(
        xlabel="budget, percent of what all entries cost",
        ylabel="relative error, percent",
        yscale="log",
    )
    axis.set_title("80 x 60, rank 4, low noise; rivals at their best setting")
    bottom = axis.get_ylim()[0] * 1.03
    words = "no theory for nuclear norms"
    axis.text(percents[0] + 0.5, bottom, words, va="bottom", color="tab:red")
    _plain_ticks(axis)
    axis.legend(fontsize=8)
    work.picture("figure1.png", figure)


def _budget_claims(
    curves: dict[str, list[Array]], shares: tuple[float, ...], runs: int
) -> list[Claim]:
    """Judge what the paper says of figure 1, at its first and its last budget."""
    literal, nuclear, ours = (curves[k] for k in ("literal_noisy_cur", "NNa", "noisy_cur"))
    rivals = ("NNa", "NNs", "CUR+")
    first = {k: gap(literal[0], curves[k][0], ratio=True) for k in rivals}
    near = gap(literal[-1], 1.1 * nuclear[-1], ratio=True)
    others = [k for k in curves if k != "noisy_cur"]
    lowest = [
        gap(x, min((curves[k][b] for k in others), key=np.mean), ratio=True)
        for b, x in enumerate(ours)
    ]
    size = ("80 x 60, rank 4, 10 runs", f"80 x 60, rank 4, {runs} runs")
    worst = max(lowest, key=lambda g: g.high)
    return [
        Claim(
            "1",
            f"at low budgets ({shares[0]:.0%}) noisyCUR is well below nuclear norms and CUR+",
            _compare(curves, ("literal_noisy_cur", *rivals, "NNa, not centred"), 0),
            _all(first.values()),
            *size,
            "; ".join(f"over {k}: {g}" for k, g in first.items()),
        ),
        Claim(
            "1",
            f"at high budgets ({shares[-1]:.0%}) it is comparable to nuclear norms (bar: 10 %)",
            _compare(curves, ("literal_noisy_cur", "NNa"), -1),
            near.below,
            *size,
            f"with the bar, {near}",
        ),
        Claim(
            "1",
            "(ours) noisy_cur is lowest at every budget",
            _compare(curves, ("noisy_cur", "literal_noisy_cur", "CUR+"), 0),
            _all(lowest),
            *size,
            f"over the best rival, nearest: {worst}",
        ),
    ]


def _all(gaps: Any) -> bool | None:
    """Return whether every gap is below, None while one is open."""
    below = [g.below for g in gaps]
    return False if False in below else (True if all(below) else None)


def _panels(
    number: str, work: Drawing, pair: tuple[Contest, Contest], runs: int, theirs: str
) -> list[Claim]:
    """Draw error against d for the low and the high noise, and judge the paper's claims."""
    figure, axes = plot.figure(columns=2, width=6.4, height=4.2)
    rows: list[tuple[Any, ...]] = []
    claims: list[Claim] = []
    for axis, c in zip(axes[0], pair, strict=True):
        found = _panel(number, c, work, runs)
        rows += found.rows()
        _draw_panel(axis, found)
        m, n = c.matrix(0).shape
        claims += found.claims(number, (theirs, f"{m} x {n}, {runs} runs"))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    work.picture(f"figure{number}.png", figure)
    header = ("panel", "method", "d", "runs", "error_percent", "error_percent_with_its_entries")
    work.csv(f"figure{number}.csv", header, rows)
    return claims


@dataclass(frozen=True, eq=False)
class Panel:
    """Errors of one contest: of `noisy_cur` left alone, and of every method at every setting, (2, runs) each."""

    contest: Contest
    grid: list[int]
    tried: Tried
    automatic: Array
    found: dict[str, dict[Any, Array]]
    large: bool  # not of low rank: rivals get the entries that they measured

    def means(self, name: str, put_in: bool = False) -> list[float]:
        """Mean errors of a method at its settings, in percent."""
        return [100 * float(self.found[name][s][int(put_in)].mean()) for s in self.tried[name][1]]

    def rows(self) -> list[tuple[Any, ...]]:
        """Rows of the figure's table."""
        table: list[tuple[Any, ...]] = []
        for name, (_, settings) in self.tried.items():
            each = zip(settings, self.means(name), self.means(name, True), strict=True)
            for setting, plain, put_in in each:
                runs = self.found[name][setting].shape[1]
                table.append((self.contest.name, name, str(setting), runs, plain, put_in))
        percent = 100 * float(self.automatic.mean())
        runs = len(self.automatic)
        alone = (self.contest.name, "noisy_cur, automatic", "", runs, percent, percent)
        return [*table, alone]

    def best(self, put_in: bool = False) -> dict[str, Array]:
        """Errors of every method at its best setting, one a run."""
        return {name: _best(found, int(put_in))[1] for name, found in self.found.items()}

    def claims(self, number: str, size: tuple[str, str]) -> list[Claim]:
        """Judge what the paper says of this panel."""
        literal = "literal_noisy_cur"
        settings = self.tried[literal][1]
        found = [self.found[literal][d][0] for d in settings]
        shape = _shape_claim(number, self.contest, settings, found, size)
        own = self.best(self.large)
        own.pop("noisy_cur")
        return [shape, *_rank_claims(number, self.contest, self.best(), own, self.automatic, size)]


def _panel(number: str, c: Contest, work: Drawing, runs: int) -> Panel:
    """Play every method of a panel."""
    A = c.matrix(0)
    large = A.size > SMALL
    count = 5 if work.quick else (8 if large else 12)
    grid = column_grid(c, A, count, max(2, c.most_columns(A) // 10))
    tried = _over_columns(c, A, grid, large, _penalty(work, c, A))
    automatic = _found(work, c, "automatic", "noisy_cur", [None], runs)[None][0]
    found = {
        name: _found(work, c, name, method, settings, runs)
        for name, (method, settings) in tried.items()
    }
    work.say(f"  figure {number}: {c.name} done")
    return Panel(c, grid, tried, automatic, found, large)


def _over_columns(
    c: Contest, A: Array, grid: list[int], large: bool, penalty: float | None
) -> Tried:
    """Return the methods of a panel, each with its settings; for our own curve fewer where the matrix is large."""
    few = grid[:: 3 if large else 2]
    halves = sorted({max(2, d // 2) for d in grid[:: 2 if large else 1]})
    tried: Tried = {
        "noisy_cur": ("noisy_cur", few if large else list(grid)),
        "literal_noisy_cur": ("literal_noisy_cur", list(grid)),
        "CUR+": ("CUR+", cur_plus_settings(c, A, halves)),
        "NNs": ("NNs", [(d, 0.5, True) for d in grid]),
        "NNa": ("NNa", [(1.0, penalty, True)]),
        "Chen": ("Chen", [(0.5, penalty, True)]),
    }
    if c.code_penalty is not None:
        code = "literal_noisy_cur, authors' code"
        tried[code] = (code, list(grid))
    if not large:
        tried["NNs, not centred"] = ("NNs", [(d, 0.5, False) for d in few])
        tried["NNa, not centred"] = ("NNa", [(1.0, penalty, False)])
    return tried


def _draw_panel(axis: Any, panel: Panel) -> None:
    """Draw the errors of a panel against the number of columns; what knows no columns as a level line."""
    automatic = 100 * float(panel.automatic.mean())
    words = "noisy_cur, automatic"
    axis.axhline(automatic, color="tab:blue", linewidth=2.2, alpha=0.5, label=words)
    for name, (method, settings) in panel.tried.items():
        put_in = panel.large and method != "noisy_cur"
        means, published = panel.means(name, put_in), panel.means(name)
        if method in ("NNa", "Chen"):
            at: list[int] = [panel.grid[0], panel.grid[-1]]
            means, published = means * 2, published * 2
        elif method == "CUR+":
            at, means = _least_at(settings, means)
            published = _least_at(settings, published)[1]
        else:
            at = [_at(setting) for setting in settings]
        _line(axis, name, at, means, f"{name}, its entries put in" if put_in else name)
        if put_in:
            color = STYLE[name][0]
            axis.plot(at, published, ":", color=color, linewidth=0.9, alpha=0.7)
    dotted = "; dotted: as published" if panel.large else ""
    axis.set(
        xlabel="d, noisy columns bought (CUR+: and rows searched)",
        ylabel="relative error, percent",
        title=panel.contest.name + dotted,
        yscale="log",
    )
    best = panel.best()
    drawn = [float(y) for line in axis.get_lines() for y in line.get_ydata()]
    worst = max(best["literal_noisy_cur"].mean(), best["CUR+"].mean())
    top = max(200 * float(worst), 2 * automatic)
    axis.set_ylim(0.85 * min(drawn), min(top, 1.1 * max(drawn)))
    _plain_ticks(axis)
    for line in axis.get_lines():
        named = not str(line.get_label()).startswith("_")
        if named and min(line.get_ydata()) > axis.get_ylim()[1]:
            line.set_label(f"{line.get_label()} (above)")


def _least_at(settings: list[Any], means: list[float]) -> tuple[list[int], list[float]]:
    """Return the columns of CUR+ and its error at the best number of rows with each."""
    at = sorted({_at(setting) for setting in settings})
    pairs = list(zip(settings, means, strict=True))
    return at, [min(e for s, e in pairs if _at(s) == d) for d in at]


def _at(setting: Any) -> Any:
    """Return the number of columns of a setting, or what stands in its place."""
    return setting if isinstance(setting, int) else setting[0]


def _shape_claim(
    number: str, c: Contest, grid: list[int], found: list[Array], size: tuple[str, str]
) -> Claim:
    """V-shaped: the error falls from the first d and rises to the last, beyond the noise of the runs."""
    means = [100 * float(e.mean()) for e in found]
    low = int(np.argmin(means))
    ends = [gap(found[low], found[end], ratio=True) for end in (0, -1)]
    holds = _all(ends) if 0 < low < len(means) - 1 else False
    words = f"lowest at d = {grid[low]} of {grid[0]}..{grid[-1]}: {means[low]:.3g} %, ends {means[0]:.3g} and {means[-1]:.3g} %"
    claim = f"{c.name}: the error of noisyCUR is v-shaped in d"
    interval = f"over the ends: {ends[0]}; {ends[1]}"
    return Claim(number, claim, words, holds, *size, interval)


def _rank_claims(
    number: str,
    c: Contest,
    best: dict[str, Array],
    own: dict[str, Array],
    automatic: Array,
    size: tuple[str, str],
) -> list[Claim]:
    """Judge the order of the methods: the paper's as published, ours against rivals with their entries put in."""
    nuclear = min((best[k] for k in ("NNa", "NNs", "Chen")), key=np.mean)
    literal, cur = best["literal_noisy_cur"], best["CUR+"]
    rival = min(own, key=lambda k: float(own[k].mean()))
    shown = [k for k in best if k.startswith(("NN", "Chen"))]
    words = ", ".join(f"{k} {100 * best[k].mean():.3g}" for k in shown)
    first, second, third = (
        gap(literal, nuclear, ratio=True),
        gap(literal, cur, ratio=True),
        gap(automatic, own[rival], ratio=True),
    )
    return [
        Claim(
            number,
            f"{c.name}: noisyCUR at its best d is below the nuclear norms (centred and tuned here)",
            f"literal_noisy_cur {100 * literal.mean():.3g}; {words} %",
            first.below,
            *size,
            str(first),
        ),
        Claim(
            number,
            f"{c.name}: noisyCUR at its best d is below CUR+ (its rows searched)",
            f"literal_noisy_cur {100 * literal.mean():.3g}, CUR+ {100 * cur.mean():.3g} %",
            second.below,
            *size,
            str(second),
        ),
        Claim(
            number,
            f"{c.name}: (ours) noisy_cur, automatic, is below every rival at its best, all with their entries put in",
            f"{100 * automatic.mean():.3g} % against {100 * own[rival].mean():.3g} % of {rival}",
            third.below,
            *size,
            str(third),
        ),
    ]


def figure2(work: Drawing) -> list[Claim]:
    """Synthetic 80 x 60, budget 15 %, low and high noise."""
    pair = contests("synthetic", synthetic(), 4)
    return _panels("2", work, pair, work.runs(2, 20), "80 x 60, rank 4, 100 runs")


def figure3(work: Drawing) -> list[Claim]:
    """Jester, the users who rated all jokes, budget 11 %."""
    A = jester(200 if work.quick else None)
    pair = contests("jester", lambda seed: A, 10)
    return _panels("3", work, pair, work.runs(1, 10), "7200 x 100, 10 runs")


def figure4(work: Drawing) -> list[Claim]:
    """MovieLens-100K completed by iterative SVD, budget 10.6 %."""
    A = movielens(movies=50 if work.quick else None)
    pair = contests("movielens", lambda seed: A, 10)
    theirs = "1682 x 943, completed by Cho and Reyhani's method, 10 runs"
    return _panels("4", work, pair, work.runs(1, 10), theirs)


def timing(work: Drawing) -> list[Claim]:
    """CPU seconds as the matrix grows: what the paper says in words of noisyCUR and nuclear norms."""
    runs = work.runs(1, 5)
    factors = (1, 2) if work.quick else (1, 2, 4, 8)
    names = ("literal_noisy_cur", "noisy_cur", "CUR+", "NNa", "NNs")

    def seconds(key: tuple[str, int, int]) -> float:
        name, factor, seed = key
        c = contests("synthetic", synthetic(80 * factor, 60 * factor), 4)[0]
        A = c.matrix(seed)
        d = max(8, c.most_columns(A) // 2)
        settings = {"CUR+": (d // 2, 8), "NNa": (1.0, 0.5, True), "NNs": (d, 0.5, True)}
        plan = METHODS[name](c, A, seed, settings.get(name, d))
        begun = time.process_time()
        played(c, plan, A, seed)
        return time.process_time() - begun

    seconds(("noisy_cur", 1, 0))  # what is compiled once is not counted
    keys = [(name, f, t) for f in factors for name in names for t in range(runs)]
    each = work.each("seconds", keys, seconds)
    found = {
        name: np.array([[each[name, f, t] for t in range(runs)] for f in factors]) for name in names
    }
    figure, axis = new_panel(width=6.0)
    for name in names:
        _line(axis, name, [80 * f for f in factors], found[name].mean(axis=1))
    axis.set(xscale="log", yscale="log", xlabel="rows (columns: three quarters of them)")
    axis.set(ylabel="CPU seconds of one run", title="rank 4, budget 15 %, one penalty each")
    axis.set_xticks([80 * f for f in factors], [str(80 * f) for f in factors])
    axis.minorticks_off()
    axis.legend(fontsize=8)
    work.picture("timing.png", figure)
    rows = [(name, 80 * f, t, each[name, f, t]) for name, f, t in keys]
    work.csv("timing.csv", ("method", "rows", "run", "seconds"), rows)
    size = ("said in words, ADMM", f"to {80 * factors[-1]} x {60 * factors[-1]}, {runs} runs")
    claims = []
    for rival in ("NNa", "NNs"):
        times = gap(5 * found["literal_noisy_cur"][-1], found[rival][-1], ratio=True)
        words = f"{found['literal_noisy_cur'][-1].mean():.3g} s against {found[rival][-1].mean():.3g} s at one penalty"
        claim = f"noisyCUR is much faster than {rival} (bar: five times)"
        claims.append(Claim("timing", claim, words, times.below, *size, f"with the bar, {times}"))
    return claims


def coherent(exponent: float, m: int = 80, n: int = 60, rank: int = 4) -> Any:
    """Return matrices of low rank whose row i weighs (i + 1)^-exponent: the larger, the more coherent the rows."""

    def make(seed: int) -> Array:
        rng = np.random.default_rng([seed, round(100 * exponent)])
        weights = rng.permutation((np.arange(m) + 1.0) ** -exponent)
        U = rng.standard_normal((m, rank)) * weights[:, None]
        A = U @ rng.standard_normal((rank, n))
        return np.asarray(A * (math.sqrt(A.size) / np.linalg.norm(A)))

    return make


def coherence(work: Drawing) -> list[Claim]:
    """Error as rows become coherent: Theorem 1 asks for incoherent columns alone, nuclear norms for both."""
    runs = work.runs(2, 10)
    exponents = (0.0, 1.0) if work.quick else (0.0, 0.25, 0.5, 1.0, 1.5)
    names = ("literal_noisy_cur", "noisy_cur", "CUR+", "NNa", "Chen")
    found: dict[str, list[Array]] = {name: [] for name in names}
    measured = []
    for a in exponents:
        c = Contest(f"rows of exponent {a:g}", coherent(a), 0.2, 0.05, 0.3, 4)
        A = c.matrix(0)
        left = np.linalg.svd(A)[0][:, :4]
        measured.append(float(np.max(np.sum(left**2, axis=1)) * len(A) / 4))
        grid = column_grid(c, A, 3 if work.quick else 6, 8)
        tried: dict[str, list[Any]] = {
            "literal_noisy_cur": grid,
            "noisy_cur": [None],
            "CUR+": cur_plus_settings(c, A, sorted({max(4, d // 2) for d in grid[::2]})),
            "NNa": [(1.0, None, False)],
            "Chen": [(0.5, None, False)],
        }
        for name in names:
            found[name].append(_best(_found(work, c, name, name, tried[name], runs))[1])
    figure, axis = new_panel(width=6.0)
    for name in names:
        _line(axis, name, measured, [100 * float(e.mean()) for e in found[name]])
    axis.set(yscale="log", xlabel="row coherence (1: none; 20: one row has a direction of its own)")
    axis.set(
        ylabel="relative error, percent", title="80 x 60, rank 4, budget 30 %, columns incoherent"
    )
    axis.legend(fontsize=8)
    work.picture("coherence.png", figure)
    rows = [
        (name, a, mu, 100 * float(e.mean()))
        for name in names
        for a, mu, e in zip(exponents, measured, found[name], strict=True)
    ]
    work.csv("coherence.csv", ("method", "exponent", "coherence", "error_percent"), rows)
    growth = {name: found[name][-1] / found[name][0] for name in names}
    size = ("a theorem, no experiment", f"80 x 60, rank 4, {runs} runs")
    less = gap(growth["literal_noisy_cur"], growth["NNa"], ratio=True)
    stays = gap(growth["literal_noisy_cur"], np.full(runs, 1.5), ratio=True)
    words = ", ".join(f"{name} {g.mean():.2f}" for name, g in growth.items())
    return [
        Claim(
            "coherence",
            "noisyCUR tolerates coherent rows (bar: its error grows by less than half)",
            f"error at the largest over that at the smallest coherence: {words}",
            stays.below,
            *size,
            f"with the bar, {stays}",
        ),
        Claim(
            "coherence",
            "its error grows less with row coherence than that of nuclear norms",
            f"growth: {words}",
            less.below,
            *size,
            str(less),
        ),
    ]


def _penalty(work: Drawing, c: Contest, A: Array) -> float | None:
    """Return the nuclear norm's penalty: chosen on held-out entries, or where that is slow with the truth of one run."""
    if A.size <= SMALL:
        return None
    top = (
        float(np.std(A)) * math.sqrt(c.share) * (math.sqrt(A.shape[0]) + math.sqrt(A.shape[1])) / 2
    )
    factors = (0.25,) if work.quick else (1.0, 0.25, 0.06)
    tried: list[Any] = [(1.0, top * factor, True) for factor in factors]
    return float(_best(_found(work, c, "penalty of NNa", "NNa", tried, 1))[0][1])


def _best(found: dict[Any, Array], which: int = 0) -> tuple[Any, Array]:
    """Return the setting of least mean error, and its errors: as published, or (1) with its entries put in."""
    setting = min(found, key=lambda s: float(found[s][which].mean()))
    return setting, found[setting][which]


def _compare(curves: dict[str, list[Array]], names: tuple[str, ...], at: int) -> str:
    return ", ".join(f"{name} {curves[name][at].mean():.3g} %" for name in names)


FIGURES: dict[str, Figure] = {
    "1": Figure(figure1, 1.5),
    "2": Figure(figure2, 5),
    "3": Figure(figure3, 14),
    "4": Figure(figure4, 56),
    "timing": Figure(timing, 0.8),
    "coherence": Figure(coherence, 1.3),
}
PICTURES = {
    "1": ["figure1.png"],
    "2": ["figure2.png"],
    "3": ["figure3.png"],
    "4": ["figure4.png"],
    "timing": ["timing.png"],
    "coherence": ["coherence.png"],
}
