"""What one step of a streaming plan may look at."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from entrywise.queries.history import History
from entrywise.types import Indices


@dataclass(frozen=True, eq=False)
class Situation:
    """All that one step of a streaming plan may look at.

    Parameters
    ----------
    step, epoch : int
        Number of the step, through the whole study; epoch of the study.
    facts : History
        What is known and what was told, in the order in which it was asked (known first).
    pending : History
        What was asked and has no answer yet; its values are NaN.
    left : float, optional
        Money that is neither spent nor held by what is pending; None where there is no budget.
    rows, cols : ndarray of int64, optional
        The only lines that this step may ask for; None: all.
    limit : int, optional
        The most cells that this step may ask for.
    dropped_rows, dropped_cols : ndarray of int64, optional
        Lines that no step asks for any more; what is known of them stays.
    seed : int
        The plan's seed, for what must not change from step to step; :meth:`Plan.step` sets it.
    """

    step: int = 0
    epoch: int = 0
    facts: History = field(default_factory=History.empty)
    pending: History = field(default_factory=History.empty)
    left: float | None = None
    rows: Indices | None = None
    cols: Indices | None = None
    limit: int | None = None
    dropped_rows: Indices | None = None
    dropped_cols: Indices | None = None
    seed: int = 0

    @property
    def filtered(self) -> bool:
        """Whether this step may ask for some lines only."""
        return self.rows is not None or self.cols is not None

    def allows(self, rows: Indices, cols: Indices) -> NDArray[np.bool_]:
        """Tell which entries the filter lets through and nobody dropped."""
        found = np.ones(len(rows), dtype=bool)
        for index, allowed in ((rows, self.rows), (cols, self.cols)):
            if allowed is not None:
                found &= np.isin(index, allowed)
        for index, dropped in ((rows, self.dropped_rows), (cols, self.dropped_cols)):
            if dropped is not None:
                found &= ~np.isin(index, dropped)
        return found
