"""Streams of labelled entries: reading them line by line, the journal, and the loop of ``entrywise online``."""

from __future__ import annotations

import csv
import fcntl
import json
import math
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entrywise.cli._shared import Format, emit
from entrywise.estimators.stream import BinaryStream, label_of, truth
from entrywise.exceptions import DataError, ParameterError, StoreError
from entrywise.layouts import COL, ROW, VALUE
from entrywise.tables import TableLines

Say = Callable[[str], None]
_WRITTEN: dict[str, bool | int] = {"true": True, "false": False, "1": 1, "+1": 1, "0": 0, "-1": -1}
COLUMNS = ("row", "col", "prediction", "label", "mistake")


@dataclass(frozen=True)
class Vote:
    """One line of the stream; `label` is None where only a prediction is wanted."""

    line: int
    row: str
    col: str
    label: bool | None


def settings_of(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the parameters written as name=value; values are read as JSON where they are JSON."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ParameterError(f"--param must be name=value, got {pair!r}")
        found[name.strip().replace("-", "_")] = _value(text)
    return found


def _value(text: str) -> Any:
    for read in (json.loads, float):  # .5 is a number, though not to JSON
        try:
            return read(text)
        except ValueError:
            pass
    return text


def labels_of(text: str | None) -> dict[str, bool] | None:
    """Return which label is positive, for ``--labels yes,no``."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or names[0] == names[1] or not all(names):
        raise ParameterError(
            f"--labels must be two different labels, the positive first, got {text!r}"
        )
    return {names[0]: True, names[1]: False}


def read_votes(
    lines: Iterable[bytes],
    labels: dict[str, bool] | None,
    complain: Callable[[str], None],
    source: str = "the input",
) -> Iterator[Vote]:
    """Yield the votes of JSON lines, or of a table with a header; `complain` hears of every bad line and may raise."""
    reader: _Records | None = None
    for number, line in enumerate(_whole(lines), start=1):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8-sig")
            if reader is None:
                reader = _Json(labels) if text.lstrip()[:1] in ("{", "[") else _Csv(labels, text)
                if isinstance(reader, _Csv):
                    continue
            row, col, label = reader.vote(text)
            for name in (row, col):
                name.encode()  # half a character would not come out again
        except UnicodeDecodeError as error:
            complain(f"line {number}: must be UTF-8 text, byte {error.start} is not")
        except UnicodeEncodeError:
            complain(f"line {number}: a name must be text, this one has half a character")
        except json.JSONDecodeError as error:
            complain(f"line {number}: must be JSON, {error.msg.lower()} at column {error.colno}")
        except DataError as error:
            if reader is None:  # no header: nothing below can be read
                raise DataError(f"{source} line {number}: {error}") from None
            complain(f"line {number}: {error}")
        except (ValueError, RecursionError) as error:
            complain(f"line {number}: must be JSON of reasonable size, {error}")
        else:
            yield Vote(number, row, col, label)


class _Records:
    """What JSON lines and tables share: which labels are positive."""

    def __init__(self, labels: dict[str, bool] | None) -> None:
        self._labels = labels
        self._negative: int | None = None

    def vote(self, text: str) -> tuple[str, str, bool | None]:
        """Return row, column and label of one line."""
        raise NotImplementedError

    def _label(self, given: Any) -> bool | None:
        if given is None:
            return None
        if self._labels is not None:
            if not isinstance(given, (str, int, float)) or str(given) not in self._labels:
                known = " or ".join(map(repr, self._labels))
                raise DataError(f"a label must be {known}, got {given!r}")
            return self._labels[str(given)]
        positive = truth(given) > 0
        if not positive and not isinstance(given, bool):
            if self._negative not in (None, int(given)):
                raise DataError(
                    f"a stream has two labels, this is a third: {given!r} beside {self._negative}"
                )
            self._negative = int(given)
        return positive


class _Json(_Records):
    """One JSON object a line."""

    def vote(self, text: str) -> tuple[str, str, bool | None]:
        record = json.loads(text)
        if not isinstance(record, dict) or "row" not in record or "col" not in record:
            raise DataError('a line must be an object with "row" and "col"')
        row, col = (label_of(record[key], key) for key in ("row", "col"))
        return row, col, self._label(record.get("label"))


class _Csv(_Records):
    """One line of a table with a header; an empty label is wanted."""

    def __init__(self, labels: dict[str, bool] | None, header: str) -> None:
        super().__init__(labels)
        self._lines = TableLines(header, (("row", ROW), ("col", COL), ("label", VALUE)))

    def vote(self, text: str) -> tuple[str, str, bool | None]:
        row, col, label = self._lines.cells(text)
        return row, col, self._label(self._written(label))

    def _written(self, label: str) -> Any:
        if not label:
            return None
        if self._labels is not None:
            return label
        return _WRITTEN.get(label.lower(), label)


def _whole(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines; where the input breaks off, say after which line."""
    read = 0
    try:
        for line in lines:
            read += 1
            yield line
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"the input breaks off after line {read}, is it whole? {error}") from None


class Journal:
    """Labels on disk, one JSON line each, only ever appended to; safe before they are answered.

    A last line without its end was never answered: it is cut off when the journal is opened.
    """

    def __init__(self, path: Path, say: Say) -> None:
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise StoreError(
                f"{path} is in use by another process; give each its own journal"
            ) from None
        self._file.seek(0)
        data = self._file.read()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            say(
                f"{path}: the last line was cut short by an interruption; it was never answered and is left out"
            )
            self._file.truncate(end)
        self.votes: list[Vote] = []

        def complain(words: str) -> None:
            raise DataError(f"{path} {words}; it must be a journal written by entrywise online")

        for vote in read_votes(data[:end].splitlines(), None, complain, str(path)):
            if vote.label is None:
                complain(f"line {vote.line}: has no label")
            self.votes.append(vote)

    def append(self, votes: Iterable[Vote]) -> None:
        """Write labels and return when they are safely on disk."""
        text = "".join(
            json.dumps({"row": v.row, "col": v.col, "label": v.label}) + "\n" for v in votes
        )
        self._file.write(text.encode("utf-8"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file and give up the lock."""
        self._file.close()


class Replies:
    """Prints predictions as they come: JSON lines, CSV, or a table at the end."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._rows: list[tuple[Any, ...]] = []
        self._csv = csv.writer(sys.stdout, lineterminator="\n")
        if format is Format.csv:
            self._csv.writerow(COLUMNS)

    def write(self, votes: list[Vote], predictions: list[bool]) -> None:
        """Print one line a vote, and see that it leaves."""
        for vote, said in zip(votes, predictions, strict=True):
            mistake = None if vote.label is None else vote.label != said
            row = (vote.row, vote.col, said, vote.label, mistake)
            if self._format is Format.json:
                record = {k: x for k, x in zip(COLUMNS, row, strict=True) if x is not None}
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
            elif self._format is Format.csv:
                self._csv.writerow(
                    ["" if x is None else str(x).lower() if isinstance(x, bool) else x for x in row]
                )
            else:
                self._rows.append(tuple("" if x is None else x for x in row))
        sys.stdout.flush()

    def end(self) -> None:
        """Print the table, if it is one."""
        if self._format is Format.table:
            emit(COLUMNS, self._rows, self._format, title="Predictions")


class Repeats:
    """Counts labels of entries that had one before, and those that contradict it."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], bool | None] = {}
        self.repeats = self.contradictions = 0

    def see(self, votes: Iterable[Vote]) -> None:
        """Note the labels."""
        for vote in votes:
            entry = vote.row, vote.col
            if entry in self._labels:
                self.repeats += 1
                self.contradictions += self._labels[entry] is not vote.label
            self._labels[entry] = vote.label


def batches(votes: Iterable[Vote], size: int) -> Iterator[list[Vote]]:
    """Yield runs of at most `size` votes that all have a label, or all have none; those before an error come first."""
    batch: list[Vote] = []
    source, error = iter(votes), None
    while True:
        try:
            vote = next(source)
        except StopIteration:
            break
        except Exception as trouble:  # raised below, once what came before it is handed on
            error = trouble
            break
        if batch and (len(batch) >= size or (vote.label is None) != (batch[0].label is None)):
            yield batch
            batch = []
        batch.append(vote)
        if size == 1:
            yield batch
            batch = []
    if batch:
        yield batch
    if error is not None:
        raise error


def summary(model: BinaryStream) -> str:
    """Return the live report in a sentence: mistakes so far, against the best learner's, and the bound.

    A bound that says nothing says so, and what is known instead stands before it.
    """
    report = model.state.report
    words = f"{model.mistakes:,} mistakes in {model.trials:,} labels, {len(model.rows):,} rows x {len(model.cols):,} columns"
    if "regret" in report:
        words += f"; {_against_the_best(report['regret'], report['best_learner'])}"
    bound = report.get("bound")
    if bound is None or not math.isfinite(bound):
        return words
    assumes = report.get("bound_assumes")
    words += f"; bound {bound:,.0f}" + (f", if {assumes}" if assumes else "")
    if assumes and model.mistakes > bound:
        return words + ": so none does"
    if report["bound_is_vacuous"]:
        return words + " (vacuous: it says nothing here, being not below the number of labels)"
    return words


def _against_the_best(regret: int, learner: str) -> str:
    if regret > 0:
        return f"{regret:,} more than its best single learner, {learner}"
    return f"{-regret:,} fewer than its best single learner, {learner}"


def after(batch: list[Vote], held: list[Vote], done: int, where: str, journal: str) -> list[Vote]:
    """Return the part of a batch that the journal does not hold yet; what it holds must be the same.

    `done` labels of the input came before this batch.
    """
    for k, vote in enumerate(batch):
        if done + k >= len(held):
            return batch[k:]
        was = held[done + k]
        if (was.row, was.col, was.label) != (vote.row, vote.col, vote.label):
            raise StoreError(
                f"{where} {vote.line} must be label {done + k + 1} of {journal}, which is ({was.row}, {was.col}, {was.label}); "
                "resume with the input that the journal came from"
            )
    return []
