"""One decision by its id, with the other line of its pod: the author of a pod has only the id of the refusal."""

import re
from collections import deque
from datetime import timedelta

from webhook.audit.decision import Decision
from webhook.audit.repairs import content_after

APART = timedelta(seconds=60)  # the API server gives each webhook at most half of that
MAX_LOOKED_AT = 200

_ID = re.compile(r"[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Whether a text is the id of a decision."""
    return _ID.fullmatch(text) is not None


def is_same_pod(one: Decision, other: Decision) -> bool:
    """Whether two lines are those of `/mutate` and `/validate` of one new pod: nothing but content, place and time tie them."""
    if not one.operation == other.operation == "CREATE" or not one.kind == other.kind == "Pod":
        return False
    if (one.namespace, one.user, one.dry_run) != (other.namespace, other.user, other.dry_run):
        return False
    content = content_after(one) if abs(one.at - other.at) <= APART and one.endpoint != other.endpoint else None
    return content is not None and content == content_after(other)


class Lookup:
    """Takes all decisions of a log in order.

    Attributes:
        found: the decisions of that id, each with the other line of its pod.
    """

    def __init__(self, decision_id: str) -> None:
        self.found: list[Decision] = []
        self._id = decision_id
        self._mutations: deque[Decision] = deque(maxlen=MAX_LOOKED_AT)
        self._unpaired: Decision | None = None

    def add(self, decision: Decision) -> None:
        """Take a decision."""
        if decision.id == self._id:
            before = next((each for each in reversed(self._mutations) if is_same_pod(each, decision)), None)
            self.found += [decision] if before is None else [before, decision]
            self._unpaired = decision if decision.endpoint == "mutate" else None
        elif self._unpaired is not None and is_same_pod(self._unpaired, decision):
            self.found.append(decision)
            self._unpaired = None
        if decision.endpoint == "mutate":
            self._mutations.append(decision)
