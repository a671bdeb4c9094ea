"""The queue of open questions stays quick whatever was asked before.

PostgreSQL leaves the rows of answered questions in the index until it vacuums. With the batch before the lease in
the index, looking for free questions passes over those of the batch at hand alone, not over all of the past. The index
is one for queries that say ``leased_until >= 0``: without statistics PostgreSQL would else take it, and read the whole
batch, to find a single question.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Put the batch before the lease; let the queue be vacuumed by what has left it, not by a share of its size."""
    op.drop_index("pending_free", "pending")
    free = sa.text("leased_until >= 0")
    columns = ["study", "batch", "leased_until", "position"]
    op.create_index("pending_free", "pending", columns, sqlite_where=free, postgresql_where=free)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE pending SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,"
            " autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000)"
        )
