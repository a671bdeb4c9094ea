"""Low-rank completion as an online learner: fitted again whenever the labels have grown by a share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.online._learner import Learner, Signs, positive
from entrywise.passive.low_rank import low_rank
from entrywise.results import LowRank
from entrywise.types import Array, Indices

FIRST = 64  # labels before the first fit
SWEEPS = 20  # of a fit: the sign of an entry is settled long before its size


class _Refits:
    """Every label, rows and columns numbered as they appear, and the fit to those up to the last refit.

    The fit has one row and one column more than were seen, which stand for all that were not.
    """

    def __init__(self, max_rank: int, growth: float) -> None:
        self._params = (max_rank, growth)
        self._ids: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._us = np.zeros(0, np.int32)
        self._vs = np.zeros(0, np.int32)
        self._ys = np.zeros(0, np.int8)
        self._fit: LowRank | None = None
        self._next = FIRST  # labels at which it is fitted again
        self.length = 0

    def _places(self, rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
        """Return the numbers of rows and columns; what was never seen gets the last of all."""
        us, vs = (
            np.array([ids.get(name, len(ids)) for name in given.tolist()], np.int64)
            for ids, given in zip(self._ids, (rows, cols), strict=True)
        )
        return us, vs

    def _scores(self, us: NDArray[np.integer[Any]], vs: NDArray[np.integer[Any]]) -> Array:
        if self._fit is None:
            return np.zeros(len(us))
        m, n = self._fit.shape
        return self._fit.entries(np.minimum(us, m - 1), np.minimum(vs, n - 1))

    def values(self, rows: Indices, cols: Indices) -> Array:
        return self._scores(*self._places(rows, cols))

    def signs(self, rows: Indices, cols: Indices) -> Signs:
        return np.where(self.values(rows, cols) >= 0.0, 1, -1).astype(np.int8)

    def _append(self, rows: Indices, cols: Indices, labels: Signs) -> None:
        new = self.length + len(labels)
        if new > len(self._ys):
            more = max(new, 2 * len(self._ys), FIRST) - len(self._ys)
            self._us, self._vs, self._ys = (
                np.concatenate([x, np.zeros(more, x.dtype)]) for x in (self._us, self._vs, self._ys)
            )
        part = slice(self.length, new)
        for ids, numbers, given in zip(self._ids, (self._us, self._vs), (rows, cols), strict=True):
            numbers[part] = [ids.setdefault(name, len(ids)) for name in given.tolist()]
        self._ys[part] = labels

    def _refit(self, length: int) -> None:
        """Fit the first `length` labels: a function of them alone."""
        max_rank, _ = self._params
        us, vs = self._us[:length], self._vs[:length]
        seen = Observations.from_triplets(
            us,
            vs,
            self._ys[:length].astype(np.float64),
            (int(us.max()) + 2, int(vs.max()) + 2),
            noise=0.0,  # all that the factors leave is one noise, repeated labels or not
            duplicates="keep",
        )
        self._fit = low_rank(seen, max_rank=max_rank, max_sweeps=SWEEPS)

    def _after(self, length: int) -> int:
        return max(length + 1, math.ceil(length * self._params[1]))

    def follow(self, rows: Indices, cols: Indices, labels: Signs) -> Signs:
        first, last = self.length, self.length + len(labels)
        self._append(rows, cols, labels)
        found = np.zeros(len(labels))
        while self.length < last:
            stop = min(last, self._next)
            part = slice(self.length, stop)
            found[self.length - first : stop - first] = self._scores(self._us[part], self._vs[part])
            self.length = stop
            if stop == self._next:
                self._refit(stop)
                self._next = self._after(stop)
        return np.where(found >= 0.0, 1, -1).astype(np.int8)

    def copy(self, length: int) -> _Refits:
        new = _Refits(*self._params)
        new.take(self.arrays(length))
        return new

    def arrays(self, length: int) -> dict[str, NDArray[Any]]:
        rows, cols = (np.array(list(ids), np.int64) for ids in self._ids)
        names = {"rows": rows[self._us[:length]], "cols": cols[self._vs[:length]]}
        return {**names, "labels": self._ys[:length].copy()}

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        labels = arrays["labels"].astype(np.int8)
        self._append(arrays["rows"], arrays["cols"], labels)
        self.length = len(labels)
        last = 0
        while self._next <= self.length:
            last, self._next = self._next, self._after(self._next)
        if last:
            self._refit(last)


@dataclass(frozen=True, eq=False)
class RefittedLowRank(Learner):
    r"""Predict the sign of a low-rank completion of the labels so far, fitted again as they grow.

    The fit is :func:`~entrywise.passive.low_rank` to all labels at 64, then whenever there are `growth` times as many:
    noise, shrinkage and rank are learned, and where labels say nothing beyond rows and columns its rank is 0. All refits
    together cost :math:`g/(g - 1)` times the last.

    Parameters
    ----------
    max_rank : int
        Most components of a fit.
    growth : float
        Labels at a refit over labels at the one before, above 1.

    Notes
    -----
    No mistake bound is known. A state is a function of the labels alone; it keeps nine bytes of each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u, v = rng.choice([-1, 1], 20), rng.choice([-1, 1], 20)
    >>> i, j = rng.integers(20, size=(2, 400))
    >>> predictions, learner = RefittedLowRank().follow(i, j, u[i] * v[j])
    >>> int((predictions != u[i] * v[j])[200:].sum())
    0
    """

    max_rank: int = 10
    growth: float = 1.15

    def _refuse(self) -> None:
        if self.max_rank < 0:
            raise ParameterError(f"max_rank must be at least 0, got {self.max_rank}")
        positive(self.growth, "growth", 1.0)

    def _empty(self) -> _Refits:
        return _Refits(int(self.max_rank), float(self.growth))
