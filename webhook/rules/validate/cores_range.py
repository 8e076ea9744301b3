"""A card has 100 cores; asking one card for more waits for ever.

Reads:    the vgpu cores of the regular containers
Refuses:  cores above 100
Why:      the scheduler skips a card when used plus asked exceeds 100.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find cores above 100."""
    name = context.config.vgpu.cores_name
    for ask in pod.vgpu:
        if ask.cores is not None and ask.cores > 100:
            yield Finding(
                wording.resource_path(ask.container, name),
                f"{wording.container(ask.container)} asks for {name} {ask.cores}, but it is a percentage of one card; "
                "write 100 or less",
            )


RULE = Validation(
    id="cores-range",
    level=Level.DENY,
    summary="more than 100 vGPU cores: they are percent of a card",
    check=check,
    families=VGPU_ONLY,
)
