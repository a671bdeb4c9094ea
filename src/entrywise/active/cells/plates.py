"""Plates: cells that are measured together, all in one line or a few, beside controls.

A robot runs one plate of 96 wells on one target. A step then asks for whole plates: the line whose best
cells, counted together, lower the variance most for their price, see :mod:`entrywise.linalg.joint_gain`. Every
well is paid by itself: wells stay empty, up to half of a plate, where their money is better spent on another.
Controls are measured on every plate and tell its effect; they are never bought cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.purchase import PER_LINE, Purchase
from entrywise.exceptions import ParameterError
from entrywise.linalg.gain import Gains
from entrywise.linalg.joint_gain import JointGains
from entrywise.queries import Batch, History
from entrywise.results import LowRank
from entrywise.types import Array, Indices

FORMATS = ((8, 12), (16, 24), (32, 48))  # wells of usual plates, rows times columns
SMALLEST = 1e-300
KEYS = ("size", "per", "lines", "replicates", "controls", "fill")


@dataclass(frozen=True)
class PlateFormat:
    """What a plate holds: wells, lines, replicates of a cell, control cells, and the share that is filled at least."""

    size: int
    per: str = "col"
    lines: int = 1
    replicates: int = 1
    controls: tuple[tuple[int, int], ...] = ()
    fill: float = 0.5

    @classmethod
    def of(cls, given: Mapping[str, Any], shape: tuple[int, int]) -> PlateFormat:
        """Return the format that plain parameters say, or refuse them."""
        unknown = set(given) - set(KEYS)
        if unknown or "size" not in given:
            raise ParameterError(
                f"a plate has {', '.join(KEYS)}, and a size at least; got {sorted(given)}"
            )
        per = given.get("per", "col")
        if per not in ("row", "col"):
            raise ParameterError(f"per of a plate must be row or col, got {per!r}")
        counts = {name: given.get(name, 1) for name in ("size", "lines", "replicates")}
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ParameterError(f"{name} of a plate must be a number above 0, got {count!r}")
        controls = tuple((int(i), int(j)) for i, j in given.get("controls", ()))
        for i, j in controls:
            if not (0 <= i < shape[0] and 0 <= j < shape[1]):
                raise ParameterError(f"control ({i}, {j}) must lie inside {shape}")
        fill = given.get("fill", cls.fill)
        if not isinstance(fill, int | float) or not 0 < fill <= 1:
            raise ParameterError(f"fill of a plate must be above 0 and at most 1, got {fill!r}")
        found = cls(per=per, controls=controls, fill=float(fill), **counts)
        if found.capacity < 1:
            raise ParameterError(
                f"a plate of {found.size} wells holds {len(controls)} controls and no cell "
                f"{found.replicates} times; make it larger"
            )
        return found

    @property
    def capacity(self) -> int:
        """How many different cells a plate holds."""
        return (self.size - len(self.controls)) // self.replicates

    @property
    def axis(self) -> int:
        """Axis of the lines that a plate is about."""
        return 0 if self.per == "row" else 1

    def control_cells(self, shape: tuple[int, int]) -> Indices:
        """Return the controls as numbers of cells."""
        return np.array([i * shape[1] + j for i, j in self.controls], np.int64)

    def cost(self, state: Purchase, plate: Plate) -> float:
        """Return what a plate costs, controls and replicates included."""
        controls = self.control_cells(state.shape)
        cells = self.replicates * float(state.price_of(plate.cells).sum())
        return cells + float(state.price_of(controls).sum())

    def well(self, place: int) -> str:
        """Return the name of a well: A01, A02, ...; H12 is the last of 96."""
        wide = next((c for r, c in FORMATS if self.size <= r * c), math.ceil(math.sqrt(self.size)))
        row, col = divmod(place, wide)
        letters = ""
        row += 1
        while row:
            row, rest = divmod(row - 1, 26)
            letters = chr(ord("A") + rest) + letters
        return f"{letters}{col + 1:02d}"


@dataclass(frozen=True)
class Plate:
    """Cells chosen for one plate, with their arms and probabilities."""

    cells: Indices
    arms: list[str]
    chance: Array


def plates_batch(state: Purchase, form: PlateFormat, plates: list[Plate], first: int) -> Batch:
    """Return plates as one batch, numbered from `first`: controls first, then the cells, each with its replicates."""
    n = state.shape[1]
    rows: list[int] = []
    cols: list[int] = []
    arms: list[str] = []
    chances: list[float] = []
    numbers: list[int] = []
    wells: list[str] = []
    for number, plate in enumerate(plates, first):
        wanted = [(i, j, "control", 1.0) for i, j in form.controls]
        for cell, arm, chance in zip(plate.cells.tolist(), plate.arms, plate.chance, strict=True):
            i, j = divmod(cell, n)
            wanted.append((i, j, arm, float(chance)))
            wanted += [(i, j, "replicate", float(chance))] * (form.replicates - 1)
        for place, (i, j, arm, chance) in enumerate(wanted):
            rows.append(i)
            cols.append(j)
            arms.append(arm)
            chances.append(chance)
            numbers.append(number)
            wells.append(form.well(place))
    return Batch(
        np.array(rows, np.int64),
        np.array(cols, np.int64),
        arm=np.array(arms),
        probability=np.array(chances),
        plate=np.array(numbers),
        well=np.array(wells),
    )


def next_number(facts: History, pending: History) -> int:
    """Return the number of the next plate: they go on through a study."""
    return 1 + int(max(facts.plate.max(initial=-1), pending.plate.max(initial=-1)))


def room(state: Purchase, form: PlateFormat, money: float) -> tuple[int, float]:
    """Return how many cells the next plate holds, and the money for them after its controls."""
    empty = Plate(np.zeros(0, np.int64), [], np.zeros(0))
    money -= form.cost(state, empty)
    wells = form.size if state.limit is None else min(form.size, state.limit)
    return (wells - len(form.controls)) // form.replicates, money / form.replicates


def _least(form: PlateFormat, capacity: int) -> int:
    """Return how many cells a plate holds at least."""
    return max(1, math.ceil(form.fill * capacity))


def balanced_plate(state: Purchase, form: PlateFormat, money: float) -> Plate | None:
    """Return a plate on the lines with the fewest cells, of the crossing lines with the fewest."""
    capacity, money = room(state, form, money)
    open_ = _open(state, money)
    if capacity < 1 or not open_.any():
        return None
    capacity = _least(form, capacity)
    lines = _best_lines(form, open_, _emptiness(state, form), capacity)
    across = state.taken // state.shape[1] if form.axis else state.taken % state.shape[1]
    counts = np.bincount(across, minlength=state.shape[1 - form.axis]) + state.rng.random(
        state.shape[1 - form.axis]
    )
    allowed = _within(open_, form, lines)
    i, j = np.nonzero(allowed)
    order = np.argsort(counts[i if form.axis else j], kind="stable")
    cells = (i * state.shape[1] + j)[order][:capacity]
    cells = cells[np.cumsum(state.price_of(cells)) <= money]
    return Plate(cells, ["start"] * len(cells), np.ones(len(cells))) if len(cells) else None


def plate_gains(state: Purchase, fit: LowRank, form: PlateFormat) -> JointGains:
    """Return the gains of plates; what is on the bench counts, each line's cells together."""
    rows, cols = np.divmod(state.out, state.shape[1])
    gains = Gains.of(fit, np.r_[state.rows, rows], np.r_[state.cols, cols])
    found = JointGains(gains, form.axis)
    line, across = (cols, rows) if form.axis else (rows, cols)
    for k in np.unique(line).tolist():
        found.take(across[line == k], k)
    return found


def gain_plate(
    state: Purchase, form: PlateFormat, gains: JointGains, money: float, explore: float
) -> Plate | None:
    """Return the plate that lowers the variance most for its price; the gains learn of its cells."""
    capacity, money = room(state, form, money)
    open_ = _open(state, money)
    if capacity < 1 or not open_.any():
        return None
    lines, capacity, score = _lines_and_size(state, form, gains, open_, capacity)
    free = np.flatnonzero(_within(open_, form, lines))
    count = min(int(explore * capacity + state.rng.random()), len(free))
    some = state.rng.choice(free, size=count, replace=False)
    rest = free[~np.isin(free, some)]
    rest = rest[np.argsort(-score.ravel()[rest], kind="stable")][: capacity - len(some)]
    cells = np.r_[some, rest].astype(np.int64)
    paid = np.cumsum(state.price_of(cells)) <= money
    arms = np.array(["explore"] * len(some) + ["greedy"] * len(rest))
    chance = np.r_[np.full(len(some), count / max(len(free), 1)), np.ones(len(rest))]
    cells, arms, chance = cells[paid], arms[paid], chance[paid]
    i, j = np.divmod(cells, state.shape[1])
    line, across = (j, i) if form.axis else (i, j)
    for k in np.unique(line).tolist():
        gains.take(across[line == k], k)
    return Plate(cells, arms.tolist(), chance) if len(cells) else None


def starting(state: Purchase, form: PlateFormat) -> bool:
    """Tell whether lines across the plates still have too few cells, and first ones may be paid."""
    across = state.taken // state.shape[1] if form.axis else state.taken % state.shape[1]
    counts = np.bincount(across, minlength=state.shape[1 - form.axis])
    return bool(np.any(counts < PER_LINE)) and state.starting_money() >= state.cheapest()


def _open(state: Purchase, money: float) -> NDArray[np.bool_]:
    """Tell which cells may be bought and are not too dear, shape (m, n)."""
    every = np.arange(state.shape[0])
    return np.asarray(state.is_open(every) & (state.price(every) <= money))


def _within(open_: NDArray[np.bool_], form: PlateFormat, lines: Indices) -> NDArray[np.bool_]:
    mask = np.zeros(open_.shape[form.axis], bool)
    mask[lines] = True
    return np.asarray(open_ & (mask[None, :] if form.axis else mask[:, None]))


def _emptiness(state: Purchase, form: PlateFormat) -> Array:
    """Return how few cells each line has, in random order where equally few."""
    along = state.taken % state.shape[1] if form.axis else state.taken // state.shape[1]
    size = state.shape[form.axis]
    return np.asarray(state.rng.random(size) - np.bincount(along, minlength=size))


def _best_lines(
    form: PlateFormat, open_: NDArray[np.bool_], value: Array, capacity: int
) -> Indices:
    """Return the lines of a plate: those of largest value that have open cells, full ones first."""
    counts = open_.sum(axis=1 - form.axis)
    full = np.minimum(counts, max(1, capacity // form.lines))
    order = np.lexsort((-value, -full))
    return np.asarray(order[counts[order] > 0][: form.lines])


def _lines_and_size(
    state: Purchase, form: PlateFormat, gains: JointGains, open_: NDArray[np.bool_], capacity: int
) -> tuple[Indices, int, Array]:
    """Return the lines of the best plate, how many cells it is to hold, and what each cell adds a price, (m, n).

    Lines of which nothing is known come first: the fit knows too little of them to say what they would tell. A plate is
    filled when its last cells lower the variance as much for their price as the first of another plate.
    """
    few = _least(form, capacity)
    price = np.asarray(state.price(np.arange(state.shape[0])))
    mask, prices = (open_, price) if form.axis else (open_.T, price.T)
    first, cost, _ = gains.best(mask, prices, few // form.lines or 1)
    whole, bill, score = gains.best(mask, prices, capacity // form.lines or 1)
    rate = first / np.maximum(cost, SMALLEST)
    emptiness = _emptiness(state, form)  # not below 0 where nothing is known, in random order
    order = np.where(emptiness >= 0, rate.max(initial=0.0) + emptiness, rate)
    lines = _best_lines(form, open_, order, few)
    others = np.delete(rate, lines)
    more = float((whole - first)[lines].sum())
    extra = float((bill - cost)[lines].sum())
    worth = extra > 0 and more >= extra * others.max(initial=0.0)
    return lines, capacity if worth else few, score if form.axis else score.T


def without_plate_effects(facts: History) -> History:
    """Return the facts with each plate's effect taken out of its values, as its controls tell it.

    The effect is the mean of the controls' deviations from their own means, shrunk by what noise alone
    would put there; with a single control a plate the two cannot be told apart, and nothing is done.
    """
    at = np.flatnonzero((facts.arm == "control") & ~facts.failed & (facts.plate >= 0))
    if not len(at):
        return facts
    key = facts.rows[at] * (1 + int(facts.cols.max())) + facts.cols[at]
    _, control = np.unique(key, return_inverse=True)
    plates, plate = np.unique(facts.plate[at], return_inverse=True)
    if control.max() < 1 or len(plates) < 2:
        return facts
    values = facts.values[at]
    deviation = values - (np.bincount(control, values) / np.bincount(control))[control]
    counts = np.bincount(plate)
    effect = np.bincount(plate, deviation) / counts
    rest = deviation - effect[plate]
    freedom = max(len(at) - len(plates) - control.max(), 1)
    noise = float(rest @ rest) / freedom
    spread = float(np.mean(effect**2 - noise / counts))
    shrink = max(spread, 0.0) / (max(spread, 0.0) + noise / counts + SMALLEST)
    of = np.searchsorted(plates, facts.plate)
    of = np.minimum(of, len(plates) - 1)
    moved = np.where(plates[of] == facts.plate, (shrink * effect)[of], 0.0)
    return replace(facts, values=facts.values - moved)
