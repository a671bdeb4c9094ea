"""Questions and answers as people write them: ids, labels, triples."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrywise.exceptions import TellError
from entrywise.frames import answer_lines, is_frame, make_frame
from entrywise.study.records import Blaming, Key, Leased, Record, Told
from entrywise.study.schema import GIVEN
from entrywise.study.tells import Tells


@dataclass(frozen=True, slots=True)
class Question:
    """One entry to measure.

    ``row`` and ``col`` are labels where the study has any, else numbers from 0; ``index`` is always (i, j).
    ``price`` is what the answer adds to the bill: 0 for all but one position of a unit.
    """

    id: str
    row: str | int
    col: str | int
    mode: str
    price: float
    index: tuple[int, int]
    unit: int | None = None
    arm: str | None = None
    probability: float | None = None
    plate: int | None = None
    well: str | None = None
    until: float = 0.0


class Asked(list[Question]):
    """Questions, and ``why`` fewer came than were wanted (None when enough did)."""

    why: str | None = None

    def to_frame(self, backend: str = "polars") -> Any:
        """Return them as a frame (polars, pandas or pyarrow) with an empty column ``value``: fill it in and tell it."""
        columns: dict[str, Any] = {
            name: [getattr(question, name) for question in self]
            for name in ("id", "row", "col", "mode", "price", "until")
        }
        columns["value"] = [float("nan")] * len(self)
        return make_frame(columns, backend)


def told_lines(answers: Any) -> list[Any]:
    """Return answers one by one: of a mapping by id, of a frame, or as they are."""
    if isinstance(answers, Mapping):
        return list(answers.items())
    return answer_lines(answers) if is_frame(answers) else list(answers)


@dataclass(frozen=True)
class Labels:
    """The names of rows and columns, both ways; and of values, where an answer is a class."""

    rows: Sequence[str] | None = None
    cols: Sequence[str] | None = None
    n_rows: int | None = None
    n_cols: int | None = None
    classes: Sequence[str] | None = None
    _codes: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    def row(self, i: int) -> str | int:
        """Return how row i is called."""
        return int(i) if self.rows is None else self.rows[i]

    def col(self, j: int) -> str | int:
        """Return how column j is called."""
        return int(j) if self.cols is None else self.cols[j]

    def number(self, value: Any) -> float:
        """Return an answer as a number: the place of a class by its name, where there are classes; NaN for one that failed."""
        if self.classes is None or value is None or failed(value):
            return number(value)
        if str(value) not in self.classes:
            raise TellError(
                f"an answer must be one of the classes {', '.join(self.classes)}, or 'failed'; got {value!r}"
            )
        return float(self.classes.index(str(value)))

    def value(self, number: float | None) -> Any:
        """Return an answer as people know it: a class by its name, else the number itself."""
        if self.classes is None or number is None:
            return number
        return self.classes[int(number)]

    def name(self, i: int, j: int) -> str:
        """Return how entry (i, j) is called in messages."""
        return f"({self.row(i)}, {self.col(j)})"

    def translate(self, words: str) -> str:
        """Return a plan's message with the entries it names called by their labels."""
        if self.rows is None and self.cols is None:
            return words
        return re.sub(
            r"\((\d+), (\d+)\)", lambda found: self.name(int(found[1]), int(found[2])), words
        )

    def index(self, row: Any, col: Any) -> tuple[int, int]:
        """Return (i, j) of an entry given by its labels, or by its numbers where there are none."""
        return self._axis("row", row, self.rows, self.n_rows), self._axis(
            "col", col, self.cols, self.n_cols
        )

    def _axis(self, axis: str, given: Any, names: Sequence[str] | None, size: int | None) -> int:
        word = "row" if axis == "row" else "column"
        if names is not None:
            if axis not in self._codes:
                self._codes[axis] = {name: k for k, name in enumerate(names)}
            found = self._codes[axis].get(str(given))
            if found is None:
                raise TellError(
                    f"no {word} is labelled {str(given)!r}; {_likely(names, str(given))}"
                )
            return found
        number = _whole(given)
        if number is None:
            raise TellError(
                f"the {word} must be a whole number, since this study has no labels, got {given!r}; "
                "give the number that study ask wrote"
            )
        if number < 0 or (size is not None and number >= size):
            raise TellError(
                f"the {word} must be in 0..{'' if size is None else size - 1}, got {number}; "
                "study extend adds more"
            )
        return number

    def lines(self, axis: str, given: Any) -> tuple[int, ...] | None:
        """Return the numbers of lines given by label, pattern or number, one or several; None is any."""
        if given is None:
            return None
        names, size = (self.rows, self.n_rows) if axis == "row" else (self.cols, self.n_cols)
        one = isinstance(given, str) or not isinstance(given, Iterable)
        found: set[int] = set()
        for each in [given] if one else given:
            hits = [] if names is None else matching(names, str(each))
            found |= set(hits or [self._axis(axis, each, names, size)])
        return tuple(sorted(found))

    def questions(self, leased: Leased, until: float) -> list[Question]:
        """Return leased questions one by one."""
        columns = (leased.batches, leased.positions, leased.rows, leased.cols, leased.price)
        lists = [column.tolist() for column in columns]
        return [
            Question(
                id=title((batch, position)),
                row=self.row(i),
                col=self.col(j),
                mode=str(leased.modes[k]),
                price=price,
                index=(i, j),
                unit=leased.unit[k],
                arm=leased.arm[k],
                probability=leased.probability[k],
                plate=leased.plate[k],
                well=leased.well[k],
                until=until,
            )
            for k, (batch, position, i, j, price) in enumerate(zip(*lists, strict=True))
        ]


def _whole(given: Any) -> int | None:
    """Return a whole number, given as one or as its text; None for anything else."""
    if isinstance(given, bool) or (isinstance(given, str) and not _WHOLE.fullmatch(given.strip())):
        return None
    try:
        number = int(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if isinstance(given, float) and given != number else number


def matching(names: Sequence[str], pattern: str) -> list[int]:
    """Return the numbers of labels that are `pattern`, or fit it as file names do.

    >>> matching(["gpt-1", "gpt-2", "llama"], "gpt-*")
    [0, 1]
    """
    if pattern in names:
        return [names.index(pattern)]
    return [k for k, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]


def _likely(names: Sequence[str], given: str) -> str:
    """Say what somebody may have meant."""
    close = difflib.get_close_matches(given, names[:10_000], n=3)
    if close:
        return f"is it {' or '.join(map(repr, close))}?"
    some = ", ".join(map(repr, names[:5]))
    return f"there are {some}{', ...' if len(names) > 5 else ''}"


def title(key: Key) -> str:
    """Return how people call a question.

    >>> title((3, 10)), title((-1, 4))
    ('3.10', 'known.4')
    """
    return f"{'known' if key[0] == GIVEN else key[0]}.{key[1]}"


_WHOLE = re.compile(r"-?[0-9]{1,18}")
_FAILED = re.compile(r"\s*failed\s*(?::\s*(?P<reason>.*?))?\s*", re.IGNORECASE | re.DOTALL)
_ID = re.compile(r"(known|[0-9]{1,15})\.([0-9]{1,15})")


def parse_id(text: Any) -> Key:
    """Return (batch, position) of a question's id.

    >>> parse_id("3.10")
    (3, 10)
    """
    found = _ID.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        shown = repr(text) if len(repr(text)) < 60 else repr(text)[:50] + "..."
        raise TellError(
            f"a question's id is a text such as '3.10', got {shown}; take it from the output of study ask"
        )
    batch = GIVEN if found[1] == "known" else int(found[1])
    return batch, int(found[2])


def failed(value: Any) -> bool:
    """Tell whether an answer says that the measurement failed."""
    return isinstance(value, str) and _FAILED.fullmatch(value) is not None


def number(value: Any) -> float:
    """Return an answer as a number, NaN for one that failed (None, or a text such as 'failed: the tip broke').

    >>> number("0.5"), number("failed"), number("failed: no signal")
    (0.5, nan, nan)
    """
    if value is None or failed(value):
        return float("nan")
    try:
        odd = isinstance(value, str) and ("_" in value or not value.isascii())
        if odd or isinstance(value, bool | np.bool_):
            raise ValueError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        hint = ", with a point and not a comma" if isinstance(value, str) and "," in value else ""
        raise TellError(f"an answer must be a number{hint}, or 'failed'; got {value!r}") from None
    if not np.isfinite(found):
        raise TellError(f"an answer must be finite, or 'failed'; got {value!r}")
    return found


def failed_because(value: Any) -> str | None:
    """Return why a measurement failed, where the answer says so.

    >>> failed_because("failed: no signal"), failed_because("failed"), failed_because(0.5)
    ('no signal', None, None)
    """
    found = _FAILED.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else found["reason"] or None


def parse(
    store: Tells,
    record: Record,
    labels: Labels,
    answers: Mapping[str, Any] | Iterable[Any],
    blame: Blaming,
) -> Told:
    """Return answers by columns; each is (id, value), (question, value), (row, col, value) or (id, row, col, value)."""
    items = list(answers.items()) if isinstance(answers, Mapping) else list(answers)
    at: list[tuple[int, int] | None] = []
    values: list[float] = []
    entries: dict[int, tuple[int, int]] = {}
    for k, item in enumerate(items):
        with _blamed(k, blame):
            if isinstance(item, str) or not hasattr(item, "__len__") or not 2 <= len(item) <= 4:
                raise TellError(f"an answer is (id, value) or (row, col, value), got {item!r}")
            head = item[0].id if isinstance(item[0], Question) else item[0]
            at.append(parse_id(head) if len(item) != 3 else None)
            if len(item) > 2:
                entries[k] = labels.index(*item[-3:-1])
            values.append(labels.number(item[-1]))
    if entries:
        _match(store, record, labels, at, entries, items, blame)
    found = np.array(at, np.int64).reshape(-1, 2)
    value = np.array(values, np.float64)
    missing = np.isnan(value)
    why = {int(k): failed_because(items[k][-1]) for k in np.flatnonzero(missing)}
    reasons = {k: words for k, words in why.items() if words is not None}
    return Told(found[:, 0], found[:, 1], value, missing, reasons)


def _match(
    store: Tells,
    record: Record,
    labels: Labels,
    at: list[tuple[int, int] | None],
    entries: Mapping[int, tuple[int, int]],
    items: Sequence[Any],
    blame: Blaming,
) -> None:
    """Find the question that each (row, col) means, and see that an id given beside it means the same one."""
    ks = list(entries)
    asked = store.entries_of(record.id, [at[k] for k in ks if at[k] is not None])  # type: ignore[misc]
    unsure = []
    for k in ks:
        here = at[k]
        entry = entries[k]
        ways = (entry, entry[::-1]) if record.symmetric else (entry,)
        if here is None or (asked.get(here) is not None and asked[here] not in ways):
            unsure.append(k)
    found = store.find(record, [entries[k] for k in unsure])
    several = record.params.get("target") is not None
    for k, (match, last) in zip(unsure, found, strict=True):
        name, here = labels.name(*entries[k]), at[k]
        with _blamed(k, blame):
            if here is not None:
                others = [*match, last] if last else match
                at[k] = _same_number(here, others, labels.name(*asked[here]), name)
            elif several:
                raise TellError(
                    f"this study has several instruments, and entry {name} may be meant for any; tell answers by id"
                )
            else:
                at[k] = _only_question(match, last, name)


def _same_number(here: Key, others: Sequence[Key], other: str, name: str) -> Key:
    """Return the question of entry `name` whose id is the number `here`: a spreadsheet turns 3.10 into 3.1."""
    match = [m for m in others if m[0] == here[0] and _as_number(m) == _as_number(here)]
    if len(match) != 1:
        raise TellError(
            f"question {here[0]}.{here[1]} is entry {other}, not {name}; is this the right study?"
        )
    return match[0]


def _only_question(match: Sequence[Key], last: Key | None, name: str) -> Key:
    """Return the open question of an entry, or the last one that was answered."""
    if len(match) > 1:
        raise TellError(f"entry {name} is asked {len(match)} times; tell its answers by id")
    if match:
        return match[0]
    if last is None:
        raise TellError(f"entry {name} was not asked; tell answers to open questions")
    return last


def _as_number(at: tuple[int, int]) -> float:
    return float(f"{at[0]}.{at[1]}")


class _blamed:
    """Puts the place an answer came from before what is wrong with it."""

    def __init__(self, k: int, blame: Blaming) -> None:
        self.k, self.blame = k, blame

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, TellError):
            raise TellError(f"{self.blame(self.k)}{error}") from None
