"""What a pod requests of the device families, read once and shared by all rules."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.config import DeviceConfig, Roles, VgpuConfig
from webhook.devices.dialects import RESOURCES
from webhook.devices.families import Family, PodFact, Role
from webhook.pod import quantity
from webhook.pod.fields import OptionalFields
from webhook.pod.view import INIT, REGULAR, Container, PodView, fields_among

MAX_QUANTITY = 2**31 - 1  # the scheduler keeps a request in an int32 and lets it wrap
MAX_MEMORY = 2**20  # MiB, a TiB: no card has it, so what is above was meant in bytes
NVIDIA = "nvidia.com/"
MAX_STATUS_UNITS = 23_000  # of vGPU memory of a pod; etcd takes no status that lists many more (23,950 seen)


class Amount(NamedTuple):
    """One device resource of one container.

    Attributes:
        container: which one requests it.
        resource: the name.
        family, role: what the name means.
        raw: what is written: in limits, else in requests.
        value: the number if it is a usable one, a whole number from 0 to 2147483647, of memory to 1048576; else None.
    """

    container: Container
    resource: str
    family: str
    role: Role
    raw: Any
    value: int | None


_role, _value = attrgetter("role"), attrgetter("value")


class DeviceRequest:
    """What one regular container requests of the vgpu family.

    Attributes:
        container: which one requests it.
        number, memory, cores, percentage: the value if it is a usable one; None if absent or unusable.
        written: the roles that limits or requests have, each with its resource.
        usable: every written quantity could be read.
        config: what the resources are called, and their defaults.
    """

    __slots__ = ("config", "container", "cores", "memory", "number", "percentage", "usable", "written")

    def __init__(
        self, container: Container, amounts: Mapping[Role, int | None], written: Mapping[Role, str], config: VgpuConfig
    ) -> None:
        self.config = config
        self.container = container
        self.written = written
        self.usable = None not in amounts.values()
        self.number = amounts.get(Role.NUMBER)
        self.memory = amounts.get(Role.MEMORY)
        self.cores = amounts.get(Role.CORES)
        self.percentage = amounts.get(Role.PERCENTAGE)

    def amount(self, role: Role) -> int:
        """The amount requested of a role; 0 if absent or unusable."""
        value: int | None = getattr(self, role)
        return value or 0

    def with_memory(self, memory: int) -> "DeviceRequest":
        """The same request with another amount of memory and no percentage; 0 means the whole card."""
        written = {**self.written, Role.MEMORY: self.config.memory_name}
        written.pop(Role.PERCENTAGE, None)
        amounts = {role: getattr(self, role) for role in written} | {Role.MEMORY: memory}
        return DeviceRequest(self.container, amounts, written, self.config)


class DevicePod:
    """A pod with what it requests of every family.

    Attributes:
        view: the pod.
        config: the device config by which it is read.
        amounts: every device resource of every container, init containers first; not those of families of which a container
            requests nothing, as charts write them: cores of 0, or in an init container a count of 0.
        roles: the resource names that mean something on this pod.
        requested: the families that some container requests, each with the containers that do.
        slices: the vGPU requests of the regular containers, in order: the only ones that the scheduler serves.
        foreign: the resource names that are neither of a family nor Kubernetes' own.
        noted: the facts that reading the containers shows.
        judged: the containers that this request brings in: all of a new pod's, the new ephemeral ones of an old pod's.
        previous: the pod before an update; None on creation.
    """

    __slots__ = ("amounts", "config", "foreign", "judged", "noted", "previous", "requested", "roles", "slices", "view")

    def __init__(self, view: PodView, config: DeviceConfig, previous: PodView | None = None) -> None:
        self.view = view
        self.config = config
        self.previous = previous
        self.roles = config.roles_for(view.labels)
        containers = view.every_container()
        self.judged = containers if previous is None else _new_ephemeral(view, previous)
        self.requested: dict[str, list[Container]] = {}
        self.amounts: list[Amount] = []
        self.slices: list[DeviceRequest] = []
        self.foreign: set[str] = set()
        self.noted: set[str] = set()
        usual = config.usual
        for container in containers:
            limits, requests = container.limits, container.requests
            if limits or requests:
                if not (usual.issuperset(limits) and usual.issuperset(requests)):
                    self.noted.add(PodFact.FOREIGN)
                    self.foreign |= {*limits, *requests} - usual
                if requests and not requests.items() <= limits.items():
                    self.noted.add(PodFact.DIFFERENT)
                own = amounts_of(container, self.roles)
                if 0 in map(_value, own):
                    own = _requesting(own, container)
                if own:
                    self._note(container, own)

    def facts(self, optional: OptionalFields) -> frozenset[str]:
        """What the pod has of all that rules may need: of some optional fields, roles of amounts, and `PodFact`.

        Of an update all, since rules read the pod before it, too.
        """
        if self.previous is not None:
            return frozenset().union(*optional, Role, PodFact)
        facts, requested = fields_among(optional, self.view) | self.noted, self.requested
        if requested:
            roles, values = [*map(_role, self.amounts)], [*map(_value, self.amounts)]
            first, *others = requested.values()
            facts.update(roles)
            if None in values:
                facts.add(PodFact.UNUSABLE)
            if 0 in values:
                facts.add(PodFact.ZERO)
            if others or len(first) > 1:
                facts.add(PodFact.SEVERAL)
            if others or Family.VGPU not in requested or roles.count(Role.NUMBER) < len(first):
                facts.add(PodFact.UNCOUNTED)
        return frozenset(facts)

    def requests_family(self, family: str) -> bool:
        """Whether some container requests a family."""
        return family in self.requested

    def _note(self, container: Container, amounts: list[Amount]) -> None:
        self.amounts += amounts
        vgpu: dict[Role, int | None] = {}
        called: dict[Role, str] = {}
        noted = None
        for _, resource, family, role, _, value in amounts:
            if family is not noted:  # mostly they are all of one family
                noted = family
                requesting = self.requested.setdefault(family, [])
                if not requesting or requesting[-1] is not container:
                    requesting.append(container)
            if family == Family.VGPU:
                vgpu[role] = value
                called[role] = resource
        if vgpu and container.kind == REGULAR:
            self.slices.append(DeviceRequest(container, vgpu, called, self.config.vgpu))


class PodAmounts(NamedTuple):
    """A pod as families read it that need nothing but its labels and what it requests.

    No part of it leads back to the pod, which keeps the verdicts on it: Python frees the pod at once, without its collector.
    """

    labels: Mapping[str, Any]
    amounts: list[Amount]


def amounts_of(container: Container, roles: Roles) -> list[Amount]:
    """The device resources of one container, each once: limits first, then what only requests have."""
    limits = container.limits
    device_amounts = []
    for others, amounts in (((), limits), (limits, container.requests)):  # a manifest may have one map for both
        for resource, raw in amounts.items():
            if resource in roles and resource not in others:
                family, role = roles[resource]
                value = usable(raw)
                if value is not None and value > MAX_MEMORY and role is Role.MEMORY:
                    value = None
                device_amounts.append(Amount(container, resource, family, role, raw, value))
    return device_amounts


def _requesting(amounts: list[Amount], container: Container) -> list[Amount]:
    """The amounts of the families that a container requests.

    In regular containers, the scheduler also counts a device for a count of 0, and for vGPU memory of 0.
    Source: volcano `pkg/scheduler/api/devices/util.go` (ExtractResourceRequest).
    """
    requested = nonzero_families(amounts)
    if container.kind != INIT:
        requested |= {each.family for each in amounts if each.role is Role.NUMBER}
        requested |= {each.family for each in amounts if each.role is Role.MEMORY and each.family == Family.VGPU}
    return [each for each in amounts if each.family in requested]


def usable(raw: Any) -> int | None:
    """The number that the scheduler can count with; None for every other quantity."""
    if isinstance(raw, str) and len(raw) <= quantity.MAX_LENGTH:
        return _usable_text(raw)
    return _in_range(quantity.whole(raw))


@lru_cache(maxsize=4096)  # the API server sends the same few forms again and again
def _usable_text(raw: str) -> int | None:
    return _in_range(quantity.whole(raw))


def _in_range(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MAX_QUANTITY else None


def _new_ephemeral(view: PodView, previous: PodView) -> tuple[Container, ...]:
    known = {container.name for container in previous.ephemeral_containers}
    return tuple([container for container in view.ephemeral_containers if container.name not in known])


def requested_families(container: Container, roles: Roles) -> set[str]:
    """The families of which a container requests more than nothing."""
    return nonzero_families(amounts_of(container, roles))


def nonzero_families(amounts: Collection[Amount]) -> set[str]:
    """The families of which one container's amounts request more than nothing: by a count or, without one, by any other."""
    counted = {amount.family for amount in amounts if amount.role is Role.NUMBER}
    return {
        amount.family
        for amount in amounts
        if amount.value != 0 and (amount.role is Role.NUMBER or amount.family not in counted)
    }


def requests_native_gpu(container: Container, roles: Roles) -> bool:
    """Whether a container requests GPUs of NVIDIA's own device plugin."""
    if names.NVIDIA_GPU in roles or not container.has(names.NVIDIA_GPU):
        return False
    return usable(container.quantity(names.NVIDIA_GPU)) != 0


def served_elsewhere(container: Container, roles: Roles) -> bool:
    """Whether a container requests devices of another plugin for NVIDIA cards: whole ones, MIG instances, or shares."""
    amounts = [*container.limits.items(), *container.requests.items()]
    others = [raw for name, raw in amounts if name not in roles and (name.startswith(NVIDIA) or name in RESOURCES)]
    return any([usable(raw) != 0 for raw in others])


@dataclass(frozen=True, slots=True)
class ResourceTotal:
    """What a pod requests of one resource.

    Attributes:
        served: as the scheduler's gpushare counts: the sum of the containers, or the largest init container if that is
            more.
        total: as the ordinary node fit counts, which adds sidecars.
    """

    served: int = 0
    total: int = 0


def total(pod: DevicePod | PodAmounts, resource: str) -> ResourceTotal:
    """What a pod requests of one resource."""
    regular = sidecars = largest_init = largest_total = 0
    for amount in pod.amounts:  # init containers come first
        if amount.resource != resource:
            continue
        value = amount.value or 0
        if amount.container.kind == REGULAR:
            regular += value
        elif amount.container.kind == INIT:
            largest_init = max(largest_init, value)
            if amount.container.raw.get("restartPolicy") == "Always":
                sidecars += value
            else:
                largest_total = max(largest_total, sidecars + value)
    return ResourceTotal(max(regular, largest_init), max(regular + sidecars, largest_total))
