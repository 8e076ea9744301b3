"""Some environment variables change how the isolation treats a container beside others.

Finds:    an environment variable that gives a container priority over the other tenants of its card, or hides its usage
Why:      they lift no limit, but they give a container priority over the other tenants of its card, or hide its usage.

CUDA_VISIBLE_DEVICES, LD_LIBRARY_PATH, LIBCUDA_LOG_LEVEL and NVIDIA_DRIVER_CAPABILITIES are allowed: ordinary programs
need them, and images set them too.

The variables are CUDA_TASK_PRIORITY, ACTIVE_OOM_KILLER and RECORD_KERNEL_INTERVAL.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, variables, warn

EFFECTS = {
    "CUDA_TASK_PRIORITY": "sets the priority of its kernels over those of the card's other tenants",
    "ACTIVE_OOM_KILLER": "decides whether a process above the memory limit is killed",
    "RECORD_KERNEL_INTERVAL": "hides kernels from the monitor that shares the card out",
}
DETAIL = "{who} sets {name}, which {effect}; remove it"


@warn(families=VGPU_ONLY, needs=variables(*EFFECTS), on={"ephemeral"}, isolates=True)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find env names that tune the isolation."""
    for container in pod.judged:
        for index, env in container.entries("env"):
            name = env.get("name")
            effect = EFFECTS.get(name) if isinstance(name, str) else None
            if effect:
                yield Finding.in_container(DETAIL, container, f"env[{index}]", name=name, effect=effect)
