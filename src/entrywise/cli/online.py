"""``entrywise online``: predict a stream of labelled entries, each before its label is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, say

Params = Annotated[
    list[str] | None,
    typer.Option(help="A parameter of the learner, gamma=0.5 say; may come again."),
]


def online(
    votes: Annotated[
        str,
        typer.Argument(
            help='JSON lines {"row": .., "col": .., "label": true}; .gz too, - is stdin.'
        ),
    ],
    learner: Annotated[
        str, typer.Option(help="An online method; see: entrywise methods online.")
    ] = "auto",
    param: Params = None,
    labels: Annotated[
        str | None, typer.Option(help="The two labels, positive first, if not true and false.")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(help="Append each label here, safe on disk before its answer.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="The input starts where the journal does: do not append it twice.")
    ] = False,
    snapshot: Annotated[
        Path | None, typer.Option(help="Start from this state if it exists; write it at the end.")
    ] = None,
    strict: Annotated[
        bool, typer.Option(help="Stop at the first bad line instead of leaving it out.")
    ] = False,
    every: Annotated[
        int, typer.Option(help="Say the running count of mistakes every so many labels.")
    ] = 10_000,
    format: FormatOption = Format.json,
) -> None:
    """Predict a stream of entries, learning each label after its prediction.

    One line out for each line in: JSON lines, CSV, or a table at the end, with row, col, prediction and, where a label was
    given, whether that was a mistake. A line without a label is predicted and not learnt. Words go to stderr. With
    --journal, labels survive a kill: start again with the same journal and new lines, or the same input and --resume.

    Example: entrywise online votes.jsonl --learner auto --journal votes.log > predictions.jsonl
    """
    import gzip
    import sys
    import threading
    from collections.abc import Iterable
    from contextlib import ExitStack

    from entrywise.cli import _votes
    from entrywise.estimators import BinaryStream
    from entrywise.exceptions import DataError, ParameterError

    settings, names = _votes.settings_of(param or ()), _votes.labels_of(labels)
    if resume and journal is None:
        raise ParameterError("--resume goes with --journal: it says where the input was left")
    if every < 1:
        raise ParameterError(f"--every must be at least 1, got {every}")
    source = "stdin" if votes == "-" else votes
    bad = 0

    def complain(words: str) -> None:
        nonlocal bad
        if strict:
            raise DataError(f"{source} {words}")
        bad += 1
        say(f"{source} {words}; left out", style="yellow")

    patience = threading.Timer(
        3.0, say, ["loading compiled code; the first time it is compiled, which takes a minute"]
    )
    patience.daemon = True
    with ExitStack() as stack:
        stack.callback(patience.cancel)
        lines: Iterable[bytes]
        if votes.endswith(".gz"):
            lines = stack.enter_context(gzip.open(votes, "rb"))
        else:
            lines = (
                sys.stdin.buffer if votes == "-" else stack.enter_context(Path(votes).open("rb"))
            )
        log = None
        if journal is not None:
            log = _votes.Journal(journal, say)
            stack.callback(log.close)
        if snapshot is not None and snapshot.exists() and not resume:
            model = BinaryStream.load(snapshot)
            say(f"{snapshot}: a state after {model.trials:,} labels")
        else:
            model = BinaryStream(learner, settings or None)
        if (model.learner, model.settings or {}) != (learner, settings):
            made = " ".join(
                [model.learner, *(f"--param {k}={v}" for k, v in (model.settings or {}).items())]
            )
            raise ParameterError(
                f"{snapshot} was made by --learner {made}; give the same, or another --snapshot"
            )
        patience.start()
        BinaryStream(learner, settings or None).follow([{"row": "", "col": ""}] * 2, [True, False])
        patience.cancel()
        repeats = _votes.Repeats()
        known = [] if log is None else log.votes
        if not resume and known:
            tail = known[model.trials if model.journalled is None else model.journalled :]
            model.follow([{"row": v.row, "col": v.col} for v in tail], [v.label for v in tail])
            repeats.see(known)
            say(f"{journal}: {len(tail):,} labels learnt again; {_votes.summary(model)}")
        held = known if resume else []
        out, said = _votes.Answers(format), model.trials
        if log is not None:
            model.journalled = 0 if resume else len(known)
        try:
            for batch in _votes.batches(
                _votes.read_votes(lines, names, complain), 1 if votes == "-" else 1000
            ):
                where = [{"row": v.row, "col": v.col} for v in batch]
                if batch[0].label is None:
                    out.write(batch, model.predict(where).tolist())
                    continue
                if log is not None:
                    log.append(
                        _votes.after(batch, held, model.trials, f"{source} line", str(journal))
                    )
                predictions = model.follow(where, [v.label for v in batch]).tolist()
                if (
                    log is not None
                ):  # counted once learnt: interrupted in between, it is learnt again and not lost
                    model.journalled = (model.journalled or 0) + len(batch)
                out.write(batch, predictions)
                repeats.see(batch)
                if model.trials // every > said // every:
                    say(_votes.summary(model))
                said = model.trials
        finally:  # what was learnt is kept, also where a line ends it
            out.end()
            if snapshot is not None:
                model.save(snapshot)
    say(_votes.summary(model))
    if repeats.repeats:
        say(
            f"{repeats.repeats:,} labels of entries that had one before, {repeats.contradictions:,} of them contradictory"
        )
    if bad:
        say(f"{bad:,} bad lines were left out", style="yellow")
