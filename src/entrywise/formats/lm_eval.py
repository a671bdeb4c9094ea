"""lm-evaluation-harness: ``<model>/samples_<task>_<date>.jsonl``, written with ``--log_samples``.

A line has ``doc_id, doc_hash, filter, metrics`` and each metric's value under its own name. The task stands in the file's name,
the model in ``results_<date>.json`` beside it, or else in the name of the folder.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells, digest, keyed, numbered, score
from entrywise.formats.source import FileFormat, Source, Wanted, chosen
from entrywise.tables import boundary

_NAME = re.compile(r"samples_(.+)_(\d{4}-\d{2}-\d{2}T[\d.:-]+)\.jsonl(?:\.gz)?")


def fits(source: Source) -> bool:
    """Tell whether a file holds the harness's samples."""
    return source.has("doc_id", "filter", "metrics")


def read(source: Source, wanted: Wanted) -> ScoredCells:
    """Return its cells; a metric is called as in the harness's results, ``exact_match`` or ``exact_match,strict-match``."""
    task, date = _named(source)
    model = _model(source.folder, date)
    records = source.records
    known = list(dict.fromkeys(name for k in range(len(records)) for name in _metrics(source, k)))
    metric = _chosen(wanted.metric, known, source.path)
    name, _, _ = metric.partition(",")
    found = []
    for k, record in enumerate(records):
        if metric not in _metrics(source, k):
            continue
        doc, content = record["doc_id"], record.get("doc_hash")
        if not content and "doc" in record:
            content = digest(record["doc"])
        where = source.where(k)
        col = keyed(task, doc, content)
        found.append(Cell(model, col, score(record.get(name), where)))
    return ScoredCells(tuple(numbered(found)), source.path)


def _metrics(source: Source, k: int) -> list[str]:
    """Return the metrics of a line as the harness calls them in its results: ``acc,none``."""
    metrics, filter_ = source.need(k, "metrics", "filter")
    source.need(k, "doc_id")
    if not isinstance(metrics, list):
        raise DataError(f"{source.where(k)}: 'metrics' must be a list, got {metrics!r}")
    return [f"{name},{filter_}" for name in metrics]


def _chosen(given: str | None, known: list[str], where: str) -> str:
    """Return the metric meant; its filter may be left out where it has one only."""
    if given is None or "," in given:
        return chosen(given, known, where)
    same = [name for name in known if name.partition(",")[0] == given]
    return chosen(None if same else given, same or known, where)


def _named(source: Source) -> tuple[str, str]:
    found = _NAME.fullmatch(Path(source.path).name)
    if found is None:
        raise DataError(
            f"{source.path} must be called samples_TASK_DATE.jsonl, as lm-eval names it: its lines do not say the task"
        )
    return found[1], found[2]


def _model(folder: Path, date: str) -> str:
    """Return the model: the results of the same run say it, or else the folder's name does."""
    results = folder / f"results_{date}.json"
    if results.exists():
        with boundary(str(results), "JSON"):
            said: Any = json.loads(results.read_text("utf-8"))
            model = said.get("model_name")
        if isinstance(model, str) and model:
            return model
    return folder.name.replace("__", "/")  # the harness writes a/b as a__b


FORMAT = FileFormat(
    name="lm-eval",
    holds="cells",
    words="samples_TASK_DATE.jsonl with doc_id, filter, metrics",
    fits=fits,
    read=read,
    pattern="samples_*.jsonl",
)
