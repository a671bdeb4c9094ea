"""Scored cells as answers of a study: matched by row, column and repeat; a benchmark whose content changed is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

from entrywise.exceptions import DataError
from entrywise.formats import ScoredCells, same_content
from entrywise.study import Study

ASKED = (
    "told",
    "open",
    "leased",
    "withdrawn",
)  # what the log says of a question, once it was asked


class Kept(NamedTuple):
    """What became of cells: new answers, cells that the study had asked for, and those it had not."""

    new: int
    asked: int
    others: int


def tell_cells(study: Study, cells: ScoredCells, worker: str | None = None) -> Kept:
    """Tell a study the cells that it asked for, all of them or none; the same log twice is harmless.

    Samples that failed are told as failed. Cells that the study did not ask for are counted and left alone:
    ``study.add`` takes them as known.
    """
    labels = study.labels
    if labels.rows is None or labels.cols is None:
        raise DataError(
            f"study {study.name!r} has no labels; make it with rows and columns by name"
        )
    strange = next((row for row in cells.rows if row not in labels.rows), None)
    if strange is not None:
        known = ", ".join(map(repr, labels.rows[:8]))
        raise DataError(
            f"{cells.path}: {strange!r} is no row of study {study.name!r}, which has {known}; say which row it is (--model)"
        )
    ids = _questions(study)
    answers: list[tuple[str, float | None]] = []
    known_cells = same_content(cells, labels.cols).cells
    for cell in known_cells:
        here = ids.get((cell.row, cell.col), [])
        if cell.repeat < len(here):
            answers.append((here[cell.repeat], cell.value))
    new = study.tell(answers, worker) if answers else 0
    return Kept(new, len(answers), len(known_cells) - len(answers))


def _questions(study: Study) -> dict[tuple[Any, Any], list[str]]:
    """Return the ids of the questions about each cell, in the order in which they were asked."""
    found: dict[tuple[Any, Any], dict[str, None]] = {}
    for line in study.log():
        if line["what"] in ASKED:
            found.setdefault((line["row"], line["col"]), {})[line["id"]] = None
    return {cell: list(ids) for cell, ids in found.items()}
