"""``entrywise demo``: a real purchase, or a kernel from 3 % of its entries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption
from entrywise.exceptions import ParameterError


def demo(
    which: Annotated[
        str, typer.Argument(help="leaderboard (classifiers by tasks, trained for real) or kernel.")
    ] = "leaderboard",
    budget: Annotated[
        float,
        typer.Option(min=0.01, max=0.9, help="leaderboard: share of the whole cost to spend."),
    ] = 0.15,
    columns: Annotated[
        int, typer.Option(min=2, max=1796, help="kernel: columns to pay for; 53 is about 3 %.")
    ] = 53,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 0,
    database: Annotated[
        Path, typer.Option(help="leaderboard: where the study is kept; an interrupted one goes on.")
    ] = Path("entrywise-demo.db"),
    out: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path(
        "entrywise-demo.png"
    ),
    format: FormatOption = Format.table,
) -> None:
    """Show the main job: buy a few cells of a leaderboard by training classifiers, and say how far to trust the rest.

    Example: entrywise demo --budget 0.2
    """
    if which == "kernel":
        from entrywise.cli._demo_kernel import kernel_demo

        kernel_demo(columns, seed, out, format)
    elif which == "leaderboard":
        from entrywise.cli._demo_purchase import purchase_demo

        purchase_demo(budget, seed, database, out, format)
    else:
        raise ParameterError(f"the demo must be leaderboard or kernel, got {which!r}")
