"""``entrywise online``: predict a stream of labelled entries, each before its label is learnt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrywise.cli._shared import Format, FormatOption, say
from entrywise.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    from entrywise.cli._votes import Journal, Vote
    from entrywise.estimators import BinaryStream

Params = Annotated[
    list[str] | None,
    typer.Option(help="A parameter of the learner, gamma=0.5 say; may come again."),
]
BATCH = 1000  # lines of a file learnt at a time; of stdin, one


def online(
    votes: Annotated[
        str,
        typer.Argument(
            help='JSON lines {"row": .., "col": .., "label": true}, or a table with row, col, label; .gz too, - is stdin.'
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
    skip: Annotated[int, typer.Option(help="Bad lines to leave out before stopping.")] = 10,
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
    from entrywise.cli import _votes

    settings, names = _votes.settings_of(param or ()), _votes.labels_of(labels)
    if resume and journal is None:
        raise ParameterError("--resume goes with --journal: it says where the input was left")
    if every < 1 or skip < 0:
        raise ParameterError(
            f"--every must be at least 1 and --skip not below 0, got {every} and {skip}"
        )
    bad = BadLines("stdin" if votes == "-" else votes, 0 if strict else skip)
    with ExitStack() as stack:
        lines = stack.enter_context(_opened(votes))
        log = None if journal is None else _votes.Journal(journal, say)
        if log is not None:
            stack.callback(log.close)
        model = _model(learner, settings, None if resume else snapshot)
        _warm_up(learner, settings)
        follower = Follower(model, log, str(journal), bad.source, resume)
        batches = _votes.batches(
            _votes.read_votes(lines, names, bad.complain, bad.source), 1 if votes == "-" else BATCH
        )
        _follow(follower, batches, format, every, snapshot)
    say(_votes.summary(model))
    follower.tell_repeats()
    bad.tell()


@dataclass
class BadLines:
    """Says what is wrong with a line and leaves it out, until there were too many."""

    source: str
    most: int
    count: int = 0

    def complain(self, words: str) -> None:
        """Say what is wrong; stop the stream where that has happened too often."""
        self.count += 1
        if self.count > self.most:
            more = f", after {self.most} other bad lines; --skip leaves out more"
            raise DataError(f"{self.source} {words}{more if self.most else ''}")
        say(f"{self.source} {words}; left out", style="yellow")

    def tell(self) -> None:
        """Say how many lines were left out."""
        if self.count:
            say(f"{self.count:,} bad lines were left out", style="yellow")


@dataclass
class Follower:
    """The learner beside its journal: what the journal holds is learnt first, what comes is written before it is learnt."""

    model: BinaryStream
    log: Journal | None
    journal: str
    source: str
    resume: bool
    repeats: Any = None
    held: list[Vote] = field(default_factory=list)

    def __post_init__(self) -> None:
        from entrywise.cli import _votes

        self.repeats = _votes.Repeats()
        known = [] if self.log is None else self.log.votes
        if self.resume:
            self.held = known
        elif known:
            self._learn_again(known)
        if self.log is not None:
            self.model.journalled = 0 if self.resume else len(known)

    def _learn_again(self, known: list[Vote]) -> None:
        from entrywise.cli import _votes

        model = self.model
        start = model.trials if model.journalled is None else model.journalled
        tail = known[start:]
        model.follow(_places(tail), [vote.label for vote in tail])
        self.repeats.see(known)
        say(f"{self.journal}: {len(tail):,} labels learnt again; {_votes.summary(model)}")

    def predict(self, batch: list[Vote]) -> list[bool]:
        """Return predictions of a batch, and learn its labels where it has them."""
        from entrywise.cli import _votes

        model = self.model
        if batch[0].label is None:
            return list(model.predict(_places(batch)).tolist())
        if self.log is not None:
            where = f"{self.source} line"
            self.log.append(_votes.after(batch, self.held, model.trials, where, self.journal))
        predictions = model.follow(_places(batch), [vote.label for vote in batch]).tolist()
        if self.log is not None:  # counted once learnt: interrupted in between, it is learnt again
            model.journalled = (model.journalled or 0) + len(batch)
        self.repeats.see(batch)
        return list(predictions)

    def tell_repeats(self) -> None:
        """Say how many labels were of entries that had one before."""
        seen = self.repeats
        if seen.repeats:
            say(
                f"{seen.repeats:,} labels of entries that had one before, {seen.contradictions:,} of them contradictory"
            )


def _follow(
    follower: Follower,
    batches: Iterable[list[Vote]],
    format: Format,
    every: int,
    snapshot: Path | None,
) -> None:
    """Predict and learn batch by batch; what was learnt is kept, also where a line ends it."""
    from entrywise.cli import _votes

    model = follower.model
    out, said = _votes.Replies(format), model.trials
    try:
        for batch in batches:
            out.write(batch, follower.predict(batch))
            if model.trials // every > said // every:
                say(_votes.summary(model))
            said = model.trials
    finally:
        out.end()
        if snapshot is not None:
            model.save(snapshot)


def _places(votes: Iterable[Vote]) -> list[dict[str, str]]:
    return [{"row": vote.row, "col": vote.col} for vote in votes]


@contextmanager
def _opened(path: str) -> Iterator[Iterable[bytes]]:
    """Open the input: a file, a packed one, or stdin."""
    import gzip
    import sys

    if path == "-":
        yield sys.stdin.buffer
        return
    with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as file:
        yield file


def _model(learner: str, settings: dict[str, Any], snapshot: Path | None) -> BinaryStream:
    """Return the learner, from its snapshot where there is one; that must be of the same make."""
    from entrywise.estimators import BinaryStream

    if snapshot is None or not snapshot.exists():
        return BinaryStream(learner, settings or None)
    model = BinaryStream.load(snapshot)
    say(f"{snapshot}: a state after {model.trials:,} labels")
    if (model.learner, model.settings or {}) != (learner, settings):
        given = [f"--param {key}={value}" for key, value in (model.settings or {}).items()]
        made = " ".join([model.learner, *given])
        raise ParameterError(
            f"{snapshot} was made by --learner {made}; give the same, or another --snapshot"
        )
    return model


def _warm_up(learner: str, settings: dict[str, Any]) -> None:
    """Load the compiled code before the first line, and say so where that takes long."""
    import threading

    from entrywise.estimators import BinaryStream

    words = "loading compiled code; the first time it is compiled, which takes a minute"
    patience = threading.Timer(3.0, say, [words])
    patience.daemon = True
    patience.start()
    try:
        trial = BinaryStream(learner, settings or None)
        trial.follow([{"row": "", "col": ""}] * 2, [True, False])
    finally:
        patience.cancel()
