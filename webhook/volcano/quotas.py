"""Quotas of device memory: ResourceQuotas with a limit on a device resource, which Kubernetes accepts and never counts.

HAMi counts them, as memory times the number of cards; Volcano does not.
Source: HAMi `pkg/device/quota.go`.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.lenient import obj, text
from webhook.pod import quantity

PREFIX = "limits."


@dataclass(frozen=True, slots=True)
class Quota:
    """What reviews read of a ResourceQuota.

    Attributes:
        namespace, name: of the object.
        limits: how much the pods of the namespace may have in all, by resource, in whole units.
    """

    namespace: str
    name: str
    limits: Mapping[str, int]


class Quotas:
    """All quotas of devices in a cluster.

    Attributes:
        digest: changes when a quota does.
    """

    def __init__(self, quotas: Iterable[Quota]) -> None:
        """Take all of them."""
        in_order = sorted(quotas, key=lambda quota: (quota.namespace, quota.name))
        self._by_namespace: dict[str, list[Quota]] = {}
        for quota in in_order:
            self._by_namespace.setdefault(quota.namespace, []).append(quota)
        content = [(quota.namespace, quota.name, *quota.limits.items()) for quota in in_order]
        self.digest = hashlib.sha256(repr(content).encode()).hexdigest()[:12]

    def of(self, namespace: str) -> Sequence[Quota]:
        """The quotas of a namespace, in the order of their names."""
        return self._by_namespace.get(namespace, ())


def read_quota(raw: Mapping[str, Any]) -> Quota | None:
    """Read a ResourceQuota as the API server has it; None if it limits no device. What is malformed counts as absent."""
    spec = obj(raw, "spec")
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None  # it counts only some of the pods
    limits = {}
    for key, value in obj(spec, "hard").items():
        if key.startswith(PREFIX) and "/" in key:
            try:
                limits[key.removeprefix(PREFIX)] = math.floor(quantity.parse(value))
            except ValueError:
                continue
    namespace, name = (text(raw, "metadata", key) for key in ("namespace", "name"))
    return Quota(namespace, name, limits) if limits and namespace and name else None
