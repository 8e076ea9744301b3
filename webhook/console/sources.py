"""Where the settings in use come from, as operations return it."""

from datetime import UTC, datetime

from webhook.console.api import ResponseModel
from webhook.console.state import ConsoleState
from webhook.texts import shorten

MAX_ORIGIN = 300
MAX_PROBLEM = 1000


class SettingSource(ResponseModel):
    """The source of one of the settings in use.

    Attributes:
        name: `device config`, `policy` or `fleet`.
        origin: a file, a ConfigMap, the API server, or the default that applies without them.
        since: when this version came into use here, in UTC.
        in_use_seconds: how long it has been in use.
        age_seconds: since it was last known to be up to date; None where nothing can become stale.
        digest: as in decisions and reports.
        problem: why the newest version is not in use; None if it is.
    """

    name: str
    origin: str
    since: datetime
    in_use_seconds: float
    age_seconds: float | None
    digest: str
    problem: str | None


def sources(state: ConsoleState) -> tuple[SettingSource, ...]:
    """The source of each of the settings in use."""
    now = datetime.now(UTC)
    return tuple(
        SettingSource(
            name=found.name,
            origin=shorten(found.source.origin, MAX_ORIGIN),
            since=found.since,
            in_use_seconds=max((now - found.since).total_seconds(), 0.0),  # a clock may be set back
            age_seconds=found.source.age,
            digest=found.digest,
            problem=found.source.problem and shorten(found.source.problem, MAX_PROBLEM),
        )
        for found in state.settings.statuses()
    )
