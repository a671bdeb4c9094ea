"""What the fuzzers share: a clock, outcomes, generated tables in every dialect, and damage."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrywise.exceptions import EntrywiseError

HANG, PATIENCE = 10, 60  # seconds of the processor, and on the wall where others use it too
EQUAL, REFUSED, WRONG, TRACE, SLOW, OTHER = "equal", "refused", "WRONG", "TRACEBACK", "HANG", "read"
HARM = (WRONG, TRACE, SLOW)


@dataclass(frozen=True)
class Outcome:
    """What became of one input: a word, and what to print where it did harm."""

    kind: str
    words: str = ""


class Hang(BaseException):
    """Took longer than HANG seconds."""


@contextlib.contextmanager
def clock() -> Iterator[None]:
    """Raise Hang after HANG seconds of this process's own time, or PATIENCE seconds on the wall."""

    def ring(*_: Any) -> None:
        raise Hang

    kinds = (
        (signal.ITIMER_VIRTUAL, signal.SIGVTALRM, HANG),
        (signal.ITIMER_REAL, signal.SIGALRM, PATIENCE),
    )
    before = [signal.signal(number, ring) for _, number, _ in kinds]
    for timer, _, seconds in kinds:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(kinds, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def at_leisure() -> Iterator[None]:
    """Let the clock wait much longer."""
    global HANG, PATIENCE
    before = HANG, PATIENCE
    HANG = PATIENCE = 600
    try:
        yield
    finally:
        HANG, PATIENCE = before


def tried(call: Callable[[], Any]) -> tuple[Any, Outcome | None]:
    """Return what a call gives, or the outcome where it gives nothing."""
    try:
        with clock(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(), None
    except EntrywiseError as error:
        if "\n" in str(error):
            return None, Outcome(TRACE, f"an error of several lines: {error}")
        return None, Outcome(REFUSED, str(error))
    except Hang:
        return None, Outcome(SLOW, "over 10 s")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None, Outcome(TRACE, traceback.format_exc(limit=-4))


# Tables


@dataclass(frozen=True)
class Made:
    """A generated table: known entries by place, labels or None, and how to write it."""

    X: Any
    rows: list[str] | None
    cols: list[str] | None
    long: bool
    decimals: int
    names: tuple[str, str, str]
    options: dict[str, str] = field(default_factory=dict)


LETTERS = "abcdefghij"
ODD = (
    *("c1cc[nH]c1", "[/x]", "=1+1", "a, b", "a;b", 'say "x"', "é ü", "x|y", "\x1b[31mred", "007"),
    *("NA", "two\nlines", "-", "@x", "1_0"),
)
NAMES = (
    ("row", "col", "value"),
    ("user", "item", "rating"),
    ("compound", "target", "affinity"),
    ("userId", "movieId", "rating"),
    ("who", "what", "v"),
    ("a", "b", "c"),
    ("drug", "gene", "y"),
)
CORNERS = ["compound", "id", "", "row", "name", "thing", "Compound ID", "p"]


def texts(rng: np.random.Generator, count: int) -> list[str]:
    """Return unique labels: plain, odd or numbers."""
    kind = rng.integers(4)
    if kind == 0:
        start, step = int(rng.integers(0, 5000)), int(rng.integers(1, 4))
        return [str(start + step * k) for k in range(count)]
    if kind == 1:
        numbers = rng.choice(10**6, count, replace=False)
        return [str(k) for k in numbers.tolist()]
    found = [f"{LETTERS[k % 10]}{k}" for k in range(count)]
    if kind == 3:
        for k in rng.choice(count, min(count, 3), replace=False).tolist():
            found[k] = ODD[int(rng.integers(len(ODD)))] + ("" if rng.random() < 0.3 else str(k))
    return (
        list(dict.fromkeys(found)) if len(set(found)) == count else [f"r{k}" for k in range(count)]
    )


def table(rng: np.random.Generator) -> Made:
    """Return a table with gaps, of whole or decimal numbers."""
    m, n = int(rng.integers(1, 14)), int(rng.integers(1, 8))
    decimals = int(rng.integers(0, 4))
    if decimals == 0:
        X = rng.integers(*((1, 6) if rng.random() < 0.5 else (-50, 500)), (m, n)).astype(float)
    else:
        X = np.round(rng.standard_normal((m, n)) * 10.0 ** rng.integers(-1, 4), decimals) + 0.0
    X[rng.random((m, n)) < rng.choice([0.0, 0.1, 0.4])] = np.nan
    X[int(rng.integers(m)), int(rng.integers(n))] = float(rng.integers(1, 6))
    long = bool(rng.random() < 0.45)
    rows = texts(rng, m) if long or rng.random() < 0.6 else None
    cols = texts(rng, n) if long or rng.random() < 0.85 else None
    return Made(X, rows, cols, long, decimals, NAMES[int(rng.integers(len(NAMES)))])


def truth(made: Made) -> dict[tuple[str, str], float]:
    """Return the known entries by label, or by number where there is none."""
    i, j = np.nonzero(~np.isnan(made.X))
    row = made.rows or [str(k) for k in range(made.X.shape[0])]
    col = made.cols or [str(k) for k in range(made.X.shape[1])]
    return {
        (row[a], col[b]): float(made.X[a, b]) for a, b in zip(i.tolist(), j.tolist(), strict=True)
    }


def known(seen: Any) -> dict[tuple[str, str], float]:
    """Return what was read in the same form."""
    row = seen.row_labels or [str(k) for k in range(seen.shape[0])]
    col = seen.col_labels or [str(k) for k in range(seen.shape[1])]
    places = zip(seen.rows.tolist(), seen.cols.tolist(), seen.values.tolist(), strict=True)
    return {(row[a], col[b]): float(x) for a, b, x in places}


def records(rng: np.random.Generator, made: Made) -> tuple[list[list[Any]], bool]:
    """Return the lines of a table, the header first where it has one, and whether it does."""
    gap = None
    if made.long:
        lines: list[list[Any]] = [[*key, x] for key, x in truth(made).items()]
        order = rng.permutation(len(lines))
        lines = [lines[k] for k in order]
        headed = bool(rng.random() < 0.8)
        if rng.random() < 0.3:
            lines = [[*line, int(rng.integers(10**9))] for line in lines]
            return ([[*made.names, "time"], *lines] if headed else lines), headed
        return ([list(made.names), *lines] if headed else lines), headed
    lines = [[gap if np.isnan(x) else float(x) for x in row] for row in made.X]
    if made.rows is not None:
        lines = [[label, *line] for label, line in zip(made.rows, lines, strict=True)]
    if made.cols is None:
        return lines, False
    corner = [CORNERS[int(rng.integers(len(CORNERS)))]] if made.rows is not None else []
    return [[*corner, *made.cols], *lines], True


def written(x: Any, decimals: int, mark: str) -> str:
    """Return a cell as text."""
    if x is None:
        return ""
    if isinstance(x, float):
        text = f"{x:.{decimals}f}" if decimals else f"{x:.0f}"
        return text.replace(".", mark)
    return str(x)


def dialect(rng: np.random.Generator, made: Made, lines: list[list[Any]]) -> tuple[str, bytes]:
    """Return a file name and the bytes of the table in some dialect of text."""
    separator = ",\t;|"[int(rng.integers(4))]
    parted = len(lines[0]) > 1  # one column of decimal commas is, byte for byte, two columns
    mark = "," if parted and separator != "," and rng.random() < 0.4 else "."
    gaps = ["", "", "NA", "nan", "?"][int(rng.integers(5))]
    cells = [
        [gaps if x is None else written(x, made.decimals, mark) for x in line] for line in lines
    ]
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    end = "\r\n" if rng.random() < 0.3 else "\n"
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end).writerows(cells)
    body = text.getvalue()
    if rng.random() < 0.2:
        body = body.removesuffix(end)
    coding = rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
    data = body.encode(str(coding))
    name = (
        "t.tsv"
        if separator == "\t" and rng.random() < 0.5
        else ["t.csv", "t.txt"][int(rng.integers(2))]
    )
    if rng.random() < 0.2:
        return name + ".gz", gzip.compress(data, mtime=0)
    return name, data


# Damage


def damage(rng: np.random.Generator, data: bytes) -> bytes:
    """Return bytes with a few of them flipped, cut, doubled or made up."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(found) + 1))
        size = int(rng.integers(1, 1 + max(1, len(found) // 8)))
        match int(rng.integers(6)):
            case 0 if found:
                found[at % len(found)] = int(rng.integers(256))
            case 1:
                del found[at : at + size]
            case 2:
                found[at:at] = found[at : at + size]
            case 3:
                found[at:at] = rng.bytes(int(rng.integers(1, 5)))
            case 4:
                found[at:at] = [b",", b";", b'"', b"\n", b"\r", b"\0", b"1e999", b"inf", b"1_0"][
                    int(rng.integers(9))
                ]
            case _:
                del found[at:]
    return bytes(found)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Keep what compiled readers print off the screen."""
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
