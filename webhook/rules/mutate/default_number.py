"""Memory, cores or a percentage without a count: the count becomes the config's `defaultGPUNum`.

Reads:    resources of the regular containers; defaultGPUNum
Writes:   the count, in limits and requests
Why:      no other component of Volcano applies this default: with cores or a percentage alone a container gets no GPU, with
          memory alone no isolation.
"""

from collections.abc import Iterator

from webhook.devices.families import Role
from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules.base import Mutation
from webhook.rules.context import VGPU_ONLY, Context
from webhook.rules.wording import set_amount


def propose(pod: DevicePod, _context: Context) -> Iterator[Edit]:
    """Add the count where it is missing."""
    for request in pod.slices:
        if Role.NUMBER not in request.written:
            yield from set_amount(request.container, request.config.number_name, request.config.default_number)


RULE = Mutation(
    id="default-number",
    summary="memory, cores or percentage without a count: the count becomes `defaultGPUNum`",
    propose=propose,
    enabled=lambda config, _: config.vgpu.default_number > 0,
    families=VGPU_ONLY,
)
