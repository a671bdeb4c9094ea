"""A place to resume a long plan."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A place to resume a long plan: arrays, and the generator's state as it was."""

    arrays: Mapping[str, NDArray[Any]]
    rng: np.random.Generator | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "arrays", {name: np.array(array) for name, array in self.arrays.items()}
        )
        object.__setattr__(self, "rng", copy.deepcopy(self.rng))

    def generator(self) -> np.random.Generator:
        """Return a copy of the generator, in the state in which it was kept."""
        if self.rng is None:
            raise ParameterError(
                "this checkpoint was kept without a generator; yield Checkpoint(arrays, rng)"
            )
        return copy.deepcopy(self.rng)

    def rng_state(self) -> dict[str, Any] | None:
        """Return the generator's state as plain JSON."""
        return None if self.rng is None else dict(self.rng.bit_generator.state)

    @classmethod
    def restore(
        cls, arrays: Mapping[str, NDArray[Any]], rng_state: Mapping[str, Any] | None
    ) -> Checkpoint:
        """Return the checkpoint whose arrays and :meth:`rng_state` were stored."""
        if rng_state is None:
            return cls(arrays)
        bits = getattr(np.random, str(rng_state["bit_generator"]))()
        bits.state = dict(rng_state)
        return cls(arrays, np.random.Generator(bits))
