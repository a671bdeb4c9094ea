r"""Sums over the pairs of attributes that samples show: one pass, any order, merged by adding.

For samples x_t of which only some attributes are seen, and weights w_t, the state holds for each pair

.. math:: S_{ij} = \sum_t w_t (x_{ti} - c_i)(x_{tj} - c_j), \quad N_{ij} = \sum_t w_t, \quad
          A_{ij} = \sum_t w_t (x_{ti} - c_i)

over the samples t that show both i and j. The shift c (means of the first samples) only guards against
round-off: it is moved exactly when two states are merged. Memory is 4 d^2 numbers, whatever the stream.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise import npz
from entrywise.exceptions import DataError, ParameterError
from entrywise.types import Array

DENSE_SHARE = (
    0.2  # above this share of attributes seen, three matrix products beat the walk over pairs
)
SHORT = 200  # pairs a sample up to which sorting the tails beats gathering them
ROOM = 2**21  # pairs sorted at once


class PairSums:
    """What is kept of a stream of partly seen samples with d attributes.

    Parameters
    ----------
    d : int
        Attributes of a sample.
    centered : bool
        Whether means are to be taken out later: twice the sums are kept then.

    Examples
    --------
    >>> sums = PairSums(3).add([[1.0, 2.0, np.nan], [np.nan, 4.0, 6.0], [3.0, 1.0, np.nan]])
    >>> sums.counts().tolist()
    [[2.0, 2.0, 0.0], [2.0, 3.0, 1.0], [0.0, 1.0, 1.0]]
    >>> float(sums.products()[0, 1])
    5.0
    """

    def __init__(self, d: int, centered: bool = True) -> None:
        if d < 1:
            raise ParameterError(f"d of PairSums must be at least 1, got {d}")
        self.d, self.centered = d, centered
        self.T = np.zeros(
            (d, d, 4 if centered else 2)
        )  # upper triangle: product, count, first, second
        self.shift = np.zeros(d)
        self.samples = 0.0  # weight of all samples, those that show nothing included
        self.rows = 0  # how many they were
        self.short = 0  # of which show fewer than two attributes
        self.largest = 0.0  # largest sum of squares seen in one sample

    def add(self, X: Any, weights: ArrayLike | None = None) -> PairSums:
        """Add samples, one a row, and return self.

        `X` is an array (NaN = not seen), a masked array, or a scipy sparse matrix whose stored entries,
        zeros included, are what was seen. `weights` count as repetitions of a row.
        """
        X = as_samples(X, self.d)
        m = X.shape[0]
        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        if w is not None and (w.shape != (m,) or not np.all(np.isfinite(w) & (w >= 0))):
            raise ParameterError(
                f"weights must be {m} finite numbers not below 0, got shape {w.shape}"
            )
        if not isinstance(X, np.ndarray):
            if self.centered and self.rows == 0:
                self._aim(X[: 2**15])
            self._add_sparse(np.asarray(X.indptr), X.indices, X.data, w)
        else:
            step = max(1, min(2**22 // self.d, 2**15))
            for a in range(0, m, step):
                self._add_dense(X[a : a + step], None if w is None else w[a : a + step])
        self.samples += float(m if w is None else w.sum())
        self.rows += m
        return self

    def _aim(self, X: Any) -> None:
        """Set the shift to the means of the first samples."""
        if isinstance(X, np.ndarray):
            seen = ~np.isnan(X)
            total, count = np.where(seen, X, 0.0).sum(axis=0), seen.sum(axis=0)
        else:
            count = np.bincount(X.indices, minlength=self.d)
            total = np.bincount(X.indices, weights=X.data, minlength=self.d)
        self.shift = total / np.maximum(count, 1)

    def _add_sparse(
        self, ptr: NDArray[Any], idx: NDArray[Any], val: Array, w: Array | None
    ) -> None:
        from entrywise.linalg._jit_pairs import add_long, add_short

        length = np.diff(ptr)
        self.short += int(np.sum((length < 2) if w is None else (length < 2) & (w > 0)))
        if not len(val):
            return
        squares = np.add.reduceat(val * val, np.minimum(ptr[:-1], len(val) - 1))
        self.largest = max(self.largest, float(squares[length > 0].max()))
        if self.centered:
            val = val - self.shift[idx]
        pairs = np.concatenate([[0], np.cumsum(length.astype(np.int64) * (length + 1) // 2)])
        use_short = w is None and pairs[-1] <= SHORT * len(length)
        # walked in pieces: T passes through the cache once a piece
        size, step = (pairs, ROOM) if use_short else (ptr, ROOM // 4)
        if use_short:
            room = int(min(pairs[-1], step + int(length.max()) ** 2))
            j_of, v_of = np.empty(room, np.int32), np.empty(room)
        a = 0
        while a < len(length):
            b = max(a + 1, int(np.searchsorted(size, size[a] + step, side="right")) - 1)
            first = (ptr[a : b + 1] - ptr[a]).astype(np.int64)
            part = slice(ptr[a], ptr[b])
            i, v = idx[part].astype(np.int32, copy=False), val[part]
            if use_short:
                add_short(first, i, v, self.T, j_of, v_of)
            else:
                add_long(first, i, v, np.ones(b - a) if w is None else w[a:b], self.T)
            a = b

    def _add_dense(self, X: Array, w: Array | None) -> None:
        if self.centered and self.rows == 0 and not self.T[:, :, 1].any():
            self._aim(X)
        seen = ~np.isnan(X)
        length = seen.sum(axis=1)
        if length.sum() <= DENSE_SHARE * X.size:
            ptr = np.concatenate([[0], np.cumsum(length)])
            self._add_sparse(ptr, np.nonzero(seen)[1], X[seen], w)
            return
        self.short += int(np.sum((length < 2) if w is None else (length < 2) & (w > 0)))
        Y = np.where(seen, X, 0.0)
        self.largest = max(self.largest, float(np.einsum("nd,nd->n", Y, Y).max()))
        if self.centered:
            Y = np.where(seen, X - self.shift, 0.0)
        root = None if w is None else np.sqrt(w)[:, None]
        Z = Y if root is None else Y * root
        self.T[:, :, 0] += Z.T @ Z  # one symmetric product
        if length.min() == self.d:  # nothing is missing: the counts need no product
            total = float(len(X) if w is None else w.sum())
            self.T[:, :, 1] += total
            if self.centered:
                mean = Y.sum(axis=0) if w is None else w @ Y
                self.T[:, :, 2] += mean[:, None]
                self.T[:, :, 3] += mean
            return
        M = (
            seen.astype(np.float32) if w is None else seen * root
        )  # whole numbers below 2^24: exact in float32
        self.T[:, :, 1] += M.T @ M
        if self.centered:
            A = Z.T @ (seen.astype(np.float64) if w is None else M)
            self.T[:, :, 2] += A
            self.T[:, :, 3] += A.T

    def products(self) -> Array:
        """Return S, shape (d, d), about the origin."""
        S = _mirror(self.T[:, :, 0])
        if self.centered:
            A, c = self.firsts(), self.shift
            S = S + A * c + (A * c).T - self.counts() * np.outer(c, c)
        return S

    def counts(self) -> Array:
        """Return N, shape (d, d): the diagonal counts how often each attribute was seen."""
        return _mirror(self.T[:, :, 1])

    def firsts(self) -> Array:
        """Return the sums of x_i over the samples that show both i and j, shape (d, d), about the origin."""
        if not self.centered:
            raise ParameterError(
                "these sums were kept without means; make PairSums(d, centered=True)"
            )
        return _both(self.T) + self.shift[:, None] * self.counts()

    def about(self, mean: Array) -> Array:
        """Return the sums of (x_i - mean_i)(x_j - mean_j), shape (d, d)."""
        if not self.centered:
            raise ParameterError(
                "these sums were kept without means; make PairSums(d, centered=True)"
            )
        gap = mean - self.shift
        A = _both(self.T)
        return _mirror(self.T[:, :, 0]) - A * gap - (A * gap).T + self.counts() * np.outer(gap, gap)

    def means(self) -> Array:
        """Return the mean of each attribute over the samples that show it, 0 where none does."""
        count = np.diagonal(self.T[:, :, 1])
        if not self.centered:
            return np.zeros(self.d)
        return np.asarray(
            self.shift * (count > 0)
            + np.diagonal(self.T[:, :, 2]) / np.where(count > 0, count, 1.0)
        )

    def merge(self, other: PairSums) -> PairSums:
        """Return the sums of both streams; neither is changed."""
        if (self.d, self.centered) != (other.d, other.centered):
            raise ParameterError(
                f"sums must be of one kind to be merged, got d={self.d}, centered={self.centered} "
                f"and d={other.d}, centered={other.centered}"
            )
        found = self.copy()
        if self.rows == 0:
            found.shift = other.shift.copy()
        T = other.T
        if self.centered and np.any(found.shift != other.shift):
            gap = other.shift - found.shift
            T = T.copy()
            N = T[:, :, 1]
            T[:, :, 0] += gap * T[:, :, 2] + gap[:, None] * T[:, :, 3] + N * np.outer(gap, gap)
            T[:, :, 2] += gap[:, None] * N
            T[:, :, 3] += gap * N
        found.T += T
        found.samples += other.samples
        found.rows += other.rows
        found.short += other.short
        found.largest = max(self.largest, other.largest)
        return found

    def copy(self) -> PairSums:
        """Return an independent copy."""
        return PairSums.from_arrays(self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state as named arrays."""
        numbers = np.array([self.samples, self.rows, self.short, self.largest])
        return {
            "pair_sums": self.T.copy(),
            "pair_shift": self.shift.copy(),
            "pair_numbers": numbers,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PairSums:
        """Return the state that :meth:`arrays` gave."""
        T = np.array(arrays["pair_sums"], dtype=np.float64)
        found = cls.__new__(cls)
        found.d, found.centered, found.T = T.shape[0], T.shape[2] == 4, T
        found.shift = np.array(arrays["pair_shift"], dtype=np.float64)
        samples, rows, short, largest = np.asarray(arrays["pair_numbers"]).tolist()
        found.samples, found.rows, found.short, found.largest = (
            samples,
            int(rows),
            int(short),
            largest,
        )
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to an npz file, whole or not at all."""
        npz.save(path, self.arrays(), {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PairSums:
        """Return the state that :meth:`save` wrote."""
        _, arrays = npz.unpack(path, "pair sums")
        try:
            return cls.from_arrays(arrays)
        except (KeyError, ValueError) as error:
            raise DataError(f"{path} must hold pair sums saved by entrywise: {error}") from None


def as_samples(X: Any, d: int | None = None) -> Any:
    """Return samples as a float64 array with NaN, or as a CSR array with sorted attributes; checked, finite.

    Takes arrays, masked arrays, scipy sparse matrices and Observations; nothing given is changed.
    """
    if hasattr(X, "to_csr") and hasattr(
        X, "row_labels"
    ):  # Observations: duplicates would be summed
        csr = X.to_csr()
        if csr.nnz < len(X):
            raise DataError(
                "an entry is listed twice; take one answer an entry: from_triplets(..., duplicates='mean')"
            )
        X = csr
    if hasattr(X, "tocsr"):
        given = X
        X = X.tocsr()
        if X.dtype != np.float64:
            X = X.astype(np.float64)
        if not X.has_canonical_format:
            X = X.copy() if X is given else X
            X.sum_duplicates()
        if not np.all(np.isfinite(X.data)):
            raise DataError(
                f"stored values must be finite, got {X.data[~np.isfinite(X.data)][0]}; leave out what was not seen"
            )
    else:
        try:
            X = (
                np.ma.filled(np.ma.asarray(X).astype(np.float64), np.nan)
                if np.ma.isMA(X)
                else np.asarray(X, np.float64)
            )
        except (TypeError, ValueError) as error:
            raise DataError(
                f"samples must be numbers, one row a sample, NaN where not seen: {error}"
            ) from None
        if X.ndim != 2:
            raise DataError(f"samples must be an array with one row a sample, got shape {X.shape}")
        if np.isinf(X).any():
            i, j = np.argwhere(np.isinf(X))[0]
            raise DataError(
                f"attribute {j} of sample {i} is {X[i, j]}; values must be finite, NaN where not seen"
            )
    if d is not None and X.shape[1] != d:
        raise DataError(f"samples must have {d} attributes, got {X.shape[1]}")
    return X


def _mirror(upper: Array) -> Array:
    U = np.triu(upper)
    return U + np.triu(upper, 1).T


def _both(T: Array) -> Array:
    """Return A from its two triangles: row sums above the diagonal, column sums below."""
    return np.triu(T[:, :, 2]) + np.triu(T[:, :, 3], 1).T
