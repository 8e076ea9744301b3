"""Volcano does not read the PodGroups of Kubernetes.

Reads:    spec.schedulingGroup, which Kubernetes has from 1.36 on
Finds:    a pod that names a PodGroup there
Why:      Volcano makes a PodGroup of its own for the pod and starts it alone, whatever the group of Kubernetes wants.

No part of volcano reads the field; its PodGroups are of scheduling.volcano.sh. KEP-4671 has those of Kubernetes.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.pod.view import SCHEDULING_GROUP
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.settings import Level

DETAIL = (
    "schedulingGroup names {group} of Kubernetes, which Volcano does not read: the pod starts alone; make a gang with a "
    f"Volcano Job, or with the annotation {names.GROUP_NAME}"
)


def check(pod: DevicePod, _context: Context) -> Iterator[Finding]:
    """Find a pod of a group that is not Volcano's."""
    group = pod.view.scheduling_group
    if group:
        yield Finding(f"spec.{SCHEDULING_GROUP}", DETAIL.format(group=f"the PodGroup {wording.quoted(group)}"))


RULE = Validation(
    id="scheduling-group-ignored",
    level=Level.WARN,
    summary="a PodGroup of Kubernetes in `schedulingGroup`, which Volcano does not read",
    check=check,
    fields=frozenset({SCHEDULING_GROUP}),
)
