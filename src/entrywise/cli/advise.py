"""``entrywise advise``: what a table is, which method serves it, and what to type next."""

from __future__ import annotations

from typing import Annotated

import typer

from entrywise.cli._shared import (
    Format,
    FormatOption,
    HeaderOption,
    LabelsOption,
    LayoutOption,
    emit,
)


def advise(
    file: Annotated[
        str, typer.Argument(help="A table: .csv, .tsv, .xlsx, .parquet, .npy or .npz (.gz too).")
    ],
    layout: LayoutOption = "auto",
    labels: LabelsOption = "auto",
    header: HeaderOption = "auto",
    format: FormatOption = Format.table,
) -> None:
    """Say what a table is, which method serves it, what is missing, and the command to type next.

    Example: entrywise advise ratings.csv
    """
    from entrywise.apply.advice import advise as look

    found = look(file, layout=layout, labels=labels, header=header)  # type: ignore[arg-type]
    rows = [("it is", found.kind), *(("seen", words) for words in found.says)]
    rows += [("use", f"{found.method}: {found.why}")]
    rows += [("missing", words) for words in found.missing]
    rows += [("next", found.command)]
    emit(("about", "advice"), rows, format)
