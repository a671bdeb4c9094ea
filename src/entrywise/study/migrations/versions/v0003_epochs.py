"""Epochs: a study is a log of steps and facts, and whatever changes it starts its plan anew with all that was told.

The rows of earlier tables are read, turned into today's by :mod:`entrywise.study.legacy`, and written again, all in
one transaction.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from entrywise.methods import renamed
from entrywise.study.legacy import converted
from entrywise.study.plans import streams

revision = "0003"
down_revision = "0002"

_OLD = ("labels", "known", "batches", "questions", "answers", "pending", "retired")
_INDEXES = (
    ("questions_entry", "questions"),
    ("pending_free", "pending"),
    ("pending_entry", "pending"),
    ("retired_question", "retired"),
)


def upgrade() -> None:
    """Read the old rows, make the new tables, write the rows again."""
    bind = op.get_bind()
    kept = []
    for study in _rows(bind, "SELECT * FROM studies ORDER BY id"):
        plan, params = renamed(study["plan"], json.loads(study["params"]))
        now = study | {"plan": plan, "params": json.dumps(params)}
        kept.append((study["id"], converted(now, _tables(bind, study["id"]), streams(plan))))
    for name, table in _INDEXES:
        op.drop_index(name, table)
    for name in (*_OLD, "checkpoints", "studies"):
        op.drop_table(name)
    _create()
    for number, tables in kept:
        for name, rows in tables.items():
            column = "id" if name == "studies" else "study"
            _insert(bind, name, [{column: number} | row for row in rows])
    op.execute("INSERT INTO clock (id, latest, ahead) VALUES (1, 0, 0)")
    if bind.dialect.name == "postgresql":
        op.execute(
            "SELECT setval('studies_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM studies), false)"
        )
        op.execute(
            "ALTER TABLE pending SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,"
            " autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000)"
        )


def _rows(bind: Any, query: str, **values: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in bind.execute(sa.text(query), values).mappings()]


def _tables(bind: Any, study: int) -> dict[str, list[dict[str, Any]]]:
    return {
        name: _rows(bind, f"SELECT * FROM {name} WHERE study = :study", study=study)  # noqa: S608
        for name in _OLD
    }


def _insert(bind: Any, name: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    names = list(dict.fromkeys(key for row in rows for key in row))
    table = sa.table(name, *(sa.column(key) for key in names))
    blank = dict.fromkeys(names)
    bind.execute(sa.insert(table), [blank | row for row in rows])


def _create() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("symmetric", sa.Boolean, nullable=False),
        sa.Column("fresh", sa.Boolean, nullable=False),
        sa.Column("tolerates_failed", sa.Boolean, nullable=False),
        sa.Column("history", sa.Boolean, nullable=False),
        sa.Column("streaming", sa.Boolean, nullable=False),
        sa.Column("n_rows", sa.BigInteger),
        sa.Column("n_cols", sa.BigInteger),
        sa.Column("currency", sa.Text),
        sa.Column("total", sa.Float),
        sa.Column("committed", sa.Float, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("trouble", sa.Text),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("first_step", sa.BigInteger, nullable=False),
        sa.Column("current", sa.BigInteger, nullable=False),
        sa.Column("next_step", sa.BigInteger, nullable=False),
        sa.Column("asked", sa.BigInteger, nullable=False),
        sa.Column("withdrawn", sa.BigInteger, nullable=False),
        sa.Column("given", sa.BigInteger, nullable=False),
        sa.Column("stepper", sa.Text),
        sa.Column("stepper_until", sa.Float, nullable=False),
        sa.Column("parent", sa.Text),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.UniqueConstraint("name", name="studies_name"),
    )
    op.create_table(
        "epochs",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("first_step", sa.BigInteger, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("prices", sa.Text),
        sa.Column("dropped", sa.Text),
        sa.Column("total", sa.Float),
        sa.Column("left", sa.Float),
        sa.Column("change", sa.Text, nullable=False),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("study", "epoch"),
    )
    op.create_table(
        "steps",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("asked", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("filter", sa.Text),
        sa.Column("limit", sa.BigInteger),
        sa.Column("left", sa.Float),
        sa.Column("ended", sa.Text),
        sa.Column("report", sa.Text),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("study", "step"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "questions",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("col", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("repeat", sa.BigInteger, nullable=False),
        sa.Column("unit", sa.BigInteger),
        sa.Column("price", sa.Float, nullable=False),
        sa.Column("arm", sa.Text),
        sa.Column("probability", sa.Float),
        sa.Column("expected", sa.Float),
        sa.Column("deviation", sa.Float),
        sa.Column("plate", sa.BigInteger),
        sa.Column("well", sa.Text),
        sa.PrimaryKeyConstraint("study", "batch", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "questions_entry",
        "questions",
        ["study", "row", "col", "mode", "repeat"],
        postgresql_where=sa.text('"row" >= 0'),
        unique=True,
    )
    op.create_table(
        "wants",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("col", sa.BigInteger, nullable=False),
        sa.Column("batch", sa.BigInteger),
        sa.Column("at", sa.BigInteger),
        sa.Column("value", sa.Float),
        sa.Column("given", sa.Boolean, nullable=False),
        sa.Column("arm", sa.Text),
        sa.Column("probability", sa.Float),
        sa.PrimaryKeyConstraint("study", "step", "position"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "facts",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("noise", sa.Float),
        sa.Column("worker", sa.Text),
        sa.Column("holders", sa.Text),
        sa.Column("told_at", sa.Float, nullable=False),
        sa.Column("charged", sa.Float, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("seen", sa.BigInteger),
        sa.PrimaryKeyConstraint("study", "batch", "position", "turn"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "facts_seen",
        "facts",
        ["study", "seen"],
        postgresql_where=sa.text("turn >= 0"),
    )
    op.create_table(
        "pending",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("col", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("unit", sa.BigInteger),
        sa.Column("price", sa.Float, nullable=False),
        sa.Column("plate", sa.BigInteger),
        sa.Column("worker", sa.Text),
        sa.Column("leased_at", sa.Float),
        sa.Column("leased_until", sa.Float, nullable=False),
        sa.Column("holders", sa.Text),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("study", "batch", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "pending_entry",
        "pending",
        ["study", "row", "col"],
        postgresql_where=sa.text('"row" >= 0'),
    )
    op.create_index(
        "pending_free",
        "pending",
        ["study", "step", "leased_until", "batch", "position"],
        postgresql_where=sa.text("leased_until >= 0"),
    )
    op.create_table(
        "labels",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("axis", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("study", "axis", "position"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "checkpoints",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("arrays", sa.LargeBinary, nullable=False),
        sa.Column("rng", sa.Text),
        sa.PrimaryKeyConstraint("study", "step"),
    )
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("latest", sa.Float, nullable=False),
        sa.Column("ahead", sa.Float, nullable=False),
    )
