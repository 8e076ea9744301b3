"""The parts of the policy file that name rules, and its exceptions; `webhook/rules/policy_keys.py` has the others."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, WithJsonSchema

from webhook.mistakes import unknown_rule_error
from webhook.rules.choices import Enforcement
from webhook.rules.policy_keys import ANY_LEVEL, MAX_SHOWN, AnyLevel, Dialects, LimitsEntry, PolicySection, these_keys
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS, VALIDATIONS
from webhook.texts import matches, shorten

_REPAIRS = {rule.id: rule.summary for rule in MUTATIONS}


def _known_rule(rule: str) -> str:
    if rule in DEFAULT_LEVELS:
        return rule
    if rule in _REPAIRS:
        raise ValueError(f"{rule!r} is a repair, which has no level; switch it on or off under `repairs`")
    raise unknown_rule_error(rule, DEFAULT_LEVELS)


def _known_repair(rule: str) -> str:
    if rule in _REPAIRS:
        return rule
    if rule in DEFAULT_LEVELS:
        raise ValueError(f"{rule!r} is a check, not a repair; set its level under `rules`")
    raise unknown_rule_error(rule, _REPAIRS, "repair")


def _switch(value: Any) -> Any:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


_RULE_LEVELS = {
    rule.id: {"enum": ANY_LEVEL, "default": rule.level, "description": rule.summary} for rule in VALIDATIONS
}
_SWITCHES = {
    rule: {"enum": ["on", "off", True, False], "default": "on", "description": what} for rule, what in _REPAIRS.items()
}
Levels = Annotated[Mapping[Annotated[str, AfterValidator(_known_rule)], AnyLevel], these_keys(_RULE_LEVELS)]
Switches = Annotated[
    Mapping[Annotated[str, AfterValidator(_known_repair)], Annotated[Literal["on", "off"], BeforeValidator(_switch)]],
    these_keys(_SWITCHES),
]


class NamespaceEntry(PolicySection):
    """What holds in some namespaces."""

    match: Annotated[list[Annotated[str, Field(max_length=253)]], Field(min_length=1, max_length=1000)] = Field(
        description="Globs of namespace names: `*` matches any text, `?` one character."
    )
    rules: Levels = Field({}, description="Levels as in `rules` above, which they override.")
    enforcement: Enforcement | None = Field(
        None, description="enforce, warn or audit, overriding `enforcement` above; null keeps that."
    )
    repairs: Switches = Field({}, description="Repairs on or off, overriding `repairs` above.")
    dialects: Dialects = Field({}, description="As in `dialects` above, which they override.")
    limits: LimitsEntry | None = Field(
        None,
        description="The least and most `memory` (MiB of a card), `cores` (per cent) and `number` of a container: "
        "`memory: {min: 1024, max: 40960}`; null: any.",
    )
    exempt: StrictBool = Field(
        False, description="Whether pods and workloads pass without a review: not repaired, not checked."
    )

    @property
    def matches_all(self) -> bool:
        """Whether it matches every namespace: one of its globs is nothing but stars."""
        return any(glob and not glob.strip("*") for glob in self.match)


def _day(value: Any) -> date:
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:  # 2026-02-30
        pass
    raise ValueError(f"{shorten(str(value), MAX_SHOWN)!r} is no day; write the last one as 2026-12-31")


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY_SCHEMA = {"type": "string", "format": "date", "pattern": f"^{_DAY.pattern}$"}


class PolicyException(PolicySection):
    """Findings that the policy accepts for a time."""

    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] = Field(
        description="The namespace of the pods; no glob."
    )
    names: Annotated[
        list[Annotated[str, Field(pattern=r"^[-a-z0-9.*?]+$", max_length=253)]], Field(min_length=1, max_length=20)
    ] = Field(description="Globs of the pods' names: `*` matches any text, `?` one character.")
    rules: Annotated[
        list[Annotated[str, AfterValidator(_known_rule), WithJsonSchema({"enum": [*DEFAULT_LEVELS]})]],
        Field(min_length=1),
    ] = Field(description="The ids of the checks whose findings are only recorded.")
    until: Annotated[date, BeforeValidator(_day), WithJsonSchema(_DAY_SCHEMA)] = Field(
        description="The last day on which it holds, in UTC."
    )
    reason: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="Why, for the audit log; for example the ticket."
    )
    owner: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="Who answers for it.")


# --- exceptions: findings about some pods that are only recorded, until a day ----------------------------------------------

MAX_NAME = 253  # characters of a name that the API server accepts
MAX_PREFIX = 58  # characters of a generateName that are left in a name
ANY_SUFFIX = "?????"  # in the place of what the API server appends: only `*` and `?` of a glob match it


Excepted = dict[str, list[PolicyException]]  # by rule, those of one namespace
Exceptions = Mapping[str, PolicyException]  # by rule, the one that holds for a pod on a day
NO_EXCEPTIONS: Exceptions = {}


def exceptions_for(name: str, day: date, excepted: Excepted) -> Exceptions:
    """The exceptions that hold for a pod, whose name is as `exception_name` has it, on a day in UTC."""
    chosen = {
        rule: next((one for one in exceptions if day <= one.until and matches(name, one.names)), None)
        for rule, exceptions in excepted.items()
    }
    return {rule: exception for rule, exception in chosen.items() if exception is not None}


def exception_name(metadata: Mapping[str, Any], known: str, *, is_pod: bool = True) -> str:
    """The name by which exceptions find a pod.

    Of a name that is not complete yet, a glob must match the rest whatever it will be.

    Args:
        metadata: the metadata of the pod or workload.
        known: the name in the request, or in its audit line, which has a generateName with its `-`.
        is_pod: else it is a workload, whose pods' names begin with its own and a `-`.
    """
    given = metadata.get("name") or known
    name = given or metadata.get("generateName")
    if not isinstance(name, str) or len(name) > MAX_NAME:
        return ""
    name = name if is_pod else f"{name}-"
    return name if given and not name.endswith("-") else name[:MAX_PREFIX] + ANY_SUFFIX
