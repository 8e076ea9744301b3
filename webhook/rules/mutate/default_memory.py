"""A count without memory and percentage: the memory becomes the config's `defaultMemory`.

Reads:    resources of the regular containers; defaultMemory
Writes:   the memory, in limits and requests
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
    """Add the memory to containers without memory or percentage."""
    for request in pod.slices:
        if request.number and Role.MEMORY not in request.written and Role.PERCENTAGE not in request.written:
            yield from set_amount(request.container, request.config.memory_name, request.config.default_memory)


RULE = Mutation(
    id="default-memory",
    summary="a count without memory: the memory becomes `defaultMemory`, when that is set",
    propose=propose,
    enabled=lambda config, _: config.vgpu.default_memory > 0,
    families=VGPU_ONLY,
)
