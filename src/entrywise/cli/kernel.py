"""``entrywise kernel``: complete a kernel matrix of points from a few of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from entrywise.cli._shared import Format, FormatOption, emit, say
from entrywise.exceptions import ParameterError

if TYPE_CHECKING:
    from entrywise.results import PSDFactor


def kernel(
    file: Annotated[
        str,
        typer.Argument(
            help="Points, one a line: .csv, .tsv, .xlsx, .parquet, .npy or .npz (.gz too); - is text on stdin."
        ),
    ],
    rank: Annotated[int | None, typer.Option(help="Most columns to ask for.")] = None,
    max_error: Annotated[
        float | None, typer.Option(help="Stop when every entry is certified within this.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Most kernel evaluations to pay for.")
    ] = None,
    verify: Annotated[
        int,
        typer.Option(
            help="Random entries asked at the end, to test that the kernel is PSD at all."
        ),
    ] = 0,
    name: Annotated[
        str,
        typer.Option(
            "--kernel", help="rbf, laplacian, polynomial, linear, cosine, chi2, precomputed, ..."
        ),
    ] = "rbf",
    gamma: Annotated[
        float | None,
        typer.Option(help="Of the kernel; for rbf 1 / median squared distance when left out."),
    ] = None,
    degree: Annotated[float | None, typer.Option(help="Of the polynomial kernel.")] = None,
    coef0: Annotated[
        float | None, typer.Option(help="Of the polynomial and sigmoid kernels.")
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            help="greedy (largest entry error), random (trace error) or gain (less, for more entries)."
        ),
    ] = "greedy",
    seed: Annotated[int, typer.Option(help="For --order random and gain, and the median.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the factor here (npz); FILE.factor.npz when left out."),
    ] = None,
    embed: Annotated[
        str | None,
        typer.Option(help="Draw a map of the points: tsne or pca; coordinates go to FILE.map.csv."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the map (png, svg or pdf), columns asked ringed; pca unless --embed."
        ),
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Complete the kernel matrix of points from a few columns, and certify the error of the rest.

    The factor F of shape (n, k), with F F' close to the kernel, goes to an npz file. A map uses distances of
    the completed kernel; t-SNE of rbf and laplacian kernels the distances to the columns asked, which tell more.

    Example: entrywise kernel points.npy --rank 20 --embed tsne --plot map.png
    """
    from entrywise.active import adaptive_nystrom
    from entrywise.oracles import KernelOracle, MatrixOracle
    from entrywise.play import play
    from entrywise.tables import read_points

    _refuse_map(embed, plot)
    if rank is None and max_error is None and budget is None:
        raise ParameterError(
            "one of --rank, --max-error and --budget must say when to stop; give one"
        )
    X = read_points(file)
    if name == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise ParameterError(
                f"a precomputed kernel must be square, {file} is {X.shape[0]} x {X.shape[1]}"
            )
        oracle: KernelOracle | MatrixOracle = MatrixOracle(X)
    else:
        if name == "rbf" and gamma is None:
            gamma = 1.0 / median_square(X, seed)
        options = {"gamma": gamma, "degree": degree, "coef0": coef0}
        oracle = KernelOracle(X, name, **{k: v for k, v in options.items() if v is not None})
    n = len(X)
    if rank is not None and rank > n:
        raise ParameterError(f"--rank must be in 0..{n}, the number of points, got {rank}")
    plan = adaptive_nystrom(n, rank=rank, max_error=max_error, order=order, verify=verify, rng=seed)
    found = play(plan, oracle, budget=budget, progress=True)
    stem = "points" if file == "-" else file
    target = out or Path(f"{stem}.factor.npz")
    found.save(target)
    row = {
        "points": n,
        "columns": found.rank,
        "entries": int(found.cost),
        "share": found.cost / (n * (n + 1) / 2),
        "max_error": found.certificates[0].value,
        "trace_error": found.certificates[1].value,
        "status": found.status,
        "factor": str(target),
    }
    emit(tuple(row), [tuple(row.values())], format, title="Kernel completed")
    for certificate in (found.certificates[0], *found.certificates[2:]):
        say(str(certificate))
    if embed is not None or plot is not None:
        radial = name in ("rbf", "laplacian")
        draw(found, embed or "pca", Path(f"{stem}.map.csv"), plot, seed, radial)


def _refuse_map(embed: str | None, plot: Path | None) -> None:
    """Refuse a map that cannot be drawn before anything is worked out."""
    if embed not in (None, "tsne", "pca"):
        raise ParameterError(f"--embed must be tsne or pca, got {embed!r}")
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must end in .png, .svg or .pdf, got {plot.name!r}")


def draw(
    found: PSDFactor, method: str, target: Path, plot: Path | None, seed: int, radial: bool = False
) -> None:
    """Write the map of a completed kernel: coordinates as CSV, and a picture when wanted."""
    from entrywise.apply.kernels import embed, save_map
    from entrywise.tables import write_table

    radial = radial and method == "tsne" and found.rank > 1
    if radial:
        C = found.factor @ found.factor[found.pivots].T
        radial = bool(
            (C > 0).all()
        )  # far apart, a kernel is 0 to the last digit and has no logarithm
    if radial:
        say("map from distances to the columns asked")
    Y = embed(found, method, rng=seed, radial=radial)  # type: ignore[arg-type]
    asked = set(found.pivots.tolist())
    rows = ((k, float(x), float(y), int(k in asked)) for k, (x, y) in enumerate(Y))
    write_table(target, ("point", "x", "y", "asked"), rows)
    say(f"map: {target}")
    if plot is not None:
        words = f"{'t-SNE' if method == 'tsne' else 'kernel PCA'} of {len(Y)} points from {found.rank} columns (ringed)"
        save_map(plot, Y, columns=found.pivots, title=words)
        say(f"picture: {plot}")


def median_square(X: object, seed: int) -> float:
    """Return the median squared distance between points, from at most 1000 of them."""
    from scipy.spatial.distance import pdist

    points = np.asarray(X, dtype=np.float64)
    if len(points) > 1000:
        points = points[np.random.default_rng(seed).permutation(len(points))[:1000]]
    return float(np.median(pdist(points, "sqeuclidean"))) if len(points) > 1 else 1.0
