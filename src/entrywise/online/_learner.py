"""What every learner shares: frozen states over a memory that only grows.

A state is (memory, length, last prediction). The newest state owns the memory and learning appends to
it; an older state that is used again makes its own copy of the first `length` events. So states are
values, and on the straight path they cost nothing.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise import npz
from entrywise.exceptions import DataError, ParameterError
from entrywise.types import Array, Indices

Signs = NDArray[np.int8]
FORMAT = 1  # of saved states


class LearnerMemory(Protocol):
    """What a learner knows; it grows by events and can be made again as it was after any number of them."""

    @property
    def length(self) -> int:
        """Events so far."""

    def copy(self, length: int) -> LearnerMemory:
        """Return a new memory as this one was after its first `length` events."""

    def values(self, rows: Indices, cols: Indices) -> Array:
        """Return real-valued predictions, shape (b,)."""

    def signs(self, rows: Indices, cols: Indices) -> Signs:
        """Return the predictions, -1 or +1, shape (b,)."""

    def follow(self, rows: Indices, cols: Indices, labels: Signs) -> Signs:
        """Predict and learn trial by trial; return the predictions."""

    def arrays(self, length: int) -> dict[str, NDArray[Any]]:
        """Return the first `length` events as arrays."""

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Fill an empty memory with what :meth:`arrays` returned."""


@dataclass(frozen=True, eq=False)
class Learner(ABC):
    """A frozen state that predicts entries of a -1/+1 matrix and learns from their labels."""

    trials: int = field(default=0, init=False)
    mistakes: int = field(default=0, init=False)
    _memory: Any = field(default=None, init=False, repr=False)
    _length: int = field(default=0, init=False, repr=False)
    _last: Any = field(default=None, init=False, repr=False)

    kinds: ClassVar[dict[str, type[Learner]]] = {}

    def __init_subclass__(cls, **extra: Any) -> None:
        super().__init_subclass__(**extra)
        Learner.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        self._refuse()
        object.__setattr__(self, "_memory", self._empty())

    def _refuse(self) -> None:  # noqa: B027  not every learner has parameters to refuse
        """Raise ParameterError when a parameter is outside its domain."""

    @abstractmethod
    def _empty(self) -> LearnerMemory | None:
        """Return a memory without events; None where others remember."""

    def _current(self) -> Any:
        """Return a memory that is exactly this state's."""
        if self._memory.length != self._length:
            object.__setattr__(self, "_memory", self._memory.copy(self._length))
        return self._memory

    def _with(self, **changes: Any) -> Self:
        new = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(new, name, value)
        return new

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def predict(self, i: int, j: int) -> int:
        """Return the predicted label of entry (i, j), -1 or +1. Rows and columns may be new."""
        i, j = index(i, "row"), index(j, "column")
        memory = self._current()
        if self._last is None or self._last[:2] != (i, j):
            sign = int(memory.signs(np.array([i]), np.array([j]))[0])
            object.__setattr__(self, "_last", (i, j, sign))
        return int(self._last[2])

    def predict_many(self, rows: ArrayLike, cols: ArrayLike) -> Signs:
        """Return the predicted labels at (rows, cols), shapes broadcast, all from this one state."""
        i, j = indices(rows, cols)
        found = np.asarray(self._current().signs(i.ravel(), j.ravel()), np.int8)
        return found.reshape(i.shape)

    def margin(self, i: int, j: int) -> float:
        """Return how sure the prediction is: its sign is the prediction's, its size grows with confidence."""
        rows, cols = np.array([index(i, "row")]), np.array([index(j, "column")])
        return float(self._current().values(rows, cols)[0])

    def learn(self, i: int, j: int, y: int) -> Self:
        """Return the state after entry (i, j) turned out to be y, -1 or +1."""
        i, j, y = index(i, "row"), index(j, "column"), label(y)
        return self._follow(np.array([i]), np.array([j]), np.array([y], np.int8))[1]

    def follow(self, rows: ArrayLike, cols: ArrayLike, labels: ArrayLike) -> tuple[Signs, Self]:
        """Predict and learn a stream of entries, one after the other.

        Returns
        -------
        predictions : ndarray of int8 of shape (T,)
            Each made before its own label was learnt.
        learner : same type
            The state after the last.
        """
        i, j = indices(rows, cols)
        y = np.asarray(labels)
        if i.ndim != 1 or y.shape != i.shape:
            raise ParameterError(
                f"rows, cols and labels must be flat and equally long, got {i.shape} and {y.shape}"
            )
        wrong = np.flatnonzero((y != 1) & (y != -1))
        if len(wrong):
            raise ParameterError(
                f"labels must be -1 or +1, got {y[wrong[0]]!r} at position {wrong[0]}; recode them"
            )
        return self._follow(i, j, y.astype(np.int8))

    def learn_many(self, rows: ArrayLike, cols: ArrayLike, labels: ArrayLike) -> Self:
        """Return the state after learning a stream of entries, one after the other."""
        return self.follow(rows, cols, labels)[1]

    def _follow(self, i: Indices, j: Indices, y: Signs) -> tuple[Signs, Self]:
        memory = self._current()
        predictions = np.asarray(memory.follow(i, j, y), np.int8)
        wrong = int((predictions != y).sum())
        new = self._with(
            trials=self.trials + len(y),
            mistakes=self.mistakes + wrong,
            _length=memory.length,
            _last=None,
        )
        return predictions, new

    @property
    def burden(self) -> int:
        """What a prediction costs as learning goes on, in edges that may have to be walked; 0 when it stays cheap."""
        return 0

    @property
    def report(self) -> dict[str, Any]:
        """What happened so far, in words and numbers."""
        return {"trials": self.trials, "mistakes": self.mistakes}

    # files

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return (plain values, arrays) from which :meth:`from_state` makes this state again."""
        counts = {"trials": self.trials, "mistakes": self.mistakes}
        plain = {"kind": type(self).__name__, "format": FORMAT, "params": self.params} | counts
        return plain, self._memory.arrays(self._length)

    @staticmethod
    def from_state(plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Learner:
        """Return the learner that :meth:`state` described."""
        kind = Learner.kinds.get(plain["kind"])
        if kind is None or plain.get("format") != FORMAT:
            raise DataError(
                f"a saved learner of kind {plain['kind']!r}, format {plain.get('format')}, is not known here"
            )
        return kind._restore(plain, arrays)

    @classmethod
    def _restore(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        new = cls(**plain["params"])
        new._memory.take(arrays)
        return new._with(
            trials=plain["trials"], mistakes=plain["mistakes"], _length=new._memory.length
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this state to an npz file, whole or not at all; nothing is pickled."""
        plain, arrays = self.state()
        npz.save(path, arrays, plain)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the state that :meth:`save` wrote."""
        plain, arrays = npz.unpack(path, "a learner")
        try:
            found = Learner.from_state(plain, arrays)
        except (KeyError, ValueError) as error:
            raise DataError(f"{path} must hold a learner saved by entrywise: {error}") from None
        if not isinstance(found, cls):
            raise DataError(
                f"{path} holds a {type(found).__name__}, not a {cls.__name__}; load it with Learner.load"
            )
        return found


class Replayed(ABC):
    """Memory of a learner that looks at every trial: it keeps the trials and is made again by replaying them.

    A subclass says what it knows: ``score(i, j)``, a real number whose sign (0 counts as +) is the prediction, and
    ``absorb(i, j, y)``.
    """

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._cols: list[int] = []
        self._labels: list[int] = []

    @abstractmethod
    def fresh(self) -> Replayed:
        """Return an empty memory with the same parameters."""

    @abstractmethod
    def score(self, i: int, j: int) -> float:
        """Return a real number whose sign is the prediction."""

    @abstractmethod
    def absorb(self, i: int, j: int, y: int) -> None:
        """Learn the label of one entry."""

    @property
    def length(self) -> int:
        """Trials so far."""
        return len(self._labels)

    def copy(self, length: int) -> Replayed:
        """Return a new memory that has learnt the first `length` trials."""
        new = self.fresh()
        new.take(self.arrays(length))
        return new

    def values(self, rows: Indices, cols: Indices) -> Array:
        """Return the scores, shape (b,)."""
        pairs = zip(rows.tolist(), cols.tolist(), strict=True)
        return np.array([self.score(i, j) for i, j in pairs], np.float64)

    def signs(self, rows: Indices, cols: Indices) -> Signs:
        """Return the predictions, shape (b,)."""
        return np.where(self.values(rows, cols) >= 0.0, 1, -1).astype(np.int8)

    def follow(self, rows: Indices, cols: Indices, labels: Signs) -> Signs:
        """Predict and learn trial by trial."""
        predictions = np.zeros(len(labels), np.int8)
        trials = zip(rows.tolist(), cols.tolist(), labels.tolist(), strict=True)
        for t, (i, j, y) in enumerate(trials):
            predictions[t] = 1 if self.score(i, j) >= 0.0 else -1
            self._learn(i, j, y)
        return predictions

    def _learn(self, i: int, j: int, y: int) -> None:
        self.absorb(i, j, y)
        self._rows.append(i)
        self._cols.append(j)
        self._labels.append(y)

    def arrays(self, length: int) -> dict[str, NDArray[Any]]:
        """Return the first `length` trials."""
        rows, cols = (np.array(x[:length], np.int64) for x in (self._rows, self._cols))
        return {"rows": rows, "cols": cols, "labels": np.array(self._labels[:length], np.int8)}

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Learn the trials of :meth:`arrays`."""
        for i, j, y in zip(*(arrays[k].tolist() for k in ("rows", "cols", "labels")), strict=True):
            self._learn(i, j, y)


def index(value: Any, name: str) -> int:
    """Return a row or column index as an int, or refuse it."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < 0:
        raise ParameterError(
            f"{name} must be an integer not below 0, got {value!r}; labels go to BinaryStream"
        )
    return int(value)


def label(value: Any) -> int:
    """Return a label as -1 or +1, or refuse it."""
    if isinstance(value, (bool, np.bool_)) or value not in (-1, 1):
        raise ParameterError(
            f"a label must be -1 or +1, got {value!r}; recode it, or use BinaryStream for true and false"
        )
    return int(value)


def indices(rows: ArrayLike, cols: ArrayLike) -> tuple[Indices, Indices]:
    """Return index arrays of one shape, or refuse them."""
    found = []
    for name, given in (("row", rows), ("column", cols)):
        x = np.asarray(given)
        if x.size and x.dtype.kind not in "iu":
            raise ParameterError(
                f"{name} must be an integer not below 0, got an array of {x.dtype}; labels go to BinaryStream"
            )
        if x.size and x.min() < 0:
            raise ParameterError(f"{name} must be an integer not below 0, got {x.min()}")
        found.append(x.astype(np.int64))
    i, j = np.broadcast_arrays(*found)
    return np.ascontiguousarray(i), np.ascontiguousarray(j)


def two_sizes(shape: tuple[int, int], largest: int) -> tuple[int, int]:
    """Return a shape as two numbers; refuse one of more than `largest` rows and columns together."""
    if len(shape) != 2 or min(shape) < 1 or sum(shape) > largest:
        raise ParameterError(f"shape must be two sizes, at most {largest} together, got {shape}")
    m, n = shape
    return int(m), int(n)


def positive(
    value: float, name: str, low: float = 0.0, high: float = np.inf, closed: bool = False
) -> None:
    """Refuse a parameter outside (low, high], or [low, high] with `closed`."""
    ok = isinstance(value, (int, float, np.number)) and np.isfinite(value) and value <= high
    if not ok or value < low or (value == low and not closed):
        ends = f"{'[' if closed else '('}{low:g}, {high:g}{']' if np.isfinite(high) else ')'}"
        raise ParameterError(f"{name} must be in {ends}, got {value!r}")
