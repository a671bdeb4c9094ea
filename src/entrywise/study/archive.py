"""One portable file a study: a zip of CSV and JSON from which an identical study is rebuilt.

Nothing in it is believed: sizes, types, numbers, references and the ledger are checked whole before a row is
written, and a digest says whether it is the file that was exported. It names a plan and never brings one along.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import sys
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import DataError, StoreError
from entrywise.methods import renamed
from entrywise.npz import write_whole
from entrywise.queries import Prices
from entrywise.study import legacy, plans, schema, tallies
from entrywise.study.records import Record
from entrywise.study.store import Store
from entrywise.study.tells import CORRECTIONS, is_far
from entrywise.tables import csv_text

FORMAT = 2
LARGEST = 4 << 30  # bytes of a study, unpacked: a hundred million questions
_RATIO = 2000  # a part that is packed more tightly than text can be is no export
_LINE = 64 << 20  # characters of one field

_TABLES = (
    schema.labels,
    schema.epochs,
    schema.steps,
    schema.questions,
    schema.wants,
    schema.facts,
    schema.pending,
)
_STATES = ("open", "finished", "exhausted", "closed")
_KINDS = ("answer", "known", "amend", "void", "withdrawn", "repeat", "failed")
_MOMENT = ("stepper", "stepper_until")  # of a process, not of the study
_OWN = ("study", "id", "implausible")  # of a database; the last is worked out again
_MAPPINGS = (  # columns that hold JSON
    ("epochs", "params"),
    ("epochs", "versions"),
    ("epochs", "dropped"),
    ("steps", "filter"),
    ("steps", "report"),
)
_LATER = {"facts": ("reason",)}  # columns that exports of an earlier version lack
_OLD: Mapping[str, Mapping[str, type]] = {  # the tables of format 1
    "labels": {"axis": str, "position": int, "label": str},
    "known": {"position": int, "mode": str, "row": int, "col": int, "value": float},
    "batches": {
        "number": int, "size": int, "wanted": int, "mode": str, "digest": str, "cost": float, "dead": bool,
        "version": str, "asked_at": float,
    },
    "questions": {
        "batch": int, "position": int, "unit": int, "row": int, "col": int, "mode": str, "price": float, "arm": str,
        "probability": float,
    },
    "answers": {
        "batch": int, "position": int, "value": float, "failed": bool, "worker": str, "told_at": float, "source": str,
    },
    "pending": {
        "batch": int, "position": int, "unit": int, "row": int, "col": int, "price": float, "worker": str,
        "leased_until": float, "holders": str, "failed": bool,
    },
    "retired": {
        "batch": int, "position": int, "value": float, "failed": bool, "worker": str, "told_at": float, "reason": str,
        "retired_at": float,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Archive:
    """A study out of its database: its own row, and its tables by columns."""

    study: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, list[Any]]]


def export(store: Store, record: Record, path: str | PathLike[str]) -> None:
    """Write a study; the same study gives the same bytes."""

    def look(connection: Connection) -> tuple[dict[str, Any], dict[str, Any]]:
        own = sa.select(schema.studies).where(schema.studies.c.id == record.id)
        row = connection.execute(own).one()._asdict()
        tables = {}
        for table in _TABLES:
            query = sa.select(*_columns(table)).where(table.c.study == record.id)
            tables[table.name] = store.database.columns(
                connection, query.order_by(*table.primary_key.columns)
            )
        return row, tables

    about, tables = store.database.read_whole(look)
    for name in ("id", *_MOMENT):
        del about[name]
    kinds = {c.name: _kind(c) for c in schema.studies.columns}
    about = {k: bool(v) if kinds[k] is bool else v for k, v in about.items()}
    parts = {"study.json": json.dumps({"format": FORMAT, "study": about}, indent=1)}
    for table in _TABLES:
        parts[f"{table.name}.csv"] = _written(table, tables[table.name])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            _add(archive, name, text.encode())
        _add(archive, "digest", _digest(parts).encode())
    write_whole(path, buffer.getvalue())


def _written(table: sa.Table, rows: list[tuple[Any, ...]]) -> str:
    columns = _columns(table)
    kinds = [_kind(column) for column in columns]
    cells = ([_text(x, kind) for x, kind in zip(row, kinds, strict=True)] for row in rows)
    return csv_text([column.name for column in columns], cells)


def _digest(parts: Mapping[str, str]) -> str:
    made = hashlib.sha256()
    for name in sorted(parts):
        made.update(name.encode() + b"\0" + parts[name].encode() + b"\0")
    return made.hexdigest()


def _columns(table: sa.Table) -> list[sa.Column[Any]]:
    return [column for column in table.columns if column.name not in _OWN]


def _kind(column: sa.Column[Any]) -> type:
    for kind, python in ((sa.Boolean, bool), (sa.Text, str), (sa.Float, float)):
        if isinstance(column.type, kind):
            return python
    return int


def _add(archive: zipfile.ZipFile, name: str, text: bytes) -> None:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, text)


def _text(value: Any, kind: type) -> str:
    """Write a value; texts are quoted so that an empty one is not nothing."""
    if value is None:
        return ""
    if kind is bool:
        return str(int(value))
    if kind is str:
        return "'" + str(value)
    return repr(float(value)) if kind is float else str(int(value))


# reading


def read(path: str | PathLike[str]) -> Archive:
    """Return the study that :func:`export` wrote, checked whole; refuse anything else in one sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(_part(archive, "study.json"))
            if not isinstance(head, dict) or not isinstance(head.get("study"), dict):
                raise DataError("study.json must describe a study")
            if head.get("format") == 1:
                return _read_first(archive, head["study"])
            if head.get("format") != FORMAT:
                raise DataError(
                    f"it has format {head.get('format')!r}, this version reads {FORMAT}; upgrade"
                )
            parts = {"study.json": _part(archive, "study.json")}
            parts |= {f"{t.name}.csv": _part(archive, f"{t.name}.csv") for t in _TABLES}
            if _part(archive, "digest").strip() != _digest(parts):
                raise DataError("it is not as it was exported: its digest differs")
        study = _checked_study(head["study"])
        tables = {t.name: _parsed(t.name, parts[f"{t.name}.csv"], _kinds(t)) for t in _TABLES}
        _check(study, tables)
        return Archive(study, tables)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (zipfile.BadZipFile, OSError, EOFError):
        raise DataError(
            f"{path} must be a study exported by entrywise: it is no zip file, or not whole; "
            "export it again"
        ) from None
    except Exception as error:  # a broken zip, text or number raises almost anything
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path} must be a study exported by entrywise: {words}; export it again"
        ) from None


def _part(archive: zipfile.ZipFile, name: str) -> str:
    """Return one text of the archive; what would unpack to more than any study is refused unread."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise DataError(f"it holds no {name}") from None
    if info.file_size > LARGEST or info.file_size > _RATIO * max(info.compress_size, 1000):
        raise DataError(f"its {name} would unpack to {info.file_size:,} bytes")
    with archive.open(info) as file:
        return file.read(info.file_size + 1).decode()


def _kinds(table: sa.Table) -> dict[str, tuple[type, bool]]:
    return {c.name: (_kind(c), bool(c.nullable)) for c in _columns(table)}


def _parsed(name: str, text: str, kinds: Mapping[str, tuple[type, bool]]) -> dict[str, list[Any]]:
    csv.field_size_limit(min(_LINE, sys.maxsize))
    reader = csv.reader(io.StringIO(text, newline=""))
    head = next(reader, None)
    lacking = _LATER.get(name, ())
    older = {column: kind for column, kind in kinds.items() if column not in lacking}
    written = older if head == list(older) else kinds
    if head != list(written):
        raise DataError(f"{name}.csv must have the columns {', '.join(kinds)}")
    found: dict[str, list[Any]] = {column: [] for column in kinds}
    for row in reader:
        if len(row) != len(written):
            raise DataError(f"{name}.csv line {reader.line_num}: {len(row)} fields")
        for (column, (kind, optional)), field in zip(written.items(), row, strict=True):
            where = f"{name}.csv line {reader.line_num}: {column}"
            found[column].append(_value(field, kind, optional, where))
        for column in kinds.keys() - written.keys():
            found[column].append(None)
    return found


def _value(text: str, kind: type, optional: bool, where: str) -> Any:
    if text == "":
        if not optional:
            raise DataError(f"{where} is missing")
        return None
    if kind is str:
        if text[0] != "'" or "\0" in text:
            raise DataError(f"{where} is no text")
        return text[1:]
    if kind is bool:
        if text not in ("0", "1"):
            raise DataError(f"{where} must be 0 or 1")
        return text == "1"
    if kind is int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise DataError(f"{where} is no whole number")
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise DataError(f"{where} must be finite, got {text}")
    return value + 0.0  # databases know no -0


def _checked_study(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the study's own row with the types of its table, or refuse it."""
    columns = [c for c in schema.studies.columns if c.name not in ("id", *_MOMENT)]
    if set(given) != {c.name for c in columns}:
        odd = sorted(set(given) ^ {c.name for c in columns})
        raise DataError(f"study.json: {odd[0]} is missing or unknown")
    for column in columns:
        _check_value(column, given[column.name])
    if not given["name"] or "\n" in given["name"]:
        raise DataError("study.json: a name is one line of text")
    if given["state"] not in _STATES:
        raise DataError(f"study.json: state must be one of {', '.join(_STATES)}")
    return dict(given)


def _check_value(column: Any, value: Any) -> None:
    kind = _kind(column)
    if value is None:
        if not column.nullable:
            raise DataError(f"study.json: {column.name} is missing")
        return
    fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
    if not fits or (kind is not bool and isinstance(value, bool)):
        raise DataError(f"study.json: {column.name} must be {kind.__name__}, got {value!r}")
    if kind is float and not math.isfinite(value):
        raise DataError(f"study.json: {column.name} must be finite")
    if kind is int and abs(value) > 2**62:
        raise DataError(f"study.json: {column.name} is too large")


def _check(study: Mapping[str, Any], tables: Mapping[str, Mapping[str, list[Any]]]) -> None:
    """See that the tables speak of one another as a study's do, and that the money adds up."""
    names = _unique(tables["questions"], ("batch", "position"), "questions")
    _unique(tables["questions"], ("row", "col", "mode", "repeat"), "questions")
    _unique(tables["facts"], ("batch", "position", "turn"), "facts")
    _unique(tables["wants"], ("step", "position"), "wants")
    _unique(tables["labels"], ("axis", "position"), "labels")
    _unique(tables["labels"], ("axis", "label"), "labels")
    steps = {n for (n,) in _unique(tables["steps"], ("step",), "steps")}
    epochs = {n for (n,) in _unique(tables["epochs"], ("epoch",), "epochs")}
    for table in ("facts", "pending"):
        _inside(_keys(tables[table], ("batch", "position")), names, table)
    known = [key for key in _keys(tables["wants"], ("batch", "at")) if key[0] is not None]
    _inside(known, names, "wants")
    _unique(tables["pending"], ("batch", "position"), "pending")
    if not _counts(epochs, study["epoch"] + 1):
        raise DataError(f"epochs.csv must hold epochs 0..{study['epoch']}")
    if any(not 0 <= n < study["next_step"] for n in steps):
        raise DataError(f"steps.csv must hold steps below {study['next_step']}")
    odd = [kind for kind in tables["facts"]["kind"] if kind not in _KINDS]
    if odd:
        raise DataError(f"facts.csv: {odd[0]!r} is no kind of fact")
    _check_values(study, tables)
    _check_labels(study, tables["labels"])
    _check_money(study, tables)
    for name, column in _MAPPINGS:
        for text in tables[name][column]:
            if text is not None and not isinstance(json.loads(text), dict):
                raise DataError(f"{name}.csv: {column} must be a mapping")
    for quotes in tables["epochs"]["prices"]:
        if quotes is not None:
            Prices.from_json(json.loads(quotes))


def _check_values(study: Mapping[str, Any], tables: Mapping[str, Mapping[str, list[Any]]]) -> None:
    for kind, value, failed in zip(
        *(tables["facts"][c] for c in ("kind", "value", "failed")), strict=True
    ):
        if kind in ("answer", "known", "amend") and (value is None) != failed:
            raise DataError("facts.csv: an answer has a value, or failed")
    for table in ("questions", "pending", "wants"):
        for axis, size in (("row", study["n_rows"]), ("col", study["n_cols"])):
            lines = tables[table][axis]
            if lines and (min(lines) < 0 or (size is not None and max(lines) >= size)):
                raise DataError(f"{table}.csv: a {axis} lies outside of the matrix")


def _check_labels(study: Mapping[str, Any], labels: Mapping[str, list[Any]]) -> None:
    """See that an axis has no label, or one for each of its lines."""
    given: dict[str, list[int]] = {"row": [], "col": []}
    for axis, position in zip(labels["axis"], labels["position"], strict=True):
        if axis not in given:
            raise DataError(f"labels.csv: {axis!r} is no axis")
        given[axis].append(position)
    for axis, size in (("row", study["n_rows"]), ("col", study["n_cols"])):
        places = given[axis]
        if places and (size is None or not _counts(places, size)):
            raise DataError(f"labels.csv must have a label for each of {size} {axis}s, or none")


def _counts(numbers: Collection[int], size: int) -> bool:
    """Tell whether some numbers are 0..size - 1, each once; what is claimed may be far more than there is."""
    return len(numbers) == size and sorted(numbers) == list(range(size))


def _check_money(study: Mapping[str, Any], tables: Mapping[str, Mapping[str, list[Any]]]) -> None:
    charged, price = tables["facts"]["charged"], tables["pending"]["price"]
    if any(x < 0 for x in (*charged, *price, *tables["questions"]["price"])):
        raise DataError("a price is below 0")
    held = [
        x for x, until in zip(price, tables["pending"]["leased_until"], strict=True) if until >= 0
    ]
    sums = math.fsum(charged) + math.fsum(held)
    slack = 1e-6 * max(1.0, sums)
    if study["committed"] < sums - slack:
        raise DataError(f"{sums:g} was spent or is held, the study says {study['committed']:g}")
    if study["total"] is not None and study["committed"] > study["total"] + slack:
        raise DataError(
            f"{study['committed']:g} was spent or is held of a budget of {study['total']:g}"
        )


def _keys(table: Mapping[str, list[Any]], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name] for name in names), strict=True))


def _unique(
    table: Mapping[str, list[Any]], names: tuple[str, ...], title: str
) -> set[tuple[Any, ...]]:
    keys = _keys(table, names)
    found = set(keys)
    if len(found) < len(keys):
        raise DataError(f"{title}.csv: the same {', '.join(names)} stand there twice")
    return found


def _inside(keys: list[tuple[Any, ...]], names: set[tuple[Any, ...]], title: str) -> None:
    for key in keys:
        if key not in names:
            raise DataError(f"{title}.csv speaks of question {key[0]}.{key[1]}, which is not there")


def write(store: Store, found: Archive, name: str | None = None) -> str:
    """Write a study that was read, under its own name or another, and return that."""
    about = dict(found.study) | {"stepper_until": 0.0}
    if name is not None:
        about["name"] = name
    if not about["name"] or "\n" in about["name"]:
        raise DataError(f"a study's name must be one line of text, got {about['name']!r}")

    def insert(connection: Connection) -> None:
        try:
            made = sa.insert(schema.studies).values(**about).returning(schema.studies.c.id)
            study = int(connection.execute(made).scalar_one())
        except sa.exc.IntegrityError:
            raise StoreError(
                f"there is a study called {about['name']!r} already; choose another name: --name NAME"
            ) from None
        for table in _TABLES:
            columns = dict(found.tables[table.name])
            if table is schema.facts and about["streaming"]:
                columns["implausible"] = _marks(found.tables)
            if next(iter(columns.values())):
                store.database.insert(connection, table, {"study": study} | columns)
        _tally(connection, study, found.tables)

    store.database.write(insert)
    return str(about["name"])


def _tally(
    connection: Connection, study: int, tables: Mapping[str, Mapping[str, list[Any]]]
) -> None:
    """Count the open questions of a study that was read, and note when its last answer came."""
    queue, said = tables["pending"], tables["facts"]
    held = zip(queue["price"], queue["leased_until"], strict=True)
    times = zip(said["kind"], said["told_at"], strict=True)
    last = max((at for kind, at in times if kind == "answer"), default=0.0)
    prices = [price for price, until in held if until >= 0]
    tallies.add(connection, study, prices, told_at=last)


def _marks(tables: Mapping[str, Mapping[str, list[Any]]]) -> list[bool | None]:
    """Tell which answers lie far from what was expected, and were not corrected since."""
    asked, said = tables["questions"], tables["facts"]
    name = ("batch", "position")
    expected = dict(zip(_keys(asked, name), _keys(asked, ("expected", "deviation")), strict=True))
    corrected: dict[tuple[Any, ...], int] = {}  # the last turn that corrects, by question
    keys, kinds, turns = _keys(said, name), said["kind"], said["turn"]
    for key, kind, turn in zip(keys, kinds, turns, strict=True):
        if kind in CORRECTIONS:
            corrected[key] = max(turn, corrected.get(key, -1))
    found: list[bool | None] = []
    for key, kind, turn, value in zip(keys, kinds, turns, said["value"], strict=True):
        judged = kind in ("answer", "amend") and value is not None
        stands = turn >= corrected.get(key, -1)
        found.append(is_far(value, *expected[key]) if judged and stands else None)
    return found


# format 1


def _read_first(archive: zipfile.ZipFile, given: Mapping[str, Any]) -> Archive:
    """Return a study that was exported before there were epochs."""
    tables = {}
    for name, columns in _OLD.items():
        kinds = {column: (kind, True) for column, kind in columns.items()}
        parsed = _parsed(name, _part(archive, f"{name}.csv"), kinds)
        tables[name] = [
            dict(zip(parsed, row, strict=True)) for row in zip(*parsed.values(), strict=True)
        ]
    plan, params = renamed(str(given["plan"]), dict(given["params"]))
    rows = legacy.converted({**given, "plan": plan, "params": params}, tables, plans.streams(plan))
    (study,) = rows.pop("studies")
    blank = {c.name: None for c in schema.studies.columns if c.name not in ("id", *_MOMENT)}
    study = _checked_study({k: v for k, v in (blank | study).items() if k not in _MOMENT})
    found = {}
    for table in _TABLES:
        names = [c.name for c in _columns(table)]
        found[table.name] = {n: [row.get(n) for row in rows[table.name]] for n in names}
    _check(study, found)
    return Archive(study, found)
