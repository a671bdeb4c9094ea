"""``entrywise complete``: fill the gaps of a table, with intervals."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say

if TYPE_CHECKING:
    from entrywise.observations import Observations
    from entrywise.results import LowRank

MOST = 1_000_000  # cells printed without --all


def complete(
    file: Annotated[
        str,
        typer.Argument(
            help="Known entries: .csv, .tsv (.gz), .parquet, .npy or .npz; - is CSV on stdin."
        ),
    ],
    method: Annotated[
        str, typer.Option(help="auto, or one of `entrywise methods passive`.")
    ] = "auto",
    rank: Annotated[
        int | None, typer.Option(help="Number of components; chosen when left out.")
    ] = None,
    level: Annotated[
        float, typer.Option(help="Share of the intervals that should cover a new answer.")
    ] = 0.9,
    all_cells: Annotated[
        bool, typer.Option("--all", help="Print every unknown cell, however many.")
    ] = False,
    pairs: Annotated[
        str | None, typer.Option(help="Print the cells in this file (row, col) instead.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Print the K largest unknown cells of each row instead.")
    ] = None,
    new: Annotated[
        str | None,
        typer.Option(help="Print the unknown cells of these new rows instead (folded in)."),
    ] = None,
    row: Annotated[str | None, typer.Option(help="Column of FILE that names the row.")] = None,
    col: Annotated[str | None, typer.Option(help="Column of FILE that names the column.")] = None,
    value: Annotated[str | None, typer.Option(help="Column of FILE that holds the value.")] = None,
    noise: Annotated[
        str | None, typer.Option(help="Column with standard deviations, or one number.")
    ] = None,
    layout: Annotated[
        str, typer.Option(help="auto, long (one entry a line) or wide (one row a line).")
    ] = "auto",
    duplicates: Annotated[str, typer.Option(help="refuse, first, last, mean or keep.")] = "refuse",
    seed: Annotated[int, typer.Option(help="For the held-out entries and the starts.")] = 0,
    save: Annotated[Path | None, typer.Option(help="Keep the completed matrix here (npz).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary on stderr.")] = False,
    format: FormatOption = Format.csv,
) -> None:
    """Fill the gaps of a table: row, col, value, low, high of each cell asked for.

    Lines of which nothing is known are left empty, not invented.

    Example: entrywise complete ratings.csv --level 0.9 > filled.csv
    """
    from entrywise.complete import complete as fit
    from entrywise.exceptions import ParameterError
    from entrywise.tables import read

    if not 0 < level < 1:
        raise ParameterError(f"--level must be above 0 and below 1, got {level}")
    if sum((all_cells, pairs is not None, top is not None, new is not None)) > 1:
        raise ParameterError("give at most one of --all, --pairs, --top and --new")
    if top is not None and top < 1:
        raise ParameterError(f"--top must be 1 or more, got {top}")
    seen = read(
        file, row=row, col=col, value=value, noise=_number(noise), layout=layout, duplicates=duplicates,  # type: ignore[arg-type]
    )  # fmt: skip
    unknown = seen.shape[0] * seen.shape[1] - len(seen)
    if unknown > MOST and not all_cells and pairs is None and top is None and new is None:
        raise ParameterError(
            f"{unknown} cells are unknown; say which: --top K, --pairs FILE, or --all for every one"
        )
    asked = None if pairs is None else _pairs(pairs, seen)
    rows_to_come = (
        None if new is None else read(new, row=row, col=col, value=value, noise=_number(noise))
    )
    params: dict[str, Any] = {} if rank is None else {"rank": rank}
    with _progress(len(seen), quiet) as tick:
        found = fit(seen, method, rng=seed, progress=tick, **params)
    if save is not None:
        found.save(save)
    if not quiet:
        _tell(found, file)
    where = _row_names, _col_names = (
        _names(seen.row_labels, seen.shape[0]),
        _names(seen.col_labels, seen.shape[1]),
    )
    if rows_to_come is not None:
        fresh = found.fold_in(rows_to_come)
        where = _names(rows_to_come.row_labels, fresh.shape[0]), _col_names
        cells: Iterator[tuple[Any, Any]] = _unknown(_on_axis(rows_to_come, seen))
        found = fresh
    elif asked is not None:
        cells = iter([asked])
    elif top is not None:
        cells = _best(found, seen, top)
    else:
        cells = _unknown(seen)
    emit(("row", "col", "value", "low", "high"), _lines(found, cells, level, where, format), format)


def _number(noise: str | None) -> str | float | None:
    try:
        return None if noise is None else float(noise)
    except ValueError:
        return noise


def _names(labels: Sequence[str] | None, size: int) -> Sequence[Any]:
    return labels if labels is not None else range(size)


def _pairs(path: str, seen: Observations) -> tuple[Any, Any]:
    """Return the cells asked for in a file, by label or by number; a stranger is refused with its line."""
    import csv
    import io

    import numpy as np

    from entrywise.exceptions import DataError
    from entrywise.tables import text_of

    text = text_of(path)
    lines = [
        line
        for line in csv.reader(
            io.StringIO(text), delimiter="\t" if "\t" in text.split("\n")[0] else ","
        )
        if any(line)
    ]
    codes = [{str(x): k for k, x in enumerate(_names(labels, size))}
             for labels, size in zip((seen.row_labels, seen.col_labels), seen.shape, strict=True)]  # fmt: skip
    found = []
    for number, line in enumerate(lines, 1):
        if len(line) < 2:
            raise DataError(f"{path} line {number}: a cell is row,col, got {','.join(line)!r}")
        cell = [
            code.get(x.strip() if x.strip() in code else x)
            for code, x in zip(codes, line, strict=False)
        ]
        if None in cell:
            if number == 1:
                continue  # a header
            axis = "row" if cell[0] is None else "column"
            raise DataError(
                f"{path} line {number}: no {axis} of the table is called {line[cell.index(None)]!r}"
            )
        found.append(cell)
    if not found:
        raise DataError(f"{path} names no cell of the table; give lines of row,col")
    i, j = np.array(found, np.int64).T
    return i, j


def _on_axis(new: Observations, seen: Observations) -> Observations:
    """Return the new rows' observations on the columns of the fitted table."""
    from dataclasses import replace

    from entrywise.results import lookup

    if new.col_labels is None or seen.col_labels is None:
        return new
    code = lookup(new.col_labels, seen.col_labels, "column")
    return replace(
        new, cols=code[new.cols], shape=(new.shape[0], seen.shape[1]), col_labels=seen.col_labels
    )


def _unknown(seen: Observations) -> Iterator[tuple[Any, Any]]:
    """Yield the unknown cells, some rows at a time."""
    import numpy as np

    m, n = seen.shape
    order = np.argsort(seen.rows, kind="stable")
    rows, cols = seen.rows[order], seen.cols[order]
    step = max(1, 2**18 // n)
    for start in range(0, m, step):
        stop = min(start + step, m)
        free = np.ones((stop - start, n), bool)
        a, b = np.searchsorted(rows, [start, stop])
        free[rows[a:b] - start, cols[a:b]] = False
        i, j = np.nonzero(free)
        yield i + start, j


def _best(found: LowRank, seen: Observations, k: int) -> Iterator[tuple[Any, Any]]:
    """Yield the k largest unknown cells of each row, largest first."""
    import numpy as np

    n = seen.shape[1]
    for i, j in _unknown(seen):
        values = found.entries(i, j)
        order = np.lexsort((j, -values, i))
        i, j = i[order], j[order]
        place = np.arange(len(i)) - np.searchsorted(i, i)
        yield i[place < min(k, n)], j[place < min(k, n)]


def _lines(
    found: LowRank,
    cells: Iterator[tuple[Any, Any]],
    level: float,
    names: tuple[Sequence[Any], Sequence[Any]],
    format: Format,
) -> Iterator[tuple[Any, ...]]:
    import numpy as np

    gap = "" if format is Format.table else None
    for i, j in cells:
        for start in range(0, len(i), 2**15):
            a, b = i[start : start + 2**15], j[start : start + 2**15]
            value, (low, high) = found.entries(a, b), found.interval(a, b, level)
            known = np.isfinite(value)
            if found.row_counts is not None and found.col_counts is not None:
                known &= (found.row_counts[a] > 0) & (found.col_counts[b] > 0)
            for t in range(len(a)):
                numbers = (value[t], low[t], high[t]) if known[t] else (np.nan,) * 3
                yield (
                    names[0][a[t]],
                    names[1][b[t]],
                    *(gap if np.isnan(x) else float(x) for x in numbers),
                )


def _tell(found: LowRank, file: str) -> None:
    """Say what there was, what was done and how good it is."""
    r = found.report
    m, n = r["shape"]
    say(f"{file}: {m} x {n}, {r['known']} known ({100 * r['share']:.3g} %), {r['components']} connected "
        f"component{'s' if r['components'] != 1 else ''}")  # fmt: skip
    if r["components"] > 1:
        if "connect" in r:
            say(f"  cells between components are not determined and left empty; {r['to connect']} more would link them, "
                f"the first at row {r['connect'][0][0]}, column {r['connect'][0][1]}" if r["connect"] else
                "  cells between components are not determined and left empty")  # fmt: skip
        else:
            say("  entries between components rest on the priors alone")
    if r["empty_rows"] or r["empty_cols"]:
        say(
            f"  nothing is known of {r['empty_rows']} rows and {r['empty_cols']} columns: their cells are left empty"
        )
    say(f"  {r['method']}, rank {found.rank}: {'; '.join(r['reasons'])}")
    parts = []
    if r.get("noise") is not None:
        parts.append(f"noise {r['noise']:.4g}")
    if r.get("held_out_rmse") is not None:
        parts.append(f"held-out error {r['held_out_rmse']:.4g}")
    if r.get("bias_rmse") is not None:
        parts.append(f"with biases alone {r['bias_rmse']:.4g}")
    if parts:
        say("  " + ", ".join(parts))
    if r.get("interval"):
        say(f"  intervals: {r['interval']}")
    for hint in r["hints"]:
        say(f"  note: {hint}")


@contextmanager
def _progress(known: int, quiet: bool) -> Iterator[Any]:
    """Show sweeps on stderr while a long fit runs, on a terminal only."""
    if quiet or known < 100_000 or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("fitting"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling, once", total=60)
        yield lambda sweep, noise: bar.update(
            task, completed=sweep, description=f"sweep {sweep}, noise {noise:.4g}"
        )
