"""Logs of harnesses for ``entrywise study``: which samples to run, and their scores back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from entrywise.cli._shared import say
from entrywise.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from entrywise.study import Study


def ask_samples(
    study: Study,
    rows: Sequence[str] | None,
    *,
    limit: int | None,
    worker: str | None,
    lease: float,
) -> None:
    """Print the documents to run for one model, as lm-eval takes them with --samples."""
    from entrywise.integrations import lm_eval

    if not rows or len(rows) != 1:
        raise ParameterError("--format lm-eval is for one model; say which (--row MODEL)")
    typer.echo(lm_eval.ask(study, rows[0], limit=limit, worker=worker, lease=lease))


def tell_log(
    study: Study,
    path: str,
    format: str,
    *,
    metric: str | None,
    model: str | None,
    worker: str | None,
) -> None:
    """Tell a study the samples of a log that it asked for, and say what became of the others."""
    from entrywise.formats import ScoredCells, load
    from entrywise.integrations.telling import tell_cells

    cells = load(path, format, metric=metric, model=model)
    if not isinstance(cells, ScoredCells):
        raise DataError(f"{path} holds no scores; a study is told scores")
    kept = tell_cells(study, cells, worker)
    words = f"{kept.new} of {kept.asked} answers new, {cells.failed} of {len(cells)} samples failed"
    if kept.others:
        words += (
            f"; {kept.others} were not asked and are left alone (study add takes them as known)"
        )
    say(words)
