"""Arms in a race: what the plans that drop, rank or compare pairs keep between their pulls."""

from __future__ import annotations

import numpy as np

from entrywise.active.pairs.halving import ranked
from entrywise.active.pairs.tally import Tally, every_or_some, pull
from entrywise.queries import Asking, Checkpoint, History
from entrywise.types import Array


class Race:
    """Arms that are still in the race, their answers, and how far it came (t pulls each, or rounds)."""

    def __init__(
        self,
        n: int,
        total: int,
        diagonal: bool,
        rng: np.random.Generator,
        resume: Checkpoint | None,
        history: History | None,
        bounded: bool = False,
    ) -> None:
        self.tally, self.total = Tally(n, bounded=bounded, history=history), total
        if resume is None:
            self.rng, self.done = rng, 0
            self.rows, self.cols = every_or_some(total, n, diagonal, rng)
        else:
            kept = resume.arrays
            self.rng, self.done = resume.generator(), int(kept["done"])
            self.rows, self.cols = kept["rows"], kept["cols"]
            self.tally.restore(kept)

    @property
    def left(self) -> int:
        """Pulls that the budget still pays."""
        return self.total - self.tally.asked

    def checkpoint(self) -> Checkpoint:
        """Return everything that is needed to go on from here."""
        here = {"rows": self.rows, "cols": self.cols, "done": np.array(self.done)}
        return Checkpoint(self.tally.arrays() | here, self.rng)

    def look(self) -> tuple[Array, Array]:
        """Return how often each arm was pulled, and the sum of its answers."""
        return self.tally.look(self.rows, self.cols)

    def pull_each(self, times: int) -> Asking[None]:
        """Pull every arm in the race so many times."""
        yield from pull(self.tally, self.rows, self.cols, np.full(len(self.rows), times))

    def rank_arms(self) -> None:
        """Put the best arm first."""
        self.rows, self.cols = ranked(self.tally, self.rows, self.cols, None, self.rng)

    @property
    def first(self) -> tuple[int, int]:
        """The arm that stands first."""
        return int(self.rows[0]), int(self.cols[0])
