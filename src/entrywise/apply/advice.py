"""What a table is, what to do with it, and what to type next.

The columns are looked at first: comparisons, labels of a crowd and two instruments name themselves. Everything else is a
matrix, and what its values are (two answers, levels, products, a kernel) decides which method serves.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from entrywise.complete import complete
from entrywise.exceptions import DataError
from entrywise.linalg.gain import Gains
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.low_rank import low_rank
from entrywise.tables import (
    ITEM,
    LABEL,
    LOSER,
    WINNER,
    WORKER,
    Table,
    read_comparisons,
    read_entries,
    read_table,
)

Kind = Literal[
    "comparisons", "crowd", "two instruments", "kernel", "binary", "levels", "products",
    "complete", "sparse", "table",
]  # fmt: skip
INSTRUMENT = ("instrument", "mode", "method", "source", "fidelity", "assay", "device", "judge")
MOST_LEVELS = 12  # distinct whole numbers that are still levels
SPARSE = 0.05  # share known below which a table is called sparse
NEXT_SHARE = 0.1  # of the known cells: what a next purchase is shown for
MOST_CELLS = 2_000_000  # m x n up to which a purchase is worked out


@dataclass(frozen=True)
class Advice:
    """What a table is and what to do with it.

    Parameters
    ----------
    kind : str
        One of a few words, such as ``crowd`` or ``binary``.
    says : tuple of str
        What was read and what it looks like, a sentence each.
    method, why : str
        What to use, and the reason.
    missing : tuple of str
        What the known entries do not determine, and what would.
    command : str
        The command to type next.
    """

    kind: Kind
    says: tuple[str, ...]
    method: str
    why: str
    command: str
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            *self.says,
            f"use {self.method}: {self.why}",
            *self.missing,
            f"next: {self.command}",
        ]
        return "\n".join(lines)


def advise(path: str | os.PathLike[str]) -> Advice:
    """Return what the table in a file is, which method serves it, and the command to type next.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "games.csv"
    >>> _ = file.write_text("winner,loser\\na,b\\nb,c\\na,c\\n")
    >>> advise(file).kind
    'comparisons'
    """
    name = os.fspath(path)
    if not name.lower().removesuffix(".gz").endswith((".npy", ".npz")):
        table = read_table(path)
        found = _of_columns(name, table)
        if found is not None:
            return found
    reading = read_entries(path, duplicates="mean")
    return _of_matrix(name, reading.observations, reading.words)


def _of_columns(name: str, table: Table) -> Advice | None:
    """Return what the names of the columns say, if they say it."""
    won, lost = table.column(*WINNER), table.column(*LOSER)
    if won is not None and (lost is not None or _names_sides(table)):
        games = read_comparisons(name)
        items = len(set(games.winners) | set(games.losers))
        return Advice(
            "comparisons",
            (f"{len(games.winners)} comparisons of {items} items, {sum(games.tied)} of them ties",),
            "rank",
            "scores with intervals from who beat whom; what was never compared is ranked apart",
            f"entrywise rank {shlex.quote(name)}",
        )
    roles = [table.column(*usual) for usual in (ITEM, WORKER, LABEL)]
    if all(role is not None for role in roles):
        item, worker, label = (role.cells for role in roles if role is not None)
        if len({*zip(item, worker, strict=True)}) > len(set(item)):
            return _crowd(name, item, worker, label)
    instrument = table.column(*INSTRUMENT)
    if instrument is not None and len(set(instrument.cells)) == 2 and len(table.columns) >= 4:
        return _two_instruments(name, instrument.name, instrument.cells)
    return None


def _names_sides(table: Table) -> bool:
    """Tell whether a column of winners names two others: model_a, model_b."""
    won = table.column(*WINNER)
    others = {column.name.lower() for column in table.columns}
    return won is not None and len({cell.lower() for cell in won.cells} & others) == 2


def _crowd(
    name: str, items: Sequence[str], workers: Sequence[str], labels: Sequence[str]
) -> Advice:
    count, who = len(set(items)), len(set(workers))
    return Advice(
        "crowd",
        (f"{len(items)} labels of {count} items by {who} workers, {len(set(labels))} classes",),
        "crowd",
        f"{len(items) / count:.1f} labels an item: workers are weighed by how well they agree with the others",
        f"entrywise crowd {shlex.quote(name)}",
    )


def _two_instruments(name: str, column: str, modes: Sequence[str]) -> Advice:
    counts = {mode: modes.count(mode) for mode in sorted(set(modes))}
    told = " and ".join(f"{count} by {mode!r}" for mode, count in counts.items())
    return Advice(
        "two instruments",
        (f"answers of two instruments, in column {column!r}: {told}",),
        "noisy_cur where both are unbiased, scores with a judge where one is not",
        "the cheap one tells directions, the dear one levels; forecast the split before you pay",
        "entrywise forecast noisy-cur --help",
    )


def _of_matrix(name: str, seen: Observations, words: str) -> Advice:
    """Return what the values of a matrix say."""
    m, n = seen.shape
    says = [
        words,
        f"{seen.share:.1%} known; values from {seen.values.min():.4g} to {seen.values.max():.4g}",
    ]
    missing = _missing(seen)
    file = shlex.quote(name)
    fill = f"entrywise complete {file} > filled.csv"
    if m == n and seen.is_symmetric and m > 2:
        says.append("square and symmetric: a kernel, a covariance or a similarity")
        why = "a few columns and the diagonal determine the rest, with the error of what is left"
        return Advice("kernel", tuple(says), "adaptive_nystrom", why, fill, missing)
    values = np.unique(seen.values)
    if len(values) == 2:
        says.append(f"two answers, {values[0]:g} and {values[1]:g}: yes or no")
        why = "probabilities instead of values beyond the two answers"
        return Advice("binary", tuple(says), "complete", why, fill, missing)
    if len(seen) == m * n:
        says.append("every cell is known: nothing is missing")
        why = "it can tell what buying less of it would have cost, and rank its rows"
        command = f"entrywise leaderboard rehearse {file}"
        return Advice("complete", tuple(says), "rehearse", why, command, missing)
    if len(values) <= MOST_LEVELS and np.all(values == np.round(values)):
        says.append(f"{len(values)} levels, {values[0]:g} to {values[-1]:g}: ratings or grades")
        why = "low rank with biases of rows and columns; sets of levels that cover"
        return Advice("levels", tuple(says), "complete", why, fill, missing)
    return _of_numbers(seen, says, fill, missing)


def _of_numbers(seen: Observations, says: list[str], fill: str, missing: tuple[str, ...]) -> Advice:
    """Return what a table of numbers is: products, or low rank, sparse or not, and what a purchase would bring."""
    found = complete(seen, calibrate=False)
    if found.report["method"] == "rank-one":
        says.append("products of a row's and a column's number: " + found.report["reasons"][0])
        why = "one number a row and one a column say everything, each with its interval"
        return Advice("products", tuple(says), "rank_one", why, fill, missing)
    says.append(found.report["reasons"][0])
    says += _purchase(seen)
    kind: Kind = "sparse" if seen.share < SPARSE else "table"
    why = "rank and noise are found in the data, every cell gets an interval"
    return Advice(kind, tuple(says), "complete", why, fill, missing)


def _purchase(seen: Observations) -> list[str]:
    """Return what the next cells would bring, in a sentence, where that can be said."""
    m, n = seen.shape
    if m * n > MOST_CELLS:
        return []
    known = np.zeros((m, n), bool)
    known[seen.rows, seen.cols] = True
    count = min(max(1, round(NEXT_SHARE * len(seen))), int((~known).sum()))
    gains = Gains.of(low_rank(seen), seen.rows, seen.cols)
    before = _error(gains)
    rows, _ = gains.pick(lambda i: ~known[i], lambda i: np.ones((len(i), 1)), float(count), count)
    return [
        f"if entries can be bought: the {len(rows)} most informative ones would lower what the factors leave open "
        f"from {before:.3g} to about {_error(gains):.3g} (root mean square of all cells, noise aside)"
    ]


def _error(gains: Gains) -> float:
    """Return the root mean posterior variance of all cells; a purchase by gain lowers it in place."""
    total = sum(float(variance.sum()) for _, _, variance in gains.blocks())
    return float(np.sqrt(total / (len(gains.U) * len(gains.V))))


def _missing(seen: Observations) -> tuple[str, ...]:
    """Return what the known entries leave apart or untouched, and what would mend it."""
    found = []
    empty_rows = int(np.sum(seen.row_counts == 0))
    empty_cols = int(np.sum(seen.col_counts == 0))
    if empty_rows or empty_cols:
        found.append(
            f"{empty_rows} rows and {empty_cols} columns have no known entry: they get the average of the others"
        )
    try:
        rows, cols = connecting_entries(seen)
    except DataError:
        return tuple(found)
    if len(rows):
        some = ", ".join(seen.name(int(i), int(j)) for i, j in zip(rows[:3], cols[:3], strict=True))
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        found.append(f"the known entries fall apart; these would link them: {some}{more}")
    return tuple(found)
