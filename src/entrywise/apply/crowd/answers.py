"""Answers of workers about items, checked once and sorted by item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.apply.names import Names, flat_names, numbered
from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.small_crowd import crowd_steps
from entrywise.types import Array, Indices

Repeats = Literal["refuse", "first", "last", "keep"]


@dataclass(frozen=True, eq=False)
class CrowdAnswers:
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
    ) -> CrowdAnswers:
        """Return the answers, refusing what cannot be used."""
        item, worker, label = _equally_long(items, workers, labels)
        item, item_names = numbered(item)
        worker, worker_names = numbered(worker)
        label, class_names = _sorted_classes(*numbered(label))
        if classes is not None:
            label, class_names = _into(label, class_names, flat_names(classes, "classes"))
        if len(class_names) < 2:
            raise DataError(
                f"labels must be of two classes or more, all {len(label)} answers say "
                f"{str(class_names[0])!r}; name the classes that nobody chose"
            )
        if np.any(item[1:] < item[:-1]):
            order = np.argsort(item, kind="stable")
            item, worker, label = item[order], worker[order], label[order]
        kept = _once(item, worker, repeats, item_names, worker_names)
        if kept is not None:
            item, worker, label = item[kept], worker[kept], label[kept]
        start = np.zeros(len(item_names) + 1, np.int64)
        np.cumsum(np.bincount(item, minlength=len(item_names)), out=start[1:])
        return cls(start, worker, label, item_names, worker_names, class_names)

    def __len__(self) -> int:
        return len(self.worker)

    @cached_property
    def item(self) -> Indices:
        """The item of each answer."""
        return np.repeat(np.arange(len(self.items)), np.diff(self.start))

    @property
    def steps(self) -> Any:
        """The passes over so many answers: compiled, or in numpy where they are few."""
        return crowd_steps(len(self))

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
        size = np.diff(self.start)
        several = np.repeat(size > 1, size)
        found = np.zeros(len(self.workers), bool)
        found[self.worker[several]] = True
        return found

    def likeliest(self, q: Array) -> Indices:
        """The likeliest class of each item by `q`, shape (n, k); ties go to the class chosen most overall."""
        often = np.bincount(self.label, minlength=len(self.classes))
        order = np.argsort(-often, kind="stable")
        best, top = np.full(len(q), order[0]), q[:, order[0]].copy()
        for c in order[1:]:
            better = q[:, c] > top + 1e-9  # nearer than this is a tie
            best[better] = c
            np.maximum(top, q[:, c], out=top)
        return np.asarray(best, np.int64)


def _equally_long(items: ArrayLike, workers: ArrayLike, labels: ArrayLike) -> list[Names]:
    given = {"items": items, "workers": workers, "labels": labels}
    columns = [flat_names(values, name) for name, values in given.items()]
    sizes = [len(column) for column in columns]
    if len(set(sizes)) > 1:
        raise DataError(
            "items, workers and labels must be equally long, "
            f"got {sizes[0]}, {sizes[1]} and {sizes[2]}"
        )
    if not sizes[0]:
        raise DataError("there are no answers; give at least one item that two workers answered")
    return columns


def _sorted_classes(label: Indices, names: Names) -> tuple[Indices, Names]:
    order = np.argsort(names, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[label], names[order]


def _into(label: Indices, used: Names, classes: Names) -> tuple[Indices, Names]:
    """Number the labels by the classes given."""
    if len(set(classes.tolist())) < len(classes):
        raise ParameterError(f"classes must be named once each, got {classes.tolist()}")
    place = {c: k for k, c in enumerate(classes.tolist())}
    missing = [c for c in used.tolist() if c not in place]
    if missing:
        raise DataError(
            f"answers must be among the classes given, {missing[0]!r} is not; "
            "add it or leave those answers out"
        )
    return np.array([place[c] for c in used.tolist()], np.int64)[label], classes


def _once(
    item: Indices, worker: Indices, repeats: Repeats, items: Names, workers: Names
) -> NDArray[np.bool_] | None:
    """Return which answers are kept, so that each worker speaks once an item; None is all."""
    if repeats not in ("refuse", "first", "last", "keep"):
        raise ParameterError(f"repeats must be refuse, first, last or keep, got {repeats!r}")
    if repeats == "keep" or not crowd_steps(len(item)).repeated(item, worker, len(workers)):
        return None
    kept = np.ones(len(item), bool)
    key = item * len(workers) + worker
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    if repeats == "refuse":
        t = order[1:][same][0]
        raise DataError(
            f"a worker must answer an item once, {str(workers[worker[t]])!r} answered "
            f"{str(items[item[t]])!r} more than once, and {int(same.sum())} answers in all are "
            "repeats; say repeats='first', 'last' or 'keep'"
        )
    kept[order[1:][same] if repeats == "first" else order[:-1][same]] = False
    return kept
