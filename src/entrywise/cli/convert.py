"""``entrywise convert``: files of harnesses, label tools and arenas into what the other commands take, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrywise.cli._shared import say
from entrywise.exceptions import ParameterError

if TYPE_CHECKING:
    from entrywise.formats import Held


def convert(
    file: Annotated[
        str,
        typer.Argument(
            help="A file, or a folder of one harness's files: lm-eval, Inspect, HELM, AlpacaEval, Every Eval Ever, Arena, "
            "crowd-kit, cleanlab, Label Studio, or a table.",
            metavar="IN",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            help="Scores: csv, wide, columns, prices. Labels: crowd-kit, cleanlab, label-studio. Games: arena."
        ),
    ],
    from_: Annotated[
        str, typer.Option("--from", help="The format of IN; told by its content when left out.")
    ] = "auto",
    metric: Annotated[
        str | None, typer.Option(help="Which score, where there are several.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What the row is called, where IN does not say.")
    ] = None,
    price_from_log: Annotated[
        str | None,
        typer.Option(
            help="What cells cost: seconds, or a CSV with model, input, output (for a million tokens) or second."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here instead of on stdout.")
    ] = None,
) -> None:
    """Read what the field writes and write what the field, or another command, reads.

    An errored sample is failed, never 0; an unknown price is an error. Columns are called task:sample#hash of its content.

    Example: entrywise convert logs/ --metric exact_match --to csv | entrywise study tell lab.db board -
    """
    from entrywise.formats import SECONDS, ScoredCells, load, priced, read_tariffs, written
    from entrywise.npz import write_whole

    held = load(file, from_, metric=metric, model=model)
    if price_from_log is not None:
        if not isinstance(held, ScoredCells):
            raise ParameterError(f"--price-from-log needs scores; {file} holds none")
        held = priced(held, None if price_from_log == SECONDS else read_tariffs(price_from_log))
    text = written(held, to)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_whole(out, text.encode())
    say(_words(held))


def _words(held: Held) -> str:
    """Say what was read."""
    from entrywise.formats import Annotations, ScoredCells

    if isinstance(held, ScoredCells):
        size = f"{len(held.rows)} rows x {len(held.cols)} columns"
        return f"{len(held)} cells, {held.failed} failed: {size}"
    if isinstance(held, Annotations):
        return f"{len(held)} labels by {len(set(held.workers))} workers of {len(set(held.items))} items"
    return f"{len(held.winners)} games, {sum(held.tied)} of them ties"
