"""The two lines of one new pod, those of `/mutate` and of `/validate`. Only content, place and time tie them together."""

import re
from collections import deque
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from webhook.audit.decision import Decision
from webhook.audit.filters import MAX_GLOB, Filter, exactly
from webhook.audit.repairs import content_after

if TYPE_CHECKING:  # the command line needs no SQLite
    from webhook.audit.store import DecisionStore, Stored

APART = timedelta(seconds=60)  # the API server gives each webhook at most half of that
MAX_LOOKED_AT = 200

_ID = re.compile(r"[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Whether a text is the id of a decision."""
    return _ID.fullmatch(text) is not None


class OtherLine:
    """Recognizes the other line of the pod of a decision."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    @cached_property
    def _content(self) -> bytes | None:
        return content_after(self._decision)

    def matches(self, other: Decision) -> bool:
        """Whether a decision is about the same new pod, at the other endpoint."""
        one = self._decision
        return (
            one.operation == other.operation == "CREATE"
            and one.kind == other.kind == "Pod"
            and one.endpoint != other.endpoint
            and (one.namespace, one.user, one.dry_run) == (other.namespace, other.user, other.dry_run)
            and abs(one.at - other.at) <= APART
            and self._content is not None
            and self._content == content_after(other)
        )


class Lookup:
    """Finds a decision by its id in a log that is read in order. Its author has only the id that the refusal names.

    Attributes:
        found: the decisions of that id, each with the other line of its pod.
    """

    def __init__(self, decision_id: str) -> None:
        self.found: list[Decision] = []
        self._id = decision_id
        self._mutations: deque[Decision] = deque(maxlen=MAX_LOOKED_AT)
        self._unpaired: OtherLine | None = None

    def add(self, decision: Decision) -> None:
        """Take a decision."""
        if decision.id == self._id:
            line = OtherLine(decision)
            before = next((each for each in reversed(self._mutations) if line.matches(each)), None)
            self.found += [decision] if before is None else [before, decision]
            self._unpaired = line if decision.endpoint == "mutate" else None
        elif self._unpaired is not None and self._unpaired.matches(decision):
            self.found.append(decision)
            self._unpaired = None
        if decision.endpoint == "mutate":
            self._mutations.append(decision)


class Pending:
    """The latest mutations that do not match a filter themselves, until the judgement of their pod does."""

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


def pair_of(store: "DecisionStore", number: int, decision: Decision) -> int | None:
    """The number of the other line of a new pod; None if the store does not hold it, or if there is no telling."""
    other = OtherLine(decision)
    return next((each.number for each in _near(store, number, decision) if other.matches(each.decision)), None)


def repairs_before(store: "DecisionStore", number: int, judged: Decision) -> "list[Stored]":
    """The mutations that may have repaired the pod of a judgement, oldest first.

    They were made in the same namespace, for the same user, within the minute before.
    """
    return _near(store, number, judged)[::-1]


def _near(store: "DecisionStore", number: int, decision: Decision) -> "list[Stored]":
    """Decisions of the other endpoint that may be about the same pod, the nearest first."""
    if max(len(decision.namespace), len(decision.user)) > MAX_GLOB:
        return []  # nobody's name; to compile a glob of a megabyte takes seconds, and it would stay in memory
    judges = decision.endpoint == "validate"
    wanted = Filter(
        since=moved(decision.at, -APART),
        until=moved(decision.at, APART),
        namespaces=(exactly(decision.namespace),),
        users=(exactly(decision.user),),
        dry_run=decision.dry_run,
        endpoint="mutate" if judges else "validate",
    )
    if judges:
        return list(store.page(wanted, before=number, limit=MAX_LOOKED_AT).entries)
    return store.following(wanted, number, MAX_LOOKED_AT)


def moved(at: datetime, by: timedelta) -> datetime | None:
    """Another point in time; None if it is beyond all of them."""
    try:
        return at + by
    except OverflowError:
        return None
