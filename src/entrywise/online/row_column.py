"""Row and column majorities: the baseline that knows only how often each row and column says +1."""

from __future__ import annotations

from dataclasses import dataclass

from entrywise.online._learner import Learner, Replayed


class _Counts(Replayed):
    def __init__(self) -> None:
        super().__init__()
        self._row: dict[int, list[int]] = {}  # sum of labels, their number
        self._col: dict[int, list[int]] = {}

    def fresh(self) -> _Counts:
        return _Counts()

    def score(self, i: int, j: int) -> float:
        found = 0.0
        for known, k in ((self._row, i), (self._col, j)):
            if k in known:
                total, number = known[k]
                found += total / (number + 1.0)  # a mean shrunk towards 0 by one observation
        return found

    def absorb(self, i: int, j: int, y: int) -> None:
        for known, k in ((self._row, i), (self._col, j)):
            counts = known.setdefault(k, [0, 0])
            counts[0] += y
            counts[1] += 1


@dataclass(frozen=True, eq=False)
class RowColumnMajority(Learner):
    """Predict the sign of the row's mean label plus the column's, each shrunk towards 0 by one observation.

    Examples
    --------
    >>> RowColumnMajority().learn_many([0, 0, 1], [0, 1, 1], [-1, -1, -1]).predict(0, 5)
    -1
    """

    def _empty(self) -> _Counts:
        return _Counts()
