"""vGPU nodes are tainted; a vgpu pod gets the toleration, unless it tolerates the taint already.

Reads:    spec.tolerations; policy toleration
Writes:   spec.tolerations
Why:      without it the pod stays pending, and nothing says that the taint is why.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.devices.asks import DevicePod
from webhook.pod.patch import APPEND, Edit
from webhook.rules.base import VGPU_ONLY, Context, Mutation, Toleration


def propose(pod: DevicePod, context: Context) -> Iterator[Edit]:
    """Add the toleration unless one of the pod's own covers it."""
    wanted = context.settings.toleration
    if wanted is None:
        return
    for _, own in pod.view.tolerations():
        if covers(own, wanted):
            return
    yield Edit(("spec", "tolerations", APPEND), _as_json(wanted))


def covers(own: Mapping[str, Any], wanted: Toleration) -> bool:
    """Tell whether a toleration tolerates all that the wanted one would, by Kubernetes' matching."""
    key = own.get("key")
    if key and key != wanted.key:
        return False
    effect, operator = own.get("effect"), own.get("operator") or "Equal"
    if effect and effect != wanted.effect:
        return False
    if operator == "Exists":
        return True
    return operator == wanted.operator == "Equal" and bool(key) and (own.get("value") or "") == wanted.value


def _as_json(wanted: Toleration) -> dict[str, str]:
    fields = {"key": wanted.key, "operator": wanted.operator}
    if wanted.value:
        fields["value"] = wanted.value
    if wanted.effect:
        fields["effect"] = wanted.effect
    return fields


RULE = Mutation(
    id="toleration",
    summary="adds the toleration of the vGPU taint, unless the pod tolerates every value of it (policy `toleration`)",
    propose=propose,
    enabled=lambda _, settings: settings.toleration is not None,
    families=VGPU_ONLY,
)
