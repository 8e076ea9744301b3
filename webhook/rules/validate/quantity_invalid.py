"""A device quantity is a whole number from 0 to 2147483647.

Reads:    the family names in limits and requests of every container
Refuses:  text that is not a quantity, a fraction, a negative number, or one above 2147483647
Why:      the scheduler casts to int32, which overflows: 8Gi of memory becomes 0, which means the whole card.
"""

from collections.abc import Iterator

from webhook.devices.families import Family, Role
from webhook.devices.requests import MAX_QUANTITY, Amount, DevicePod
from webhook.errors import json_type
from webhook.pod import quantity
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation

DETAIL = "{who} requests {resource} {amount}, {problem}"
NEGATIVE = "which is negative; write a whole number above 0"
ABOVE = f"which is above {MAX_QUANTITY}, the most that the scheduler can count; write a smaller number"
BYTES = "but Volcano counts {unit}, not bytes; did you mean {meant}?"
FRACTION = "which is not a whole number; devices cannot be requested in fractions"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find unusable quantities, each resource of a container once."""
    for amount in pod.amounts:
        if amount.value is None:
            written, problem = wording.quoted(amount.raw), _problem(amount, context)
            yield wording.find_resource(DETAIL, amount.container, amount.resource, amount=written, problem=problem)


def _problem(amount: Amount, context: Context) -> str:
    raw = amount.raw
    try:
        number = quantity.parse(raw)
    except ValueError:
        what = "which is not a quantity" if isinstance(raw, str) else f"which is {json_type(raw)}, not a quantity"
        return f"{what}; write a whole number"
    if number < 0:
        return NEGATIVE
    if number > MAX_QUANTITY:
        factor = context.config.vgpu.memory_factor if amount.family is Family.VGPU else 1
        meant = wording.meant_mebibytes(raw, factor) if amount.role is Role.MEMORY else 0
        if meant:
            return BYTES.format(unit=unit_of(factor), meant=meant)
        return ABOVE
    return FRACTION


def unit_of(factor: int) -> str:
    """What one unit of memory is; `factor` is the device config's gpuMemoryFactor."""
    return "MiB" if factor == 1 else f"units of {factor} MiB"


RULE = Validation(
    id="quantity-invalid",
    level=Level.DENY,
    summary="a device quantity that is not a whole number from 0 to 2147483647",
    check=check,
)
