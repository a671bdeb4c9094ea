"""The tables of a study: one row a question, one row an answer, readable with any SQL tool.

``questions`` and ``answers`` only grow: they are the log. ``pending`` holds the questions that are still
open, all of them of the study's current batch, with their leases; an answer moves its question out of it.
``retired`` keeps what does not stand: corrected values, repeats, failures that were measured again. Times are
seconds since 1970, UTC.

The tables are made by the migrations beside this file, never from here; a test holds the two equal.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

HEAD = "0002"  # the newest migration

# True of every row, and said by the queries that an index is for: to others it does not exist. While PostgreSQL has
# no statistics of a new study it would else take any index, and read all of the study to find a single question.
FREE, ENTRY = text("leased_until >= 0"), text('"row" >= 0')

metadata = MetaData()

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("plan", Text, nullable=False),  # a name in entrywise.methods, or module:function
    Column("params", Text, nullable=False),  # JSON
    Column("seed", BigInteger, nullable=False),
    Column("budget", Float),
    Column("sunk", Float, nullable=False),  # spent by the studies it was forked from
    Column("prices", Text),  # JSON, as Prices.to_json
    Column("symmetric", Boolean, nullable=False),
    Column("fresh", Boolean, nullable=False),
    Column("tolerates_failed", Boolean, nullable=False),
    Column("n_rows", BigInteger),
    Column("n_cols", BigInteger),
    Column("state", Text, nullable=False),  # open, finished, exhausted, closed
    Column("trouble", Text),  # why the plan cannot go on
    Column("cursor", BigInteger, nullable=False),  # grows by one at every step: compare-and-swap
    Column("current", BigInteger, nullable=False),  # number of the newest live batch
    Column("next_batch", BigInteger, nullable=False),
    Column("rewinds", BigInteger, nullable=False),  # grows when an answer is corrected
    Column("parent", Text),  # the study this one was forked from
    Column("versions", Text, nullable=False),  # JSON
    Column("created_at", Float, nullable=False),
    UniqueConstraint("name", name="studies_name"),
)

batches = Table(
    "batches",
    metadata,
    Column("study", Integer, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("wanted", BigInteger, nullable=False),  # how many of them memory could not answer
    Column("mode", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of mode, rows, cols, units
    Column("cost", Float, nullable=False),  # what its answers so far and to come add to the bill
    Column(
        "dead", Boolean, nullable=False
    ),  # withdrawn by a correction; its answers serve as memory
    Column("version", Text, nullable=False),
    Column("asked_at", Float, nullable=False),
    PrimaryKeyConstraint("study", "number"),
    sqlite_with_rowid=False,
)

questions = Table(
    "questions",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("unit", BigInteger),
    Column("row", BigInteger, nullable=False),
    Column("col", BigInteger, nullable=False),
    Column("mode", Text, nullable=False),
    Column("price", Float, nullable=False),
    Column("arm", Text),
    Column("probability", Float),
    PrimaryKeyConstraint("study", "batch", "position"),
    Index("questions_entry", "study", "row", "col", postgresql_where=ENTRY),
    sqlite_with_rowid=False,
)

answers = Table(
    "answers",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("value", Float),
    Column("failed", Boolean, nullable=False),
    Column("worker", Text),
    Column("told_at", Float, nullable=False),
    Column("source", Text, nullable=False),  # told, memory
    PrimaryKeyConstraint("study", "batch", "position"),
    sqlite_with_rowid=False,
)

pending = Table(
    "pending",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("unit", BigInteger),
    Column("row", BigInteger, nullable=False),
    Column("col", BigInteger, nullable=False),
    Column("price", Float, nullable=False),
    Column("worker", Text),
    Column("leased_until", Float, nullable=False),  # 0: never leased
    Column("holders", Text),  # everyone who ever held it, a line each
    Column("failed", Boolean, nullable=False),
    PrimaryKeyConstraint("study", "batch", "position"),
    Index("pending_free", "study", "batch", "leased_until", "position", postgresql_where=FREE),
    Index("pending_entry", "study", "row", "col", postgresql_where=ENTRY),
    sqlite_with_rowid=False,
)

retired = Table(
    "retired",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("value", Float),
    Column("failed", Boolean, nullable=False),
    Column("worker", Text),
    Column("told_at", Float, nullable=False),
    Column("reason", Text, nullable=False),  # amended, repeat, failed
    Column("retired_at", Float, nullable=False),
    Index("retired_question", "study", "batch", "position"),
)

known = Table(
    "known",
    metadata,
    Column("study", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("mode", Text, nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("col", BigInteger, nullable=False),
    Column("value", Float, nullable=False),
    PrimaryKeyConstraint("study", "position"),
    sqlite_with_rowid=False,
)

labels = Table(
    "labels",
    metadata,
    Column("study", Integer, nullable=False),
    Column("axis", Text, nullable=False),  # row, col
    Column("position", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    PrimaryKeyConstraint("study", "axis", "position"),
    sqlite_with_rowid=False,
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),  # the first batch that is asked after it
    Column("arrays", LargeBinary, nullable=False),  # npz
    Column("rng", Text),  # JSON
    PrimaryKeyConstraint("study", "batch"),
)
