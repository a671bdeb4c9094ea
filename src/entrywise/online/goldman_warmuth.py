"""Weighted majority voting over rows: rows that agreed so far vote for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.online._learner import Learner, Replayed, positive


class _Relation(Replayed):
    def __init__(self, beta: float) -> None:
        super().__init__()
        self._beta = beta
        self._ids: tuple[dict[int, int], dict[int, int]] = ({}, {})
        # labels known, 0 unknown
        self._M: NDArray[Any] = np.zeros((8, 8), np.int8)
        # columns on which two rows disagree
        self._differ: NDArray[Any] = np.zeros((8, 8), np.int32)

    def fresh(self) -> _Relation:
        return _Relation(self._beta)

    def score(self, i: int, j: int) -> float:
        r, c = self._ids[0].get(i), self._ids[1].get(j)
        if c is None:
            return 0.0
        voters = np.flatnonzero(self._M[:, c])
        if len(voters) == 0:
            return 0.0
        differ = np.zeros(len(voters)) if r is None else self._differ[r, voters].astype(np.float64)
        return float(self._beta ** (differ - differ.min()) @ self._M[voters, c])

    def absorb(self, i: int, j: int, y: int) -> None:
        r, c = (known.setdefault(k, len(known)) for known, k in zip(self._ids, (i, j), strict=True))
        self._M = _wide(self._M, r, c)
        self._differ = _wide(self._differ, len(self._M) - 1, len(self._M) - 1)
        wrong = np.flatnonzero(self._M[:, c] == -y)
        wrong = wrong[wrong != r]
        self._differ[r, wrong] += 1
        self._differ[wrong, r] += 1
        self._M[r, c] = y


def _wide(X: NDArray[Any], r: int, c: int) -> NDArray[Any]:
    """Return X with room for row r and column c, doubled where it was too small."""
    m, n = X.shape
    if r < m and c < n:
        return X
    tall = max(m, 2 * r) if r >= m else m
    wide = max(n, 2 * c) if c >= n else n
    new = np.zeros((tall, wide), X.dtype)
    new[:m, :n] = X
    return new


@dataclass(frozen=True, eq=False)
class GoldmanWarmuth(Learner):
    r"""Predict entry (i, j) by the vote of the rows whose label in column j is known.

    Row i' votes with weight :math:`\beta^{d(i, i')}`, d the number of columns in which the two rows were seen to
    disagree: weighted majority voting for matrices with few types of rows.

    Parameters
    ----------
    beta : float
        What a disagreement costs, in (0, 1).

    References
    ----------
    .. [GW93] Goldman, Warmuth, *Learning binary relations using weighted majority voting*, COLT 1993. Their bound,
       :func:`entrywise.bounds.binary.goldman_warmuth_bound`, is for another rule: weights there also rise where rows agree, by
       a parameter tuned to the number of noiseless row types. It is not claimed for this one.

    Examples
    --------
    >>> GoldmanWarmuth().learn_many([0, 1, 1], [0, 0, 1], [-1, -1, -1]).predict(0, 1)
    -1
    """

    beta: float = 0.5

    def _refuse(self) -> None:
        positive(self.beta, "beta", 0.0, 1.0)

    def _empty(self) -> _Relation:
        return _Relation(float(self.beta))
