"""``entrywise rank``: scores from pairwise comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say

if TYPE_CHECKING:
    from entrywise.apply.ranking import Ranking
    from entrywise.tables import Comparisons


def rank(
    file: Annotated[
        str,
        typer.Argument(
            help="Comparisons: .csv, .tsv, .xlsx or .parquet (.gz too) with winner, loser, or with "
            "model_a, model_b, winner; - is stdin."
        ),
    ],
    method: Annotated[str, typer.Option(help="bradley-terry or spectral.")] = "bradley-terry",
    prior: Annotated[float, typer.Option(help="Wins added each way to every pair that met.")] = 0.1,
    level: Annotated[
        float, typer.Option(help="Chance with which a score lies in its interval.")
    ] = 0.95,
    winner: Annotated[
        str | None, typer.Option(help="Column of FILE that names the winner.")
    ] = None,
    loser: Annotated[str | None, typer.Option(help="Column of FILE that names the loser.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary on stderr.")] = False,
    format: FormatOption = Format.csv,
) -> None:
    """Rank items from who beat whom: rank, item, score, low, high, wins, losses, component.

    A column winner that holds the names of two other columns (model_a, model_b) or tie says who of the two won; a tie is
    half a win each way. Items that were never compared, not even through others, are ranked apart: one component each.

    Example: entrywise rank games.csv --winner better --loser worse
    """
    from entrywise.apply.ranking import rank as fit
    from entrywise.exceptions import DataError, ParameterError
    from entrywise.tables import read_comparisons

    if not 0 < level < 1:
        raise ParameterError(f"--level must be above 0 and below 1, got {level}")
    seen = read_comparisons(file, winner, loser)
    try:
        found = fit(seen.winners, seen.losers, counts=seen.counts, method=method, prior=prior)  # type: ignore[arg-type]
    except DataError as error:
        raise type(error)(f"{file}: {error}") from None
    if not quiet:
        _tell(found, seen)
    columns = ("rank", "item", "score", "low", "high", "wins", "losses", "component")
    emit(columns, _places(found, level), format)


def _tell(found: Ranking, seen: Comparisons) -> None:
    """Say what was compared, and what the scores cannot tell."""
    if seen.taken:
        say(f"Columns: {seen.taken}.")
    ties = f", {seen.ties} of them ties" if seen.ties else ""
    say(
        f"{len(found.items)} items, {seen.size} comparisons of {found.report['pairs']} pairs{ties}."
    )
    components = found.report["components"]
    if components > 1:
        say(
            f"They fall into {components} components never compared with each other; "
            "each is ranked apart, its mean score 0."
        )
    for key in ("never lost", "never won"):
        if found.report[key]:
            say(f"{found.report[key]} items {key}: how far they stand off rests on the prior.")


def _places(found: Ranking, level: float) -> list[tuple[Any, ...]]:
    """Return a line for each item, numbered from 1 within its component."""
    low, high = found.interval(level)
    rows: list[tuple[Any, ...]] = []
    place, last = 0, -1
    for k, name in enumerate(found.items.tolist()):
        component = int(found.component[k])
        place = place + 1 if component == last else 1
        last = component
        numbers = (round(float(x), 6) + 0.0 for x in (found.score[k], low[k], high[k]))
        counts = (_count(found.wins[k]), _count(found.losses[k]))
        rows.append((place, name, *numbers, *counts, component))
    return rows


def _count(times: float) -> int | float:
    """Return a count as it is said: whole, or with the half of a tie."""
    return int(times) if times == int(times) else float(times)
