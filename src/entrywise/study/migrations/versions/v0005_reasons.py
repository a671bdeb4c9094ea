"""Facts may say why: a correction, an answer that was forgotten, a measurement that failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column of reasons."""
    op.add_column("facts", sa.Column("reason", sa.Text))
