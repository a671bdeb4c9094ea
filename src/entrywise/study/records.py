"""The values that pass between a study and its store."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrywise.queries import Batch, Checkpoint
from entrywise.types import Array, Indices

Naming = Callable[[int, int], str]  # (row, col) -> how messages call the entry
Blaming = Callable[[int], str]  # number of an answer -> where it came from
Workers = str | list[str | None] | None  # who tells: one for all answers, or one for each
Key = tuple[int, int]  # the name of a question: (batch, position)
IMPLAUSIBLE = 6.0  # standard deviations of what was expected: a slip of the pen, not of the model


@dataclass(frozen=True)
class Record:
    """A study's own row and the one of its epoch: what it is about and where it stands."""

    name: str
    plan: str
    seed: int
    params: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, Any] | None = None
    dropped: Mapping[str, Any] | None = None
    symmetric: bool = False
    fresh: bool = False
    tolerates_failed: bool = False
    history: bool = False
    streaming: bool = False
    n_rows: int | None = None
    n_cols: int | None = None
    currency: str | None = None
    total: float | None = None
    committed: float = 0.0
    state: str = "open"
    reason: str | None = None
    trouble: str | None = None
    cursor: int = 0
    epoch: int = 0
    first_step: int = 0
    current: int = 0
    next_step: int = 0
    asked: int = 0
    withdrawn: int = 0
    given: int = 0
    stepper: str | None = None
    stepper_until: float = 0.0
    parent: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    created_at: float = 0.0
    id: int = 0

    @property
    def budget(self) -> float | None:
        """The money of the study, if it has a limit."""
        return self.total if self.total is not None else self.params.get("budget")

    @property
    def left(self) -> float | None:
        """Money that is neither spent nor held."""
        return None if self.budget is None else self.budget - self.committed


@dataclass(frozen=True)
class Epoch:
    """What a plan is started with."""

    params: Mapping[str, Any]
    prices: Mapping[str, Any] | None
    total: float | None
    change: str
    dropped: Mapping[str, Any] | None = None


class Filter(NamedTuple):
    """The only questions that somebody can answer: rows and columns by index, a mode; None is any."""

    rows: tuple[int, ...] | None = None
    cols: tuple[int, ...] | None = None
    mode: str | None = None

    def __bool__(self) -> bool:
        return any(part is not None for part in self)


ANY = Filter()


class Want(NamedTuple):
    """A position of a step that wants what is there already.

    Memory answers it (``given``), or it waits for the question ``key``; a withdrawn one comes back to the queue
    (``requeue``) at this price.
    """

    position: int
    key: Key | None = None
    given: bool = False
    value: float | None = None
    price: float | None = None
    requeue: bool = False


@dataclass(frozen=True)
class Step:
    """What one advance of the plan adds.

    ``fresh`` are the positions that become new questions, with their ``repeat`` and ``bill``; the others are
    ``wants`` of questions that are there. ``seen`` are the facts that the plan was given, by question.
    """

    batch: Batch | None = None
    fresh: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    repeat: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    bill: Array = field(default_factory=lambda: np.zeros(0))
    wants: Sequence[Want] = ()
    filter: Filter = ANY
    limit: int | None = None
    left: float | None = None

    @property
    def cost(self) -> float:
        """What the step adds to what is committed."""
        back = sum(w.price or 0.0 for w in self.wants if w.requeue)
        return float(self.bill.sum()) + back


@dataclass(frozen=True)
class Advance:
    """One or more steps, and what stands after them: an open one last, or the end."""

    steps: Sequence[Step]
    seen: Sequence[tuple[int, int, int]] = ()  # (batch, position, turn) of facts given to the first
    ended: str | None = None
    reason: str | None = None
    report: Mapping[str, Any] | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_at: int = 0  # how many of the steps come before it
    version: str = ""


class StepRow(NamedTuple):
    """A step in the log, without its questions."""

    step: int
    epoch: int
    mode: str
    size: int
    asked: int
    digest: str
    filter: str | None
    limit: int | None
    left: float | None
    ended: str | None


@dataclass(frozen=True)
class Leased:
    """Questions handed to a worker, by columns; they may come from several steps."""

    batches: Indices
    positions: Indices
    rows: Indices
    cols: Indices
    modes: NDArray[np.str_]
    price: Array
    unit: list[int | None]
    arm: list[str | None]
    probability: list[float | None]
    plate: list[int | None]
    well: list[str | None]
    until: float = 0.0
    why: str | None = None  # why fewer came than were wanted

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def batch(self) -> int:
        """The batch of the first question."""
        return int(self.batches[0])

    @property
    def smallest_plate(self) -> int:
        """How many questions the smallest plate among them has; 0 without plates."""
        sizes = Counter(
            k for k in zip(self.batches.tolist(), self.plate, strict=True) if k[1] is not None
        )
        return min(sizes.values(), default=0)

    def parts(self) -> list[Indices]:
        """Return positions grouped by mode: what one call of an oracle can be asked."""
        return [np.flatnonzero(self.modes == mode) for mode in dict.fromkeys(self.modes.tolist())]

    def to_batch(self, at: Indices | None = None) -> Batch:
        """Return what an oracle is asked, at some of the places, all of one mode."""
        at = np.arange(len(self)) if at is None else at
        pick = at.tolist()
        units = [self.unit[k] for k in pick]
        chance = [self.probability[k] for k in pick]
        return Batch(
            self.rows[at],
            self.cols[at],
            str(self.modes[at[0]]) if len(at) else "entry",
            unit=None if None in units else np.array(units, np.int64),
            arm=np.array([self.arm[k] or "" for k in pick]) if any(self.arm) else None,
            probability=None if None in chance else np.array(chance, np.float64),
        )


class Told(NamedTuple):
    """Answers by columns; `failed` ones have NaN, and some of them a reason, by their place."""

    batch: Indices
    position: Indices
    value: Array
    failed: NDArray[np.bool_]
    reasons: Mapping[int, str] = MappingProxyType({})


def digest(batch: Batch) -> str:
    """Return a fingerprint of what a batch asks for: mode, rows, cols and units, in order."""
    made = hashlib.blake2b(batch.mode.encode(), digest_size=16)
    for column in (batch.rows, batch.cols, batch.unit):
        made.update(b"-" if column is None else np.ascontiguousarray(column, "<i8").tobytes())
    return made.hexdigest()


def number_or_none(x: float) -> float | None:
    """Return a number as a database keeps it: what is not one as nothing."""
    return None if np.isnan(x) else float(x)
