"""Who answers in ``entrywise study work``, and the bar that shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from entrywise.cli._study_results import function_at
from entrywise.compiling import NOTICE
from entrywise.exceptions import OracleError, ParameterError
from entrywise.fragments import unit_of
from entrywise.study.work import Work, work

_EVERY = 0.5  # seconds between looks at the database for the bar


def answering(
    study: Any,
    oracle: str | None,
    command: str | None,
    *,
    entry: bool,
    by: str,
    timeout: float,
    retries: int,
) -> Callable[..., Any]:
    """Return the oracle that a person named; entries are called by their labels, where there are any."""
    from entrywise.oracles import CommandOracle, FunctionOracle

    if (oracle is None) == (command is None):
        raise ParameterError(
            "say who answers: --oracle module:function, or --command 'judge {row} {col}'"
        )
    if by not in ("label", "index"):
        raise ParameterError(f"--by must be label or index, got {by!r}")
    labels = study.labels
    named = by == "label"
    names: dict[str, Any] = {
        "row_labels": labels.rows if named else None,
        "col_labels": labels.cols if named else None,
    }
    if command is not None:
        return CommandOracle(command, timeout=timeout, retries=retries, **names)
    assert oracle is not None
    call = function_at(oracle)
    return FunctionOracle(call, **names) if entry else call


def watched(study: Any, oracle: Callable[..., Any], **how: Any) -> Work:
    """Work on a study with a bar: answered, spent of the budget, the expected error, the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[words]}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, disable=not console.is_terminal)
    with NOTICE.unsaid(), bar:
        now = study.status()
        task = bar.add_task("", total=now["budget"], completed=now["spent"], words=_words(now))
        last = time.monotonic()

        def tick(_: Work) -> None:
            nonlocal last
            if time.monotonic() - last > _EVERY and not bar.disable:
                last = time.monotonic()
                state = study.status()
                bar.update(task, completed=state["spent"], words=_words(state))

        try:
            return work(study, oracle, progress=tick, **how)
        except Exception as error:
            if not getattr(error, "__notes__", None):
                raise
            # after several in a row: a person is told in a sentence
            words = f"the oracle raised {type(error).__name__}: {error}".splitlines()[0]
            if isinstance(error, OracleError):  # our own words
                words = str(error)
            raise OracleError(
                f"{words}; {error.__notes__[-1]}, and its questions were given back"
            ) from error


def _words(now: dict[str, Any]) -> str:
    spent = f"{now['spent']:g}"
    if now["budget"] is not None:
        spent += f" of {now['budget']:g}"
    words = f"{now['answered']} answered, {spent}{unit_of(now['currency'])} spent"
    if now["expected_error"] is not None:
        words += f", expected error {now['expected_error']:.3g}"
    return words
