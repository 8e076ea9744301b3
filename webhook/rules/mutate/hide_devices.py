"""With `overwriteEnv: true`, a container that requests no device sees none.

Writes:   `NVIDIA_VISIBLE_DEVICES=none` in each container that requests no vGPU, with `overwriteEnv: true`
Why:      on a GPU node the NVIDIA runtime shows every card to a container whose image or env requests it.

Without this webhook, the setting has no effect. Containers that get a card from another NVIDIA device plugin are not changed:
a pod's env overrides the plugin's, and would take the card away.
"""

from webhook.devices.requests import requested_families, served_elsewhere
from webhook.pod.environment import shows_devices
from webhook.pod.fields import variables
from webhook.pod.patch import APPEND
from webhook.pod.view import Container
from webhook.rules.api import EVERY_POD, Context, Edit, Edits, Family, Mutation, Notice, ReviewedPod, names, wording

_SERVED = {Family.VGPU, Family.GPUSHARE}


@Mutation(
    families=EVERY_POD,
    enabled=lambda config, _: config.vgpu.overwrite_env,
    on={"ephemeral"},
    reads=(*variables(names.NVIDIA_VISIBLE_DEVICES), "deviceConfig.overwriteEnv"),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Set NVIDIA_VISIBLE_DEVICES=none in containers that request no NVIDIA device."""
    roles = pod.roles
    for container in pod.judged:
        if _SERVED.isdisjoint(requested_families(container, roles)) and not served_elsewhere(container, roles):
            yield from _hide(container)


def _hide(container: Container) -> Edits:
    hidden = {"name": names.NVIDIA_VISIBLE_DEVICES, "value": "none"}
    own = [(index, env) for index, env in container.entries("env") if env.get("name") == names.NVIDIA_VISIBLE_DEVICES]
    if not own:
        yield Edit((*container.path, "env", APPEND), hidden)
    for index, env in own:
        if shows_devices(env):
            yield Edit((*container.path, "env", index), hidden)
            yield Notice(f"{wording.container(container)} requests no vGPU: {names.NVIDIA_VISIBLE_DEVICES} set to none")
