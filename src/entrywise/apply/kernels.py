r"""Maps of kernels that were only partly evaluated: kernel PCA, t-SNE, features, and points that come later.

A completed kernel :math:`\hat K = F F^\top` is used through distances
:math:`d_{ij}^2 = \hat K_{ii} + \hat K_{jj} - 2 \hat K_{ij} = |f_i - f_j|^2`, with its own diagonal: overwriting that with
the known one (1 for an RBF kernel) tears every point away from its neighbours and ruins the map.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.apply.landmarks import radial_coordinates
from entrywise.exceptions import ParameterError
from entrywise.npz import write_whole
from entrywise.results import Matrix, PSDFactor
from entrywise.types import Array, Indices

Embedding = Literal["pca", "tsne"]


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Features of a completed kernel, its kernel PCA, and where new points fall.

    Parameters
    ----------
    found : PSDFactor
        What :func:`~entrywise.active.adaptive_nystrom` returned.
    dimensions : int
        Axes of the map; fewer when the factor has fewer columns.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.active import adaptive_nystrom
    >>> from entrywise.oracles import KernelOracle
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> oracle = KernelOracle(X, "linear")
    >>> made = KernelMap(ew.play(adaptive_nystrom(40), oracle))
    >>> made.coordinates.shape, made.columns.shape
    ((40, 2), (3,))
    >>> again = made.project(X[:5] @ X[made.columns].T)  # kernel between points and the columns that were asked
    >>> np.allclose(again, made.coordinates[:5])
    True
    """

    found: PSDFactor
    dimensions: int = 2
    mean: Array = field(init=False, repr=False)
    axes: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        F = self.found.factor
        if self.dimensions < 1:
            raise ParameterError(f"dimensions must be at least 1, got {self.dimensions}")
        mean = F.mean(axis=0)
        axes = _principal(F - mean, self.dimensions)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "axes", axes)

    @property
    def columns(self) -> Indices:
        """Points whose columns were asked, in order: the landmarks."""
        return self.found.pivots

    @property
    def features(self) -> Array:
        """Nyström features F of shape (n, k), F F' being the completed kernel."""
        return self.found.factor

    @property
    def coordinates(self) -> Array:
        """Kernel PCA of shape (n, dimensions)."""
        return np.asarray((self.features - self.mean) @ self.axes)

    def transform(self, kernel: ArrayLike) -> Array:
        """Return features of new points from their kernel with the landmarks, shape (p, k) in and out."""
        K = np.atleast_2d(np.asarray(kernel, dtype=np.float64))
        k = len(self.columns)
        if K.shape[1] != k or self.features.shape[1] != k:
            raise ParameterError(
                f"the kernel with each of the {k} landmarks must be given, one column each in the order of .columns, got {K.shape}"
            )
        from scipy.linalg import solve_triangular

        W = self.features[
            self.columns
        ]  # (k, k), lower triangular: the Cholesky factor of the block that was asked
        if np.abs(np.triu(W, 1)).max(initial=0.0) <= 1e-9 * np.abs(W).max(initial=0.0):
            return np.asarray(solve_triangular(W, K.T, lower=True).T)
        return np.asarray(np.linalg.lstsq(W, K.T, rcond=None)[0].T)

    def project(self, kernel: ArrayLike) -> Array:
        """Return where new points fall on the map, from their kernel with the landmarks."""
        return np.asarray((self.transform(kernel) - self.mean) @ self.axes)


def kernel_pca(kernel: Matrix | ArrayLike, dimensions: int = 2) -> Array:
    """Return the kernel PCA of a completed kernel, shape (n, dimensions).

    Parameters
    ----------
    kernel : PSDFactor, any completed matrix, or an (n, n) array
        A PSDFactor is never made dense. Others are symmetrised and centred.
    dimensions : int

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [3.0]])
    >>> np.round(np.abs(kernel_pca(x @ x.T, 1)).ravel(), 3)
    array([1.333, 0.333, 1.667])
    """
    if isinstance(kernel, PSDFactor):
        return _pad(KernelMap(kernel, dimensions).coordinates, dimensions)
    K = _symmetric(kernel)
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    top = np.argsort(-values)[:dimensions]
    return _pad(_signed(vectors[:, top]) * np.sqrt(np.maximum(values[top], 0.0)), dimensions)


def kernel_tsne(
    kernel: Matrix | ArrayLike,
    dimensions: int = 2,
    *,
    perplexity: float = 30.0,
    rng: int = 0,
    radial: bool = False,
) -> Array:
    """Return the t-SNE map of a completed kernel, shape (n, dimensions).

    Distances come from the completed kernel, diagonal included; the start is its kernel PCA.

    Parameters
    ----------
    kernel : PSDFactor, any completed matrix, or an (n, n) array
    perplexity : float
        Reduced to a third of the points when there are few.
    rng : int
    radial : bool
        The kernel is known to be exp(-gamma d^2), without noise: of a PSDFactor the points are placed by
        :func:`~entrywise.apply.landmarks.radial_coordinates`, which keeps more of their neighbourhoods from the same
        entries; of a full kernel the distances are d.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if radial and isinstance(kernel, PSDFactor):
        kernel = PSDFactor(radial_coordinates(kernel), kernel.pivots)
    elif radial:
        kernel = _logarithm(kernel)
    factored = isinstance(kernel, PSDFactor)
    data: Array = kernel.factor if isinstance(kernel, PSDFactor) else _distances(kernel)
    n = len(data)
    if n < 4:
        raise ParameterError(f"a t-SNE map needs at least 4 points, got {n}")
    start = kernel_pca(kernel, dimensions)
    spread = float(start[:, 0].std())
    start = (
        start / spread * 1e-4
        if spread > 0
        else np.random.default_rng(rng).normal(0, 1e-4, start.shape)
    )
    engine = TSNE(
        dimensions,
        perplexity=min(perplexity, max(1.0, (n - 1) / 3)),
        init=start.astype(np.float32),
        metric="euclidean" if factored else "precomputed",
        learning_rate="auto",
        random_state=rng,
        method="barnes_hut" if dimensions < 4 else "exact",
    )
    with threadpool_limits(
        1 if n < 4000 else None, user_api="openmp"
    ):  # threads only wait for each other on small maps
        return np.asarray(engine.fit_transform(data), dtype=np.float64)


def embed(
    kernel: Matrix | ArrayLike,
    method: Embedding = "pca",
    *,
    rng: int = 0,
    perplexity: float = 30.0,
    radial: bool = False,
) -> Array:
    """Return a map of shape (n, 2) by kernel PCA or t-SNE; `radial` as in :func:`kernel_tsne`."""
    if method == "pca":
        return kernel_pca(kernel, 2)
    if method == "tsne":
        return kernel_tsne(kernel, 2, perplexity=perplexity, rng=rng, radial=radial)
    raise ParameterError(f"embed must be pca or tsne, got {method!r}")


def neighbour_accuracy(coordinates: ArrayLike, labels: ArrayLike, neighbours: int = 5) -> float:
    """Return how often the majority of the nearest neighbours on the map has a point's own label.

    >>> neighbour_accuracy([[0], [1], [2], [10], [11], [12]], [0, 0, 0, 1, 1, 1], 1)
    1.0
    """
    from sklearn.neighbors import NearestNeighbors

    Y, given = np.asarray(coordinates, dtype=np.float64), np.asarray(labels)
    _, code = np.unique(given, return_inverse=True)
    near = (
        NearestNeighbors(n_neighbors=neighbours).fit(Y).kneighbors(return_distance=False)
    )  # a point is not its own
    votes = np.zeros((len(Y), code.max() + 1))
    np.add.at(votes, (np.arange(len(Y))[:, None], code[near]), 1.0)
    return float(np.mean(votes.argmax(axis=1) == code))


def draw_map(
    ax: Any, coordinates: Array, labels: ArrayLike | None = None, columns: Indices | None = None
) -> None:
    """Draw a map on matplotlib axes: points by label, rings around the columns that were asked."""
    Y = coordinates
    if labels is None:
        ax.scatter(Y[:, 0], Y[:, 1], s=6, color="#4477aa", linewidths=0)
    else:
        names, code = np.unique(np.asarray(labels), return_inverse=True)
        ax.scatter(
            Y[:, 0],
            Y[:, 1],
            s=6,
            c=code,
            cmap="tab10" if len(names) <= 10 else "viridis",
            linewidths=0,
        )
    if columns is not None and len(columns):
        ax.scatter(
            Y[columns, 0],
            Y[columns, 1],
            s=40,
            facecolors="none",
            edgecolors="black",
            linewidths=0.8,
        )
    ax.set_xticks([])
    ax.set_yticks([])


def save_map(
    path: str | Path,
    coordinates: Array,
    *,
    labels: ArrayLike | None = None,
    columns: Indices | None = None,
    title: str = "",
) -> None:
    """Write a picture of a map, whole or not at all; its ending (png, svg, pdf) says how."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kind = Path(path).suffix.lstrip(".").lower() or "png"
    if kind not in ("png", "svg", "pdf"):
        raise ParameterError(f"a picture must end in .png, .svg or .pdf, got {Path(path).name!r}")
    figure = Figure(figsize=(6, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    draw_map(ax, coordinates, labels, columns)
    ax.set_title(title, fontsize=10)
    data = io.BytesIO()
    figure.savefig(data, format=kind, dpi=140)
    write_whole(path, data.getvalue())


def _symmetric(kernel: Matrix | ArrayLike) -> Array:
    K = kernel.to_dense() if isinstance(kernel, Matrix) else np.asarray(kernel, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ParameterError(f"a kernel must be square, got shape {K.shape}")
    return np.asarray(0.5 * (K + K.T))


def _logarithm(kernel: Matrix | ArrayLike) -> Array:
    """Return log K, the inner products of a radial kernel's points up to what distances do not see."""
    K = _symmetric(kernel)
    if not np.all(K > 0):
        raise ParameterError(
            f"a radial kernel must be above 0 everywhere, got entries down to {K.min():.3g}"
        )
    return np.asarray(0.5 * np.log(K))


def _distances(kernel: Matrix | ArrayLike) -> Array:
    K = _symmetric(kernel)
    d = np.diag(K)
    D = np.sqrt(np.maximum(d[:, None] + d[None, :] - 2.0 * K, 0.0))
    np.fill_diagonal(D, 0.0)
    return np.asarray(D)


def _principal(F: Array, count: int) -> Array:
    """Return the leading right singular vectors of F, shape (k, count), signs fixed."""
    _, _, Vt = np.linalg.svd(F.T @ F if len(F) > F.shape[1] else F, full_matrices=False)
    return _signed(Vt[:count].T)


def _signed(V: Array) -> Array:
    """Return columns with their largest component above zero, so that a map comes out alike each time."""
    if not V.size:
        return V
    at = np.abs(V).argmax(axis=0)
    return np.asarray(V * np.where(V[at, np.arange(V.shape[1])] < 0, -1.0, 1.0))


def _pad(Y: Array, count: int) -> Array:
    return (
        Y if Y.shape[1] >= count else np.column_stack([Y, np.zeros((len(Y), count - Y.shape[1]))])
    )
