"""Answers of workers about items, checked once and sorted by item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import DataError, ParameterError
from entrywise.types import Array, Indices

Names = NDArray[Any]
Repeats = Literal["refuse", "first", "last", "keep"]


@dataclass(frozen=True, eq=False)
class Answers:
    """``worker[t]`` said ``label[t]`` about item i, for t in ``start[i]..start[i + 1]``.

    Parameters
    ----------
    start : ndarray of int64 of shape (n + 1,)
    worker, label : ndarray of int64 of shape (t,)
        Numbers into `workers` and `classes`.
    items, workers : ndarray of shapes (n,) and (W,)
        Names in order of appearance.
    classes : ndarray of shape (k,)
        Names in sorted order.
    """

    start: Indices
    worker: Indices
    label: Indices
    items: Names
    workers: Names
    classes: Names

    @classmethod
    def of(
        cls,
        items: ArrayLike,
        workers: ArrayLike,
        labels: ArrayLike,
        classes: ArrayLike | None = None,
        repeats: Repeats = "refuse",
    ) -> Answers:
        """Return the answers, refusing what cannot be used."""
        columns = [
            _column(x, name)
            for x, name in ((items, "items"), (workers, "workers"), (labels, "labels"))
        ]
        sizes = [len(c) for c in columns]
        if len(set(sizes)) > 1:
            raise DataError(
                f"items, workers and labels must be equally long, got {sizes[0]}, {sizes[1]} and {sizes[2]}"
            )
        if not sizes[0]:
            raise DataError(
                "there are no answers; give at least one item that two workers answered"
            )
        item, item_names = _number(columns[0])
        worker, worker_names = _number(columns[1])
        label, class_names = _number(columns[2])
        order = np.argsort(class_names, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        label, class_names = place[label], class_names[order]
        if classes is not None:
            label, class_names = _into(label, class_names, _column(classes, "classes"))
        if len(class_names) < 2:
            raise DataError(
                f"labels must be of two classes or more, all {len(label)} answers say {str(class_names[0])!r}; "
                "name the classes that nobody chose"
            )
        if np.any(item[1:] < item[:-1]):
            order = np.argsort(item, kind="stable")
            item, worker, label = item[order], worker[order], label[order]
        item, worker, label = _once(item, worker, label, repeats, item_names, worker_names)
        start = np.zeros(len(item_names) + 1, np.int64)
        np.cumsum(np.bincount(item, minlength=len(item_names)), out=start[1:])
        return cls(start, worker, label, item_names, worker_names, class_names)

    def __len__(self) -> int:
        return len(self.worker)

    @cached_property
    def item(self) -> Indices:
        """The item of each answer."""
        return np.repeat(np.arange(len(self.items)), np.diff(self.start))

    @cached_property
    def by_worker(self) -> tuple[Indices, Indices]:
        """Where each worker's answers begin, shape (W + 1,), and the answers in order of worker."""
        from entrywise.linalg import _jit_crowd as jit

        first, order = jit.by_worker(self.worker, len(self.workers))
        return np.asarray(first), np.asarray(order)

    @cached_property
    def per_worker(self) -> Array:
        """How many answers each worker gave, as floats."""
        return np.bincount(self.worker, minlength=len(self.workers)).astype(np.float64)

    @cached_property
    def tally(self) -> Indices:
        """How often each item was given each class, shape (n, k)."""
        n, k = len(self.items), len(self.classes)
        return np.bincount(self.item * k + self.label, minlength=n * k).reshape(n, k)

    @cached_property
    def votes(self) -> Array:
        """Share of each class among an item's answers, shape (n, k)."""
        return np.asarray(self.tally / np.diff(self.start)[:, None])

    @cached_property
    def code(self) -> NDArray[np.int32]:
        """Number of each answer's (worker, label)."""
        return np.asarray(self.worker * len(self.classes) + self.label, np.int32)

    @cached_property
    def said(self) -> Array:
        """How often each worker gave each label, shape (W, k)."""
        W, k = len(self.workers), len(self.classes)
        return np.bincount(self.code, minlength=W * k).reshape(W, k).astype(np.float64)

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Which workers share an item with another worker."""
        several = np.diff(self.start)[self.item] > 1
        found = np.zeros(len(self.workers), bool)
        found[self.worker[several]] = True
        return found


def _column(values: ArrayLike, name: str) -> Names:
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must be one flat list, got shape {array.shape}")
    if array.dtype.kind in "OTf":
        for t, x in enumerate(array.tolist()):
            if x is None or x != x:
                raise DataError(f"{name} must not be missing, number {t} is; leave that answer out")
    if array.dtype.kind in "OTV":
        array = np.array([str(x) for x in array.tolist()])
    return array


def _number(names: Names) -> tuple[Indices, Names]:
    """Return the names as numbers, in order of appearance."""
    from entrywise.linalg import _jit_crowd as jit

    if (
        names.dtype.kind in "iu"
        and len(names)
        and names.min() >= 0
        and names.max() <= 4 * len(names) + 1000
    ):
        found, first = jit.number(names.astype(np.int64), int(names.max()) + 1)
        return np.asarray(found), names[first]
    code: dict[Any, int] = {}
    listed = names.tolist()
    found = np.fromiter((code.setdefault(x, len(code)) for x in listed), np.int64, len(listed))
    return found, np.array(list(code), dtype=names.dtype)


def _into(label: Indices, used: Names, classes: Names) -> tuple[Indices, Names]:
    if len(set(classes.tolist())) < len(classes):
        raise ParameterError(f"classes must be named once each, got {classes.tolist()}")
    place = {c: k for k, c in enumerate(classes.tolist())}
    missing = [c for c in used.tolist() if c not in place]
    if missing:
        raise DataError(
            f"answers must be among the classes given, {missing[0]!r} is not; add it or leave those answers out"
        )
    return np.array([place[c] for c in used.tolist()], np.int64)[label], classes


def _once(
    item: Indices, worker: Indices, label: Indices, repeats: Repeats, items: Names, workers: Names
) -> tuple[Indices, Indices, Indices]:
    """Let each worker speak once an item."""
    from entrywise.linalg import _jit_crowd as jit

    if repeats not in ("refuse", "first", "last", "keep"):
        raise ParameterError(f"repeats must be refuse, first, last or keep, got {repeats!r}")
    if repeats == "keep" or not jit.repeated(item, worker, len(workers)):
        return item, worker, label
    key = item * len(workers) + worker
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    if repeats == "refuse":
        t = order[1:][same][0]
        raise DataError(
            f"a worker must answer an item once, {str(workers[worker[t]])!r} answered {str(items[item[t]])!r} more than once, "
            f"and {int(same.sum())} answers in all are repeats; say repeats='first', 'last' or 'keep'"
        )
    kept = np.ones(len(key), bool)
    kept[order[1:][same] if repeats == "first" else order[:-1][same]] = False
    return item[kept], worker[kept], label[kept]
