"""One portable file a study: a zip of CSV and JSON from which an identical study is rebuilt."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import asdict, replace
from os import PathLike
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import DataError
from entrywise.npz import write_whole
from entrywise.study import schema
from entrywise.study.sql import _JSON, SQLStore
from entrywise.study.store import Record

FORMAT = 1
_TABLES = (
    schema.labels,
    schema.known,
    schema.batches,
    schema.questions,
    schema.answers,
    schema.pending,
    schema.retired,
)


def export(store: SQLStore, record: Record, path: str | PathLike[str]) -> None:
    """Write a study; the same study gives the same bytes."""

    def read(connection: Connection) -> tuple[Record, dict[str, Any]]:
        # the study's own row is read in the same transaction as its tables: one consistent state
        row = connection.execute(
            sa.select(schema.studies).where(schema.studies.c.id == record.id)
        ).one()
        now = replace(record, **{k: v for k, v in row._asdict().items() if k not in _JSON})
        tables = {}
        for table in _TABLES:
            query = sa.select(*_columns(table)).where(table.c.study == record.id)
            tables[table.name] = store.database.columns(
                connection, query.order_by(*table.primary_key.columns)
            )
        return now, tables

    now, tables = store.database.read(read)
    about = asdict(now)
    del about["id"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        head = {"format": FORMAT, "study": about}
        _add(archive, "study.json", json.dumps(head, indent=1, ensure_ascii=False))
        for table in _TABLES:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([column.name for column in _columns(table)])
            kinds = [column.type for column in _columns(table)]
            writer.writerows(
                [_text(x, kind) for x, kind in zip(row, kinds, strict=True)]
                for row in tables[table.name]
            )
            _add(archive, f"{table.name}.csv", text.getvalue())
    write_whole(path, buffer.getvalue())


def load(store: SQLStore, path: str | PathLike[str], name: str | None = None) -> str:
    """Rebuild a study that :func:`export` wrote, and return its name."""
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(archive.read("study.json"))
            if head.get("format") != FORMAT:
                raise DataError(
                    f"{path} has format {head.get('format')}, this version reads {FORMAT}; upgrade"
                )
            tables = {table.name: _read(archive, table) for table in _TABLES}
        record = Record(**head["study"])
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, StopIteration, OSError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} must be a study exported by entrywise: {error}") from None
    record = replace(record, name=name or record.name)

    def write(connection: Connection) -> None:
        study = store.add(connection, record)
        for table in _TABLES:
            store.database.insert(connection, table, {"study": study} | tables[table.name])

    store.database.write(write)
    return record.name


def _columns(table: sa.Table) -> list[sa.Column[Any]]:
    return [column for column in table.columns if column.name not in ("study", "id")]


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, text.encode())


def _text(value: Any, kind: Any) -> str:
    """Write a value; texts are quoted so that an empty one is not nothing."""
    if value is None:
        return ""
    if isinstance(kind, sa.Boolean):
        return str(int(value))
    if isinstance(kind, sa.Text):
        return "'" + str(value)
    return repr(float(value)) if isinstance(kind, sa.Float) else str(int(value))


def _read(archive: zipfile.ZipFile, table: sa.Table) -> dict[str, Any]:
    text = io.TextIOWrapper(archive.open(f"{table.name}.csv"), encoding="utf-8", newline="")
    reader = csv.reader(text)
    names = next(reader)
    columns = _columns(table)
    if names != [column.name for column in columns]:
        raise DataError(
            f"{table.name}.csv must have columns {', '.join(c.name for c in columns)}, got {', '.join(names)}"
        )
    lists = list(zip(*reader, strict=True)) or [()] * len(names)
    return {
        c.name: [_value(x, c.type) for x in given] for c, given in zip(columns, lists, strict=True)
    }


def _value(text: str, kind: Any) -> Any:
    if text == "":
        return None
    if isinstance(kind, sa.Boolean):
        return bool(int(text))
    if isinstance(kind, sa.Text):
        return text[1:]
    return float(text) if isinstance(kind, sa.Float) else int(text)
