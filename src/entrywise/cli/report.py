"""``entrywise report``: a study as one HTML file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from entrywise.cli._options import Where


def report(
    database: Where,
    name: Annotated[str, typer.Argument(help="The study.", metavar="STUDY")],
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
) -> None:
    """Print a study as one HTML file, for a mail or a wiki: what was asked, what it cost, the answer and how far to trust it.

    Example: entrywise report lab.db kinase > kinase.html
    """
    from entrywise.study import Study
    from entrywise.web.report import report as made

    sys.stdout.write(made(Study.open(database, name), level))
