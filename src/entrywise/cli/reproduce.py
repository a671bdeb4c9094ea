"""``entrywise reproduce``: redraw the figures of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say

PAPERS: dict[str, str] = {  # name of the command -> module under entrywise.reproduce
    "active-psd": "active_psd",
    "binary": "binary",
    "leaderboard": "leaderboard",
    "noisycur": "noisycur",
    "rank-one": "rank_one",
    "subspace": "subspace",
}


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="active-psd, binary, leaderboard, noisycur, rank-one or subspace.")
    ],
    figure: Annotated[
        list[str] | None, typer.Option(help="Only this figure; may be given several times.")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="Fewer runs and smaller sizes: a look, not a result.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the PNG and CSV files.")] = Path("results"),
    format: FormatOption = Format.table,
) -> None:
    """Redraw the figures of a paper, with a table of what it claims and what was found.

    Example: entrywise reproduce noisycur --figure 2 --quick
    """
    import importlib

    from entrywise.exceptions import ParameterError

    if paper not in PAPERS:
        raise ParameterError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    figures = importlib.import_module(f"entrywise.reproduce.{PAPERS[paper]}").FIGURES
    for name in figure or ():
        if name not in figures:
            raise ParameterError(
                f"figure of {paper} must be one of {', '.join(figures)}, got {name!r}"
            )
    folder = out / paper
    folder.mkdir(parents=True, exist_ok=True)
    claims = []
    for name in figure or figures:
        say(f"{paper}, figure {name}")
        claims += figures[name](folder, quick, say)
    said = {True: "holds", False: "does not hold", None: "-"}
    rows = [(c.figure, c.claim, c.found, said[c.holds]) for c in claims]
    emit(("figure", "claim", "found", "verdict"), rows, format, title=f"{paper}: claimed and found")
    say(f"pictures and tables are in {folder}")
