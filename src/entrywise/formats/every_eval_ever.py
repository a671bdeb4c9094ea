"""Every Eval Ever, instance level: one JSON object a line, converted from Inspect, HELM, lm-eval or AlpacaEval.

A line has ``model_id, evaluation_name, sample_id, evaluation.score`` and perhaps ``sample_hash, token_usage, performance, error``
(schema 0.3). A sample scored by several metrics has a line for each, told apart by ``evaluation_result_id``.
"""

from __future__ import annotations

from typing import Any

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells, Usage, amount, digest, keyed, numbered, score
from entrywise.formats.source import FileFormat, Source, Wanted

_KEYS = ("schema_version", "model_id", "evaluation_name", "sample_id", "evaluation")
_MILLISECONDS = 1000.0


def fits(source: Source) -> bool:
    """Tell whether a file is Every Eval Ever, instance level."""
    return source.has(*_KEYS)


def read(source: Source, wanted: Wanted) -> ScoredCells:
    """Return its cells; a metric is an ``evaluation_result_id`` or an ``evaluation_name``."""
    found = []
    metrics: dict[tuple[str, str], str] = {}
    for k, record in enumerate(source.records):
        model, task, sample, evaluation = source.need(k, *_KEYS[1:])
        metric = record.get("evaluation_result_id") or task
        if wanted.metric is not None and wanted.metric not in (metric, task):
            continue
        where = source.where(k)
        key = (str(model), str(task))
        if metrics.setdefault(key, metric) != metric:
            raise DataError(
                f"{where}: {task!r} of {model!r} has several metrics, {metrics[key]!r} and {metric!r}; "
                "say which (--metric NAME)"
            )
        if not isinstance(evaluation, dict):
            raise DataError(f"{where}: 'evaluation' must be an object, got {evaluation!r}")
        found.append(
            Cell(
                row=str(model),
                col=keyed(str(task), sample, _content(record)),
                value=None if record.get("error") else score(evaluation.get("score"), where),
                usage=_usage(record),
            )
        )
    if not found:
        raise DataError(f"{source.path} has no metric {wanted.metric!r}")
    return ScoredCells(tuple(numbered(found)), source.path)


def _content(record: dict[str, Any]) -> str | None:
    """Return the hash of the sample: the one it carries, or that of its input and references."""
    given = record.get("sample_hash")
    if given:
        return digest(given)
    shown = record.get("input")
    if not isinstance(shown, dict):
        return None
    return digest([shown.get("raw"), shown.get("reference")])


def _usage(record: dict[str, Any]) -> Usage:
    tokens = record.get("token_usage") or {}
    latency = amount((record.get("performance") or {}).get("latency_ms"))
    return Usage(
        amount(tokens.get("input_tokens")),
        amount(tokens.get("output_tokens")),
        None if latency is None else latency / _MILLISECONDS,
    )


FORMAT = FileFormat(
    name="every-eval-ever",
    holds="cells",
    words="JSON lines with model_id, evaluation_name, sample_id, evaluation",
    fits=fits,
    read=read,
    pattern="*.jsonl",
)
