"""The tables of a study: one row a question, one row a fact, readable with any SQL tool.

::

    studies     where a study stands: its money, its cursor, its epoch, the next step
    epochs      what the plan was started with: parameters, prices, money, version
    steps       what one advance of the plan saw and wanted
    questions   a measurement, named by the step and the position at which it was first wanted;
                batch -1 holds the entries that were known beforehand
    wants       a position of a later step that wants a question which was there already
    facts       what was told, corrected, added, forgotten or withdrawn; never overwritten
    pending     the questions without an answer, with their leases; withdrawn ones can still be answered
    tallies     how many of these are open and what is held for them, in a few parts that add up
    tokens      who may do what through the service, as hashes

``questions``, ``wants``, ``steps`` and ``facts`` only grow: they are the log. ``facts.seen`` is the first
step that was given the fact. Times are seconds since 1970, UTC, by the clock of the store.

The tables are made by the migrations beside this file, never from here; a test holds the two equal.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
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

HEAD = "0006"  # the newest migration
GIVEN = -1  # the batch of entries that were known beforehand

# True of every row, and said by the queries that an index is for: to others it does not exist. While PostgreSQL has
# no statistics of a new study it would else take any index, and read all of the study to find a single question.
FREE, ENTRY, SEEN = text("leased_until >= 0"), text('"row" >= 0'), text("turn >= 0")
# True of few rows, which their own indexes hold; said by the queries that read these alone.
OUT, FAILED_BEFORE = text("leased_until > 1.5"), text("failed")
REPORTED, FAR = text("report IS NOT NULL"), text("implausible")

metadata = MetaData()

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column(
        "plan", Text, nullable=False
    ),  # a name in entrywise.methods, or one that the opener allows
    Column("seed", BigInteger, nullable=False),
    Column("symmetric", Boolean, nullable=False),
    Column("fresh", Boolean, nullable=False),
    Column("tolerates_failed", Boolean, nullable=False),
    Column("history", Boolean, nullable=False),
    Column("streaming", Boolean, nullable=False),
    Column("n_rows", BigInteger),
    Column("n_cols", BigInteger),
    Column("currency", Text),
    Column("total", Float),  # the money of the study, all epochs together
    Column("committed", Float, nullable=False),  # spent, or held for questions that are pending
    Column("state", Text, nullable=False),  # open, finished, exhausted, closed
    Column("reason", Text),  # why it ended
    Column("trouble", Text),  # why the plan cannot go on
    Column("cursor", BigInteger, nullable=False),  # grows by one at every step and change
    Column("epoch", BigInteger, nullable=False),
    Column("first_step", BigInteger, nullable=False),  # of this epoch
    Column("current", BigInteger, nullable=False),  # the next step waits for questions from here on
    Column("next_step", BigInteger, nullable=False),
    Column("asked", BigInteger, nullable=False),  # questions ever asked
    Column("withdrawn", BigInteger, nullable=False),  # of these, neither pending nor answered
    Column("given", BigInteger, nullable=False),  # entries known beforehand
    Column("stepper", Text),  # who works out the next step
    Column("stepper_until", Float, nullable=False),
    Column("parent", Text),  # the study this one was forked from
    Column("created_at", Float, nullable=False),
    UniqueConstraint("name", name="studies_name"),
)

epochs = Table(
    "epochs",
    metadata,
    Column("study", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("params", Text, nullable=False),  # JSON
    Column("prices", Text),  # JSON, as Prices.to_json
    Column("dropped", Text),  # JSON: lines that are not asked again
    Column("total", Float),  # the money of the study when it began
    Column("left", Float),  # what of it was neither spent nor held
    Column("change", Text, nullable=False),  # what began it
    Column("versions", Text, nullable=False),  # JSON: the software that may advance it
    Column("made_at", Float, nullable=False),
    PrimaryKeyConstraint("study", "epoch"),
)

steps = Table(
    "steps",
    metadata,
    Column("study", Integer, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("mode", Text, nullable=False),
    Column("size", BigInteger, nullable=False),  # positions wanted
    Column("asked", BigInteger, nullable=False),  # of these, new questions
    Column("digest", Text, nullable=False),  # of mode, rows, cols, units
    Column("cost", Float, nullable=False),  # what its questions add to the bill
    Column("filter", Text),  # JSON: the only rows and columns that it might ask for
    Column("limit", BigInteger),
    Column("left", Float),  # money neither spent nor held, as the plan was told
    Column("ended", Text),  # finished or exhausted: the plan returned here
    Column("report", Text),  # JSON: a few numbers of the plan about this moment
    Column("version", Text, nullable=False),
    Column("asked_at", Float, nullable=False),
    PrimaryKeyConstraint("study", "step"),
    Index("steps_report", "study", "step", sqlite_where=REPORTED, postgresql_where=REPORTED),
    sqlite_with_rowid=False,
)

questions = Table(
    "questions",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("col", BigInteger, nullable=False),
    Column("mode", Text, nullable=False),
    Column("repeat", BigInteger, nullable=False),  # how often the entry was asked before
    Column("unit", BigInteger),
    Column("price", Float, nullable=False),  # as it was first quoted
    Column("arm", Text),
    Column("probability", Float),
    Column("expected", Float),
    Column("deviation", Float),
    Column("plate", BigInteger),
    Column("well", Text),
    PrimaryKeyConstraint("study", "batch", "position"),
    Index(
        "questions_entry",
        *("study", "row", "col", "mode", "repeat"),
        unique=True,
        postgresql_where=ENTRY,
    ),
    sqlite_with_rowid=False,
)

wants = Table(
    "wants",
    metadata,
    Column("study", Integer, nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("col", BigInteger, nullable=False),
    Column("batch", BigInteger),  # the question that is waited for or handed over: batch.at
    Column("at", BigInteger),
    Column("value", Float),  # what memory answered at once
    Column("given", Boolean, nullable=False),  # whether it did
    Column("arm", Text),
    Column("probability", Float),
    PrimaryKeyConstraint("study", "step", "position"),
    sqlite_with_rowid=False,
)

facts = Table(
    "facts",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),  # 0 is the first that is said of a question
    Column("kind", Text, nullable=False),  # answer, known, amend, void, withdrawn, repeat, failed
    Column("value", Float),
    Column("failed", Boolean, nullable=False),
    Column("noise", Float),
    Column("worker", Text),
    Column("holders", Text),  # others who held the question, a line each
    Column("told_at", Float, nullable=False),
    Column("charged", Float, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("seen", BigInteger),  # the first step that was given it
    Column("reason", Text),  # why it failed, was corrected or forgotten, where somebody said
    Column("implausible", Boolean),  # far from what was expected, and not corrected since
    PrimaryKeyConstraint("study", "batch", "position", "turn"),
    Index("facts_seen", "study", "seen", postgresql_where=SEEN),
    Index(
        "facts_implausible",
        *("study", "batch", "position"),
        sqlite_where=FAR,
        postgresql_where=FAR,
    ),
    sqlite_with_rowid=False,
)

pending = Table(
    "pending",
    metadata,
    Column("study", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),  # the latest step that wants it
    Column("row", BigInteger, nullable=False),
    Column("col", BigInteger, nullable=False),
    Column("mode", Text, nullable=False),
    Column("unit", BigInteger),
    Column("price", Float, nullable=False),  # what its answer adds to the bill
    Column("plate", BigInteger),
    Column("worker", Text),
    Column("leased_at", Float),
    Column("leased_until", Float, nullable=False),  # 0: queued; 1: failed before; -1: withdrawn
    Column("holders", Text),  # everyone who ever held it, a line each
    Column("failed", Boolean, nullable=False),
    Column("turn", BigInteger, nullable=False),  # of the next fact about it
    PrimaryKeyConstraint("study", "batch", "position"),
    Index(
        "pending_free",
        *("study", "step", "leased_until", "batch", "position"),
        postgresql_where=FREE,
    ),
    Index("pending_entry", "study", "row", "col", postgresql_where=ENTRY),
    Index("pending_out", "study", "leased_until", sqlite_where=OUT, postgresql_where=OUT),
    Index(
        "pending_failed",
        *("study", "batch", "position"),
        sqlite_where=FAILED_BEFORE,
        postgresql_where=FAILED_BEFORE,
    ),
    sqlite_with_rowid=False,
)

tallies = Table(
    "tallies",
    metadata,
    Column("study", Integer, nullable=False),
    Column("slot", Integer, nullable=False),  # who wrote it; the sum over slots is what counts
    Column("open", BigInteger, nullable=False),  # questions that wait for an answer
    Column("held", Float, nullable=False),  # their prices
    Column("rest", Float, nullable=False),  # what rounding has cut off them
    Column("told_at", Float, nullable=False),  # when the last answer came, 0 before the first
    PrimaryKeyConstraint("study", "slot"),
    sqlite_with_rowid=False,
    # written again and again: room for the next version of a row
    postgresql_with={"fillfactor": 50},
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
    Column("step", BigInteger, nullable=False),  # the first step after it
    Column("epoch", BigInteger, nullable=False),
    Column("arrays", LargeBinary, nullable=False),  # npz
    Column("rng", Text),  # JSON
    PrimaryKeyConstraint("study", "step"),
)

tokens = Table(  # who may do what through the service
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("role", Text, nullable=False),  # reader, worker, owner
    Column("study", Text),  # its name; all studies where there is none
    Column("made_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("revoked_at", Float),
    UniqueConstraint("hash", name="tokens_hash"),
)

clock = Table(  # SQLite has no clock of its own: the latest time it saw, and how far ahead that is
    "clock",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("latest", Float, nullable=False),
    Column("ahead", Float, nullable=False),
)

ANSWERED = questions.join(  # questions and what was said of them, a row a fact
    facts,
    (facts.c.study == questions.c.study)
    & (facts.c.batch == questions.c.batch)
    & (facts.c.position == questions.c.position),
)


def about(table: Table, study: int, key: tuple[int, int]) -> tuple[ColumnElement[bool], ...]:
    """Return where a table speaks of a question."""
    c = table.c
    return c.study == study, c.batch == key[0], c.position == key[1]
