"""Online matrix factorisation by stochastic gradients: the baseline that practice would try first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.online._learner import Learner, Signs, positive
from entrywise.types import Array, Indices

SMALL = 0.3  # deviation of a new factor: large enough to break the symmetry, small beside a label


class _Factors:
    """Factors of the rows and columns in the order in which they appeared, and every trial."""

    def __init__(self, rank: int, rate: float, penalty: float, replay: int) -> None:
        self._params = (rank, rate, penalty, replay)
        self._ids: dict[tuple[int, int], int] = {}
        self._F = np.zeros((0, rank))
        self._b = np.zeros(0)
        self._met = np.zeros(0, np.bool_)
        self._us = np.zeros(0, np.int64)
        self._vs = np.zeros(0, np.int64)
        self._ys = np.zeros(0, np.int8)
        self.length = 0

    def _row(self, side: int, name: int) -> int:
        """Return its place; a new one is given the next and a small factor."""
        from entrywise.linalg import _jit_factorization as jit

        w = self._ids.setdefault((side, name), len(self._ids))
        if w >= len(self._b):
            size = max(64, 2 * len(self._b))
            F, b, met = np.zeros((size, self._F.shape[1])), np.zeros(size), np.zeros(size, np.bool_)
            old = len(self._b)
            F[:old], b[:old], met[:old] = self._F, self._b, self._met
            jit.begin(F, old, size, SMALL)
            self._F, self._b, self._met = F, b, met
        return w

    def values(self, rows: Indices, cols: Indices) -> Array:
        from entrywise.linalg import _jit_factorization as jit

        us = np.array([self._ids.get((0, i), -1) for i in rows.tolist()], np.int64)
        vs = np.array([self._ids.get((1, j), -1) for j in cols.tolist()], np.int64)
        found = np.zeros(len(us))
        jit.scores(self._F, self._b, us, vs, found)
        return found

    def signs(self, rows: Indices, cols: Indices) -> Signs:
        return np.where(self.values(rows, cols) >= 0.0, 1, -1).astype(np.int8)

    def follow(self, rows: Indices, cols: Indices, labels: Signs) -> Signs:
        from entrywise.linalg import _jit_factorization as jit

        predictions = np.zeros(len(labels), np.int8)
        old, new = self.length, self.length + len(labels)
        if new > len(self._us):
            more = max(new, 2 * len(self._us), 64) - len(self._us)
            self._us, self._vs, self._ys = (
                np.concatenate([x, np.zeros(more, x.dtype)]) for x in (self._us, self._vs, self._ys)
            )
        for t, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
            self._us[old + t], self._vs[old + t] = self._row(0, i), self._row(1, j)
        self._ys[old:new] = labels
        _, rate, penalty, replay = self._params
        stream = (self._us[:new], self._vs[:new], self._ys[:new])
        jit.follow(self._F, self._b, self._met, *stream, old, rate, penalty, replay, predictions)
        self.length = new
        return predictions

    def copy(self, length: int) -> _Factors:
        new = _Factors(*self._params)
        new.take(self.arrays(length))
        return new

    def arrays(self, length: int) -> dict[str, NDArray[Any]]:
        names = {w: name for (_, name), w in self._ids.items()}
        rows = np.array([names[w] for w in self._us[:length].tolist()], np.int64)
        cols = np.array([names[w] for w in self._vs[:length].tolist()], np.int64)
        return {"rows": rows, "cols": cols, "labels": self._ys[:length].copy()}

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.follow(arrays["rows"], arrays["cols"], arrays["labels"].astype(np.int8))


@dataclass(frozen=True, eq=False)
class OnlineFactorization(Learner):
    r"""Predict the sign of :math:`b_i + c_j + p_i^\top q_j`, fitted by stochastic gradients on the logistic loss.

    Parameters
    ----------
    rank : int
        Length of the factors.
    rate, penalty : float
        Step size and L2 penalty.
    replay : int
        Earlier trials visited again after each new one; 0 goes through the stream once.

    Examples
    --------
    >>> OnlineFactorization(rank=2).learn_many([0, 0, 1], [0, 1, 0], [-1, -1, -1]).predict(0, 0)
    -1
    """

    rank: int = 5
    rate: float = 0.1
    penalty: float = 0.01
    replay: int = 0

    def _refuse(self) -> None:
        if self.rank < 1 or self.replay < 0:
            raise ParameterError(
                f"rank must be at least 1 and replay at least 0, got {self.rank} and {self.replay}"
            )
        positive(self.rate, "rate")
        positive(self.penalty, "penalty", closed=True)

    def _empty(self) -> _Factors:
        return _Factors(int(self.rank), float(self.rate), float(self.penalty), int(self.replay))
