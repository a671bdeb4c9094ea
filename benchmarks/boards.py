"""The boards on which scores, orders and new rows are judged: real tables, rows to be scored by their mean over columns.

Every board is made from the files of ``ENTRYWISE_DATA`` by the recipe printed beside it; nothing is drawn except
Jester's users (seed 0). ``python benchmarks/boards.py`` prints all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from entrywise import datasets


@dataclass(frozen=True, eq=False)
class Board:
    """A table whose rows are scored; NaN where a cell cannot be bought."""

    name: str
    values: np.ndarray
    recipe: str
    price: np.ndarray | None = None

    @property
    def available(self) -> np.ndarray | None:
        """Which cells may be bought; None when all."""
        there = ~np.isnan(self.values)
        return None if there.all() else there

    @property
    def cells(self) -> int:
        """How many cells may be bought."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def truth(self) -> np.ndarray:
        """The score of every row: its mean over the cells that exist."""
        return np.nanmean(self.values, axis=1)

    def naive_error(self, share: float) -> float:
        """Return the exact error of naive scores: k random cells a row (or k common columns), raw means.

        sqrt(mean_i S_i^2 (1/k_i - 1/n_i)) with k_i = share n_i, S_i^2 the variance of row i over its n_i cells.
        """
        n = np.sum(~np.isnan(self.values), axis=1)
        variance = np.nanvar(self.values, axis=1, ddof=1)
        return float(np.sqrt(np.mean(variance * (1.0 / share - 1.0) / n)))


def _ae2() -> Board:
    A = datasets.alpaca_eval().to_dense()
    A = A[:, ~np.isnan(A).any(axis=0)]
    return Board("ae2", A, "AlpacaEval 2, preference of 58 models, the columns without gaps")


def _kiba() -> Board:
    A = datasets.kiba()[0].to_dense()
    there = ~np.isnan(A)
    rows, cols = np.arange(A.shape[0]), np.arange(A.shape[1])
    while not there[np.ix_(rows, cols)].all():
        block = there[np.ix_(rows, cols)]
        by_row, by_col = block.mean(axis=1), block.mean(axis=0)
        if by_row.min() <= by_col.min():
            rows = np.delete(rows, by_row.argmin())
        else:
            cols = np.delete(cols, by_col.argmin())
    recipe = "KIBA, drugs by targets, the emptiest line (smallest share known) dropped in turn until no gap is left"
    return Board("KIBA", A[np.ix_(rows, cols)], recipe)


def _jester() -> Board:
    A = datasets.jester(complete_rows=True).to_dense()
    users = np.sort(np.random.default_rng(0).choice(len(A), 500, replace=False))
    recipe = "Jester 1, 100 jokes by 500 users drawn with seed 0 among those who rated all"
    return Board("Jester", A[users].T, recipe)


def _senate() -> Board:
    A = datasets.votes("senate").to_dense()
    return Board(
        "Senate 106", A, "Senate 106, +-1 votes, senators by roll calls, gaps cannot be bought"
    )


def _oboe() -> Board:
    seen, seconds = datasets.oboe()
    recipe = (
        "Oboe, error of pipelines by data sets; its price is the runtime where prices are asked for"
    )
    return Board("Oboe", seen.to_dense().T, recipe, seconds.T)


BOARDS: dict[str, Callable[[], Board]] = {
    "ae2": _ae2,
    "KIBA": _kiba,
    "Jester": _jester,
    "Senate 106": _senate,
    "Oboe": _oboe,
}


@cache
def board(name: str) -> Board:
    """Return a board by its name."""
    return BOARDS[name]()


def describe() -> None:
    """Print every board with its shape, its cells and its recipe."""
    from _shared import show

    rows = []
    for name in BOARDS:
        one = board(name)
        m, n = one.values.shape
        rows.append((name, f"{m} x {n}", one.cells, one.recipe))
    show("the boards", ("board", "rows x columns", "cells", "recipe"), rows)


if __name__ == "__main__":
    describe()
