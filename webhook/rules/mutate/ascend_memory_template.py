"""An NPU is cut by templates: memory is rounded up to what the scheduler will book.

Reads:    the Ascend memory of the regular containers; the chips of the device config
Writes:   the memory, in limits and requests
Why:      the scheduler books a whole template or the whole NPU without a word; the author shall see what is used up.
"""

from collections.abc import Iterator

from webhook.devices.ascend.feasibility import is_hami_core
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules import wording
from webhook.rules.base import Context, Mutation, Notice
from webhook.rules.facts import facts_of
from webhook.rules.wording import set_amount


def propose(pod: DevicePod, context: Context) -> Iterator[Edit | Notice]:
    """Round up, except where NPUs are shared in software, and what validation refuses: too much, and several parts."""
    if is_hami_core(pod.view):
        return
    for ask in facts_of(pod, context).npus:
        if ask.memory is None or ask.memory > ask.chip.capacity:
            continue
        booked = ask.chip.booked(ask.memory)
        if booked != ask.memory and (ask.number == 1 or booked == ask.chip.allocatable):
            what = "a template" if booked in ask.chip.templates else "the whole NPU"
            yield from set_amount(ask.container, ask.chip.memory_name, booked)
            yield Notice(
                f"{wording.container(ask.container)}: {ask.chip.memory_name} {ask.memory} becomes {booked}, {what}, as the "
                "scheduler books it"
            )


RULE = Mutation(
    id="ascend-memory-template",
    summary="Ascend memory is rounded up to the template or whole NPU that the scheduler will book, with a warning",
    propose=propose,
    families=frozenset({Family.ASCEND}),
)
