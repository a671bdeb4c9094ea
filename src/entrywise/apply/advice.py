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
from entrywise.layouts import Labels, Layout, plain_name
from entrywise.linalg.gain import Gains
from entrywise.linalg.greedy import pick
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.low_rank import low_rank
from entrywise.tables import (
    ITEM,
    LABEL,
    LOSER,
    WINNER,
    WORKER,
    Column,
    Table,
    read_comparisons,
    read_entries,
    read_table,
)
from entrywise.tables.comparisons import result_column

Header = Literal["auto", "yes", "no"]
Kind = Literal[
    "comparisons", "crowd", "two instruments", "kernel", "binary", "levels", "products",
    "complete", "sparse", "table",
]  # fmt: skip
INSTRUMENT = ("instrument", "mode", "method", "source", "fidelity", "assay", "device", "judge")
MOST_LEVELS = 12  # distinct whole numbers that are still levels
MOST_CLASSES = 20  # different words that are still classes of a crowd
ROUNDED = 0.01  # entries of a kernel as files write them
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


def advise(
    path: str | os.PathLike[str],
    *,
    layout: Layout = "auto",
    labels: Labels = "auto",
    header: Header = "auto",
) -> Advice:
    """Return what the table in a file is, which method serves it, and the command to type next.

    Parameters
    ----------
    path : path
    layout, labels, header : str
        How the file is to be read where that is not clear, as :func:`entrywise.read` takes them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "games.csv"
    >>> _ = file.write_text("winner,loser\\na,b\\nb,c\\na,c\\n")
    >>> advise(file).kind
    'comparisons'
    """
    name = os.fspath(path)
    chosen = {"layout": layout, "labels": labels, "header": header}
    if layout == "auto" and not name.lower().removesuffix(".gz").endswith((".npy", ".npz")):
        usual = (*ITEM, *WORKER, *LABEL, *WINNER, *LOSER, *INSTRUMENT)
        table = read_table(path, header="named" if header == "auto" else header, usual=usual)
        found = _of_columns(name, table)
        if found is not None:
            return found
    said = [f" --{option} {word}" for option, word in chosen.items() if word != "auto"]
    file = shlex.quote(name) + "".join(said)
    try:
        reading = read_entries(path, layout=layout, labels=labels, header=header)
        return _of_matrix(file, reading.observations, reading.words)
    except DataError:  # an entry may be there twice
        reading = read_entries(path, duplicates="mean", layout=layout, labels=labels, header=header)
    words = f"{reading.words}; some are there more than once, and their means are taken"
    return _of_matrix(f"{file} --duplicates mean", reading.observations, words)


def _of_columns(name: str, table: Table) -> Advice | None:
    """Return what the names of the columns say, if they say it."""
    won, lost = table.column(*WINNER), table.column(*LOSER)
    if (won is not None and (lost is not None or _names_sides(table))) or result_column(table):
        games = read_comparisons(name)
        items = len(set(games.winners) | set(games.losers))
        return Advice(
            "comparisons",
            (f"{len(games.winners)} comparisons of {items} items, {sum(games.tied)} of them ties",),
            "rank",
            "scores with intervals from who beat whom; what was never compared is ranked apart",
            f"entrywise rank {shlex.quote(name)}",
        )
    roles = _crowd_roles(table)
    if roles is not None:
        return _crowd(name, roles)
    instrument = table.column(*INSTRUMENT)
    if instrument is not None and len(set(instrument.cells)) == 2 and len(table.columns) >= 4:
        return _two_instruments(name, instrument.name, instrument.cells)
    return None


def _names_sides(table: Table) -> bool:
    """Tell whether a column of winners names two others: model_a, model_b."""
    won = table.column(*WINNER)
    others = {column.name.lower() for column in table.columns}
    return won is not None and len({cell.lower() for cell in won.cells} & others) == 2


def _crowd_roles(table: Table) -> tuple[Column, Column, Column] | None:
    """Return item, worker and label where a table holds what several people said of each item.

    Usual names decide; where one or all lack, words in the columns do: pairs that hardly repeat, few workers, few classes.
    """
    named = [table.column(*usual) for usual in (ITEM, WORKER, LABEL)]
    words = [column for column in table.columns if column.kind == "text" and "" not in column.cells]
    rest = [column for column in words if column not in named]
    item, worker, label = named
    if item is not None and worker is not None and label is None and len(rest) == 1:
        label = rest[0]
    elif named == [None, None, None] and len(table.columns) == len(words) == 3:
        *keys, label = words
        worker, item = sorted(keys, key=lambda column: len(set(column.cells)))
    if item is None or worker is None or label is None:
        return None
    pairs = {*zip(item.cells, worker.cells, strict=True)}
    items, classes = len(set(item.cells)), len(set(label.cells))
    guessed = label is not named[2]
    if len(pairs) <= items or (guessed and (classes > MOST_CLASSES or len(pairs) < len(item))):
        return None
    return item, worker, label


def _crowd(name: str, roles: tuple[Column, Column, Column]) -> Advice:
    items, workers, labels = (column.cells for column in roles)
    count, who = len(set(items)), len(set(workers))
    command = f"entrywise crowd {shlex.quote(name)}"
    for column, option, usual in zip(
        roles, ("item", "worker", "label"), (ITEM, WORKER, LABEL), strict=True
    ):
        if plain_name(column.name) not in usual:
            command += f" --{option} {shlex.quote(column.name)}"
    return Advice(
        "crowd",
        (f"{len(items)} labels of {count} items by {who} workers, {len(set(labels))} classes",),
        "crowd",
        f"{len(items) / count:.1f} labels an item: workers are weighed by how well they agree with the others",
        command,
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


def _of_matrix(file: str, seen: Observations, words: str) -> Advice:
    """Return what the values of a matrix say; `file` is how a command names it."""
    m, n = seen.shape
    says = [
        words,
        f"{seen.share:.1%} known; values from {seen.values.min():.4g} to {seen.values.max():.4g}",
    ]
    missing = _missing(seen)
    fill = f"entrywise complete {file} > filled.csv"
    if m == n and seen.is_symmetric and m > 2 and _may_be_psd(seen):
        says.append("square and symmetric: a kernel, a covariance or a similarity")
        why = "a few columns and the diagonal determine the rest, with the error of what is left"
        return Advice("kernel", tuple(says), "adaptive_nystrom", why, fill, missing)
    if m == n and seen.is_symmetric:
        says.append(
            "square and symmetric, but larger beside the diagonal than on it: distances, no kernel"
        )
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


def _may_be_psd(seen: Observations) -> bool:
    """Tell whether a symmetric table may be a kernel: no entry above the root of its diagonal ones' product.

    Distances, whose diagonal is zero, are none; where no diagonal entry is known nothing speaks against it.
    """
    diagonal = np.full(seen.shape[0], np.inf)
    on = seen.rows == seen.cols
    diagonal[seen.rows[on]] = seen.values[on]
    if diagonal.min() < 0:
        return False
    largest = np.sqrt(diagonal[seen.rows]) * np.sqrt(diagonal[seen.cols])
    return bool(np.all(np.abs(seen.values) <= largest * (1 + ROUNDED) + ROUNDED))


def _of_numbers(seen: Observations, says: list[str], fill: str, missing: tuple[str, ...]) -> Advice:
    """Return what a table of numbers is: products, or low rank, sparse or not, and what a purchase would bring."""
    found = complete(seen, calibrate=False)
    if found.report["method"] == "rank-one":
        says.append("products of a row's and a column's number: " + found.report["reasons"][0])
        why = "one number a row and one a column say everything, each with its interval"
        return Advice("products", tuple(says), "rank_one", why, fill, missing)
    says.append(found.report["reasons"][0])
    if found.units is None:  # the purchase by gain weighs all cells alike
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
    before, bits = _error(gains), np.packbits(~known, axis=1)
    rows, _ = pick(gains, bits, lambda i: np.ones((len(i), 1)), float(count), count)
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
