"""A database behind a study: opened, migrated, locked as little as possible, read and written in bulk.

SQLite runs in WAL mode with ``synchronous=FULL``; writers queue at a lock file beside the database, so
that none of them starves and none is told that the database is locked. What only reads opens the file
read-only. PostgreSQL is reached by URL. The clock belongs here too.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import QueuePool, StaticPool

from entrywise.exceptions import StoreError
from entrywise.study.bare import Bare, Call, Found
from entrywise.study.schema import HEAD, clock

T = TypeVar("T")
PATIENCE = 60.0  # seconds before a database that stays locked or away is an error
FEW = 100  # rows that are better looked up one by one
SOME = 1000  # numbers that are sent beside a statement, which then stays the same
# KiB of an SQLite file that one who reads keeps. With SQLite's own 2,000 the caches of a service were seen to be given
# back and filled again while it ran, and the memory between them grew, though nothing in Python did
CACHE = 256
SERVER = 15  # connections to a server that threads of one process use at once; more of them wait
OURS = 0x656E7479  # application_id of our SQLite files: "enty"
_SECRETS = {"password", "passwd", "pwd", "sslpassword", "token", "passfile", "sslkey", "secret"}
_AGAIN = {  # PostgreSQL: serialization failure, deadlock, lock not available; server going down, crashed, coming up
    *("40001", "40P01", "55P03"),
    *("57P01", "57P02", "57P03"),
}
_COMING = (
    "system is starting up",
    "system is shutting down",
    "in recovery mode",
    "not yet accepting",
)


def normal_url(url: str) -> sa.URL:
    """Return the SQLAlchemy URL of a path (SQLite) or of a database URL.

    >>> normal_url("lab.db").drivername, normal_url("postgresql://host/lab").drivername
    ('sqlite', 'postgresql+psycopg')
    """
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    try:
        found = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # the port may be no number
        raise StoreError(
            f"a database is a file or a URL such as postgresql://user@host:5432/name, "
            f"got one of {url.partition('://')[0]!r} whose host or port cannot be read"
        ) from None
    if found.drivername in ("postgresql", "postgres"):
        found = found.set(drivername="postgresql+psycopg")
    try:
        kind = found.get_backend_name()
    except sa.exc.NoSuchModuleError:
        kind = found.drivername
    if kind not in ("sqlite", "postgresql"):
        raise StoreError(f"studies are kept in sqlite or postgresql, got {kind}")
    return found


def masked(url: sa.URL | str) -> str:
    """Return a URL as it may be shown: no password, in whatever form it was given.

    >>> masked("postgresql://me:secret@host/lab?sslpassword=secret")
    'postgresql://me:***@host/lab?sslpassword=***'
    """
    found = normal_url(url) if isinstance(url, str) else url
    hidden = {key: "***" for key in found.query if key.lower() in _SECRETS}
    shown = found.update_query_dict(hidden).set(drivername=found.get_backend_name())
    return shown.render_as_string(hide_password=True).replace("%2A%2A%2A", "***")


class Database:
    """Connections to one database, with transactions that wait for their turn and try again."""

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        self.url = normal_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.memory = self.sqlite and self.url.database in (None, "", ":memory:")
        self.clock: Callable[[], float] | None = None  # tests put their own here
        self._met = False
        self._pid = os.getpid()
        self._alone = threading.RLock()
        if self.sqlite and not self.memory:
            self._find_file(must_exist)
        self.engine = self._connect()
        self.reader = self._read_only() if self.sqlite and not self.memory else self.engine
        self._bare = Bare(self.engine)
        self._migrate(must_exist)

    @property
    def path(self) -> Path:
        """The file of an SQLite database."""
        return Path(str(self.url.database))

    def _find_file(self, must_exist: bool) -> None:
        path = self.path
        if must_exist and not path.exists():
            raise StoreError(f"there is no database {path}; make one with `study create`")
        if path.is_dir():
            raise StoreError(f"{path} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise StoreError(
                f"there is no folder {path.parent} for the database {path.name}; make it first"
            )
        if path.exists() and path.stat().st_size:
            with path.open("rb") as file:
                head = file.read(16)
            if head != b"SQLite format 3\0":
                raise StoreError(f"{path} is no SQLite database; nothing was touched, name another")

    def _connect(self) -> Engine:
        options: dict[str, Any] = {}
        if self.sqlite:
            options["connect_args"] = {"timeout": PATIENCE, "check_same_thread": False}
        else:  # all are kept: one that is closed while others wait for one is made again a moment later
            options |= {"pool_size": SERVER, "max_overflow": 0, "pool_use_lifo": True}
        if self.memory:
            options["poolclass"] = StaticPool
        try:
            engine = sa.create_engine(self.url, **options)
        except ModuleNotFoundError as error:
            raise StoreError(f"{error.name} is missing; install entrywise[postgres]") from None
        if self.sqlite:
            sa.event.listen(engine, "connect", _pragmas)
            sa.event.listen(engine, "begin", _begin)
        return engine

    def _read_only(self) -> Engine:
        """Return an engine that cannot write; where nobody can, nobody changes the file meanwhile either."""
        import sqlite3

        def connect() -> sqlite3.Connection:
            where = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            log = Path(f"{self.path}-wal")
            if not self.writable and not (log.exists() and log.stat().st_size):
                where += "&immutable=1"  # all of it is in the one file
            handle = sqlite3.connect(where, uri=True, timeout=PATIENCE, check_same_thread=False)
            handle.isolation_level = None  # we say BEGIN ourselves
            handle.execute(f"PRAGMA cache_size = -{CACHE}")
            return handle

        # size 0: as many as read at once, and all of them are kept
        engine = sa.create_engine(
            "sqlite://", creator=connect, poolclass=QueuePool, pool_size=0, pool_use_lifo=True
        )
        sa.event.listen(engine, "begin", _begin)
        return engine

    @property
    def writable(self) -> bool:
        """Whether this process may write to the file, and beside it."""
        if not self.sqlite or self.memory:
            return True
        beside = os.access(self.path.parent, os.W_OK)
        return beside and (not self.path.exists() or os.access(self.path, os.W_OK))

    def __repr__(self) -> str:
        return f"Database({masked(self.url)!r})"

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"the database {self.url.database if self.sqlite else masked(self.url)}"

    def close(self) -> None:
        """Close every connection."""
        self.reader.dispose()
        self.engine.dispose()  # last: it may write what is in the log back into the file
        self._bare.close()

    def now(self, connection: Connection) -> float:
        """Return the time of the store: the server's own, or one that never goes back on SQLite."""
        if self.clock is not None:
            return self.clock()
        if not self.sqlite:
            query = "SELECT extract(epoch FROM clock_timestamp())"
            return float(connection.exec_driver_sql(query).scalar_one())
        latest, ahead = connection.execute(sa.select(clock.c.latest, clock.c.ahead)).one()
        wall = time.time()
        if wall + ahead < latest:  # this machine's clock is behind what was seen before
            ahead = latest - wall
        writes = connection.get_execution_options().get("entrywise_write", True)
        if writes and wall + ahead > latest + 1.0:  # a second is as fine as leases need it
            connection.execute(sa.update(clock).values(latest=wall + ahead, ahead=ahead))
        return float(wall + ahead)

    def read(self, call: Callable[[Connection], T]) -> T:
        """Return ``call(connection)``, run on one consistent state of the database."""
        return self._transact(call, write=False)

    def read_whole(self, call: Callable[[Connection], T]) -> T:
        """Return ``call(connection)`` where all of its statements see the same state, on PostgreSQL too."""
        return self._transact(call, write=False, whole=True)

    def in_one_trip(self, *calls: Call) -> list[Found]:
        """Run statements of PostgreSQL that each commit by themselves, and return the rows of each."""
        return self._patiently(lambda: self._bare.run(*calls))

    def write(self, call: Callable[[Connection], T]) -> T:
        """Run ``call(connection)`` in a transaction that is committed whole, or not at all when it raises."""
        return self._transact(call, write=True)

    def _transact(self, call: Callable[[Connection], T], write: bool, whole: bool = False) -> T:
        if os.getpid() != self._pid:  # a fork: its parent's connections are not ours
            self.engine.dispose(close=False)
            self.reader.dispose(close=False)
            self._pid = os.getpid()
        if write and not self.writable:
            raise StoreError(
                f"{self.title} can be read here, not written; copy it with `study backup`, or mend its rights"
            )
        engine = self.engine if write else self.reader

        def run() -> T:
            with self._turn(write), engine.connect() as raw:
                connection = raw.execution_options(entrywise_write=write)
                if whole and not self.sqlite:  # said with BEGIN, so that it costs no trip
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    return call(connection)

        return self._patiently(run)

    def _patiently(self, run: Callable[[], T]) -> T:
        """Try again while an error may pass: somebody writes, or the server restarts."""
        deadline, tries = time.monotonic() + PATIENCE, 0
        while True:
            try:
                found = run()
                self._met = True
                return found
            except sa.exc.IntegrityError:
                raise
            except (sa.exc.DBAPIError, self.engine.dialect.loaded_dbapi.Error) as error:
                tries += 1
                cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
                words = _unsecret((str(cause).strip().splitlines() or ["no reason"])[0], self.url)
                if not (getattr(error, "connection_invalidated", False) or self._passes(cause)):
                    raise StoreError(f"{self.title}: {words}") from error
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"{self.title} was busy or away for {PATIENCE:g} s ({words}); "
                        "all it acknowledged is kept, try again once it is back"
                    ) from error
                time.sleep(min(0.5, 0.005 * 2**tries) * random.random())

    def _passes(self, cause: Any) -> bool:
        """Tell whether an error may pass."""
        if self.sqlite:
            return "is locked" in str(cause)
        state = getattr(cause, "sqlstate", None)
        if state is not None:
            return state in _AGAIN or state.startswith("08")
        lost = isinstance(
            cause, self.engine.dialect.loaded_dbapi.OperationalError
        )  # no connection, so no code
        # a server that was never met is more likely misspelt than away
        return lost and (self._met or any(words in str(cause) for words in _COMING))

    @contextlib.contextmanager
    def _turn(self, write: bool) -> Iterator[None]:
        if self.memory:
            with self._alone:
                yield
            return
        if not (self.sqlite and write):
            yield
            return
        handle = _queue(f"{self.url.database}-turn")
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)  # gives the lock back, as does the kernel when the process dies

    def _migrate(self, must_exist: bool) -> None:
        """Make the tables, or bring them up to date; leave another program's database alone."""
        if not self.sqlite or self.memory or (self.path.exists() and self.path.stat().st_size):
            version = self._version(must_exist)
            if version == HEAD:
                return
            if version is not None and version > HEAD:
                raise StoreError(
                    f"{self.title} was made by a later version of entrywise "
                    f"(tables {version}, this one knows {HEAD}); upgrade"
                )
        elif must_exist:
            raise StoreError(f"{self.title} is empty; make a study with `study create`")
        self.write(upgrade)

    def _version(self, must_exist: bool) -> str | None:
        """Return the version of our tables, None where there is nothing at all; refuse what is not ours."""

        def look(connection: Connection) -> str | None:
            found = sa.inspect(connection)
            if found.has_table("entrywise_version"):
                query = "SELECT version_num FROM entrywise_version"
                version = connection.exec_driver_sql(query).scalar()
                return None if version is None else str(version)
            mark = 0
            if self.sqlite:
                mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
            foreign = self.sqlite and (mark or found.get_table_names())
            if foreign or must_exist:
                raise StoreError(
                    f"{self.title} holds no studies of entrywise; nothing was touched, name another"
                )
            return None

        return self.read(look)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy an SQLite database into a new file, whole, while others write to it."""
        import sqlite3

        if not self.sqlite:
            raise StoreError("a server is backed up with its own tools: pg_dump")
        target = Path(path)
        if target.exists():
            raise StoreError(
                f"{target} is there already; a backup does not overwrite, name another"
            )
        part = target.with_name(target.name + ".part")
        with self.reader.connect() as connection, contextlib.closing(sqlite3.connect(part)) as copy:
            source: Any = connection.connection.driver_connection
            source.backup(copy)
        part.replace(target)

    def insert(self, connection: Connection, table: sa.Table, columns: Mapping[str, Any]) -> None:
        """Insert many rows given by columns: arrays or lists, or one value for all of them."""
        size = max(len(c) for c in columns.values() if isinstance(c, list | np.ndarray))
        if size == 0:
            return
        lists = [_plain(c, size) for c in columns.values()]
        names = ", ".join(f'"{name}"' for name in columns)
        if self.sqlite:
            marks = ", ".join("?" * len(lists))
            connection.exec_driver_sql(
                f"INSERT INTO {table.name} ({names}) VALUES ({marks})",  # noqa: S608
                list(zip(*lists, strict=True)),
            )
        elif size < 20:
            connection.execute(
                sa.insert(table),
                [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)],
            )
        else:
            with (
                _raw(connection) as cursor,
                cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as copy,
            ):
                for row in zip(*lists, strict=True):
                    copy.write_row(row)

    @contextlib.contextmanager
    def large_joins(self, connection: Connection, size: int | None = None) -> Iterator[None]:
        """Keep PostgreSQL from comparing all rows with all rows, as it plans to for a study newer than its statistics.

        What is known to be small is better looked up row by row.
        """
        large = not self.sqlite and (size is None or size > FEW)
        if large:
            connection.exec_driver_sql("SET LOCAL enable_nestloop = off; SET LOCAL jit = off")
        yield
        if large:
            connection.exec_driver_sql(
                "SET LOCAL enable_nestloop TO DEFAULT; SET LOCAL jit TO DEFAULT"
            )

    def columns(self, connection: Connection, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query as plain tuples, without the cost of row objects."""
        with contextlib.closing(connection.execute(query)) as result:
            return list(result.cursor.fetchall())

    def within(
        self, column: sa.ColumnElement[Any], numbers: Sequence[int]
    ) -> sa.ColumnElement[bool]:
        """Return the condition that `column` is one of many whole numbers, whatever their count."""
        if len(numbers) == 1:
            return column == int(numbers[0])
        low, high = int(min(numbers)), int(max(numbers))
        if high - low + 1 == len(numbers):  # a run of them, as most are
            return column.between(low, high)
        if not self.sqlite and len(numbers) <= SOME:
            sent = sa.literal([int(k) for k in numbers], sa.ARRAY(sa.BigInteger))
            return column == sa.func.any(sent)
        text = ",".join(str(int(k)) for k in numbers)
        if self.sqlite:
            each = sa.func.json_each(f"[{text}]").table_valued("value")
            return column.in_(sa.select(each.c.value))
        # written out, since PostgreSQL looks into an array by hash only when it is a constant
        return column == sa.func.any(sa.literal_column(f"'{{{text}}}'::bigint[]"))


def upgrade(connection: Connection, version: str = "head") -> None:
    """Make the tables, or bring them up to date."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7423518)")  # one at a time
    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
    )
    config.attributes["connection"] = connection
    command.upgrade(config, version)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id = {OURS}")
        connection.exec_driver_sql(f"PRAGMA user_version = {int(HEAD)}")


def _unsecret(words: str, url: sa.URL) -> str:
    """Return what a driver says without the passwords that it may repeat."""
    secrets = [url.password, *(v for k, v in url.query.items() if k.lower() in _SECRETS)]
    for secret in secrets:
        if isinstance(secret, str) and secret:
            words = words.replace(secret, "***")
    return re.sub(r"(?i)(password|passwd|pwd)=\S+", r"\1=***", words)


def _pragmas(handle: Any, _: Any) -> None:
    handle.isolation_level = None  # we say BEGIN ourselves
    cursor = handle.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("entrywise_write", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _queue(path: str) -> int | None:
    """Wait for our turn to write; where files cannot be locked, SQLite's own waiting must do."""
    try:
        import fcntl

        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        os.close(handle)
        return None
    return handle


def _plain(column: Any, size: int) -> list[Any]:
    if isinstance(column, np.ndarray):
        found: list[Any] = column.tolist()
        return found
    return column if isinstance(column, list) else [column] * size


@contextlib.contextmanager
def _raw(connection: Connection) -> Iterator[Any]:
    handle = connection.connection.driver_connection
    assert handle is not None
    cursor = handle.cursor()
    try:
        yield cursor
    finally:
        cursor.close()
