"""One visual language: few colours that the colour-blind tell apart, quiet axes, readable on light and dark pages.

The colours are those of Okabe and Ito (2008). Blue is ours, orange the rival, grey the truth and what is not known.
"""

from __future__ import annotations

import io
import os
from typing import Any

from entrywise.npz import write_whole

COLOURS = {
    "ours": "#0072b2",
    "rival": "#e69f00",
    "third": "#009e73",
    "fourth": "#cc79a7",
    "fifth": "#56b4e9",
    "alarm": "#d55e00",
    "truth": "#6b6b6b",
    "faint": "#c8c8c8",
}
CYCLE = tuple(COLOURS[name] for name in ("ours", "rival", "third", "fourth", "fifth", "alarm"))
VALUES, DOUBT = "viridis", "cividis"  # colour maps: of values, of uncertainty


def figure(
    columns: int = 1, rows: int = 1, width: float = 5.0, height: float = 3.8
) -> tuple[Any, Any]:
    """Return a matplotlib figure and its array of axes, (rows, columns), drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas, canvas.subplots(rows, columns, squeeze=False)


def save(path: str | os.PathLike[str], axes: Any) -> None:
    """Write the picture that holds `axes` (or a figure) as PNG, SVG or PDF by its ending, whole or not at all."""
    canvas = getattr(axes, "figure", axes)
    data = io.BytesIO()
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower() or "png"
    canvas.savefig(data, format=ending, dpi=130)
    write_whole(path, data.getvalue())


def quiet(ax: Any, title: str = "", x: str = "", y: str = "") -> Any:
    """Take away what says nothing, name the axes, and return them."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_title(title, fontsize=11, loc="left")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def figure_axes(width: float = 5.0, height: float = 3.8) -> Any:
    """Return new quiet axes of pyplot's, which a notebook or a gallery shows."""
    return quiet(axes_of(None, width, height))


def axes_of(ax: Any, width: float = 5.0, height: float = 3.8) -> Any:
    """Return `ax`, or new axes when it is None; pyplot's where a notebook or a gallery shows them."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]
