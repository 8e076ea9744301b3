"""vGPU nodes are tainted; a vgpu pod gets the toleration, unless it tolerates the taint already.

Reads:    spec.tolerations; policy toleration
Writes:   spec.tolerations
Why:      without it the pod stays pending, and no message names the taint.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.pod.patch import APPEND, Edit
from webhook.rules.base import Mutation
from webhook.rules.context import VGPU_ONLY, Context


def propose(pod: DevicePod, context: Context) -> Iterator[Edit]:
    """Add the toleration unless one of the pod's own covers it."""
    wanted = context.settings.toleration
    if wanted is None:
        return
    for _, own in pod.view.tolerations():
        if wanted.covered_by(own):
            return
    yield Edit(("spec", "tolerations", APPEND), wanted.json())


RULE = Mutation(
    id="toleration",
    summary="adds the toleration of the vGPU taint, unless the pod tolerates every value of it (policy `toleration`)",
    propose=propose,
    enabled=lambda _, settings: settings.toleration is not None,
    families=VGPU_ONLY,
    unread=True,
)
