"""Rows or workers with intervals: who is surely better, who cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entrywise.plot.style import COLOURS, CYCLE, axes_of, quiet

MOST_ROWS = 40  # more names than that cannot be read


def scores(
    mean: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    tier: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draw scores with their intervals, the best on top, tiers in colour, the truth as a grey line where it is known.

    Parameters
    ----------
    mean, low, high : ndarray of shape (m,)
    names : sequence of str, optional
    tier : ndarray of int of shape (m,), optional
        Rows of one tier cannot be told apart and share a colour.
    truth : ndarray of shape (m,), optional
    """
    m, lo, hi = (np.asarray(x, np.float64) for x in (mean, low, high))
    order = np.argsort(-m, kind="stable")[:MOST_ROWS]
    ax = axes_of(ax, height=max(2.4, 0.22 * len(order) + 1.2))
    y = np.arange(len(order))
    tiers = np.zeros(len(m), np.int64) if tier is None else np.asarray(tier, np.int64)
    colours = [CYCLE[int(t) % len(CYCLE)] for t in tiers[order] - tiers.min(initial=0)]
    ax.hlines(y, lo[order], hi[order], colors=colours, linewidth=3.2, alpha=0.45)
    ax.scatter(m[order], y, c=colours, s=22, zorder=3, label="score")
    if truth is not None:
        true = np.asarray(truth, np.float64)[order]
        ax.scatter(true, y, marker="|", c=COLOURS["truth"], s=70, zorder=4, label="truth")
        ax.legend(frameon=False, loc="lower right")
    labels = [str(k) for k in range(len(m))] if names is None else list(names)
    ax.set_yticks(y, [_short(labels[k]) for k in order], fontsize=8)
    ax.invert_yaxis()
    rest = len(m) - len(order)
    title = "Scores with their intervals" + (
        f" (the best {len(order)} of {len(m)})" if rest else ""
    )
    return quiet(ax, title, "score")


def skills(
    skill: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    chance: float | None = None,
    ax: Any = None,
) -> Any:
    """Draw the skills of workers with their intervals, and the skill of a coin as a dashed line."""
    ax = scores(skill, low, high, names=names, ax=ax)
    if chance is not None:
        ax.axvline(chance, color=COLOURS["alarm"], linestyle="--", linewidth=1, label="a coin")
        ax.legend(frameon=False, loc="lower right")
    count = len(np.asarray(skill))
    more = f" (the best {MOST_ROWS} of {count})" if count > MOST_ROWS else ""
    return quiet(ax, f"How often each worker is right{more}", "skill")


def _short(name: str, most: int = 28) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
