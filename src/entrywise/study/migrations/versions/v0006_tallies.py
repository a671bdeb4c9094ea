"""Where a study stands is kept, not counted: a table of tallies, marks of implausible answers, indexes of the few."""

from __future__ import annotations

import math

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_FEW = (  # indexes of the few rows that a status names: (name, table, columns, which)
    ("pending_out", "pending", ("study", "leased_until"), "leased_until > 1.5"),
    ("pending_failed", "pending", ("study", "batch", "position"), "failed"),
    ("facts_implausible", "facts", ("study", "batch", "position"), "implausible"),
    ("steps_report", "steps", ("study", "step"), "report IS NOT NULL"),
)
_OPEN = sa.text("SELECT price FROM pending WHERE study = :study AND leased_until >= 0")
_LAST = sa.text("SELECT max(told_at) FROM facts WHERE study = :study AND kind = 'answer'")
_TALLY = sa.text(
    "INSERT INTO tallies (study, slot, open, held, rest, told_at) VALUES (:study, 0, :open, :held, :rest, :last)"
)
_MARK = """
UPDATE facts SET implausible = {true}
WHERE kind IN ('answer', 'amend') AND value IS NOT NULL AND EXISTS (
    SELECT 1 FROM questions AS q
    WHERE q.study = facts.study AND q.batch = facts.batch AND q.position = facts.position
        AND facts.value NOT BETWEEN q.expected - 6.0 * q.deviation AND q.expected + 6.0 * q.deviation)
    AND NOT EXISTS (
    SELECT 1 FROM facts AS later
    WHERE later.study = facts.study AND later.batch = facts.batch AND later.position = facts.position
        AND later.turn > facts.turn AND later.kind IN ('amend', 'void'))
"""


def upgrade() -> None:
    """Make the table, fill it, and mark what lies far from what was expected."""
    op.create_table(
        "tallies",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("open", sa.BigInteger, nullable=False),
        sa.Column("held", sa.Float, nullable=False),
        sa.Column("rest", sa.Float, nullable=False),
        sa.Column("told_at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("study", "slot"),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )
    op.add_column("facts", sa.Column("implausible", sa.Boolean))
    bind = op.get_bind()
    for study in bind.execute(sa.text("SELECT id FROM studies")).scalars().all():
        prices = list(bind.execute(_OPEN, {"study": study}).scalars())
        held = math.fsum(prices)
        rest = math.fsum([*prices, -held])  # what rounding has cut off
        last = bind.execute(_LAST, {"study": study}).scalar() or 0.0
        sums = {"open": len(prices), "held": held, "rest": rest, "last": last}
        bind.execute(_TALLY, {"study": study} | sums)
    true = "true" if bind.dialect.name == "postgresql" else "1"
    op.execute(_MARK.format(true=true))
    for name, table, columns, which in _FEW:
        where = sa.text(which)
        op.create_index(name, table, list(columns), sqlite_where=where, postgresql_where=where)
