"""The two lines of one pod: that of `/mutate` and that of `/validate`. Nothing but content, place and time tie them."""

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta

from webhook.audit.decision import Decision
from webhook.audit.entries import Entry
from webhook.audit.filters import Filter
from webhook.audit.journal import Journal
from webhook.audit.lookup import APART, MAX_LOOKED_AT
from webhook.audit.repairs import content_after
from webhook.console.api.filters import MAX_GLOB, exactly


class Pending:
    """The latest mutations that are not asked for themselves, until the judgement of their pod is."""

    def __init__(self) -> None:
        self._held: deque[Decision] = deque(maxlen=MAX_LOOKED_AT)

    def add(self, decision: Decision) -> None:
        """Hold a decision, if it is one that may repair a pod."""
        if decision.endpoint == "mutate" and decision.patch:
            self._held.append(decision)

    def take(self, judged: Decision) -> list[Decision]:
        """Those that may have repaired the pod of a judgement, oldest first; they are held no more."""
        who = judged.namespace, judged.user
        found = [each for each in self._held if (each.namespace, each.user) == who]
        if found:
            rest = [each for each in self._held if (each.namespace, each.user) != who]
            self._held.clear()
            self._held.extend(rest)
        return found


def repairs_before(journal: Journal, number: int, decision: Decision) -> list[tuple[int, Decision]]:
    """The mutations that may have repaired the pod of a judgement, with their numbers, oldest first.

    They were made in the same namespace, for the same user, within the minute before.
    """
    return _near(journal, decision, "mutate", before=number)[::-1]


def pair_of(journal: Journal, number: int, decision: Decision) -> int | None:
    """The number of the other line of a new pod; None if there is none, or none that can be told."""
    content = content_after(decision) if decision.operation == "CREATE" and decision.kind == "Pod" else None
    if content is None:
        return None
    if decision.endpoint == "validate":
        nearest = _near(journal, decision, "mutate", before=number)
    else:
        nearest = _near(journal, decision, "validate", after=number)[::-1]
    return next((at for at, other in nearest if content_after(other) == content), None)


def _near(journal: Journal, decision: Decision, endpoint: str, **place: int) -> list[tuple[int, Decision]]:
    """Decisions of the other endpoint that may be of the same pod, newest first."""
    if max(len(decision.namespace), len(decision.user)) > MAX_GLOB:
        return []  # nobody's name; to compile a glob of a megabyte takes seconds, and it would stay in memory
    wanted = Filter(
        since=moved(decision.at, -APART),
        until=moved(decision.at, APART),
        namespaces=(exactly(decision.namespace),),
        users=(exactly(decision.user),),
        dry_run=decision.dry_run,
        endpoint=endpoint,
    )
    found = [(entry.number, journal.decision(entry.number)) for entry in _entries(journal, wanted, place)]
    return [(number, full) for number, full in found if full is not None]


def _entries(journal: Journal, wanted: Filter, place: dict[str, int]) -> Sequence[Entry]:
    """Those nearest to a place."""
    if "before" in place:
        return journal.latest(wanted, before=place["before"], limit=MAX_LOOKED_AT).entries
    return journal.latest(wanted, after=place["after"], limit=journal.count + 1).entries[-MAX_LOOKED_AT:]


def moved(at: datetime, by: timedelta) -> datetime | None:
    """Another point in time; None if it is beyond all of them."""
    try:
        return at + by
    except OverflowError:
        return None
