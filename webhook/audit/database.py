"""The database of decisions: its tables, its connections, and what SQLite and PostgreSQL write differently.

All SQL is in this module, `matching`, `counts` and `store`. Both databases have the same tables. Texts that a user chooses may
be long, so digests are unique, not the texts.
"""

import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache, partial, reduce
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import orjson
from sqlalchemy import (
    JSON,
    URL,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    FromClause,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    QueuePool,
    String,
    Table,
    Text,
    UnaryExpression,
    any_,
    bindparam,
    cast,
    column,
    create_engine,
    event,
    false,
    func,
    literal,
    make_url,
    or_,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.sql.operators import custom_op
from sqlalchemy.types import UserDefinedType

from webhook.errors import ConfigError, RequestError, StoreError

READERS = 4  # queries that run at the same time, beside a transaction that writes; others wait
MAX_SECONDS = 5.0  # for one query
ANSWER_SECONDS = MAX_SECONDS + 2  # for a response of PostgreSQL, which stops a query by itself unless it is frozen
WRITE_SECONDS = 60  # for a response within a transaction that writes, which may wait for another program
SECOND = 1_000_000  # microseconds, the unit of all times in the database
DAY = 86_400 * SECOND
WIDTHS = (DAY, DAY // 24, DAY // 96)  # of the periods in `counts`; a minute has few decisions of one group

_STEPS = 20_000  # of SQLite's virtual machine between two looks at the clock
CONNECT_SECONDS = 5
ROW_BYTES = 200  # of a decision or a block in PostgreSQL, with its part of the indexes
MAX_PROBLEM = 300  # characters of a message of the database
_POOL: dict[str, Any] = {"max_overflow": 0, "pool_timeout": 20}  # seconds to wait for a connection
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
_LOCK = 0x7667_7075  # PostgreSQL's advisory locks are numbers
_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only if their type is INTEGER

_metadata = MetaData()
meta = Table(
    "meta",
    _metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),  # of this schema
    Column("last", BigInteger, nullable=False),  # the number of the newest decision; who writes locks this row
)
groups = Table(
    "groups",
    _metadata,
    Column("id", _BIG, primary_key=True),
    Column("digest", String(32), nullable=False, unique=True),
    Column("endpoint", Text, nullable=False),
    Column("dry_run", Boolean, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("allowed", Boolean, nullable=False),
    Column("enforcement", Text, nullable=False),
    Column("word", Text, nullable=False),
    Column("levels", Text, nullable=False),
    sqlite_autoincrement=True,  # no id is used twice
)
names = Table(
    "names",
    _metadata,
    Column("id", _BIG, primary_key=True),
    Column("digest", String(32), nullable=False, unique=True),
    Column("name", Text, nullable=False),
)
decisions = Table(
    "decisions",
    _metadata,
    Column("number", _BIG, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("name_id", BigInteger, nullable=False),
    Column("group_id", BigInteger, nullable=False),
)
Index("decisions_by_time", decisions.c.at, decisions.c.group_id)
Index("decisions_by_group", decisions.c.group_id, decisions.c.number)
Index("decisions_by_name", decisions.c.name_id, decisions.c.group_id, decisions.c.at)
blocks = Table(
    "blocks",
    _metadata,
    Column("first", _BIG, primary_key=True, autoincrement=False),
    Column("lines", LargeBinary, nullable=False),
)
counts = Table(
    "counts",
    _metadata,
    Column("width", BigInteger, primary_key=True),
    Column("period", BigInteger, primary_key=True),
    Column("group_id", BigInteger, primary_key=True),
    Column("decisions", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
sources = Table(
    "sources",
    _metadata,
    Column("name", Text, primary_key=True),  # of an audit log that is shipped
    Column("position", Text, nullable=False),  # up to which it is stored
    Column("at", BigInteger, nullable=False),  # when that was written
)
VERSION = 1


class Database:
    """Connections to a database of decisions. Any thread may use it.

    Attributes:
        name: for messages; without user and password.
        temporary: whether it is gone when this program ends.
    """

    def __init__(self, engine: Engine, *, temporary: bool = False) -> None:
        """Take the engine."""
        self.temporary = temporary
        self.name = "the temporary database" if temporary else _name(engine.url)
        self._engine = engine
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
            if not is_sqlite(db.dialect.name):
                db.execute(select(func.pg_advisory_xact_lock(_LOCK)))  # several programs may start at the same time
                encoding = db.scalar(text("SHOW server_encoding"))
                if encoding != "UTF8":
                    raise StoreError(f"{self.name} has the encoding {encoding}; make the database with ENCODING 'UTF8'")
            _metadata.create_all(db)
            version = db.scalar(select(meta.c.version))
            if version is None:
                db.execute(meta.insert().values(version=VERSION, last=0))
            elif version != VERSION:
                raise StoreError(
                    f"{self.name} has tables of version {version}, this program uses version {VERSION}: use the same "
                    "version of it everywhere, or a new database"
                )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the database as it is at this moment.

        Raises:
            RequestError: a query takes longer than `MAX_SECONDS`.
            StoreError: the database cannot be used.
        """
        with self._explained(), self._engine.connect() as db, _limited(db):
            yield db  # what it made, for example a temporary table, is rolled back

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection whose changes take effect together, at the end, or not at all.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._explained(), self._engine.connect() as db:
            db.execution_options(writes=True)
            with _patient(db), db.begin():
                yield db

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if _is_timeout(error.orig):
                raise RequestError(
                    "it takes too long to match these globs; use fewer or shorter ones, or a shorter time"
                ) from None
            raise StoreError(f"{self.name}: {self._problem(error)}") from None
        except PoolTimeout:
            raise StoreError(f"{self.name}: all connections are in use; try again") from None

    def _problem(self, error: DBAPIError) -> str:
        """What is wrong, without the password and without the values of a query."""
        if getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig):
            return "it has no decisions yet; `vgpu-webhook audit ship` makes the tables when it starts"
        lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        found, password = "; ".join(lines[:2])[:MAX_PROBLEM], self._engine.url.password
        for secret in (password, quote(password), quote_plus(password)) if password else ():
            found = found.replace(secret, "***")
        return found


@contextmanager
def _limited(db: Connection) -> Iterator[None]:
    """Limit the time of the queries of a connection, and let all of them see one state."""
    if not is_sqlite(db.dialect.name):
        db.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        db.exec_driver_sql(f"SET LOCAL statement_timeout = {int(MAX_SECONDS * 1000)}")
        db.exec_driver_sql("SET LOCAL jit = off")  # compiling takes longer than these queries
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
def _patient(db: Connection) -> Iterator[None]:
    """Let PostgreSQL take longer for a response."""
    connection: Any = db.connection.dbapi_connection
    if is_sqlite(db.dialect.name):
        yield
        return
    connection.answer_seconds = WRITE_SECONDS
    try:
        yield
    finally:
        del connection.answer_seconds


def _connect_postgres(_dialect: Dialect, _record: object, arguments: Any, options: Any) -> Any:
    from webhook.audit.postgres import LimitedConnection  # noqa: PLC0415  # SQLite does not need psycopg

    return LimitedConnection.connect(*arguments, **options)


def _is_timeout(error: object) -> bool:
    return (
        getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
        or getattr(error, "sqlstate", None) == "57014"
    )


def _parse(url: str) -> URL:
    try:
        found = make_url(url)
        right = "@" not in (found.host or "") and found.database
        if right and found.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
            return found.set(drivername="postgresql+psycopg")
        if right and found.drivername == "sqlite" and not found.query and str(found.database).startswith("/"):
            return found
    except (ArgumentError, ValueError):  # their texts may have the password
        pass
    raise ConfigError(
        "the store is no URL such as postgresql://USER:PASSWORD@HOST:5432/DATABASE or sqlite:////PATH; in a password, "
        "write @ as %40, : as %3A, / as %2F and % as %25"
    )


def _name(url: URL) -> str:
    return f"the store {url.host}{f':{url.port}' if url.port else ''}/{url.database}" if url.host else f"{url.database}"


_SQLITE_SIZE = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)


def size(db: Connection) -> int:
    """How many bytes of the database are in use."""
    if is_sqlite(db.dialect.name):
        return int(db.scalar(text(_SQLITE_SIZE)) or 0)
    # The files of a table do not become smaller when rows are deleted, so the rows are counted.
    lines = db.scalar(select(func.sum(func.octet_length(blocks.c.lines) + ROW_BYTES))) or 0
    numbers = db.execute(select(func.min(decisions.c.number), func.max(decisions.c.number))).one()
    return int(lines) + ROW_BYTES * (numbers[1] - numbers[0] + 1 if numbers[0] else 0)


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _folder(room: int) -> str | None:
    """A new folder for temporary files, with so many bytes of room; None if there is none."""
    try:
        return (
            tempfile.mkdtemp(prefix="vgpu-webhook-") if shutil.disk_usage(tempfile.gettempdir()).free >= room else None
        )
    except OSError:
        return None


def _prepare_sqlite(db: sqlite3.Connection, _: object, *, kept: bool = False) -> None:
    db.isolation_level = None  # `_begin_sqlite` begins transactions
    synchronous = "NORMAL" if kept else "OFF"
    for setting in ("journal_mode=WAL", f"synchronous={synchronous}", "temp_store=MEMORY", "cache_size=-8000"):
        db.execute(f"PRAGMA {setting}")
    db.create_function("matches", 2, fnmatchcase, deterministic=True)
    db.create_function("finds", 2, _finds, deterministic=True)


def _begin_sqlite(db: Connection) -> None:
    # A transaction that reads first and then writes would fail if another one wrote meanwhile.
    db.exec_driver_sql("BEGIN IMMEDIATE" if db.get_execution_options().get("writes") else "BEGIN")


def _finds(levels: str, glob: str) -> bool:
    """Whether a rule of some findings matches."""
    return any(fnmatchcase(rule, glob) for rule in _rules(levels))


@lru_cache(maxsize=1024)
def _rules(levels: str) -> tuple[str, ...]:
    return tuple([rule for rule, _ in orjson.loads(levels)])


# --- what both write differently --------------------------------------------------------------------------------------


def is_sqlite(dialect: str) -> bool:
    """Whether it is SQLite's dialect; else it is PostgreSQL's."""
    return dialect == "sqlite"


def insert_into(dialect: str, table: Table) -> Any:
    """An insert that can do something else where a row is there already."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


def among(db: Connection, column: ColumnElement[int], ids: Iterable[int]) -> ColumnElement[bool]:
    """Whether a number is one of many."""
    if is_sqlite(db.dialect.name):
        each = func.json_each(orjson.dumps([*ids]).decode()).table_valued("value")
        return column.in_(select(each.c.value))
    return column == any_(literal(f"{{{','.join(map(str, ids))}}}", _SpelledArray()))


class _SpelledArray(UserDefinedType[str]):
    """Numbers as PostgreSQL spells an array; the driver would take 10 ms to spell some thousands."""

    cache_ok = render_bind_cast = True

    def get_col_spec(self, **_: Any) -> str:
        """The name of the type."""
        return "BIGINT[]"

    def literal_processor(self, dialect: Dialect) -> Callable[[str], str]:  # noqa: ARG002
        """Spells a value where a statement cannot have parameters."""
        return lambda spelled: f"'{spelled}'::BIGINT[]"


ROWS = "rows"


def rows(dialect: str, *columns: Column[Any]) -> FromClause:
    """The parameter `ROWS` as a table, so that one statement reads or inserts many rows.

    Python hands over to other threads at each statement, and may wait for them.
    """
    found = bindparam(ROWS, type_=Text)
    if is_sqlite(dialect):
        each = func.json_each(found).table_valued("value")
        fields = [func.json_extract(each.c.value, f"$.{c.name}", type_=c.type).label(c.name) for c in columns]
        return select(*fields).subquery()
    typed = [column(c.name, c.type) for c in columns]
    return func.json_to_recordset(cast(found, JSON)).table_valued(*typed).render_derived(with_types=True)


def to_rows(found: Sequence[Mapping[str, Any]]) -> str:
    """Rows as that parameter."""
    return orjson.dumps(found).decode()


def read_list(db: Connection, *columns: ColumnElement[Any]) -> list[Any]:
    """What some columns of a query have in each row, one row after the other, read by one step for the same reason."""
    quoted = func.json_quote if is_sqlite(db.dialect.name) else func.to_json
    spelled: list[ColumnElement[str]] = [
        cast(c if isinstance(c.type, BigInteger | Boolean) else quoted(c), String) for c in columns
    ]
    row = reduce(lambda before, value: before + "," + value, spelled[1:], spelled[0])
    found: list[Any] = orjson.loads(f"[{db.scalar(select(func.aggregate_strings(row, ','))) or ''}]")
    return found


def any_glob(db: Connection, value: ColumnElement[str], globs: Sequence[str]) -> ColumnElement[bool]:
    """Whether a text matches one of some globs."""
    return or_(false(), *[_matches(db, value, storable(glob)) for glob in globs])


def _matches(db: Connection, value: ColumnElement[str], glob: str) -> ColumnElement[bool]:
    """Whether a text matches a glob; without brackets, the databases have faster ways."""
    if is_sqlite(db.dialect.name):
        return func.matches(value, glob, type_=Boolean) if "[" in glob else value.bool_op("GLOB")(glob)
    return value.regexp_match(_regex(glob)) if "[" in glob else value.like(_like(glob))


def any_rule(db: Connection, levels: ColumnElement[str], globs: Sequence[str]) -> ColumnElement[bool]:
    """Whether the rule of a finding matches one of some globs."""
    if is_sqlite(db.dialect.name):
        return or_(false(), *[func.finds(levels, storable(glob), type_=Boolean) for glob in globs])
    each = func.json_array_elements(cast(levels, JSON)).table_valued(column("value", JSON))
    rule = each.c.value.op("->>", return_type=Text)(0)
    return select(each.c.value).where(any_glob(db, rule, globs)).exists()


def _like(glob: str) -> str:
    """A glob without brackets as a pattern for LIKE."""
    return "".join([{"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"}.get(c, c) for c in glob])


def _regex(glob: str) -> str:
    """A glob as a regular expression of PostgreSQL, with the meaning of `fnmatch`."""
    found, place = "^", 0
    while place < len(glob):
        letter, place = glob[place], place + 1
        negated = glob.startswith("!", place)
        end = glob.find("]", place + negated + 1) if letter == "[" else -1
        if end >= 0:
            found += _bracket(glob[place + negated : end], negated=negated)
            place = end + 1
        else:
            found += {"*": ".*", "?": "."}.get(letter) or _escaped(letter)
    return found + "$"


def _bracket(letters: str, *, negated: bool) -> str:
    """One character of a set such as `a-z_`; a range that begins behind its end is empty."""
    parts, place = list[str](), 0
    while place < len(letters):
        first = last = letters[place]
        if letters[place + 1 : place + 2] == "-" and place + 2 < len(letters):
            last, place = letters[place + 2], place + 2
        parts += [f"{_escaped(first)}-{_escaped(last)}"] if first <= last else []
        place += 1
    if not parts:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _escaped(letter: str) -> str:
    return f"\\U{ord(letter):08x}"


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The same number, for which no index is used."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def storable(value: str) -> str:
    """A text as both databases can hold it."""
    return value.replace("\0", "\u2400")
