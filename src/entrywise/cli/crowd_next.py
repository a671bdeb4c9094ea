"""``entrywise crowd next``: which label to buy next, and from whom."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import typer

from entrywise.cli._shared import Format, emit
from entrywise.cli.crowd import (
    Classes,
    ItemColumn,
    LabelColumn,
    Repeats,
    WorkerColumn,
    answered,
    gold_of,
)
from entrywise.exceptions import DataError


class LabelFormat(enum.StrEnum):
    """How the labels to buy are printed: as other data, or as a label tool takes them."""

    table = "table"
    csv = "csv"
    json = "json"
    label_studio = "label-studio"


def crowd_next(
    file: Annotated[
        str, typer.Argument(help="Answers so far, as for `entrywise crowd`; - is stdin.")
    ],
    limit: Annotated[int, typer.Option(help="Labels to buy before the next look.")] = 50,
    workers: Annotated[
        str | None,
        typer.Option(
            help="Workers to choose from: a table with worker and, if they differ, price."
        ),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option(
            help="Items that may be labelled, new ones too: a table with item and what annotators see of it."
        ),
    ] = None,
    gold: Annotated[
        str | None, typer.Option(help="True labels of some items: a table with item, truth.")
    ] = None,
    classes: Classes = None,
    repeats: Repeats = "refuse",
    item: ItemColumn = None,
    worker: WorkerColumn = None,
    label: LabelColumn = None,
    format: Annotated[
        LabelFormat,
        typer.Option(
            "--format",
            "-f",
            help="How data are printed on stdout; label-studio: tasks for its import, with a priority.",
        ),
    ] = LabelFormat.csv,
) -> None:
    """Name the items, and workers where there is a choice, whose label lowers the expected errors most: item, worker, gain.

    The gain is the expected fall of the number of wrong labels, per price. Nobody is asked twice about an item.

    Example: entrywise crowd next labels.csv --limit 20 --workers pool.csv
    """
    from entrywise.apply.crowd import next_labels

    cells, _ = answered(file, item, worker, label)
    offered, prices = (None, None) if workers is None else _offered(workers)
    shown = None if items is None else _shown(items)
    options: dict[str, Any] = {
        "limit": limit,
        "offered": offered,
        "prices": prices,
        "classes": None if classes is None else [c.strip() for c in classes.split(",")],
        "gold": None if gold is None else gold_of(gold),
        "repeats": repeats,
    }
    try:
        if format is LabelFormat.label_studio:
            typer.echo(_tasks(cells, shown, options), nl=False)
            return
        told = next_labels(*cells, among=None if shown is None else list(shown), **options)
    except DataError as error:
        raise type(error)(f"{file}: {error}") from None
    columns = (told.item.tolist(), told.worker.tolist(), told.gain.tolist())
    rows = ((i, w, round(g, 6)) for i, w, g in zip(*columns, strict=True))
    emit(("item", "worker", "gain"), rows, Format(format.value))


def _tasks(
    cells: list[list[str]], shown: dict[str, dict[str, str]] | None, options: dict[str, Any]
) -> str:
    """Return the items chosen as tasks of Label Studio."""
    from entrywise.formats import Annotations
    from entrywise.integrations.label_studio import next_tasks

    items, workers, labels = cells
    return next_tasks(Annotations(items, workers, labels), items=shown, **options)


def _shown(path: str) -> dict[str, dict[str, str]]:
    """Return the items named in a table, each with the cells beside its name."""
    from entrywise.tables import read_labels

    names, table = read_labels(path)
    beside = table.columns[1:]
    return {
        name: {column.name: column.cells[k] for column in beside} for k, name in enumerate(names)
    }


def _offered(path: str) -> tuple[list[str], dict[str, float]]:
    """Return the workers named in a table, and their prices where there is such a column."""
    from entrywise.tables import read_labels

    names, table = read_labels(path)
    price = table.column("price", "cost")
    if price is None:
        return names, {}
    told = table.values(price, "give a number for every worker")
    return names, dict(zip(names, told.tolist(), strict=True))
