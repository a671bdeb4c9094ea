"""What there is to tell of a study: where it stands, its answer, how far to trust it, what to do next.

The page and the report say the same, from here. Nothing here writes; :func:`story` fits where the study's result does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entrywise.active.cells.answer_model import AnswerModel
from entrywise.answers import range_of
from entrywise.apply.leaderboard import Bought, Savings, Scores, judged, savings, scores, verdict
from entrywise.exceptions import EntrywiseError
from entrywise.fragments import unit_of
from entrywise.results import LowRank, Result
from entrywise.study import Labels, Record, Study
from entrywise.study.cells import STATES, Cells, cells
from entrywise.study.course import Course, course
from entrywise.study.status import epoch_lines
from entrywise.types import Array

LEVEL = 0.9
BOARDS = ("most-informative", "row-scores", "top-two")  # plans that score rows over columns
FEWEST = 4  # points of a curve that is drawn on
LARGEST = 4_000_000  # cells of a matrix that is looked at whole


@dataclass(frozen=True)
class Story:
    """A study as people are told of it."""

    record: Record
    now: dict[str, Any]
    labels: Labels
    course: Course
    epochs: list[dict[str, Any]]
    result: Result | None = None
    missing: str = ""  # why there is no result yet
    bought: Bought | None = None
    board: Scores | None = None
    verdict: str = ""  # who leads, and what settling the next would cost
    savings: Savings | None = None  # whether buying by rule saved money

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and columns, where both are known."""
        sizes = (self.record.n_rows, self.record.n_cols)
        return None if None in sizes else (int(sizes[0] or 0), int(sizes[1] or 0))

    @property
    def ranks(self) -> bool:
        """Whether the study was made to know who is better, rather than every cell."""
        return self.board is not None and self.now["params"].get("goal") != "all"


def story(study: Study, level: float = LEVEL) -> Story:
    """Return what there is to tell of a study, its result included."""
    record = study.store.record(study.name)
    told: dict[str, Any] = {
        "record": record,
        "now": study.status(),
        "labels": study.labels,
        "course": course(study.store, record),
        "epochs": epoch_lines(study.store, record),
    }
    try:
        told["result"] = study.result()
    except EntrywiseError as error:
        return Story(**told, missing=str(error))
    if record.params.get("units", "one") != "one":
        told["missing"] = f"{record.params['units']} in units of their own have no common mean"
    elif record.plan in BOARDS and isinstance(told["result"], LowRank):
        try:
            told |= _board(study, record, told["result"], level)
        except (EntrywiseError, ValueError, ArithmeticError) as error:  # the rest is told anyway
            told["missing"] = str(error)
    return Story(**told)


def _board(study: Study, record: Record, found: LowRank, level: float) -> dict[str, Any]:
    """Return the scores of the rows, what may be concluded, and whether buying by rule saved money."""
    shape = (int(record.n_rows or 0), int(record.n_cols or 0))
    available = record.params.get("available")
    target, prices = record.params.get("target"), study.prices
    bounds = record.params.get("bounds")
    bought = Bought.from_log(
        shape,
        study.log(),
        study.labels.index,
        available=available,
        target=target,
        model=AnswerModel.of_plan(shape, record.params),
    )
    if target is not None:
        prices = prices.of_instrument(target)
    if bought.judges:
        board: Scores = judged(bought, level=level, bounds=bounds)
    else:
        board = scores(found, bought, level, prices, bounds=range_of(bought.values, bounds))
    names = [str(study.labels.row(i)) for i in range(shape[0])]
    return {
        "bought": bought,
        "board": board,
        "verdict": verdict(board, bought, names, prices, record.currency),
        "savings": None if bought.known.all() else savings(board, bought, prices),
    }


def has_intervals(found: Any) -> bool:
    """Tell whether each completed entry has an interval of its own."""
    return isinstance(found, LowRank) and found.has_variance


def entries(
    found: Any, rows: ArrayLike, cols: ArrayLike, level: float = LEVEL
) -> tuple[Array, Array | None, Array | None]:
    """Return completed entries with their intervals (of the entry itself where its noise is known, else of an
    answer), None where there are none."""
    values = np.asarray(found.entries(rows, cols), np.float64)
    if not has_intervals(found):
        return values, None, None
    low, high = found.interval(rows, cols, level, of=found.interval_of)
    return values, low, high


def all_cells(study: Study, told: Story) -> Cells | None:
    """Return every cell that is more than open, where the matrix is small enough to be looked at whole."""
    if told.shape is None or math.prod(told.shape) > LARGEST:
        return None
    m, n = told.shape
    return cells(study.store, told.record, (0, m), (0, n))


def counted(found: Cells) -> dict[str, int]:
    """Return how many cells are in each state."""
    counts = np.bincount(found.states, minlength=len(STATES))
    return {name: int(k) for name, k in zip(STATES, counts, strict=True) if k}


def best_rows(told: Story) -> list[int]:
    """Return the rows that may be the best, in order of their scores."""
    assert told.board is not None
    return [int(i) for i in told.board.order if told.board.best_place[i] == 1]


def advice(told: Story) -> list[str]:
    """Return what to do next, a sentence each."""
    now, found = told.now, []
    if now["trouble"]:
        found.append(f"Mend this first: {now['trouble']}.")
    for odd in now["implausible"]:
        found.append(
            f"Look at answer {odd['id']}, ({odd['row']}, {odd['col']}) = {odd['value']:.4g}: "
            f"{odd['expected']:.4g} was expected; correct it if it is a slip, it counts as it is."
        )
    if now["state"] == "open":
        found.append(
            f"Go on measuring: {now['free']} questions are free to ask, {now['leased']} are out."
        )
    elif now["state"] == "closed":
        found.append("The study is closed; reopen it to go on.")
    if now["state"] == "exhausted":
        found.append("The money is spent; extend the budget to know more.")
    elif now["state"] == "finished":
        found.append("Nothing is left to ask: the answer stands.")
    if told.verdict:
        found.append(f"{told.verdict}.")
    if now["state"] in ("open", "exhausted") and now["budget"]:
        found += _next_tenth(told)
    return found


def _next_tenth(told: Story) -> list[str]:
    """Return what a tenth of the budget more would buy, where that can be said."""
    now, known = told.now, told.savings
    money = 0.1 * now["budget"]
    if known is not None and not known.reason:
        share = min(known.bought * (1.0 + money / now["spent"]), 1.0)
        before, after = known.error, known.error * known.naive(share) / known.naive(known.bought)
        what, if_ = "the error of a score", "as it does for cells drawn at random"
    else:
        line = told.course
        half = len(line.money) // 2
        x, y = np.array(line.money[half:]), np.array(line.errors[half:])
        if len(x) < FEWEST or not (x[0] > 0 and np.all(y > 0)):
            return []
        slope = float(np.polyfit(np.log(x), np.log(y), 1)[0])
        before = float(y[-1])
        after = before * (1.0 + money / float(x[-1])) ** min(slope, 0.0)
        what, if_ = "the expected error of a cell", "as it did over the second half of the money"
    unit = unit_of(now["currency"])
    words = f"Another tenth of the budget ({money:,.3g}{unit}) would bring {what} from {before:.3g} to about {after:.3g}"
    return [f"{words}, if it goes on falling {if_}."]
