"""Several NPUs are given whole or not at all.

Reads:    the Ascend count and memory of the regular containers; the chips of the device config
Refuses:  a count above 1 with less than the whole memory, unless NPUs are shared in software
Why:      the scheduler refuses parts of several NPUs on every node, and the pod waits for ever.
"""

from collections.abc import Iterator

from webhook.devices.ascend.feasibility import is_hami_core
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import facts_of


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find parts of several NPUs."""
    if is_hami_core(pod.view):
        return
    for ask in facts_of(pod, context).npus:
        chip = ask.chip
        if ask.number == 1 or ask.memory is None or ask.memory > chip.capacity:
            continue
        if chip.booked(ask.memory) != chip.allocatable:
            yield Finding(
                wording.resource_path(ask.container, chip.memory_name),
                f"{wording.container(ask.container)} asks for {ask.number} {chip.number_name} with {chip.memory_name} "
                f"{ask.memory} each, but several NPUs are given whole only; write {chip.allocatable}, or ask for 1",
            )


RULE = Validation(
    id="ascend-partial-several",
    level=Level.DENY,
    summary="more than one Ascend NPU with less than the whole memory of each",
    check=check,
    families=frozenset({Family.ASCEND}),
)
