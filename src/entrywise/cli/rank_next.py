"""``entrywise rank next``: which pairs should be compared next."""

from __future__ import annotations

from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit
from entrywise.exceptions import DataError, ParameterError


def rank_next(
    file: Annotated[
        str, typer.Argument(help="Comparisons so far, as for `entrywise rank`; - is stdin.")
    ],
    limit: Annotated[int, typer.Option(help="Comparisons to make before the next look.")] = 50,
    goal: Annotated[
        str, typer.Option(help="all (the whole order), or a number: who is among the best so many.")
    ] = "all",
    winner: Annotated[
        str | None, typer.Option(help="Column of FILE that names the winner.")
    ] = None,
    loser: Annotated[str | None, typer.Option(help="Column of FILE that names the loser.")] = None,
    format: FormatOption = Format.csv,
) -> None:
    """Name the pairs whose comparison tells most: first, second, chance that the first wins, gain.

    The gain is the share by which one comparison is expected to lower the variance of the two scores' difference. Parts that were
    never compared with each other are joined first.

    Example: entrywise rank next games.csv --limit 20 --goal 5
    """
    from entrywise.apply.ranking import next_pairs, rank
    from entrywise.tables import read_comparisons, whole

    best = whole(goal)
    if goal != "all" and best is None:
        raise ParameterError(f"--goal must be all or a number of items, got {goal!r}")
    seen = read_comparisons(file, winner, loser)
    try:
        found = rank(seen.winners, seen.losers, tied=seen.tied)
        told = next_pairs(found, limit, goal="all" if best is None else best)
    except DataError as error:
        raise type(error)(f"{file}: {error}") from None
    columns = (told.first.tolist(), told.second.tolist(), told.chance.tolist(), told.gain.tolist())
    rows = ((a, b, round(p, 6), round(g, 6)) for a, b, p, g in zip(*columns, strict=True))
    emit(("first", "second", "chance", "gain"), rows, format)
