"""A count without cores: the cores become the config's `defaultCores`.

Reads:    resources of the regular containers; defaultCores
Writes:   the cores, in limits and requests
Why:      no other component of Volcano applies this default.
"""

from collections.abc import Iterator

from webhook.devices.families import Role
from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules.base import Mutation
from webhook.rules.context import VGPU_ONLY, Context
from webhook.rules.wording import set_amount


def propose(pod: DevicePod, _context: Context) -> Iterator[Edit]:
    """Add the cores to containers without any."""
    for request in pod.slices:
        if request.number and Role.CORES not in request.written:
            yield from set_amount(request.container, request.config.cores_name, request.config.default_cores)


RULE = Mutation(
    id="default-cores",
    summary="a count without cores: the cores become `defaultCores`, when that is set",
    propose=propose,
    enabled=lambda config, _: config.vgpu.default_cores > 0,
    families=VGPU_ONLY,
)
