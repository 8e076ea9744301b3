"""The SQL that SQLite and PostgreSQL write differently."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache, reduce
from importlib import import_module
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    FromClause,
    String,
    Table,
    Text,
    UnaryExpression,
    any_,
    bindparam,
    cast,
    column,
    false,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.sql.operators import custom_op
from sqlalchemy.types import UserDefinedType


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


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The same number, for which no index is used."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def storable(value: str) -> str:
    """A text as both databases can hold it."""
    return value.replace("\0", "\u2400")


# --- globs ------------------------------------------------------------------------------------------------------------


def add_functions(db: sqlite3.Connection) -> None:
    """Add the functions that match globs in SQLite."""
    db.create_function("matches", 2, fnmatchcase, deterministic=True)
    db.create_function("finds", 2, _finds, deterministic=True)


def _finds(levels: str, glob: str) -> bool:
    """Whether a rule of some findings matches."""
    return any(fnmatchcase(rule, glob) for rule in _rules(levels))


@lru_cache(maxsize=1024)
def _rules(levels: str) -> tuple[str, ...]:
    return tuple([rule for rule, _ in orjson.loads(levels)])


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
