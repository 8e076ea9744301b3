"""Devices are counted in whole, not negative numbers that fit an int32.

Reads:    the family names in limits and requests of every container
Refuses:  what is no quantity, a fraction, a negative number, or above 2147483647
Why:      the scheduler casts to int32 and lets it wrap: 8Gi of memory becomes 0, which means the whole card.
"""

from collections.abc import Iterator
from typing import Any

from webhook.devices.asks import MAX_QUANTITY, DevicePod, family_resources
from webhook.devices.families import Role
from webhook.pod import quantity
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find unusable quantities, each resource of a container once."""
    roles = context.config.roles
    for container in pod.view.every_container():
        for resource in dict.fromkeys(family_resources({**container.requests, **container.limits}, roles)):
            raw = container.quantity(resource)
            number = quantity.whole(raw)
            if number is None or not 0 <= number <= MAX_QUANTITY:
                who = f"{wording.container(container)} asks for {resource} {wording.quoted(raw)}"
                problem = _problem(raw, roles[resource][1], context.config.vgpu.memory_factor)
                yield Finding(wording.resource_path(container, resource), f"{who}, {problem}")


def _problem(raw: Any, role: Role, factor: int) -> str:
    try:
        number = quantity.parse(raw)
    except ValueError:
        return "which is no quantity; write a whole number"
    if number < 0:
        return "which is negative; write a whole number above 0"
    if number > MAX_QUANTITY:
        if role is Role.MEMORY and quantity.binary_suffix(raw):
            unit = "MiB" if factor == 1 else f"units of {factor} MiB"
            return f"but Volcano counts {unit}, not bytes; did you mean {number // 2**20 // factor}?"
        return f"which is above {MAX_QUANTITY}, the most that the scheduler can count; write a smaller number"
    return "which is not a whole number; devices cannot be asked for in fractions"


RULE = Validation(
    id="quantity-invalid",
    level=Level.DENY,
    summary="a device quantity that is no whole number, is negative, or is above 2147483647",
    check=check,
)
