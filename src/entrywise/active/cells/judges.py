"""Buying scores of a dear instrument with judges beside it: a pilot, then the split that it suggests.

The pilot asks every instrument the same columns of every row. Its residuals say how far each judge goes with the dear
instrument; the judges that are worth their price are then asked many cells, and the dear cells lie among these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.board import Board
from entrywise.active.cells.designs import Mask, spread
from entrywise.active.cells.instruments import FEWEST, MoneySplit, Residuals, choose
from entrywise.active.cells.reserve import column_order
from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.queries import Batch, Prices, Situation
from entrywise.results import LowRank
from entrywise.types import Array, Indices

PILOT = 0.2  # share of the money for cells that all instruments are asked
LEAST_PILOT = 5  # dear cells of every row in the pilot; fewer cannot be left out by fifths
MOST_PILOT = (
    0.4  # share of the money that these may take where it is scarce; two cells a row in any case
)
ENOUGH = 300  # pairs known beforehand that make a pilot needless: rho is then known to .06
UNITS = {"entry", "column"}  # modes that every list of prices may have: no judges

Stage = tuple[Board, Indices, str]


@dataclass(frozen=True, eq=False)
class Bench:
    """All instruments of a board: the dear one, the judges by name, and how they are used."""

    dear: Board
    judges: dict[str, Board]
    core: float
    situation: Situation

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        prices: Prices | None,
        available: Mask | None,
        target: str,
        core: float,
        situation: Situation,
        model: AnswerModel,
    ) -> Bench:
        """Return what a step looks at; refuse prices that name no target or differ within its rows."""
        if prices is None or target not in prices.modes:
            raise ParameterError(
                f"target {target!r} needs prices of all instruments, such as Prices(judge=0.02, {target}=1)"
            )
        names = [mode for mode in prices.modes if mode != target and mode not in UNITS]
        dear = Board.of(shape, prices, available, situation, model, target)
        if not dear.priced_by_row:
            raise ParameterError(
                f"all cells of a row must have one price of {target!r} where there are judges; give prices by row"
            )
        judges = {
            name: Board.of(shape, prices, available, situation, model, name)
            for name in sorted(names)
        }
        new = dear.new
        if new is not None:  # old rows are known: nothing more is bought of them
            open_ = dear.available & new[:, None]
            dear = replace(dear, available=open_, taken=dear.taken & open_)
            judges = {
                name: replace(judge, available=judge.available & new[:, None])
                for name, judge in judges.items()
            }
        return cls(dear, judges, core, situation)

    def step(self, rank: int | None) -> Batch | LowRank:
        """Return the next questions, of one instrument, or the fit of the dear answers."""
        for board, cells, arm in self._stages():
            wanted = board.batch(cells, arm)
            if len(wanted):
                return replace(wanted, report=self._report)
            if len(cells) and self.situation.filtered:
                break  # others may ask what this step may not
        if len(self.situation.pending):
            return Batch.empty(mode=self.dear.mode)
        found = self.dear.result("scores", rank)
        return replace(found, report={**found.report, "target": self.dear.mode, **self._report})

    def _stages(self) -> Iterator[Stage]:
        """Yield what is lacking, the first thing first: the pilot, the judges' cells, the dear ones among them."""
        for board in (self.dear, *self.judges.values()):
            yield board, self._lacking(board, self._in_pilot), "pilot"
        if self._waits:
            return
        chosen, split = self._choice
        judged = self._judged(split) if chosen else self.dear.available
        held = 0.0
        for name in chosen:
            board = self.judges[name]
            cells = self._lacking(board, judged)
            held += float(board.price.ravel()[cells].sum())
            yield board, cells, "judge"
        among = replace(self.dear, available=judged, held=held)
        yield among, *among.core_and_spread(self.core)
        yield self.dear, *self.dear.core_and_spread(self.core)

    # the pilot

    @cached_property
    def _price(self) -> Array:
        """Prices of the judges in units of the dear one; what is known beforehand is free."""
        dear = float(self.dear.price[self.dear.available].mean())
        each = [
            float(np.mean(np.where(judge.before, 0.0, judge.price)[judge.available])) / dear
            for judge in self.judges.values()
        ]
        return np.array(each)

    @cached_property
    def _money(self) -> float:
        """Money of one row in units of its dear price, all that was bought of judges included."""
        bought = sum(
            float(judge.price[judge.taken & ~judge.before & judge.available].sum())
            for judge in self.judges.values()
        )
        column = float(self.dear.price[:, 0] @ self.dear.available.mean(axis=1))
        return (self.dear.money + bought) / max(column, np.finfo(float).tiny)

    @property
    def _cells(self) -> float:
        """Cells of a row that is bought."""
        counts = self.dear.available.sum(axis=1)
        return float(counts[counts > 0].mean())

    @cached_property
    def _known_pairs(self) -> Mask:
        """Cells that all instruments are known to have answered beforehand."""
        found = self._everything(self.dear.mode)
        for name in self.judges:
            found = found & self._everything(name)
        return found

    def _everything(self, mode: str) -> Mask:
        """Which cells an instrument answered before this epoch, old rows included."""
        facts = self.situation.facts
        early = facts[(facts.mode == mode) & ~facts.failed]
        early = early[early.known | (early.epoch < self.situation.epoch)]
        found = np.zeros(self.dear.shape, bool)
        found[early.rows, early.cols] = True
        return found

    @cached_property
    def _in_pilot(self) -> Mask:
        """Which cells all instruments are asked first, shape (m, n)."""
        none = np.zeros(self.dear.shape, bool)
        if not self.judges or self._known_pairs.sum() >= ENOUGH:
            return none
        whole = self._money / (1.0 + float(self._price.sum()))
        least = max(min(LEAST_PILOT, MOST_PILOT * whole), 2.0)
        count = int(min(max(least, PILOT * whole), whole))
        none[:, self._first(count)] = True
        return none & self.dear.available

    def _first(self, count: int) -> Indices:
        """Return the first common columns."""
        return column_order(self.situation.seed, self.dear.shape[1])[:count]

    @property
    def _waits(self) -> bool:
        """Whether an answer of the pilot is still to come."""
        out = self.situation.pending
        return bool(np.any(self._in_pilot[out.rows, out.cols]))

    @cached_property
    def _residuals(self) -> Residuals:
        """What instruments say of the pilot's cells beyond fits without them."""
        cells = self._in_pilot if self._in_pilot.any() else self._known_pairs
        tables = {mode: self._answers(mode, cells) for mode in (self.dear.mode, *self.judges)}
        dear = tables.pop(self.dear.mode)
        if len(dear) < FEWEST:
            return Residuals(np.zeros(0), np.zeros((0, len(tables))))
        return Residuals.of(dear, tables)

    def _answers(self, mode: str, cells: Mask) -> Observations:
        facts = self.situation.facts
        some = facts[(facts.mode == mode) & ~facts.failed]
        some = some[cells[some.rows, some.cols]]
        return Observations.from_triplets(
            some.rows, some.cols, some.values, self.dear.shape, duplicates="mean"
        )

    # the rest

    @cached_property
    def _choice(self) -> tuple[list[str], MoneySplit]:
        """Return the judges that are worth their price, and how many cells a row each instrument is asked."""
        names = list(self.judges)
        pilot = float(self._in_pilot.sum()) / max(int(self.dear.available.any(axis=1).sum()), 1)
        if not names or not self._money > 0:
            return [], MoneySplit(self._money, 0.0, 0.0)
        chosen, split = choose(self._residuals, self._price, self._money, self._cells, pilot)
        return [names[j] for j in chosen], split

    def _judged(self, split: MoneySplit) -> Mask:
        """Return the cells that the chosen judges are asked: common columns, and a spread over the others."""
        available = self.dear.available
        if split.judged >= self._cells - 0.5:
            return available
        found = self._in_pilot.copy()
        found[:, self._first(round(self.core * split.dear))] = True
        found = (found | self.dear.before) & available
        missing = np.maximum(round(split.judged) - found.sum(axis=1), 0)
        rng = np.random.default_rng([self.situation.seed, 3])
        more = spread(missing, found, available & ~found, rng)
        found.ravel()[more] = True
        return found

    def _lacking(self, board: Board, wanted: Mask) -> Indices:
        """Return the cells that an instrument still has to be asked, column by column in the common order."""
        order = self._first(self.dear.shape[1])
        rows, place = np.nonzero((wanted & board.open)[:, order])
        by_column = np.lexsort((rows, place))
        return np.asarray(rows[by_column] * len(order) + order[place[by_column]])

    @property
    def _report(self) -> dict[str, object]:
        """What is known of the judges, as plain numbers."""
        if self._waits or not self.situation.facts.mode.size:
            return {}
        chosen, split = self._choice
        told: dict[str, object] = {}
        for j, (name, judge) in enumerate(self.judges.items()):
            worth = self._residuals.worth([j], float(self._price[j]))
            told[name] = {
                "rho": worth.rho,
                "error": worth.error if np.isfinite(worth.error) else None,
                "pairs": worth.pairs,
                "price": worth.price,
                "needed": worth.needed,
                "bought": int(np.count_nonzero(judge.taken & ~judge.before)),
                "kept": name in chosen,
            }
        return {"judges": told, "gain": split.gain} if told else {}
