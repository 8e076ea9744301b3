"""Memory, cores or a percentage without a count: the count becomes the config's `defaultGPUNum`.

If the policy's `limits` do not allow that, it is the nearest count that they allow.

Writes:   the count `defaultGPUNum`, within the policy's `limits`, beside memory, cores or a percentage without a count
Why:      no other component of Volcano applies this default: with cores or a percentage alone a container gets no GPU, with
          memory alone no isolation.

A LimitRange with a default memory makes a vGPU pod of each pod in its namespace: the API server applies it before this webhook.
"""

from webhook import names
from webhook.pod.fields import annotations
from webhook.pod.size import MAX_CONTAINERS
from webhook.pod.view import set_amount
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Edits, Mutation, Notice, ReviewedPod, Role, wording

_NOTE = "LimitRanger plugin set: "  # Kubernetes, plugin/pkg/admission/limitranger/admission.go
MAX_NOTES = 2 * MAX_CONTAINERS  # that are read: limits and requests of each container
BY_DEFAULT = (
    "{who} requests {resource} only by the default of a LimitRange, so it gets a card; if it needs none, ask an administrator "
    "to remove {resource} from that default: defaultMemory and defaultCores of the device config change only pods with vGPUs"
)

ZERO = "{who} requests {resource} 0, for which the scheduler counts a whole card, so it gets one; if it needs none, remove it"


@Mutation(
    families=VGPU_ONLY,
    enabled=lambda config, _: config.vgpu.default_number > 0,
    reads=(*annotations(names.LIMIT_RANGER), "deviceConfig.defaultGPUNum", ClusterFact.LIMITS),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Add the count where it is missing."""
    by_default: dict[str, set[str]] | None = None
    for request in pod.slices:
        if Role.NUMBER not in request.written:
            number = context.effective.within_limits(Role.NUMBER, request.config.default_number)
            yield from set_amount(request.container, request.config.number_name, number)
            if not any([request.memory, request.cores, request.percentage]) and request.usable:
                yield Notice(ZERO.format(who=wording.container(request.container), resource=request.config.memory_name))
            first, *others = request.written.values()
            if by_default is None:
                by_default = _by_default(pod)
            if {first, *others} <= by_default.get(request.container.name, set()):
                yield Notice(BY_DEFAULT.format(who=wording.container(request.container), resource=first))


def _by_default(pod: ReviewedPod) -> dict[str, set[str]]:
    """By container, the resources whose limit the API server has set by the default of a LimitRange."""
    counted_by: dict[str, set[str]] = {}
    for note in (pod.view.annotation(names.LIMIT_RANGER) or "").removeprefix(_NOTE).split("; ")[:MAX_NOTES]:
        resources, _, container = note.partition(" limit for container ")
        counted_by.setdefault(container, set()).update(resources.split(", "))
    return counted_by
