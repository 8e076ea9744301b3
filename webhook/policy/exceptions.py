"""Exceptions of the policy: findings about some pods that are only recorded, until a day."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from webhook.policy.schema import PolicyException
from webhook.texts import matches

MAX_NAME = 253  # characters of a name that the API server accepts
MAX_PREFIX = 58  # characters of a generateName that are left in a name
ANY_SUFFIX = "?????"  # in the place of what the API server appends: only `*` and `?` of a glob match it


Excepted = dict[str, list[PolicyException]]  # by rule, those of one namespace
Exceptions = Mapping[str, PolicyException]  # by rule, the one that holds for a pod on a day
NO_EXCEPTIONS: Exceptions = {}


def exceptions_for(name: str, day: date, excepted: Excepted) -> Exceptions:
    """The exceptions that hold for a pod, whose name is as `exception_name` has it, on a day in UTC."""
    found = {
        rule: next((one for one in exceptions if day <= one.until and matches(name, one.names)), None)
        for rule, exceptions in excepted.items()
    }
    return {rule: exception for rule, exception in found.items() if exception is not None}


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
