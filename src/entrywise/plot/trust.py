"""How far an answer can be trusted, as pictures: intervals against the truth, coverage promised and kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entrywise.observations import Observations
from entrywise.plot.style import COLOURS, CYCLE, axes_of, quiet
from entrywise.results import LowRank

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def intervals(
    low: ArrayLike, high: ArrayLike, truth: ArrayLike, *, most: int = 60, ax: Any = None
) -> Any:
    """Draw some intervals beside the answers that came, those that missed in another colour.

    Parameters
    ----------
    low, high, truth : ndarray of shape (t,)
    most : int
        How many are drawn, evenly spread over the sorted truth.
    """
    ax = axes_of(ax)
    lo, hi, true = (np.asarray(x, np.float64).ravel() for x in (low, high, truth))
    order = np.argsort(true, kind="stable")
    order = order[
        np.unique(np.linspace(0, len(true) - 1, min(most, len(true))).round().astype(int))
    ]
    x = np.arange(len(order))
    hit = (lo <= true) & (true <= hi)
    for right, colour, name in ((True, "ours", "covers"), (False, "alarm", "misses")):
        at = hit[order] == right
        ax.vlines(
            x[at],
            lo[order][at],
            hi[order][at],
            color=COLOURS[colour],
            alpha=0.6,
            linewidth=2.2,
            label=name,
        )
    ax.scatter(x, true[order], s=10, c=COLOURS["truth"], zorder=3, label="answer")
    ax.legend(frameon=False)
    ax.set_xticks([])
    return quiet(
        ax, f"{hit.mean():.0%} of {len(true)} intervals cover", "cells, by their answer", "value"
    )


def coverage(
    found: LowRank | Mapping[str, LowRank],
    held_out: Observations,
    *,
    levels: ArrayLike = LEVELS,
    ax: Any = None,
) -> Any:
    r"""Draw the share of intervals that covered answers the fit never saw against the level that was promised.

    Parameters
    ----------
    found : LowRank, or mapping from a name to one
        A result with intervals, or several to compare.
    held_out : Observations
        Answers that it was not made from.
    levels : ndarray
        Levels at which the share is drawn, with two standard errors :math:`2 \sqrt{p (1 - p) / t}`.
    """
    ax = axes_of(ax, width=4.2)
    promised = np.asarray(levels, np.float64)
    ax.plot([0, 1], [0, 1], color=COLOURS["truth"], linestyle="--", linewidth=1, label="promised")
    named = found if isinstance(found, Mapping) else {"kept": found}
    for k, (name, fit) in enumerate(named.items()):
        kept = np.array([_share(fit, held_out, float(level)) for level in promised])
        _line(ax, promised, kept, len(held_out), name, CYCLE[k % len(CYCLE)])
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.legend(frameon=False)
    title = f"Coverage promised and kept on {len(held_out):,} answers"
    return quiet(ax, title, "level promised", "share that covered")


def calibration(said: ArrayLike, right: ArrayLike, *, bins: int = 10, ax: Any = None) -> Any:
    r"""Draw how often something happened against the probability that was said, in bins of equal size.

    Parameters
    ----------
    said : ndarray of shape (t,)
        Probabilities, or how sure one was.
    right : ndarray of bool of shape (t,)
        Whether it happened.
    bins : int
        Bins, each drawn with two standard errors :math:`2 \sqrt{p (1 - p) / t}`.
    """
    ax = axes_of(ax, width=4.2)
    chance, came = np.asarray(said, np.float64).ravel(), np.asarray(right, bool).ravel()
    groups = np.array_split(np.argsort(chance, kind="stable"), min(bins, max(len(chance), 1)))
    means = np.array([chance[group].mean() for group in groups])
    shares = np.array([came[group].mean() for group in groups])
    ax.plot([0, 1], [0, 1], color=COLOURS["truth"], linestyle="--", linewidth=1, label="said")
    _line(ax, means, shares, len(chance) / len(groups), "happened", COLOURS["ours"])
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.legend(frameon=False)
    title = f"Said, and what happened, in {len(chance):,} cases"
    return quiet(ax, title, "probability that was said", "share that happened")


def _line(ax: Any, x: Any, shares: Any, count: float, name: str, colour: str) -> None:
    """Draw shares of `count` cases each, with two standard errors."""
    error = 2.0 * np.sqrt(shares * (1.0 - shares) / max(count, 1))
    ax.errorbar(x, shares, error, fmt="o-", color=colour, markersize=4, label=name)


def _share(found: LowRank, held_out: Observations, level: float) -> float:
    low, high = found.interval(held_out.rows, held_out.cols, level)
    return float(np.mean((low <= held_out.values) & (held_out.values <= high)))
