"""What a pod asks of the device families, read once and shared by all rules."""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook import names
from webhook.devices.config import DeviceConfig, Roles, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.pod import quantity
from webhook.pod.view import REGULAR, Container, PodView

MAX_QUANTITY = 2**31 - 1  # the scheduler keeps a request in an int32 and lets it wrap


class Ask:
    """What one container asks of the vgpu family.

    Attributes:
        container: who asks.
        number, memory, cores, percentage: the value if it is a usable one; None if absent or unusable.
        written: the roles that stand in limits or requests, with what is written there.
    """

    __slots__ = ("container", "cores", "memory", "number", "percentage", "written")

    def __init__(self, container: Container, config: VgpuConfig) -> None:
        self.container = container
        self.written: dict[Role, Any] = {}
        self.number = self._read(Role.NUMBER, config.number_name)
        self.memory = self._read(Role.MEMORY, config.memory_name)
        self.cores = self._read(Role.CORES, config.cores_name)
        self.percentage = self._read(Role.PERCENTAGE, config.percentage_name)

    @property
    def usable(self) -> bool:
        """Tell whether every written quantity could be read."""
        return all(getattr(self, role) is not None for role in self.written)

    def _read(self, role: Role, resource: str) -> int | None:
        container = self.container
        if resource not in container.limits and resource not in container.requests:
            return None
        raw = container.quantity(resource)
        self.written[role] = raw
        value = quantity.whole(raw)
        return value if value is not None and 0 <= value <= MAX_QUANTITY else None


class DevicePod:
    """A pod with what it asks of every family.

    Attributes:
        view: the pod.
        asked: the families that some container asks for, each with the containers that do, init containers first.
        vgpu: the vgpu asks of the regular containers, in order: the only ones that the scheduler serves.
        judged: the containers that this request brings in: all of a new pod's, the new ephemeral ones of an old pod's.
        previous: the pod before an update; None on creation.
    """

    __slots__ = ("_memo", "asked", "judged", "previous", "vgpu", "view")

    def __init__(self, view: PodView, config: DeviceConfig, previous: PodView | None = None) -> None:
        self.view = view
        self.previous = previous
        self.judged = tuple(_judged(view, previous))
        self.asked: dict[Family, list[Container]] = {}
        roles = config.roles
        vgpu: list[Ask] = []
        for container in view.every_container():
            for family in families_of(container, roles):
                self.asked.setdefault(family, []).append(container)
                if family is Family.VGPU and container.kind == REGULAR:
                    vgpu.append(Ask(container, config.vgpu))
        self.vgpu = tuple(vgpu)
        self._memo: dict[Any, Any] = {}

    def asks(self, family: Family) -> bool:
        """Tell whether some container asks for a family."""
        return family in self.asked

    @property
    def memo(self) -> dict[Any, Any]:
        """Scratch space for facts that several rules share, such as the feasibility verdict."""
        return self._memo


def _judged(view: PodView, previous: PodView | None) -> Iterator[Container]:
    if previous is None:
        yield from view.every_container()
    else:
        known = {container.name for container in previous.ephemeral_containers}
        yield from (container for container in view.ephemeral_containers if container.name not in known)


def families_of(container: Container, roles: Roles) -> list[Family]:
    """The families that a container asks for, in limits or requests, each once."""
    found: list[Family] = []
    for resources in (container.limits, container.requests):
        for resource in resources:
            entry = roles.get(resource)
            if entry is not None and entry[0] not in found:
                found.append(entry[0])
    return found


def asks_native_gpu(container: Container, roles: Roles) -> bool:
    """Tell whether a container asks NVIDIA's own device plugin for whole GPUs."""
    return names.NVIDIA_GPU not in roles and container.has(names.NVIDIA_GPU)


def family_resources(resources: Mapping[str, Any], roles: Roles) -> list[str]:
    """The family names among some limits or requests, in order."""
    return [resource for resource in resources if resource in roles]
