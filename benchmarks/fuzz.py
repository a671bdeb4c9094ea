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
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import entrywise as ew
from _fuzz_logs import comparison_files, feature_files, field_logs, saved_files
from _fuzz_studies import archives, study_commands, tell_files
from _fuzzing import (
    EQUAL,
    HARM,
    ODD,
    OTHER,
    REFUSED,
    TRACE,
    WRONG,
    Made,
    Outcome,
    at_leisure,
    damage,
    dialect,
    known,
    records,
    silent,
    table,
    texts,
    tried,
    truth,
)
from entrywise.exceptions import EntrywiseError
from entrywise.study import Study

SHOWN = 20  # harms printed in full


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
    made.X[[0, -1, 0], [0, 0, -1]] = (
        2.0  # a sheet starts with its first cell and ends with its last
    )
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
    if mine == theirs or _filled(mine) == _filled(theirs):
        return Outcome(EQUAL)
    return Outcome(WRONG, f"{path.read_bytes()[:500]!r}\n ours   {mine}\n pandas {theirs}")


def _filled(columns: list[list[str]]) -> list[tuple[str, ...]]:
    """Return the lines in which something stands."""
    return [line for line in zip(*columns, strict=True) if any(line)]


def by_pandas(path: Path, separator: str) -> list[list[str]] | None:
    """Return the cells below the header as pandas reads them; None where it does not, or allows what we refuse."""
    import pandas as pd

    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(coding)
        if f"\r{separator}" in text:  # pandas swallows a separator at the start of such a line
            raw, coding = text.replace(f"\r{separator}", f"\n{separator}").encode(), "utf-8"
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
    """Streams of votes: whole ones are read as they were written, damaged ones without a traceback."""
    from entrywise.cli._votes import read_votes

    votes, body = vote_stream(rng)
    hurt = rng.random() < 0.5
    lines = io.BytesIO(damage(rng, body) if hurt else body)
    bad: list[str] = []
    found, outcome = tried(lambda: list(read_votes(lines, None, bad.append)))
    if outcome is not None or hurt:
        return outcome or Outcome(OTHER)
    if bad:
        return Outcome(REFUSED, bad[0])
    read = [(vote.row, vote.col, vote.label) for vote in found]
    return Outcome(EQUAL) if read == votes else Outcome(WRONG, f"{body!r}\n read {read}")


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


GENERATORS: list[tuple[float, str, Callable[[np.random.Generator, Path], Outcome]]] = [
    (0.27, "text tables", text_tables),
    (0.05, "parquet tables", parquet_tables),
    (0.03, "workbooks", workbooks),
    (0.05, "frames", frames),
    (0.20, "damaged text", damaged_text),
    (0.08, "damaged arrays", damaged_arrays),
    (0.05, "damaged parquet and workbooks", damaged_binary),
    (0.06, "streams", streams),
    (0.05, "label files", labels),
    (0.06, "tell files", tell_files),
    (0.02, "archives", archives),
    (0.03, "logs of the field", field_logs),
    (0.02, "comparisons", comparison_files),
    (0.02, "features and tariffs", feature_files),
    (0.01, "saved results and journals", saved_files),
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


SPELLINGS: tuple[tuple[Any, Any], ...] = (
    (True, False),
    ("true", "false"),
    ("True", "False"),
    (1, 0),
    ("+1", "-1"),
)  # of yes and no


def vote_stream(rng: np.random.Generator) -> tuple[list[tuple[str, str, bool | None]], bytes]:
    """Return votes and how they are written: JSON lines or a table."""
    names = [name for name in ODD if "\n" not in name]
    votes: list[tuple[str, str, bool | None]] = [
        (
            f"u{rng.integers(4)}",
            names[int(rng.integers(len(names)))],
            None if rng.random() < 0.1 else bool(rng.integers(2)),
        )
        for _ in range(int(rng.integers(1, 20)))
    ]
    yes, no = SPELLINGS[int(rng.integers(len(SPELLINGS)))]
    head = [("row", "col", "label"), ("user", "item", "rating")][int(rng.integers(2))]
    if rng.random() < 0.5:
        yes, no = (yes, no) if not isinstance(yes, str) else (1, -1)
        said = {True: yes, False: no, None: None}
        objects = ({"row": a, "col": b, "label": said[c]} for a, b, c in votes)
        text = "".join(json.dumps(each) + "\n" for each in objects)
    else:
        said = {True: str(yes), False: str(no), None: ""}
        lines = [head, *((a, b, said[c]) for a, b, c in votes)]
        made = io.StringIO()
        mark = ",\t;"[int(rng.integers(3))]
        csv.writer(made, delimiter=mark, lineterminator="\n").writerows(lines)
        text = made.getvalue()
    return votes, text.encode(str(rng.choice(["utf-8", "utf-8-sig"])))


def vote_file(rng: np.random.Generator, folder: Path) -> Path:
    """Write a stream, half of them damaged."""
    _, body = vote_stream(rng)
    path = folder / "votes.txt"
    path.write_bytes(damage(rng, body) if rng.random() < 0.5 else body)
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
        with contextlib.suppress(EntrywiseError):
            board = Study.open(str(base), "leaderboard")
            board.tell([(q.id, float(rng.normal())) for q in board.ask(3)])
        return ["leaderboard", "report", str(base), "--format", str(rng.choice(["csv", "table"]))]
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
    *study_commands,
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
    if code in (1, 2) and len(mistakes) == 1 and said.splitlines()[-1] == mistakes[0]:
        return Outcome(REFUSED, mistakes[0])
    return Outcome(TRACE, f"{' '.join(words)}: exit {code}\n{said}")


# The whole


def fuzz(
    inputs: int, commands: int, seed: int, loud: bool = True, parts: list[str] | None = None
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
            if parts is not None and kind not in parts:
                continue
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
    parser.add_argument("--part", action="append", help="some generators or commands alone")
    parser.add_argument("--only", nargs=2, metavar=("GENERATOR", "K"), help="one input again")
    options = parser.parse_args()
    if options.only:
        found = again(options.only[0], options.seed, int(options.only[1]))
        print(found.kind, found.words)
        return
    inputs, commands = (2_000, 70) if options.quick else (options.inputs, options.commands)
    print(f"seed {options.seed}: input k of a generator has the seed ({options.seed}, k)")
    counts, harm = fuzz(inputs, commands, options.seed, parts=options.part)
    total = sum(counts.values(), Counter())
    print(
        f"{sum(total.values()):,} runs: " + ", ".join(f"{n:,} {word}" for word, n in total.items())
    )
    if harm:
        raise SystemExit(f"{len(harm)} did harm")


if __name__ == "__main__":
    main()
