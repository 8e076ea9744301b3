"""The tables of the database of decisions, which are the same in SQLite and PostgreSQL.

Lines are in a table of their own: a filter and a sum read all rows of `decisions`, which are a tenth as long.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table, Text

from webhook.audit.decision import DecisionGroup

VERSION = 4  # of these tables
SECOND = 1_000_000  # microseconds, the unit of all times in the database

_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite sorts a table by its key only if that is an INTEGER


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)


metadata = MetaData()
meta = Table(
    "meta",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _column("last", BigInteger),  # the number of the newest decision; a writer locks this row
    _column("bytes", BigInteger),  # the sum of `decisions.bytes`
)
decisions = Table(
    "decisions",
    metadata,
    Column("number", _BIG, primary_key=True, autoincrement=False),
    _column("at", BigInteger),
    *[_column(name, Boolean if kind is bool else Text) for name, kind in DecisionGroup.__annotations__.items()],
    _column("name", Text),
    _column("id", Text),
    _column("bytes", Integer),  # that it takes, about, with its line
)
group_columns = [decisions.c[name] for name in DecisionGroup._fields]
# SQLite adds up in the order of an index. PostgreSQL does not need one, and its indexes refuse long texts.
Index("decisions_by_group", *group_columns, decisions.c.at, decisions.c.name, decisions.c.id).ddl_if(dialect="sqlite")
lines = Table("lines", metadata, Column("number", _BIG, primary_key=True, autoincrement=False), _column("line", Text))
sources = Table(
    "sources",
    metadata,
    Column("name", Text, primary_key=True),  # of an audit log that is shipped
    _column("position", Text),  # up to which it is stored
    _column("at", BigInteger),  # when that was written
)
# The latest policies; a table that an older version of this program does not make.
policies = Table(
    "policies",
    metadata,
    Column("digest", Text, primary_key=True),
    _column("at", BigInteger),  # when it was first used, of what is known
    _column("text", Text),  # empty if it is not known: audit lines have only the digest
)
