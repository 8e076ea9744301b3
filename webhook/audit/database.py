"""The database of decisions: its connections, and how long its queries may take.

All SQL is in this module, `matching`, `sums` and `store`; the tables are in `tables`.
"""

import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, Connection, Dialect, Engine, QueuePool, create_engine, event, func, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from webhook.audit.matching import add_functions, is_sqlite
from webhook.audit.tables import VERSION, meta, metadata
from webhook.errors import ConfigError, RequestError, StoreError

READERS = 4  # queries that run at the same time, beside a transaction that writes; others wait
MAX_SECONDS = 4.0  # for one query
ANSWER_SECONDS = MAX_SECONDS + 1  # for a response of PostgreSQL, which stops a query by itself unless it is frozen
WRITE_SECONDS = 60  # for a response within a transaction that writes, which may wait for another program
_STEPS = 20_000  # of SQLite's virtual machine between two looks at the clock
CONNECT_SECONDS = 3  # with a ping of a broken connection before it, as long as ANSWER_SECONDS
TURN_SECONDS = 20  # for a query to wait for others
MAX_PROBLEM = 300  # characters of a message of the database
_POOL: dict[str, Any] = {"max_overflow": 0, "pool_timeout": TURN_SECONDS}
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
_LOCK = 0x7667_7075  # PostgreSQL's advisory locks are numbers


class Database:
    """Connections to a database of decisions. Any thread may use it.

    Attributes:
        name: for messages; without user and password.
        temporary: whether it is gone when this program ends.
    """

    def __init__(self, engine: Engine, *, temporary: bool = False) -> None:
        self.temporary = temporary
        self.name = "the temporary database" if temporary else _name(engine.url)
        self._engine = engine
        self._turns = BoundedSemaphore(READERS)
        self._outage: str | None = None  # why the last query got no response
        self._probe = Lock()  # held by the one query that waits for a response meanwhile
        # Otherwise connections stay open until they are collected.
        weakref.finalize(self, engine.dispose).atexit = False

    @classmethod
    def new(cls, most_bytes: int) -> "Database":
        """An empty SQLite database in a temporary file, or in memory where there is no room for one.

        Args:
            most_bytes: how large it becomes.
        """
        folder = _folder(2 * most_bytes)
        path = str(Path(folder, "decisions")) if folder else ":memory:"
        size = READERS + 1 if folder else 1  # in memory, each connection would be another database
        creator = partial(sqlite3.connect, path, isolation_level=None, check_same_thread=False)
        engine = create_engine("sqlite://", creator=creator, poolclass=QueuePool, pool_size=size, **_POOL)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        database = cls(engine, temporary=True)
        database.make_tables()
        connections = [engine.connect() for _ in range(size)]
        for connection in connections:
            connection.scalar(select(meta.c.last))  # opens all its files
            connection.close()
        if folder:
            shutil.rmtree(folder)  # no file remains, however this program ends; the connections keep what they opened
        return database

    @classmethod
    def at(cls, url: str) -> "Database":
        """The database at a URL. It is not connected to yet.

        Args:
            url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…` or `sqlite:////PATH`.

        Raises:
            ConfigError: it is not such a URL. The message has nothing of it, as it may hold a password.
        """
        place = _parse(url)
        if place.get_backend_name() == "sqlite":
            engine = create_engine(place, poolclass=QueuePool, pool_size=READERS + 1, **_POOL)
            event.listen(engine, "connect", partial(_prepare_sqlite, kept=True))
            event.listen(engine, "begin", _begin_sqlite)
        else:
            # A plan that fits all values of a filter fits none: prepare_threshold.
            connect_args = {"connect_timeout": CONNECT_SECONDS, "prepare_threshold": None, **_KEEPALIVE}
            engine = create_engine(
                place,
                connect_args=connect_args,
                pool_size=READERS + 1,
                pool_pre_ping=True,
                hide_parameters=True,
                **_POOL,
            )
            event.listen(engine, "do_connect", _connect_postgres)
        return cls(engine)

    def make_tables(self) -> None:
        """Make the tables that are missing.

        Raises:
            StoreError: the database cannot be used, or has tables of another version.
        """
        with self.writing() as db:
            if not is_sqlite(db):
                db.execute(select(func.pg_advisory_xact_lock(_LOCK)))  # several programs may start at the same time
                encoding = db.scalar(text("SHOW server_encoding"))
                if encoding != "UTF8":
                    raise StoreError(f"{self.name} has the encoding {encoding}; make the database with ENCODING 'UTF8'")
            metadata.create_all(db)
            version = db.scalar(select(meta.c.version))
            if version is None:
                db.execute(meta.insert().values(version=VERSION, last=0, bytes=0))
            elif version != VERSION:
                raise StoreError(
                    f"{self.name} has tables of version {version}, this program uses version {VERSION}: use the same "
                    "version of it everywhere, or a new database"
                )

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the database as it is at this moment.

        Raises:
            RequestError: a query takes longer than `MAX_SECONDS`.
            StoreError: the database cannot be used.
        """
        with self._turn(), self._explained():
            try:
                with self._engine.connect() as db, _limited(db):
                    yield db  # what it made, for example a temporary table, is rolled back
            except DBAPIError as error:
                if _is_timeout(error.orig):
                    raise RequestError(
                        "it takes too long to match these globs; use fewer or shorter ones, or a shorter time"
                    ) from None
                raise
            self._outage = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose changes take effect together, at the end, or not at all.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._explained(), self._engine.connect() as db:
            db.execution_options(writes=True)
            with _answering(db, WRITE_SECONDS), db.begin():
                yield db

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for other queries. While the database does not respond, only one query waits for it; the others fail at once."""
        before = self._outage
        if not self._turns.acquire(timeout=TURN_SECONDS):
            raise StoreError(f"{self.name}: too many queries wait for it; try again")
        probes = False
        try:
            outage = self._outage
            if outage is not None:
                probes = before is not None and self._probe.acquire(blocking=False)
                if not probes:
                    raise StoreError(outage)
            yield
        finally:
            if probes:
                self._probe.release()
            self._turns.release()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            problem = f"{self.name}: {self._problem(error)}"
            self._outage = problem if _is_outage(error) else None
            raise StoreError(problem) from None
        except PoolTimeout:
            raise StoreError(f"{self.name}: all connections are in use; try again") from None

    def _problem(self, error: DBAPIError) -> str:
        """What is wrong, without the password and without the values of a query."""
        if getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig):
            return "it has no decisions yet; `vgpu-webhook decisions ship` makes the tables when it starts"
        lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        problem, password = "; ".join(lines[:2])[:MAX_PROBLEM], self._engine.url.password
        for secret in (password, quote(password), quote_plus(password)) if password else ():
            problem = problem.replace(secret, "***")
        return problem


@contextmanager
def _limited(db: Connection) -> Iterator[None]:
    """Limit the time of the queries of a connection, and let all of them see one state."""
    if not is_sqlite(db):
        db.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        db.exec_driver_sql(f"SET LOCAL statement_timeout = {int(MAX_SECONDS * 1000)}")
        db.exec_driver_sql("SET LOCAL jit = off")  # compiling takes longer than these queries
        with _answering(db, ANSWER_SECONDS):
            yield
        return
    connection: Any = db.connection.dbapi_connection
    end = time.thread_time() + MAX_SECONDS  # not of the clock: others may need the processor as well
    connection.set_progress_handler(lambda: time.thread_time() > end, _STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


@contextmanager
def _answering(db: Connection, seconds: float) -> Iterator[None]:
    """Let PostgreSQL take so long for a response."""
    connection: Any = db.connection.dbapi_connection
    if is_sqlite(db):
        yield
        return
    connection.answer_seconds = seconds
    try:
        yield
    finally:
        del connection.answer_seconds


def _connect_postgres(_dialect: Dialect, _record: object, arguments: Any, options: Any) -> Any:
    from webhook.audit.postgres import LimitedConnection  # noqa: PLC0415  # SQLite does not need psycopg

    return LimitedConnection.connect(*arguments, **options)


def _is_timeout(error: object) -> bool:
    codes = getattr(error, "sqlite_errorcode", None), getattr(error, "sqlstate", None)
    return codes[0] == sqlite3.SQLITE_INTERRUPT or codes[1] == "57014"


def _is_outage(error: DBAPIError) -> bool:
    """Whether PostgreSQL did not respond, or closed the connection; its own errors have a code."""
    return getattr(error.orig, "sqlstate", "") is None


def _parse(url: str) -> URL:
    try:
        place = make_url(url)
        right = "@" not in (place.host or "") and place.database
        if right and place.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
            return place.set(drivername="postgresql+psycopg")
        if right and place.drivername == "sqlite" and not place.query and str(place.database).startswith("/"):
            return place
    except (ArgumentError, ValueError):  # their texts may have the password
        pass
    raise ConfigError(
        "the store is no URL such as postgresql://USER:PASSWORD@HOST:5432/DATABASE or sqlite:////PATH; in a password, "
        "write @ as %40, : as %3A, / as %2F and % as %25"
    )


def _name(url: URL) -> str:
    return f"the store {url.host}{f':{url.port}' if url.port else ''}/{url.database}" if url.host else f"{url.database}"


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _folder(room: int) -> str | None:
    """A new folder for temporary files, with so many bytes of room; None if there is none."""
    try:
        has_room = shutil.disk_usage(tempfile.gettempdir()).free >= room
        return tempfile.mkdtemp(prefix="vgpu-webhook-") if has_room else None
    except OSError:
        return None


def _prepare_sqlite(db: sqlite3.Connection, _: object, *, kept: bool = False) -> None:
    db.isolation_level = None  # `_begin_sqlite` begins transactions
    synchronous = "NORMAL" if kept else "OFF"
    for setting in ("journal_mode=WAL", f"synchronous={synchronous}", "temp_store=MEMORY", "cache_size=-8000"):
        db.execute(f"PRAGMA {setting}")
    add_functions(db)


def _begin_sqlite(db: Connection) -> None:
    # A transaction that reads first and then writes would fail if another one wrote meanwhile.
    db.exec_driver_sql("BEGIN IMMEDIATE" if db.get_execution_options().get("writes") else "BEGIN")
