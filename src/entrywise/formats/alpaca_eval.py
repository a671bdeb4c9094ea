"""AlpacaEval: ``annotations.json``, one judged pair of outputs an object.

``preference`` is 1 where the output of ``generator_1`` (the reference) is preferred, 2 where that of ``generator_2`` (the model)
is, and lies between for a judge that gives weights: the score is how far the model won, from 0 to 1.
"""

from __future__ import annotations

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells, Usage, amount, digest, keyed, numbered, score
from entrywise.formats.source import FileFormat, Source, Wanted

_KEYS = ("instruction", "generator_1", "generator_2", "preference")
_TASK = "alpaca_eval"


def fits(source: Source) -> bool:
    """Tell whether a file holds AlpacaEval's annotations."""
    return source.has(*_KEYS)


def read(source: Source, wanted: Wanted) -> ScoredCells:
    """Return its cells: models by instructions, against one reference; `metric` names it where there are several."""
    references: dict[str, None] = {}
    found = []
    for k, record in enumerate(source.records):
        instruction, reference, model, preference = source.need(k, *_KEYS)
        if wanted.metric is not None and reference != wanted.metric:
            continue
        references[str(reference)] = None
        if len(references) > 1:
            names = ", ".join(map(repr, references))
            raise DataError(
                f"{source.path} compares with several references: {names}; say which (--metric NAME)"
            )
        where = source.where(k)
        value = score(preference, where)
        if value is not None and not 1 <= value <= 2:
            raise DataError(f"{where}: 'preference' must be from 1 to 2, got {value:g}")
        content = digest([instruction, str(reference)])
        found.append(
            Cell(
                row=str(model),
                col=keyed(_TASK, content[:8], content),
                value=None if value is None else value - 1.0,
                usage=Usage(seconds=amount(record.get("time_per_example"))),
            )
        )
    if not found:
        raise DataError(f"{source.path} has no reference {wanted.metric!r}")
    return ScoredCells(tuple(numbered(found)), source.path)


FORMAT = FileFormat(
    name="alpaca-eval",
    holds="cells",
    words="JSON with instruction, generator_1, generator_2, preference",
    fits=fits,
    read=read,
    pattern="annotations.json",
)
