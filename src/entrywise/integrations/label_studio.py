"""Label Studio: the items whose label is worth most as tasks with a priority, and its annotations back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from entrywise.apply.crowd import next_labels
from entrywise.exceptions import DataError
from entrywise.formats import Annotations, load
from entrywise.formats.label_studio import task_of

PRIORITY, GAIN = (
    "priority",
    "gain",
)  # fields of a task's data: 1 is the first, and what its label is worth


def next_tasks(
    answers: Annotations,
    limit: int = 50,
    *,
    items: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> str:
    """Return the items to label next as tasks for its import, each with a ``priority`` to sort by in the Data Manager.

    Parameters
    ----------
    answers : Annotations
        The labels so far.
    limit : int
        At most so many tasks; an item is one task.
    items : mapping of items to what annotators see of them, optional
        Those that may be labelled, new ones too, with the fields of their ``data`` (text, image, ...).
    options
        Of :func:`entrywise.apply.crowd.next_labels`: offered, prices, classes, gold, repeats.
    """
    told = next_labels(
        answers.items,
        answers.workers,
        answers.labels,
        limit=limit,
        among=None if items is None else list(items),
        **options,
    )
    best: dict[str, float] = {}
    for item, gain in zip(told.item.tolist(), told.gain.tolist(), strict=True):
        best.setdefault(str(item), float(gain))
    tasks = []
    for place, (item, gain) in enumerate(best.items(), start=1):
        shown = {} if items is None else dict(items[item])
        tasks.append(task_of(item, {**shown, PRIORITY: place, GAIN: gain}))
    return json.dumps(tasks, indent=1, ensure_ascii=False) + "\n"


def read_annotations(path: str | os.PathLike[str], control: str | None = None) -> Annotations:
    """Return who gave which label to what, from its JSON export; `control` names the tag where there are several."""
    found = load(path, "label-studio", metric=control)
    if not isinstance(found, Annotations) or not len(found):
        raise DataError(f"{os.fspath(path)} holds no annotation yet")
    return found
