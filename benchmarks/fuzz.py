"""Every reader and command against generated and damaged files: nothing is read wrongly, nothing raises a traceback.

Tables are generated, written in a random dialect (separator, quotes, decimals, header, byte order mark, gzip, parquet,
workbook, long or wide, labels or none) and read back: equal to the generator's table, or refused. Bytes are then damaged
and the cells read compared with pandas, where pandas reads them. Whole commands run in this process.

Bars: >= 100,000 inputs and >= 2,000 commands, 0 tracebacks, 0 hangs over 10 s, 0 silent wrong reads. Every input has
its own seed: ``--only GENERATOR SEED`` runs one again. ``--quick``: a look, which the tests take.

To add a reader, append ``(share, name, function)`` to GENERATORS, the function ``(rng, folder) -> Outcome``; to add a command,
append a function ``(rng, folder) -> words`` to COMMANDS.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import entrywise as ew
from entrywise.exceptions import EntrywiseError

HANG, PATIENCE = 10, 60  # seconds of the processor, and on the wall where others use it too
EQUAL, REFUSED, WRONG, TRACE, SLOW, OTHER = "equal", "refused", "WRONG", "TRACEBACK", "HANG", "read"
SHOWN = 20  # harms printed in full
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


def how(rng: np.random.Generator, made: Made, headed: bool) -> dict[str, Any]:
    """Return options that say how a table is meant; none, half of the time."""
    if rng.random() < 0.5:
        return {}
    options = {"layout": "long" if made.long else "wide", "header": "yes" if headed else "no"}
    if not made.long:
        options["labels"] = "none" if made.rows is None else "first"
    elif headed:
        options |= dict(zip(("row", "col", "value"), made.names, strict=True))
    return options


def judged(made: Made, path: Path, options: dict[str, Any]) -> Outcome:
    """Read a table and compare it with what was generated."""
    seen, outcome = tried(lambda: ew.read(path, **options))
    if outcome is not None:
        return outcome
    want = truth(made)
    shape = made.X.shape
    if made.long:
        shape = (len({a for a, _ in want}), len({b for _, b in want}))
    if known(seen) == want and seen.shape == shape:
        return Outcome(EQUAL)
    return Outcome(
        WRONG,
        f"options {options}, {path.read_bytes()[:400]!r}\n read {seen.shape} {list(known(seen).items())[:6]}",
    )


def text_tables(rng: np.random.Generator, folder: Path) -> Outcome:
    """Text in every dialect."""
    made = table(rng)
    lines, headed = records(rng, made)
    name, data = dialect(rng, made, lines)
    path = folder / name
    path.write_bytes(data)
    return judged(made, path, how(rng, made, headed))


def parquet_tables(rng: np.random.Generator, folder: Path) -> Outcome:
    """Typed columns, through polars."""
    import polars as pl

    made = table(rng)
    made = replace(made, cols=made.cols or texts(rng, made.X.shape[1]))
    lines, headed = records(rng, made)
    if not headed:
        lines = [[*made.names, "time"][: len(lines[0])], *lines]
    columns = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=False))
    if len(columns) < len(lines[0]):
        return Outcome(OTHER)
    path = folder / "t.parquet"
    pl.DataFrame(
        {name: list(cells) for name, cells in columns.items()}, strict=False
    ).write_parquet(path)
    options = how(rng, made, True)
    options.pop("header", None)
    return judged(made, path, options)


def workbooks(rng: np.random.Generator, folder: Path) -> Outcome:
    """One sheet, numbers as numbers and labels as text."""
    from entrywise.tables import write_table

    made = table(rng)
    made.X[[0, -1], 0] = 2.0  # a sheet starts with its first cell and ends with its last
    lines, headed = records(rng, made)
    path = folder / "t.xlsx"
    write_table(path, lines[0], lines[1:])
    return judged(made, path, how(rng, made, headed))


def frames(rng: np.random.Generator, folder: Path) -> Outcome:
    """pandas and polars frames."""
    import pandas as pd
    import polars as pl

    made = table(rng)
    made = replace(made, cols=made.cols or [f"T{k}" for k in range(made.X.shape[1])])
    if made.long:
        lines = [[*key, x] for key, x in truth(made).items()]
        data: Any = dict(zip(made.names, map(list, zip(*lines, strict=True)), strict=True))
        frame = pd.DataFrame(data) if rng.random() < 0.5 else pl.DataFrame(data)
    else:
        frame = pd.DataFrame(made.X, columns=made.cols)
        if made.rows is not None:
            frame.index = pd.Index(made.rows)
    seen, outcome = tried(lambda: ew.Observations.from_frame(frame))
    if outcome is not None:
        return outcome
    return (
        Outcome(EQUAL) if known(seen) == truth(made) else Outcome(WRONG, f"{frame}\n{known(seen)}")
    )


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


def damaged_text(rng: np.random.Generator, folder: Path) -> Outcome:
    """Damaged text, its cells compared with pandas'."""
    from entrywise.tables import read_table

    made = table(rng)
    lines, _ = records(rng, made)
    name, data = dialect(rng, made, lines)
    path = folder / name
    path.write_bytes(damage(rng, data))
    _, outcome = tried(lambda: ew.read(path))
    if outcome is not None and outcome.kind in HARM:
        return outcome
    seen, refused = tried(lambda: read_table(path, header="yes"))
    if refused is not None:
        return refused
    theirs = by_pandas(path, seen.separator)
    if theirs is None:
        return Outcome(OTHER)
    mine = [list(column.cells) for column in seen.columns]
    theirs = theirs[: len(mine)] if all(not any(c) for c in theirs[len(mine) :]) else theirs
    if mine == theirs:
        return Outcome(EQUAL)
    return Outcome(WRONG, f"{path.read_bytes()[:500]!r}\n ours   {mine}\n pandas {theirs}")


def by_pandas(path: Path, separator: str) -> list[list[str]] | None:
    """Return the cells below the header as pandas reads them; None where it does not, or allows what we refuse."""
    import pandas as pd

    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        frame = pd.read_csv(
            io.BytesIO(raw), sep=separator, dtype=str, keep_default_na=False, encoding=coding, header=None,
            skipinitialspace=True, index_col=False, na_filter=False, engine="c",
        )  # fmt: skip
    except Exception:
        return None
    return [[str(x).strip() for x in frame[c]][1:] for c in frame.columns]


def damaged_arrays(rng: np.random.Generator, folder: Path) -> Outcome:
    """Damaged .npy and .npz files, dense, sparse and triplets; compared with numpy."""
    import scipy.sparse as sp

    made = table(rng)
    buffer = io.BytesIO()
    kind = int(rng.integers(4))
    if kind == 0:
        np.save(buffer, made.X)
    elif kind == 1:
        np.savez(buffer, X=made.X)
    elif kind == 2:
        sp.save_npz(buffer, sp.csr_array(np.nan_to_num(made.X)))
    else:
        i, j = np.nonzero(~np.isnan(made.X))
        np.savez_compressed(buffer, rows=i, cols=j, values=made.X[i, j], shape=made.X.shape)
    path = folder / ("t.npy" if kind == 0 else "t.npz")
    path.write_bytes(damage(rng, buffer.getvalue()) if rng.random() < 0.95 else buffer.getvalue())
    seen, outcome = tried(lambda: ew.read(path))
    if outcome is not None:
        return outcome
    if kind > 1:
        return Outcome(OTHER)
    try:
        loaded = np.load(path, allow_pickle=False)
        theirs = loaded if kind == 0 else loaded["X"]
    except Exception:
        return Outcome(OTHER)
    mine = seen.to_dense()
    same = mine.shape == theirs.shape and np.array_equal(mine, theirs, equal_nan=True)
    return Outcome(EQUAL) if same else Outcome(WRONG, f"{mine} {theirs}")


def damaged_binary(rng: np.random.Generator, folder: Path) -> Outcome:
    """Damaged parquet files and workbooks."""
    import polars as pl

    from entrywise.tables import write_table

    made = table(rng)
    lines = [[f"T{k}" for k in range(made.X.shape[1])], *made.X.tolist()]
    path = folder / ("t.parquet" if rng.random() < 0.6 else "t.xlsx")
    if path.suffix == ".parquet":
        pl.DataFrame(made.X, schema=lines[0]).write_parquet(path)
    else:
        write_table(path, lines[0], lines[1:])
    path.write_bytes(damage(rng, path.read_bytes()))
    with silent():
        _, outcome = tried(lambda: ew.read(path))
    return outcome or Outcome(OTHER)


def streams(rng: np.random.Generator, folder: Path) -> Outcome:
    """Streams of votes, whole and damaged."""
    from entrywise.cli._votes import read_votes

    path = vote_file(rng, folder)
    bad: list[str] = []
    with path.open("rb") as file:
        _, outcome = tried(lambda: list(read_votes(file, None, bad.append)))
    return outcome or Outcome(OTHER)


def labels(rng: np.random.Generator, folder: Path) -> Outcome:
    """Files of labels, in every dialect."""
    from entrywise.tables import read_labels

    made = replace(table(rng), long=False)
    names = texts(rng, made.X.shape[0])
    lines: list[list[Any]] = [["label", "price"], *([name, 1.5] for name in names)]
    if rng.random() < 0.5:
        lines = [line[:1] for line in lines]
    name, data = dialect(rng, replace(made, decimals=1), lines)
    path = folder / name
    hurt = rng.random() < 0.3
    path.write_bytes(damage(rng, data) if hurt else data)
    found, outcome = tried(lambda: read_labels(path)[0])
    if outcome is not None or hurt:
        return outcome or Outcome(OTHER)
    return Outcome(EQUAL) if found == names else Outcome(WRONG, f"{data!r} read as {found}")


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Keep what compiled readers print off the screen."""
    import os

    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


GENERATORS: list[tuple[float, str, Callable[[np.random.Generator, Path], Outcome]]] = [
    (0.40, "text tables", text_tables),
    (0.05, "parquet tables", parquet_tables),
    (0.03, "workbooks", workbooks),
    (0.05, "frames", frames),
    (0.20, "damaged text", damaged_text),
    (0.10, "damaged arrays", damaged_arrays),
    (0.05, "damaged parquet and workbooks", damaged_binary),
    (0.06, "streams", streams),
    (0.06, "label files", labels),
]


# Commands


def table_file(rng: np.random.Generator, folder: Path) -> Path:
    """Write a table, one in three of them damaged."""
    made = table(rng)
    lines, _ = records(rng, made)
    name, data = dialect(rng, made, lines)
    path = folder / name
    path.write_bytes(damage(rng, data) if rng.random() < 0.33 else data)
    return path


def rows_file(
    rng: np.random.Generator, folder: Path, header: list[str], pools: list[list[str]]
) -> Path:
    """Write lines of cells drawn from pools."""
    lines = [header] + [
        [pool[int(rng.integers(len(pool)))] for pool in pools]
        for _ in range(int(rng.integers(1, 30)))
    ]
    made = replace(table(rng), decimals=0)
    name, data = dialect(rng, made, lines)
    path = folder / name
    path.write_bytes(damage(rng, data) if rng.random() < 0.33 else data)
    return path


def vote_file(rng: np.random.Generator, folder: Path) -> Path:
    """Write a stream: JSON lines or a table."""
    import json

    count = int(rng.integers(1, 20))
    votes = [
        (f"u{rng.integers(4)}", ODD[int(rng.integers(len(ODD)))], bool(rng.integers(2)))
        for _ in range(count)
    ]
    if rng.random() < 0.5:
        body = "".join(
            json.dumps(dict(zip(("row", "col", "label"), v, strict=True))) + "\n" for v in votes
        )
    else:
        text = io.StringIO()
        csv.writer(text).writerows([("row", "col", "label"), *votes])
        body = text.getvalue()
    path = folder / "votes.txt"
    path.write_bytes(damage(rng, body.encode()) if rng.random() < 0.5 else body.encode())
    return path


def complete(rng: np.random.Generator, folder: Path) -> list[str]:
    words = [
        "complete",
        str(table_file(rng, folder)),
        "--format",
        str(rng.choice(["csv", "json", "table"])),
    ]
    if rng.random() < 0.3:
        words += [
            "--pairs",
            str(rows_file(rng, folder, ["row", "col"], [["a0", "0"], ["a0", "b1", "1"]])),
        ]
    if rng.random() < 0.3:
        words += ["--layout", "wide", "--labels", str(rng.choice(["first", "none"]))]
    return words


def crowd(rng: np.random.Generator, folder: Path) -> list[str]:
    pools = [["i1", "i2", "i3", *ODD[:3]], ["ann", "bob", "eve", "c[nH]"], ["cat", "dog"]]
    words = [
        "crowd",
        str(rows_file(rng, folder, ["item", "worker", "label"], pools)),
        "--repeats",
        "last",
    ]
    return [*words, "--workers", "--format", "table"] if rng.random() < 0.5 else words


def rank(rng: np.random.Generator, folder: Path) -> list[str]:
    if rng.random() < 0.5:
        pools = [
            ["a", "b", "c"],
            ["d", "e", "[/x]"],
            ["model_a", "model_b", "tie", "tie (bothbad)"],
        ]
        return ["rank", str(rows_file(rng, folder, ["model_a", "model_b", "winner"], pools))]
    path = rows_file(rng, folder, ["winner", "loser"], [["a", "b", "\x1b]0;x"], ["c", "d"]])
    return ["rank", str(path), "--format", "table"]


def subspace(rng: np.random.Generator, folder: Path) -> list[str]:
    return ["subspace", str(table_file(rng, folder)), "-k", "1"]


def online(rng: np.random.Generator, folder: Path) -> list[str]:
    words = ["online", str(vote_file(rng, folder)), "--learner", "row-column-majority"]
    return [*words, "--format", str(rng.choice(["csv", "json", "table"]))]


def kernel(rng: np.random.Generator, folder: Path) -> list[str]:
    return [
        "kernel",
        str(table_file(rng, folder)),
        "--rank",
        "1",
        "--out",
        str(folder / "factor.npz"),
    ]


def leaderboard(rng: np.random.Generator, folder: Path) -> list[str]:
    """A small leaderboard in a fresh file, then its report."""
    (folder / "models.csv").write_text("model\n" + "".join(f"m{k}\n" for k in range(5)))
    tasks = folder / "tasks.csv"
    plain = [name for name in ODD if not set(name) & set('",;|\n')]
    text = "task\n" + "".join(f"{name}\n" for name in plain)
    tasks.write_bytes(damage(rng, text.encode()) if rng.random() < 0.5 else text.encode())
    base = folder / "board.db"
    if rng.random() < 0.7 and base.exists():
        return ["leaderboard", "report", str(base)]
    for old in folder.glob("board.db*"):
        old.unlink()
    files = ["--rows", str(folder / "models.csv"), "--cols", str(tasks)]
    return ["leaderboard", "create", str(base), *files, "--budget", "20", "--seed", "1"]


COMMANDS: list[Callable[[np.random.Generator, Path], list[str]]] = [
    complete,
    crowd,
    rank,
    subspace,
    online,
    kernel,
    leaderboard,
]


def run_words(words: list[str]) -> Outcome:
    """Run a command in this process; a known mistake is one line and exit code 1."""
    from entrywise.cli.app import main as command

    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["entrywise", *words]

    def call() -> int:
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                command()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    try:
        code, outcome = tried(call)
    finally:
        sys.argv = before
    if outcome is not None:
        return replace(outcome, words=f"{' '.join(words)}\n{outcome.words}")
    said = err.getvalue()
    if (
        "Traceback" in said
        or "\x1b]" in said
        or "\x1b[31mred" in said + out.getvalue() * ("table" in words)
    ):
        return Outcome(TRACE, f"{' '.join(words)}\n{said}")
    if code == 0:
        return Outcome(OTHER)
    mistakes = [line for line in said.splitlines() if line.startswith("Error: ")]
    if code == 1 and len(mistakes) == 1 and said.splitlines()[-1] == mistakes[0]:
        return Outcome(REFUSED, mistakes[0])
    return Outcome(TRACE, f"{' '.join(words)}: exit {code}\n{said}")


# The whole


def fuzz(
    inputs: int, commands: int, seed: int, loud: bool = True
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return the counts of every generator and command, and what did harm."""
    counts: dict[str, Counter[str]] = {}
    harm: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = [(kind, call, round(share * inputs)) for share, kind, call in GENERATORS]
        every = max(1, commands // len(COMMANDS))
        jobs += [(f"entrywise {make.__name__}", _command(make), every) for make in COMMANDS]
        for kind, call, size in jobs:
            counts[kind] = Counter()
            if kind.startswith("entrywise "):
                with at_leisure():  # loads compiled code, once
                    call(np.random.default_rng(0), folder)
            start = time.perf_counter()
            for k in range(size):
                outcome = call(np.random.default_rng([seed, k]), folder)
                counts[kind][outcome.kind] += 1
                if outcome.kind in HARM:
                    harm.append(f"{kind}, seed {seed} {k}: {outcome.kind}: {outcome.words}")
                    if loud and len(harm) <= SHOWN:
                        print(harm[-1], flush=True)
            if loud:
                words = ", ".join(f"{n} {word}" for word, n in sorted(counts[kind].items()))
                print(f"{kind}: {words}; {time.perf_counter() - start:.0f} s", flush=True)
    return counts, harm


def _command(
    make: Callable[[np.random.Generator, Path], list[str]],
) -> Callable[[np.random.Generator, Path], Outcome]:
    return lambda rng, folder: run_words(make(rng, folder))


def again(kind: str, seed: int, k: int) -> Outcome:
    """Run one input again."""
    calls = {name: call for _, name, call in GENERATORS}
    calls |= {f"entrywise {make.__name__}": _command(make) for make in COMMANDS}
    with tempfile.TemporaryDirectory() as name:
        return calls[kind](np.random.default_rng([seed, k]), Path(name))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--commands", type=int, default=2_100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="2,000 inputs and 70 commands")
    parser.add_argument("--only", nargs=2, metavar=("GENERATOR", "K"), help="one input again")
    options = parser.parse_args()
    if options.only:
        found = again(options.only[0], options.seed, int(options.only[1]))
        print(found.kind, found.words)
        return
    inputs, commands = (2_000, 70) if options.quick else (options.inputs, options.commands)
    print(f"seed {options.seed}: input k of a generator has the seed ({options.seed}, k)")
    counts, harm = fuzz(inputs, commands, options.seed)
    total = sum(counts.values(), Counter())
    print(
        f"{sum(total.values()):,} runs: " + ", ".join(f"{n:,} {word}" for word, n in total.items())
    )
    if harm:
        raise SystemExit(f"{len(harm)} did harm")


if __name__ == "__main__":
    main()
