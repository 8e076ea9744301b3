"""One vGPU is a slice of one card, and a container never gets two slices of one card.

Reads:    the counts of the regular containers; the fleet
Refuses:  a count above the cards of every node in the requested mode; more gpushare cards or NPUs than any node has
Why:      the allocatable 80 of an eight-card node counts slices; a container can use eight of them.
"""

from collections.abc import Iterator

from webhook.devices.families import Family
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import Level
from webhook.texts import counted


def check(pod: ReviewedPod, context: Context) -> Iterator[Finding]:
    """Name each container that requests more cards than any node has."""
    for refused in pod.refusals(RULE.id):
        if refused.family == Family.VGPU:
            yield from _cards(pod, refused.left())
        else:
            never = refused.never
            yield Finding(
                refused.path,
                f"{refused.who} {never.resource} {never.requested}, but the largest node{refused.left()} ({never.node}) has "
                f"{counted(never.most, refused.device)}; request {_at_most(never.most)}",
            )


def _cards(pod: ReviewedPod, left: str) -> Iterator[Finding]:
    words = pod.constraints
    largest, name_of_largest = max(pod.eligible.shapes, key=lambda found: len(found[0].cards))
    most = len(largest.cards)
    node = f"the largest {words.mode} node" if words.mode else "the largest node"
    name = pod.context.config.vgpu.number_name
    for request in pod.vgpu:
        if request.number and request.number > most:
            yield Finding(
                wording.resource_path(request.container, name),
                f"{wording.container(request.container)} requests {request.number} vGPUs, but "
                f"{node}{left} ({name_of_largest}) has {counted(most, 'card')}; request {_at_most(most)}",
            )


def _at_most(number: int) -> str:
    return f"{number} or fewer" if number > 1 else f"{number}"


RULE = Validation(
    id="card-count",
    level=Level.DENY,
    summary="more vGPUs in a container than any node has physical cards; more gpushare cards or NPUs than any node has",
    check=check,
    fleet=True,
    verdict=True,
)
