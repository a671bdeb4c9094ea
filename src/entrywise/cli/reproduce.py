"""``entrywise reproduce``: redraw the figures of a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say
from entrywise.compiling import NOTICE
from entrywise.exceptions import ParameterError

FULL = ("figure", "claim", "theirs", "ours", "found", "interval", "verdict")
QUICK = ("figure", "claim", "ours", "found")  # a look is no verdict


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="active-psd, binary, leaderboard, noisycur, rank-one or subspace.")
    ],
    figure: Annotated[
        list[str] | None, typer.Option(help="Only this figure; may be given several times.")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="Fewer runs and smaller sizes: a look, without verdicts.")
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs of each experiment; each figure has its own.")
    ] = None,
    again: Annotated[
        bool, typer.Option(help="Draw anew what an earlier run kept in the folder.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Folder of the manual's pages: write this paper's.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the PNG and CSV files.")] = Path("results"),
    format: FormatOption = Format.table,
) -> None:
    """Redraw the figures of a paper, with a table of what it claims and what was found.

    Verdicts appear as they are reached. A run that is cut keeps what it had and goes on from there when it is
    called again. With --page the figures of this run enter the manual's page; its others stay as they are.

    Example: entrywise reproduce noisycur --figure 2 --quick
    """
    from entrywise.reproduce.paper import figures_of, reproduced, write_page

    if quick and page is not None:
        raise ParameterError("a quick look has no page; leave --quick or --page out")
    figures = figures_of(paper, figure)
    folder = out / paper
    if not quick:
        minutes = sum(f.minutes for f in figures.values())
        say(f"{paper}: {', '.join(figures)}; about {minutes:.0f} min on one core in full")
    rows: list[tuple[object, ...]] = []
    drawn = []
    with _bar() as bar:
        for record in reproduced(
            figures, folder, quick=quick, repeats=repeats, again=again, say=say, bar=bar
        ):
            drawn.append(record)
            for c in record.claims:
                if quick:
                    rows.append((c.figure, c.claim, c.ours, c.found))
                    continue
                rows.append((c.figure, c.claim, c.theirs, c.ours, c.found, c.interval, c.verdict))
                say(f"  {c.figure}: {c.claim}: {c.verdict} ({c.found})")
    title = f"{paper}: a look, no verdict" if quick else f"{paper}: claimed and found"
    emit(QUICK if quick else FULL, rows, format, title=title)
    say(f"pictures and tables are in {folder}")
    if page is not None:
        say(f"page written: {write_page(paper, drawn, folder, page)}")


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show on stderr how many pieces of the work are done."""
    from rich.console import Console
    from rich.progress import Progress

    with NOTICE.unsaid(), Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=1)

        def show(words: str, done: int, total: int) -> None:
            progress.update(task, description=words, completed=done, total=max(total, 1))

        yield show
