"""The low-rank fit on entries that lie in chunks of lines, in files or on other machines.

:class:`BlockBayes` is :class:`~entrywise.linalg.variational.EmpiricalBayes` with the entries elsewhere: what it needs of
them is a :class:`BlockWork`, which solves a side, multiplies the residuals and remembers. Lines are solved one by one and
sums are kept per chunk and added in the order of the chunks, so the fit is the same, bit for bit, however many
blocks the chunks are dealt into and whoever works on them. :class:`BlockBinary` is the same of
:class:`~entrywise.linalg.binary.BinaryBayes`: the pseudo-answers of both sides are kept beside the entries.

**Replay.** A fit whose driver died is made again by the same calls: a sweep that the journal has is not made, its small
state is taken from there; at the last one the means are read and the work goes on. While it replays the sides have no lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.binary import (
    FIRST_VARIANCE,
    NOTHING_ELSE,
    SAMPLED,
    BinaryBayes,
    variance_shares,
)
from entrywise.linalg.variational import FIRST_PRIOR, EmpiricalBayes, Side, triplets_of
from entrywise.results.posterior import design
from entrywise.types import Array, Indices

SMALL = ("average", "prior_mean", "prior_cov", "divergence")  # of a side: follows from its sums


class HeldOut(NamedTuple):
    """Entries set apart: which they are, their values, and where they stand in the order by row and by column."""

    rows: Indices
    cols: Indices
    values: Array
    by_row: Indices
    by_col: Indices

    def part(self, first: int, end: int) -> HeldOut:
        """Return some of them, in a row."""
        some = slice(first, end)
        return HeldOut(
            self.rows[some],
            self.cols[some],
            self.values[some],
            self.by_row[some],
            self.by_col[some],
        )


class BlockEntries(Protocol):
    """Known entries in chunks of lines, sorted by row and by column, kept where they fit.

    Values are kept in units of ``scale`` about ``offset``.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""
        ...

    @property
    def offset(self) -> float:
        """What was taken from every value."""
        ...

    @property
    def scale(self) -> float:
        """Unit of the values."""
        ...

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value."""
        ...

    @property
    def distinct(self) -> Array | None:
        """The different values in order, where they are few."""
        ...

    @property
    def levels(self) -> Array | None:
        """The different values, where they are few and each is used."""
        ...

    @property
    def report(self) -> dict[str, Any]:
        """Shape, known, share, components, empty_rows and empty_cols."""
        ...

    @property
    def row_labels(self) -> tuple[str, ...] | None:
        """Labels of the rows, None where they are numbers."""
        ...

    @property
    def col_labels(self) -> tuple[str, ...] | None:
        """Labels of the columns, None where they are numbers."""
        ...

    def __len__(self) -> int:
        """Return the number of known entries."""
        ...

    def on(self, engine: Any) -> BlockEntries:
        """Return the same entries, worked on by an engine."""
        ...

    def held_out(self, count: int, seed: int) -> HeldOut:
        """Return `count` entries drawn by chance."""
        ...

    def workshop(self, name: str, params: dict[str, Any], out: HeldOut | None) -> BlockWork:
        """Return where a fit to the entries without `out` is made, and goes on if it was begun."""
        ...

    def clear(self) -> None:
        """Forget fits that are done or were broken off."""
        ...


def is_blocks(data: Any) -> TypeGuard[BlockEntries]:
    """Tell whether these are entries in blocks."""
    return hasattr(type(data), "workshop")


class BlockLogits(NamedTuple):
    """What the logits of yes/no answers follow from: means of both sides, and the parts of their variances."""

    means: tuple[Array, Array]
    shares: tuple[Array, Array]
    both: float
    offset: float


class BlockWork(Protocol):
    """One fit under way on blocks: its entries, what works on them, and its journal."""

    def pointers(self) -> tuple[Indices, Indices]:
        """Return where each row's, and each column's, entries begin."""
        ...

    def solve(
        self, rows: bool, fixed: Array, normal: dict[str, Any], keep: bool
    ) -> tuple[Array, Array, Array]:
        """Return means, covariances (when kept) and sums, one row a chunk, of a side with the other fixed."""
        ...

    def renew(self, rows: bool, logits: BlockLogits) -> Array:
        """Make the pseudo-answers of a side anew, which is solved with them from then on; return the weights' sum a chunk."""
        ...

    def expect(self, logits: BlockLogits, step: int) -> Array:
        """Return the expected log-likelihood of every `step`-th answer by row, summed a chunk."""
        ...

    def leave(self, logits: BlockLogits, unit: float) -> None:
        """Let products be with what the probabilities leave of yes/no answers, times `unit`."""
        ...

    def multiply(
        self,
        rows: bool,
        means: tuple[Array, Array],
        scales: tuple[Array, Array],
        V: Array,
        seed: int,
    ) -> Array:
        """Return the scaled residuals, or their transpose where not `rows`, times V."""
        ...

    def recall(self, kind: str) -> dict[str, Any] | None:
        """Return the next record of the journal, None when all was recalled."""
        ...

    def record(self, kind: str, plain: dict[str, Any]) -> None:
        """Write a record down, with the means as they were solved last."""
        ...

    def awake(self) -> bool:
        """Tell whether all records were recalled."""
        ...

    def means(self) -> tuple[Array, Array]:
        """Return the means of rows and columns as of the last record."""
        ...

    def keep(self, number: int, plain: dict[str, Any], means: tuple[Array, Array]) -> None:
        """Store a state under a number."""
        ...

    def kept(self, number: int) -> tuple[dict[str, Any], tuple[Array, Array]]:
        """Return the state stored under a number."""
        ...


@dataclass
class BlockBayes(EmpiricalBayes):
    """The state of a fit on blocks."""

    work: Any = None  # a BlockWork
    states: int = 0  # asked for so far

    @classmethod
    def of_blocks(cls, work: BlockWork, floor: float) -> BlockBayes:
        """Return the state before any sweep, as :meth:`EmpiricalBayes.of` for values of variance one."""
        sides = [_side(pointer) for pointer in work.pointers()]
        found = cls(sides[0], sides[1], t2=0.5, floor=floor, work=work)
        found.sleep()
        return found

    def sleep(self) -> None:
        """Be without lines while the journal is replayed."""
        if not self.work.awake():
            for side in (self.rows, self.cols):
                side.mean = np.zeros((0, len(side.prior_mean)))

    def sweep(self, keep: bool = False) -> float:
        """Update rows, then columns, with their priors and `t2`; return the relative change of t2."""
        if keep:
            return super().sweep(keep=True)
        past = self.work.recall("sweep")
        if past is not None:
            self._adopt(past)
            return float(past["change"])
        change = super().sweep()
        self.work.record("sweep", {"change": change, **self._small()})
        return change

    def _solve(self, side: Side, fixed: Side, **normal: Any) -> tuple[Array, Array, Array]:
        keep = normal.pop("keep")
        mean, cov, sums = self.work.solve(side is self.rows, fixed.mean, normal, keep)
        total = np.zeros(sums.shape[1])
        for part in sums:  # in the order of the chunks
            total += part
        return mean, cov, total

    def spectrum(self, k: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
        """Return the k leading singular triplets of the scaled residuals and what chance reaches; see there."""
        past = self.work.recall("spectrum")
        if past is not None:
            rng.bit_generator.state = past["rng"]
            singular, chance = np.array(past["singular"]), np.array(past["chance"])
            nothing = np.zeros((0, len(singular)))
            return nothing, nothing, singular, chance
        r, c = (
            np.asarray((side.counts + 1.0) ** 0.25, np.float64) for side in (self.rows, self.cols)
        )
        U, s, V = self._triplets(k, rng, (1.0 / r, 1.0 / c), seed=0)
        drawn = int(rng.integers(1, 2**63))
        chance = self._triplets(k, rng, (1.0 / r, 1.0 / c), seed=drawn)[1]
        plain = {"rng": rng.bit_generator.state, "singular": s.tolist(), "chance": chance.tolist()}
        self.work.record("spectrum", plain)
        scale = np.sqrt(self.known * s)
        return U * scale / r[:, None] ** 3, V * scale / c[:, None] ** 3, s, chance

    def _triplets(
        self, k: int, rng: np.random.Generator, scales: tuple[Array, Array], seed: int
    ) -> tuple[Array, Array, Array]:
        means = self._products_about()

        def forth(V: Array) -> Array:
            found: Array = self.work.multiply(True, means, scales, V, seed)
            return found

        def back(U: Array) -> Array:
            found: Array = self.work.multiply(False, means, scales, U, seed)
            return found

        return triplets_of(forth, back, (self.rows.size, self.cols.size), k, rng)

    def _products_about(self) -> tuple[Array, Array]:
        """Return the means that residuals are about."""
        return self.rows.mean, self.cols.mean

    def state(self) -> tuple[Any, ...]:
        """Return the number under which this state is kept."""
        number = self.states
        self.states += 1
        if self.work.awake():
            self.work.keep(number, self._small(), (self.rows.mean, self.cols.mean))
        return (number,)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go back to an earlier :meth:`state`."""
        plain, (self.rows.mean, self.cols.mean) = self.work.kept(state[0])
        self._take_small(plain)
        self.sleep()

    def _small(self) -> dict[str, Any]:
        """Return all of the state but the means, as plain values."""
        found: dict[str, Any] = {"t2": self.t2, "likelihood": self.likelihood}
        for name, side in (("rows", self.rows), ("cols", self.cols)):
            parts = {part: getattr(side, part) for part in SMALL}
            found[name] = {
                part: x.tolist() if isinstance(x, np.ndarray) else x for part, x in parts.items()
            }
        return found

    def _take_small(self, plain: dict[str, Any]) -> None:
        self.t2, self.likelihood = plain["t2"], plain["likelihood"]
        for name, side in (("rows", self.rows), ("cols", self.cols)):
            for part, x in plain[name].items():
                setattr(side, part, np.array(x) if isinstance(x, list) else x)
            q = len(side.prior_mean)
            side.cov = np.zeros((0, q, q))

    def _adopt(self, past: dict[str, Any]) -> None:
        """Take over a record; at the last one the means are there again."""
        self._take_small(past)
        if self.work.awake():
            self.rows.mean, self.cols.mean = self.work.means()
        self.sleep()


@dataclass
class BlockBinary(BlockBayes, BinaryBayes):
    """The state of a fit of yes/no answers on blocks; lines have their average covariance."""

    @classmethod
    def of_block_answers(cls, work: BlockWork, share: float) -> BlockBinary:
        """Return the state before any sweep, as :meth:`BinaryBayes.of_answers` where this share of them is yes."""
        sides = [_side(pointer) for pointer in work.pointers()]
        for side in sides:
            side.prior_cov = FIRST_VARIANCE * np.eye(1)
        found = cls(
            sides[0],
            sides[1],
            t2=1.0 / (share * (1.0 - share)),
            floor=NOTHING_ELSE,
            work=work,
            offset=float(np.log(share / (1.0 - share))),
        )
        found.sleep()
        return found

    def _logits(self) -> BlockLogits:
        rows, cols = self.rows, self.cols
        u, v = design(rows.mean[:, :-1]), design(cols.mean[:, :-1])
        own, other, both = variance_shares(u, v, rows.average, cols.average)
        return BlockLogits((rows.mean, cols.mean), (own, other), both, self.offset)

    def _renew(self, side: Side, fixed: Side) -> float:
        return float(self.work.renew(side is self.rows, self._logits()).sum())

    def _bound(self) -> None:
        step = -(-self.known // SAMPLED)
        self.likelihood = step * float(self.work.expect(self._logits(), step).sum())

    def spectrum(self, k: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
        """Return the k leading singular triplets of what the probabilities leave, and what chance reaches."""
        if self.work.awake():
            self.work.leave(self._logits(), self.t2)
        return super().spectrum(k, rng)

    def _products_about(self) -> tuple[Array, Array]:
        return np.zeros((self.rows.size, 1)), np.zeros((self.cols.size, 1))


def _side(pointer: Indices) -> Side:
    """Return a side whose entries are elsewhere: rank 0, biases at zero."""
    return Side(
        pointer=pointer,
        other=np.zeros(0, np.int32),
        values=np.zeros(0),
        spread=np.zeros(0),
        mean=np.zeros((len(pointer) - 1, 1)),
        cov=np.zeros((0, 1, 1)),
        average=np.zeros((1, 1)),
        prior_mean=np.zeros(1),
        prior_cov=FIRST_PRIOR * np.eye(1),
    )


def solve_chunk(
    pointer: Indices,
    other: NDArray[np.int32],
    values: Array,
    spread: Array,
    fixed: tuple[Array, Array],
    normal: dict[str, Any],
    keep: bool,
) -> tuple[Array, Array, Array]:
    """Return means, covariances (when kept) and sums of the lines of a chunk.

    `fixed` are :func:`designs`; `spread` are variances of the values beside the base, empty where they have none.
    """
    from entrywise.linalg._jit_als import half_sweep

    A, off = fixed
    q, lines = len(normal["h0"]), len(pointer) - 1
    none = np.zeros(0)
    mean, cov = np.empty((lines, q)), np.empty((lines if keep else 0, q, q))
    sums = np.zeros(3 * q * q + q + 6)
    half_sweep(
        0, lines, pointer, other, values, spread, normal["base"], none, none,
        A, off, normal["extra"], False, normal["P0"], normal["h0"], mean, cov, sums,
    )  # fmt: skip
    return mean, cov, sums
