"""Filters on decisions as SQL, which SQLite and PostgreSQL write differently where it matches globs."""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache

import orjson
from sqlalchemy import (
    JSON,
    Boolean,
    ColumnElement,
    Connection,
    Text,
    and_,
    cast,
    column,
    false,
    func,
    or_,
    select,
    true,
)

from webhook.audit.filters import Condition, Filter
from webhook.audit.tables import decisions

NO_EFFECTS = "[]"  # of a decision in which no rule found or repaired anything

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def is_sqlite(db: Connection) -> bool:
    """Whether it is a connection to SQLite; else it is one to PostgreSQL."""
    return db.dialect.name == "sqlite"


def matching(db: Connection, wanted: Filter) -> ColumnElement[bool]:
    """What the decisions that match a filter have in common."""
    return and_(true(), *[_condition(db, each) for each in wanted.conditions])


def _condition(db: Connection, wanted: Condition) -> ColumnElement[bool]:
    stored = decisions.c[{"time": "at"}.get(wanted.attribute, wanted.attribute)]
    value = wanted.value
    match wanted.operator:
        case ">=":
            return stored >= to_micros(value)
        case "<":
            return stored < to_micros(value)
        case "in":
            return stored.in_(value)
        case "matches":
            return _any_glob(db, stored, value)
        case "has a rule":
            return and_(stored != NO_EFFECTS, _any_rule(db, stored, value))
    return stored == (storable(value) if isinstance(value, str) else value)


def storable(value: str) -> str:
    """A text as both databases can hold it."""
    return value.replace("\0", "\u2400")


def to_micros(at: datetime) -> int:
    """A point in time in microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def to_moment(micros: int) -> datetime:
    """The point in time of so many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


# --- globs ------------------------------------------------------------------------------------------------------------


def add_functions(db: sqlite3.Connection) -> None:
    """Add the functions that match globs in SQLite."""
    db.create_function("matches", 2, fnmatchcase, deterministic=True)
    db.create_function("finds", 2, _finds, deterministic=True)


@lru_cache(maxsize=1024)
def _finds(effects: str, glob: str) -> bool:
    """Whether one of some rules matches."""
    return any(fnmatchcase(rule, glob) for rule, _ in orjson.loads(effects))


def _any_glob(db: Connection, value: ColumnElement[str], globs: Sequence[str]) -> ColumnElement[bool]:
    """Whether a text matches one of some globs."""
    return or_(false(), *[_matches(db, value, storable(glob)) for glob in globs])


def _matches(db: Connection, value: ColumnElement[str], glob: str) -> ColumnElement[bool]:
    """Whether a text matches a glob; without brackets, the databases have faster ways."""
    if is_sqlite(db):
        return func.matches(value, glob, type_=Boolean) if "[" in glob else value.bool_op("GLOB")(glob)
    return value.regexp_match(_regex(glob)) if "[" in glob else value.like(_like(glob))


def _any_rule(db: Connection, effects: ColumnElement[str], globs: Sequence[str]) -> ColumnElement[bool]:
    """Whether a rule that found or repaired something matches one of some globs."""
    if is_sqlite(db):
        return or_(false(), *[func.finds(effects, storable(glob), type_=Boolean) for glob in globs])
    each = func.json_array_elements(cast(effects, JSON)).table_valued(column("value", JSON))
    rule = each.c.value.op("->>", return_type=Text)(0)
    return select(each.c.value).where(_any_glob(db, rule, globs)).exists()


def _like(glob: str) -> str:
    """A glob without brackets as a pattern for LIKE."""
    return "".join([{"*": "%", "?": "_", "%": "\\%", "_": "\\_", "\\": "\\\\"}.get(c, c) for c in glob])


def _regex(glob: str) -> str:
    """A glob as a regular expression of PostgreSQL, with the meaning of `fnmatch`."""
    regex, place = "^", 0
    while place < len(glob):
        letter, place = glob[place], place + 1
        negated = glob.startswith("!", place)
        end = glob.find("]", place + negated + 1) if letter == "[" else -1
        if end >= 0:
            regex += _bracket(glob[place + negated : end], negated=negated)
            place = end + 1
        else:
            regex += {"*": ".*", "?": "."}.get(letter) or _escaped(letter)
    return regex + "$"


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
