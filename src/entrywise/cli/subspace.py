"""``entrywise subspace``: principal components of a table with holes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say


def subspace(
    file: Annotated[
        str,
        typer.Argument(
            help="Samples, one a line, empty where not seen: .csv, .tsv, .parquet, .npy, .npz (- is CSV on stdin)."
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
        Path | None, typer.Option(help="Write component, attribute, loading here (CSV).")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Write the scores of every sample here (CSV).")
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

    import numpy as np

    from entrywise.exceptions import ParameterError
    from entrywise.passive import partial_pca
    from entrywise.reproduce.figures import save_csv

    X, names = read_samples(file, leave_out or [])
    if components >= X.shape[1] or components < 1:
        raise ParameterError(
            f"--components must be in 1..{X.shape[1] - 1} for {X.shape[1]} attributes, got {components}"
        )
    if not isinstance(X, np.ndarray):
        if standardize:
            raise ParameterError(
                "--standardize takes a dense table; a sparse matrix is used as it is"
            )
        seen = np.bincount(X.indices, minlength=X.shape[1])
    else:
        seen = (~np.isnan(X)).sum(axis=0)
    never = np.flatnonzero(seen == 0)
    if len(never):
        raise ParameterError(
            f"attribute {names[never[0]]!r} of {file} was never seen; leave it out: --leave-out {names[never[0]]}"
        )
    if standardize:
        size = np.nanstd(X, axis=0)
        if np.any(size == 0):
            constant = names[int(np.flatnonzero(size == 0)[0])]
            raise ParameterError(
                f"attribute {constant!r} is constant and cannot be standardized; --leave-out {constant}"
            )
        X = X / size
    found = partial_pca(X, components, center=center)
    share = found.explained_variance_ratio
    rows = []
    for c, V in enumerate(found.components):
        strongest = np.argsort(-np.abs(V), kind="stable")[:4]
        text = ", ".join(f"{names[j]} {V[j]:+.2f}" for j in strongest)
        rows.append(
            (
                c + 1,
                float(found.explained_variance[c]),
                float(share[c]),
                float(share[: c + 1].sum()),
                text,
            )
        )
    emit(
        ("component", "variance", "share", "together", "strongest"),
        rows,
        format,
        title="Principal components",
    )
    if loadings is not None:
        lines = (
            (c + 1, names[j], float(V[j]))
            for c, V in enumerate(found.components)
            for j in range(len(names))
        )
        save_csv(loadings, ("component", "attribute", "loading"), lines)
    if scores is not None:
        Z = found.transform(X)
        save_csv(
            scores,
            ("sample", *(f"component{c + 1}" for c in range(components))),
            ([i, *z] for i, z in enumerate(Z.tolist())),
        )
    if out is not None:
        scale = {"scale": size.tolist()} if standardize else {}
        replace(found, report={**found.report, "attributes": names, **scale}).save(out)
    if plot is not None:
        draw_spectrum(plot, found)
    report = found.report
    say(
        f"{report['samples']} samples, {report['attributes a sample']:.3g} of {found.d} attributes seen in each; "
        f"{report['samples with fewer than two attributes']} samples show fewer than two"
    )
    if report["pairs never seen together"]:
        say(
            f"{report['pairs never seen together']} pairs were never seen together: their covariance is taken as 0",
            style="yellow",
        )


def read_samples(file: str, leave_out: list[str]) -> tuple[Any, list[str]]:
    """Return samples (an array with NaN, or a sparse matrix) and the names of their attributes.

    Columns of text or dates cannot be attributes and are left out, which is said on stderr.
    """
    import sys

    import numpy as np
    import polars as pl

    from entrywise.exceptions import DataError

    ending = Path(file.removesuffix(".gz")).suffix.lower()
    if ending in (".npy", ".npz"):
        X = _read_numpy(file)
        if leave_out:
            raise DataError(f"{file} has no column names; --leave-out takes a table with a header")
        return X, [str(j) for j in range(X.shape[1])]
    try:
        if ending in (".parquet", ".pq"):
            table = pl.read_parquet(file)
        else:
            source: Any = sys.stdin.buffer if file == "-" else file
            table = pl.read_csv(source, separator="\t" if ending == ".tsv" else ",", infer_schema_length=None,
                                null_values=["", "NA", "NaN", "nan", "null"])  # fmt: skip
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"{file} must be a table with one line a sample: {str(error).splitlines()[0]}"
        ) from None
    for name in leave_out:
        if name not in table.columns:
            raise DataError(
                f"{file} has no column {name!r} to leave out; it has {', '.join(map(repr, table.columns[:12]))}"
            )
    table = table.drop(leave_out)
    empty = {
        c for c in table.columns if table[c].null_count() == table.height
    }  # without values: of no type yet
    text = [
        c for c, t in table.schema.items() if not (t.is_numeric() or t == pl.Boolean or c in empty)
    ]
    if text:
        say(f"left out, since they hold no numbers: {', '.join(text)}", style="yellow")
        table = table.drop(text)
    if table.width < 2 or table.height < 2:
        raise DataError(
            f"{file} must have two columns of numbers and two lines or more, got {table.height} x {table.width}"
        )
    X = table.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if np.isinf(X).any():
        i, j = np.argwhere(np.isinf(X))[0]
        raise DataError(
            f"line {i + 2} of {file}, column {table.columns[j]!r}, is {X[i, j]}; values must be finite"
        )
    return X, list(table.columns)


def _read_numpy(file: str) -> Any:
    import numpy as np

    from entrywise.exceptions import DataError

    try:
        if file.endswith(".npy"):
            X = np.load(file, allow_pickle=False)
        else:
            with np.load(file, allow_pickle=False) as stored:
                if "indptr" in stored.files:
                    from scipy.sparse import load_npz

                    matrix: Any = load_npz(file)
                    return matrix.tocsr()
                arrays = [stored[name] for name in stored.files if stored[name].ndim == 2]
                if len(arrays) != 1:
                    raise DataError(
                        f"{file} must hold one array with two dimensions, it holds {len(arrays)}"
                    )
                X = arrays[0]
    except (ValueError, EOFError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file} must be a numpy file without pickles: {error}") from None
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(
            f"{file} must hold numbers in two dimensions, got {X.dtype} of shape {X.shape}"
        )
    return X.astype(np.float64)


def draw_spectrum(path: Path, found: Any) -> None:
    """Draw the spectrum, the components kept in colour."""
    import numpy as np

    from entrywise.reproduce.figures import new_figure, save_figure

    figure, axes = new_figure()
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
    save_figure(path, figure)
