"""``entrywise complete``: fill the gaps of a table, with intervals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from entrywise.cli._blocks import engine_at, refuse_for_folders
from entrywise.cli._shared import (
    DuplicatesOption,
    Format,
    FormatOption,
    HeaderOption,
    LabelsOption,
    LayoutOption,
    bounds_of,
    emit,
    say,
)
from entrywise.compiling import NOTICE
from entrywise.exceptions import ParameterError

if TYPE_CHECKING:
    from entrywise.linalg.blocks import BlockEntries
    from entrywise.observations import Observations
    from entrywise.results import LowRank

MOST = 1_000_000  # cells printed without --all
COLUMNS = ("row", "col", "value", "low", "high")


def complete(
    file: Annotated[
        str,
        typer.Argument(
            help="Known entries: .csv, .tsv, .xlsx, .parquet, .npy or .npz (.gz too), a folder of blocks; - is text on stdin."
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
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="Print the table itself instead, one row a line, its gaps filled."
        ),
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
    row_features: Annotated[
        str | None,
        typer.Option(help="Features of the rows: a table, labels first, or an .npy array."),
    ] = None,
    col_features: Annotated[
        str | None, typer.Option(help="Features of the columns, in the same forms.")
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(help="Range of an answer, such as 1,5; intervals stay in it.")
    ] = None,
    likelihood: Annotated[
        str, typer.Option(help="What answers are: auto, gaussian, binary, ordinal or counts.")
    ] = "auto",
    units: Annotated[
        str,
        typer.Option(
            help="auto, one, columns or rows: whether each column (or row) has a unit of its own."
        ),
    ] = "auto",
    row: Annotated[str | None, typer.Option(help="Column of FILE that names the row.")] = None,
    col: Annotated[str | None, typer.Option(help="Column of FILE that names the column.")] = None,
    value: Annotated[str | None, typer.Option(help="Column of FILE that holds the value.")] = None,
    noise: Annotated[
        str | None, typer.Option(help="Column with standard deviations, or one number.")
    ] = None,
    layout: LayoutOption = "auto",
    labels: LabelsOption = "auto",
    header: HeaderOption = "auto",
    duplicates: DuplicatesOption = "refuse",
    seed: Annotated[int, typer.Option(help="For the held-out entries and the starts.")] = 0,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Dask scheduler that works on a folder of blocks, such as tcp://host:8786."
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the completed matrix here (npz).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary on stderr.")] = False,
    format: FormatOption = Format.csv,
) -> None:
    """Fill the gaps of a table: row, col, value, low, high of each cell asked for.

    Lines of which nothing is known are left empty, not invented, unless features tell of them.

    Example: entrywise complete sales.csv --wide > filled.csv
    """
    from entrywise.complete import complete as fit
    from entrywise.results.result import refuse_level
    from entrywise.tables import read_entries, read_features

    refuse_level(level, "--level")
    said = (all_cells, wide, pairs is not None, top is not None, new is not None)
    if sum(said) > 1:
        raise ParameterError("give at most one of --all, --wide, --pairs, --top and --new")
    if top is not None and top < 1:
        raise ParameterError(f"--top must be 1 or more, got {top}")
    params: dict[str, Any] = {} if rank is None else {"rank": rank}
    params |= {"likelihood": likelihood, "bounds": bounds_of(bounds), "units": units, "rng": seed}
    if Path(file).is_dir():
        refuse_for_folders(
            {
                "--all": all_cells,
                "--wide": wide,
                "--top": top,
                "--new": new,
                "--row-features": row_features,
            }
            | {"--col-features": col_features, "--noise": noise}
            | {"--row": row, "--col": col, "--value": value}
        )
        _complete_blocks(file, engine, method, params, pairs, save, level, quiet, format)
        return
    if engine is not None:
        raise ParameterError("--engine works on a folder of blocks; write one with entrywise.scale")
    how: dict[str, Any] = {
        "names": (row, col, value),
        "noise": _number(noise),
        "layout": layout,
        "labels": labels,
        "header": header,
    }
    reading = read_entries(file, duplicates=duplicates, **how)  # type: ignore[arg-type]
    seen = reading.observations
    unknown = seen.shape[0] * seen.shape[1] - len(seen)
    if unknown > MOST and not any(said):
        raise ParameterError(
            f"{unknown} cells are unknown; say which: --top K, --pairs FILE, or --all for every one"
        )
    asked = None if pairs is None else _pairs(pairs, seen)
    rows_to_come = None if new is None else read_entries(new, **how).observations
    features = {"row_features": row_features, "col_features": col_features}
    params |= {name: read_features(path) for name, path in features.items() if path is not None}
    with _progress(len(seen), quiet) as tick:
        found = fit(seen, method, progress=tick, **params)
    _keep(found, save, quiet, f"{file}: {reading.words}")
    if found.shape != seen.shape:  # features named more lines
        seen = replace(
            seen, shape=found.shape, row_labels=found.row_labels, col_labels=found.col_labels
        )
    if wide:
        corner = "row" if seen.row_labels is None else reading.rows
        emit((corner, *_names(seen.col_labels, seen.shape[1])), _filled(found, seen), format)
        return
    if rows_to_come is not None:
        cells = _unknown(_on_axis(rows_to_come, seen))
        found = found.fold_in(rows_to_come)
    elif asked is not None:
        cells = iter([asked])
    elif top is not None:
        cells = _best(found, seen, top)
    else:
        cells = _unknown(seen)
    emit(COLUMNS, _lines(found, cells, level, format), format)


def _complete_blocks(
    folder: str,
    address: str | None,
    method: str,
    params: dict[str, Any],
    pairs: str | None,
    save: Path | None,
    level: float,
    quiet: bool,
    format: Format,
) -> None:
    """Complete a folder of blocks; print the cells asked for and keep the matrix where one says so."""
    from entrywise.complete import complete as fit
    from entrywise.scale import Blocks

    if pairs is None and save is None:
        raise ParameterError(
            "blocks have too many cells to print; say which: --pairs FILE, or --save FILE"
        )
    blocks = Blocks(folder)
    asked = None if pairs is None else _pairs(pairs, blocks)
    with engine_at(address) as engine, _progress(len(blocks), quiet) as tick:
        found = fit(blocks, method, engine=engine, progress=tick, **params)
    _keep(found, save, quiet, f"{folder}: {len(blocks)} entries in blocks")
    if asked is not None:
        emit(COLUMNS, _lines(found, iter([asked]), level, format), format)


def _keep(found: LowRank, save: Path | None, quiet: bool, words: str) -> None:
    """Keep the completed matrix where one says so, and say what was done."""
    if save is not None:
        found.save(save)
    if not quiet:
        say(words)
        _tell(found)


def _number(noise: str | None) -> str | float | None:
    """Return one number for all, or the name of a column."""
    from entrywise.tables import number

    if noise is None:
        return None
    found = number(noise)
    return noise if found is None else found


def _names(labels: Sequence[str] | None, size: int) -> Sequence[Any]:
    return labels if labels is not None else range(size)


def _pairs(path: str, seen: Observations | BlockEntries) -> tuple[Any, Any]:
    """Return the cells asked for in a file, by label or by number; a stranger is refused with its line."""
    from entrywise.tables import read_table

    table = read_table(path, header="no")
    if len(table.columns) < 2:
        raise table.error(f"line {table.lines[0]}: a cell is row and col, in two columns")
    axes = [_finder(seen.row_labels, seen.shape[0]), _finder(seen.col_labels, seen.shape[1])]
    found = []
    for k, line in enumerate(table.lines):
        names = [table.columns[0].cells[k], table.columns[1].cells[k]]
        cell = [find(name) for find, name in zip(axes, names, strict=True)]
        if None not in cell:
            found.append(cell)
        elif k > 0 or cell != [None, None]:  # else a header
            axis = "row" if cell[0] is None else "column"
            stranger = names[cell.index(None)]
            raise table.error(f"line {line}: no {axis} of the table is called {stranger!r}")
    if not found:
        raise table.error("names no cell of the table; give lines of row and col")
    i, j = np.array(found, np.int64).T
    return i, j


def _finder(labels: Sequence[str] | None, size: int) -> Callable[[str], int | None]:
    """Return what finds the place of a label, or of a number where there are no labels."""
    from entrywise.tables import whole

    if labels is not None:
        return {label: k for k, label in enumerate(labels)}.get

    def place(text: str) -> int | None:
        k = whole(text)
        return k if k is not None and k < size else None

    return place


def _on_axis(new: Observations, seen: Observations) -> Observations:
    """Return the new rows' observations on the columns of the fitted table."""
    from entrywise.results import lookup

    if new.col_labels is None or seen.col_labels is None:
        return new
    code = lookup(new.col_labels, seen.col_labels, "column")
    return replace(
        new, cols=code[new.cols], shape=(new.shape[0], seen.shape[1]), col_labels=seen.col_labels
    )


def _unknown(seen: Observations) -> Iterator[tuple[Any, Any]]:
    """Yield the unknown cells, some rows at a time."""
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
    n = seen.shape[1]
    for i, j in _unknown(seen):
        values = found.entries(i, j)
        order = np.lexsort((j, -values, i))
        i, j = i[order], j[order]
        place = np.arange(len(i)) - np.searchsorted(i, i)
        yield i[place < min(k, n)], j[place < min(k, n)]


def _filled(found: LowRank, seen: Observations) -> Iterator[list[Any]]:
    """Yield the rows of the table, known cells as they are and gaps filled; what nothing is known of stays empty."""
    m, n = seen.shape
    order = np.argsort(seen.rows, kind="stable")
    ends = np.searchsorted(seen.rows[order], np.arange(m + 1))
    every = np.arange(n)
    for i, name in enumerate(_names(seen.row_labels, m)):
        at = np.full(n, i)
        line = np.where(_is_told(found, at, every), found.entries(at, every), np.nan)
        own = order[ends[i] : ends[i + 1]]
        line[seen.cols[own]] = seen.values[own]
        yield [name, *map(_written, line.tolist())]


def _written(x: float) -> float | int | None:
    """Return a number as people write it: whole ones without a point, gaps as nothing."""
    if np.isnan(x):
        return None
    return int(x) if x.is_integer() else x


def _is_told(found: LowRank, rows: Any, cols: Any) -> Any:
    """Return of which cells something is known, by their rows and columns or by features."""
    known = np.isfinite(found.entries(rows, cols))
    if found.row_counts is not None and found.row_features is None:
        known &= found.row_counts[rows] > 0
    if found.col_counts is not None and found.col_features is None:
        known &= found.col_counts[cols] > 0
    return known


def _lines(
    found: LowRank,
    cells: Iterator[tuple[Any, Any]],
    level: float,
    format: Format,
) -> Iterator[tuple[Any, ...]]:

    row_names = _names(found.row_labels, found.shape[0])
    col_names = _names(found.col_labels, found.shape[1])

    gap = "" if format is Format.table else None
    told = str(found.report.get("interval", ""))
    for i, j in cells:
        for start in range(0, len(i), 2**15):
            a, b = i[start : start + 2**15], j[start : start + 2**15]
            value = found.entries(a, b)
            low = high = np.full(len(a), np.nan)
            if not told.startswith("none"):
                low, high = found.interval(a, b, level)
            known = _is_told(found, a, b)
            for t in range(len(a)):
                numbers = (value[t], low[t], high[t]) if known[t] else (np.nan,) * 3
                yield (
                    row_names[a[t]],
                    col_names[b[t]],
                    *(gap if np.isnan(x) else float(x) for x in numbers),
                )


def _tell(found: LowRank) -> None:
    """Say what was done and how good it is."""
    r = found.report
    _tell_gaps(found)
    say(f"  {r['method']}, rank {found.rank}: {'; '.join(r['reasons'])}")
    sizes = {
        "noise": "noise",
        "held_out_rmse": "held-out error",
        "bias_rmse": "with biases alone",
    }
    parts = [f"{words} {r[key]:.4g}" for key, words in sizes.items() if r.get(key) is not None]
    if parts:
        of = "" if found.units is None else f", in standard deviations of {found.units.axis}"
        say("  " + ", ".join(parts) + of)
    if r.get("interval"):
        say(f"  intervals: {r['interval']}")
    if r.get("cold_interval"):
        say(f"  intervals of lines never seen: {r['cold_interval']}")
    if found.bounds is not None:
        say(f"  answers lie in {found.bounds[0]:g}..{found.bounds[1]:g}: no interval leaves it")
    for hint in r["hints"]:
        say(f"  note: {hint}")


def _tell_gaps(found: LowRank) -> None:
    """Say what cannot be told from what is known."""
    r = found.report
    plural = "s" if r["components"] != 1 else ""
    say(f"  {100 * r['share']:.3g} % are known, in {r['components']} connected component{plural}")
    if r["components"] > 1 and "connect" not in r:
        say("  entries between components rest on the priors alone")
    elif r["components"] > 1:
        words = "  cells between components are not determined and left empty"
        if r["connect"]:
            (i, j), *_ = r["connect"]
            words += f"; {r['to_connect']} more would link them, the first at row {i}, column {j}"
        say(words)
    if r["empty_rows"] or r["empty_cols"]:
        told = found.row_features is not None or found.col_features is not None
        fate = "what features do not tell is left empty" if told else "their cells are left empty"
        say(f"  nothing is known of {r['empty_rows']} rows and {r['empty_cols']} columns: {fate}")


@contextmanager
def _progress(known: int, quiet: bool) -> Iterator[Any]:
    """Show sweeps on stderr while a long fit runs, on a terminal only."""
    if quiet:
        with NOTICE.unsaid():
            yield None
        return
    if known < 100_000 or not sys.stderr.isatty():
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
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    with NOTICE.unsaid(), bar:
        task = bar.add_task("compiling, once", total=60)
        yield lambda sweep, noise: bar.update(
            task, completed=sweep, description=f"sweep {sweep}, noise {noise:.4g}"
        )
