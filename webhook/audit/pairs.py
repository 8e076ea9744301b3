"""The two lines of one new pod, from `/mutate` and from `/validate`. They have no common id: content, place and time match."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonpatch
import orjson

from webhook.audit.decision import Decision
from webhook.audit.excerpt import EXCERPT
from webhook.audit.filters import MAX_GLOB, Filter, Moment, exactly
from webhook.devices.config import ResourceNames
from webhook.errors import Malformed
from webhook.pod.view import PodView
from webhook.review.endpoints import mutate
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

if TYPE_CHECKING:  # the command line needs no SQLite
    from webhook.audit.store import DecisionStore, NumberedDecision

MAX_BYTES = 16 << 20  # of pods in memory; those of one template count once

_UNFIT = (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, LookupError, TypeError, ValueError)


class Repairs:
    """The latest pods that were repaired, each with what it was before."""

    def __init__(self) -> None:
        self._before: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0

    def note(self, decision: Decision) -> None:
        """Remember the pod of a recorded mutation, and what it became."""
        key = content_after(decision) if decision.changes else None
        if key is None:
            return
        spelled = orjson.dumps(decision.request["pod"])
        self._size += len(spelled) - len(self._before.pop(key, b""))
        self._before[key] = spelled  # the latest is the likeliest to be the one that is judged next
        while self._size > MAX_BYTES:
            self._size -= len(self._before.popitem(last=False)[1])

    def repeat(self, request: Request, snapshot: Snapshot) -> Request:
        """The request with its pod as these inputs would have repaired it; unchanged if its former pod is unknown."""
        if request.operation != "CREATE" or request.kind != "Pod" or request.object is None or not self._before:
            return request
        before = self._before.get(_key(request.object))
        if before is None:
            return request
        pod: dict[str, Any] = orjson.loads(before)
        return made_again(request._replace(object=pod), snapshot)


def made_again(request: Request, snapshot: Snapshot) -> Request:
    """The request to validate a new pod, which these inputs repair first; any other request unchanged."""
    repaired = mutate(request, snapshot)
    return request._replace(object=dict(repaired.object)) if repaired.reviewed else request


_ALL = ResourceNames(frozenset(), ())  # a line has no others


def content_after(decision: Decision) -> bytes | None:
    """Identifies the pod of a line after its repair: equal in both lines of a new pod. None if the line holds no pod."""
    pod = decision.request.get("pod")
    if not isinstance(pod, dict):
        return None
    try:
        return _key(jsonpatch.apply_patch(pod, decision.changes) if decision.changes else pod)
    except (*_UNFIT, Malformed):  # the patch is for the whole pod, of which the line holds a part
        return None


def _key(pod: dict[str, Any]) -> bytes:
    """A digest of what rules read of a pod.

    Raises:
        Malformed: it is no pod.
    """
    kept = EXCERPT.of_pod(PodView(pod), _ALL)
    return hashlib.blake2b(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


APART = timedelta(seconds=60)  # the API server gives each webhook at most half of that
MAX_LOOKED_AT = 200
MAX_BESIDE = 20  # lines between the two of a pod, in a list for people


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
            and abs(one.time - other.time) <= APART
            and self._content is not None
            and self._content == content_after(other)
        )


class Lookup:
    """Finds a decision by its id, which a refusal names, in a log that is read in order.

    Attributes:
        found: the decisions of that id, each with the other line of its pod.
    """

    def __init__(self, decision_id: str) -> None:
        self.found: list[Decision] = []
        self._id = decision_id
        self._mutations: deque[Decision] = deque(maxlen=MAX_LOOKED_AT)
        self._unpaired: OtherLine | None = None

    def add(self, decision: Decision) -> None:
        """Look at the next decision."""
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


def pair_of(store: "DecisionStore", number: int, decision: Decision) -> int | None:
    """The number of the other line of a new pod; None if it is not found."""
    other = OtherLine(decision)
    return next((each.number for each in _near(store, number, decision) if other.matches(each.decision)), None)


def pairs_among(entries: "Sequence[NumberedDecision]") -> dict[int, int]:
    """For each validation among some decisions, newest first, the number of the repair of the same new pod among them."""
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for place, (number, decision) in enumerate(entries):
        if decision.endpoint != "validate":
            continue
        line = OtherLine(decision)
        for earlier, other in entries[place + 1 : place + 1 + MAX_BESIDE]:
            if earlier not in taken and line.matches(other):
                taken.add(earlier)
                pairs[number] = earlier
                break
    return pairs


def repairs_before(store: "DecisionStore", number: int, judged: Decision) -> "list[NumberedDecision]":
    """The mutations that may have repaired the pod of a validation, oldest first.

    They were made in the same namespace, for the same user, within the minute before.
    """
    return _near(store, number, judged)[::-1]


def _near(store: "DecisionStore", number: int, decision: Decision) -> "list[NumberedDecision]":
    """Decisions of the other endpoint that may be about the same pod, the nearest first."""
    if max(len(decision.namespace), len(decision.user)) > MAX_GLOB:
        return []  # not a real name; compiling a glob of a megabyte takes seconds, and the result stays in memory
    judges = decision.endpoint == "validate"
    wanted = Filter.model_construct(  # the globs may be longer than those of people
        since=_moment(moved(decision.time, -APART)),
        until=_moment(moved(decision.time, APART)),
        namespace=(exactly(decision.namespace),),
        user=(exactly(decision.user),),
        dry_run=decision.dry_run,
        endpoint="mutate" if judges else "validate",
    )
    if judges:
        return list(store.page(wanted, before=number, limit=MAX_LOOKED_AT).entries)
    return store.following(wanted, number, MAX_LOOKED_AT)


def _moment(at: datetime | None) -> Moment | None:
    return Moment("", at) if at is not None else None


def moved(at: datetime, by: timedelta) -> datetime | None:
    """Another point in time; None if it is beyond all of them."""
    try:
        return at + by
    except OverflowError:
        return None
