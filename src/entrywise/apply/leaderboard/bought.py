"""What was bought of a board, and what was known of it beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.exceptions import DataError
from entrywise.observations import Observations
from entrywise.queries import History
from entrywise.run import Run
from entrywise.types import Array, Indices

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bought:
    """Cells of a board, in order: the arm that wanted each, its probability, its price, and whether it was known before.

    ``available`` says which cells exist, shape (m, n), all when None: the score of a row is its mean over these.
    ``judges`` are what other instruments than the one that counts said of cells, by name; ``further`` how many cells
    each of those that were paid was asked beyond a pilot; ``model`` what answers are taken for, with the features of lines.
    ``len()`` counts what was bought, not what was known.
    """

    shape: tuple[int, int]
    rows: Indices
    cols: Indices
    values: Array
    arms: NDArray[np.str_]
    probability: Array
    price: Array
    known: Mask = field(default=None)  # type: ignore[arg-type]
    available: Mask | None = None
    judges: Mapping[str, Observations] = field(default_factory=dict)
    further: Mapping[str, int] = field(default_factory=dict)
    model: AnswerModel = field(default_factory=AnswerModel)

    def __post_init__(self) -> None:
        if self.known is None:
            object.__setattr__(self, "known", np.zeros(len(self.values), bool))

    @classmethod
    def from_run(cls, run: Run) -> Bought:
        """Return what a run bought and was told beforehand; failed measurements are left out.

        Of a plan with a ``target`` these are its answers; what the other instruments said are the judges.
        """
        shape, facts = run.plan.shape, run.history + run.facts
        if shape is None or shape[0] is None or not len(facts):
            raise DataError(
                "a leaderboard needs a run over an m x n matrix that has bought something; play it first"
            )
        good = facts[~facts.failed & (facts.arm != "control")]
        target = run.plan.params.get("target")
        size = (shape[0], shape[1])
        judges: dict[str, Observations] = {}
        further: dict[str, int] = {}
        if target is not None:
            judges, further = _judges(good, target, size), _further(good, target)
            good = good[good.mode == target]
        return cls(
            size,
            good.rows,
            good.cols,
            good.values,
            good.arm,
            np.where(np.isnan(good.probability), 1.0, good.probability),
            np.where(np.isnan(good.price), 0.0, good.price),
            good.known,
            _mask(run.plan.params.get("available")),
            judges,
            further,
            AnswerModel.of_plan(size, run.plan.params),
        )

    @classmethod
    def from_log(
        cls,
        shape: tuple[int, int],
        lines: Iterable[Mapping[str, Any]],
        index: Any,
        available: Any = None,
        target: str | None = None,
        model: AnswerModel | None = None,
    ) -> Bought:
        """Return what the log of a study says was bought or known; ``index(row, col)`` turns its labels into numbers.

        With a `target` these are the answers of that instrument; what the others said are the judges.
        """
        there = [x for x in lines if x["what"] in ("told", "known") and not x["failed"]]
        judges: dict[str, Observations] = {}
        further: dict[str, int] = {}
        if target is not None:
            other = _told([x for x in there if x["mode"] != target], index)
            judges, further = _judges(other, target, shape), _further(other, target)
            there = [x for x in there if x["mode"] == target]
        known = np.array([x["what"] == "known" for x in there], bool)
        if not len(there) or known.all():
            raise DataError("nothing was bought yet; ask, measure and tell first")
        at = np.array([index(x["row"], x["col"]) for x in there], np.int64).reshape(-1, 2)
        chance = np.array([x["probability"] or np.nan for x in there], np.float64)
        price = np.array([x["price"] or 0.0 for x in there], np.float64)
        return cls(
            shape,
            at[:, 0],
            at[:, 1],
            np.array([x["value"] for x in there], np.float64),
            np.array([x["arm"] or "" for x in there]),
            np.where(np.isnan(chance), 1.0, chance),
            np.where(known, 0.0, price),
            known,
            _mask(available),
            judges,
            further,
            model or AnswerModel(),
        )

    @classmethod
    def from_table(cls, table: Observations, model: AnswerModel | None = None) -> Bought:
        """Return a partly filled table as if each of its cells had been bought at price 1."""
        count = len(table)
        return cls(
            table.shape,
            table.rows,
            table.cols,
            table.values,
            np.full(count, "table"),
            np.ones(count),
            np.ones(count),
            model=model or AnswerModel(),
        )

    def __len__(self) -> int:
        return int(np.count_nonzero(~self.known))

    @property
    def spent(self) -> float:
        """What was paid."""
        return float(self.price[~self.known].sum())

    @property
    def there(self) -> Mask:
        """Which cells exist, shape (m, n)."""
        return np.ones(self.shape, bool) if self.available is None else self.available

    @property
    def is_complete(self) -> bool:
        """Whether every cell that exists was bought or known."""
        seen = np.zeros(self.shape, bool)
        seen[self.rows, self.cols] = True
        return bool(np.all(seen | ~self.there))

    @property
    def spent_by_row(self) -> Array:
        """What was paid for each row, shape (m,); what was known cost nothing."""
        paid = np.where(self.known, 0.0, self.price)
        return np.asarray(np.bincount(self.rows, paid, self.shape[0]), np.float64)

    def observations(self, which: Any = slice(None)) -> Observations:
        """Return (some of) what was bought and known as observations, an entry listed twice by its mean."""
        return Observations.from_triplets(
            self.rows[which], self.cols[which], self.values[which], self.shape, duplicates="mean"
        )


def _judges(facts: History, target: str, shape: tuple[int, int]) -> dict[str, Observations]:
    """Return what each other instrument said."""
    found = {}
    for mode in sorted(set(facts.mode.tolist()) - {target}):
        some = facts[facts.mode == mode]
        found[mode] = Observations.from_triplets(
            some.rows, some.cols, some.values, shape, duplicates="mean"
        )
    return found


def _further(facts: History, target: str) -> dict[str, int]:
    """Return how many cells each other instrument was paid for beyond the pilot."""
    paid = facts[~facts.known & (facts.mode != target)]
    return {
        mode: int(np.count_nonzero((paid.mode == mode) & (paid.arm != "pilot")))
        for mode in sorted(set(paid.mode.tolist()))
    }


def _told(lines: list[Mapping[str, Any]], index: Any) -> History:
    """Return lines of a log as a table."""
    at = np.array([index(x["row"], x["col"]) for x in lines], np.int64).reshape(-1, 2)
    values = np.array([x["value"] for x in lines], np.float64)
    return History(
        at[:, 0],
        at[:, 1],
        values,
        mode=np.array([x["mode"] for x in lines], np.str_),
        arm=np.array([x["arm"] or "" for x in lines], np.str_),
        known=np.array([x["what"] == "known" for x in lines], bool),
    )


def _mask(available: Any) -> Mask | None:
    return None if available is None else np.asarray(available, bool)
