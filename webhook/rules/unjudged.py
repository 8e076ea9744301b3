"""Devices that the webhook does not judge: those of other device plugins, and those of resource claims."""

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.dialects import AMOUNTS, DIALECTS, RESOURCES, vendor_of
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.nodes import is_qualified
from webhook.devices.unknown import offered_roles
from webhook.lenient import at
from webhook.pod import quantity
from webhook.pod.view import Container
from webhook.rules.choices import DialectUse, Level
from webhook.rules.context import KnownCluster
from webhook.rules.dialects import dialect_names
from webhook.rules.reviewed_pod import ReviewedPod

CLAIMS = "resources.claims"
MAX_UNJUDGED = 20  # of one pod
MAX_COMPARED = 60  # characters of a name that is compared
CLOSE = 0.85  # how similar two names are, with their domains, from 0 to 1
NOT_OFFERED = "resource-not-offered"  # the rule that finds what no node offers

_GPU = re.compile("gpu|cuda|/mig-")
_NPU = re.compile("npu|ascend", re.IGNORECASE)
_MIG = re.compile(r"nvidia\.com/mig-([0-9]+g\.[0-9]+gb)")
_OF_A_CARD = re.compile("mem|core|percent|ratio")  # what a name has that counts no cards


class UnjudgedDevice(NamedTuple):
    """A device that a container requests and the webhook does not judge.

    Attributes:
        container: the container.
        resource: its name; `resources.claims` for the devices of resource claims.
        about: whether a node offers it, and what to write for a slice; a sentence without its beginning.
    """

    container: Container
    resource: str
    about: str

    def __str__(self) -> str:
        who = wording.container(self.container)
        return f"{who} requests {self.resource}, which this webhook does not judge; {self.about}"


def unjudged_devices(pod: ReviewedPod) -> list[UnjudgedDevice]:
    """The devices that a pod requests and the webhook does not judge, without what no node offers; at most 20."""
    absent = {(one.container, one.resource) for one in not_offered(pod)}
    foreign = set(filter(pod.cluster.config.resources.looks_like_device, pod.foreign))
    devices = _devices(pod, foreign.difference(pod.roles, _reported(pod)), claims=True)
    return list(islice((one for one in devices if (one.container, one.resource) not in absent), MAX_UNJUDGED))


def not_offered(pod: ReviewedPod) -> list[UnjudgedDevice]:
    """What `unoffered` finds and no other rule."""
    context = pod.context
    if pod.names.all_known or context.effective.levels.get(NOT_OFFERED) is Level.OFF or not (absent := _absent(pod)):
        return []
    absent -= _reported(pod)
    for dialect, use in context.effective.dialects.items():
        if use is DialectUse.OFF:
            absent -= DIALECTS[dialect].resources  # read by the scheduler of that system, and offered by no node
    if pod.requests_family(Family.VGPU):
        absent.discard(names.NVIDIA_GPU)  # family-mixed
    return list(islice(_devices(pod, absent), MAX_UNJUDGED))


def unoffered(pod: ReviewedPod, *, now: bool = False) -> list[UnjudgedDevice]:
    """The resources that a pod requests and no node offers, at most 20; none while it is not known what the nodes offer.

    Args:
        pod: the pod.
        now: also find those of which the nodes that list them have 0, as while their device plugin does not run.
    """
    return list(islice(_devices(pod, _absent(pod, now=now)), MAX_UNJUDGED))


def _absent(pod: ReviewedPod, *, now: bool = False) -> set[str]:
    """The names of what `unoffered` finds."""
    fleet, config, served = pod.cluster.known_fleet, pod.cluster.config, pod.cluster.collections.served
    if fleet is None or not pod.foreign or not pod.cluster.knows_offers:
        return set()
    offered = fleet.offered if now else fleet.other_names
    absent = {name for name in pod.foreign if not (name in offered or name in served) and _is_foreign(name)}
    if not absent.isdisjoint(config.roles):  # a name may be one of a family on some pods only
        absent -= {*pod.roles, *offered_roles(fleet, config)}
    return absent


def meant_by(name: str, fleet: Fleet | None, config: DeviceConfig) -> str:
    """What was most likely meant by a name that no node offers, and what to write; empty if no known name is like it."""
    if name in RESOURCES:
        return ""
    ours = [*offered_roles(fleet, config), *(fleet.offered if fleet is not None else ())]
    near = get_close_matches(name[:MAX_COMPARED], [*ours, *AMOUNTS], 1, CLOSE)
    if not near or near[0] in ours:
        return f"did you mean {near[0]}?" if near else ""
    dialect, role, word = AMOUNTS[near[0]]
    here = config.vgpu.role_names[role]
    return f"did you mean {dialect.title}'s {word.name}? Volcano does not read it; write {here}"


def _is_foreign(name: str) -> bool:
    """Whether a name is none of Kubernetes' own: it has a domain, or is one without a slash, which no node can offer."""
    return is_qualified(name) or ("." in name and "/" not in name)


def _reported(pod: ReviewedPod) -> set[str]:
    """The names about which another rule says something."""
    return {*dialect_names(pod, pod.context), *[unknown.resource for unknown in pod.names.unknown]}


def _devices(pod: ReviewedPod, wanted: Collection[str], *, claims: bool = False) -> Iterator[UnjudgedDevice]:
    for container in pod.view.every_container():
        for resource, amount in {**container.requests, **container.limits}.items():
            if resource in wanted and quantity.whole(amount) != 0:
                shown = wording.unquoted(resource)
                about = f"{_offered(resource, pod)}{_advice(resource, quantity.whole(amount), pod)}"
                yield UnjudgedDevice(container, shown, about)
        if claims and at(container.raw, "resources", "claims"):
            about = f"the devices of a ResourceClaim are not read{_advice(CLAIMS, None, pod)}"
            yield UnjudgedDevice(container, CLAIMS, about)


def _offered(resource: str, pod: ReviewedPod) -> str:
    """Whether a node offers a resource."""
    fleet = pod.cluster.known_fleet
    if name := pod.cluster.collections.served.get(resource):
        return f"DeviceClass {wording.unquoted(name)} serves it"
    if fleet is None:
        return "whether a node offers it is not known"
    node = fleet.offered.get(resource)
    return "no node offers it" if node is None else f"node {wording.unquoted(node)} offers it"


def _advice(resource: str, amount: int | None, pod: ReviewedPod) -> str:
    """What to write for as many slices of a card, or for the resource to count; empty if there is nothing to advise."""
    config, fleet = pod.cluster.config, pod.cluster.known_fleet
    if resource in config.roles:
        return f"; Volcano reads it on pods with the label {names.RING_CONTROLLER}: {names.RING_CONTROLLER_310P}"
    served = fleet is None or resource in fleet.offered or resource in pod.cluster.collections.served
    if vendor := vendor_of(resource):
        return "" if served else f"; a vGPU is a slice of an NVIDIA card, and no card of {vendor}"
    if _NPU.search(resource):
        return advice_of_npus(resource, amount, pod.cluster)
    number = _counted(resource, amount)
    if not (resource == CLAIMS or _GPU.search(resource)) or (fleet is not None and not fleet.vgpu.shapes):
        return ""
    own = (one.resource for one in pod.amounts if one.family in (Family.VGPU, Family.GPUSHARE) and one.value)
    if resource != CLAIMS and (beside := next(own, "")):
        return "" if served else f"; remove it, as the pod requests {beside} already"
    useless = names.CHOOSING_ANNOTATIONS & pod.view.annotations.keys() if resource == names.NVIDIA_GPU else ()
    also = f"; nothing reads {' and '.join(sorted(useless))} without it" if useless else ""
    vgpu, unit = config.vgpu, wording.unit_of(config.vgpu.memory_factor)
    what, each = ("a slice of a card", "") if number == 1 else (f"slices of {number} cards", " for each")
    memory = f"{vgpu.memory_name} in {unit}{each}"
    whole = "" if vgpu.default_memory else f" (without it, {'a whole card' if number == 1 else 'whole cards'})"
    if mig := _MIG.match(resource):
        what = f"{'a slice' if number == 1 else f'{number} slices'} of its size"
        instances = [one for models in vgpu.mig_models for cut in models.geometries for one in cut.instances]
        sizes = [one.memory // vgpu.memory_factor for one in instances if one.name == mig[1]]
        memory, whole = f"{vgpu.memory_name}: {min(sizes)}" if sizes else memory, ""
        if fleet is None or any(card.geometries is not None for shape in fleet.vgpu.shapes for card, _ in shape.kinds):
            memory += f", with the annotation {names.VGPU_MODE}: {names.MODE_MIG} for an instance"
    return f"; for {what} write {vgpu.number_name}: {number}, and {memory}{whole}{also}"


def _counted(resource: str, amount: int | None) -> int:
    """The devices that an amount of a resource stands for; at least 1."""
    return 1 if amount is None or _OF_A_CARD.search(resource) else max(amount, 1)


def advice_of_npus(resource: str, amount: int | None, cluster: KnownCluster) -> str:
    """What to write for an amount of a resource that nothing serves, of the NPUs that some node offers; empty if none does."""
    fleet, config = cluster.known_fleet, cluster.config
    offered = offered_roles(fleet, config)
    chips = [chip for chip in config.ascend.chips if chip.number_name in offered]
    if fleet is None or not chips:
        return ""
    some = ", or ".join(f"{chip.number_name}: {_counted(resource, amount)}" for chip in chips)
    its = "" if len(chips) == 1 else "its memory, such as "
    return f"; for a share of an NPU write {some}, and {its}{chips[0].memory_name} in MiB"
