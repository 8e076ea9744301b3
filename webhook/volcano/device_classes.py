"""DeviceClasses: which resource names Kubernetes serves by Dynamic Resource Allocation, though no node offers them.

Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go` (DeviceClassSpec.ExtendedResourceName, KEP-5004).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.lenient import obj, text


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What reviews read of a DeviceClass.

    Attributes:
        name: of the object.
        resource: that pods request in its place; None if what stands there is no text.
    """

    name: str
    resource: str | None


class DeviceClasses:
    """All DeviceClasses of a cluster that serve a resource.

    Attributes:
        by_resource: the name of the class that serves each resource.
        complete: whether no other resource is served; otherwise some may be, so none is misspelt for certain.
        digest: changes when a class does.
    """

    def __init__(self, classes: Iterable[DeviceClass], *, listed: bool = True) -> None:
        """Take all of them; unless they are `listed`, nothing is known of the others."""
        in_order = sorted(classes, key=lambda each: each.name)
        self.by_resource: Mapping[str, str] = {each.resource: each.name for each in in_order if each.resource}
        self.complete = listed and not any(map(complaint, in_order))
        content = [self.complete, *self.by_resource.items()]
        self.digest = hashlib.sha256(repr(content).encode()).hexdigest()[:12]

    def beside(self, more: Iterable[DeviceClass]) -> "DeviceClasses":
        """These, and more that will be there."""
        served = [DeviceClass(name, resource) for resource, name in self.by_resource.items()]
        return DeviceClasses([*served, *more], listed=self.complete)


def complaint(one: DeviceClass) -> str:
    """Why a class cannot be read; empty if it can."""
    return f"DeviceClass {one.name}: spec.extendedResourceName is no text" if one.resource is None else ""


def unlisted() -> DeviceClasses:
    """What is known where the API server has DeviceClasses but they cannot be listed."""
    return DeviceClasses((), listed=False)


def read_device_class(raw: Mapping[str, Any]) -> DeviceClass | None:
    """Read a DeviceClass as the API server has it; None if it has no name, or serves no resource by a name."""
    name, resource = text(raw, "metadata", "name"), obj(raw, "spec").get("extendedResourceName")
    if not name or resource in (None, ""):
        return None
    return DeviceClass(name, resource if isinstance(resource, str) else None)
