"""Who beat whom: a winner and a loser a line, or two names and which of them won."""

from __future__ import annotations

import os
from dataclasses import dataclass

from entrywise.exceptions import DataError
from entrywise.layouts import plain_name
from entrywise.tables.roles import LOSER, WINNER, Facts, take_roles
from entrywise.tables.table import Column, Table, listed, read_table

SIDES = ("model_a", "model_b")
RESULTS = {"1-0": 0, "0-1": 1, "1/2-1/2": 2, "½-½": 2}  # as chess writes who of two won; 2 is a tie
TIES = ("tie", "tie (bothbad)", "both", "both_bad", "bothbad", "draw")


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Winners and losers, which of them tied, and how the file was understood."""

    winners: list[str]
    losers: list[str]
    tied: list[bool]
    taken: str = ""  # the columns in words, where they have other names than winner and loser


def read_comparisons(
    path: str | os.PathLike[str], winner: str | None = None, loser: str | None = None
) -> Comparisons:
    """Return the comparisons in a file.

    One line is a winner and a loser, in columns of those names or of those given. Where a column ``winner`` stands
    beside two others and holds *their names* (``model_a``, ``model_b``) or a tie, it says who of the two won; so does a
    column of ``1-0``, ``0-1`` and ``1/2-1/2`` after two columns of names. Anything else is refused.
    """
    named = winner is not None or loser is not None
    table = read_table(path, header="yes" if named else "named", usual=(*WINNER, *LOSER, *SIDES))
    return comparisons_of(table, winner, loser)


def comparisons_of(
    table: Table, winner: str | None = None, loser: str | None = None
) -> Comparisons:
    """Return the comparisons in a table, as :func:`read_comparisons` understands them."""
    given = (winner, loser)
    named = winner is not None or loser is not None
    column = table.column(*WINNER)
    if not named:
        if column is not None and table.column(*LOSER) is None:
            return _between_two(table, column)
        if column is None and (score := result_column(table)) is not None:
            return _by_result(table, score)
        if column is None and (table.headed or len(table.columns) != 2):
            raise table.error(
                f"who won is not clear from the columns {listed(table.names)}; say --winner and --loser"
            )
    found = take_roles(table, (("winner", WINNER), ("loser", LOSER)), given)
    _refuse_ties(found)
    taken = ""
    if [plain_name(name) for name in found.taken] != ["winner", "loser"]:
        taken = f"winner is {found.taken[0]!r}, loser is {found.taken[1]!r}"
    won, lost = found.cells
    return Comparisons(won, lost, [False] * len(won), taken)


def result_column(table: Table) -> Column | None:
    """Return the column that says 1-0, 0-1 or 1/2-1/2 after two columns of names, None where there is none."""
    scores = [k for k, column in enumerate(table.columns) if {*column.cells} <= RESULTS.keys()]
    return table.columns[scores[0]] if len(scores) == 1 and scores[0] >= 2 else None


def _by_result(table: Table, score: Column) -> Comparisons:
    """Return the comparisons of a table of games: who won of the two columns of names before the result."""
    before = [c for c in table.columns[: table.columns.index(score)] if c.kind == "text"][-2:]
    if len(before) < 2 or any("" in column.cells for column in before):
        raise table.error(f"column {score.name!r} must stand after two columns of names")
    first, second = before
    found = Comparisons([], [], [], f"{score.name!r} says which of {first.name!r} and {second.name!r} won")  # fmt: skip
    for a, b, cell in zip(first.cells, second.cells, score.cells, strict=True):
        won = RESULTS[cell]
        found.winners.append(b if won == 1 else a)
        found.losers.append(a if won == 1 else b)
        found.tied.append(won == 2)
    return found


def _refuse_ties(found: Facts) -> None:
    """Refuse a word for a tie where a winner should stand: it would be ranked as an item."""
    for k, name in enumerate(found.cells[0]):
        if name.lower() in TIES and found.table.headed:
            raise DataError(
                f"{found.table.path}: line {found.lines[k]} has the winner {name!r}; give ties as model_a, model_b, winner"
            )


def _between_two(table: Table, column: Column) -> Comparisons:
    """Return the comparisons of a table whose winner names one of two other columns."""
    held = {cell.lower() for cell in column.cells if cell} - set(TIES)
    sides = _sides(table, column)
    words = {word: k for k, side in enumerate(sides) for word in side[1]}
    strange = next((cell for cell in held if cell not in words), None)
    if strange is not None or len(sides) != 2:
        names = [name for name in table.names if name != column.name]
        raise table.error(
            f"column {column.name!r} must name one of two other columns or a tie, or stand beside a column 'loser'; "
            f"it holds {strange!r} beside {listed(names)}; say --winner and --loser"
        )
    (first, _), (second, _) = sides
    winners: list[str] = []
    losers: list[str] = []
    tied: list[bool] = []
    for k, cell in enumerate(column.cells):
        pair = (first.cells[k], second.cells[k])
        if not (cell and all(pair)):
            raise table.error(f"line {table.lines[k]} must have both names and a winner")
        won = words.get(cell.lower(), 0)  # of a tie the first is named first
        winners.append(pair[won])
        losers.append(pair[1 - won])
        tied.append(cell.lower() in TIES)
    taken = f"{column.name!r} says which of {first.name!r} and {second.name!r} won"
    return Comparisons(winners, losers, tied, taken)


def _sides(table: Table, column: Column) -> list[tuple[Column, set[str]]]:
    """Return the two columns that the winner may name, each with the words for it."""
    held = {cell.lower() for cell in column.cells} - set(TIES)
    others = [other for other in table.columns if other is not column]
    named = [other for other in others if other.name.lower() in held]
    usual = [other for other in others if plain_name(other.name) in SIDES]
    pair = usual if len(usual) == 2 else named
    return [(other, {other.name.lower()}) for other in pair]
