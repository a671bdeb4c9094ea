"""What a study asks of the place where it is kept: the ``Store`` interface and the values that cross it.

:class:`~entrywise.study.sql.SQLStore` is the one that ships. Another keeps the laws of
:mod:`entrywise.checks.stores`: answers stand once committed, and a step is installed once or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from entrywise.queries import Batch, Checkpoint
from entrywise.types import Array, Indices

Naming = Callable[[int, int], str]  # (row, col) -> how messages call the entry
Blaming = Callable[[int], str]  # number of an answer -> where it came from

Workers = str | list[str | None] | None  # who tells: one for all answers, or one for each


@dataclass(frozen=True)
class Record:
    """A study's own row: what it is about and where it stands."""

    name: str
    plan: str
    params: Mapping[str, Any]
    seed: int
    budget: float | None
    sunk: float
    prices: Mapping[str, Any] | None
    symmetric: bool
    fresh: bool
    tolerates_failed: bool
    n_rows: int | None
    n_cols: int | None
    state: str
    trouble: str | None
    cursor: int
    current: int
    next_batch: int
    rewinds: int
    parent: str | None
    versions: Mapping[str, str]
    created_at: float
    id: int = 0


class Asked(NamedTuple):
    """A batch as a step installs it: its answers from memory (NaN elsewhere) and its bill."""

    batch: Batch
    answers: Array
    known: NDArray[np.bool_]
    bill: Array
    cost: float


@dataclass(frozen=True)
class Step:
    """What one advance of the plan adds: batches answered from memory, then an open one or the end."""

    asked: Sequence[Asked]
    state: str
    checkpoint: Checkpoint | None = None
    checkpoint_at: int = 0  # how many of `asked` come before the checkpoint
    version: str = ""


class BatchRow(NamedTuple):
    """A batch in the log, without its questions."""

    number: int
    size: int
    wanted: int
    mode: str
    digest: str
    cost: float
    dead: bool


@dataclass(frozen=True)
class Leased:
    """Questions handed to a worker, by columns."""

    batch: int
    positions: Indices
    rows: Indices
    cols: Indices
    mode: str = "entry"
    price: Array = field(default_factory=lambda: np.zeros(0))
    unit: Indices | None = None
    arm: list[str | None] | None = None
    probability: Array | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def to_batch(self) -> Batch:
        """Return what an oracle is asked."""
        arm = None if self.arm is None else np.array([a or "" for a in self.arm])
        return Batch(self.rows, self.cols, self.mode, self.unit, arm, self.probability)


class Told(NamedTuple):
    """Answers by columns; `failed` ones have NaN."""

    batch: Indices
    position: Indices
    value: Array
    failed: NDArray[np.bool_]


class Store(Protocol):
    """Where studies are kept. Every method is one transaction; none of them runs a plan."""

    def create(
        self,
        record: Record,
        labels: Mapping[str, Sequence[str]],
        known: Mapping[str, Any],
        step: Step,
    ) -> None:
        """Keep a new study with its first step; refuse a name that is taken."""

    def record(self, name: str) -> Record:
        """Return the row of a study; refuse a name that is unknown."""

    def records(self) -> list[Record]:
        """Return every study, by name."""

    def labels(self, study: int) -> dict[str, list[str]]:
        """Return the labels of the axes that have any."""

    def known(self, study: int) -> dict[str, tuple[Indices, Indices, Array]]:
        """Return the entries that were known beforehand, by mode."""

    def lease(
        self, study: int, limit: int | None, worker: str | None, until: float, now: float
    ) -> Leased | None:
        """Hand out open questions that nobody holds, whole units together; None when there are none."""

    def release(self, study: int, worker: str | None) -> int:
        """Take back what a worker (or everybody) holds; return how many questions that were."""

    def put(
        self,
        record: Record,
        told: Told,
        worker: Workers,
        now: float,
        name: Naming,
        blame: Blaming,
        hint: tuple[int, int] | None = None,
    ) -> tuple[int, tuple[int, int] | None]:
        """Keep answers, all of them or none; return (how many were new, some question open after that or None).

        It must have looked once the answers were committed; where question `hint` is still open it may be the one.
        """

    def open_question(self, study: int) -> tuple[int, int] | None:
        """Return some open question as (batch, position); None when all are answered."""

    def complete(self, study: int) -> bool:
        """Tell whether no question is open."""

    def install(self, record: Record, step: Step, now: float) -> bool:
        """Add a step if the study still stands where `record` says; return whether it did."""

    def batches(self, study: int, after: int = -1) -> list[BatchRow]:
        """Return the batches numbered above `after`, in order."""

    def answers(self, study: int, first: int, last: int) -> tuple[Indices, Array]:
        """Return (batch, value) of the answers in batches first..last, in order, NaN where one failed."""


def digest(batch: Batch) -> str:
    """Return a fingerprint of what a batch asks for: mode, rows, cols and units, in order."""
    made = hashlib.blake2b(batch.mode.encode(), digest_size=16)
    for column in (batch.rows, batch.cols, batch.unit):
        made.update(b"-" if column is None else np.ascontiguousarray(column, "<i8").tobytes())
    return made.hexdigest()
