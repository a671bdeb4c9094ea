"""The few types that everything speaks of: arrays, indices, seeds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | None


def generator(rng: Seed) -> np.random.Generator:
    """Return `rng` itself if it is a Generator, else a new one from the seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
