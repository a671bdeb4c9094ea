"""The few types that everything speaks of: arrays, indices, seeds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | None


def generator(rng: Seed) -> np.random.Generator:
    """Return the generator that a seed stands for; a Generator is returned as it is, and draws go on from its state."""
    return np.random.default_rng(rng)
