"""The few types that everything speaks of: arrays, indices, seeds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None

MARKED = 32  # bytes a number, up to which each one below the largest gets a mark: a tenth of the time of an order


def distinct(index: Indices) -> Indices:
    """Return whole numbers in order, each once; ``np.unique`` hashes them, which takes fifty times as long where most differ.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    found = _in_order(index)
    first = np.ones(len(found), bool)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return (found if first.all() else found[first]).astype(np.int64)


def has_equals(index: Indices) -> bool:
    """Tell whether a number occurs more than once."""
    low, top = int(index.min(initial=0)), int(index.max(initial=0))
    if low >= 0 and top < MARKED * len(index):
        marked = np.zeros(top + 1, bool)
        marked[index] = True
        return int(np.count_nonzero(marked)) < len(index)
    found = _in_order(index)
    return bool(np.any(found[1:] == found[:-1]))


def _in_order(index: Indices) -> NDArray[np.integer[Any]]:
    """Return whole numbers in order, in half their width where that holds them: half the time."""
    if len(index) and index.min() >= 0 and index.max() < 2**32:
        index = index.astype(np.uint32)
    return np.sort(index)


def generator(rng: Seed) -> np.random.Generator:
    """Return `rng` itself if it is a Generator, one that draws from a RandomState, else a new one from the seed.

    >>> drawn = [generator(np.random.RandomState(0)).integers(100) for _ in range(2)]
    >>> drawn[0] == drawn[1]
    np.True_
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint64).tolist())
    return np.random.default_rng(rng)
