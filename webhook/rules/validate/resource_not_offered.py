"""A resource that no node offers keeps its pod pending, whoever schedules it.

Finds:    a resource of another device plugin that no node offers and no DeviceClass serves
Why:      schedulers count it as 0 on every node, so the pod stays pending.

A name that begins like those of a family is `unknown-resource`, and refused. In an autoscaled fleet, a node may come that
offers the name, so nothing is found.
"""

from webhook.rules.api import EVERY_POD, Context, Finding, Findings, PodFact, ReviewedPod, warn, wording
from webhook.rules.dialects import ANNOTATED, DIALECT
from webhook.rules.unjudged import UnjudgedDevice, meant_by, not_offered


@warn(families=EVERY_POD, needs={PodFact.FOREIGN}, reads=(ANNOTATED, DIALECT, "nodes", "deviceClasses"))
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find what no node offers."""
    return [finding(device, pod) for device in not_offered(pod)]


def finding(device: UnjudgedDevice, pod: ReviewedPod) -> Finding:
    """What was most likely meant by a name that no node offers, or what to write instead."""
    meant = meant_by(device.resource, pod.context.cluster.known_fleet, pod.context.cluster.config)
    return Finding(
        wording.resource_path(device.container, device.resource),
        f"{wording.container(device.container)} requests {device.resource}, but "
        f"{f'no node offers it; {meant}' if meant else device.about}",
    )
