"""The first tables: studies, their questions and answers, leases, labels, checkpoints."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("budget", sa.Float),
        sa.Column("sunk", sa.Float, nullable=False),
        sa.Column("prices", sa.Text),
        sa.Column("symmetric", sa.Boolean, nullable=False),
        sa.Column("fresh", sa.Boolean, nullable=False),
        sa.Column("tolerates_failed", sa.Boolean, nullable=False),
        sa.Column("n_rows", sa.BigInteger),
        sa.Column("n_cols", sa.BigInteger),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("trouble", sa.Text),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("current", sa.BigInteger, nullable=False),
        sa.Column("next_batch", sa.BigInteger, nullable=False),
        sa.Column("rewinds", sa.BigInteger, nullable=False),
        sa.Column("parent", sa.Text),
        sa.Column("versions", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.UniqueConstraint("name", name="studies_name"),
    )
    op.create_table(
        "batches",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("wanted", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("dead", sa.Boolean, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("study", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "questions",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("unit", sa.BigInteger),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("col", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("price", sa.Float, nullable=False),
        sa.Column("arm", sa.Text),
        sa.Column("probability", sa.Float),
        sa.PrimaryKeyConstraint("study", "batch", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index("questions_entry", "questions", ["study", "row", "col"])
    op.create_table(
        "answers",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("told_at", sa.Float, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("study", "batch", "position"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pending",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("unit", sa.BigInteger),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("col", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("leased_until", sa.Float, nullable=False),
        sa.Column("holders", sa.Text),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("study", "batch", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index("pending_free", "pending", ["study", "leased_until", "batch", "position"])
    op.create_index("pending_entry", "pending", ["study", "row", "col"])
    op.create_table(
        "retired",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("told_at", sa.Float, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("retired_at", sa.Float, nullable=False),
    )
    op.create_index("retired_question", "retired", ["study", "batch", "position"])
    op.create_table(
        "known",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("col", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("study", "position"),
        sqlite_with_rowid=False,
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
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("arrays", sa.LargeBinary, nullable=False),
        sa.Column("rng", sa.Text),
        sa.PrimaryKeyConstraint("study", "batch"),
    )
