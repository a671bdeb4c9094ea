"""A low-rank matrix corrected where entries were seen."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.results.low_rank import SMALLEST, Axis, LowRank, Of
from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.observations import Observations

MANY = (
    0.2  # share of all entries above which products over the whole matrix are faster than picking
)


@dataclass(frozen=True, eq=False, repr=False)
class Corrected(LowRank):
    r"""A low-rank matrix corrected where entries were seen: what the factors do not explain of them is kept.

    An entry is :math:`u_i \cdot v_j` plus lack of fit of variance :math:`t^2`; seen as y with noise variance
    :math:`s^2` it becomes :math:`f + \frac{t^2}{t^2 + s^2} (y - f)`, f what the factors say. Make one with :meth:`of`.

    Parameters
    ----------
    seen : ndarray of int64 of shape (t,)
        Entries that were seen, as ``row * n + col``, in order.
    shift, seen_variance : ndarray of shape (t,)
        What is added to the factors there, and the variance of the true entry about the sum.
    """

    seen: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    shift: Array = field(default_factory=lambda: np.zeros(0))
    seen_variance: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, found: LowRank, observations: Observations) -> Corrected:
        """Return `found` corrected at its observations, which must carry their noise and list no entry twice."""
        n = found.shape[1]
        at = observations.rows * n + observations.cols
        order = np.argsort(at, kind="stable")
        i, j = observations.rows[order], observations.cols[order]
        s2 = observations.noise_array()[order] ** 2
        t2 = found.lack_variance
        keep = s2 / np.maximum(t2 + s2, SMALLEST)  # share of the factors in the corrected entry
        fitted, own = _fitted(found, i, j)
        shift = (1.0 - keep) * (observations.values[order] - fitted)
        given = {f.name: getattr(found, f.name) for f in fields(found)}
        given |= {"seen": at[order], "shift": shift, "seen_variance": keep**2 * own + keep * t2}
        return cls(**given)

    def plain(self) -> LowRank:
        """Return the factors alone."""
        return LowRank(**{f.name: getattr(self, f.name) for f in fields(LowRank)})

    def _look_up(self, i: Indices, j: Indices) -> tuple[NDArray[np.bool_], Indices]:
        """Tell which entries were seen, and return their places among those."""
        flat = i * self.shape[1] + j
        if not len(self.seen):
            return np.zeros(flat.shape, bool), np.zeros(flat.shape, np.int64)
        at = np.minimum(np.searchsorted(self.seen, flat), len(self.seen) - 1)
        return self.seen[at] == flat, at

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        found = np.array(super().entries(rows, cols))
        hit, at = self._look_up(*self._where(rows, cols))
        found[hit] += self.shift[at[hit]]
        return found

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Of = "answer",
        noise: ArrayLike | None = None,
        variance: Array | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry."""
        spread = np.array(super().deviation(rows, cols, of, noise, variance))
        i, j = self._where(rows, cols)
        hit, at = self._look_up(i, j)
        if not self.has_variance or not hit.any():
            return spread
        own = self.seen_variance[at[hit]]
        if of == "answer":
            own = own + np.broadcast_to(self._noise(noise), i.shape)[hit]
        spread[hit] = np.sqrt(own)
        return spread

    def fold_in(
        self, observations: Observations, axis: Axis = "rows", *, features: Any = None
    ) -> LowRank:
        """Return new rows (or columns) completed from their own observations; see :meth:`LowRank.fold_in`."""
        return self.plain().fold_in(observations, axis, features=features)

    def transposed(self) -> Corrected:
        """Return the transposed matrix; see :meth:`LowRank.transposed`."""
        m, n = self.shape
        at = self.seen % n * m + self.seen // n
        order = np.argsort(at)
        turned = self.plain().transposed()
        return Corrected(
            **{f.name: getattr(turned, f.name) for f in fields(turned)},
            seen=at[order],
            shift=self.shift[order],
            seen_variance=self.seen_variance[order],
        )

    def scaled(self, unit: float) -> Corrected:
        """Return the matrix times `unit`; see :meth:`LowRank.scaled`."""
        found = self.plain().scaled(unit)
        return Corrected(
            **{f.name: getattr(found, f.name) for f in fields(found)},
            seen=self.seen,
            shift=self.shift * unit,
            seen_variance=self.seen_variance * unit**2,
        )

    def to_dense(self) -> Array:
        """Return the whole matrix, shape (m, n)."""
        found = np.array(self.plain().to_dense())
        found.flat[self.seen] += self.shift
        return found

    def __matmul__(self, x: ArrayLike) -> Array:
        found = np.array(super().__matmul__(x))
        i, j = np.divmod(self.seen, self.shape[1])
        X = np.asarray(x, dtype=np.float64)
        np.add.at(found, i, (self.shift * X[j].T).T)
        return found


def _fitted(found: LowRank, i: Indices, j: Indices) -> tuple[Array, Array]:
    """Return what the factors say of the entries (i, j), and the posterior variance of that (zero without one)."""
    m, n = found.shape
    own = np.zeros(len(i))
    if len(i) <= MANY * m * n:
        if found.has_variance:
            own = found.variance(i, j)
        return found.entries(i, j), own
    if found.posterior is not None and found.has_variance:
        own = found.posterior.all_variances(found.left, found.right)[i, j]
    return found.to_dense()[i, j], own
