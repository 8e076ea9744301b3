"""What the webhook made of new pods, so that a replay judges them as other inputs would have repaired them.

A line of `/validate` holds the pod as repaired then. The pod that it was made of stands in a line of `/mutate` before;
nothing but the content ties the two together, and nothing else needs to: pods of equal content are judged alike.
"""

import hashlib
from collections import OrderedDict
from typing import Any

import jsonpatch
import orjson

from webhook.audit.decision import Decision
from webhook.errors import Malformed
from webhook.pod.excerpt import excerpt
from webhook.pod.view import PodView
from webhook.review import Snapshot, mutate
from webhook.wire.models import Request

MAX_BYTES = 16 << 20  # of pods that are remembered; those of the same template are one

_UNFIT = (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, LookupError, TypeError, ValueError)


class _Everything:
    def __contains__(self, name: object) -> bool:
        return True


class Repairs:
    """Remembers which pod became which, the latest ones."""

    def __init__(self) -> None:
        self._before: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0

    def note(self, decision: Decision) -> None:
        """Remember what a recorded mutation made of its pod."""
        key = content_after(decision) if decision.changes else None
        if key is None:
            return
        spelled = orjson.dumps(decision.request["pod"])
        self._size += len(spelled) - len(self._before.pop(key, b""))
        self._before[key] = spelled  # the latest is the likeliest to be the one that is judged next
        while self._size > MAX_BYTES:
            self._size -= len(self._before.popitem(last=False)[1])

    def repeat(self, request: Request, snapshot: Snapshot) -> Request:
        """The request with its pod as these inputs would have repaired it; as it is if nothing is known of its past."""
        if request.operation != "CREATE" or request.kind != "Pod" or request.object is None or not self._before:
            return request
        before = self._before.get(_key(request.object))
        if before is None:
            return request
        pod: dict[str, Any] = orjson.loads(before)
        return made_again(request._replace(object=pod), snapshot)


def made_again(request: Request, snapshot: Snapshot) -> Request:
    """The request for the judgement of a new pod, repaired as these inputs would have it; any other one as it is."""
    repaired = mutate(request, snapshot)
    return request._replace(object=dict(repaired.object)) if repaired.touched else request


def content_after(decision: Decision) -> bytes | None:
    """What tells the pod of a line, as it went on, from others: equal in both lines of a new pod. None if there is no pod."""
    pod = decision.request.get("pod")
    if not isinstance(pod, dict):
        return None
    try:
        return _key(jsonpatch.apply_patch(pod, decision.changes) if decision.changes else pod)
    except (*_UNFIT, Malformed):  # the patch is for the whole pod; of what is cut away it may need a part
        return None


def _key(pod: dict[str, Any]) -> bytes:
    """Equal for pods that rules cannot tell apart.

    Raises:
        Malformed: it is no pod.
    """
    kept = excerpt(PodView(pod), _Everything())
    return hashlib.blake2b(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
