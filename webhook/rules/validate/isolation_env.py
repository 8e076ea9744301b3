"""Some environment variables switch the isolation off, or set its limits.

Refuses:  an environment variable that switches the isolation of vGPUs or NPUs off, ephemeral containers included
Why:      a pod's own env overrides what the device plugin injects.

For vGPUs they are CUDA_DISABLE_CONTROL, CUDA_DISABLE_CONTROL_DP, CUDA_DEVICE_MEMORY_LIMIT, CUDA_DEVICE_MEMORY_LIMIT_…,
CUDA_DEVICE_SM_LIMIT…, CUDA_DEVICE_MEMORY_SHARED_CACHE, GPU_CORE_UTILIZATION_POLICY, CUDA_REDIRECT, LD_PRELOAD, LD_AUDIT and
NVIDIA_VISIBLE_DEVICES; for NPUs ASCEND_VISIBLE_DEVICES, ASCEND_VNPU_SPECS and ASCEND_RUNTIME_OPTIONS, and for Ascend vNPUs
also NPU_MEM_QUOTA, NPU_PRIORITY, NPU_GLOBAL_SHM_PATH and NPU_LOCAL_SHM_PATH.

It warns by default where no other tenant is affected: CUDA_DISABLE_CONTROL for whole cards, and LD_PRELOAD of memory
allocators.

A container holds whole cards alone if it requests 100 cores, for which the scheduler wants an empty card and then lets no
other container join, and all memory: none is written, or as much as every card that it may get has. The device plugin may
read the variable of another container of the pod, so all that request vGPUs must hold whole cards.

What has no effect on the isolation, or tightens it, is allowed: an empty NVIDIA_VISIBLE_DEVICES, LD_PRELOAD or LD_AUDIT, none,
void, GPU_CORE_UTILIZATION_POLICY=force, and for NPUs the value of an annotation that only the scheduler writes.
"""

from webhook.devices.model import CARD_CORES
from webhook.devices.requests import DeviceRequest
from webhook.pod.environment import preloads_allocators
from webhook.rules.api import Context, Finding, Findings, Level, ReviewedPod, deny, wording
from webhook.rules.isolation import DISABLING, ISOLATED, ISOLATING, has_no_effect, overriding

DETAIL = "{who} sets {name}, which overrides the isolation of the device; remove it"
DISABLES = (
    "{who} sets {name}, which switches HAMi-core off; it holds whole cards alone: see policy isolationEnv.wholeCards"
)
PRELOADS = (
    "{who} preloads a memory allocator, which can override the isolation; link the program with it, or set policy "
    "isolationEnv.allocators to off"
)


@deny(families=ISOLATED, needs={ISOLATING}, on={"ephemeral"}, isolates=True, reads=("nodes", "policy.isolationEnv"))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find env names that loosen the isolation."""
    known, prefixes = overriding(frozenset(pod.requested))
    whole = all(_takes_whole_cards(request, pod, context) for request in pod.slices)
    alone = [request.container for request in pod.slices] if whole else []
    for container in pod.judged:
        for index, env in container.entries("env"):
            name = env.get("name")
            if not isinstance(name, str) or not (name in known or name.startswith(prefixes)) or has_no_effect(env):
                continue
            template, ceiling = DETAIL, Level.DENY
            if name in DISABLING and container in alone:
                template, ceiling = DISABLES, context.cluster.policy.isolation_env.whole_cards
            elif preloads_allocators(env):
                template, ceiling = PRELOADS, context.cluster.policy.isolation_env.allocators
            if ceiling is not Level.OFF:
                path, shown = f"{container.where}.env[{index}]", wording.unquoted(name)
                detail = template.format(who=wording.container(container), name=shown)
                yield Finding(path, detail, ceiling=ceiling)


def _takes_whole_cards(request: DeviceRequest, pod: ReviewedPod, context: Context) -> bool:
    if not request.usable or not request.number or request.cores != CARD_CORES or request.percentage is not None:
        return False
    if not request.memory:
        return True  # the scheduler takes all memory of each card
    if not context.cluster.knows_nodes or context.cluster.policy.fleet.autoscaled or not pod.eligible.complete:
        return False  # a larger card may be there
    return all(card.memory <= request.memory for card in pod.eligible.cards)
