"""``entrywise subspace``: principal components of a table with holes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from entrywise.cli._shared import Format, FormatOption, emit, say
from entrywise.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from entrywise.results import Subspace
    from entrywise.tables import Column, Table

STRONGEST = 4  # attributes of a component that are printed


def subspace(
    file: Annotated[
        str,
        typer.Argument(
            help="Samples, one a line, empty where not seen: .csv, .tsv, .xlsx, .parquet, .npy, .npz (.gz too); - is stdin."
        ),
    ],
    components: Annotated[
        int, typer.Option("--components", "-k", help="Dimension of the subspace.")
    ] = 2,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be given several times.")
    ] = None,
    center: Annotated[bool, typer.Option(help="Take the mean of each attribute out.")] = True,
    standardize: Annotated[
        bool, typer.Option(help="Divide each attribute by its standard deviation first.")
    ] = False,
    loadings: Annotated[
        Path | None, typer.Option(help="Write component, attribute, loading here (.csv or .xlsx).")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Write the scores of every sample here (.csv or .xlsx).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the subspace here (npz).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the spectrum here (PNG).")] = None,
    format: FormatOption = Format.table,
) -> None:
    """Find the principal components of samples of which only some attributes were seen.

    Nothing is imputed: each covariance is averaged over the samples that show both attributes.

    Example: entrywise subspace readings.parquet --components 3 --plot scree.png
    """
    from dataclasses import replace

    from entrywise.passive import partial_pca

    X, names = read_samples(file, leave_out or [])
    _refuse(X, names, file, components)
    size = _sizes(X, names) if standardize else None
    if size is not None:
        X = X / size
    found = partial_pca(X, components, center=center)
    _print(found, names, format)
    if loadings is not None:
        _write_loadings(loadings, found, names)
    if scores is not None:
        _write_scores(scores, found.transform(X))
    if out is not None:
        scale = {} if size is None else {"scale": size.tolist()}
        replace(found, report={**found.report, "attributes": names, **scale}).save(out)
    if plot is not None:
        draw_spectrum(plot, found)
    _say_what_was_seen(found)


def _refuse(X: Any, names: list[str], file: str, components: int) -> None:

    d = X.shape[1]
    if components >= d or components < 1:
        raise ParameterError(
            f"--components must be in 1..{d - 1} for {d} attributes, got {components}"
        )
    if isinstance(X, np.ndarray):
        seen = (~np.isnan(X)).sum(axis=0)
    else:
        seen = np.bincount(X.indices, minlength=d)
    never = np.flatnonzero(seen == 0)
    if len(never):
        name = names[never[0]]
        raise ParameterError(
            f"attribute {name!r} of {file} was never seen; leave it out: --leave-out {name}"
        )


def _sizes(X: Any, names: list[str]) -> Any:
    """Return the standard deviation of each attribute, none of them 0."""
    if not isinstance(X, np.ndarray):
        raise ParameterError("--standardize takes a dense table; a sparse matrix is used as it is")
    size = np.nanstd(X, axis=0)
    if np.any(size == 0):
        constant = names[int(np.flatnonzero(size == 0)[0])]
        raise ParameterError(
            f"attribute {constant!r} is constant and cannot be standardized; --leave-out {constant}"
        )
    return size


def _print(found: Subspace, names: list[str], format: Format) -> None:
    """Print a line a component, with the attributes that weigh most."""
    share = found.explained_variance_ratio
    rows = []
    for c, V in enumerate(found.components):
        strongest = np.argsort(-np.abs(V), kind="stable")[:STRONGEST]
        text = ", ".join(f"{names[j]} {V[j]:+.2f}" for j in strongest)
        together = float(share[: c + 1].sum())
        rows.append((c + 1, float(found.explained_variance[c]), float(share[c]), together, text))
    columns = ("component", "variance", "share", "together", "strongest")
    emit(columns, rows, format, title="Principal components")


def _write_loadings(path: Path, found: Subspace, names: list[str]) -> None:
    from entrywise.tables import write_table

    lines = (
        (c + 1, name, float(weight))
        for c, V in enumerate(found.components)
        for name, weight in zip(names, V, strict=True)
    )
    write_table(path, ("component", "attribute", "loading"), lines)


def _write_scores(path: Path, Z: Any) -> None:
    from entrywise.tables import write_table

    header = ("sample", *(f"component{c + 1}" for c in range(Z.shape[1])))
    write_table(path, header, ([i, *z] for i, z in enumerate(Z.tolist())))


def _say_what_was_seen(found: Subspace) -> None:
    report = found.report
    say(
        f"{report['samples']} samples, {report['attributes_a_sample']:.3g} of {found.d} attributes seen in each; "
        f"{report['samples_with_fewer_than_two_attributes']} samples show fewer than two"
    )
    never = report["pairs_never_seen_together"]
    if never:
        say(
            f"{never} pairs were never seen together: their covariance is taken as 0",
            style="yellow",
        )


def read_samples(file: str, leave_out: list[str]) -> tuple[Any, list[str]]:
    """Return samples (an array with NaN, or a sparse matrix) and the names of their attributes.

    Columns of text or dates, and ids under a usual name, cannot be attributes and are left out, which is said.
    """
    from entrywise.tables import ending, read_table

    if ending(file) in (".npy", ".npz"):
        if leave_out:
            raise DataError(f"{file} has no column names; --leave-out takes a table with a header")
        X = _read_numpy(file)
        return X, [str(j) for j in range(X.shape[1])]
    table = read_table(file)
    dropped = {id(table.named(name)) for name in leave_out}
    columns = [column for column in table.columns if id(column) not in dropped]
    for column in columns:
        _refuse_infinite(table, column)
    text = [column for column in columns if column.kind == "text" or is_ids(column, table)]
    if text:
        names = ", ".join(column.name for column in text)
        say(f"left out, since they hold no measurements: {names}", style="yellow")
    kept = [column for column in columns if column not in text]
    if len(kept) < 2 or len(table) < 2:
        raise DataError(
            f"{file} must have two columns of numbers and two lines or more, got {len(table)} x {len(kept)}"
        )
    return np.column_stack([column.numbers for column in kept]), [column.name for column in kept]


def is_ids(column: Column, table: Table) -> bool:
    """Return whether a column holds ids: the first, unique whole numbers under a name such as id or sample."""
    from entrywise.layouts import is_label_name

    if column is not table.columns[0] or not table.headed or not is_label_name(column.name):
        return False
    return column.kind == "whole" and len(set(column.cells)) == len(table)


def _refuse_infinite(table: Table, column: Column) -> None:
    """Refuse a column of numbers one of which is infinite, by its line."""
    for k, cell in enumerate(column.cells):
        if cell.lower().lstrip("+-") in ("inf", "infinity"):
            raise DataError(
                f"line {table.lines[k]} of {table.path}, column {column.name!r}, is {cell}; values must be finite"
            )


def _read_numpy(file: str) -> Any:

    from entrywise.tables import arrays_of, sparse_of

    found = arrays_of(file)
    if isinstance(found, dict):
        if "indptr" in found:
            return sparse_of(file, found).tocsr()
        flat = [array for array in found.values() if array.ndim == 2]
        if len(flat) != 1:
            raise DataError(f"{file} must hold one array with two dimensions, it holds {len(flat)}")
        found = flat[0]
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise DataError(
            f"{file} must hold numbers in two dimensions, got {found.dtype} of shape {found.shape}"
        )
    return found.astype(np.float64)


def draw_spectrum(path: Path, found: Any) -> None:
    """Draw the spectrum, the components kept in colour."""
    from entrywise import plot

    figure, axes = plot.figure()
    ax = axes[0, 0]
    shown = min(found.d, max(20, found.k + 5))
    at = np.arange(1, shown + 1)
    share = found.spectrum[:shown] / max(float(found.spectrum.sum()), 1e-300)
    ax.bar(at, share, color=["C0" if j <= found.k else "0.75" for j in at])
    ax.plot(at, np.cumsum(share), "k.-", linewidth=1, label="together")
    ax.set_xlabel("component")
    ax.set_ylabel("share of variance")
    ax.set_xticks(at[:: max(1, shown // 10)])
    ax.set_ylim(0, 1.02)
    ax.legend(frameon=False, loc="center right")
    ax.set_title(
        f"{found.k} of {found.d} components, {found.explained_variance_ratio.sum():.0%} of the variance"
    )
    plot.save(path, figure)
