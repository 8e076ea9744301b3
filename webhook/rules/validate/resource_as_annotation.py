"""An amount of a device is a resource of a container.

Reads:    the names of a pod's annotations and labels; the names of the device config
Finds:    one that is the name of a device resource
Why:      nothing reads it there, so the pod gets another amount than its author means.
"""

from collections.abc import Iterator

from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.pod.view import ANNOTATIONS, LABELS
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.settings import Level

DETAIL = "{key} is a resource, and nothing reads it here; write it under resources.limits of a container"


def check(pod: DevicePod, _context: Context) -> Iterator[Finding]:
    """Find names of resources among annotations and labels."""
    view, roles = pod.view, pod.config.roles
    for field, found in (("annotations", view.annotations), ("labels", view.labels)):
        if found and not roles.keys().isdisjoint(found):
            for key in sorted(roles.keys() & found.keys()):
                if roles[key][0] != Family.ASCEND:  # the scheduler writes such an annotation: reserved-annotation
                    yield Finding(f"metadata.{field}[{key}]", DETAIL.format(key=key))


RULE = Validation(
    id="resource-as-annotation",
    level=Level.WARN,
    summary="the name of a device resource as an annotation or a label",
    check=check,
    fields=ANNOTATIONS | LABELS,
)
