"""What ``entrywise leaderboard report`` says where there are judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from entrywise.cli._shared import Format, emit


class Reported(NamedTuple):
    """Scores as printed, the purchase and the names of its rows, and what else there is to say."""

    board: Any
    bought: Any
    names: tuple[str, ...]
    words: tuple[str, ...]


def named_file(word: str, otherwise: str) -> tuple[str, str]:
    """Return name and file of ``name=FILE``; `otherwise` names a bare file.

    >>> named_file("gpt=scores.csv", "judge"), named_file("scores.csv", "judge")
    (('gpt', 'scores.csv'), ('judge', 'scores.csv'))
    """
    name, equals, path = word.partition("=")
    if equals and name.isidentifier() and not Path(word).exists():
        return name, path
    return otherwise, word


def report_judged(
    source: str,
    files: list[str],
    given: Any,
    level: float,
    promise: str,
    bounds: tuple[float, float] | None,
    groups: str | None,
    bias: bool,
    format: Format,
) -> Reported:
    """Print scores with and without judges, or the judges' bias by row; return what else there is to say."""
    from entrywise.apply.leaderboard import Bought, judged
    from entrywise.tables import read_entries

    tables = None
    dear: Any = given.bought
    cols = given.cols
    if files:
        dear = read_entries(source).observations
        tables = {}
        for number, word in enumerate(files):
            name, path = named_file(word, "judge" if not number else f"judge_{number + 1}")
            tables[name] = read_entries(path).observations
        cols = _all_columns(dear, *tables.values())
    board = judged(
        dear,
        tables,
        level,
        bounds=bounds,
        prices=given.prices,
        target=given.target or "entry",
        groups=None if groups is None else _groups(groups, cols),
        promise=promise,  # type: ignore[arg-type]
    )
    labels = board.row_labels or tuple(given.names)
    if bias:
        _print_bias(board, labels, format)
    else:
        _print_scores(board, labels, level, format)
    told = [*board.words_for(labels), *_group_words(board), f"intervals: {board.how}"]
    if not bias:
        told.append("how each judge treats every row: --bias")
    bought = Bought.from_table(board.fit.dear) if files else given.bought
    return Reported(board, bought, labels, tuple(told))


def _all_columns(*tables: Any) -> list[str]:
    """Return the columns that any of the tables names, in order."""
    return list(dict.fromkeys(label for table in tables for label in table.col_labels or ()))


def _groups(path: str, cols: list[str]) -> list[str]:
    """Return the group of each column from a file of column, group."""
    from entrywise.exceptions import DataError
    from entrywise.tables import read_table

    table = read_table(path, header="yes").filled()
    if len(table.columns) < 2:
        raise DataError(f"{path} must have two columns, the column's name and its group")
    group = dict(zip(table.columns[0].cells, table.columns[1].cells, strict=True))
    missing = next((label for label in cols if label not in group), None)
    if missing is not None:
        raise DataError(f"{path} names no group of column {missing!r}; add it")
    return [str(group[label]) for label in cols]


def _print_scores(board: Any, names: tuple[str, ...], level: float, format: Format) -> None:
    """Print a line a row, the best first, with and without judges."""
    from entrywise.fragments import figures

    columns = ["model", "score", "low", "high", "alone", "alone_low", "alone_high", "tier", "cells"]
    lines: list[tuple[Any, ...]] = []
    for i in board.order:
        each = (
            board.mean,
            board.low,
            board.high,
            board.alone.mean,
            board.alone.low,
            board.alone.high,
        )
        numbers = [float(x[i]) for x in each]
        lines.append((names[i], *numbers, int(board.tier[i]), int(board.cells[i])))
    if format is Format.table:
        columns = ["model", "score", f"{level:.0%} from", "to", "without judges", "from", "to"]
        columns += ["tier", "cells"]
        lines = [(x[0], *figures(*x[1:4]), *figures(*x[4:7]), *x[7:]) for x in lines]
    emit(columns, lines, format)


def _print_bias(board: Any, names: tuple[str, ...], format: Format) -> None:
    """Print offset and slope of every judge in every row."""
    columns = [
        "judge",
        "model",
        "offset",
        "low",
        "high",
        "slope",
        "slope_low",
        "slope_high",
        "surely",
    ]
    lines: list[tuple[Any, ...]] = []
    for judge, bias in board.bias.items():
        rows = bias.rows
        each = (rows.offset, rows.low, rows.high, rows.slope, rows.slope_low, rows.slope_high)
        for i in board.order:
            numbers = [float(x[i]) for x in each]
            lines.append((judge, names[i], *numbers, bool(rows.surely[i])))
    if format is Format.table:
        lines = [(*x[:2], *(f"{y:.3g}" for y in x[2:8]), "yes" if x[8] else "") for x in lines]
    emit(columns, lines, format)


def _group_words(board: Any) -> list[str]:
    told = []
    for judge, bias in board.bias.items():
        if bias.groups is None:
            continue
        lines = bias.groups
        for k, name in enumerate(lines.names):
            offset = _with_interval(lines.offset[k], lines.low[k], lines.high[k])
            slope = _with_interval(lines.slope[k], lines.slope_low[k], lines.slope_high[k])
            sure = ", surely" if lines.surely[k] else ""
            told.append(f"{judge} on {name}: offset {offset}{sure}; slope {slope}")
    return told


def _with_interval(value: float, low: float, high: float) -> str:
    if not low <= value <= high:
        return "unknown (too few columns that both were asked)"
    return f"{value:.3g} ({low:.3g} to {high:.3g})"
