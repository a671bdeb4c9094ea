"""Questions asked and what came back: which still want an answer, and what each will cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import AnswerError, TellError
from entrywise.queries import Batch, Plan
from entrywise.types import Array, Indices

Answers = ArrayLike | Sequence[float | None]


class Sheet:
    """Questions in the order in which they were asked; a position is a question's number.

    ``answers`` are NaN where none came yet and where a measurement failed; ``wanted`` tells the two
    apart. ``bill`` is what each position adds to the costs; ``modes`` are the instruments, of which a
    streaming plan may use several (``batch.mode`` is the first question's).
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.batch = Batch.empty()
        self.answers: Array = np.zeros(0)
        self.bill: Array = np.zeros(0)
        self.wanted: NDArray[np.bool_] = np.zeros(0, bool)
        self._charged: NDArray[np.bool_] = np.zeros(0, bool)
        self._modes: NDArray[np.str_] | None = None  # None when all questions have the batch's own

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def open(self) -> Indices:
        """Positions that still want an answer."""
        return np.flatnonzero(self.wanted)

    @property
    def modes(self) -> NDArray[np.str_]:
        """The instrument of each question."""
        return np.full(len(self), self.batch.mode) if self._modes is None else self._modes

    @property
    def next(self) -> Indices:
        """Open positions of one instrument, that of the first of them: what can be asked at once."""
        return self.alike(self.open)

    def alike(self, positions: Indices) -> Indices:
        """Return those positions that have the instrument of the first."""
        if self._modes is None or not len(positions):
            return positions
        same = self._modes[positions] == self._modes[positions[0]]
        return np.asarray(positions[same])

    def asked(self, positions: Indices) -> Batch:
        """Return what an oracle is asked at positions of one instrument."""
        if len(positions) == len(self):
            return self.batch
        found = self.batch[positions]
        if self._modes is None or not len(positions):
            return found
        return replace(found, mode=str(self._modes[positions[0]]))

    def add(self, batch: Batch, answers: Array, known: NDArray[np.bool_], bill: Array) -> None:
        """Put questions behind those that are there; `known` ones have their answer already."""
        if not len(self):
            self.batch, self.answers, self.wanted = batch, answers, ~known
            self.bill, self._charged = bill, np.zeros(len(bill), bool)
            return
        if self._modes is not None or batch.mode != self.batch.mode:
            self._modes = np.concatenate([self.modes, np.full(len(batch), batch.mode)])
        self.batch = joined(self.batch, batch)
        self.answers = np.concatenate([self.answers, answers])
        self.wanted = np.concatenate([self.wanted, ~known])
        self.bill = np.concatenate([self.bill, bill])
        self._charged = np.concatenate([self._charged, np.zeros(len(bill), bool)])

    def new(self, answers: Answers, positions: ArrayLike | None) -> tuple[Indices, Array]:
        """Return positions and values of answers that are new, or refuse them all.

        The same answer told twice is harmless; another one is refused.
        """
        if positions is None:  # what is open was never told, and stands there once
            at = self.next
            return at, self._checked(answers, at)[0]
        at = _flat_positions(positions, len(self))
        values, failed = self._checked(answers, at)
        self._refuse_changed(at, values, failed)
        at, values = self._once(at, values)
        fresh = self.wanted[at]
        return at[fresh], values[fresh]

    def fill(self, at: Indices, values: Array) -> float:
        """Write answers down and return what they cost; a unit told in part is charged whole, once."""
        self.answers[at] = values
        if len(at) == np.count_nonzero(self.wanted):  # all that was open: what is left of the bill
            self.wanted[:] = False
            return self._charge(slice(None))
        self.wanted[at] = False
        if self.batch.unit is None:
            return self._charge(at)
        units = self.batch.unit[at]
        mates = np.isin(self.batch.unit, units[units >= 0])
        return self._charge(np.union1d(at, np.flatnonzero(mates)))

    def _charge(self, positions: Indices | slice) -> float:
        """Return what these positions cost, those charged before nothing."""
        cost = float(np.sum(self.bill[positions], where=~self._charged[positions]))
        self._charged[positions] = True
        return cost

    def _checked(self, answers: Any, at: Indices) -> tuple[Array, NDArray[np.bool_]]:
        """Return finite values, NaN where a measurement failed, and where that is."""
        values, failed = _numbers(answers)
        if values.shape != at.shape:
            raise TellError(
                f"there must be one answer for each of {len(at)} positions, got {values.shape}"
            )
        bad = np.flatnonzero(~np.isfinite(values) & ~failed)
        if len(bad):
            k = int(bad[0])
            raise AnswerError(
                f"answer {at[k]}, entry {self._name(at[k])}, is {values[k]}; tell a finite number"
            )
        if np.any(failed) and not self.plan.tolerates_failed:
            k = int(np.flatnonzero(failed)[0])
            raise AnswerError(
                f"answer {at[k]}, entry {self._name(at[k])}, failed, and {self.plan.name} "
                "cannot do without it; measure it again"
            )
        return values, failed

    def _refuse_changed(self, at: Indices, values: Array, failed: NDArray[np.bool_]) -> None:
        told = ~self.wanted[at]
        before = self.answers[at]
        same = (values == before) | (failed & np.isnan(before))
        changed = np.flatnonzero(told & ~same)
        if len(changed):
            k = int(changed[0])
            raise TellError(
                f"position {at[k]}, entry {self._name(at[k])}, was answered {before[k]:g} "
                f"and is now told {values[k]:g}; an answer stands"
            )

    def _once(self, at: Indices, values: Array) -> tuple[Indices, Array]:
        """Return each position once, refusing two answers to one."""
        unique, first = np.unique(at, return_index=True)
        if len(unique) == len(at):
            return at, values
        again = values[first][np.searchsorted(unique, at)]
        clash = ~((again == values) | (np.isnan(again) & np.isnan(values)))
        if np.any(clash):
            k = int(np.flatnonzero(clash)[0])
            raise TellError(
                f"position {at[k]}, entry {self._name(at[k])}, is told {again[k]:g} "
                f"and {values[k]:g}; tell one"
            )
        return unique, values[first]

    def _name(self, position: int) -> str:
        return f"({self.batch.rows[position]}, {self.batch.cols[position]})"


def joined(first: Batch, then: Batch) -> Batch:
    """Return two batches as one; units stay apart, the mode is the first one's and the report the later one's."""
    blank: dict[str, Any] = {"unit": -1, "plate": -1, "arm": "", "well": ""}
    extra: dict[str, Any] = {}
    for name in ("unit", "arm", "probability", "expected", "deviation", "plate", "well"):
        parts = [getattr(first, name), getattr(then, name)]
        if parts[0] is None and parts[1] is None:
            continue
        sizes = (len(first), len(then))
        for k, part in enumerate(parts):
            if part is None:
                parts[k] = np.full(sizes[k], blank.get(name, np.nan))
        extra[name] = np.concatenate(parts)
    if first.unit is not None and then.unit is not None:
        apart = 1 + first.unit.max(initial=-1)
        extra["unit"][len(first) :] = np.where(then.unit < 0, -1, then.unit + apart)
    return Batch(
        np.concatenate([first.rows, then.rows]),
        np.concatenate([first.cols, then.cols]),
        first.mode,
        report=then.report,
        **extra,
    )


def _numbers(answers: Any) -> tuple[Array, NDArray[np.bool_]]:
    """Return answers as numbers, NaN for None, and where None stood."""
    if isinstance(answers, np.ndarray) and answers.dtype.kind in "fiub":
        values = np.asarray(answers, dtype=np.float64)
        return values, np.zeros(values.shape, dtype=bool)
    try:
        items = list(answers)
    except TypeError:
        items = [answers]
    failed = np.array([x is None for x in items], dtype=bool)
    try:
        values = np.array([np.nan if x is None else float(x) for x in items], dtype=np.float64)
    except (TypeError, ValueError):
        raise AnswerError(
            f"answers must be numbers, got {items[:3]!r}; tell finite numbers, None where one failed"
        ) from None
    return values, failed


def _flat_positions(positions: ArrayLike, size: int) -> Indices:
    at = np.atleast_1d(np.asarray(positions))
    if at.size == 0:
        return np.zeros(0, np.int64)
    if at.ndim != 1 or at.dtype.kind not in "iu":
        raise TellError(f"positions must be whole numbers in a flat list, got {positions!r}")
    outside = at[(at < 0) | (at >= size)]
    if len(outside):
        raise TellError(f"positions must be in 0..{size - 1}, got {outside[0]}")
    return at.astype(np.int64)
