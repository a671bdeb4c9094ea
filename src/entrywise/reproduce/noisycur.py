"""Figures 1-4 of the noisyCUR paper: error against the budget, and against the number of noisy columns.

Every method is drawn as the paper has it and, where that is unfair to it, tuned: nuclear norms are centred and their
penalty chosen on held-out entries, CUR+ has its basis sorted, the literal algorithm chooses lambda by leave-one-out.
``noisy_cur`` with nothing tuned is a level line at the split it chose, and a curve over fixed splits. Where a matrix is not
of low rank it corrects the entries it saw by what was measured there, which the rivals, as published, do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from entrywise.reproduce._noisycur import (
    SMALL,
    Contest,
    column_grid,
    contests,
    errors,
    jester,
    movielens,
    synthetic,
)
from entrywise.reproduce.figures import Claim, Figure, new_figure, save_csv, save_figure
from entrywise.types import Array

Say = Callable[[str], None]
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


def figure1(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Error against the budget on the synthetic set, low noise; shaded where nuclear norms have no theory."""
    runs = range(2 if quick else 10)
    shares = (0.1, 0.2, 0.4) if quick else (0.08, 0.12, 0.16, 0.22, 0.3, 0.4, 0.5, 0.65)
    base = contests("synthetic", synthetic(), 4)[0]
    rows: list[tuple[Any, ...]] = []
    curves: dict[str, list[float]] = {}
    for share in shares:
        contest = replace(base, name=f"budget {share:.0%}", share=share)
        for name, (method, settings) in _over_budgets(contest, quick).items():
            setting, best = _best(errors(contest, method, settings, runs))
            curves.setdefault(name, []).append(100 * best)
            rows.append((share, name, setting, 100 * best))
        say(f"figure 1: budget {share:.0%} of the matrix")
    save_csv(folder / "figure1.csv", ("budget", "method", "best setting", "error_percent"), rows)
    _draw_budgets(folder / "figure1.png", [100 * share for share in shares], curves)
    return _budget_claims(curves)


def _over_budgets(c: Contest, quick: bool) -> Tried:
    """Return the methods of figure 1, each with the settings of which the best is drawn."""
    grid = column_grid(c, c.matrix(0), 4 if quick else 8, 4)
    few = grid[:: 2 if quick else 3]  # for what is slow
    halves = [d for d in _even(grid) if d // 2 >= 4] or [8]
    return {
        "noisy_cur": ("noisy_cur", [None]),
        "literal_noisy_cur": ("literal_noisy_cur", list(grid)),
        "CUR+": ("CUR+", halves),
        "NNs": ("NNs", [(d, 0.5, True) for d in few]),
        "NNa": ("NNa", [(1.0, None, True)]),
        "NNa, not centred": ("NNa", [(1.0, None, False)]),
    }


def _draw_budgets(path: Path, percents: list[float], curves: dict[str, list[float]]) -> None:
    figure, axes = new_figure(width=6.2, height=4.2)
    axis = axes[0, 0]
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
    save_figure(path, figure)


def _budget_claims(curves: dict[str, list[float]]) -> list[Claim]:
    """Judge what the paper says of figure 1, at its first and its last budget."""
    literal, nuclear, ours = (curves[k] for k in ("literal_noisy_cur", "NNa", "noisy_cur"))
    last = len(ours) - 1
    ahead = all(literal[0] < curves[k][0] for k in ("NNa", "NNs", "CUR+"))
    near = literal[last] <= 1.1 * nuclear[last]
    lowest = all(x <= min(v[k] for v in curves.values()) * 1.0001 for k, x in enumerate(ours))
    rivals = ("literal_noisy_cur", "NNa", "NNa, not centred", "NNs", "CUR+")
    return [
        Claim(
            "1",
            "at low budgets noisyCUR is well below nuclear norms and CUR+",
            _compare(curves, rivals, 0),
            ahead,
        ),
        Claim(
            "1",
            "at high budgets it is comparable to nuclear norms",
            _compare(curves, ("literal_noisy_cur", "NNa"), last),
            near,
        ),
        Claim(
            "1",
            "(ours) noisy_cur is lowest at every budget",
            _compare(curves, ("noisy_cur", "literal_noisy_cur"), 0),
            lowest,
        ),
    ]


def _panels(
    number: str, folder: Path, quick: bool, say: Say, pair: tuple[Contest, Contest], runs: range
) -> list[Claim]:
    """Draw error against d for the low and the high noise, and judge the paper's claims."""
    figure, axes = new_figure(columns=2, width=6.4, height=4.2)
    rows: list[tuple[Any, ...]] = []
    claims: list[Claim] = []
    for axis, c in zip(axes[0], pair, strict=True):
        found = _panel(number, c, quick, say, runs)
        rows += found.rows()
        _draw_panel(axis, found)
        claims += found.claims(number)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    save_figure(folder / f"figure{number}.png", figure)
    header = ("panel", "method", "d", "runs", "error_percent")
    save_csv(folder / f"figure{number}.csv", header, rows)
    return claims


@dataclass(frozen=True, eq=False)
class Panel:
    """Errors of one contest: of `noisy_cur` left alone, and of every method at every setting, one number a run."""

    contest: Contest
    grid: list[int]
    tried: Tried
    automatic: Array
    found: dict[str, dict[Any, Array]]

    def means(self, name: str) -> list[float]:
        """Mean errors of a method at its settings, in percent."""
        return [100 * float(self.found[name][s].mean()) for s in self.tried[name][1]]

    def rows(self) -> list[tuple[Any, ...]]:
        """Rows of the figure's table."""
        table: list[tuple[Any, ...]] = []
        for name, (_, settings) in self.tried.items():
            for setting, percent in zip(settings, self.means(name), strict=True):
                runs = len(self.found[name][setting])
                table.append((self.contest.name, name, _at(setting), runs, percent))
        percent = 100 * float(self.automatic.mean())
        return [
            *table,
            (self.contest.name, "noisy_cur, automatic", None, len(self.automatic), percent),
        ]

    def best(self) -> dict[str, float]:
        """Error of every method at its best setting."""
        return {name: _best(found)[1] for name, found in self.found.items()}

    def claims(self, number: str) -> list[Claim]:
        """Judge what the paper says of this panel."""
        literal = "literal_noisy_cur"
        shape = _shape_claims(number, self.contest, self.tried[literal][1], self.means(literal))
        automatic = float(self.automatic.mean())
        return shape + _rank_claims(number, self.contest, self.best(), automatic)


def _panel(number: str, c: Contest, quick: bool, say: Say, runs: range) -> Panel:
    """Play every method of a panel."""
    A = c.matrix(0)
    large = A.size > SMALL
    count = 5 if quick else (8 if large else 12)
    grid = column_grid(c, A, count, max(2, c.most_columns(A) // 10))
    tried = _over_columns(c, grid, large, _penalty(c, A, quick))
    automatic = errors(c, "noisy_cur", [None], runs)[None]
    found = {}
    for name, (method, settings) in tried.items():
        found[name] = errors(c, method, settings, runs)
        say(f"figure {number}: {c.name}, {name}")
    return Panel(c, grid, tried, automatic, found)


def _over_columns(c: Contest, grid: list[int], large: bool, penalty: float | None) -> Tried:
    """Return the methods of a panel, each with its settings; fewer where a matrix is large and the method slow."""
    few = grid[:: 3 if large else 2]
    halves = [d for d in _even(grid[:: 2 if large else 1]) if d >= 4]
    tried: Tried = {
        "noisy_cur": ("noisy_cur", few if large else list(grid)),
        "literal_noisy_cur": ("literal_noisy_cur", list(grid)),
        "CUR+": ("CUR+", halves),
        "NNs": ("NNs", [(d, 0.5, True) for d in few]),
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
        if method in ("NNa", "Chen"):
            _line(axis, name, [panel.grid[0], panel.grid[-1]], panel.means(name) * 2)
        else:
            _line(axis, name, [_at(setting) for setting in settings], panel.means(name))
    axis.set(
        xlabel="d, noisy columns bought",
        ylabel="relative error, percent",
        title=panel.contest.name,
        yscale="log",
    )
    best = panel.best()
    drawn = [float(y) for line in axis.get_lines() for y in line.get_ydata()]
    top = max(200 * max(best["literal_noisy_cur"], best["CUR+"]), 2 * automatic)
    axis.set_ylim(0.85 * min(drawn), min(top, 1.1 * max(drawn)))
    _plain_ticks(axis)
    for line in axis.get_lines():
        if min(line.get_ydata()) > axis.get_ylim()[1]:
            line.set_label(f"{line.get_label()} (above)")


def _at(setting: Any) -> Any:
    """Return the number of columns of a setting, or what stands in its place."""
    return setting if isinstance(setting, int) else setting[0]


def _shape_claims(number: str, c: Contest, grid: list[int], means: list[float]) -> list[Claim]:
    low = int(np.argmin(means))
    inner = 0 < low < len(means) - 1
    words = f"lowest at d = {grid[low]} of {grid[0]}..{grid[-1]}: {means[low]:.3g} %, ends {means[0]:.3g} and {means[-1]:.3g} %"
    return [Claim(number, f"{c.name}: the error of noisyCUR is v-shaped in d", words, inner)]


def _rank_claims(number: str, c: Contest, best: dict[str, float], automatic: float) -> list[Claim]:
    uncentred = {k: v for k, v in best.items() if k.endswith("not centred")}
    fair = {k: best[k] for k in ("NNa", "NNs", "Chen")}
    literal, cur = best["literal_noisy_cur"], best["CUR+"]
    rival = min(v for k, v in best.items() if k != "noisy_cur")
    words = ", ".join(f"{k} {100 * v:.3g}" for k, v in {**fair, **uncentred}.items())
    return [
        Claim(
            number,
            f"{c.name}: noisyCUR at its best d is below the nuclear norms (centred and tuned here)",
            f"literal_noisy_cur {100 * literal:.3g}; {words} %",
            literal < min(fair.values()),
        ),
        Claim(
            number,
            f"{c.name}: noisyCUR at its best d is below CUR+",
            f"literal_noisy_cur {100 * literal:.3g}, CUR+ {100 * cur:.3g} %",
            literal < cur,
        ),
        Claim(
            number,
            f"{c.name}: (ours) noisy_cur, automatic, is below every rival at its best",
            f"{100 * automatic:.3g} % against {100 * rival:.3g} %",
            automatic < rival,
        ),
    ]


def figure2(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Synthetic 80 x 60, budget 15 %, low and high noise."""
    return _panels(
        "2", folder, quick, say, contests("synthetic", synthetic(), 4), range(2 if quick else 20)
    )


def figure3(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """Jester, the 7200 users who rated all jokes (quick: 200 of them), budget 11 %."""
    A = jester(200 if quick else None)
    return _panels(
        "3", folder, quick, say, contests("jester", lambda seed: A, 10), range(1 if quick else 10)
    )


def figure4(folder: Path, quick: bool, say: Say) -> list[Claim]:
    """MovieLens-100K completed by iterative SVD (quick: its 50 most rated movies), budget 10.6 %."""
    A = movielens(movies=50 if quick else None)
    return _panels(
        "4",
        folder,
        quick,
        say,
        contests("movielens", lambda seed: A, 10),
        range(1 if quick else 10),
    )


def _penalty(c: Contest, A: Array, quick: bool) -> float | None:
    """Return the nuclear norm's penalty: chosen on held-out entries, or where that is slow with the truth of one run."""
    if A.size <= SMALL:
        return None
    top = (
        float(np.std(A)) * math.sqrt(c.share) * (math.sqrt(A.shape[0]) + math.sqrt(A.shape[1])) / 2
    )
    tried = [(1.0, top * factor, True) for factor in ((0.25,) if quick else (1.0, 0.25, 0.06))]
    return float(_best(errors(c, "NNa", tried, range(1)))[0][1])


def _best(found: dict[Any, Array]) -> tuple[Any, float]:
    setting = min(found, key=lambda s: float(found[s].mean()))
    return setting, float(found[setting].mean())


def _even(grid: list[int]) -> list[int]:
    """Return the grid for CUR+, which buys half as many columns and half as many rows."""
    return sorted({2 * (d // 2) for d in grid if d >= 2})


def _compare(curves: dict[str, list[float]], names: tuple[str, ...], at: int) -> str:
    return ", ".join(f"{name} {curves[name][at]:.3g} %" for name in names)


FIGURES: dict[str, Figure] = {"1": figure1, "2": figure2, "3": figure3, "4": figure4}
