"""What every reproduction shares: claims, and files written whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from entrywise.npz import write_whole


@dataclass(frozen=True)
class Claim:
    """What a paper claims, what was found, and whether that supports it."""

    figure: str
    claim: str
    found: str
    holds: bool | None


# A figure takes the folder to write in, whether to be quick, and a function that says how far it is.
Figure: TypeAlias = Callable[[Path, bool, Callable[[str], None]], list[Claim]]


def save_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def new_figure(
    columns: int = 1, rows: int = 1, width: float = 5.0, height: float = 3.8
) -> tuple[Any, Any]:
    """Return a matplotlib figure and its array of axes, (rows, columns), drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def save_figure(path: Path, figure: Any) -> None:
    """Write a picture, whole or not at all."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=130)
    write_whole(path, data.getvalue())
