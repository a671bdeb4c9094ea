"""HELM: ``per_instance_stats.json`` of a run, with ``run_spec.json`` and ``instances.json`` beside it.

An object has ``instance_id, train_trial_index, stats``; a stat has a name and its mean. A run has dozens of them, so the
metric must be said. Trials are repeats; a perturbed instance is a sample of its own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from entrywise.exceptions import DataError
from entrywise.formats.cells import Cell, ScoredCells, Usage, amount, digest, keyed, score
from entrywise.formats.source import FileFormat, Source, Wanted, chosen
from entrywise.tables import boundary

_INPUT, _OUTPUT = "num_prompt_tokens", ("num_completion_tokens", "num_output_tokens")
_SECONDS = "inference_runtime"
_MODEL = re.compile(r"(?:^|[,:])model=([^,]+)")


def fits(source: Source) -> bool:
    """Tell whether a file holds the statistics of a HELM run."""
    return source.has("instance_id", "train_trial_index", "stats")


def read(source: Source, wanted: Wanted) -> ScoredCells:
    """Return its cells for one metric, such as ``exact_match``; a statistic that counts nothing is a failed cell."""
    task, model = _run(source, wanted.model)
    contents = _contents(source.folder)
    records = source.records
    stats = [_stats(source, k) for k in range(len(records))]
    known = sorted({name for one in stats for name in one})
    metric = chosen(wanted.metric, known, source.path)
    found = []
    for k, record in enumerate(records):
        instance, trial = source.need(k, "instance_id", "train_trial_index")
        sample = _sample(str(instance), record.get("perturbation"))
        found.append(
            Cell(
                row=model,
                col=keyed(task, sample, contents.get(sample)),
                value=score(stats[k].get(metric), source.where(k)),
                repeat=int(trial),
                usage=_usage(stats[k]),
            )
        )
    return ScoredCells(tuple(found), source.path)


def _stats(source: Source, k: int) -> dict[str, float | None]:
    """Return the mean of each statistic by name, None where it counts nothing."""
    found: dict[str, float | None] = {}
    with boundary(source.where(k), "HELM's statistics of an instance"):
        for stat in source.need(k, "stats")[0]:
            count = stat.get("count", 0)
            found[stat["name"]["name"]] = stat["sum"] / count if count else None
    return found


def _usage(stats: dict[str, float | None]) -> Usage:
    output = next((stats[name] for name in _OUTPUT if stats.get(name) is not None), None)
    return Usage(amount(stats.get(_INPUT)), amount(output), amount(stats.get(_SECONDS)))


def _run(source: Source, otherwise: str | None) -> tuple[str, str]:
    """Return (task, model): from the run's own description, or from the name of its folder, or as the caller says."""
    spec = source.folder / "run_spec.json"
    name = source.folder.name
    model = None
    if spec.exists():
        with boundary(str(spec), "HELM's description of a run"):
            said = json.loads(spec.read_text("utf-8"))
            name = said["name"]
            model = said["adapter_spec"].get("model")
    found = _MODEL.search(name)
    if model is None and found is not None:
        model = found[1]
    model = model or otherwise
    if model is None:
        raise DataError(
            f"{source.path}: neither run_spec.json nor the folder's name says the model; say it (--model NAME)"
        )
    return _MODEL.sub("", name).strip(":,"), model


def _sample(instance: str, perturbation: Any) -> str:
    if not perturbation:
        return instance
    name = perturbation.get("name") if isinstance(perturbation, dict) else perturbation
    return f"{instance}~{name}"


def _contents(folder: Path) -> dict[str, str]:
    """Return the hash of every instance's content, where the run kept its instances."""
    path = folder / "instances.json"
    if not path.exists():
        return {}
    with boundary(str(path), "HELM's instances"):
        return {
            _sample(one["id"], one.get("perturbation")): digest([one["input"], one["references"]])
            for one in json.loads(path.read_text("utf-8"))
        }


FORMAT = FileFormat(
    name="helm",
    holds="cells",
    words="per_instance_stats.json with instance_id, train_trial_index, stats",
    fits=fits,
    read=read,
    pattern="per_instance_stats.json",
)
