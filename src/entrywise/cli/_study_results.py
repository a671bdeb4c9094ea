"""How ``entrywise study`` prints results and finds oracles."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from entrywise.exceptions import DataError, ParameterError, TellError

if TYPE_CHECKING:
    from entrywise.results import Result
    from entrywise.study import Labels


def summary(found: Result) -> dict[str, Any]:
    """Return what a result is, in a few words and numbers."""
    words: dict[str, Any] = {"kind": type(found).__name__, "status": found.status, "cost": found.cost}
    for name in ("shape", "rank", "pair"):
        if hasattr(found, name):
            words[name] = getattr(found, name)
    if found.certificate is not None:
        words["certificate"] = found.certificate.statement
        words["certified"] = found.certificate.value
    return words | {str(k): v for k, v in found.report.items() if k not in words}


def completed(found: Any, labels: Labels, path: str | None) -> Iterator[tuple[Any, Any, float]]:
    """Go through completed entries: those a CSV file names, or all of them."""
    from entrywise.cli._study_files import table_of
    from entrywise.results import Matrix

    if not isinstance(found, Matrix):
        raise ParameterError(f"the result is a {type(found).__name__} and has no entries to print; use --out")
    if path is None:
        for i in range(found.shape[0]):
            for j, value in enumerate(found.row(i)):
                yield labels.row(i), labels.col(j), float(value)
        return
    names, table = table_of(path)
    if "row" not in names or "col" not in names:
        raise DataError(f"{path} line 1: there must be columns 'row' and 'col', got {', '.join(names)}")
    wanted = []
    for line, fields in table:
        try:
            wanted.append(labels.index(fields["row"], fields["col"]))
        except TellError as error:
            raise DataError(f"{path} line {line}: {error}") from None
    values = found.entries([i for i, _ in wanted], [j for _, j in wanted])
    for (i, j), value in zip(wanted, values, strict=True):
        yield labels.row(i), labels.col(j), float(value)


def function_at(name: str) -> Callable[..., Any]:
    """Return what stands at ``module:function``; modules of the current folder are found."""
    module, colon, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), function) if colon else None
    except (ImportError, AttributeError) as error:
        raise ParameterError(f"an oracle is module:function, got {name!r}: {error}") from None
    if not callable(found):
        raise ParameterError(f"an oracle is module:function that can be called, got {name!r}")
    return found  # type: ignore[no-any-return]
