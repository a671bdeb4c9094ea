"""Something against money or time: savings with their band, a bound beside what happened, a budget and its split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entrywise.plot.style import COLOURS, CYCLE, axes_of, quiet


def savings(
    spent: ArrayLike,
    errors: Mapping[str, ArrayLike],
    *,
    unit: str = "",
    error: str = "error",
    ax: Any = None,
) -> Any:
    """Draw error against money, a line for each way to buy, with the band of its repeats.

    Parameters
    ----------
    spent : ndarray of shape (b,)
        Money at which the errors were measured.
    errors : mapping from a name to an ndarray of shape (b,) or (repeats, b)
        The first is drawn as ours; several repeats give a mean and the band that holds 80 % of them.
    unit : str
        The currency, shown on the axis.
    """
    ax = axes_of(ax)
    money = np.asarray(spent, np.float64)
    for k, (name, values) in enumerate(errors.items()):
        each = np.atleast_2d(np.asarray(values, np.float64))
        colour = CYCLE[k % len(CYCLE)]
        ax.plot(money, each.mean(axis=0), "o-", color=colour, label=name, markersize=4)
        if len(each) > 1:
            low, high = np.quantile(each, (0.1, 0.9), axis=0)
            ax.fill_between(money, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return quiet(ax, "What money buys", f"spent{f' ({unit})' if unit else ''}", error)


def against_bound(
    counts: ArrayLike | Mapping[str, ArrayLike],
    *,
    bound: float | None = None,
    label: str = "mistakes",
    ax: Any = None,
) -> Any:
    """Draw running counts, such as mistakes of learners, below the bound that a theorem promises.

    A bound beyond twice the counts is named in the legend instead of drawn: it would flatten the rest.
    """
    ax = axes_of(ax)
    named = counts if isinstance(counts, Mapping) else {label: counts}
    last = 1.0
    for k, (name, count) in enumerate(named.items()):
        values = np.asarray(count, np.float64)
        ax.plot(np.arange(1, len(values) + 1), values, color=CYCLE[k % len(CYCLE)], label=name)
        last = max(last, float(values[-1]) if len(values) else 0.0)
    if bound is not None and bound <= 2 * last:
        ax.axhline(bound, color=COLOURS["alarm"], linestyle="--", label=f"bound: {bound:.0f}")
    elif bound is not None:
        far = f"bound: {bound:.3g}, far above"
        ax.plot([], [], color=COLOURS["alarm"], linestyle="--", label=far)
    ax.legend(frameon=False)
    return quiet(ax, f"{label} as they come", "trial", label)


def split(
    parts: Mapping[str, float], *, budget: float | None = None, unit: str = "", ax: Any = None
) -> Any:
    """Draw one budget as a bar and what each part of it went to; what is left of it is grey."""
    ax = axes_of(ax, height=1.8)
    left = 0.0
    for k, (name, money) in enumerate(parts.items()):
        ax.barh([0], [money], left=left, color=CYCLE[k % len(CYCLE)], label=f"{name}: {money:.4g}")
        left += money
    if budget is not None and budget > left:
        rest = budget - left
        ax.barh([0], [rest], left=left, color=COLOURS["faint"], label=f"left: {rest:.4g}")
    ax.set_yticks([])
    ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.35))
    return quiet(ax, "Where the money went", f"money{f' ({unit})' if unit else ''}")
