"""Exceptions of the policy: findings about some pods that are only recorded, until a day."""

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from webhook.policy.schema import PolicyException
from webhook.texts import matches

MAX_NAME = 253  # characters of a name that the API server accepts
MAX_PREFIX = 58  # characters of a generateName that are left in a name
ANY_SUFFIX = "?????"  # in the place of what the API server appends: only `*` and `?` of a glob match it

_NO_RULES: frozenset[str] = frozenset()

Excepted = dict[str, list[PolicyException]]  # by rule, those of one namespace


class Exceptions(NamedTuple):
    """The exceptions that may hold for one pod, on one day.

    Attributes:
        by_rule: the exceptions of the pod's namespace.
        name: as `exception_name` has it.
        day: in UTC.
    """

    by_rule: Excepted
    name: str
    day: date

    @property
    def rules(self) -> frozenset[str]:
        """The rules of which an exception holds."""
        return frozenset([rule for rule in self.by_rule if self.of(rule) is not None]) if self.by_rule else _NO_RULES

    def of(self, rule: str) -> PolicyException | None:
        """The exception from a rule; None if there is none."""
        found = self.by_rule.get(rule, ())
        return next((each for each in found if self.day <= each.until and matches(self.name, each.names)), None)


NO_EXCEPTIONS = Exceptions({}, "", date.min)


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
