"""A resource name that no device config and no node has is most likely misspelt.

Refuses:  a misspelt resource name: it begins like a family's, but no node offers it and no DeviceClass serves it
Why:      schedulers count it as 0 on every node, so the pod stays pending; with nodeName, it starts without the intended
          device.

Without a section `nvidia` in its device config, Volcano reads the names of vGPUs as empty, so none of them has a meaning.
That is a warning: the scheduler may read another ConfigMap, or have started before. Source: volcano
`pkg/scheduler/api/devices/config/config.go` (loadConfigFromCM).

Both Volcano and kube-scheduler compare every requested extended resource with what a node offers; Volcano leaves out only
the exact names that its device plugins list. kubelet drops names that its node does not offer. So no pod that could run is
refused while all nodes are known. While they are not, or while DeviceClasses cannot be listed, the finding is a warning: some
node may offer the name, or Dynamic Resource Allocation serve it.
"""

from webhook.devices.unknown import UnknownName
from webhook.pod import quantity
from webhook.rules.api import EVERY_POD, Context, Finding, Findings, PodFact, ReviewedPod, deny, names, wording
from webhook.rules.unjudged import advice_of_npus

NO_SECTION = (
    "{} requests vGPUs, but this device config has no section nvidia, so Volcano sees no vGPUs; add the section to the "
    "ConfigMap that the scheduler reads, then restart the scheduler"
)


@deny(families=EVERY_POD, fleet=True, needs={PodFact.FOREIGN}, reads=("deviceConfig", "deviceClasses"))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find names that mean nothing."""
    unknown = pod.names.unknown
    findings = [_finding(each, context) for each in unknown] if unknown else []
    if context.cluster.config.lacks_vgpus and pod.slices:
        first = pod.slices[0].container
        findings.append(Finding(first.where, NO_SECTION.format(wording.container(first)), doubtful=True))
    return findings


def _finding(unknown: UnknownName, context: Context) -> Finding:
    return Finding(
        wording.resource_path(unknown.container, unknown.resource),
        f"{wording.container(unknown.container)} requests {wording.unquoted(unknown.resource)}, "
        f"{_why(unknown, context)}; {_remedy(unknown, context)}",
        doubtful=not context.cluster.knows_classes,
    )


def _why(unknown: UnknownName, context: Context) -> str:
    if unknown.meant is None and unknown.resource.startswith(names.ASCEND_PREFIX):
        return "but the device config names no such NPU, so Volcano assigns none"
    return "but no node offers it" if context.cluster.knows_nodes else "but the device config does not name it"


def _remedy(unknown: UnknownName, context: Context) -> str:
    if unknown.meant is not None:
        return f"did you mean {unknown.meant}?"
    if unknown.resource.startswith(names.VOLCANO_DOMAIN):
        return f"use {', '.join(context.cluster.config.vgpu.role_names.values())}, or remove it"
    if unknown.resource.startswith(names.ASCEND_PREFIX):
        amount = quantity.whole(unknown.container.quantity(unknown.resource))
        other = advice_of_npus(unknown.resource, amount, context.cluster).removeprefix("; ")
        add = "add its chip to the section vnpus of the device config, then restart the scheduler"
        return f"{other}; or {add}" if other else add
    return "use a name that a node offers, or remove it"
