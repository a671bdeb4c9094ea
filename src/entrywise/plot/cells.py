"""A matrix as a map of its cells: what is known, what was bought, what is completed and how far it can be trusted."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.plot.style import COLOURS, DOUBT, VALUES, axes_of, quiet
from entrywise.results import Matrix
from entrywise.types import Array, Indices

MOST_CELLS = 4_000_000  # a picture has no more pixels than that


def map(
    matrix: Matrix | Observations,
    bought: Observations | tuple[Any, Any] | None = None,
    *,
    show: Literal["value", "doubt"] = "value",
    ax: Any = None,
) -> Any:
    """Draw a matrix, one pixel a cell; dots mark the cells that were bought.

    Parameters
    ----------
    matrix : Matrix or Observations
        A completed matrix, or known entries (what is not known stays grey).
    bought : Observations or (rows, cols), optional
        Cells to mark: entries that were known, or cells that were bought.
    show : {"value", "doubt"}
        The completed values, or the width of their 90 % intervals.
    """
    if show not in ("value", "doubt"):
        raise ParameterError(f"show must be 'value' or 'doubt', got {show!r}")
    m, n = matrix.shape
    if m * n > MOST_CELLS:
        raise ParameterError(
            f"a map has at most {MOST_CELLS} cells, this has {m} x {n}; take a part of it"
        )
    ax = axes_of(ax)
    picture, title = _picture(matrix, show)
    from matplotlib import colormaps

    colours = colormaps[VALUES if show == "value" else DOUBT].with_extremes(bad=COLOURS["faint"])
    drawn = ax.imshow(picture, cmap=colours, aspect="auto", interpolation="nearest")
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.85)
    bar.set_label("value" if show == "value" else "width of the 90 % interval")
    if bought is not None:
        rows, cols = _cells(bought)
        size = float(np.clip(20000 / max(m * n, 1), 0.3, 14.0))
        ax.scatter(cols, rows, s=size, c="white", edgecolors="black", linewidths=0.3)
        word = "known" if isinstance(bought, Observations) else "bought"
        title += f"; dots: {len(rows)} {word}"
    quiet(ax, title, "column", "row")
    ax.grid(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(integer=True)
    return ax


def _picture(matrix: Matrix | Observations, show: str) -> tuple[Array, str]:
    m, n = matrix.shape
    if isinstance(matrix, Observations):
        picture = np.full((m, n), np.nan)
        picture[matrix.rows, matrix.cols] = matrix.values
        return picture, f"{len(matrix)} of {m * n} cells known"
    i, j = np.arange(m)[:, None], np.arange(n)[None, :]
    if show == "value":
        return matrix.entries(i, j), f"{m} x {n} completed, rank {matrix.rank}"
    interval = getattr(matrix, "interval", None)
    if interval is None:
        raise ParameterError(f"a {type(matrix).__name__} has no intervals; show='value'")
    low, high = interval(i, j, 0.9)
    return high - low, f"{m} x {n}: how far each cell can be trusted"


def _cells(bought: Observations | tuple[Any, Any]) -> tuple[Indices, Indices]:
    if isinstance(bought, Observations):
        return bought.rows, bought.cols
    return np.asarray(bought[0], np.int64), np.asarray(bought[1], np.int64)
