"""What the serving process knows at this moment."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from webhook.review import Snapshot


class State:
    """The current snapshot and whether new requests are welcome. Written by the event loop's thread only.

    Attributes:
        snapshot: replaced as a whole; a review keeps the one it started with.
        draining: a SIGTERM came: finish what runs, take nothing new.
        problems: by source, why the newest version of a file is not in use; empty if all are.
        certificate_expires: when the served certificate stops being valid.
        sources: for people, where all of it comes from.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.draining = False
        self.problems: Callable[[], Mapping[str, str]] = dict
        self.certificate_expires: Callable[[], datetime | None] = lambda: None
        self.sources: Callable[[], Iterable[str]] = tuple

    def readiness(self) -> tuple[bool, str]:
        """Whether to send requests here, and the details for people.

        A bad file does not make the process unready: it works on with the last good one. Nor does an API server that does
        not answer, at the start or later: without a fleet everything but the checks that need one goes on, whereas an
        unready webhook would have the API server refuse the very pods that could bring it back.
        """
        fleet = self.snapshot.fleet
        lines = ["not ready: shutting down" if self.draining else "ready"]
        if fleet is None or not fleet.complete:
            lines.append("fleet: unknown, so nothing is refused because of it")
        else:
            kinds = ", ".join(f"{family} {len(shapes)}" for family, shapes in fleet.by_family.items() if shapes)
            lines.append(f"fleet: {fleet.nodes} nodes with devices (kinds: {kinds or 'none'}), digest {fleet.digest}")
        lines += self.sources()
        expires = self.certificate_expires()
        if expires is not None:
            left = expires - datetime.now(UTC)
            when = f"{expires:%Y-%m-%d %H:%M} UTC"
            lines.append(
                f"certificate: expires {when}, in {left.days} days"
                if left.days >= 0
                else f"certificate: EXPIRED {when}"
            )
        lines += [f"{source}: {problem}; the last good one is in use" for source, problem in self.problems().items()]
        return not self.draining, "\n".join(lines) + "\n"
