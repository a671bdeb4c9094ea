"""Tell files and archives of studies, generated and damaged; commands about studies."""

from __future__ import annotations

import functools
import io
import itertools
import json
import math
import re
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from _fuzzing import (
    EQUAL,
    ODD,
    OTHER,
    REFUSED,
    WRONG,
    Outcome,
    damage,
    dialect,
    table,
    tried,
)
from entrywise.cli._study_files import answers_of
from entrywise.exceptions import EntrywiseError
from entrywise.gallery import random_psd
from entrywise.study import Store, Study, archive
from entrywise.study.entries import parse

LABELS = [name for name in ODD if "\n" not in name and name != "-"]
NO_NUMBERS = ("1_0", "１", "True", "inf", "-inf", "1e999", "0x10", "--1", "1 2", "half", "1,5,3")
NAMES = itertools.count()


# Tell files


@functools.cache
def told_study(labelled: bool) -> tuple[Study, list[Any]]:
    """Return a study in memory whose first questions are all out."""
    names = LABELS if labelled else None
    params = {} if labelled else {"n": len(LABELS)}
    made = Study.create(
        "sqlite://", "fuzz", plan="adaptive-nystrom", params=params, rows=names, seed=1
    )
    return made, made.ask(None, "ann")


def tell_files(rng: np.random.Generator, folder: Path) -> Outcome:
    """Answers by id, by entry or both, in every dialect: told to the right questions, or refused."""
    study, asked = told_study(bool(rng.integers(2)))
    path, want, odd, hurt = tell_file(rng, folder, asked)

    def read() -> dict[tuple[int, int], float]:
        given = answers_of(str(path), "fuzz", None)
        told = parse(study.store.tells, study._record, study.labels, given.items, given.blame)
        keys = zip(told.batch.tolist(), told.position.tolist(), strict=True)
        return dict(zip(keys, told.value.tolist(), strict=True))

    found, outcome = tried(read)
    if outcome is not None or hurt:
        return outcome or Outcome(OTHER)
    names = {q.id: tuple(map(int, q.id.split("."))) for q in asked}
    right = {names[key]: value for key, value in want.items()}
    same = found.keys() == right.keys() and all(
        found[key] == x or (math.isnan(found[key]) and math.isnan(x)) for key, x in right.items()
    )
    if same and odd is None:
        return Outcome(EQUAL)
    return Outcome(WRONG, f"{path.read_bytes()[:600]!r}\n read {found}, odd {odd!r}")


def tell_file(
    rng: np.random.Generator, folder: Path, asked: list[Any], study: str = "fuzz"
) -> tuple[Path, dict[str, float], str | None, bool]:
    """Write answers; return (path, what is told by id, what is no number if one is not, whether it is damaged)."""
    some = rng.permutation(len(asked))[: int(rng.integers(1, len(asked) + 1))]
    by_id = rng.random() < 0.7
    columns = ["id"] if by_id else []
    columns += ["row", "col"] if not by_id or rng.random() < 0.6 else []
    columns += [name for name in ("study", "worker", "price", "note") if rng.random() < 0.3]
    columns = [columns[k] for k in rng.permutation(len(columns))]
    columns.insert(int(rng.integers(len(columns) + 1)), "value")
    want: dict[str, float] = {}
    lines: list[list[Any]] = [columns]
    for k in some.tolist():
        q = asked[k]
        value: Any = round(float(rng.normal()) * 10.0 ** int(rng.integers(0, 3)), 2)
        chance = rng.random()
        if chance < 0.1:
            value = ["failed", "Failed"][int(rng.integers(2))]
        if chance > 0.9 and len(want):
            value = ""
        if value != "":
            want[q.id] = math.nan if isinstance(value, str) else value
        cells = {"id": q.id, "row": q.row, "col": q.col, "value": value, "study": study}
        cells |= {"worker": "ann", "price": 1.5, "note": "a note"}
        lines.append([cells[name] for name in columns])
    if not want:
        want[asked[int(some[0])].id] = math.nan
        lines[1][columns.index("value")] = "failed"
    odd = None
    if rng.random() < 0.2:
        odd = NO_NUMBERS[int(rng.integers(len(NO_NUMBERS)))]
        lines[int(rng.integers(1, len(lines)))][columns.index("value")] = odd
    name, data = dialect(rng, replace(table(rng), decimals=2), lines)
    hurt = bool(rng.random() < 0.3)
    path = folder / name
    path.write_bytes(damage(rng, data) if hurt else data)
    return path, want, odd, hurt


# Archives


@functools.cache
def exported() -> list[bytes]:
    """Return archives of three studies: finished and corrected, living, and with units of columns."""
    A = random_psd(6, 2, 0)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel = Study.create(
            "sqlite://", "kernel", plan="adaptive-nystrom", rows=LABELS[:6], seed=1, budget=60.0
        )
        kernel.play(lambda batch: A[batch.rows, batch.cols])
        kernel.amend("0.1", 1.01 * A[1, 1])
        living = Study.create(
            "sqlite://",
            "living",
            plan="most-informative",
            rows=[f"m{k}" for k in range(6)],
            cols=LABELS[:5],
            seed=1,
            budget=18.0,
            currency="EUR",
        )
        for _ in range(2):
            living.tell([(q.id, float(rng.normal())) for q in living.ask(4, "ann")], "ann")
        living.extend(rows=["m6"], budget=4.0)
        living.void(next(line["id"] for line in living.log() if line["what"] == "told"))
        living.ask(3, "bob")
        costs = Study.create(
            "sqlite://",
            "costs",
            plan="noisy-cur",
            params={"shape": [6, 5], "noise": {"column": 0.2, "entry": 0.05}},
            prices={"column": 3, "entry": 1},
            budget=20.0,
            seed=1,
        )
        costs.tell([(q.id, float(rng.normal())) for q in costs.ask()])
        found = []
        for study in (kernel, living, costs):
            study.export(folder / "x.zip")
            found.append((folder / "x.zip").read_bytes())
    return found


@functools.cache
def shelf() -> Store:
    """Return a database in memory for archives to be imported to."""
    return Store("sqlite://")


def archives(rng: np.random.Generator, folder: Path) -> Outcome:
    """Archives whole, with damaged bytes, or rewritten with a digest that says they are whole."""
    path = folder / "study.zip"
    whole = archive_file(rng, path)
    found, outcome = tried(lambda: archive.read(path))
    if outcome is not None:
        return Outcome(WRONG, f"refused a whole archive: {outcome.words}") if whole else outcome
    return imported(rng, found, path, whole)


def archive_file(rng: np.random.Generator, path: Path) -> bool:
    """Write an archive; tell whether it is as it was exported."""
    good = exported()[int(rng.integers(3))]
    chance = rng.random()
    if chance < 0.1:
        path.write_bytes(good)
        return True
    if chance < 0.4:
        path.write_bytes(damage(rng, good))
        return False
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        parts = {name: file.read(name).decode() for name in file.namelist() if name != "digest"}
    for _ in range(int(rng.integers(1, 3))):
        name = sorted(parts)[int(rng.integers(len(parts)))]
        change = changed_json if name.endswith(".json") else changed_lines
        parts[name] = change(rng, parts[name])
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text.encode("utf-8", "replace"))
        file.writestr("digest", archive._digest(parts) if rng.random() < 0.9 else "0" * 64)
    return False


FIELDS = (
    *("-1", "0", "1", "7", "2.5", "-0.0", "1e308", "99999999999999999999", "inf", "nan", "", "'", "'x"),
    *("'answer", "'known", "'void", "True", "１", "'{}", "'null", "'[1]", "1e9"),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1e308, 10**9, 2.5, "", "x", [], {}, [1], "open", "finished", "rank-one"),
    *("most-informative", "adaptive-nystrom", "two\nlines"),
)


def changed_lines(rng: np.random.Generator, text: str) -> str:
    """Return a table with a field, a line or a character that is another."""
    lines = text.split("\n")
    at = int(rng.integers(len(lines)))
    match int(rng.integers(5)):
        case 0:
            fields = lines[at].split(",")
            fields[int(rng.integers(len(fields)))] = FIELDS[int(rng.integers(len(FIELDS)))]
            lines[at] = ",".join(fields)
        case 1:
            fields = lines[at].split(",")
            j, k = rng.integers(len(fields), size=2).tolist()
            fields[j], fields[k] = fields[k], fields[j]
            lines[at] = ",".join(fields)
        case 2:
            del lines[at]
        case 3:
            lines.insert(at, lines[at])
        case _:
            numbers = list(re.finditer(r"\d+(\.\d+)?", text))
            if numbers:
                one = numbers[int(rng.integers(len(numbers)))]
                other = str(int(rng.integers(12)))
                return text[: one.start()] + other + text[one.end() :]
    return "\n".join(lines)


def changed_json(rng: np.random.Generator, text: str) -> str:
    """Return a description of a study with one word that is another."""
    found = json.loads(text)
    inner = found.get("study")
    where = inner if rng.random() < 0.95 and isinstance(inner, dict) and inner else found
    key = sorted(where)[int(rng.integers(len(where)))]
    if rng.random() < 0.1:
        del where[key]
    else:
        where[key] = VALUES[int(rng.integers(len(VALUES)))]
    return json.dumps(found)


def imported(rng: np.random.Generator, found: Any, path: Path, whole: bool) -> Outcome:
    """Import what was read, look at it and export it: it must be what was read."""
    name = f"x{next(NAMES)}"

    def write() -> Any:
        archive.write(shelf(), found, name)
        study = Study.open(shelf(), name)
        study.status()
        list(study.log())
        study.export(path)
        return study, archive.read(path)

    pair, outcome = tried(write)
    if outcome is not None:
        kind = WRONG if whole or outcome.kind == REFUSED else outcome.kind
        return Outcome(kind, f"accepted, then not: {outcome.words}")
    study, again = pair
    own = {**found.study, "name": name}
    differing = [key for key in own if own[key] != again.study.get(key)]
    differing += [key for key in found.tables if lines(found, key) != lines(again, key)]
    if differing:
        return Outcome(WRONG, f"exported otherwise than imported: {differing}")
    if rng.random() < 0.3:  # plans may refuse what it says, in one sentence
        calls: list[Callable[[], Any]] = [study.check, study.result, lambda: study.ask(3, "eve")]
        for call in calls:
            _, outcome = tried(call)
            if outcome is not None and outcome.kind != REFUSED:
                return outcome
    study.delete()
    return Outcome(EQUAL if whole else OTHER)


def lines(found: Any, name: str) -> list[str]:
    """Return the lines of a table, whatever their order."""
    return sorted(map(repr, zip(*found.tables[name].values(), strict=True)))


# Commands


def pick(rng: np.random.Generator, words: tuple[str, ...] | list[str]) -> str:
    return str(words[int(rng.integers(len(words)))])


def board(rng: np.random.Generator, folder: Path) -> Path:
    """Return a database with a study called board, made once and told a little."""
    base = folder / "studies.db"
    if not base.exists() or rng.random() < 0.02:
        for old in folder.glob("studies.db*"):
            old.unlink()
        made = Study.create(
            str(base),
            "board",
            plan="most-informative",
            rows=[f"m{k}" for k in range(6)],
            cols=LABELS,
            seed=1,
            budget=60.0,
        )
        made.tell([(q.id, float(k)) for k, q in enumerate(made.ask(8, "ann"))], "ann")
    return base


def study_create(rng: np.random.Generator, folder: Path) -> list[str]:
    """Names, prices and known entries from files, some of them damaged."""
    for old in (*folder.glob("models.csv*"), *folder.glob("tasks.csv*"), *folder.glob("made.db*")):
        old.unlink()
    lists = (("models.csv", "model", LABELS[:6]), ("tasks.csv", "task", ["t1", "t2", "t3", "=1"]))
    for name, head, labels in lists:
        lines: list[list[Any]] = [[head, "price"], *([label, 1.5] for label in labels)]
        _, data = dialect(rng, replace(table(rng), decimals=1), lines)
        if data[:2] == b"\x1f\x8b":
            name += ".gz"
        hurt = rng.random() < 0.15
        (folder / name).write_bytes(damage(rng, data) if hurt else data)
    files = [str(next(folder.glob(f"{name}*"))) for name in ("models.csv", "tasks.csv")]
    known = folder / "history.csv"
    text = "model,task,score\n" + "".join(f'"{pick(rng, LABELS[:3])}",t{k},{k}\n' for k in (1, 2))
    known.write_bytes(damage(rng, text.encode()) if rng.random() < 0.3 else text.encode())
    base = folder / "made.db"
    words = ["study", "create", str(base), "x", "--plan", "most-informative", "--rows", files[0]]
    words += [
        "--cols",
        files[1],
        "--budget",
        pick(rng, ["5", "12.5", "30", "9", "8", "7", "0", "-1", "inf", "x"]),
    ]
    if rng.random() < 0.4:
        words += ["--known", str(known)]
    if rng.random() < 0.5:
        words += [
            "--price",
            pick(rng, ["rows:price", "cols:price", "entry=2", files[0], "x", "rows:y"]),
        ]
    return words


def study_tell(rng: np.random.Generator, folder: Path) -> list[str]:
    """Answers from a file, to a study that was asked them."""
    base = board(rng, folder)
    study = Study.open(str(base), "board")
    study.release()
    try:
        asked = study.ask(6, "ann")
    except EntrywiseError:
        asked = []
    path, *_ = tell_file(rng, folder, asked or told_study(True)[1], "board")
    return ["study", "tell", str(base), "board", str(path)]


def study_import(rng: np.random.Generator, folder: Path) -> list[str]:
    """Archives, whole, damaged and rewritten."""
    path = folder / "study.zip"
    archive_file(rng, path)
    return ["study", "import", str(board(rng, folder)), str(path), "--name", f"y{next(NAMES)}"]


def study_change(rng: np.random.Generator, folder: Path) -> list[str]:
    """Changes of a living study, with odd words among their arguments."""
    base = [str(board(rng, folder)), "board"]
    name = pick(
        rng, ["0.0", "0.3", "1.0", "99.1", "x", "0.0.0", "-1", "known.0", "１.0", "0." + "9" * 40]
    )
    value = pick(rng, ["1.5", "failed", "nan", "x", "1e400", "1_0", ""])
    row = pick(rng, ["m0", "m*", "nobody", "[", "c1cc[nH]c1", "\x1b[31mred"])
    money = pick(rng, ["5", "-5", "1e300", "nan", "x"])
    lines = folder / "more.csv"
    lines.write_text(f"model\n{pick(rng, ['m7', 'm0', '', 'm8'])}\n")
    extra = folder / "extra.csv"
    extra.write_text(f"row,col,value\n{row},{pick(rng, LABELS)},{value}\n")
    return [
        "study",
        *[
            ["amend", *base, name, value],
            ["amend", *base, row, pick(rng, LABELS), value],
            ["void", *base, name],
            ["drop", *base, "--row", row],
            ["extend", *base, "--budget", money],
            ["extend", *base, "--rows", str(lines)],
            ["add", *base, str(extra)],
            [
                "change",
                *base,
                "--set",
                pick(rng, ["reserve=0.1", "reserve=x", "nothing=1", "=", "rank=-1"]),
            ],
            [
                "change",
                *base,
                "--price",
                pick(rng, ["entry=2", "entry=-1", "entry=nan", "row=1", "x"]),
            ],
            ["reopen", *base, "--budget", money],
            ["renew", *base],
            ["release", *base, "--worker", row],
        ][int(rng.integers(12))],
    ]


def study_look(rng: np.random.Generator, folder: Path) -> list[str]:
    """Looks at a study, in every format."""
    base = str(board(rng, folder))
    name = pick(rng, ["board", "board", "board", "nobody", "[/x]"])
    row = pick(rng, ["m0", "m*", "nobody", "[", "\x1b]0;x"])
    shape = ["--format", pick(rng, ["csv", "json", "table"])]
    return [
        "study",
        *[
            ["status", base, name, *shape],
            ["log", base, name, *shape],
            ["result", base, name, *shape],
            ["ask", base, name, "--limit", pick(rng, ["1", "3", "0", "-2"]), *shape],
            ["ask", base, name, "--row", row, "--worker", row, *shape],
            ["check", base, name],
            ["list", base, *shape],
            ["export", base, name, str(folder / "out.zip")],
        ][int(rng.integers(8))],
    ]


study_commands = [study_create, study_tell, study_import, study_change, study_look]
