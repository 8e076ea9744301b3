"""Devices that the webhook does not judge: those of other device plugins, and those of resource claims."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.pod import quantity
from webhook.pod.view import Container
from webhook.rules.dialects import spoken
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.validate.quantity_invalid import unit_of

CLAIMS = "resources.claims"
MAX_UNJUDGED = 20  # of one pod

_GPU = re.compile("gpu|cuda|/mig-")


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
    """The devices that a pod requests and the webhook does not judge, at most 20."""
    return list(islice(_devices(pod), MAX_UNJUDGED))


def _devices(pod: ReviewedPod) -> Iterator[UnjudgedDevice]:
    looks_like_device = pod.context.config.resources.looks_like_device
    told = {word for _, steps in spoken(pod, pod.context) for step in steps for word in step.words} | pod.roles.keys()
    for container in pod.view.every_container():
        for resource, amount in {**container.requests, **container.limits}.items():
            judged = (
                resource in pod.roles
                or resource in told
                or any(unknown.resource == resource for unknown in pod.unknown_names)
            )
            if not judged and looks_like_device(resource) and quantity.whole(amount) != 0:
                shown = wording.quoted(resource)[1:-1]
                yield UnjudgedDevice(container, shown, f"{_offered(resource, pod)}{_advice(resource, pod)}")
        resources = container.raw.get("resources")
        if isinstance(resources, dict) and resources.get("claims"):
            about = f"the devices of a ResourceClaim are not read{_advice(CLAIMS, pod)}"
            yield UnjudgedDevice(container, CLAIMS, about)


def _offered(resource: str, pod: ReviewedPod) -> str:
    """Whether a node offers a resource."""
    classes, fleet = pod.context.collections.classes, pod.context.known_fleet
    if classes is not None and (name := classes.by_resource.get(resource)):
        return f"DeviceClass {wording.quoted(name)[1:-1]} serves it"
    if fleet is None:
        return "whether a node offers it is not known"
    node = fleet.offered.get(resource)
    return "no node offers it" if node is None else f"node {wording.quoted(node)[1:-1]} offers it"


def _advice(resource: str, pod: ReviewedPod) -> str:
    """What to write for a slice of a card, or for the resource to count; empty if there is nothing to advise."""
    context = pod.context
    if resource in context.config.roles:
        return f"; Volcano reads it on pods with the label {names.RING_CONTROLLER}: {names.RING_CONTROLLER_310P}"
    fleet = context.known_fleet
    if not (resource == CLAIMS or _GPU.search(resource)) or (fleet is not None and not fleet.vgpu.shapes):
        return ""
    vgpu = context.config.vgpu
    return (
        f"; for a slice of a card write {vgpu.number_name}: 1, and {vgpu.memory_name} in {unit_of(vgpu.memory_factor)}"
    )
