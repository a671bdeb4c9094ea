"""Inspect: logs of evaluations (``.eval`` or JSON), read through its own dataframe; needs the extra ``inspect``.

A cell is a model, a task's sample and an epoch (its repeat). A sample with an error is failed, whatever it was scored.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells, Usage, amount, digest, keyed, score
from entrywise.formats.source import FileFormat, Source, Wanted, chosen
from entrywise.tables import boundary, contents

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partly, incorrect, no answer


def fits(source: Source) -> bool:
    """Tell whether a file is a log of Inspect."""
    if source.packed:
        with boundary(source.path, "a zip file"):
            names = zipfile.ZipFile(io.BytesIO(contents(source.path))).namelist()
        return "header.json" in names or "_journal/start.json" in names
    if not source.has("version", "status", "eval"):
        return False
    about = source.records[0]["eval"]
    return isinstance(about, dict) and "task" in about


def read(source: Source, wanted: Wanted) -> ScoredCells:
    """Return its cells; a metric is the name of a scorer."""
    try:
        from inspect_ai.analysis import EvalColumn, SampleColumn, samples_df
    except ImportError:
        raise DataError(
            f"{source.path}: reading Inspect's logs needs an extra; pip install 'entrywise[inspect]'"
        ) from None
    columns = [
        EvalColumn("model", path="eval.model", required=True),
        EvalColumn("task", path="eval.task", required=True),
        SampleColumn("id", path="id", required=True, type=str),
        SampleColumn("epoch", path="epoch", required=True),
        SampleColumn("content", path=content, full=True),
        SampleColumn("scored", path=_scored, full=True),
        SampleColumn("usage", path=_usage, full=True),
        SampleColumn("failed", path=_failed, full=True),
        SampleColumn("seconds", path="total_time"),
    ]
    with boundary(source.path, "a log of Inspect"):
        frame = samples_df(source.path, columns, quiet=True)
    lines = frame.to_dict("records")
    known = list(dict.fromkeys(name for one in lines for name in json.loads(one["scored"])))
    metric = chosen(wanted.metric, known, source.path, "metric") if known or wanted.metric else ""
    return ScoredCells(tuple(_cell(source, one, metric) for one in lines), source.path)


def _cell(source: Source, line: dict[str, Any], metric: str) -> Cell:
    scores = json.loads(line["scored"])
    input_tokens, output_tokens = json.loads(line["usage"])
    where = f"{source.path} sample {line['id']}"
    return Cell(
        row=str(line["model"]),
        col=keyed(str(line["task"]), line["id"], line["content"]),
        value=None if line["failed"] else scored(scores.get(metric), where),
        repeat=int(line["epoch"]) - 1,
        usage=Usage(input_tokens, output_tokens, amount(line["seconds"])),
    )


def content(sample: Any) -> str:
    """Return the hash of what a sample holds: its input, choices and target."""
    given = sample.input
    shown = given if isinstance(given, str) else [[part.role, part.text] for part in given]
    target = sample.target
    targets = [target] if isinstance(target, str) else list(target)
    return digest([shown, list(sample.choices or []), targets])


def scored(value: Any, where: str) -> float | None:
    """Return a score as a number: Inspect's letters as it counts them, numbers as they are; else it is refused."""
    if isinstance(value, str):
        if value not in _LETTERS:
            raise DataError(
                f"{where}: a score must be a number or one of C, P, I, N, got {value!r}"
            )
        return _LETTERS[value]
    return score(value, where)


def _scored(sample: Any) -> str:
    found: Mapping[str, Any] = sample.scores or {}
    return json.dumps({name: one.value for name, one in found.items()})


def _failed(sample: Any) -> bool:
    return sample.error is not None


def _usage(sample: Any) -> str:
    used = list(sample.model_usage.values())
    tokens = [sum(one.input_tokens for one in used), sum(one.output_tokens for one in used)]
    return json.dumps(tokens if used else [None, None])


FORMAT = FileFormat(
    name="inspect",
    holds="cells",
    words="logs of Inspect, .eval or JSON",
    fits=fits,
    read=read,
    pattern="*.eval",
)
