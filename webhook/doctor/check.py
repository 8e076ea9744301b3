"""What a check is, and what it may say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from webhook.doctor.facts import Unread
from webhook.doctor.setup import Setup


class Status(StrEnum):
    """How it stands with one thing."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"
    UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence about one thing.

    Attributes:
        status: how it stands.
        message: what was found; of what was not checked, why.
        remedy: what to do about it; empty if all is well.
    """

    status: Status
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked at.

    Attributes:
        id: kebab-case, stable.
        look: what is to say of it.
    """

    id: str
    look: Callable[[Setup], Iterable[Line]]


def ok(message: str) -> Line:
    """All is well."""
    return Line(Status.OK, message)


def warning(message: str, remedy: str) -> Line:
    """Something works otherwise than one may think."""
    return Line(Status.WARNING, message, remedy)


def broken(message: str, remedy: str) -> Line:
    """Pods fail, wait for ever, or pass unchecked because of it."""
    return Line(Status.BROKEN, message, remedy)


def unchecked(unread: Unread) -> Line:
    """It could not be looked at."""
    return Line(Status.UNCHECKED, f"{unread.what}: {unread.why}", f"needs {unread.needs}")
