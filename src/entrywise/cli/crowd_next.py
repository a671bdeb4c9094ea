"""``entrywise crowd next``: which label to buy next, and from whom."""

from __future__ import annotations

from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit
from entrywise.cli.crowd import answered, gold_of


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
        typer.Option(help="Items that may be labelled, new ones too: a table with item."),
    ] = None,
    gold: Annotated[
        str | None, typer.Option(help="True labels of some items: a table with item, truth.")
    ] = None,
    repeats: Annotated[
        str, typer.Option(help="A worker who answered an item twice: refuse, first, last or keep.")
    ] = "refuse",
    item: Annotated[str | None, typer.Option(help="Column of FILE that names the item.")] = None,
    worker: Annotated[
        str | None, typer.Option(help="Column of FILE that names the worker.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of FILE that holds the label.")] = None,
    format: FormatOption = Format.csv,
) -> None:
    """Name the items, and workers where there is a choice, whose label lowers the expected errors most: item, worker, gain.

    The gain is the expected fall of the number of wrong labels, per price. Nobody is asked twice about an item.

    Example: entrywise crowd next labels.csv --limit 20 --workers pool.csv
    """
    from entrywise.apply.crowd import next_labels
    from entrywise.exceptions import DataError

    cells, _ = answered(file, item, worker, label)
    offered, prices = (None, None) if workers is None else _offered(workers)
    try:
        told = next_labels(
            *cells,
            limit=limit,
            among=None if items is None else _listed(items),
            offered=offered,
            prices=prices,
            gold=None if gold is None else gold_of(gold),
            repeats=repeats,  # type: ignore[arg-type]
        )
    except DataError as error:
        raise type(error)(f"{file}: {error}") from None
    columns = (told.item.tolist(), told.worker.tolist(), told.gain.tolist())
    rows = ((i, w, round(g, 6)) for i, w, g in zip(*columns, strict=True))
    emit(("item", "worker", "gain"), rows, format)


def _listed(path: str) -> list[str]:
    """Return the items named in a table."""
    from entrywise.tables import read_labels

    return read_labels(path)[0]


def _offered(path: str) -> tuple[list[str], dict[str, float]]:
    """Return the workers named in a table, and their prices where there is such a column."""
    from entrywise.tables import read_labels

    names, table = read_labels(path)
    price = table.column("price", "cost")
    if price is None:
        return names, {}
    told = table.values(price, "give a number for every worker")
    return names, dict(zip(names, told.tolist(), strict=True))
