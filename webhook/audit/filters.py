"""Filters on decisions: one model, from which query strings, options of commands and conditions in SQL derive."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from webhook.audit.decision import Decision
from webhook.durations import parse_duration
from webhook.outcome import OutcomeWord
from webhook.parameters import Parameters
from webhook.texts import matches

MAX_GLOB = 300  # characters
MAX_GLOBS = 20
MAX_TIME = 40  # characters
MAX_REMEMBERED = 256  # characters: texts of megabytes must not stay in memory

_AGE = re.compile(r"[\d.]+[a-z]")


def read_time(text: str, now: datetime) -> datetime:
    """Read a point in time: `2h` or `1h30m` (ago), `2026-11-20`, `2026-11-20T10:00`, UTC unless it has an offset.

    Raises:
        ValueError: it is neither.
    """
    try:
        if _AGE.match(text):
            return now - parse_duration(text)
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (OverflowError, ValueError):
        raise ValueError(f"{text!r} is neither an age such as 2h nor a time such as 2026-11-20T10:00") from None


class Condition(NamedTuple):
    """What a decision must be.

    Attributes:
        attribute: of a decision.
        operator: how it is compared: `>=`, `<`, `==`, `in`, `matches` one of some globs, or `has a rule` that does.
        value: with what; None for the value of the parameter.
    """

    attribute: str
    operator: str
    value: Any = None


class Moment(NamedTuple):
    """A point in time, and how it was written: `2h` stays an age in a link."""

    text: str
    at: datetime


def _moment(value: Any) -> Moment:
    if isinstance(value, Moment):
        return value
    if isinstance(value, datetime):
        return Moment(value.isoformat(), value)
    if not isinstance(value, str) or len(value) > MAX_TIME:
        raise ValueError(f"it must be a time of at most {MAX_TIME} characters")
    # An age counts from a whole minute, so that the store can reuse the summary of a filter such as 2h.
    return Moment(value, read_time(value.strip(), datetime.now(UTC).replace(second=0, microsecond=0)))


_Time = Annotated[
    Moment,
    PlainValidator(_moment),
    PlainSerializer(lambda moment: moment.text),
    WithJsonSchema({"type": "string", "maxLength": MAX_TIME}),
]
_Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB)]
_Globs = Annotated[tuple[_Glob, ...], Field(default=(), max_length=MAX_GLOBS)]


class Filter(Parameters):
    """Which decisions to take. All parameters have to match; of a repeated one, one value is enough."""

    since: Annotated[_Time | None, Condition("time", ">=")] = Field(
        None, description="Only decisions since this age, such as 2h, or time, such as 2026-11-20T10:00 (UTC)."
    )
    until: Annotated[_Time | None, Condition("time", "<")] = Field(
        None, description="Only decisions before this age or time."
    )
    refused: Annotated[bool, Condition("allowed", "==", value=False)] = Field(False, description="Refusals only.")
    outcome: Annotated[tuple[OutcomeWord, ...], Condition("word", "in")] = Field(
        default=(), max_length=MAX_GLOBS, description="The outcome; would-be: if the policy enforced."
    )
    rule: Annotated[_Globs, Condition("effects", "has a rule")] = Field(
        (), description="Findings or repairs of the rule."
    )
    namespace: Annotated[_Globs, Condition("namespace", "matches")] = Field(
        (), description="The namespace of the request."
    )
    user: Annotated[_Globs, Condition("user", "matches")] = Field((), description="The user of the request.")
    name: Annotated[_Globs, Condition("name", "matches")] = Field((), description="The name of the object.")
    dry_run: Annotated[bool | None, Condition("dry_run", "==")] = Field(
        default=None, description="Dry runs only, or none of them."
    )
    endpoint: Annotated[Literal["mutate", "validate"] | None, Condition("endpoint", "==")] = Field(
        default=None, description="Decisions of /mutate, or of /validate."
    )
    id: Annotated[str, Condition("id", "==")] = Field(default="", max_length=MAX_TIME, description="The decision's id.")

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What a decision must be; equal for equal filters, whatever else a subclass has."""
        conditions = []
        for name, field in Filter.model_fields.items():
            (condition,) = [each for each in field.metadata if isinstance(each, Condition)]
            value = getattr(self, name)
            if value != field.default:
                value = value.at if isinstance(value, Moment) else value
                conditions.append(condition if condition.value is not None else condition._replace(value=value))
        return tuple(conditions)

    def admits(self, decision: Decision) -> bool:
        """Whether a decision matches."""
        return all([_TESTS[operator](getattr(decision, name), value) for name, operator, value in self.conditions])

    def query(self, **changes: Any) -> dict[str, Any]:
        """The filter for a link, without other parameters; see `Parameters.query`."""
        own = {field.alias for field in Filter.model_fields.values()}
        return {key: value for key, value in super().query(**changes).items() if key in own or key in changes}

    def only(self, **texts: str) -> dict[str, Any] | None:
        """The query for exactly these rules, namespaces, users or names; None if one of them is too long for a filter."""
        globs = {key: exactly(text) for key, text in texts.items()}
        usable = all(0 < len(glob) <= MAX_GLOB and not glob.endswith("…") for glob in globs.values())
        return self.query(**{key: [glob] for key, glob in globs.items()}) if usable else None


EVERY = Filter()


def exactly(text: str) -> str:
    """The glob that matches only this text."""
    return "".join([f"[{letter}]" if letter in "*?[" else letter for letter in text])


def _matches(text: str, patterns: Sequence[str]) -> bool:
    """For texts that recur in a log."""
    return _remembered(text, patterns) if len(text) <= MAX_REMEMBERED else matches(text, patterns)


@lru_cache(maxsize=4096)
def _remembered(text: str, patterns: Sequence[str]) -> bool:
    return matches(text, patterns)


_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": lambda found, wanted: found >= wanted,
    "<": lambda found, wanted: found < wanted,
    "==": lambda found, wanted: found == wanted,
    "in": lambda found, wanted: found in wanted,
    "matches": _matches,
    "has a rule": lambda found, wanted: any([_matches(rule, wanted) for rule in found]),
}
