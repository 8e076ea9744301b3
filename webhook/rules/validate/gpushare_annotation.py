"""A list of unhealthy cards has no effect on a pod.

Reads:    the annotation volcano.sh/gpu-unhealthy-ids of a new pod
Finds:    the annotation
Why:      the scheduler reads it on nodes only, so the pod may still get such a card.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import EVERY_POD, Context, Finding
from webhook.rules.settings import Level

DETAIL = f"the annotation {names.GPU_UNHEALTHY_IDS} is read on nodes, not on pods, and excludes no card here; remove it"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the annotation."""
    if names.GPU_UNHEALTHY_IDS in pod.view.annotations:
        yield Finding(wording.annotation_path(names.GPU_UNHEALTHY_IDS), DETAIL)


RULE = Validation(
    id="gpushare-annotation",
    level=Level.WARN,
    summary="`gpu-unhealthy-ids` annotated on a pod: it excludes no card",
    check=check,
    families=EVERY_POD,
    fields=ANNOTATIONS,
)
