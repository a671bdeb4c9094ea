"""What the field's files hold: scored cells, and who gave which label to what.

A cell is keyed by its row (a model), its column (a sample of a task, with a hash of its content) and a repeat. A sample that
failed has no value: it is never 0. What a cell took (tokens, seconds) stands beside it, where the log says so.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from entrywise.exceptions import DataError
from entrywise.observations import Duplicates, Observations

MARK = "#"  # parts a column's name from the hash of its content
DIGITS = 12  # hexadecimal digits of the hash that stand in a label: 48 bits, no chance meetings in a benchmark
_KEYED = re.compile(rf"(.*){MARK}([0-9a-f]{{{DIGITS}}})", re.DOTALL)


class Usage(NamedTuple):
    """What a cell took; None where the log does not say."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    seconds: float | None = None


class Cell(NamedTuple):
    """One scored cell; its value is None where the sample failed."""

    row: str
    col: str
    value: float | None
    repeat: int = 0
    usage: Usage = Usage()
    cost: float | None = None


@dataclass(frozen=True)
class ScoredCells:
    """Scored cells of a file or a folder, in the order of the log."""

    cells: tuple[Cell, ...]
    path: str = ""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return sum(cell.value is None for cell in self.cells)

    @property
    def rows(self) -> list[str]:
        """The rows, in order of appearance."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def cols(self) -> list[str]:
        """The columns, in order of appearance."""
        return list(dict.fromkeys(cell.col for cell in self.cells))

    def observations(self, duplicates: Duplicates = "refuse") -> Observations:
        """Return what is known: failed cells are left out, repeats resolved as `duplicates` says."""
        known = [(cell.row, cell.col, cell.value) for cell in self.cells if cell.value is not None]
        if not known:
            raise DataError(f"{self.path} holds no cell with a score: all {len(self)} failed")
        rows, cols = self.rows, self.cols
        row_at = {name: i for i, name in enumerate(rows)}
        col_at = {name: j for j, name in enumerate(cols)}
        return Observations.from_triplets(
            [row_at[row] for row, _, _ in known],
            [col_at[col] for _, col, _ in known],
            [value for _, _, value in known],
            (len(rows), len(cols)),
            duplicates=duplicates,
            row_labels=rows,
            col_labels=cols,
        )


@dataclass(frozen=True)
class Annotations:
    """Who gave which label to what: three texts a line."""

    items: list[str]
    workers: list[str]
    labels: list[str]
    path: str = ""

    def __len__(self) -> int:
        return len(self.items)


def digest(content: Any) -> str:
    """Return the hash of a sample's content, whatever plain JSON it is.

    >>> digest({"question": "2 + 2", "answer": "4"}) == digest({"answer": "4", "question": "2 + 2"})
    True
    """
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def keyed(task: str, sample: Any, content: str | None) -> str:
    """Return the label of a column: task, sample and the first digits of its content's hash.

    >>> keyed("gsm8k", 3, "0123456789abcdef0123")
    'gsm8k:3#0123456789ab'
    """
    name = f"{task}:{sample}"
    return name if not content else f"{name}{MARK}{content[:DIGITS].lower()}"


def parted(col: str) -> tuple[str, str | None]:
    """Return a column's name and the hash in its label, None where there is none.

    >>> parted("gsm8k:3#0123456789ab"), parted("gsm8k:3")
    (('gsm8k:3', '0123456789ab'), ('gsm8k:3', None))
    """
    found = _KEYED.fullmatch(col)
    return (found[1], found[2]) if found else (col, None)


def same_content(cells: ScoredCells, known: Iterable[str] = ()) -> ScoredCells:
    """Return the cells with the labels that `known` columns have; refuse where a sample's content changed.

    A known label without a hash takes the sample whatever it holds: there was nothing to compare.
    """
    seen = {name: (col, content) for col in known for name, content in (parted(col),)}
    found = []
    for cell in cells.cells:
        name, content = parted(cell.col)
        col, was = seen.setdefault(name, (cell.col, content))
        if content is not None and was is not None and content != was:
            raise DataError(
                f"{cells.path}: the content of sample {name!r} changed, its hash is {content} and was {was}; "
                "a changed benchmark is another one, give it columns of its own"
            )
        found.append(cell if col == cell.col else cell._replace(col=col))
    return replace(cells, cells=tuple(found))


def numbered(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells with repeats counted in the order in which they come."""
    times: dict[tuple[str, str], int] = {}
    found = []
    for cell in cells:
        key = (cell.row, cell.col)
        found.append(cell._replace(repeat=times.get(key, 0)))
        times[key] = times.get(key, 0) + 1
    return found


def score(value: Any, where: str) -> float | None:
    """Return a score as a number, None where there is none or it is NaN; what is neither is refused."""
    if value is None:
        return None
    if not isinstance(value, (bool, int, float)):
        raise DataError(f"{where}: a score must be a number, got {value!r}; choose another metric")
    found = float(value)
    if math.isinf(found):
        raise DataError(f"{where}: a score must be finite, got {found}")
    return None if math.isnan(found) else found


def amount(value: Any) -> float | None:
    """Return a number of tokens or seconds, None where the log says none that can be one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None
