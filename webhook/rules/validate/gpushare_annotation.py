"""Two gpushare annotations do not do on a pod what guides say of them.

Reads:    the annotations volcano.sh/gpu-index and volcano.sh/gpu-unhealthy-ids of a new pod
Refuses:  them
Why:      gpu-index is the scheduler's own note: set by an author it chooses no card, and the card is booked twice;
          gpu-unhealthy-ids is read on nodes only.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.asks import DevicePod
from webhook.rules import wording
from webhook.rules.base import EVERY_POD, Context, Finding, Level, Validation

_TRUTH = {
    names.GPU_INDEX: "is written by the scheduler and chooses no card; remove it",
    names.GPU_UNHEALTHY_IDS: "is read on nodes, not on pods, and excludes no card here; remove it",
}


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find annotations that do something else than their authors believe."""
    for key, truth in _TRUTH.items():
        if key in pod.view.annotations:
            yield Finding(wording.annotation_path(key), f"the annotation {key} {truth}")


RULE = Validation(
    id="gpushare-annotation",
    level=Level.WARN,
    summary="`gpu-index` or `gpu-unhealthy-ids` annotated on a pod: they choose and exclude no card",
    check=check,
    families=EVERY_POD,
)
