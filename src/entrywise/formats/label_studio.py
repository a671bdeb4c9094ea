"""Label Studio: tasks with their annotations as JSON, out of its export and into its import.

A task has ``data`` and ``annotations``; an annotation has who made it (``completed_by``) and a ``result``, of which one choice or
rating is the label. Items are called by ``data.item`` where we wrote the task, else by the task's ``id``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from entrywise.exceptions import DataError
from entrywise.formats.cells import Annotations
from entrywise.formats.source import FileFormat, Source, Wanted, chosen
from entrywise.tables import whole

ITEM = "item"  # the field of a task's data that names our item
CONTROL, OBJECT = "label", "item"  # names of the tags in the labelling interface


def fits(source: Source) -> bool:
    """Tell whether a file holds tasks."""
    return source.has("data") and isinstance(source.records[0]["data"], dict)


def read(source: Source, wanted: Wanted) -> Annotations:
    """Return who gave which label to what; cancelled annotations are left out. A metric is the name of a control tag."""
    found = Annotations([], [], [], source.path)
    for k, task in enumerate(source.records):
        (data,) = source.need(k, "data")
        if not isinstance(data, dict):
            raise DataError(f"{source.where(k)}: 'data' must be an object, got {data!r}")
        item = data.get(ITEM, task.get("id"))
        if item is None:
            raise DataError(f"{source.where(k)} must have an id, or data.item")
        for annotation in task.get("annotations") or []:
            label = _label(annotation, wanted.metric, source.where(k))
            if label is None:
                continue
            found.items.append(str(item))
            found.workers.append(_worker(annotation, source.where(k)))
            found.labels.append(label)
    return found


def _label(annotation: Any, control: str | None, where: str) -> str | None:
    """Return the label that an annotation gives, None where it gives none."""
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
        raise DataError(f"{where}: an annotation must be an object with a result")
    if annotation.get("was_cancelled") or not annotation["result"]:
        return None
    parts: dict[str, list[str]] = {}
    for part in annotation["result"]:
        value = part.get("value") if isinstance(part, dict) else None
        label = None if value is None else _choice(value)
        if label is not None:
            parts.setdefault(str(part.get("from_name")), []).extend(label)
    if control is not None and control not in parts:
        return None
    labels = parts[chosen(control, list(parts), where)]
    if len(labels) != 1:
        raise DataError(f"{where}: an item has one label, this annotation gives {labels!r}")
    return labels[0]


def _choice(value: Mapping[str, Any]) -> list[str] | None:
    """Return the labels in the value of a result: choices or a rating; None for regions and texts."""
    if isinstance(value.get("choices"), list):
        return [str(choice) for choice in value["choices"]]
    if "rating" in value:
        return [str(value["rating"])]
    return None


def _worker(annotation: Mapping[str, Any], where: str) -> str:
    """Return who made an annotation: the e-mail address of a user, or the number."""
    by = annotation.get("completed_by")
    if isinstance(by, Mapping):
        by = by.get("email", by.get("id"))
    if by is None:
        raise DataError(f"{where}: an annotation must say who made it (completed_by)")
    return str(by)


def task_of(item: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a task for an item, with what the annotators see of it."""
    return {"data": {**(data or {}), ITEM: item}}


def annotation_of(worker: str, label: str) -> dict[str, Any]:
    """Return an annotation with one choice; Label Studio knows people by number or by e-mail address."""
    number = whole(worker)
    is_number = str(number) == worker
    part = {"from_name": CONTROL, "to_name": OBJECT, "type": "choices"}
    return {
        "completed_by": number if is_number else {"email": worker},
        "result": [{**part, "value": {"choices": [label]}}],
    }


def write(given: Annotations) -> str:
    """Return tasks with their annotations as JSON, for its import."""
    tasks = {item: task_of(item) | {"annotations": []} for item in given.items}
    for item, worker, label in zip(given.items, given.workers, given.labels, strict=True):
        tasks[item]["annotations"].append(annotation_of(worker, label))
    return json.dumps(list(tasks.values()), indent=1, ensure_ascii=False) + "\n"


FORMAT = FileFormat(
    name="label-studio",
    holds="annotations",
    words="JSON tasks with data and annotations",
    fits=fits,
    read=read,
    write=write,
)
