"""Tolerations that rules compare and write."""

from collections.abc import Mapping
from typing import Any

from webhook.rules.base import Toleration


def covers(own: Mapping[str, Any], wanted: Toleration) -> bool:
    """Whether a toleration tolerates all that the wanted one would, by Kubernetes' matching."""
    key = own.get("key")
    if key and key != wanted.key:
        return False
    effect, operator = own.get("effect"), own.get("operator") or "Equal"
    if effect and effect != wanted.effect:
        return False
    if operator == "Exists":
        return True
    return operator == wanted.operator == "Equal" and bool(key) and (own.get("value") or "") == wanted.value


def to_json(wanted: Toleration) -> dict[str, str]:
    """The toleration as a pod has it."""
    fields = {"key": wanted.key, "operator": wanted.operator}
    if wanted.value:
        fields["value"] = wanted.value
    if wanted.effect:
        fields["effect"] = wanted.effect
    return fields
