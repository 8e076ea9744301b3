"""A placement exists, yet the scheduler misses it on an empty node.

Reads:    the asks of the regular containers; the fleet
Refuses:  a pod that only another order of containers or cards would place
Why:      the scheduler serves containers in order, walks the cards once and takes nothing back.

On a partly used node the walk may differ, so this is a warning.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.devices.verdict import FitsTightly
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation
from webhook.rules.facts import facts_of


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name the node that it would fit."""
    for _, verdict in facts_of(pod, context).verdicts:
        if isinstance(verdict, FitsTightly):
            yield Finding(
                "spec.containers",
                f"the pod fits node {verdict.node}, but the scheduler may miss it; put the container that asks for most first",
            )


RULE = Validation(
    id="fits-tightly",
    level=Level.WARN,
    summary="an assignment exists, yet the scheduler's greedy order misses it on an empty node",
    check=check,
    families=VGPU_ONLY,
    fleet=True,
)
