"""Where a setting comes from, as operations tell it."""

from datetime import UTC, datetime

from webhook.console.api.operation import Answer
from webhook.console.state import State
from webhook.settings.sources import SettingStatus
from webhook.texts import shorten

MAX_ORIGIN = 300
MAX_PROBLEM = 1000


class Source(Answer):
    """One of the settings in use.

    Attributes:
        name: `device config`, `policy` or `fleet`.
        origin: a file, a ConfigMap, the API server, or the default that holds without them.
        since: when this version came into use here, in UTC.
        in_use_seconds: for how long it has been in use.
        age_seconds: since it was last known to be up to date; None where nothing can get old.
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


def sources(state: State) -> tuple[Source, ...]:
    """Where each of the settings in use comes from."""
    now = datetime.now(UTC)
    return tuple(_source(found, now) for found in state.settings.statuses())


def _source(found: SettingStatus, now: datetime) -> Source:
    return Source(
        name=found.name,
        origin=shorten(found.source.origin, MAX_ORIGIN),
        since=found.since,
        in_use_seconds=max((now - found.since).total_seconds(), 0.0),  # clocks are set back
        age_seconds=found.source.age,
        digest=found.digest,
        problem=None if found.source.problem is None else shorten(found.source.problem, MAX_PROBLEM),
    )
