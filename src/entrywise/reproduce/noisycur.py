"""Figures 1-4 of the noisyCUR paper: error against the budget, and against the number of noisy columns.

Every method is drawn as the paper has it and, where that is unfair to it, tuned: nuclear norms are centred and their
penalty chosen on held-out entries, CUR+ has its basis sorted, the literal algorithm chooses lambda by leave-one-out.
``noisy_cur`` with nothing tuned is a level line at the split it chose, and a curve over fixed splits. Where a matrix is not
of low rank it corrects the entries it saw by what was measured there, which the rivals, as published, do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    curves: dict[str, list[float]] = {
        name: []
        for name in ("noisy_cur", "literal_noisy_cur", "CUR+", "NNs", "NNa", "NNa, not centred")
    }
    for share in shares:
        c = Contest(
            f"budget {share:.0%}",
            base.matrix,
            base.column_noise,
            base.entry_noise,
            share,
            base.rank,
        )
        A = c.matrix(0)
        grid = column_grid(c, A, 4 if quick else 8, 4)
        found = {
            "noisy_cur": errors(c, "noisy_cur", [None], runs),
            "literal_noisy_cur": errors(c, "literal_noisy_cur", grid, runs),
            "CUR+": errors(c, "CUR+", [d for d in _even(grid) if d // 2 >= 4] or [8], runs),
            "NNs": errors(c, "NNs", [(d, 0.5, True) for d in grid[:: 2 if quick else 3]], runs),
            "NNa": errors(c, "NNa", [(1.0, None, True)], runs),
            "NNa, not centred": errors(c, "NNa", [(1.0, None, False)], runs),
        }
        for name, by_setting in found.items():
            setting, best = _best(by_setting)
            curves[name].append(100 * best)
            rows.append((share, name, setting, 100 * best))
        say(f"figure 1: budget {share:.0%} of the matrix")
    save_csv(folder / "figure1.csv", ("budget", "method", "best setting", "error_percent"), rows)
    limit = (80 + 60) * 4 * math.log(80 + 60) / 4800
    figure, axes = new_figure(width=6.2, height=4.2)
    axis = axes[0, 0]
    for name, values in curves.items():
        _line(axis, name, [100 * s for s in shares], values)
    axis.axvspan(100 * shares[0], min(100 * limit, 100 * shares[-1]), color="tab:red", alpha=0.08)
    axis.set(
        xlabel="budget, percent of what all entries cost",
        ylabel="relative error, percent",
        yscale="log",
    )
    axis.set_title("80 x 60, rank 4, low noise; rivals at their best setting")
    bottom = axis.get_ylim()[0] * 1.03
    axis.text(
        100 * shares[0] + 0.5, bottom, "no theory for nuclear norms", va="bottom", color="tab:red"
    )
    _plain_ticks(axis)
    axis.legend(fontsize=8)
    save_figure(folder / "figure1.png", figure)
    first, last = 0, len(shares) - 1
    ahead = all(
        curves["literal_noisy_cur"][first] < curves[k][first] for k in ("NNa", "NNs", "CUR+")
    )
    near = curves["literal_noisy_cur"][last] <= 1.1 * curves["NNa"][last]
    ours = all(
        curves["noisy_cur"][k] <= min(v[k] for v in curves.values()) * 1.0001
        for k in range(len(shares))
    )
    return [
        Claim(
            "1", "at low budgets noisyCUR is well below nuclear norms and CUR+",
            _compare(curves, ("literal_noisy_cur", "NNa", "NNa, not centred", "NNs", "CUR+"), first), ahead,
        ),
        Claim("1", "at high budgets it is comparable to nuclear norms", _compare(curves, ("literal_noisy_cur", "NNa"), last), near),
        Claim("1", "(ours) noisy_cur is lowest at every budget", _compare(curves, ("noisy_cur", "literal_noisy_cur"), first), ours),
    ]  # fmt: skip


def _panels(
    number: str, folder: Path, quick: bool, say: Say, pair: tuple[Contest, Contest], runs: range
) -> list[Claim]:
    """Draw error against d for the low and the high noise, and judge the paper's claims."""
    figure, axes = new_figure(columns=2, width=6.4, height=4.2)
    rows: list[tuple[Any, ...]] = []
    claims: list[Claim] = []
    for axis, c in zip(axes[0], pair, strict=True):
        A = c.matrix(0)
        large = A.size > SMALL
        grid = column_grid(
            c, A, 5 if quick else (8 if large else 12), max(2, c.most_columns(A) // 10)
        )
        few = grid[:: 3 if large else 2]  # for what is slow
        penalty = _penalty(c, A, quick)
        plan: dict[str, tuple[str, list[Any]]] = {
            "noisy_cur": ("noisy_cur", few if large else list(grid)),
            "literal_noisy_cur": ("literal_noisy_cur", list(grid)),
            "CUR+": ("CUR+", [d for d in _even(grid[:: 2 if large else 1]) if d >= 4]),
            "NNs": ("NNs", [(d, 0.5, True) for d in few]),
            "NNa": ("NNa", [(1.0, penalty, True)]),
            "Chen": ("Chen", [(0.5, penalty, True)]),
        }
        if c.code_penalty is not None:
            plan["literal_noisy_cur, authors' code"] = (
                "literal_noisy_cur, authors' code",
                list(grid),
            )
        if not large:
            plan["NNs, not centred"] = ("NNs", [(d, 0.5, False) for d in few])
            plan["NNa, not centred"] = ("NNa", [(1.0, penalty, False)])
        best: dict[str, float] = {}
        automatic = float(errors(c, "noisy_cur", [None], runs)[None].mean())
        axis.axhline(
            100 * automatic,
            color="tab:blue",
            linewidth=2.2,
            alpha=0.5,
            label="noisy_cur, automatic",
        )
        for name, (method, settings) in plan.items():
            found = errors(c, method, settings, runs)
            say(f"figure {number}: {c.name}, {name}")
            best[name] = _best(found)[1]
            means = [100 * float(found[s].mean()) for s in settings]
            rows += [
                (c.name, name, s if isinstance(s, int) else s[0], len(found[s]), e)
                for s, e in zip(settings, means, strict=True)
            ]
            if method in ("NNa", "Chen"):
                _line(axis, name, [grid[0], grid[-1]], means * 2)
            else:
                _line(axis, name, [s if isinstance(s, int) else s[0] for s in settings], means)
            if name == "literal_noisy_cur":
                claims += _shape_claims(number, c, settings, means)
        rows.append((c.name, "noisy_cur, automatic", None, len(runs), 100 * automatic))
        axis.set(
            xlabel="d, noisy columns bought",
            ylabel="relative error, percent",
            title=c.name,
            yscale="log",
        )
        drawn = [float(y) for line in axis.get_lines() for y in line.get_ydata()]
        top = max(200 * max(best["literal_noisy_cur"], best["CUR+"]), 200 * automatic)
        axis.set_ylim(0.85 * min(drawn), min(top, 1.1 * max(drawn)))
        _plain_ticks(axis)
        for line in axis.get_lines():
            if min(line.get_ydata()) > axis.get_ylim()[1]:
                line.set_label(f"{line.get_label()} (above)")
        claims += _rank_claims(number, c, best, automatic)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    save_figure(folder / f"figure{number}.png", figure)
    save_csv(
        folder / f"figure{number}.csv", ("panel", "method", "d", "runs", "error_percent"), rows
    )
    return claims


def _shape_claims(number: str, c: Contest, grid: list[int], means: list[float]) -> list[Claim]:
    low = int(np.argmin(means))
    inner = 0 < low < len(means) - 1
    words = f"lowest at d = {grid[low]} of {grid[0]}..{grid[-1]}: {means[low]:.3g} %, ends {means[0]:.3g} and {means[-1]:.3g} %"
    return [Claim(number, f"{c.name}: the error of noisyCUR is v-shaped in d", words, inner)]


def _rank_claims(number: str, c: Contest, best: dict[str, float], automatic: float) -> list[Claim]:
    uncentred = {k: v for k, v in best.items() if k.endswith("not centred")}
    fair = {k: best[k] for k in ("NNa", "NNs", "Chen")}
    words = ", ".join(f"{k} {100 * v:.3g}" for k, v in {**fair, **uncentred}.items())
    return [
        Claim(
            number, f"{c.name}: noisyCUR at its best d is below the nuclear norms (centred and tuned here)",
            f"literal_noisy_cur {100 * best['literal_noisy_cur']:.3g}; {words} %", best["literal_noisy_cur"] < min(fair.values()),
        ),
        Claim(
            number, f"{c.name}: noisyCUR at its best d is below CUR+",
            f"literal_noisy_cur {100 * best['literal_noisy_cur']:.3g}, CUR+ {100 * best['CUR+']:.3g} %", best["literal_noisy_cur"] < best["CUR+"],
        ),
        Claim(
            number, f"{c.name}: (ours) noisy_cur, automatic, is below every rival at its best",
            f"{100 * automatic:.3g} % against {100 * min(v for k, v in best.items() if k != 'noisy_cur'):.3g} %",
            automatic < min(v for k, v in best.items() if k != "noisy_cur"),
        ),
    ]  # fmt: skip


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
