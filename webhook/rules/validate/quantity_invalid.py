"""A device quantity is a whole number from 0 to 2147483647, and memory a number of MiB.

Refuses:  a device quantity that is not a whole number from 0 to 2147483647; memory above 1048576, which is bytes
Why:      the scheduler casts to int32, which overflows: 8Gi of memory becomes 0, which means the whole card.
"""

import re
from fractions import Fraction
from math import ceil

from webhook.devices.config import VgpuConfig
from webhook.devices.requests import MAX_MEMORY, MAX_QUANTITY, Amount
from webhook.errors import json_type
from webhook.pod import quantity
from webhook.rules.api import Context, Family, Finding, Findings, PodFact, ReviewedPod, Role, deny, wording

DETAIL = "{who} requests {resource} {amount}, {problem}"
NEGATIVE = "which is negative; write a whole number above 0"
ABOVE = f"which is above {MAX_QUANTITY}, the most that the scheduler can count; write a smaller number"
TOO_MUCH = f"which is above {MAX_MEMORY}, more than any card has; write a smaller number"
BYTES = "but Volcano counts {unit}, not bytes; did you mean {meant}?"
FRACTION = "which is not a whole number; {advice}"
UNREADABLE = "which is {what}; {advice}"

LEAST = 16  # MiB: less is nobody's wish in bytes
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_SIZE = re.compile(_NUMBER + r" ?([kmgt])i?b?", re.IGNORECASE)
_PERCENTAGE = re.compile(_NUMBER + r" ?%")
_MEBIBYTES = {"k": Fraction(1, 2**10), "m": Fraction(1), "g": Fraction(2**10), "t": Fraction(2**20)}


@deny(needs={PodFact.UNUSABLE})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find unusable quantities, each resource of a container once; not memory that a percentage replaces."""
    for amount in pod.amounts:
        if amount.value is None and not pod.memory.is_replaced(amount):
            written, problem = wording.quoted(amount.raw), _problem(amount, context.cluster.config.vgpu)
            yield Finding.of_resource(DETAIL, amount.container, amount.resource, amount=written, problem=problem)


def _problem(amount: Amount, config: VgpuConfig) -> str:
    factor = config.memory_factor if amount.family == Family.VGPU else 1
    try:
        number = quantity.parse(amount.raw)
    except ValueError:
        return _of_text(amount, factor, config)
    if number < 0:
        return NEGATIVE
    if not isinstance(number, int) and number <= MAX_QUANTITY:
        return FRACTION.format(advice=_whole(amount, number, config))
    meant = int(number) // 2**20 // factor
    if amount.role is not Role.MEMORY or meant > MAX_MEMORY:
        return ABOVE
    if meant * factor < LEAST:
        return TOO_MUCH
    return BYTES.format(unit=wording.unit_of(factor), meant=meant)


def _of_text(amount: Amount, factor: int, config: VgpuConfig) -> str:
    """What is wrong with a value that is no quantity, such as `8192MB` and `50%`."""
    raw, advice = amount.raw, "write a whole number"
    if not isinstance(raw, str):
        return UNREADABLE.format(what=f"{json_type(raw)}, not a quantity", advice=advice)
    if (size := _SIZE.fullmatch(raw)) and amount.role is Role.MEMORY:
        meant = int(Fraction(size[1]) * _MEBIBYTES[size[2].lower()]) // factor
        if meant * factor >= LEAST:
            return BYTES.format(unit=wording.unit_of(factor), meant=meant)
    if percentage := _PERCENTAGE.fullmatch(raw):
        advice = _part(amount, Fraction(percentage[1]), config) or advice
    return UNREADABLE.format(what="not a quantity", advice=advice)


def _whole(amount: Amount, number: Fraction, config: VgpuConfig) -> str:
    """What to write instead of a fraction."""
    part = _part(amount, number * 100, config) if number < 1 else ""
    return part or f"write {ceil(number) if amount.role is Role.NUMBER else max(int(number), 1)}"


def _part(amount: Amount, percentage: Fraction, config: VgpuConfig) -> str:
    """How to request a percentage of a card; empty for what is not cut like that."""
    whole = max(int(percentage), 1)
    if amount.family != Family.VGPU or whole > 100:
        return ""
    match amount.role:
        case Role.NUMBER:
            return f"for a part of a card write 1, and {config.percentage_name}: {whole}"
        case Role.MEMORY:
            return f"for a part of a card write {config.percentage_name}: {whole}"
        case _:
            return f"write {whole}"
