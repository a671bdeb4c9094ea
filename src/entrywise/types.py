"""The few types that everything speaks of: arrays, indices, seeds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | None
