"""The state that the endpoints of the server read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from webhook.cluster.file_watcher import FileWatcher
from webhook.cluster.watcher import SettingsWatcher
from webhook.outcome import Outcome
from webhook.policy.policy import Policy
from webhook.rules.validate import foreign_dialect
from webhook.server.tls import ServingTls
from webhook.snapshot import Snapshot
from webhook.texts import visible


class ServerSources(NamedTuple):
    """What keeps the settings and the certificate up to date."""

    settings: SettingsWatcher
    tls: ServingTls
    tls_files: FileWatcher


class ServerState:
    """The current snapshot, and whether the server is ready.

    Attributes:
        snapshot: replaced as a whole; a review keeps the one it started with. None before policy and device config are known:
            then no review is answered, and the failurePolicy decides.
        sources: from which it is replaced; None if it stays as it is.
        draining: the server received a SIGTERM and answers only the remaining requests.
        untranslated: the policy in use when the last pod that it translates was not sent to be translated; None if it was.
    """

    def __init__(self, snapshot: Snapshot | None, sources: ServerSources | None = None) -> None:
        self.snapshot = snapshot
        self.sources = sources
        self.draining = False
        self.untranslated: Policy | None = None

    def reviewed(self, outcome: Outcome) -> None:
        """Note whether the API server sends the pods that the policy translates."""
        if foreign_dialect.TRANSLATION in outcome.mutations:
            self.untranslated = None
        elif any(foreign_dialect.NOT_SENT in violation.message for violation in outcome.violations):
            self.untranslated = self.snapshot.policy if self.snapshot is not None else None

    @property
    def obstacles(self) -> Mapping[str, str]:
        """Why no requests are to be sent here, by reason; empty if the server is ready."""
        if self.draining:
            return {"shutdown": "shutting down"}
        if self.snapshot is not None:
            return {}
        unknown = self.sources.settings.unknown if self.sources is not None else {}
        reasons = {option: f"{option}: {why}" for option, why in unknown.items()}
        return reasons or {"settings": "the settings are not in use yet"}

    def readiness(self) -> tuple[bool, str]:
        """Whether to send requests here, and the details for people.

        Once it has a snapshot, the server stays ready when a file is invalid, as it uses the last good one, and when the API
        server does not answer, as only the checks that need the fleet then stop. If it were unready, the API server would
        refuse device pods.
        """
        obstacles = self.obstacles
        lines = [f"not ready: {'; '.join(obstacles.values())}" if obstacles else "ready"]
        fleet = self.snapshot.fleet if self.snapshot else None
        if fleet is None or not fleet.complete:
            lines.append("fleet: unknown, so nothing is refused because of it")
        else:
            kinds = ", ".join(f"{family} {len(shapes)}" for family, shapes in fleet.by_family.items() if shapes)
            lines.append(f"fleet: {fleet.nodes} nodes with devices (kinds: {kinds or 'none'}), digest {fleet.digest}")
        if self.sources is not None:
            lines += [*self.sources.settings.lines(), _certificate_line(self.sources.tls.expires)]
        if self.snapshot is not None and self.untranslated is self.snapshot.policy:
            lines.append(f"dialects: {foreign_dialect.NOT_SENT}")
        if self.sources is not None:
            problems = self.sources.tls_files.problems | self.sources.settings.problems
            lines += [f"{source}: {problem}; the last good one is in use" for source, problem in problems.items()]
        return not obstacles, "".join([f"{visible(line)}\n" for line in lines])


def _certificate_line(expires: datetime) -> str:
    left, when = expires - datetime.now(UTC), f"{expires:%Y-%m-%d %H:%M} UTC"
    return f"certificate: expires {when}, in {left.days} days" if left.days >= 0 else f"certificate: EXPIRED {when}"
