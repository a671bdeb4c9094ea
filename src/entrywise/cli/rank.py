"""``entrywise rank``: scores from pairwise comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say
from entrywise.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from entrywise.apply.ranking import Ranking
    from entrywise.tables import Comparisons
    from entrywise.types import Array


def rank(
    file: Annotated[
        str,
        typer.Argument(
            help="Comparisons: .csv, .tsv, .xlsx or .parquet (.gz too) with winner, loser, or with "
            "model_a, model_b, winner; - is stdin."
        ),
    ],
    method: Annotated[str, typer.Option(help="bradley-terry or spectral.")] = "bradley-terry",
    prior: Annotated[
        str,
        typer.Option(
            help="Spread of the scores before any game: auto (learned), none or a number."
        ),
    ] = "auto",
    ties: Annotated[
        str,
        typer.Option(
            help="half (a tie is half a win each way) or davidson (an outcome of its own)."
        ),
    ] = "half",
    errors: Annotated[
        str, typer.Option(help="What is independent: games, or only pairs (of the same two).")
    ] = "games",
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

    A column winner that holds the names of two other columns (model_a, model_b) or tie says who of the two won. Items that
    were never compared, not even through others, are ranked apart: one component each. `entrywise rank next` says who
    should meet next.

    Example: entrywise rank games.csv --winner better --loser worse
    """
    from entrywise.apply.ranking import rank as fit
    from entrywise.results.result import refuse_level
    from entrywise.tables import read_comparisons

    refuse_level(level, "--level")
    seen = read_comparisons(file, winner, loser)
    try:
        found = fit(
            seen.winners, seen.losers, tied=seen.tied, method=method, prior=spread_of(prior), ties=ties, errors=errors  # type: ignore[arg-type]
        )  # fmt: skip
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
    ties = f", {sum(seen.tied)} of them ties" if any(seen.tied) else ""
    count = len(seen.winners)
    say(f"{len(found.items)} items, {count} comparisons of {found.report['pairs']} pairs{ties}.")
    components = found.report["components"]
    if components > 1:
        say(
            f"They fall into {components} components never compared with each other; "
            "each is ranked apart, its mean score 0."
        )
    for key in ("never_lost", "never_won"):
        if found.report[key]:
            say(
                f"{found.report[key]} items {key.replace('_', ' ')}: how far they stand off rests on the prior."
            )


def _places(found: Ranking, level: float) -> list[tuple[Any, ...]]:
    """Return a line for each item, numbered from 1 within its component."""
    low, high = ends_of(found, level)
    rows: list[tuple[Any, ...]] = []
    place, last = 0, -1
    for k, name in enumerate(found.items.tolist()):
        component = int(found.component[k])
        place = place + 1 if component == last else 1
        last = component
        three = (found.score[k], low[k], high[k])
        numbers = (None if x != x else round(float(x), 6) + 0.0 for x in three)
        counts = (_count(found.wins[k]), _count(found.losses[k]))
        rows.append((place, name, *numbers, *counts, component))
    return rows


def _count(times: float) -> int | float:
    """Return a count as it is said: whole, or with the half of a tie."""
    return int(times) if times == int(times) else float(times)


def spread_of(prior: str) -> float | str | None:
    """Return what --prior says: auto, none, or a number."""
    from entrywise.tables import number

    if prior in ("auto", "none"):
        return "auto" if prior == "auto" else None
    spread = number(prior)
    if spread is None:
        raise ParameterError(f"--prior must be auto, none or a number, got {prior!r}")
    return spread


def ends_of(found: Ranking, level: float) -> tuple[Array, Array]:
    """Return the ends of the scores' intervals; the spectral method has none."""
    if found.report["method"] == "spectral":
        nothing = found.score * float("nan")
        return nothing, nothing
    interval = found.interval(level)
    return interval.low, interval.high
