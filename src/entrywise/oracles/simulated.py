"""Oracles that know the answers: a matrix, a kernel, a coin, two instruments, a stream."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import ParameterError
from entrywise.oracles.oracle import CountingOracle
from entrywise.queries import Batch
from entrywise.queries.batch import Columns, PartOfColumns
from entrywise.results import Matrix
from entrywise.types import Array, Indices, Seed

BLOCK = 2**21  # kernel entries that one product makes
MOSTLY = 1.1  # columns are made by blocks of all their rows when these are at most so many times those asked
KERNELS = (
    "rbf",
    "laplacian",
    "polynomial",
    "poly",
    "linear",
    "cosine",
    "chi2",
    "additive_chi2",
    "sigmoid",
)


def _dense(matrix: Any) -> Array | Matrix:
    if isinstance(matrix, Matrix):
        return matrix
    A = np.asarray(matrix, dtype=np.float64)
    if A.ndim != 2:
        raise ParameterError(f"an oracle's matrix must have two dimensions, got shape {A.shape}")
    return A


def _look_up(A: Array | Matrix, rows: Indices, cols: Indices) -> Array:
    if isinstance(A, Matrix):
        return A.entries(rows, cols)
    m, n = A.shape
    if len(rows) and (rows.max() >= m or cols.max() >= n or rows.min() < 0 or cols.min() < 0):
        raise ParameterError(
            f"the oracle's matrix is {m} x {n}, but entry ({rows.max()}, {cols.max()}) was asked; shapes must agree"
        )
    return A[rows, cols]


class MatrixOracle(CountingOracle):
    """Answers from a matrix (an array, or a factored result that is never made dense).

    >>> oracle = MatrixOracle([[1.0, 2.0], [3.0, 4.0]])
    >>> oracle(Batch.column(1, 2)), oracle.spent
    (array([2., 4.]), 2)
    """

    def __init__(self, matrix: ArrayLike | Matrix, noise: float = 0.0, rng: Seed = None) -> None:
        super().__init__()
        self.matrix = _dense(matrix)
        self.noise = noise
        self._rng = np.random.default_rng(rng)

    def answer(self, batch: Batch) -> Array:
        """Return the entries asked, plus Gaussian noise where there is any."""
        found = _look_up(self.matrix, batch.rows, batch.cols)
        return (
            found if self.noise == 0 else found + self.noise * self._rng.standard_normal(len(batch))
        )


class KernelOracle(CountingOracle):
    """Answers kernel evaluations of points, whole columns at once where a batch asks for them.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    kernel : str or callable
        A name that scikit-learn's ``pairwise_kernels`` knows, or ``f(X, Y)`` on arrays of points.
    params : of the kernel, such as gamma.
    """

    def __init__(
        self, X: ArrayLike, kernel: str | Callable[..., Any] = "rbf", **params: Any
    ) -> None:
        super().__init__()
        self.X = np.asarray(X, dtype=np.float64)
        if self.X.ndim != 2:
            raise ParameterError(f"points must be an (n, d) array, got shape {self.X.shape}")
        self.kernel = kernel
        self.params = params
        if isinstance(kernel, str) and kernel not in KERNELS:
            raise ParameterError(
                f"kernel must be one of {', '.join(KERNELS)}, or a function of two sets of points, got {kernel!r}"
            )
        if kernel == "rbf":
            self.params.setdefault("gamma", 1.0 / self.X.shape[1])
            gamma, squares = self.params["gamma"], _squares(self.X)
            one = np.ones_like(squares)
            # one product gives the exponent: -gamma |x - y|^2 = (x, |x|^2, 1) . (2 gamma y, -gamma, -gamma |y|^2)
            self._right = np.hstack([2 * gamma * self.X, -gamma * one, -gamma * squares])

    def block(self, rows: Indices, cols: Indices) -> Array:
        """Return the kernel between two sets of points, shape (len(rows), len(cols))."""
        if self.kernel == "rbf":
            X = self.X[rows]
            left = np.hstack([X, _squares(X), np.ones((len(X), 1))])
            K = left @ _whole(self._right, cols).T
            np.minimum(K, 0.0, out=K)
            order = np.argsort(cols, kind="stable")
            at = np.minimum(np.searchsorted(cols, rows, sorter=order), len(cols) - 1)
            same = np.flatnonzero(cols[order[at]] == rows)
            K[same, order[at[same]]] = 0.0
            return np.asarray(np.exp(K, out=K))
        X, Y = self.X[rows], _whole(self.X, cols)
        if callable(self.kernel):
            return np.asarray(self.kernel(X, Y, **self.params), dtype=np.float64)
        from sklearn.metrics.pairwise import pairwise_kernels

        return np.asarray(
            pairwise_kernels(X, Y, metric=self.kernel, **self.params), dtype=np.float64
        )

    def diagonal(self, index: Indices) -> Array:
        """Return the kernel of points with themselves."""
        if self.kernel in ("rbf", "laplacian"):
            return np.ones(len(index))
        parts = [index[k : k + 32] for k in range(0, len(index), 32)]
        return np.concatenate([np.diag(self.block(part, part)) for part in parts] or [np.zeros(0)])

    def answer(self, batch: Batch) -> Array:
        """Return the kernel at the entries asked."""
        if isinstance(batch, Columns):
            self._refuse_beyond(batch.which.max(initial=0), batch.height - 1)
            return self._over(batch.which, np.arange(batch.height)).ravel()
        if isinstance(batch, PartOfColumns) and len(batch.whole) <= MOSTLY * len(batch):
            return np.take(self.answer(batch.whole), batch.at)
        rows, cols = batch.rows, batch.cols
        self._refuse_beyond(rows.max(initial=0), cols.max(initial=0))
        if np.array_equal(rows, cols):
            return self.diagonal(rows)
        answers = np.empty(len(batch))
        ends = np.flatnonzero(np.diff(cols)) + 1
        bounds = np.concatenate([[0], ends, [len(batch)]])
        if len(ends) < len(batch) // 4:  # columns, whole or in part
            self._by_column(rows, cols[bounds[:-1]], bounds, answers)
            return answers
        I, i = np.unique(rows, return_inverse=True)
        J, j = np.unique(cols, return_inverse=True)
        if len(I) * len(J) <= 4 * len(batch):
            return self.block(I, J)[i, j]
        for a in range(0, len(batch), 4096):
            part = slice(a, a + 4096)
            answers[part] = self._pairs(rows[part], cols[part])
        return answers

    def _refuse_beyond(self, row: int, col: int) -> None:
        n = len(self.X)
        if max(row, col) >= n:
            raise ParameterError(
                f"there are {n} points, but entry ({row}, {col}) was asked; n must be {n}"
            )

    def _by_column(self, rows: Indices, heads: Indices, bounds: Indices, answers: Array) -> None:
        """Answer columns of which rows[bounds[k]:bounds[k + 1]] are wanted, by blocks where these are nearly alike."""
        place = np.zeros(rows.max() + 1, np.int64)
        place[rows] = 1
        wanted = np.flatnonzero(place)
        if len(heads) * len(wanted) > MOSTLY * len(rows):
            for k, (a, b) in enumerate(itertools.pairwise(bounds)):
                answers[a:b] = self.block(heads[k : k + 1], rows[a:b])[0]
            return
        place[wanted] = np.arange(len(wanted))
        step = max(1, BLOCK // len(wanted))
        for first in range(0, len(heads), step):
            block = self.block(heads[first : first + step], wanted)
            for k, column in enumerate(block, first):
                part = slice(bounds[k], bounds[k + 1])
                np.take(column, place[rows[part]], out=answers[part])

    def _over(self, heads: Indices, rows: Indices) -> Array:
        """Return columns over the same rows, one a row, made in blocks that stay in memory near by."""
        answers = np.empty((len(heads), len(rows)))
        step = max(1, BLOCK // max(len(rows), 1))
        for k in range(0, len(heads), step):
            answers[k : k + step] = self.block(heads[k : k + step], rows)
        return answers

    def _pairs(self, rows: Indices, cols: Indices) -> Array:
        if self.kernel == "rbf":
            return np.asarray(
                np.exp(-self.params["gamma"] * np.sum((self.X[rows] - self.X[cols]) ** 2, axis=1))
            )
        return np.array(
            [self.block(rows[k : k + 1], cols[k : k + 1])[0, 0] for k in range(len(rows))]
        )


def _squares(X: Array) -> Array:
    """Return the squared length of each point, shape (n, 1)."""
    return np.asarray(np.einsum("nd,nd->n", X, X)[:, None])


def _whole(X: Array, index: Indices) -> Array:
    """Return ``X[index]``, without copying when that is all of X."""
    return X if len(index) == len(X) and index[0] == 0 and np.all(np.diff(index) == 1) else X[index]


class BernoulliOracle(CountingOracle):
    """Answers 0 or 1 by a coin whose chance of 1 is the entry of `matrix`, afresh each time."""

    def __init__(self, matrix: ArrayLike | Matrix, rng: Seed = None) -> None:
        super().__init__()
        self.matrix = _dense(matrix)
        self._rng = np.random.default_rng(rng)

    def answer(self, batch: Batch) -> Array:
        """Return one coin flip a position."""
        chance = _look_up(self.matrix, batch.rows, batch.cols)
        return (self._rng.random(len(batch)) < chance).astype(np.float64)


class TwoCostOracle(CountingOracle):
    """Answers by instruments of different noise: mode ``entry``, mode ``column``, and ``row`` where its noise is given."""

    def __init__(
        self,
        matrix: ArrayLike | Matrix,
        *,
        entry_noise: float,
        column_noise: float,
        row_noise: float | None = None,
        rng: Seed = None,
    ) -> None:
        super().__init__()
        self.matrix = _dense(matrix)
        self.noise: Mapping[str, float] = {"entry": entry_noise, "column": column_noise}
        if row_noise is not None:
            self.noise = {**self.noise, "row": row_noise}
        self._rng = np.random.default_rng(rng)

    def answer(self, batch: Batch) -> Array:
        """Return the entries with the noise of the batch's mode."""
        if batch.mode not in self.noise:
            raise ParameterError(
                f"this oracle has modes {', '.join(self.noise)}, got {batch.mode!r}"
            )
        found = _look_up(self.matrix, batch.rows, batch.cols)
        return found + self.noise[batch.mode] * self._rng.standard_normal(len(batch))


class StreamOracle(CountingOracle):
    """Answers attributes of fresh samples: row t is the t-th sample of a stream of vectors.

    Only samples that are asked for are drawn, in order; a sample stays available until a later one
    is asked in a following batch.
    """

    def __init__(self, samples: Iterable[ArrayLike]) -> None:
        super().__init__()
        self._stream: Iterator[ArrayLike] = iter(samples)
        self._first = 0
        self._kept: list[Array] = []

    def answer(self, batch: Batch) -> Array:
        """Return attribute ``cols`` of samples ``rows``."""
        if not len(batch):
            return np.zeros(0)
        low, high = int(batch.rows.min()), int(batch.rows.max())
        if low < self._first:
            raise ParameterError(
                f"sample {low} has passed, the stream stands at {self._first}; ask for later ones"
            )
        while self._first + len(self._kept) <= high:
            try:
                self._kept.append(np.asarray(next(self._stream), dtype=np.float64))
            except StopIteration:
                raise ParameterError(
                    f"the stream ended after {self._first + len(self._kept)} samples, sample {high} was asked"
                ) from None
        kept = np.array(self._kept[low - self._first : high - self._first + 1])
        answers = kept[batch.rows - low, batch.cols]
        self._kept = self._kept[low - self._first :]
        self._first = low
        return answers
