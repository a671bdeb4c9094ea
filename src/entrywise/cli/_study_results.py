"""How ``entrywise study`` prints results and finds oracles."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entrywise.cli._shared import shown
from entrywise.exceptions import DataError, ParameterError, TellError

if TYPE_CHECKING:
    from entrywise.results import Result
    from entrywise.study import Labels


def summary(found: Result) -> dict[str, Any]:
    """Return what a result is, in a few words and numbers."""
    words: dict[str, Any] = {
        "kind": type(found).__name__,
        "status": found.status,
        "cost": found.cost,
    }
    for name in ("shape", "rank", "pair"):
        if hasattr(found, name):
            words[name] = getattr(found, name)
    if found.certificate is not None:
        words["certificate"] = found.certificate.statement
        words["certified"] = found.certificate.value
    return words | {str(k): v for k, v in found.report.items() if k not in words}


def completed(
    found: Any, labels: Labels, path: str | None, level: float
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the columns and the lines of completed entries: those a CSV file names, or all of them.

    Of a crowd: items with their labels and how sure they are. A result with a posterior gives intervals too: of the
    entry itself where noise can be told from lack of fit, else of a new answer.
    """
    from entrywise.apply.crowd import CrowdLabels
    from entrywise.cli._study_files import lines_of
    from entrywise.results import LowRank, Matrix

    if isinstance(found, CrowdLabels) and path is None:
        items = range(len(found.labels))
        lines = ((labels.row(i), found.name(i), float(found.confidence[i])) for i in items)
        return ["row", "label", "confidence"], lines
    if not isinstance(found, Matrix):
        raise ParameterError(
            f"the result is a {type(found).__name__} and has no entries to print; use --out"
        )
    unsure = isinstance(found, LowRank) and found.has_variance
    names = ["row", "col", "value", "low", "high"] if unsure else ["row", "col", "value"]
    m, n = found.shape
    if path is None:
        return names, (
            line
            for i in range(m)
            for line in _entries(found, labels, [i] * n, range(n), unsure, level)
        )
    columns, table = lines_of(path)
    if "row" not in columns or "col" not in columns:
        raise DataError(
            f"{path} line 1: there must be columns 'row' and 'col', got {shown(', '.join(columns))}"
        )
    wanted = []
    for line, fields in table:
        try:
            wanted.append(labels.index(fields["row"], fields["col"]))
        except TellError as error:
            raise DataError(f"{path} line {line}: {error}") from None
    return names, _entries(
        found, labels, [i for i, _ in wanted], [j for _, j in wanted], unsure, level
    )


def _entries(
    found: Any, labels: Labels, rows: Sequence[int], cols: Sequence[int], unsure: bool, level: float
) -> Iterator[tuple[Any, ...]]:
    numbers = [
        found.entries(rows, cols),
        *(found.interval(rows, cols, level, of=found.interval_of) if unsure else ()),
    ]
    for i, j, *told in zip(rows, cols, *numbers, strict=True):
        yield labels.row(i), labels.col(j), *(float(x) for x in told)


def here_first() -> None:
    """Let modules of the current folder be found: the person who types the command works there."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def function_at(name: str) -> Callable[..., Any]:
    """Return what stands at ``module:function``; modules of the current folder are found."""
    module, colon, function = name.partition(":")
    here_first()
    try:
        found = getattr(importlib.import_module(module), function) if colon else None
    except Exception as error:  # the module is somebody's own
        why = str(error).partition("\n")[0] or type(error).__name__
        raise ParameterError(
            f"an oracle is module:function, in this folder or installed, got {name!r}: {why}"
        ) from None
    if not callable(found):
        raise ParameterError(f"an oracle is module:function that can be called, got {name!r}")
    return found  # type: ignore[no-any-return]
