"""The tables of the database of decisions, which are the same in SQLite and PostgreSQL.

Texts that a user chooses may be long, so digests are unique, not the texts.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

from webhook.audit.decision import DecisionGroup

VERSION = 1  # of these tables
SECOND = 1_000_000  # microseconds, the unit of all times in the database
DAY = 86_400 * SECOND
WIDTHS = (DAY, DAY // 24, DAY // 96)  # of the periods in `counts`; a minute has few decisions of one group

_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only if their type is INTEGER


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _digested(name: str, *columns: Column[Any], **options: Any) -> Table:
    """A table whose rows are found by a digest."""
    digest = Column("digest", String(32), nullable=False, unique=True)
    return Table(name, metadata, Column("id", _BIG, primary_key=True), digest, *columns, **options)


metadata = MetaData()
meta = Table(
    "meta",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _column("last", BigInteger),  # the number of the newest decision; who writes locks this row
)
groups = _digested(
    "groups",
    *[_column(name, Boolean if kind is bool else Text) for name, kind in DecisionGroup.__annotations__.items()],
    sqlite_autoincrement=True,  # no id is used twice
)
names = _digested("names", _column("name", Text))
decisions = Table(
    "decisions",
    metadata,
    Column("number", _BIG, primary_key=True, autoincrement=False),
    _column("at", BigInteger),
    _column("id", Text),
    _column("name_id", BigInteger),
    _column("group_id", BigInteger),
)
Index("decisions_by_time", decisions.c.at, decisions.c.group_id)
Index("decisions_by_group", decisions.c.group_id, decisions.c.number)
Index("decisions_by_name", decisions.c.name_id, decisions.c.group_id, decisions.c.at)
blocks = Table(
    "blocks", metadata, Column("first", _BIG, primary_key=True, autoincrement=False), _column("lines", LargeBinary)
)
counts = Table(
    "counts",
    metadata,
    *[Column(name, BigInteger, primary_key=True) for name in ("width", "period", "group_id")],
    _column("decisions", BigInteger),
    sqlite_with_rowid=False,
)
sources = Table(
    "sources",
    metadata,
    Column("name", Text, primary_key=True),  # of an audit log that is shipped
    _column("position", Text),  # up to which it is stored
    _column("at", BigInteger),  # when that was written
)
