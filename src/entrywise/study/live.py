"""A run that stands where the log of a study stood, and the answers that bring it further."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrywise.budget import Ledger
from entrywise.exceptions import Exhausted
from entrywise.queries import History
from entrywise.run import Run
from entrywise.study.records import Key
from entrywise.types import Array, Indices


class Purse(Ledger):
    """What a step may spend: the money that the store says is left, set before each step."""

    def __init__(self, left: float | None, total: float | None) -> None:
        super().__init__(None)
        self.total = total
        self.fill(left)

    def fill(self, left: float | None) -> None:
        """Say what is left for the next step."""
        self.budget = left

    @property
    def left(self) -> float:
        """What may be spent; infinite without a budget."""
        return math.inf if self.budget is None else self.budget

    def hold(self, amount: float) -> None:
        """Refuse what cannot be paid; the store holds the rest."""
        slack = 1e-9 * (self.total or 0.0)  # round-off in sums of prices, far below a cent
        if amount > self.left + slack:
            raise Exhausted(
                f"the next batch costs {amount:g} and {max(self.left, 0.0):g} of {self.total or 0.0:g} "
                "is left; raise the budget"
            )

    def charge(self, amount: float) -> None:
        """Leave it to the store."""


@dataclass
class Live:
    """A run that stands where the log stood."""

    run: Run
    purse: Purse
    epoch: int
    withdrawn: int
    next: int  # the first step that was not compared yet
    index: int = 0  # how many batches of the run were
    waited: set[Key] = field(default_factory=set)  # questions of earlier epochs that this one wants
    seen: list[tuple[int, int, int]] = field(default_factory=list)  # unseen facts that it was given
    complete: bool = False  # all that the last step wants is answered, and told

    def given(self, told: StepAnswers, step: int, left: float | None, at: Indices) -> Array | None:
        """Return the answers of a step at positions, None while one is missing; with them comes the money left then."""
        values = told.of(step, at)
        if values is not None:
            late, new = told.late(step)
            if late is not None:
                self.run.recall(late)
            self.purse.fill(left)
            self.seen = [*told.unseen(step), *new]
        return values


class StepAnswers:
    """The answers to a run of steps, and those that came late to questions of earlier epochs."""

    def __init__(
        self,
        mine: list[Any],
        waiting: list[Any],
        others: list[Any],
        waited: set[Key],
        last: int,
    ) -> None:
        columns = list(zip(*mine, strict=True)) or [()] * 5
        self.batch, self.position = (np.array(c, np.int64) for c in columns[:2])
        self.value = np.array(columns[2], np.float64)
        self._turn, self._seen = columns[3], columns[4]
        self._others = {(row[4], row[5]): row for row in others}  # the last answer of each
        self._waiting: dict[int, dict[int, Key]] = {}
        for step, position, batch, at in waiting:
            self._waiting.setdefault(step, {})[position] = (batch, at)
        self._late = [row for key, row in self._others.items() if key not in waited]
        self._last = last

    def _slice(self, step: int) -> slice:
        first = int(np.searchsorted(self.batch, step))
        return slice(first, int(np.searchsorted(self.batch, step, side="right")))

    def of(self, step: int, open_: Indices) -> Array | None:
        """Return the answers at the open positions of a step, None while one is missing."""
        here = self._slice(step)
        again = self._waiting.get(step, {})
        if not again:
            return self.value[here] if here.stop - here.start == len(open_) else None
        found = dict(zip(self.position[here].tolist(), self.value[here].tolist(), strict=True))
        for position, key in again.items():
            if key in self._others:
                found[position] = _nan(self._others[key][3])
        if any(k not in found for k in open_.tolist()):
            return None
        return np.array([found[k] for k in open_.tolist()], np.float64)

    def unseen(self, step: int) -> list[tuple[int, int, int]]:
        """Return the answers of a step that no step was given yet."""
        here = range(*self._slice(step).indices(len(self.batch)))
        position = self.position
        own = [(step, int(position[k]), self._turn[k]) for k in here if self._seen[k] is None]
        rows = [self._others.get(key) for key in self._waiting.get(step, {}).values()]
        return own + [(row[4], row[5], row[6]) for row in rows if row and row[7] is None]

    def late(self, step: int) -> tuple[History | None, list[tuple[int, int, int]]]:
        """Return what came late and is remembered as this step closes, and which of it is new."""
        last = step == self._last
        rows = [r for r in self._late if r[7] == step + 1 or (last and r[7] is None)]
        if not rows:
            return None, []
        new = [(row[4], row[5], row[6]) for row in rows if row[7] is None]
        table = History(
            np.array([row[1] for row in rows]),
            np.array([row[2] for row in rows]),
            np.array([_nan(row[3]) for row in rows]),
            mode=np.array([row[0] for row in rows], np.str_),
        )
        return table, new


def _nan(x: float | None) -> float:
    return np.nan if x is None else x
