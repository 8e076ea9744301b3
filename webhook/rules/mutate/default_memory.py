"""A count without memory and percentage: the memory becomes the config's `defaultMemory`.

Reads:    resources of the regular containers; defaultMemory
Writes:   the memory, in limits and requests
Why:      nobody else in the Volcano stack applies this default.
"""

from collections.abc import Iterator

from webhook.devices.families import Role
from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules.base import VGPU_ONLY, Context, Mutation
from webhook.rules.wording import set_amount


def propose(pod: DevicePod, context: Context) -> Iterator[Edit]:
    """Add the memory where nothing says how much."""
    config = context.config.vgpu
    for ask in pod.vgpu:
        if ask.number and Role.MEMORY not in ask.written and Role.PERCENTAGE not in ask.written:
            yield from set_amount(ask.container, config.memory_name, config.default_memory)


RULE = Mutation(
    id="default-memory",
    summary="a count without memory: the memory becomes `defaultMemory`, when that is set",
    propose=propose,
    enabled=lambda config, _: config.vgpu.default_memory > 0,
    families=VGPU_ONLY,
)
