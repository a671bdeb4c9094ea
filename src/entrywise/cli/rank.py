"""``entrywise rank``: scores from pairwise comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say

if TYPE_CHECKING:
    from entrywise.apply.ranking import Ranking
    from entrywise.types import Array


def rank(
    file: Annotated[
        str,
        typer.Argument(help="Comparisons: a .csv or .tsv (.gz) with winner, loser; - is stdin."),
    ],
    method: Annotated[str, typer.Option(help="bradley-terry or spectral.")] = "bradley-terry",
    prior: Annotated[
        str,
        typer.Option(
            help="Spread of the scores before any game: auto (learned), none or a number."
        ),
    ] = "auto",
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

    Items that were never compared, not even through others, are ranked apart: one component each. `entrywise rank next`
    says who should meet next.

    Example: entrywise rank games.csv --winner better --loser worse
    """
    from entrywise.apply.ranking import rank as fit
    from entrywise.exceptions import DataError, ParameterError

    if not 0 < level < 1:
        raise ParameterError(f"--level must be above 0 and below 1, got {level}")
    won, lost, counts, taken = compared(file, winner, loser)
    try:
        found = fit(won, lost, counts=counts, method=method, prior=spread_of(prior), errors=errors)  # type: ignore[arg-type]
    except DataError as error:
        raise type(error)(f"{file}: {error}") from None
    if not quiet:
        if [t.lower() for t in taken] != ["winner", "loser"]:
            say(f"Columns: winner is {taken[0]!r}, loser is {taken[1]!r}.")
        say(f"{len(found.items)} items, {len(won)} comparisons of {found.report['pairs']} pairs.")
        if found.report["components"] > 1:
            say(
                f"They fall into {found.report['components']} components never compared with each other; "
                "each is ranked apart, its mean score 0."
            )
        for key in ("never lost", "never won"):
            if found.report[key]:
                say(f"{found.report[key]} items {key}: how far they stand off rests on the prior.")
    low, high = ends_of(found, level)
    rows, place, last = [], 0, -1
    for k, name in enumerate(found.items.tolist()):
        place = place + 1 if found.component[k] == last else 1
        last = int(found.component[k])
        three = (found.score[k], low[k], high[k])
        numbers = (None if x != x else round(float(x), 6) + 0.0 for x in three)
        rows.append((place, name, *numbers, int(found.wins[k]), int(found.losses[k]), last))
    emit(("rank", "item", "score", "low", "high", "wins", "losses", "component"), rows, format)


def spread_of(prior: str) -> float | str | None:
    """Return what --prior says: auto, none, or a number."""
    from entrywise.exceptions import ParameterError

    if prior in ("auto", "none"):
        return "auto" if prior == "auto" else None
    try:
        return float(prior)
    except ValueError:
        raise ParameterError(f"--prior must be auto, none or a number, got {prior!r}") from None


def ends_of(found: Ranking, level: float) -> tuple[Array, Array]:
    """Return the ends of the scores' intervals; the spectral method has none."""
    if found.report["method"] == "spectral":
        nothing = found.score * float("nan")
        return nothing, nothing
    interval = found.interval(level)
    return interval.low, interval.high


def compared(
    file: str, winner: str | None, loser: str | None
) -> tuple[list[str], list[str], list[float] | None, list[str]]:
    """Return winners, losers, how often (None: once each), and the columns taken."""
    from entrywise.apply._tables import LOSER, WINNER, read_columns

    (won, lost), taken = read_columns(file, (("winner", WINNER), ("loser", LOSER)), (winner, loser))
    return won, lost, None, taken
