"""lm-evaluation-harness: a study chooses the documents (``--samples``) and takes the scores back (``--log_samples``)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable

from entrywise.exceptions import DataError
from entrywise.formats import ScoredCells, load, parted
from entrywise.integrations.telling import Kept, tell_cells
from entrywise.study import Study

LEASE = 86400.0  # seconds that a run may take
_DOCUMENT = re.compile(r"(.+):(0|[1-9][0-9]*)", re.DOTALL)


def ask(
    study: Study,
    model: str,
    *,
    limit: int | None = None,
    worker: str | None = None,
    lease: float = LEASE,
) -> str:
    """Return the JSON for ``lm_eval --samples``: the documents that are worth their price for this model.

    Columns of the study are called ``task:document`` or ``task:document#hash``, as ``entrywise convert DIR --to columns``
    writes them. ``{}`` means that nothing is to be run now.
    """
    cols = [col for col in study.labels.cols or () if _document(col) is not None]
    if not cols:
        raise DataError(
            f"study {study.name!r} has no column such as 'gsm8k:3'; take those of a run: entrywise convert DIR --to columns"
        )
    asked = study.ask(limit, worker, lease, rows=[model], cols=cols)
    return samples(str(question.col) for question in asked)


def samples(cols: Iterable[str]) -> str:
    """Return columns as the JSON for ``--samples``.

    >>> samples(["gsm8k:3#0123456789ab", "gsm8k:0", "arc:7"])
    '{"gsm8k": [0, 3], "arc": [7]}'
    """
    found: dict[str, set[int]] = {}
    for col in cols:
        document = _document(col)
        if document is None:
            raise DataError(f"column {col!r} must be called task:document, as lm-eval counts them")
        task, number = document
        found.setdefault(task, set()).add(number)
    return json.dumps({task: sorted(numbers) for task, numbers in found.items()})


def _document(col: str) -> tuple[str, int] | None:
    found = _DOCUMENT.fullmatch(parted(col)[0])
    return None if found is None else (found[1], int(found[2]))


def tell(
    study: Study,
    path: str | os.PathLike[str],
    *,
    metric: str | None = None,
    model: str | None = None,
    worker: str | None = None,
) -> Kept:
    """Tell a study what a run found: a file ``samples_*.jsonl``, or the folder of ``--output_path``."""
    cells = load(path, "lm-eval", metric=metric, model=model)
    assert isinstance(cells, ScoredCells)
    return tell_cells(study, cells, worker)
