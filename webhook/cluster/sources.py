"""Where the settings in use come from, as values for people who ask."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class Standing(NamedTuple):
    """How a setting stands with those who follow it.

    Attributes:
        origin: a file, a ConfigMap, the API server, or the default that holds without them; for people.
        problem: why the newest is not in use, or is not known; None if it is in use.
        age: seconds since it was last known to be up to date; None where nothing can get old.
    """

    origin: str
    problem: str | None = None
    age: float | None = None


@dataclass(frozen=True, slots=True)
class SourceState:
    """One of the settings in use.

    Attributes:
        name: `device config`, `policy` or `fleet`.
        origin, problem, age: as in `Standing`.
        since: when this version came into use here, in UTC.
        digest: as in decisions and reports; `unknown` for an unknown fleet.
    """

    name: str
    origin: str
    since: datetime
    digest: str
    problem: str | None
    age: float | None
