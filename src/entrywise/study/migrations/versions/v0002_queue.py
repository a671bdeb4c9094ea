"""Asking and telling stay quick on PostgreSQL, whatever was asked before and however old its statistics are.

It leaves the rows of answered questions in the index until it vacuums. With the batch before the lease in the index,
looking for free questions passes over those of the batch at hand alone, not over all of the past. There the indexes beside
the primary keys become partial ones, of a condition that holds for all rows and that only their own queries say: while
there are no statistics of a new study, any index seems as good as the primary key to find a single question. An open
question carries its price, so that what is reserved is one sum; some tables of version 0001 have that column already.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Give the queue its prices; make the indexes anew; let it be vacuumed by what has left it, not by a share of its size."""
    if "price" not in {
        column["name"] for column in sa.inspect(op.get_bind()).get_columns("pending")
    }:
        op.add_column("pending", sa.Column("price", sa.Float, nullable=False, server_default="0"))
        op.execute(
            "UPDATE pending SET price = (SELECT price FROM questions WHERE questions.study = pending.study"
            " AND questions.batch = pending.batch AND questions.position = pending.position)"
        )
    for name, table, columns, condition in (
        (
            "pending_free",
            "pending",
            ["study", "batch", "leased_until", "position"],
            "leased_until >= 0",
        ),
        ("pending_entry", "pending", ["study", "row", "col"], '"row" >= 0'),
        ("questions_entry", "questions", ["study", "row", "col"], '"row" >= 0'),
    ):
        op.drop_index(name, table)
        op.create_index(name, table, columns, postgresql_where=sa.text(condition))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE pending SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,"
            " autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000)"
        )
